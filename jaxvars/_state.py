"""The heart: cells, frames, `State` and `functionalize`.

A *cell* is a name for one value. Its value is never kept in the cell: a **frame** answers
"what is it now?" and takes "it is this from now on". Frames are a stack per thread:

- the *eager* frame at the bottom keeps values in `STORE`, one dict from cell key to array;
- a *bound* frame holds values it was given (traced ones, mostly) for as long as a function
  runs: code that reads and writes variables becomes `pure(state, *args) -> (out, state)`;
- a *capture* frame does so too, but finds out by itself which cells a function touches.

The verbs: **read** and **write** a cell in the current frame, **create** one, **stage** a
function into a jaxpr whose first inputs are the cells it read.

Rules this file keeps:
- a cell never holds a tracer, nor a value; an exception therefore leaves nothing to restore;
- a frame is written only from the trace it was made in: a write from inside a foreign
  transform (plain jit, grad, vmap, a scan body) would leak a tracer, and raises;
- every change of `STORE` is one C call, so that it happens or does not, by whoever has put
  itself into `FLIGHT`: it is tested and set without a call in between, which CPython does not
  interrupt (it runs signal handlers and switches threads at calls and backward jumps);
- user code never runs while `FLIGHT` is taken; `TRACING` is taken first where both are.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, final

import jax
import numpy as np

from jaxvars import _trace
from jaxvars._display import array_text
from jaxvars._tensor import is_string
from jaxvars._walk import Path, walk
from jaxvars.errors import (
    CreationError,
    ForeignTransformError,
    StaleReadWarning,
    StateError,
    StringVariableError,
    UninitializedError,
    user_line,
    warn_user,
)

Value: TypeAlias = Any  # a jax.Array, a tracer, or a NumPy array of strings

T = TypeVar("T")

STORE: dict[int, Value] = {}
"""The eager values, by cell key."""

SHARED: set[int] = set()
"""Keys whose value somebody was given or gave: it must be copied before it is donated."""

FLIGHT = [False]
"""Whether a compiled step, or a write, has the values of `STORE` in hand now."""

HOT_PATH_FILE = "<a compiled step of jaxvars>"
"""The file name of code that takes `FLIGHT` for itself."""

DETOUR: list[None] = []
"""Not empty while a frame, a tape or eager mode is in force in any thread."""

TRACING = threading.RLock()
"""Held while user code is traced, so that a body runs once for a signature."""

_WAITING = threading.RLock()

_KEYS = itertools.count(1)
_BOX = {0: object()}
_ALONE = sys.getrefcount(_BOX[0])  # what an object counts that one dict holds and nobody else


@final
class Cell:
    """A name for one value: what frames and states know of a variable.

    Attributes:
        key: a number that is never used again.
        aval: shape and dtype, for life.
        home: the sharding that it was placed with, or None.
        name: what people call it.
        owner: a weak reference to the Variable whose cell this is.
    """

    __slots__ = ("__weakref__", "aval", "home", "key", "name", "owner")

    def __init__(self, owner: object, aval: Any, name: str, home: Any) -> None:
        self.key = next(_KEYS)
        self.aval = aval
        self.home = home
        self.name = name
        self.owner = weakref.ref(owner)

    def __del__(
        self,
        pop: Callable[..., Any] = STORE.pop,  # bound here: globals are gone at interpreter exit
        discard: Callable[..., Any] = SHARED.discard,
    ) -> None:
        # A step in flight holds the cells that it will write, so this comes after it.
        pop(self.key, None)
        discard(self.key)


class Owner(ABC):
    """What has a cell: the one subclass is Variable."""

    __slots__ = ()
    cell: Cell


def cells_in(root: object) -> Iterator[tuple[Path, Cell]]:
    """Yield the cells of all variables in an object, with their paths."""
    for path, owner in walk(root, Owner):
        yield path, owner.cell


# ---------------------------------------------------------------- frames
class Frame(ABC):
    """Who answers reads and writes now.

    Attributes:
        trace: the trace that this frame's values belong to.
        observers: the tapes that record in this frame.
    """

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.observers: list[Any] = []
        self._seen: dict[int, tuple[Value, Value]] = {}

    @abstractmethod
    def get(self, cell: Cell) -> Value:
        """Return the cell's value."""

    @abstractmethod
    def put(self, cell: Cell, value: Value) -> None:
        """Make `value` the cell's value."""

    @abstractmethod
    def create(self, cell: Cell, value: Value) -> None:
        """Give a new cell its first value."""

    def read(self, cell: Cell) -> Value:
        """Return the cell's value, and let the tapes see it."""
        return self._observed(cell) if self.observers else self.get(cell)

    def write(self, cell: Cell, value: Value) -> None:
        """Make `value` the cell's value; raise where it would leak out of a transform."""
        self.check_writable(cell)
        self.put(cell, value)

    def write_all(self, cells: Sequence[Cell], values: Sequence[Value]) -> None:
        """Write several cells."""
        for cell in cells:
            self.check_writable(cell)
        for cell, value in zip(cells, values, strict=True):
            self.put(cell, value)

    def modify(self, cell: Cell, change: Callable[[Value], Value]) -> None:
        """Replace the cell's value by `change(value)`, as one step."""
        self.check_writable(cell)
        with _trace.at(self.trace):  # not something that a tape differentiates
            self.put(cell, change(self.get(cell)))

    def check_writable(self, cell: Cell) -> None:
        """Raise ForeignTransformError unless we are in this frame's own trace."""
        if _trace.strip(_trace.current()) is not self.trace:
            raise _foreign_write(cell)

    def observe(self, tape: Any) -> None:
        """Let `tape` see the reads from now on."""
        self.observers.append(tape)
        DETOUR.append(None)

    def unobserve(self, tape: Any) -> None:
        """Let `tape` see no more reads."""
        self.observers.remove(tape)
        DETOUR.pop()
        if not self.observers:
            self._seen.clear()

    def is_shared(self, cell: Cell) -> bool:
        """Tell whether the cell's value may be known to somebody by another name."""
        return True

    def _observed(self, cell: Cell) -> Value:
        # The tapes know values by identity, so a read must give an object that means this
        # cell and nothing else: two cells, or a cell and a local, may share one array.
        known = self._seen.get(cell.key)
        if known is None or known[0] is not self.get(cell):
            shared = self.is_shared(cell)
            known = self._seen[cell.key] = self._distinct(cell, shared)
        for tape in self.observers:
            tape.saw(cell, known[1])
        return known[1]

    def _distinct(self, cell: Cell, shared: bool) -> tuple[Value, Value]:
        value = self.get(cell)
        if is_string(cell.aval.dtype):
            return value, value
        if not shared and not any(tape.knows(value) for tape in self.observers):
            return value, value
        with _trace.at(self.trace):
            return value, _trace.fresh(value)


