"""Tensors as bytes: the TensorProto of `tf.io.serialize_tensor` and `tf.io.parse_tensor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.tf.io.messages import NUMBERS, message, parse
from jaxvars.tf.tensors.convert import dtype_of, is_text
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.static import refused


def to_bytes(array: Any) -> bytes:
    """Return an array as the bytes of a TensorProto.

    >>> from_bytes(to_bytes(np.array([1, 2], np.int32)))
    array([1, 2], dtype=int32)
    """
    made = message("TensorProto")(dtype=dtype_of(array).as_datatype_enum)
    made.tensor_shape.SetInParent()
    for size in array.shape:
        made.tensor_shape.dim.add(size=size)
    if is_text(array):
        made.string_val.extend(array.ravel())
    else:
        made.tensor_content = np.ascontiguousarray(np.asarray(array)).tobytes()
    return made.SerializeToString()


def from_bytes(data: bytes, dtype: Any = None) -> np.ndarray:
    """Return the array that is encoded in the bytes of a TensorProto.

    Args:
        data: the bytes.
        dtype: its type; whatever it is if None.

    Raises:
        InvalidArgumentError: when they are not a TensorProto, or one of another type.
    """
    found = parse("TensorProto", data)
    kind = as_dtype(found.dtype) if found.dtype else None
    if dtype is not None and kind != as_dtype(dtype):
        said = "DT_INVALID" if kind is None else kind.name
        raise refused(
            f"Type mismatch between parsed tensor ({said}) and dtype ({as_dtype(dtype).name}) "
            "[Op:ParseTensor] name: "
        )
    if kind is None:
        raise refused("Could not parse the bytes of a tensor: it has no type.")
    shape = tuple(dim.size for dim in found.tensor_shape.dim)
    return _filled(_values(found, kind), shape, kind)


def _values(found: Any, kind: DType) -> np.ndarray:
    if kind.is_string:
        made = np.empty(len(found.string_val), object)
        made[:] = list(found.string_val)
        return made
    if found.tensor_content:
        return np.frombuffer(found.tensor_content, kind.dtype)
    for name in NUMBERS:
        if numbers := list(getattr(found, name)):
            if name == "half_val":
                return np.array(numbers, np.uint16).view(kind.dtype)
            if kind.is_complex:
                numbers = np.array(numbers[::2]) + 1j * np.array(numbers[1::2])
            return np.array(numbers).astype(kind.dtype)
    return np.zeros(0, kind.dtype)


def _filled(values: np.ndarray, shape: tuple[int, ...], kind: DType) -> np.ndarray:
    """Return an array of a shape: the last value goes on to the end."""
    size = int(np.prod(shape))
    if len(values) > size:
        raise refused(f"The bytes of a tensor have {len(values)} values for shape {list(shape)}.")
    if len(values) < size:
        empty: Any = b"" if kind.is_string else 0
        rest = np.full(size - len(values), values[-1] if len(values) else empty, values.dtype)
        values = np.concatenate([values, rest])
    return values.reshape(shape)
