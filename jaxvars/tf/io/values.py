"""Values as bytes, and files as strings: the operations of `tf.io`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.errors import FailedPreconditionError, NotFoundError
from jaxvars.tf.io.csv import Columns, columns_of, fields_of, parse_row
from jaxvars.tf.io.tensors import from_bytes, to_bytes
from jaxvars.tf.registry.rows import HOST, Refused, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import host_dtype
from jaxvars.tf.tensors.elements import to_stored
from jaxvars.tf.tensors.handles import is_handles, stage
from jaxvars.tf.tensors.static import refused, require_known

Text: TypeAlias = np.ndarray

_FILES = "files are on the host: inside a `tf.function` they must be known"


# ---------------------------------------------------------------- files
@op("io.read_file", "filename", kinds="string", strings=True, example="'/no/file'")
def read_file(filename: Text) -> Text:
    """Return what is in a file."""
    if is_handles(filename):
        return stage(read_file.__wrapped__, filename, like=np.array(b"", object))
    path = _name(filename)
    try:
        return np.array(Path(path).read_bytes(), object)
    except FileNotFoundError:
        missing = NotFoundError(message=f"{path}; No such file or directory")
        raise Refused(missing) from None
    except OSError as error:
        failed = FailedPreconditionError(message=f"{path}; {error.strerror}")
        raise Refused(failed) from error


def _name(filename: Text) -> str:
    if filename.ndim:
        raise refused(f"Input filename tensor must be scalar, but had shape: {filename.shape}")
    return filename.item().decode()


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a string into a file, which is made again, and the folders that it is in.

    Args:
        filename: of the file.
        contents: bytes, a string, or a scalar tensor of strings.
        name: of no effect.
    """
    path = Path(_name(to_stored(filename)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_stored(contents).item())


# ---------------------------------------------------------------- base64
# ---------------------------------------------------------------- bytes
@op("io.decode_raw", "input_bytes", kinds="string", strings=True, eager_only=HOST)
def decode_raw(
    input_bytes: Text, out_type: Any, little_endian: bool = True, fixed_length: Any = None
) -> Any:
    """Read bytes as numbers.

    Example: `tf.io.decode_raw('abcd', tf.uint8)`.
    """
    dtype = host_dtype(out_type)
    strings = list(input_bytes.ravel())
    if fixed_length is not None:
        size = int(require_known(fixed_length, "fixed_length"))
        if size % dtype.size:
            raise refused(
                f"fixed_length ({size}) must be a multiple of the size of out_type ({dtype.size})"
            )
        strings = [string[:size].ljust(size, b"\0") for string in strings]
    sizes = [len(string) for string in strings]
    for i, size in enumerate(sizes):
        if size != sizes[-1]:
            raise refused(
                f"DecodeRaw requires input strings to all be the same size, but element {i + 1} "
                f"has size {size} != {sizes[-1]}"
            )
    width = sizes[0] if sizes else 0
    if width % dtype.size:
        raise refused(
            f"Input to DecodeRaw has length {width} that is not a multiple of {dtype.size}, the "
            f"size of {dtype.name}"
        )
    kind = np.dtype(dtype.dtype)
    order = kind if little_endian or kind.itemsize == 1 else kind.newbyteorder(">")
    made = np.frombuffer(b"".join(strings), order).astype(kind)
    return _convert.to_array(made.reshape(*input_bytes.shape, width // dtype.size))


# ---------------------------------------------------------------- tensors
@op(
    "io.serialize_tensor", "tensor", kinds="float complex int bool string", strings=True,
    eager_only=HOST, example="tf.constant([1, 2])",
)  # fmt: skip
def serialize_tensor(tensor: Any) -> Text:
    """Write a tensor as bytes: a TensorProto."""
    known = tensor if _convert.is_text(tensor) else require_known(tensor, "tensor")
    return np.array(to_bytes(known), object)


@op("io.parse_tensor", "serialized", kinds="string", strings=True, eager_only=HOST)
def parse_tensor(serialized: Text, out_type: Any) -> Any:
    """Read a tensor from bytes: a TensorProto.

    Example: `tf.io.parse_tensor(tf.io.serialize_tensor([[1.5, 2.0]]), tf.float32)`.
    """
    if serialized.ndim:
        raise refused(f"Expected `serialized` to be a scalar, got shape: {list(serialized.shape)}")
    return _convert.to_array(from_bytes(serialized.item(), out_type))


# ---------------------------------------------------------------- CSV
@op("io.decode_csv", "records", op="DecodeCSV", kinds="string", strings=True, eager_only=HOST)
def decode_csv(
    records: Text, record_defaults: Any, field_delim: str = ",", use_quote_delim: bool = True,
    na_value: str = "", select_cols: Any = None,
) -> list[Any]:  # fmt: skip
    """Read lines of values, a tensor for each column.

    Example: `tf.io.decode_csv(['1,2.5,x', '3,,"y,""z"'], [[0], [1.0], ['']])`.
    """
    columns = Columns(record_defaults, field_delim, use_quote_delim, na_value)
    if select_cols is not None:
        _check_columns(list(select_cols), len(columns.dtypes))
    rows: list[list[Any]] = []
    for i, string in enumerate(records.ravel()):
        row = fields_of(string.rstrip(b"\r\n"), columns)
        if select_cols is not None:
            row = [row[j] for j in select_cols if j < len(row)]
        rows.append(parse_row(row, columns, i))
    made = columns_of(rows, columns.dtypes)
    return [_convert.to_array(column.reshape(records.shape)) for column in made]


def _check_columns(chosen: list[int], count: int) -> None:
    """Raise ValueError unless there are as many columns as defaults, in their order."""
    if len(chosen) != count:
        raise Refused(ValueError("Length of select_cols and record_defaults do not match."))
    if any(j < 0 for j in chosen):
        raise Refused(ValueError("select_cols contains negative values."))
    if chosen != sorted(set(chosen)):
        raise Refused(ValueError("select_cols is not strictly increasing."))
