"""Batches of what is in CSV files, by the names of columns; and parsed examples."""

from __future__ import annotations

import csv
import glob
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxvars.tf.data.dataset import Dataset
from jaxvars.tf.data.files import csv_rows
from jaxvars.tf.tensors.convert import text_array
from jaxvars.tf.tensors.dtypes import float32, int32, int64


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: Any = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Return a dataset of batches of rows: dicts of columns by name, or pairs of that and labels.

    Args:
        file_pattern: names of files, or patterns.
        batch_size: how many rows make an element.
        column_names: of the columns; those in the first line if None.
        column_defaults: types, or values where nothing is written; found out from rows if None.
        label_name: the column that becomes the second part of an element.
        select_columns: names or indices of the columns to take; all if None.
        field_delim: what is between two columns.
        use_quote_delim: whether quotes are around some values.
        na_value: what is written for nothing.
        header: whether the first line of each file has the names.
        num_epochs: how often the rows come; indefinitely if None.
        shuffle: put the rows into random order.
        shuffle_buffer_size: as `buffer_size` of `Dataset.shuffle`.
        shuffle_seed: as its `seed`.
        prefetch_buffer_size: of no effect.
        num_parallel_reads: of no effect.
        sloppy: of no effect.
        num_rows_for_inference: how many rows tell the types; all if None.
        compression_type: "GZIP", "ZLIB" or "".
        ignore_errors: leave out rows that cannot be read.
        encoding: of the file's names of columns.

    Raises:
        ValueError: when no file is found, or a name is none of a column.
    """
    files = _files(file_pattern)
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = _lines(files[0], field_delim, encoding, 1)[0]
    names = list(column_names)
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    chosen = _numbers(names, select_columns)
    names = [names[i] for i in chosen]
    if label_name is not None and label_name not in names:
        raise ValueError("`label_name` provided must be one of the columns.")
    if column_defaults is None:
        count = num_rows_for_inference
        rows = _lines(files[0], field_delim, encoding, None if count is None else count + header)
        column_defaults = [_type([row[i] for row in rows[header:]], na_value) for i in chosen]
    rows_set = csv_rows(
        files, column_defaults, compression_type, None, header, field_delim, use_quote_delim,
        na_value, chosen,
    )  # fmt: skip
    if ignore_errors:
        rows_set = rows_set.ignore_errors()
    if shuffle:
        rows_set = rows_set.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = rows_set.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)

    def named(*columns: Any) -> Any:
        features = OrderedDict(zip(names, columns, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    return batches.map(named)


def _files(pattern: Any) -> list[str]:
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    found = [path for each in patterns for path in sorted(glob.glob(each))]  # noqa: PTH207 - any path
    if not found:
        raise ValueError(f"No files match `file_pattern` {pattern}.")
    return found


def _lines(path: str, delimiter: str, encoding: str, count: int | None) -> list[list[str]]:
    with Path(path).open(encoding=encoding, newline="") as file:
        rows = csv.reader(file, delimiter=delimiter)
        return [row for _, row in zip(range(count), rows, strict=False)] if count else list(rows)


def _numbers(names: list[str], select: Sequence[Any] | None) -> list[int]:
    if select is None:
        return list(range(len(names)))
    for name in select:
        if isinstance(name, str) and name not in names:
            raise ValueError(f"Value for `select_columns` {name!r} is not one of the columns.")
    return sorted(names.index(x) if isinstance(x, str) else int(x) for x in select)


def _type(texts: list[str], nothing: str) -> Any:
    """Return what a column without a value is: an empty value of the type that all strings have."""
    given = [text for text in texts if text not in ("", nothing)]
    for dtype in (int32, int64, float32):
        if all(_is_of(text, dtype) for text in given):
            return np.zeros(1, dtype.dtype)
    return text_array(np.array([""], object))


def _is_of(text: str, dtype: Any) -> bool:
    try:
        number = int(text) if dtype.is_integer else float(text)
    except ValueError:
        return False
    return not dtype.is_integer or dtype.min <= number <= dtype.max


def parse_example_dataset(
    features: Any, num_parallel_calls: int = 1, deterministic: bool | None = None
) -> Any:
    """Return what parses a dataset of batches of serialized examples, for `Dataset.apply`.

    Args:
        features: as in `tf.io.parse_example`.
        num_parallel_calls: of no effect.
        deterministic: the order is always kept.
    """
    from jaxvars.tf.io.examples import parse_example

    return lambda dataset: dataset.map(lambda x: parse_example(x, features))
