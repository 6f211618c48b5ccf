"""`tf.keras.constraints`: what keeps weights within bounds after each update.

>>> from jaxvars import tf
>>> NonNeg()([-1.0, 2.0]).numpy().tolist()
[0.0, 2.0]
"""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.keras.adapter.facade import Configured, interpret, revived, serialized
from jaxvars.tf.keras.backend import epsilon
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


class Constraint(Configured):
    """The base of constraints: called with a weight, they return what it is to be."""

    def __call__(self, w: Any) -> Any:
        """Return what a weight is to be."""
        raise NotImplementedError("A Constraint has a method __call__(self, w).")


def _norms(w: Array, axis: Any) -> Array:
    along = tuple(axis) if isinstance(axis, list) else axis
    return jnp.sqrt(jnp.sum(jnp.square(w), axis=along, keepdims=True))


@final
class MaxNorm(Constraint):
    """Weights whose norm is at most a number: longer ones are shortened.

    Args:
        max_value: the number.
        axis: along which norms are taken.
    """

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Tensor:
        """Return the weights, no longer than allowed."""
        weights = to_array(w)
        norms = _norms(weights, self.axis)
        return Tensor(weights * jnp.clip(norms, 0, self.max_value) / (epsilon() + norms))


@final
class NonNeg(Constraint):
    """Weights that are not negative: those that are become zero."""

    def __call__(self, w: Any) -> Tensor:
        """Return the weights, with zeros for negative ones."""
        return Tensor(jnp.maximum(to_array(w), 0))


@final
class UnitNorm(Constraint):
    """Weights of norm 1.

    Args:
        axis: along which norms are taken.
    """

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Tensor:
        """Return the weights divided by their norms."""
        weights = to_array(w)
        return Tensor(weights / (epsilon() + _norms(weights, self.axis)))


@final
class MinMaxNorm(Constraint):
    """Weights whose norm is between two numbers.

    Args:
        min_value: the smaller number.
        max_value: the larger one.
        rate: how much of the way there is gone, of 1.
        axis: along which norms are taken.
    """

    def __init__(
        self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0
    ) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Tensor:
        """Return the weights with norms moved towards the bounds."""
        weights = to_array(w)
        norms = _norms(weights, self.axis)
        kept = (1 - self.rate) * norms
        wanted = self.rate * jnp.clip(norms, self.min_value, self.max_value) + kept
        return Tensor(weights * wanted / (epsilon() + norms))


max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm
_BY_NAME: dict[str, type[Constraint]] = {
    "MaxNorm": MaxNorm, "NonNeg": NonNeg, "UnitNorm": UnitNorm, "MinMaxNorm": MinMaxNorm,
    "max_norm": MaxNorm, "non_neg": NonNeg, "unit_norm": UnitNorm, "min_max_norm": MinMaxNorm,
}  # fmt: skip


def get(identifier: Any) -> Any:
    """Return a constraint by name, configuration, or as it is.

    >>> get("max_norm").max_value
    2
    """
    return interpret(identifier, _BY_NAME.get, "constraint")


def serialize(constraint: Any) -> Any:
    """Return a configuration from which `deserialize` makes the same constraint."""
    return serialized("constraints", constraint)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """Return the constraint of a configuration."""
    return revived(config, custom_objects, get)


__dir__ = lister(__name__)
