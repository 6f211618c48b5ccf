"""A picture of a compiled function: its jaxpr (`graph/jaxpr.py`), drawn (`graph/svg.py`).

Rule this file keeps: a picture is made when it is looked at, not before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, final

from jaxvars.display.html import card, page
from jaxvars.graph import groups
from jaxvars.graph.groups import ROOM, STEPS
from jaxvars.graph.jaxpr import Edge, Kind, Node, Walk, type_of
from jaxvars.graph.svg import LOOKS, Box, draw
from jaxvars.tracing.jaxprs import open_jaxpr


@final
class Graph:
    """The operations of a function and the values that pass between them.

    Shown as a picture in a notebook; `print(graph)` lists it, a line for each node.

    Attributes:
        nodes: in program order; a node's id is its position.
        edges: in order of their targets and of the operands there.
        title: the heading of the picture.
        unused: names of the inputs that no output depends on.

    Example:
        >>> import jax
        >>> closed = jax.make_jaxpr(lambda w, x: w - 0.1 * x)(1.0, 2.0)
        >>> graph = graph_of(closed, variables=1, written=1, title="step")
        >>> graph
        Graph('step': 1 variable, 1 argument, 2 operations, 1 written variable, 4 edges)
        >>> print(graph)
        step
        %0 = variable w: f32[]
        %1 = argument x: f32[]
        %2 = mul(0.1, %1): f32[]
        %3 = sub(%0, %2): f32[]
        written result: %3: f32[]
    """

    __slots__ = ("_svg", "edges", "nodes", "title", "unused")

    def __init__(
        self, nodes: Iterable[Node], edges: Iterable[Edge], title: str = "",
        unused: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.edges: tuple[Edge, ...] = tuple(edges)
        self.title = title
        self.unused: tuple[str, ...] = tuple(unused)
        self._svg = ""

    @property
    def svg(self) -> str:
        """Return the picture as an SVG document."""
        if not self._svg:
            self._svg = _draw(self.nodes, self.edges, self.title, _describe_unused(self.unused))
        return self._svg

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction]  # notebooks call it
        try:
            return page(_fold(self, [_PICTURES]))
        except Exception:  # noqa: BLE001 - a notebook goes on without the picture
            return page(card("", [repr(self)]))

    def _repr_svg_(self) -> str | None:  # pyright: ignore[reportUnusedFunction]  # nbconvert calls it
        return self.svg if len(self.nodes) <= ROOM else None  # a large one is HTML alone

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file.

        Args:
            path: where to; `.svg` is added to a name without it.

        Returns:
            The path written.
        """
        path = Path(path)
        path = path if path.suffix == ".svg" else path.with_name(path.name + ".svg")
        path.write_text(self.svg, encoding="utf-8")
        return path

    def count(self, kind: Kind) -> int:
        """Return how many nodes are of a kind."""
        return sum(node.kind == kind for node in self.nodes)

    def __repr__(self) -> str:
        counts = {look.name: self.count(kind) for kind, look in LOOKS.items()}
        counts["edge"] = len(self.edges)
        told = ", ".join(_format_count(name, count) for name, count in counts.items() if count)
        return f"Graph({self.title!r}: {told or 'empty'})"

    def __str__(self) -> str:
        arriving: dict[int, list[Edge]] = {}
        for edge in self.edges:
            arriving.setdefault(edge.target, []).append(edge)
        lines = [self._format_line(node, arriving.get(node.id, [])) for node in self.nodes]
        return "\n".join(filter(None, [self.title, *lines, _describe_unused(self.unused)]))

    def _format_line(self, node: Node, arriving: Sequence[Edge]) -> str:
        edges = iter(arriving)
        named = [_format_reference(next(edges)) if x is None else x for x in node.operands]
        if node.kind in ("result", "written"):
            return f"{node.kind} {node.name}: {', '.join(named)}: {node.type}"
        is_input = node.kind in ("variable", "argument", "constant")
        made = f"{node.kind} {node.name}" if is_input else f"{node.name}({', '.join(named)})"
        detail = f"  # {node.detail}" if node.detail else ""
        return f"%{node.id} = {made}: {node.type}{detail}"


def _format_count(name: str, count: int) -> str:
    plural = "loops or branches" if name == "loop or branch" else f"{name}s"
    return f"{count} {name if count == 1 else plural}"


def _describe_unused(unused: Sequence[str]) -> str:
    more = f" and {len(unused) - 8} more" if len(unused) > 8 else ""
    return f"not used: {', '.join(unused[:8])}{more}" if unused else ""


def _format_reference(edge: Edge) -> str:
    return f"%{edge.source}:{edge.output}" if edge.output else f"%{edge.source}"


def _draw(
    nodes: Sequence[Node], edges: Iterable[Edge], title: str = "", note: str = "", again: int = 0,
    *, is_styled: bool = True,
) -> str:  # fmt: skip
    """Return nodes and edges as SVG; the first nodes may be shown elsewhere already."""
    boxes = [_make_box(n, again=n.id < again and n.kind in STEPS) for n in nodes]
    arrows = [(edge.source, edge.target) for edge in edges]
    return draw(boxes, arrows, title, note, is_styled=is_styled)


