"""Datasets of what is in files: lines, records, rows of CSV."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.data.dataset import Dataset
from jaxvars.tf.data.generators.counts import UNKNOWN
from jaxvars.tf.data.generators.sources import numbered
from jaxvars.tf.data.sources import texts
from jaxvars.tf.io.csv import Columns, parsed, rows_of
from jaxvars.tf.io.records import compression_kind, opened, records
from jaxvars.tf.tensors.dtypes import string
from jaxvars.tf.tensors.elements import Element, host
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import one_int, refused
from jaxvars.tf.tensors.tensor import Tensor

Read: TypeAlias = Callable[[str, int], Iterator[Any]]


def text_lines(
    filenames: Any,
    compression_type: Any = None,
    buffer_size: Any = None,
    num_parallel_reads: Any = None,
    name: str | None = None,
) -> Dataset:
    """Return a dataset of the lines of text files.

    Args:
        filenames: a name, a list of them, or a dataset of them.
        compression_type: "GZIP", "ZLIB" or "".
        buffer_size: of no effect.
        num_parallel_reads: lines of how many files are taken in turn.
        name: of no effect.
    """
    kind = compression_kind(compression_type)

    def lines(path: str, start: int) -> Iterator[Element]:
        with opened(path, kind) as file:
            for i, line in enumerate(file):
                if i >= start:
                    yield _text(line.rstrip(b"\n").removesuffix(b"\r"))

    return _dataset("TextLineDatasetV2", lines, filenames, num_parallel_reads)


def tf_records(
    filenames: Any,
    compression_type: Any = None,
    buffer_size: Any = None,
    num_parallel_reads: Any = None,
    name: str | None = None,
) -> Dataset:
    """Return a dataset of the records of TFRecord files; their checksums are verified.

    The arguments are as for `TextLineDataset`.

    Raises:
        NotFoundError: (when iterated) when a file is not there.
        DataLossError: (when iterated) when it is damaged.
    """
    kind = compression_kind(compression_type)

    def read(path: str, start: int) -> Iterator[Element]:
        return map(_text, records(path, kind, start))

    return _dataset("TFRecordDatasetV2", read, filenames, num_parallel_reads)


def fixed_length_records(
    filenames: Any,
    record_bytes: Any,
    header_bytes: Any = None,
    footer_bytes: Any = None,
    buffer_size: Any = None,
    compression_type: Any = None,
    num_parallel_reads: Any = None,
    name: str | None = None,
) -> Dataset:
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
        with opened(path, kind) as file:
            data = file.read()
        body = data[head : len(data) - foot]
        if len(body) % size:
            raise refused(
                f"Excess bytes {len(body) % size} after reading {len(body) // size} records of "
                f"{size} bytes in {path}."
            )
        for at in range(start * size, len(body), size):
            yield _text(body[at : at + size])

    return _dataset("FixedLengthRecordDatasetV2", read, filenames, num_parallel_reads)


def csv_rows(
    filenames: Any,
    record_defaults: Any,
    compression_type: Any = None,
    buffer_size: Any = None,
    header: bool = False,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    exclude_cols: Any = None,
) -> Dataset:
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
        with opened(path, kind) as file:
            rows = rows_of(file.read(), columns)
        for i, row in enumerate(rows):
            if i >= start + bool(header):
                chosen = _chosen(row, select_cols, exclude_cols)
                found = parsed(chosen, columns)
                yield tuple(_text(x) if isinstance(x, bytes) else np.asarray(x) for x in found)

    spec = tuple(TensorSpec((), dtype) for dtype in columns.dtypes)
    return _dataset("CsvDatasetV2", read, filenames, None, spec)


def _chosen(row: list[Any], select: Any, exclude: Any) -> list[Any]:
    if select is not None:
        return [row[i] for i in select]
    left_out = set(exclude or ())
    return [x for i, x in enumerate(row) if i not in left_out]


def _text(data: bytes) -> np.ndarray:
    made = np.empty((), object)
    made[()] = data
    return made


_TEXT = TensorSpec((), string)


def _dataset(kind: str, read: Read, filenames: Any, parallel: Any, spec: Any = _TEXT) -> Dataset:
    def of_file(name: Any) -> Dataset:
        read_from = functools.partial(read, host(name).item().decode())
        return Dataset(kind, lambda memory: numbered(memory, read_from), UNKNOWN, lambda: spec)

    names = filenames
    if not isinstance(names, Dataset):
        names = Dataset.from_tensor_slices(host(Tensor(texts(filenames))).reshape(-1))
    made = names.interleave(of_file, cycle_length=int(parallel) if parallel else 1)
    made._kind = kind
    return made._with_spec(lambda: spec)
