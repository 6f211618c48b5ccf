"""A picture of a compiled function: its jaxpr as nodes and edges that a person can read.

`graph_of` walks the equations once. Calls that only group operations (`jit`, custom
derivatives, recomputation) are opened, so that what is seen is what runs; a loop or a branch is
one node that says how often it runs and how much it holds; literals, and broadcasts of them,
are written into the label of the operation that uses them; what reaches no output is left out.

Rules this file keeps:
- jaxprs are read by their attributes alone (`eqns`, `invars`, `aval`, ...), which are the same
  in every release of JAX that we support; nothing is imported from JAX, nothing is run;
- nodes are numbered in program order, so an edge always leads from a lower to a higher id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, final

from jaxvars._graph_svg import Box, draw

Kind = Literal["variable", "argument", "constant", "operation", "control", "result", "written"]

_COMMUTATIVE = frozenset({"add", "add_any", "mul", "max", "min", "and", "or", "xor", "eq", "ne"})
_OPENED = frozenset(
    {
        "jit", "pjit", "closed_call", "core_call", "call", "named_call", "checkpoint", "remat",
        "remat2", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
    }
)  # fmt: skip
_FOLDED = frozenset({"broadcast_in_dim", "convert_element_type", "reshape"})  # of a literal
_PASSED = frozenset({"copy", "copy_p"})  # the same value again: no step of the computation
_COMBINING = ("scatter", "reduce", "select_and")  # what they hold is one small operator
_TOLD = {"axes": "axes", "axis": "axis", "dimension": "axis", "permutation": "order"}
_SHORT = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}


@final
@dataclass(frozen=True, slots=True)
class Node:
    """One box of the picture.

    Attributes:
        id: its position in `Graph.nodes`.
        kind: variable, argument, constant, operation, control (a loop or a branch), result or
            written (a variable's new value).
        name: the primitive's name, or that of the input or output.
        type: shape and dtype of what it yields, such as `f32[32,10]`.
        operands: one entry for each operand: a literal's text, or None for an edge.
        detail: what else is known, such as `axes 0` or `12 ops inside`.
        scope: the functions it was opened from, outermost first, as in `loss/log_softmax`.
    """

    id: int
    kind: Kind
    name: str
    type: str
    operands: tuple[str | None, ...] = ()
    detail: str = ""
    scope: str = ""

    @property
    def label(self) -> str:
        """Return name and literals: `mul 0.1`, or `sub(1, ·)` where the order tells."""
        literals = [text for text in self.operands if text is not None]
        if not literals or self.kind == "control":
            return self.name
        if self.kind in ("result", "written"):
            return f"{self.name} = {literals[0]}"
        wires = len(self.operands) - len(literals)
        last = not any(self.operands[:wires]) or self.name in _COMMUTATIVE
        if len(self.operands) == 1 or (wires and last):
            return f"{self.name} {', '.join(literals)}"
        return f"{self.name}({', '.join(text or '·' for text in self.operands)})"


@final
@dataclass(frozen=True, slots=True)
class Edge:
    """A value that one node makes and another reads.

    Attributes:
        source: the id of the node that makes it.
        target: the id of the node that reads it.
        type: its shape and dtype.
        output: which of the source's outputs it is.
    """

    source: int
    target: int
    type: str
    output: int = 0


@final
class Graph:
    """The operations of a function and the values that pass between them.

    Shown as a picture in a notebook; `print(graph)` lists it as text.

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
        Graph('step': 1 variable, 1 argument, 2 operations, 1 written variable; 4 edges)
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
        self, nodes: Sequence[Node], edges: Sequence[Edge], title: str = "", unused: Any = ()
    ) -> None:
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.edges: tuple[Edge, ...] = tuple(edges)
        self.title = title
        self.unused: tuple[str, ...] = tuple(unused)
        self._svg = ""

    @property
    def svg(self) -> str:
        """Return the picture as an SVG document."""
        if not self._svg:
            note = f"not used: {', '.join(self.unused)}" if self.unused else ""
            arrows = [(edge.source, edge.target) for edge in self.edges]
            self._svg = draw([_box(node) for node in self.nodes], arrows, self.title, note)
        return self._svg

    def _repr_svg_(self) -> str:
        return self.svg

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
        counts = [_plural(self.count(kind), name) for kind, name in _NAMES.items()]
        told = ", ".join(filter(None, counts)) or "empty"
        return f"Graph({self.title!r}: {told}; {_plural(len(self.edges), 'edge') or 'no edges'})"

    def __str__(self) -> str:
        arriving: dict[int, list[Edge]] = {}
        for edge in self.edges:
            arriving.setdefault(edge.target, []).append(edge)
        lines = [self._line(node, arriving.get(node.id, [])) for node in self.nodes]
        unused = [f"not used: {', '.join(self.unused)}"] if self.unused else []
        return "\n".join([*filter(None, [self.title]), *lines, *unused])

    def _line(self, node: Node, arriving: Sequence[Edge]) -> str:
        edges = iter(arriving)
        named = [_reference(next(edges)) if text is None else text for text in node.operands]
        if node.kind in ("result", "written"):
            return f"{node.kind} {node.name}: {', '.join(named)}: {node.type}"
        call = f"({', '.join(named)})" if named else f" {node.name}"
        detail = f"  # {node.detail}" if node.detail else ""
        name = node.name + call if named else node.kind + call
        return f"%{node.id} = {name}: {node.type}{detail}"


