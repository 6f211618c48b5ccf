"""TFRecord files: `tf.io.TFRecordWriter`, and what reads them.

A record is its length (8 bytes), the checksum of that (4), its bytes, and their checksum (4).
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self, final

from jaxvars.tf.errors import DataLossError, NotFoundError
from jaxvars.tf.io.crc import masked_crc32c
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
        self,
        compression_type: Any = None,
        flush_mode: Any = None,
        input_buffer_size: Any = None,
        output_buffer_size: Any = None,
        window_bits: Any = None,
        compression_level: int | None = None,
        compression_method: Any = None,
        mem_level: Any = None,
        compression_strategy: Any = None,
    ) -> None:
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
            raise NotFoundError(None, None, f"{path}; No such file or directory") from None
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
            from jaxvars.tf.errors import FailedPreconditionError

            raise FailedPreconditionError(None, None, "Writer not initialized or previously closed")
        data = record if isinstance(record, bytes) else to_array(record).item()
        self._put(framed(data))

    def _put(self, data: bytes) -> None:
        self._file.write(self._squeeze.compress(data) if self._squeeze else data)

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


def framed(data: bytes) -> bytes:
    """Return a record as it is in a file."""
    head = struct.pack("<Q", len(data))
    ends = (struct.pack("<I", masked_crc32c(part)) for part in (head, data))
    return b"".join((head, next(ends), data, next(ends)))


def compression_kind(kind: Any) -> str:
    """Return the name of a kind of compression.

    Raises:
        ValueError: when there is no such kind.
    """
    found = to_array(kind).item() if hasattr(kind, "dtype") else kind
    name = found.decode() if isinstance(found, bytes) else found or ""
    if name not in _KINDS:
        raise ValueError(f"Unsupported compression_type: {name}; there are GZIP, ZLIB and ''.")
    return name


def opened(path: Any, kind: str = "") -> Any:
    """Return a file to read, whatever its compression.

    Raises:
        NotFoundError: when there is none.
    """
    try:
        if kind == "GZIP":
            return gzip.open(path, "rb")
        file = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise NotFoundError(None, None, f"{path}; No such file or directory") from None
    if kind != "ZLIB":
        return file
    import io

    with file:
        return io.BytesIO(zlib.decompress(file.read()))


def records(path: Any, kind: str = "", start: int = 0) -> Iterator[bytes]:
    """Yield the records of a file.

    Args:
        path: of the file.
        kind: "GZIP", "ZLIB" or "".
        start: how many are left out.

    Raises:
        DataLossError: when the file is damaged.
    """
    with opened(path, kind) as file:
        number, place = 0, 0
        while head := file.read(12):
            data = _record(file, head, place)
            place += 16 + len(data)
            if number >= start:
                yield data
            number += 1


def _record(file: Any, head: bytes, place: int) -> bytes:
    if len(head) < 12:
        raise _lost("truncated record", place)
    size, crc = struct.unpack("<QI", head)
    if masked_crc32c(head[:8]) != crc:
        hint = "" if place else " (Is this even a TFRecord file?)"
        raise _lost("corrupted record", place, hint)
    data = file.read(size)
    tail = file.read(4)
    if len(data) < size or len(tail) < 4:
        raise _lost("truncated record", place)
    if struct.unpack("<I", tail)[0] != masked_crc32c(data):
        raise _lost("corrupted record", place)
    return data


def _lost(what: str, place: int, hint: str = "") -> DataLossError:
    return DataLossError(None, None, f"{what} at {place}{hint} [Op:IteratorGetNext] name: ")


def decompressed(data: bytes, kind: str) -> bytes:
    """Return what was compressed.

    Raises:
        DataLossError: when it was not.
    """
    try:
        return data if not kind else zlib.decompress(data, 31 if kind == "GZIP" else 15)
    except zlib.error as error:
        raise DataLossError(None, None, f"inflate() failed: {error}") from None
