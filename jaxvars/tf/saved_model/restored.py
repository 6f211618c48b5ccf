"""Functions that were loaded; arguments that are Python values choose the program."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

from jaxvars.compiler.concrete_function import ConcreteFunction as CoreConcrete
from jaxvars.export.forms import Static
from jaxvars.export.forms import Tensor as TensorForm
from jaxvars.export.functions import Known, trace
from jaxvars.export.loaded import SavedFunction
from jaxvars.tensors.spec import TensorSpec as CoreSpec
from jaxvars.tf.attributes import getter
from jaxvars.tf.functions.arguments import to_body, to_core
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import refusing
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.train.graph import Node
from jaxvars.tf.variables.variable import Variable, face_of

Form: TypeAlias = Any


def concrete_of(known: Known) -> CoreConcrete:
    """Return a program that is known as a concrete function of the core."""
    return CoreConcrete(known.entry, "", known.binder.bind, {}, known.entry.specs())


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
        return _call_fitting(self._saved, bound, lambda: self._mismatch(args, kwargs))

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
            given = {name: _to_specs(form) for name, form in program.arguments.items()}
            bound = inspect.BoundArguments(saved.__signature__, OrderedDict(given))
            found.append(concrete_of(trace(saved.function, bound.args, bound.kwargs)))
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
        return _call_fitting(self._saved, bound, lambda: TypeError(f"{self._saved} got {given}."))

    @property
    def structured_input_signature(self) -> tuple[tuple[()], dict[str, TensorSpec]]:
        """The arguments: none by position, specs by name."""
        return (), _to_specs_of([program.arguments for program in self._saved.programs])

    @property
    def structured_outputs(self) -> dict[str, TensorSpec]:
        """The specs of the results by name."""
        return _to_specs_of([program.outputs for program in self._saved.programs])

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the arguments."""
        return list(self.structured_input_signature[1].values())

    @property
    def outputs(self) -> list[TensorSpec]:
        """The specs of the results."""
        return list(self.structured_outputs.values())

    variables = getter("_used", "The variables that it reads or assigns.", tuple)

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Those of them that are trainable."""
        return tuple(variable for variable in self._used if variable.trainable)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self._program}>"


def _to_specs(form: Form) -> Any:
    """Return the arguments of a form, with specs for tensors."""
    if isinstance(form, TensorForm):
        return CoreSpec(tuple(s if isinstance(s, int) else None for s in form.shape), form.dtype)
    if isinstance(form, Static):
        return form.value
    if isinstance(form, Mapping):
        return {key: _to_specs(child) for key, child in form.items()}
    if form is None:
        return None
    parts = map(_to_specs, form)
    return type(form)(*parts) if hasattr(form, "_fields") else type(form)(parts)


def _to_specs_of(forms: Sequence[Mapping[str, TensorForm]]) -> dict[str, TensorSpec]:
    """Return specs by name, of what several programs take or return."""
    return {name: _to_spec([form[name] for form in forms], name) for name in forms[0]}


def _to_spec(forms: Sequence[TensorForm], name: str) -> TensorSpec:
    """Return the spec of a tensor, with what is not the same in all programs unknown."""
    if len({len(form.shape) for form in forms}) > 1:
        return TensorSpec(None, forms[0].dtype, name)
    sizes = [{*of_axis} for of_axis in zip(*(form.shape for form in forms), strict=True)]
    known = [found.pop() if len(found) == 1 else None for found in sizes]
    return TensorSpec([x if isinstance(x, int) else None for x in known], forms[0].dtype, name)


@final
class _Unlike(Exception):  # noqa: N818 - a signal between us, not an error
    """An argument that is not what a program takes."""


def _call_fitting(
    saved: SavedFunction, bound: inspect.BoundArguments, mismatch: Callable[[], Exception]
) -> Any:
    """Call the first program that takes such arguments; raise what `mismatch` returns if none."""
    for program in saved.programs:
        fitted = _fit_arguments(program.arguments, bound)
        if fitted is not None:
            with refusing():
                return wrap(saved(*fitted.args, **fitted.kwargs))
    raise mismatch()


def _fit_arguments(forms: Mapping[str, Form], bound: inspect.BoundArguments) -> Any:
    """Return the arguments of a call as a program takes them; None if it does not."""
    new = inspect.BoundArguments(bound.signature, OrderedDict(bound.arguments))
    new.apply_defaults()
    try:
        for name, value in new.arguments.items():
            given = value if name in bound.arguments else to_body(value)
            new.arguments[name] = _fit(forms[name], given)
    except (_Unlike, TypeError, ValueError, KeyError):
        return None
    return new


def _fit(form: Form, value: Any) -> Any:
    if isinstance(form, TensorForm):
        return _fit_tensor(form, value)
    if isinstance(form, Static):
        outer = to_core(value)
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
