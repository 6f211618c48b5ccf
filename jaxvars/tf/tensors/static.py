"""What must be known while a function is traced: axes, shapes, counts.

XLA compiles for fixed shapes: what a shape depends on is a number in Python, an array whose value
is known, or a size that is open, which is an expression (`symbolic/propagate.py`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import CheckError
from jaxvars.symbolic import propagate as _open_values
from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.errors import InvalidArgumentError, OpError, OutOfRangeError
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

_MOST_ELEMENTS = 2**58  # XLA aborts the process where the bytes are no int64


def space_of(array: Array) -> Any:
    """Return the module whose functions work on an array: NumPy for strings, else `jax.numpy`."""
    return np if isinstance(array, np.ndarray) else jnp


def is_size(value: Any) -> bool:
    """Return whether a value is a size, or several, that may be open."""
    array = value._array if isinstance(value, Tensor) else value
    return is_open(array) or _open_values.sizes_of(array) is not None


def is_known(value: Any) -> bool:
    """Return whether the value of a tensor or number is known now."""
    array = value._array if isinstance(value, Tensor) else value
    if isinstance(array, list | tuple):
        return all(map(is_known, array))
    return not isinstance(array, jax.Array) or context.is_known(array)


def checkable(array: Array) -> bool:
    """Return whether the values of an array can be looked at without waiting for an accelerator."""
    if context.is_tracer(array):
        return False
    if _has_cpu_alone() or not isinstance(array, jax.Array):
        return True
    return all(device.platform == "cpu" for device in array.devices())


@functools.cache
def _has_cpu_alone() -> bool:
    return all(device.platform == "cpu" for device in jax.devices())


def require_known(value: Any, what: str) -> np.ndarray:
    """Return numbers as a NumPy array; refuse what depends on an argument of a traced function."""
    if isinstance(value, list | tuple):
        if value and all(map(_is_plain, value)):
            return np.array(value)
        parts = [require_known(part, what) for part in value]
        if any(part.dtype == object for part in parts):
            return _stack_sizes(parts)
        return np.array(parts, dtype=None if value else np.int64)
    if is_open(value):
        made = np.empty((), object)
        made[()] = value
        return made
    array = value if isinstance(value, int | np.ndarray) else _convert.to_array(value)
    if not is_known(array):
        if (sizes := _open_values.sizes_of(array)) is not None:
            return sizes
        _open_values.ask_for_sizes()
        raise refused(
            f"{what} must be known while the function is traced, since XLA compiles for fixed "
            "shapes, but its value depends on an argument. Give a Python number or a shape, or "
            "call this outside of tf.function"
        )
    return np.asarray(array)


def _is_plain(value: Any) -> bool:
    """Return whether a value is an int, or a list of two: a pair of paddings, for example."""
    if type(value) in (list, tuple):
        return len(value) == 2 and type(value[0]) is int and type(value[1]) is int
    return type(value) is int


def _stack_sizes(parts: list[np.ndarray]) -> np.ndarray:
    """Return single sizes, some of which are open, as one array."""
    made = np.empty(len(parts), object)
    made[:] = [as_size(part.reshape(())[()]) for part in parts]
    return made


def ints(value: Any, what: str) -> tuple[int, ...]:
    """Return a list of ints, or a single one as a list."""
    if type(value) in (list, tuple) and all(type(part) is int for part in value):
        return tuple(value)
    found = require_known(value, what).reshape(-1)
    if found.size and found.dtype.kind not in "iubO":
        raise refused(f"{what} must be integers, but has type {found.dtype}: {value}")
    return tuple(map(as_size, found))


def check_integers(value: Any) -> None:
    """Raise TypeError, as TensorFlow does for an axis, if a number or array is of floats."""
    if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "fc":
        raise TypeError(f"Cannot convert {value.tolist()!r} to EagerTensor of dtype int32")


def as_size(number: Any) -> int:
    """Return a number as an int, unless it is an unknown dimension."""
    return number if is_open(number) else int(number)


def not_too_many(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return sizes; raise InvalidArgumentError if no tensor has so many elements."""
    if all(type(size) is int for size in sizes) and math.prod(sizes) > _MOST_ELEMENTS:
        raise refused(f"Shape [{','.join(map(str, sizes))}] has too many elements")
    return tuple(sizes)


def slice_end(value: Any, what: str) -> int | None:
    """Return an end or step of a slice as an int; raise TypeError for what is not an integer."""
    if isinstance(value, str | bytes | float):
        raise TypeError(f"slice {what} must be integers or None, not {value!r}")
    return None if value is None else one_int(value, "A slice")


def one_int(value: Any, what: str) -> int:
    """Return an int."""
    found = value if isinstance(value, int) else require_known(value, what)
    if not isinstance(found, int) and found.size != 1:
        raise refused(f"{what} must be a scalar, but has shape {list(found.shape)}")
    check_integers(found)
    return int(found) if isinstance(found, int) else as_size(found.reshape(())[()])


def one_axis(
    axis: Any, ndim: int, what: str = "axis", words: str = "{what} = {0} not in range [{2}, {1})"
) -> int:
    """Return an axis, counted from the front; the words of the error are of it and of the rank."""
    found = one_int(axis, what)
    if not -ndim <= found < ndim:
        raise refused(words.format(found, ndim, -ndim, what=what))
    return found % ndim


def axes_of(axis: Any) -> int | tuple[int, ...] | None:
    """Return an axis argument, a number, a tensor or a list of them, as JAX takes it."""
    if axis is None or type(axis) is int:
        return axis
    given = np.asarray(axis)
    check_integers(given)
    if given.dtype.kind in "SUT":
        raise refused("Value for attr 'Tidx' of string is not in the list of allowed values")
    return int(given) if given.ndim == 0 else tuple(map(int, given.reshape(-1)))


def axes_in(x: Array, axis: Any) -> int | tuple[int, ...] | None:
    """Return which axes of an array to reduce, as JAX takes them."""
    if axis is None:
        return None
    axes, rank = axes_of(axis), x.ndim
    if type(axes) is int and -rank <= axes < rank:
        return axes
    seen = set[int]()
    for at in (axes,) if isinstance(axes, int) else axes or ():
        if not -rank <= at < rank:
            raise ValueError(
                f"Invalid reduction dimension ({at} for input with {rank} dimension(s)"
            )
        if at % rank in seen:
            raise ValueError(
                f"Invalid reduction arguments: Axes contains duplicate dimension: {at % rank}"
            )
        seen.add(at % rank)
    return axes


REACHED = "Reached limit of "
"""What a check says of a counter that is at its end."""


@contextmanager
def refusing() -> Generator[None]:
    """Raise what TensorFlow does for a check that fails while a program of the core runs."""
    try:
        yield
    except CheckError as error:
        raise failed(error) from None


def end_of_sequence() -> OutOfRangeError:
    """Return what TensorFlow raises where an iterator has no more elements."""
    return OutOfRangeError(message="End of sequence [Op:IteratorGetNext] name: ")


def failed(error: CheckError) -> OpError:
    """Return what TensorFlow raises for a check that has failed."""
    is_end = str(error).startswith(REACHED)
    return OutOfRangeError(None, None, str(error)) if is_end else refused(str(error))


def refused(message: str, op: str = "") -> InvalidArgumentError:
    """Return the error of an operation that cannot work with what it got."""
    return InvalidArgumentError(None, None, f"{message} [Op:{op}] name: " if op else message)
