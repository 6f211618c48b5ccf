"""Values of a checkpoint that wait: for variables that objects will have, or optimizers meet.

Rules this file keeps:
- what waits is part of the state of a Module, the innermost one that it is for: it is saved, copied
  and pickled with it, and ends with it;
- a slot waits for the variable that was restored with it, not for what will be at its path: one
  that takes its place gets none of them, and when the variable is gone they are dropped. If none
  was, it waits for any that the same file is restored into: the one that the optimizer meets;
- an error is raised where the variable is used that it is about, once, whatever other new variables
  are used before;
- a variable that is not new gets a value only when it is asked for: it may have been trained;
- of two checkpoints for one variable, by other names, the one counts that was restored last.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import threading
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple, final

from jaxvars.checkpoint.checksum import Entry
from jaxvars.checkpoint.matching import (
    Owners,
    Refuse,
    describe_clash,
    is_there,
    may_have_more,
    misfits_of,
    name_owner,
    owner_in,
    owners_of,
    place_value,
)
from jaxvars.core.cells import BY_KEY, Cell
from jaxvars.core.frame import CREATED, Frame
from jaxvars.core.frames import LOCAL
from jaxvars.core.store import alone, is_interrupting
from jaxvars.core.variable import Variable
from jaxvars.errors import CheckpointError, CheckpointWarning
from jaxvars.modules.module import WAITING, Module
from jaxvars.objects.traversal import ATOMS, Path, Tie, Tied, walk, walk_again
from jaxvars.tracing import context
from jaxvars.tracing.guards import GUARDS, TAKE, WRITE
from jaxvars.typing import Array

LOCK = threading.RLock()  # taken after `alone()`, as by a transaction that restores
_restoring: list[
    None
] = []  # not empty while variables are found or given values, by the holder of the lock
_NUMBERS = itertools.count(1)
_RANK = 1  # among guards
_LOOKS = 16
_GUARDING = threading.RLock()

PENDING: list[Waiting] = []
"""What waits for variables, to give them other values.

A variable is known by its path once it is in an object. So nothing looks for it when it is created,
but before its value is used.
"""

NEW_CELLS: dict[int, int] = {}
"""The keys of cells created while a restore waits, until they are found in an object, with how
often they are still looked for: one that is used again and again outside is in no object."""


class Given(NamedTuple):
    """Which restore, by its number, gave a cell its value, and what that was in the file."""

    number: int
    stamp: object
    path: str


_GIVEN: weakref.WeakKeyDictionary[Cell, Given] = weakref.WeakKeyDictionary()
"""Where the last value that a cell was given by a checkpoint is from."""

_NEXT: weakref.WeakKeyDictionary[Cell, list[Given]] = weakref.WeakKeyDictionary()
"""What a cell would have been given, had another checkpoint not been restored: its slots wait."""


class Wanted(NamedTuple):
    """A value that waits.

    Attributes:
        path: that in the file.
        place: that below the object.
        entry: what it is.
        value: the value.
        others: further paths below the object that its variable had when it was saved.
    """

    path: str
    place: Path
    entry: Entry
    value: Array
    others: tuple[str, ...] = ()


class Report:
    """What has become of the values of a checkpoint.

    Attributes:
        source: where it was read.
        stamp: tells it from other checkpoints.
        line: the line of the program that restored it.
        number: larger than that of what was restored before.
        waiting: the paths of the values that no variable has taken.
        taken: the keys of the cells that have taken one, by path.
        misfits: what is wrong with variables that came later, by path.
        is_partial: whether it was said that not all will be taken.
        replaced_by: what has been restored into the same objects since, while values waited.
        instead: by path, of which values of other checkpoints that waited a value takes the place.
    """

    def __init__(self, source: str, stamp: object, line: str) -> None:
        self.source, self.stamp, self.line = source, stamp, line
        self.number = next(_NUMBERS)
        self.waiting: set[str] = set()
        self.taken: dict[str, int] = {}
        self.misfits: dict[str, str] = {}
        self.is_partial = False
        self.replaced_by: str | None = None
        self.instead: dict[str, list[Given]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy what is known of the checkpoint: a copy says what becomes of it."""
        return _restored, (self.source, self.stamp, self.line, self.is_partial, self.instead)

    def give(self, pairs: Mapping[str, tuple[Cell, Array]], frame: Frame | None = None) -> None:
        """Give cells their values, by path in the file; if interrupted, it may be done again."""
        with finding(), context.at(context.EVAL):
            mine = {p: pair for p, pair in pairs.items() if giver_of(pair[0]) <= self.number}
            cells = [cell for cell, _ in mine.values()]
            values = [place_value(cell, value) for cell, value in mine.values()]
            (frame or LOCAL.eager).write_all(cells, values, ())
            given = {cell: Given(self.number, self.stamp, p) for p, (cell, _) in mine.items()}
            _GIVEN.update(given)
            for path, (cell, _) in pairs.items():
                take_place(cell, self.instead.get(path, ()))
        self.taken |= {path: cell.key for path, (cell, _) in pairs.items()}
        self.waiting -= pairs.keys()

    def lose(self, parts: Iterable[Waiting]) -> None:
        """Let values wait no longer, as there is nothing any more that could take them."""
        lost = [path for part in parts for path in part.drop(part.values)]
        self.warn(lost)

    def error(self, what: str, problems: Mapping[str, str]) -> CheckpointError:
        """Return an error that lists what is wrong, by path."""
        lines = [f"{path}: {problems[path]}" for path in sorted(problems)]
        return CheckpointError("\n  ".join([f"{self.source} {what}:", *lines]))

    def warn(self, paths: Iterable[str]) -> None:
        """Warn of values that were not taken, unless that was to be expected."""
        if (lost := sorted(paths)) and not self.is_partial:
            warnings.warn(
                f"Of {self.source}, restored at {self.line}, these values were never used: "
                f"{', '.join(shorten(lost))}. If that is right, say so: "
                "checkpoint.restore(path).expect_partial().",
                CheckpointWarning,
                stacklevel=2,
            )