@final
class EagerFrame(Frame):
    """The bottom of each thread's stack: values live in `STORE`."""

    def __init__(self) -> None:
        super().__init__(_trace.EVAL)

    def get(self, cell: Cell) -> Value:
        """Return the value from `STORE`; warn if it is about to become a constant."""
        if _trace.current() is not _trace.EVAL and _trace.is_staging():
            _warn_stale(cell)
        return _taken(cell)

    def put(self, cell: Cell, value: Value) -> None:
        """Put the value into `STORE`."""
        self.write_all([cell], [value])

    def write_all(self, cells: Sequence[Cell], values: Sequence[Value]) -> None:
        """Put several values into `STORE`, all or none."""
        for cell, value in zip(cells, values, strict=True):
            self.check_writable(cell)
            if _trace.is_tracer(value):
                raise _foreign_write(cell)
        new = {cell.key: at_home(cell, v) for cell, v in zip(cells, values, strict=True)}

        def commit() -> None:
            SHARED.update(new)
            STORE.update(new)

        exclusively(commit)

    def modify(self, cell: Cell, change: Callable[[Value], Value]) -> None:
        """Replace the value; no other thread's change comes between."""
        self.check_writable(cell)

        def replace() -> None:
            value = change(STORE[cell.key])
            if _trace.is_tracer(value):
                raise _foreign_write(cell)
            STORE[cell.key] = at_home(cell, value)

        with _trace.at(_trace.EVAL):
            exclusively(replace)

    def create(self, cell: Cell, value: Value) -> None:
        """Put the first value into `STORE`."""
        if _trace.is_tracer(value) or (_trace.current() is not _trace.EVAL and _trace.is_staging()):
            raise CreationError(
                f"Variable {cell.name!r} is created at {user_line()} while a plain JAX transform "
                "(jax.jit, scan, grad, ...) traces the function: its value would be a tracer. "
                "Create it outside, or use @jv.compile, which may create variables on its "
                "first call."
            )
        SHARED.add(cell.key)
        STORE[cell.key] = at_home(cell, value)

    def is_shared(self, cell: Cell) -> bool:
        """Tell whether somebody besides `STORE` holds the array."""
        return cell.key in STORE and sys.getrefcount(STORE[cell.key]) > _ALONE


