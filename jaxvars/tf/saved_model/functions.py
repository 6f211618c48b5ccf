"""Which programs of `tf.function`s a folder gets, and of functions as they are served.

What was traced is saved; an `input_signature`, and a signature that was requested, with its unknown
dimensions. What is served takes tensors by name, and returns a dict of them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jaxvars.compiler.concrete_function import ConcreteFunction as CoreConcrete
from jaxvars.compiler.decorator import compile as _compile
from jaxvars.errors import SavedError
from jaxvars.export.functions import trace, traces_of
from jaxvars.symbolic.specialize import MAY_CHECK
from jaxvars.tensors.spec import TensorSpec as CoreSpec
from jaxvars.tf import nest
from jaxvars.tf.errors import OpError
from jaxvars.tf.functions.arguments import to_core
from jaxvars.tf.functions.concrete_function import ConcreteFunction
from jaxvars.tf.functions.function import BoundFunction, Function
from jaxvars.tf.saved_model.restored import RestoredFunction, concrete_of
from jaxvars.tf.tensors.dtypes import string
from jaxvars.tf.tensors.handles import NeedsStrings
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.tensor import Tensor, wrap

_REFUSALS = (SavedError, OpError, TypeError, ValueError)
_RANKS = 5  # what an open number of dimensions may be
_NEAR = 8
"""By how many numbers the size of an example may differ from that of what is made of it."""


_FUNCTIONS = Function, BoundFunction, ConcreteFunction, RestoredFunction


def functions_of(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the `tf.function`s of an object: its methods, and its attributes."""
    kind = type(value)
    if issubclass(kind, _FUNCTIONS):
        return  # a method has the function that takes its object, too
    for name in dir(kind):
        public = name == "__call__" or not name.startswith("__")
        if public and isinstance(inspect.getattr_static(kind, name, None), Function):
            yield name, getattr(value, name)
    for name, one in getattr(value, "__dict__", {}).items():
        if isinstance(one, _FUNCTIONS):
            yield name, one


def programs_of(function: Any, sizes: Sequence[int]) -> list[CoreConcrete]:
    """Return the programs of a `tf.function`; `sizes` are tried where unknown dimensions fail."""
    if isinstance(function, ConcreteFunction):
        return _programs_for(function, sizes)
    if isinstance(function, RestoredFunction):
        return function.again()
    owner = function._function if isinstance(function, BoundFunction) else function
    given = (function.__self__,) if isinstance(function, BoundFunction) else ()
    if owner._specs is not None:
        return _programs_for(function.get_concrete_function(), sizes)
    asked = [made for made in owner._list_requested(given) if made._is_open or made._is_composite]
    known = [one for made in asked for one in _programs_for(made, sizes)]
    _refuse_strings(owner.__name__, NeedsStrings in owner._met)
    called = [concrete_of(one) for one in traces_of(owner._core, given)]
    called = [one for one in called if not _is_symbolic(one)]
    return list({id(one._executable): one for one in [*known, *called]}.values())


def _refuse_strings(name: str, has_strings: Any) -> None:
    if has_strings:
        raise SavedError(
            f"{name} works on strings, by calls to this process, which cannot be saved. Save what "
            "takes numbers, and give it what was made of the strings. What is without @tf.function "
            "is left out: make the one that takes strings a function of Python."
        )


def _refuse_composite(function: ConcreteFunction) -> None:
    if function._is_composite:
        raise SavedError(
            f"{function.name} takes ragged or sparse tensors, for which a program cannot be saved: "
            "programs have fixed shapes. Save a function of x.to_tensor() or tf.sparse.to_dense(x)."
        )


def _is_symbolic(program: CoreConcrete) -> bool:
    return any(
        not isinstance(size, int) for spec in program._executable._specs for size in spec.shape
    )


def _programs_for(function: ConcreteFunction, sizes: Sequence[int]) -> list[CoreConcrete]:
    """Return the programs of a concrete function, with the sizes open that are."""
    _refuse_strings(function.name, function._table)
    _refuse_composite(function)
    if not function._is_open:
        return [function.core]

    def made(args: Any, kwargs: Any) -> CoreConcrete:
        given = {key: to_core(value) for key, value in kwargs.items()}
        return concrete_of(
            trace(function._compiled, tuple(map(to_core, (*function._own, *args))), given)
        )

    return make_open(made, (function._args, function._kwargs), sizes, function.name)


def make_open(
    make: Callable[..., CoreConcrete], given: Any, sizes: Sequence[int], name: str
) -> list[CoreConcrete]:
    """Return programs for unknown dimensions; where that fails, the first stays unknown.

    Where a number of dimensions is open, there is a program for each up to four.
    """
    if any(spec.shape.rank is None for spec in _specs_in(given)):
        return _make_for_ranks(make, given, sizes, name)
    opened = nest.map_structure(_to_core_spec, given)
    try:
        return [make(*opened)]
    except _REFUSALS as error:
        if not _has_open_sizes(given):
            raise
        with contextlib.suppress(*_REFUSALS), MAY_CHECK.set(True):
            return [make(*opened)]
        found: list[CoreConcrete] = []
        if _can_be_guessed(given):
            found = _make_for(make, given, sizes) or _make_for(make, given, _near(sizes))
        if not found:
            raise SavedError(
                f"{name} cannot be traced with the unknown dimensions that it was given: "
                f"{error}\nWhat is "
                "saved must hold for all sizes. Give those that must be certain ones: "
                "tf.TensorSpec([None, 3])."
            ) from error
        return found


