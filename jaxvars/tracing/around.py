"""What stands around code while it is traced in a separate frame, or recorded by a tape.

Tracing begins again inside: what listens to the operations outside (the check of numerics) does
not see those inside unless it is placed there too. It says so here; `core/staging.py` reads
`AROUND`, and a tape `RECORDING`.

Rule this file keeps: what has been entered is left, wherever Ctrl-C comes. So `__exit__` of a
context that is placed here does nothing where it was not entered, and may be called twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias, TypeVar, final

T = TypeVar("T")
Maker: TypeAlias = Callable[[], AbstractContextManager[object]]

AROUND: list[Maker] = []
"""What makes the contexts."""

RECORDING: list[Maker] = []
"""What makes the contexts that stand around code that a tape records."""


@final
class Around:
    """All the contexts that there are, as one."""

    def __init__(self, makers: Sequence[Maker]) -> None:
        self._makers = makers
        self._contexts: list[AbstractContextManager[object]] = []

    def enter(self) -> None:
        """Make the contexts and enter them."""
        for make in self._makers:
            self._contexts.append(make())  # first: entering may be interrupted
            self._contexts[-1].__enter__()

    def leave(self) -> None:
        """Leave those that have not been left."""
        while self._contexts:
            self._contexts[-1].__exit__(None, None, None)
            del self._contexts[-1:]


def around(makers: Sequence[Maker], fn: Callable[[], T]) -> T:
    """Run `fn` in all contexts, and leave them even if Ctrl-C comes on the way in or out.

    >>> around(AROUND, lambda: "traced")
    'traced'
    """
    contexts = Around(makers)
    try:
        try:
            contexts.enter()
            return fn()
        finally:
            contexts.leave()
    finally:
        contexts.leave()
