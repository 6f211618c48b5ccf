"""How objects show themselves, all from one protocol: the yields of `__rich_repr__`.

From these come `text_repr` for `__repr__`, `html_repr` for `_repr_html_` (Jupyter) and
`treescope_repr` for `__treescope_repr__`; rich itself reads the protocol without our help.

Rules this file keeps:
- showing an object changes nothing and runs no JAX operation;
- what is shown is small, whatever the object: arrays by statistics, containers cut, and only so
  many objects, so deep;
- a string does not depend on the terminal, on NumPy's print options or on addresses in memory.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from jaxvars.display.html import card, line, page, picture
from jaxvars.display.html import device_grid as device_grid
from jaxvars.display.parts import Group, Shown, fields_of, make_call, name_of, split, write
from jaxvars.display.strings import SMALL as SMALL
from jaxvars.display.strings import array_text as array_text
from jaxvars.display.strings import brief_text as brief_text
from jaxvars.display.strings import did_you_mean as did_you_mean
from jaxvars.display.strings import full_text, is_array, statistics
from jaxvars.display.strings import human_bytes as human_bytes
from jaxvars.display.strings import join_names as join_names
from jaxvars.display.strings import known_value as known_value
from jaxvars.display.strings import type_text as type_text
from jaxvars.display.table import Table as Table

_ITEMS, _CHARS = 24, 200
_CONTAINERS = (list, tuple, set, frozenset, dict)
_DEPTH, _OBJECTS = 20, 1000  # of objects in each other, and in all
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_READ = 1 << 24  # elements that one output of a notebook reads
_output: ContextVar[_Output | None] = ContextVar("output", default=None)


class _Output:
    """What is being shown: the objects around the next one, and what room is left."""

    def __init__(self) -> None:
        self.around: list[int] = []
        self.objects, self.unread = _OBJECTS, _READ


# ---------------------------------------------------------------- strings
def text_repr(obj: Shown) -> str:
    """Return an object as its constructor would be written, for `__repr__`.

    On one line if it fits, and with a line for each field if not.

    >>> class Dense:
    ...     __repr__ = text_repr
    ...
    ...     def __rich_repr__(self):
    ...         yield "units", 2
    ...         yield "kernel", np.eye(2)
    >>> Dense()
    Dense(units=2, kernel=[[1. 0.] [0. 1.]])
    """
    return write(_plan_parts(obj))


def value_text(value: Any) -> str:
    """Return any value as a string that is short and the same in every run.

    >>> value_text({"w": np.zeros((64, 10)), "act": max})
    "{'w': float64[64,10] mean=0 min=0 max=0, 'act': max}"
    """
    return write(_plan(value))


def _plan(value: Any) -> str | Group:
    if is_array(value):
        return array_text(value)
    if isinstance(value, _CONTAINERS):
        return _plan_parts(value)
    if name := str(value) if isinstance(value, np.dtype) else name_of(value):
        return name
    short = getattr(value, "__short_repr__", None)
    try:
        shown = _ADDRESS.sub("", repr(value) if short is None else short())
    except Exception as error:  # noqa: BLE001 - what is broken is shown as that
        return f"<{type(value).__name__} {_describe_failure(error)}>"
    return shown if isinstance(value, Shown) or len(shown) <= _CHARS else shown[: _CHARS - 1] + "…"


def _plan_parts(value: Any) -> Group:
    """Return a container, up to a limit, or an object with what it yields."""
    more, most = [], None
    if isinstance(value, _CONTAINERS) and len(value) > _ITEMS:
        more, most = [("", f"... {len(value) - _ITEMS} more")], _ITEMS
    with _enter(value) as output:
        if not output:
            more, most = [("", "...")], 0
        try:
            group = split(value, value_text) or make_call(type(value).__name__, ())
            items = [(label, _plan(part)) for label, part in islice(group.items, most)]
        except Exception as error:  # noqa: BLE001 - what is broken is shown as that
            group, items = make_call(type(value).__name__, ()), [("", _describe_failure(error))]
    return group._replace(items=[*items, *more])


def _describe_failure(error: Exception) -> str:
    return f"cannot be shown: {type(error).__name__}"


@contextmanager
def _enter(obj: object) -> Generator[_Output | None]:
    """Give the output that an object is shown in; None if it has no room, or is in itself."""
    output = _output.get() or _Output()
    is_shown = id(obj) in output.around or len(output.around) == _DEPTH or not output.objects
    token = _output.set(output)
    output.objects -= not is_shown
    output.around.append(id(obj))
    try:
        yield None if is_shown else output
    finally:
        output.around.pop()
        _output.reset(token)


# ---------------------------------------------------------------- notebooks
class Sketch(NamedTuple):
    """What an object shows in a notebook that has a method `__sketch__`: a line, and below it more.

    Attributes:
        title: its class and name, where it is shown by itself.
        short: the same as a part of another object.
        line: what follows the title, always seen.
        facts: more, seen where it is shown by itself, or opened.
        value: an array, to be shown by its values or statistics, and a picture.
        fields: what is below the line; what the object yields when None.
        rows: HTML below that.
    """

    title: str
    short: str = ""
    line: str = ""
    facts: tuple[str, ...] = ()
    value: np.ndarray[Any, Any] | None = None
    fields: Sequence[tuple[str, Any]] | None = None
    rows: tuple[str, ...] = ()


class Folded:
    """A table that is shown folded in a notebook, and as one line elsewhere."""

    def __init__(self, line: str, table: Table) -> None:
        self.line, self.table = line, table

    def __repr__(self) -> str:
        return self.line


def html_repr(obj: Any) -> str:
    """Return an object as HTML, for `_repr_html_`: a tree to open and close.

    It takes its colours from the page, light or dark.

    >>> class Dense:
    ...     def __rich_repr__(self):
    ...         yield "units", 2
    >>> "<b>Dense</b>" in html_repr(Dense())
    True
    """
    return page(_object_html(obj))


def _object_html(obj: Any, name: str = "") -> str:
    kind = type(obj).__name__
    with _enter(obj) as output:
        if not output:
            return card(f"{kind}(...)", name=name)
        try:
            made = obj.__sketch__() if hasattr(type(obj), "__sketch__") else Sketch(kind, kind)
            fields = fields_of(obj) if made.fields is None else made.fields
            rows = [*_rows(fields, len(fields)), *made.rows]
            values, drawn = ("", "") if made.value is None else _values_html(made.value)
        except Exception as error:  # noqa: BLE001 - what is broken is shown as that
            return card(kind, [_describe_failure(error)], name=name)
    if not name:
        return card(made.title, [made.line + values, *made.facts], [drawn, *rows], opened=True)
    facts = [line(escape(" · ".join(made.facts)))] if made.facts else []
    return card(made.short, [made.line + values], [*facts, drawn, *rows], name=name)


def _values_html(x: np.ndarray[Any, Any]) -> tuple[str, str]:
    """Return the values or statistics of an array, and its picture; nothing if it is too large."""
    output = _output.get()
    if output is None or x.size > output.unread:
        return "", ""
    output.unread -= x.size
    full = full_text(x)
    shown = f" = {full}" if full else f" · {facts}" if (facts := statistics(x, x)) else ""
    return shown, picture(x)


def _rows(items: Sequence[tuple[str, Any]], count: int) -> list[str]:
    """Return a row of HTML for each of the first things, and how many more there are."""
    more = [line(f"... {count - _ITEMS} more")] if count > _ITEMS else []
    return [_field_html(name, value) for name, value in items[:_ITEMS]] + more


def _field_html(name: str, value: Any) -> str:
    if isinstance(value, Folded):
        return card("", [value.line], [value.table._repr_html_()], name=name)
    if not isinstance(value, type) and (isinstance(value, Shown) or hasattr(value, "__sketch__")):
        return _object_html(value, name or "·")
    parts, count = _first_parts(value)
    if any(isinstance(part, Shown) for _, part in parts):
        with _enter(value) as output:
            rows = _rows(parts, count) if output else [line("...")]
            return card("", (), rows, name=name, opened=True)
    return line(_array_html(value) if is_array(value) else escape(value_text(value)), name)


def _first_parts(value: Any) -> tuple[list[tuple[str, Any]], int]:
    """Return the first items of a container with their names, and how many there are."""
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in islice(value.items(), _ITEMS)], len(value)
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", part) for i, part in enumerate(islice(value, _ITEMS))], len(value)
    return [], 0


def _array_html(x: Any) -> str:
    """Return type and values or statistics of an array."""
    known = known_value(x)
    values = f" {statistics(x, None)}" if known is None else _values_html(known)[0]
    return f"<b>{escape(type_text(x))}</b>{escape(values)}"


def treescope_repr(obj: Shown, path: str | None, subtree_renderer: Any) -> Any:
    """Return an object as treescope shows it, for `__treescope_repr__`."""
    from treescope import repr_lib

    return repr_lib.render_object_constructor(
        object_type=type(obj),
        attributes={field.name or str(i): field.value for i, field in enumerate(fields_of(obj))},
        path=path,
        subtree_renderer=subtree_renderer,
    )
