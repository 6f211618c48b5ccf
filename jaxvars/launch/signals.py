"""Signals as bytes in a pipe, so that the launcher waits for them and for output in one place.

Rules this file keeps:
- a signal that was ignored when the launcher was started (`nohup`) stays ignored;
- what was set before is set again at the end.
"""

from __future__ import annotations

import os
import signal
from typing import Any, final

_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")


@final
class Inbox:
    """Takes SIGCHLD and the signals that ask the launcher to stop, for a `with` block.

    Attributes:
        descriptor: readable when there is something to take.
    """

    def __enter__(self) -> Inbox:
        self.descriptor, self._end = os.pipe()
        for descriptor in (self.descriptor, self._end):
            os.set_blocking(descriptor, False)
        self._fd_before = signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        stops = [getattr(signal, name) for name in _STOPS]
        wanted = [s for s in stops if signal.getsignal(s) is not signal.SIG_IGN]
        self._before = {s: signal.signal(s, _note) for s in [*wanted, signal.SIGCHLD]}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.close(self.descriptor)
        os.close(self._end)

    def take(self) -> list[int]:
        """Return the numbers of the signals to stop that have come since the last time."""
        try:
            taken = os.read(self.descriptor, 4096)
        except BlockingIOError:
            return []
        return [number for number in taken if number != signal.SIGCHLD]


def _note(number: int, frame: Any) -> None:
    # Python writes the number to the pipe before it calls this.
    return
