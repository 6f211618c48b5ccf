"""Which programs of `tf.function`s a folder gets, and what they are once loaded.

Rules this file keeps:
- what was traced is saved; an `input_signature`, and a signature that was asked for, with its open
  sizes;
- arguments that are Python values are part of a program, and choose it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, final

from jaxvars._compile import Function as CoreFunction
from jaxvars._compile import compile as _compile
from jaxvars._concrete import ConcreteFunction as CoreConcrete
from jaxvars._saved_forms import Static
from jaxvars._saved_forms import Tensor as TensorForm
from jaxvars._saved_functions import Known, _first_objects
from jaxvars._saved_functions import _trace as trace
from jaxvars._saved_loaded import SavedFunction
from jaxvars._tensor import TensorSpec as CoreSpec
from jaxvars.errors import SavedError
from jaxvars.tf import nest
from jaxvars.tf._arguments import inside, outside
from jaxvars.tf._concrete_function import ConcreteFunction
from jaxvars.tf._convert import dtype_of, to_array
from jaxvars.tf._dtypes import as_dtype
from jaxvars.tf._function import BoundFunction, Function
from jaxvars.tf._specs import TensorSpec
from jaxvars.tf._tensor import Tensor, wrap
from jaxvars.tf._train_graph import Node
from jaxvars.tf._variable import Variable, face_of
from jaxvars.tf.errors import OpError

Form: TypeAlias = Any

_REFUSALS = (SavedError, OpError, TypeError, ValueError)

_OUTPUTS = (
    "Outputs for functions used as signatures must be a single Tensor, a sequence of Tensors, or a "
    "dictionary from string to Tensor."
)


# ---------------------------------------------------------------- saving
def functions_of(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the `tf.function`s of an object: its methods, and its attributes."""
    kind = type(value)
    for name in dir(kind):
        public = name == "__call__" or not name.startswith("__")
        if public and isinstance(inspect.getattr_static(kind, name, None), Function):
            yield name, getattr(value, name)
    for name, one in getattr(value, "__dict__", {}).items():
        if isinstance(one, Function | BoundFunction | ConcreteFunction | RestoredFunction):
            yield name, one


def programs_of(function: Any, sizes: Sequence[int]) -> list[CoreConcrete]:
    """Return the programs of a `tf.function`: none if it was never traced.

    Args:
        function: the function.
        sizes: to try in place of an open size that it cannot be traced with.
    """
    if isinstance(function, ConcreteFunction):
        return _programs_for(function, sizes)
    if isinstance(function, RestoredFunction):
        return function.again()
    owner = function._function if isinstance(function, BoundFunction) else function
    given = (function.__self__,) if isinstance(function, BoundFunction) else ()
    if owner._specs is not None:
        return _programs_for(function.get_concrete_function(), sizes)
    holder = id(given[0]) if given else 0
    asked = [made for number, made in owner._known if number == holder or not given]
    known = [one for made in asked if made._is_open for one in _programs_for(made, sizes)]
    called = [one for one in _called(owner._core, given) if not _is_symbolic(one)]
    return list({id(one._entry): one for one in [*known, *called]}.values())


def _is_symbolic(program: CoreConcrete) -> bool:
    return any(not isinstance(size, int) for spec in program._entry._specs for size in spec.shape)


def _called(core: CoreFunction, given: tuple[Any, ...]) -> list[CoreConcrete]:
    """Return the programs of a function that were made by calls."""
    wanted = [id(x) for x in given]
    return [
        _concrete(Known(core._signature, entry))
        for entry in list(core._entries.values())
        if not entry.is_stale and _first_objects(entry, len(given)) == wanted
    ]


def _concrete(known: Known) -> CoreConcrete:
    return CoreConcrete(known.entry, "", known.binder.bind)


def _programs_for(function: ConcreteFunction, sizes: Sequence[int]) -> list[CoreConcrete]:
    """Return the programs of a concrete function, with the sizes open that are."""
    if not function._is_open:
        return [function.core]

    def made(args: Any, kwargs: Any) -> CoreConcrete:
        given = {key: outside(value) for key, value in kwargs.items()}
        return _concrete(trace(function._compiled, tuple(map(outside, args)), given))

    return _opened(made, (function._args, function._kwargs), sizes, function.name)


