"""The heart: frames, which answer "what is this variable's value now?".

A variable's *cell* (`core/cells.py`) is a name for one value. A **frame** answers what the value
is and takes "it is this from now on". Frames are a stack per thread:

- the *eager* frame at the bottom: values are in the store (`control/transaction.py` puts another
  eager frame on it for as long as a transaction is open);
- a *bound* frame holds values it was given (traced ones, mostly) for as long as a function
  runs: code that reads and writes variables becomes `pure(state, *args) -> (out, state)`;
- a *capture* frame does so too, but finds out by itself which cells a function touches.

The verbs: **read** and **write** a cell in the current frame, **create** one. `core/staging.py`
adds **stage**: make a function a jaxpr whose first inputs are the cells it read.

Rules this file keeps:
- a cell never holds a tracer; an exception therefore leaves nothing to restore;
- a frame is written only from the trace it was made in: a write from inside a foreign
  transform (plain jit, grad, vmap, a scan body) would leak a tracer, and raises;
- those of `core/frame.py`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar, final

import jax

from jaxvars.core import store
from jaxvars.core.cells import CURRENT, SHARED, STORE, UNPROVEN, Cell
from jaxvars.core.failures import failure_of, prove
from jaxvars.core.frame import (
    CREATED,
    EPOCH,
    FRESH,
    TRACING,
    Change,
    Created,
    FastPathBlocker,
    Frame,
    Fresh,
    to_sharding,
)
from jaxvars.core.store import exchange, look, take
from jaxvars.errors import (
    CreationError,
    creation_in_transform_error,
    foreign_write_error,
    not_in_state_error,
    read_by_kept_rule_error,
    user_line,
    warn_stale,
)
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import capture, context
from jaxvars.tracing.assigned_read import is_for_tape, reread
from jaxvars.tracing.guards import GUARDS, READ, READ_AS, SHOW, TAKE, WRITE, ask, read_as
from jaxvars.typing import Array

T = TypeVar("T")

_EVAL = context.EVAL


class EagerFrame(Frame):
    """The bottom of each thread's stack: values are in `STORE`."""

    take_all = staticmethod(store.take_all)

    def __init__(self) -> None:
        super().__init__(context.EVAL)

    def read(self, cell: Cell, doing: str = READ) -> Array:
        """Return the value, or what it is read as now."""
        if GUARDS and ask(doing, (cell,)):
            return self.get(cell)
        value = self._read_observed(cell) if self.observers else self.get(cell)
        return read_as(cell, value) if READ_AS else value

    def look(self, cell: Cell, *, wait: bool = True) -> Array:
        """Return the value without a mark that has the next step copy it, where that can be."""
        if self.observers or READ_AS or GUARDS or context.place(None) is not _EVAL:
            return self.read(cell, READ if wait else SHOW)
        wait = wait and CURRENT[0] is not None  # else no step has left it behind
        value = look(cell)
        return value if value is not None and not (wait and failure_of(value)) else self.read(cell)

    def read_all(self, cells: Sequence[Cell]) -> list[Array]:
        """Return the values; no step of another thread comes between."""
        if GUARDS:
            ask(READ, cells)
        if len(cells) < 2 or store.is_interrupting() or not context.is_eager():
            return super().read_all(cells)
        values = self.take_all(cells)
        if self.observers:
            values = list(map(self._show_to_tapes, cells, values))
        return list(map(read_as, cells, values)) if READ_AS else values

    def get(self, cell: Cell) -> Array:
        """Return the value from `STORE`; warn if it is about to become a constant."""
        if cell.deliver is not None:
            return STORE[cell.key]  # which never changes
        elsewhere = context.place(None) is not _EVAL and not store.is_interrupting()
        if elsewhere and context.is_staging():
            if is_for_tape():
                raise read_by_kept_rule_error(cell)
            warn_stale(cell, context.strip(context.current()))
        if GUARDS:
            ask(TAKE, (cell,))
        return take(cell)

    def peek(self, cell: Cell, *, keep: bool = False) -> Array | None:
        """Return the value from where it is."""
        if GUARDS:
            ask(SHOW, (cell,))
        value = None if keep else look(cell)
        return take(cell) if value is None else value

    def write_all(
        self,
        cells: Sequence[Cell],
        values: Sequence[Array],
        held: Sequence[Array] | Fresh | None = None,
    ) -> None:
        """Put several values into `STORE`, all or none."""
        if GUARDS:
            ask(WRITE, cells)
        theirs = None if held is None else set(map(id, () if held is FRESH else held))
        kept: set[int] = set()
        pairs: list[tuple[Cell, Array]] = []
        for cell, value in zip(cells, values, strict=True):
            if cell.deliver is not None:
                cell.deliver(value)  # may raise: before anything is changed
                continue
            self.check_writable(cell)
            if context.is_tracer(value):
                raise foreign_write_error(cell)
            if theirs is None or id(value) in theirs:
                value = context.copied(value)
            elif held is not FRESH:
                kept.add(cell.key)
            pairs.append((cell, value))
        new = {cell.key: to_sharding(cell, value) for cell, value in pairs}
        self._commit([cell for cell, _ in pairs], new, kept)
        self._tell(cells, values)

    def _commit(self, cells: Sequence[Cell], new: dict[int, Array], kept: set[int]) -> None:
        store.commit(new, kept)

    def alone(self) -> AbstractContextManager[object]:
        """Return a context in which no other thread changes what has been read, or traces."""
        return nullcontext() if store.is_interrupting() else _alone()

    def modify(
        self, cell: Cell, change: Callable[[Array], Array], *, is_partial: bool = False
    ) -> None:
        """Replace the value in `STORE`, where nothing else has to be known or told."""
        change = cell.keep_shape(change)
        told = self.observers or GUARDS
        if told or context.place(None) is not _EVAL or not exchange(cell, change):
            self.modify_all((cell, change), is_partial=is_partial)

    def _replace(self, *changes: Change) -> None:
        """Replace the values; no other thread's change comes between."""
        cells = [cell for cell, _ in changes]
        if GUARDS:
            ask(WRITE, cells)
        keys = [cell.key for cell in cells]

        def changed(old: Iterable[Array]) -> dict[int, Array]:
            pairs = zip(changes, old, strict=True)
            return {cell.key: to_sharding(cell, change(x)) for (cell, change), x in pairs}

        def change_in_store() -> None:
            prove(keys)
            STORE.update(changed(map(store.stored, cells)))

        with context.at(context.EVAL):
            if not store.replace(
                keys, lambda old: None if any(map(failure_of, old)) else changed(old)
            ):
                store.exclusively(change_in_store, None if UNPROVEN else keys)

    def check_creatable(self, cell: Cell) -> None:
        """Raise CreationError where JAX stages a function."""
        if context.current() is not context.EVAL and context.is_staging():
            raise creation_in_transform_error(cell.name)

    def create(self, cell: Cell, value: Array) -> None:
        """Put the first value into `STORE`; nothing else holds it, but a tape that recorded it."""
        self.check_creatable(cell)
        if context.is_tracer(value):
            raise creation_in_transform_error(cell.name)
        if context.place(None) is not _EVAL:
            SHARED.add(cell.key)
        STORE[cell.key] = to_sharding(cell, value, "created")
        for tell in CREATED:
            tell(cell)

    def is_shared(self, cell: Cell) -> bool:
        """Return whether anything besides `STORE` holds the array."""
        return store.is_held_elsewhere(cell)


