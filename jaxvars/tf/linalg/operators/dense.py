"""Linear operators of elements: full matrices, triangles, three diagonals, Toeplitz matrices."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.linalg.matrices.bands import (
    matrix_of,
    multiply_bands,
    solve_of_three,
    three_diagonals,
)
from jaxvars.tf.linalg.matrices.diagonals import diag_part
from jaxvars.tf.linalg.matrices.factors import triangular_solve
from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import times
from jaxvars.tf.linalg.operators.diagonal import TriangularOperator, require_nonzero
from jaxvars.tf.linalg.operators.hints import hinted, imply
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.attributes import held
from jaxvars.typing import Array


@final
@tree.registered
class LinearOperatorFullMatrix(LinearOperator):
    """A matrix of which each element is given.

    Args:
        matrix: of shape [..., m, n].

    Raises:
        ValueError: when it is not a matrix, or the hints cannot hold.

    >>> LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]]).trace().numpy().tolist()
    5.0
    """

    @hinted()
    def __init__(self, matrix: Any, **hints: Any) -> None:
        self._matrix = tree.parameter(matrix)
        _check_matrix(self._matrix, "matrix")
        super().__init__(self._matrix.dtype, **hints)

    matrix = held("_matrix", "The elements.")

    def _shape(self) -> Any:
        return self._matrix.shape

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return times(self._to_dense(), x, adjoint)

    def _to_dense(self) -> Array:
        return tree.array(self._matrix)


@final
@tree.registered
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

    @hinted()
    def __init__(self, tril: Any, **hints: Any) -> None:
        words = "Only square lower triangular operators supported at this time."
        imply(hints, "is_square", words)
        self._tril = tree.parameter(tril)
        _check_matrix(self._tril, "tril")
        super().__init__(self._tril.dtype, **hints)

    tril = held("_tril", "The triangle, as it was given.")

    def _shape(self) -> Any:
        return self._tril.shape

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return times(self._to_dense(), x, adjoint)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return triangular_solve.__wrapped__(self._to_dense(), rhs, lower=True, adjoint=adjoint)

    def _to_dense(self) -> Array:
        return jnp.tril(tree.array(self._tril))

    def _diag_part(self) -> Array:
        return diag_part.__wrapped__(tree.array(self._tril))

    def _assert_non_singular(self) -> None:
        require_nonzero(self._diag_part(), "Singular operator:  Diagonal contained zero values.")


@final
@tree.registered
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

    @hinted()
    def __init__(self, diagonals: Any, diagonals_format: str = "compact", **hints: Any) -> None:
        if diagonals_format not in ("matrix", "compact", "sequence"):
            raise ValueError(
                f"Argument `diagonals_format` must be one of compact, matrix or sequence. Found : "
                f"{diagonals_format}."
            )
        is_list = diagonals_format == "sequence"
        self._diagonals: Any = (
            [tree.parameter(d) for d in diagonals] if is_list else tree.parameter(diagonals)
        )
        self._diagonals_format = diagonals_format
        imply(hints, "is_square", "Tridiagonal operators are always square.")
        super().__init__((self._diagonals[0] if is_list else self._diagonals).dtype, **hints)

    diagonals = held("_diagonals", "The diagonals, as they were given.")
    diagonals_format = held("_diagonals_format", "In which form they were given.")

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
@tree.registered
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

    @hinted()
    def __init__(self, col: Any, row: Any, **hints: Any) -> None:
        self._col, self._row = tree.parameter(col), tree.parameter(row)
        for part, words in ((self._row, "row"), (self._col, "col")):
            if not len(part.shape):
                raise ValueError(f"Argument {words} must have at least 1 dimension.")
        imply(hints, "is_square", "Only square Toeplitz operators currently supported.")
        super().__init__(self._row.dtype, **hints)

    col = held("_col", "The first column.")
    row = held("_row", "The first row.")

    def _shape(self) -> Any:
        batch = jnp.broadcast_shapes(tuple(self._col.shape[:-1]), tuple(self._row.shape[:-1]))
        return (*batch, self._col.shape[-1], self._row.shape[-1])

    def _parts(self, adjoint: bool = False) -> tuple[Array, Array]:
        """Return the first column and the first row, with the same first element."""
        *batch, _, size = self.sizes
        col, row = (jnp.broadcast_to(tree.array(x), (*batch, size)) for x in (self._col, self._row))
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
        return jnp.broadcast_to(tree.array(self._col)[..., :1], self.sizes[:-1])


def _check_matrix(tensor: Any, name: str) -> None:
    if len(tensor.shape) < 2:
        raise ValueError(f"Argument `{name}` must have at least 2 dimensions.  Found: {tensor!s}")
