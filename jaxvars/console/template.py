"""Templates as `str.format` has them, filled with values that may still be to come.

    fill(planner, "step {step}: loss {:.3f}", [loss], {"step": step})

Rules this file keeps:
- what a field refers to is found at once, and so is every mistake;
- each value must be used: one that is not is a mistake in the template.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, TypeAlias, final

from jaxvars.display.pretty import Node, Planner

Pieces: TypeAlias = list[str | Node]

_FIELD = re.compile(r"(?P<head>\d+|[^\W\d]\w*)?(?P<rest>[.\[].*)?")
_CONVERSIONS = {"s": str, "r": repr, "a": ascii}


def is_template(text: object) -> bool:
    """Return whether a value is a string with fields like `{}`, `{0}`, `{name}`, `{name.part:.2f}`.

    >>> is_template("loss {:.2f}"), is_template("{'a': 1}"), is_template("{ "), is_template("x")
    (True, False, False, False)
    """
    if not isinstance(text, str):
        return False
    try:
        names = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError:  # a brace without its other one
        return False
    return bool(names) and all(_FIELD.fullmatch(name) for name in names)


def fill(planner: Planner, text: str, values: Sequence[Any], fields: Mapping[str, Any]) -> Pieces:
    """Return the strings and plans that a template consists of.

    Raises:
        ValueError: when a field has no value, a value no field, or a format does not suit.
    """
    return _Filling(planner, text, values, fields).pieces()


@final
class _Filling:
    """One use of a template."""

    def __init__(
        self, planner: Planner, text: str, values: Sequence[Any], fields: Mapping[str, Any]
    ) -> None:
        self._planner = planner
        self._text = text
        self._given: dict[int | str, Any] = {**dict(enumerate(values)), **fields}
        self._used: set[int | str] = set()
        self._next = itertools.count()

    def pieces(self) -> Pieces:
        """Return all pieces, in order."""
        pieces: Pieces = []
        for literal, name, spec, conversion in Formatter().parse(self._text):
            pieces.append(literal)
            if name is not None:
                pieces.append(self._field(name, spec or "", conversion))
        unused = [_argument(key) for key in self._given if key not in self._used]
        if unused:
            raise self._error(f"has no field for {', '.join(unused)}", "Add one, or leave it out")
        return pieces

    def _field(self, name: str, spec: str, conversion: str | None) -> Node:
        value = self._value(name)
        if "{" in spec:
            spec = re.sub(r"\{([^{}]*)\}", lambda found: str(self._value(found[1])), spec)
        if conversion and isinstance(value, str):
            value = self._converted(value, conversion)
        try:
            return self._planner.top(value, spec)
        except (ValueError, TypeError) as error:
            raise self._error(
                f"has the format {spec!r} for the field {{{name}}}: {error}",
                "See Python's format specification",
            ) from None

    def _value(self, name: str) -> Any:
        found = _FIELD.fullmatch(name)
        head, rest = (found["head"] or "", found["rest"] or "") if found else (name, "")
        key = self._key(head)
        if key not in self._given:
            raise self._error(f"has the field {{{name}}}, but there is no {_argument(key)}",
                              "Give it, or double braces that are text: {{ }}")  # fmt: skip
        self._used.add(key)
        try:
            return Formatter().get_field(f"value{rest}", (), {"value": self._given[key]})[0]
        except (AttributeError, LookupError, TypeError) as error:
            raise self._error(
                f"has the field {{{name}}}, which cannot be looked up "
                f"({type(error).__name__}: {error})",
                f"Pass the value itself, {_argument(key)}{rest}",
            ) from None

    def _key(self, head: str) -> int | str:
        if head:
            return int(head) if head.isdigit() else head
        return next(self._next)

    def _converted(self, value: str, conversion: str) -> str:
        if conversion not in _CONVERSIONS:
            raise self._error(f"has the conversion !{conversion}", "There are !s, !r and !a")
        return _CONVERSIONS[conversion](value)

    def _error(self, what: str, cure: str) -> ValueError:
        return ValueError(f"jv.print: the template {self._text!r} {what}. {cure}.")


def _argument(key: int | str) -> str:
    return f"value number {key}" if isinstance(key, int) else f"{key}="
