"""The types that signatures name: arrays, what becomes one, dtypes and pytrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, TypeVarTuple, runtime_checkable

import jax
import jax.typing
import numpy as np

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
"""The parameters and the result of a function."""

A = TypeVar("A", bound=jax.Array)
K = TypeVar("K")
Ts = TypeVarTuple("Ts")
"""An array, a key, and operands."""


@runtime_checkable
class SupportsArray(Protocol):
    """What stands for an array: a Variable, a Tensor, a slice of one."""

    def __jax_array__(self) -> jax.Array:
        """Return the array that it stands for."""
        ...


Array: TypeAlias = jax.Array
"""An array of JAX, or a tracer of one."""

Value: TypeAlias = jax.Array | Any
"""An `Array`, or a NumPy array in the place of one: strings, or what is known during a trace.

`Any` spares those a cast that know which of them it is.
"""

ArrayLike: TypeAlias = (
    jax.Array | np.ndarray | np.generic | bool | int | float | complex | str | bytes
    | SupportsArray | Sequence[Any]
)  # fmt: skip
"""What becomes an array: numbers, strings, lists of them, arrays, and what stands for one."""

DTypeLike: TypeAlias = jax.typing.DTypeLike | np.dtype[Any]
"""A dtype, a scalar type, or the name of one, such as "bfloat16" or "string"."""

Aval: TypeAlias = Any
"""The shape, dtype and weak type of an array, as JAX has them; its class is private to JAX."""

PyTree: TypeAlias = Any
"""An array, or lists, tuples, dicts and registered classes of pytrees."""
