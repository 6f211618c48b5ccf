"""The graph of objects in a checkpoint: who is called what in whom, by TensorFlow's rules.

Rules this file keeps:
- a value is named after the shortest way to its variable, first come first served; "/" and "." in
  a part of it are escaped;
- two graphs are matched from their roots by the names of the edges: so an object is found under
  any of its names, and a part of a model under those of the whole;
- the state of an optimizer is named by numbers, as in Keras, and a slot is matched by its variable:
  names of variables and the order in which they were met do not matter; a slot whose variable is
  not in the graph goes by what it was restored from, or by its name, if no other has that;
- variables are matched by name where TensorFlow wrote names only;
- what leads to no variable is not written.
"""

from __future__ import annotations

import json
from abc import ABC
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import jax
import numpy as np

from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.function import BoundFunction
from jaxvars.compiler.function import Function as CoreFunction
from jaxvars.core.variable import Variable
from jaxvars.objects.traversal import CLOSED_TYPES as CLOSED
from jaxvars.objects.traversal import Tied, resolve_proxy
from jaxvars.objects.traversal import attributes_of as attributes
from jaxvars.optimizers.optimizer import Optimizer
from jaxvars.tf.context.scope import name_scope
from jaxvars.tf.functions.function import Function
from jaxvars.tf.tensors.tensor import Tensor

Edges: TypeAlias = dict[str, int]
Slot: TypeAlias = tuple[int, int | str, str]  # of an optimizer, for a variable, called so

_NONE: Mapping[int, int] = {}
GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
UNTOLD = ""
"""Stands for one of several variables of a name, none of which is in the graph."""
ROOT = "."
"""The name of a variable that is the root itself."""

_HOLD_NONE = (Function, CoreFunction, BoundFunction, ConcreteFunction, name_scope)


class Node(ABC):  # noqa: B024 - what it has is right for most
    """An object that declares its children; others have their attributes."""

    __slots__ = ()

    def children(self) -> Iterator[tuple[str, object]]:
        """Yield the children with their names: none."""
        yield from ()

    def strings(self) -> dict[Variable, Callable[[], str]]:
        """Return the variables that hold a state as a string, and what returns that: none."""
        return {}

    def refusal(self, held: set[int]) -> Exception | None:
        """Return why its state cannot be saved with the cells of some keys: it can."""
        return None


@final
@dataclass(frozen=True)
class Graph:
    """Objects, as numbers; the root is 0.

    Attributes:
        edges: the children of each, by name.
        names: of the values, by object.
        objects: the objects themselves; none in a graph that was read.
        slots: the slots of optimizers, by object.
        kind: of the names that were read: "keys" are whole keys of TensorFlow's, as are "names",
            which are matched with those of variables.
    """

    edges: list[Edges]
    names: dict[int, str]
    objects: list[object]
    slots: dict[int, Slot] = field(default_factory=dict[int, Slot])
    kind: str = ""

    def key_of(self, name: str) -> str:
        """Return TensorFlow's key of a value."""
        return name if self.kind else key_of(name)

    def to_string(self) -> str:
        """Return what is written: the objects that lead to variables."""
        kept = sorted({0, *self._find_leading()})
        new = {old: i for i, old in enumerate(kept)}
        edges = [{n: new[c] for n, c in self.edges[old].items() if c in new} for old in kept]
        names = {str(new[old]): name for old, name in self.names.items()}
        slots = {
            str(new[n]): (new[owner], v if isinstance(v, str) else new[v], slot)
            for n, (owner, v, slot) in self.slots.items()
        }
        return json.dumps({"children": edges, "values": names, "slots": slots})

    def _find_leading(self) -> set[int]:
        """Return the objects from which a variable can be reached."""
        parents: dict[int, set[int]] = {}
        for parent, edges in enumerate(self.edges):
            for child in edges.values():
                parents.setdefault(child, set()).add(parent)
        found, waiting = set(self.names), list(self.names)
        while waiting:
            more = parents.get(waiting.pop(), set()) - found
            found |= more
            waiting += more
        return found


