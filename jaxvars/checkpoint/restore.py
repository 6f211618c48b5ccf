"""Values of a checkpoint on their way into variables: now, or when the variables are created.

Rules this file keeps:
- all values of a checkpoint are read and verified before any variable is changed; what does not
  fit or is damaged is listed for all of them, and then nothing is changed;
- a value without a variable waits. `core/store.py` is told of new variables, and has them looked
  for here before they are used; when all values have been taken the search ends;
- a variable that is not new gets a value only when it is asked for: it may have been trained;
- of two checkpoints for one variable, by other names, the one counts that was restored last;
- what waits does not keep the objects alive, and ends with them.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any, TypeAlias, final

import jax

from jaxvars.checkpoint.checksum import Entry, dtype_name
from jaxvars.checkpoint.stored import Stored
from jaxvars.checkpoint.trees import Leaf, Trees, as_wide_as
from jaxvars.compiler.colocation import sharding_now
from jaxvars.core.cells import NEW_CELLS, PENDING_RESTORES, STORE, Cell, PendingRestore
from jaxvars.core.frame import Frame
from jaxvars.core.frames import LOCAL
from jaxvars.core.module import Late, other_paths
from jaxvars.core.state import cells_by_path
from jaxvars.core.store import alone, exclusively
from jaxvars.core.traversal import (
    CLOSED_TYPES,
    Holder,
    Path,
    Tied,
    children_of,
    holds_objects,
    walk,
)
from jaxvars.core.variable import Variable
from jaxvars.errors import CheckpointError, CheckpointWarning, user_line
from jaxvars.tensors.dtypes import is_string
from jaxvars.tensors.tensor import to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

Roots: TypeAlias = Mapping[str | None, object]  # None is the name of what has no name
Found: TypeAlias = tuple[list[tuple[Path, object]], list[tuple[Path, object]]]

_LOCK = threading.RLock()  # taken after `alone()`, as by a transaction that restores
_restoring: list[
    None
] = []  # not empty while variables are found or given values, by the holder of the lock
_BOXES = (list, tuple, deque, Mapping, Set)  # objects in them may live longer than they do
_NO_CELL = -1  # in the place of a cell's key, for an array
_NO_PATHS: Mapping[int, str] = {}
_NUMBERS = itertools.count(1)
_GIVERS: weakref.WeakKeyDictionary[Cell, int] = weakref.WeakKeyDictionary()
"""Which restore, by its number, gave a cell its value last."""


def find(roots: Roots, *kinds: type) -> Found:
    """Return the objects of some kinds in what has a name, and those in what has none."""
    named = {name: root for name, root in roots.items() if name is not None}
    return list(walk(named, kinds)), list(walk(roots.get(None), kinds))


def cells_of(found: Found, before: Mapping[int, str] = _NO_PATHS) -> dict[str, Cell]:
    """Return the cells of the variables among what was found, by path.

    Slots of variables that were there `before`, by key of their cells, are called by that path.
    """
    firsts, others = (  # what has a name keeps it
        [(p, v._cell) for p, v in each if isinstance(v, Variable) and all(map(_is_there, p))]
        for each in found
    )
    keys = {cell.key for _, cell in firsts}

    def refuse(path: Path, one: Cell, other: Cell) -> None:
        if (one.key in keys) == (other.key in keys):
            raise CheckpointError(_describe_clash(path))

    def outside(part: Tied) -> str:
        owner = part.tie()
        known = before.get(owner._cell.key) if isinstance(owner, Variable) else None
        return known or _name_slots(part)

    return cells_by_path([*firsts, *others], outside, refuse)


def match_cells(
    found: Found, roots: Roots, entries: Set[str], others: Mapping[str, str],
    before: Mapping[int, str] = _NO_PATHS,
) -> dict[str, Cell]:  # fmt: skip
    """Return the cells of all variables, of each under the path that a checkpoint has, if any.

    Args:
        found: the variables, as `find` returns them.
        roots: the objects that they are in.
        entries: the paths in the checkpoint.
        others: other paths that variables had when they were saved, with those in the checkpoint.
        before: see `cells_of`.
    """
    cells = cells_of(found, before)
    for _ in range(2):  # slots are moved with their variables
        wanted = {cell.key for path, cell in cells.items() if path not in entries}
        moved: dict[str, Variable] = {}
        for path, variable in list_paths(roots, cells) if wanted else ():
            place = path if path in entries else others.get(path, path)
            if variable._cell.key in wanted and place in entries - cells.keys() - moved.keys():
                wanted.discard(variable._cell.key)
                moved[place] = variable
        if not moved:
            break
        found = [*(((path,), v) for path, v in moved.items()), *found[0]], found[1]
        cells = cells_of(found, before)
    return cells


def list_paths(roots: Roots, cells: Mapping[str, Cell]) -> Iterator[tuple[str, Variable]]:
    """Yield all paths of the variables in some objects, first those that `cells` has."""
    names = {cell.key: path for path, cell in cells.items()}
    owners = ((path, cell.owner()) for path, cell in cells.items())
    yield from ((path, v) for path, v in owners if isinstance(v, Variable))
    named = {name: root for name, root in roots.items() if name is not None}
    yield from other_paths(named, names)
    yield from (("/".join(path), v) for path, v in walk(roots.get(None), Variable))
    yield from other_paths(roots.get(None), names)


def others_in(file: Stored) -> dict[str, str]:
    """Return the other paths that variables had, with those of their values in a checkpoint."""
    told: Mapping[str, list[str]] = file.about.get("paths", {})
    return {other: path for path, others in told.items() for other in others}


def describe_paths(roots: Roots, cells: Mapping[str, Cell]) -> dict[str, Any]:
    """Return what is stored of the other paths of variables, whose cells these are.

    A program may come to list a variable under another one.
    """
    names = {cell.key: path for path, cell in cells.items()}
    found: dict[str, list[str]] = {}
    for path, variable in list_paths(roots, cells):
        if path not in cells and variable._cell.key in names:
            found.setdefault(names[variable._cell.key], []).append(path)
    return {"paths": found} if found else {}


def build_late(roots: Roots, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Make the variables that wait for first data, where there are values of these `shapes`."""
    for name, root in roots.items():
        for path, late in walk(root, Late):
            start = "/".join([*([] if name is None else [name]), *path, ""])
            mine = (shape for at, shape in shapes.items() if at.startswith(start) and shape)
            if not late.is_built and (shape := next(mine, None)) is not None:
                late.build(shape[-1])


