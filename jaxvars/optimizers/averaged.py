"""Averages in place of variables, for a while: what `optimizer.averaged()` does.

Rules this file keeps:
- nothing is assigned: the averages are shown by a frame of this thread, so that other threads, and
  what restores or goes on training there, find variables and averages where they belong;
- a variable that is shown as its average cannot be assigned: what was computed from the average
  would take the place of a value that was not read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias, final

from jaxvars.control.overlay import Block, Overlay
from jaxvars.core.cells import Cell
from jaxvars.core.frame import Change
from jaxvars.core.frames import LOCAL
from jaxvars.errors import StateError, called, user_line
from jaxvars.optimizers.step import exchange, has_begun
from jaxvars.tracing import context
from jaxvars.typing import Array

WHAT = "optimizer.averaged()"
Pairs: TypeAlias = Sequence[tuple[Cell, Cell]]


def show_averages(pairs: Pairs) -> Block:
    """Show averages in a block.

    Args:
        pairs: of the cells of variables and their averages.
    """
    if LOCAL.frame is LOCAL.eager:
        yield from AverageFrame(pairs).run()
    else:
        yield from _show_traced(pairs)


@final
class AverageFrame(Overlay):
    """Has the averages that there are at the beginning; all else is that of the frame below."""

    what = WHAT

    def __init__(self, pairs: Pairs) -> None:
        super().__init__()
        self._pairs = pairs
        averages = self.below.take_all([average for _, average in pairs])
        with context.at(context.EVAL):
            self.values = {
                cell.key: (cell, x.astype(cell.dtype))
                for (cell, _), x in zip(pairs, averages, strict=True)
                if has_begun(x)
            }

    def finish(self) -> None:
        """Do nothing: nothing was assigned."""

    def check_saved(self, cells: Collection[Cell]) -> None:
        """Raise StateError if an average is saved as such, and in place of its variable, too."""
        keys = {cell.key for cell in cells}
        lost = [cell for cell, average in self._pairs if {cell.key, average.key} <= keys]
        if lost := [cell for cell in lost if cell.key in self.values]:
            raise StateError(
                f"A checkpoint is saved at {user_line()} inside of `with {WHAT}:`, with the "
                f"optimizer in it. There the value of variable {called(lost[0])!r} is its average, "
                "which the optimizer has, too, so what was trained would be saved nowhere. Save "
                "before the block or after it; or the model alone, to have the averages in a file."
            )

    def check_writable(self, cell: Cell) -> None:
        """Raise StateError for a variable that is shown as its average."""
        super().check_writable(cell)
        if cell.key in self.values:
            raise _written_error([cell])

    def _replace(self, *changes: Change) -> None:
        self.below._replace(*changes)


def _show_traced(pairs: Pairs) -> Block:
    """Show averages in a function that is being traced."""
    frame: Any = LOCAL.frame
    cells = [cell for cell, _ in pairs]
    known = [cell.key in frame.values for cell in cells]
    values, averages = frame.read_all(cells), frame.read_all([average for _, average in pairs])
    averages = [exchange(*pair)[0] for pair in zip(values, averages, strict=True)]
    try:
        _bind(frame, cells, averages)
        yield 0
        yield 1  # the block runs here
        yield 0
        failed = yield 1
        written = [c for c, x in zip(cells, averages, strict=True) if frame.values[c.key] is not x]
        if failed is None and written:
            raise _written_error(written)
    finally:
        _bind(frame, cells, values)
        for cell, was_known in zip(cells, known, strict=True):
            if not was_known:
                del frame.values[cell.key]


def _bind(frame: Any, cells: Sequence[Cell], values: Sequence[Array]) -> None:
    frame.renew()
    frame.values.update({cell.key: x for cell, x in zip(cells, values, strict=True)})


def _written_error(cells: Sequence[Cell]) -> StateError:
    names = ", ".join(repr(called(cell)) for cell in cells)
    return StateError(
        f"Variable {names} is assigned at {user_line()} inside of `with {WHAT}:`, where its value "
        "is its average; nothing has changed. Train, assign and restore before the block or after "
        "it. To make the averages the values for good: optimizer.finalize_variable_values(list)."
    )
