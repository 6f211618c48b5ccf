"""Sums that lose nothing that is small beside them, of one array or group by group.

A sum is two floats, its parts: the value, and what rounding has taken from it (two-sum; D. Knuth,
The Art of Computer Programming, vol. 2, 4.2.2). They are one array of shape [2, ...], and hold
integers exactly up to 2**48.

Rules this file keeps:
- no float32 is added to a sum of many: not in a reduction, nor in a scatter;
- what is added group by group is cut into integers, whose sums are exact;
- integers are added exactly;
- infinity and NaN are what they would be in a plain sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars.core.frame import Change
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.errors import ShapeError
from jaxvars.modules.module import Module
from jaxvars.tensors.dtypes import as_dtype, is_inexact
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array, DTypeLike

Parts: TypeAlias = Any

_LOW_BITS = 12  # of an integer: the others, and these, are exact in float32
_PIECE_BITS = 18  # of what a number is cut into
_ROW = 1 << (30 - _PIECE_BITS)  # how many pieces are added in 32 bits
_RANGE_BITS = 48  # how many bits a number may be smaller than the largest, and keep all of its own


def parts_of(x: Array, dtype: DTypeLike = jnp.float32) -> Parts:
    """Return an array as the parts of a sum, exactly."""
    x = jnp.asarray(x)
    kind = jnp.promote_types(dtype, jnp.float32)
    if jnp.issubdtype(x.dtype, jnp.integer):
        x = x if x.dtype.itemsize >= 4 else x.astype(jnp.int32)
        low = x & ((1 << _LOW_BITS) - 1)
        return jnp.stack([(x - low).astype(kind), low.astype(kind)])
    high = x.astype(kind)
    if jnp.promote_types(x.dtype, kind) == kind:
        return jnp.stack([high, jnp.zeros_like(high)])
    rest = jnp.where(jnp.isfinite(high), x - high.astype(x.dtype), 0)
    return jnp.stack([high, rest.astype(kind)])


@quick_jit
def total(parts: Parts) -> Array:
    """Return the sum that parts stand for."""
    high, low = parts
    return jnp.where(jnp.isfinite(high), high + low, high)


@quick_jit
def join_parts(one: Parts, other: Parts) -> Parts:
    """Return the parts of two sums together."""
    return jnp.stack(_join(tuple(one), tuple(other)))


def _join(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    (high, low), (x, rest) = one, other
    rough = high + x
    back = rough - high
    lost = (high - (rough - back)) + (x - back) + (low + rest)
    sum_ = rough + lost
    finite = jnp.isfinite(sum_)
    return jnp.where(finite, sum_, rough), jnp.where(finite, lost - (sum_ - rough), 0)


def sum_to_parts(
    x: Array, axes: Sequence[int] | None = None, dtype: DTypeLike = jnp.float32
) -> Parts:
    """Return the parts of the sum of an array along some axes, all of them when None.

    Integers become parts of `dtype`, as they are: nothing is rounded before.

    >>> sum_to_parts(jnp.array([2.0**24, 1.0, 1.0, 1.0])).tolist()
    [16777220.0, -1.0]
    """
    kind = x.dtype if is_inexact(x) else dtype
    return _reduce_parts(parts_of(_hide_from_compiler(x), kind), axes)


def _hide_from_compiler(x: Array) -> Array:
    """Keep XLA from computing a sum of constants while it compiles, which takes it minutes."""
    return jax.lax.optimization_barrier(x)


def _reduce_parts(parts: Parts, axes: Sequence[int] | None = None) -> Parts:
    """Return the parts of the sum along some axes of what the parts stand for."""
    high, low = parts
    zero = jnp.zeros((), high.dtype)
    over = tuple(range(high.ndim)) if axes is None else tuple(axes)
    return jnp.stack(jax.lax.reduce((high, low), (zero, zero), _join, over)) if over else parts


# ---------------------------------------------------------------- group by group
def group_sums(x: Array, where: Sequence[Array], shape: tuple[int, ...]) -> Parts:
    """Return the parts of the sums of the elements of an array that go to the same place.

    >>> group_sums(jnp.array([1.0, 2.0, 4.0]), [jnp.array([1, 0, 1])], (2,)).tolist()
    [[2.0, 5.0], [0.0, 0.0]]
    """
    x = _hide_from_compiler(x)
    if jnp.issubdtype(x.dtype, jnp.integer):
        return parts_of(jnp.zeros(shape, x.dtype).at[tuple(where)].add(x))
    plain = lambda: parts_of(jnp.zeros(shape, x.dtype).at[tuple(where)].add(x), x.dtype)  # noqa: E731
    finite = jnp.isfinite(x).all()
    return jax.lax.cond(finite, lambda: _sum_pieces(x, where, shape), plain)


def _sum_pieces(x: Array, where: Sequence[Array], shape: tuple[int, ...]) -> Parts:
    """Cut numbers into pieces of few bits, and add those of some rows at a time as integers."""
    _, exponent = jnp.frexp(jnp.abs(x).max(initial=0))
    exponent = jnp.maximum(exponent, -100)  # so that no power of two below is infinite
    number = jax.lax.broadcasted_iota(jnp.int32, x.shape, 0) // _ROW
    rows = (x.shape[0] + _ROW - 1) // _ROW
    rest = jnp.ldexp(x, _PIECE_BITS - exponent)  # below 2**18, as all of a row are
    found = parts_of(jnp.zeros(shape, x.dtype), x.dtype)
    bits = jnp.finfo(x.dtype).nmant + 1 + _RANGE_BITS

    def add_a_piece(i: Array, carry: tuple[Array, Parts]) -> tuple[Array, Parts]:
        rest, found = carry
        piece = jnp.trunc(rest)
        sums = jnp.zeros((rows, *shape), jnp.int32)
        sums = sums.at[(number, *where)].add(piece.astype(jnp.int32))
        parts = _reduce_parts(parts_of(sums, x.dtype), (0,))
        found = join_parts(found, jnp.ldexp(parts, exponent - (i + 1) * _PIECE_BITS))
        return (rest - piece) * (1 << _PIECE_BITS), found

    return jax.lax.fori_loop(0, bits // _PIECE_BITS, add_a_piece, (rest, found))[1]


# ---------------------------------------------------------------- tallies
@final
class Tally(Module):
    """A sum of everything added, which loses nothing that is small beside it.

    Args:
        shape: of the sum.
        dtype: float32, or a wider float; for a narrower one it is float32.
        name: of its Variable.

    Attributes:
        parts: the Variable, of shape [2, *shape]: the sum, and what rounding has taken from it.

    Example:
        >>> count = Tally()
        >>> count.add(2**24)
        >>> for _ in range(3):
        ...     count.add(1.0)
        >>> int(count.parts[0]) + int(count.parts[1])
        16777219
    """

    def __init__(
        self, shape: tuple[int, ...] = (), dtype: DTypeLike = "float32", name: str = "tally"
    ) -> None:
        ask("A variable is created")
        kind = jnp.promote_types(as_dtype(dtype), jnp.float32)
        self.parts = Variable(lambda: jnp.zeros((2, *shape), kind), trainable=False, name=name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the sum."""
        return self.parts.shape[1:]

    @property
    def value(self) -> Array:
        """The sum, rounded to the dtype."""
        return total(self.parts.value)

    def add(self, delta: Any) -> None:
        """Add an array of the sum's shape, or raise ShapeError."""
        if jnp.shape(delta) != self.shape:
            raise ShapeError(
                f"Cannot add an array of shape {jnp.shape(delta)} to {self.parts.name!r}, a sum of "
                f"shape {self.shape}."
            )
        LOCAL.frame.modify(self.parts._cell, lambda old: _add_array(old, delta))

    def take(self, parts: Any) -> None:
        """Add the parts of a sum of the same shape."""
        LOCAL.frame.modify_all(self.taking(parts))

    def taking(self, parts: Any) -> Change:
        """Return the change that adds the parts of a sum of the same shape."""
        return self.parts._cell, lambda old: _take_parts(old, parts)


def take_all(sums: Iterable[tuple[Tally, Any]]) -> None:
    """Add the parts of a sum to each of some tallies, in one step."""
    LOCAL.frame.modify_all(*(tally.taking(parts) for tally, parts in sums))


@quick_jit
def _add_array(old: Array, delta: Array) -> Array:
    return join_parts(old, parts_of(delta, old.dtype))


@quick_jit
def _take_parts(old: Array, parts: Array) -> Array:
    for part in parts:  # each may be of a wider dtype
        old = join_parts(old, parts_of(part, old.dtype))
    return old
