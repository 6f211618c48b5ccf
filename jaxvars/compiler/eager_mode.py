"""Whether compiled functions run their Python bodies: `run_eagerly`."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from jaxvars.core.frame import Switch

EAGER = Switch()


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
    EAGER.set(enabled)


@contextlib.contextmanager
def running_eagerly() -> Generator[None]:
    """Run the Python bodies of compiled functions inside."""
    was = EAGER.on
    run_eagerly(True)
    try:
        yield
    finally:
        run_eagerly(was)
