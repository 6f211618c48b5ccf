"""What a value is on disk: plain numbers, what they mean, and a checksum of both.

Rules this file keeps:
- encoding loses nothing: all dtypes, strings and random keys come back bit for bit;
- what comes back is made of numbers and strings only: nothing in a file is run.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.dtypes import is_key, is_string, string
from jaxvars.typing import Array, Value

_NATIVE = "biufc"  # kinds of dtype that are stored as they are, and bfloat16; others as bytes
_MOST_DIMENSIONS = 64


@final
@dataclass(frozen=True)
class Entry:
    """What a checkpoint says of one variable."""

    shape: tuple[int, ...]
    dtype: str  # by name: "float32", "bfloat16", "string", "key<fry>"
    stored_shape: tuple[int, ...]  # of the plain numbers on disk
    stored_dtype: str
    sha256: str  # of all this and of their bytes

    @property
    def nbytes(self) -> int:
        """How many bytes the plain numbers take."""
        return math.prod(self.stored_shape) * jnp.dtype(self.stored_dtype).itemsize

    def to_json(self) -> dict[str, Any]:
        """Return this as plain lists and strings."""
        return {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "stored": [list(self.stored_shape), self.stored_dtype],
            "sha256": self.sha256,
        }

    @classmethod
    def from_json(cls, data: Any) -> Entry:
        """Return what `to_json` gave; raise ValueError of something else."""
        try:
            shape, dtype = data["stored"]
            entry = cls(_sizes(data["shape"]), data["dtype"], _sizes(shape), dtype,
                        data["sha256"])  # fmt: skip
            known = isinstance(dtype, str) and _is_native(jnp.dtype(dtype))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not an entry: {error!r}") from None
        if not (known and isinstance(entry.dtype, str) and isinstance(entry.sha256, str)):
            raise ValueError("not an entry: no plain numbers")
        return entry

    def empty(self) -> np.ndarray:
        """Return the plain numbers of a value without any."""
        return np.empty(self.stored_shape, jnp.dtype(self.stored_dtype))

    def holds(self, stored: np.ndarray) -> bool:
        """Return whether these are the bytes that were written."""
        return _checksum(self.shape, self.dtype, stored) == self.sha256


def _sizes(data: Any) -> tuple[int, ...]:
    if not isinstance(data, list) or len(data) > _MOST_DIMENSIONS:
        raise TypeError("a shape is a list")
    if not all(type(size) is int and 0 <= size < 2**62 for size in data):
        raise TypeError("sizes are whole numbers")
    return tuple(data)


def dtype_name(dtype: Any) -> str:
    """Return how a dtype is called on disk."""
    return "string" if is_string(dtype) else str(dtype)


def encode(value: Array) -> tuple[Array, Entry]:
    """Return a value as plain numbers, without a copy where it is plain, and their Entry."""
    plain = _to_plain(value)
    on_host = np.asarray(plain)
    shape, dtype = tuple(value.shape), dtype_name(value.dtype)
    checksum = _checksum(shape, dtype, on_host)
    return plain, Entry(shape, dtype, on_host.shape, on_host.dtype.name, checksum)


# NumPy reads it by Python's parser, which fails at times where several threads parse (Python 3.11:
# "AST constructor recursion depth mismatch"), and would have a whole file be called damaged.
_HEADER = re.compile(
    rb"\{'descr': '(?P<dtype>[<>|=]?[a-zA-Z]\d+)', 'fortran_order': (?P<order>True|False), "
    rb"'shape': \((?P<shape>[\d, ]*)\), \} *\n"
)


def decode(stored: np.ndarray, entry: Entry) -> Value:
    """Return what was encoded, a NumPy array or random keys; raise ValueError if it cannot be."""
    if entry.dtype == "string":
        data = json.loads(stored.tobytes())
        if not all(isinstance(word, str) for word in data):
            raise ValueError("not strings")
        return np.array(data, dtype=string).reshape(entry.shape)
    if entry.dtype.startswith("key<"):
        return jax.random.wrap_key_data(jnp.asarray(stored), impl=key_impl(entry.dtype))
    return stored.view(jnp.dtype(entry.dtype)).reshape(entry.shape)


def storable(plain: Array) -> np.ndarray:
    """Return plain numbers as a .npy file knows them: bfloat16 as the integers of its bits."""
    array = np.asarray(plain)
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "V" else array


def from_npy(data: bytes, entry: Entry) -> np.ndarray:
    """Return the array in a .npy file; raise ValueError if it is not of the entry's form."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"its header has version {version}")
    size = int.from_bytes(file.read(2), "little")
    header = _HEADER.fullmatch(file.read(size))
    if header is None:
        raise ValueError("its file is of another form than was written")
    shape = tuple(int(size) for size in header["shape"].split(b",") if size.strip())
    in_columns, dtype = header["order"] == b"True", np.dtype(header["dtype"].decode())
    rest = file.getbuffer()[file.tell() :]
    if dtype.kind not in "biufc" or shape != entry.stored_shape or len(rest) != entry.nbytes:
        raise ValueError("its file is of another form than was written")
    array = np.frombuffer(rest, jnp.dtype(entry.stored_dtype))
    return array.reshape(shape, order="F" if in_columns else "C")


def key_impl(name: str) -> str:
    """Return the kind of random keys with a dtype of this name."""
    for impl in ("threefry2x32", "rbg", "unsafe_rbg"):
        if str(jax.random.key(0, impl=impl).dtype) == name:
            return impl
    raise ValueError(f"no random keys that this version knows: {name}")


def _to_plain(value: Value) -> Value:
    if is_string(value.dtype):
        return np.frombuffer(json.dumps(value.ravel().tolist()).encode(), np.uint8)
    if is_key(value):
        return jax.random.key_data(value)
    if _is_native(value.dtype):
        return value
    return np.atleast_1d(np.asarray(value)).view(np.uint8)  # float8, int4, of other byte orders


def _is_native(dtype: Any) -> bool:
    return (dtype.kind in _NATIVE and dtype.isbuiltin == 1) or dtype == jnp.bfloat16


def _checksum(shape: tuple[int, ...], dtype: str, stored: np.ndarray) -> str:
    about = json.dumps([shape, dtype, stored.shape, stored.dtype.name])
    hasher = hashlib.sha256(about.encode())
    plain = np.ascontiguousarray(stored).reshape(-1).view(np.uint8)  # without a copy, if it can be
    hasher.update(memoryview(plain))  # pyright: ignore[reportArgumentType] - a buffer
    return hasher.hexdigest()
