"""`ConcreteFunction`: a `tf.function` for one signature, to look into and to call."""

from __future__ import annotations

import contextlib
import functools
import inspect
import weakref
from typing import Any, final

import jax

from jaxvars.objects.identity import exact, held
from jaxvars.programs.open_sizes import name_of_size
from jaxvars.symbolic.propagate import NeedsSizes
from jaxvars.symbolic.specialize import symbol
from jaxvars.tensors.foreign_arrays import is_foreign_array
from jaxvars.tensors.tensor import contents_of
from jaxvars.tf import nest
from jaxvars.tf.attributes import getter as attribute
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.functions import strings
from jaxvars.tf.functions.arguments import (
    composite_spec,
    describe,
    format_spec,
    is_spec,
    is_traced,
    to_core,
)
from jaxvars.tf.functions.body import names_of
from jaxvars.tf.functions.concrete_binding import FunctionType, Parameters
from jaxvars.tf.functions.graph_view import Graph
from jaxvars.tf.functions.signature import fit_tensor
from jaxvars.tf.functions.unknown_sizes import OpenSizes
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.dtypes import HANDLE, as_dtype, string
from jaxvars.tf.tensors.handles import SCOPE_SPEC, NeedsKnown, NeedsStrings
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import refused, refusing
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.variables.variable import Variable, face_of
from jaxvars.tracebacks import is_raised_by_user

_LARGER = (2, 3, 4, 6, 8, 16, 32)
"""What unknown dimensions are tried with where 1 is too small: `tf.reshape(x, [-1, 2])`."""


