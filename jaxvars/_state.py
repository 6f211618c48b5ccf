"""`State`: the values of variables as a pytree; `functionalize`: code on variables as mathematics.

    pure = jv.functionalize(step)
    state = jv.State.of(model=model, optimizer=optimizer)
    loss, state = jax.jit(pure)(state, x, y)
    state.commit()

Rules this file keeps:
- a State is immutable and has no tie to the variables' values: only `commit` changes them, all
  or none;
- it refers to its variables weakly, and two States of the same variables are the same pytree
  structure.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

import jax
import numpy as np

from jaxvars import _trace
from jaxvars._display import array_text
from jaxvars._frames import LOCAL, BoundFrame, Owner, cells_in, within
from jaxvars._store import Cell
from jaxvars._tensor import to_tensor
from jaxvars.errors import StateError

Value: TypeAlias = Any


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
        cells = named_cells(objects, named)
        frame = LOCAL.frame
        values = [frame.read(cell) for cell in cells.values()]
        if copy:
            values = [v if isinstance(v, np.ndarray) else _trace.fresh(v) for v in values]
        return cls(Layout(cells), values)

    def commit(self, *, copy: bool = True) -> None:
        """Make these the values of the variables, all of them or none.

        Args:
            copy: give the variables memory of their own, so that donating this State to a
                jitted function does not take their values away. False shares the memory.

        Raises:
            StateError: listing every variable whose value does not fit or that is gone.
        """
        problems = [
            p for p in map(_misfit, self._layout.refs, self._layout.paths, self._values) if p
        ]
        if problems:
            raise StateError("State.commit() changed nothing:\n  " + "\n  ".join(problems))
        cells = [ref() for ref in self._layout.refs]
        values = [to_tensor(value) for value in self._values]
        if copy:
            values = [v if isinstance(v, np.ndarray) else _trace.fresh(v) for v in values]
        LOCAL.frame.write_all([cell for cell in cells if cell is not None], values)

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

    def __repr__(self) -> str:
        return f"variables {', '.join(self.paths)}"

    def __hash__(self) -> int:
        return hash(self.keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and (self.keys, self.paths) == (other.keys, other.paths)


def _flatten_with_keys(state: State) -> tuple[list[tuple[Any, Value]], Layout]:
    layout, values = state._layout, state._values
    keys = [jax.tree_util.DictKey(path) for path in layout.paths]
    return list(zip(keys, values, strict=True)), layout


jax.tree_util.register_pytree_with_keys(State, _flatten_with_keys, State)


def named_cells(objects: Sequence[object], named: Mapping[str, object]) -> dict[str, Cell]:
    """Return the cells of all variables in some objects by path; see `State.of`."""
    cells: dict[str, Cell] = {}
    seen: set[int] = set()
    for prefix, root in [*_prefixed(objects, alone=not named), *named.items()]:
        before = len(seen)
        for path, cell in cells_in(root):
            if cell.key not in seen:
                seen.add(cell.key)
                parts = [part for part in (prefix, *path) if part] or [cell.name]
                cells[unique("/".join(parts), cells)] = cell
        if len(seen) == before and not any(True for _ in cells_in(root)):
            raise StateError(f"There is no Variable in this {type(root).__name__}: {root!r}.")
    return cells


def _prefixed(objects: Sequence[object], *, alone: bool) -> list[tuple[str, object]]:
    if len(objects) == 1 and alone:
        return [("", objects[0])]
    taken: dict[str, Cell | None] = {}
    for root in objects:
        name = root.cell.name if isinstance(root, Owner) else type(root).__name__.lower()
        taken[unique(name, taken)] = None
    return list(zip(taken, objects, strict=True))


def unique(name: str, taken: Mapping[str, object]) -> str:
    """Return a name that is not taken: `name`, `name_1`, `name_2`, ..."""
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

        def run() -> Any:
            return jax.tree.map(lambda x: x, fn(*args, **kwargs))  # reads returned Variables

        result = within(frame, run)
        return result, state.rebound(frame.values)

    return pure