def graph_of(root: object, known: Mapping[int, int] = _NONE) -> Graph:
    """Return the graph of all that can be reached from an object.

    Args:
        root: it.
        known: the numbers, in a graph that was saved, of variables that were restored from it, by
            key of their cells. Slots of those that are not in the graph are named `~number`.
    """
    root = resolve_proxy(root)
    numbers, paths = {id(root): 0}, [""]
    graph = Graph([], {}, [root])
    for i, one in enumerate(graph.objects):  # grows meanwhile: breadth first
        graph.edges.append({})
        if isinstance(one, Variable):
            graph.names[i] = paths[i]
            continue
        for name, child in children_of(one):
            number = numbers.setdefault(id(child), len(graph.objects))
            graph.edges[i][name] = number
            if number == len(graph.objects):
                graph.objects.append(child)
                paths.append(f"{paths[i]}/{escape(name)}" if paths[i] else escape(name) or ROOT)
    for i, one in enumerate(graph.objects):
        tied = list(_list_tied(one))
        outside = {id(v): v for v, _, _ in tied if id(v) not in numbers}.values()
        labels = {id(v): ~known[k] if (k := v._cell.key) in known else v.name for v in outside}
        counts = Counter(labels.values())
        told = {v: label if counts[label] == 1 else UNTOLD for v, label in labels.items()}
        for v, name, slot in tied:
            who = numbers[id(v)] if id(v) in numbers else told[id(v)]
            graph.slots[numbers[id(slot)]] = (i, who, name)
    return graph


def _list_tied(value: Any) -> Iterator[tuple[Variable, str, Variable]]:
    """Yield variables, and what an optimizer or a dict has for them, with what it is called."""
    if isinstance(value, Optimizer):
        for variable, slots in value._list_slots():
            yield from ((variable, name, slot) for name, slot in slots.items())
    elif type(value) is dict:
        ties: dict[Any, Any] = {k.tie(): v for k, v in value.items() if isinstance(k, Tied)}
        for variable, made in ties.items():
            if variable is not None and isinstance(own := resolve_proxy(made), Variable):
                yield variable, "", own


def refuse_lost(graph: Graph) -> None:
    """Raise ValueError where a file could not hold, or not tell, what is in a graph.

    Raises:
        ValueError: when something at the root holds tensors and no variable, or an optimizer has
            slots for several variables of a name that are not in the graph.
        FailedPreconditionError: when the state of an iterator cannot be saved, or without a
            variable that is not in the graph.
    """
    objects: Any = graph.objects
    held = {objects[number]._cell.key for number in graph.names}
    for one in objects:
        if isinstance(one, Node) and (refusal := one.refusal(held)):
            raise refusal
    leading = graph._find_leading()
    for name, number in graph.edges[0].items():
        if number not in leading and (found := _tensor_in(graph, number)) is not None:
            raise ValueError(
                f"`Checkpoint` was expecting {name} to hold variables, and it holds tensors, as at "
                f"{name}{found}, which are constants that no checkpoint keeps. Make them "
                "variables: tf.Variable(value)."
            )
    if any(who == UNTOLD for _, who, _ in graph.slots.values()):
        raise ValueError(
            "An optimizer in the Checkpoint has slots for several variables of one name that are "
            "not in it: which belong to which could not be told when they are restored. Put the "
            "model into the Checkpoint, too: tf.train.Checkpoint(model=model, optimizer=optimizer)."
        )


def _tensor_in(graph: Graph, number: int) -> str | None:
    """Return the way from an object to a tensor; None if there is none."""
    seen, waiting = {number}, [(number, "")]
    while waiting:
        number, path = waiting.pop()
        for name, value in _parts(graph.objects[number]):
            if isinstance(value, Tensor | jax.Array | np.ndarray):
                return f"{path}.{name}"
        new = [(n, f"{path}.{name}") for name, n in graph.edges[number].items() if n not in seen]
        waiting += new
        seen |= {n for n, _ in new}
    return None


def children_of(value: object) -> Iterator[tuple[str, object]]:
    """Yield the children of an object that may hold variables, or be some."""
    for name, child in _parts(value):
        child = resolve_proxy(child)
        if not isinstance(child, (*CLOSED, *_HOLD_NONE)):
            yield name, child


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Node):
        yield from value.children()
    elif isinstance(value, Mapping):
        yield from ((str(key), child) for key, child in value.items())
    elif isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        yield from ((str(i), child) for i, child in enumerate(value))
    elif isinstance(value, tuple):
        yield from zip(value._fields, value, strict=True)  # pyright: ignore[reportAttributeAccessIssue] - a named tuple
    elif not isinstance(value, Variable):
        if isinstance(value, Optimizer):
            yield from _state_of(value)
        yield from attributes(value).items()


