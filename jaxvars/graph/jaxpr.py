"""A jaxpr's equations as nodes and edges: the part of the picture that knows what a jaxpr is.

Calls that only group operations (`jit`, custom derivatives, recomputation) are opened; a loop or
a branch is one node; literals, and broadcasts of them, are written into the node that uses them.
What stands twice in a program, as the forward pass does that a tape differentiates, is one node:
XLA merges it, too. Operations with effects, and those that draw, are not merged.

Rules this file keeps:
- jaxprs are read by their attributes alone (`eqns`, `invars`, `aval`, ...), which are the same
  in every release of JAX that we support; nothing is run;
- nodes are numbered in program order, so an edge always leads from a lower to a higher id.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, final

from jaxvars.display.strings import count_text
from jaxvars.objects.identity import exact, held
from jaxvars.tracing.jaxprs import is_single, open_jaxpr, value_key

Kind = Literal[
    "variable", "argument", "constant", "operation", "control", "group", "result", "written"
]

_COMMUTATIVE = frozenset({"add", "add_any", "mul", "max", "min", "and", "or", "xor", "eq", "ne"})
_OPENED = frozenset({
    "jit", "pjit", "closed_call", "core_call", "call", "named_call", "checkpoint", "remat",
    "remat2", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr",
})  # fmt: skip
_FOLDED = frozenset({"broadcast_in_dim", "convert_element_type", "reshape"})  # of a literal
_PASSED = frozenset({"copy", "copy_p"})  # the same value again: no step of the computation
_COMBINING = ("scatter", "reduce", "select_and")  # what they hold is one small operator
_TOLD = {"axes": "axes", "axis": "axis", "dimension": "axis", "permutation": "order"}
BACKWARD = "backward"  # the group of what JAX makes of the reverse pass
_TRANSFORM = re.compile(r"\b(jvp|transpose|vmap|checkpoint|rematted_computation)\(")
_SHORT = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}


@final
@dataclass(frozen=True, slots=True)
class Node:
    """One box of the picture.

    Attributes:
        id: its position in `Graph.nodes`.
        kind: variable, argument, constant, operation, control (a loop or a branch), group (of
            operations, in a folded graph), result or written (a variable's new value).
        name: the primitive's name, or that of the input or output.
        type: shape and dtype of what it yields, such as `f32[32,10]`.
        operands: one entry for each operand: a literal as a string, or None for an edge.
        detail: what else is known, such as `axes 0` or `12 ops inside`.
        scope: the functions it was opened from, outermost first, as in `loss/log_softmax`.
        group: what it is part of, outermost first: "backward" in the reverse pass of a
            derivative, named scopes, and functions.
        inside: the programs of a loop or branch, each with what it is called.
    """

    id: int
    kind: Kind
    name: str
    type: str
    operands: tuple[str | None, ...] = ()
    detail: str = ""
    scope: str = ""
    group: tuple[str, ...] = ()
    inside: tuple[tuple[str, Any], ...] = field(default=(), repr=False, compare=False)

    @property
    def label(self) -> str:
        """Return name and literals: `mul 0.1`, or `sub(1, ·)` where the order tells."""
        literals = [literal for literal in self.operands if literal is not None]
        if not literals or self.kind == "control":
            return self.name
        if self.kind in ("result", "written"):
            return f"{self.name} = {literals[0]}"
        last = self.operands[0] is None or self.name in _COMMUTATIVE
        if len(self.operands) == 1 or (len(self.operands) == 2 and len(literals) == 1 and last):
            return f"{self.name} {literals[0]}"
        return f"{self.name}({', '.join(literal or '·' for literal in self.operands)})"


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


class Wire(NamedTuple):
    """One output of a node, on its way to a reader."""

    node: int
    output: int
    type: str


class Literally(str):
    """The string of a literal, and what tells it from others that look the same."""

    __slots__ = ("key",)

    def __new__(cls, shown: str, key: Any) -> Literally:
        made = super().__new__(cls, shown)
        made.key = key
        return made


Source: TypeAlias = Wire | Literally


@final
class Walk:
    """Collects nodes and edges while it walks the equations."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.kept: set[int] = set()  # nodes that count even if they are not read
        self.constants: dict[int, Source] = {}  # by identity: one array may serve many calls
        self._known: dict[Any, int] = {}  # nodes of operations that may be met again

    def add(
        self, kind: Kind, name: str, made: str, read: Iterable[Source] = (), **told: Any
    ) -> int:
        """Add a node that makes values of type `made` from those it reads; return its id."""
        target, read = len(self.nodes), list(read)
        operands = tuple(source if isinstance(source, str) else None for source in read)
        self.nodes.append(Node(target, kind, name, made, operands, **told))
        wires = [source for source in read if not isinstance(source, str)]
        self.edges += [Edge(wire.node, target, wire.type, wire.output) for wire in wires]
        return target

    def source(self, kind: Kind, name: str, type_: str) -> Source:
        """Add a node that reads nothing; return its value."""
        return Wire(self.add(kind, name, type_), 0, type_)

    def walk(
        self, closed: Any, values: Sequence[Source], scope: str = "", group: tuple[str, ...] = ()
    ) -> list[Source]:
        """Add the equations of a jaxpr applied to values; return its outputs."""
        jaxpr = open_jaxpr(closed)
        env: dict[Any, Source] = dict(zip(jaxpr.invars, values, strict=True))
        consts = zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=False)
        env.update((var, self.constant(value, var)) for var, value in consts)
        for eqn in jaxpr.eqns:
            read = [_read(env, atom) for atom in eqn.invars]
            made = self.equation(eqn, read, scope, _join_group(group, eqn))
            env.update(zip(eqn.outvars, made, strict=True))
        return [_read(env, atom) for atom in jaxpr.outvars]

    def constant(self, value: Any, var: Any) -> Source:
        """Return an array that the program closes over: its number, or a node for it."""
        if id(value) not in self.constants:
            shown = _format_number(value) if getattr(value, "shape", None) == () else ""
            known = Literally(shown, value_key(value)) if shown else None
            self.constants[id(value)] = known or self.source("constant", "constant", type_of(var))
        return self.constants[id(value)]

    def equation(
        self, eqn: Any, read: list[Source], scope: str, group: tuple[str, ...]
    ) -> list[Source]:
        """Add an equation, or what is inside it; return its outputs."""
        name, params = eqn.primitive.name, eqn.params
        if body := _find_body(eqn):
            called = str(params.get("name", ""))
            group = (*group, called) if called[:1] not in ("", "_", "<") else group
            return self.walk(body, read, "/".join(filter(None, (scope, called))), group)
        types = [type_of(var) for var in eqn.outvars]
        if name in _PASSED:
            return read
        if name in _FOLDED and len(read) == 1 and isinstance(read[0], Literally):
            return [Literally(read[0], (name, read[0].key, *types))]
        key = _key_of(eqn, read, types)
        node = self._known.get(key)
        if node is None:
            node = self._add_operation(eqn, read, types, scope, group)
            if key is not None:
                self._known[key] = node
        return [Wire(node, i, type_) for i, type_ in enumerate(types)]

    def _add_operation(
        self, eqn: Any, read: list[Source], types: list[str], scope: str, group: tuple[str, ...]
    ) -> int:
        name, params = eqn.primitive.name, eqn.params
        inside = [] if name.startswith(_COMBINING) else _find_jaxprs(params)
        kind: Kind = "control" if inside else "operation"
        named, detail = _describe(name, params, inside) if inside else (name, _detail(params))
        if name == "integer_pow":
            read = [*read, Literally(str(params["y"]), None)]
        made = ", ".join([*types[:2], *([f"+{len(types) - 2}"] if len(types) > 2 else [])])
        told = {"detail": detail, "scope": scope, "group": group}
        node = self.add(kind, named, made, read, **told, inside=_name_parts(params, inside))
        if getattr(eqn, "effects", None):
            self.kept.add(node)
        return node

    def alive(self) -> tuple[list[Node], list[Edge], list[Node]]:
        """Return nodes and edges that count, with new numbers, and the inputs left out."""
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
        unused = [n for n in self.nodes if n.id not in new and n.kind in ("variable", "argument")]
        return nodes, edges, unused


