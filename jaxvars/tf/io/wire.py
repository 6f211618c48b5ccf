"""The bytes of protocol buffers: fields, each a number and a value.

Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from jaxvars.tf.tensors.static import refused

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield the fields of a message: number, kind, and an integer or bytes.

    Raises:
        InvalidArgumentError: when these are no fields.

    >>> list(fields(varint_field(1, 300) + bytes_field(2, b"a")))
    [(1, 0, 300), (2, 2, b'a')]
    """
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at)
        elif kind == BYTES:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            value, at = data[at : at + size], at + size
        else:
            raise refused("Could not parse the bytes of a message.")
        if at > end or not number:
            raise refused("Could not parse the bytes of a message.")
        yield number, kind, value


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable size at a place, and the place after it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise refused("Could not parse the bytes of a message.")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def varints(data: bytes) -> list[int]:
    """Return numbers of variable size, one after another."""
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def signed(value: int) -> int:
    """Return the number that 64 bits say."""
    return value - (1 << 64) if value >> 63 else value


def number_bytes(value: int) -> bytes:
    """Return a number of variable size as bytes."""
    value %= 1 << 64
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def varint_field(number: int, value: int) -> bytes:
    """Return a field of an integer."""
    return number_bytes(number << 3) + number_bytes(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field of bytes, or of a message."""
    return number_bytes(number << 3 | BYTES) + number_bytes(len(value)) + value


def packed_integers(kind: int, value: Any) -> list[int]:
    """Return the integers of a field that may be packed."""
    return [value] if kind == VARINT else varints(value)


def packed_floats(value: bytes, letter: str) -> list[float]:
    """Return the floats of a field that may be packed: letter "f" or "d"."""
    size = 4 if letter == "f" else 8
    return list(struct.unpack(f"<{len(value) // size}{letter}", value))
