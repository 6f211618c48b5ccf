"""`State`: the values of variables as a pytree, by path.

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

import copy
import itertools
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NoReturn, final

import jax
import numpy as np

from jaxvars.core.cells import STORE, Cell, untrainable
from jaxvars.core.frame import Owner
from jaxvars.core.frames import LOCAL
from jaxvars.errors import StateError, UninitializedError, shown, user_line
from jaxvars.objects.traversal import Path, Tied, walk_known
from jaxvars.tensors.dtypes import WIDE, are_floats, keeping
from jaxvars.tensors.tensor import own_copy, to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value
from jaxvars.views import Viewed


# ---------------------------------------------------------------- State
@final
class State(Viewed, Mapping[str, Any]):
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

    def __init__(self, layout: Layout, values: Iterable[Array]) -> None:
        self._layout = layout
        self._values = tuple(values)

    @classmethod
    def of(cls, *objects: object, copy: bool = True, **named: object) -> State:
        """Take the values of all variables in some objects, at one moment.

        Reads the variables; changes none. Of a variable without a value (`jv.abstract`) it has a
        `jax.ShapeDtypeStruct`, for `jax.eval_shape`, `jax.jit(pure).lower` and `jv.plan`.

        Args:
            *objects: Variables, Modules, or anything that holds them. Of several, each one's
                paths begin with its class name in small letters.
            copy: give the State separate memory, so that donating it to a jitted function
                does not take the variables' values away. False shares the memory.
            **named: the same, with the name that the paths begin with.

        Raises:
            StateError: when an object holds no variable.
            InteropError: when there is a module of flax, equinox or Keras that is not adapted.
        """
        untold: list[str] = []
        cells = named_cells(objects, named, untold.append)
        values = _values_or_structs(list(cells.values()))
        if copy:
            values = [v if isinstance(v, _NOT_COPIED) else context.fresh(v) for v in values]
        return cls(Layout(cells, untold), values)

    def commit(self, *, copy: bool = True, cast: bool = False) -> None:
        """Make these the values of the variables, all of them or none.

        Args:
            copy: give the variables separate memory, so that donating this State to a
                jitted function does not take their values away. False shares the memory.
            cast: convert floats to a variable's dtype of floats.

        Raises:
            StateError: listing every variable whose value does not fit or that is gone.
            DtypeError: when a finite value that is cast would become infinite.
        """
        self._refuse_without_variables()
        cells = [ref() for ref in self._layout.refs]
        rows = list(zip(cells, self._layout.paths, self._values, strict=True))
        if problems := [p for row in rows if (p := _misfit(*row, cast=cast))]:
            raise StateError("State.commit() changed nothing:\n  " + "\n  ".join(problems))
        owned = [(cell, path, value) for cell, path, value in rows if cell is not None]
        values = [_tensor_for(cell, x, f"the value for {p}") for cell, p, x in owned]
        LOCAL.frame.write_all([cell for cell, *_ in owned], values, None if copy else ())

    def replace(self, values: Mapping[str, Array]) -> State:
        """Return a State with some values, given by path, replaced.

        Raises:
            StateError: when no variable has a path, or two have it, as in a dict with the keys 1
                and "1"; or when a value is a masked array.
        """
        if not isinstance(values, Mapping):
            raise StateError(
                f"State.replace takes a dict from paths to values, not {type(values).__name__}: "
                "state.replace({path: value})."
            )
        unknown = [path for path in values if path not in self._layout.index]
        if unknown:
            raise StateError(f"No variable at {unknown}; there are {list(self._layout.paths)}.")
        is_same = isinstance(values, State) and values._layout == self._layout
        if untold := [] if is_same else [path for path in values if self._layout.is_untold(path)]:
            raise StateError(
                f"Several variables have the path of {untold}, as in a dict with the keys 1 and "
                f"'1', or in a set: which of them is meant at {user_line()} is not told. Use a "
                "list, or a dict whose keys are strings without /."
            )
        if masked := [path for path, x in values.items() if isinstance(x, np.ma.MaskedArray)]:
            raise StateError(f"The values of {masked} are masked arrays; a tensor has no mask.")
        own = {path: own_copy(x, f"the value of {path!r}") for path, x in values.items()}
        return State(self._layout, [own.get(path, old) for path, old in self.items()])

    def __copy__(self) -> State:
        """Return the same State, which never changes."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle paths and values: what variables they belong to is known in this process alone."""
        return _unpickle, (self._layout.paths, [_picklable(x) for x in self._values])

    def _refuse_without_variables(self) -> None:
        if self._layout.paths and not self._layout.refs:
            raise StateError(
                f"The State used at {user_line()} came out of a pickle or deep copy: it refers "
                "to no variables. Put its values into a State of the variables here, which have "
                "the same paths:\n"
                "    state = jv.State.of(model).replace(state)"
            )

    def __setitem__(self, path: str, value: Any) -> NoReturn:
        cure = f"Write state = state.replace({{{path!r}: value}}), and state.commit() to give the"
        raise shown(TypeError(f"A State never changes. {cure} variables its values."))

    def __getitem__(self, path: str) -> Array:
        if path not in self._layout.index:
            raise StateError(f"No variable at {path!r}; there are {list(self._layout.paths)}.")
        return self._values[self._layout.index[path]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.paths)

    def __len__(self) -> int:
        return len(self._values)


