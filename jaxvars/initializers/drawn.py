"""Initializers of random values, whatever the layer."""

from __future__ import annotations

from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.errors import DtypeError, ShapeError
from jaxvars.initializers.initializer import Random, Sizes
from jaxvars.random.stateless import stateless_normal, stateless_truncated_normal, stateless_uniform
from jaxvars.typing import Array


@final
class RandomNormal(Random):
    """Normally distributed values.

    Args:
        mean: their mean.
        stddev: their standard deviation.
        seed: an integer, two of them, a key of `jax.random` or a `Generator`; the global
            generator when None.

    >>> RandomNormal(mean=5.0, seed=7)((2, 3)).shape
    (2, 3)
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return stateless_normal(shape, self._source(), self.mean, self.stddev, dtype)


@final
class RandomUniform(Random):
    """Uniformly distributed values: `minval <= x < maxval`.

    Args:
        minval: the smallest.
        maxval: the bound above.
        seed: as for `RandomNormal`.

    >>> RandomUniform(0, 10, seed=7)((3,), dtype="int32").shape
    (3,)
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval = minval
        self.maxval = maxval
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return stateless_uniform(shape, self._source(), self.minval, self.maxval, dtype)


@final
class TruncatedNormal(Random):
    """Normally distributed values, none further from the mean than two `stddev`.

    Args:
        mean: their mean.
        stddev: the standard deviation before those further away are drawn again.
        seed: as for `RandomNormal`.

    >>> bool(jnp.all(jnp.abs(TruncatedNormal(seed=7)((100,))) <= 0.1))
    True
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        return stateless_truncated_normal(shape, self._source(), self.mean, self.stddev, dtype)


@final
class Orthogonal(Random):
    """A matrix with orthonormal columns, or rows if there are fewer of them, times a number.

    Shapes of more than two axes are those of a matrix whose columns are the last axis.

    Args:
        gain: the number.
        seed: as for `RandomNormal`.

    Raises:
        ShapeError: (from a call) when the shape has fewer than two axes.

    >>> q = Orthogonal(seed=7)((3, 3))
    >>> bool(jnp.allclose(q.T @ q, jnp.eye(3), atol=1e-6))
    True
    """

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def _make(self, shape: Sizes, dtype: Any) -> Array:
        if len(shape) < 2:
            raise ShapeError(f"Orthogonal makes matrices, like (3, 4), not the shape {shape}.")
        if not jnp.issubdtype(dtype, jnp.inexact):
            raise DtypeError(f"Orthogonal has no values of dtype {dtype}: ask for a float.")
        wide = jnp.promote_types(dtype, jnp.float32)  # LAPACK has no 16-bit numbers
        make = jax.nn.initializers.orthogonal(self.gain)
        return self._draw(lambda key: make(key, shape, wide), shape, dtype)
