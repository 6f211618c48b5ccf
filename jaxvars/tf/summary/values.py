"""Tensors, variables and values of Python, as `jv.tensorboard` takes them."""

from __future__ import annotations

from typing import Any

from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable


def as_value(value: Any) -> Any:
    """Return a tensor as an array, a string as one, and anything else as it is."""
    if isinstance(value, Variable):
        return value.aliased
    if not isinstance(value, Tensor):
        return value
    return value._array.item().decode() if is_text(value._array) else value._array
