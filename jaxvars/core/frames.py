"""The heart: frames, which answer "what is this variable's value now?".

A variable's *cell* (`core/store.py`) is a name for one value. A **frame** answers what the value
is and takes "it is this from now on". Frames are a stack per thread:

- the *eager* frame at the bottom: values live in the store;
- a *bound* frame holds values it was given (traced ones, mostly) for as long as a function
  runs: code that reads and writes variables becomes `pure(state, *args) -> (out, state)`;
- a *capture* frame does so too, but finds out by itself which cells a function touches.

The verbs: **read** and **write** a cell in the current frame, **create** one. `core/staging.py`
adds **stage**: make a function a jaxpr whose first inputs are the cells it read.

Rules this file keeps:
- a cell never holds a tracer; an exception therefore leaves nothing to restore;
- a frame is written only from the trace it was made in: a write from inside a foreign
  transform (plain jit, grad, vmap, a scan body) would leak a tracer, and raises;
- reads in a frame are seen by the tapes that were opened in it;
- an inner function (a jitted one, a scan body) that JAX traced in a frame holds values that were
  read in it. JAX may use that trace again only while they are right: see `Frame.renew`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.store import (
    NEWS,
    SHARED,
    STORE,
    Cell,
    alone,
    announce,
    be_forked,
    exclusively,
    inherited,
    is_held_elsewhere,
    is_interrupting,
    prove,
    seek,
    stored,
    take,
    take_all,
)
from jaxvars.core.traversal import Path, walk
from jaxvars.devices.device import SCOPES, brought_here
from jaxvars.errors import (
    CreationError,
    ForeignTransformError,
    StaleReadWarning,
    StateError,
    StringVariableError,
    TapeError,
    user_line,
    warn_user,
)
from jaxvars.symbolic.specialize import is_open
from jaxvars.tensors.dtypes import is_string
from jaxvars.tracing import capture, context
from jaxvars.tracing.assigned_read import is_for_tape, reread
from jaxvars.tracing.fork import FORKED, refuse_if_forked
from jaxvars.tracing.interruption import is_interruption

Value: TypeAlias = Any  # a jax.Array, a tracer, or a NumPy array of strings
T = TypeVar("T")
Change: TypeAlias = tuple[Cell, Callable[[Value], Value]]

DETOUR: dict[int, object] = {}
"""Not empty while a frame, a tape or eager mode is in force in any thread: see `Detour`."""

PLACED: list[Callable[[Cell, Value, str], None]] = []
"""Who is told that the eager frame gave a cell a value: what, and "created" or "assigned"."""

TRACING = threading.RLock()
"""Held while user code is traced, so that a body runs once for a signature."""


_EPOCHS = itertools.count(1)


class Detour:
    """Has compiled functions take the slow way, from `begin` to `end`, or until it is gone.

    So no exception leaves them slow, wherever it comes.
    """

    __slots__ = ("__weakref__",)

    def begin(self) -> None:
        """Have them take the slow way."""
        key = id(self)
        DETOUR[key] = weakref.ref(self, lambda _: DETOUR.pop(key, None))

    def end(self) -> None:
        """Let them take the hot path, if nothing else is in its way."""
        DETOUR.pop(id(self), None)


class Owner(ABC):
    """What has a cell: a Variable, or a Signal."""

    __slots__ = ()
    cell: Cell


@final
class Signal(Owner):
    """The owner of a cell that is no variable's: it is threaded like one, but keeps nothing.

    Args:
        name: of what it says.
        idle: what it is when nothing has been said.
        deliver: takes what is written to it outside of a program.
    """

    __slots__ = ("__weakref__", "cell")

    def __init__(self, name: str, idle: np.ndarray, deliver: Callable[[Value], None]) -> None:
        self.cell = Cell(self, context.aval_of(idle), name, None, deliver=deliver)
        STORE[self.cell.key] = idle


def cells_in(root: object) -> Iterator[tuple[Path, Cell]]:
    """Yield the cells of all variables in an object, with their paths."""
    for path, owner in walk(root, Owner):
        yield path, owner.cell


# ---------------------------------------------------------------- frames
class Frame(ABC):
    """Who answers reads and writes now.

    Attributes:
        lifts: whether first values of variables are computed eagerly where they can be.
        trace: the trace that this frame's values belong to.
        observers: the tapes that record in this frame.
    """

    lifts: ClassVar[bool] = True

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.observers: list[Any] = []
        self._detour = Detour()
        self._seen: dict[int, tuple[Value, Value]] = {}
        self._epochs: list[tuple[int | None, Any]] = []

    @abstractmethod
    def get(self, cell: Cell) -> Value:
        """Return the cell's value."""

    def put(self, cell: Cell, value: Value) -> None:
        """Make `value` the cell's value, where several are written one after the other."""
        raise NotImplementedError

    @abstractmethod
    def create(self, cell: Cell, value: Value) -> None:
        """Give a new cell its first value."""

    def read(self, cell: Cell) -> Value:
        """Return the cell's value, and let the tapes see it."""
        return self._observed(cell) if self.observers else self.get(cell)

    def read_all(self, cells: Sequence[Cell]) -> list[Value]:
        """Return the values of several cells at one moment, and let the tapes see them."""
        return list(map(self.read, cells))

    def peek(self, cell: Cell) -> Value | None:
        """Return the cell's value if it is at hand, to be shown: no program or tape reads it."""
        return None

    def write_all(
        self, cells: Sequence[Cell], values: Sequence[Value], held: Sequence[Value] | None = None
    ) -> None:
        """Write several cells; raise where a value would leak out of a transform.

        Args:
            cells: to be written.
            values: one for each. Eagerly, what the caller may hold is copied: he may donate it.
            held: those of the values that he may hold, among others; all of them when None.
        """
        for cell in cells:
            self.check_writable(cell)
        for cell, value in zip(cells, values, strict=True):
            if cell.deliver is None or self.keeps_signals():
                self.put(cell, value)
            else:
                cell.deliver(value)
        self._tell(cells, values)

    def _tell(self, cells: Sequence[Cell], values: Sequence[Value]) -> None:
        """Let the tapes know what has been assigned."""
        for tape in self.observers:
            tape.wrote(cells, values)

    def keeps_signals(self) -> bool:
        """Tell whether a signal may be written here, to go out with the program's results."""
        return False

    def alone(self) -> AbstractContextManager[object]:
        """Return a context for reading variables and writing them as one step."""
        return contextlib.nullcontext()

    def modify(self, cell: Cell, change: Callable[[Value], Value]) -> None:
        """Replace the cell's value by `change(value)`, as one step."""
        self.modify_all((cell, change))

    def modify_all(self, *changes: Change) -> None:
        """Replace the values of cells, all of them as one step."""
        cells = [cell for cell, _ in changes]
        for cell in cells:
            self.check_writable(cell)
        if any(map(moves, cells)) and any(tape.through_assigns for tape in self.observers):
            self.write_all(cells, [change(self.read(cell)) for cell, change in changes], ())
            return
        self._replace(*changes)
        self._tell(cells, [None] * len(cells))

    def _replace(self, *changes: Change) -> None:
        with context.at(self.trace):  # not something that a tape differentiates
            for cell, change in changes:
                self.put(cell, change(self.get(cell)))

    def check_writable(self, cell: Cell) -> None:
        """Raise ForeignTransformError unless we are in this frame's own trace."""
        elsewhere = cell.deliver is None and context.strip(context.current()) is not self.trace
        if elsewhere and not context.put_back():
            raise _foreign_write(cell)

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
    def begin(self, epoch: int | None) -> None:
        """Have JAX use inner functions traced in this epoch again, and no others."""
        memory = context.remembering(epoch)
        memory.__enter__()
        self._epochs.append((epoch, memory))

    def end(self) -> None:
        """Go back to the epoch before."""
        if self._epochs:  # pragma: no branch - none if Ctrl-C came in `begin`
            self._epochs.pop()[1].__exit__(None, None, None)

    def renew(self) -> None:
        """Begin a new epoch, because values change, if an inner function knows the old ones."""
        if self._epochs and self._epochs[-1][0] not in (None, LOCAL.epoch):
            self.end()
            self.begin(LOCAL.epoch)

    def note_inner_read(self) -> None:
        """End the epoch if a variable is being read in an inner function."""
        current_epoch = self._epochs and self._epochs[-1][0] == LOCAL.epoch
        if current_epoch and context.strip(context.current()) is not self.trace:
            LOCAL.epoch = next(_EPOCHS)

    def is_shared(self, cell: Cell) -> bool:
        """Tell whether the cell's value may be known to somebody by another name."""
        return True

    def _observed(self, cell: Cell) -> Value:
        known = self._seen.get(cell.key)
        if known is not None and known[0] is self.get(cell):
            return self._shown(cell, known[0])
        is_shared = self.is_shared(cell)  # before it is held here
        return self._shown(cell, self.get(cell), is_shared=is_shared)

    def _shown(self, cell: Cell, value: Value, *, is_shared: bool = True) -> Value:
        # The tapes know values by identity, so a read must give an object that means this
        # cell and nothing else: two cells, or a cell and a local, may share one array.
        known = self._seen.get(cell.key)
        if known is None or known[0] is not value:
            known = self._seen[cell.key] = value, self._renamed(value) if is_shared else value
        for tape in self.observers:
            tape.saw(cell, known[1])
        return known[1]

    def _renamed(self, value: Value) -> Value:
        if is_string(value.dtype):
            return value
        with context.at(self.trace):
            return context.fresh(value)