@contextmanager
def _alone() -> Generator[None]:
    # In this order: a function that is traced may draw a first value, which is a write.
    with TRACING, store.alone():
        yield


@final
class BoundFrame(Frame):
    """Holds the values of the cells it was given, while a function runs, and which it uses."""

    def __init__(self, values: dict[int, Array], parent: Frame) -> None:
        super().__init__(context.strip(context.current()))
        self.values, self.parent = values, parent
        self.used: dict[int, Cell] = {}

    def get(self, cell: Cell) -> Array:
        """Return the bound value; a cell that is not bound is read from the frame below."""
        self.used[cell.key] = cell
        self.note_inner_read()
        return self.values[cell.key] if cell.key in self.values else self.parent.read(cell)

    def peek(self, cell: Cell, *, keep: bool = False) -> Array | None:
        """Return the bound value, or that of the frame below."""
        held = self.values.get(cell.key)
        return self.parent.peek(cell, keep=keep) if held is None else held

    def put(self, cell: Cell, value: Array) -> None:
        """Bind a new value."""
        self.renew()
        self.used[cell.key], self.values[cell.key] = cell, value

    def check_writable(self, cell: Cell) -> None:
        """Raise StateError, too, if the State does not hold the cell."""
        super().check_writable(cell)
        if cell.key not in self.values and cell.deliver is None:
            raise not_in_state_error(cell)

    def create(self, cell: Cell, value: Array) -> None:
        """Refuse."""
        self.check_creatable(cell)

    def check_creatable(self, cell: Cell) -> None:
        """Refuse: the State has no place for a new variable."""
        raise CreationError(
            f"Variable {cell.name!r} is created at {user_line()} inside a functionalized function. "
            "Create it before the State (those of an optimizer: optimizer.build(model))."
        )


