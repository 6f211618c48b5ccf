"""`tf.strings`: text, on the host.

Rules this file keeps:
- text is a NumPy array of bytes objects; JAX has none, so that inside a `tf.function` only text
  that is known is worked on, while it is traced;
- regular expressions are Python's, with `[:alpha:]` and its kin.
"""

from __future__ import annotations

import re
import string as _string
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.registry.rows import Refused, Row, operations
from jaxvars.tf.strings import buckets as _strings_buckets
from jaxvars.tf.strings import conversion as numbers
from jaxvars.tf.strings import unicode as _strings_unicode
from jaxvars.tf.strings.conversion import each
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, known, refused

Text: TypeAlias = np.ndarray

_HOST = "text is on the host: inside a `tf.function` it must be known"
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "0-9A-Za-z",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\t\n\v\f\r ",
    "blank": r"\t ",
    "punct": re.escape(_string.punctuation),
    "xdigit": "0-9A-Fa-f",
    "word": "0-9A-Za-z_",
}


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# ---------------------------------------------------------------- joining and cutting
def _join(inputs: list[Text], separator: str) -> Text:
    for x in inputs:
        if not _convert.is_text(x):
            shown = np.asarray(x).tolist()
            raise Refused(TypeError(f"Cannot convert {shown} to EagerTensor of dtype string"))
    shapes = list(dict.fromkeys(x.shape for x in inputs if x.ndim))
    if len(shapes) > 1:
        first, second = shapes[:2]
        raise refused(f"Input shapes do not match: {list(first)} vs. {list(second)}")
    if not inputs:
        return _convert.text_array(np.array("", object))
    return each(lambda *parts: separator.encode().join(parts), *inputs)


def _reduce_join(inputs: Text, axis: Any, keepdims: bool, separator: str) -> Text:
    dims = list(reversed(range(inputs.ndim)))
    if axis is not None:
        dims = _dimensions(ints(axis, "axis"), inputs.ndim)
    kept = [i for i in range(inputs.ndim) if i not in dims]
    moved = inputs.transpose(*kept, *reversed(dims))
    rows = moved.reshape(*(inputs.shape[i] for i in kept), -1)
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


def _split(input: Text, sep: Any, maxsplit: int) -> Text:
    text = _only(input, "tf.strings.split")
    given = None if sep is None else known(_convert.to_array(sep), "sep").item()
    parts = text.split(given or None, maxsplit)
    return _convert.text_array(np.array(parts, object))


def _bytes_split(input: Text) -> Text:
    text = _only(input, "tf.strings.bytes_split")
    return _convert.text_array(np.array([text[i : i + 1] for i in range(len(text))], object))


def _only(text: Text, name: str) -> bytes:
    if text.ndim:
        raise refused(
            f"{name} of {text.ndim} dimensions gives rows of different lengths, and there are no "
            "ragged tensors here. Split one text at a time: [tf.strings.split(x) for x in texts]"
        )
    return text.item()


def _substr(input: Text, pos: Any, length: Any, unit: str) -> Text:
    starts = known(_convert.to_array(pos), "pos")
    sizes = known(_convert.to_array(length), "len")
    if starts.shape != sizes.shape:
        raise refused(f"pos and len should have the same shape, got: {starts.shape}, {sizes.shape}")

    def part(text: bytes, start: int, size: int) -> bytes:
        whole = _decoded(text) if _is_utf8(unit) else text
        if not -len(whole) <= start <= len(whole):
            raise refused(f"pos {start} out of range for string b'{_decoded(text)}' at index 0")
        first = start + len(whole) if start < 0 else start
        cut = whole[first : first + int(size)] if size >= 0 else whole[first:]
        return _encoded(cut) if isinstance(cut, str) else cut

    return each(part, input, starts, sizes)


# ---------------------------------------------------------------- characters
def _is_utf8(unit: str) -> bool:
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise refused(f"Value for attr 'unit' of \"{unit}\" is not in the list of allowed values: "
                      '"BYTE", "UTF8_CHAR"')  # fmt: skip
    return unit == "UTF8_CHAR"


def _length(input: Text, unit: str) -> Any:
    is_utf8 = _is_utf8(unit)
    sizes = [len(_decoded(text) if is_utf8 else text) for text in input.ravel()]
    return _convert.to_array(np.array(sizes, np.int32).reshape(input.shape))


def _lower(input: Text, encoding: str) -> Text:
    if _is_unicode(encoding):
        return each(lambda text: _encoded(_decoded(text).lower()), input)
    return each(bytes.lower, input)


