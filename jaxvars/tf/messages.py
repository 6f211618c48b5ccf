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
from typing import Any, TypeAlias

from jaxvars.tf.errors import InvalidArgumentError

_PACKAGE = "tensorflow"

Fields: TypeAlias = dict[str, list[list[str]]]


def _read(table: str) -> Fields:
    """Return the fields of each message in a table: how often each is there, type, name, number."""
    rows = (row.split(": ") for row in table.strip().replace("\n    ", " ").splitlines())
    return {
        name: [["", *field.split()][-4:] for field in fields.split(", ")] for name, fields in rows
    }


_EXAMPLES = _read("""
BytesList: repeated bytes value 1
FloatList: repeated float value 1
Int64List: repeated int64 value 1
Feature: one-of-kind BytesList bytes_list 1, one-of-kind FloatList float_list 2,
    one-of-kind Int64List int64_list 3
Features: map Feature feature 1
FeatureList: repeated Feature feature 1
FeatureLists: map FeatureList feature_list 1
Example: Features features 1
SequenceExample: Features context 1, FeatureLists feature_lists 2
""")
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

_FIELDS = _EXAMPLES | _read("""
Dim: int64 size 1, string name 2
TensorShapeProto: repeated Dim dim 2
TensorProto: DataType dtype 1, TensorShapeProto tensor_shape 2, int32 version_number 3,
    bytes tensor_content 4, repeated bytes string_val 8, repeated int32 half_val 13,
    repeated float float_val 5, repeated double double_val 6, repeated int32 int_val 7,
    repeated float scomplex_val 9, repeated int64 int64_val 10, repeated bool bool_val 11,
    repeated double dcomplex_val 12, repeated uint32 uint32_val 16, repeated uint64 uint64_val 17,
    bytes float8_val 18
BundleHeaderProto: int32 num_shards 1, int32 endianness 2
Extent: int64 start 1, one-of-has_length int64 length 2
TensorSliceProto: repeated Extent extent 1
BundleEntryProto: int32 dtype 1, TensorShapeProto shape 2, int32 shard_id 3, int64 offset 4,
    int64 size 5, fixed32 crc32c 6, repeated TensorSliceProto slices 7
SavedSliceMeta: string name 1, TensorShapeProto shape 2, int32 type 3
SavedTensorSliceMeta: repeated SavedSliceMeta tensor 1
SavedSlice: string name 1, TensorSliceProto slice 2, TensorProto data 3
SavedTensorSlices: SavedTensorSliceMeta meta 1, SavedSlice data 2
ObjectReference: int32 node_id 1, string local_name 2
SerializedTensor: string name 1, string full_name 2, string key 3
SlotVariableReference: int32 variable_id 1, string slot_name 2, int32 id 3
TrackableObject: repeated ObjectReference children 1, repeated SerializedTensor attributes 2,
    repeated SlotVariableReference slots 3
TrackableObjectGraph: repeated TrackableObject nodes 1
""")
"""The fields of each message that are read."""

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


def _add_field(made: Any, how: str, kind: str, name: str, number: str) -> None:
    """Add a field to the description of a message."""
    field = made.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if how in ("repeated", "map") else field.LABEL_OPTIONAL
    if how == "map":
        kind = f"{made.name}.{_add_entry(made, name, kind)}"
    elif how.startswith("one-of-"):
        if not made.oneof_decl:
            made.oneof_decl.add(name=how.removeprefix("one-of-"))
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
    _add_field(entry, "", kind, "value", "2")
    return entry.name
