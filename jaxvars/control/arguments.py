"""Conditions, indices, bounds and lengths that control flow is given."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.advice import takes
from jaxvars.control.forms import describe, type_of
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.tensor import refuse_masked
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_LARGEST = np.iinfo(np.int64).max


def as_concrete(value: Any) -> Value:
    """Return a value as an array, NumPy's if it is known; known integers keep their width."""
    value = unwrap(value)
    if context.is_tracer(value):
        return value
    if type(value) is int:  # of any size: NumPy's largest one stands for what is larger
        value = max(min(value, _LARGEST), -_LARGEST)
    refuse_masked([value], "a condition, an index or a bound")
    array = np.asarray(value)
    if array.dtype.kind in "OSUT":
        raise ControlFlowError(
            f"A number or an array is needed at {user_line()}, not {type(value).__name__} "
            f"{value!r}. What is not a tensor may be tested by Python: `if`, `while`."
        )
    if jnp.issubdtype(array.dtype, jnp.integer):  # 2**32 is not false
        return array
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype))


def truth(pred: Any) -> Array | bool:
    """Return a condition as a bool, or a traced scalar one; refuse one that is not a scalar."""
    if isinstance(pred, bool):
        return pred
    value = as_concrete(pred)
    if value.shape:
        raise ControlFlowError(
            f"The condition at {user_line()} has shape {list(value.shape)}: is it to hold for "
            "all elements, or for any? Write jnp.all(...) or jnp.any(...)."
        )
    value = value if value.dtype == bool else value != 0
    return value if context.is_tracer(value) else bool(value)


def index_of(index: Any, count: int) -> Array | int:
    """Return the index of a branch, clamped, as an int or a traced one; refuse what is none."""
    value = as_concrete(index)
    if value.shape or not jnp.issubdtype(value.dtype, jnp.integer):
        raise ControlFlowError(
            f"The index of a branch at {user_line()} is an integer, not {type_of(value)}."
        )
    if context.is_tracer(value):
        return jnp.clip(value, 0, min(count - 1, jnp.iinfo(value.dtype).max))
    return min(max(int(value), 0), count - 1)


def leading_size(arrays: Iterable[Any], length: int | None) -> int:
    """Return the size of the first axis of all arrays; refuse different ones."""
    length = None if length is None else count_of(length, "The length of a loop")
    shapes = [jnp.shape(x) for x in arrays]
    sizes = {shape[0] if shape else None for shape in shapes} | ({length} - {None})
    if len(sizes) != 1 or None in sizes:
        raise ControlFlowError(
            f"What is looped over at {user_line()} must have one size along its first axis"
            f"{'' if length is None else f', and length={length} must be the same'}: "
            f"there are arrays of shapes {[list(shape) for shape in shapes]}."
            if sizes
            else f"The loop at {user_line()} has neither arrays to go over nor a length."
        )
    return next(iter(sizes))  # pyright: ignore[reportReturnType] - not None; maybe an unknown dimension


def count_of(value: Any, what: str, least: int = 0) -> int:
    """Return a number of iterations or elements; refuse one that is not known or too small."""
    try:
        count = operator.index(value)
    except TypeError:  # a tracer's, too
        count = None
    if count is None or count < least:
        given = value if isinstance(value, int | float) else describe(value)
        raise ControlFlowError(
            f"{what} at {user_line()} is a whole number, {least} or larger, that is known when the "
            f"program is staged, not {given}."
        )
    return count


def parameter_name(fn: Callable[..., Any], i: int) -> str:
    """Return the name of a parameter, for messages."""
    try:
        return list(inspect.signature(fn).parameters)[i]
    except (TypeError, ValueError, IndexError):
        return "the carry"


def check_function(fn: object, count: int, form: str) -> None:
    """Raise an error, with a call as it is right, for what does not take `count` arguments."""
    if callable(fn) and takes(fn, count):
        return
    problem = f"was given {describe(fn)}, but loops and branches take functions"
    if callable(fn):
        name, plural = getattr(fn, "__name__", type(fn).__name__), "" if count == 1 else "s"
        problem = f"calls {name} with {count} argument{plural}, which it does not take"
    what = f"jv.{form.partition('(')[0]} at {user_line()}"
    raise ControlFlowError(f"{what} {problem}. Write it as in jv.{form}.")
