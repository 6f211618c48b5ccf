"""Random values: generators with a state, one for all, and functions of a seed.

    rng = jv.random.Generator.from_seed(7)      # a separate stream
    x = rng.normal((2, 3))

    jv.random.set_seed(7)                       # the one that is there for all
    x = jv.random.normal((2, 3))

    x = jv.random.stateless_normal((2, 3), seed=7)   # always the same

A generator's state is a Variable: compiled functions, loops, checkpoints and copies carry it on,
and the same seed gives the same values in all of them. A compiled function draws again each time
it is run. The functions here that take no seed draw from the global generator.

>>> set_seed(7)
>>> first, second = normal(2), normal(2)
>>> set_seed(7)
>>> first.tolist() == normal(2).tolist() != second.tolist()
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

from jaxvars.display.docstrings import complete, described
from jaxvars.random.choices import (
    stateless_categorical,
    stateless_choice,
    stateless_permutation,
    stateless_shuffle,
)
from jaxvars.random.generator import Generator
from jaxvars.random.seeds import Shape
from jaxvars.random.shared import get_global_generator, set_global_generator, set_seed
from jaxvars.random.stateless import (
    stateless_bernoulli,
    stateless_binomial,
    stateless_exponential,
    stateless_gamma,
    stateless_normal,
    stateless_poisson,
    stateless_randint,
    stateless_truncated_normal,
    stateless_uniform,
    stateless_uniform_full_int,
)
from jaxvars.typing import Array, DTypeLike

P = ParamSpec("P")

__all__ = [
    "Generator", "bernoulli", "binomial", "categorical", "choice", "exponential", "gamma",
    "get_global_generator", "normal", "permutation", "poisson", "randint",
    "set_global_generator", "set_seed", "shuffle", "stateless_bernoulli", "stateless_binomial",
    "stateless_categorical", "stateless_choice", "stateless_exponential", "stateless_gamma",
    "stateless_normal", "stateless_permutation", "stateless_poisson", "stateless_randint",
    "stateless_shuffle", "stateless_truncated_normal", "stateless_uniform",
    "stateless_uniform_full_int", "truncated_normal", "uniform", "uniform_full_int",
]  # fmt: skip


# ---------------------------------------------------------------- values
def _draws_like(other: Callable[..., Array]) -> Callable[[Callable[P, Array]], Callable[P, Array]]:
    """Return a decorator that completes a docstring from that of the function of a seed."""

    def decorate(function: Callable[P, Array]) -> Callable[P, Array]:
        complete(function, described(other))
        return function

    return decorate


@_draws_like(stateless_normal)
def normal(shape: Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = "float32") -> Array:
    """Draw normally distributed values from the global generator.

    >>> normal((2, 3), mean=5.0).shape
    (2, 3)
    """
    return get_global_generator().normal(shape, mean, stddev, dtype)


@_draws_like(stateless_truncated_normal)
def truncated_normal(
    shape: Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = "float32"
) -> Array:
    """Draw normally distributed values, none further from the mean than two `stddev`.

    >>> bool(abs(truncated_normal((100,))).max() <= 2)
    True
    """
    return get_global_generator().truncated_normal(shape, mean, stddev, dtype)


@_draws_like(stateless_uniform)
def uniform(
    shape: Shape, minval: Any = 0, maxval: Any = None, dtype: DTypeLike = "float32"
) -> Array:
    """Draw uniformly distributed values from the global generator: `minval <= x < maxval`.

    >>> int(uniform((), 3, 4, dtype="int32"))
    3
    """
    return get_global_generator().uniform(shape, minval, maxval, dtype)


@_draws_like(stateless_uniform_full_int)
def uniform_full_int(shape: Shape, dtype: DTypeLike = "uint32") -> Array:
    """Draw integers of all that the dtype can hold.

    >>> uniform_full_int((2,), dtype="uint8").dtype
    dtype('uint8')
    """
    return get_global_generator().uniform_full_int(shape, dtype)


@_draws_like(stateless_randint)
def randint(shape: Shape, minval: Any, maxval: Any, dtype: DTypeLike = "int32") -> Array:
    """Draw integers from the global generator: `minval <= x < maxval`.

    >>> int(randint((), 3, 4))
    3
    """
    return get_global_generator().randint(shape, minval, maxval, dtype)


@_draws_like(stateless_bernoulli)
def bernoulli(shape: Shape, p: Any = 0.5, dtype: DTypeLike = "bool") -> Array:
    """Draw True with probability `p`, else False.

    >>> bernoulli((3,), p=1.0).tolist()
    [True, True, True]
    """
    return get_global_generator().bernoulli(shape, p, dtype)


@_draws_like(stateless_binomial)
def binomial(shape: Shape, counts: Any, probs: Any, dtype: DTypeLike = "int32") -> Array:
    """Draw how many of `counts` trials succeed, each with probability `probs`.

    >>> int(binomial((), counts=10, probs=1.0))
    10
    """
    return get_global_generator().binomial(shape, counts, probs, dtype)


@_draws_like(stateless_poisson)
def poisson(shape: Shape, lam: Any, dtype: DTypeLike = "int32") -> Array:
    """Draw Poisson distributed counts of mean `lam`.

    >>> int(poisson((), lam=0.0))
    0

    Differs from TensorFlow: the shape is that of the whole result, as everywhere here.
    """
    return get_global_generator().poisson(shape, lam, dtype)


@_draws_like(stateless_exponential)
def exponential(shape: Shape, rate: Any = 1.0, dtype: DTypeLike = "float32") -> Array:
    """Draw exponentially distributed values of mean `1 / rate`.

    >>> bool(exponential(()) >= 0)
    True
    """
    return get_global_generator().exponential(shape, rate, dtype)


@_draws_like(stateless_gamma)
def gamma(shape: Shape, alpha: Any, beta: Any = 1.0, dtype: DTypeLike = "float32") -> Array:
    """Draw gamma distributed values of mean `alpha / beta`.

    >>> bool(gamma((), alpha=2.0) > 0)
    True

    Differs from TensorFlow: the shape is that of the whole result, as everywhere here.
    """
    return get_global_generator().gamma(shape, alpha, beta, dtype)


# ---------------------------------------------------------------- choices
@_draws_like(stateless_categorical)
def categorical(logits: Any, num_samples: int, dtype: DTypeLike = "int32") -> Array:
    """Draw classes with probabilities `softmax(logits)`.

    Returns:
        Indices of classes, of shape [..., num_samples].

    >>> categorical([[-1e9, 0.0]], 3).tolist()
    [[1, 1, 1]]
    """
    return get_global_generator().categorical(logits, num_samples, dtype)


@_draws_like(stateless_permutation)
def permutation(x: Any, axis: int = 0) -> Array:
    """Return `x`, or the integers below it, in random order.

    >>> sorted(permutation(3).tolist())
    [0, 1, 2]
    """
    return get_global_generator().permutation(x, axis)


@_draws_like(stateless_shuffle)
def shuffle(value: Any, axis: int = 0) -> Array:
    """Return the slices of an array along an axis in random order.

    >>> sorted(shuffle([3, 4, 5]).tolist())
    [3, 4, 5]
    """
    return get_global_generator().shuffle(value, axis)


@_draws_like(stateless_choice)
def choice(a: Any, shape: Shape = (), *, replace: bool = True, p: Any = None) -> Array:
    """Draw elements of an array, or integers below a number.

    >>> sorted(choice([3, 4, 5], 3, replace=False).tolist())
    [3, 4, 5]
    """
    return get_global_generator().choice(a, shape, replace=replace, p=p)


def __dir__() -> list[str]:
    return __all__
