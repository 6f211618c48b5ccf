"""Whether compiled functions run their Python bodies: `run_eagerly`."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import final

from jaxvars.core.frame import FAST_PATH_BLOCKERS, FastPathBlocker, Switch
from jaxvars.tracing.context import Scoped


@final
class EagerMode:
    """A setting of this process, and one of a thread or coroutine for a while."""

    def __init__(self) -> None:
        self.everywhere = Switch()
        self.here = Scoped(False)

    @property
    def on(self) -> bool:
        """Whether compiled functions run their Python bodies here and now."""
        return self.everywhere.on or (bool(FAST_PATH_BLOCKERS) and self.here.value)


EAGER = EagerMode()


def run_eagerly(enabled: bool = True) -> None:
    """Run the Python bodies of compiled functions (True), or the compiled programs (False).

    For debugging: print, breakpoints and exceptions are then Python's own.

    Args:
        enabled: True for Python, in all threads, until it is called with False.

    >>> import jaxvars as jv
    >>> run_eagerly(True)
    >>> jv.compile(lambda x: x + 1)(1)
    2
    >>> run_eagerly(False)
    """
    EAGER.everywhere.set(enabled)


@contextlib.contextmanager
def running_eagerly() -> Generator[None]:
    """Run the Python bodies of compiled functions inside."""
    blocker = FastPathBlocker()
    blocker.begin()
    try:
        with EAGER.here.set(True):
            yield
    finally:
        blocker.end()