_NAMES: dict[Kind, str] = {
    "variable": "variable",
    "argument": "argument",
    "constant": "constant",
    "operation": "operation",
    "control": "loop or branch",
    "result": "result",
    "written": "written variable",
}


def _plural(count: int, name: str) -> str:
    if name == "loop or branch":
        name, count_name = "loop/branch", "loops/branches"
    else:
        count_name = name + "s"
    return f"{count} {name if count == 1 else count_name}" if count else ""


def _reference(edge: Edge) -> str:
    return f"%{edge.source}:{edge.output}" if edge.output else f"%{edge.source}"


def _box(node: Node) -> Box:
    shown = [node.type, node.detail, _told(node.scope)]
    told = [f"{node.kind} {node.label}", node.type, node.detail, node.scope and f"in {node.scope}"]
    detail, tooltip = " · ".join(filter(None, shown)), "\n".join(filter(None, told))
    return Box(node.kind, node.label, detail, tooltip, f"%{node.id}")


def _told(scope: str) -> str:
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
    jaxpr, builder = _open(closed_jaxpr), _Builder()
    known = getattr(jaxpr, "debug_info", None)
    given = _names("inputs", inputs, getattr(known, "arg_names", None), len(jaxpr.invars))
    taken = _names("outputs", outputs, getattr(known, "result_paths", None), len(jaxpr.outvars))
    for what, many, names in (("variables", variables, given), ("written", written, taken)):
        if not 0 <= many <= len(names):
            raise ValueError(f"graph_of got {what}={many}, and the jaxpr has only {len(names)}.")
    kinds: list[Kind] = ["variable"] * variables + ["argument"] * (len(given) - variables)
    values = [
        builder.source(kind, name, _type(var))
        for kind, name, var in zip(kinds, given, jaxpr.invars, strict=True)
    ]
    made = builder.walk(closed_jaxpr, values, "")
    kinds = ["result"] * (len(taken) - written) + ["written"] * written
    for kind, name, var, value in zip(kinds, taken, jaxpr.outvars, made, strict=True):
        builder.add(kind, name, _type(var), [value])
    return builder.graph(title)


class _Wire(NamedTuple):
    """One output of a node, on its way to a reader."""

    node: int
    output: int
    type: str


_Source: TypeAlias = _Wire | str  # a str is a literal's text


