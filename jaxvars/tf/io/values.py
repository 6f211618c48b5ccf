"""Values as bytes, and files as text: the operations of `tf.io`."""

from __future__ import annotations

import base64
import binascii
import glob
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.errors import NotFoundError
from jaxvars.tf.io.csv import Columns, columns_of, fields_of, parsed
from jaxvars.tf.io.records import decompressed
from jaxvars.tf.io.tensors import from_bytes, to_bytes
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tf.strings.conversion import each
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.elements import stored
from jaxvars.tf.tensors.static import known, refused

Text: TypeAlias = np.ndarray

HOST = "text is on the host: inside a `tf.function` it must be known"


# ---------------------------------------------------------------- files
def _read_file(filename: Text) -> Text:
    path = _name(filename)
    try:
        return _one(Path(path).read_bytes())
    except FileNotFoundError:
        raise _missing(path) from None
    except OSError as error:
        raise Refused(_failed(f"{path}; {error.strerror}")) from error


def _failed(message: str) -> Exception:
    from jaxvars.tf.errors import FailedPreconditionError

    return FailedPreconditionError(None, None, message)


def _name(filename: Text) -> str:
    if filename.ndim:
        raise refused(f"Input filename tensor must be scalar, but had shape: {filename.shape}")
    return filename.item().decode()


def _missing(path: str) -> Refused:
    return Refused(NotFoundError(None, None, f"{path}; No such file or directory"))


def _one(data: bytes) -> Text:
    made = np.empty((), object)
    made[()] = data
    return made


