"""A layered drawing of boxes and arrows, as one SVG document; `graph/layout.py` says where.

Rules this file keeps:
- the same boxes and arrows give the same document, on any machine;
- the picture stands alone: no script, font or id, every style under one class, and its own
  background, for light and dark pages;
- a label never leaves its box: lines above `MAX_CHARS` are cut, and the tooltip has them whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final
from xml.sax.saxutils import escape

from jaxvars.display.strings import cells
from jaxvars.graph.jaxpr import Kind
from jaxvars.graph.layout import Arrow, Layout, arrange, layers

MAX_CHARS = 34
_CHAR = 0.62  # width of a character of the widest usual fixed-width font, in font sizes
_INPUTS = frozenset({"variable", "argument", "constant"})
_FAR_INPUT, _FAR = 4, 10  # layers that a wire may cross
_LABEL, _DETAIL = 12.0, 10.5  # font sizes
_LEAST = 0.4  # a picture is not made smaller than that: it would not be readable
_HEIGHT, _PAD, _MARGIN = 40.0, 12.0, 24.0


class Look(NamedTuple):
    """How boxes of one kind look: one colour, for the outline and, thinly, inside."""

    name: str  # in the legend
    is_pill: bool
    colour: str
    opacity: float = 0.16


LOOKS: dict[Kind, Look] = {
    "variable": Look("variable", True, "#4a7fdb"),
    "argument": Look("argument", True, "#35a06b"),
    "constant": Look("constant", True, "#8a95a3"),
    "operation": Look("operation", False, "#8a95a3", 0.04),
    "control": Look("loop or branch", False, "#cc8f1f"),
    "group": Look("several operations", False, "#6f86a6"),
    "result": Look("result", True, "#9d62d6"),
    "written": Look("written variable", True, "#4a7fdb", 0.36),
}
_PAGE = '<rect class="page" width="100%" height="100%" rx="8"/>\n'


@final
@dataclass(frozen=True, slots=True)
class Box:
    """What is drawn for one node."""

    kind: Kind
    label: str  # the first line, bold
    detail: str = ""  # the second line
    tooltip: str = ""
    mark: str = ""  # added to the label if it is shown twice, to tell which is meant
    again: bool = False  # it shows an input for a second time

    @property
    def width(self) -> float:
        """Return how wide the box must be for its label and detail."""
        label, detail = cells(shorten(self.label)) * _LABEL, cells(shorten(self.detail)) * _DETAIL
        return max(label, detail) * _CHAR + 2 * _PAD


def shorten(words: str) -> str:
    """Return a string on one line, cut to `MAX_CHARS` columns.

    >>> shorten("a" * 50)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    words = " ".join(words.split())
    if cells(words) <= MAX_CHARS:
        return words
    while cells(words) > MAX_CHARS - 1:
        words = words[:-1]
    return words + "…"


def draw(
    boxes: Sequence[Box], arrows: Iterable[Arrow], title: str = "", note: str = "", *,
    is_styled: bool = True,
) -> str:  # fmt: skip
    """Return the picture of boxes and arrows as an SVG document, with a note below the legend.

    Arrows are pairs (source, target) of positions in `boxes`, with source < target. Without a
    style it takes that of another one on the page.

    >>> draw([Box("argument", "x"), Box("result", "y")], [(0, 1)])[:33]
    '<svg xmlns="http://www.w3.org/200'
    """
    boxes, arrows, layer = _repeat_boxes(boxes, sorted(set(arrows)))
    plan = arrange([box.width for box in boxes], arrows, layer)
    head, head_width, head_height = _draw_heading(boxes, title, note)
    tops = _place_layers(plan, head_height)
    wide = max((x + w / 2 for x, w in zip(plan.x, plan.width, strict=True)), default=0.0)
    shift = _MARGIN + max(head_width - wide, 0) / 2
    plan.x = [x + shift for x in plan.x]
    wires = [_draw_wire(plan, tops, *pair) for pair in zip(plan.trails(), boxes, strict=True)]
    drawn = [_draw_box(b, plan.x[i], tops[plan.layer[i]]) for i, b in enumerate(boxes)]
    width = max(wide, head_width) + 2 * _MARGIN
    height = tops[-1] + (_HEIGHT if plan.rows else 0) + _MARGIN
    style = f"<style>\n{_style()}</style>\n" if is_styled else ""
    return _make_document(width, height, title, style + _PAGE + head + "".join(wires + drawn))


