"""Whether compiled functions run their Python bodies: `run_eagerly`."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import ClassVar, final

from jaxvars.core.frame import Detour


@final
class Mode:
    """How compiled functions run in this process."""

    eager: ClassVar[bool] = False
    detour: ClassVar[Detour] = Detour()


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
    Mode.eager = enabled
    Mode.detour.begin() if enabled else Mode.detour.end()


@contextlib.contextmanager
def running_eagerly() -> Generator[None]:
    """Run the Python bodies of compiled functions inside."""
    was = Mode.eager
    run_eagerly(True)
    try:
        yield
    finally:
        run_eagerly(was)
