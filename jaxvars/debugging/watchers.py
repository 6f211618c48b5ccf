"""What watches every operation of a thread: the check of numerics, and the log of placement.

A watcher stands on the thread's trace (`recorder.recording`) until it is told to go; it sees
operations outside and around tapes. A function that is traced meanwhile gets the checks of
numerics into its program, its branches and loops included, each with the user's line.

Rules this file keeps:
- watchers come and go outside of tapes, compiled functions and transforms only: a trace that is
  in use can't be taken away; while one stands, compiled functions take the way that it can see;
- NaN is wrong wherever it is; an infinity is wrong where it arises, from numbers that are finite;
- a line of the log is written when an operation has been dispatched; a compiled function is one.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.cells import Cell
from jaxvars.core.checks import FAILURE, require
from jaxvars.core.frame import PLACED, FastPathBlocker
from jaxvars.core.frames import LOCAL
from jaxvars.devices.device import describe_devices
from jaxvars.tracing import context, recorder
from jaxvars.tracing.around import AROUND
from jaxvars.typing import Array


@final
class _Local(threading.local):
    """What stands in each thread, lowest first."""

    def __init__(self) -> None:
        self.placed: list[tuple[StandingWatcher, recorder.recording]] = []
        self.detour = FastPathBlocker()


_LOCAL = _Local()


class StandingWatcher(recorder.Watcher):
    """A watcher that can stand; the one of each class.

    Args:
        what: what it is, at the beginning of a sentence.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def stands(self) -> bool:
        """Return whether this thread is watched."""
        return any(placed is self for placed, _ in _LOCAL.placed)

    def stand(self) -> None:
        """See what this thread runs from now on."""
        if not self.stands():
            _refuse_elsewhere(f"{self._what} is enabled")
            self._place()

    def leave(self) -> None:
        """See no more: take what stands away, and put the others back."""
        if not self.stands():
            return
        _refuse_elsewhere(f"{self._what} is disabled")
        others: list[StandingWatcher] = []
        while _LOCAL.placed:
            placed, recording = _LOCAL.placed.pop()
            recording.__exit__(None, None, None)
            others.append(placed)
        _LOCAL.detour.end()
        for other in reversed(others):
            if other is not self:
                other._place()

    def _place(self) -> None:
        recording = recorder.recording(self)
        _LOCAL.placed.append((self, recording))
        _LOCAL.detour.begin()
        recording.__enter__()

    def run(self, equation: recorder.Equation, staged: bool) -> list[Array]:
        """Run an operation, and look at it."""
        outputs = list(equation.function(*equation.inputs))
        self.look(equation.params.get("name") or equation.name, equation, outputs)
        return outputs

    def look(self, name: str, equation: recorder.Equation, outputs: list[Array]) -> None:
        """Look at what an operation gave."""
        raise NotImplementedError


def _refuse_elsewhere(what: str) -> None:
    trace = context.current()
    depth = 0
    while isinstance(trace, recorder.Recorder):
        trace, depth = trace.parent, depth + 1
    is_alone = depth == len(_LOCAL.placed)
    if LOCAL.frame is not LOCAL.eager or trace is not context.EVAL or not is_alone:
        raise RuntimeError(
            f"{what} inside a tape, a compiled function or a transform: do it outside, around all "
            "of it."
        )


# ---------------------------------------------------------------- the check of numerics
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
    _NUMERICS.stand()


def disable_check_numerics() -> None:
    """Check operations no longer; see `enable_check_numerics`.

    Raises:
        RuntimeError: inside a tape, a compiled function or a transform.

    >>> disable_check_numerics()
    """
    _NUMERICS.leave()


@final
class _Numerics(StandingWatcher):
    __slots__ = ()

    def look(self, name: str, equation: recorder.Equation, outputs: list[Array]) -> None:
        """Check that numbers are finite."""
        if equation.name not in _MOVES and not any(map(_is_failed_check, outputs)):
            _check(name, filter(_is_float, equation.inputs), filter(_is_float, outputs))


_NUMERICS = _Numerics("The check of numerics")
_MOVES = frozenset({"stop_gradient", "copy", "read_variable"})


def _check(name: str, inputs: Iterable[Array], outputs: Iterable[Array]) -> None:
    """Check what an operation gave; known values with NumPy first, which costs the least."""
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


def _is_float(x: Array) -> bool:
    return jnp.issubdtype(getattr(x, "dtype", None) or jnp.result_type(x), jnp.inexact)


def _enter_around() -> AbstractContextManager[None]:
    """Return what is entered around code that is traced: more of the same."""
    return recorder.recording(_NUMERICS) if _NUMERICS.stands() else nullcontext()


AROUND.append(_enter_around)


# ---------------------------------------------------------------- the log of placement
def set_log_device_placement(enabled: bool) -> None:
    """Choose whether this thread writes where each operation runs, to stderr.

    A line is written for each operation, also those of plain `jnp` code, and when a variable gets
    its first value or an eager assignment. It has the name that XLA's program has: a whole
    compiled function is one operation. Operations in code that is only traced are not run, and
    give no line.

    Args:
        enabled: write lines (True) or no more (False).

    Raises:
        RuntimeError: inside a tape, a compiled function or a transform.

    >>> import jax.numpy as jnp
    >>> set_log_device_placement(True)
    >>> x = jnp.matmul(jnp.ones((2, 2)), jnp.ones((2, 2)))  # Executing op matmul in device ...
    >>> set_log_device_placement(False)

    Differs from TensorFlow: it holds for the thread, and from the moment that it is set.
    """
    if not enabled:
        _LOG.leave()
        return
    _LOG.stand()
    if _log_variable not in PLACED:
        PLACED.append(_log_variable)


def get_log_device_placement() -> bool:
    """Return whether this thread writes where each operation runs.

    >>> get_log_device_placement()
    False
    """
    return _LOG.stands()


@final
class _Log(StandingWatcher):
    __slots__ = ()

    def look(self, name: str, equation: recorder.Equation, outputs: list[Array]) -> None:
        """Write where an operation ran."""
        log(f"Executing op {name}", [*outputs, *equation.inputs])


_LOG = _Log("The log of placement")


def _log_variable(cell: Cell, value: Array, verb: str) -> None:
    """Write that a variable was created or assigned."""
    if _LOG.stands():
        log(f"Variable {cell.name!r} {verb}", [value])


def log(what: str, values: Sequence[Array]) -> None:
    """Write the device of the first value that has one; nothing where all are traced."""
    known = (x for x in values if isinstance(x, jax.Array) and not context.is_tracer(x))
    if (value := next(known, None)) is not None:
        sys.stderr.write(f"{what} in {describe_devices(value)}\n")