def _upper(input: Text, encoding: str) -> Text:
    if _is_unicode(encoding):
        return each(lambda text: _encoded(_decoded(text).upper()), input)
    return each(bytes.upper, input)


def _is_unicode(encoding: str) -> bool:
    if encoding not in ("", "utf-8"):
        raise refused(f"only utf-8 or '' (no encoding) is supported, received {encoding}")
    return encoding == "utf-8"


def _strip(input: Text) -> Text:
    return each(bytes.strip, input)


# ---------------------------------------------------------------- regular expressions
def _compiled(pattern: Any) -> re.Pattern[str]:
    text = _decoded(known(_convert.to_array(pattern), "pattern").item())
    for name, characters in _CLASSES.items():
        text = text.replace(f"[:{name}:]", characters)
    try:
        return re.compile(text, re.ASCII)
    except re.error as error:
        raise refused(f"Invalid pattern: {text}, error: {error}") from None


def _regex_replace(input: Text, pattern: Any, rewrite: Any, replace_global: bool) -> Text:
    found = _compiled(pattern)
    words = _decoded(known(_convert.to_array(rewrite), "rewrite").item())
    groups = [int(number) for number in re.findall(r"\\(\d)", words.replace(r"\\", ""))]
    if any(number > found.groups for number in groups):
        return input  # TensorFlow leaves the text as it is

    def put(match: re.Match[str]) -> str:
        return re.sub(
            r"\\(\d|\\)", lambda m: "\\" if m[1] == "\\" else match[int(m[1])] or "", words
        )

    count = 0 if replace_global else 1
    return each(lambda text: _encoded(found.sub(put, _decoded(text), count=count)), input)


def _regex_full_match(input: Text, pattern: Any) -> Any:
    found = _compiled(pattern)
    matches = [found.fullmatch(_decoded(text)) is not None for text in input.ravel()]
    return _convert.to_array(np.array(matches, bool).reshape(input.shape))


