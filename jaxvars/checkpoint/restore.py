"""A checkpoint on its way into variables: now, or when the variables are created.

Rules this file keeps:
- all values of a checkpoint are read and verified before any variable is changed; what does not
  fit or is damaged is listed for all of them, and then nothing is changed;
- a value without a variable waits (`checkpoint/waiting.py`): new variables are compared with what
  waits before they are used, until all values have been taken;
- what waits ends when another checkpoint is restored that has a value for the same place, and not
  before;
- what waits does not keep the objects alive, and ends with them.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from typing import Any, TypeAlias, final

from jaxvars.checkpoint.matching import (
    Refuse,
    describe_clash,
    has_lost,
    is_there,
    may_have_more,
    misfits_of,
    name_owner,
    owner_in,
    owners_of,
    place_value,
    refuse_alike,
)
from jaxvars.checkpoint.stored import Stored
from jaxvars.checkpoint.trees import Leaf, Trees
from jaxvars.checkpoint.waiting import (
    LOCK,
    PENDING,
    Given,
    Held,
    Report,
    Waiting,
    Wanted,
    finding,
    given_by,
    shorten,
    take_place,
)
from jaxvars.core.cells import STORE, TRANSACTIONS, Cell
from jaxvars.core.store import alone, exclusively
from jaxvars.core.variable import Variable
from jaxvars.errors import CheckpointError, user_line
from jaxvars.modules.module import Late, Module, other_paths
from jaxvars.modules.state import cells_by_path
from jaxvars.objects.traversal import CLOSED_TYPES, Holder, Path, children_of, holds_objects, walk
from jaxvars.tracing import context
from jaxvars.typing import Array

Roots: TypeAlias = Mapping[str | None, object]  # None is the name of what has no name
Found: TypeAlias = tuple[list[tuple[Path, object]], list[tuple[Path, object]]]

_BOXES = (list, tuple, deque, Mapping, Set)  # objects in them may live longer than they do
_NO_CELL = -1  # in the place of a cell's key, for an array
_NO_PATHS: Mapping[int, str] = {}
_NONE: Set[int] = frozenset()


def find(roots: Roots, *kinds: type) -> Found:
    """Return the objects of some kinds in what has a name, and those in what has none."""
    named = {name: root for name, root in roots.items() if name is not None}
    return list(walk(named, kinds)), list(walk(roots.get(None), kinds))


def cells_of(
    found: Found, before: Mapping[int, str] = _NO_PATHS, refuse: Refuse = refuse_alike
) -> dict[str, Cell]:
    """Return the cells of the variables among what was found, by path.

    Slots of variables that were there `before`, by key of their cells, are called by that path.
    """
    firsts, others = (  # what has a name keeps it
        [(p, v._cell) for p, v in each if isinstance(v, Variable) and all(map(is_there, p))]
        for each in found
    )
    keys, places = {cell.key for _, cell in firsts}, {"/".join(path) for path, _ in firsts}
    names = {key: path for key, path in before.items() if path not in places}

    def compare(path: Path, one: Cell, other: Cell) -> None:
        if (one.key in keys) == (other.key in keys):
            refuse(path, one, other)

    return cells_by_path([*firsts, *others], lambda part: name_owner(part, names), compare)


def match_cells(
    found: Found, roots: Roots, entries: Set[str], others: Mapping[str, str],
    before: Mapping[int, str] = _NO_PATHS, refuse: Refuse = refuse_alike,
) -> dict[str, Cell]:  # fmt: skip
    """Return the cells of all variables, of each under the path that a checkpoint has, if any.

    Args:
        found: the variables, as `find` returns them.
        roots: the objects that they are in.
        entries: the paths in the checkpoint.
        others: other paths that variables had when they were saved, with those in the checkpoint.
        before: see `cells_of`.
        refuse: the same.
    """
    cells = cells_of(found, before, refuse)
    for _ in range(2):  # slots are moved with their variables
        wanted = {cell.key for path, cell in cells.items() if path not in entries}
        paths = list(list_paths(roots, cells)) if wanted else []
        moved: dict[str, Variable] = {}
        # A variable that has a path now comes before one that had it.
        for known in (dict[str, str](), others):
            for path, variable in paths:
                place = path if path in entries else known.get(path, path)
                if variable._cell.key in wanted and place in entries - cells.keys() - moved.keys():
                    wanted.discard(variable._cell.key)
                    moved[place] = variable
        if not moved:
            break
        found = [*(((path,), v) for path, v in moved.items()), *found[0]], found[1]
        cells = cells_of(found, before, refuse)
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


def describe_slots(found: Found, paths: Collection[str]) -> dict[str, Any]:
    """Return what is stored of slots that are something else in other optimizers."""
    told: dict[str, dict[str, str]] = {}
    for at, module in _modules_in(found):
        for slot, meaning in module._describe_slots().items():
            start, end = f"{at}/slots/".lstrip("/"), f"/{slot}"
            if any(path.startswith(start) and path.endswith(end) for path in paths):
                told.setdefault(at, {})[slot] = meaning
    return {"slots": told} if told else {}


def build_late(roots: Roots, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Make the variables that wait for first data, where there are values of these `shapes`."""
    for name, root in roots.items():
        for path, late in walk(root, Late):
            start = "/".join([*([] if name is None else [name]), *path, ""])
            mine = (shape for at, shape in shapes.items() if at.startswith(start) and shape)
            if not late.is_built and (shape := next(mine, None)) is not None:
                late.build(shape[-1])


