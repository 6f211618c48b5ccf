"""Why a tape has no gradient of a target: what `tape.explain` and warnings say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxvars.autodiff.tape_base import Assign, TapeBase, flatten, warn
from jaxvars.core.variable import Variable
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.typing import Array


def explain(tape: TapeBase, target: Any, source: Any) -> str:
    """Say whether a target depends on a source on a tape, and if not, why not."""
    return _why_source(tape, source) or _why_target(tape, target) or _why_path(tape, target, source)


def warn_if_all_are_none(tape: TapeBase, target: Any, sources: Sequence[Any]) -> None:
    """Say why no source has a gradient, unless that has been said: of integers."""
    targets = flatten(target)[0]
    if targets and all(map(is_inexact, (tape._target_value(targets[0]), *sources))):
        warn(
            f"All gradients are None. {explain(tape, targets[0], sources[0])} "
            "`tape.explain(target, source)` says this of each source."
        )


def warn_of_gaps(
    tape: TapeBase,
    asked: tuple[Sequence[Any], Sequence[Array]],
    values: Sequence[Array],
    found: Sequence[Array | None],
) -> None:
    """Say what of a gradient is missing, where it is not None as a whole.

    Args:
        tape: that has recorded.
        asked: the sources, and the targets.
        values: what the sources stand for.
        found: the gradients.
    """
    _warn_of_integers(*asked)
    if tape._after and not tape.through_assigns and any(grad is not None for grad in found):
        _warn_of_lost_part(tape, asked[1], values)


def _warn_of_lost_part(tape: TapeBase, targets: Sequence[Array], sources: Sequence[Array]) -> None:
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
        for value, assign in tape._after.values()
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


def _warn_of_integers(sources: Sequence[Any], targets: Sequence[Array]) -> None:
    for what, values in (("source", sources), ("target", targets)):
        for value in values:
            if value is not None and not is_inexact(value):
                name = getattr(value, "name", None)
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
    found = [x for x in tape._assigns.values() if any(map(tape._record.knows, x.parts))]
    names = " or ".join(dict.fromkeys(f"{x.name!r}, assigned at {x.line}" for x in found))
    return f" Or from {names}? {_STOPS}" if names else ""


def _why_path(tape: TapeBase, target: Any, source: Any) -> str:
    values = tape._values_of(source)
    program = tape._record.program(values, [tape._target_value(target)], replay_loops=True)
    if any(program.connected):
        return "The target depends on the source."
    after = list(tape._after.values())
    if assign := _assign_between(tape, values, [tape._target_value(target)], after):
        return (
            f"The target was computed from what {assign.name!r} held after it was assigned at "
            f"{assign.line}. {_STOPS}"
        )
    after = tape._record.reached({id(tape._target_value(target))})[1]
    if any(id(value) in after for value in values):
        return "The source was computed from the target. The target comes first: gradient(y, x)."
    return (
        "No recorded operation leads from the source to the target: the path ends at a "
        "stop_gradient or a conversion to integers or to NumPy, or there never was one."
    )


def _assign_between(
    tape: TapeBase,
    values: Sequence[Array],
    targets: Sequence[Array],
    after: Sequence[tuple[Array, Assign]],
) -> Assign | None:
    """Return an assign through which a path leads from some values to a target, if any.

    Args:
        tape: that has recorded.
        values: where it begins.
        targets: where it ends.
        after: what was read after assigns, and these.
    """
    known, ends = set(map(id, values)), set(map(id, targets))
    while True:
        _, reached = tape._record.reached(known)
        new = [
            (value, assign)
            for value, assign in after
            if id(value) not in known
            and not (assign.parts and reached.isdisjoint(map(id, assign.parts)))
        ]
        for value, assign in new:
            if not ends.isdisjoint(tape._record.reached({id(value)})[1]):
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
    if not is_inexact(source):
        return f"Variable {source.name!r} has dtype {source.dtype}; only floats have gradients."
    if tape._values_of(source):
        return None
    if not source.trainable and source._cell.key not in tape._chosen:
        return (
            f"Variable {source.name!r} is not trainable, so it is not watched by itself: call "
            f"tape.watch({source.name}) first."
        )
    return f"Variable {source.name!r} was not read while the tape recorded."
