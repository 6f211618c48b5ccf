"""Functions as they are served: of tensors by name, to a dict of tensors."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jaxvars.compiler.concrete_function import ConcreteFunction as CoreConcrete
from jaxvars.compiler.decorator import compile as _compile
from jaxvars.export.functions import trace
from jaxvars.tf import nest
from jaxvars.tf.functions.arguments import outside
from jaxvars.tf.functions.concrete_function import ConcreteFunction
from jaxvars.tf.functions.function import BoundFunction, Function
from jaxvars.tf.saved_model.functions import opened
from jaxvars.tf.saved_model.restored import concrete_of
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.tensor import Tensor, wrap

_OUTPUTS = (
    "Outputs for functions used as signatures must be a single Tensor, a sequence of Tensors, or a "
    "dictionary from string to Tensor."
)

_DEFAULT = "_default_save_signature"


def default_of(functions: Iterable[tuple[str, Any]]) -> Any:
    """Return what is served where nothing was requested; None for nothing.

    Args:
        functions: those of the object, with their names.
    """
    known = dict(functions)
    if _DEFAULT in known:
        return known[_DEFAULT]
    found = [one for one in known.values() if _can_be_served(one)]
    return found[0] if len(found) == 1 else None


def _can_be_served(function: Any) -> bool:
    if isinstance(function, Function | BoundFunction):
        if function.input_signature is None:
            return False
        function = function.get_concrete_function()
    if not isinstance(function, ConcreteFunction):
        return False
    if any(spec.shape.rank is None for spec in function._specs()):  # not known before it is saved
        return True
    results = function.structured_outputs
    if isinstance(results, Mapping):
        results = list(results.values())
    parts = results if isinstance(results, list | tuple) else [results]
    return all(isinstance(part, TensorSpec) for part in parts)


def served(function: Any, sizes: Sequence[int]) -> list[CoreConcrete]:
    """Return the programs of a function as it is served: of tensors by name, to a dict of them.

    Args:
        function: the function.
        sizes: see `programs_of`.

    Raises:
        ValueError: when it is not a function with a signature, or returns something else.
    """
    concrete = function
    if isinstance(function, Function | BoundFunction) and function.input_signature is not None:
        concrete = function.get_concrete_function()
    if not isinstance(concrete, ConcreteFunction):
        raise ValueError(
            f"Expected a TensorFlow function for which to generate a signature, but got {function}."
            " Only `tf.functions` with an input signature or concrete functions can be used as a "
            "signature."
        )
    specs = {str(spec.name): spec for spec in concrete._specs()}

    def serve(**tensors: Any) -> Any:
        def filled(x: Any) -> Any:
            return tensors[str(x.name)] if isinstance(x, TensorSpec) else outside(x)

        args, kwargs = nest.map_structure(filled, (concrete._args, concrete._kwargs))
        return _by_name(wrap(concrete._compiled(*concrete._own, *args, **kwargs)), concrete.name)

    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in specs])
    setattr(serve, "__signature__", signature)  # noqa: B010 - pyright knows no such name
    program = _compile(serve)
    return opened(
        lambda given: concrete_of(trace(program, (), given)), (specs,), sizes, concrete.name
    )


def _by_name(result: Any, name: str) -> dict[str, Any]:
    if isinstance(result, Tensor):
        result = [result]
    if isinstance(result, list | tuple):
        result = {f"output_{i}": part for i, part in enumerate(result)}
    for key, part in result.items() if isinstance(result, Mapping) else [("output_0", result)]:
        if not isinstance(part, Tensor):
            raise ValueError(
                f"Got a non-Tensor value {part!r} for key {key!r} in the output of the function "
                f"{name} used to generate a SavedModel signature. {_OUTPUTS}"
            )
    return {str(key): part._array for key, part in result.items()}