def take_place(cell: Cell, given: Iterable[Given]) -> None:
    """Let a cell be the one that other values waited for, so that their slots are its own."""
    if new := [*given]:
        _NEXT[cell] = [*_NEXT.get(cell, ()), *new]


def _all_given(stamp: object) -> Iterator[tuple[Cell, Given]]:
    """Yield the cells that a checkpoint gave a value, or would have."""
    pairs = [(cell, _NEXT[cell]) for cell in _alive(_NEXT)]
    pairs += [(cell, [_GIVEN[cell]]) for cell in _alive(_GIVEN)]
    yield from ((c, given) for c, each in pairs for given in each if given.stamp == stamp)


def _alive(table: weakref.WeakKeyDictionary[Cell, Any]) -> list[Cell]:
    """Return the cells in a table, to which other threads may add some meanwhile."""
    return [cell for ref in table.keyrefs() if (cell := ref()) is not None]


def _restored(
    source: str, stamp: object, line: str, is_partial: bool, instead: dict[str, list[Given]]
) -> Report:
    made = Report(source, stamp, line)
    made.is_partial = is_partial  # no number: another copy has the slots of the one that it is of
    made.instead = {path: [x._replace(number=0) for x in given] for path, given in instead.items()}
    return made


@contextlib.contextmanager
def finding() -> Generator[None]:
    """Let variables be read and written without a search for those that values wait for."""
    _restoring.append(None)
    try:
        yield
    finally:
        _restoring.pop()


