"""Checks of values at run time: `require`, and the signal by which a compiled step learns of it.

Eagerly a check raises. In a program it cannot: there a failure is a value, kept in a separate
cell, `FAILURE`, that is threaded through branches and loops like any variable's. A compiled step
(`compiler/executable.py`) looks at it when the program has run; if it is set, the program has given
each variable its old value back, and the step raises.

Rules this file keeps:
- the first failure wins;
- a check that stands where nothing can be threaded out (a plain `jax.jit`, the body of a
  `lax.scan`, a function made pure) calls back into Python and raises there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.cells import without_signals
from jaxvars.core.frame import Signal
from jaxvars.core.frames import LOCAL, CaptureFrame
from jaxvars.errors import CheckError, called, user_line
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context, jaxprs
from jaxvars.typing import Array, Value


@final
@dataclass(frozen=True)
class _Site:
    """A check in a program: what it says when it fails.

    Attributes:
        message: what is wrong.
        line: the user's.
        shape: of what is checked; () where sizes are not known, and so which element it was.
        names: of the values that are shown.
        kinds: for each of these, the dtype that its words are.
    """

    message: str
    line: str
    shape: tuple[int, ...]
    names: tuple[str, ...]
    kinds: tuple[str, ...]

    def describe(self, failure: np.ndarray) -> str:
        """Return the whole message."""
        count, first, *_ = failure[1:]
        words = failure[3:].reshape(_SHOWN, 2)
        shown = [
            f"{name} = {pair.view(kind)[0]}"
            for name, kind, pair in zip(self.names, self.kinds, words, strict=False)
        ]
        where = ""
        if self.shape:
            index = [int(i) for i in np.unravel_index(int(first), self.shape)]
            where = f"{count} of {int(np.prod(self.shape))} elements, the first at {index}"
        facts = ": ".join(filter(None, [where, ", ".join(shown)]))
        return f"{self.message}{': ' if facts else ''}{facts} ({self.line})."


_SITES: dict[_Site, int] = {}
_NUMBERING = threading.RLock()  # two threads may trace a function under plain `jax.jit`
_SHOWN = 2  # values shown by a message
_SIZE = 3 + 2 * _SHOWN  # the site's number, how many elements, the first, two words each of it
NO_FAILURE = np.zeros(_SIZE, np.int32)


def _number(site: _Site) -> int:
    with _NUMBERING:
        return _SITES.setdefault(site, len(_SITES) + 1)


@final
class Raised:
    """The error that a callback raised last: XLA passes on its message alone."""

    error: Exception | None = None


def raise_if_failed(failure: Any) -> None:
    """Raise CheckError if a failure is set."""
    values = np.asarray(jax.block_until_ready(failure))  # NumPy may wait for a failed one forever
    if values[0]:
        raise CheckError(list(_SITES)[int(values[0]) - 1].describe(values))


def _raise_in_callback(failure: Any) -> None:
    try:
        raise_if_failed(failure)
    except CheckError as error:
        Raised.error = error
        raise


def _deliver(failure: Array) -> None:
    """Raise a failure where it cannot be threaded out: now, or in a callback."""
    if context.is_tracer(failure):
        jax.debug.callback(_raise_in_callback, failure)
    else:
        raise_if_failed(failure)


_SIGNAL = Signal("a failed check", NO_FAILURE, _deliver)
FAILURE = _SIGNAL._cell


def require(
    good: Value, message: str, values: Mapping[str, Value] | None = None, line: str | None = None
) -> None:
    """Raise CheckError unless all of `good` holds; in a compiled step, when it is run.

    Args:
        good: bools, of any shape.
        message: what is wrong otherwise.
        values: up to two arrays, by name, to show at the first wrong element. They have the
            shape of `good`, or can be broadcast to it.
        line: where that is; the user's line when None.

    Raises:
        CheckError: when it does not hold; no variable is changed by the step then.
    """
    with context.at(context.strip(context.current())):  # nothing that a tape differentiates
        if not context.is_tracer(good) and bool(np.all(good)):
            return
        shown = {name: jnp.asarray(x) for name, x in (values or {}).items()}
        report(_failure(jnp.asarray(good), message, shown, line or user_line()))


def report(failure: Array) -> None:
    """Have the current program fail if a failure is set, and none was before."""
    frame = LOCAL.frame
    if frame.keeps_signals():
        old = frame.get(FAILURE)
        frame.put(FAILURE, jnp.where(old[0] > 0, old, failure))
    else:
        _deliver(failure)


# ---------------------------------------------------------------- checks in files
def sites_in(program: Any) -> dict[str, Any]:
    """Return what the checks in a program say when they fail, as data, by number as a string."""
    used = jaxprs.integers_in(program)
    sites = {number: asdict(site) for site, number in list(_SITES.items()) if number in used}
    return {str(number): words for number, words in sites.items()}


def known_here(sites: Mapping[str, Any]) -> dict[int, int]:
    """Return the number in this process of each check in a file.

    Args:
        sites: what `sites_in` gave.

    Raises:
        TypeError: when `sites` is something else.
    """
    numbers: dict[int, int] = {}
    for number, words in sites.items():
        fields: dict[str, Any] = {
            key: tuple(x) if isinstance(x, list) else x for key, x in words.items()
        }
        numbers[int(number)] = _number(_Site(**fields))
    return numbers


def renumbered(failure: Array, numbers: Mapping[int, int]) -> Array:
    """Return a failure with other numbers of checks."""
    number = failure[0]
    for theirs, ours in numbers.items():
        number = jnp.where(failure[0] == theirs, ours, number)
    return failure.at[0].set(number)


def _failure(good: Array, message: str, values: Mapping[str, Array], line: str) -> Array:
    kinds = tuple(map(_kind, values.values()))
    sizes = good.shape if all(isinstance(size, int) for size in good.shape) else ()
    site = _Site(message, line, sizes, tuple(values), kinds)
    number = _number(site)
    if not good.size:
        return jnp.asarray(NO_FAILURE)
    wrong = ~good.ravel()
    first = jnp.argmax(wrong)
    facts = [jnp.where(wrong.any(), number, 0), wrong.sum(), first]
    for x, kind in zip(values.values(), kinds, strict=True):
        facts += _words(jnp.broadcast_to(x, good.shape).ravel()[first], kind)
    facts += [0] * (_SIZE - len(facts))
    return jnp.stack([jnp.asarray(x, jnp.int32) for x in facts])


def _kind(value: Array) -> str:
    if value.real.dtype.itemsize == 8:
        return str(value.real.dtype)
    if jnp.issubdtype(value.dtype, jnp.inexact):
        return "float32"
    return "uint32" if jnp.issubdtype(value.dtype, jnp.unsignedinteger) else "int32"


def _words(value: Array, kind: str) -> list[Array | int]:
    """Return the bits of a value of a dtype, as two integers."""
    words = jax.lax.bitcast_convert_type(value.real.astype(kind), jnp.int32)
    return [words, 0] if not words.ndim else [words[0], words[1]]


def first_failure(failures: Array) -> Array:
    """Return the first failure that is set, of one for each example."""
    if failures.shape[0] == 0:
        return jnp.asarray(NO_FAILURE)
    return failures[jnp.argmax(failures[:, 0] > 0)]


def require_finite_writes(name: str, line: str) -> None:
    """Have the current program fail if it would write NaN or an infinity to a variable.

    Args:
        name: of the function.
        line: where it is.
    """
    frame = LOCAL.frame
    if not isinstance(frame, CaptureFrame):
        return
    for cell in without_signals(list(frame.written.values())):
        if is_inexact(cell.aval):
            value = frame.values[cell.key]
            message = f"{name} would make Variable {called(cell)!r} not finite"
            require(jnp.isfinite(value), message, {"value": value}, line)


def calling_back(run: Callable[[], Any]) -> Any:
    """Run a program that calls back into Python; raise what a callback of ours raised."""
    Raised.error = None
    try:
        return run()
    except Exception as error:
        raised = Raised.error
        if raised is not None and f"{type(raised).__name__}: {raised}" in str(error):
            raise raised from None
        raise  # another thread's plain `jax.jit` may have called back, too
    finally:
        Raised.error = None
