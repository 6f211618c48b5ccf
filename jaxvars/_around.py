"""What stands around code while it is traced in a frame of its own.

Tracing begins anew inside: what listens to the operations outside (the check of numerics) does
not hear those inside unless it is placed there too. It says so here, and `_frames.py` asks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager

AROUND: list[Callable[[], AbstractContextManager[object]]] = []
"""What makes the contexts."""

RECORDING: list[Callable[[], AbstractContextManager[object]]] = []
"""What makes the contexts that stand around code that a tape records."""


@contextmanager
def around() -> Generator[None]:
    """Enter all that there is.

    >>> with around():
    ...     print("traced")
    traced
    """
    with ExitStack() as contexts:
        for enter in AROUND:
            contexts.enter_context(enter())
        yield
