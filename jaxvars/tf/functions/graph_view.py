"""`ConcreteFunction.graph`: the operations of a program, as TensorFlow's graphs show them.

What stands for an operation of TensorFlow has its type; other types are the
primitives' of JAX. Functions that a program calls are written out. Nothing can be changed.
While a function is traced its tensors are named the same way, when their names are requested;
an operation whose result is not needed counts then, and is not in the graph.
"""

from __future__ import annotations

import functools
from abc import ABC
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, final

from jaxvars.tf.attributes import getter
from jaxvars.tf.context.scope import notes_of_trace
from jaxvars.tf.tensors.dtypes import any_dtype
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import OPERATIONS
from jaxvars.tracing.capture import staged_place
from jaxvars.tracing.jaxprs import inner_jaxprs, open_jaxpr

_SAME = """
abs acos acosh asin asinh atan atan2 atanh ceil cholesky complex conj cos cosh digamma erf erfc exp
expm1 floor imag is_finite lgamma log log1p neg pow real rem:TruncateMod round rsqrt sign sin sinh
sqrt square tan tanh max:Maximum min:Minimum eq:Equal ne:NotEqual lt:Less le:LessEqual gt:Greater
ge:GreaterEqual and:LogicalAnd or:LogicalOr not:LogicalNot reduce_sum:Sum reduce_max:Max
reduce_min:Min reduce_prod:Prod reduce_and:All reduce_or:Any argmax:ArgMax argmin:ArgMin reshape
transpose:Transpose:transpose concatenate:ConcatV2:concat convert_element_type:Cast logistic:Sigmoid
broadcast_in_dim:BroadcastTo select_n:SelectV2 _where:SelectV2 rev:ReverseV2 cumsum cumprod
top_k:TopKV2 while:While:while scan:While:while cond:If:cond iota:Range:range stop_gradient
add:AddV2:add add_any:AddV2:add sub:Sub:sub mul:Mul:mul div:RealDiv:truediv
conv_general_dilated:Conv2D bitcast_convert_type:Bitcast relu relu6 elu selu softmax log_softmax
softplus leaky_relu sigmoid slice:StridedSlice:strided_slice dynamic_slice:Slice
dynamic_update_slice:TensorScatterUpdate squeeze read_variable:ReadVariableOp
"""
_TYPES: dict[str, tuple[str, str]] = {}
"""TensorFlow's type and name for what JAX calls so."""

for _word in _SAME.split():
    _own, _type, _name = [*_word.split(":"), "", ""][:3]
    _type = _type or _own.title().replace("_", "")
    _TYPES[_own] = _type, _name or _type

_CALLS = frozenset({"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"})


@final
class Operation:
    """An operation of a program.

    Attributes:
        name, type: TensorFlow's type for it, or what JAX calls it; the name has a number.
        inputs, outputs: the tensors that it takes, and those that it gives.
        graph: what it is part of.
    """

    control_inputs: tuple[Any, ...] = ()  # operations run in the order in which they stand
    device = ""

    def __init__(
        self, graph: Operations, name: str, type: str, inputs: list[Any], outputs: Any
    ) -> None:
        self.graph, self.name, self.type, self.inputs = graph, name, type, inputs
        self.outputs = [GraphTensor(self, i, aval) for i, aval in enumerate(outputs)]

    @property
    def node_def(self) -> Node:
        """The node of a graph that it is."""
        return Node(self.name, self.type, [x.name.removesuffix(":0") for x in self.inputs])

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


@final
class GraphTensor:
    """What an operation of a program gives: no value, since the program does not run.

    Attributes:
        op, graph: the operation, and what it is part of.
        value_index: which of its results it is; `name` says both.
        shape, dtype: the sizes, None for what is open, and the type of the elements.
    """

    def __init__(self, op: Operation, value_index: int, aval: Any) -> None:
        self.op, self.value_index = op, value_index
        self.shape = TensorShape(getattr(aval, "shape", None))
        try:
            self.dtype = any_dtype(aval.dtype)
        except (AttributeError, TypeError):  # of a random key
            self.dtype = getattr(aval, "dtype", None)

        self.name = f"{op.name}:{value_index}"
        self.graph = op.graph

    def consumers(self) -> list[Operation]:
        """Return the operations that take it."""
        return [op for op in self.graph.get_operations() if any(x is self for x in op.inputs)]

    def __str__(self) -> str:
        kind = getattr(self.dtype, "name", self.dtype)
        return f'Tensor("{self.name}", shape={self.shape}, dtype={kind})'

    def __repr__(self) -> str:
        kind = getattr(self.dtype, "name", self.dtype)
        return f"<tf.Tensor {self.name!r} shape={self.shape} dtype={kind}>"


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
    """The nodes of a graph; as a string it is the program that is passed to XLA.

    Attributes:
        node: the nodes: arguments, operations, and what is returned.
    """

    def __init__(self, node: list[Node], concrete: Any) -> None:
        self.node = node
        self._concrete = concrete

    def __str__(self) -> str:
        return self._concrete.core.stablehlo

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"GraphDef has no attribute {name!r}: there are no protocol buffers, and its `node`s "
            "are to look at. tf.saved_model.save writes a function that can be loaded and called."
        )


