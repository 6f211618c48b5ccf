"""The part of `tf.linalg` about triangles: Cholesky, LU, and what is solved by them.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- of a symmetric matrix only the lower triangle is read.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.matrices.solve import check_matrix, check_square, refuse_singular
from jaxvars.tf.math.basic import check_ranks
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.typing import Array

_INEXACT = "float complex"


class Lu(NamedTuple):
    """The factors of matrices.

    Attributes:
        lu: the lower one below the diagonal (it has ones there), the upper one from there on.
        p: the order of the rows.
    """

    lu: Array
    p: Array


# ---------------------------------------------------------------- triangles
@functools.partial(jax.jit, static_argnums=(2, 3))
def _triangular(matrix: Array, rhs: Array, lower: bool, is_adjoint: bool) -> Array:
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    matrix, rhs = (jnp.broadcast_to(x, batch + x.shape[-2:]) for x in (matrix, rhs))
    return lax.linalg.triangular_solve(
        matrix, rhs, left_side=True, lower=lower, transpose_a=is_adjoint, conjugate_a=is_adjoint
    )


@op("linalg.triangular_solve", "matrix rhs", op="MatrixTriangularSolve", same=True, kinds=_INEXACT)
def triangular_solve(matrix: Array, rhs: Array, lower: bool = True, adjoint: bool = False) -> Array:
    """Solve systems of linear equations of triangular matrices.

    Example: `tf.linalg.triangular_solve(p(3, 3), r(3, 2))`.
    """
    check_ranks(matrix, rhs)
    check_square(matrix)
    return _triangular(matrix, rhs, bool(lower), bool(adjoint))


@jax.jit
def _factor(x: Array) -> Array:
    # The value is that of the lower triangle; its gradient goes to both, as in TensorFlow.
    low = jnp.tril(x)
    symmetric = low + conjugate_transpose(jnp.tril(x, -1))
    middle = (x + conjugate_transpose(x)) / 2
    return lax.linalg.cholesky(
        middle + lax.stop_gradient(symmetric - middle), symmetrize_input=False
    )


@op("linalg.cholesky", "input", kinds=_INEXACT, example="tf.eye(3) * 4.0 + r(3, 3) * 0.5")
def cholesky(input: Array) -> Array:
    """Return the lower triangular factors of positive definite matrices.

    Differs from TensorFlow: A matrix that is not positive definite gives NaN.
    """
    check_square(input)
    return _factor(input)


@op("linalg.cholesky_solve", "chol rhs", op="MatrixTriangularSolve", same=True, kinds=_INEXACT)
def cholesky_solve(chol: Array, rhs: Array) -> Array:
    """Solve systems of linear equations by a Cholesky factor.

    Example: `tf.linalg.cholesky_solve(p(3, 3), r(3, 2))`.
    """
    half = triangular_solve.__wrapped__(chol, rhs, True, False)
    return triangular_solve.__wrapped__(chol, half, True, True)


@op("linalg.logdet", "matrix", op="Cholesky", kinds=_INEXACT, example="tf.linalg.diag(p(2, 3))")
def logdet(matrix: Array) -> Array:
    """Return the logarithms of the determinants of positive definite matrices."""
    factor = cholesky.__wrapped__(matrix)
    return 2 * jnp.sum(jnp.log(jnp.real(jnp.diagonal(factor, axis1=-2, axis2=-1))), -1)


# ---------------------------------------------------------------- LU
@op("linalg.lu", "input", kinds=_INEXACT, example="r(3, 3)")
def lu(input: Array, output_idx_type: Any = "int32") -> Lu:
    """Return the triangular factors of matrices, and the order of the rows.

    Differs from TensorFlow: In a compiled function, a matrix without inverse is not refused.
    """
    check_square(input)
    factors, _, order = lax.linalg.lu(input)
    refuse_singular(jnp.any(jnp.diagonal(factors, axis1=-2, axis2=-1) == 0))
    return Lu(factors, order.astype(as_dtype(output_idx_type).dtype))


@op("linalg.lstsq", "matrix rhs", op="MatrixSolveLs", same=True, kinds=_INEXACT)
def lstsq(matrix: Array, rhs: Array, l2_regularizer: Any = 0.0, fast: bool = True) -> Array:
    """Solve least-squares problems.

    Example: `tf.linalg.lstsq(r(3, 2), r(3, 1))`.
    """
    check_matrix(matrix)
    check_matrix(rhs, 1)
    if matrix.shape[-2] != rhs.shape[-2]:
        raise ValueError(f"Matrix and rhs should have the same number of rows: {rhs.shape}")
    if not fast:
        return jnp.linalg.pinv(matrix) @ rhs
    return _by_normal_equations(matrix, rhs, jnp.asarray(l2_regularizer, matrix.dtype))


@jax.jit
def _by_normal_equations(matrix: Array, rhs: Array, penalty: Array) -> Array:
    turned = conjugate_transpose(matrix)
    is_tall = matrix.shape[-2] >= matrix.shape[-1]
    square = turned @ matrix if is_tall else matrix @ turned
    square = square + penalty * jnp.eye(square.shape[-1], dtype=matrix.dtype)
    factor = lax.linalg.cholesky(square)
    if is_tall:
        return cholesky_solve.__wrapped__(factor, turned @ rhs)
    return turned @ cholesky_solve.__wrapped__(factor, rhs)
