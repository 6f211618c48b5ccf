"""CSV: lines of values, for `tf.io.decode_csv` and datasets of them.

Source: RFC 4180.
"""

from __future__ import annotations

import re
from typing import Any, final

import numpy as np

from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import DType, host_dtype
from jaxvars.tf.tensors.elements import to_stored
from jaxvars.tf.tensors.static import refused

_KINDS = {"float32", "float64", "int32", "int64", "string"}
_WORDS = {"float32": "float", "float64": "double"}  # as TensorFlow's messages have it
_MISSING = object()
_QUOTED = re.compile(rb'"((?:[^"]|"")*+)"')


@final
class Columns:
    """What is known of the columns.

    For each there is a type, or what it is where nothing is written: a value, a list of one, or an
    empty list of a type, which means that there must be a value. `nothing` is written for nothing.
    """

    def __init__(self, defaults: Any, delimiter: str, has_quotes: bool, nothing: str) -> None:
        if len(delimiter) != 1:
            raise refused("field_delim should be only 1 char")
        if has_quotes and delimiter == '"':
            raise refused("field_delim '\"' can't be the quote")
        self.delimiter, self.has_quotes = delimiter.encode(), has_quotes
        self.nothing = nothing.encode()
        pairs = [_column(x) for x in defaults]
        self.dtypes = [dtype for dtype, _ in pairs]
        self.defaults = [value for _, value in pairs]


def _column(given: Any) -> tuple[DType, Any]:
    if isinstance(given, DType | type):
        dtype, value = host_dtype(given), _MISSING
    else:
        array = to_stored(given)
        dtype = _convert.dtype_of(array)
        value = array.reshape(-1)[0] if array.size else _MISSING
        if array.size > 1 or array.ndim > 1:
            raise refused("Each record default should be at most rank 1 and have one value at most")
    if dtype.name not in _KINDS:
        raise refused(
            f"Value for attr 'OUT_TYPE' of {dtype.name} is not in the list of allowed values: "
            "float, double, int32, int64, string"
        )
    return dtype, value


def rows_of(data: bytes, columns: Columns) -> list[list[bytes]]:
    """Return the rows of a file, as bytes of their values."""
    rows: list[list[bytes]] = []
    line = b""
    for part in data.splitlines(keepends=True):
        line += part
        if columns.has_quotes and line.count(b'"') % 2:
            continue  # the line goes on: its end is inside of quotes
        rows.append(fields_of(line.rstrip(b"\r\n"), columns))
        line = b""
    return rows


def fields_of(line: bytes, columns: Columns) -> list[bytes]:
    """Return the values of a line, as bytes."""
    if not columns.has_quotes or b'"' not in line:
        return line.split(columns.delimiter)
    found: list[bytes] = []
    at = 0
    while at <= len(line):
        if line[at : at + 1] == b'"':
            part = _QUOTED.match(line, at)
            if part is None:
                raise refused("Quoted field has to end with quote followed by delim or end")
            value, at = part[1].replace(b'""', b'"'), part.end()
            if line[at : at + 1] not in (b"", columns.delimiter):
                raise refused("Quote inside a string has to be escaped by another quote")
        else:
            end = line.find(columns.delimiter, at)
            end = len(line) if end < 0 else end
            value, at = line[at:end], end
            if b'"' in value:
                raise refused("Unquoted fields cannot have quotes/CRLFs inside")
        found.append(value)
        at += 1
    return found


def parse_row(row: list[bytes], columns: Columns, number: int | str = "") -> list[Any]:
    """Return the values of a row, of their types."""
    if len(row) != len(columns.dtypes):
        raise refused(f"Expect {len(columns.dtypes)} fields but have {len(row)} in record {number}")
    triples = zip(row, columns.dtypes, columns.defaults, strict=True)
    return [_value(i, number, *each, columns) for i, each in enumerate(triples)]


def _value(
    i: int, number: int | str, string: bytes, dtype: DType, default: Any, columns: Columns
) -> Any:
    if string in (b"", columns.nothing):
        if default is _MISSING:
            raise refused(f"Field {i} is required but missing in record {number}!")
        return default
    if dtype.is_string:
        return string
    try:
        found = int(string) if dtype.is_integer else float(string)
        if dtype.is_integer and not dtype.min <= found <= dtype.max:
            raise ValueError
    except ValueError:
        shown = string.decode(errors="replace")
        raise refused(
            f"Field {i} in record {number} is not a valid {_WORDS.get(dtype.name, dtype.name)}: "
            f"{shown}"
        ) from None
    return dtype.dtype.type(found)


def columns_of(rows: list[list[Any]], dtypes: list[DType]) -> list[np.ndarray]:
    """Return columns of parsed rows as arrays."""
    made: list[np.ndarray] = []
    for i, dtype in enumerate(dtypes):
        column = np.empty(len(rows), object if dtype.is_string else dtype.dtype)
        column[:] = [row[i] for row in rows]
        made.append(column)
    return made