def _repeat_boxes(
    boxes: Sequence[Box], arrows: Sequence[Arrow]
) -> tuple[list[Box], list[Arrow], list[int]]:
    """Show a box again beside readers far below: no wire runs along the whole picture."""
    layer, known = layers(len(boxes), arrows), list(boxes)
    copies: list[tuple[Box, int]] = []
    shown: dict[int, tuple[int, int]] = {}  # box -> where it is shown, and from which layer on
    ends: list[Arrow] = []
    for source, target in sorted(arrows, key=lambda arrow: (arrow[0], layer[arrow[1]], arrow[1])):
        at, start = shown.get(source, (source, layer[source]))
        if layer[target] - start > (_FAR_INPUT if boxes[source].kind in _INPUTS else _FAR):
            if mark := known[source].mark:
                label = f"{known[source].label} · {mark}"
                known[source] = replace(known[source], label=label, mark="")
            at, start = -len(copies) - 1, layer[target] - 1
            copies.append((replace(known[source], again=True), start))
        shown[source] = at, start
        ends.append((at, target))
    count = len(copies)
    moved = sorted((a + count if a >= 0 else -a - 1, b + count) for a, b in ends)
    first, depths = [box for box, _ in copies], [depth for _, depth in copies]
    return first + known, moved, depths + layer


def _place_layers(plan: Layout, start: float) -> list[float]:
    """Return each layer's y: the gap above a layer grows with its widest arrow."""
    reach = [0.0] * len(plan.rows)
    for upper, lower in plan.links:
        row = plan.layer[lower]
        reach[row] = max(reach[row], abs(plan.x[upper] - plan.x[lower]))
    tops = [start]
    for width in reach[1:]:
        tops.append(tops[-1] + _HEIGHT + min(28 + 0.10 * width, 64))
    return tops


def _draw_wire(plan: Layout, tops: Sequence[float], trail: Sequence[int], box: Box) -> str:
    """Draw all arrows that leave one box, as one path."""
    paths, heads = list[str](), list[str]()
    for item in trail:
        top = tops[plan.layer[item]]
        if plan.is_bend(item):
            paths.append(f"M{_round(plan.x[item])} {_round(top)}V{_round(top + _HEIGHT)}")
        for lower in plan.below[item]:
            end = tops[plan.layer[lower]]
            x = _find_port(plan, item, lower)
            if not plan.is_bend(lower):
                heads.append(f"M{_round(x)} {_round(end)}l-4 -8h8z")
                end -= 7
            paths.append(_draw_curve(plan.x[item], top + _HEIGHT, x, end))
    if not paths:
        return ""
    shown = box.kind if box.kind in ("variable", "argument") else "operation"
    lines, tips = "".join(paths), "".join(heads)
    return f'<g class="w {shown}"><path class="l" d="{lines}"/><path class="h" d="{tips}"/></g>\n'


def _find_port(plan: Layout, upper: int, lower: int) -> float:
    """Return where an arrow meets the top of its target: side by side, in order."""
    if plan.is_bend(lower):
        return plan.x[lower]
    arriving = sorted(plan.above[lower], key=lambda i: (plan.x[i], i))
    step = min(16.0, (plan.width[lower] - 16) / len(arriving))
    return plan.x[lower] + (arriving.index(upper) - (len(arriving) - 1) / 2) * step


def _draw_curve(x: float, y: float, to_x: float, to_y: float) -> str:
    if abs(x - to_x) < 0.5:
        return f"M{_round(x)} {_round(y)}V{_round(to_y)}"
    start, end, middle = _round(x), _round(to_x), _round((y + to_y) / 2)
    return f"M{start} {_round(y)}C{start} {middle} {end} {middle} {end} {_round(to_y)}"


def _draw_box(box: Box, x: float, top: float) -> str:
    """Draw one box with its label, detail and tooltip."""
    left, round_by = x - box.width / 2, _HEIGHT / 2 if LOOKS[box.kind].is_pill else 6
    shape = _draw_rect(left, top, box.width, _HEIGHT, round_by)
    if box.kind in ("control", "group"):  # a second outline inside: not by colour alone
        shape += _draw_rect(left + 3, top + 3, box.width - 6, _HEIGHT - 6, 4)
    label, detail = shorten(box.label), shorten(box.detail)
    lines = _draw_text("b", x, top + (17 if detail else 24), label)
    if detail:
        lines += _draw_text("d", x, top + 31, detail)
    tip = f"<title>{_escape_xml(box.tooltip)}</title>" if box.tooltip else ""
    again = " again" if box.again else ""
    return f'<g class="n {box.kind}{again}">{tip}{shape}{lines}</g>\n'


