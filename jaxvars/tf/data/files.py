"""Datasets of what is in files: lines, records, rows of CSV, and batches of them by name."""

from __future__ import annotations

import csv
import functools
import glob
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.data.dataset import Dataset, to_strings
from jaxvars.tf.data.generators.counts import UNKNOWN
from jaxvars.tf.data.generators.cursor import numbered
from jaxvars.tf.io.csv import Columns, parse_row, rows_of
from jaxvars.tf.io.records import compression_kind, open_file, records
from jaxvars.tf.tensors.convert import string_array
from jaxvars.tf.tensors.dtypes import float32, int32, int64, string
from jaxvars.tf.tensors.elements import Element, to_host
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import one_int, refused
from jaxvars.tf.tensors.tensor import Tensor

Read: TypeAlias = Callable[[str, int], Iterator[Any]]


def text_lines(
    filenames: Any, compression_type: Any = None, buffer_size: Any = None,
    num_parallel_reads: Any = None, name: str | None = None,
) -> Dataset:  # fmt: skip
    """Return a dataset of the lines of files.

    Args:
        filenames: a name, a list of them, or a dataset of them.
        compression_type: "GZIP", "ZLIB" or "".
        buffer_size: of no effect.
        num_parallel_reads: lines of how many files are taken in turn.
        name: of no effect.
    """
    kind = compression_kind(compression_type)

    def lines(path: str, start: int) -> Iterator[Element]:
        with open_file(path, kind) as file:
            for line in itertools.islice(file, start, None):
                yield np.array(line.rstrip(b"\n").removesuffix(b"\r"), object)

    return _make_dataset("TextLineDatasetV2", lines, filenames, num_parallel_reads)


def tf_records(
    filenames: Any, compression_type: Any = None, buffer_size: Any = None,
    num_parallel_reads: Any = None, name: str | None = None,
) -> Dataset:  # fmt: skip
    """Return a dataset of the records of TFRecord files; their checksums are verified.

    The arguments are as for `TextLineDataset`.

    Raises:
        NotFoundError: (when iterated) when a file is not there.
        DataLossError: (when iterated) when it is damaged.
    """
    kind = compression_kind(compression_type)

    def read(path: str, start: int) -> Iterator[Element]:
        return (np.array(record, object) for record in records(path, kind, start))

    return _make_dataset("TFRecordDatasetV2", read, filenames, num_parallel_reads)


def fixed_length_records(
    filenames: Any, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None,
    buffer_size: Any = None, compression_type: Any = None, num_parallel_reads: Any = None,
    name: str | None = None,
) -> Dataset:  # fmt: skip
    """Return a dataset of the records of files in which all are of one size.

    Args:
        filenames: a name, a list of them, or a dataset of them.
        record_bytes: the size.
        header_bytes: how many bytes come before the records.
        footer_bytes: how many come after them.
        buffer_size: of no effect.
        compression_type: "GZIP", "ZLIB" or "".
        num_parallel_reads: records of how many files are taken in turn.
        name: of no effect.

    Raises:
        InvalidArgumentError: (when iterated) when a file is not a number of records.
    """
    kind = compression_kind(compression_type)
    size, head, foot = (
        one_int(n or 0, "a number of bytes") for n in (record_bytes, header_bytes, footer_bytes)
    )

    def read(path: str, start: int) -> Iterator[Element]:
        with open_file(path, kind) as file:
            data = file.read()
        body = data[head : len(data) - foot]
        if len(body) % size:
            raise refused(
                f"Excess bytes {len(body) % size} after reading {len(body) // size} records of "
                f"{size} bytes in {path}."
            )
        for at in range(start * size, len(body), size):
            yield np.array(body[at : at + size], object)

    return _make_dataset("FixedLengthRecordDatasetV2", read, filenames, num_parallel_reads)


