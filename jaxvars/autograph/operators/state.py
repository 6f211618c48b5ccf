"""The names that a staged block assigns: what they are before, in and after it.

Rules this file keeps:
- a Variable under one of the names stays itself, unless the block gives the name another value;
- what has no value on some way through a block can be carried only if it has a form: the value
  to be returned is zeros until there is one (a flag guards it); what a loop sets that
  may run zero times is checked when it is read; what one branch alone sets must not be read;
- an item or attribute that a loop sets first is absent in its first iteration, and there alone;
- a list or dict that was there before stays itself if all ways through a block end with it;
- these things are found out while the block is traced: it is then traced again, knowing them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, final

from jaxvars.autograph.operators import copies
from jaxvars.autograph.operators.origins import Origin, join, mark, note_block
from jaxvars.autograph.operators.places import Kept, Place, Whole
from jaxvars.autograph.operators.values import (
    FILL,
    PERHAPS,
    REFUSE,
    Later,
    MaybeUndefined,
    Nothing,
    NoValue,
    Plan,
    Undefined,
    drop_tracers,
    forget,
    form_of,
    is_absent,
    is_slice,
    map_variables,
    stand_in,
    variables_in,
)
from jaxvars.autograph.operators.watch import Grown, Other
from jaxvars.autograph.operators.world import World, cells_of
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.objects.identity import are_same
from jaxvars.objects.key_order import map_leaves
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.wrapping import boxed, settled_numbers

_RETURNS = "ag__returns"
_JUMPS = (_RETURNS, "ag__break", "ag__continue")

T = TypeVar("T")
Run: TypeAlias = Callable[[], Any]


@final
class _Again(Exception):  # noqa: N818 - a signal between us, not an error
    """Something about a name has been found out: trace the block once more."""


class State(NamedTuple):
    """What a block assigns: names, as they stand in the source, and places like `self.x`."""

    names: Sequence[str]
    get: Callable[[], tuple[Any, ...]]
    set: Callable[[Any], None]
    parts: Callable[[], Sequence[Place | None]] = tuple


@final
class Block:
    """The state of an `if` or a loop that is being staged.

    Args:
        state: what it assigns.
        roots: the functions of the block, and what they are called with.
        count: how many names, from the first, are used after the block; all, if None.
        lenient: whether what has no value at first may have one later: in loops.
        loop: whether it is traced once for all iterations.
    """

    def __init__(
        self,
        state: State,
        roots: Sequence[Any],
        *,
        count: int | None = None,
        lenient: bool,
        loop: bool = False,
    ) -> None:
        names, self._get, self._set, parts = state
        _refuse_globals(names)
        self._made_of = state, roots
        self._names = tuple("the returned value" if n == "ag__result" else n for n in names)
        self._count = len(names) if count is None else count
        self._world = World(roots, cells_of(state.get, names))
        self._places = [x for x in parts() if x and not self._world.will_find(x)]
        self._lenient = lenient
        self._loop = loop
        self._iteration = False
        self._stand_ins: list[int] = []
        self._copies: list[tuple[Any, list[Any], str]] = []
        self.given: Any = None  # in an iteration: whether places without a first value have one
        self._line = user_line()
        self._plans: dict[int, Plan] = {}
        self._as_values: set[int] = set()
        self._same: dict[int, set[copies.Path]] = {}  # lists and dicts that stay themselves
        self._copies_before = 0  # when it is staged
        self._changed_in_place: set[int] = set()
        self.grown: list[Grown] = []  # at the last `leave`
        self._others_items: list[Grown] = []
        self._origins: dict[str, list[Origin]] = {}  # by name: of the values that it may have
        self._ends: dict[str, list[Origin]] = {}  # at the end of each way through the block
        self._begin()

    def _begin(self) -> None:
        """Take the values before the block, of the places that are known by now."""
        self.names = (*self._names, *(place.label for place in self._places))
        self.start = self._values()
        absent = {i for i, value in enumerate(self.start) if is_absent(value)}
        self._absent = absent - self._plans.keys()
        self._ends = {name: [] for name in self.names}
        self._ways = copies.Ways(self._is_old)
        for name, value in zip(self.names, self.start if self._loop else (), strict=False):
            join(self._origins.setdefault(name, []), value)
        for i, value in enumerate(self.start):
            if isinstance(value, MaybeUndefined) and i not in self._plans:
                self._plan(i, value)

    def attempt(self, stage: Callable[[], Sequence[Any]], *, runs: bool = False) -> None:
        """Stage the block, as often as it takes; then give the names their new values.

        Args:
            stage: returns these, packed.
            runs: whether it is a loop that has an iteration for sure.
        """
        self._copies_before = copies.count()
        while True:
            try:
                results = stage()
                break
            except _Again:
                self._reset()
                self._begin()
            except BaseException:
                self._reset()
                raise
        note_block()
        if self._loop and not runs:
            self._ways.note(self.start)
        self._finish(results, self._ends if runs or not self._loop else self._origins)

    def _finish(self, results: Sequence[Any], origins: dict[str, list[Origin]]) -> None:
        """Give the names their values after the block."""
        new = list(self.start)
        for i, result in zip(self._used_indices(), results, strict=True):
            value = self._unpack(i, result)
            mark(value, origins[self.names[i]])
            is_place = i >= len(self._names)  # what it holds has to be there
            new[i] = value.read() if is_place and isinstance(value, MaybeUndefined) else value
        self._put(new)
        made = {i: new[i] for i in self._used_indices()}
        self._ways.note_copies(made, self.names, self._line, self._made_of[1])

    def repeat(self) -> None:
        """Trace the block again if lists grow in it: it must not read what it has appended."""
        if self.grown and not self._others_items:
            self._others_items = self.grown
            raise _Again

    def used(self, values: Sequence[T]) -> list[T]:
        """Return, of values for all names and places, those that are used after the block."""
        return [values[i] for i in self._used_indices()]

    def _used_indices(self) -> list[int]:
        return [*range(self._count), *range(len(self._names), len(self.names))]

    def packed_start(self) -> tuple[Any, ...]:
        """Return the values before the block, as they are passed to `control`."""
        return tuple(map(self._pack, range(len(self.start)), self.start))

    def enter(self, state: Sequence[Any] | None = None) -> None:
        """Give the names the values that `control` passes, or those from before the block."""
        note_block()
        given = self.start if state is None else map(self._unpack, range(len(state)), state)
        values = list(given)
        for i in self.unset():  # all have a value but in the first iteration, or none has
            self.given, values[i] = values[i].given, values[i].value
        if state is not None:
            self._note_objects(values)
            for name, value in zip(self.names, values, strict=True):
                mark(value, self._origins[name])
        self._put(values)
        for grown in self._others_items:
            grown.owner.extend(Later(grown.label) for _ in grown.items)

    def leave(
        self, other: Sequence[Any] | None, *, raised: bool = False
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the values now, untraced, and packed; `other` are those on the other way."""
        self._check_objects()
        values = tuple(map(Nothing, self.names)) if raised else self._values()
        for i in range(len(values) if other else 0):
            self._compare(i, values, other or ())
        packed = self._pack_all(values)
        self._retrace_for_changes(raised=raised)
        self._check_sources()
        self._note_origins(values)
        self.put_names_back()
        return tuple(map(self._drop_tracers, values)), packed

    def _drop_tracers(self, value: Any) -> Any:
        return copies.change(value, lambda x, _: x if self._is_old(x) else drop_tracers(x))

    def _is_old(self, value: Any) -> bool:
        """Return whether a value is a list or dict that was there before the block."""
        return copies.is_container(value) and self._world.holds(value)

    def first_or_later(self, run: Run) -> tuple[Block, tuple[Run, Run]]:
        """Return what makes an iteration an `if` on `given`.

        In the first iteration the places that the loop sets must have no value: the body may check.
        """

        def first() -> None:
            for i in self.unset():
                place = self._places[i - len(self._names)]
                place.write(Undefined(place.label))
            run()

        state, roots = self._made_of
        block = Block(state._replace(parts=lambda: self._places), roots, lenient=False)
        block._iteration = True
        return block, (run, first)

    def unset(self) -> list[int]:
        """Return which places have no value before the loop, and get one in it."""
        return [i for i in self._plans if self._loop and i >= len(self._names)]

    def put_names_back(self) -> None:
        """Give the names their values from before the block: none outlives a trace."""
        forget(self._stand_ins)
        copies.forget(self._copies_before)
        self._set(self.start[: len(self._names)])

    def _values(self) -> tuple[Any, ...]:
        return (*self._get(), *(place.read() for place in self._places))

    def _put(self, values: Sequence[Any]) -> None:
        n = len(self._names)
        self._set(values[:n])
        for place, value in zip(self._places, values[n:], strict=True):
            place.write(value)

    def _reset(self) -> None:
        """Let everything be as it was before the block."""
        self.put_names_back()
        self._world.undo()

    # ------------------------------------------------------------ objects that values stand in for
    def _note_objects(self, values: Sequence[Any]) -> None:
        """Note arrays, lists and dicts that are not those from before the loop, but like them."""
        self._copies = []
        for name, old, value in zip(self.names, self.start, values, strict=True):
            self._note(name, old, value)

    def _note(self, name: str, old: Any, value: Any) -> None:
        if isinstance(old, list | dict | tuple) and type(value) is type(old) and value is not old:
            if isinstance(value, list | dict):
                self._copies.append((value, copies.content(value), name))
                copies.note(value, [old] if self._is_old(old) else [], name, self._line)
            for one, other in zip(_inside(old), _inside(value), strict=True):
                self._note(name, one, other)
        elif not isinstance(value, NoValue):
            self._stand_ins += stand_in(value, old, name)

    def _check_objects(self) -> None:
        """Refuse changes of lists and dicts that others may hold, too."""
        for now, before, name in self._copies:
            if not are_same(copies.content(now), before):
                raise ControlFlowError(
                    f"{name!r} is changed in place in the loop at {self._line}, and is assigned in "
                    f"it, too: a {type(now).__name__} that others may hold is not carried as one "
                    f"object then. Change a copy: {name} = {name}.copy()."
                )

    def _check_sources(self) -> None:
        """Refuse changes, in a loop, of what the next iteration has a copy of."""
        owners = {id(x.owner) for x in (*self._places, *self.grown)}
        for i, start in enumerate(self.start if self._loop else ()):
            stays = i in self._same or i in self._changed_in_place
            sources = () if is_absent(start) or stays else self._ways.sources(i)
            if changed := [x for x in sources if id(x) in owners]:
                raise copies.copied_error(changed[0], self.names[i], self._line)

    # ------------------------------------------------------------ finding out
    def _note_origins(self, values: Sequence[Any]) -> None:
        """Note which types the values have; trace a loop again in which others were counted on."""
        for name, value in zip(self.names, values, strict=True):
            join(self._ends[name], value)
        later = zip(self.names, values if self._loop else (), strict=False)
        if sum(join(self._origins[name], value) for name, value in later):
            raise _Again

    def _retrace_for_changes(self, *, raised: bool) -> None:
        """Trace the block again if it has changed objects in places that we did not know of."""
        changes = self._world.undo()
        if raised:
            changes = [change for change in changes if isinstance(change, Grown)]
        self.grown = [change.own() for change in changes if isinstance(change, Grown)]
        if others := [change for change in changes if isinstance(change, Other)]:
            raise _not_a_value_error(others[0].label, self._line)
        known = {place.identity for place in self._places}
        places = [x for x in changes if isinstance(x, Place) and x.identity not in known]
        owners = {id(x.owner) for x in changes if isinstance(x, Place | Grown)}
        in_place = {i for i, value in enumerate(self.start) if id(value) in owners}
        if places or in_place - self._changed_in_place:
            _refuse_globals([place.label for place in places])
            self._add(places)
            self._changed_in_place |= in_place
            raise _Again

    def _add(self, places: Sequence[Place]) -> None:
        wholes = {id(place.owner) for place in places if isinstance(place, Whole)}
        if wholes:  # in place of items of the same lists
            self._plans = {i: plan for i, plan in self._plans.items() if i < len(self._names)}
        self._places = [x for x in self._places if id(x.owner) not in wholes] + list(places)

    def _compare(self, i: int, *ways: Sequence[Any]) -> None:
        """Trace the block again if the two ways through it differ in a way that we can mend."""
        mine, theirs = values = [way[i] for way in ways]
        if i >= len(self._names) and self._loop:
            self._check_unset(i, mine)
        if is_absent(mine) and is_absent(theirs):
            self._absent.add(i)
            return
        self._absent.discard(i)
        if any(isinstance(x, NoValue) for x in values):
            if i not in self._plans:
                self._plan(i, *values, jump=self._jump_of(ways[is_absent(theirs)]))
                raise _Again
        elif i not in self._as_values and variables_in(mine) != variables_in(theirs):
            self._refuse_to_lose_variables(i)
            self._as_values.add(i)
            raise _Again
        elif new := set(copies.shared(mine, theirs)) - self._same.get(i, set()):
            self._same.setdefault(i, set()).update(new)
            raise _Again

    def _refuse_to_lose_variables(self, i: int) -> None:
        """Refuse that a place which holds a Variable holds a value after the block."""
        if i >= len(self._names) and variables_in(self.start[i]):
            raise ControlFlowError(
                f"{self.names[i]!r} is given another Variable, or a value in its place, in a "
                f"branch or loop at {self._line} on a traced value: a program cannot choose what "
                "an object holds, and would lose the Variable. Assign to it, "
                f"{self.names[i]}.assign(value), or give the value a separate name."
            )

    def _check_unset(self, i: int, value: Any) -> None:
        """Refuse a place of a loop that some iterations find with a value, and others without."""
        has_value = not is_absent(self.start[i]) or i in self._plans
        if is_absent(value) and has_value:
            raise _some_iterations_error(self.names[i], self._line)

    def _jump_of(self, values: Sequence[Any]) -> str:
        """Return the flag of the jump in which a way through the block ends, if it does."""
        pairs = zip(self._names, values, strict=False)
        return next((name for name, x in pairs if name.startswith(_JUMPS) and x is True), "")

    def _plan(self, i: int, *values: Any, jump: str = "") -> None:
        """Decide how to carry what has a value on some ways only.

        Args:
            i: the index of the name or place.
            *values: on the ways.
            jump: the flag of the jump in which the way without a value ends.
        """
        value = next(x for x in values if not is_absent(x))
        missing = "else" if is_absent(values[0]) else "main"
        if isinstance(value, MaybeUndefined):
            value, kind = value.value, PERHAPS
        elif any(isinstance(x, Nothing) for x in values):
            kind = FILL
        elif jump == _RETURNS and i < len(self._names):
            kind = FILL  # nothing reads it after that
        else:
            kind = PERHAPS if self._lenient or (jump and i < len(self._names)) else REFUSE
        if kind == REFUSE and self._iteration:
            raise _some_iterations_error(self.names[i], self._line)
        if kind == REFUSE and i >= len(self._names):
            raise ControlFlowError(
                f"'{self.names[i]}' must also be initialized in the {missing} branch of the `if` "
                f"at {self._line}, or before it: which branch runs is a traced value."
            )
        self._plans[i] = Plan(kind, map_leaves(form_of, settled_numbers(value)), missing)
        self._absent.discard(i)

    # ------------------------------------------------------------ to and from _control
    def _pack_all(self, values: Sequence[Any]) -> tuple[Any, ...]:
        copies.check(self._copies_before)
        self._ways.note(values)
        return tuple(map(self._pack, range(len(values)), values))

    def _pack(self, i: int, value: Any) -> Any:
        if i in self._plans:
            return self._plans[i].pack(value)
        if is_absent(value):
            return None
        if is_slice(value):
            return value.value
        if i in self._changed_in_place and value is self.start[i]:
            return Kept(value)
        value = copies.keep(value, self._same.get(i, ()))
        return settled_numbers(map_variables(unwrap if i in self._as_values else Kept, value))

    def _unpack(self, i: int, value: Any) -> Any:
        if value is None and i in self._absent:
            start = self.start[i]
            return start if is_absent(start) else Undefined(self.names[i])
        if i in self._plans:
            return self._plans[i].unpack(self.names[i], self._line, value)
        return copies.change(value, lambda x, _: _release_and_box(x))


