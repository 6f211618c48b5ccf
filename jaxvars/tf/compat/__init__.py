"""`tf.compat`: strings and bytes, for code that ran on Python 2, too."""

from __future__ import annotations

from typing import Any

from jaxvars.objects.interpreter import load
from jaxvars.tf.listing import lister, not_there
from jaxvars.tf.tensors.shapes import Dimension


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Return a string as bytes.

    Raises:
        TypeError: when it is neither a string nor bytes.

    >>> as_bytes("a")
    b'a'
    """
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    return _text(bytes_or_text, encoding).encode(encoding)


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Return bytes as a string.

    Raises:
        TypeError: when it is neither a string nor bytes.
    """
    return _text(bytes_or_text, encoding)


def as_str(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Return bytes as a string: `as_text`."""
    return _text(bytes_or_text, encoding)


def dimension_value(dimension: Any) -> int | None:
    """Return a size of a TensorShape as a number; None if it is unknown."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: Any, index: int) -> Dimension:
    """Return one size of a TensorShape."""
    return Dimension(None if shape.rank is None else shape[index])


def _text(value: Any, encoding: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {value!r}")


def __getattr__(name: str) -> Any:
    if name == "v2":
        return load(__name__.rpartition(".")[0])
    if name == "v1":  # what it takes its names from is made of this
        return load(f"{__name__}.v1")
    raise not_there("tf.compat", name, __dir__)


__dir__ = lister(__name__)
