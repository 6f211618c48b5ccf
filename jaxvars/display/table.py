"""A table that people read and programs use: `Module.summary()`, `fn.traces` and others.

Rules this file keeps:
- a table is a sequence of its rows, and a row holds values, not strings: 1258 and not `1.2 KiB`;
- `str(table)` is the same on any machine: plain ASCII rules, no terminal asked for its width.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import repeat, zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias, final, overload

import numpy as np

from jaxvars.display.strings import cells, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table as RichTable

Row: TypeAlias = tuple[Any, ...]
_GAP = "  "
_MOST = 80  # columns, where there is no terminal
_WORD = 10  # columns of a column that is narrowed, at least


@final
class Table(Sequence[Row]):
    """Rows under headers, with totals below them.

    `show()` prints it as it looks best, `print` as a plain string; a notebook shows it as HTML.

    Args:
        title: the heading; may be empty.
        columns: the headers.
        rows: a value for each column; None is shown as nothing.
        footer: more rows, below a rule: totals. They are not part of the sequence.
        formats: how to show the values of a column, such as `{"bytes": human_bytes}`.

    Attributes:
        title: the heading.
        columns: the headers.
        rows: all rows.
        footer: the rows below the rule.

    Raises:
        ValueError: a row has more or fewer values than there are columns, or a format is for
            a column that there is not.

    Example:
        >>> table = Table(
        ...     "sizes", ["path", "bytes"], [("w", 2560), ("b", 40)], footer=[("total", 2600)]
        ... )
        >>> print(table)
        sizes
        path   bytes
        -----  -----
        w      2,560
        b         40
        -----  -----
        total  2,600
        >>> len(table), table[0], table.column("bytes")
        (2, ('w', 2560), [2560, 40])
    """

    __slots__ = ("_formats", "_numeric", "columns", "footer", "rows", "title")

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        footer: Iterable[Sequence[Any]] = (),
        formats: Mapping[str, Callable[[Any], str]] | None = None,
    ) -> None:
        self.title = title
        self.columns: tuple[str, ...] = tuple(columns)
        self.rows: tuple[Row, ...] = tuple(self._check(row) for row in rows)
        self.footer: tuple[Row, ...] = tuple(self._check(row) for row in footer)
        # Once for all rows, which may be many.
        self._numeric = [
            _is_numeric([row[i] for row in self.rows]) for i in range(len(self.columns))
        ]
        self._formats = dict(formats or {})
        for name in self._formats:
            self._find_position(name)

    def _check(self, row: Sequence[Any]) -> Row:
        if len(row) != len(self.columns):
            raise ValueError(
                f"table {self.title!r} has {len(self.columns)} columns "
                f"({', '.join(self.columns)}), and a row has {len(row)} values: {tuple(row)!r}"
            )
        return tuple(row)

    def _find_position(self, column: str) -> int:
        if column not in self.columns:
            raise ValueError(
                f"table {self.title!r} has no column {column!r}."
                f"{did_you_mean(column, self.columns)} Its columns: {', '.join(self.columns)}."
            )
        return self.columns.index(column)

    # ------------------------------------------------------------ as a sequence
    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self.rows[index]

    def column(self, name: str) -> list[Any]:
        """Return the values of one column, without the footer.

        Raises:
            ValueError: the table has no such column.
        """
        position = self._find_position(name)
        return [row[position] for row in self.rows]

    # ------------------------------------------------------------ as something to look at
    def show(self) -> None:
        """Print the table: as HTML in a notebook, by rich in a terminal, else as a plain string."""
        ipython = sys.modules.get("IPython")
        if ipython is not None and ipython.get_ipython() is not None:
            ipython.display.display(self)
        elif sys.stdout.isatty():
            import rich

            rich.get_console().print(self)
        else:
            sys.stdout.write(f"{self.to_text(most=_MOST)}\n")

    def __repr__(self) -> str:
        return self.to_text()

    def to_text(self, most: int | None = None) -> str:
        """Return the table as a plain string, no wider than `most` columns where words allow it."""
        rows, footer = self._format_rows(self.rows), self._format_rows(self.footer)
        parts = [self.columns, *rows, *footer]
        widths = [max(map(cells, column)) for column in zip(*parts, strict=True)]
        if most is not None:
            widths = self._fit(widths, most - len(_GAP) * (len(widths) - 1))
        lines = [self._format_wrapped(part, widths) for part in parts]
        rule = _GAP.join("-" * width for width in widths)
        for place in [1, len(rows) + 2] if footer else [1]:
            lines.insert(place, rule)
        return "\n".join([self.title, *lines] if self.title else lines)

    def _fit(self, widths: Sequence[int], most: int) -> list[int]:
        """Return widths that add up to less, as far as strings can be broken over lines."""
        found = [
            w if right else min(w, _WORD) for w, right in zip(widths, self._numeric, strict=True)
        ]
        for i in sorted(range(len(found)), key=lambda i: widths[i]):  # what needs little has it
            found[i] += max(0, min(widths[i] - found[i], most - sum(found)))
        return found

    def _format_wrapped(self, strings: Sequence[str], widths: Sequence[int]) -> str:
        broken = [
            wrap(string, width, break_on_hyphens=False) if cells(string) > width else [string]
            for string, width in zip(strings, widths, strict=True)
        ]
        lines = zip_longest(*broken, fillvalue="")
        return "\n".join(self._format_line(line, widths) for line in lines)

    def _format_line(self, strings: Sequence[str], widths: Sequence[int]) -> str:
        padded: list[str] = []
        for string, width, right in zip(strings, widths, self._numeric, strict=True):
            space = " " * (width - cells(string))
            padded.append(space + string if right else string + space)
        return _GAP.join(padded).rstrip()

    def _format_rows(self, rows: Iterable[Row]) -> list[list[str]]:
        formats = [self._formats.get(name, cell_text) for name in self.columns]
        return [
            ["" if v is None else _join_lines(f(v)) for v, f in zip(row, formats, strict=True)]
            for row in rows
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable]:
        from rich.table import Table as RichTable
        from rich.text import Text  # so `[64,10]` is not read as markup

        title = Text(self.title, style="bold") if self.title else None
        table = RichTable(title=title, title_justify="left")
        for name, right in zip(self.columns, self._numeric, strict=True):
            table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
        for row in self._format_rows(self.rows):
            table.add_row(*map(Text, row))
        table.add_section()
        for row in self._format_rows(self.footer):
            table.add_row(*map(Text, row), style="bold")
        yield table

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction]  # notebooks call it
        style = (
            "border-collapse:collapse;margin:5px;font-size:13px;font-variant-numeric:tabular-nums"
        )
        bold, line = "font-weight:600", "1px solid rgba(127,127,127,.6)"
        title = f'<caption style="text-align:left;{bold}">{escape(self.title)}</caption>'
        head = self._format_html_row(self.columns, "th", f"border-bottom:{line}")
        rows = [self._format_html_row(row, "td") for row in self._format_rows(self.rows)]
        styles = [f"{bold};border-top:{line}"] + [bold] * len(self.footer)
        footer = map(self._format_html_row, self._format_rows(self.footer), repeat("td"), styles)
        return (
            f'<table class="jaxvars-table" style="{style}">{title if self.title else ""}'
            f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody>"
            f"<tfoot>{''.join(footer)}</tfoot></table>"
        )

    def _format_html_row(self, strings: Iterable[str], tag: str, style: str = "") -> str:
        parts = [
            f'<{tag} style="text-align:{"right" if right else "left"};'
            f'padding:2px 10px;{style}">{escape(string)}</{tag}>'
            for string, right in zip(strings, self._numeric, strict=True)
        ]
        return f"<tr>{''.join(parts)}</tr>"


def cell_text(value: Any) -> str:
    """Return a value as a cell shows it.

    >>> [cell_text(v) for v in (1258, 0.12345, True, (64, 10), np.dtype("int32"), "w")]
    ['1,258', '0.1235', 'yes', '(64, 10)', 'int32', 'w']
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    return f"{float(value):.4g}" if isinstance(value, (float, np.floating)) else str(value)


def _is_numeric(values: Iterable[Any]) -> bool:
    kinds = {type(value) for value in values if value is not None}
    numbers = (int, float, np.integer, np.floating)
    return bool(kinds) and all(issubclass(k, numbers) and k is not bool for k in kinds)


def _join_lines(string: str) -> str:
    return " ".join(string.split()) if "\n" in string else string