def _opened(
    make: Callable[..., CoreConcrete], given: Any, sizes: Sequence[int], name: str
) -> list[CoreConcrete]:
    """Return programs for open sizes; where that fails, the first stays open, for some others."""
    try:
        return [make(*nest.map_structure(_core_spec, given))]
    except _REFUSALS as error:
        if not _open_sizes(given, 0):
            raise
        found: list[CoreConcrete] = []
        for size in sizes if _open_sizes(given, 1) else ():
            with contextlib.suppress(*_REFUSALS):
                spec = functools.partial(_core_spec, size=size)
                found.append(make(*nest.map_structure(spec, given)))
        if not found:
            raise SavedError(
                f"{name} cannot be traced with the open sizes that it was given: {error}\nWhat is "
                "saved must hold for all sizes. Give those that must be certain ones: "
                "tf.TensorSpec([None, 3])."
            ) from error
        return found


def _open_sizes(given: Any, first: int) -> bool:
    """Tell whether there are open sizes from some dimension on."""
    specs = [spec for spec in nest.flatten(given) if isinstance(spec, TensorSpec)]
    return any(None in tuple(spec.shape)[first:] for spec in specs)


def _core_spec(value: Any, size: int | None = None) -> Any:
    """Return a spec as the core's, with a size for those that are open after the first."""
    if not isinstance(value, TensorSpec):
        return value
    first, rest = tuple(value.shape)[:1], tuple(value.shape)[1:]
    return CoreSpec((*first, *(size if x is None else x for x in rest)), value.dtype.dtype)


def served(function: Any, sizes: Sequence[int]) -> list[CoreConcrete]:
    """Return the programs of a function as it is served: of tensors by name, to a dict of them.

    Args:
        function: the function.
        sizes: see `programs_of`.

    Raises:
        ValueError: when it is no function with a signature, or returns something else.
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
        return _by_name(wrap(concrete._compiled(*args, **kwargs)), concrete.name)

    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in specs])
    setattr(serve, "__signature__", signature)  # noqa: B010 - pyright knows no such name
    program = _compile(serve)
    return _opened(
        lambda given: _concrete(trace(program, (), given)), (specs,), sizes, concrete.name
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


# ---------------------------------------------------------------- loaded
@final
class RestoredFunction(Node):
    """A `tf.function` that was saved.

    Attributes:
        name: what it was called.
    """

    def __init__(self, saved: SavedFunction | None, name: str) -> None:
        self._saved = saved
        self.name = self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program that was saved for such arguments.

        Raises:
            ValueError: when there is none.
        """
        if self._saved is None:
            raise ValueError("Found zero restored functions for caller function.")
        try:
            bound = self._saved.__signature__.bind(*args, **kwargs)
        except TypeError:
            raise self._mismatch(args, kwargs) from None
        for program in self._saved.programs:
            fitted = _fitted(program.arguments, bound)
            if fitted is not None:
                return wrap(self._saved(*fitted.args, **fitted.kwargs))
        raise self._mismatch(args, kwargs)

    def _mismatch(self, args: Any, kwargs: Any) -> ValueError:
        options = "\n  ".join(map(str, self._saved.programs if self._saved else ()))
        return ValueError(
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n"
            f"  Positional arguments: {args}\n  Keyword arguments: {kwargs}\nExpected these "
            f"arguments to match one of the following options:\n  {options}"
        )

    def again(self) -> list[CoreConcrete]:
        """Return its programs, to be saved once more."""
        found: list[CoreConcrete] = []
        if (saved := self._saved) is None:
            return found
        for program in saved.programs:
            given = {name: _specs(form) for name, form in program.arguments.items()}
            bound = inspect.BoundArguments(saved.__signature__, OrderedDict(given))
            found.append(_concrete(trace(saved.function, bound.args, bound.kwargs)))
        return found


