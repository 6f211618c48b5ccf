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
        return self._concrete.core.graph

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that it reads or assigns."""
        return self._concrete.variables

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those of them that are trainable."""
        return self._concrete.trainable_variables

    @property
    def inputs(self) -> list[Any]:
        """The specs of its tensors, in order."""
        return self._concrete.inputs

    @property
    def outputs(self) -> list[Any]:
        """The specs of the tensors that it returns, in order."""
        return self._concrete.outputs

    @property
    def structured_input_signature(self) -> Any:
        """Positional and named arguments, with `tf.TensorSpec`s."""
        return self._concrete.structured_input_signature

    @property
    def structured_outputs(self) -> Any:
        """The result, with `tf.TensorSpec`s."""
        return self._concrete.structured_outputs

    def as_graph_def(self, *_: Any, **__: Any) -> str:
        """Return the program as XLA is given it, as text."""
        return self._concrete.core.stablehlo

    def __repr__(self) -> str:
        return f"<Graph of {self.name}: {len(self.get_operations())} operations>"
