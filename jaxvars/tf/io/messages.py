"""TensorFlow's messages: `tf.train.Example` and its parts, and tensors as bytes.

    tf.train.Example(features=tf.train.Features(feature={
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[3])),
    })).SerializeToString()

Rules this file keeps:
- they are those of the protobuf library, with TensorFlow's field numbers: the same bytes;
- they are in a separate pool, so that TensorFlow may be imported in the same process;
- protobuf is imported when a message is first requested.

Source: https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from jaxvars.tf.tensors.convert import dtype_of, is_text
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.static import refused

_PACKAGE = "tensorflow"

_EXAMPLES: dict[str, list[tuple[str, int, str, str]]] = {
    "BytesList": [("value", 1, "bytes", "repeated")],
    "FloatList": [("value", 1, "float", "repeated")],
    "Int64List": [("value", 1, "int64", "repeated")],
    "Feature": [
        ("bytes_list", 1, "BytesList", "one of kind"),
        ("float_list", 2, "FloatList", "one of kind"),
        ("int64_list", 3, "Int64List", "one of kind"),
    ],
    "Features": [("feature", 1, "Feature", "map")],
    "FeatureList": [("feature", 1, "Feature", "repeated")],
    "FeatureLists": [("feature_list", 1, "FeatureList", "map")],
    "Example": [("features", 1, "Features", "")],
    "SequenceExample": [("context", 1, "Features", ""), ("feature_lists", 2, "FeatureLists", "")],
}
NUMBERS = {
    "half_val": (13, "int32"), "float_val": (5, "float"), "double_val": (6, "double"),
    "int_val": (7, "int32"), "scomplex_val": (9, "float"), "int64_val": (10, "int64"),
    "bool_val": (11, "bool"), "dcomplex_val": (12, "double"), "uint32_val": (16, "uint32"),
    "uint64_val": (17, "uint64"),
}  # fmt: skip
"""Where a TensorProto may have its numbers."""

_FIELDS = {
    **_EXAMPLES,
    "Dim": [("size", 1, "int64", "")],
    "TensorShapeProto": [("dim", 2, "Dim", "repeated")],
    "TensorProto": [
        ("dtype", 1, "int32", ""),
        ("tensor_shape", 2, "TensorShapeProto", ""),
        ("tensor_content", 4, "bytes", ""),
        ("string_val", 8, "bytes", "repeated"),
        *((name, number, kind, "repeated") for name, (number, kind) in NUMBERS.items()),
    ],
    "BundleHeaderProto": [("num_shards", 1, "int32", ""), ("endianness", 2, "int32", "")],
    "Extent": [("start", 1, "int64", ""), ("length", 2, "int64", "one of has_length")],
    "TensorSliceProto": [("extent", 1, "Extent", "repeated")],
    "BundleEntryProto": [
        ("dtype", 1, "int32", ""), ("shape", 2, "TensorShapeProto", ""),
        ("shard_id", 3, "int32", ""), ("offset", 4, "int64", ""), ("size", 5, "int64", ""),
        ("crc32c", 6, "fixed32", ""), ("slices", 7, "TensorSliceProto", "repeated"),
    ],
    "SavedSliceMeta": [
        ("name", 1, "string", ""), ("shape", 2, "TensorShapeProto", ""), ("type", 3, "int32", ""),
    ],
    "SavedTensorSliceMeta": [("tensor", 1, "SavedSliceMeta", "repeated")],
    "SavedSlice": [
        ("name", 1, "string", ""), ("slice", 2, "TensorSliceProto", ""),
        ("data", 3, "TensorProto", ""),
    ],
    "SavedTensorSlices": [("meta", 1, "SavedTensorSliceMeta", ""), ("data", 2, "SavedSlice", "")],
    "ObjectReference": [("node_id", 1, "int32", ""), ("local_name", 2, "string", "")],
    "SerializedTensor": [
        ("name", 1, "string", ""), ("full_name", 2, "string", ""), ("key", 3, "string", ""),
    ],
    "SlotVariableReference": [
        ("variable_id", 1, "int32", ""), ("slot_name", 2, "string", ""), ("id", 3, "int32", ""),
    ],
    "TrackableObject": [
        ("children", 1, "ObjectReference", "repeated"),
        ("attributes", 2, "SerializedTensor", "repeated"),
        ("slots", 3, "SlotVariableReference", "repeated"),
    ],
    "TrackableObjectGraph": [("nodes", 1, "TrackableObject", "repeated")],
}  # fmt: skip
"""The fields of each message that are read: name, number, type, and how often it is there."""

MESSAGES = frozenset(_EXAMPLES)
"""The names of the messages that are public."""


def message(name: str) -> Any:
    r"""Return the class of a message.

    Args:
        name: of a message.

    >>> Int64List = message("Int64List")
    >>> Int64List(value=[1, 300]).SerializeToString()
    b'\n\x03\x01\xac\x02'
    >>> Int64List.FromString(b"\n\x03\x01\xac\x02").value
    [1, 300]
    """
    return _classes()[name]


def parse(name: str, data: bytes) -> Any:
    """Return the message that is encoded in some bytes."""
    from google.protobuf.message import DecodeError

    try:
        return message(name).FromString(data)
    except DecodeError:
        raise refused("Could not parse the bytes of a message.") from None


@functools.cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="jaxvars/example.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        made = file.message_type.add(name=name)
        for field in fields:
            _add_field(made, *field)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    find = pool.FindMessageTypeByName
    found = {n: message_factory.GetMessageClass(find(f"{_PACKAGE}.{n}")) for n in _FIELDS}
    for kind in found.values():
        kind.__module__ = __name__  # or it is None, and whose class it is cannot be asked
    return found


def _add_field(made: Any, name: str, number: int, kind: str, how: str) -> None:
    """Add a field to the description of a message."""
    field = made.field.add(name=name, number=number)
    field.label = field.LABEL_REPEATED if how in ("repeated", "map") else field.LABEL_OPTIONAL
    if how == "map":
        kind = f"{made.name}.{_add_entry(made, name, kind)}"
    elif how.startswith("one of"):
        if not made.oneof_decl:
            made.oneof_decl.add(name=how.removeprefix("one of "))
        field.oneof_index = 0
    field.type = getattr(field, f"TYPE_{kind.upper()}", field.TYPE_MESSAGE)
    if field.type == field.TYPE_MESSAGE:
        field.type_name = f".{_PACKAGE}.{kind}"


def _add_entry(made: Any, name: str, kind: str) -> str:
    """Add the message of a map's pairs; return its name."""
    entry = made.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=1)
    key.type = key.TYPE_STRING
    _add_field(entry, "value", 2, kind, "")
    return entry.name


# ---------------------------------------------------------------- tensors
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
    for name in NUMBERS:
        if numbers := list(getattr(found, name)):
            if name == "half_val":
                return np.array(numbers, np.uint16).view(kind.dtype)
            if kind.is_complex:
                numbers = np.array(numbers[::2]) + 1j * np.array(numbers[1::2])
            return np.array(numbers).astype(kind.dtype)
    return np.zeros(0, kind.dtype)


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
