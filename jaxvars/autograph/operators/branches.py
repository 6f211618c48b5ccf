"""What converted code calls in place of `if` and `a if c else b`.

Rules this file keeps:
- what Python can decide, Python decides: only a traced condition makes a branch of the program;
- the names that the branches assign are its results, and are as before if it cannot be staged;
- a `raise` in a branch has the step fail when that branch runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp

from jaxvars.autograph.operators.state import Block, State
from jaxvars.autograph.operators.values import check_size, uneven_error
from jaxvars.autograph.operators.watch import Grown
from jaxvars.control.branches import named_cond
from jaxvars.core.checks import require
from jaxvars.errors import ControlFlowError, is_library, user_line
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.wrapping import boxed, words
from jaxvars.tracebacks import frame_of_raise
from jaxvars.tracing import context
from jaxvars.typing import Array

Run: TypeAlias = Callable[[], Any]

_LISTS = "the items appended to a list"


def decide(condition: Any) -> Any:
    """Return True or False, or a traced bool where Python cannot say."""
    value = unwrap(check_size(condition))
    if context.is_known(value):
        return bool(value)
    if value.size != 1:
        raise ControlFlowError(
            f"The truth value of an array of shape {value.shape} is ambiguous at {user_line()}. "
            f"Say what is meant: {words().truth}, or `x is not None`."
        )
    value = value.reshape(()) if value.shape else value
    return value if value.dtype == bool else value != 0


def is_traced(truth: Any) -> bool:
    """Return whether `decide` has left the decision to the program."""
    return truth is not True and truth is not False


def if_stmt(condition: Any, body: Run, orelse: Run, state: State, count: int) -> None:
    """Run one of two branches; of the names they assign, the first `count` are used later."""
    truth = decide(condition)
    if is_traced(truth):
        branches = (body, orelse)
        stage_if(Block(state, branches, count=count, lenient=False), truth, branches)
    elif truth:
        body()
    else:
        orelse()


class _Way(NamedTuple):
    """What one of two branches did: values of its names, lists that grew, whether it raised."""

    values: tuple[Any, ...]
    grown: list[Grown]
    raised: bool


def stage_if(block: Block, truth: Array, branches: tuple[Run, Run]) -> None:
    """Make an `if` on a traced value one operation."""
    ways: dict[bool, _Way] = {}

    def branch(which: bool, run: Run) -> Run:
        def traced() -> tuple[Any, ...]:
            block.enter()
            other = ways.get(not which)
            raised = _raises(run, may=other is None or not other.raised)
            values, packed = block.leave(other and other.values, raised=raised)
            ways[which] = _Way(values, block.grown, raised)
            if other is not None:
                _check_lists(ways[True].grown, ways[False].grown)
            return (*block.used(packed), items_of(block.grown))

        return traced

    def run() -> Sequence[Any]:
        ways.clear()
        both = (branch(True, branches[0]), branch(False, branches[1]))
        *results, items = named_cond(truth, both, (*block.used(block.names), _LISTS))
        extend_all(ways[True].grown, items)
        ends = zip(*(block.used(ways[way].values) for way in (True, False)), strict=True)
        return [
            one if one is other and isinstance(one, bool) else result
            for result, (one, other) in zip(results, ends, strict=True)
        ]

    block.attempt(run)


def _raises(run: Run, *, may: bool) -> bool:
    """Run a branch; if it has a `raise`, have the step fail there, if the other `may` go on."""
    try:
        run()
    except Exception as error:
        frame = frame_of_raise(error)
        if not may or frame is None or is_library(frame.f_globals, frame.f_code.co_filename):
            raise
        require(jnp.zeros((), bool), f"{type(error).__name__}: {error}")
        return True
    return False


def _check_lists(first: Sequence[Grown], second: Sequence[Grown]) -> None:
    """Refuse branches that do not append the same number of items to the same lists."""
    sizes = [{id(grown.owner): len(grown.items) for grown in way} for way in (first, second)]
    for grown in (*first, *second):
        if_so, if_not = (size.get(id(grown.owner), 0) for size in sizes)
        if if_so != if_not:
            raise uneven_error(grown.label, if_so, if_not)


def items_of(lists: Sequence[Grown]) -> list[tuple[Any, ...]]:
    """Return what has been appended to each of some lists."""
    return [grown.items for grown in lists]


def extend_all(lists: Sequence[Grown], items: Sequence[Sequence[Any]]) -> None:
    """Append to each of some lists."""
    for grown, new in zip(lists, items, strict=True):
        grown.owner.extend(boxed(new))


def if_exp(condition: Any, then: Run, orelse: Run, source: str) -> Any:
    """Return the value of one of two expressions: `a if condition else b`."""
    truth = decide(condition)
    if not is_traced(truth):
        return then() if truth else orelse()
    return choose(truth, then, orelse, source)


def choose(truth: Array, then: Run, orelse: Run, source: str) -> Any:
    """Return the value of one of two functions, as the traced `truth` says."""
    result: list[Any] = [None]

    def put(values: tuple[Any]) -> None:
        (result[0],) = values

    state = State([source], lambda: (result[0],), put)
    block = Block(state, (then, orelse), lenient=False)
    stage_if(block, truth, (lambda: put((then(),)), lambda: put((orelse(),))))
    return result[0]
