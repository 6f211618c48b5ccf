"""How what has a value on some ways through a block only is carried: by its form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.autograph.operators.values import NoValue, Perhaps
from jaxvars.core.traversal import Alias
from jaxvars.core.variable import Variable
from jaxvars.tensors.array_like import Face
from jaxvars.tensors.wrapping import words
from jaxvars.tracing import context
from jaxvars.tracing.key_order import map_leaves

FILL, PERHAPS, REFUSE = "fill", "perhaps", "refuse"


class Plan(NamedTuple):
    """How to carry what has a value on some ways through a block only.

    Attributes:
        kind: zeros where there is none; the value and whether there is one; not at all.
        form: shapes and dtypes.
        missing: the branch that gives none.
    """

    kind: str
    form: Any
    missing: str = ""


NO_PLAN = Plan("", None)


def is_absent(value: Any) -> bool:
    """Return whether a name or place has no value at all."""
    return isinstance(value, NoValue) and not isinstance(value, Perhaps)


def is_slice(value: object) -> bool:
    """Return whether a value stands for a part of a Variable."""
    return isinstance(value, Face) and not isinstance(value, Variable)


def is_variable(value: object) -> bool:
    """Return whether a value is a Variable, or another name of one."""
    return isinstance(value, Variable | Alias)


def map_variables(change: Callable[[Variable], Any], value: Any) -> Any:
    """Return a value with something else for each Variable in it."""
    return map_leaves(lambda x: change(x) if is_variable(x) else x, value, is_leaf=is_variable)


def variables_in(value: Any) -> list[int]:
    """Return the identities of the Variables in a value."""
    leaves = jax.tree.leaves(value, is_leaf=is_variable)
    return [id(leaf) for leaf in leaves if is_variable(leaf)]


def untraced(value: Any) -> Any:
    """Return a value with forms for what is traced, which must not outlive its trace."""
    if isinstance(value, Perhaps):
        return Perhaps(value.name, value.line, untraced(value.value), None)
    change = lambda x: form_of(x) if context.is_tracer(x) else x  # noqa: E731 - said once
    return map_leaves(change, value, is_leaf=is_variable)


def form_of(leaf: Any) -> Any:
    """Return the shape and dtype of an array or number; other leaves as they are."""
    if isinstance(leaf, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        return jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf))
    return leaf


def is_form(leaf: object) -> bool:
    """Return whether a leaf is a shape and dtype."""
    return isinstance(leaf, jax.ShapeDtypeStruct)


def zeros(form: Any) -> Any:
    """Return a value of a form, with zeros."""
    return map_leaves(
        lambda s: jnp.zeros(s.shape, s.dtype) if is_form(s) else s, form, is_leaf=is_form
    )


def example(form: Any) -> str:
    """Return code that makes a value of a form."""
    if is_form(form):
        return words().zeros.format(shape=form.shape, dtype=form.dtype)
    return "..."