def _matching_files(pattern: Text) -> Text:
    patterns = [text.decode() for text in pattern.ravel()]
    found = sorted({path for each in patterns for path in glob.glob(each)})  # noqa: PTH207 - text
    return _convert.text_array(np.array(found, object))


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write text into a file, which is made anew, and the folders that it is in.

    Args:
        filename: of the file.
        contents: bytes, text, or a scalar tensor of text.
        name: of no effect.
    """
    path = Path(_name(stored(filename)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(stored(contents).item())


# ---------------------------------------------------------------- base64
def _encode_base64(input: Text, pad: bool) -> Text:
    def encoded(text: bytes) -> bytes:
        made = base64.urlsafe_b64encode(text)
        return made if pad else made.rstrip(b"=")

    return each(encoded, input)


def _decode_base64(input: Text) -> Text:
    return each(_decoded, input)


def _decoded(text: bytes) -> bytes:
    bare = text.rstrip(b"=")
    if not bare.replace(b"-", b"").replace(b"_", b"").isalnum() and bare:
        raise refused("Invalid character found in base64.")
    try:
        return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
    except binascii.Error:
        raise refused("Invalid length of base64.") from None


# ---------------------------------------------------------------- bytes
def _decode_raw(input_bytes: Text, out_type: Any, little_endian: bool, fixed_length: Any) -> Any:
    dtype = as_dtype(out_type)
    texts = list(input_bytes.ravel())
    if fixed_length is not None:
        size = int(known(fixed_length, "fixed_length"))
        if size % dtype.size:
            raise refused(
                f"fixed_length ({size}) must be a multiple of the size of out_type ({dtype.size})"
            )
        texts = [text[:size].ljust(size, b"\0") for text in texts]
    sizes = [len(text) for text in texts]
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
    made = np.frombuffer(b"".join(texts), order).astype(kind)
    return _convert.to_array(made.reshape(*input_bytes.shape, width // dtype.size))


def _decode_compressed(bytes: Text, compression_type: str) -> Text:
    if compression_type not in ("", "GZIP", "ZLIB"):
        raise refused(
            "Only ZLIB, GZIP or NONE are supported compressions, but got: " + compression_type
        )
    return each(lambda text: decompressed(text, compression_type), bytes)


# ---------------------------------------------------------------- tensors
def _serialize_tensor(tensor: Any) -> Text:
    return _one(to_bytes(known(tensor, "tensor") if not _convert.is_text(tensor) else tensor))


def _parse_tensor(serialized: Text, out_type: Any) -> Any:
    if serialized.ndim:
        raise refused(f"Expected `serialized` to be a scalar, got shape: {list(serialized.shape)}")
    return _convert.to_array(from_bytes(serialized.item(), out_type))


# ---------------------------------------------------------------- CSV
def _decode_csv(
    records: Text, record_defaults: Any, field_delim: str, use_quote_delim: bool, na_value: str,
    select_cols: Any,
) -> list[Any]:  # fmt: skip
    columns = Columns(record_defaults, field_delim, use_quote_delim, na_value)
    rows: list[list[Any]] = []
    for i, text in enumerate(records.ravel()):
        row = fields_of(text.rstrip(b"\r\n"), columns)
        if select_cols is not None:
            row = [row[j] for j in select_cols if j < len(row)]
        rows.append(parsed(row, columns, i))
    made = columns_of(rows, columns.dtypes)
    return [_convert.to_array(column.reshape(records.shape)) for column in made]


ROWS = [
    Row(
        "read_file", "filename", "filename", _read_file, kinds="string", text=True,
        doc="Return what is in a file.", eager_only=HOST,
        examples=("io.read_file('/no/file')", "io.read_file(['a'])", "io.read_file('/no/other')"),
    ),
    Row(
        "matching_files", "pattern", "pattern", _matching_files, kinds="string", text=True,
        doc="Return the sorted names of the files that match patterns.", eager_only=HOST,
        examples=(
            "io.matching_files('/no/*')", "io.matching_files(['/no/*', '/non/?'])",
            "io.matching_files('')",
        ),
    ),
    Row(
        "encode_base64", "input", "input, pad=False", _encode_base64, kinds="string", text=True,
        doc="Write bytes as letters and digits, safe in addresses.", eager_only=HOST,
        examples=(
            "io.encode_base64(['hi', b'\\xff\\xfe'])", "io.encode_base64('hi', pad=True)",
            "io.encode_base64([['']])",
        ),
    ),
    Row(
        "decode_base64", "input", "input", _decode_base64, kinds="string", text=True,
        doc="Read bytes that are written as letters and digits.", eager_only=HOST,
        examples=(
            "io.decode_base64(['aGk', 'aGk='])", "io.decode_base64('a*')", "io.decode_base64('')",
        ),
    ),
    Row(
        "decode_raw", "input_bytes",
        "input_bytes, out_type, little_endian=True, fixed_length=None", _decode_raw, text=True,
        kinds="string", doc="Read bytes as numbers.", eager_only=HOST,
        examples=(
            "io.decode_raw('abcd', tf.uint8)", "io.decode_raw(['abcd'], tf.int16, False)",
            "io.decode_raw(['abcd', 'ef'], tf.uint8, fixed_length=4)",
            "io.decode_raw(['abcd', 'ef'], tf.uint8)", "io.decode_raw(['abc'], tf.int16)",
        ),
    ),
    Row(
        "decode_compressed", "bytes", "bytes, compression_type=''", _decode_compressed, text=True,
        kinds="string", doc="Read what was compressed by gzip or zlib.", eager_only=HOST,
        examples=(
            "io.decode_compressed(['abc', ''])",
            "io.decode_compressed(b'x\\x9cKLL\\x04\\x00\\x02I\\x01$', 'ZLIB')",
            "io.decode_compressed('abc', 'LZ')",
        ),
    ),
    Row(
        "serialize_tensor", "tensor", "tensor", _serialize_tensor, text=True,
        kinds="float complex int bool string", doc="Write a tensor as bytes: a TensorProto.",
        eager_only=HOST,
        examples=(
            "io.serialize_tensor(tf.constant([1, 2]))", "io.serialize_tensor(['a', 'b'])",
            "io.serialize_tensor(tf.zeros([0, 2], tf.int64))", "io.serialize_tensor(True)",
        ),
    ),
    Row(
        "parse_tensor", "serialized", "serialized, out_type", _parse_tensor, text=True,
        kinds="string", doc="Read a tensor from bytes: a TensorProto.", eager_only=HOST,
        examples=(
            "io.parse_tensor(tf.io.serialize_tensor([[1.5, 2.0]]), tf.float32)",
            "io.parse_tensor(tf.io.serialize_tensor(['a', 'b']), tf.string)",
            ("io.parse_tensor(b'\\x08\\x01\\x12\\x04\\x12\\x02\\x08\\x03\\x2a\\x04"
             "\\0\\0\\x80\\x3f', 'float32')"),
            "io.parse_tensor(tf.io.serialize_tensor(tf.constant(2 + 1j)), tf.complex128)",
            "io.parse_tensor(tf.io.serialize_tensor([1]), tf.float32)",
            "io.parse_tensor('abc', tf.float32)",
        ),
    ),
    Row(
        "decode_csv", "records",
        ("records, record_defaults, field_delim=',', use_quote_delim=True, na_value='', "
         "select_cols=None"),
        _decode_csv, text=True, kinds="string", op="DecodeCSV", eager_only=HOST,
        doc="Read lines of values, a tensor for each column.",
        examples=(
            "io.decode_csv(['1,2.5,x', '3,,\"y,\"\"z\"'], [[0], [1.0], ['']])",
            "io.decode_csv('1 -', [[0], [7]], field_delim=' ', na_value='-')",
            "io.decode_csv(['1,2,3'], [[0], [0.5]], select_cols=[0, 2])",
            "io.decode_csv('1', [[0], [0]])", "io.decode_csv('a', [[0]])",
            "io.decode_csv('', [tf.constant([], tf.int32)])",
        ),
    ),
]  # fmt: skip
