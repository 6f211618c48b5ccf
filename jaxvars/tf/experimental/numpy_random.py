"""`tf.experimental.numpy.random`: NumPy's names for the streams of `tf.random`.

Differs from TensorFlow: the values are those of `jax.random`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf import random as _random
from jaxvars.tf.tensors.dtypes import as_dtype, int64
from jaxvars.tf.tensors.tensor import Tensor


def seed(s: int) -> None:
    """Begin the streams of values again.

    >>> seed(1)
    """
    _random.set_seed(s)


def randn(*args: int) -> Tensor:
    """Draw from the normal distribution: a float64 tensor of the sizes that are given.

    >>> randn(2, 3).shape
    TensorShape([2, 3])
    """
    return _random.normal(args, dtype=narrowed(np.float64))


def standard_normal(size: Any = None) -> Tensor:
    """Draw from the normal distribution, a tensor of a shape."""
    return _random.normal(_shape(size), dtype=narrowed(np.float64))


def uniform(low: float = 0.0, high: float = 1.0, size: Any = None) -> Tensor:
    """Draw uniformly from [low, high)."""
    return _random.uniform(_shape(size), float(low), float(high), narrowed(np.float64))


def random(size: Any = None) -> Tensor:
    """Draw uniformly from [0, 1)."""
    return uniform(size=size)


def rand(*size: int) -> Tensor:
    """Draw uniformly from [0, 1): a tensor of the sizes that are given."""
    return uniform(size=size)


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = int64) -> Tensor:
    """Draw integers from [low, high), or from [0, low).

    >>> randint(1, 2, (2,)).numpy().tolist()
    [1, 1]
    """
    first, last = (0, low) if high is None else (low, high)
    return _random.uniform(_shape(size), first, last, as_dtype(dtype))


def poisson(lam: float = 1.0, size: Any = None) -> Tensor:
    """Draw counts from the Poisson distribution, as int64."""
    return _random.poisson(_shape(size), float(lam), dtype=int64)


def _shape(size: Any) -> Any:
    return () if size is None else (size,) if isinstance(size, int) else size