@final
class BoundFrame(Frame):
    """Holds the values of the cells it was given, while a function runs."""

    def __init__(self, values: dict[int, Value], parent: Frame) -> None:
        super().__init__(_trace.strip(_trace.current()))
        self.values = values
        self.parent = parent

    def get(self, cell: Cell) -> Value:
        """Return the bound value; a cell that is not bound is read from the frame below."""
        return self.values[cell.key] if cell.key in self.values else self.parent.read(cell)

    def put(self, cell: Cell, value: Value) -> None:
        """Bind a new value."""
        if cell.key not in self.values:
            raise StateError(
                f"Variable {cell.name!r} is written at {user_line()}, but the State that was "
                "passed does not hold it. Make the State of everything that the function "
                "writes, for example jv.State.of(model=model, optimizer=optimizer)."
            )
        self.values[cell.key] = value

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
        super().__init__(_trace.strip(_trace.current()))
        self.refuse_creation = refuse_creation
        self.cells: list[Cell] = []
        self.values: dict[int, Value] = {}
        self.written: dict[int, Cell] = {}
        self.created: list[tuple[Created, Value]] = []

    def get(self, cell: Cell) -> Value:
        """Return the cell's value; the first time, make it an input of the program."""
        if cell.key not in self.values:
            if is_string(cell.aval.dtype):
                raise _string_in_program(cell)
            self.values[cell.key] = _trace.read_variable(self.trace, len(self.cells), cell.aval)
            self.cells.append(cell)
        return self.values[cell.key]

    def put(self, cell: Cell, value: Value) -> None:
        """Make the value an output of the program."""
        if is_string(cell.aval.dtype):
            raise _string_in_program(cell)
        self.values[cell.key] = value
        self.written[cell.key] = cell

    def create(self, cell: Cell, value: Value) -> None:
        """Take note of a new cell and of how its first value is computed."""
        if self.refuse_creation:
            raise CreationError(f"{self.refuse_creation} Variable {cell.name!r}: {user_line()}.")
        made = Created(weakref.ref(cell), cell.key, cell.name, user_line())
        self.created.append((made, value))
        self.values[cell.key] = value


@final
class _Local(threading.local):
    """The current frame of each thread."""

    def __init__(self) -> None:
        self.eager = EagerFrame()
        self.frame: Frame = self.eager


LOCAL = _Local()


def lifted(fn: Callable[[], T]) -> T:
    """Run `fn` eagerly even where a function is being traced, if it needs no traced value.

    So an initial value that is drawn from a generator moves that generator on, once, whether
    the variable is created eagerly or by the first call of a compiled function.
    """
    if LOCAL.frame is LOCAL.eager:
        return fn()
    try:
        with entered(LOCAL.eager), _trace.at(_trace.EVAL):
            return fn()
    except jax.errors.UnexpectedTracerError:
        return fn()


@final
class entered:  # noqa: N801 - used as a statement: `with entered(frame)`
    """Make a frame the current one of this thread."""

    __slots__ = ("frame", "previous")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __enter__(self) -> None:
        self.previous = LOCAL.frame
        LOCAL.frame = self.frame
        DETOUR.append(None)

    def __exit__(self, *_: object) -> None:
        LOCAL.frame = self.previous
        DETOUR.pop()


CALLBACKS: list[None] = []
"""Not empty while a step runs that calls back into Python: it donates nothing."""


def exclusively(action: Callable[[], T]) -> T:
    """Run `action` while no step is in flight and none can start.

    Raises:
        ForeignTransformError: where waiting for the step in flight would never end.
    """
    with _WAITING:
        while FLIGHT[0]:
            if _is_ours():
                raise ForeignTransformError(
                    f"A variable is written, or a compiled function called, at {user_line()} by "
                    "a callback or signal handler while a compiled step is running; the step's "
                    "own results would race with it. Return the value from the step and assign "
                    "it afterwards."
                )
            time.sleep(1e-5)
        FLIGHT[0] = True  # directly after the test: see the rules above
        try:
            return _flying(action)
        finally:
            FLIGHT[0] = False


