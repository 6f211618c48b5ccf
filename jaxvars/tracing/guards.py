"""The socket for what is asked before values are used, where a process is not as others are.

A guard is given what is done, and the cells if these are read or written; it raises where that
cannot be, before anything is changed. It returns True where a value that is read may not be
computed with, not even to copy it for a tape. Where there is none, and that is nearly always, this
costs one test:

    if GUARDS:
        ask(WRITE, cells)

Rules this file keeps:
- guards are asked in the order of their ranks, and never between donation and assignment.

A value that is read may also be handed out as something else than what is kept: `READ_AS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Guard: TypeAlias = Callable[[object, Sequence[Any]], bool | None]

GUARDS: dict[int, Guard] = {}
"""What is asked, by rank: the lowest first."""

READ_AS: list[Callable[[Any, Any], Any]] = []
"""What returns, for a cell and its value, what is read: a copy on another device, for example."""

READ, TAKE, SHOW, WRITE = "read", "take", "show", "write"
"""What is done to cells: their values are read to compute with, taken from the store or from a
program, by whatever uses them, only shown, or written. Who reads also takes."""


def ask(doing: object, cells: Sequence[Any] = ()) -> bool:
    """Let all guards raise, in turn; return whether values are to be taken as they are.

    Args:
        doing: `READ`, `TAKE`, `SHOW`, `WRITE`, or a sentence, such as "A variable is created".
        cells: what is read or written.
    """
    as_it_is = False
    for rank in sorted(GUARDS):
        guard = GUARDS.get(rank)  # another thread may have taken it away
        if guard is not None:
            as_it_is = bool(guard(doing, cells)) or as_it_is
    return as_it_is


def read_as(cell: Any, value: Any) -> Any:
    """Return what the value of a cell is read as."""
    for change in dict.fromkeys(READ_AS):  # once, however many scopes are open
        value = change(cell, value)
    return value
