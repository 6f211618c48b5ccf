"""How arguments and results of a `tf.function` count: what the core gets, what the body sees.

| an argument | counts | the core gets | the body sees |
|---|---|---|---|
| Tensor, array of any library, NumPy number | by shape and type | an array | a Tensor |
| Python int, float, complex | by value | its string | it |
| bool, str, bytes, None, other hashables | by value | it | it |
| Variable | itself | the variable of jaxvars | it |
| Module, other object, function | itself | it | it |
| object with a `__tf_tracing_type__` | by that | the type | its placeholder |
| list, tuple, dict | its form, and parts | the same of its parts | the same of its parts |
| what has `__tf_flatten__` | by what it returns, and parts | the same of its parts | it, again |
"""

from __future__ import annotations

import ast
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import jax
import numpy as np

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import NotATensorError
from jaxvars.objects.identity import exact, held
from jaxvars.tensors.foreign_arrays import is_foreign_array, says_arrays
from jaxvars.tensors.tensor import contents_of
from jaxvars.tf import nest
from jaxvars.tf.functions.protocols import TraceType
from jaxvars.tf.tensors.components import Components, components, has_components
from jaxvars.tf.tensors.convert import dtype_of, string_array, to_array
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.specs import SparseTensorSpec
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tf.variables.extension_type import ExtensionTypeSpec
from jaxvars.tf.variables.variable import Variable, face_of

_MARK = "literal "
_LITERALS: dict[str, Any] = {}
"""Numbers by their string: JAX would trace a number, and compares strings quickly."""

_OTHERS: dict[Hashable, str] = {}
"""The strings of numbers of a user's class, which have no repr that tells them apart."""

_READERS = {"int": int, "float": float, "complex": complex, "str": ast.literal_eval}

_HOW: dict[type, Callable[[Any], Any]] = {}
"""How a class is passed on, found out when it is first met."""


def to_core(value: Any) -> Any:
    """Return an argument as the core takes it."""
    how = _HOW.get(type(value))
    if how is None:
        how = _HOW[type(value)] = _find_rule(type(value))
    return how(value)


def default_to_core(value: Any) -> Any:
    """Return a default as the core takes it, which reads one of another library at each call."""
    return value if _find_rule(type(value)) is _convert_foreign else to_core(value)


def to_body(value: Any) -> Any:
    """Return an argument as the body is to see it."""
    if isinstance(value, str):
        return _LITERALS[value] if value in _LITERALS else _read_literal(value)
    if isinstance(value, CoreVariable):
        return face_of(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(to_body, value))
    if isinstance(value, list | tuple):
        return type(value)(map(to_body, value))
    if isinstance(value, dict):
        return {key: to_body(part) for key, part in value.items()}
    if isinstance(value, Components):
        return value.object(to_body)
    return value.placeholder_value(None) if isinstance(value, TraceType) else wrap(value)


def _find_rule(kind: type) -> Callable[[Any], Any]:
    for base, how in _RULES:
        if issubclass(kind, base):
            return how
    if has_components(kind):
        return lambda value: components(value, to_core)
    if hasattr(kind, "__tf_tracing_type__"):
        return lambda value: value.__tf_tracing_type__(None)
    return _convert_foreign if says_arrays(kind) else _return_value


def _return_value(value: Any) -> Any:
    return value


def _mark_literal(value: Any) -> str:
    string = f"{_MARK}{type(value).__name__} {value!r}"
    _LITERALS.setdefault(string, value)
    return string


def _mark_object(value: Any) -> str:
    string = _OTHERS.setdefault(exact(value, held), f"{_MARK}of {uuid.uuid4().hex}")
    _LITERALS.setdefault(string, value)
    return string


def _read_literal(string: str) -> Any:
    """Return the number of a string that another process wrote; other strings as they are."""
    kind, _, digits = string.removeprefix(_MARK).partition(" ")
    return _READERS[kind](digits) if string.startswith(_MARK) and kind in _READERS else string


def _refuse(value: Any) -> Any:
    if isinstance(value, weakref.ref):
        raise TypeError(f"weakref input {value} not supported for tf.function.")
    raise TypeError(
        f"Could not generate a generic TraceType for {value!r}.Please verify that it is "
        "immutable/hashable. Otherwise, consider implementing the Tracing Protocol for it."
    )


def _convert_sequence(value: Any) -> Any:
    parts = map(to_core, value)
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _convert_numpy(value: Any) -> Any:
    return value if value.dtype.kind not in "OSUT" else string_array(np.asarray(value))


