"""`tf.strings`: strings, on the host.

Rules this file keeps:
- strings are a NumPy array of bytes objects; JAX has none, so that a `tf.function` calls these
  operations back (`tensors/handles.py`), unless the strings are known while it is traced;
- regular expressions are Python's, with `[:alpha:]` and the like.
"""

from __future__ import annotations

import math
import re
import string as _string
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.listing import namespace
from jaxvars.tf.registry.rows import HOST, Refused, op, operations
from jaxvars.tf.strings import buckets, conversion, unicode
from jaxvars.tf.strings.conversion import each, rows_of_each
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, refused, require_known

Text: TypeAlias = np.ndarray

_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "0-9A-Za-z", "upper": "A-Z", "lower": "a-z",
    "space": r"\t\n\v\f\r ", "blank": r"\t ", "punct": re.escape(_string.punctuation),
    "xdigit": "0-9A-Fa-f", "word": "0-9A-Za-z_",
}  # fmt: skip


def _decode(string: bytes) -> str:
    return string.decode("utf-8", "surrogateescape")


def _encode(string: str) -> bytes:
    return string.encode("utf-8", "surrogateescape")


# ---------------------------------------------------------------- joining and cutting
@op("strings.join", "inputs*", op="StringJoin", same=True, strings=True, eager_only=HOST)
def join(inputs: list[Text], separator: str = "") -> Text:
    """Join strings, element by element.

    Example: `tf.strings.join(['a', ['b', 'c']], '-')`.
    """
    for x in inputs:
        if not _convert.is_text(x):
            shown = np.asarray(x).tolist()
            raise Refused(TypeError(f"Cannot convert {shown} to EagerTensor of dtype string"))
    shapes = list(dict.fromkeys(x.shape for x in inputs if x.ndim))
    if len(shapes) > 1:
        first, second = shapes[:2]
        raise refused(f"Input shapes do not match: {list(first)} vs. {list(second)}")
    if not inputs:
        return _convert.string_array(np.array("", object))
    return each(lambda *parts: separator.encode().join(parts), *inputs)


@op("strings.reduce_join", "inputs", kinds="string", strings=True, eager_only=HOST)
def reduce_join(
    inputs: Text, axis: Any = None, keepdims: bool = False, separator: str = ""
) -> Text:
    """Join strings along dimensions, or all.

    Example: `tf.strings.reduce_join([['a', 'b'], ['c', 'd']])`.
    """
    dims = list(reversed(range(inputs.ndim)))
    if axis is not None:
        dims = _dimensions(ints(axis, "axis"), inputs.ndim)
    kept = [i for i in range(inputs.ndim) if i not in dims]
    moved = inputs.transpose(*kept, *reversed(dims))
    shape = [inputs.shape[i] for i in kept]
    rows = moved.reshape(*shape, math.prod(inputs.shape[i] for i in dims))
    made = np.empty(rows.shape[:-1], object)
    for index in np.ndindex(made.shape):
        made[index] = separator.encode().join(rows[index])
    shape = [1 if i in dims else n for i, n in enumerate(inputs.shape)]
    return made.reshape(shape) if keepdims else made


def _dimensions(axes: tuple[int, ...], rank: int) -> list[int]:
    """Return the dimensions that are joined, counted from the front."""
    found: list[int] = []
    for axis in axes:
        if not -rank <= axis < rank:
            raise Refused(
                OutOfRangeError(
                    None, None,
                    f"Invalid reduction dimension {axis} for input with {rank} dimension(s)",
                )
            )  # fmt: skip
        if axis % rank in found:
            raise refused(f"Duplicate reduction dimension {axis}")
        found.append(axis % rank)
    return found


@op("strings.split", "input", kinds="string", strings=True, eager_only=HOST, example="' a  b '")
def split(input: Text, sep: Any = None, maxsplit: int = -1) -> Any:
    """Split strings at a separator, or at spaces: several ones into the rows of a ragged tensor."""
    given = None if sep is None else require_known(_convert.to_array(sep), "sep").item()
    return rows_of_each(input, lambda string: string.split(given or None, maxsplit))


@op("strings.bytes_split", "input", kinds="string", strings=True, eager_only=HOST, example="'ab'")
def bytes_split(input: Text) -> Any:
    """Split strings into their bytes: several ones into the rows of a ragged tensor."""
    return rows_of_each(input, lambda string: [string[i : i + 1] for i in range(len(string))])


@op("strings.substr", "input", kinds="string", strings=True, eager_only=HOST)
def substr(input: Text, pos: Any, len: Any, unit: str = "BYTE") -> Text:
    """Take a part of each string, by position and length.

    Example: `tf.strings.substr(['hello', 'wo'], [1, 0], [2, 1])`.
    """
    return _substr(input, pos, len, unit)


