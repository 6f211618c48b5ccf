"""Values that are taken apart into arrays and a form, and the types of the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.staging import PyTreeTemplate
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.tracing import context
from jaxvars.tracing.key_order import map_leaves
from jaxvars.typing import Array

_KINDS = (jnp.bool_, jnp.integer, jnp.floating, jnp.complexfloating)


@final
@dataclass(frozen=True, repr=False)
class Type:
    """The type of an array: a weak one, of a Python number, takes the dtype of others."""

    shape: tuple[int, ...]
    dtype: Any
    weak: bool

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


def type_of(value: Any) -> Type:
    """Return the type of an array, a tracer, a number or an abstract value."""
    if not hasattr(value, "dtype"):
        value = jax.typeof(value)
    return Type(tuple(value.shape), value.dtype, bool(getattr(value, "weak_type", False)))


def joined(one: Type, other: Type) -> Type | None:
    """Return the type for values of either type; None if there is none."""
    if one.shape != other.shape:
        return None
    if one.dtype == other.dtype:
        return replace(one, weak=one.weak and other.weak)
    for weak, strong in ((one, other), (other, one)):
        if weak.weak and _rank(weak.dtype) <= _rank(strong.dtype):
            return strong
    return None


def all_joined(ones: Sequence[Type], others: Sequence[Type]) -> list[Type]:
    """Return the types for values of either types, which do not differ."""
    return [joined(one, other) or one for one, other in zip(ones, others, strict=True)]


def _rank(dtype: Any) -> int:
    return next((i for i, kind in enumerate(_KINDS) if jnp.issubdtype(dtype, kind)), -1)


def converted(value: Array, kind: Type) -> Array:
    """Return a value as an array of a type that was joined from its type.

    Raises:
        ControlFlowError: when it is a known integer that the type does not hold.
    """
    array = jnp.asarray(value)
    have = type_of(array)
    if have.dtype == kind.dtype and have.weak == kind.weak:
        return array
    if not context.is_tracer(value) and jnp.issubdtype(kind.dtype, jnp.integer):
        _check_fits(np.asarray(value), kind)
    return jax.lax.convert_element_type(array, kind.dtype)


def _check_fits(value: Any, kind: Type) -> None:
    info: Any = jnp.iinfo(kind.dtype)
    if value.size and not info.min <= value.min() <= value.max() <= info.max:
        raise ControlFlowError(
            f"At {user_line()} {value} is to be a {kind.dtype}, as the other branch or the next "
            f"iteration has it, but that holds {info.min} to {info.max}. Convert the other one to "
            "a wider dtype."
        )


def read_variables(value: Any) -> Any:
    """Return a value with arrays for the variables in it: what they hold now."""
    return map_leaves(lambda x: x, value)


def flatten_arrays(value: Any) -> tuple[PyTreeTemplate, list[Array]]:
    """Return a value's form, which holds no arrays, and its arrays."""
    form = PyTreeTemplate(read_variables(value))
    arrays, form.arrays = form.arrays, []
    return form, arrays