def _flying(action: Callable[[], T]) -> T:
    return action()  # a frame of its own, by which `_is_ours` knows that it is below


def _is_ours() -> bool:
    """Tell whether waiting for the step in flight would never end.

    So it is in a callback of that step, and in a signal handler or finalizer that interrupted
    this very thread in it.
    """
    if CALLBACKS:
        return True
    frame = sys._getframe(1)
    while (frame := frame.f_back) is not None:
        code = frame.f_code
        if code is _flying.__code__:
            return True
        if code.co_filename == HOT_PATH_FILE and "old" in frame.f_locals:  # values in hand
            return True
    return False


def _taken(cell: Cell) -> Value:
    """Return the value from `STORE`, sure that no step will donate it.

    A step copies what is marked in `SHARED` when it starts. So the value is safe if, after it
    was read, no step is in flight, the mark still stands and the value is still the one stored.
    """
    key = cell.key
    while True:
        SHARED.add(key)
        value = STORE.get(key)
        if value is None:
            SHARED.discard(key)
            raise UninitializedError(
                f"Variable {cell.name!r} has no value: the call that created it failed before "
                "its initial value was computed. Create it again, outside the function."
            )
        if not FLIGHT[0] and key in SHARED and STORE.get(key) is value:
            return value
        if _is_ours():
            return _trace.fresh(value)  # in a signal handler or callback of a step
        time.sleep(1e-6)


def at_home(cell: Cell, value: Value) -> Value:
    """Return the value where the cell was placed, if it was placed anywhere."""
    if cell.home is None or _trace.is_tracer(value) or value.sharding == cell.home:
        return value
    return jax.device_put(value, cell.home)


# ---------------------------------------------------------------- staging
@final
class Rebuild:
    """Takes a result apart into arrays and the rest, and puts it together again.

    >>> rebuild = Rebuild({"loss": 1.0, "note": "text"})
    >>> rebuild.arrays, rebuild([2.0])
    ([1.0], {'loss': 2.0, 'note': 'text'})
    """

    __slots__ = ("_rest", "arrays", "treedef")

    def __init__(self, result: object) -> None:
        leaves, self.treedef = jax.tree.flatten(result)
        self._rest = [None if _is_array(leaf) else (leaf,) for leaf in leaves]
        self.arrays = [x for x, rest in zip(leaves, self._rest, strict=True) if rest is None]

    def __call__(self, arrays: Sequence[Value]) -> Any:
        """Return a result of the same form with these arrays in it."""
        values = iter(arrays)
        leaves = [next(values) if rest is None else rest[0] for rest in self._rest]
        return jax.tree.unflatten(self.treedef, leaves)

    @property
    def is_plain(self) -> bool:
        """Tell whether the result consists of arrays only."""
        return not any(self._rest)


def _is_array(leaf: object) -> bool:
    if isinstance(leaf, jax.Array | bool | int | float | complex):
        return True
    return isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind not in "OSUT"


@final
@dataclass
class Created:
    """A cell that came to be while a function was traced."""

    ref: weakref.ref[Cell]
    key: int
    name: str
    line: str


@final
@dataclass
class Staged:
    """A function as a program over the cells that it touches.

    Attributes:
        program: a closed jaxpr. Inputs: the cells read, then the arguments. Outputs: the
            array results, then the cells written, then the first values of the cells created.
        reads: the cells read, in order.
        writes: the cells written, in order.
        created: the cells created, in order.
        rebuild: makes the function's result from the list of array results.
        error: what the function raised, if it did so after creating cells.
    """

    program: Any
    reads: list[Cell]
    writes: list[Cell]
    created: list[Created]
    rebuild: Rebuild
    error: BaseException | None

    def function(self) -> Callable[..., list[Value]]:
        """Return the program as a function of flat inputs."""
        return _trace.jaxpr_function(self.program)


def stage(fn: Callable[..., Any], specs: Sequence[Any], refuse_creation: str | None) -> Staged:
    """Trace `fn` once, in a capture frame of its own.

    Args:
        fn: takes values like `specs`, positionally.
        specs: arrays, numbers or `jax.ShapeDtypeStruct`.
        refuse_creation: why `fn` may not create variables, or None.

    Raises:
        Exception: what `fn` raises, unless it created variables before; then the error is
            kept in the result, so that they can have their first values all the same.
    """
    found: dict[str, Any] = {}

    def flat(*leaves: Value) -> list[list[Value]]:
        frame = CaptureFrame(refuse_creation)
        with entered(frame):
            return _run_captured(fn, leaves, frame, found)

    program, indices = _trace.capture(flat, specs)
    cells = found.pop("cells")
    return Staged(program=program, reads=[cells[i] for i in indices], **found)


