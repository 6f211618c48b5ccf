"""Numbers as strings and back, for `tf.strings`, by C's and TensorFlow's rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.registry.rows import HOST, Refused, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import host_dtype
from jaxvars.tf.tensors.ragged_base import Partition
from jaxvars.tf.tensors.ragged_tensor import make
from jaxvars.tf.tensors.static import refused, require_known
from jaxvars.tf.tensors.tensor import Tensor

Text: TypeAlias = np.ndarray

_NUMBER = re.compile(rb"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)\s*", re.I)
_HEXADECIMAL = re.compile(rb"\s*[+-]?0x([\da-f]+\.?[\da-f]*|\.[\da-f]+)(p[+-]?\d+)?\s*", re.I)
_OUT = {"float32", "float64", "int32", "int64", "uint32", "uint64"}
_INTEGER = re.compile(rb"\s*[+-]?\d+\s*")


def each(func: Callable[..., Any], *arrays: Any) -> Text:
    """Return strings made of the elements of arrays, which broadcast."""
    given = np.broadcast_arrays(*arrays)
    made = np.empty(given[0].shape, object)
    for index in np.ndindex(made.shape):
        made[index] = func(*(array[index] for array in given))
    return made


def rows_of_each(strings: Text, cut: Callable[[bytes], list[Any]], dtype: Any = object) -> Any:
    """Return the parts of a string, or of each: a ragged tensor, if there are several."""
    rows = [cut(each) for each in strings.flat]
    made = np.array([part for row in rows for part in row], dtype)
    flat = Tensor(made if dtype is object else _convert.to_array(made))
    if not strings.ndim:
        return flat
    sizes, last = strings.shape, Partition.of_lengths([len(row) for row in rows])
    outer = [Partition.regular(math.prod(sizes[:i]), sizes[i]) for i in range(1, len(sizes))]
    return make(flat, [*outer, last])


@op("strings.as_string", "input", strings=True, eager_only=HOST, aliases=("as_string",))
def as_string(
    input: Text, precision: Any = -1, scientific: Any = False, shortest: Any = False,
    width: Any = -1, fill: Any = "",
) -> Text:  # fmt: skip
    """Write numbers as strings, and strings in a width.

    Example: `tf.strings.as_string([1.5, 2.0, 1e10, nan, -0.0])`.
    """
    array = require_known(input, "the numbers")
    form = _form(array, precision, scientific, shortest, width, fill)

    def write(number: Any) -> str:
        return (form if np.isfinite(number) else form.replace("%0", "%")) % number

    if _convert.is_text(array):
        return each(lambda string: form.encode() % string, array)
    if array.dtype == np.bool_:
        return each(lambda value: b"true" if value else b"false", array)
    if array.dtype.kind == "c":
        return each(lambda z: f"({write(z.real)},{write(z.imag)})".encode(), array)
    return each(lambda value: write(value).encode(), array)


def _form(
    array: np.ndarray, precision: int, scientific: bool, shortest: bool, width: int, fill: str
) -> str:
    is_real = array.dtype.kind not in "iub"
    if not is_real and (precision > -1 or scientific or shortest):
        what = "scientific and shortest format" if scientific or shortest else "precision"
        raise refused(f"{what} not supported for datatype {array.dtype.name}")
    if scientific and shortest:
        raise refused("Cannot select both scientific and shortest notation")
    if len(fill) > 1:
        raise refused(f"Fill string must be one or fewer characters, not {fill!r}")
    if fill not in ("", " ", "0", "-", "+", "#"):
        raise refused(f"Fill argument not supported: '{fill}'")
    kind = ("e" if scientific else "g" if shortest else "f") if is_real else "d"
    kind = "s" if _convert.is_text(array) else kind
    dot = f".{precision}" if precision > (0 if kind == "s" else -1) else ""
    return f"%{fill}{width if width > -1 else ''}{dot}{kind}"


@op(
    "strings.to_number", "input", op="StringToNumber", kinds="string", strings=True, eager_only=HOST
)
def to_number(input: Text, out_type: Any = "float32") -> Text:
    """Read strings as numbers.

    Example: `tf.strings.to_number(['1.5', ' 2 ', '1e3', 'nan', '-inf'])`.
    """
    dtype = host_dtype(out_type)
    if dtype.name not in _OUT:
        raise refused(
            f"Value for attr 'out_type' of {dtype.name} is not in the list of allowed values: "
            "float, double, int32, int64, uint32, uint64"
        )
    numbers = [_number(string, dtype) for string in input.ravel()]
    with np.errstate(over="ignore"):  # what float32 does not reach is infinite
        return _convert.to_array(np.array(numbers, dtype.dtype).reshape(input.shape))


def _number(string: bytes, dtype: Any) -> Any:
    if not dtype.is_integer and _HEXADECIMAL.fullmatch(string):
        try:
            return float.fromhex(string.decode())
        except OverflowError:
            return -math.inf if string.strip().startswith(b"-") else math.inf
    fits = (_INTEGER if dtype.is_integer else _NUMBER).fullmatch(string) is not None
    found = (int(string) if dtype.is_integer else float(string)) if fits else 0
    if not fits or (dtype.is_integer and not dtype.min <= found <= dtype.max):
        shown = string.decode(errors="replace")
        raise refused(f"StringToNumberOp could not correctly convert string: {shown}")
    return found


# ---------------------------------------------------------------- tensors in sentences
@op("strings.format", op="StringFormat", strings=True, eager_only=HOST)
def format_(template: Any, inputs: Any, placeholder: Any = "{}", summarize: Any = 3) -> Text:
    """Put tensors into a string.

    Example: `tf.strings.format('a {} {}', ([*range(10)], [[1.5, 2.0], [3.0, 4.0]]))`.
    """
    given = inputs if isinstance(inputs, list | tuple) else [inputs]
    parts = template.split(placeholder)
    if len(parts) != len(given) + 1:
        raise Refused(
            ValueError(
                f"The template expects {len(parts) - 1} tensors, but the inputs only has "
                f"{len(given)}. Please ensure the number of placeholders in template matches "
                "inputs length."
            )
        )
    known = [require_known(_convert.to_array(x), "a tensor") for x in given]
    shown = [format_tensor(x, summarize, quoted=True) for x in known]
    string = "".join(a + b for a, b in zip(parts, [*shown, ""], strict=True))
    return _convert.string_array(np.array(string, object))


def format_tensor(array: np.ndarray, few: int, *, quoted: bool = False) -> str:
    """Return an array as a string; strings as its elements in quotes, or only where it is in a row.

    >>> format_tensor(np.arange(10), 3)
    '[0 1 2 ... 7 8 9]'
    """
    if not array.ndim:
        return _format_number(array[()], quoted=quoted)
    return _format_rows(array, few, 1)


def _format_rows(array: np.ndarray, few: int, depth: int) -> str:
    if array.ndim == 0:
        return _format_number(array[()], quoted=True)
    cut = few >= 0 and len(array) > 2 * few
    rows = [np.asarray(row, array.dtype) for row in array]
    shown = [_format_rows(row, few, depth + 1) for row in (rows[:few] if cut else rows)]
    if cut:
        shown += ["...", *(_format_rows(row, few, depth + 1) for row in rows[len(rows) - few :])]
    glue = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * depth
    return f"[{glue.join(shown)}]"


_DIGITS = {2: (6, 9), 4: (6, 9), 8: (15, 17)}


def _format_number(value: Any, *, quoted: bool) -> str:
    if isinstance(value, bytes | str):
        string = value.decode(errors="replace") if isinstance(value, bytes) else value
        return f'"{string}"' if quoted else string
    dtype = np.asarray(value).dtype
    if dtype.kind == "b":
        return str(int(value))
    if dtype.kind == "c":
        real, imag = (_format_number(x, quoted=False) for x in (value.real, value.imag))
        return f"({real},{imag})"
    if dtype.kind in "iu":
        return str(int(value))
    short, long = _DIGITS.get(dtype.itemsize, (6, 9))
    string = f"{float(value):.{short}g}"
    exact = np.asarray(float(string), np.float64 if dtype.itemsize == 8 else np.float32)
    same = exact == np.asarray(value, exact.dtype) or np.isnan(float(value))
    return string if same else f"{float(value):.{long}g}"
