"""A job in a separate thread, that is always waited for and whose error is always told.

Rules this file keeps:
- the thread ends with its job: there is no pool, and nothing is left when nothing is saved;
- the interpreter does not end before the job has. Waiting in `atexit` would be too late: at
  that time no thread can start another any more, and orbax starts some;
- an error is raised by `wait`; without one, it is printed when the interpreter ends.
"""

from __future__ import annotations

import atexit
import importlib
import sys
import threading
from collections.abc import Callable
from typing import final

_JOBS: set[Job] = set()
"""Those that run, and those whose error has not been raised."""


@final
class Job:
    """Something that runs in the background.

    Args:
        action: what to do.
        name: of the thread.
    """

    def __init__(self, action: Callable[[], object], name: str) -> None:
        self._error: BaseException | None = None
        self._done = threading.Event()  # Ctrl-C in `join` makes Python 3.11 take it for ended
        # Only the thread holds the action, which holds values, and only until it is done.
        self._thread = threading.Thread(target=self._run, args=(action,), name=name)

    def start(self) -> None:
        """Begin."""
        _wait_at_exit()
        _JOBS.add(self)
        self._thread.start()

    def wait(self) -> None:
        """Return when it is done; raise its error, the first time."""
        self._join()
        _JOBS.discard(self)
        error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def is_running(self) -> bool:
        """Whether it is not done yet."""
        return self._thread.ident is not None and not self._done.is_set()

    def _join(self) -> None:
        if self._thread.ident is not None:  # else Ctrl-C came before it began
            self._done.wait()
            self._thread.join()

    def _run(self, action: Callable[[], object]) -> None:
        try:
            action()
            _JOBS.discard(self)
        except BaseException as error:  # noqa: BLE001 - kept, and raised by `wait`
            self._error = error
        finally:
            self._done.set()


@final
class _AtExit:
    """Whether we are called when the interpreter ends."""

    registered = False


def _wait_at_exit() -> None:
    if not _AtExit.registered:
        _AtExit.registered = True
        # What is registered there last is called first: before the pools that orbax uses are
        # closed. It has no public name; without it a save must be waited for by the program.
        importlib.import_module("concurrent.futures.thread")  # registers their end
        register = getattr(threading, "_register_atexit", atexit.register)
        register(_finish)


def _finish() -> None:
    for job in list(_JOBS):
        try:
            job.wait()
        except BaseException as error:  # noqa: BLE001 - it cannot be raised any more
            sys.excepthook(type(error), error, error.__traceback__)
