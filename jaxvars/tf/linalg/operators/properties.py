"""What a linear operator is: its type, its shape, and what is known of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.hints import HINTS, Hint
from jaxvars.tf.tensors.attributes import held
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.module import Module


class Described(Module, ABC):
    """What is known of an operator without its elements."""

    _dtype: Any
    _is_square: Hint

    @abstractmethod
    def _shape(self) -> Any:
        """Return the shape: (..., m, n)."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape as numbers."""
        return tuple(int(size or 0) for size in self.shape)

    dtype = held("_dtype", "The type of the elements.")

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was made of, by the names of the arguments."""
        return tree.parameters(self)

    @property
    def graph_parents(self) -> list[Any]:
        """An empty list: there is no graph."""
        return []

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense matrix."""
        return TensorShape(self._shape())

    @property
    def batch_shape(self) -> TensorShape:
        """The shape without the last two axes."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    @property
    def domain_dimension(self) -> int:
        """The size of what it is applied to."""
        return self.sizes[-1]

    @property
    def range_dimension(self) -> int:
        """The size of what comes out."""
        return self.sizes[-2]

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """Return `shape` as a tensor."""
        return Tensor(np.asarray(self.sizes, np.int32))

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Return `batch_shape` as a tensor."""
        return Tensor(np.asarray(self.sizes[:-2], np.int32))

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """Return `tensor_rank` as a tensor."""
        return Tensor(np.asarray(self.tensor_rank, np.int32))

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """Return `domain_dimension` as a tensor."""
        return Tensor(np.asarray(self.domain_dimension, np.int32))

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """Return `range_dimension` as a tensor."""
        return Tensor(np.asarray(self.range_dimension, np.int32))

    is_non_singular = held(
        "_is_non_singular", "Whether it has an inverse; None when that is not known."
    )
    is_self_adjoint = held(
        "_is_self_adjoint", "Whether it equals its adjoint; None when that is not known."
    )
    is_positive_definite = held(
        "_is_positive_definite", "Whether it is positive definite; None when that is not known."
    )

    @property
    def is_square(self) -> Hint:
        """Whether it has as many rows as columns.

        Raises:
            ValueError: when the hint contradicts it.
        """
        found = self.domain_dimension == self.range_dimension
        if self._is_square is not None and self._is_square != found:
            raise ValueError(
                f"User set is_square hint to {self._is_square}, but the operator was {found}."
            )
        return found

    def _hints(self) -> dict[str, Hint]:
        """Return the hints, but whether it is square, for an operator made of this one."""
        return {name: getattr(self, name) for name in HINTS[:3]}