def _substr(input: Text, pos: Any, length: Any, unit: str) -> Text:
    starts = require_known(_convert.to_array(pos), "pos")
    sizes = require_known(_convert.to_array(length), "len")
    if starts.shape != sizes.shape:
        raise refused(f"pos and len should have the same shape, got: {starts.shape}, {sizes.shape}")

    def part(string: bytes, start: int, size: int) -> bytes:
        whole = _decode(string) if _is_utf8(unit) else string
        if not -len(whole) <= start <= len(whole):
            raise refused(f"pos {start} out of range for string b'{_decode(string)}' at index 0")
        first = start + len(whole) if start < 0 else start
        cut = whole[first : first + int(size)] if size >= 0 else whole[first:]
        return _encode(cut) if isinstance(cut, str) else cut

    return each(part, input, starts, sizes)


# ---------------------------------------------------------------- characters
def _is_utf8(unit: str) -> bool:
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise refused(f"Value for attr 'unit' of \"{unit}\" is not in the list of allowed values: "
                      '"BYTE", "UTF8_CHAR"')  # fmt: skip
    return unit == "UTF8_CHAR"


@op("strings.length", "input", op="StringLength", kinds="string", strings=True, eager_only=HOST)
def length(input: Text, unit: str = "BYTE") -> Any:
    r"""Return how many bytes or characters each string has.

    Example: `tf.strings.length(['abc', 'h\u00e9'])`.
    """
    is_utf8 = _is_utf8(unit)
    sizes = [len(_decode(string) if is_utf8 else string) for string in input.ravel()]
    return _convert.to_array(np.array(sizes, np.int32).reshape(input.shape))


@op("strings.lower", "input", op="StringLower", kinds="string", strings=True, eager_only=HOST)
def lower(input: Text, encoding: str = "") -> Text:
    r"""Make letters small; those of ASCII, unless the encoding is `utf-8`.

    Example: `tf.strings.lower(['AB\u00c9'])`.
    """
    return _recase(input, encoding, bytes.lower, str.lower)


@op("strings.upper", "input", op="StringUpper", kinds="string", strings=True, eager_only=HOST)
def upper(input: Text, encoding: str = "") -> Text:
    r"""Make letters large; those of ASCII, unless the encoding is `utf-8`.

    Example: `tf.strings.upper(['ab\u00e9'])`.
    """
    return _recase(input, encoding, bytes.upper, str.upper)


def _recase(
    input: Text, encoding: str, narrow: Callable[[bytes], bytes], wide: Callable[[str], str]
) -> Text:
    if encoding not in ("", "utf-8"):
        raise refused(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
    return each(
        lambda string: _encode(wide(_decode(string))) if encoding else narrow(string), input
    )


@op("strings.strip", "input", op="StringStrip", kinds="string", strings=True, eager_only=HOST)
def strip(input: Text) -> Text:
    r"""Remove white space at both ends.

    Example: `tf.strings.strip([' a\t\n', 'b'])`.
    """
    return each(bytes.strip, input)


# ---------------------------------------------------------------- regular expressions
def _compile_pattern(pattern: Any) -> re.Pattern[str]:
    string = _decode(require_known(_convert.to_array(pattern), "pattern").item())
    for name, characters in _CLASSES.items():
        string = string.replace(f"[:{name}:]", characters)
    try:
        return re.compile(string, re.ASCII)
    except re.error as error:
        raise refused(f"Invalid pattern: {string}, error: {error}") from None


@op(
    "strings.regex_replace", "input", op="StaticRegexReplace", kinds="string", strings=True,
    eager_only=HOST,
)  # fmt: skip
def regex_replace(input: Text, pattern: Any, rewrite: Any, replace_global: bool = True) -> Text:
    r"""Replace what matches a regular expression.

    Example: `tf.strings.regex_replace(['aXbX'], 'X(b)', r'[\1\0]')`.

    Differs from TensorFlow: the expressions are those of Python's `re`.
    """
    found = _compile_pattern(pattern)
    words = _decode(require_known(_convert.to_array(rewrite), "rewrite").item())
    groups = [int(number) for number in re.findall(r"\\(\d)", words.replace(r"\\", ""))]
    if any(number > found.groups for number in groups):
        return input  # TensorFlow leaves the string as it is

    def put(match: re.Match[str]) -> str:
        return re.sub(
            r"\\(\d|\\)", lambda m: "\\" if m[1] == "\\" else match[int(m[1])] or "", words
        )

    count = 0 if replace_global else 1
    return each(lambda string: _encode(found.sub(put, _decode(string), count=count)), input)


@op(
    "strings.regex_full_match", "input", op="StaticRegexFullMatch", kinds="string", strings=True,
    eager_only=HOST,
)  # fmt: skip
def regex_full_match(input: Text, pattern: Any) -> Any:
    """Return whether a regular expression matches the whole of each string.

    Example: `tf.strings.regex_full_match(['abc', 'ab'], 'a.c')`.

    Differs from TensorFlow: the expressions are those of Python's `re`.
    """
    found = _compile_pattern(pattern)
    matches = [found.fullmatch(_decode(string)) is not None for string in input.ravel()]
    return _convert.to_array(np.array(matches, bool).reshape(input.shape))


_PARTS = (buckets, conversion, unicode)
"""Imported: their operations are in the table."""

__getattr__, __dir__ = namespace(__name__, find=operations(__name__))
