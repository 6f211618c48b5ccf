"""Linear operators of a diagonal, and those of one number: identities and zeros."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf import debugging
from jaxvars.tf.attributes import getter
from jaxvars.tf.linalg.operators.arrays import in_batch
from jaxvars.tf.linalg.operators.declare import (
    HINTS,
    accept_hints,
    array_of,
    imply,
    parameter,
    register,
    square_shape,
)
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.dtypes import as_dtype, float32
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


def require_nonzero(x: Array, message: str) -> None:
    """Raise InvalidArgumentError, now or when the program runs, if an element is zero."""
    size = Tensor(jnp.abs(x))
    debugging.assert_less(Tensor(jnp.zeros((), size.dtype)), size, message=message)


class OfNumbers(LinearOperator):
    """What numbers stand for: what is done to the operator is done to each of them."""

    _SINGULAR = "LinearOperator was singular"
    _NOT_POSITIVE = "LinearOperator was not positive definite."
    _NOT_SELF_ADJOINT = "LinearOperator was not self-adjoint"

    @abstractmethod
    def _numbers(self) -> Array:
        """Return the numbers: a diagonal, one element of it, or a spectrum."""

    @abstractmethod
    def _of_numbers(self, numbers: Array, **hints: Any) -> LinearOperator:
        """Return an operator of the same kind."""

    def _linop_adjoint(self) -> LinearOperator:
        return self._of_numbers(jnp.conj(self._numbers()), **self._hints())

    def _linop_inverse(self) -> LinearOperator:
        return self._of_numbers(1 / self._numbers(), **self._hints())

    def _assert_non_singular(self) -> None:
        require_nonzero(self._numbers(), self._SINGULAR)

    def _assert_positive_definite(self) -> None:
        real = Tensor(jnp.real(self._numbers()))
        debugging.assert_positive(real, message=self._NOT_POSITIVE)

    def _assert_self_adjoint(self) -> None:
        part = Tensor(jnp.imag(self._numbers()))
        zero = Tensor(jnp.zeros((), part.dtype))
        debugging.assert_equal(zero, part, message=self._NOT_SELF_ADJOINT)


class TriangularOperator(LinearOperator):
    """What has its eigenvalues on its diagonal."""

    def _determinant(self) -> Array:
        return jnp.prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Array:
        return jnp.sum(jnp.log(jnp.abs(self._diag_part())), -1).astype(self.dtype.dtype)

    def _eigvals(self) -> Array:
        return self._diag_part()


class DiagonalOperator(TriangularOperator):
    """What is zero beside its diagonal, which is broadcast to all rows."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the diagonal, of shape [..., n] or [..., 1]."""

    def _scale(self, x: Array, adjoint: bool, divides: bool) -> Array:
        factors = self.diagonal()[..., None]
        factors = jnp.conj(factors) if adjoint else factors
        return x / factors if divides else factors * x

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return self._scale(x, adjoint, divides=False)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._scale(rhs, adjoint, divides=True)

    def _diag_part(self) -> Array:
        return jnp.broadcast_to(self.diagonal(), self.sizes[:-1])

    def _to_dense(self) -> Array:
        return self._diag_part()[..., None] * jnp.eye(self.sizes[-1], dtype=self.dtype.dtype)

    def _cond(self) -> Array:
        sizes = jnp.abs(self._diag_part())
        return jnp.max(sizes, -1) / jnp.min(sizes, -1)


