"""TensorFlow's messages: `tf.train.Example` and its parts, and tensors.

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

from jaxvars.tf.errors import InvalidArgumentError

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
TYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7,
    "complex64": 8, "int64": 9, "bool": 10, "qint8": 11, "quint8": 12, "qint32": 13,
    "bfloat16": 14, "qint16": 15, "quint16": 16, "uint16": 17, "complex128": 18, "float16": 19,
    "resource": 20, "variant": 21, "uint32": 22, "uint64": 23, "float8_e5m2": 24,
    "float8_e4m3fn": 25, "float8_e4m3fnuz": 26, "float8_e4m3b11fnuz": 27, "float8_e5m2fnuz": 28,
    "int4": 29, "uint4": 30, "int2": 31, "uint2": 32, "float4_e2m1fn": 33,
}  # fmt: skip
"""The types' numbers, by name."""

C_NAMES = {"float32": "float", "float64": "double", "float16": "half"}
"""What messages call types, where they are called otherwise."""

_FIELDS = {
    **_EXAMPLES,
    "Dim": [("size", 1, "int64", ""), ("name", 2, "string", "")],
    "TensorShapeProto": [("dim", 2, "Dim", "repeated")],
    "TensorProto": [
        ("dtype", 1, "DataType", ""),
        ("tensor_shape", 2, "TensorShapeProto", ""),
        ("version_number", 3, "int32", ""),
        ("tensor_content", 4, "bytes", ""),
        ("string_val", 8, "bytes", "repeated"),
        ("half_val", 13, "int32", "repeated"), ("float_val", 5, "float", "repeated"),
        ("double_val", 6, "double", "repeated"), ("int_val", 7, "int32", "repeated"),
        ("scomplex_val", 9, "float", "repeated"), ("int64_val", 10, "int64", "repeated"),
        ("bool_val", 11, "bool", "repeated"), ("dcomplex_val", 12, "double", "repeated"),
        ("uint32_val", 16, "uint32", "repeated"), ("uint64_val", 17, "uint64", "repeated"),
        ("float8_val", 18, "bytes", ""),
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
        raise InvalidArgumentError(message="Could not parse the bytes of a message.") from None


@functools.cache
def _classes() -> dict[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="jaxvars/example.proto", package=_PACKAGE, syntax="proto3"
    )
    types = file.enum_type.add(name="DataType")
    for name, number in {"invalid": 0, **TYPES}.items():
        types.value.add(name=f"DT_{C_NAMES.get(name, name).upper()}", number=number)
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
    known = field.TYPE_ENUM if kind == "DataType" else field.TYPE_MESSAGE
    field.type = getattr(field, f"TYPE_{kind.upper()}", known)
    if field.type == known:
        field.type_name = f".{_PACKAGE}.{kind}"


def _add_entry(made: Any, name: str, kind: str) -> str:
    """Add the message of a map's pairs; return its name."""
    entry = made.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=1)
    key.type = key.TYPE_STRING
    _add_field(entry, "value", 2, kind, "")
    return entry.name
