"""The pieces of HTML that objects are shown with in a notebook: cards, heat maps, device grids.

Rules this file keeps:
- every string is escaped where it is put in, so that a name cannot become HTML;
- colours suit the light and the dark theme: those of the page, and mixtures with it;
- a picture is made of a sample of an array: its cost does not depend on the array's size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from jaxvars.display.strings import SMALL, has_numbers

FAINT = "opacity:.65"
_FONT = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;line-height:1.5"
_BOX = "border-left:2px solid rgba(127,127,127,.35);margin:2px 0 2px 5px;padding:1px 0 1px 10px"
_ROWS, _COLUMNS, _CELL, _LEVELS = 16, 32, 5, 5  # of a heat map
_BINS, _SAMPLE = 32, 4096  # of a histogram
_LOW, _HIGH, _ODD = "hsl(215,80%,55%)", "hsl(12,80%,55%)", "hsl(300,70%,50%)"
_MOST_SHARDS = 64
_BAR = 320  # pixels of the longest


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


# ---------------------------------------------------------------- pictures of arrays
def picture(x: np.ndarray[Any, Any]) -> str:
    """Return a small picture of an array: a heat map of a matrix, a histogram of any other.

    >>> picture(np.eye(3))[:4], picture(np.zeros(3)), picture(np.array(["a"] * 9))
    ('<svg', '', '')
    """
    if x.size <= SMALL or not has_numbers(x):
        return ""
    is_matrix = x.ndim == 2 and min(x.shape) > 1
    return _heat_map(x) if is_matrix else _histogram(x) if x.size >= _BINS else ""


def _numbers(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with np.errstate(all="ignore"):
        return (np.abs(x) if x.dtype.kind == "c" else x).astype(np.float64)


def _heat_map(x: np.ndarray[Any, Any]) -> str:
    """Draw a sample of a matrix: blue below zero, red above, purple for NaN and infinities."""
    places = [_spaced(size, most) for size, most in zip(x.shape, (_ROWS, _COLUMNS), strict=True)]
    values = _numbers(x[np.ix_(*places)])
    finite = np.isfinite(values)
    top = np.max(np.abs(values), where=finite, initial=0.0) or 1.0
    levels = np.where(finite, np.rint(np.where(finite, values, 0) / top * _LEVELS), 99).astype(int)
    paths: dict[int, str] = {}
    for row, cells in enumerate(levels):
        column = 0
        for level, run in groupby(cells.tolist()):
            width = len(list(run))
            paths[level] = paths.get(level, "") + f"M{column} {row + 0.5}h{width}"
            column += width
    drawn = "".join(_stroke(level, path) for level, path in sorted(paths.items()) if level)
    (rows, columns), (all_rows, all_columns) = values.shape, x.shape
    told = f"heat map from {-top:.3g} (blue) to {top:.3g} (red)"
    if values.shape != x.shape:
        told += f"; {rows} of {all_rows} rows, {columns} of {all_columns} columns"
    return _svg(columns, rows, columns * _CELL, rows * _CELL, drawn, told)


def _spaced(size: int, most: int) -> np.ndarray[Any, Any]:
    """Return some positions in a dimension, evenly spaced."""
    return np.arange(size) if size <= most else np.arange(most) * size // most


def _stroke(level: int, path: str) -> str:
    colour = _ODD if level == 99 else _HIGH if level > 0 else _LOW
    opacity = 1 if level == 99 else abs(level) / _LEVELS
    return f'<path d="{path}" stroke="{colour}" stroke-opacity="{opacity:g}"/>'


def _histogram(x: np.ndarray[Any, Any]) -> str:
    """Draw how often values are met in a sample of an array."""
    flat = x.reshape(-1)
    values = _numbers(flat[:: max(1, flat.size // _SAMPLE)])
    values = values[np.isfinite(values)]
    low, high = (values.min().item(), values.max().item()) if values.size else (0.0, 0.0)
    if not max(abs(low + high) * 1e-9, 1e-290) < high - low < math.inf:  # too near, or too far
        return ""
    counts, edges = np.histogram(values, _BINS, (low, high))
    heights = np.ceil(counts / counts.max() * _ROWS).astype(int)
    bars = "".join(f"M{i + 0.5} {_ROWS}v{-h}" for i, h in enumerate(heights.tolist()) if h)
    told = f"histogram from {edges[0]:.3g} to {edges[-1]:.3g}"
    path = f'<path d="{bars}" stroke="{_LOW}" stroke-opacity=".7"/>'
    return _svg(_BINS, _ROWS, _BINS * _CELL, _ROWS * 2, path, told)


def _svg(columns: int, rows: int, width: int, height: int, drawn: str, told: str) -> str:
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {columns} {rows}" role="img" '
        'preserveAspectRatio="none" shape-rendering="crispEdges" stroke-width="1" '
        'style="max-width:100%;display:block;margin:3px 0;outline:1px solid rgba(127,127,127,.4)">'
        f"<title>{escape(told)}</title>{drawn}</svg>"
    )


def bars(title: str, rows: Mapping[str, Mapping[str, float]], show: Callable[[float], str]) -> str:
    """Return a bar for each row, to one scale, of coloured parts one after the other.

    Args:
        title: what is shown, before the names of the parts.
        rows: the sizes of the parts by name, by the name of the row.
        show: how a size is written, which is seen where the pointer is.

    >>> bars("memory", {"data 8": {"variables": 3.0, "arguments": 1.0}}, str).count("<span")
    4
    """
    names = list(dict.fromkeys(name for parts in rows.values() for name in parts))
    colours = {x: f"hsla({i * 360 // len(names)},65%,50%,.6)" for i, x in enumerate(names)}
    most = max((sum(parts.values()) for parts in rows.values()), default=0.0) or 1.0

    def part(name: str, size: float) -> str:
        style = f"width:{size / most * _BAR:.0f}px;height:1em;background:{colours[name]}"
        return f'<span style="{style}" title="{escape(f"{name}: {show(size)}")}"></span>'

    def row(name: str, parts: Mapping[str, float]) -> str:
        drawn = "".join(part(*each) for each in parts.items())
        return f'<tr><td>{escape(name)}</td><td style="display:flex">{drawn}</td></tr>'

    legend = "".join(
        f' <span style="background:{c};padding:0 5px">{escape(x)}</span>'
        for x, c in colours.items()
    )
    caption = f'<caption style="text-align:left">{escape(title)}{legend}</caption>'
    body = "".join(row(*each) for each in rows.items())
    return f'<table style="margin:5px;font-size:12px">{caption}{body}</table>'


# ---------------------------------------------------------------- pictures of placements
def device_grid(shape: Sequence[int], parts: Mapping[Any, tuple[slice, ...]]) -> str:
    """Return a table of the parts of an array, each with the devices that have it, in colour.

    The two first dimensions that are split make its columns and rows.

    Args:
        shape: of the array.
        parts: the index of each device's part, by its id.
    """
    boxes: dict[tuple[tuple[int, int], ...], list[Any]] = {}
    for device, index in parts.items():
        ends = zip(index, shape, strict=True)
        box = tuple(
            (part.start or 0, size if part.stop is None else part.stop) for part, size in ends
        )
        boxes.setdefault(box, []).append(device)
    split = [i for i in range(len(shape)) if len({box[i] for box in boxes}) > 1]
    if len(boxes) > _MOST_SHARDS or len(split) > 2:
        return ""
    rows: dict[Any, list[str]] = {}
    for number, (box, devices) in enumerate(sorted(boxes.items())):
        row = box[split[0]] if split and split[0] < len(shape) - 1 else None
        colour = f"hsla({number * 360 // len(boxes)},65%,50%,.35)"
        style = f"text-align:center;padding:2px 8px;background:{colour}"
        where = ",".join(f"{start}:{stop}" for start, stop in box)
        cell = f'<td style="{style}" title="[{where}]">{", ".join(map(str, sorted(devices)))}</td>'
        rows.setdefault(row, []).append(cell)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows.values())
    style = "border-collapse:collapse;margin:3px 0;font-size:12px"
    caption = f'<caption style="text-align:left;{FAINT}">device of each part</caption>'
    return f'<table style="{style}">{caption}{body}</table>'
