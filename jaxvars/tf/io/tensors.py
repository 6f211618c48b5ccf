"""Tensors as messages: `tf.make_tensor_proto`, and as their bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.messages import message, parse
from jaxvars.tf.tensors.convert import dtype_of, is_tensor_like, is_text, to_array
from jaxvars.tf.tensors.dtypes import DType, any_dtype, as_dtype
from jaxvars.tf.tensors.static import refused
from jaxvars.tracing import context

_FIELDS = {
    "half_val": ["float16", "bfloat16"], "float_val": ["float32"], "double_val": ["float64"],
    "int_val": ["int8", "int16", "int32", "uint8", "uint16", "int2", "int4", "uint2", "uint4"],
    "int64_val": ["int64"], "uint32_val": ["uint32"], "uint64_val": ["uint64"],
    "bool_val": ["bool"], "scomplex_val": ["complex64"], "dcomplex_val": ["complex128"],
    "float8_val": ["float8_e5m2", "float8_e4m3fn", "float4_e2m1fn"], "string_val": ["string"],
}  # fmt: skip
_FIELD = {name: field for field, names in _FIELDS.items() for name in names}
"""Where a TensorProto has single numbers, by type."""

_PARTS = {"half_val": np.uint16, "scomplex_val": np.float32, "dcomplex_val": np.float64}
"""As what it has the parts of numbers."""

_SINGLE = {"bool", "uint16", "complex64", "complex128", "int2", "int4", "uint2", "uint4", "string"}
"""The types of which it has all numbers so."""


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:  # fmt: skip
    r"""Return a tensor as TensorFlow's message: a TensorProto.

    Args:
        values: a number, string, list of them, array or tensor; or a TensorProto, as it is.
        dtype: the type of the elements; that of the values when None.
        shape: sizes; those of the values when None. The last value goes on to the end.
        verify_shape: whether the values must have that shape.
        allow_broadcast: the same, if they are not a scalar.

    Raises:
        TypeError: when they have another shape or type, or are not known.
        ValueError: when they do not fit into the shape, or are none.

    >>> proto = make_tensor_proto([1.0, 2.0])
    >>> proto.SerializeToString()
    b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'
    >>> make_ndarray(proto)
    array([1., 2.], dtype=float32)
    """
    if hasattr(values, "tensor_shape"):
        return values
    if verify_shape and allow_broadcast:
        raise ValueError("allow_broadcast and verify_shape are not both allowed.")
    array = _to_known(values, dtype)
    sizes = array.shape if shape is None else tuple(map(int, shape))
    is_same = verify_shape or (allow_broadcast and array.ndim > 0)
    if is_same and sizes != array.shape:
        raise TypeError(f"Expected Tensor's shape: {sizes}, but got {array.shape}.")
    if array.size > math.prod(sizes):
        raise ValueError(
            f"Too many elements provided. Takes at most {math.prod(sizes)}, but got {array.size}."
        )
    return _to_message(array, sizes)


def _to_known(values: Any, dtype: Any) -> np.ndarray:
    """Return values that are known as an array; those of a tensor are converted, too."""
    if values is None:
        raise ValueError("None values not supported.")
    if is_tensor_like(values):
        values = to_array(values)
        if context.is_tracer(values):
            raise TypeError("Expected any non-tensor type, but got a tensor instead.")
        values = np.asarray(values)
    return np.asarray(to_array(values, None if dtype is None else as_dtype(dtype)))


def _to_message(array: np.ndarray, sizes: Sequence[int]) -> Any:
    kind = dtype_of(array)
    made = _begin(array, sizes)
    field = _FIELD.get(kind.name)
    if kind.name not in _SINGLE and 1 < array.size == math.prod(sizes):
        made.tensor_content = array.tobytes()
    elif field is None:
        raise TypeError(f"Element type not supported in TensorProto: {kind.name}.")
    elif field == "float8_val":
        made.float8_val = array.tobytes()
    else:
        flat = np.ravel(array)
        parts = flat.view(_PARTS[field]) if field in _PARTS else flat
        getattr(made, field).extend(parts.tolist())
    return made


def _begin(array: Any, sizes: Sequence[int]) -> Any:
    """Return a message without the numbers."""
    shape = message("TensorShapeProto")(dim=[{"size": size} for size in sizes])
    return message("TensorProto")(dtype=dtype_of(array).as_datatype_enum, tensor_shape=shape)


def make_ndarray(tensor: Any) -> np.ndarray:
    """Return the array of a TensorProto; strings as bytes.

    Raises:
        TypeError: when it has a type that no array has.
        ValueError: when it has more values than its shape.
    """
    kind = any_dtype(tensor.dtype)
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    try:
        return _fill(read_values(tensor, kind), shape, kind).copy()
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None


def to_bytes(array: Any) -> bytes:
    """Return an array as the bytes of a TensorProto.

    >>> from_bytes(to_bytes(np.array([1, 2], np.int32)))
    array([1, 2], dtype=int32)
    """
    made = _begin(array, array.shape)
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
    kind = any_dtype(found.dtype) if found.dtype else None
    if dtype is not None and kind not in (any_dtype(dtype), as_dtype(dtype)):
        kind_name = "DT_INVALID" if kind is None else kind.name
        raise refused(
            f"Type mismatch between parsed tensor ({kind_name}) and dtype ({as_dtype(dtype).name}) "
            "[Op:ParseTensor] name: "
        )
    if kind is None:
        raise refused("Could not parse the bytes of a tensor: it has no type.")
    shape = tuple(dim.size for dim in found.tensor_shape.dim)
    return _fill(read_values(found, kind), shape, kind)


def read_values(found: Any, kind: DType) -> np.ndarray:
    """Return the numbers of a TensorProto, of a type, as they are there."""
    if kind.is_string:
        made = np.empty(len(found.string_val), object)
        made[:] = list(found.string_val)
        return made
    if found.tensor_content:
        return np.frombuffer(found.tensor_content, kind.dtype)
    numbers = getattr(found, _FIELD.get(kind.name, "int_val"))
    if isinstance(numbers, bytes):
        return np.frombuffer(numbers, kind.dtype)
    if kind.name in _FIELDS["half_val"]:
        return np.array(numbers, np.uint16).view(kind.dtype)
    if kind.is_complex:
        numbers = np.array(numbers[::2]) + 1j * np.array(numbers[1::2])
    return np.array(numbers).astype(kind.dtype)


def _fill(values: np.ndarray, shape: tuple[int, ...], kind: DType) -> np.ndarray:
    """Return an array of a shape: the last value goes on to the end."""
    size = int(np.prod(shape))
    if len(values) > size:
        raise refused(f"The bytes of a tensor have {len(values)} values for shape {list(shape)}.")
    if len(values) < size:
        empty: Any = b"" if kind.is_string else 0
        rest = np.full(size - len(values), values[-1] if len(values) else empty, values.dtype)
        values = np.concatenate([values, rest])
    return values.reshape(shape)
