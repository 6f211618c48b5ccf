"""Where the keys and values of tables come from: tensors and files."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from jaxvars.tf.io.records import open_file
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import DType, as_dtype, int64, string
from jaxvars.tf.tensors.elements import to_stored
from jaxvars.tf.tensors.static import refused


def to_typed(value: Any, dtype: DType | None) -> np.ndarray:
    """Return a value as an array on the host, of a type."""
    if dtype is None:
        return to_stored(value)
    found = to_stored(_convert.to_array(value, dtype))
    return found if dtype.is_string else found.astype(dtype.dtype)  # also where JAX has 32 bits


@final
class KeyValueTensorInitializer:
    """Keys and values that are given.

    Args:
        keys: the keys, a vector.
        values: the value of each.
        key_dtype: the type of the keys, if it is not that of `keys`.
        value_dtype: the type of the values.
        name: of no effect.
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        kinds = [None if kind is None else as_dtype(kind) for kind in (key_dtype, value_dtype)]
        self.keys, self.values = to_typed(keys, kinds[0]), to_typed(values, kinds[1])
        if self.keys.shape != self.values.shape:
            raise refused(
                f"Number of elements in keys and values must match: {self.keys.shape} and "
                f"{self.values.shape}"
            )

    @property
    def key_dtype(self) -> DType:
        """The type of the keys."""
        return _convert.dtype_of(self.keys)

    @property
    def value_dtype(self) -> DType:
        """The type of the values."""
        return _convert.dtype_of(self.values)


class TextFileIndex:
    """What of a line is a key or value: this, or the number of a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


@final
class TextFileInitializer:
    """Keys and values in the lines of a file.

    Args:
        filename: of the file.
        key_dtype: the type of the keys.
        key_index: what of a line is the key: a `TextFileIndex`, or the number of a column.
        value_dtype: the type of the values.
        value_index: what of a line is the value.
        vocab_size: how many lines are read; all if None.
        delimiter: what is between two columns.
        name: of no effect.
        value_index_offset: added to line numbers that are values.

    Raises:
        NotFoundError: when the file does not exist.
        InvalidArgumentError: when a line has too few columns, or there are too few lines.
        ValueError: when a type does not fit what of a line it is.
    """

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:  # fmt: skip
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        for what, index, dtype in (
            ("key", key_index, self.key_dtype), ("value", value_index, self.value_dtype),
        ):  # fmt: skip
            _check(what, index, dtype)
        path = to_stored(filename).item().decode()
        with open_file(path) as file:
            lines = [line.rstrip(b"\r\n") for line in file]
        if vocab_size is not None:
            if len(lines) < vocab_size:
                raise refused(
                    f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}"
                )
            lines = lines[:vocab_size]
        split = delimiter.encode()
        self.keys = _column(lines, key_index, self.key_dtype, split, 0)
        self.values = _column(lines, value_index, self.value_dtype, split, value_index_offset)


def _check(what: str, index: int, dtype: DType) -> None:
    if index == TextFileIndex.LINE_NUMBER and dtype != as_dtype(int64):
        raise ValueError(
            f"`{what}_dtype` must be int64 if `{what}_index` is {index}, received: {dtype.name}"
        )
    if index == TextFileIndex.WHOLE_LINE and dtype != string:
        raise ValueError(
            f"`{what}_dtype` must be string if `{what}_index` is {index}, received: {dtype.name}"
        )
    if index < TextFileIndex.WHOLE_LINE:
        raise ValueError(f"`{what}_index` should be >= -2, received: {index}.")


def _column(lines: list[bytes], index: int, dtype: DType, split: bytes, offset: int) -> np.ndarray:
    if index == TextFileIndex.LINE_NUMBER:
        return np.arange(len(lines), dtype=np.int64) + offset
    parts = lines if index == TextFileIndex.WHOLE_LINE else [_part(x, index, split) for x in lines]
    made = np.empty(len(parts), object if dtype.is_string else dtype.dtype)
    try:
        made[:] = parts if dtype.is_string else [dtype.dtype.type(part) for part in parts]
    except ValueError:
        raise refused(f"A line has no {dtype.name} in column {index}.") from None
    return made


def _part(line: bytes, index: int, split: bytes) -> bytes:
    parts = line.split(split)
    if index >= len(parts):
        raise refused(
            f"Invalid number of columns in line {line.decode(errors='replace')}: expected at least "
            f"{index + 1}, got {len(parts)}"
        )
    return parts[index]