def _key_of(eqn: Any, read: Sequence[Source], types: Sequence[str]) -> Any:
    """Return what an equation that gives the same has, too; None if it is not to be merged."""
    if getattr(eqn, "effects", None) or is_single(eqn.primitive.name, eqn.params):
        return None
    inputs = [x.key if isinstance(x, Literally) else x for x in read]
    try:
        key = eqn.primitive, tuple(inputs), exact(eqn.params, held), eqn.ctx, *types
        hash(key)
    except (TypeError, ValueError):  # of a parameter that cannot be compared
        return None
    return key


def _join_group(group: tuple[str, ...], eqn: Any) -> tuple[str, ...]:
    """Add to a group what JAX notes of an equation: named scopes, and the reverse pass."""
    stack = str(getattr(getattr(eqn, "source_info", None), "name_stack", ""))
    is_reverse = "transpose(" in stack and BACKWARD not in group
    names = [name for name in _TRANSFORM.sub("", stack).replace(")", "").split("/") if name]
    return (*([BACKWARD] if is_reverse else []), *group, *names)


def _name_parts(params: Mapping[str, Any], inside: Sequence[Any]) -> tuple[tuple[str, Any], ...]:
    """Return what each program of a loop or branch is called."""
    names = {id(value): name.removesuffix("_jaxpr") for name, value in params.items()}
    several = itertools.count()
    return tuple((names.get(id(one)) or f"branch {next(several)}", one) for one in inside)


