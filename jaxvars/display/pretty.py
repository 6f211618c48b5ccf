"""Any value as a string over several lines: what `jv.print` prints.

Compiled code knows its arrays only when it runs: `Planner` takes a value apart into a tree of
strings, groups and `Slot`s, and `Layout` writes that tree down once the arrays are there.

Rules this file keeps:
- arrays are short in the middle, strings are whole, lines are wrapped at 88 columns;
- the string does not depend on NumPy's print options, so it is the same in every thread.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.parts import WIDTH, Group, make_call, name_of, split, write
from jaxvars.display.strings import is_array, numpy_text

_NARROW = 24  # an array gets at least this many columns, wherever it begins


class Slot(NamedTuple):
    """An array that is still to come: its place, what stands before it, and how it is formatted."""

    place: int
    before: str
    spec: str
    is_quoted: bool


Node: TypeAlias = str | Slot | Group


# ---------------------------------------------------------------- taking apart
@final
class Planner:
    """Takes values apart; `arrays` are those met so far, in the order of their slots.

    `plain` returns the array that an object stands for, other values as they are.

    >>> planner = Planner(lambda value: value)
    >>> planner.plan({"w": np.zeros(2), "act": max})
    Group(left='{', items=(("'w': ", Slot(...)), ("'act': ", 'max')), right='}')
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
        return format(value, spec)

    def plan(self, value: Any, spec: str = "", *, is_quoted: bool = True) -> Node:
        """Plan a value that is part of another."""
        value = self._plain(value)
        if is_array(value):
            return self._make_slot(value, spec, is_quoted)
        if spec and isinstance(value, int | float | complex) and not isinstance(value, bool):
            return format(value, spec)
        parts = _split(value)
        if parts is None:
            return name_of(value) or repr(value)
        return self._make_group(value, parts, spec)

    def _make_slot(self, value: Any, spec: str, is_quoted: bool) -> Slot:
        before = ""
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            before, value = str(value.dtype), jax.random.key_data(value)
        if spec:
            format_number(np.zeros((), value.dtype)[()], spec)  # raises now if it does not suit
        self.arrays.append(value)
        return Slot(len(self.arrays) - 1, before, spec, is_quoted)

    def _make_group(self, value: Any, parts: Group, spec: str) -> Node:
        if id(value) in self._open:  # objects may form a circle
            return f"{parts.left}...{parts.right}"
        self._open.append(id(value))
        try:
            items = tuple((label, self.plan(part, spec)) for label, part in parts.items)
        finally:
            self._open.pop()
        return parts._replace(items=items)


def _split(value: Any) -> Group | None:
    """Return what a value consists of, dataclasses and nodes that JAX knows among them."""
    parts = split(value)
    if parts is not None or value is None or isinstance(value, str | bytes | type):
        return parts
    name = type(value).__name__
    if dataclasses.is_dataclass(value):
        fields = (f.name for f in dataclasses.fields(value) if f.repr)
        return make_call(name, ((field, getattr(value, field)) for field in fields))
    is_leaf = jax.tree_util.all_leaves([value])
    return None if is_leaf else make_call(name, _iterate_children(value))


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
        string = ""
        for piece in pieces:
            line = string[string.rfind("\n") + 1 :]
            if isinstance(piece, Slot):  # an array by itself has its rows below each other
                piece = self._format_array(piece, len(line))
            elif not isinstance(piece, str):
                indent = len(line) - len(line.lstrip(" "))
                piece = write(piece, self._format_array, indent, len(line))
            string += piece
        return string

    def _format_array(self, slot: Slot, column: int, width: int = WIDTH) -> str:
        x = self._arrays[slot.place]
        if x.ndim == 0:
            return slot.before + _format_scalar(x, slot)
        column += len(slot.before)
        string = self._format_elements(x, slot.spec, max(width - column - 1, _NARROW))
        return slot.before + string.replace("\n", "\n" + " " * column)

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
