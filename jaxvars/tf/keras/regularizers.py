"""`tf.keras.regularizers`: penalties on weights.

>>> float(L2(0.5)([1.0, 2.0]))
2.5
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.keras.adapter.facade import Configured, interpret, revived, serialized
from jaxvars.tf.listing import lister
from jaxvars.tf.math.elements import magnitude
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


class Regularizer(Configured, ABC):
    """The base of regularizers: called with a weight, they return a penalty."""

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return the penalty of a weight."""


def _sum(x: Array, l1: float, l2: float) -> Array:
    found = jnp.zeros((), x.dtype)
    found = found + l1 * jnp.sum(magnitude(x)) if l1 else found
    return found + l2 * jnp.sum(jnp.square(x)) if l2 else found


@final
class L1L2(Regularizer):
    """The sum of sizes, and that of squares, each times a number.

    Args:
        l1: the number of the sizes.
        l2: the number of the squares.
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1 or 0.0), float(l2 or 0.0)

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty of a weight."""
        return Tensor(_sum(to_array(x), self.l1, self.l2))


@final
class L1(Regularizer):
    """The sum of sizes, times a number.

    Args:
        l1: the number.
    """

    def __init__(self, l1: float = 0.01) -> None:
        self.l1 = float(l1)

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty of a weight."""
        return Tensor(_sum(to_array(x), self.l1, 0.0))


@final
class L2(Regularizer):
    """The sum of squares, times a number.

    Args:
        l2: the number.
    """

    def __init__(self, l2: float = 0.01) -> None:
        self.l2 = float(l2)

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty of a weight."""
        return Tensor(_sum(to_array(x), 0.0, self.l2))


@final
class OrthogonalRegularizer(Regularizer):
    """The mean size of the cosines between the rows of a matrix, or its columns, times a number.

    Args:
        factor: the number.
        mode: "rows" or "columns".
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        if mode not in ("rows", "columns"):
            raise ValueError(f"`mode` must be one of 'rows' or 'columns'. Received: mode={mode}")
        self.factor, self.mode = float(factor), mode

    def __call__(self, x: Any) -> Tensor:
        """Return the penalty of a matrix."""
        weights = to_array(x)
        if weights.ndim != 2:
            raise ValueError(f"Inputs to OrthogonalRegularizer must have rank 2. Received: {x}")
        rows = weights if self.mode == "rows" else weights.T
        lengths = jnp.sqrt(jnp.maximum(jnp.sum(rows**2, 1, keepdims=True), 1e-12))
        cosines = (rows / lengths) @ (rows / lengths).T
        others = jnp.sum(magnitude(cosines * (1 - jnp.eye(len(rows), dtype=rows.dtype))))
        pairs = len(rows) * (len(rows) - 1.0) / 2.0
        return Tensor(self.factor * 0.5 * others / pairs)


l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer
_BY_NAME = {
    "l1": L1, "l2": L2, "l1_l2": L1L2, "L1": L1, "L2": L2, "L1L2": L1L2,
    "OrthogonalRegularizer": OrthogonalRegularizer, "orthogonal_regularizer": OrthogonalRegularizer,
}  # fmt: skip


def get(identifier: Any) -> Any:
    """Return a regularizer by name, configuration, or as it is.

    >>> get("l2").l2
    0.01
    """
    return interpret(identifier, _BY_NAME.get, "regularizer")


def serialize(regularizer: Any) -> Any:
    """Return a configuration from which `deserialize` makes the same regularizer."""
    return serialized("regularizers", regularizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """Return the regularizer of a configuration."""
    return revived(config, custom_objects, get)


__dir__ = lister(__name__)