@final
class Restore(Report):
    """One checkpoint on its way into variables."""

    def __init__(
        self, file: Stored, roots: Roots, owner: object, cells: Mapping[str, Cell], trees: Trees
    ) -> None:
        super().__init__(str(file.path), file.stamp, user_line())
        self._parts: list[Waiting] = []
        self._others = others_in(file)  # a variable of which two were made has one value for both
        again = {p: self._others[p] for p in cells if p in self._others and p not in file.entries}
        self._entries = file.entries | {p: file.entries[path] for p, path in again.items()}
        self._owner = weakref.ref(owner, self._look_again)
        self._refs: list[Callable[[], object]] = []
        self._roots = {name: self._refer_weakly(root) for name, root in roots.items()}
        self._paths = {cell.key: path for path, cell in cells.items()}
        leaves = trees.leaves
        self._values = self._read_verified(file, {**leaves, **cells}, again)
        self._absent = sorted(leaves.keys() - file.entries.keys())
        mine = {path: self._values.pop(path) for path in leaves.keys() & self._values.keys()}
        self.taken |= dict.fromkeys(mine, _NO_CELL)
        self._trees = sorted(mine)
        self._put = trees.with_values(mine)

    def begin(self) -> None:
        """Give what is there its values, all or nothing, and wait for the others."""
        with alone(), LOCK:
            cells = self.find_cells()
            if rest := {path: x.shape for path, x in self._values.items() if path not in cells}:
                build_late(self._list_alive(), rest)
                cells = self.find_cells()
            found = {path: (cells[path], x) for path, x in self._values.items() if path in cells}
            left = {path: x for path, x in self._values.items() if path not in found}
            if TRANSACTIONS:
                self._refuse_in_transaction(left)
            first = next((cell for cell, _ in found.values()), None)
            before = _value_of(first)
            try:
                if found:
                    self._give(found)
                self._put()
            except BaseException:
                if first is None or _value_of(first) is not before:  # the variables have theirs
                    self._put()
                raise
            self._put = _do_nothing
            self._supersede(cells)
            if left:
                self._wait(left)
            self._values = {}
            for other in tuple(PENDING):
                if other.bind():
                    other.look(_NONE)  # the status tells what does not fit

    @property
    def is_waiting(self) -> bool:
        """Whether there are values that a variable may take still."""
        return any(part.values for part in self._parts)

    def give_up(self, paths: Set[str], source: str) -> None:
        """Let values wait no longer that something else has been restored for since."""
        for part in self._parts:
            if old := [path for path in part.values if path in paths]:
                self.replaced_by = source
                part.drop(old)

    def _give(self, found: Mapping[str, tuple[Cell, Array]]) -> None:
        if misfits := misfits_of(self._entries, {path: cell for path, (cell, _) in found.items()}):
            raise self.error("does not fit variables that were created since", misfits)
        self.give(found)

    # ------------------------------------------------------------ waiting
    def _refuse_in_transaction(self, left: Iterable[str]) -> None:
        """Raise CheckpointError in a transaction, which could not undo what becomes of values."""
        others = {waiting.report.source for waiting in PENDING}
        why = f"Values of {', '.join(sorted(others))} wait for variables, and might be dropped"
        if left:
            paths = ", ".join(shorten(sorted(left)))
            why = f"There are no variables for {paths}, so these would wait"
        cure = "make all variables before: those of an optimizer by optimizer.build(model)"
        if self._trees and not (left or others):
            why = f"{', '.join(shorten(self._trees))} are arrays in no variable, and would be put"
            cure = "hold them in variables: jv.variables(tree)"
        if left or others or self._trees:
            raise CheckpointError(
                f"{self.source} is restored in jv.transaction() at {self.line}. {why}, which an "
                f"exception would not undo. Restore it outside of the transaction, or {cure}."
            )

    def _supersede(self, cells: Mapping[str, Cell]) -> None:
        """End what waits for values that this checkpoint has."""
        roots, pending = self._list_alive(), list_values()
        for other, names in _name_held(pending, roots, cells, self.stamp) if pending else ():
            self._replace(other, names, cells)
        for other in pending:
            if isinstance(other, _Rest) and other.restore.shares(self):
                self._replace(other, {path: path for path in other.values}, cells)

    def _replace(self, other: Waiting, names: Mapping[str, str], cells: Mapping[str, Cell]) -> None:
        """Drop the values that wait under paths for which there are new ones now."""
        report, stamps = other.report, {waiting.report.stamp for waiting in PENDING}
        old = {path: name for path, name in names.items() if name in self._entries}
        for path, name in old.items():
            mine = Given(report.number, report.stamp, other.values[path].path)
            given = [x for x in (mine, *report.instead.get(mine.path, ())) if x.stamp in stamps]
            self.instead.setdefault(name, []).extend(given)
            if name in cells:
                take_place(cells[name], given)
        if old:
            report.replaced_by = self.source
            other.drop(old)

    def _wait(self, values: Mapping[str, Array]) -> None:
        """Let values wait in the innermost Modules that they are for."""
        holders = {path: x for path, x in _find_modules(self._list_alive()) if _can_hold(x)}
        groups: dict[str | None, list[Wanted]] = {}
        for path, value in values.items():
            at = next((start for start in _starts(path) if start in holders), None)
            start = f"{at}/" if at else ""
            others = [other for other, known in self._others.items() if known == path]
            below = [x.removeprefix(start) for x in (path, *others) if x.startswith(start)]
            place = tuple(below[0].split("/"))
            wanted = Wanted(path, place, self._entries[path], value, tuple(below[1:]))
            groups.setdefault(at, []).append(wanted)
        if None in groups:
            self._parts.append(_Rest(self, groups.pop(None)))
        for at in sorted(groups, key=lambda at: holders[at or ""]._has_slots):  # owners before
            self._parts.append(Held(holders[at or ""], at or "", self, groups[at]))

    def _read_verified(
        self, file: Stored, cells: Mapping[str, Cell | Leaf], again: Mapping[str, str]
    ) -> dict[str, Array]:
        """Return all values; raise one error that lists everything if something is wrong."""
        misfits = misfits_of(self._entries, cells) | self._find_misread(file)

        def keep(path: str, value: Array) -> Array:
            at_once = path in cells and path not in misfits  # or all of it would be on the host
            return place_value(cells[path], value) if at_once else value

        values, corrupt = file.values(keep)
        if misfits or corrupt:
            both = {p: f"{misfits[p]}; {corrupt[p]}" for p in misfits.keys() & corrupt.keys()}
            others = {
                **describe_extra(self._entries.keys() - cells.keys()),
                **describe_missing(cells.keys() - self._entries.keys()),
            }
            raise self.error(
                "was not restored, and changed nothing", others | corrupt | misfits | both
            )
        more = {p: place_value(cells[p], context.copied(values[path])) for p, path in again.items()}
        return values | more

    def _find_misread(self, file: Stored) -> dict[str, str]:
        """Return how slots are something else in the optimizers here, by path."""
        told: Mapping[str, Mapping[str, str]] = file.about.get("slots", {})
        modules = _find_modules(self._list_alive()) if told else ()
        here = {at: module._describe_slots() for at, module in modules}
        return {
            f"{at}/slots/*/{slot}".lstrip("/"): f"{meaning} in the checkpoint, {here[at][slot]} in "
            "the optimizer. Make it as the one that was saved, or restore without it:\n"
            "      jv.checkpoint.Checkpoint(model=model).restore(path).expect_partial()"
            for at, slots in told.items()
            for slot, meaning in slots.items()
            if here.get(at, {}).get(slot, meaning) != meaning
        }

    def look(self) -> dict[str, Cell]:
        """Give all variables that values wait for those, new or not; return all cells, by path."""
        with alone(), LOCK:
            for part in self._parts:
                part.look()
            return self.find_cells()

    def find_cells(self, refuse: Refuse = refuse_alike) -> dict[str, Cell]:
        """Return the cells of the variables that there are; reads meanwhile are not reported."""
        with alone(), LOCK, finding():
            roots, places = self._list_alive(), set(self._paths.values())
            known = given_by(self.stamp).items()  # others may have taken their places since
            before = {key: p for key, p in known if p not in places} | self._paths
            found, entries = find(roots, Variable), self._entries.keys()
            return match_cells(found, roots, entries, self._others, before, refuse)

    def find_own(self, refuse: Refuse) -> dict[str, Cell]:
        """Return the same, less the slots of variables that have taken the places of others."""
        cells = self.find_cells(refuse)
        paths = {cell.key: path for path, cell in cells.items()}
        then = {path: key for key, path in self._paths.items()}
        for path, v in walk(list(self._list_alive().values()), Variable):
            owner = None if (part := owner_in(path)) is None else part.tie()
            key = owner._cell.key if isinstance(owner, Variable) else None
            if key is not None and then.get(paths.get(key, ""), key) != key:
                cells.pop(paths.get(v._cell.key, ""), None)
        return cells

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
            raise self.error(what, problems)
        if self.is_orphaned():
            raise CheckpointError(
                f"The objects that {self.source} was restored into are gone, so that nothing is "
                "left to check. Keep them while you ask:\n"
                "    model = Model()\n"
                "    jv.checkpoint.Checkpoint(model=model).restore(path).assert_consumed()"
            )

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
            self.lose(self._parts)

    def lose(self, parts: Iterable[Waiting]) -> None:
        """Let values wait no longer; all of them, if no object is left."""
        super().lose(self._parts if self.is_orphaned() else parts)

    def is_orphaned(self) -> bool:
        """Return whether the Checkpoint and all objects are gone."""
        return self._owner() is None and all(ref() is None for ref in self._refs)

    def has_root(self, path: str, roots: Roots, owner: object) -> bool:
        """Return whether a path leads to the same object in another Checkpoint, or it is this."""
        name = start if (start := path.split("/")[0]) in roots else None
        root = roots.get(name)
        known = self._roots.get(name, _do_nothing)
        return root is not None and (self._owner() is owner or known() is root)