@final
class _Builder:
    """Collects nodes and edges while it walks the equations."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.kept: set[int] = set()  # nodes that count even if nobody reads them
        self.constants: dict[int, _Source] = {}  # by identity: one array may serve many calls

    def add(
        self, kind: Kind, name: str, made: str, read: Iterable[_Source] = (), **told: str
    ) -> int:
        """Add a node that makes values of type `made` from those it reads; return its id."""
        target, read = len(self.nodes), list(read)
        operands = tuple(source if isinstance(source, str) else None for source in read)
        self.nodes.append(Node(target, kind, name, made, operands, **told))
        wires = [source for source in read if not isinstance(source, str)]
        self.edges += [Edge(wire.node, target, wire.type, wire.output) for wire in wires]
        return target

    def source(self, kind: Kind, name: str, type_: str) -> _Source:
        """Add a node that reads nothing; return its value."""
        return _Wire(self.add(kind, name, type_), 0, type_)

    def walk(self, closed: Any, values: Sequence[_Source], scope: str) -> list[_Source]:
        """Add the equations of a jaxpr applied to values; return its outputs."""
        jaxpr = _open(closed)
        env: dict[Any, _Source] = dict(zip(jaxpr.invars, values, strict=True))
        consts = zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=False)
        env.update((var, self.constant(value, var)) for var, value in consts)
        for eqn in jaxpr.eqns:
            read = [_read(env, atom) for atom in eqn.invars]
            env.update(zip(eqn.outvars, self.equation(eqn, read, scope), strict=True))
        return [_read(env, atom) for atom in jaxpr.outvars]

    def constant(self, value: Any, var: Any) -> _Source:
        """Return an array that the program closes over: its number, or a node for it."""
        if id(value) not in self.constants:
            text = _number(value) if getattr(value, "shape", None) == () else ""
            self.constants[id(value)] = text or self.source("constant", "constant", _type(var))
        return self.constants[id(value)]

    def equation(self, eqn: Any, read: list[_Source], scope: str) -> list[_Source]:
        """Add an equation, or what is inside it; return its outputs."""
        name, params = eqn.primitive.name, eqn.params
        if body := _body(eqn):
            called = str(params.get("name", ""))
            return self.walk(body, read, "/".join(filter(None, (scope, called))))
        if name in _PASSED or (name in _FOLDED and len(read) == 1 and isinstance(read[0], str)):
            return read
        types = [_type(var) for var in eqn.outvars]
        inside = [] if name.startswith(_COMBINING) else list(_inner(params))
        kind: Kind = "control" if inside else "operation"
        named, detail = _control(name, params, inside) if inside else (name, _detail(params))
        if name == "integer_pow":
            read = [*read, str(params["y"])]
        node = self.add(kind, named, _several(types), read, detail=detail, scope=scope)
        if getattr(eqn, "effects", None):
            self.kept.add(node)
        return [_Wire(node, i, type_) for i, type_ in enumerate(types)]

    def graph(self, title: str) -> Graph:
        """Return what is alive, numbered anew."""
        alive = self.kept | {n.id for n in self.nodes if n.kind in ("result", "written")}
        for edge in reversed(self.edges):  # targets only go down, so one pass finds all
            if edge.target in alive:
                alive.add(edge.source)
        new = {old: i for i, old in enumerate(sorted(alive))}
        nodes = [replace(node, id=new[node.id]) for node in self.nodes if node.id in new]
        edges = [
            replace(edge, source=new[edge.source], target=new[edge.target])
            for edge in self.edges
            if edge.target in new
        ]
        inputs = [n for n in self.nodes if n.kind in ("variable", "argument")]
        return Graph(nodes, edges, title, [n.name for n in inputs if n.id not in new])


def _open(jaxpr: Any) -> Any:
    """Return the jaxpr inside a closed one, or the jaxpr itself."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def _inner(params: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the jaxprs among an equation's parameters."""
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(_open(item), "eqns"):
                yield item


def _body(eqn: Any) -> Any:
    """Return the jaxpr that a transparent call runs, or None."""
    bodies = list(_inner(eqn.params)) if eqn.primitive.name in _OPENED else []
    fits = len(bodies) == 1 and len(_open(bodies[0]).invars) == len(eqn.invars)
    return bodies[0] if fits else None


def _operations(jaxpr: Any) -> int:
    """Count the operations in a jaxpr, those of its loops and branches once."""
    total = 0
    for eqn in _open(jaxpr).eqns:
        own = eqn.primitive.name not in _PASSED and not _body(eqn)
        total += own + sum(map(_operations, _inner(eqn.params)))
    return total


def _control(name: str, params: Mapping[str, Any], inside: Sequence[Any]) -> tuple[str, str]:
    label = f"{name} ×{params['length']}" if "length" in params else name
    branches = f"{len(params['branches'])} branches, " if "branches" in params else ""
    return label, f"{branches}{_plural(sum(map(_operations, inside)), 'op') or 'no ops'} inside"


def _detail(params: Mapping[str, Any]) -> str:
    """Return the parameters that say along what an operation works."""
    told: list[str] = []
    for name, word in _TOLD.items():
        if (value := params.get(name)) is not None:
            several = value if isinstance(value, (tuple, list)) else (value,)
            told.append(f"{word} {','.join(str(v) for v in several)}" if several else "")
    return " ".join(filter(None, told))


def _read(env: Mapping[Any, _Source], atom: Any) -> _Source:
    return (_number(atom.val) or _type(atom)) if hasattr(atom, "val") else env[atom]


def _number(value: Any) -> str:
    """Return a scalar as short text; nothing if it is not a known number."""
    try:
        number = value.item() if hasattr(value, "item") else value
    except (TypeError, ValueError):  # a tracer, or several numbers
        return ""
    if isinstance(number, (bool, int)):
        return repr(number if isinstance(number, bool) else int(number))
    return f"{number:.4g}" if isinstance(number, (float, complex)) else ""


def _type(var: Any) -> str:
    """Return shape and dtype, such as `f32[64,10]`."""
    dtype = getattr(var.aval, "dtype", None)
    if dtype is None:
        return str(var.aval)
    name = str(getattr(dtype, "name", dtype))
    for long, short in _SHORT.items():
        name = name.replace(long, short)
    return f"{name}[{','.join(map(str, var.aval.shape))}]"


def _several(types: Sequence[str]) -> str:
    return ", ".join(types[:2]) + (f", +{len(types) - 2}" if len(types) > 2 else "")


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
