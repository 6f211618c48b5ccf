"""Eager frames that lie over the thread's own while a `with` block is open.

`control/transaction.py` keeps what is assigned in one until the block ends, and
`optimizers/averaged.py` shows averages for variables in one.

Rules this file keeps:
- a frame is one of a thread, and of the coroutine that opened it: blocks that are open in a thread
  end there, in the reverse order of opening. One that does not raises, after it has been taken
  away with all that was opened in it; what another coroutine does meanwhile is refused;
- `with` calls C functions alone, which go on with a generator. CPython looks for signals as a
  Python function begins, so one could end before its first line; a generator goes on inside of
  its `try`. Between the assignment that opens a frame and the `yield`, and from the `finally` to
  the assignment that closes it, nothing is called.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar, TypeAlias, final

from jaxvars.core.cells import Cell
from jaxvars.core.frame import FastPathBlocker, Frame
from jaxvars.core.frames import LOCAL, EagerFrame
from jaxvars.errors import ContextError, out_of_order_error, user_line
from jaxvars.tracing import context
from jaxvars.typing import Array

Block: TypeAlias = Generator[int, Any, None]

_EVAL = context.EVAL


@final
class statement(partial[None]):  # noqa: N801 - used as a statement, `with statement(...)`
    """What `with` runs: a generator, which goes on at the beginning and at the end of the block.

    Both ends call the `min` of what is sent to the generator, by the keys that it yields: None and
    False, and at the end the three arguments of `__exit__`, too. The least key is that of None, so
    None is returned, and an exception goes on.

    Args:
        what: how the block is written.
        run: yields 0 and 1 at the beginning, and at the end 0, 1 and, for the type of an exception
            or None, its last value.
    """

    __slots__ = ()
    __enter__: Any = partial.__call__
    __exit__: Any = partial.__call__

    def __new__(cls, what: str, run: Block) -> statement:
        """Make one of a generator that has not begun."""
        block: Any = _run_once(what, run)
        return super().__new__(cls, min, None, False, key=block.send)


def _run_once(what: str, run: Block) -> Block:
    yield from run
    yield 1
    yield 1
    yield 1
    raise RuntimeError(f"A block is used once: write `with {what}:` each time.")


class Overlay(EagerFrame, ABC):
    """Has values of its own for some cells; the others are those of the frame below.

    Attributes:
        what: how the block is written.
        below: the thread's eager frame before; tapes that are open in one listen to both.
        values: the cells and values, by key.
    """

    what: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.below = below = LOCAL.eager
        if isinstance(below, Overlay):
            below._check_coroutine()
        self.observers, self._seen, self._detour = below.observers, below._seen, below._detour
        self.values: dict[int, tuple[Cell, Array]] = {}
        self._line = user_line()
        self._home: dict[str, Any] = LOCAL.__dict__  # of this thread

    @abstractmethod
    def finish(self) -> None:
        """Do what is to be done at the end of a block that has not raised."""

    def check_saved(self, cells: Collection[Cell]) -> None:
        """Raise if a checkpoint of these cells, saved in the block, would lose a value."""

    def run(self) -> Block:
        """Open the frame, and close it at the end of the block."""
        home, below, blocker = self._home, self.below, FastPathBlocker()
        try:
            blocker.begin()
            _OPENED.set(self)
            LOCAL.eager = LOCAL.frame = self
            yield 0
            yield 1  # the block runs here
            yield 0
            failed = yield 1
            if failed is None:
                self._check_order()
                self.finish()
        finally:
            if home["eager"] is self:
                home["eager"] = home["frame"] = below
            self.values = {}
            blocker.end()
            self._close()

    def _close(self) -> None:
        """Close the frames above this one, if there are any."""
        if any(frame is self for frame in stack(self._home["eager"])):
            self._home["eager"] = self._home["frame"] = self.below
        if _OPENED.get() is self:
            _OPENED.set(self.below if isinstance(self.below, Overlay) else None)

    def is_here(self) -> bool:
        """Return whether the frame is one of this thread."""
        return self._home is LOCAL.__dict__

    def _check_order(self) -> None:
        if not self.is_here() or LOCAL.eager is not self:
            raise out_of_order_error(self.what)

    def _check_coroutine(self) -> None:
        """Raise ContextError if another coroutine has opened the block, and waits in it."""
        if not any(frame is self for frame in stack(_OPENED.get())):
            raise ContextError(
                f"Variables are used at {user_line()} in a coroutine, while another one waits "
                f"inside of `with {self.what}:`, which it opened at {self._line}. They are "
                "as that block has them, for the whole thread. Wait before the block or after "
                f"it:\n    x = await fetch()\n    with {self.what}:\n        step(x)"
            )

    # ------------------------------------------------------------ values
    def get(self, cell: Cell) -> Array:
        """Return the frame's own value, or that of the frame below."""
        self._check_coroutine()
        found = self.values.get(cell.key)
        if found is None or context.current() is not _EVAL:
            value = self.below.get(cell)  # warns where it would become a constant
            return value if found is None else found[1]
        return found[1]

    def peek(self, cell: Cell, *, keep: bool = False) -> Array | None:
        """Return the frame's own value, or that of the frame below."""
        found = self.values.get(cell.key)
        return self.below.peek(cell, keep=keep) if found is None else found[1]

    def take_all(self, cells: Collection[Cell]) -> list[Array]:  # pyright: ignore[reportIncompatibleMethodOverride] - the same
        """Return the values at one moment."""
        self._check_coroutine()
        others = iter(self.below.take_all([c for c in cells if c.key not in self.values]))
        return [self.values[c.key][1] if c.key in self.values else next(others) for c in cells]

    def is_shared(self, cell: Cell) -> bool:
        """Return True: what the frame has may be in the store, too."""
        return True

    look, modify = Frame.look, Frame.modify

    def check_writable(self, cell: Cell) -> None:
        """Raise where the frame below does, too, and in another coroutine."""
        super().check_writable(cell)
        self._check_coroutine()
        self.below.check_writable(cell)

    def _commit(self, cells: Sequence[Cell], new: dict[int, Array], kept: set[int]) -> None:
        self.below._commit(cells, new, kept)


_OPENED: ContextVar[Overlay | None] = ContextVar("opened", default=None)
"""The innermost frame that this thread or coroutine has opened."""


def stack(frame: Frame | None) -> Generator[Frame]:
    """Yield a frame and those below it."""
    while frame is not None:
        yield frame
        frame = frame.below if isinstance(frame, Overlay) else None