def _draw_heading(boxes: Sequence[Box], title: str, note: str) -> tuple[str, float, float]:
    """Draw title, legend and note; return them with their width and the y below them."""
    out, wide, y = "", 0.0, _MARGIN
    if title:
        out += _draw_text("t", _MARGIN, y + 12, title)
        wide, y = cells(title) * 16 * _CHAR, y + 30
    x = _MARGIN
    used = {box.kind for box in boxes}
    kinds = [(kind, look.name) for kind, look in LOOKS.items() if kind in used]
    if any(box.again for box in boxes):
        kinds.append(("constant again", "shown again"))
    for kind, name in kinds:
        swatch = _draw_rect(x, y, 22, 14, 7 if kind not in ("operation", "control", "group") else 3)
        out += f'<g class="n {kind}">{swatch}{_draw_text("k", x + 28, y + 11, name)}</g>\n'
        x += 28 + len(name) * _DETAIL * _CHAR + 18
    wide, y = max(wide, x - _MARGIN - 18), y + 26
    if note:
        out += _draw_text("k", _MARGIN, y + 8, note)
        wide, y = max(wide, cells(note) * _DETAIL * _CHAR), y + 22
    return out, wide, y + 6


def _draw_rect(x: float, y: float, width: float, height: float, radius: float) -> str:
    size = f'width="{_round(width)}" height="{_round(height)}" rx="{_round(radius)}"'
    return f'<rect x="{_round(x)}" y="{_round(y)}" {size}/>'


def _draw_text(style: str, x: float, y: float, string: str) -> str:
    return f'<text class="{style}" x="{_round(x)}" y="{_round(y)}">{_escape_xml(string)}</text>'


def _escape_xml(string: str) -> str:
    """Return a string as XML: escaped, and without the characters that XML forbids."""
    return escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in string))


def _round(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _make_document(width: float, height: float, title: str, body: str) -> str:
    x, y = _round(width), _round(height)
    size = f'width="{x}" height="{y}" viewBox="0 0 {x} {y}"'
    x_least = _round(width * _LEAST)
    name = _escape_xml(title or "computation graph").replace('"', "&quot;")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="jaxvars-graph" {size} role="img" '
        f'aria-label="{name}" style="max-width:100%;min-width:{x_least}px;height:auto">\n'
        f"{body}</svg>\n"
    )


_RULES = f"""\
text{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}}
.b,.d{{text-anchor:middle}}
.b{{font-size:{_LABEL:g}px;font-weight:600}}
.d,.k{{font-size:{_DETAIL:g}px}}
.t{{font-size:16px;font-weight:600}}
.l{{fill:none;stroke-width:1.3}}
.n rect{{stroke-width:1.4}}
.written rect{{stroke-width:2.4}}
.again rect{{stroke-dasharray:4 3}}
.w:hover .l{{stroke-width:3}}""".splitlines()


def _style() -> str:
    """Return the style sheet: colours of the notebook's theme, else of the reader's system.

    A program that does not know `var` takes the rule before it.
    """
    light = _scope_rules([*_RULES, *_make_colours(_LIGHT), *_follow_theme()])
    dark = _scope_rules([f"{{{';'.join(f'--jaxvars-{k}:{v}' for k, v in _DARK.items())}}}"])
    return f"{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"


_LIGHT = {"page": "#fbfcfd", "ink": "#1c2128", "faint": "#57606c"}
_DARK = {"page": "#14171c", "ink": "#e8ebef", "faint": "#a3acb8"}
_THEMES = {  # JupyterLab's and Visual Studio Code's names
    "page": ("--jp-layout-color1", "--vscode-editor-background"),
    "ink": ("--jp-content-font-color1", "--vscode-editor-foreground"),
    "faint": ("--jp-content-font-color2", "--vscode-descriptionForeground"),
}


def _make_colours(known: Mapping[str, str]) -> Iterable[str]:
    for kind, look in LOOKS.items():
        inside = f"fill:{look.colour};fill-opacity:{look.opacity}"
        yield f".n.{kind} rect{{{inside};stroke:{look.colour}}}"
        yield f".w.{kind} .l{{stroke:{look.colour}}}"
        yield f".w.{kind} .h{{fill:{look.colour}}}"
    for name, rule in _USES.items():
        yield f"{rule}{{fill:{known[name]}}}"


_USES = {"page": ".page", "ink": ".b,.t", "faint": ".d,.k"}


def _follow_theme() -> Iterable[str]:
    for name, rule in _USES.items():
        first, second = _THEMES[name]
        known = f"var({first},var({second},var(--jaxvars-{name},{_LIGHT[name]})))"
        yield f"{rule}{{fill:{known}}}"


def _scope_rules(rules: Iterable[str]) -> str:
    """Return rules that hold inside our pictures only."""
    parts = [rule.partition("{") for rule in rules]
    inside = [(names.replace(",", ",.jaxvars-graph "), body) for names, _, body in parts]
    return "".join(f".jaxvars-graph {names}{{{body}\n" for names, body in inside)
