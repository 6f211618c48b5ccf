"""Tensors as bytes: the TensorProto of `tf.io.serialize_tensor` and `tf.io.parse_tensor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.tf.io.wire import (
    bytes_field,
    fields,
    packed_floats,
    packed_integers,
    signed,
    varint_field,
)
from jaxvars.tf.tensors.convert import dtype_of, is_text
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.static import refused

_DTYPE, _SHAPE, _CONTENT, _STRING = 1, 2, 4, 8
_HALF, _FLOAT, _DOUBLE, _INT, _COMPLEX64, _INT64, _BOOL = 13, 5, 6, 7, 9, 10, 11
_COMPLEX128, _UINT32, _UINT64 = 12, 16, 17
_FLOATS = {_FLOAT: "f", _DOUBLE: "d", _COMPLEX64: "f", _COMPLEX128: "d"}


def to_bytes(array: Any) -> bytes:
    """Return an array as the bytes of a TensorProto.

    >>> from_bytes(to_bytes(np.array([1, 2], np.int32)))
    array([1, 2], dtype=int32)
    """
    kind = dtype_of(array).as_datatype_enum
    head = varint_field(_DTYPE, kind) + bytes_field(_SHAPE, _shape_bytes(array.shape))
    if is_text(array):
        return head + b"".join(bytes_field(_STRING, text) for text in array.ravel())
    content = np.ascontiguousarray(np.asarray(array)).tobytes()
    return head + (bytes_field(_CONTENT, content) if content else b"")


def _shape_bytes(shape: tuple[int, ...]) -> bytes:
    return b"".join(bytes_field(2, varint_field(1, size) if size else b"") for size in shape)


def from_bytes(data: bytes, dtype: Any = None) -> np.ndarray:
    """Return the array that the bytes of a TensorProto say.

    Args:
        data: the bytes.
        dtype: its type; whatever it is if None.

    Raises:
        InvalidArgumentError: when they are no TensorProto, or one of another type.
    """
    found: dict[int, list[Any]] = {}
    for number, kind, value in fields(data):
        found.setdefault(number, []).append((kind, value))
    kind = as_dtype(int(found[_DTYPE][0][1])) if _DTYPE in found else None
    if dtype is not None and kind != as_dtype(dtype):
        said = "DT_INVALID" if kind is None else kind.name
        raise refused(
            f"Type mismatch between parsed tensor ({said}) and dtype ({as_dtype(dtype).name}) "
            "[Op:ParseTensor] name: "
        )
    if kind is None:
        raise refused("Could not parse the bytes of a tensor: it has no type.")
    shape = _shape(found[_SHAPE][0][1]) if _SHAPE in found else ()
    return _filled(_values(found, kind), shape, kind)


def _shape(data: bytes) -> tuple[int, ...]:
    sizes: list[int] = []
    for number, _, value in fields(data):
        if number == 2:
            sizes.append(next((signed(n) for field, _, n in fields(value) if field == 1), 0))
    return tuple(sizes)


def _values(found: dict[int, list[Any]], kind: DType) -> np.ndarray:
    if kind.is_string:
        texts = [value for _, value in found.get(_STRING, [])]
        made = np.empty(len(texts), object)
        made[:] = texts
        return made
    if _CONTENT in found:
        return np.frombuffer(found[_CONTENT][0][1], kind.dtype)
    for number in (_FLOAT, _DOUBLE, _COMPLEX64, _COMPLEX128):
        if number in found:
            numbers = [x for _, v in found[number] for x in packed_floats(v, _FLOATS[number])]
            return _complex(numbers, kind) if kind.is_complex else np.array(numbers, kind.dtype)
    for number in (_INT, _INT64, _BOOL, _UINT32, _UINT64, _HALF):
        if number in found:
            values = [x for way, v in found[number] for x in packed_integers(way, v)]
            if number == _HALF:
                return np.array(values, np.uint16).view(kind.dtype)
            return np.array([signed(x) if x >> 63 else x for x in values]).astype(kind.dtype)
    return np.zeros(0, kind.dtype)


def _complex(numbers: list[float], kind: DType) -> np.ndarray:
    return (np.array(numbers[::2]) + 1j * np.array(numbers[1::2])).astype(kind.dtype)


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