@final
class _Flags(dict[int, bool]):
    """Whether variables were not trainable when they were first asked for it, by cell key."""

    __slots__ = ("__weakref__",)


_ASKED: weakref.WeakValueDictionary[tuple[int, ...], _Flags] = weakref.WeakValueDictionary()
"""The flags that all Layouts of the same variables share."""

_ASKING = threading.RLock()  # `setdefault` of this dict takes several steps


@final
class Layout:
    """Which variables a State holds, and under which paths; equal for the same ones.

    Attributes:
        untold: paths that say which variable it is in this process only.
        asked: what its pure functions depend on besides the flags of its own variables, such as
            the mode of a module.
    """

    __slots__ = ("asked", "index", "keys", "paths", "refs", "untold", "untrainable")

    def __init__(self, cells: Mapping[str, Cell | None], untold: Iterable[str] = ()) -> None:
        known = [cell for cell in cells.values() if cell is not None]  # none of an unpickled State
        self.untold = tuple(untold)
        self.paths = tuple(cells)
        self.refs = tuple(map(weakref.ref, known))
        self.keys = tuple(cell.key for cell in known)
        self.index = {path: i for i, path in enumerate(self.paths)}
        self.untrainable: frozenset[int] = frozenset()
        with _ASKING:
            self.asked = _ASKED.setdefault(self.keys, _Flags())

    def is_untold(self, path: str) -> bool:
        """Return whether several variables have a path, or had it before they were numbered."""
        return path in self.untold or re.sub(r"_\d+$", "", path) in self.untold

    def now(self) -> Layout:
        """Return a Layout that says which of the variables are not trainable now.

        And which of the other flags that functions asked for are not as they were.
        """
        asked = self.asked.copy()  # threads add to it
        then = untrainable(asked.keys()) if asked else frozenset[int]()
        changed = {key for key, was in asked.items() if (key in then) is not was and key in STORE}
        found = untrainable(frozenset(self.keys)) | changed
        if found == self.untrainable:
            return self
        made = copy.copy(self)
        made.untrainable = found
        return made

    def note(self, asked: Set[int]) -> None:
        """Take note of the flags that a pure function of such a State asked for, by cell key."""
        if others := asked - {*self.keys} - self.asked.keys():
            then = untrainable(others)
            self.asked.update({key: key in then for key in others})

    def __repr__(self) -> str:
        return f"variables {', '.join(self.paths)}"

    def __hash__(self) -> int:
        return hash(self.keys)

    def __eq__(self, other: object) -> bool:
        mine = self.keys, self.paths, self.untrainable
        return isinstance(other, Layout) and mine == (other.keys, other.paths, other.untrainable)