_PICTURES = 24  # in one output of a notebook


def _fold(graph: Graph, left: list[int]) -> str:
    """Return a graph as HTML: a picture of some boxes, and one of each that can be opened."""
    nodes, edges = graph.nodes, graph.edges
    paths = groups.find_groups(nodes, edges)
    steps = [i for i in groups.sort_nodes(nodes, edges, paths) if nodes[i].kind in STEPS]
    paths = groups.cut_runs(steps, paths)
    counts = groups.count_operations(steps, paths)
    told = f"{_format_count('operation', len(steps))}: {counts}" if counts else ""

    def show(ids: Sequence[int], depth: int, title: str = "", note: str = "") -> str:
        is_first, left[0] = left[0] == _PICTURES, left[0] - 1
        boxes, arrows, parts, given = groups.fold(nodes, edges, paths, ids, depth)
        below = "".join(open_box(box, parts.get(box.id)) for box in boxes)
        svg = _draw(boxes, arrows, title, note, given, is_styled=is_first)
        return f'<div style="overflow-x:auto">{svg}</div>{below}'

    def open_box(box: Node, part: groups.Part | None) -> str:
        if left[0] <= 0:
            return ""
        if part is not None:
            return card("", [*part[0][-1:], box.detail], [show(part[1], len(part[0]))])
        inside = [_fold(graph_of(one, title=name), left) for name, one in box.inside]
        return card("", [box.label, box.detail], inside) if inside else ""

    note = "; ".join(filter(None, [told, _describe_unused(graph.unused)]))
    return show(steps, 0, graph.title, note) if steps else graph.svg


def _make_box(node: Node, *, again: bool = False) -> Box:
    shown = [node.type, node.detail, _find_function(node.scope)]
    where = "/".join(node.group) or node.scope
    told = [f"{node.kind} {node.label}", node.type, node.detail, where and f"in {where}"]
    mark = f"%{node.id}" if node.kind in STEPS else ""
    lines = " · ".join(filter(None, shown)), "\n".join(filter(None, told))
    return Box(node.kind, node.label, *lines, mark, again)


def _find_function(scope: str) -> str:
    """Return the innermost function of a scope that has a name meant for people."""
    names = [name for name in scope.split("/") if name and name[0] not in "_<"]
    return names[-1] if names else ""


# ---------------------------------------------------------------- from a jaxpr
def graph_of(
    closed_jaxpr: Any,
    *,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    variables: int = 0,
    written: int = 0,
    title: str = "",
) -> Graph:
    """Return the graph of a closed jaxpr, as `jax.make_jaxpr` gives it.

    Args:
        closed_jaxpr: the program.
        inputs: a name for each input, such as `"w"` or `"w: f32[64,10]"`; the names of the
            traced function's arguments if None.
        outputs: the same for each output.
        variables: how many inputs, the first ones, are variables.
        written: how many outputs, the last ones, are new values of variables.
        title: the heading of the picture.

    Returns:
        The graph, without what no output depends on (an operation with a side effect stays).

    Raises:
        ValueError: there are more or fewer names than inputs or outputs, or more variables.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> closed = jax.make_jaxpr(jax.nn.relu)(jnp.zeros(3))
        >>> [node.label for node in graph_of(closed).nodes]
        ['x', 'max 0', 'result']
    """
    jaxpr, walk = open_jaxpr(closed_jaxpr), Walk()
    known = getattr(jaxpr, "debug_info", None)
    given = _names("inputs", inputs, getattr(known, "arg_names", None), len(jaxpr.invars))
    taken = _names("outputs", outputs, getattr(known, "result_paths", None), len(jaxpr.outvars))
    for what, many, names in (("variables", variables, given), ("written", written, taken)):
        if not 0 <= many <= len(names):
            raise ValueError(f"graph_of got {what}={many}, and the jaxpr has only {len(names)}.")
    values = [
        walk.source("variable" if i < variables else "argument", name, type_of(var))
        for i, (name, var) in enumerate(zip(given, jaxpr.invars, strict=True))
    ]
    made = zip(taken, jaxpr.outvars, walk.walk(closed_jaxpr, values), strict=True)
    for i, (name, var, value) in enumerate(made):
        walk.add("result" if i < len(taken) - written else "written", name, type_of(var), [value])
    nodes, edges, unused = walk.alive()
    return Graph(nodes, edges, title, [node.name for node in unused])


def _names(
    what: str, given: Sequence[str] | None, known: Sequence[str | None] | None, count: int
) -> list[str]:
    """Return one name for each input or output, without the type that may follow it."""
    if given is not None and len(given) != count:
        raise ValueError(
            f"graph_of got {len(given)} names in {what}=, and the jaxpr has {count} {what}: "
            f"give one name for each, or leave {what}= out."
        )
    if given is None:
        known = known if known is not None and len(known) == count else [None] * count
        given = [name or f"{what[:-1]} {i}" for i, name in enumerate(known)]
    return [re.sub(r"\s*:\s*[\w<>]+\[[^\]]*\]$", "", name.strip()) for name in given]
