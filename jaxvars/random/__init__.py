"""Random values: generators with a state, and functions that draw from one for all.

    rng = jv.random.Generator.from_seed(7)      # a separate stream
    x = rng.normal((2, 3))

    jv.random.set_seed(7)                       # the one that is there for all
    x = jv.random.normal((2, 3))

A generator's state is a Variable: compiled functions, loops, checkpoints and copies carry it on,
and the same seed gives the same values in all of them. A compiled function draws again each time
it is run. The functions here draw from the global generator; those of `jax.random` take a key, and
are always the same for it: `rng.next_key()` is one.

>>> set_seed(7)
>>> first, second = normal(2), normal(2)
>>> set_seed(7)
>>> first.tolist() == normal(2).tolist() != second.tolist()
True
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from jaxvars.display.lookup import namespace
from jaxvars.random.generator import Generator, get_global_generator, set_global_generator, set_seed
from jaxvars.typing import Array

P = ParamSpec("P")

__all__ = [
    "Generator", "bernoulli", "binomial", "categorical", "choice", "exponential", "gamma",
    "get_global_generator", "normal", "permutation", "poisson", "randint", "set_global_generator",
    "set_seed", "shuffle", "truncated_normal", "uniform", "uniform_full_int",
]  # fmt: skip


def _make_global(
    method: Callable[Concatenate[Generator, P], Array], example: str, value: str
) -> Callable[P, Array]:
    """Return a method of the global generator as a function."""

    @functools.wraps(method)
    def draw(*args: P.args, **kwargs: P.kwargs) -> Array:
        return method(get_global_generator(), *args, **kwargs)

    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())[1:]
    vars(draw)["__signature__"] = signature.replace(parameters=parameters)
    draw.__module__, draw.__qualname__ = __name__, method.__name__
    draw.__doc__ = f"{inspect.getdoc(method)}\n\n>>> {example}\n{value}\n"
    return draw


normal = _make_global(Generator.normal, "normal((2, 3), mean=5.0).shape", "(2, 3)")
truncated_normal = _make_global(
    Generator.truncated_normal, "bool(abs(truncated_normal((100,))).max() <= 2)", "True"
)
uniform = _make_global(Generator.uniform, 'int(uniform((), 3, 4, dtype="int32"))', "3")
uniform_full_int = _make_global(
    Generator.uniform_full_int, 'uniform_full_int((2,), dtype="uint8").dtype', "dtype('uint8')"
)
randint = _make_global(Generator.randint, "int(randint((), 3, 4))", "3")
bernoulli = _make_global(
    Generator.bernoulli, "bernoulli((3,), p=1.0).tolist()", "[True, True, True]"
)
binomial = _make_global(Generator.binomial, "int(binomial((), counts=10, probs=1.0))", "10")
poisson = _make_global(Generator.poisson, "int(poisson((), lam=0.0))", "0")
exponential = _make_global(Generator.exponential, "bool(exponential(()) >= 0)", "True")
gamma = _make_global(Generator.gamma, "bool(gamma((), alpha=2.0) > 0)", "True")
categorical = _make_global(
    Generator.categorical, "categorical([[-1e9, 0.0]], 3).tolist()", "[[1, 1, 1]]"
)
permutation = _make_global(Generator.permutation, "sorted(permutation(3).tolist())", "[0, 1, 2]")
shuffle = _make_global(Generator.shuffle, "sorted(shuffle([3, 4, 5]).tolist())", "[3, 4, 5]")
choice = _make_global(
    Generator.choice, "sorted(choice([3, 4, 5], 3, replace=False).tolist())", "[3, 4, 5]"
)


if not TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__, __dir__ = namespace(__name__, __all__)