# ---------------------------------------------------------------- what waits
class Waiting(ABC):
    """Values that wait for variables that some objects will have.

    Attributes:
        report: what became of the others of the same checkpoint.
        values: by the path that their variables are found under.
    """

    def __init__(self, report: Report, values: Iterable[Wanted]) -> None:
        self.report = report
        self.values = {"/".join(wanted.place): wanted for wanted in values}
        report.waiting |= {wanted.path for wanted in self.values.values()}
        if self.values:
            with _GUARDING:
                PENDING.append(self)

    @abstractmethod
    def find(self, refuse: Refuse) -> dict[str, Cell]:
        """Return the cells of the variables that there are; `refuse` is told of two of one path."""

    def seek(self, keys: Set[int]) -> set[int]:
        """Give new variables their values; return the keys of all cells that can be found.

        Args:
            keys: of the cells that are used now: what does not fit others is not their concern.

        Raises:
            CheckpointError: when a value does not fit one of these.
        """
        with alone(), LOCK:
            if _restoring:
                return set()
            return self._deliver(NEW_CELLS.keys(), keys, LOCAL.bottom)  # no transaction undoes it

    def look(self, used: Set[int] | None = None) -> None:
        """Give all variables that values wait for those, new or not; raise as `_deliver` does."""
        with alone(), LOCK:
            self._deliver(None, used, LOCAL.eager)

    def _deliver(self, among: Set[int] | None, used: Set[int] | None, frame: Frame) -> set[int]:
        """Give cells `among` some, by key, their values; return the keys of all, but of misfits.

        Raises:
            CheckpointError: when a value does not fit one of those that are `used`: any, if None.
        """
        alike: dict[int, tuple[Path, int]] = {}
        with finding():
            cells = self.find(lambda path, one, other: alike.update({one.key: (path, other.key)}))
        there = {
            p: cells[p] for p, w in self.values.items() if p in cells and self._fits(cells[p], w)
        }
        there = {p: cell for p, cell in there.items() if among is None or cell.key in among}
        misfits = misfits_of({path: self.values[path].entry for path in there}, there)
        misfits |= {p: describe_clash(alike[c.key][0]) for p, c in there.items() if c.key in alike}
        self._give({p: cell for p, cell in there.items() if p not in misfits}, frame)
        about = {p: {there[p].key, alike.get(there[p].key, ((), 0))[1]} for p in misfits}
        self._refuse({p: misfits[p] for p in misfits if used is None or about[p] & used})
        left = {there[p].key for p in misfits}
        return {cell.key for cell in cells.values()} - left

    def _fits(self, cell: Cell, wanted: Wanted) -> bool:
        """Return whether a cell has not been given another value of this checkpoint already.

        A variable has several paths, and may have been two when it was saved.
        """
        given = _GIVEN.get(cell)
        return given is None or given.number != self.report.number or given.path == wanted.path

    @property
    def has_slots(self) -> bool:
        """Whether the values are for an object that makes variables for those that it meets."""
        return False

    def bind(self) -> bool:
        """Note which variables values belong to that have been restored by now; return if any."""
        return False

    def drop(self, paths: Iterable[str]) -> list[str]:
        """Let some values wait no longer; return their paths in the file."""
        dropped = [self.values.pop(path).path for path in list(paths)]
        if not self.values:
            self.end()
        return dropped

    def end(self) -> None:
        """Wait no longer."""
        self.values.clear()
        with _GUARDING:  # another thread may begin to wait
            with contextlib.suppress(ValueError):
                PENDING.remove(self)
            if not PENDING:
                NEW_CELLS.clear()
                _stop_looking()

    def _give(self, cells: Mapping[str, Cell], frame: Frame) -> None:
        if cells:
            wanted = {cell: self.values[path] for path, cell in cells.items()}
            own = {w.path: (cell, context.copied(w.value)) for cell, w in wanted.items()}
            self.report.give(own, frame)  # what waits may be saved or copied still
            self.drop(cells)

    def _refuse(self, misfits: Mapping[str, str]) -> None:
        """Raise CheckpointError where values do not fit their variables, once."""
        if misfits:
            problems = {self.values[path].path: what for path, what in misfits.items()}
            self.report.misfits |= problems
            self.report.waiting -= problems.keys()
            self.drop(misfits)
            raise self.report.error("does not fit variables that were created since", problems)


