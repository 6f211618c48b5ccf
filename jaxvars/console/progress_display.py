"""The display of `progress`: the bars that are open at one time on one console.

rich draws, in a separate thread; `Display` tells it what.

Rules this file keeps:
- what is drawn takes no lock of ours: closing a display holds it and waits for the drawing;
- where nothing can be animated (a pipe, a log, a dumb terminal) the outermost bar prints a line
  at the end;
- a bar that was opened inside of another one vanishes when it is done.
"""

from __future__ import annotations

import importlib.util
import threading
from typing import TYPE_CHECKING, Any, Protocol, final

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_PER_SECOND = 4  # a drawing takes a millisecond or two


class Bar(Protocol):
    """What a display needs of a bar."""

    completed: int
    total: int | None
    description: str
    console: Console | None
    display: Display | None

    @property
    def rate(self) -> float | None:
        """Steps per second; None for unknown."""
        ...

    @property
    def shown(self) -> str:
        """The values as strings."""
        ...

    def line(self) -> str:
        """Return the bar as a line of text."""
        ...


_LOCK = threading.RLock()
_DISPLAYS: dict[int, Any] = {}  # that are live, by the id of their console


def open_bar(bar: Bar) -> None:
    """Show a bar, beside those that are open on the same console."""
    from rich import get_console

    console = bar.console or get_console()
    with _LOCK:
        display = _DISPLAYS.get(id(console))
        bar.display = display = display or Display(console)
        _DISPLAYS[id(console)] = display
        display.add(bar)


def close_bar(bar: Bar) -> None:
    """Show a bar as done, or no longer; do nothing if it isn't shown."""
    display, bar.display = bar.display, None
    if display is not None:
        with _LOCK:
            if display.remove(bar):
                _DISPLAYS.pop(id(display.console), None)


@final
class Display:
    """The bars that are open on one console, the outermost first."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live
        from rich.progress import Progress

        self.console = console
        self._open: list[Bar] = []
        self._tasks: dict[int, Any] = {}  # of rich, by the id of the bar
        self._kept: list[Bar] = []  # done, and still to be seen
        self._bars = Progress(*_columns(), console=console, auto_refresh=False)
        self._live = Live(
            console=console, get_renderable=self._draw, refresh_per_second=_PER_SECOND
        )
        self._is_live = _can_animate(console)

    def add(self, bar: Bar) -> None:
        """Show a bar."""
        self._tasks[id(bar)] = self._bars.add_task(bar.description, total=bar.total, text="")
        self._open.append(bar)
        if self._is_live:
            self._live.start(refresh=True)

    def remove(self, bar: Bar) -> bool:
        """Show a bar no longer, or as done; return whether it was the last one."""
        is_outermost = bool(self._open) and self._open[0] is bar
        if bar in self._open:
            self._update(bar)
            self._open.remove(bar)
        if is_outermost:
            self._kept.append(bar)
        elif (task := self._tasks.pop(id(bar), None)) is not None:
            self._bars.remove_task(task)
        if not self._open:
            self._end()
        return not self._open

    def refresh(self) -> None:
        """Draw now."""
        self._live.refresh()

    def _end(self) -> None:
        if self._is_live:
            if self.console.is_jupyter:  # where rich draws no more when it ends
                self._live.refresh()
            self._live.stop()
        else:
            for bar in self._kept:
                self.console.print(bar.line(), soft_wrap=True, markup=False, highlight=False)

    def _draw(self) -> RenderableType:
        """Return what is to be seen now; called by rich's thread."""
        for bar in list(self._open):
            self._update(bar)
        return self._bars.get_renderable()

    def _update(self, bar: Bar) -> None:
        task = self._tasks.get(id(bar))
        for row in self._bars.tasks:
            if row.id == task:
                self._bars.update(
                    row.id,
                    completed=bar.completed,
                    total=bar.total,
                    description=bar.description,
                    text="  ".join(filter(None, [rate_text(row.speed or bar.rate), _values(bar)])),
                )


def _values(bar: Bar) -> str:
    try:
        return bar.shown
    except (RuntimeError, TypeError, ValueError):  # what computes them failed: the loop will say so
        return ""


def rate_text(rate: float | None) -> str:
    """Return a rate, or what it is the reciprocal of.

    >>> rate_text(1234.5), rate_text(0.25)
    ('1,234 it/s', '4 s/it')
    """
    if rate is None:
        return ""
    if rate < 1:
        return f"{1 / rate:.3g} s/it"
    return f"{rate:,.0f} it/s" if rate >= 100 else f"{rate:.3g} it/s"


def _columns() -> list[Any]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return [
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}", markup=False),
    ]


def _can_animate(console: Console) -> bool:
    if console.is_jupyter:
        return importlib.util.find_spec("ipywidgets") is not None
    # A pipe is not a terminal though FORCE_COLOR has rich think so.
    return console.is_interactive and console.file.isatty()