def _make_for(
    make: Callable[..., CoreConcrete], given: Any, sizes: Iterable[int]
) -> list[CoreConcrete]:
    """Return programs for some sizes of the unknown dimensions after the first, if they work."""
    found: list[CoreConcrete] = []
    for size in sizes:
        with contextlib.suppress(*_REFUSALS):
            spec = functools.partial(_to_core_spec, size=size)
            found.append(make(*nest.map_structure(spec, given)))
    return found


def _near(sizes: Sequence[int]) -> list[int]:
    """Return sizes near some, which what comes to a variable may have before it is prepared."""
    near = {size + more for size in sizes for more in range(-_NEAR, _NEAR + 1)}
    return sorted(size for size in near - {*sizes} if size > 1)


def _make_for_ranks(
    make: Callable[..., CoreConcrete], given: Any, sizes: Sequence[int], name: str
) -> list[CoreConcrete]:
    """Return programs for numbers of dimensions that are open."""
    found: list[CoreConcrete] = []
    errors: list[Exception] = []
    for rank in range(_RANKS):
        filled = nest.map_structure(functools.partial(_set_rank, rank=rank), given)
        try:
            found += make_open(make, filled, sizes, name)
        except _REFUSALS as error:
            errors.append(error)
    if not found:
        raise errors[-1]
    return found


def _set_rank(value: Any, rank: int) -> Any:
    if not isinstance(value, TensorSpec) or value.shape.rank is not None:
        return value
    return TensorSpec([None] * rank, value.dtype, value.name)


def _specs_in(given: Any) -> list[TensorSpec]:
    return [spec for spec in nest.flatten(given) if isinstance(spec, TensorSpec)]


def _has_open_sizes(given: Any) -> bool:
    """Return whether there are unknown dimensions."""
    return any(None in tuple(spec.shape) for spec in _specs_in(given))


def _can_be_guessed(given: Any) -> bool:
    """Return whether one size may be that of the unknown dimensions after the first."""
    counts = [tuple(spec.shape)[1:].count(None) for spec in _specs_in(given)]
    return max(counts, default=0) == 1  # a program for cubes would be of no use


def _to_core_spec(value: Any, size: int | None = None) -> Any:
    """Return a spec as the core's, with a size for those that are open after the first."""
    if not isinstance(value, TensorSpec):
        return value
    first, rest = tuple(value.shape)[:1], tuple(value.shape)[1:]
    return CoreSpec((*first, *(size if x is None else x for x in rest)), value.dtype.dtype)


# ---------------------------------------------------------------- what is served
_OUTPUTS = (
    "Outputs for functions used as signatures must be a single Tensor, a sequence of Tensors, or a "
    "dictionary from string to Tensor."
)
_DEFAULT = "_default_save_signature"


def default_of(value: object) -> Any:
    """Return what is served of an object where nothing was requested; None for nothing."""
    if (served := getattr(value, _DEFAULT, None)) is not None:
        return served
    found = [one for _, one in functions_of(value) if _can_be_served(one)]
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
    try:
        results = function.structured_outputs
    except _REFUSALS:  # of sizes of 1: which ones it takes is known when it is saved
        return True
    if isinstance(results, Mapping):
        results = list(results.values())
    parts = results if isinstance(results, list | tuple) else [results]
    return all(isinstance(part, TensorSpec) for part in parts)


def programs_to_serve(function: Any, sizes: Sequence[int]) -> list[CoreConcrete]:
    """Return the programs of a function as it is served: of tensors by name, to a dict of them."""
    concrete = function
    if isinstance(function, Function | BoundFunction) and function.input_signature is not None:
        concrete = function.get_concrete_function()
    if not isinstance(concrete, ConcreteFunction):
        raise ValueError(
            f"Expected a TensorFlow function for which to generate a signature, but got {function}."
            " Only `tf.functions` with an input signature or concrete functions can be used as a "
            "signature."
        )
    _refuse_composite(concrete)
    _refuse_strings(concrete.name, any(spec.dtype == string for spec in concrete._specs()))
    specs = {str(spec.name): spec for spec in concrete._specs()}

    def serve(**tensors: Any) -> Any:
        def filled(x: Any) -> Any:
            return tensors[str(x.name)] if isinstance(x, TensorSpec) else to_core(x)

        args, kwargs = nest.map_structure(filled, (concrete._args, concrete._kwargs))
        return _name_results(
            wrap(concrete._compiled(*concrete._own, *args, **kwargs)), concrete.name
        )

    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in specs])
    setattr(serve, "__signature__", signature)  # noqa: B010 - pyright knows no such name
    serve.__name__ = concrete.name
    program = _compile(serve)
    return make_open(
        lambda given: concrete_of(trace(program, (), given)), (specs,), sizes, concrete.name
    )


def holds_for_all_sizes(function: Any) -> bool:
    """Return whether a function can be served for whatever its unknown dimensions are."""
    try:
        programs_to_serve(function, ())
    except _REFUSALS:
        return False
    return True


def _name_results(result: Any, name: str) -> dict[str, Any]:
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