class Operations(ABC):  # noqa: B024 - not of use by itself
    """Operations that have names, in the order in which they run."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._made: list[Operation] = []

    @functools.cached_property
    def _all(self) -> list[Operation]:
        return self._made

    # ------------------------------------------------------------ operations
    def get_operations(self) -> list[Operation]:
        """Return the operations, in the order in which they run."""
        return list(self._all)

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the operation with a name; raise KeyError if there is none."""
        for op in self._all:
            if op.name == name:
                return op
        raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")

    def get_tensor_by_name(self, name: str) -> GraphTensor:
        """Return what an operation gives, by a name like "add:0"; raise KeyError without one."""
        own, _, index = name.partition(":")
        if not index.isdigit():
            raise ValueError(
                f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of "
                'the form "<op_name>:<output_index>".'
            )
        found = [x for op in self._all for x in op.outputs if x.name == name]
        if not found:
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                f"{own!r}, does not give it, or does not exist in the graph."
            )
        return found[0]

    def _walk(
        self, equations: Sequence[Any], results: Sequence[Any], known: dict[Any, GraphTensor]
    ) -> list[GraphTensor]:
        """Add the operations of a program, and of those that it calls; return its results."""
        for equation in equations:
            kind, name = _kind_of(equation)
            if kind in _CALLS:
                inner = open_jaxpr(next(iter(inner_jaxprs(equation.params))))
                given = [self._find(var, known) for var in equation.invars]
                within = dict(zip(inner.invars, given, strict=True))
                made = self._walk(inner.eqns, inner.outvars, within)
            else:
                given = self._operands(equation, known, name)
                made = self._add(name, kind, given, [x.aval for x in equation.outvars]).outputs
            known.update(zip(equation.outvars, made, strict=True))
        return [self._find(var, known) for var in results]

    def _operands(self, equation: Any, known: dict[Any, GraphTensor], name: str) -> list[Any]:
        count = self._counts.get(name, -1) + 1
        own, variables = f"{name}_{count}" if count else name, equation.invars
        places = "xy" if len(variables) == 2 else map(str, range(len(variables)))
        pairs = zip(variables, places, strict=True)
        return [self._find(var, known, f"{own}/{place}") for var, place in pairs]

    def _find(self, var: Any, known: dict[Any, GraphTensor], name: str = "Const") -> GraphTensor:
        """Return what gives an operand; of a number in the program, or an array, a new Const."""
        if hasattr(var, "val"):
            return self._add(name, "Const", [], [var.aval]).outputs[0]
        if var not in known:
            known[var] = self._add("Const", "Const", [], [var.aval]).outputs[0]
        return known[var]

    def _add(self, name: str, type: str, inputs: list[Any], outputs: list[Any]) -> Operation:
        count = self._counts[name] = self._counts.get(name, -1) + 1
        op = Operation(self, f"{name}_{count}" if count else name, type, inputs, outputs)
        self._made.append(op)
        return op


@final
class TraceGraph(Operations):
    """The operations of the function that is being traced, or of a loop or branch in it, so far."""

    def find(self, value: Any) -> GraphTensor | None:
        """Return what stands for the value of a tensor; None if that is not being traced here."""
        if (traced := staged_place(value)) is None:
            return None
        pairs = [(staged_place(x), name) for x, name in notes_of_trace().get("arguments", ())]
        names = {place.var: name for place, name in pairs if place is not None}
        known: dict[Any, GraphTensor] = {}
        for var in traced.frame.invars:
            name = names.get(var, "Placeholder:0").removesuffix(":0")
            known[var] = self._add(name, "Placeholder", [], [var.aval]).outputs[0]
        self._walk(traced.frame.get_eqns(), [], known)
        return known.get(traced.var)

    def __repr__(self) -> str:
        return f"<Graph that is being traced: {len(self._made)} operations>"


