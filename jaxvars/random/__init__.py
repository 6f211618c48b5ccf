"""Random numbers: generators with a state, one for all, and functions of a seed.

    rng = jv.random.Generator.from_seed(7)      # a stream of your own
    x = rng.normal((2, 3))

    jv.random.set_seed(7)                       # the one that is there for all
    x = jv.random.normal((2, 3))

    x = jv.random.stateless_normal((2, 3), seed=7)   # always the same

A generator's state is a Variable: compiled functions, loops, checkpoints and copies carry it on,
and the same seed gives the same numbers in all of them. A compiled function draws anew each time
it is run. The functions here that take no seed draw from the global generator.

Rules this file keeps:
- the global generator is made when it is first asked for, outside of whatever is being traced;
- `set_seed` changes it in place, so that compiled functions that use it see that.

>>> set_seed(7)
>>> first, second = normal(2), normal(2)
>>> set_seed(7)
>>> first.tolist() == normal(2).tolist() != second.tolist()
True
"""

from __future__ import annotations

import threading
from typing import Any, ClassVar, TypeAlias, final

import jax

from jaxvars.core.frames import LOCAL, within
from jaxvars.random.generator import Generator as Generator
from jaxvars.random.seeds import Shape
from jaxvars.random.stateless import stateless_bernoulli as stateless_bernoulli
from jaxvars.random.stateless import stateless_binomial as stateless_binomial
from jaxvars.random.stateless import stateless_categorical as stateless_categorical
from jaxvars.random.stateless import stateless_choice as stateless_choice
from jaxvars.random.stateless import stateless_exponential as stateless_exponential
from jaxvars.random.stateless import stateless_gamma as stateless_gamma
from jaxvars.random.stateless import stateless_normal as stateless_normal
from jaxvars.random.stateless import stateless_permutation as stateless_permutation
from jaxvars.random.stateless import stateless_poisson as stateless_poisson
from jaxvars.random.stateless import stateless_randint as stateless_randint
from jaxvars.random.stateless import stateless_shuffle as stateless_shuffle
from jaxvars.random.stateless import stateless_truncated_normal as stateless_truncated_normal
from jaxvars.random.stateless import stateless_uniform as stateless_uniform
from jaxvars.random.stateless import stateless_uniform_full_int as stateless_uniform_full_int
from jaxvars.tracing import context

Value: TypeAlias = Any


# ---------------------------------------------------------------- the global generator
@final
class _Global:
    """The generator that is there for all, once there is one."""

    generator: ClassVar[Generator | None] = None
    lock: ClassVar[Any] = threading.Lock()


def get_global_generator() -> Generator:
    """Return the generator that the functions here draw from.

    The first time it is made, with a seed from the operating system.

    >>> get_global_generator() is get_global_generator()
    True
    """
    with _Global.lock:
        if _Global.generator is None:
            # A compiled function may be the first to ask: the generator is not one that it makes.
            with context.at(context.EVAL), jax.default_device(None):
                _Global.generator = within(LOCAL.eager, Generator)
        return _Global.generator


def set_global_generator(generator: Generator) -> None:
    """Have the functions here draw from another generator.

    Args:
        generator: a `Generator`. Compiled functions that drew from the one before go on with it
            as long as somebody keeps it.

    Raises:
        TypeError: when it is none.

    >>> set_global_generator(Generator.from_seed(7))
    """
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{generator!r} is no Generator; for a seed use jv.random.set_seed({generator!r})."
        )
    _Global.generator = generator


def set_seed(seed: Any) -> None:
    """Begin the global generator's stream of a seed.

    Args:
        seed: an integer, two of them, or a key of `jax.random`.

    Raises:
        TypeError: when it is something else.

    >>> set_seed(7)
    >>> x = uniform(())
    >>> set_seed(7)
    >>> bool(x == uniform(()))
    True

    Differs from TensorFlow: it has an effect on the global generator, and only on that.
    """
    get_global_generator().reset_from_seed(seed)


