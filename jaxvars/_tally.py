"""`Tally`: a sum that one may add to for as long as one likes.

In float32 a sum of ones stands still at 2**24 = 16,777,216: one more changes nothing. A tally keeps
what each addition loses in a second number (two-sum; D. Knuth, The Art of Computer Programming,
vol. 2, 4.2.2), and counts exactly up to 2**48.

Rules this file keeps:
- a tally is one Variable, so that an addition is one step, in any number of threads;
- integers are added exactly;
- infinity and NaN are what they would be in a plain sum.
"""

from __future__ import annotations

from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars._frames import LOCAL
from jaxvars._module import Module
from jaxvars._tensor import as_dtype
from jaxvars._variable import Variable
from jaxvars.errors import ShapeError

Value: TypeAlias = Any

_LOW_BITS = 12  # of an integer: the others, and these, are exact in float32


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
        self, shape: tuple[int, ...] = (), dtype: Any = "float32", name: str = "tally"
    ) -> None:
        kind = jnp.promote_types(as_dtype(dtype), jnp.float32)
        self.parts = Variable(jnp.zeros((2, *shape), kind), trainable=False, name=name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the sum."""
        return self.parts.shape[1:]

    @property
    def value(self) -> Value:
        """The sum, rounded to the dtype."""
        return total(self.parts.value)

    def add(self, delta: Any) -> None:
        """Add an array of the sum's shape, or raise ShapeError."""
        if jnp.shape(delta) != self.shape:
            raise ShapeError(
                f"Cannot add an array of shape {jnp.shape(delta)} to {self.parts.name!r}, a sum of "
                f"shape {self.shape}."
            )
        LOCAL.frame.modify(self.parts.cell, lambda parts: _added(parts, delta))

    def merge(self, other: Tally) -> None:
        """Add what another tally holds."""
        parts = other.parts.value
        self.add(parts[0])
        self.add(parts[1])

    def reset(self) -> None:
        """Begin again at zero."""
        self.parts.assign(jnp.zeros_like(self.parts.value))


@jax.jit
def total(parts: Value) -> Value:
    """Return the sum that the parts of a tally stand for."""
    high, low = parts
    return jnp.where(jnp.isfinite(high), high + low, high)


@jax.jit
def _added(parts: Value, delta: Value) -> Value:
    for part in _split(jnp.asarray(delta), parts.dtype):
        parts = added(parts, part)
    return parts


def _split(delta: Value, dtype: Any) -> list[Value]:
    """Return an array as a sum of arrays of a dtype, exactly."""
    if jnp.issubdtype(delta.dtype, jnp.integer):
        low = delta & ((1 << _LOW_BITS) - 1)
        return [(delta - low).astype(dtype), low.astype(dtype)]
    high = delta.astype(dtype)
    if jnp.promote_types(delta.dtype, dtype) == dtype:
        return [high]
    rest = jnp.where(jnp.isfinite(high), delta - high.astype(delta.dtype), 0)
    return [high, rest.astype(dtype)]


def added(parts: Value, x: Value) -> Value:
    """Return the parts of a tally with an array added."""
    high, low = parts
    rough = high + x
    back = rough - high
    lost = (high - (rough - back)) + (x - back)
    rest = low + lost
    sum_ = rough + rest
    finite = jnp.isfinite(sum_)
    parts = [jnp.where(finite, sum_, rough), jnp.where(finite, rest - (sum_ - rough), 0)]
    return jnp.stack([part.astype(high.dtype) for part in parts])