def _is_there(part: str) -> bool:
    """Return whether the variable that a slot belongs to is not gone."""
    return not isinstance(part, Tied) or part.tie() is not None


def _name_slots(part: Tied) -> str:
    """Return how the slots of a variable that is not in the Checkpoint are called."""
    if part.is_path:
        return f"path={part}"
    owner = part.tie()
    return f"name={owner.name if isinstance(owner, Variable) else part}"


def _describe_clash(path: Path) -> str:
    """Return why two variables cannot be told apart."""
    tied = next((part for part in path if isinstance(part, Tied)), None)
    if tied is None:
        return (
            f"Two variables have the path {'/'.join(path)!r}, as in a set, whose elements have no "
            "order, or a dict with the keys 1 and '1', or 'a/b' and 'a': a checkpoint could give "
            "one of them the other's value. Use a list, or a dict whose keys are strings without /."
        )
    name = _name_slots(tied).partition("=")[2]
    return (
        f"The optimizer at {'/'.join(path[: path.index(tied)][:-1])!r} has slots for several "
        f"variables called {name!r}, none of which is in the Checkpoint: it could give one of them "
        "the slots of another. Put the model into the Checkpoint, too: Checkpoint(model=model, "
        "optimizer=optimizer); or give the variables explicit names."
    )


