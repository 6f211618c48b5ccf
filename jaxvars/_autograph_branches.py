"""What converted code calls in place of `if` and `a if c else b`.

Rules this file keeps:
- what Python can decide, Python decides: only a traced condition makes a branch of the program;
- the names that the branches assign are its results, and are as before if it cannot be staged;
- a `raise` in a branch has the step fail when that branch runs.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax.numpy as jnp

from jaxvars import _trace
from jaxvars._autograph_lists import Appended, extend, same_lists, uneven
from jaxvars._autograph_state import Block
from jaxvars._boxing import boxed
from jaxvars._checks import require
from jaxvars._control import named_cond
from jaxvars._face import plain
from jaxvars.errors import ControlFlowError, is_library, user_line

Value: TypeAlias = Any
Run: TypeAlias = Callable[[], Any]
Get: TypeAlias = Callable[[], tuple[Any, ...]]
Set: TypeAlias = Callable[[Any], None]

_LISTS = "the items appended to a list"


def decide(condition: Any) -> Any:
    """Return True or False, or a traced bool where Python cannot say."""
    value = plain(condition)
    if _trace.is_known(value):
        return bool(value)
    if value.size != 1:
        raise ControlFlowError(
            f"The truth value of an array of shape {value.shape} is ambiguous at {user_line()}. "
            "Say what is meant: jnp.any(x), jnp.all(x), x.size > 0, or `x is not None`."
        )
    value = value.reshape(()) if value.shape else value
    return value if value.dtype == bool else value != 0


def is_traced(truth: Any) -> bool:
    """Tell whether `decide` has left the decision to the program."""
    return truth is not True and truth is not False


def if_stmt(
    condition: Any,
    body: Run,
    orelse: Run,
    get_state: Get,
    set_state: Set,
    names: Sequence[str],
    count: int,
) -> None:
    """Run one of two branches.

    Args:
        condition: the condition's value.
        body: runs if it holds.
        orelse: runs otherwise.
        get_state: returns the values of what the branches assign.
        set_state: assigns them.
        names: their names.
        count: how many of them are used afterwards; these come first.
    """
    truth = decide(condition)
    if is_traced(truth):
        block = Block(names, get_state, set_state, lenient=False)
        stage_if(block, truth, (body, orelse), count)
    elif truth:
        body()
    else:
        orelse()


class _Way(NamedTuple):
    """What one of two branches did: values of its names, lists that grew, whether it raised."""

    values: tuple[Any, ...]
    lists: list[list[Any]]
    items: list[tuple[Any, ...]]
    raised: bool


def stage_if(block: Block, truth: Value, branches: tuple[Run, Run], count: int) -> None:
    """Make an `if` on a traced value one operation."""
    ways: dict[bool, _Way] = {}

    def branch(which: bool, run: Run) -> Run:
        def traced() -> tuple[Any, ...]:
            block.enter()
            other = ways.get(not which)
            with Appended() as appended:
                raised = _raises(run, may=other is None or not other.raised)
                lists, items = appended.take()
                values, packed = block.leave(other and other.values, raised=raised)
            ways[which] = _Way(values, lists, items, raised)
            if other is not None:
                _check_lists(ways[True], ways[False])
            return (*packed[:count], items)

        return traced

    def run() -> Sequence[Any]:
        ways.clear()
        both = (branch(True, branches[0]), branch(False, branches[1]))
        *results, items = named_cond(truth, both, (*block.names[:count], _LISTS))
        extend_all(ways[True].lists, items)
        return results

    block.attempt(run)


def _raises(run: Run, *, may: bool) -> bool:
    """Run a branch; if it has a `raise`, have the step fail where the branch runs.

    Args:
        run: the branch.
        may: whether the other branch goes on.
    """
    try:
        run()
    except Exception as error:
        if not may or not _is_raised_by_user(error):
            raise
        require(jnp.zeros((), bool), f"{type(error).__name__}: {error}")
        return True
    return False


def _is_raised_by_user(error: Exception) -> bool:
    """Tell whether an error comes from a `raise` statement in the user's code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or is_library(trace.tb_frame.f_code.co_filename):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def _check_lists(first: _Way, second: _Way) -> None:
    """Refuse branches that do not append the same number of items to the same lists."""
    if same_lists(first.lists, second.lists):
        pairs = zip(first.items, second.items, strict=True)
        counts = next(((len(a), len(b)) for a, b in pairs if len(a) != len(b)), None)
    else:
        counts = (sum(map(len, first.items)), sum(map(len, second.items)))
    if counts:
        raise uneven(counts)


def extend_all(lists: Sequence[list[Any]], items: Sequence[Sequence[Any]]) -> None:
    """Append to each of some lists."""
    for target, new in zip(lists, items, strict=True):
        extend(target, boxed(new))


def if_exp(condition: Any, then: Run, orelse: Run, text: str) -> Any:
    """Return the value of one of two expressions: `a if condition else b`."""
    truth = decide(condition)
    if not is_traced(truth):
        return then() if truth else orelse()
    return choose(truth, then, orelse, text)


def choose(truth: Value, then: Run, orelse: Run, text: str) -> Any:
    """Return the value of one of two functions, as the traced `truth` says."""
    result: list[Any] = [None]

    def put(values: tuple[Any]) -> None:
        (result[0],) = values

    block = Block([text], lambda: (result[0],), put, lenient=False)
    stage_if(block, truth, (lambda: put((then(),)), lambda: put((orelse(),))), 1)
    return result[0]