def _state_of(optimizer: Optimizer) -> Iterator[tuple[str, object]]:
    """Yield the variables of an optimizer by Keras's names: slots by number, not by name."""
    rate = optimizer._rate
    firsts = [optimizer.iterations, *([rate] if isinstance(rate, Variable) else [])]
    yield from zip(("_iterations", "_learning_rate"), firsts, strict=False)
    own: dict[str, dict[str, Variable]] = vars(optimizer).get("slots", {})  # and not those inside
    slots = [one[kind] for one in own.values() for kind in sorted(one)]
    yield "_variables", [*firsts, *slots]


def escape(name: str) -> str:
    """Return a part of a name as TensorFlow writes it.

    >>> escape("a/b.c")
    'a.Sb..c'
    """
    return name.replace(".", "..").replace("/", ".S")


def from_string(string: str) -> Graph:
    """Return the graph that was written.

    Raises:
        ValueError: when it is none.
    """
    facts: Any = json.loads(string)
    names = {int(number): str(name) for number, name in facts["values"].items()}
    slots = {int(number): (int(i), v, str(name)) for number, (i, v, name) in facts["slots"].items()}
    return Graph([dict(edges) for edges in facts["children"]], names, [], slots)


def from_names(names: Any) -> Graph:
    """Return the graph of a checkpoint that has none: a tree, from the paths of its values."""
    graph = Graph([{}], {}, [])
    for name in names:
        number = 0
        for part in name.split("/"):
            number = graph.edges[number].setdefault(part, len(graph.edges))
            if number == len(graph.edges):
                graph.edges.append({})
        graph.names[number] = name
    return graph


def match_graphs(graph: Graph, saved: Graph) -> dict[int, int]:
    """Return which object that was saved is which of a graph.

    One of the graph may be several that were saved; one that was saved is the first that is found.
    """
    if saved.kind == "names":
        return _match_names(graph, saved)
    found = {0: 0}
    waiting = deque([(0, 0)])
    while waiting:
        its, mine = waiting.popleft()
        for name, child in saved.edges[its].items():
            own = graph.edges[mine].get(name)
            if saved.kind == "keys" and own is not None:  # Keras holds an optimizer of jaxvars so
                own = graph.edges[own].get("wrapped", own)
            is_slot = child in saved.slots or own in graph.slots
            if own is not None and child not in found and not is_slot:
                found[child] = own
                waiting.append((child, own))
    slots = {slot: number for number, slot in graph.slots.items() if slot[1] != UNTOLD}
    for its, (optimizer, v, name) in saved.slots.items():
        who = v if isinstance(v, str) else found.get(v, ~v)
        own = slots.get((found.get(optimizer, -1), who, name))
        if own is not None:
            found[its] = own
    return found


def _match_names(graph: Graph, saved: Graph) -> dict[int, int]:
    """Return which value of a name is which variable's, unless several have that name."""
    objects: Any = graph.objects
    names = Counter(objects[own].name for own in graph.names)
    own = {objects[n].name: n for n in graph.names if names[objects[n].name] == 1}
    return {its: own[name] for its, name in saved.names.items() if name in own}


def by_saved_name(graph: Graph, saved: Graph) -> dict[str, Variable | None]:
    """Return the variables of a graph by the names of their values; others by a name of theirs.

    A value whose variable has another one already has None.
    """
    pairs = match_graphs(graph, saved)
    found: dict[str, Variable | None] = {}
    left: dict[int, Any] = {number: graph.objects[number] for number in graph.names}
    for its, name in saved.names.items():
        if pairs.get(its) in graph.names:
            found[name] = left.pop(pairs[its], None)
    return {**found, **{f"{graph.names[n]}/-": v for n, v in left.items()}}  # no value's name


def by_name(graph: Graph) -> dict[str, Variable]:
    """Return the variables of a graph by their names."""
    objects: Any = graph.objects
    return {name: objects[number] for number, name in graph.names.items()}


def key_of(name: str) -> str:
    """Return TensorFlow's key of a value."""
    return name if name == GRAPH else f"{'' if name == ROOT else name}{SUFFIX}"
