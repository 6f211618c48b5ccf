"""Any value as text over several lines: what `jv.print` prints.

Compiled code knows its arrays only when it runs: `Planner` takes a value apart into a tree of
strings, groups and `Slot`s, and `Layout` writes that tree down once the arrays are there.

Rules this file keeps:
- arrays are short in the middle, strings are whole, lines are wrapped at 88 columns;
- the text does not depend on NumPy's print options, so it is the same in every thread.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.repr import Shown, fields_of, is_array
from jaxvars.display.text import numpy_text

WIDTH = 88
_NARROW = 24  # an array gets at least this many columns, wherever it begins


class Text(NamedTuple):
    """A string that is known."""

    text: str


class Slot(NamedTuple):
    """An array that is still to come: its place, what stands before it, and how it is formatted."""

    place: int
    before: str
    spec: str
    is_quoted: bool


class Group(NamedTuple):
    """Values in brackets, each with its label (a key or a name, with what follows it)."""

    left: str
    items: tuple[tuple[str, Node], ...]
    right: str
    is_single_tuple: bool = False


Node: TypeAlias = Text | Slot | Group


# ---------------------------------------------------------------- taking apart
@final
class Planner:
    """Takes values apart; `arrays` are those met so far, in the order of their slots.

    `plain` returns the array that an object stands for, other values as they are.

    >>> planner = Planner(lambda value: value)
    >>> planner.plan({"w": np.zeros(2), "act": max})
    Group(left='{', items=(("'w': ", Slot(...)), ("'act': ", Text(text='max'))), right='}', ...)
    """

    def __init__(self, plain: Callable[[Any], Any]) -> None:
        self._plain = plain
        self._open: list[int] = []
        self.arrays: list[Any] = []

    def top(self, value: Any, spec: str = "") -> Node:
        """Plan a value that stands for itself: strings without quotes, others as Python does.

        Raises ValueError or TypeError when the format specification does not suit the value.
        """
        value = self._plain(value)
        if is_array(value) or _split(value) is not None:
            return self.plan(value, spec, is_quoted=False)
        return Text(format(value, spec))

    def plan(self, value: Any, spec: str = "", *, is_quoted: bool = True) -> Node:
        """Plan a value that is part of another."""
        value = self._plain(value)
        if is_array(value):
            return self._make_slot(value, spec, is_quoted)
        if spec and isinstance(value, int | float | complex) and not isinstance(value, bool):
            return Text(format(value, spec))
        parts = _split(value)
        return Text(_format_value(value)) if parts is None else self._make_group(value, parts, spec)

    def _make_slot(self, value: Any, spec: str, is_quoted: bool) -> Slot:
        before = ""
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            before, value = str(value.dtype), jax.random.key_data(value)
        if spec:
            format_number(np.zeros((), value.dtype)[()], spec)  # raises now if it does not suit
        self.arrays.append(value)
        return Slot(len(self.arrays) - 1, before, spec, is_quoted)

    def _make_group(self, value: Any, parts: _Parts, spec: str) -> Node:
        if id(value) in self._open:  # objects may form a circle
            return Text(f"{parts.left}...{parts.right}")
        self._open.append(id(value))
        try:
            items = tuple((label, self.plan(part, spec)) for label, part in parts.items)
        finally:
            self._open.pop()
        return Group(parts.left, items, parts.right, type(value) is tuple and len(items) == 1)


class _Parts(NamedTuple):
    left: str
    items: Iterable[tuple[str, Any]]
    right: str


def _format_value(value: Any) -> str:
    is_named = isinstance(value, type) or (callable(value) and hasattr(value, "__name__"))
    return value.__name__ if is_named else repr(value)


def _split(value: Any) -> _Parts | None:
    """Return what a value is made of; None for one that is written as Python has it."""
    if isinstance(value, str | bytes | type):
        return None
    name = type(value).__name__
    if isinstance(value, Mapping):
        left, right = ("{", "}") if type(value) is dict else (name + "({", "})")
        return _Parts(left, ((f"{key!r}: ", part) for key, part in value.items()), right)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _make_call(name, zip(value._fields, value, strict=True))  # pyright: ignore[reportAttributeAccessIssue] - a named tuple
    if isinstance(value, list | tuple | set | frozenset):
        return _split_sequence(value, name)
    return _split_object(value, name)


def _split_sequence(value: Any, name: str) -> _Parts | None:
    if isinstance(value, set | frozenset):
        left, right, parts = "{", "}", sorted(value, key=repr)
    else:
        (left, right), parts = "[]" if isinstance(value, list) else "()", list(value)
    if not parts and left == "{":
        return None  # set()
    if type(value) not in (list, tuple, set):
        left, right = f"{name}({left}", f"{right})"
    return _Parts(left, (("", part) for part in parts), right)


def _split_object(value: Any, name: str) -> _Parts | None:
    if isinstance(value, Shown):
        return _make_call(name, fields_of(value))
    if dataclasses.is_dataclass(value):
        fields = (f.name for f in dataclasses.fields(value) if f.repr)
        return _make_call(name, ((field, getattr(value, field)) for field in fields))
    if value is None or jax.tree_util.all_leaves([value]):
        return None
    return _make_call(name, _iterate_children(value))


def _make_call(name: str, items: Iterable[tuple[str, Any]]) -> _Parts:
    return _Parts(f"{name}(", ((f"{key}=" if key else "", part) for key, part in items), ")")


def _iterate_children(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a node that is registered with JAX, by the names that it gives them."""
    found, _ = jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda x: x is not node)
    for path, part in found:
        yield (jax.tree_util.keystr(path, simple=True, separator="/") if path else ""), part