@final
class _Rest(Waiting):
    """What waits in no Module, but for those in lists and dicts, and for other objects."""

    def __init__(self, restore: Restore, values: Iterable[Wanted]) -> None:
        self.restore = restore
        super().__init__(restore, values)

    def find(self, refuse: Refuse) -> dict[str, Cell]:
        """Return the cells of the variables in what the Checkpoint was given."""
        return self.restore.find_own(refuse)


def _find_modules(roots: Roots) -> Iterable[tuple[str, Module]]:
    return _modules_in(find(roots, Module))


def _modules_in(found: Found) -> Iterable[tuple[str, Module]]:
    for each in found:
        yield from (("/".join(path), x) for path, x in each if isinstance(x, Module))


def _can_hold(module: Module) -> bool:
    """Return whether a copy of a Module has its attributes."""
    kind = type(module)
    return not hasattr(kind, "__deepcopy__") and kind.__reduce__ is object.__reduce__


def _starts(path: str) -> Iterable[str]:
    """Yield what a path begins with, the longest first."""
    parts = path.split("/")
    return ("/".join(parts[:i]) for i in range(len(parts) - 1, -1, -1))


def _name_held(
    pending: Mapping[Waiting, Mapping[str, Wanted]], roots: Roots, cells: Mapping[str, Cell],
    stamp: object = None,
) -> Iterable[tuple[Held, dict[str, str]]]:  # fmt: skip
    """Yield what waits in the Modules in some objects, with the paths that values have there.

    Those of the checkpoint with this `stamp` have their paths in it if they wait for variables of
    another model, and their Module is at its place in the checkpoint.
    """
    holders = {id(x): path for path, x in _find_modules(roots)}
    paths = {cell.key: path for path, cell in cells.items()}
    # Slots are named after what waits for their owners.
    moved: defaultdict[object, dict[str, str]] = defaultdict(dict)  # by stamp, and by number
    known = [waiting for waiting in pending if isinstance(waiting, Held)]
    for waiting in sorted(known, key=lambda waiting: waiting.has_slots):
        values, at, report = pending[waiting], holders.get(id(waiting.holder)), waiting.report
        if at is not None:
            start, is_again = [at] if at else [], report.stamp == stamp and waiting.at == at
            late = moved[report.stamp] | moved[report.number]
            places = _places_left(values, paths.keys(), late.keys())
            names = {
                path: values[path].path
                if is_again and _is_of_others(place, paths)
                else "/".join([*start, *_name_parts(place, paths, late)])
                for path, place in places.items()
            }
            for path, name in () if waiting.has_slots else names.items():
                own = Given(report.number, report.stamp, values[path].path)
                for given in (*report.instead.get(own.path, ()), own):
                    moved[given.stamp][given.path] = moved[given.number][given.path] = name
            yield waiting, names


