"""Linear operators as pytrees, and their parameters.

Rules this file keeps:
- flattened, an operator is its tensors; what is left counts for the signature of a `tf.function`;
- a parameter that is a variable stays one, in compiled functions, too.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.tf.linalg.operators.hints import document
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable, face_of
from jaxvars.typing import Array

C = TypeVar("C", bound=type)

_CLASSES: set[type] = set()


class _Rest(NamedTuple):
    """What is static of an operator: its class, the names of its tensors, and other attributes."""

    kind: type
    names: tuple[str, ...]
    others: tuple[tuple[str, Any], ...]


def parameter(value: Any, dtype: Any = None) -> Any:
    """Return a parameter: a variable as it is, something else as a tensor."""
    if isinstance(value, Variable):
        return value
    return Tensor(array(value, None if dtype is None else as_dtype(dtype)))


def array(value: Any, dtype: DType | None = None) -> Array:
    """Return the array of a parameter, an argument or a result, of a type if it has none."""
    return value if isinstance(value, jax.Array) else to_array(value, hint=dtype)


def parameters(operator: Any) -> dict[str, Any]:
    """Return the arguments that an operator was made of, by name."""
    names = list(inspect.signature(type(operator).__init__).parameters)[1:]
    return {name: getattr(operator, f"_{name}", None) for name in names}


def registered(kind: C) -> C:
    """Decorate a class of operators: its docs have the hints, compiled functions take it apart."""
    document(kind)
    _CLASSES.add(kind)
    jax.tree_util.register_pytree_node(kind, _flatten, _unflatten)
    return kind


def _flatten(operator: Any) -> tuple[tuple[Any, ...], _Rest]:
    found = vars(operator)
    names = found.get("_changing")  # what stands for tensors may be anything while JAX looks at it
    if names is None:
        names = tuple(name for name in sorted(found) if _is_changing(found[name]))
    rest = sorted(found.keys() - {*names, "_changing", "_name_scope"})  # those of no matter
    others = tuple((name, found[name]) for name in rest)
    return tuple(_outside(found[name]) for name in names), _Rest(type(operator), names, others)


def _unflatten(rest: _Rest, children: Any) -> Any:
    made = object.__new__(rest.kind)
    vars(made).update(rest.others, _changing=rest.names)
    values = map(_inside, children)
    vars(made).update(zip(rest.names, values, strict=True))
    return made


def _is_changing(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_changing, value))
    return type(value) in _CLASSES or isinstance(
        value, Tensor | Variable | CoreVariable | jax.Array | np.ndarray
    )


def _outside(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_outside, value))
    if isinstance(value, Variable):
        return value.aliased
    return value._array if isinstance(value, Tensor) else value


def _inside(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_inside, value))
    if isinstance(value, CoreVariable):
        return face_of(value)
    return Tensor(value) if isinstance(value, jax.Array | np.ndarray) else value