def values_by_key(state: State) -> dict[int, Array]:
    """Return the values of a State by cell key; raise StateError if it has no cells, or values."""
    require_values(state)._refuse_without_variables()
    layout = state._layout
    cells = [ref() for ref in layout.refs]
    return dict(zip(layout.keys, map(_bindable, state._values, cells), strict=True))


def require_values(state: State) -> State:
    """Return a State; raise StateError if it has only shapes and dtypes of some values."""
    if any(isinstance(x, jax.ShapeDtypeStruct) for x in state._values):
        raise StateError(
            f"The State used at {user_line()} has shapes and dtypes, and no values, as that of a "
            "model of jv.abstract: nothing can be computed with it. Look at the program:\n"
            "    jax.eval_shape(pure, state, x)\n"
            "    jax.jit(pure).lower(state, x)\n"
            "    jv.plan(pure, state, x)"
        )
    return state


def with_values(state: State, values: Mapping[int, Array]) -> State:
    """Return a State of the same variables with values by cell key."""
    return State(state._layout, [values[key] for key in state._layout.keys])


def _flatten_with_keys(state: State) -> tuple[list[tuple[Any, Array]], Layout]:
    layout, values = state._layout.now(), state._values  # a jitted function may ask for the flags
    keys = [jax.tree_util.DictKey(path) for path in layout.paths]
    return list(zip(keys, values, strict=True)), layout


def _unpickle(paths: Sequence[str], values: Sequence[Array]) -> State:
    return State(Layout(dict.fromkeys(paths)), map(_from_pickle, values))


def _picklable(value: Array) -> Array | np.ndarray:
    """Return a value as NumPy's if JAX, which unpickles its own, might cut it to 32 bits."""
    return np.asarray(value) if str(value.dtype) in WIDE else value


def _from_pickle(value: Array | np.ndarray) -> Value:
    with keeping(value.dtype):
        return to_tensor(value) if str(value.dtype) in WIDE else value


jax.tree_util.register_pytree_with_keys(State, _flatten_with_keys, State)


def named_cells(
    objects: Sequence[object],
    named: Mapping[str, object],
    untold: Callable[[str], None] = lambda _: None,
) -> dict[str, Cell]:
    """Return the cells of all variables in some objects by path; see `State.of`.

    Args:
        objects: some objects.
        named: more, with the names that their paths begin with.
        untold: called with what is a path only in this process, as several variables have it.
    """

    def outside(part: Tied) -> str:
        owner = part.tie()
        if isinstance(owner, Owner) and not part.is_path and part != owner._cell.name:
            untold(f"slots of several {owner._cell.name!r}")
        return part

    found: list[tuple[Path, Cell]] = []
    for prefix, root in [*_prefix(objects, alone=not named), *named.items()]:
        owners = walk_known(root, Owner)
        cells = [(tuple(filter(None, (prefix, *path))), owner._cell) for path, owner in owners]
        if not cells:
            raise StateError(f"This {type(root).__name__} has no Variable: {root!r}.")
        found += cells
    return cells_by_path(found, outside, lambda path, *_: untold("/".join(path)))


def cells_by_path(
    found: Iterable[tuple[Path, Cell]],
    outside: Callable[[Tied], str] = str,
    alike: Callable[[Path, Cell, Cell], None] = lambda *_: None,
) -> dict[str, Cell]:
    """Return cells by joined path, each under its first; a slot is under its variable's path.

    Args:
        found: the cells with their paths.
        outside: names what stands for a variable that is not among them.
        alike: called with a path that two of them have, so that only their order differs, and both.
    """
    paths: dict[int, tuple[Path, Cell]] = {}
    for path, cell in found:
        paths.setdefault(cell.key, (path, cell))
    naming = _Naming(paths, outside, alike)
    return {naming.name_of(key): cell for key, (_, cell) in paths.items()}


