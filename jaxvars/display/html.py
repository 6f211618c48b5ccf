"""The pieces of HTML that objects are shown with in a notebook.

Every string is escaped where it is put in, so that a name cannot become HTML; colours are those of
the page, and mixtures with it, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

FAINT = "opacity:.65"
_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;line-height:1.5"
_BOX = "border-left:2px solid rgba(127,127,127,.35);margin:2px 0 2px 5px;padding:1px 0 1px 10px"


def page(body: str) -> str:
    """Return HTML as one output of a notebook."""
    return f'<div class="jaxvars-repr" style="{_FONT};padding:5px">{body}</div>'


def card(
    title: str,
    facts: Iterable[str] = (),
    rows: Sequence[str] = (),
    *,
    name: str = "",
    opened: bool = False,
) -> str:
    """Return a title with facts on its line, over rows of HTML that can be folded away.

    >>> card("<w>", ["float32[2]"])
    '<div><b>&lt;w&gt;</b> float32[2]</div>'
    """
    label = f'<span style="{FAINT}">{escape(name)}</span>' if name else ""
    bold = f"<b>{escape(title)}</b>" if title else ""
    line = " ".join(filter(None, [label, bold, escape(" · ".join(filter(None, facts)))]))
    if not any(rows):
        return f"<div>{line}</div>"
    shown = f"<details{' open' if opened else ''}><summary>{line}</summary>"
    return f'{shown}<div style="{_BOX}">{"".join(rows)}</div></details>'


def line(value: str, name: str = "") -> str:
    """Return a row: a value, which is HTML, and what it is called."""
    label = f'<span style="{FAINT}">{escape(name)}=</span>' if name else ""
    return f'<div style="white-space:pre-wrap">{label}{value}</div>'
