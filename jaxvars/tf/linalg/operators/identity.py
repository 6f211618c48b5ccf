"""Linear operators of one number: identities and zeros."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import in_batch
from jaxvars.tf.linalg.operators.diagonal import (
    DiagonalOperator,
    require_nonzero,
    require_positive,
    require_real,
)
from jaxvars.tf.linalg.operators.hints import HINTS, hinted, imply
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.attributes import held
from jaxvars.tf.tensors.dtypes import as_dtype, float32
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


class _Identity(DiagonalOperator):
    """A number on the diagonal, of `num_rows` rows."""

    _num_rows: int

    def _shape(self) -> Any:
        return (*self.diagonal().shape[:-1], self._num_rows, self._num_rows)


@final
@tree.registered
class LinearOperatorIdentity(_Identity):
    """The identity.

    Args:
        num_rows: how many rows it has.
        batch_shape: how many of them there are: sizes, or None for one.
        dtype: the type of the elements; float32 when None.
        is_non_singular: it is.
        is_self_adjoint: it is.
        is_positive_definite: it is.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold, or a size is not a number that can be one.

    >>> LinearOperatorIdentity(2).matvec([3.0, 4.0]).numpy().tolist()
    [3.0, 4.0]
    """

    @hinted(**dict.fromkeys(HINTS, True), assert_proper_shapes=False)
    def __init__(
        self, num_rows: Any, batch_shape: Any = None, dtype: Any = None, **hints: Any
    ) -> None:
        for hint, what in (
            ("is_self_adjoint", "self adjoint"), ("is_non_singular", "non-singular"),
            ("is_positive_definite", "positive-definite"), ("is_square", "square"),
        ):  # fmt: skip
            if not hints[hint]:
                raise ValueError(f"An identity operator is always {what}.")
        super().__init__(as_dtype(dtype or float32), None, True, True, True, True, hints["name"])
        self._num_rows = _size(num_rows, "num_rows")
        self._batch_shape_arg = _sizes(batch_shape)

    def diagonal(self) -> Array:
        """Return ones."""
        return jnp.ones((*self._batch_shape_arg, 1), self.dtype.dtype)

    def _scaled(self, x: Array, adjoint: bool, divides: bool) -> Array:
        return in_batch(x, self._batch_shape_arg)

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _linop_cholesky(self) -> LinearOperator:
        return self

    def _assert_non_singular(self) -> None:
        """Do nothing: it is."""

    _assert_positive_definite = _assert_self_adjoint = _assert_non_singular


@final
@tree.registered
class LinearOperatorScaledIdentity(_Identity):
    """A number times the identity.

    Args:
        num_rows: how many rows it has.
        multiplier: the number, of the shape of the batch.
        is_self_adjoint: whether it equals its adjoint; with a real number it does.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.

    >>> LinearOperatorScaledIdentity(2, multiplier=3.0).determinant().numpy().tolist()
    9.0
    """

    @hinted(is_square=True, assert_proper_shapes=False)
    def __init__(self, num_rows: Any, multiplier: Any, **hints: Any) -> None:
        self._multiplier = tree.parameter(multiplier)
        if not self._multiplier.dtype.is_complex:
            imply(hints, "is_self_adjoint", "A real diagonal operator is always self adjoint.")
        if not hints["is_square"]:
            raise ValueError("A ScaledIdentity operator is always square.")
        del hints["assert_proper_shapes"]
        super().__init__(self._multiplier.dtype, **hints)
        self._num_rows = _size(num_rows, "num_rows")

    multiplier = held("_multiplier", "The number.")

    def diagonal(self) -> Array:
        """Return the number, with another axis."""
        return tree.array(self._multiplier)[..., None]

    def _cond(self) -> Array:
        sizes = jnp.abs(self.diagonal()[..., 0])
        return jnp.where(sizes == 0, jnp.nan, jnp.ones_like(sizes))

    def _log_abs_determinant(self) -> Array:
        return self._num_rows * jnp.log(jnp.abs(self.diagonal()[..., 0]))

    def _linop_adjoint(self) -> LinearOperator:
        return self._with(jnp.conj(self.diagonal()[..., 0]))

    def _linop_inverse(self) -> LinearOperator:
        return self._with(1 / self.diagonal()[..., 0])

    def _linop_cholesky(self) -> LinearOperator:
        root = Tensor(jnp.sqrt(self.diagonal()[..., 0]))
        return LinearOperatorScaledIdentity(self._num_rows, root, True, True, True, True)

    def _with(self, multiplier: Array) -> LinearOperator:
        return LinearOperatorScaledIdentity(self._num_rows, Tensor(multiplier), **self._hints())

    def _assert_non_singular(self) -> None:
        require_nonzero(self.diagonal(), "LinearOperator was singular")

    def _assert_positive_definite(self) -> None:
        require_positive(self.diagonal(), "LinearOperator was not positive definite.")

    def _assert_self_adjoint(self) -> None:
        require_real(self.diagonal(), "LinearOperator was not self-adjoint")


@final
@tree.registered
class LinearOperatorZeros(LinearOperator):
    """A matrix of zeros.

    Args:
        num_rows: how many rows it has.
        num_columns: how many columns; as many as rows when None.
        batch_shape: how many of them there are: sizes, or None for one.
        dtype: the type of the elements; float32 when None.
        is_non_singular: it is not.
        is_self_adjoint: it is, when it is square.
        is_positive_definite: it is not.

    Raises:
        ValueError: when the hints cannot hold.

    >>> LinearOperatorZeros(2).matvec([3.0, 4.0]).numpy().tolist()
    [0.0, 0.0]
    """

    @hinted(**dict(zip(HINTS, (False, True, False, True), strict=True)), assert_proper_shapes=False)
    def __init__(
        self, num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = None,
        **hints: Any,
    ) -> None:  # fmt: skip
        if not hints["is_self_adjoint"] and hints["is_square"]:
            raise ValueError("A zero operator is always self adjoint.")
        if hints["is_non_singular"]:
            raise ValueError("A zero operator is always singular.")
        if hints["is_positive_definite"]:
            raise ValueError("A zero operator is always not positive-definite.")
        hints |= {"is_non_singular": False, "is_positive_definite": False}
        del hints["assert_proper_shapes"]
        super().__init__(as_dtype(dtype or float32), **hints)
        self._num_rows = _size(num_rows, "num_rows")
        self._num_columns = None if num_columns is None else _size(num_columns, "num_columns")
        self._batch_shape_arg = _sizes(batch_shape)

    def _shape(self) -> Any:
        columns = self._num_rows if self._num_columns is None else self._num_columns
        return (*self._batch_shape_arg, self._num_rows, columns)

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        *batch, rows, columns = self.sizes
        count = x.shape[-1]
        batch = np.broadcast_shapes(tuple(batch), x.shape[:-2])
        return jnp.zeros((*batch, columns if adjoint else rows, count), self.dtype.dtype)

    def _to_dense(self) -> Array:
        return jnp.zeros(self.sizes, self.dtype.dtype)

    def _determinant(self) -> Array:
        return jnp.zeros(self.sizes[:-2], self.dtype.dtype)

    _trace = _determinant

    def _diag_part(self) -> Array:
        *batch, rows, columns = self.sizes
        return jnp.zeros((*batch, min(rows, columns)), self.dtype.dtype)

    def _linop_adjoint(self) -> LinearOperator:
        *batch, rows, columns = self.sizes
        square = rows == columns
        return LinearOperatorZeros(
            columns, rows, batch, self.dtype, is_self_adjoint=square, is_square=square
        )

    def _assert_non_singular(self) -> None:
        raise refused("Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> None:
        raise refused("Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> None:
        """Do nothing: it is."""


def _size(value: Any, name: str) -> int:
    number = np.asarray(value.numpy() if isinstance(value, Tensor) else value)
    if number.ndim:
        raise ValueError(f"Argument `{name}` must be a 0-D Tensor.  Found: {value}")
    if number.dtype.kind not in "iu":
        raise TypeError(f"Argument `{name}` must be integer type.  Found: {value}")
    if number < 0:
        raise ValueError(f"Argument `{name}` must be non-negative.  Found: {value}")
    return int(number)


def _sizes(batch_shape: Any) -> tuple[int, ...]:
    if batch_shape is None:
        return ()
    if isinstance(batch_shape, TensorShape | Sequence):
        return tuple(_size(n, "batch_shape") for n in batch_shape)
    sizes = np.asarray(batch_shape.numpy() if isinstance(batch_shape, Tensor) else batch_shape)
    if sizes.ndim != 1 or math.prod(sizes.shape) != sizes.size:
        raise ValueError(f"Argument `batch_shape` must be a 1-D Tensor.  Found: {batch_shape}")
    return tuple(_size(n, "batch_shape") for n in sizes)