@final
class SignatureFunction(Node):
    """A function that is served: of tensors by name, to a dict of tensors.

    Attributes:
        name: what it is served as.
    """

    def __init__(self, saved: SavedFunction, name: str, variables: Mapping[str, Any]) -> None:
        self._saved, self.name = saved, name
        self._program = saved.programs[0]
        used = [path for one in saved.programs for path in (*one.reads, *one.writes)]
        self._used = [face_of(variables[path]) for path in dict.fromkeys(used)]

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Call it with tensors by name, or with one alone.

        Raises:
            TypeError: when they are not those of the signature.
        """
        names = list(self._program.arguments)
        if len(args) > 1 or set(names) != {*names[: len(args)], *kwargs}:
            raise TypeError(f"signature_wrapper({', '.join(names)}) got {args} and {kwargs}.")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        bound = self._saved.__signature__.bind(**given)
        for program in self._saved.programs:
            fitted = _fitted(program.arguments, bound)
            if fitted is not None:
                return wrap(self._saved(**fitted.kwargs))
        raise TypeError(f"{self._saved} got {given}.")

    @property
    def structured_input_signature(self) -> tuple[tuple[()], dict[str, TensorSpec]]:
        """The arguments: none by position, specs by name."""
        return (), {name: _spec(form, name) for name, form in self._program.arguments.items()}

    @property
    def structured_outputs(self) -> dict[str, TensorSpec]:
        """The specs of the results by name."""
        return {name: _spec(form, name) for name, form in self._program.outputs.items()}

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the arguments."""
        return list(self.structured_input_signature[1].values())

    @property
    def outputs(self) -> list[TensorSpec]:
        """The specs of the results."""
        return list(self.structured_outputs.values())

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns."""
        return tuple(self._used)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(variable for variable in self._used if variable.trainable)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self._program}>"


def _specs(form: Form) -> Any:
    """Return the arguments of a form, with specs for tensors."""
    if isinstance(form, TensorForm):
        return CoreSpec(tuple(s if isinstance(s, int) else None for s in form.shape), form.dtype)
    if isinstance(form, Static):
        return form.value
    if isinstance(form, Mapping):
        return {key: _specs(child) for key, child in form.items()}
    if form is None:
        return None
    parts = map(_specs, form)
    return type(form)(*parts) if hasattr(form, "_fields") else type(form)(parts)


def _spec(form: TensorForm, name: str) -> TensorSpec:
    sizes = [size if isinstance(size, int) else None for size in form.shape]
    return TensorSpec(sizes, form.dtype, name)


@final
class _Unlike(Exception):  # noqa: N818 - a signal between us, not an error
    """An argument that is not what a program takes."""


def _fitted(forms: Mapping[str, Form], bound: inspect.BoundArguments) -> Any:
    """Return the arguments of a call as a program takes them; None if it does not."""
    new = inspect.BoundArguments(bound.signature, OrderedDict(bound.arguments))
    new.apply_defaults()
    try:
        for name, value in new.arguments.items():
            given = value if name in bound.arguments else inside(value)
            new.arguments[name] = _fit(forms[name], given)
    except (_Unlike, TypeError, ValueError, KeyError):
        return None
    return new


def _fit(form: Form, value: Any) -> Any:
    if isinstance(form, TensorForm):
        return _fit_tensor(form, value)
    if isinstance(form, Static):
        outer = outside(value)
        if type(outer) is not type(form.value) or outer != form.value:
            raise _Unlike
        return outer
    if form is None:
        if value is not None:
            raise _Unlike
        return None
    if isinstance(form, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(form):
            raise _Unlike
        return {key: _fit(child, value[key]) for key, child in form.items()}
    if not isinstance(value, list | tuple) or len(value) != len(form):
        raise _Unlike
    parts = [_fit(child, part) for child, part in zip(form, value, strict=True)]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _fit_tensor(form: TensorForm, value: Any) -> Any:
    wanted = as_dtype(form.dtype)
    array = to_array(value) if hasattr(value, "dtype") else to_array(value, wanted)
    sizes = list(zip(form.shape, array.shape, strict=False))
    fits = len(form.shape) == len(array.shape) and all(
        not isinstance(want, int) or want == have for want, have in sizes
    )
    if dtype_of(array) != wanted or not fits:
        raise _Unlike
    return array
