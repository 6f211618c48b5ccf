"""The check of every operation for NaN and infinities: `enable_check_numerics`.

A listener stands on this thread's trace (`recorder.recording`) and looks at what each operation
gives. Eagerly it raises at once. A function that is traced meanwhile gets the checks into its
program, its branches and loops included, each with the user's line.

Rules this file keeps:
- NaN is wrong wherever it is; an infinity is wrong where it arises, from numbers that are finite;
- what has been traced before is checked by what it returns.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.checks import FAILURE, require
from jaxvars.debugging.listeners import leave, stand, stands
from jaxvars.tracing import context, recorder
from jaxvars.tracing.around import AROUND
from jaxvars.typing import Array


def enable_check_numerics() -> None:
    """Check what every operation of this thread gives, until `disable_check_numerics`.

    NaN raises wherever it is, an infinity where it arises from finite numbers. The message names
    the operation, the line, and the first wrong element.

    In functions that are compiled from now on the checks are part of the program, at any depth of
    jaxvars' branches and loops (JAX's own are checked by what they return); such a program keeps
    them. For one that was compiled before, what it returns is checked. All of it is slow: it is
    for finding a mistake.

    Raises:
        CheckError: (from an operation, or from the call of a compiled function) when a number is
            wrong; no variable is changed by the call then.
        RuntimeError: inside a tape, a compiled function or a transform.

    >>> enable_check_numerics()
    >>> jnp.log(jnp.float32(0.0))
    Traceback (most recent call last):
    jaxvars.errors.CheckError: log gave a number that is not finite: value = -inf (...
    >>> disable_check_numerics()

    Differs from TensorFlow: an infinity that is only passed on is not a mistake, so that masks of
    -inf may be added.
    """
    stand(_NUMERICS, "The check of numerics")


def disable_check_numerics() -> None:
    """Check operations no longer; see `enable_check_numerics`.

    Raises:
        RuntimeError: inside a tape, a compiled function or a transform.
    """
    leave(_NUMERICS, "The check of numerics")


@final
class _Numerics(recorder.Watcher):
    """Looks at each operation."""

    __slots__ = ()

    def run(self, equation: recorder.Equation, staged: bool) -> list[Array]:
        """Run an operation, and check what it gives."""
        outputs = list(equation.function(*equation.inputs))
        if equation.name not in _MOVES and not any(map(_is_failed_check, outputs)):
            name = equation.params.get("name") or equation.name
            _check(name, filter(_is_float, equation.inputs), filter(_is_float, outputs))
        return outputs


_NUMERICS = _Numerics()


def _check(name: str, inputs: Iterable[Array], outputs: Iterable[Array]) -> None:
    """Check what an operation gave.

    Values that are known are looked at with NumPy first, which costs the least.
    """
    values = list(map(jax.lax.stop_gradient, outputs))
    if not any(map(context.is_tracer, values)) and all(np.isfinite(x).all() for x in values):
        return
    given = [jnp.isfinite(x).all() for x in inputs]
    was_finite = jnp.stack(given).all() if given else jnp.asarray(True)
    for value in (value for value in values if value.size):
        good = ~jnp.isnan(value) & (jnp.isfinite(value) | ~was_finite)
        require(good, f"{name} gave a number that is not finite", {"value": value})


def _is_failed_check(x: Array) -> bool:
    """Return whether a compiled function says, with this, that a check in it has failed."""
    like = FAILURE.aval
    alike = getattr(x, "shape", None) == like.shape and x.dtype == like.dtype
    return alike and not context.is_tracer(x) and bool(x[0])


_MOVES = frozenset({"stop_gradient", "copy", "read_variable"})


def _is_float(x: Array) -> bool:
    return jnp.issubdtype(getattr(x, "dtype", None) or jnp.result_type(x), jnp.inexact)


def _around() -> AbstractContextManager[None]:
    """Return what is entered around code that is traced: more of the same."""
    return recorder.recording(_NUMERICS) if stands(_NUMERICS) else nullcontext()


AROUND.append(_around)