@final
class Held(Waiting):
    """Values that wait for variables in a Module, as an attribute of which they are kept.

    Attributes:
        at: the path of the Module in the checkpoint.
    """

    def __init__(self, holder: Module, at: str, report: Report, values: Iterable[Wanted]) -> None:
        self._holder, self.at = Tie(holder), at
        self._begin(report, values)
        vars(holder).setdefault(WAITING, []).append(self)
        self.bind()

    def _begin(self, report: Report, values: Iterable[Wanted]) -> None:
        super().__init__(report, values)
        holder, self._end_with = self.holder, None
        if holder is not None:
            self._end_with = weakref.finalize(holder, self._be_orphaned)
            self._end_with.atexit = False

    def __getstate__(self) -> tuple[Any, ...]:
        """Return what waits, but for what a variable did not take that is there: a copy is new."""
        with alone(), LOCK, finding():
            cells = self._find_cells(lambda *_: None)
            there = {path for path, cell in cells.items() if cell.key not in NEW_CELLS}
            left = [wanted for path, wanted in self.values.items() if path not in there]
        return self._holder, self.at, self.report, left

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Begin to wait in the copy of the object."""
        self._holder, self.at, report, values = state
        self._begin(report, values)

    @property
    def holder(self) -> Module | None:
        """The object, or None if it is gone."""
        return self._holder()

    def end(self) -> None:
        """Wait no longer."""
        super().end()
        if self._end_with is not None:
            self._end_with.detach()
        held: list[Held] = [] if self.holder is None else vars(self.holder).get(WAITING, [])
        if self in held:  # another list, in the same dict: they may be being copied
            vars(self.holder)[WAITING] = [other for other in held if other is not self]

    def bind(self) -> bool:
        """Note which variables slots may be of that have been restored by now; return if any."""
        found = _find_owners(self.report) if self.has_slots else {}
        late = self._list_late() if found else set[str]()
        known = {path: x for path, x in found.items() if x.are_sure or path not in late}
        bound = {path: _tied(wanted.place, known) for path, wanted in self.values.items()}
        new = {p: place for p, place in bound.items() if place is not self.values[p].place}
        self.values.update((p, self.values[p]._replace(place=x)) for p, x in new.items())
        return bool(new)

    def _list_late(self) -> set[str]:
        """Return the paths in the file of variables that are still to be made, in other Modules.

        A variable of another model that was restored from such a path is not the one.
        """
        others = [x for x in tuple(PENDING) if isinstance(x, Held) and x.report is self.report]
        return {wanted.path for other in others for wanted in tuple(other.values.values())}

    def list_owners(self, slot: str) -> list[list[Variable]]:
        """Return for each slot of this name that waits the variables of which one has it."""
        with alone(), LOCK:
            self.bind()
            parts = [owner_in(w.place) for w in self.values.values() if w.place[2:] == (slot,)]
            return [owners_of(part) for part in parts if part is not None]

    def find(self, refuse: Refuse) -> dict[str, Cell]:
        """Return the cells of the variables in the object, by path below it."""
        self._drop_gone()
        return self._find_cells(refuse)

    def _find_cells(self, refuse: Refuse) -> dict[str, Cell]:
        self.bind()
        parts = {part for w in self.values.values() if (part := owner_in(w.place)) is not None}
        bound = {v._cell.key: str(part) for part in parts for v in owners_of(part)}
        given = given_by(self.report.stamp).items()
        names = {key: path for key, path in given if path not in parts} | bound
        cells: dict[str, Cell] = {}
        for path, v in walk(self.holder, Variable):
            if all(map(is_there, path)):
                name = "/".join(name_owner(part, names) for part in path)
                if cells.setdefault(name, v._cell) is not v._cell:
                    refuse((self.at, *path), cells[name], v._cell)
        return cells | self._find_by_others(cells)

    def _find_by_others(self, cells: Mapping[str, Cell]) -> dict[str, Cell]:
        """Return the cells of variables that have their paths besides those of these cells."""
        values = dict(self.values)  # the collector may end them meanwhile
        if not (missing := values.keys() - cells.keys()):
            return {}
        again = {"/".join(path): v._cell for path, v in walk_again(self.holder, Variable)}
        known = again | {path: cell for path, cell in cells.items() if path not in values}
        taken = {cell.key for path, cell in cells.items() if path in values}
        found: dict[str, Cell] = {}
        for path in sorted(missing):
            others = [other for other in (path, *values[path].others) if other in known]
            if others and (cell := known[others[0]]).key not in taken:
                taken.add(cell.key)
                found[path] = cell
        return found

    def _drop_gone(self) -> None:
        """Drop the slots of variables that are gone, unless others may still be restored."""
        parts = {p: owner_in(w.place) for p, w in self.values.items()}
        gone = [p for p, x in parts.items() if x and not is_there(x) and not may_have_more(x)]
        if gone:
            self.report.warn(self.drop(gone))

    def _be_orphaned(self) -> None:
        self.report.lose([self])

    @property
    def has_slots(self) -> bool:
        """Whether the object makes variables for those that it meets."""
        return self.holder is not None and self.holder._has_slots

    def is_surplus(self, wanted: Wanted, name: str, others: Set[str]) -> bool:
        """Return whether a value is none of the object's, as was said by `expect_partial()`.

        Where there is anything that may take it, it is not: a variable that it is a slot of, also
        one that is not there yet and of the `others` that wait, or an object without variables.
        """
        if not self.report.is_partial:
            return False
        if not self.has_slots:
            return next(walk(self.holder, Variable), None) is not None
        parts = f"/{name}".partition("/slots/")[2].split("/")
        starts = {"/".join(parts[:i]) for i in range(1, len(parts))}
        is_slot = wanted.place[0] == "slots" and "=" not in parts[0]
        return is_slot and owner_in(wanted.place) is None and starts.isdisjoint(others)


ATOMS.add(Held)


def _find_owners(report: Report) -> dict[str, Owners]:
    """Return the variables that have been restored from a checkpoint, by their paths in it."""
    found: dict[str, Owners] = {}
    for cell, given in _all_given(report.stamp):
        if (owner := cell.owner()) is not None:
            one = Owners((Tie(owner),), given.number == report.number)
            found[given.path] = found[given.path].join(one) if given.path in found else one
    return found


def _tied(place: Path, known: Mapping[str, Owners]) -> Path:
    """Return the path of a slot with what stands for its variables, where some are known."""
    if (part := owner_in(place)) is not None:
        owners = known.get(part)
        joined = part.tie.join(owners) if isinstance(part.tie, Owners) and owners else part.tie
        return place if joined is part.tie else ("slots", Tied(part, joined), *place[2:])
    parts = place[1:] if place[0] == "slots" else ()
    for i in range(1, len(parts)):
        if (path := "/".join(parts[:i])) in known:
            return ("slots", Tied(path, known[path]), *parts[i:])
    return place


# ---------------------------------------------------------------- new variables
def announce(keys: Iterable[int], looks: int = _LOOKS) -> None:
    """Have variables looked for when they are used, by cell key: so often at most."""
    with _GUARDING:
        try:
            for key in keys:
                NEW_CELLS.setdefault(key, looks)
        finally:  # also when a finalizer has taken the guard away meanwhile, or Ctrl-C came
            GUARDS[_RANK] = _seek


def _owners_first() -> list[Waiting]:
    """Return what waits; last the slots, which are known by the variables that they are of."""
    return sorted(PENDING, key=lambda waiting: waiting.has_slots)


def settle() -> None:
    """Give all new variables the values that wait for them."""
    if NEW_CELLS and _RANK in GUARDS:  # which a forked process has not
        for waiting in _owners_first():
            waiting.seek(NEW_CELLS.keys())


def _announce(cell: Cell) -> None:
    if PENDING:
        with _GUARDING:
            if PENDING:  # else another thread was first
                announce((cell.key,))


def _seek(doing: object, cells: Sequence[Cell]) -> None:
    """Look for the variables that are used, if some of them are new; a guard.

    What is only shown is not looked for. Not to be called while `CURRENT` is `BUSY` for this
    thread: values are written.
    """
    if doing not in (TAKE, WRITE):
        return
    wanted = [cell.key for cell in cells if cell.key in NEW_CELLS]
    if wanted and not is_interrupting():
        found = [waiting.seek({*wanted}) for waiting in _owners_first()]
        for key in set().union(*found):
            NEW_CELLS.pop(key, None)
        for key in wanted:
            if (left := NEW_CELLS.get(key, 0) - 1) > 0:
                NEW_CELLS[key] = left  # it is there all the time: other threads look, too
            else:
                NEW_CELLS.pop(key, None)
    _stop_looking()


def _stop_looking() -> None:
    """Look for nothing any more, if there is nothing to look for."""
    if not NEW_CELLS and _GUARDING.acquire(blocking=False):
        try:
            if not NEW_CELLS:  # the guard is never away while there are some
                GUARDS.pop(_RANK, None)
        finally:
            _GUARDING.release()


BY_KEY.append(NEW_CELLS)
CREATED.append(_announce)


def giver_of(cell: Cell) -> int:
    """Return the number of the restore that gave a cell its value last; 0 if none did."""
    return _GIVEN[cell].number if cell in _GIVEN else 0


def given_by(stamp: object) -> dict[int, str]:
    """Return which cells have their values from a checkpoint, by key, with the paths in it."""
    return {cell.key: given.path for cell, given in _all_given(stamp)}


def shorten(paths: list[str]) -> list[str]:
    """Return some paths and how many more there are, if they are many."""
    return paths if len(paths) <= 8 else [*paths[:6], f"and {len(paths) - 6} more"]


@atexit.register
def _warn_at_exit() -> None:
    reports = {waiting.report: list[str]() for waiting in PENDING}
    for waiting in PENDING:
        reports[waiting.report] += [wanted.path for wanted in waiting.values.values()]
    for report, paths in reports.items():
        report.warn(paths)