OPERATIONS["trace"] = lambda tensor: TraceGraph().find(tensor._array)


@final
class Graph(Operations):
    """The operations of a program.

    Attributes:
        name: of the function.
    """

    def __init__(self, name: str, concrete: Any) -> None:
        super().__init__()
        self._concrete = concrete
        self._results: list[GraphTensor] = []
        self._places: dict[int, GraphTensor] = {}  # of variables, by cell
        self.name = name
        specs = concrete._specs()
        self.inputs = [self._add(str(x.name), "Placeholder", [], [x]).outputs[0] for x in specs]

    @functools.cached_property
    def _all(self) -> list[Operation]:
        """All operations: arguments, variables, the equations of the program, results."""
        staged = self._concrete.core._executable.staged
        jaxpr = staged.program.jaxpr
        tables = len(self._concrete._table)  # of strings: the last argument, and result
        count, known = len(jaxpr.invars) - len(self.inputs) - tables, {}
        for cell, var in zip(staged.reads, jaxpr.invars[:count], strict=True):
            known[var] = self._places[cell.key] = self._stand_for(cell)
        known.update(zip(jaxpr.invars[count:], self.inputs, strict=not tables))
        known.update(dict.fromkeys(staged.split(jaxpr.outvars)[0][-1:] if tables else []))
        shown = [eqn for eqn in jaxpr.eqns if known.keys().isdisjoint(eqn.outvars)]
        results, written = staged.split(self._walk(shown, jaxpr.outvars, known))
        for cell, value in zip(staged.writes, written, strict=True):
            place = self._places.get(cell.key) or self._stand_for(cell)
            kind, self._places[cell.key] = "AssignVariableOp", place
            self._add(kind, kind, [place, value], [])
        for value in results[: len(results) - tables]:
            self._results += self._add("Identity", "Identity", [value], [value]).outputs
        return self._made

    def _stand_for(self, cell: Any) -> GraphTensor:
        return self._add(cell.name, "Placeholder", [], [cell.aval]).outputs[0]

    # ------------------------------------------------------------ what it takes and returns
    @property
    def outputs(self) -> list[GraphTensor]:
        """The tensors that it returns, in order."""
        return list(self._results) if self._all else []

    @property
    def captures(self) -> list[tuple[Any, GraphTensor]]:
        """The variables that it reads or assigns, each with what stands for it."""
        places = self._places if self._all else {}
        return [(v, places[v.aliased._cell.key]) for v in self.variables]

    external_captures = getter("_concrete.captured_inputs", "The variables that it uses.")
    picture = getter("_concrete.core.graph", "The program as a picture, shown in a notebook.")
    variables = getter("_concrete.variables", "The variables that it reads or assigns.")
    trainable_variables = getter(
        "_concrete.trainable_variables", "Those of them that are trainable."
    )
    structured_input_signature = getter(
        "_concrete.structured_input_signature", "Positional and named arguments, with specs."
    )
    structured_outputs = getter(
        "_concrete.structured_outputs", "The result, with `tf.TensorSpec`s."
    )

    def as_graph_def(self, *_: Any, **__: Any) -> GraphDef:
        """Return the nodes: arguments, operations in the order in which they run, results."""
        return GraphDef([op.node_def for op in self._all], self._concrete)

    def __repr__(self) -> str:
        return f"<Graph of {self.name}: {len(self._all)} operations>"


def _kind_of(equation: Any) -> tuple[str, str]:
    """Return TensorFlow's type of an operation, and what it would be called."""
    own, params = equation.primitive.name, equation.params
    if own in _CALLS and str(params.get("name", "")) in _TYPES:
        own = str(params["name"])
    if own == "dot_general":
        (_, _), (batch, _) = params["dimension_numbers"]
        is_plain = not batch and {len(var.aval.shape) for var in equation.invars} == {2}
        own = "MatMul" if is_plain else "BatchMatMulV2" if batch else own
        return own, own.removesuffix("BatchMatMulV2") or "MatMul"
    is_bits = own in ("and", "or", "not") and equation.outvars[0].aval.dtype != bool
    return _TYPES.get(own, (own, own)) if not is_bits else (own, own)
