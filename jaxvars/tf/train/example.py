"""`tf.train.Example` and its parts: records as TensorFlow writes them into files.

    tf.train.Example(features=tf.train.Features(feature={
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[3])),
    })).SerializeToString()

Rules this file keeps:
- they are messages of the protobuf library, with TensorFlow's field numbers: the same bytes;
- they are in a pool of their own, so that TensorFlow may be imported in the same process;
- protobuf is imported when a message is first asked for.

Source: https://www.tensorflow.org/tutorials/load_data/tfrecord
"""

from __future__ import annotations

import functools
from typing import Any

_PACKAGE = "tensorflow"

_FIELDS: dict[str, list[tuple[str, int, str, str]]] = {
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
"""The fields of each message: name, number, type, and how often it is there."""

MESSAGES = frozenset(_FIELDS)
"""The names of the messages."""


def message(name: str) -> Any:
    r"""Return the class of a message.

    Args:
        name: one of MESSAGES.

    >>> Int64List = message("Int64List")
    >>> Int64List(value=[1, 300]).SerializeToString()
    b'\n\x03\x01\xac\x02'
    >>> Int64List.FromString(b"\n\x03\x01\xac\x02").value
    [1, 300]
    """
    return _classes()[name]


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
    return {n: message_factory.GetMessageClass(find(f"{_PACKAGE}.{n}")) for n in _FIELDS}


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
    if kind in ("bytes", "float", "int64"):
        field.type = getattr(field, f"TYPE_{kind.upper()}")
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"


def _add_entry(made: Any, name: str, kind: str) -> str:
    """Add the message of a map's pairs; return its name."""
    entry = made.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=1)
    key.type = key.TYPE_STRING
    _add_field(entry, "value", 2, kind, "")
    return entry.name
