"""`progress`: a bar that shows how a loop gets on, and costs it next to nothing.

A step adds one to a number and keeps its values by reference. Four times a second a thread of
rich's looks at them and draws (`console/progress_display.py`).

Rules this file keeps:
- a step looks at no clock and waits for nothing: a value that is still computed is passed over;
- whatever ends the loop, the terminal is left as it was.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Generator, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, final

import jax
import numpy as np

from jaxvars.display.repr import array_text
from jaxvars.display.strings import rate_text
from jaxvars.display.table import cell_text
from jaxvars.errors import CompileError, user_line
from jaxvars.tensors.array_like import unwrap
from jaxvars.tracing import context

if TYPE_CHECKING:
    from rich.console import Console

    from jaxvars.console.progress_display import Display

T = TypeVar("T")


def progress(
    source: Iterable[T] | int | None = None,
    description: str = "",
    *,
    total: int | None = None,
    console: Console | None = None,
    enabled: bool = True,
) -> Progress[T]:
    """Show how a loop gets on: steps done, time, rate, what is left, and named values.

    A step costs well under a microsecond, and the loop never waits for the device: values that
    are still being computed are shown when they are there. Only at the end of the loop are
    the last ones waited for. Changes no variable.

    In a terminal and in Jupyter (there with ipywidgets) it is animated, `print` prints above it,
    and bars opened inside of others vanish when they are done. Anywhere else the outermost
    prints one line at its end.

    Args:
        source: what to iterate over; a number n stands for `range(n)`; None where steps are
            counted by `advance`.
        description: what is going on; `bar.description` may be set at any time.
        total: how many steps there will be; the length of `source` if it has one. None for
            unknown.
        console: the `rich.console.Console` to draw on; rich's own, on stdout, when None.
        enabled: False shows nothing, as for all processes but one:
            `enabled=jax.process_index() == 0`.

    Returns:
        A `Progress`: iterate over it, or open it by `with`.

    Raises:
        TypeError: when `source` can't be iterated over.
        ValueError: when a number of steps is negative.

    The rate leaves out the first step, which compiles. JAX runs behind: a step counts when it has
    been dispatched.

    Example:
        >>> import jaxvars as jv
        >>> w = jv.Variable(4.0)
        >>> @jv.compile
        ... def step():
        ...     w.assign(0.5 * w)
        ...     return w**2
        >>> with jv.progress(3, "halving", enabled=False) as bar:
        ...     for i in bar:
        ...         bar.show(loss=step())
        >>> bar.completed, bar.shown
        (3, 'loss=0.25')

        Without anything to iterate over:

        >>> with jv.progress(total=10, enabled=False) as bar:
        ...     bar.advance(5)
    """
    return Progress(source, description, total=total, console=console, enabled=enabled)


@final
class Progress(Generic[T]):
    """A bar: made by `jv.progress`.

    Attributes:
        completed: how many steps are done.
        total: how many there will be; None for unknown.
        description: what is going on.
        console: the one it was given.
        display: what shows it while it is open.
    """

    __slots__ = (
        "_before_rate", "_enabled", "_ended", "_is_used", "_rate_from",
        "_source", "_started", "_strings", "_values", "completed", "console", "description",
        "display", "total",
    )  # fmt: skip

    def __init__(
        self, source: Iterable[T] | int | None, description: str, *, total: int | None,
        console: Console | None, enabled: bool,
    ) -> None:  # fmt: skip
        self._source = _as_iterable(source)
        length = -1 if source is None else operator.length_hint(self._source, -1)
        self.total = _check_steps(total) if total is not None else None if length < 0 else length
        self.description = description
        self.completed = 0
        self.console, self._enabled = console, enabled
        self.display: Display | None = None
        self._is_used = False
        self._values: dict[str, Any] = {}
        self._strings: dict[str, str] = {}
        self._started: float | None = None
        self._ended: float | None = None
        self._rate_from: float | None = None  # when the first step was done
        self._before_rate = 0

    # ------------------------------------------------------------ in the loop
    def __iter__(self) -> Generator[T]:
        """Yield the items of `source`, opening the bar unless it is open.

        Raises:
            TypeError: when there is nothing to iterate over.
            RuntimeError: the second time.
        """
        if self._source is None:
            raise TypeError(
                "This bar has nothing to iterate over: jv.progress(batches), or count the steps "
                "by bar.advance()."
            )
        if self._is_used:
            raise RuntimeError("This bar has been used: make one for each loop.")
        self._is_used = True
        return self._iterate(self._source)

    def _iterate(self, source: Iterable[T]) -> Generator[T]:
        opened = self._started is None
        if opened:
            self.__enter__()
        is_done = False
        try:
            for item in source:
                yield item
                if self._rate_from is None:
                    self.advance()  # which looks at the clock, once
                else:
                    self.completed += 1
            is_done = True
        finally:
            if opened:
                self._close(wait=is_done)

    def advance(self, steps: int = 1) -> None:
        """Count steps that are done.

        Args:
            steps: how many more.
        """
        self.completed += steps
        if self._rate_from is None:
            self._rate_from, self._before_rate = time.perf_counter(), self.completed

    def show(self, **values: Any) -> None:
        """Show values beside the bar, until there are newer ones of the same names.

        Args:
            **values: numbers, arrays (still being computed or not), Variables, strings. They are
                kept, and looked at when the bar is drawn.

        Raises:
            CompileError: in a function that is traced, where there are no values.
        """
        for value in values.values():
            if context.is_tracer(value):
                raise CompileError(_describe_misuse(list(values)))
        self._values.update(values)

    # ------------------------------------------------------------ what there is to see
    @property
    def rate(self) -> float | None:
        """Steps per second since the first one was done; None before the second."""
        steps = self.completed - self._before_rate
        if self._rate_from is None or steps <= 0:
            return None
        return steps / max((self._ended or time.perf_counter()) - self._rate_from, 1e-9)

    @property
    def elapsed(self) -> float:
        """Seconds since it was opened, until it was closed."""
        if self._started is None:
            return 0.0
        return (self._ended or time.perf_counter()) - self._started

    @property
    def shown(self) -> str:
        """The values as strings, as far as they are known without waiting."""
        self._look(wait=False)
        return " ".join(f"{name}={string}" for name, string in self._strings.items())

    def _look(self, *, wait: bool) -> None:
        """Make strings of the values that are there."""
        for name, value in list(self._values.items()):
            string = _format_value(value, wait=wait)
            self._strings[name] = string if string is not None else self._strings.get(name, "...")

    # ------------------------------------------------------------ open and close
    def __enter__(self) -> Progress[T]:
        self._started = time.perf_counter()
        if self._enabled:
            from jaxvars.console.progress_display import close_bar, open_bar

            try:
                open_bar(self)
            except BaseException:
                close_bar(self)  # Ctrl-C on the way: the terminal as it was
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._close(wait=kind is None)

    def _close(self, *, wait: bool) -> None:
        try:
            self._look(wait=wait)
        finally:
            self._ended = time.perf_counter()
            if self.display is not None:
                from jaxvars.console.progress_display import close_bar

                close_bar(self)

    def line(self) -> str:
        """Return the bar as one line.

        >>> bar = progress(total=4, description="training")
        >>> bar.advance(2), bar.show(loss=0.5)
        (None, None)
        >>> bar.line()
        'training 2/4 in 0:00:00, loss=0.5'
        """
        total = "" if self.total is None else f"/{self.total}"
        time = timedelta(seconds=int(self.elapsed))
        done = f"{self.description} {self.completed}{total} in {time}".strip()
        return ", ".join(filter(None, [done, rate_text(self.rate), self.shown]))

    def __repr__(self) -> str:
        return f"<progress: {self.line()}>"


def _as_iterable(source: Any) -> Any:
    if source is None or isinstance(source, Iterable):
        return cast("Any", source)
    try:
        return range(_check_steps(operator.index(source)))
    except TypeError:
        raise TypeError(
            f"jv.progress takes something to iterate over, or a number of steps, not {source!r}."
        ) from None


def _check_steps(steps: int) -> int:
    if steps < 0:
        raise ValueError(f"jv.progress: the number of steps is {steps}, below zero.")
    return steps


# ---------------------------------------------------------------- strings
def _format_value(value: Any, *, wait: bool) -> str | None:
    """Return a value as a string; None if it isn't there yet, or is gone."""
    value = unwrap(value)
    if not isinstance(value, jax.Array):
        return cell_text(value)
    array: Any = value  # `is_ready` is missing in JAX's types
    if array.is_deleted() or not (wait or array.is_ready()):
        return None
    if not (array.is_fully_addressable or array.is_fully_replicated):
        return array_text(array)
    known = np.asarray(array)
    return cell_text(known.item()) if known.size == 1 else array_text(known)


def _describe_misuse(names: list[str]) -> str:
    return (
        f"bar.show({', '.join(f'{name}=...' for name in names)}) at {user_line()} is called while "
        "a function is traced, where there are no values yet. Return the value from the compiled "
        "function, and show what it returns."
    )
