"""What Python's numbers, strings, and lists of them become, and NumPy's arrays: TensorFlow's rules.

Rules this file keeps:
- floats are float32, ints int32 (int64 if they are large), complex numbers complex128, str and
  bytes strings; of NumPy's numbers, float16 and float64 stay what they are;
- the first number of a list decides which others may be with it: floats join ints and make floats,
  and what is real joins complex numbers;
- of a type that is requested, each number must be one without being changed; NumPy's arrays are
  changed as NumPy does it, but NaN is not an integer.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tensors.dtypes import check_fits, narrowed
from jaxvars.tf.messages import C_NAMES
from jaxvars.tf.tensors.dtypes import DType, any_dtype, float32, int32, int64, string
from jaxvars.tf.tensors.shapes import TensorShape

Kind: TypeAlias = type  # bool, int, float, complex, str, or NumPy's bool, float16 and float64

_INT32, _INT64 = np.iinfo(np.int32), np.iinfo(np.int64)
_KINDS: dict[type, Kind] = {
    bool: bool, int: int, float: float, complex: complex, str: str, bytes: str,
    np.bool_: np.bool_, np.float16: np.float16, np.float32: float, np.float64: np.float64,
}  # fmt: skip
_FLOATS: frozenset[Kind] = frozenset({float, np.float16, np.float64})
_REAL = _FLOATS | {int, bool}
_JOINS: dict[Kind, frozenset[Kind]] = {
    bool: frozenset({np.bool_}), np.bool_: frozenset({bool}), int: _REAL,
    **dict.fromkeys(_FLOATS, _REAL), complex: _REAL | {complex}, str: frozenset(),
}  # fmt: skip
_DEFAULTS: dict[Kind, str] = {
    bool: "bool", np.bool_: "bool", float: "float32", np.float16: "float16",
    np.float64: "float64", complex: "complex128", str: "string",
}  # fmt: skip
_MARK = 0x10FF00
"""A code point that has no meaning: with a byte added it stands for one that is not Unicode."""
_MARKS = re.compile("[\U0010ff80-\U0010ffff]")
_NOT_PLAIN = re.compile("[\udc80-\udcff\U0010ff80-\U0010ffff]")
_SEQUENCES = (list, tuple, range, TensorShape, deque, bytearray, memoryview)


def of_python(value: Any, dtype: DType | None) -> np.ndarray:
    """Return the array of a number, string (as bytes) or nested list of them."""
    if dtype is None and (made := _of_arrays(value)) is not None:
        return made
    if isinstance(value, TensorShape) and dtype not in (None, int32, int64):
        raise TypeError(f"Cannot convert a TensorShape to dtype {dtype.name}: {value}")
    leaves = leaves_of(value)
    if not leaves and isinstance(value, _SEQUENCES):
        found = dtype or (int32 if isinstance(value, TensorShape | range) else float32)
        return np.array(value, object).astype(object if found == string else found.dtype)
    kinds = {kind_of_leaf(leaf) for leaf in leaves}
    if _is_other_sequence(value) or (None in kinds and any(map(_is_other_sequence, leaves))):
        return of_python(_to_lists(value), dtype)
    if dtype is not None and all(kind is not None and fits(kind, dtype) for kind in kinds):
        found = dtype
    else:
        found = _default_dtype(leaves, _join_kinds(leaves, kinds))
        if dtype is not None:
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {c_name(dtype)}")
    if found == string:
        return string_array(_to_rectangle(value, np.dtype(object)))
    return _to_numbers(value, found, dtype is not None)


def _is_other_sequence(value: Any) -> bool:
    kind, others = type(value), (*_SEQUENCES, Mapping, np.ndarray, np.generic)
    is_sequence = hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    return is_sequence and kind_of_leaf(value) is None and not isinstance(value, others)


def _to_lists(value: Any) -> Any:
    """Return a value with lists in place of sequences of other classes, at any depth."""
    is_list = isinstance(value, _SEQUENCES) or _is_other_sequence(value)
    return [_to_lists(part) for part in value] if is_list else value


def _of_arrays(value: Any) -> np.ndarray | None:
    """Return the array of a list of NumPy arrays of one shape and type; None if it is none."""
    if type(value) not in (list, tuple) or not value or type(first := value[0]) is not np.ndarray:
        return None
    kind = first.shape, first.dtype
    is_alike = all(type(x) is np.ndarray and (x.shape, x.dtype) == kind for x in value)
    if not first.size or not is_alike:
        return None
    if first.dtype.kind == "b" or first.dtype.name in {"float16", "float32", "float64"}:
        return np.array(value)
    if first.dtype.kind not in "iu" or (made := np.array(value)).max() > _INT64.max:
        return None
    is_small = _INT32.min <= made.min() and made.max() <= _INT32.max
    return made.astype(np.int32 if is_small else np.int64)


def of_numpy(array: np.ndarray, dtype: DType | None) -> np.ndarray:
    """Return a NumPy array as one of a type that tensors have; strings are an array of bytes."""
    if dtype is not None and dtype != string and array.dtype.kind in "SUTOMm":
        return array.astype(dtype.dtype)  # numbers in strings, times, Python's numbers
    if array.dtype.kind in "SUTO":
        return string_array(_check_strings(array))
    found = _to_same_type(array) if dtype is None else dtype
    if found == string:
        raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype string")
    if found.is_integer and array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise TypeError(
            f"Cannot convert {array!r} to EagerTensor of dtype {c_name(found)}: NaN and Inf cannot "
            "be represented as an integer."
        )
    whole = fitting(array) if found.is_integer else array
    return whole if found.dtype == whole.dtype else whole.astype(found.dtype)


def fitting(array: np.ndarray) -> np.ndarray:
    """Return a NumPy array in the type that JAX gives it, of 32 bits while 64-bit ones are off.

    Raises:
        DtypeError: when a number of it is outside of that type.
    """
    if array.dtype.itemsize < 8 or array.dtype == object:
        return array
    kind = narrowed(array.dtype)
    check_fits(array, kind, "a value of a tensor")
    return array.astype(kind, copy=False)


def _to_same_type(array: np.ndarray) -> DType:
    try:
        return any_dtype(array.dtype)
    except TypeError:
        raise ValueError(
            f"Failed to convert a NumPy array to a Tensor (Unsupported numpy type: {array.dtype})."
        ) from None


def is_array_like(value: Any) -> bool:
    """Return whether something, like a table of pandas or an image, gives NumPy an array."""
    is_object = not isinstance(value, type)
    return is_object and (hasattr(value, "__array__") or hasattr(value, "__array_interface__"))


def unsupported_error(value: Any) -> ValueError:
    """Return the error that says that something is not a tensor."""
    return ValueError(
        f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a "
        "Tensor."
    )


def c_name(dtype: DType) -> str:
    """Return what messages call a type."""
    return C_NAMES.get(dtype.name, dtype.name)


def string_array(array: np.ndarray) -> np.ndarray:
    """Return strings as an array of bytes objects."""
    made = np.empty(array.shape, dtype=object)
    for index, part in np.ndenumerate(array):
        made[index] = bytes(part) if isinstance(part, bytes) else str(part).encode()
    return made


def to_text(data: bytes) -> str:
    r"""Return bytes as a string that has all of them, where they are not UTF-8, too.

    >>> to_text(b"abc"), to_bytes(to_text(b"a\xff"))
    ('abc', b'a\xff')
    """
    return _NOT_PLAIN.sub(_mark, data.decode("utf-8", "surrogateescape"))


def to_bytes(string: str) -> bytes:
    """Return the bytes that `to_text` was given."""
    string = _MARKS.sub(lambda found: chr(ord(found[0]) - _MARK + 0xDC00), string)
    return string.encode("utf-8", "surrogateescape")


def _mark(found: re.Match[str]) -> str:
    return "".join(chr(_MARK + x) for x in found[0].encode("utf-8", "surrogateescape"))


# ---------------------------------------------------------------- kinds of numbers
def leaves_of(value: Any) -> list[Any]:
    """Return the numbers and strings in nested lists."""
    if isinstance(value, _SEQUENCES):
        if type(value) is list and value and not isinstance(value[0], (*_SEQUENCES, np.ndarray)):
            is_deep = any(isinstance(part, (*_SEQUENCES, np.ndarray)) for part in value)
            return [leaf for part in value for leaf in leaves_of(part)] if is_deep else value
        if isinstance(value, TensorShape) and not value.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
        return [leaf for part in value for leaf in leaves_of(part)]
    if isinstance(value, np.ndarray):
        return list(value.flat)
    return leaves_of(_to_lists(value)) if _is_other_sequence(value) else [value]


def kind_of_leaf(leaf: Any) -> Kind | None:
    """Return what a number or string is read as; None if it is neither."""
    found = _KINDS.get(type(leaf))
    if found is None and isinstance(leaf, np.generic):
        leaf = leaf.item()
    if found is None:
        found = next((kind for base, kind in _KINDS.items() if isinstance(leaf, base)), None)
    return found


def kind_of(value: Any) -> Kind | None:
    """Return what all numbers in nested lists are read as; None if there are none."""
    leaves = leaves_of(value)
    return _join_kinds(leaves, {kind_of_leaf(leaf) for leaf in leaves}) if leaves else None


def _join_kinds(leaves: list[Any], kinds: set[Kind | None]) -> Kind:
    first = kind_of_leaf(leaves[0])
    if first is None:
        raise unsupported_error(leaves[0])
    if not kinds <= _JOINS[first] | {first}:
        raise ValueError("Can't convert Python sequence with mixed types to Tensor.")
    return float if first is int and not kinds.isdisjoint(_FLOATS) else first


def fits(kind: Kind, dtype: DType) -> bool:
    """Return whether Python values of a kind become tensors of a type."""
    if kind is bool:
        return dtype.is_bool or dtype.is_numeric
    if kind is int:
        return dtype.is_numeric
    if kind in _FLOATS:
        return dtype.is_floating or dtype.is_complex
    if kind is np.bool_:
        return dtype.is_bool
    return dtype.is_complex if kind is complex else dtype == string


def _default_dtype(leaves: list[Any], kind: Kind) -> DType:
    if kind is not int:
        return any_dtype(_DEFAULTS[kind])
    is_small = _INT32.min <= min(leaves) and max(leaves) <= _INT32.max
    return int32 if is_small else int64


# ---------------------------------------------------------------- arrays
def _to_numbers(value: Any, dtype: DType, is_asked_for: bool) -> np.ndarray:
    if dtype.is_integer:
        return _to_integers(value, dtype)
    with np.errstate(over="ignore"):
        made = _to_rectangle(value, dtype.dtype)
    if dtype == float32 and not is_asked_for:
        too_large = np.isinf(made)
        if too_large.any() and np.isfinite(np.array(value, np.float64)[too_large]).any():
            raise ValueError(
                "Can't convert Python sequence with a value out of range for a double-precision "
                "float."
            )
    return made


def _to_integers(value: Any, dtype: DType) -> np.ndarray:
    wide = _to_rectangle(value, np.dtype(np.uint64 if dtype.name == "uint64" else np.int64))
    made = wide.astype(dtype.dtype)
    if dtype.size >= int32.size and not np.array_equal(made, wide):
        fitting(wide)  # which says it if 64-bit numbers are off
        if isinstance(value, TensorShape):
            raise ValueError(
                f"Cannot convert TensorShape {value} to dtype {dtype.name}; a dimension is too "
                "large. Consider using dtype int64."
            )
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}")
    return made


def _to_rectangle(value: Any, dtype: np.dtype) -> np.ndarray:
    try:
        return np.array(value, dtype=dtype)
    except OverflowError:
        raise ValueError(
            "Can't convert Python sequence with out-of-range integer to Tensor."
        ) from None
    except (ValueError, TypeError):
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None


def _check_strings(array: np.ndarray) -> np.ndarray:
    other = next((x for x in array.flat if not isinstance(x, str | bytes)), b"")
    if array.dtype.kind == "O" and not isinstance(other, bytes):
        raise ValueError(
            "Failed to convert a NumPy array to a Tensor (Unsupported object type "
            f"{type(other).__name__})."
        )
    return array
