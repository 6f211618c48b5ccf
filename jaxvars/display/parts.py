"""The parts that values consist of, and how they are written: on one line, or below each other.

Rules this file keeps:
- lines are wrapped at 88 columns; strings are whole;
- nothing here runs a JAX operation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

WIDTH = 88


@runtime_checkable
class Shown(Protocol):
    """What the functions here can show."""

    def __rich_repr__(self) -> Iterable[Any]:
        """Yield `value`, `(name, value)` or `(name, value, default)` for all worth seeing."""
        ...


class Field(NamedTuple):
    """One thing worth seeing; an empty name for a positional one."""

    name: str
    value: Any


def fields_of(obj: Shown) -> list[Field]:
    """Return what an object yields, without what has its default value.

    >>> class Point:
    ...     def __rich_repr__(self):
    ...         yield 1.5
    ...         yield "label", "a"
    ...         yield "size", 3, 3
    >>> fields_of(Point())
    [Field(name='', value=1.5), Field(name='label', value='a')]
    """
    fields: list[Field] = []
    for item in obj.__rich_repr__():
        parts = item if isinstance(item, tuple) and 1 <= len(item) <= 3 else (item,)
        name, value, *default = parts if len(parts) > 1 else ("", *parts)
        if not (default and _is_same(value, default[0])):
            fields.append(Field(name or "", value))
    return fields


def _is_same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except (TypeError, ValueError):  # arrays, and objects that compare elementwise
        return False


def name_of(value: Any) -> str | None:
    """Return the name of a class or function; None for another value."""
    is_named = isinstance(value, type) or callable(value)
    return getattr(value, "__name__", None) if is_named else None


# ---------------------------------------------------------------- taking apart
class Group(NamedTuple):
    """Parts in brackets, each with its label: a key or a name, with what follows it.

    A part is a string, another group, or what `write` has a function for.
    """

    left: str
    items: Iterable[tuple[str, Any]]
    right: str


def split(value: Any, key_text: Callable[[Any], str] = repr) -> Group | None:
    """Return what a value consists of; None for one that is written as Python has it.

    >>> group = split({"w": 1})
    >>> group.left, [*group.items], group.right
    ('{', [("'w': ", 1)], '}')
    """
    if isinstance(value, str | bytes | type):
        return None
    name = type(value).__name__
    if isinstance(value, Mapping):
        left, right = ("{", "}") if type(value) is dict else (name + "({", "})")
        return Group(left, ((f"{key_text(key)}: ", part) for key, part in value.items()), right)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return make_call(name, zip(value._fields, value, strict=True))  # pyright: ignore[reportAttributeAccessIssue] - a named tuple
    if isinstance(value, list | tuple | set | frozenset):
        return _split_sequence(value, name)
    return make_call(name, fields_of(value)) if isinstance(value, Shown) else None


def _split_sequence(value: Any, name: str) -> Group:
    if isinstance(value, list):
        left, right = "[]"
    elif isinstance(value, tuple):
        left, right = "(", ",)" if len(value) == 1 else ")"
    elif value:
        left, right, value = "{", "}", sorted(value, key=repr)
    else:
        return Group(f"{name}()", (), "")
    if name not in ("list", "tuple", "set"):
        left, right = f"{name}({left}", f"{right})"
    return Group(left, (("", part) for part in value), right)


def make_call(name: str, items: Iterable[tuple[str, Any]]) -> Group:
    """Return named parts as the arguments of a call."""
    return Group(f"{name}(", ((f"{key}=" if key else "", part) for key, part in items), ")")


# ---------------------------------------------------------------- writing down
def write(node: Any, leaf: Callable[..., str] = str, indent: int = 0, column: int = 0) -> str:
    """Return a node, which begins at a column of an indented line: on one line if it fits.

    `leaf` writes what is neither a string nor a group, at a column; with a width of that much.

    >>> write(Group("[", [("", "1"), ("", Group("{", [("'w': ", "2")], "}"))], "]"))
    "[1, {'w': 2}]"
    """
    if isinstance(node, str):
        return node.replace("\n", "\n" + " " * indent)
    line = _write_line(node, leaf)
    if "\n" not in line and column + len(line) < WIDTH:
        return line
    if not isinstance(node, Group):
        return leaf(node, column)
    inner, end = " " * (indent + 2), node.right.lstrip(",")
    rows = (
        f"{inner}{label}{write(part, leaf, indent + 2, indent + 2 + len(label))},\n"
        for label, part in node.items
    )
    return f"{node.left}\n{''.join(rows)}{' ' * indent}{end}"


def _write_line(node: Any, leaf: Callable[..., str]) -> str:
    if isinstance(node, str):
        return node
    if not isinstance(node, Group):
        return re.sub(r"\n\s*", " ", leaf(node, 0, 10**6))
    items = ", ".join(label + _write_line(part, leaf) for label, part in node.items)
    return f"{node.left}{items}{node.right}"