def _name_parts(place: Path, paths: Mapping[int, str], late: Mapping[str, str]) -> list[str]:
    """Return a path with the names of variables, also of `late` ones, by their paths in a file."""
    parts = [name_owner(part, paths) for part in place]
    is_free = owner_in(place) is None or _is_of_others(place, paths)
    ends = range(2, len(place)) if place[0] == "slots" and is_free else ()
    at = next((i for i in ends if "/".join(place[1:i]) in late), None)
    return parts if at is None else ["slots", late["/".join(place[1:at])], *parts[at:]]


def _is_of_others(place: Path, paths: Mapping[int, str]) -> bool:
    """Return whether a slot waits for variables that are all elsewhere."""
    part = owner_in(place)
    return part is not None and not any(v._cell.key in paths for v in owners_of(part))


def _places_left(values: Mapping[str, Wanted], keys: Set[int], late: Set[str]) -> dict[str, Path]:
    """Return where values wait, less those of variables that are gone.

    Where cells of these `keys` are those that others wait for, so are one that is gone; but for
    those of paths in the file that are still to be made, as they are `late`.
    """
    parts = {path: owner_in(wanted.place) for path, wanted in values.items()}
    owners = {path: owners_of(part) for path, part in parts.items() if part is not None}
    met = {path for path, each in owners.items() if any(v._cell.key in keys for v in each)}
    may_come = {p for p, x in parts.items() if x is not None and may_have_more(x) and x in late}
    lost = {p for p, x in parts.items() if x is not None and has_lost(x)} - may_come
    gone = {path for path in lost - met if met or not owners[path]}
    return {path: wanted.place for path, wanted in values.items() if path not in gone}


