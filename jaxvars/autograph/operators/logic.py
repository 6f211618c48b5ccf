"""What converted code calls in place of `and`, `or`, `not`, `in`, `a < b < c`, `x[i]`, `assert`.

Rules this file keeps:
- without a traced operand each is Python's own;
- an operand is evaluated once, and only if Python would evaluate it (or if that is not known).
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, KeysView, Sequence, ValuesView
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autograph.operators import copies
from jaxvars.autograph.operators.branches import Run, choose, decide, is_traced
from jaxvars.autograph.operators.origins import is_
from jaxvars.autograph.operators.world import World
from jaxvars.core.checks import require
from jaxvars.core.staging import stage
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.tensors.array_like import BOXES, ArrayProxy, unwrap
from jaxvars.tensors.tensor import as_array
from jaxvars.tensors.wrapping import boxed, is_boxing, settled_numbers
from jaxvars.tracing import context, jaxprs
from jaxvars.tracing.signals import attempt
from jaxvars.typing import Array


def and_(value: Any, *others: Run) -> Any:
    """Return the first operand that is false, or the last."""
    return _logical(value, others, end=False)


def or_(value: Any, *others: Run) -> Any:
    """Return the first operand that is true, or the last."""
    return _logical(value, others, end=True)


def not_(value: Any) -> Any:
    """Return whether a value is false; of a tensor of booleans, whether each is."""
    if is_boxing() and type(value) in BOXES:
        array = unwrap(value)
        if array.shape and array.dtype == bool:
            return boxed(~array)
    truth = decide(value)
    return boxed(jnp.logical_not(truth)) if is_traced(truth) else not truth


def _logical(value: Any, others: Sequence[Run], *, end: bool) -> Any:
    for other in others:
        truth = decide(value)
        if is_traced(truth):
            value = _evaluate_either(value, truth, other, end)
        elif truth is end:
            return value
        else:
            value = other()
    return value


def _evaluate_either(value: Any, truth: Array, other: Run, end: bool) -> Any:
    """Return `value` if it is what ends the evaluation, else `other()`."""
    if unwrap(value).dtype == bool and _is_light_test(other):
        return boxed((jnp.logical_or if end else jnp.logical_and)(truth, decide(other())))
    ways = (lambda: value, other) if end else (other, lambda: value)
    return choose(truth, *ways, "or" if end else "and")


_LIGHT = 32  # operations: fewer cost less than a branch


def _is_light_test(test: Run) -> bool:
    """Return whether a test may as well always run: it computes a bool, cheaply, and no more."""
    program = _program_of(test)
    if program is None or not jaxprs.is_light(program, _LIGHT):
        return False
    outputs = program.out_avals
    return len(outputs) == 1 and outputs[0].dtype == bool and outputs[0].size == 1


def changes_nothing(test: Run) -> bool:
    """Return whether a test assigns no variable and has no other effect."""
    program = _program_of(test)
    return program is not None and not program.effects


def _program_of(test: Run) -> Any:
    """Return the program of a test; None if it assigns variables, changes objects, or raises."""
    world, known = World([test]), copies.count()
    try:
        staged = attempt(lambda: stage(test, (), None))  # it is raised again where it belongs
    finally:
        is_changed = world.undo()
        copies.forget(known)
    if is_changed or staged is None:
        return None
    is_plain = staged.rebuild.is_plain and not (staged.writes or staged.created)
    return staged.program if is_plain else None


def compare(left: Any, *steps: Any) -> Any:
    """Return `left < a < b`; steps are operators and functions that return the next operand."""
    name, other, *rest = steps
    right = other()
    value = _COMPARISONS[name](left, right)
    return and_(value, lambda: compare(right, *rest)) if rest else value


_CANDIDATES = (tuple, list, range, set, frozenset, dict, deque, KeysView, ValuesView)


def _contains(item: Any, container: Any) -> Any:
    values = unwrap(container)
    if not context.is_known(values):
        return boxed(jnp.any(values == unwrap(item)))
    if isinstance(values, np.ndarray) and not context.is_known(unwrap(item)):
        return boxed(jnp.any(as_array(values) == unwrap(item)))
    candidates = isinstance(values, _CANDIDATES)
    if not candidates or all(context.is_known(unwrap(x)) for x in (item, *values)):
        return item in container
    found: Any = False
    for candidate in values:
        found = or_(found, lambda: candidate is item or decide(candidate == item))  # noqa: B023
    return found


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": is_,
    "IsNot": lambda left, right: not_(is_(left, right)),
    "In": _contains,
    "NotIn": lambda item, container: not_(_contains(item, container)),
}


def known(condition: Any) -> bool:
    """Return whether the condition of a comprehension holds; it must not be traced."""
    truth = decide(condition)
    if is_traced(truth):
        raise ControlFlowError(
            f"The condition of the comprehension at {user_line()} is a traced value, so the number "
            "of its items would be traced: keep all and mark those that count, for example with "
            "jnp.where(xs > 0, xs, 0)."
        )
    return truth


def get_at(values: Any, index: Any) -> Any:
    """Return `values.at[index]`, as `get_item` does."""
    if isinstance(values, jax.Array):
        return values.at[_unwrap_all(index)]
    return get_item(values.at, index)


def _unwrap_all(index: Any) -> Any:
    return tuple(map(unwrap, index)) if isinstance(index, tuple) else unwrap(index)


def get_item(values: Any, index: Any) -> Any:
    """Return `values[index]`; of NumPy arrays and lists of numbers the index may be traced.

    Of arrays of JAX it may be a Variable.
    """
    if isinstance(values, jax.Array):
        return values[_unwrap_all(index)]
    traced = not all(map(context.is_known, jax.tree.leaves(index)))
    if traced and isinstance(values, np.ndarray):
        return boxed(as_array(values)[jax.tree.map(unwrap, index)])
    if traced and isinstance(values, list | tuple) and all(map(_is_number, values)):
        rows = jnp.stack([as_array(unwrap(settled_numbers(x))) for x in values])
        return boxed(rows[jax.tree.map(unwrap, index)])
    return values[index]


def _is_number(value: Any) -> bool:
    return isinstance(
        unwrap(value), ArrayProxy | jax.Array | np.ndarray | np.generic | int | float | complex
    )


# ---------------------------------------------------------------- assert
def assert_stmt(test: Run, message: Callable[[], tuple[Any, ...]], source: str) -> None:
    """Raise AssertionError now, or have the step fail when it runs, unless a condition holds."""
    if not __debug__:
        return
    truth = decide(test())
    if is_traced(truth):
        world = World([message])
        reason = "".join(f": {part}" for part in message())
        world.undo()  # Python evaluates the message only if the assertion fails
        require(truth, f"assert {source} failed{reason}")
    elif not truth:
        raise AssertionError(*message())