@final
class EagerFrame(Frame):
    """The bottom of each thread's stack: values live in `STORE`."""

    def __init__(self) -> None:
        super().__init__(context.EVAL)

    def read(self, cell: Cell) -> Value:
        """Return the value on the device of the open scope, if there is one."""
        if FORKED:
            refuse_if_forked(f"Variable {cell.name!r} is read to compute with it")
        value = self._observed(cell) if self.observers else self.get(cell)
        return brought_here(value) if SCOPES and cell.home is not None else value

    def read_all(self, cells: Sequence[Cell]) -> list[Value]:
        """Return the values; no step of another thread comes between."""
        is_alone = len(cells) < 2 or FORKED or is_interrupting()
        if is_alone or context.strip(context.current()) is not context.EVAL:
            return super().read_all(cells)
        values = take_all(cells)
        if self.observers:
            values = list(map(self._shown, cells, values))
        if SCOPES:
            pairs = zip(cells, values, strict=True)
            values = [x if cell.home is None else brought_here(x) for cell, x in pairs]
        return values

    def get(self, cell: Cell) -> Value:
        """Return the value from `STORE`; warn if it is about to become a constant."""
        if FORKED:
            return inherited(cell)
        if cell.deliver is not None:
            return STORE[cell.key]  # which never changes
        staging = context.current() is not context.EVAL and not is_interrupting()
        if staging and context.is_staging():
            if is_for_tape():
                raise _read_by_kept_rule(cell)
            _warn_stale(cell)
        if NEWS:
            seek([cell])
        return take(cell)

    def peek(self, cell: Cell) -> Value | None:
        """Return the value from `STORE`."""
        is_run = context.strip(context.current()) is context.EVAL
        return self.get(cell) if is_run else take(cell)

    def write_all(
        self, cells: Sequence[Cell], values: Sequence[Value], held: Sequence[Value] | None = None
    ) -> None:
        """Put several values into `STORE`, all or none."""
        if FORKED:
            refuse_if_forked(f"Variable {cells[0].name!r} is written")
        theirs = None if held is None else set(map(id, held))
        kept: set[int] = set()
        pairs: list[tuple[Cell, Value]] = []
        for cell, value in zip(cells, values, strict=True):
            if cell.deliver is not None:
                cell.deliver(value)  # may raise: before anything is changed
                continue
            self.check_writable(cell)
            if context.is_tracer(value):
                raise _foreign_write(cell)
            if theirs is None or id(value) in theirs:
                value = context.copied(value)
            else:
                kept.add(cell.key)
            pairs.append((cell, value))
        if NEWS:
            seek(cells)
        new = {cell.key: at_home(cell, value) for cell, value in pairs}

        def commit() -> None:  # in this order: Ctrl-C may come between
            SHARED.update(kept)
            STORE.update(new)
            SHARED.difference_update(new.keys() - kept)

        exclusively(commit)
        self._tell(cells, values)

    def alone(self) -> AbstractContextManager[object]:
        """Return a context in which no other thread changes what has been read."""
        return alone()

    def _replace(self, *changes: Change) -> None:
        """Replace the values; no other thread's change comes between."""
        cells = [cell for cell, _ in changes]
        for cell in cells:
            if FORKED:
                refuse_if_forked(f"Variable {cell.name!r} is written")
        if NEWS:
            seek(cells)

        def replace() -> None:
            prove([cell.key for cell in cells])
            new = {cell.key: at_home(cell, change(stored(cell))) for cell, change in changes}
            STORE.update(new)

        with context.at(context.EVAL):
            exclusively(replace)

    def create(self, cell: Cell, value: Value) -> None:
        """Put the first value into `STORE`."""
        if context.is_tracer(value) or (
            context.current() is not context.EVAL and context.is_staging()
        ):
            raise CreationError(
                f"Variable {cell.name!r} is created at {user_line()} while a plain JAX transform "
                "(jax.jit, scan, grad, ...) traces the function: its value would be a tracer. "
                "Create it outside, or use @jv.compile, which may create variables on its "
                "first call."
            )
        SHARED.add(cell.key)
        STORE[cell.key] = at_home(cell, value, "created")
        announce(cell)

    def is_shared(self, cell: Cell) -> bool:
        """Tell whether somebody besides `STORE` holds the array."""
        return is_held_elsewhere(cell)


