"""What a frame is: it answers "what is this variable's value now?", and takes a new one.

Rules this file keeps: reads in a frame are seen by the tapes that were opened in it; an inner
function (a jitted one, a scan body) that JAX traced in a frame holds values that were read in it.
JAX may use that trace again only while they are right: see `Frame.renew`.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias, final

import jax
import numpy as np

from jaxvars.core.cells import STORE, Cell, FixedCell
from jaxvars.errors import ShapeError, called, foreign_write_error, user_line
from jaxvars.objects.traversal import Path, walk
from jaxvars.tensors.dtypes import dtype_error, is_inexact
from jaxvars.tracing import context
from jaxvars.tracing.guards import READ, SHOW
from jaxvars.typing import Array, Aval

Change: TypeAlias = tuple[Cell, Callable[[Array], Array]]

FAST_PATH_BLOCKERS: dict[int, object] = {}
"""Not empty while a frame, a tape or eager mode is in force in a thread: see `FastPathBlocker`."""

PLACED: list[Callable[[Cell, Array, str], None]] = []
"""Callbacks for when the eager frame sets a cell's value: which, and "created" or "assigned"."""

CREATED: list[Callable[[Cell], None]] = []
"""Callbacks for when a cell has got its first value."""


@final
class Fresh(enum.Enum):
    """The type of `FRESH`."""

    FRESH = enum.auto()


FRESH: Final = Fresh.FRESH
"""Said in `write_all` of values that nothing else holds."""

TRACING = threading.RLock()
"""Held while user code is traced, so that a body runs once for a signature."""


_EPOCHS = itertools.count(1)


class _Epoch(threading.local):
    """What tells inner traces of JAX's apart by the values that they hold, in each thread.

    Each thread has a separate epoch: two must not share values either.
    """

    def __init__(self) -> None:
        self.current = next(_EPOCHS)


EPOCH = _Epoch()


class FastPathBlocker:
    """Has compiled functions take the slow way, from `begin` to `end`, or until it is gone.

    So no exception leaves them slow, wherever it comes.
    """

    __slots__ = ("__weakref__",)

    def begin(self) -> None:
        """Have them take the slow way."""
        key = id(self)
        FAST_PATH_BLOCKERS[key] = weakref.ref(self, lambda _: FAST_PATH_BLOCKERS.pop(key, None))

    def end(self) -> None:
        """Let them take the fast path, if nothing else is in its way."""
        FAST_PATH_BLOCKERS.pop(id(self), None)


@final
class Switch(FastPathBlocker):
    """A setting of this process; while it is on, compiled functions take the slow way."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False

    def set(self, on: bool) -> None:
        """Switch it on or off, in all threads."""
        self.on = on
        self.begin() if on else self.end()


class Owner(ABC):
    """What has a cell: a Variable, or a Signal."""

    __slots__ = ()
    _cell: Cell


@final
class Signal(Owner):
    """The owner of a cell that is not a variable's: it is threaded like one, but keeps nothing.

    Args:
        name: of what it says.
        idle: what it is when nothing has been said.
        deliver: takes what is written to it outside of a program.
    """

    __slots__ = ("__weakref__", "_cell")

    def __init__(self, name: str, idle: np.ndarray, deliver: Callable[[Array], None]) -> None:
        self._cell = FixedCell(self, context.aval_of(idle), name, None, deliver=deliver)
        STORE[self._cell.key] = idle


def cells_in(root: object) -> Iterator[tuple[Path, Cell]]:
    """Yield the cells of all variables in an object, with their paths."""
    for path, owner in walk(root, Owner):
        yield path, owner._cell


def check_dtype(cell: Cell, value: Array) -> None:
    """Raise DtypeError unless a value has the cell's dtype: where 64 bits are off, JAX cuts."""
    if value.dtype != cell.dtype:
        raise dtype_error(cell, cell.dtype, str(value.dtype))


def to_sharding(cell: Cell, value: Array, verb: str = "assigned") -> Array:
    """Return a value of the cell's dtype where the cell was placed, if it was placed anywhere."""
    if value.dtype is not cell.dtype:
        check_dtype(cell, value)
    chosen = cell.sharding
    if chosen is not None and not context.is_tracer(value) and value.sharding != chosen:
        value = jax.device_put(value, chosen)
    for tell in PLACED:
        tell(cell, value, verb)
    return value


def form_of(value: Array | np.ndarray) -> Aval:
    """Return the shape and dtype of a value, as a strongly typed one."""
    if isinstance(value, np.ndarray):  # on the host: JAX may have no such dtype
        return jax.ShapeDtypeStruct(value.shape, value.dtype)
    return context.aval_of(value)


