"""TFRecord files: `tf.io.TFRecordWriter`, and what reads them.

A record is its length (8 bytes), the checksum of that (4), its bytes, and their checksum (4). A
checksum is a CRC-32C (RFC 3720, appendix B.4: the polynomial 0x11EDC6F41, reflected), masked.
"""

from __future__ import annotations

import functools
import gzip
import io
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self, final

import numpy as np

from jaxvars.tf.errors import DataLossError, FailedPreconditionError, NotFoundError
from jaxvars.tf.tensors.convert import to_array

_KINDS = ("", "GZIP", "ZLIB")


@final
class TFRecordOptions:
    """How a file of records is written.

    Args:
        compression_type: "GZIP", "ZLIB" or "".
        flush_mode: of no effect, as what follows but for the level.
        input_buffer_size: of no effect.
        output_buffer_size: of no effect.
        window_bits: of no effect.
        compression_level: from 0 to 9.
        compression_method: of no effect.
        mem_level: of no effect.
        compression_strategy: of no effect.
    """

    def __init__(
        self, compression_type: Any = None, flush_mode: Any = None, input_buffer_size: Any = None,
        output_buffer_size: Any = None, window_bits: Any = None,
        compression_level: int | None = None, compression_method: Any = None, mem_level: Any = None,
        compression_strategy: Any = None,
    ) -> None:  # fmt: skip
        self.compression_type = compression_kind(compression_type)
        self.compression_level = compression_level


@final
class TFRecordWriter:
    """Writes records into a file.

    Args:
        path: of the file, which is made again.
        options: TFRecordOptions, or "GZIP", "ZLIB" or "".

    Example:
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = str(pathlib.Path(folder.name) / "a.tfrecord")
        >>> with TFRecordWriter(path) as writer:
        ...     writer.write(b"one")
        >>> list(records(path))
        [b'one']
        >>> folder.cleanup()
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        given = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        level = given.compression_level
        self._squeeze: Any = None
        try:
            self._raw: BinaryIO | None = Path(os.fspath(path)).open("wb")  # noqa: SIM115 - until `close`
        except FileNotFoundError:
            raise NotFoundError(message=f"{path}; No such file or directory") from None
        self._file: Any = self._raw
        if given.compression_type == "GZIP":
            self._file = gzip.GzipFile("", "wb", 9 if level is None else level, self._raw, 0)
        elif given.compression_type == "ZLIB":
            self._squeeze = zlib.compressobj(-1 if level is None else level)

    def write(self, record: Any) -> None:
        """Write a record.

        Args:
            record: bytes, a string, or a scalar tensor of strings.

        Raises:
            FailedPreconditionError: when the file was closed.
        """
        if self._raw is None:
            raise FailedPreconditionError(message="Writer not initialized or previously closed")
        data = record if isinstance(record, bytes) else to_array(record).item()
        whole = frame_record(data)
        self._file.write(self._squeeze.compress(whole) if self._squeeze else whole)

    def flush(self) -> None:
        """Write what is in memory."""
        if self._raw is not None and self._squeeze is None:
            self._file.flush()

    def close(self) -> None:
        """Write what is in memory, and close the file."""
        if self._raw is None:
            return
        if self._squeeze:
            self._file.write(self._squeeze.flush())
        self._file.close()
        self._raw.close()
        self._raw = None

    def __del__(self) -> None:
        if getattr(self, "_raw", None) is not None:  # there is none where opening failed
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def frame_record(data: bytes) -> bytes:
    """Return a record as it is in a file."""
    head = struct.pack("<Q", len(data))
    ends = (struct.pack("<I", masked_crc32c(part)) for part in (head, data))
    return b"".join((head, next(ends), data, next(ends)))


def compression_kind(kind: Any) -> str:
    """Return the name of a kind of compression; raise ValueError for another."""
    found = to_array(kind).item() if hasattr(kind, "dtype") else kind
    name = found.decode() if isinstance(found, bytes) else found or ""
    if name not in _KINDS:
        raise ValueError(f"Unsupported compression_type: {name}; there are GZIP, ZLIB and ''.")
    return name


def open_file(path: Any, kind: str = "") -> Any:
    """Return a file to read, whatever its compression.

    Raises:
        NotFoundError: when there is none.
    """
    try:
        if kind == "GZIP":
            return gzip.open(path, "rb")
        file = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise NotFoundError(message=f"{path}; No such file or directory") from None
    if kind != "ZLIB":
        return file
    with file:
        return io.BytesIO(zlib.decompress(file.read()))


def records(path: Any, kind: str = "", start: int = 0) -> Iterator[bytes]:
    """Yield the records of a file but for some first ones; raise DataLossError if it is damaged."""
    with open_file(path, kind) as file:
        number, place = 0, 0
        while head := file.read(12):
            data = _read_record(file, head, place)
            place += 16 + len(data)
            if number >= start:
                yield data
            number += 1


def _read_record(file: Any, head: bytes, place: int) -> bytes:
    if len(head) < 12:
        raise _loss_error("truncated record", place)
    size, crc = struct.unpack("<QI", head)
    if masked_crc32c(head[:8]) != crc:
        hint = "" if place else " (Is this even a TFRecord file?)"
        raise _loss_error("corrupted record", place, hint)
    data = file.read(size)
    tail = file.read(4)
    if len(data) < size or len(tail) < 4:
        raise _loss_error("truncated record", place)
    if struct.unpack("<I", tail)[0] != masked_crc32c(data):
        raise _loss_error("corrupted record", place)
    return data


def _loss_error(what: str, place: int, hint: str = "") -> DataLossError:
    return DataLossError(message=f"{what} at {place}{hint} [Op:IteratorGetNext] name: ")


def decompress(data: bytes, kind: str) -> bytes:
    """Return what was compressed; raise DataLossError for what was not."""
    try:
        return data if not kind else zlib.decompress(data, 31 if kind == "GZIP" else 15)
    except zlib.error as error:
        raise DataLossError(message=f"inflate() failed: {error}") from None


# ---------------------------------------------------------------- checksums: CRC-32C
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
        return _update_checksum(data, 0xFFFFFFFF) ^ 0xFFFFFFFF
    lanes = 1 << (len(data).bit_length() // 2)
    length = len(data) // lanes
    head = _update_checksum(data[: len(data) - lanes * length], 0xFFFFFFFF)
    rows = np.frombuffer(data, np.uint8)[len(data) - lanes * length :].reshape(lanes, length)
    return _combine_rows(_checksum_rows(rows), head, length) ^ 0xFFFFFFFF


def _update_checksum(data: bytes, crc: int) -> int:
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


def _checksum_rows(rows: np.ndarray) -> list[int]:
    """Return the checksum of each row, begun with 0, all rows at once."""
    table, crc = _table(), np.zeros(len(rows), np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ column) & 0xFF] ^ (crc >> 8)
    return crc.tolist()


def _combine_rows(parts: list[int], crc: int, length: int) -> int:
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
    step = [_update_checksum(b"\0", image) for image in images]
    while length:
        if length & 1:
            images = [_multiply(step, image) for image in images]
        step = [_multiply(step, image) for image in step]
        length >>= 1
    return [[_multiply(images, byte << 8 * k) for byte in range(256)] for k in range(4)]


def _multiply(matrix: list[int], crc: int) -> Any:
    made = 0
    while crc:
        low = crc & -crc
        made ^= matrix[low.bit_length() - 1]
        crc ^= low
    return made