@final
class BoundFrame(Frame):
    """Holds the values of the cells it was given, while a function runs."""

    def __init__(self, values: dict[int, Value], parent: Frame) -> None:
        super().__init__(context.strip(context.current()))
        self.values = values
        self.parent = parent

    def get(self, cell: Cell) -> Value:
        """Return the bound value; a cell that is not bound is read from the frame below."""
        self.note_inner_read()
        return self.values[cell.key] if cell.key in self.values else self.parent.read(cell)

    def peek(self, cell: Cell) -> Value | None:
        """Return the bound value, or that of the frame below."""
        return self.values[cell.key] if cell.key in self.values else self.parent.peek(cell)

    def put(self, cell: Cell, value: Value) -> None:
        """Bind a new value."""
        self.renew()
        self.values[cell.key] = value

    def check_writable(self, cell: Cell) -> None:
        """Raise StateError, too, if the State does not hold the cell."""
        super().check_writable(cell)
        if cell.key not in self.values and cell.deliver is None:
            raise StateError(
                f"Variable {cell.name!r} is written at {user_line()}, but the State that was "
                "passed does not hold it. Make the State of everything that the function "
                "writes, for example jv.State.of(model=model, optimizer=optimizer)."
            )

    def create(self, cell: Cell, value: Value) -> None:
        """Refuse: the State has no place for a new variable."""
        raise CreationError(
            f"Variable {cell.name!r} is created at {user_line()} inside a functionalized "
            "function, whose State has no place for it. Create it before you make the State."
        )


