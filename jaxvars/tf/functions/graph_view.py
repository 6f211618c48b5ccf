"""`ConcreteFunction.graph`: the operations of a program, as TensorFlow's graphs show them."""

from __future__ import annotations

from typing import Any, NamedTuple, final

from jaxvars.tf.tensors.attributes import getter


class Operation(NamedTuple):
    """An operation of a program.

    Attributes:
        name: its kind, with a number from the second on.
        type: what JAX calls it.
    """

    name: str
    type: str


class Node(NamedTuple):
    """A node of a graph.

    Attributes:
        name: what it is called.
        op: what it does.
        input: the names of the nodes that it takes the results of.
    """

    name: str
    op: str
    input: list[str]


@final
class GraphDef:
    """The nodes of a graph; as text it is the program that is passed to XLA.

    Attributes:
        node: the nodes: arguments, operations, and what is returned.
    """

    def __init__(self, node: list[Node], concrete: Any) -> None:
        self.node = node
        self._concrete = concrete

    def __str__(self) -> str:
        return self._concrete.core.stablehlo


@final
class Graph:
    """The operations of a program.

    Attributes:
        name: of the function.
    """

    def __init__(self, program: Any, name: str, concrete: Any) -> None:
        self._program = program
        self._concrete = concrete
        self.name = name

    def get_operations(self) -> list[Operation]:
        """Return the operations, in the order in which they run."""
        counts: dict[str, int] = {}
        found: list[Operation] = []
        for equation in self._program.jaxpr.eqns:
            kind = equation.primitive.name
            count = counts[kind] = counts.get(kind, -1) + 1
            found.append(Operation(f"{kind}_{count}" if count else kind, kind))
        return found

    picture = getter("_concrete.core.graph", "The program as a picture, shown in a notebook.")
    variables = getter("_concrete.variables", "The variables that it reads or assigns.")
    trainable_variables = getter(
        "_concrete.trainable_variables", "Those of them that are trainable."
    )
    inputs = getter("_concrete.inputs", "The specs of its tensors, in order.")
    outputs = getter("_concrete.outputs", "The specs of the tensors that it returns, in order.")
    structured_input_signature = getter(
        "_concrete.structured_input_signature", "Positional and named arguments, with specs."
    )
    structured_outputs = getter(
        "_concrete.structured_outputs", "The result, with `tf.TensorSpec`s."
    )

    def as_graph_def(self, *_: Any, **__: Any) -> GraphDef:
        """Return the nodes: arguments, operations in the order in which they run, results."""
        jaxpr = self._program.jaxpr
        captured = len(jaxpr.invars) - len(self.inputs)
        arguments = [str(spec.name) for spec in self.inputs]
        names = dict(zip(jaxpr.invars[captured:], arguments, strict=True))
        names.update(
            (var, f"captured_{i}" if i else "captured")
            for i, var in enumerate(jaxpr.invars[:captured])
        )
        nodes = [Node(name, "Placeholder", []) for name in names.values()]
        for equation, one in zip(jaxpr.eqns, self.get_operations(), strict=True):
            given = [
                names.get(var, "constant") for var in equation.invars if not hasattr(var, "val")
            ]
            nodes.append(Node(one.name, one.type, given))
            names.update(dict.fromkeys(equation.outvars, one.name))
        for i, var in enumerate(jaxpr.outvars):
            given = [] if hasattr(var, "val") else [names.get(var, "constant")]
            nodes.append(Node(f"Identity_{i}" if i else "Identity", "Identity", given))
        return GraphDef(nodes, self._concrete)

    def __repr__(self) -> str:
        return f"<Graph of {self.name}: {len(self.get_operations())} operations>"