def _run_captured(
    fn: Callable[..., Any], leaves: Sequence[Value], frame: CaptureFrame, found: dict[str, Any]
) -> list[list[Value]]:
    result, error = None, None
    try:
        result = fn(*leaves)
    except BaseException as raised:
        if not frame.created:
            raise
        error = raised
    rebuild = Rebuild(result)
    arrays, rebuild.arrays = rebuild.arrays, []  # no tracer outlives the trace
    writes = [] if error else list(frame.written.values())
    created = [made for made, _ in frame.created]
    found.update(cells=frame.cells, writes=writes, created=created, rebuild=rebuild, error=error)
    return [arrays, [frame.values[cell.key] for cell in writes], [v for _, v in frame.created]]


# ---------------------------------------------------------------- State
@final
class State(Mapping[str, Any]):
    """The values of variables by path: a pytree, to use with any JAX transform.

    >>> import jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0], name="w")
    >>> state = State.of(w)
    >>> doubled = jax.tree.map(lambda x: 2 * x, state)
    >>> doubled["w"]
    Array([2., 4.], dtype=float32)
    >>> doubled.commit()
    >>> w.numpy()
    array([2., 4.], dtype=float32)
    """

    __slots__ = ("_layout", "_values")

    def __init__(self, layout: Layout, values: Iterable[Value]) -> None:
        self._layout = layout
        self._values = tuple(values)

    @classmethod
    def of(cls, *objects: object, copy: bool = True, **named: object) -> State:
        """Take the values of all variables in some objects.

        Reads the variables; changes none.

        Args:
            *objects: Variables, Modules, or anything that holds them. Of several, each one's
                paths begin with its class name in small letters.
            copy: give the State memory of its own, so that donating it to a jitted function
                does not take the variables' values away. False shares the memory.
            **named: the same, with the name that the paths begin with.

        Raises:
            StateError: when there is no variable in an object.
        """
        cells = _named_cells(objects, named)
        frame = LOCAL.frame
        values = [frame.read(cell) for cell in cells.values()]
        if copy:
            values = [v if isinstance(v, np.ndarray) else _trace.fresh(v) for v in values]
        return cls(Layout(cells), values)

    def commit(self) -> None:
        """Make these the values of the variables, all of them or none.

        Raises:
            StateError: listing every variable whose value does not fit or that is gone.
        """
        problems = [
            p for p in map(_misfit, self._layout.refs, self._layout.paths, self._values) if p
        ]
        if problems:
            raise StateError("State.commit() changed nothing:\n  " + "\n  ".join(problems))
        cells = [ref() for ref in self._layout.refs]
        frame = LOCAL.frame
        frame.write_all([cell for cell in cells if cell is not None], self._values)

    def replace(self, values: Mapping[str, Value]) -> State:
        """Return a State with some values, given by path, replaced."""
        unknown = [path for path in values if path not in self._layout.index]
        if unknown:
            raise StateError(f"No variable at {unknown}; there are {list(self._layout.paths)}.")
        return State(self._layout, [values.get(path, old) for path, old in self.items()])

    def bound(self) -> dict[int, Value]:
        """Return the values by cell key."""
        return dict(zip(self._layout.keys, self._values, strict=True))

    def rebound(self, values: Mapping[int, Value]) -> State:
        """Return a State of the same variables with values by cell key."""
        return State(self._layout, [values[key] for key in self._layout.keys])

    def __getitem__(self, path: str) -> Value:
        if path not in self._layout.index:
            raise StateError(f"No variable at {path!r}; there are {list(self._layout.paths)}.")
        return self._values[self._layout.index[path]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.paths)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        lines = [f"  {path}: {array_text(value)}" for path, value in self.items()]
        return "\n".join(["State(", *lines, ")"])


@final
class Layout:
    """Which variables a State holds, and under which paths; equal for the same ones."""

    __slots__ = ("index", "keys", "paths", "refs")

    def __init__(self, cells: Mapping[str, Cell]) -> None:
        self.paths = tuple(cells)
        self.refs = tuple(weakref.ref(cell) for cell in cells.values())
        self.keys = tuple(cell.key for cell in cells.values())
        self.index = {path: i for i, path in enumerate(self.paths)}

    def __hash__(self) -> int:
        return hash(self.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.keys, self.paths) == (other.keys, other.paths)


