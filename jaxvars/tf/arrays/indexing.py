"""Indexing of tensors and variables: `x[0]`, `x[1:, ..., tf.newaxis]`, `x[mask]`.

Rules this file keeps:
- an index out of range is refused, where NumPy and JAX would count on or take the nearest;
- an index may be a tensor; in a compiled function one that is not known must not be part of a
  slice, whose size would depend on it.
"""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.handles import is_text, lift
from jaxvars.tf.tensors.shapes import Dimension
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable
from jaxvars.tracing import context
from jaxvars.typing import Array

Part: TypeAlias = Any  # an int, a slice, None, Ellipsis, or an index that is traced


def getitem(x: Any, key: Any) -> Tensor:
    """Return a part of a tensor or variable."""
    array = x._array if type(x) is Tensor else to_array(x)
    if _is_mask(key):
        return Tensor(take_masked(array, key))
    index = index_of(key, array.shape)
    if is_text(array) and any(map(context.is_tracer, index)):
        array = lift(array)
    made = Tensor(array[index])
    if type(made._array) is bytes:
        made._array = np.array(made._array, dtype=object)
    elif isinstance(made._array, np.generic):
        made._array = np.asarray(made._array)
    if isinstance(x, Variable):
        made._part = x, key
    return made


def index_of(key: Any, shape: tuple[int, ...]) -> tuple[Part, ...]:
    """Return an index as NumPy takes it.

    Raises:
        TypeError: when a part is not an index.
        InvalidArgumentError: when it is out of range, or there are too many parts.
    """
    if type(key) is int and shape:
        return (_in_range(key, 0, shape[0]),)
    parts = [_part(part) for part in (key if isinstance(key, list | tuple) else [key])]
    if sum(part is Ellipsis for part in parts) > 1:
        raise _error_for("Multiple ellipses in slice spec not allowed")
    consumed = sum(part is not None and part is not Ellipsis for part in parts)
    if consumed and not shape:
        raise _error_for("Attempting to slice scalar input.")
    if consumed > len(shape):
        raise _error_for(
            f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims"
        )
    _check(parts, shape, len(shape) - consumed)
    return tuple(parts)


def _check(parts: list[Part], shape: tuple[int, ...], skipped: int) -> None:
    dim = 0
    for part in parts:
        if part is Ellipsis:
            dim += skipped
        elif isinstance(part, slice):
            if part.step == 0:
                raise _error_for(f"strides[{dim}] must be non-zero")
            dim += 1
        elif part is not None:
            if isinstance(part, int):
                _in_range(part, dim, shape[dim])
            dim += 1


def _in_range(index: int, dim: int, size: int) -> int:
    if not -size <= index < size:
        shown = index + size if index < 0 else index
        raise _error_for(f"slice index {shown} of dimension {dim} out of bounds.")
    return index


def _error_for(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"{message} [Op:StridedSlice] name: strided_slice/")


def _part(part: Any) -> Part:
    if part is None or isinstance(part, EllipsisType):
        return part
    if isinstance(part, slice):
        return slice(_read_bound(part.start), _read_bound(part.stop), _read_bound(part.step))
    if isinstance(part, Tensor | Variable | jax.Array):
        array = to_array(part)
        if array.ndim or array.dtype.kind not in "iu":
            raise _no_index(part)
        return array if context.is_tracer(array) else int(array)
    return _integer(part)


def _integer(part: Any) -> int:
    if isinstance(part, bool):
        raise InvalidArgumentError(
            None, None, "Value for attr 'Index' of bool is not in the list of allowed values: "
            "int16, int32, int64 [Op:StridedSlice] name: strided_slice/"
        )  # fmt: skip
    try:
        return operator.index(part)
    except TypeError:
        raise _no_index(part) from None


def _no_index(part: Any) -> TypeError:
    return TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        f"tf.int32/tf.int64 tensors are valid indices, got {part!r}"
    )


def _read_bound(bound: Any) -> int | None:
    if bound is None or (isinstance(bound, Dimension) and bound.value is None):
        return None
    found = _part(bound)
    if context.is_tracer(found):
        raise TypeError(
            "The size of a slice must be known when the function is traced, and this bound is "
            "computed in it. For a part of fixed size write tf.slice(x, begin, size), or "
            "tf.gather(x, begin + tf.range(size))."
        )
    return found


# ---------------------------------------------------------------- masks
def _is_mask(key: Any) -> bool:
    if isinstance(key, bool):
        return True
    dtype = getattr(key, "dtype", None)
    return dtype is not None and dtype == np.bool_


def take_masked(array: Array, mask: Any) -> Array:
    """Return the parts of an array where a mask is true.

    Raises:
        ValueError: when the mask is a scalar, or its shape is not that of the first dimensions.
        TypeError: when it is computed in a function that is traced.
    """
    chosen = to_array(mask)
    if not chosen.ndim:
        raise ValueError("mask cannot be scalar.")
    sizes = array.shape[: chosen.ndim]
    if sizes != chosen.shape:
        raise ValueError(f"Shapes {tuple(sizes)} and {tuple(chosen.shape)} are incompatible")
    if context.is_tracer(chosen):
        raise TypeError(
            "How many elements a mask chooses must be known when the function is traced, and this "
            "mask is computed in it. Use tf.where(mask, x, 0), which keeps the shape, or do it "
            "outside of the function."
        )
    index = np.nonzero(np.asarray(chosen))
    return array[index] if isinstance(array, np.ndarray) else jnp.asarray(array)[index]