@final
class ConcreteFunction:
    """A compiled function for one signature; made by `get_concrete_function`.

    Attributes:
        name: what the function is called.
        structured_input_signature: positional and named arguments, with `tf.TensorSpec`s.
    """

    def __init__(
        self, of: Any, bound: inspect.BoundArguments, sizes: OpenSizes, own: tuple[Any, ...] = ()
    ) -> None:
        self._of, self._compiled, self._run = of, of._core, of._run
        self._table = {strings.SCOPE_NAME: SCOPE_SPEC} if NeedsStrings in of._met else {}
        self._owner = tuple(map(weakref.ref, own))  # the object of a method
        self.name = of.__name__
        args = bound.args[len(own) :]
        self._args = nest.map_structure(_to_spec, args)
        self._kwargs = nest.map_structure(_to_spec, bound.kwargs)
        self._given = self._flat()  # with the names that were given
        self.structured_input_signature = self._name_parameters(bound.signature)
        if self._has_strings and not self._table:
            raise NeedsStrings
        self._traced: Any = None
        self._is_for_smallest = False  # what was traced does not serve all sizes
        self._learned: Any = None  # of calls: the result of what has no program
        if not self._is_open:
            self._traced = None if self._has_no_program else self._trace()
        elif not self._has_no_program:
            self._traced = self._trace_open(sizes)

    @property
    def _own(self) -> tuple[Any, ...]:
        own = tuple(reference() for reference in self._owner)
        if any(x is None for x in own):
            raise ReferenceError(f"The object that {self.name} is a method of is gone. Keep it.")
        return own

    @property
    def is_alive(self) -> bool:
        """Whether the object that it is a method of exists; True for a function."""
        return all(reference() is not None for reference in self._owner)

    def belongs_to(self, own: tuple[Any, ...]) -> bool:
        """Return whether it is a method of this object."""
        mine = tuple(reference() for reference in self._owner)
        return len(mine) == len(own) and all(a is b for a, b in zip(mine, own, strict=True))

    @property
    def _is_open(self) -> bool:
        return not all(spec.shape.is_fully_defined() for spec in self._specs())

    @property
    def _has_strings(self) -> bool:
        return any(spec.dtype == string for spec in self._specs())

    @property
    def _has_no_program(self) -> bool:
        is_ranked = all(spec.shape.rank is not None for spec in self._specs())
        return not is_ranked or self._is_composite or self._must_know_strings

    @property
    def _is_composite(self) -> bool:
        """Whether it takes ragged or sparse tensors: it is traced for each partition it meets."""
        return any(composite_spec(x) is not None for x in self._flat())

    @functools.cached_property
    def _must_know_strings(self) -> bool:
        """Whether it is traced for each string, when it is called."""
        try:
            return self._has_strings and self.core is None
        except Exception:  # noqa: BLE001 - whatever it is, `core` says so
            return True

    def learn(self, result: Any) -> None:
        """Take note of what a call returned, with specs for its tensors."""
        self._learned = result

    def _flat(self) -> list[Any]:
        return nest.flatten((self._args, self._kwargs))

    def _specs(self) -> list[TensorSpec]:
        return [x for x in self._flat() if isinstance(x, TensorSpec)]

    def is_for(self, other: ConcreteFunction) -> bool:
        """Return whether another one, which has just been requested, is the same."""
        if [type(x) for x in self._given] != [type(x) for x in other._given]:
            return False
        if list(self._kwargs) != list(other._kwargs):
            return False
        if not _is_same_structure(self._args, other._args):
            return False
        pairs = zip(self._flat(), other._given, strict=True)
        return self.belongs_to(other._own) and all(
            _is_same_kind(mine, asked) for mine, asked in pairs
        )

    def core_for(self, bound: inspect.BoundArguments) -> Any:
        """Return the concrete function of jaxvars for the tensors of a call where they are."""
        if self._is_open or self._has_no_program:
            return self.core
        if self._has_strings:
            return self._trace()  # again, if JAX has other settings by now
        return self._trace(None, (bound.args[len(self._owner) :], bound.kwargs))

    def _trace(self, sizes: Any = None, given: Any = None) -> Any:
        args, kwargs = nest.map_structure(
            lambda x: _to_struct(x, sizes), given or (self._args, self._kwargs)
        )
        named = {key: to_core(value) for key, value in kwargs.items()}
        try:
            own = (*self._own, *args)
            return self._compiled.trace(*map(to_core, own), **named, **self._table)
        except NeedsKnown as why:
            raise why.error from None
        except NeedsSizes:
            self._of._met.add(NeedsSizes)
            return self._trace(sizes, given)

    def _trace_open(self, sizes: OpenSizes) -> Any:
        """Trace for all sizes; return None where that cannot be: each is traced when it is met."""
        for first in (False, True):  # each place in a shape has a size, or all have one
            try:
                made = self._trace(lambda axis: symbol(name_of_size(0 if first else axis)))  # noqa: B023
            except Exception as error:
                if is_raised_by_user(error):
                    raise  # of sizes that are None here as they are in TensorFlow
                continue
            sizes.add(made._executable.key.signature)  # less flags and shapes of variables
            return made
        return None

    @property
    def core(self) -> Any:
        """The concrete function of jaxvars; for the smallest sizes where it needs to know them."""
        if self._traced is None:
            self._traced, self._is_for_smallest = self._trace_smallest(), self._is_open
        return self._traced

    def _trace_smallest(self) -> Any:
        """Trace with the first size that all unknown dimensions may have; raise why 1 is none."""
        try:
            return self._trace(lambda _: 1)
        except ValueError:
            for size in _LARGER if self._is_open else ():
                with contextlib.suppress(ValueError):
                    return self._trace(lambda _: size)  # noqa: B023 - called at once
            raise

    # ------------------------------------------------------------ calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with the tensors of its signature; other arguments need not be given.

        Raises:
            TypeError: when there are more or fewer, or they have other shapes.
            InvalidArgumentError: when one has another type.
        """
        whole, named = self._fill(args, kwargs)
        given = {key: to_core(value) for key, value in named.items()}
        with refusing():
            return wrap(self._run(*map(to_core, (*self._own, *whole)), **given))

    def _fill(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return all arguments: those given, and what is the same each time."""
        try:
            return self._parameters.bind(args, kwargs, self._fit_part)
        except (TypeError, ValueError) as error:
            why = error
        try:
            return self._fill_flat(args, kwargs)
        except TypeError as error:
            raise TypeError(
                f"Binding inputs to tf.function failed due to `{why}`. Received args: {args} and "
                f"kwargs: {kwargs} for signature: {self._format_signature()}.\n"
                f"Fallback to flat signature also failed due to: {error}"
            ) from None

    def _fill_flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Fill in tensors that are given in order, or by name, without anything else."""
        if self._is_composite:
            raise TypeError("ragged and sparse tensors are given in the places of the signature.")
        names = [str(spec.name) for spec in self._specs()]
        where = f"{self.name}({', '.join(names)})"
        if len(args) > len(names):
            raise TypeError(f"{where} takes {len(names)} positional arguments, got {len(args)}.")
        if twice := [name for name in names[: len(args)] if name in kwargs]:
            raise TypeError(f"{where} got two values for {twice[0]!r}.")
        if unknown := sorted(set(kwargs) - set(names)):
            raise TypeError(f"{where} got unexpected keyword arguments: {', '.join(unknown)}.")
        by_name = {**dict(zip(names, args, strict=False)), **kwargs}
        if missing := [name for name in names if name not in by_name]:
            raise TypeError(f"{where} missing required arguments: {', '.join(missing)}.")
        for i, name in enumerate(names):
            if not is_traced(by_name[name]) and not isinstance(by_name[name], Variable):
                value = by_name[name]
                raise TypeError(
                    f"{where}: expected argument #{i}(zero-based) to be a Tensor; got "
                    f"{type(value).__name__} ({value})."
                )
        return nest.map_structure(
            lambda x: self._fit_operand(by_name[x.name], x) if isinstance(x, TensorSpec) else x,
            (self._args, self._kwargs),
        )

    def _fit_operand(self, value: Any, spec: Any) -> Tensor:
        """Return a tensor that is given in order; say what TensorFlow's operation would."""
        if isinstance(value, Tensor) and value.dtype != spec.dtype:
            number = [one.name for one in self._specs()].index(spec.name)
            raise refused(
                f"cannot compute {self.name} as input #{number}(zero-based) was expected to be a "
                f"{spec.dtype.name} tensor but is a {value.dtype.name} tensor"
            )
        if executing_eagerly() and isinstance(value, Tensor):
            return value  # of another shape: that is traced, too
        return fit_tensor(value, spec)

    def _fit_part(self, value: Any, mine: Any) -> Any:
        """Return a part of an argument; raise TypeError if it does not fit."""
        if isinstance(mine, TensorSpec):
            if isinstance(value, Tensor | Variable) and not mine.is_compatible_with(value):
                raise TypeError(
                    f"Can not cast {format_spec(value)} to {format_spec(_drop_names(mine))}"
                )
            return fit_tensor(value, mine)
        if composite_spec(mine) is not None:
            return fit_tensor(value, mine)
        if exact(value, held) != exact(mine, held):
            raise TypeError(f"Can not cast {value!r} to {describe(mine)}")
        return value

    # ------------------------------------------------------------ looking inside
    @property
    def structured_outputs(self) -> Any:
        """The result, with a `tf.TensorSpec` in place of each tensor."""
        if self._has_no_program and self._learned is not None:
            return self._learned
        made = self.core.structured_outputs
        return jax.tree.map(
            lambda s: self._spec_of_result(s) if _is_struct(s) else s,
            made[0] if self._table else made,
            is_leaf=_is_struct,
        )

    def _spec_of_result(self, struct: Any) -> TensorSpec:
        shape = [None] * len(struct.shape) if self._is_for_smallest else struct.shape
        return TensorSpec(shape, as_dtype(struct.dtype))

    @property
    def inputs(self) -> list[Any]:
        """Its tensors, in order."""
        return self.graph.inputs

    @property
    def outputs(self) -> list[Any]:
        """The tensors that it returns, in order; their specs, where it has no program."""
        if not self._has_no_program:
            return self.graph.outputs
        return [x for x in nest.flatten(self.structured_outputs) if x is not None]

    @property
    def output_shapes(self) -> Any:
        """The shapes of the tensors that it returns."""
        return _map_specs(lambda x: TensorShape(x.shape), self.structured_outputs)

    @property
    def output_dtypes(self) -> Any:
        """The types of the tensors that it returns."""
        return _map_specs(lambda x: x.dtype, self.structured_outputs)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns."""
        return tuple(map(face_of, self.core.captured))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    captured_inputs = attribute("variables", "The variables that it reads or assigns.", list)
    function_def = attribute("core.stablehlo", "The program as it is passed to XLA, as a string.")

    @functools.cached_property
    def graph(self) -> Graph:
        """The operations of the program."""
        return Graph(self.name, self)

    @property
    def function_type(self) -> FunctionType:
        """The parameters, with their types, and the type of the result."""
        return FunctionType(self._parameters.kinds(_drop_names), self.structured_outputs)

    # ------------------------------------------------------------ as strings
    def _name_parameters(self, signature: inspect.Signature) -> Any:
        """Return the arguments; a spec without a name takes that of its parameter."""
        first = len(self._owner)
        names = names_of(signature)(first + len(self._args))[first:]
        self._args = tuple(_name_specs(x, name) for x, name in zip(self._args, names, strict=True))
        self._kwargs = {key: _name_specs(x, key) for key, x in self._kwargs.items()}
        has_more = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
        self._parameters = Parameters(names, self._args, self._kwargs, only_by_place=has_more)
        return self._args, self._kwargs

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """Return the parameters and the result as a string."""
        if not verbose:
            return self._format_signature()
        lines = ["Input Parameters:"]
        for name, kind, x in self._parameters.rows:
            lines.append(f"  {name} ({kind}): {describe(_drop_names(x))}")
        found = () if self._has_no_program else self.variables
        captures = [f"  {v.name}: {describe(v)}" for v in found] or ["  None"]
        return "\n".join(
            [*lines, "Output Type:", f"  {self._describe_result()}", "Captures:", *captures]
        )

    def _describe_result(self) -> str:
        is_unknown = self._has_no_program and self._learned is None
        return "<unknown>" if is_unknown else describe(self.structured_outputs)

    def _format_signature(self) -> str:
        rows = ", ".join(f"{n}: {describe(_drop_names(x))}" for n, _, x in self._parameters.rows)
        return f"({rows}) -> {self._describe_result()}"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self._format_signature()} at 0x{id(self):X}>"


def _map_specs(fn: Any, value: Any) -> Any:
    return nest.map_structure(lambda x: None if x is None else fn(x), value)


def _is_struct(x: Any) -> bool:
    return isinstance(x, jax.ShapeDtypeStruct)


def _is_same_structure(a: Any, b: Any) -> bool:
    try:
        nest.assert_same_structure(a, b)
    except (TypeError, ValueError):
        return False
    return True


def _is_same_kind(mine: Any, asked: Any) -> bool:
    if isinstance(asked, TensorSpec):
        named = asked.name is None or asked.name == mine.name
        return named and _drop_names(mine) == _drop_names(asked)
    return bool(exact(mine, held) == exact(asked, held))


def _to_spec(value: Any) -> Any:
    """Return an argument with a spec for a tensor."""
    value = contents_of(value, "an argument", "x") if is_foreign_array(value) else value
    if is_traced(value):
        array = to_array(value)
        return TensorSpec(array.shape, dtype_of(array))
    if (composite := composite_spec(value)) is not None:
        return composite
    if is_spec(value) and not isinstance(value, TensorSpec):
        return TensorSpec(value.shape, as_dtype(value.dtype))
    return value


def _to_struct(value: Any, sizes: Any) -> Any:
    """Return a spec as JAX's; with `sizes` of the axes for unknown dimensions."""
    if composite_spec(value) is not None:
        raise refused(
            f"{value} has no program: a program has fixed shapes. Call it with tensors, or write a "
            "function of x.to_tensor(), or tf.sparse.to_dense(x)."
        )
    if not isinstance(value, TensorSpec):
        return value
    if value.shape.rank is None:
        raise refused(f"{value} has no rank: a program has fixed shapes. Call it with tensors.")
    shape = tuple(sizes(axis) if size is None else size for axis, size in enumerate(value.shape))
    dtype = HANDLE if value.dtype == string else value.dtype.dtype
    return jax.ShapeDtypeStruct(shape, dtype)


def _name_specs(value: Any, name: str) -> Any:
    """Return specs with names: that of the parameter, with a number from the second one on."""
    new, count = [], 0
    for x in nest.flatten(value):
        if not isinstance(x, TensorSpec):
            new.append(x)
            continue
        new.append(TensorSpec(x.shape, x.dtype, x.name or (f"{name}_{count}" if count else name)))
        count += 1
    return nest.pack_sequence_as(value, new)


def _drop_names(value: Any) -> Any:
    return nest.map_structure(
        lambda x: TensorSpec(x.shape, x.dtype) if isinstance(x, TensorSpec) else x, value
    )
