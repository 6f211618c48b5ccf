"""Why a tape has no gradient of a target: what `tape.explain` and warnings say."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

from jaxvars.autodiff.recording import Record
from jaxvars.autodiff.tape_base import TapeBase, flatten, warn
from jaxvars.core.cells import Cell
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.errors import called, user_line, word_for
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.typing import Array, Value


def explain(tape: TapeBase, target: Any, source: Any) -> str:
    """Say whether a target depends on a source on a tape, and if not, why not."""
    return _why_source(tape, source) or _why_target(tape, target) or _why_path(tape, target, source)


class AssignNote(NamedTuple):
    """What is known of an assign.

    Attributes:
        parts: what is known of that which the value is made of.
        ref: to the variable's cell.
        own: the variable's name.
        line: the user's.
        keeps: whether it may be there to be read again: nothing has read the variable before, as
            what goes on from a statistic or a state does; or some of it is written, of a buffer.
    """

    parts: Sequence[Any]
    ref: weakref.ref[Cell]
    own: str
    line: str
    keeps: bool

    @property
    def name(self) -> str:
        """What the variable is called."""
        return called(self.ref() or self.own)


@final
class AssignNotes:
    """What a tape keeps of assigns, and of what was read after them.

    Attributes:
        after: by identity, the values that were read after an assign, with that.
    """

    __slots__ = ("_seen", "after")

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self.after: dict[int, tuple[Array, AssignNote]] = {}

    def saw(self, tape: TapeBase, cell: Cell, value: Array) -> None:
        """Take note of a read."""
        if (assign := tape._assigns.get(cell.key)) and is_inexact(value):
            note, record = assign.note, tape._record
            self.after[id(value)] = value, note
            is_lost = note.keeps and tape._reverse and not tape.through_assigns
            if is_lost and any(map(record.knows, note.parts)):
                record.watch(value)  # so that it is known where it goes
        self._seen.add(cell.key)

    def wrote(
        self, tape: TapeBase, assigns: Sequence[tuple[Cell, Any]], is_partial: bool
    ) -> list[AssignNote]:
        """Return what is known of assigns."""
        line = user_line()
        return [
            self._note(
                tape, cell, value, line, is_partial or _has_written_part(tape._record, value)
            )
            for cell, value in assigns
        ]

    def _note(
        self, tape: TapeBase, cell: Cell, value: Any, line: str, is_partial: bool
    ) -> AssignNote:
        record, parts = tape._record, list[Array]()
        if callable(value) and not record.paused:
            before = tape._assigns.get(cell.key)
            parts = [*before.note.parts] if before else []
            parts += filter(record.knows, _closed_over(value))
        elif not record.paused:
            parts = [value]
        keeps = is_partial or cell.key not in self._seen
        return AssignNote(parts, weakref.ref(cell), cell.name, line, keeps)

    def forget_reads(self, cells: Iterable[Cell]) -> None:
        """Forget that variables were read."""
        self._seen.difference_update(cell.key for cell in cells)

    def warn_of_none(self, tape: TapeBase, target: Any, sources: Sequence[Any]) -> None:
        """Say why no source has a gradient, unless that has been said: of integers."""
        targets = flatten(target)[0]
        if targets and all(map(is_inexact, (tape._target_value(targets[0]), *sources))):
            warn(
                f"All gradients are None. {explain(tape, targets[0], sources[0])} "
                "`tape.explain(target, source)` says this of each source."
            )

    def warn_of_gaps(
        self,
        tape: TapeBase,
        sources: Sequence[Any],
        targets: Sequence[Value | None],
        values: Sequence[Array],
        found: Sequence[Array | None],
    ) -> None:
        """Say what of a gradient is missing, where it is not None as a whole.

        Args:
            tape: that has recorded.
            sources: of the gradients.
            targets: of the gradients.
            values: what the sources stand for.
            found: the gradients.
        """
        _warn_of_integers(sources, targets)
        is_some = any(grad is not None for grad in found)
        if self.after and not tape.through_assigns and is_some:
            _warn_of_lost_part(tape, targets, values)


def forget_reads(cells: Iterable[Cell]) -> None:
    """Have the tapes forget that variables were read: by what reads all that there are."""
    for tape in LOCAL.frame.observers:
        if isinstance(tape, TapeBase) and isinstance(tape._notes, AssignNotes):
            tape._notes.forget_reads(cells)


_PARTIAL = {"scatter", "scatter-add", "scatter-mul", "dynamic_update_slice"}


def _has_written_part(record: Record, value: Any) -> bool:
    """Return whether the last operation has written a part of an array, of which it made it."""
    last = record.nodes[-1] if record.nodes else None
    return last is not None and last.equation.name in _PARTIAL and last.outputs[0] is value


def _closed_over(function: Any) -> list[Any]:
    """Return the values of the variables of other functions that a function uses."""
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]


def _after(tape: TapeBase) -> dict[int, tuple[Array, AssignNote]]:
    notes: Any = tape._notes
    return notes.after


def _warn_of_lost_part(
    tape: TapeBase, targets: Sequence[Value | None], sources: Sequence[Array]
) -> None:
    """Say that a target was computed from what a variable was given to keep, if it was.

    Not of what is a source itself, which starts again, nor of a copy of a variable: of weights.

    Args:
        tape: that has recorded.
        targets: of the gradient.
        sources: the values that its sources stand for.
    """
    copied = {id(value) for reads in tape._reads.values() for value in reads}
    kept = [
        (value, assign)
        for value, assign in _after(tape).values()
        if assign.keeps and not all(id(x) in copied for x in assign.parts)
    ]
    kept = [pair for pair in kept if all(pair[0] is not x for x in sources)]
    if kept and (assign := _assign_between(tape, sources, targets, kept)):
        warn(
            "A part of the gradient is missing: the target was computed from what "
            f"{assign.name!r} held after it was assigned at {assign.line}, too, and that depends "
            f"on the sources. {_STOPS} If it is to count as a constant, assign "
            "jv.stop_gradient(value)."
        )


def _warn_of_integers(sources: Sequence[Any], targets: Sequence[Value | None]) -> None:
    for what, values in (("source", sources), ("target", targets)):
        for value in values:
            if value is not None and not is_inexact(value):
                name = called(value._cell) if isinstance(value, Variable) else None
                which = f"Variable {name!r}, a {what}," if name else f"A {what} of the gradient"
                warn(f"{which} has dtype {value.dtype}: only floating point values have "
                      "gradients, so this one is None. Convert it before the computation, "
                      "for example to jnp.float32.")  # fmt: skip


def _why_target(tape: TapeBase, target: Any) -> str | None:
    value = tape._target_value(target)
    if value is None:
        why = "The target is a variable that was not read while the tape recorded."
        return why + _why_assigned(tape)
    if not is_inexact(value):
        return f"The target has dtype {value.dtype}; only floating point values have gradients."
    if not tape._record.knows(value):
        return (
            "The target was not computed from anything watched while the tape recorded. Was "
            "it computed outside of the `with`, or with NumPy, or rounded to integers?"
            f"{_why_assigned(tape)}"
        )
    return None


def _why_assigned(tape: TapeBase) -> str:
    """Return the assigns of values that were recorded, as a possible reason."""
    notes = [assign.note for assign in tape._assigns.values()]
    found = [x for x in notes if any(map(tape._record.knows, x.parts))]
    names = " or ".join(dict.fromkeys(f"{x.name!r}, assigned at {x.line}" for x in found))
    return f" Or from {names}? {_STOPS}" if names else ""


def _why_path(tape: TapeBase, target: Any, source: Any) -> str:
    values = tape._values_of(source)
    wanted: Any = tape._target_value(target)
    program = tape._record.make_program(values, [wanted], replay_loops=True)
    if any(program.connected):
        return "The target depends on the source."
    after = list(_after(tape).values())
    if assign := _assign_between(tape, values, [wanted], after):
        return (
            f"The target was computed from what {assign.name!r} held after it was assigned at "
            f"{assign.line}. {_STOPS}"
        )
    after = tape._record.find_reached({id(wanted)})[1]
    if any(id(value) in after for value in values):
        return "The source was computed from the target. The target comes first: gradient(y, x)."
    return (
        "No recorded operation leads from the source to the target: the path ends at a "
        "stop_gradient or a conversion to integers or to NumPy, or there never was one."
    )


def _assign_between(
    tape: TapeBase,
    values: Sequence[Array],
    targets: Sequence[Value | None],
    after: Sequence[tuple[Array, AssignNote]],
) -> AssignNote | None:
    """Return an assign through which a path leads from some values to a target, if any.

    Args:
        tape: that has recorded.
        values: where it begins.
        targets: where it ends.
        after: what was read after assigns, and these.
    """
    known, ends = set(map(id, values)), set(map(id, targets))
    while True:
        _, reached = tape._record.find_reached(known)
        new = [
            (value, assign)
            for value, assign in after
            if id(value) not in known
            and not (assign.parts and reached.isdisjoint(map(id, assign.parts)))
        ]
        for value, assign in new:
            if not ends.isdisjoint(tape._record.find_reached({id(value)})[1]):
                return assign
        if not new:
            return None
        known.update(id(value) for value, _ in new)


_STOPS = (
    "A tape does not go through an assign: what is read after it starts again. "
    "jv.GradientTape(through_assigns=True) goes through the assigns that are made under it."
)


def _why_source(tape: TapeBase, source: Any) -> str | None:
    if not isinstance(source, Variable):
        if tape._values_of(source):
            return None
        return (
            "The source is an array that the tape does not know: call tape.watch(x) before the "
            "computation, and compute with that very object."
        )
    if is_inexact(source) and tape._values_of(source):
        return None
    name = called(source._cell)
    if not is_inexact(source):
        return f"Variable {name!r} has dtype {source.dtype}; only floats have gradients."
    if not source.trainable and source._cell.key not in tape._chosen:
        return (
            f"Variable {name!r} is not trainable, so it is not watched by itself: call "
            f"tape.watch({word_for(source._cell)}) first."
        )
    return f"Variable {name!r} was not read while the tape recorded."
