"""`input_signature`, and the errors of arguments that do not fit a `tf.function`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, final

import numpy as np

from jaxvars.tensors.foreign_arrays import is_foreign_array, refuse_grad
from jaxvars.tf import nest
from jaxvars.tf.functions.arguments import composite_spec, describe, format_spec, is_spec
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.extension_type import ExtensionType, spec_of

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@final
class _Text:
    """What stands for a value in the string of a signature."""

    def __init__(self, string: str) -> None:
        self._string = string

    def __repr__(self) -> str:
        return self._string


def with_defaults(signature: inspect.Signature, change: Callable[[Any], Any]) -> inspect.Signature:
    """Return a signature with other defaults, and without annotations."""
    parameters = [
        p.replace(
            default=p.default if p.default is p.empty else change(p.default), annotation=p.empty
        )
        for p in signature.parameters.values()
    ]
    return inspect.Signature(parameters)


def binding_error(why: str, args: Any, kwargs: Any, signature: inspect.Signature) -> TypeError:
    """Return the error for arguments that do not fit."""
    shown = with_defaults(signature, lambda _: _Text("<captured_default_value>"))
    return TypeError(
        f"Binding inputs to tf.function failed due to `{why}`. Received args: {args} and kwargs: "
        f"{kwargs} for signature: {shown}."
    )


@final
class InputSignature:
    """The specs of a function's arguments."""

    def __init__(self, given: Any, signature: inspect.Signature | None) -> None:
        if not isinstance(given, tuple | list):
            raise TypeError(f"input_signature must be either a tuple or a list, got {type(given)}.")
        self.given = tuple(given)
        _check_specs(self.given)
        self._signature = signature or inspect.signature(lambda *args: None)
        self._own, self._names = self._parameters()

    def _parameters(self) -> tuple[list[str], list[str]]:
        """Return the names of arguments before those that have specs, and of these."""
        parameters = list(self._signature.parameters.values())
        own = [p.name for p in parameters[:1] if p.name == "self"]
        rest = [p for p in parameters[len(own) :] if p.kind in _POSITIONAL]
        many = next((p for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        names = [p.name for p in rest]
        for parameter in rest[len(self.given) :]:
            if parameter.default is parameter.empty:
                raise TypeError(f"input_signature missing type constraint for {parameter.name}")
        extra = len(self.given) - len(names)
        if extra > 0 and many is None:
            raise TypeError(f"input_signature contains {extra} extra type constraints.")
        return own, names

    def complete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the arguments to trace for: the specs where none are given."""
        if len(args) <= len(self._own) and not kwargs:
            return (*args, *self.given), {}
        return self.fit(args, kwargs)

    def fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return arguments as tensors of the types in the specs."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as why:
            raise self._error_for(str(why), args, kwargs) from None
        positional = list(bound.args)
        start = len(self._own)
        try:
            for i, spec in enumerate(self.given[: len(positional) - start]):
                positional[start + i] = _fit(positional[start + i], spec)
        except (TypeError, ValueError) as why:
            raise self._error_for(str(why), args, kwargs) from None
        return tuple(positional), bound.kwargs

    def _error_for(self, why: str, args: Any, kwargs: Any) -> TypeError:
        names = [*self._names, *(f"arg{i}" for i in range(len(self._names), len(self.given)))]
        shown = [f"{n}: {_format_spec(spec)}" for n, spec in zip(names, self.given, strict=False)]
        return TypeError(
            f"Binding inputs to tf.function failed due to `{why}`. Received args: {args} and "
            f"kwargs: {kwargs} for signature: ({', '.join([*self._own, *shown])})."
        )


def _check_specs(given: tuple[Any, ...]) -> None:
    wrong = [
        x
        for x in nest.flatten(list(given))
        if not (is_spec(x) or composite_spec(x) is not None or hasattr(x, "element_spec"))
    ]
    if wrong:
        raise TypeError(
            "input_signature must be a possibly nested sequence of TensorSpec objects, got invalid "
            f"args {wrong} with types {list(map(type, wrong))}."
        )


def _format_spec(spec: Any) -> str:
    if is_spec(spec):
        return format_spec(spec)
    return str(nest.map_structure(lambda x: _Text(format_spec(x) if is_spec(x) else repr(x)), spec))


def _fit(value: Any, spec: Any) -> Any:
    """Return an argument, or a part of one, as tensors of the types in its spec."""
    if is_spec(spec) or composite_spec(spec) is not None:
        return fit_tensor(value, spec)
    if not nest.is_nested(spec):
        return value
    same = nest.is_nested(value) and len(nest._parts(value)) == len(nest._parts(spec))
    if not same or (isinstance(spec, dict) and set(spec) != set(value)):
        raise TypeError(f"{value} has not the structure of {_format_spec(spec)}")
    parts = zip(nest._parts(value), nest._parts(spec), strict=True)
    return nest._like(value, [_fit(part, inner) for part, inner in parts])


def fit_tensor(value: Any, spec: Any) -> Any:
    """Return a value as a tensor of a spec's type."""
    if (composite := composite_spec(spec)) is not None:
        found = _spec_of(value)
        if found is None or not found.is_subtype_of(composite):
            raise TypeError(f"Can not cast {describe(value)} to {composite}")
        return value
    wanted = as_dtype(spec.dtype)
    if is_spec(value):
        _check_fits(value, spec)
        return value
    tensor = value if isinstance(value, Tensor) else None
    if tensor is None:
        is_array = isinstance(value, np.ndarray | np.generic) or is_foreign_array(value)
        refuse_grad(value, "an argument", "x")
        has_type = hasattr(value, "dtype") and not is_array
        tensor = Tensor(to_array(value) if has_type else to_array(value, wanted))
    _check_fits(tensor, spec)
    return tensor


def _spec_of(value: Any) -> Any:
    return spec_of(value) if isinstance(value, ExtensionType) else composite_spec(value)


def _check_fits(value: Any, spec: Any) -> None:
    same = as_dtype(value.dtype) == as_dtype(spec.dtype)
    if not same or not TensorShape(value.shape).is_subtype_of(spec.shape):
        raise TypeError(f"Can not cast {format_spec(value)} to {format_spec(spec)}")


def signature_of(fn: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function; None if it has none."""
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):  # some builtins have none
        return None