# ---------------------------------------------------------------- writing down
@final
class Layout:
    """Writes plans down, with the arrays, as NumPy has them, by slot.

    `summarize` elements of each dimension are written at its beginning and end; all for -1.

    >>> planner = Planner(lambda value: value)
    >>> plan = planner.plan({"step": 3, "w": np.arange(100)})
    >>> Layout(planner.arrays, 3).join([plan])
    "{'step': 3, 'w': [ 0  1  2 ... 97 98 99]}"
    """

    def __init__(self, arrays: Sequence[np.ndarray[Any, Any]], summarize: int) -> None:
        self._arrays = arrays
        self._summarize = summarize

    def join(self, pieces: Iterable[str | Node]) -> str:
        """Return strings and plans written one after the other."""
        text = ""
        for piece in pieces:
            line = text[text.rfind("\n") + 1 :]
            if isinstance(piece, Slot):  # an array by itself has its rows below each other
                piece = self._format_array(piece, len(line))
            elif not isinstance(piece, str):
                piece = self._wrap(piece, len(line) - len(line.lstrip(" ")), len(line))
            text += piece
        return text

    def _wrap(self, node: Node, indent: int, column: int) -> str:
        """Return a node, which begins at a column of an indented line: on one line if it fits."""
        line = self._format_line(node)
        if isinstance(node, Text) or ("\n" not in line and column + len(line) < WIDTH):
            return line
        if isinstance(node, Slot):
            return self._format_array(node, column)
        inner = " " * (indent + 2)
        rows = (
            f"{inner}{label}{self._wrap(part, indent + 2, indent + 2 + len(label))},\n"
            for label, part in node.items
        )
        return f"{node.left}\n{''.join(rows)}{' ' * indent}{node.right}"

    def _format_line(self, node: Node) -> str:
        if isinstance(node, Text):
            return node.text
        if isinstance(node, Slot):
            return re.sub(r"\n\s*", " ", self._format_array(node, 0, 10**6))
        items = ", ".join(label + self._format_line(part) for label, part in node.items)
        return f"{node.left}{items}{',' if node.is_single_tuple else ''}{node.right}"

    def _format_array(self, slot: Slot, column: int, width: int = WIDTH) -> str:
        x = self._arrays[slot.place]
        if x.ndim == 0:
            return slot.before + _format_scalar(x, slot)
        column += len(slot.before)
        text = self._format_elements(x, slot.spec, max(width - column - 1, _NARROW))
        return slot.before + text.replace("\n", "\n" + " " * column)

    def _format_elements(self, x: np.ndarray[Any, Any], spec: str, width: int) -> str:
        few, limit = (3, sys.maxsize) if self._summarize < 0 else (self._summarize, 0)
        each = {"all": lambda v: format_number(v, spec)} if spec else None
        return numpy_text(
            x, precision=8, threshold=limit, edgeitems=few, linewidth=width, formatter=each
        )


def _format_scalar(x: np.ndarray[Any, Any], slot: Slot) -> str:
    if slot.spec:
        return format_number(x[()], slot.spec)
    return repr(str(x[()])) if slot.is_quoted and x.dtype.kind in "OSTU" else str(x[()])


def format_number(x: Any, spec: str) -> str:
    """Format an element of an array as Python formats numbers of its kind.

    >>> format_number(np.float32(0.1), ".2f"), format_number(np.int8(3), "03d")
    ('0.10', '003')
    """
    return format(x.item() if hasattr(x, "item") else x, spec)