def reshaped_error(cell: Cell) -> ShapeError:
    return ShapeError(
        f"Another thread gave variable {called(cell)!r} a value of another shape while it was used "
        f"at {user_line()}; nothing has changed. Use it again."
    )


# ---------------------------------------------------------------- frames
class Frame(ABC):
    """What answers reads and writes now.

    Attributes:
        lifts: whether first values of variables are computed eagerly where they can be.
        is_plan: whether what is traced in it is only planned, and may be for another mesh.
        trace: the trace that this frame's values belong to.
        observers: the tapes that record in this frame.
        parent: the frame below, of one that does not know all values.
    """

    lifts: ClassVar[bool] = True
    is_plan: ClassVar[bool] = False
    parent: Frame

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.observers: list[Any] = []
        self._detour = FastPathBlocker()
        self._seen: dict[int, tuple[Array, Array]] = {}
        self._epochs: list[tuple[int | None, Any]] = []

    @abstractmethod
    def get(self, cell: Cell) -> Array:
        """Return the cell's value."""

    def put(self, cell: Cell, value: Array) -> None:
        """Make `value` the cell's value, where several are written one after the other."""
        raise NotImplementedError

    @abstractmethod
    def create(self, cell: Cell, value: Array) -> None:
        """Give a new cell its first value."""

    def check_creatable(self, cell: Cell) -> None:  # noqa: B027 - nothing to refuse
        """Raise CreationError if a cell made in a frame above could get no value in this one."""

    def postpone(self, give: Callable[[], None]) -> None:  # noqa: B027 - they are kept
        """Take note of what gives new cells their first values, if these are not kept here."""

    def read(self, cell: Cell, doing: str = READ) -> Array:
        """Return the cell's value, and let the tapes see it.

        Args:
            cell: whose value.
            doing: what guards are told, where they are asked.
        """
        return self._read_observed(cell) if self.observers else self.get(cell)

    def look(self, cell: Cell, *, wait: bool = True) -> Array:
        """Return the cell's value to be used at once; as `read`, but not to be kept or returned.

        Args:
            cell: whose value.
            wait: whether to wait until it is computed. If not, the caller computes nothing with
                it, and finds out itself whether it could be computed.
        """
        return self.read(cell, READ if wait else SHOW)

    def read_all(self, cells: Sequence[Cell]) -> list[Array]:
        """Return the values of several cells at one moment, and let the tapes see them."""
        return list(map(self.read, cells))

    def peek(self, cell: Cell, *, keep: bool = False) -> Array | None:
        """Return the cell's value if it is available, to be shown: no program or tape reads it.

        Args:
            cell: whose value.
            keep: it may be kept; else it is used at once, as `look` says.
        """
        return None

    def write_all(
        self,
        cells: Sequence[Cell],
        values: Sequence[Array],
        held: Sequence[Array] | Fresh | None = None,
    ) -> None:
        """Write several cells; raise where a value would leak out of a transform.

        Args:
            cells: to be written.
            values: one for each. Eagerly, what the caller may hold, and donate, is copied.
            held: those of the values that the caller may hold, among others; all of them when None.
                `FRESH` if nothing else holds any of them, the results of a program included.
        """
        for cell, value in zip(cells, values, strict=True):
            self.check_writable(cell)
            check_dtype(cell, value)
        for cell, value in zip(cells, values, strict=True):
            if cell.deliver is None or self.keeps_signals():
                self.put(cell, value)
            else:
                cell.deliver(value)
        self._tell(cells, values)

    def _tell(
        self,
        cells: Sequence[Cell],
        values: Sequence[Array | Callable[[Array], Array]],
        *,
        is_partial: bool = False,
    ) -> None:
        """Let the tapes know what has been assigned, or what made it of the value before."""
        for tape in self.observers:
            tape._wrote(cells, values, is_partial)

    def form(self, cell: Cell) -> Aval:
        """Return the shape and dtype of the value now of a cell of open shape."""
        value = self.peek(cell)
        return form_of(self._input(cell) if value is None else value)

    def _input(self, cell: Cell) -> Array:
        """Return the value that a cell has when the program begins that is being traced."""
        return self.parent._input(cell)

    def keeps_signals(self) -> bool:
        """Return whether a signal may be written here, to go out with the program's results."""
        return False

    def alone(self) -> AbstractContextManager[object]:
        """Return a context for reading variables and writing them as one step."""
        return contextlib.nullcontext()

    def modify(
        self, cell: Cell, change: Callable[[Array], Array], *, is_partial: bool = False
    ) -> None:
        """Replace the cell's value by `change(value)`, as one step.

        Args:
            cell: to be changed.
            change: makes the new value of the old one.
            is_partial: whether it replaces a part of it, and keeps the rest.
        """
        self.modify_all((cell, cell.keep_shape(change)), is_partial=is_partial)

    def modify_all(self, *changes: Change, is_partial: bool = False) -> None:
        """Replace the values of cells, all of them as one step."""
        cells = [cell for cell, _ in changes]
        for cell in cells:
            self.check_writable(cell)
        follows = any(tape.through_assigns for tape in self.observers)
        if follows and any(is_inexact(cell.aval) for cell in cells):
            self.write_all(cells, [change(self.read(cell)) for cell, change in changes], ())
            return
        self._replace(*changes)
        self._tell(cells, [change for _, change in changes], is_partial=is_partial)

    def _replace(self, *changes: Change) -> None:
        with context.at(self.trace):  # not something that a tape differentiates
            new = [(cell, change(self.get(cell))) for cell, change in changes]
            for cell, value in new:
                check_dtype(cell, value)
            for cell, value in new:
                self.put(cell, value)

    def check_writable(self, cell: Cell) -> None:
        """Raise ForeignTransformError unless we are in this frame's own trace."""
        elsewhere = cell.deliver is None and context.strip(context.current()) is not self.trace
        if elsewhere and not context.put_back():
            raise foreign_write_error(cell)

    def observe(self, tape: Any) -> None:
        """Let `tape` see the reads from now on."""
        self.renew()
        self.observers.append(tape)
        self._detour.begin()

    def unobserve(self, tape: Any) -> None:
        """Let `tape` see no more reads, if it does."""
        try:
            self._forget(tape)
        # Ctrl-C: again, or compiled functions would stay slow
        except BaseException:  # pragma: no cover - sweeps of interrupts take coverage's place
            self._forget(tape)
            raise

    def _forget(self, tape: Any) -> None:
        if tape in self.observers:
            self.observers.remove(tape)
        if not self.observers:
            self._detour.end()
            self._seen.clear()

    # An epoch is a time in which inner functions traced by JAX may be used again. One is over,
    # for all frames of the thread, when a variable has been read in an inner function; the
    # frame it was read in goes on with it until the value changes.
    def begin_epoch(self, epoch: int | None) -> None:
        """Have JAX use inner functions traced in this epoch again, and no others."""
        memory = context.trace_cache_key(epoch)
        memory.__enter__()
        self._epochs.append((epoch, memory))

    def end_epoch(self) -> None:
        """Go back to the epoch before."""
        if self._epochs:  # pragma: no branch - none if Ctrl-C came in `begin_epoch`
            self._epochs.pop()[1].__exit__(None, None, None)

    def renew(self) -> None:
        """Begin a new epoch, because values change, if an inner function knows the old ones."""
        if self._epochs and self._epochs[-1][0] not in (None, EPOCH.current):
            self.end_epoch()
            self.begin_epoch(EPOCH.current)

    def note_inner_read(self) -> None:
        """End the epoch if a variable is being read in an inner function."""
        current_epoch = self._epochs and self._epochs[-1][0] == EPOCH.current
        if current_epoch and context.strip(context.current()) is not self.trace:
            EPOCH.current = next(_EPOCHS)

    def is_shared(self, cell: Cell) -> bool:
        """Return whether the cell's value may be referenced by another name."""
        return True

    def _read_observed(self, cell: Cell) -> Array:
        known = self._seen.get(cell.key)
        if known is not None and known[0] is self.get(cell):
            return self._show_to_tapes(cell, known[0])
        is_shared = self.is_shared(cell)  # before it is held here
        return self._show_to_tapes(cell, self.get(cell), is_shared=is_shared)

    def _show_to_tapes(self, cell: Cell, value: Array, *, is_shared: bool = True) -> Array:
        # The tapes know values by identity, so a read must give an object that means this
        # cell and nothing else: two cells, or a cell and a local, may share one array.
        known = self._seen.get(cell.key)
        if known is None or known[0] is not value:
            known = self._seen[cell.key] = value, self._rename(value) if is_shared else value
        for tape in self.observers:
            tape._saw(cell, known[1])
        return known[1]

    def _rename(self, value: Array) -> Array:
        if isinstance(value, np.ndarray):  # on the host, where it never changes
            return value
        with context.at(self.trace):
            return context.fresh(value)


@final
@dataclass
class Created:
    """A cell that came to be while a function was traced.

    Attributes:
        first: its first value, if that is known before the program runs; nothing else holds it.
    """

    ref: weakref.ref[Cell]
    name: str
    line: str
    first: Array | None = None

    def is_wanting(self) -> bool:
        """Return whether the cell is there and has no value."""
        cell = self.ref()
        return cell is not None and cell.owner() is not None and cell.key not in STORE
