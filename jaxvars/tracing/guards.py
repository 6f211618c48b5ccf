"""The socket for what is asked before values are used, where a process is not as others are.

A guard is given what is done, and the cells if these are read or written; it raises where that
cannot be, before anything is changed. Where there is none, and that is nearly always, this costs
one test:

    if GUARDS:
        ask(WRITE, cells)

Rules this file keeps:
- guards are asked in the order in which they were added, and never between donation and assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Guard: TypeAlias = Callable[[str, Sequence[Any]], None]

GUARDS: list[Guard] = []
"""What is asked."""

READ, TAKE, WRITE = "read", "take", "write"
"""What is done to cells: their values are read to compute with, taken from the store, written."""


def ask(doing: str, cells: Sequence[Any] = ()) -> None:
    """Let all guards raise, in turn.

    Args:
        doing: `READ`, `TAKE`, `WRITE`, or a sentence, such as "A variable is created".
        cells: what is read or written.
    """
    for guard in tuple(GUARDS):
        guard(doing, cells)
