"""Listeners that stand on a thread's trace until they are told to go.

`debugging` switches them on and off by function calls: the check of numerics, the log of
placement. They see every operation of their thread, outside and around tapes.

Rules this file keeps:
- they come and go outside of tapes, compiled functions and transforms only: a trace that is in
  use can't be taken away;
- while one stands, calls of compiled functions take the way that lets it see them.
"""

from __future__ import annotations

import threading
from typing import final

from jaxvars.core.frame import FastPathBlocker
from jaxvars.core.frames import LOCAL
from jaxvars.tracing import context, recorder


@final
class _Local(threading.local):
    """What stands in each thread, lowest first."""

    def __init__(self) -> None:
        self.placed: list[tuple[recorder.Listener, recorder.recording]] = []
        self.detour = FastPathBlocker()


_LOCAL = _Local()


def stands(listener: recorder.Listener) -> bool:
    """Return whether a listener stands in this thread."""
    return any(placed is listener for placed, _ in _LOCAL.placed)


def stand(listener: recorder.Listener, what: str) -> None:
    """Let a listener see what this thread runs from now on.

    Args:
        listener: what is notified.
        what: what it does, for the message.

    Raises:
        RuntimeError: inside a tape, a compiled function or a transform.
    """
    if not stands(listener):
        _refuse_elsewhere(f"{what} is enabled")
        _put(listener)


def leave(listener: recorder.Listener, what: str) -> None:
    """Let a listener see no more, if it stands; see `stand`."""
    if not stands(listener):
        return
    _refuse_elsewhere(f"{what} is disabled")
    others: list[recorder.Listener] = []
    while _LOCAL.placed:
        placed, recording = _LOCAL.placed.pop()
        recording.__exit__(None, None, None)
        others.append(placed)
    _LOCAL.detour.end()
    for other in reversed(others):
        if other is not listener:
            _put(other)


def _put(listener: recorder.Listener) -> None:
    recording = recorder.recording(listener)
    _LOCAL.placed.append((listener, recording))
    _LOCAL.detour.begin()
    recording.__enter__()


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
