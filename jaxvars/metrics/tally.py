"""`Tally`: a sum that one may add to for as long as one likes.

In float32 a sum of ones stands still at 2**24 = 16,777,216: one more changes nothing. A tally keeps
what each addition loses in a second number (see `metrics/sums.py`), and counts exactly up to 2**48.

Rules this file keeps:
- a tally is one Variable, so that an addition is one step, in any number of threads;
- integers are added exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.core.frame import Change
from jaxvars.core.frames import LOCAL
from jaxvars.core.module import Module
from jaxvars.core.variable import Variable
from jaxvars.errors import ShapeError
from jaxvars.metrics.sums import joined, parts_of, total
from jaxvars.tensors.dtypes import as_dtype
from jaxvars.tracing.fork import refuse_if_forked
from jaxvars.typing import Array, DTypeLike


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
        refuse_if_forked("A variable is created")
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
        LOCAL.frame.modify_all(self.adding(delta))

    def adding(self, delta: Any) -> Change:
        """Return the change that adds an array of the sum's shape, or raise ShapeError."""
        if jnp.shape(delta) != self.shape:
            raise ShapeError(
                f"Cannot add an array of shape {jnp.shape(delta)} to {self.parts.name!r}, a sum of "
                f"shape {self.shape}."
            )
        return self.parts._cell, lambda old: _added(old, delta)

    def take(self, parts: Any) -> None:
        """Add the parts of a sum of the same shape."""
        LOCAL.frame.modify_all(self.taking(parts))

    def taking(self, parts: Any) -> Change:
        """Return the change that adds the parts of a sum of the same shape."""
        return self.parts._cell, lambda old: _taken(old, parts)

    def merge(self, other: Tally) -> None:
        """Add what another tally holds."""
        self.take(other.parts.value)

    def reset(self) -> None:
        """Begin again at zero."""
        self.parts.assign(jnp.zeros_like(self.parts.value))


def take_all(sums: Iterable[tuple[Tally, Any]]) -> None:
    """Add the parts of a sum to each of some tallies, in one step."""
    LOCAL.frame.modify_all(*(tally.taking(parts) for tally, parts in sums))


@jax.jit
def _added(old: Array, delta: Array) -> Array:
    return joined(old, parts_of(delta, old.dtype))


@jax.jit
def _taken(old: Array, parts: Array) -> Array:
    for part in parts:  # each may be of a wider dtype
        old = joined(old, parts_of(part, old.dtype))
    return old