@final
@register
class LinearOperatorDiag(OfNumbers, DiagonalOperator):
    """A diagonal matrix.

    Args:
        diag: the diagonal, of shape [..., n].
        is_self_adjoint: whether it equals its adjoint; one of real numbers does.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.

    >>> LinearOperatorDiag([1.0, 2.0]).to_dense().numpy().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """

    _SINGULAR = "Singular operator:  Diagonal contained zero values."
    _NOT_POSITIVE = (
        "Diagonal operator had diagonal entries with non-positive real part, thus was not "
        "positive definite."
    )
    _NOT_SELF_ADJOINT = (
        "This diagonal operator contained non-zero imaginary values.  Thus it was not self-adjoint."
    )

    @accept_hints()
    def __init__(self, diag: Any, **hints: Any) -> None:
        self._diag = parameter(diag)
        if not self._diag.shape.rank:
            raise ValueError("Argument `diag` must have at least 1 dimension.  Found: ()")
        if not self._diag.dtype.is_complex:
            imply(hints, "is_self_adjoint", "A real diagonal operator is always self adjoint.")
        imply(hints, "is_square", "Only square diagonal operators currently supported.")
        super().__init__(self._diag.dtype, **hints)

    diag = getter("_diag", "The diagonal.")

    def diagonal(self) -> Array:
        """Return the diagonal."""
        return array_of(self._diag)

    _numbers = diagonal

    def _of_numbers(self, numbers: Array, **hints: Any) -> LinearOperator:
        """Return the operator of another diagonal."""
        return LinearOperatorDiag(Tensor(numbers), **hints)

    def _shape(self) -> Any:
        return square_shape(self._diag)

    def _linop_cholesky(self) -> LinearOperator:
        return self._of_numbers(jnp.sqrt(self.diagonal()), **dict.fromkeys(HINTS, True))


class _Identity(DiagonalOperator):
    """A number on the diagonal, of `num_rows` rows."""

    _num_rows: int

    def _shape(self) -> Any:
        return (*self.diagonal().shape[:-1], self._num_rows, self._num_rows)


@final
@register
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

    @accept_hints(**dict.fromkeys(HINTS, True), assert_proper_shapes=False)
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

    def _scale(self, x: Array, adjoint: bool, divides: bool) -> Array:
        return in_batch(x, self._batch_shape_arg)

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _linop_cholesky(self) -> LinearOperator:
        return self

    def _assert_non_singular(self) -> None:
        """Do nothing: it is."""

    _assert_positive_definite = _assert_self_adjoint = _assert_non_singular


@final
@register
class LinearOperatorScaledIdentity(OfNumbers, _Identity):
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

    @accept_hints(is_square=True, assert_proper_shapes=False)
    def __init__(self, num_rows: Any, multiplier: Any, **hints: Any) -> None:
        self._multiplier = parameter(multiplier)
        if not self._multiplier.dtype.is_complex:
            imply(hints, "is_self_adjoint", "A real diagonal operator is always self adjoint.")
        if not hints["is_square"]:
            raise ValueError("A ScaledIdentity operator is always square.")
        del hints["assert_proper_shapes"]
        super().__init__(self._multiplier.dtype, **hints)
        self._num_rows = _size(num_rows, "num_rows")

    multiplier = getter("_multiplier", "The number.")

    def _numbers(self) -> Array:
        """Return the number."""
        return array_of(self._multiplier)

    def _of_numbers(self, numbers: Array, **hints: Any) -> LinearOperator:
        """Return the operator of another number."""
        return LinearOperatorScaledIdentity(self._num_rows, Tensor(numbers), **hints)

    def diagonal(self) -> Array:
        """Return the number, with another axis."""
        return self._numbers()[..., None]

    def _cond(self) -> Array:
        sizes = jnp.abs(self._numbers())
        return jnp.where(sizes == 0, jnp.nan, jnp.ones_like(sizes))

    def _log_abs_determinant(self) -> Array:
        return self._num_rows * jnp.log(jnp.abs(self._numbers()))

    def _linop_cholesky(self) -> LinearOperator:
        return self._of_numbers(jnp.sqrt(self._numbers()), **dict.fromkeys(HINTS, True))


@final
@register
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

    @accept_hints(
        **dict(zip(HINTS, (False, True, False, True), strict=True)), assert_proper_shapes=False
    )
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
        return make_zeros(columns, rows, batch, self.dtype)

    def _assert_non_singular(self) -> None:
        raise refused("Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> None:
        raise refused("Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> None:
        """Do nothing: it is."""


def make_zeros(rows: int, columns: int, batch: Any, dtype: Any) -> LinearOperatorZeros:
    """Return zeros, with the hints that follow from the sizes."""
    square = rows == columns
    return LinearOperatorZeros(
        rows, columns, batch, dtype, is_self_adjoint=square, is_square=square
    )


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
    if sizes.ndim != 1:
        raise ValueError(f"Argument `batch_shape` must be a 1-D Tensor.  Found: {batch_shape}")
    return tuple(_size(n, "batch_shape") for n in sizes)