def _convert_foreign(value: Any) -> Any:
    """Return the numbers or strings of an array of another library; the core refuses others."""
    try:
        return _convert_numpy(contents_of(value, "", "")) if is_foreign_array(value) else value
    except NotATensorError:
        return value


_RULES: list[tuple[Any, Callable[[Any], Any]]] = [
    (Tensor, lambda value: value._array),
    (Variable, lambda value: value.aliased),
    (bool, _return_value),
    (np.ndarray | np.generic, _convert_numpy),
    ((int, float, complex), _mark_object),
    (str, lambda value: _mark_literal(value) if value.startswith(_MARK) else value),
    ((list, tuple), _convert_sequence),
    (Mapping, lambda value: {key: to_core(part) for key, part in value.items()}),
    ((weakref.ref, set, bytearray), _refuse),
]
_HOW.update(dict.fromkeys([int, float, complex], _mark_literal))


# ---------------------------------------------------------------- what they are called
def is_spec(value: Any) -> bool:
    """Return whether a value is a `tf.TensorSpec`, or something of its kind."""
    if isinstance(value, Tensor | Variable | jax.Array | np.ndarray | np.generic):
        return False
    return hasattr(value, "shape") and hasattr(value, "dtype") and not says_arrays(type(value))


def is_traced(value: Any) -> bool:
    """Return whether an argument counts by shape and type."""
    return isinstance(value, Tensor | np.ndarray | np.generic | jax.Array) or is_foreign_array(
        value
    )


def composite_spec(value: Any) -> Any:
    """Return the spec of a ragged or sparse tensor; a spec of one or of an extension type.

    None for anything else.
    """
    if isinstance(value, RaggedTensor):
        return RaggedTensorSpec.from_value(value)
    if isinstance(value, SparseTensor):
        return SparseTensorSpec.from_value(value)
    is_ragged = isinstance(value, RaggedTensorSpec) and value.ragged_rank
    return value if is_ragged or isinstance(value, SparseTensorSpec | ExtensionTypeSpec) else None


def describe(value: Any) -> str:
    """Return an argument, or result, as it stands in a signature."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return "None" if value is None else f"Literal[{value!r}]"
    if isinstance(value, tuple | list):
        kind = "Tuple" if type(value) is tuple else type(value).__name__.title()
        kind = type(value).__name__ if hasattr(value, "_fields") else kind
        return f"{kind}[{', '.join(map(describe, value))}]"
    if isinstance(value, dict):
        pairs = (f"[{key!r}, {describe(part)}]" for key, part in value.items())
        return f"Dict[{', '.join(pairs)}]"
    if isinstance(value, Variable):
        return f"VariableSpec(shape={value.shape}, dtype={value.dtype!r})"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return format_spec(value)
    return f"<{type(value).__name__} object>"


def format_spec(value: Any) -> str:
    """Return the spec of something with a shape and dtype, as a string."""
    if (composite := composite_spec(value)) is not None:
        return repr(composite)
    dtype = dtype_of(value) if isinstance(value, np.ndarray | jax.Array) else value.dtype
    name = getattr(value, "name", None) if is_spec(value) else None
    shape = getattr(value, "shape", None)
    shown = tuple(shape) if isinstance(shape, tuple) else shape
    return f"TensorSpec(shape={shown}, dtype={dtype!r}, name={name!r})"


_BAD_RESULT = (
    "To be compatible with tf.function, Python functions must return zero or more Tensors or "
    "ExtensionTypes or None values; in compilation of {function}, found return value of type "
    "{kind}, which is not a Tensor or ExtensionType."
)


def convert_result(fn: Callable[..., Any], leaf: Any) -> Any:
    """Return a part of a result as the core takes it."""
    if isinstance(leaf, Tensor | Variable):
        return to_array(leaf)
    if leaf is None or not jax.tree_util.all_leaves([leaf]):
        return leaf  # a TensorArray, for example
    try:
        return to_array(leaf)
    except (TypeError, ValueError):
        raise TypeError(_BAD_RESULT.format(function=fn, kind=type(leaf).__name__)) from None


def keep_dict_order(result: Any) -> Any:
    """Return a result with dicts that JAX does not sort."""
    if type(result) is dict:
        return OrderedDict((key, keep_dict_order(part)) for key, part in result.items())
    if nest.is_nested(result) and not isinstance(result, Mapping):
        return nest._like(result, list(map(keep_dict_order, result)))
    return result
