"""Small programs that run eagerly, compiled in half the time or less.

XLA compiles for tens to hundreds of milliseconds before anything runs: it unrolls and vectorizes
for the widest registers, which programs of small arrays, that take microseconds, do not give back.
On a CPU they are compiled without (`OPTIONS`). Measured with JAX 0.10.2 on two cores with AVX-512:

    compiled in ms, as usual and quickly                run in us
    Adam of a transformer block        250    131        92     90
    gradients of convolutions          747    287       802    761
    `jax.random.normal`, (64, 10)    1,129    107       125    110
    the same, (784, 128)               258    107       809  1,121

Larger arrays would lose by it: a transpose of a million numbers takes six times as long. Random
values, which are drawn once more often than not, gain up to a million (`DRAWN`).

Rules this file keeps:
- which of the two ways a program is compiled depends on shapes alone: a process that was started
  again from a checkpoint computes the same bits as the first one;
- JAX takes compiler options at top level only, so under any trace it is the usual way;
- options of the user's in `XLA_FLAGS` or JAX's settings come before these, if they are set before
  the function is first called.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable
from typing import Any, final

import jax
import numpy as np

from jaxvars.tracing.context import EVAL, place

OPTIONS: dict[str, Any] = {
    "xla_backend_optimization_level": 2,
    "xla_cpu_use_fusion_emitters": False,
}
SMALL = 2**16  # numbers in an array
DRAWN = 2**20


def are_small(shapes: Iterable[tuple[int, ...]]) -> bool:
    """Return whether each array of some shapes is small.

    >>> are_small([(64, 784), (784, 64)]), are_small([(1024, 1024)])
    (True, False)
    """
    return all(math.prod(shape) <= SMALL for shape in shapes)


def draws_few(*args: Any) -> bool:
    """Return whether random values are few by the last arguments, their shape and dtype."""
    return math.prod(args[-2]) <= DRAWN


@functools.cache
def _is_known_to_xla() -> bool:
    """Return whether the XLA that is installed takes the options, which no release promises."""
    try:
        jax.jit(lambda: 0, compiler_options=OPTIONS).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _is_wanted() -> bool:
    """Return whether this is a CPU, and the user has not set how programs are optimized."""
    is_set = "optimization_level" in os.environ.get("XLA_FLAGS", "")
    is_set = is_set or jax.config.values["jax_disable_most_optimizations"]
    return jax.default_backend() == "cpu" and not is_set and _is_known_to_xla()


@final
class QuickJit:
    """A function that is compiled quickly where it runs eagerly on small arrays.

    Args:
        function: what is compiled.
        usual: what runs elsewhere: the function, or a jitted one that is made of it.
        fits: takes the function's arguments, returns whether they are small. None for what runs as
            fast on large arrays, as all do that work element by element.
        **settings: for `jax.jit`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        usual: Callable[..., Any],
        fits: Callable[..., bool] | None = None,
        **settings: Any,
    ) -> None:
        functools.update_wrapper(self, function)
        self._usual = usual
        self._fits = fits
        self._make = functools.partial(jax.jit, function, compiler_options=OPTIONS, **settings)

    @functools.cached_property
    def quick(self) -> Callable[..., Any]:
        """What runs eagerly on small arrays."""
        return self._make() if _is_wanted() else self._usual

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if place(None) is EVAL and (self._fits is None or self._fits(*args, **kwargs)):
            return self.quick(*args, **kwargs)
        return self._usual(*args, **kwargs)


def quick_jit(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return a function jitted, and compiled quickly where it runs eagerly on small arrays.

    Args:
        function: takes its arrays by position.
        **settings: for `jax.jit`.

    >>> double = quick_jit(lambda x: 2 * x)
    >>> double(jax.numpy.ones(2)).tolist()
    [2.0, 2.0]
    """
    return QuickJit(function, jax.jit(function, **settings), _all_small, **settings)


def _all_small(*args: Any, **_: Any) -> bool:
    for x in args:
        aval = getattr(x, "aval", None)
        if aval is not None:
            if math.prod(aval.shape) > SMALL:
                return False
        elif x.__class__ is np.ndarray and x.size > SMALL:
            return False
    return True