def _find_jaxprs(params: Mapping[str, Any]) -> list[Any]:
    """Return the jaxprs among an equation's parameters."""
    values = itertools.chain.from_iterable(map(_as_sequence, params.values()))
    return [value for value in values if hasattr(open_jaxpr(value), "eqns")]


def _as_sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def _find_body(eqn: Any) -> Any:
    """Return the jaxpr that a transparent call runs, or None."""
    bodies = _find_jaxprs(eqn.params) if eqn.primitive.name in _OPENED else []
    fits = len(bodies) == 1 and len(open_jaxpr(bodies[0]).invars) == len(eqn.invars)
    return bodies[0] if fits else None


def _count_operations(jaxpr: Any) -> int:
    """Count the operations in a jaxpr, those of its loops and branches once."""
    total = 0
    for eqn in open_jaxpr(jaxpr).eqns:
        own = eqn.primitive.name not in _PASSED and not _find_body(eqn)
        total += own + sum(map(_count_operations, _find_jaxprs(eqn.params)))
    return total


def _describe(name: str, params: Mapping[str, Any], inside: Sequence[Any]) -> tuple[str, str]:
    label = f"{name} ×{params['length']}" if "length" in params else name
    branches = f"{len(params['branches'])} branches, " if "branches" in params else ""
    count = sum(map(_count_operations, inside))
    return label, f"{branches}{count_text(count, 'op') if count else 'no ops'} inside"


def _detail(params: Mapping[str, Any]) -> str:
    """Return the parameters that say along what an operation works."""
    told = [(word, params.get(name)) for name, word in _TOLD.items()]
    known = [(word, _as_sequence(value)) for word, value in told if value is not None]
    return " ".join(f"{word} {','.join(map(str, values))}" for word, values in known if values)


def _read(env: Mapping[Any, Source], atom: Any) -> Source:
    if not hasattr(atom, "val"):
        return env[atom]
    return Literally(
        _format_number(atom.val) or type_of(atom), (value_key(atom.val), type_of(atom))
    )


def _format_number(value: Any) -> str:
    """Return a scalar as a short string; nothing if it is not a known number."""
    try:
        number = value.item() if hasattr(value, "item") else value
    except (TypeError, ValueError):  # a tracer, or several numbers
        return ""
    if isinstance(number, (bool, int)):
        return repr(number if isinstance(number, bool) else int(number))
    return f"{number:.4g}" if isinstance(number, (float, complex)) else ""


def type_of(var: Any) -> str:
    """Return shape and dtype, such as `f32[64,10]`."""
    dtype = getattr(var.aval, "dtype", None)
    if dtype is None:
        return str(var.aval)
    name = str(getattr(dtype, "name", dtype))
    for long, short in _SHORT.items():
        name = name.replace(long, short)
    return f"{name}[{','.join(map(str, var.aval.shape))}]"