@final
class _Naming:
    """Joins paths; an object, for functions that call each other would keep the cells alive."""

    def __init__(
        self,
        paths: Mapping[int, tuple[Path, Cell]],
        outside: Callable[[Tied], str],
        alike: Callable[[Path, Cell, Cell], None],
    ) -> None:
        self._paths, self._outside, self._alike = paths, outside, alike
        self._names: dict[int, str] = {}
        self._named: dict[str, Cell] = {}
        self._taken: dict[str, Cell] = {}

    def name_of(self, key: int) -> str:
        """Return the joined path of the cell of a key."""
        if key not in self._names:
            path, cell = self._paths[key]
            joined = "/".join(map(self._resolve, path))
            if self._taken.setdefault(joined, cell) is not cell:
                self._alike(path, self._taken[joined], cell)
            self._names[key] = unique(joined or cell.name, self._named)
            self._named[self._names[key]] = cell
        return self._names[key]

    def _resolve(self, part: str) -> str:
        if not isinstance(part, Tied):
            return part
        owner = part.tie()
        is_inside = isinstance(owner, Owner) and owner._cell.key in self._paths
        return self.name_of(owner._cell.key) if is_inside else self._outside(part)


def _prefix(objects: Sequence[object], *, alone: bool) -> list[tuple[str, object]]:
    if len(objects) == 1 and alone:
        return [("", objects[0])]
    taken: dict[str, Cell | None] = {}
    for root in objects:
        name = root._cell.name if isinstance(root, Owner) else type(root).__name__.lower()
        taken[unique(name, taken)] = None
    return list(zip(taken, objects, strict=True))


def unique(name: str, taken: Mapping[str, object]) -> str:
    """Return a name that is not taken: `name`, `name_1`, `name_2`, ..."""
    names = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
    return next(candidate for candidate in names if candidate not in taken)


_NOT_COPIED: tuple[type[Any], ...] = (np.ndarray, jax.ShapeDtypeStruct)


def _values_or_structs(cells: list[Cell]) -> list[Any]:
    """Return the values of cells at one moment; of those without one, what it would be like."""
    try:
        return LOCAL.frame.read_all(cells)
    except UninitializedError:
        known = [cell for cell in cells if cell.key in STORE]
        if len(known) == len(cells):
            raise
        values = dict(zip(known, LOCAL.frame.read_all(known), strict=True))
    return [values[cell] if cell in values else _struct_of(cell) for cell in cells]


def _struct_of(cell: Cell) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(cell.aval.shape, cell.aval.dtype, sharding=cell.sharding)


def _misfit(cell: Cell | None, path: str, value: Array, *, cast: bool) -> str | None:
    if cell is None or cell.owner() is None:
        return f"{path}: the variable is gone. State.of(...) takes the values of those there are"
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    want, fits = cell.aval, shape is not None and cell.takes(shape)
    castable = are_floats(want, value) and fits
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"{path}: the State has no value, only its shape and dtype, as of jv.abstract"
    if (fits and dtype == want.dtype) or (cast and castable):
        return None
    have = f"{dtype}{list(shape)}" if shape is not None else type(value).__name__
    cure = ". state.commit(cast=True) converts it" if castable else ""
    return f"{path}: the variable is {want.dtype}{list(want.shape)}, the value {have}{cure}"


def _tensor_for(cell: Cell, value: Array, what: str) -> Array:
    """Return a value as a tensor of a variable's dtype, with all bits."""
    with keeping(cell.dtype):
        return to_tensor(value, cell.dtype, what=what)


def _bindable(value: Array, cell: Cell | None) -> Array:
    """Return a copy of NumPy's arrays as JAX's: code that runs on a value may change NumPy's."""
    is_numpy = isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OSUT"
    if not is_numpy:
        return value
    what = "a value of the State"
    if cell is not None and value.dtype == cell.dtype:
        return _tensor_for(cell, value, what)
    return to_tensor(value, what=what)