def list_values() -> dict[Waiting, dict[str, Wanted]]:
    """Return the values that wait now."""
    return {waiting: dict(waiting.values) for waiting in tuple(PENDING)}


def values_in(
    pending: Mapping[Waiting, Mapping[str, Wanted]], owner: object, roots: Roots,
    cells: Mapping[str, Cell],
) -> dict[str, Array]:  # fmt: skip
    """Return the values, of those that wait, that are state of a Checkpoint's objects, by path.

    Args:
        pending: what waits.
        owner: the Checkpoint.
        roots: its objects.
        cells: of the variables in them, by path.
    """
    found: dict[str, Array] = {}
    late = _name_held(pending, roots, cells) if pending else ()
    for held, names in sorted(late, key=lambda each: each[0].has_slots):
        for path, name in names.items():
            wanted = pending[held][path]
            is_known_by_name = owner_in(wanted.place) is not None and "/name=" in f"/{name}"
            if is_known_by_name and (name in found or name in cells):
                raise CheckpointError(describe_clash((name.partition("/slots/")[0], *wanted.place)))
            if not held.is_surplus(wanted, name, found.keys()):
                found[name] = wanted.value
    for rest, values in pending.items():
        if isinstance(rest, _Rest) and not rest.report.is_partial:
            found |= {
                path: wanted.value
                for path, wanted in values.items()
                if rest.restore.has_root(path, roots, owner)
            }
    return found


def sources_in_use() -> set[str]:
    """Return which checkpoints have values that wait and that no save may write."""
    waiting = (w.report for w in tuple(PENDING) if isinstance(w, _Rest))
    return {report.source for report in waiting if not report.is_partial}


def _value_of(cell: Cell | None) -> Array | None:
    return None if cell is None else exclusively(lambda: STORE.get(cell.key))


def _do_nothing() -> None:
    """Do nothing."""


def describe_extra(paths: Iterable[str]) -> dict[str, str]:
    """Return what is wrong with paths that no variable has."""
    return dict.fromkeys(paths, "extra: no variable has this path")


def describe_missing(paths: Iterable[str]) -> dict[str, str]:
    """Return what is wrong with paths without a value in the checkpoint."""
    return dict.fromkeys(paths, "missing: it is not in the checkpoint")


@final
class _Left(tuple[object, ...]):
    """What is left of what was in a list or dict, which is entered in the same order."""

    _fields: tuple[str, ...]

    def __new__(cls, found: Iterable[tuple[str, object]]) -> _Left:
        names, values = zip(*found, strict=True) if (found := list(found)) else ((), ())
        made = super().__new__(cls, values)
        made._fields = names
        return made
