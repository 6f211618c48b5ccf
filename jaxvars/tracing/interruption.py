"""Code that interrupts a function while it is traced: signal handlers and finalizers.

Python runs them in the middle of whatever runs. They are not part of the function, so what they do
with variables is done outside of it: they find out here.

Rule this file keeps: what may be a finalizer or a function that was called as usual is refused.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports] - CPython's; its getsignal makes no enums
import dis
import gc
import inspect
import itertools
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import Any, final

from jaxvars.errors import ForeignTransformError, user_line

_GONE: Any = object()
"""In the place of an argument whose name has been deleted."""

_DROPS = {"POP_TOP", "STORE_SUBSCR", "DELETE_ATTR"}
"""Instructions beside those below in which an object may go, and no function of two is called."""

_SIGNALS = tuple(map(int, signal.valid_signals()))

_FINALIZE = weakref.finalize.__call__.__code__


def is_interruption(until: CodeType) -> bool:
    """Return whether this code was called by a signal, or as an object went.

    Args:
        until: of the function below which to look.

    Raises:
        ForeignTransformError: when that cannot be told.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not until:
        if frame.f_code.co_name == "__del__" or _is_called_back(frame):
            return True
        frame = frame.f_back
    return False


def is_of_handler(error: BaseException) -> bool:
    """Return whether a signal handler raised an exception.

    Raises:
        ForeignTransformError: when that cannot be told.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(_is_handler(frame, _arguments_of(frame)) for frame in frames)


@final
class overlooking(AbstractContextManager[None]):  # noqa: N801 - a statement, `with overlooking()`
    """Suppress exceptions, but not those of a signal handler, which nothing would raise again."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, Exception) and not is_of_handler(error)


@final
class deferred_signals(AbstractContextManager[None]):  # noqa: N801 - a statement
    """Have the handlers of signals run at the end, not in the middle; in the main thread."""

    def __init__(self) -> None:
        self._handlers: dict[int, Any] = {}
        self._came: dict[int, None] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # Python runs no handler here
        try:
            for number in _SIGNALS:
                if callable(handler := _signal.getsignal(number)):
                    self._handlers[number] = handler
                    _signal.signal(number, self._note)
        except BaseException:  # of a signal that was not deferred yet
            self._restore()
            raise
        DEFERRING.extend([None] * bool(self._handlers))

    def __exit__(self, *_: object) -> None:
        if self._handlers:
            DEFERRING.pop()
            self._restore()

    def _note(self, number: int, _: FrameType | None) -> None:
        self._came[number] = None

    def _restore(self) -> None:
        try:
            while self._handlers:
                number, handler = next(iter(self._handlers.items()))
                _signal.signal(number, handler)
                del self._handlers[number]
        finally:
            if self._handlers:  # a handler that is back has raised
                self._restore()
            elif self._came:
                self._deliver()

    def _deliver(self) -> None:
        try:
            while self._came:
                signal.raise_signal(self._came.popitem()[0])
        finally:
            if self._came:
                self._deliver()


DEFERRING: list[None] = []
"""Not empty while handlers of signals are deferred."""


def _is_called_back(frame: FrameType) -> bool:
    """Return whether a function was called by the interpreter itself."""
    given = _arguments_of(frame)
    return _is_handler(frame, given) or _is_of_gc(frame, given) or _is_finalizer(frame, given)


def _arguments_of(frame: FrameType) -> list[Any]:
    """Return the positional arguments of a function, as its names hold them now."""
    code = frame.f_code
    found = [frame.f_locals.get(name, _GONE) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        found += frame.f_locals.get(rest, ())
    return found


def _is_handler(frame: FrameType, given: list[Any]) -> bool:
    """Return whether a function was given what signal handlers and tracing functions are."""
    for one, other in itertools.pairwise(given):
        if other is frame.f_back and (one is _GONE or isinstance(one, int)):
            return True
        if one is frame.f_back and isinstance(other, str):  # sys.settrace, sys.setprofile
            return True
    if not 2 <= len(given) <= 3 or not all(_may_be_changed(x) for x in given[-2:]):
        return False
    is_changed = given[-1] in (None, _GONE) and frame.f_code in _handlers()
    if is_changed and given[-1] is None:
        raise _doubtful(frame, "is a signal handler whose frame is None")
    return is_changed


def _may_be_changed(value: Any) -> bool:
    """Return whether this may be left of an argument of a signal handler."""
    return value is None or value is _GONE or isinstance(value, int)


def _handlers() -> set[CodeType]:
    return _codes(x for x in map(_signal.getsignal, _SIGNALS) if callable(x))


def _codes(functions: Iterable[Callable[..., Any]]) -> set[CodeType]:
    """Return the code that functions, methods, partials and callable objects run."""
    found: set[CodeType] = set()
    for function in functions:
        whole: Any = function
        while hasattr(whole, "func"):
            whole = whole.func
        whole = whole if hasattr(whole, "__code__") else whole.__call__
        whole = getattr(whole, "__func__", whole)
        if isinstance(code := getattr(whole, "__code__", None), CodeType):
            found.add(code)
    return found


def _is_of_gc(frame: FrameType, given: list[Any]) -> bool:
    """Return whether a function is a callback of the garbage collector."""
    phase = given[-2] if len(given) > 1 else None
    is_phase = phase is _GONE or (isinstance(phase, str) and phase in ("start", "stop"))
    return is_phase and frame.f_code in _codes(gc.callbacks)


def _is_finalizer(frame: FrameType, given: list[Any]) -> bool:
    """Return whether a function was given a reference to what is gone, as an object went."""
    if not any(isinstance(x, weakref.ref) and x() is None for x in given) or len(given) > 2:
        return False
    if frame.f_code is _FINALIZE:
        return True
    caller = frame.f_back
    name = dis.opname[caller.f_code.co_code[caller.f_lasti]] if caller is not None else ""
    if name in _DROPS or name.startswith(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF",
                                          "DELETE_FAST", "DELETE_NAME", "DELETE_GLOBAL",
                                          "DELETE_DEREF")):  # fmt: skip
        return True
    raise _doubtful(frame, "was given a weak reference to an object that is gone")


def _doubtful(frame: FrameType, what: str) -> ForeignTransformError:
    name = frame.f_code.co_name
    return ForeignTransformError(
        f"A variable is used at {user_line()}, while a function is traced, and {name} {what}. It "
        f"cannot be told whether the function calls {name}, so that it is part of each step, or "
        "Python, as it calls handlers and finalizers in the middle of anything. If the function "
        f"calls it: give {name} the object, or whether it is gone. If it is a finalizer: use "
        "weakref.finalize."
    )
