"""Steps whose programs may still fail: how that is found out, and their values taken back."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from jaxvars.core.cells import LOST, SHARED, STORE, UNPROVEN, Cell, Step, WriteBack
from jaxvars.errors import ExecutionError, called
from jaxvars.typing import Array


# ---------------------------------------------------------------- steps that fail
def doubt(write_back: WriteBack) -> None:
    """Take note that the values of a write-back, now in `STORE`, may fail to be computed."""
    value = one_of(write_back.computed())
    sample = None if value is None else weakref.ref(value)
    UNPROVEN.pop(write_back.keys, None)  # they are in the order in which they ran
    UNPROVEN[write_back.keys] = Step(
        write_back.names, write_back.held, write_back.refs, write_back.before, sample
    )


def prove(
    keys: Collection[int] | None = (),
    error: BaseException | None = None,
    used: Collection[int] = (),
) -> None:
    """Raise ExecutionError if a step that has run has failed; for an action of `exclusively`.

    The failure of other steps is left to the code that uses their variables, in whatever thread.

    Args:
        keys: of the cells whose steps to wait for; None for all.
        error: what a step has just raised: what was donated to it is lost.
        used: the keys of the cells that are about to be used, without waiting for their steps.
    """
    newer: set[int] = set()  # what later steps have assigned says nothing of those before
    for own, step in reversed(tuple(UNPROVEN.items())):
        if newer.issuperset(own):
            continue  # until those are proven
        left = [key for key in own if key in STORE and key not in newer]
        values = [STORE[key] for key in left if said_of_loss(key) is None]
        newer.update(own)
        there = [x for x in values if not x.is_deleted()]
        value = one_of(there)
        concerned = keys is None or not step.held.isdisjoint(keys)
        touched = concerned or not step.held.isdisjoint(used)
        may_wait = concerned or (touched and step.before)
        if not (may_wait or (not keys and (value is None or is_ready(value)))):
            continue
        is_gone = len(there) < len(values)
        problem = (error if is_gone else None) or _why_failed(step, there)
        if problem is not None and not touched:
            continue
        names = [] if problem is None else _take_back(step, problem)
        UNPROVEN.pop(own, None)
        if problem is not None and (names or step.before):
            raise execution_error(step.names, problem, names) from problem


def said_of_loss(key: int) -> str | None:
    """Return what is to be said of a cell whose value a failed step has lost; None of others."""
    lost = LOST.get(key)
    return lost[1] if lost is not None and lost[0] is STORE.get(key) else None


def is_ready(value: Any) -> bool:
    """Return whether the program that computes a value has run; random keys cannot say so.

    Of a value that is deleted, too: JAX's own answer to that ends the process.
    """
    return getattr(value, "is_deleted", bool)() or getattr(value, "is_ready", lambda: True)()


def failure_of(value: Array) -> Exception | None:
    """Wait until a value is computed; return the error if it could not be."""
    if value.__class__ is np.ndarray:
        return None
    try:
        value.block_until_ready()
    except Exception as error:  # noqa: BLE001 - XLA has several kinds
        return error
    return None


def _why_failed(step: Step, values: Sequence[Array]) -> Exception | None:
    """Return why a step failed, by its sample; by all values if that was assigned since."""
    sample = None if step.sample is None else step.sample()
    judged = [x for x in values if x is sample] or values
    return next(filter(None, map(failure_of, judged)), None)


def one_of(values: Sequence[Array]) -> Array | None:
    """Return one of the values that a step has computed, all of which it computes or none."""
    for value in values:  # a generator that is interrupted as it is closed hides the interrupt
        if hasattr(value, "is_ready"):
            return value
    return values[0] if values else None


def _take_back(step: Step, problem: BaseException) -> list[str]:
    """Give cells the values before a failed step; return the names of those that have none."""
    lost: list[Cell] = []
    for i, ref in enumerate(step.refs):
        cell = ref()
        value = None if cell is None else STORE.get(cell.key)
        if cell is None or value is None:
            continue
        if not value.is_deleted() and failure_of(value) is None:
            continue
        old = step.before[i] if step.before else None
        if old is None:
            lost.append(cell)
        else:
            SHARED.add(cell.key)
            STORE[cell.key] = old
    names = list(map(called, lost))
    for cell in lost:
        LOST[cell.key] = (STORE[cell.key], str(execution_error(step.names, problem, names)))
        STORE[cell.key].delete()  # so that no program runs with it
    return names


def execution_error(
    names: Iterable[str], problem: BaseException, lost: Sequence[str]
) -> ExecutionError:
    """Return what to raise: a failure may be that of any of the steps of these names."""
    name = " or ".join(names)
    why = str(problem).replace("INTERNAL: ", "").replace("Error dispatching computation: ", "")
    if not lost:
        return ExecutionError(f"{name} failed when it ran: {why} No variable was changed by it.")
    return ExecutionError(
        f"{name} failed when it ran: {why} The memory of its variables had been donated, so these "
        f"have no value any more: {', '.join(map(repr, lost))}. Assign them, or restore a "
        "checkpoint. With jv.compile(donate=False) they keep their values in such a case."
    )