@final
class Restore(PendingRestore):
    """One checkpoint on its way into variables.

    Attributes:
        source: where it was read.
        waiting: the values that no variable has taken yet, by path.
        taken: the keys of the cells that have taken one, by path.
        misfits: what is wrong with variables that came later, by path.
        is_partial: whether it was said that not all will be taken.
        replaced_by: what has been restored into the same objects since, while values waited.
    """

    def __init__(
        self, file: Stored, roots: Roots, owner: object, cells: Mapping[str, Cell], trees: Trees
    ) -> None:
        self.source = str(file.path)
        self.line = user_line()
        self.waiting: dict[str, Array] = {}
        self.taken: dict[str, int] = {}
        self.misfits: dict[str, str] = {}
        self.is_partial = False
        self.replaced_by: str | None = None
        self._others = others_in(file)  # a variable of which two were made has one value for both
        again = {p: self._others[p] for p in cells if p in self._others and p not in file.entries}
        self._entries = file.entries | {p: file.entries[path] for p, path in again.items()}
        self._owner = weakref.ref(owner, self._look_again)
        self._refs: list[Callable[[], object]] = []
        self._roots = {name: self._refer_weakly(root) for name, root in roots.items()}
        self._is_over = False
        self._number = next(_NUMBERS)
        self._paths = {cell.key: path for path, cell in cells.items()}
        leaves = trees.leaves
        self.waiting = self._read_verified(file, {**leaves, **cells}, again)
        self._absent = sorted(leaves.keys() - file.entries.keys())
        mine = {path: self.waiting.pop(path) for path in leaves.keys() & self.waiting.keys()}
        self.taken |= dict.fromkeys(mine, _NO_CELL)
        self._put = trees.with_values(mine)

    def begin(self) -> None:
        """Give what is there its values, all or nothing, and wait for the others."""
        with alone(), _LOCK:
            others = [other for other in list_pending() if other.shares(self)]
            cells = self._find_cells()
            if rest := {path: x.shape for path, x in self.waiting.items() if path not in cells}:
                build_late(self._list_alive(), rest)
                cells = self._find_cells()
            found = {path: cells[path] for path in self.waiting if path in cells}
            first = next(iter(found.values()), None)
            before = _value_of(first)
            try:
                self._take(found)
                self._put()
            except BaseException:
                if first is None or _value_of(first) is not before:  # the variables have theirs
                    self._put()
                raise
            self._put = _do_nothing
            for other in others:
                other.replaced_by = self.source
                other.end()
            if self.waiting:
                PENDING_RESTORES.append(self)

    def end(self) -> None:
        """Wait no longer."""
        self._is_over = True
        with contextlib.suppress(ValueError):
            PENDING_RESTORES.remove(self)
        if not PENDING_RESTORES:
            NEW_CELLS.clear()

    # ------------------------------------------------------------ taking
    def _read_verified(
        self, file: Stored, cells: Mapping[str, Cell | Leaf], again: Mapping[str, str]
    ) -> dict[str, Array]:
        """Return all values; raise one error that lists everything if something is wrong."""
        misfits = misfits_of(self._entries, cells)

        def keep(path: str, value: Array) -> Array:
            at_once = path in cells and path not in misfits  # lest all of it be on the host
            return place_value(cells[path], value) if at_once else value

        values, corrupt = file.values(keep)
        if misfits or corrupt:
            both = {p: f"{misfits[p]}; {corrupt[p]}" for p in misfits.keys() & corrupt.keys()}
            others = {
                **describe_extra(self._entries.keys() - cells.keys()),
                **describe_missing(cells.keys() - self._entries.keys()),
            }
            raise self._error(
                "was not restored, and changed nothing", others | corrupt | misfits | both
            )
        more = {p: place_value(cells[p], _copy(values[path])) for p, path in again.items()}
        return values | more

    def seek(self) -> set[int]:
        """Give new variables their values; return the keys of all cells that can be found."""
        with alone(), _LOCK:
            if _restoring:
                return set()
            cells = self._find_cells()
            new = {p: cells[p] for p in self.waiting if p in cells and cells[p].key in NEW_CELLS}
            self._take(new, LOCAL.bottom)  # no transaction undoes it
            return {cell.key for cell in cells.values()}

    def look(self) -> dict[str, Cell]:
        """Give all variables that values wait for those, new or not; return all cells, by path."""
        with alone(), _LOCK:
            cells = self._find_cells()
            self._take({p: cells[p] for p in self.waiting if p in cells})
            return cells

    def _find_cells(self) -> dict[str, Cell]:
        """Return the cells of the variables that there are; reads meanwhile are not reported."""
        with alone(), _LOCK:
            _restoring.append(None)
            try:
                roots, entries = self._list_alive(), self._entries.keys()
                found = find(roots, Variable)
                return match_cells(found, roots, entries, self._others, self._paths)
            finally:
                _restoring.pop()

    def _take(self, cells: Mapping[str, Cell], frame: Frame | None = None) -> None:
        """Give some variables their values; if it is interrupted, it may be done again."""
        if self._is_over or not cells:
            return
        if misfits := misfits_of(self._entries, cells):
            self.misfits |= misfits
            self._done({path: cells[path] for path in misfits})
            raise self._error("does not fit variables that were created since", misfits)
        _restoring.append(None)
        try:
            with context.at(context.EVAL):
                mine = [p for p, cell in cells.items() if _GIVERS.get(cell, 0) <= self._number]
                values = [place_value(cells[path], self.waiting[path]) for path in mine]
                (frame or LOCAL.eager).write_all([cells[path] for path in mine], values, ())
                _GIVERS.update({cells[path]: self._number for path in mine})
        finally:
            _restoring.pop()
        self.taken |= {path: cell.key for path, cell in cells.items()}
        self._done(cells)

    def _done(self, cells: Mapping[str, Cell]) -> None:
        for path, cell in cells.items():
            NEW_CELLS.pop(cell.key, None)
            del self.waiting[path]
        if not self.waiting:
            self.end()

    # ------------------------------------------------------------ what became of it
    def missing(self, cells: Mapping[str, Cell]) -> list[str]:
        """Return the paths of the variables, whose `cells` there are, that have got no value."""
        taken = set(self.taken.values())
        left = [p for p, cell in cells.items() if cell.key not in taken and p not in self.misfits]
        return [*left, *self._absent]

    def unmatched(self, cells: Mapping[str, Cell]) -> dict[str, str]:
        """Return what is wrong with values without variables, and variables without values."""
        return {**describe_extra(self.waiting), **describe_missing(self.missing(cells))}

    def require(self, paths: Mapping[str, str], what: str) -> None:
        """Raise CheckpointError if there are some paths, or misfits, or nothing to look at."""
        if self.replaced_by is not None:
            what = f"{what}: {self.replaced_by} has been restored since"
        if problems := {**self.misfits, **paths}:
            raise self._error(what, problems)
        if self.is_orphaned():
            raise CheckpointError(
                f"The objects that {self.source} was restored into are gone, so that nothing is "
                "left to check. Keep them while you ask:\n"
                "    model = Model()\n"
                "    jv.checkpoint.Checkpoint(model=model).restore(path).assert_consumed()"
            )

    def _error(self, what: str, problems: Mapping[str, str]) -> CheckpointError:
        lines = [f"{path}: {problems[path]}" for path in sorted(problems)]
        return CheckpointError("\n  ".join([f"{self.source} {what}:", *lines]))

    # ------------------------------------------------------------ the objects
    def shares(self, other: Restore) -> bool:
        """Return whether both are about one of the same objects."""
        mine, others = ({id(ref()) for ref in each._refs} for each in (self, other))
        return not mine.isdisjoint(others - {id(None)})

    def _list_alive(self) -> dict[str | None, object]:
        """Return the objects that there are still; all of the Checkpoint's, if it is alive."""
        owner: Any = self._owner()
        if owner is not None:
            return owner._roots()
        held = {name: ref() for name, ref in self._roots.items()}
        return {name: x for name, x in held.items() if x is not None}

    def _refer_weakly(self, root: object, within: tuple[int, ...] = ()) -> Callable[[], object]:
        """Return what returns an object, or None if it is gone; of a list what is left in it."""
        if (isinstance(root, CLOSED_TYPES) and not holds_objects(root)) or id(root) in within:
            return _do_nothing
        ref: Callable[[], object] = _do_nothing
        with contextlib.suppress(TypeError):  # there are none of a list, dict or tuple
            ref = weakref.ref(root, self._look_again)
            self._refs.append(ref)
        if isinstance(root, Holder) or not isinstance(root, _BOXES):
            return ref
        inside = (*within, id(root))
        refs = [(name, self._refer_weakly(child, inside)) for name, child in children_of(root)]
        return lambda: _Left((name, each()) for name, each in refs) if ref() is None else ref()

    def _look_again(self, _: object, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """End if there are no objects left that could have new variables."""
        if not is_ending() and self.is_orphaned():  # when ending, modules are gone, too
            self.end()
            self.warn()

    def is_orphaned(self) -> bool:
        """Return whether the Checkpoint and all objects are gone."""
        return self._owner() is None and all(ref() is None for ref in self._refs)

    def warn(self) -> None:
        """Warn of values that were not taken, unless that was to be expected."""
        if self.waiting and not self.is_partial:
            self.is_partial = True  # once
            warnings.warn(
                f"Of {self.source}, restored at {self.line}, these values were never used: "
                f"{', '.join(_shorten(sorted(self.waiting)))}. If that is right, say so: "
                "checkpoint.restore(path).expect_partial().",
                CheckpointWarning,
                stacklevel=2,
            )


def _value_of(cell: Cell | None) -> Array | None:
    return None if cell is None else exclusively(lambda: STORE.get(cell.key))


def _do_nothing() -> None:
    """Do nothing."""


def describe_extra(paths: Iterable[str]) -> dict[str, str]:
    """Return what is wrong with paths for which there is no variable."""
    return dict.fromkeys(paths, "extra: there is no such variable")


def describe_missing(paths: Iterable[str]) -> dict[str, str]:
    """Return what is wrong with paths for which there is no value."""
    return dict.fromkeys(paths, "missing: it is not in the checkpoint")


def misfits_of(entries: Mapping[str, Entry], cells: Mapping[str, Cell | Leaf]) -> dict[str, str]:
    """Return how values in a checkpoint do not fit their variables or arrays, by path."""
    both = {path: (entries[path], cell) for path, cell in cells.items() if path in entries}
    found = {path: _misfit(entry, cell) for path, (entry, cell) in both.items()}
    return {path: text for path, text in found.items() if text}


def _misfit(entry: Entry, cell: Cell | Leaf) -> str:
    if isinstance(cell, Leaf):
        where, shape, dtype, fits = "tree", cell.shape, cell.dtype, cell.takes(entry.dtype)
        is_same = entry.shape == shape
    else:
        where, shape, dtype = "variable", cell.declared, dtype_name(cell.dtype)
        fits, is_same = entry.dtype == dtype, cell.takes(entry.shape)
    problems: list[str] = []
    if not is_same:
        problems.append(f"shape {entry.shape} in the checkpoint, {shape} in the {where}")
    if not fits:
        problems.append(f"dtype {entry.dtype} in the checkpoint, {dtype} in the {where}")
    return "; ".join(problems)


def place_value(cell: Cell | Leaf, value: Array) -> Array:
    """Return a value that was read on the devices of the variable, in separate memory."""
    if isinstance(cell, Leaf):
        return cell.place(value)
    if is_string(cell.aval.dtype):
        return to_tensor(value)
    sharding = exclusively(lambda: sharding_now(cell))
    if isinstance(value, jax.Array) and sharding in (None, value.sharding):
        return value
    with as_wide_as(value):
        return jax.device_put(value, sharding, may_alias=False)


def _copy(value: Array) -> Array:
    return context.copied(value) if isinstance(value, jax.Array) else value


@final
class _Left(tuple[object, ...]):
    """What is left of what was in a list or dict, which is entered in the same order."""

    _fields: tuple[str, ...]

    def __new__(cls, found: Iterable[tuple[str, object]]) -> _Left:
        names, values = zip(*found, strict=True) if (found := list(found)) else ((), ())
        made = super().__new__(cls, values)
        made._fields = names
        return made


def list_pending() -> list[Restore]:
    """Return the restores that wait for variables."""
    return [seeker for seeker in PENDING_RESTORES if isinstance(seeker, Restore)]


def giver_of(cell: Cell) -> int:
    """Return the number of the restore that gave a cell its value last; 0 if none did."""
    return _GIVERS.get(cell, 0)


def _shorten(paths: list[str]) -> list[str]:
    return paths if len(paths) <= 8 else [*paths[:6], f"and {len(paths) - 6} more"]


@atexit.register
def _warn_at_exit() -> None:
    for restore in list_pending():
        restore.warn()