# ---------------------------------------------------------------- numbers
def normal(shape: Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32") -> Value:
    """Draw normally distributed numbers from the global generator.

    Args:
        shape: of the result.
        mean: broadcasts to the shape.
        stddev: the standard deviation; broadcasts to the shape.
        dtype: floating or complex.

    >>> normal((2, 3), mean=5.0).shape
    (2, 3)
    """
    return get_global_generator().normal(shape, mean, stddev, dtype)


def truncated_normal(
    shape: Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = "float32"
) -> Value:
    """Draw normally distributed numbers, none further from the mean than two `stddev`.

    Args:
        shape: of the result.
        mean: broadcasts to the shape.
        stddev: the standard deviation before those further away are drawn again.
        dtype: floating.

    >>> bool(abs(truncated_normal((100,))).max() <= 2)
    True
    """
    return get_global_generator().truncated_normal(shape, mean, stddev, dtype)


def uniform(shape: Shape, minval: Any = 0, maxval: Any = None, dtype: Any = "float32") -> Value:
    """Draw uniformly distributed numbers from the global generator: `minval <= x < maxval`.

    Args:
        shape: of the result.
        minval: broadcasts to the shape.
        maxval: the same; 1 for floats when None.
        dtype: floating or integer.

    >>> int(uniform((), 3, 4, dtype="int32"))
    3
    """
    return get_global_generator().uniform(shape, minval, maxval, dtype)


def uniform_full_int(shape: Shape, dtype: Any = "uint32") -> Value:
    """Draw integers of all that the dtype can hold.

    >>> uniform_full_int((2,), dtype="uint8").dtype
    dtype('uint8')
    """
    return get_global_generator().uniform_full_int(shape, dtype)


def randint(shape: Shape, minval: Any, maxval: Any, dtype: Any = "int32") -> Value:
    """Draw integers from the global generator: `minval <= x < maxval`.

    >>> int(randint((), 3, 4))
    3
    """
    return get_global_generator().randint(shape, minval, maxval, dtype)


def bernoulli(shape: Shape, p: Any = 0.5, dtype: Any = "bool") -> Value:
    """Draw True with probability `p`, else False.

    >>> bernoulli((3,), p=1.0).tolist()
    [True, True, True]
    """
    return get_global_generator().bernoulli(shape, p, dtype)


def binomial(shape: Shape, counts: Any, probs: Any, dtype: Any = "int32") -> Value:
    """Draw how many of `counts` trials succeed, each with probability `probs`.

    >>> int(binomial((), counts=10, probs=1.0))
    10
    """
    return get_global_generator().binomial(shape, counts, probs, dtype)


def poisson(shape: Shape, lam: Any, dtype: Any = "int32") -> Value:
    """Draw Poisson distributed counts of mean `lam`.

    >>> int(poisson((), lam=0.0))
    0

    Differs from TensorFlow: the shape is that of the whole result, as everywhere here.
    """
    return get_global_generator().poisson(shape, lam, dtype)


def exponential(shape: Shape, rate: Any = 1.0, dtype: Any = "float32") -> Value:
    """Draw exponentially distributed numbers of mean `1 / rate`.

    >>> bool(exponential(()) >= 0)
    True
    """
    return get_global_generator().exponential(shape, rate, dtype)


def gamma(shape: Shape, alpha: Any, beta: Any = 1.0, dtype: Any = "float32") -> Value:
    """Draw gamma distributed numbers of mean `alpha / beta`.

    >>> bool(gamma((), alpha=2.0) > 0)
    True

    Differs from TensorFlow: the shape is that of the whole result, as everywhere here.
    """
    return get_global_generator().gamma(shape, alpha, beta, dtype)


# ---------------------------------------------------------------- choices
def categorical(logits: Any, num_samples: int, dtype: Any = "int32") -> Value:
    """Draw classes with probabilities `softmax(logits)`.

    Args:
        logits: of shape [..., classes].
        num_samples: how many to draw for each row.
        dtype: of the result.

    Returns:
        Numbers of classes, of shape [..., num_samples].

    >>> categorical([[-1e9, 0.0]], 3).tolist()
    [[1, 1, 1]]
    """
    return get_global_generator().categorical(logits, num_samples, dtype)


def permutation(x: Any, axis: int = 0) -> Value:
    """Return `x`, or the integers below it, in random order.

    >>> sorted(permutation(3).tolist())
    [0, 1, 2]
    """
    return get_global_generator().permutation(x, axis)


def shuffle(value: Any, axis: int = 0) -> Value:
    """Return the slices of an array along an axis in random order.

    >>> sorted(shuffle([3, 4, 5]).tolist())
    [3, 4, 5]
    """
    return get_global_generator().shuffle(value, axis)


def choice(a: Any, shape: Shape = (), *, replace: bool = True, p: Any = None) -> Value:
    """Draw elements of an array, or integers below a number.

    Args:
        a: an array, of which slices along the first axis are drawn; or an integer.
        shape: of the result, less the shape of a slice.
        replace: whether one may be drawn twice.
        p: probabilities, as many as there are elements; all the same when None.

    >>> sorted(choice([3, 4, 5], 3, replace=False).tolist())
    [3, 4, 5]
    """
    return get_global_generator().choice(a, shape, replace=replace, p=p)
