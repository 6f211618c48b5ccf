"""Unicode, for `tf.strings`: characters as code points, and encodings."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.registry.rows import HOST, Refused, op
from jaxvars.tf.strings.conversion import rows_of_each
from jaxvars.tf.tensors.static import refused, require_known

Text: TypeAlias = np.ndarray

_OUTPUTS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}


def _codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise refused(f"Could not create converter for input encoding: {name}") from None


def _output(name: str) -> str:
    if name not in _OUTPUTS:
        allowed = ", ".join(f'"{known_one}"' for known_one in _OUTPUTS)
        raise refused(
            f"Value for attr 'output_encoding' of \"{name}\" is not in the list of allowed values: "
            f"{allowed}"
        )
    return _OUTPUTS[name]


def _characters(data: bytes, codec: str) -> Iterator[tuple[int, int | None]]:
    """Yield the place and number of each character; None for bytes that are none."""
    at = 0
    while at < len(data):
        rest, error = data[at:], None
        try:
            string = rest.decode(codec)
        except UnicodeDecodeError as found:
            string, error = rest[: found.start].decode(codec), found
        for character in string:
            yield at, ord(character)
            at += len(character.encode(codec))
        if error is None:
            return
        yield at, None
        at += max(error.end - error.start, 1)


def _clean_points(
    data: bytes, codec: str, errors: str, replacement: int, controls: bool
) -> list[tuple[int, int]]:
    """Return the places and code points of characters, with others in place of what is wrong."""
    if errors not in ("strict", "replace", "ignore"):
        raise refused(
            f"Value for attr 'errors' of \"{errors}\" is not in the list of allowed values: "
            '"strict", "replace", "ignore"'
        )
    made: list[tuple[int, int]] = []
    for at, number in _characters(data, codec):
        if number is None and errors == "strict":
            raise refused("Invalid formatting on input string")
        if number is None and errors == "ignore":
            continue
        wrong = number is None or (controls and number <= 0x1F)
        made.append((at, replacement if wrong or number is None else number))
    return made


# ---------------------------------------------------------------- code points
@op("strings.unicode_decode_with_offsets", "input", kinds="string", strings=True, eager_only=HOST)
def unicode_decode_with_offsets(
    input: Text, input_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    r"""Return the code points of the characters of a string, and where they begin.

    Example: `tf.strings.unicode_decode_with_offsets('h\u00e9!', 'UTF-8')`.
    """
    found = _find_points(
        input, input_encoding, errors, replacement_char, replace_control_characters
    )
    return found(np.int32, lambda at, number: number), found(np.int64, lambda at, number: at)


def _find_points(
    input: Text, encoding: str, errors: str, replacement: int, controls: bool
) -> Callable[[Any, Callable[[int, int], Any]], Any]:
    """Return what makes rows of the place and number of each character of strings."""
    codec = _codec(encoding)
    found = {
        string: _clean_points(string, codec, errors, replacement, controls) for string in input.flat
    }
    return lambda dtype, change: rows_of_each(
        input, lambda string: [change(*pair) for pair in found[string]], dtype
    )


@op("strings.unicode_split_with_offsets", "input", kinds="string", strings=True, eager_only=HOST)
def unicode_split_with_offsets(
    input: Text, input_encoding: str, errors: str = "replace", replacement_char: int = 65533
) -> tuple[Text, Any]:
    r"""Split a string into its characters; return where they begin, too.

    Example: `tf.strings.unicode_split_with_offsets('h\u00e9!', 'UTF-8')`.
    """
    codec = _codec(input_encoding)
    found = _find_points(input, input_encoding, errors, replacement_char, False)
    characters = found(object, lambda at, number: chr(number).encode(codec))
    return characters, found(np.int64, lambda at, number: at)


@op("strings.unicode_encode", "input", kinds="int", strings=True, eager_only=HOST)
def unicode_encode(
    input: Any, output_encoding: str, errors: str = "replace", replacement_char: int = 65533
) -> Text:
    """Write the characters of code points as strings.

    Example: `tf.strings.unicode_encode([104, 233], 'UTF-8')`.
    """
    output, numbers = _output(output_encoding), require_known(input, "input")
    if not numbers.ndim:
        raise Refused(ValueError("input_tensor's rank must be at least 1."))
    made = np.empty(numbers.shape[:-1], object)
    for index in np.ndindex(made.shape):
        made[index] = "".join(_letters(numbers[index], errors, replacement_char)).encode(output)
    return made


def _letters(numbers: np.ndarray, errors: str, replacement: int) -> Iterator[str]:
    for number in numbers.tolist():
        if 0 <= number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF:
            yield chr(number)
        elif errors == "strict":
            raise refused("Code point is out of range for Unicode, or is a surrogate.")
        elif errors == "replace":
            yield chr(replacement)


@op("strings.unicode_decode", "input", kinds="string", strings=True, eager_only=HOST)
def unicode_decode(
    input: Text, input_encoding: Any, errors: Any = "replace", replacement_char: Any = 65533,
    replace_control_characters: Any = False,
) -> Any:  # fmt: skip
    r"""Return the code points of the characters of a string.

    Example: `tf.strings.unicode_decode('h\u00e9', 'UTF-8')`.
    """
    return unicode_decode_with_offsets.__wrapped__(
        input, input_encoding, errors, replacement_char, replace_control_characters
    )[0]


@op("strings.unicode_split", "input", kinds="string", strings=True, eager_only=HOST)
def unicode_split(
    input: Text, input_encoding: Any, errors: Any = "replace", replacement_char: Any = 65533
) -> Text:
    r"""Split a string into its characters.

    Example: `tf.strings.unicode_split('h\u00e9', 'UTF-8')`.
    """
    return unicode_split_with_offsets.__wrapped__(input, input_encoding, errors, replacement_char)[
        0
    ]