@final
class CaptureFrame(Frame):
    """Finds out which cells a function reads and writes while it is traced.

    Args:
        refuse_creation: why no variable may be created now; None where it may.
        outer: the trace in which the function is traced.
    """

    def __init__(self, refuse_creation: str | None, outer: Any) -> None:
        super().__init__(context.strip(context.current()))
        self.parent, self.outer = LOCAL.frame, outer
        self.refuse_creation = refuse_creation
        self.cells: list[Cell] = []
        self.values: dict[int, Array] = {}
        self.written: dict[int, Cell] = {}
        self.created: list[tuple[Created, Array]] = []
        self._inputs: dict[int, Array] = {}
        self._news: set[int] = set()

    def get(self, cell: Cell) -> Array:
        """Return the cell's value; the first time, make it an input of the program."""
        inner = context.strip(context.current())
        if is_for_tape() and inner is not self.trace and type(inner) is type(self.trace):
            # JAX would keep a tracer of ours in its program.
            raise read_by_kept_rule_error(cell)
        self.note_inner_read()
        if cell.key not in self.values:
            self.values[cell.key] = self._input(cell)
        elif cell.key in self._news:
            self._news.discard(cell.key)
            source = self._input(cell)
            with context.at(self.trace):
                self.values[cell.key] = reread(self.values[cell.key], source)
        return self.values[cell.key]

    def peek(self, cell: Cell, *, keep: bool = False) -> Array | None:
        """Return the value if the function has read or written the cell."""
        return self.values.get(cell.key)

    def put(self, cell: Cell, value: Array) -> None:
        """Make the value an output of the program."""
        self.renew()
        cell.check_staged()
        self.values[cell.key] = value
        self.written[cell.key] = cell
        if is_inexact(value):
            self._news.add(cell.key)

    def keeps_signals(self) -> bool:
        """Return whether we are in this frame's own trace."""
        return context.strip(context.current()) is self.trace

    def _input(self, cell: Cell) -> Array:
        if cell.key not in self._inputs:
            cell.check_staged()
            aval = cell.form(self.parent)
            value = capture.read_variable(self.trace, len(self.cells), aval)
            self._inputs[cell.key] = value
            self.cells.append(cell)
        return self._inputs[cell.key]

    def check_creatable(self, cell: Cell) -> None:
        """Raise CreationError here, before something keeps the variable, if one below would."""
        if self.refuse_creation:
            raise CreationError(f"{self.refuse_creation} Variable {cell.name!r}: {user_line()}.")
        with context.at(self.outer):
            self.parent.check_creatable(cell)

    def create(self, cell: Cell, value: Array) -> None:
        """Take note of a new cell and of how its first value is computed."""
        self.check_creatable(cell)
        if any(type(size) is not int for size in value.shape):
            raise CreationError(
                f"Variable {cell.name!r} is created at {user_line()} with a size that is open "
                "while the function is traced. A variable has fixed sizes."
            )
        made = Created(weakref.ref(cell), cell.name, user_line())
        if not context.is_tracer(value):
            made.first, value = value, self._rename(value)
        self.created.append((made, value))
        self.values[cell.key] = self._inputs[cell.key] = value


@final
class _Local(threading.local):
    """The current frame of each thread."""

    def __init__(self) -> None:
        self.bottom = self.eager = EagerFrame()  # not the same in a transaction
        self.frame: Frame = self.eager


LOCAL = _Local()


def lifted(fn: Callable[[], T]) -> T:
    """Run `fn` eagerly even where a function is being traced, if it needs no traced value.

    So an initial value that is drawn from a generator advances that generator, once, whether
    the variable is created eagerly or by the first call of a compiled function.
    """
    if LOCAL.frame is LOCAL.eager or not LOCAL.frame.lifts:
        return fn()
    try:
        return outside(fn)
    except jax.errors.UnexpectedTracerError:
        return fn()


@final
class entered(FastPathBlocker):  # noqa: N801 - used as a statement: `with entered(frame)`
    """Make a frame the current one of this thread."""

    __slots__ = ("_inside", "frame", "previous")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._inside = False

    def __enter__(self) -> None:
        self.previous = LOCAL.frame
        self._inside = True
        self.begin()
        self.frame.begin_epoch(None if self.frame is LOCAL.eager else EPOCH.current)
        LOCAL.frame = self.frame

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Make the frame before the current one again, unless that has been done."""
        if self._inside:
            self._inside = False
            LOCAL.frame = self.previous
            self.end()
            self.frame.end_epoch()
            self.previous.renew()


def within(frame: Frame, fn: Callable[[], T]) -> T:
    """Run `fn` in a frame, and leave that even if Ctrl-C comes on the way in or out."""
    scope = entered(frame)
    try:
        with scope:
            return fn()
    finally:
        scope.leave()


def is_traced() -> bool:
    """Return whether code runs in a compiled function, a pure one or a JAX transform."""
    return LOCAL.frame is not LOCAL.eager or not context.is_eager()


def is_staged() -> bool:
    """Return whether code runs in a compiled or pure function, or JAX makes a program of it."""
    return LOCAL.frame is not LOCAL.eager or context.is_staging()


def outside(fn: Callable[[], T]) -> T:
    """Run `fn` as if no function was being traced."""
    with context.at(context.EVAL):
        return within(LOCAL.eager, fn)
