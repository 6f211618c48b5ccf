"""Signals that tell a program to stop: noted when they come, answered between training steps.

A signal comes at any moment: in a trace, a step or a save. So its handler only notes it.

Several processes have to stop at one step. JAX's sync manager agrees on it, once its own handler
for SIGTERM has been called. That one is set in C, where a handler of Python takes its place. So
its address is kept, and it is called when a signal has been noted.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from types import FrameType
from typing import Any

import jax

from jaxvars.errors import DistributedError
from jaxvars.tracebacks import find_shell

_before: dict[int, Any] = {}  # what handled the signals that are noted
_noted = False  # one came to this process
_answered = False  # the program has been told
_cell: int | None = None  # the cell of a notebook that was told
_jax_handler = 0  # the address of JAX's handler for SIGTERM

LEFT_OUT: weakref.WeakKeyDictionary[Any, Callable[[Any], object]] = weakref.WeakKeyDictionary()
"""What has left a save out, as the last one was not long ago, with what makes up for it."""


def is_answered() -> bool:
    """Return whether the program has been told to stop: what it saves is saved at once."""
    return _answered


def ask(step: int, also: Iterable[int]) -> bool:
    """Return whether to stop at a step; from the first call on, signals are noted."""
    global _answered
    if threading.current_thread() is threading.main_thread():
        _follow_cell()
    for number in (signal.SIGTERM, *also):
        if number not in _before:
            _begin_to_note(number)
    if not _answered and (_agree(step) if jax.distributed.is_initialized() else _noted):
        _answered = True
        with ExitStack() as all_of_them:  # also where one of them raises
            for owner, make_up in LEFT_OUT.items():
                all_of_them.callback(make_up, owner)
    return _answered


def _follow_cell() -> None:
    """Begin again where a cell of a notebook runs after the one that has been told."""
    global _cell
    shell = find_shell()
    cell = shell and shell.execution_count
    if _answered and cell != _cell:
        _begin()
    _cell = cell


def _agree(step: int) -> bool:
    from jax.experimental.multihost_utils import reached_preemption_sync_point

    if _noted:
        ctypes.CFUNCTYPE(None, ctypes.c_int)(_jax_handler)(signal.SIGTERM)
    return bool(reached_preemption_sync_point(step))


def keep_jax_handler() -> None:
    """Keep the address of JAX's handler for SIGTERM, which it has just set."""
    global _jax_handler
    _jax_handler = _jax_handler or _address(signal.SIGTERM)


def _address(number: int) -> int:
    """Return the address of a signal's handler in C: the first field of `struct sigaction`."""
    action = (ctypes.c_void_p * 64)()  # more than it has
    ctypes.CDLL(None).sigaction(int(number), None, action)
    return action[0] or 0


def _begin_to_note(number: int) -> None:
    is_of_jax = number == signal.SIGTERM and jax.distributed.is_initialized()
    if threading.current_thread() is not threading.main_thread():
        if is_of_jax:
            return  # its own handler does
        raise DistributedError(
            f"{signal.Signals(number).name} cannot be noted from the thread "
            f"{threading.current_thread().name!r}: Python sets handlers of signals in the main "
            "thread only. Call is_preempted there once, before the thread starts:\n"
            "    jv.parallel.is_preempted(0)\n"
            "    thread.start()  # and is_preempted(step) in it, in each step"
        )
    if is_of_jax:
        keep_jax_handler()
    try:
        _before[number] = signal.getsignal(number)
        signal.signal(number, _note)
    except (ValueError, OSError) as error:  # SIGKILL, or a number of no signal
        _before.pop(number, None)
        raise ValueError(f"The signal {number!r} cannot be noted: {error}.") from error
    if is_of_jax and _jax_handler in (0, _address(number)):
        _end(number)
        del _before[number]
        raise DistributedError(
            "JAX's handler for SIGTERM, which tells the other processes, is not there: another one "
            "has taken its place, or jax_enable_preemption_service is off. Join them with "
            "jv.parallel.initialize(), or call is_preempted once before the other one is set."
        )


def _note(number: int, frame: FrameType | None) -> None:
    """Note a signal, and pass it on to a handler of the user's; the next one is not noted."""
    global _noted
    _noted, before = True, _before.get(number)
    _end(number)
    if callable(before) and before is not signal.default_int_handler:
        before(number, frame)


def _end(number: int) -> None:
    """Put back what handled a signal before: none of Python's where it is None."""
    signal.signal(number, _before.get(number) or signal.SIG_DFL)


def _begin() -> None:
    global _noted, _answered
    for number in _before:
        if signal.getsignal(number) is _note:
            _end(number)
    _before.clear()
    _noted = _answered = False


def _begin_in_child() -> None:
    """Note nothing in a process that was just forked: what ends it is not meant for its parent."""
    _begin()
    LEFT_OUT.clear()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has none
    os.register_at_fork(after_in_child=_begin_in_child)