def _release_and_box(value: Any) -> Any:
    if isinstance(value, Kept) and copies.is_container(value.held):
        return value.held  # boxing would copy it
    return boxed(map_leaves(_release, value, is_leaf=lambda x: isinstance(x, Kept)))


def _release(value: Any) -> Any:
    return value.held if isinstance(value, Kept) else value


def _inside(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, dict) else value


def _some_iterations_error(name: str, line: str) -> ControlFlowError:
    return ControlFlowError(
        f"{name!r} has a value at the start of some iterations of the loop at {line} and none at "
        "that of others, and not just of the first: all of them are traced as one, which can't "
        f"tell. Give it a value before the loop, {name} = ..., and let every iteration leave it "
        "with one."
    )


def _not_a_value_error(label: str, line: str) -> ControlFlowError:
    return ControlFlowError(
        f"{label} is changed in a branch or loop at {line}, on a traced value. A staged block runs "
        "its Python once, while it is traced, whichever way the program then goes; and what has "
        "changed is not a value that a program can carry. Change it outside of the block, or keep "
        "what changes in a variable."
    )


def _refuse_globals(names: Sequence[str]) -> None:
    for full in names:
        _, is_global, name = full.rpartition("global ")
        if is_global:
            raise ControlFlowError(
                f"The global {name!r} is assigned at {user_line()} in a branch or loop on a traced "
                "value: it would keep a value that has no meaning outside of the program. Use a "
                f"variable, {name} = jv.Variable(...), and {name}.assign(...)."
            )