def csv_rows(
    filenames: Any, record_defaults: Any, compression_type: Any = None, buffer_size: Any = None,
    header: bool = False, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
    select_cols: Any = None, exclude_cols: Any = None,
) -> Dataset:  # fmt: skip
    """Return a dataset of the rows of CSV files: tuples of a scalar for each column.

    Args:
        filenames: a name, a list of them, or a dataset of them.
        record_defaults: for each column a type, or what it is where nothing is written.
        compression_type: "GZIP", "ZLIB" or "".
        buffer_size: of no effect.
        header: whether the first line of each file is none.
        field_delim: what is between two columns.
        use_quote_delim: whether quotes are around some values.
        na_value: what is written for nothing.
        select_cols: which columns to take, by number; all if None.
        exclude_cols: which not to.

    Raises:
        InvalidArgumentError: (when iterated) when a value is not of its type, or not there.
    """
    if select_cols is not None and exclude_cols is not None:
        raise ValueError("select_cols and exclude_cols can't both be given.")
    kind = compression_kind(compression_type)
    columns = Columns(record_defaults, field_delim, use_quote_delim, na_value)

    def read(path: str, start: int) -> Iterator[Element]:
        with open_file(path, kind) as file:
            rows = rows_of(file.read(), columns)
        for row in rows[start + bool(header) :]:
            found = parse_row(_choose_columns(row, select_cols, exclude_cols), columns)
            yield tuple(np.array(x, object if isinstance(x, bytes) else None) for x in found)

    spec = tuple(TensorSpec((), dtype) for dtype in columns.dtypes)
    return _make_dataset("CsvDatasetV2", read, filenames, None, spec)


def _choose_columns(row: list[Any], select: Any, exclude: Any) -> list[Any]:
    if select is not None:
        return [row[i] for i in select]
    left_out = set(exclude or ())
    return [x for i, x in enumerate(row) if i not in left_out]


_TEXT = TensorSpec((), string)


def _make_dataset(
    kind: str, read: Read, filenames: Any, parallel: Any, spec: Any = _TEXT
) -> Dataset:
    def of_file(name: Any) -> Dataset:
        read_from = functools.partial(read, to_host(name).item().decode())
        return Dataset(kind, lambda memory: numbered(memory, read_from), UNKNOWN, lambda: spec)

    names = filenames
    if not isinstance(names, Dataset):
        names = Dataset.from_tensor_slices(to_host(Tensor(to_strings(filenames))).reshape(-1))
    made = names.interleave(of_file, cycle_length=int(parallel) if parallel else 1)
    return made._like(kind, made._run, None, lambda: spec)


# ---------------------------------------------------------------- batches by name
def make_csv_dataset(
    file_pattern: Any, batch_size: int, column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None, label_name: str | None = None,
    select_columns: Sequence[Any] | None = None, field_delim: str = ",",
    use_quote_delim: bool = True, na_value: str = "", header: bool = True,
    num_epochs: int | None = None, shuffle: bool = True, shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None, prefetch_buffer_size: Any = None,
    num_parallel_reads: Any = None, sloppy: bool = False, num_rows_for_inference: int | None = 100,
    compression_type: Any = None, ignore_errors: bool = False, encoding: str = "utf-8",
) -> Dataset:  # fmt: skip
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
    files = _find_files(file_pattern)
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = _read_lines(files[0], field_delim, encoding, 1)[0]
    names = list(column_names)
    if len(set(names)) != len(names):
        raise ValueError("Cannot have duplicate column names.")
    chosen = _find_numbers(names, select_columns)
    names = [names[i] for i in chosen]
    if label_name is not None and label_name not in names:
        raise ValueError("`label_name` provided must be one of the columns.")
    if column_defaults is None:
        count = num_rows_for_inference
        rows = _read_lines(
            files[0], field_delim, encoding, None if count is None else count + header
        )
        column_defaults = [_infer_type([row[i] for row in rows[header:]], na_value) for i in chosen]
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


def _find_files(pattern: Any) -> list[str]:
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    found = [path for each in patterns for path in sorted(glob.glob(each))]  # noqa: PTH207 - any path
    if not found:
        raise ValueError(f"No files match `file_pattern` {pattern}.")
    return found


def _read_lines(path: str, delimiter: str, encoding: str, count: int | None) -> list[list[str]]:
    with Path(path).open(encoding=encoding, newline="") as file:
        rows = csv.reader(file, delimiter=delimiter)
        return [row for _, row in zip(range(count), rows, strict=False)] if count else list(rows)


def _find_numbers(names: list[str], select: Sequence[Any] | None) -> list[int]:
    if select is None:
        return list(range(len(names)))
    for name in select:
        if isinstance(name, str) and name not in names:
            raise ValueError(f"Value for `select_columns` {name!r} is not one of the columns.")
    return sorted(names.index(x) if isinstance(x, str) else int(x) for x in select)


def _infer_type(strings: list[str], nothing: str) -> Any:
    """Return what a column without a value is: an empty value of the type that all strings have."""
    given = [string for string in strings if string not in ("", nothing)]
    for dtype in (int32, int64, float32):
        if all(_fits(string, dtype) for string in given):
            return np.zeros(1, dtype.dtype)
    return string_array(np.array([""], object))


def _fits(string: str, dtype: Any) -> bool:
    try:
        number = int(string) if dtype.is_integer else float(string)
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
