"""Linear operators of elements: full and triangular matrices, permutations, reflections."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.attributes import getter
from jaxvars.tf.linalg.matrices.bands import (
    matrix_of,
    multiply_bands,
    solve_of_three,
    three_diagonals,
)
from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose, diag_part
from jaxvars.tf.linalg.matrices.factors import triangular_solve
from jaxvars.tf.linalg.operators.arrays import in_batch, times
from jaxvars.tf.linalg.operators.declare import (
    accept_hints,
    always,
    array_of,
    imply,
    parameter,
    register,
    square_shape,
)
from jaxvars.tf.linalg.operators.diagonal import TriangularOperator, require_nonzero
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.dtypes import as_dtype, float32
from jaxvars.tf.tensors.static import refused
from jaxvars.typing import Array


@final
@register
class LinearOperatorFullMatrix(LinearOperator):
    """A matrix of which each element is given.

    Args:
        matrix: of shape [..., m, n].

    Raises:
        ValueError: when it is not a matrix, or the hints cannot hold.

    >>> LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]]).trace().numpy().tolist()
    5.0
    """

    @accept_hints()
    def __init__(self, matrix: Any, **hints: Any) -> None:
        self._matrix = parameter(matrix)
        _check_matrix(self._matrix, "matrix")
        super().__init__(self._matrix.dtype, **hints)

    matrix = getter("_matrix", "The elements.")

    def _shape(self) -> Any:
        return self._matrix.shape

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return times(self._to_dense(), x, adjoint)

    def _to_dense(self) -> Array:
        return array_of(self._matrix)


@final
@register
class LinearOperatorLowerTriangular(TriangularOperator):
    """A lower triangle.

    Args:
        tril: of shape [..., n, n]; what is above the diagonal does not count.
        is_square: it is.

    Raises:
        ValueError: when it is not a matrix, or the hints cannot hold.

    >>> LinearOperatorLowerTriangular([[1.0, 9.0], [3.0, 4.0]]).to_dense().numpy().tolist()
    [[1.0, 0.0], [3.0, 4.0]]
    """

    @accept_hints()
    def __init__(self, tril: Any, **hints: Any) -> None:
        message = "Only square lower triangular operators supported at this time."
        imply(hints, "is_square", message)
        self._tril = parameter(tril)
        _check_matrix(self._tril, "tril")
        super().__init__(self._tril.dtype, **hints)

    tril = getter("_tril", "The triangle, as it was given.")

    def _shape(self) -> Any:
        return self._tril.shape

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return times(self._to_dense(), x, adjoint)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return triangular_solve.__wrapped__(self._to_dense(), rhs, lower=True, adjoint=adjoint)

    def _to_dense(self) -> Array:
        return jnp.tril(array_of(self._tril))

    def _diag_part(self) -> Array:
        return diag_part.__wrapped__(array_of(self._tril))

    def _assert_non_singular(self) -> None:
        require_nonzero(self._diag_part(), "Singular operator:  Diagonal contained zero values.")


@final
@register
class LinearOperatorTridiag(LinearOperator):
    """A matrix of three diagonals.

    Args:
        diagonals: those above, at and below the middle: of shape [..., 3, n] ("compact"), where the
            last element of the first and the first of the last do not count; a list of three
            ("sequence"); or a matrix of which the others do not count ("matrix").
        diagonals_format: in which form they are.
        is_square: it is.

    Raises:
        ValueError: when the form is unknown, or the hints cannot hold.

    >>> LinearOperatorTridiag([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0]]).to_dense().numpy().tolist()
    [[2.0, 1.0], [4.0, 3.0]]
    """

    @accept_hints()
    def __init__(self, diagonals: Any, diagonals_format: str = "compact", **hints: Any) -> None:
        if diagonals_format not in ("matrix", "compact", "sequence"):
            raise ValueError(
                f"Argument `diagonals_format` must be one of compact, matrix or sequence. Found : "
                f"{diagonals_format}."
            )
        is_list = diagonals_format == "sequence"
        self._diagonals: Any = (
            [parameter(d) for d in diagonals] if is_list else parameter(diagonals)
        )
        self._diagonals_format = diagonals_format
        imply(hints, "is_square", "Tridiagonal operators are always square.")
        super().__init__((self._diagonals[0] if is_list else self._diagonals).dtype, **hints)

    diagonals = getter("_diagonals", "The diagonals, as they were given.")
    diagonals_format = getter("_diagonals_format", "In which form they were given.")

    def _three(self, adjoint: bool = False) -> list[Array]:
        """Return the diagonals above, at and below the middle, each of full length."""
        high, middle, low = three_diagonals(self._diagonals, self._diagonals_format)
        if not adjoint:
            return [high, middle, low]
        return [jnp.conj(x) for x in (jnp.roll(low, -1, -1), middle, jnp.roll(high, 1, -1))]

    def _shape(self) -> Any:
        if self._diagonals_format == "matrix":
            return self._diagonals.shape
        three = (
            self._diagonals
            if self._diagonals_format == "sequence"
            else [self._diagonals[..., 1, :]]
        )
        batch = jnp.broadcast_shapes(*(tuple(d.shape[:-1]) for d in three))
        size = (three[1] if len(three) == 3 else three[0]).shape[-1]
        return (*batch, size, size)

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return multiply_bands(self._three(adjoint), x)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        batch = jnp.broadcast_shapes(self.sizes[:-2], rhs.shape[:-2])
        three = [jnp.broadcast_to(d, (*batch, d.shape[-1])) for d in self._three(adjoint)]
        return solve_of_three(*three, jnp.broadcast_to(rhs, (*batch, *rhs.shape[-2:])))

    def _to_dense(self) -> Array:
        return matrix_of(self._three(), self.sizes[-1], (1, 0, -1))

    def _diag_part(self) -> Array:
        return jnp.broadcast_to(self._three()[1], self.sizes[:-1])


@final
@register
class LinearOperatorToeplitz(LinearOperator):
    """A matrix whose diagonals are each of one number.

    Args:
        col: the first column, of shape [..., n].
        row: the first row, of shape [..., n]; its first element does not count.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.

    >>> LinearOperatorToeplitz([1.0, 2.0], [1.0, 3.0]).to_dense().numpy().tolist()
    [[1.0, 3.0], [2.0, 1.0]]
    """

    @accept_hints()
    def __init__(self, col: Any, row: Any, **hints: Any) -> None:
        self._col, self._row = parameter(col), parameter(row)
        for part, name in ((self._row, "row"), (self._col, "col")):
            if not len(part.shape):
                raise ValueError(f"Argument {name} must have at least 1 dimension.")
        imply(hints, "is_square", "Only square Toeplitz operators currently supported.")
        super().__init__(self._row.dtype, **hints)

    col = getter("_col", "The first column.")
    row = getter("_row", "The first row.")

    def _shape(self) -> Any:
        batch = jnp.broadcast_shapes(tuple(self._col.shape[:-1]), tuple(self._row.shape[:-1]))
        return (*batch, self._col.shape[-1], self._row.shape[-1])

    def _parts(self, adjoint: bool = False) -> tuple[Array, Array]:
        """Return the first column and the first row, with the same first element."""
        *batch, _, size = self.sizes
        col, row = (jnp.broadcast_to(array_of(x), (*batch, size)) for x in (self._col, self._row))
        row = jnp.concatenate([col[..., :1], row[..., 1:]], -1)
        return (jnp.conj(row), jnp.conj(col)) if adjoint else (col, row)

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        # As a part of a circulant matrix of twice the size, which Fourier transforms multiply.
        col, row = self._parts(adjoint)
        size = col.shape[-1]
        kernel = jnp.concatenate([col, jnp.zeros_like(col[..., :1]), row[..., :0:-1]], -1)
        product = jnp.fft.fft(kernel, axis=-1)[..., None] * jnp.fft.fft(x, 2 * size, axis=-2)
        made = jnp.fft.ifft(product, axis=-2)[..., :size, :]
        return (made if self.dtype.is_complex else made.real).astype(self.dtype.dtype)

    def _to_dense(self) -> Array:
        col, row = self._parts()
        size = col.shape[-1]
        numbers = jnp.concatenate([row[..., :0:-1], col], -1)  # from the upper right on
        places = jnp.arange(size)[:, None] - jnp.arange(size)[None, :] + size - 1
        return numbers[..., places]

    def _diag_part(self) -> Array:
        return jnp.broadcast_to(array_of(self._col)[..., :1], self.sizes[:-1])


def _check_matrix(tensor: Any, name: str) -> None:
    if len(tensor.shape) < 2:
        raise ValueError(f"Argument `{name}` must have at least 2 dimensions.  Found: {tensor!s}")


class _Orthogonal(LinearOperator):
    """What keeps lengths."""

    def _log_abs_determinant(self) -> Array:
        return jnp.zeros(self.sizes[:-2], self.dtype.dtype)

    def _cond(self) -> Array:
        return jnp.ones(self.sizes[:-2], self.dtype.dtype)

    def _assert_non_singular(self) -> None:
        """Do nothing: it is."""


@final
@register
class LinearOperatorPermutation(_Orthogonal):
    """A matrix that changes the order: row i of the product is row `perm[i]`.

    Args:
        perm: integers of shape [..., n]: each of 0 to n - 1 once.
        dtype: the type of the elements.
        is_non_singular: it is.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.
        TypeError: when they are not integers.

    >>> LinearOperatorPermutation([2, 0, 1]).matvec([5.0, 6.0, 7.0]).numpy().tolist()
    [7.0, 5.0, 6.0]
    """

    @accept_hints()
    def __init__(self, perm: Any, dtype: Any = float32, **hints: Any) -> None:
        self._perm = parameter(perm)
        if not self._perm.shape.rank:
            raise ValueError(f"Argument `perm` must have at least 1 dimension.  Found: {perm}.")
        if not self._perm.dtype.is_integer:
            raise TypeError(
                f"Argument `perm` must be integer dtype.  Found: {self._perm.dtype.name}."
            )
        imply(hints, "is_square", "A Permutation operator is always square.")
        always(hints["is_non_singular"], "A Permutation operator is always non-singular.")
        super().__init__(as_dtype(dtype), **hints)

    perm = getter("_perm", "Which row each row of a product is.")

    def _shape(self) -> Any:
        return square_shape(self._perm)

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        perm = array_of(self._perm)
        order = (jnp.argsort(perm, -1) if adjoint else perm)[..., None]
        x = in_batch(x, order.shape[:-2])
        return jnp.take_along_axis(x, in_batch(order, x.shape[:-2]), -2)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._matmul(rhs, not adjoint)

    def _to_dense(self) -> Array:
        columns = jnp.arange(self.sizes[-1])
        return (array_of(self._perm)[..., None] == columns).astype(self.dtype.dtype)

    def _diag_part(self) -> Array:
        columns = jnp.arange(self.sizes[-1])
        return (array_of(self._perm) == columns).astype(self.dtype.dtype)

    def _determinant(self) -> Array:
        perm = array_of(self._perm)
        turns = jnp.triu(perm[..., :, None] > perm[..., None, :], 1)
        count = jnp.sum(turns, (-2, -1))
        return (1 - 2 * (count % 2)).astype(self.dtype.dtype)


@final
@register
class LinearOperatorHouseholder(_Orthogonal):
    """A reflection: I - 2 v v^H, with v of length 1.

    Args:
        reflection_axis: the direction that is reflected, of shape [..., n].
        is_non_singular: it is.
        is_self_adjoint: it is.
        is_positive_definite: it is not.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.

    >>> LinearOperatorHouseholder([0.0, 2.0]).matvec([3.0, 4.0]).numpy().tolist()
    [3.0, -4.0]
    """

    @accept_hints()
    def __init__(self, reflection_axis: Any, **hints: Any) -> None:
        self._reflection_axis = parameter(reflection_axis)
        if not self._reflection_axis.shape.rank:
            raise ValueError(
                "Argument reflection_axis must have at least 1 dimension.  Found: "
                f"{reflection_axis}"
            )
        message = "A Householder operator is always {}."
        imply(hints, "is_self_adjoint", message.format("self adjoint"))
        if hints["is_positive_definite"] is True:
            raise ValueError(message.format("non-positive definite"))
        imply(hints, "is_square", message.format("square"))
        always(hints["is_non_singular"], message.format("non-singular"))
        hints["is_positive_definite"] = False
        super().__init__(self._reflection_axis.dtype, **hints)

    reflection_axis = getter("_reflection_axis", "The direction that is reflected.")

    def _unit(self) -> Array:
        axis = array_of(self._reflection_axis)
        return axis / jnp.linalg.norm(axis, axis=-1, keepdims=True).astype(axis.dtype)

    def _shape(self) -> Any:
        return square_shape(self._reflection_axis)

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        unit = self._unit()[..., None]
        return x - 2 * unit * jnp.matmul(conjugate_transpose(unit), x)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._matmul(rhs, adjoint)

    def _diag_part(self) -> Array:
        unit = self._unit()
        return 1 - 2 * unit * jnp.conj(unit)

    def _trace(self) -> Array:
        return jnp.full(self.sizes[:-2], self.sizes[-1] - 2, self.dtype.dtype)

    def _determinant(self) -> Array:
        return jnp.full(self.sizes[:-2], -1, self.dtype.dtype)

    def _eigvals(self) -> Array:
        values = np.ones(self.sizes[-1], self.dtype.dtype)
        values[0] = -1
        return jnp.broadcast_to(values, self.sizes[:-1])

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _assert_self_adjoint(self) -> None:
        """Do nothing: it is."""

    def _assert_positive_definite(self) -> None:
        raise refused("Householder operators are always non-positive definite.")
