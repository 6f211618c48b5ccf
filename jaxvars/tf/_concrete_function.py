"""`ConcreteFunction`: a `tf.function` for one signature, to look into and to call."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, final

import jax

from jaxvars._compile import Function as CoreFunction
from jaxvars.tf import nest
from jaxvars.tf._arguments import described, is_spec, is_traced, outside
from jaxvars.tf._convert import dtype_of, to_array
from jaxvars.tf._dtypes import as_dtype, string
from jaxvars.tf._graph_view import Graph
from jaxvars.tf._shapes import TensorShape
from jaxvars.tf._signature import fit_tensor
from jaxvars.tf._specs import TensorSpec
from jaxvars.tf._tensor import Tensor, wrap
from jaxvars.tf._variable import Variable, face_of
from jaxvars.tf.errors import InvalidArgumentError


@final
class ConcreteFunction:
    """A compiled function for one signature; made by `get_concrete_function`.

    Attributes:
        name: what the function is called.
        structured_input_signature: positional and named arguments, with `tf.TensorSpec`s.
    """

    def __init__(self, compiled: CoreFunction, bound: inspect.BoundArguments, name: str) -> None:
        self._compiled = compiled
        self._bound = bound
        self.name = name
        self._args = nest.map_structure(_spec, bound.args)
        self._kwargs = nest.map_structure(_spec, bound.kwargs)
        self.structured_input_signature = self._named()
        self._traced: Any = None
        if not self._is_open:
            self._traced = self._trace()

    @property
    def _is_open(self) -> bool:
        return self._has_text or any(_is_open(spec.shape) for spec in self._specs())

    @property
    def _has_text(self) -> bool:
        return any(spec.dtype == string for spec in self._specs())

    def _specs(self) -> Iterator[Any]:
        return filter(_is_tensor_spec, nest.flatten((self._args, self._kwargs)))

    def _trace(self) -> Any:
        args, kwargs = nest.map_structure(_struct, (self._args, self._kwargs))
        given = {key: outside(value) for key, value in kwargs.items()}
        return self._compiled.trace(*map(outside, args), **given)

    @property
    def core(self) -> Any:
        """The concrete function of jaxvars, for the smallest sizes where some are open."""
        if self._has_text:
            raise InvalidArgumentError(
                None,
                None,
                f"{self.name} takes text, which is a constant of a program: it is traced for each "
                "text when it is called, and has no program before.",
            )
        if self._traced is None:
            self._traced = self._trace()
        return self._traced

    # ------------------------------------------------------------ calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with the tensors of its signature; other arguments need not be given.

        Raises:
            TypeError: when there are more or fewer, or they have other shapes.
            InvalidArgumentError: when one has another type.
        """
        full = self._filled(args, kwargs)
        given = {key: outside(value) for key, value in full[1].items()}
        return wrap(self._compiled(*map(outside, full[0]), **given))

    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return all arguments: those given, and what is the same each time."""
        try:
            bound = self._bound.signature.bind_partial(*args, **kwargs)
            for name, value in self._bound.arguments.items():
                bound.arguments.setdefault(name, value)  # that it was traced for
            ordered = {name: bound.arguments[name] for name in self._bound.arguments}
            whole = inspect.BoundArguments(bound.signature, ordered)  # pyright: ignore[reportArgumentType] - in order
            whole = whole.args, whole.kwargs
            nest.assert_same_structure((self._args, self._kwargs), whole)
            if any(is_spec(x) for x in nest.flatten(whole)):
                raise TypeError("a tensor is missing")
        except (TypeError, ValueError, KeyError):
            whole = self._from_flat(args, kwargs)
        flat = zip(nest.flatten((self._args, self._kwargs)), nest.flatten(whole), strict=True)
        fitted = [self._fitted(mine, given) for mine, given in flat]
        return nest.pack_sequence_as((self._args, self._kwargs), fitted)

    def _from_flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Fill in tensors that are given in order, or by name, without anything else."""
        names = [spec.name for spec in self._specs()]
        if len(args) > len(names) or set(kwargs) - set(names):
            raise TypeError(
                f"{self.name}({', '.join(map(str, names))}) takes {len(names)} positional "
                f"arguments, got {len(args) + len(kwargs)}."
            )
        by_name = {**dict(zip(names, args, strict=False)), **kwargs}
        missing = [str(name) for name in names if name not in by_name]
        if missing:
            raise TypeError(
                f"{self.name}({', '.join(map(str, names))}) missing required arguments: "
                f"{', '.join(missing)}."
            )
        return nest.map_structure(
            lambda x: by_name[x.name] if _is_tensor_spec(x) else x, (self._args, self._kwargs)
        )

    def _fitted(self, mine: Any, given: Any) -> Any:
        if not _is_tensor_spec(mine):
            if not _is_same(mine, given):
                raise TypeError(
                    f"{self.name} was traced for {described(mine)}, and is called with "
                    f"{described(given)}. Call the function itself to have that traced."
                )
            return given
        if isinstance(given, Tensor) and given.dtype != mine.dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"cannot compute {self.name} as input was expected to be a "
                f"{mine.dtype.name} tensor but is a {given.dtype.name} tensor",
            )
        return fit_tensor(given, mine)

    # ------------------------------------------------------------ looking inside
    @property
    def structured_outputs(self) -> Any:
        """The result, with a `tf.TensorSpec` in place of each tensor."""
        return jax.tree.map(
            lambda s: TensorSpec(s.shape, as_dtype(s.dtype)) if _is_struct(s) else s,
            self.core.structured_outputs,
            is_leaf=_is_struct,
        )

    @property
    def inputs(self) -> list[Any]:
        """The specs of its tensors, in order."""
        return list(self._specs())

    @property
    def outputs(self) -> list[Any]:
        """The specs of the tensors that it returns, in order."""
        return [x for x in nest.flatten(self.structured_outputs) if x is not None]

    @property
    def output_shapes(self) -> Any:
        """The shapes of the tensors that it returns."""
        return nest.map_structure(
            lambda x: None if x is None else TensorShape(x.shape), self.structured_outputs
        )

    @property
    def output_dtypes(self) -> Any:
        """The types of the tensors that it returns."""
        return nest.map_structure(lambda x: None if x is None else x.dtype, self.structured_outputs)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns."""
        return tuple(map(face_of, self.core.captured))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def captured_inputs(self) -> list[Variable]:
        """The variables that it reads or assigns."""
        return list(self.variables)

    @property
    def graph(self) -> Graph:
        """The operations of the program."""
        return Graph(self.core.jaxpr, self.name, self.core)

    @property
    def function_def(self) -> str:
        """The program as XLA is given it, as text."""
        return self.core.stablehlo

    # ------------------------------------------------------------ as text
    def _named(self) -> Any:
        """Return the arguments; a spec without a name takes that of its parameter."""
        parameters = list(self._bound.signature.parameters.values())
        names: list[str] = []
        for i, _ in enumerate(self._args):
            many = i >= len(parameters) or parameters[i].kind is inspect.Parameter.VAR_POSITIONAL
            names.append(f"args_{i}" if many else parameters[i].name)
        self._args = tuple(_name_specs(x, name) for x, name in zip(self._args, names, strict=True))
        self._kwargs = {key: _name_specs(x, key) for key, x in self._kwargs.items()}
        self._names = names
        return self._args, self._kwargs

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """Return the parameters and the result as text."""
        result = "<unknown>" if self._has_text else described(self.structured_outputs)
        if not verbose:
            return f"{self.key} -> {result}"
        kinds = {name: p.kind.name for name, p in self._bound.signature.parameters.items()}
        lines = ["Input Parameters:"]
        for name, x in [*zip(self._names, self._args, strict=True), *self._kwargs.items()]:
            lines.append(f"  {name} ({kinds.get(name, 'POSITIONAL_ONLY')}): {described(_bare(x))}")
        found = () if self._has_text else self.variables
        captures = [f"  {v.name}: {described(v)}" for v in found] or ["  None"]
        return "\n".join([*lines, "Output Type:", f"  {result}", "Captures:", *captures])

    @property
    def key(self) -> str:
        """The arguments as text."""
        pairs = [*zip(self._names, self._args, strict=True), *self._kwargs.items()]
        return f"({', '.join(f'{name}: {described(_bare(x))}' for name, x in pairs)})"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)}>"


def _is_tensor_spec(x: Any) -> bool:
    return isinstance(x, TensorSpec)


def _is_open(shape: TensorShape) -> bool:
    return shape.rank is None or None in tuple(shape)


def _is_struct(x: Any) -> bool:
    return isinstance(x, jax.ShapeDtypeStruct)


def _spec(value: Any) -> Any:
    """Return an argument with a spec for a tensor."""
    if is_traced(value):
        array = to_array(value)
        return TensorSpec(array.shape, dtype_of(array))
    if is_spec(value) and not _is_tensor_spec(value):
        return TensorSpec(value.shape, as_dtype(value.dtype))
    return value


def _struct(value: Any) -> Any:
    """Return a spec as JAX's; an open size as 1."""
    if not _is_tensor_spec(value):
        return value
    if value.shape.rank is None:
        raise InvalidArgumentError(
            None, None, f"{value} has no rank: a program has fixed shapes. Call it with tensors."
        )
    shape = tuple(1 if size is None else size for size in value.shape)
    return jax.ShapeDtypeStruct(shape, value.dtype.dtype)


def _name_specs(value: Any, name: str) -> Any:
    """Return specs with names: that of the parameter, with a number in a structure."""
    single = not nest.is_nested(value)
    new = [
        TensorSpec(x.shape, x.dtype, x.name or (name if single else f"{name}_{i}"))
        if _is_tensor_spec(x)
        else x
        for i, x in enumerate(nest.flatten(value))
    ]
    return nest.pack_sequence_as(value, new)


def _bare(value: Any) -> Any:
    return nest.map_structure(
        lambda x: TensorSpec(x.shape, x.dtype) if _is_tensor_spec(x) else x, value
    )


def _is_same(mine: Any, given: Any) -> bool:
    return mine is given or (type(mine) is type(given) and bool(mine == given))
