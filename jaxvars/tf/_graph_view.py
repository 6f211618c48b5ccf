"""`ConcreteFunction.graph`: the operations of a program, as TensorFlow's graphs show them."""

from __future__ import annotations

from typing import Any, NamedTuple, final


class Operation(NamedTuple):
    """An operation of a program.

    Attributes:
        name: its kind, with a number from the second on.
        type: what JAX calls it.
    """

    name: str
    type: str


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

    @property
    def picture(self) -> Any:
        """The program as a picture, shown in a notebook."""
        return self._concrete.graph

    def as_graph_def(self, *_: Any, **__: Any) -> str:
        """Return the program as XLA is given it, as text."""
        return self._concrete.stablehlo

    def __repr__(self) -> str:
        return f"<Graph of {self.name}: {len(self.get_operations())} operations>"
