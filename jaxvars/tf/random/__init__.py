"""`tf.random`: random values, with a global seed, of a seed, and of generators.

The same seeds give TensorFlow's values: uniform and normal ones, integers, classes. Normal ones
are the same to rounding.

Differs from TensorFlow: what is drawn by trial (`gamma`, `poisson`, `binomial`) and what is
shuffled is drawn by `jax.random`: the same for the same seeds, but other values.

>>> set_seed(5)
>>> print(normal([3]).numpy().round(5))
[-0.18031 -0.95029 -0.03964]
"""

from __future__ import annotations

import types
from typing import Any

from jaxvars.tf.listing import namespace
from jaxvars.tf.random import draws as _draws
from jaxvars.tf.random.candidates import (
    log_uniform_candidate_sampler as log_uniform_candidate_sampler,
)
from jaxvars.tf.random.candidates import uniform_candidate_sampler as uniform_candidate_sampler
from jaxvars.tf.random.generator import Generator as Generator
from jaxvars.tf.random.generator import create_rng_state as create_rng_state
from jaxvars.tf.random.generator import get_global_generator as get_global_generator
from jaxvars.tf.random.generator import set_global_generator as set_global_generator
from jaxvars.tf.random.stateless import Algorithm as Algorithm
from jaxvars.tf.random.stateless import check_type as _check_type
from jaxvars.tf.random.stateless import fold_in as fold_in
from jaxvars.tf.random.stateless import split as split
from jaxvars.tf.random.stateless import stateless_binomial as stateless_binomial
from jaxvars.tf.random.stateless import stateless_categorical as stateless_categorical
from jaxvars.tf.random.stateless import stateless_gamma as stateless_gamma
from jaxvars.tf.random.stateless import stateless_normal as stateless_normal
from jaxvars.tf.random.stateless import stateless_poisson as stateless_poisson
from jaxvars.tf.random.stateless import stateless_shuffle as _stateless_shuffle
from jaxvars.tf.random.stateless import stateless_truncated_normal as stateless_truncated_normal
from jaxvars.tf.random.stateless import stateless_uniform as stateless_uniform
from jaxvars.tf.random.streams import set_seed as set_seed
from jaxvars.tf.random.streams import source as _source
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor

experimental = types.SimpleNamespace(
    Algorithm=Algorithm, Generator=Generator, create_rng_state=create_rng_state,
    get_global_generator=get_global_generator, set_global_generator=set_global_generator,
    stateless_fold_in=fold_in, stateless_shuffle=_stateless_shuffle, stateless_split=split,
)  # fmt: skip


def normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32", seed: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Draw normally distributed values.

    Args:
        shape: of the noise.
        mean: broadcasts with it.
        stddev: the standard deviation; broadcasts with it.
        dtype: floating.
        seed: of this operation.
        name: of no effect.
    """
    key = _source(f"RandomStandardNormal {as_dtype(dtype).name}", seed)
    return _draws.normal(key, shape, mean, stddev, dtype)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32", seed: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Draw normally distributed values within two deviations of the mean."""
    key = _source(f"TruncatedNormal {as_dtype(dtype).name}", seed)
    return _draws.truncated_normal(key, shape, mean, stddev, dtype)


def uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = "float32", seed: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Draw uniformly distributed values: `minval <= x < maxval`.

    Raises:
        ValueError: for integers without `maxval`, or a type that is not there.
        InvalidArgumentError: when no integer is between the bounds.

    >>> int(uniform([], 3, 4, dtype="int32"))
    3
    """
    kind = as_dtype(dtype)
    _check_type(kind, _draws.PLAIN)
    if kind.is_integer and maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {kind!r}")
    key = _source(f"RandomUniform {kind.name}", seed)
    return _draws.uniform(key, shape, 0 if minval is None else minval, maxval, kind)


def poisson(
    shape: Any, lam: Any, dtype: Any = "float32", seed: Any = None, name: str | None = None
) -> Tensor:
    """Draw Poisson distributed counts: a shape of them for each element of `lam`.

    Differs from TensorFlow: a seed gives other values.

    >>> poisson([3], [1.0, 2.0]).shape
    TensorShape([3, 2])
    """
    mean = to_array(lam)
    size = (*_draws.sizes(shape), *mean.shape)
    return _draws.poisson(_source(f"poisson {as_dtype(dtype).name}", seed), size, mean, dtype)


def gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = "float32", seed: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Draw gamma distributed values: a shape of them for each of the parameters.

    Differs from TensorFlow: a seed gives other values.

    >>> gamma([3], [1.0, 2.0], beta=[[1.0], [2.0]]).shape
    TensorShape([3, 2, 2])
    """
    kind = as_dtype(dtype)
    first, second = to_array(alpha, kind), to_array(1.0 if beta is None else beta, kind)
    size = (*_draws.sizes(shape), *(first + second).shape)
    return _draws.gamma(_source(f"gamma {kind.name}", seed), size, first, second, kind)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: Any = None, name: str | None = None
) -> Tensor:
    """Draw classes for each row of logits.

    >>> categorical([[0.0, -100.0]], 3, dtype="int32").numpy().tolist()
    [[0, 0, 0]]
    """
    return _draws.categorical(_source("categorical", seed), logits, num_samples, dtype)


def shuffle(value: Any, seed: Any = None, name: str | None = None) -> Tensor:
    """Return the slices of a tensor along the first axis in random order.

    Differs from TensorFlow: a seed gives other values.

    >>> sorted(shuffle([1, 2, 3]).numpy().tolist())
    [1, 2, 3]
    """
    return _draws.shuffle(_source("shuffle", seed), value)


__getattr__, __dir__ = namespace(__name__)