@final
class CaptureFrame(Frame):
    """Finds out which cells a function reads and writes while it is traced.

    Args:
        refuse_creation: why no variable may be created now; None where it may.
    """

    def __init__(self, refuse_creation: str | None) -> None:
        super().__init__(context.strip(context.current()))
        self.refuse_creation = refuse_creation
        self.cells: list[Cell] = []
        self.values: dict[int, Value] = {}
        self.written: dict[int, Cell] = {}
        self.created: list[tuple[Created, Value]] = []
        self._inputs: dict[int, Value] = {}
        self._news: set[int] = set()

    def read(self, cell: Cell) -> Value:
        """Return the cell's value; what interrupts the trace gets the one outside."""
        if is_interrupting_trace():
            return outside(lambda: LOCAL.eager.read(cell))
        return super().read(cell)

    def write_all(
        self, cells: Sequence[Cell], values: Sequence[Value], held: Sequence[Value] | None = None
    ) -> None:
        """Write several cells; what interrupts the trace writes them outside."""
        if is_interrupting_trace():
            if any(map(context.is_tracer, values)):
                raise _interrupting_write(cells[0])
            return outside(lambda: LOCAL.eager.write_all(cells, values, held))
        return super().write_all(cells, values, held)

    def modify_all(self, *changes: Change) -> None:
        """Replace the values of cells; what interrupts the trace does so outside."""
        if is_interrupting_trace():
            return outside(lambda: LOCAL.eager.modify_all(*changes))
        return super().modify_all(*changes)

    def get(self, cell: Cell) -> Value:
        """Return the cell's value; the first time, make it an input of the program."""
        inner = context.strip(context.current())
        if is_for_tape() and inner is not self.trace and type(inner) is type(self.trace):
            raise _read_by_kept_rule(cell)  # JAX would keep a tracer of ours in its program
        self.note_inner_read()
        if cell.key not in self.values:
            self.values[cell.key] = self._input(cell)
        elif cell.key in self._news:
            self._news.discard(cell.key)
            source = self._input(cell)
            with context.at(self.trace):
                self.values[cell.key] = reread(self.values[cell.key], source)
        return self.values[cell.key]

    def peek(self, cell: Cell) -> Value | None:
        """Return the value if the function has read or written the cell."""
        return self.values.get(cell.key)

    def put(self, cell: Cell, value: Value) -> None:
        """Make the value an output of the program."""
        self.renew()
        if is_string(cell.aval.dtype):
            raise _string_in_program(cell)
        self.values[cell.key] = value
        self.written[cell.key] = cell
        if cell.deliver is None and moves(cell):
            self._news.add(cell.key)

    def keeps_signals(self) -> bool:
        """Tell whether we are in this frame's own trace."""
        return context.strip(context.current()) is self.trace

    def _input(self, cell: Cell) -> Value:
        if cell.key not in self._inputs:
            if is_string(cell.aval.dtype):
                raise _string_in_program(cell)
            value = capture.read_variable(self.trace, len(self.cells), cell.aval)
            self._inputs[cell.key] = value
            self.cells.append(cell)
        return self._inputs[cell.key]

    def create(self, cell: Cell, value: Value) -> None:
        """Take note of a new cell and of how its first value is computed."""
        if is_interrupting_trace():
            outside(lambda: LOCAL.eager.create(cell, value))
        elif self.refuse_creation:
            raise CreationError(f"{self.refuse_creation} Variable {cell.name!r}: {user_line()}.")
        elif any(map(is_open, cell.aval.shape)):
            raise CreationError(
                f"Variable {cell.name!r} is created at {user_line()} with a size that is open "
                "while the function is traced. A variable has fixed sizes."
            )
        else:
            made = Created(weakref.ref(cell), cell.key, cell.name, user_line())
            self.created.append((made, value))
            self.values[cell.key] = self._inputs[cell.key] = value


