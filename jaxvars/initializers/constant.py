"""Initializers of known values: zeros, ones, constants, the identity."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.errors import ShapeError
from jaxvars.initializers.initializer import Initializer, Sizes
from jaxvars.tensors.tensor import to_tensor
from jaxvars.typing import Array


@final
class Zeros(Initializer):
    """Zeros.

    >>> Zeros()((2,), dtype="int32").tolist()
    [0, 0]
    """

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return jnp.zeros(shape, dtype)


@final
class Ones(Initializer):
    """Ones.

    >>> Ones()((2,)).tolist()
    [1.0, 1.0]
    """

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return jnp.ones(shape, dtype)


@final
class Constant(Initializer):
    """One number everywhere, or an array.

    Args:
        value: a number, or an array that broadcasts to the shape.

    Raises:
        ShapeError: (from a call) when the value does not broadcast to the shape.
        DtypeError: (from a call) when the dtype cannot hold the value without loss.

    >>> Constant(3)((2, 2)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        value = to_tensor(self.value, dtype, what="the value of Constant")
        try:
            return jnp.broadcast_to(value, shape)
        except ValueError:
            raise ShapeError(
                f"Constant has a value of shape {value.shape}, which does not broadcast to the "
                f"shape {shape} that was asked for."
            ) from None


@final
class Identity(Initializer):
    """The identity matrix, times a number.

    Args:
        gain: the number.

    Raises:
        ShapeError: (from a call) when the shape is not that of a matrix.

    >>> Identity(2)((2, 3)).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        if len(shape) != 2:
            raise ShapeError(f"Identity makes matrices, like (3, 3), not the shape {shape}.")
        return to_tensor(self.gain, dtype, what="the gain of Identity") * jnp.eye(
            *shape, dtype=dtype
        )
