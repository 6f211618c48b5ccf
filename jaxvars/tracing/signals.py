"""Handlers of signals wait while a function is traced, and while a program runs for the first time.

Python runs them in the middle of whatever the main thread does. There they would be part of the
function: what they assign would be assigned by each call. Afterwards they are code as any other.
"""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports] - CPython's; its getsignal makes no enums
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from types import FrameType
from typing import Any, TypeVar, final

T = TypeVar("T")

_SIGNALS = tuple(map(int, signal.valid_signals()))

DEFERRING: list[None] = []
"""Not empty while Ctrl-C is deferred, too."""


@final
class deferred_signals(AbstractContextManager[None]):  # noqa: N801 - a statement
    """Have the handlers of signals run at the end, not in the middle; in the main thread.

    A handler that is set meanwhile stays, and a process that is forked meanwhile defers nothing.

    Args:
        ctrl_c: whether Ctrl-C waits, too, where it raises KeyboardInterrupt. Where it does not, it
            may come as the statement ends: `restore` is to be called again then.
        run: runs what has waited.
    """

    def __init__(
        self, *, ctrl_c: bool = True, run: Callable[[Callable[[], Any]], Any] = lambda fn: fn()
    ) -> None:
        self._ctrl_c, self._run, self._process = ctrl_c, run, os.getpid()
        self._own: dict[int, Any] = {}
        self._handlers: dict[int, Any] = {}
        self._came: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # Python runs no handler here
        at_once = None if self._ctrl_c else signal.default_int_handler
        try:
            for number in _SIGNALS:
                if callable(handler := _signal.getsignal(number)) and handler is not at_once:
                    self._handlers[number] = self._own[number] = handler
                    _signal.signal(number, self._note)
        except BaseException:  # of a signal that was not deferred yet
            self.restore()
            raise
        DEFERRING.extend([None] * (self._ctrl_c and bool(self._handlers)))

    def __exit__(self, *_: object) -> None:
        if self._ctrl_c and self._handlers:
            DEFERRING.pop()
        self.restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        handler = self._own[number]
        if number in self._handlers and os.getpid() == self._process:
            self._came[number] = handler
        else:  # it was fetched as the handler, and called or put back afterwards
            handler(number, frame)

    def restore(self) -> None:
        """Put the handlers back, and run those whose signals have come."""
        try:
            while self._handlers:
                number, handler = next(iter(self._handlers.items()))
                if _signal.getsignal(number) == self._note:
                    _signal.signal(number, handler)
                del self._handlers[number]
        finally:
            if self._handlers:  # a handler that is back has raised
                self.restore()
            elif self._came:
                self._deliver()

    def _deliver(self) -> None:
        try:
            while self._came:
                number = next(iter(self._came))
                self._run(partial(self._came.pop(number), number, sys._getframe()))
        finally:
            if self._came:
                self._deliver()


def attempt(fn: Callable[[], T]) -> T | None:
    """Return what `fn` returns, None if it raises; what a handler of a signal raises is raised."""
    signals = deferred_signals(ctrl_c=False)
    try:
        with signals, suppress(Exception):
            return fn()
    finally:
        signals.restore()
    return None