@final
class _Local(threading.local):
    """The current frame of each thread."""

    def __init__(self) -> None:
        self.eager = EagerFrame()
        self.frame: Frame = self.eager
        self.epoch = next(_EPOCHS)  # a thread's own: two must not share values either


LOCAL = _Local()


def _detour_if_forked() -> None:
    be_forked()
    DETOUR[0] = FORKED  # compiled functions take the slow way, which refuses


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has none
    os.register_at_fork(after_in_child=_detour_if_forked)


def lifted(fn: Callable[[], T]) -> T:
    """Run `fn` eagerly even where a function is being traced, if it needs no traced value.

    So an initial value that is drawn from a generator moves that generator on, once, whether
    the variable is created eagerly or by the first call of a compiled function.
    """
    if LOCAL.frame is LOCAL.eager or not LOCAL.frame.lifts:
        return fn()
    try:
        return outside(fn)
    except jax.errors.UnexpectedTracerError:
        return fn()


@final
class entered(Detour):  # noqa: N801 - used as a statement: `with entered(frame)`
    """Make a frame the current one of this thread."""

    __slots__ = ("_inside", "frame", "previous")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._inside = False

    def __enter__(self) -> None:
        self.previous = LOCAL.frame
        self._inside = True
        self.begin()
        self.frame.begin(None if self.frame is LOCAL.eager else LOCAL.epoch)
        LOCAL.frame = self.frame

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Make the frame before the current one again, unless that has been done."""
        if self._inside:
            self._inside = False
            LOCAL.frame = self.previous
            self.end()
            self.frame.end()
            self.previous.renew()


def within(frame: Frame, fn: Callable[[], T]) -> T:
    """Run `fn` in a frame, and leave that even if Ctrl-C comes on the way in or out."""
    scope = entered(frame)
    try:
        with scope:
            return fn()
    finally:
        scope.leave()


def is_interrupting_trace() -> bool:
    """Return whether a signal handler or finalizer runs that came while a function was traced."""
    return LOCAL.frame is not LOCAL.eager and is_interruption(within.__code__)


def outside(fn: Callable[[], T]) -> T:
    """Run `fn` as if no function was being traced."""
    with context.at(context.EVAL):
        return within(LOCAL.eager, fn)


def moves(cell: Cell) -> bool:
    """Tell whether a cell holds something that has a derivative."""
    return jnp.issubdtype(cell.aval.dtype, jnp.inexact)


def at_home(cell: Cell, value: Value, verb: str = "assigned") -> Value:
    """Return the value where the cell was placed, if it was placed anywhere."""
    if cell.home is not None and not context.is_tracer(value) and value.sharding != cell.home:
        value = jax.device_put(value, cell.home)
    for tell in PLACED:
        tell(cell, value, verb)
    return value


@final
@dataclass
class Created:
    """A cell that came to be while a function was traced."""

    ref: weakref.ref[Cell]
    key: int
    name: str
    line: str

    def is_wanting(self) -> bool:
        """Return whether the cell is there and has no value."""
        cell = self.ref()
        return cell is not None and cell.owner() is not None and cell.key not in STORE


# ---------------------------------------------------------------- messages
def _foreign_write(cell: Cell) -> ForeignTransformError:
    return ForeignTransformError(
        f"Variable {cell.name!r} is written at {user_line()} inside a JAX transform that knows "
        "nothing of variables (jax.jit, grad, vmap, or the body of a scan, cond or loop): the "
        "new value would leak out of it. Use @jv.compile instead of jax.jit; for the others, "
        "return the new value and assign it outside, or transform a pure function:\n"
        "    pure = jv.functionalize(f)\n"
        "    result, state = jax.vmap(pure, in_axes=(None, 0))(jv.State.of(model), xs)"
    )


def _interrupting_write(cell: Cell) -> ForeignTransformError:
    return ForeignTransformError(
        f"Variable {cell.name!r} is assigned at {user_line()} by a signal handler or finalizer "
        "that came while a function was traced, and the value would be part of it. Use "
        f"{cell.name}.assign_add or a @jv.compile'd function, or set a flag and assign after the "
        "call."
    )


def _warn_stale(cell: Cell) -> None:
    warn_user(
        f"Variable {cell.name!r} was read while a plain JAX transform (jax.jit, scan, cond, ...) "
        "traced the function. Its value becomes a constant of that program: later assignments "
        "will not reach it. Use @jv.compile instead of jax.jit, or read it outside and pass the "
        "value as an argument.",
        StaleReadWarning,
    )


def _read_by_kept_rule(cell: Cell) -> TapeError:
    return TapeError(
        f"Variable {cell.name!r} is read at {user_line()} by the rule of a derivative, for a "
        "function that is called inside jax.jit, or a loop or branch of JAX's own. JAX runs the "
        "rule once and keeps the result: later assignments would not reach it. Use @jv.compile, "
        "jv.scan, jv.cond or jv.while_loop instead, or pass the value to the function as an "
        "argument."
    )


def _string_in_program(cell: Cell) -> StringVariableError:
    return StringVariableError(
        f"Variable {cell.name!r} holds text and is used at {user_line()} inside a compiled "
        "function, where there are only numbers. Read it outside and pass the text, which "
        f"is then a static argument: step(x, {cell.name}.item())."
    )
