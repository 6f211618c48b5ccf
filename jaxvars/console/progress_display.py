"""The display of `progress`: the bars that are open at one time on one console, drawn by rich.

Rules this file keeps:
- it is imported with rich, when the first bar is opened;
- what is drawn takes no lock of ours: closing a display holds it and waits for the drawing.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeAlias, final

from rich import get_console
from rich import progress as _rich
from rich.console import Console, RenderableType

from jaxvars.display.strings import rate_text

Bar: TypeAlias = Any  # a `progress.Progress`: its file imports this one

_PER_SECOND = 4  # a drawing takes a millisecond or two
_LOCK = threading.RLock()
_DISPLAYS: dict[Console, Display] = {}  # that have open bars


def open_bar(bar: Bar) -> None:
    """Show a bar, beside those that are open on the same console."""
    console = bar.console or get_console()
    with _LOCK:
        bar.display = display = _DISPLAYS.get(console) or Display(console)
        _DISPLAYS[console] = display
        display.add(bar)


def close_bar(bar: Bar) -> None:
    """Show a bar as done, or no longer; do nothing if it isn't shown."""
    display, bar.display = bar.display, None
    if display is not None:
        with _LOCK:
            display.remove(bar)
            if not display.bars:
                _DISPLAYS.pop(display.console, None)


@final
class _Plain(_rich.ProgressColumn):
    """A column in the terminal's own colour: rich's yellow and cyan cannot be read on white."""

    def __init__(self, column: Any) -> None:
        super().__init__()
        self._column, self.max_refresh = column, column.max_refresh

    def render(self, task: _rich.Task) -> RenderableType:
        """Return what the column shows."""
        shown = self._column.render(task)
        shown.style = ""
        return shown


@final
class Display(_rich.Progress):
    """The bars that are open on one console.

    Attributes:
        bars: by rich's number for them, the outermost first.
    """

    def __init__(self, console: Console) -> None:
        self.bars: dict[_rich.TaskID, Bar] = {}
        self._kept: list[Bar] = []  # done, and still to be seen
        super().__init__(
            _rich.TextColumn("{task.description}", markup=False),
            _rich.BarColumn(bar_width=20),
            _Plain(_rich.MofNCompleteColumn()),
            _Plain(_rich.TimeElapsedColumn()),
            _Plain(_rich.TimeRemainingColumn()),
            _rich.TextColumn("{task.fields[shown]}", markup=False),
            console=console,
            refresh_per_second=_PER_SECOND,
            disable=not _can_animate(console),
        )

    def add(self, bar: Bar) -> None:
        """Show a bar."""
        self.bars[self.add_task(bar.description, total=bar.total, shown="")] = bar
        self.start()

    def remove(self, bar: Bar) -> None:
        """Show a bar as done if it is the outermost, else no longer."""
        for is_inner, (task, other) in enumerate(list(self.bars.items())):
            if other is bar:
                self._follow(task, bar)
                del self.bars[task]
                if is_inner:
                    self.remove_task(task)
                else:
                    self._kept.append(bar)
        if not self.bars:
            self._end()

    def _end(self) -> None:
        if self.console.is_jupyter:  # where rich draws no more when it ends
            self.refresh()
        self.stop()
        for bar in self._kept if self.disable else ():
            self.console.print(bar.line(), soft_wrap=True, markup=False, highlight=False)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return what is to be seen now; called by rich's thread."""
        for task, bar in list(self.bars.items()):
            self._follow(task, bar)
        return super().get_renderables()

    def _follow(self, task: _rich.TaskID, bar: Bar) -> None:
        speeds = {row.id: row.speed for row in self.tasks}
        strings = [rate_text(speeds.get(task) or bar.rate)]
        with suppress(RuntimeError, TypeError, ValueError):  # a value failed: the loop will say so
            strings.append(bar.shown)
        facts = {"completed": bar.completed, "total": bar.total, "description": bar.description}
        with suppress(KeyError):  # removed meanwhile
            self.update(task, shown="  ".join(filter(None, strings)), **facts)


def _can_animate(console: Console) -> bool:
    if console.is_jupyter:
        return importlib.util.find_spec("ipywidgets") is not None
    # A pipe is not a terminal though FORCE_COLOR has rich think so.
    return console.is_interactive and console.file.isatty()