def _flatten_with_keys(state: State) -> tuple[list[tuple[Any, Value]], Layout]:
    layout, values = state._layout, state._values
    keys = [jax.tree_util.DictKey(path) for path in layout.paths]
    return list(zip(keys, values, strict=True)), layout


jax.tree_util.register_pytree_with_keys(State, _flatten_with_keys, State)


def _named_cells(objects: Sequence[object], named: Mapping[str, object]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    seen: set[int] = set()
    for prefix, root in [*_prefixed(objects, alone=not named), *named.items()]:
        before = len(seen)
        for path, cell in cells_in(root):
            if cell.key not in seen:
                seen.add(cell.key)
                parts = [part for part in (prefix, *path) if part] or [cell.name]
                cells[_unique("/".join(parts), cells)] = cell
        if len(seen) == before and not any(True for _ in cells_in(root)):
            raise StateError(f"There is no Variable in this {type(root).__name__}: {root!r}.")
    return cells


def _prefixed(objects: Sequence[object], *, alone: bool) -> list[tuple[str, object]]:
    if len(objects) == 1 and alone:
        return [("", objects[0])]
    taken: dict[str, Cell | None] = {}
    for root in objects:
        name = root.cell.name if isinstance(root, Owner) else type(root).__name__.lower()
        taken[_unique(name, taken)] = None
    return list(zip(taken, objects, strict=True))


def _unique(name: str, taken: Mapping[str, object]) -> str:
    names = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
    return next(candidate for candidate in names if candidate not in taken)


def _misfit(ref: weakref.ref[Cell], path: str, value: Value) -> str | None:
    cell = ref()
    if cell is None or cell.owner() is None:
        return f"{path}: the variable is gone"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape != cell.aval.shape or dtype != cell.aval.dtype:
        have = f"{dtype}{list(shape)}" if shape is not None else type(value).__name__
        return f"{path}: the variable is {cell.aval.dtype}{list(cell.aval.shape)}, the value {have}"
    return None


def functionalize(fn: Callable[..., Any]) -> Callable[..., tuple[Any, State]]:
    """Make a function of variables a pure function of their State.

    `pure(state, *args)` runs `fn(*args)` with the variables bound to the values in `state`,
    and returns its result and the State after it. The variables themselves do not change,
    so `pure` works under `jax.jit`, `vmap`, `grad`, `lax.scan`, `shard_map`, export.

    Args:
        fn: reads and writes variables; plain or `jv.compile`d.

    Returns:
        `pure(state, *args, **kwargs) -> (result, new_state)`.

    Raises:
        StateError: (from `pure`) when `fn` writes a variable that the state does not hold.
        CreationError: (from `pure`) when `fn` creates a variable.

    >>> import jaxvars as jv
    >>> count = jv.Variable(0, name="count")
    >>> def add(n):
    ...     count.assign_add(n)
    ...     return count * 10
    >>> result, state = functionalize(add)(State.of(count), 2)
    >>> int(result), int(state["count"]), int(count)
    (20, 2, 0)
    """

    @functools.wraps(fn)
    def pure(state: State, /, *args: Any, **kwargs: Any) -> tuple[Any, State]:
        if not isinstance(state, State):
            raise StateError(
                f"The first argument must be a State, not {type(state).__name__}: "
                "pure(jv.State.of(model), *args)."
            )
        frame = BoundFrame(state.bound(), LOCAL.frame)
        with entered(frame):
            result = jax.tree.map(lambda x: x, fn(*args, **kwargs))  # reads returned Variables
        return result, state.rebound(frame.values)

    return pure


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


def _warn_stale(cell: Cell) -> None:
    warn_user(
        f"Variable {cell.name!r} was read while a plain JAX transform (jax.jit, scan, cond, ...) "
        "traced the function. Its value becomes a constant of that program: later assignments "
        "will not reach it. Use @jv.compile instead of jax.jit, or read it outside and pass the "
        "value as an argument.",
        StaleReadWarning,
    )


def _string_in_program(cell: Cell) -> StringVariableError:
    return StringVariableError(
        f"Variable {cell.name!r} holds text and is used at {user_line()} inside a compiled "
        "function, where there are only numbers. Read it outside and pass the text, which "
        f"is then a static argument: step(x, {cell.name}.item())."
    )
