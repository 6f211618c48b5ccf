"""The checksum of TFRecord files: CRC-32C, and its mask.

Source: RFC 3720, appendix B.4 (the polynomial 0x11EDC6F41, reflected).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78
_FEW = 2048  # bytes up to which plain Python is faster


def masked_crc32c(data: bytes) -> int:
    """Return the checksum of bytes as it is written into files of records.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of bytes."""
    if len(data) <= _FEW:
        return _plain(data, 0xFFFFFFFF) ^ 0xFFFFFFFF
    lanes = 1 << (len(data).bit_length() // 2)
    length = len(data) // lanes
    head = _plain(data[: len(data) - lanes * length], 0xFFFFFFFF)
    rows = np.frombuffer(data, np.uint8)[len(data) - lanes * length :].reshape(lanes, length)
    return _joined(_of_rows(rows), head, length) ^ 0xFFFFFFFF


def _plain(data: bytes, crc: int) -> int:
    table = _numbers()
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


@functools.cache
def _numbers() -> list[int]:
    return _table().tolist()


@functools.cache
def _table() -> np.ndarray:
    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, (crc >> 1) ^ np.uint32(_POLYNOMIAL), crc >> 1)
    return crc


def _of_rows(rows: np.ndarray) -> list[int]:
    """Return the checksum of each row, begun with 0, all rows at once."""
    table, crc = _table(), np.zeros(len(rows), np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ column) & 0xFF] ^ (crc >> 8)
    return crc.tolist()


def _joined(parts: list[int], crc: int, length: int) -> int:
    """Return the checksum of rows one after another: a row is so many zeros, and its own."""
    tables = _zeros(length)
    for part in parts:
        crc = (
            tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF]
            ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24] ^ part
        )  # fmt: skip
    return crc


@functools.lru_cache(maxsize=64)
def _zeros(length: int) -> list[list[int]]:
    """Return what a number of zero bytes makes of a checksum, byte by byte of it."""
    images = [1 << bit for bit in range(32)]  # of each bit
    step = [_plain(b"\0", image) for image in images]
    while length:
        if length & 1:
            images = [_applied(step, image) for image in images]
        step = [_applied(step, image) for image in step]
        length >>= 1
    return [[_applied(images, byte << 8 * k) for byte in range(256)] for k in range(4)]


def _applied(matrix: list[int], crc: int) -> Any:
    made = 0
    while crc:
        low = crc & -crc
        made ^= matrix[low.bit_length() - 1]
        crc ^= low
    return made