ROWS = [
    Row(
        "as_string", "input",
        "input, precision=-1, scientific=False, shortest=False, width=-1, fill=''",
        numbers.as_string,
        text=True, doc="Write numbers as text.", eager_only=_HOST, aliases=("as_string",),
        examples=(
            "strings.as_string([1.5, 2.0, 1e10, nan, -0.0])",
            "strings.as_string([1, -2], width=4, fill='0')",
            "strings.as_string([1.5, 1e-7], shortest=True)", "strings.as_string([True, False])",
            "strings.as_string(tf.constant(1 + 2j), precision=2)",
            "strings.as_string([1], precision=2)",
            "strings.as_string([1.5], scientific=True, width=14)",
        ),
    ),
    Row(
        "to_number", "input", "input, out_type='float32'", numbers.to_number, kinds="string",
        text=True,
        op="StringToNumber", doc="Read text as numbers.", eager_only=_HOST,
        examples=(
            "strings.to_number(['1.5', ' 2 ', '1e3', 'nan', '-inf'])",
            "strings.to_number('-7', tf.int32)",
            "strings.to_number(['1.5'], tf.int32)", "strings.to_number('x')",
            "strings.to_number('1_0')",
            "strings.to_number('99999999999', tf.int32)",
        ),
    ),
    Row(
        "format", "", "template, inputs, placeholder='{}', summarize=3", numbers.formatted,
        op="StringFormat",
        doc="Put tensors into a text.", eager_only=_HOST, text=True,
        examples=(
            "strings.format('a {} {}', ([*range(10)], [[1.5, 2.0], [3.0, 4.0]]))",
            "strings.format('a %%', [tf.constant(['x', 'y'])], placeholder='%%')",
            "strings.format('{}', tf.constant([1.0, 0.1, 1e-8, 1e20]))",
            "strings.format('{}', tf.reshape(tf.range(64), [8, 8]))",
        ),
    ),
    Row(
        "join", "inputs*", "inputs, separator=''", _join, op="StringJoin", same=True, text=True,
        doc="Join texts, element by element.", eager_only=_HOST,
        examples=(
            "strings.join(['a', ['b', 'c']], '-')", "strings.join([])",
            "strings.join([['a'], ['b', 'c']])",
        ),
    ),
    Row(
        "reduce_join", "inputs", "inputs, axis=None, keepdims=False, separator=''", _reduce_join,
        kinds="string", text=True, doc="Join texts along dimensions, or all.", eager_only=_HOST,
        examples=(
            "strings.reduce_join([['a', 'b'], ['c', 'd']])",
            "strings.reduce_join([['a', 'b'], ['c', 'd']], axis=[0, 1], separator='-')",
            "strings.reduce_join([['a', 'b'], ['c', 'd']], -1, keepdims=True)",
        ),
    ),
    Row(
        "split", "input", "input, sep=None, maxsplit=-1", _split, kinds="string", text=True,
        doc="Cut a text at a separator, or at spaces.", eager_only=_HOST,
        differs="of one text only: there are no ragged tensors.",
        examples=(
            "strings.split(' a  b ')", "strings.split('a, b,c', sep=',')",
            "strings.split('a b c', maxsplit=1)",
        ),
    ),
    Row(
        "bytes_split", "input", "input", _bytes_split, kinds="string", text=True,
        doc="Cut a text into its bytes.", eager_only=_HOST, differs="of one text only.",
        examples=(
            "strings.bytes_split('ab')", "strings.bytes_split('')", "strings.bytes_split('x')",
        ),
    ),
    Row(
        "substr", "input", "input, pos, len, unit='BYTE'", _substr, kinds="string", text=True,
        doc="Take a part of each text, by position and length.", eager_only=_HOST,
        examples=(
            "strings.substr(['hello', 'wo'], [1, 0], [2, 1])",
            "strings.substr(['hello', 'wo'], -2, 5)",
            "strings.substr('hi', 3, 1)", "strings.substr('h\\u00e9!', 1, 1, unit='UTF8_CHAR')",
            "strings.substr('hi', 2, 1)",
        ),
    ),
    Row(
        "length", "input", "input, unit='BYTE'", _length, kinds="string", text=True,
        op="StringLength",
        doc="Return how many bytes or characters each text has.", eager_only=_HOST,
        examples=(
            "strings.length(['abc', 'h\\u00e9'])", "strings.length('h\\u00e9', unit='UTF8_CHAR')",
            "strings.length([['']])",
        ),
    ),
    Row(
        "lower", "input", "input, encoding=''", _lower, kinds="string", text=True, op="StringLower",
        doc="Make letters small; those of ASCII, unless the encoding is `utf-8`.", eager_only=_HOST,
        examples=(
            "strings.lower(['AB\\u00c9'])", "strings.lower('AB\\u00c9', encoding='utf-8')",
            "strings.lower('A', encoding='ascii')",
        ),
    ),
    Row(
        "upper", "input", "input, encoding=''", _upper, kinds="string", text=True, op="StringUpper",
        doc="Make letters large; those of ASCII, unless the encoding is `utf-8`.", eager_only=_HOST,
        examples=(
            "strings.upper(['ab\\u00e9'])", "strings.upper('ab\\u00e9', encoding='utf-8')",
            "strings.upper('')",
        ),
    ),
    Row(
        "strip", "input", "input", _strip, kinds="string", text=True, op="StringStrip",
        doc="Remove white space at both ends.", eager_only=_HOST,
        examples=(
            "strings.strip([' a\\t\\n', 'b'])", "strings.strip('')", "strings.strip(' a b ')",
        ),
    ),
    Row(
        "regex_replace", "input", "input, pattern, rewrite, replace_global=True", _regex_replace,
        kinds="string", text=True, doc="Replace what matches a regular expression.",
        eager_only=_HOST,
        differs="the expressions are those of Python's `re`.",
        examples=(
            "strings.regex_replace(['aXbX'], 'X(b)', r'[\\1\\0]')",
            "strings.regex_replace('aXbX', 'X', '-', replace_global=False)",
            "strings.regex_replace('aXbX', '(', '-')",
            "strings.regex_replace('a, b!', '[[:punct:]]', '')",
            "strings.regex_replace('aXbX', 'X', r'\\5')",
        ),
    ),
    Row(
        "regex_full_match", "input", "input, pattern", _regex_full_match, kinds="string", text=True,
        doc="Tell whether a regular expression matches the whole of each text.", eager_only=_HOST,
        differs="the expressions are those of Python's `re`.",
        examples=(
            "strings.regex_full_match(['abc', 'ab'], 'a.c')",
            "strings.regex_full_match('a\\u00e9', 'a.')",
            "strings.regex_full_match([['']], 'a?')",
        ),
    ),
]  # fmt: skip

_found = operations(__name__, [*ROWS, *_strings_buckets.ROWS, *_strings_unicode.ROWS])


def __getattr__(name: str) -> Any:
    if name == "unicode_script":
        raise AttributeError(
            "There is no tf.strings.unicode_script: Python knows no scripts. See "
            "unicodedata.name(chr(number)), which begins with that of a letter."
        )
    return _found(name)
