"""Elements of a buffer, and the indices by which they are read: parts of `TensorArray`.

Rules this file keeps:
- an index that is known is a Python number, and its mistakes raise at once;
- one that is traced may be outside: it reads the nearest element, and writes nothing, unless
  indices are checked (`control/index_checks.py`).
"""

from __future__ import annotations

import operator
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.index_checks import check_inside
from jaxvars.core.in_place import widened
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.symbolic.specialize import is_open
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.spec import TensorSpec
from jaxvars.tensors.tensor import is_literal, is_weak, to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

Shape: TypeAlias = tuple[int | None, ...]


# ---------------------------------------------------------------- what is written
def element_of(value: Any, index: Any, dtype: Any, shape: Shape | None) -> Array:
    """Return a value as the element at an index; refuse another dtype or shape."""
    where = f"Element {index}" if isinstance(index, int) else "An element"
    element = _convert_dtype(value, dtype, f"{where} of a TensorArray")
    _check_shape(element.shape, shape, where)
    return element


def rows_of(value: Any, dtype: Any, shape: Shape | None) -> Array:
    """Return a value as several elements, one in each row; refuse other dtypes and shapes."""
    rows = _convert_dtype(value, dtype, "The rows for a TensorArray")
    if rows.ndim == 0:
        raise ShapeError("Elements of a TensorArray are given as the rows of an array, not as a "
                         "scalar.")  # fmt: skip
    _check_shape(rows.shape[1:], shape, "A row")
    return rows


def _convert_dtype(value: Any, dtype: Any, what: str) -> Array:
    array = to_tensor(unwrap(value), what=what)
    if array.dtype != dtype and not (is_literal(value) or is_weak(array)):
        raise DtypeError(
            f"{what} is {array.dtype}, but its dtype is {dtype}: nothing is converted silently. "
            f"Convert it, for example with jnp.asarray(value, {str(dtype)!r})."
        )
    return to_tensor(array, dtype, what=what)


def _check_shape(shape: tuple[int, ...], known: Shape | None, what: str) -> None:
    if known is not None and not TensorSpec(known).accepts_shape(shape):
        raise ShapeError(
            f"{what} has shape {shape}, but the elements of this TensorArray have shape {known}: "
            "XLA needs one shape for all. Pad the smaller ones, or make another TensorArray."
        )


# ---------------------------------------------------------------- one place in a buffer
def row(buffer: Array, index: Array) -> Array:
    """Return the element at a traced index, or the nearest one."""
    return jax.lax.dynamic_index_in_dim(buffer, nearest(buffer, index), 0, keepdims=False)


def nearest(buffer: Array, index: Array) -> Array:
    """Return traced indices of a buffer, in place of those outside the nearest ones."""
    size = buffer.shape[0]
    if size == 0:
        raise IndexError("This TensorArray has no elements.")
    check_inside(index, size, "a TensorArray")
    return jnp.clip(index, 0, size - 1)


def put(buffer: Array, index: Array, element: Array) -> Array:
    """Return the buffer with an element, or as it is if the index is outside."""
    size = buffer.shape[0]
    if size == 0:
        check_inside(index, size, "a TensorArray")
        return buffer
    inside = (index >= 0) & (index < size)
    element = jnp.where(inside, element, row(buffer, index))
    return jax.lax.dynamic_update_index_in_dim(buffer, element, jnp.clip(index, 0, size - 1), 0)


# ---------------------------------------------------------------- numbers
def known_size(size: Any) -> int:
    """Return a size as a Python number; refuse one that is traced or negative."""
    if is_open(size):
        return size
    if context.is_tracer(unwrap(size)) or isinstance(size, bool) or not hasattr(size, "__index__"):
        raise TypeError(
            f"The size of a TensorArray is a whole number that is known, not {size!r}. In compiled "
            "code take it from a shape, x.shape[0], or give an upper bound."
        )
    if (known := operator.index(size)) < 0:
        raise ValueError(f"The size of a TensorArray cannot be {known}.")
    return known


def place_of(index: Any) -> Any:
    """Return an index as a Python number if it is known, as a traced scalar if not."""
    index = unwrap(index)
    is_whole = hasattr(index, "dtype") and jnp.issubdtype(index.dtype, jnp.integer)
    if context.is_tracer(index) and is_whole and not index.shape:
        return widened(index)
    try:
        if not isinstance(index, bool) and not context.is_tracer(index):
            return operator.index(index)
    except TypeError:
        pass
    raise TypeError(f"The index of an element is a whole number, not {index!r}.")


def places_of(indices: Any) -> Any:
    """Return indices as a list if they are known, as a traced vector if not."""
    indices = unwrap(indices)
    array = indices if context.is_tracer(indices) else np.asarray(indices)
    if array.ndim != 1 or not (jnp.issubdtype(array.dtype, jnp.integer) or array.size == 0):
        raise TypeError(
            f"Indices of elements are a vector of whole numbers, not {array.dtype} of shape "
            f"{array.shape}."
        )
    return widened(array) if context.is_tracer(indices) else array.astype(int).tolist()
