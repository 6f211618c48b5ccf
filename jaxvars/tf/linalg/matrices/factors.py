"""The part of `tf.linalg` about triangles: Cholesky, LU, and what is solved by them.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- of a symmetric matrix only the lower triangle is read.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.linalg.matrices.diagonals import adjoint
from jaxvars.tf.linalg.matrices.solve import check_matrix, check_square, refuse_singular
from jaxvars.tf.registry.rows import Row
from jaxvars.tf.tensors.dtypes import as_dtype

Value: TypeAlias = Any


class Lu(NamedTuple):
    """The factors of matrices.

    Attributes:
        lu: the lower one below the diagonal (it has ones there), the upper one from there on.
        p: the order of the rows.
    """

    lu: Value
    p: Value


# ---------------------------------------------------------------- triangles
@functools.partial(jax.jit, static_argnums=(2, 3))
def _triangular(matrix: Value, rhs: Value, lower: bool, is_adjoint: bool) -> Value:
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    matrix = jnp.broadcast_to(matrix, batch + matrix.shape[-2:])
    rhs = jnp.broadcast_to(rhs, batch + rhs.shape[-2:])
    return lax.linalg.triangular_solve(
        matrix, rhs, left_side=True, lower=lower, transpose_a=is_adjoint, conjugate_a=is_adjoint
    )


def triangular_solve(matrix: Value, rhs: Value, lower: bool, is_adjoint: bool) -> Value:
    for number, x in enumerate((matrix, rhs)):
        if x.ndim < 2:
            raise ValueError(f"In[{number}] ndims must be >= 2: {x.ndim}")
    check_square(matrix)
    return _triangular(matrix, rhs, bool(lower), bool(is_adjoint))


@jax.jit
def _factor(x: Value) -> Value:
    # The value is that of the lower triangle; its gradient goes to both, as in TensorFlow.
    low = jnp.tril(x)
    symmetric = low + adjoint(jnp.tril(x, -1))
    middle = (x + adjoint(x)) / 2
    return lax.linalg.cholesky(
        middle + lax.stop_gradient(symmetric - middle), symmetrize_input=False
    )


def _cholesky(x: Value) -> Value:
    check_square(x)
    return _factor(x)


def _cholesky_solve(chol: Value, rhs: Value) -> Value:
    half = triangular_solve(chol, rhs, True, False)
    return triangular_solve(chol, half, True, True)


def _logdet(x: Value) -> Value:
    factor = _cholesky(x)
    return 2 * jnp.sum(jnp.log(jnp.real(jnp.diagonal(factor, axis1=-2, axis2=-1))), -1)


# ---------------------------------------------------------------- LU
def _lu(x: Value, output_idx_type: Any) -> Lu:
    check_square(x)
    factors, _, order = lax.linalg.lu(x)
    refuse_singular(jnp.any(jnp.diagonal(factors, axis1=-2, axis2=-1) == 0))
    return Lu(factors, order.astype(as_dtype(output_idx_type).dtype))


def _both(lower_upper: Value) -> tuple[Value, Value]:
    eye = jnp.eye(lower_upper.shape[-1], dtype=lower_upper.dtype)
    return jnp.tril(lower_upper, -1) + eye, jnp.triu(lower_upper)


def _lu_reconstruct(lower_upper: Value, perm: Value, validate_args: bool) -> Value:
    check_square(lower_upper)
    return _multiplied(lower_upper, perm)


@jax.jit
def _multiplied(lower_upper: Value, perm: Value) -> Value:
    lower, upper = _both(lower_upper)
    back = jnp.argsort(perm, axis=-1)
    return jnp.take_along_axis(lower @ upper, back[..., None], axis=-2)


def _lu_solve(lower_upper: Value, perm: Value, rhs: Value, validate_args: bool) -> Value:
    check_square(lower_upper)
    check_matrix(rhs, 2)
    return _by_lu(lower_upper, perm, rhs)


@jax.jit
def _by_lu(lower_upper: Value, perm: Value, rhs: Value) -> Value:
    lower, upper = _both(lower_upper)
    batch = np.broadcast_shapes(perm.shape[:-1], rhs.shape[:-2])
    rows = jnp.broadcast_to(perm, batch + perm.shape[-1:])[..., None]
    ordered = jnp.take_along_axis(jnp.broadcast_to(rhs, batch + rhs.shape[-2:]), rows, axis=-2)
    return _triangular(upper, _triangular(lower, ordered, True, False), False, False)


def _lu_matrix_inverse(lower_upper: Value, perm: Value, validate_args: bool) -> Value:
    eye = jnp.eye(lower_upper.shape[-1], dtype=lower_upper.dtype)
    rhs = jnp.broadcast_to(eye, lower_upper.shape)
    return _lu_solve(lower_upper, perm, rhs, validate_args)


def _lstsq(matrix: Value, rhs: Value, l2_regularizer: Any, fast: bool) -> Value:
    check_matrix(matrix)
    check_matrix(rhs, 1)
    if matrix.shape[-2] != rhs.shape[-2]:
        raise ValueError(f"Matrix and rhs should have the same number of rows: {rhs.shape}")
    if not fast:
        return jnp.linalg.pinv(matrix) @ rhs
    return _by_normal_equations(matrix, rhs, jnp.asarray(l2_regularizer, matrix.dtype))


@jax.jit
def _by_normal_equations(matrix: Value, rhs: Value, penalty: Value) -> Value:
    turned = adjoint(matrix)
    is_tall = matrix.shape[-2] >= matrix.shape[-1]
    square = turned @ matrix if is_tall else matrix @ turned
    square = square + penalty * jnp.eye(square.shape[-1], dtype=matrix.dtype)
    factor = lax.linalg.cholesky(square)
    if is_tall:
        return _cholesky_solve(factor, turned @ rhs)
    return turned @ _cholesky_solve(factor, rhs)


_INEXACT = "float complex"

ROWS = [
    Row(
        "logdet", "matrix", "matrix", _logdet, op="Cholesky", kinds=_INEXACT,
        doc="Return the logarithms of the determinants of positive definite matrices.",
        examples=(
            "linalg.logdet(tf.linalg.diag(p(2, 3)))", "linalg.logdet([[2.0, 1.0], [1.0, 2.0]])",
            "linalg.logdet(r(2, 3))",
        ),
    ),
    Row(
        "triangular_solve", "matrix rhs", "matrix, rhs, lower=True, adjoint=False",
        triangular_solve, op="MatrixTriangularSolve", same=True, kinds=_INEXACT,
        doc="Solve systems of linear equations of triangular matrices.",
        examples=(
            "linalg.triangular_solve(p(3, 3), r(3, 2))",
            "linalg.triangular_solve(p(2, 3, 3), r(3, 1), lower=False, adjoint=True)",
            "linalg.triangular_solve(p(2, 2), r(2))",
        ),
    ),
    Row(
        "cholesky", "input", "input", _cholesky, op="Cholesky", kinds=_INEXACT,
        doc="Return the lower triangular factors of positive definite matrices.",
        examples=(
            "linalg.cholesky(tf.eye(3) * 4.0 + r(3, 3) * 0.5)",
            "linalg.cholesky([[2.0, 9.0], [1.0, 2.0]])", "linalg.cholesky(r(2, 3))",
        ),
        differs="A matrix that is not positive definite gives NaN.",
    ),
    Row(
        "cholesky_solve", "chol rhs", "chol, rhs", _cholesky_solve, op="MatrixTriangularSolve",
        same=True, kinds=_INEXACT, doc="Solve systems of linear equations by a Cholesky factor.",
        examples=(
            "linalg.cholesky_solve(p(3, 3), r(3, 2))",
            "linalg.cholesky_solve(p(2, 2, 2), r(2, 2, 1))",
            "linalg.cholesky_solve(p(2, 2), r(2))",
        ),
    ),
    Row(
        "lu", "input", "input, output_idx_type='int32'", _lu, op="Lu", kinds=_INEXACT,
        doc="Return the triangular factors of matrices, and the order of the rows.",
        examples=(
            "linalg.lu(r(3, 3))", "linalg.lu(r(2, 3, 3), np.int64)",
            "linalg.lu([[1.0, 2.0], [2.0, 4.0]])", "linalg.lu(r(2, 3))",
        ),
        differs="In a compiled function, a matrix without inverse is not refused.",
    ),
    Row(
        "lu_reconstruct", "lower_upper perm", "lower_upper, perm, validate_args=False",
        _lu_reconstruct, op="Lu", kinds="float complex int",
        doc="Return the matrices that `lu` got.",
        examples=(
            "linalg.lu_reconstruct(r(3, 3), [2, 0, 1])",
            "linalg.lu_reconstruct(*tf.linalg.lu(r(2, 3, 3)))",
            "linalg.lu_reconstruct(i(2, 2), [1, 0])",
        ),
    ),
    Row(
        "lu_solve", "lower_upper perm rhs", "lower_upper, perm, rhs, validate_args=False",
        _lu_solve, op="Lu", kinds=_INEXACT,
        doc="Solve systems of linear equations by what `lu` returned.",
        examples=(
            "linalg.lu_solve(p(3, 3), [2, 0, 1], r(3, 2))",
            "linalg.lu_solve(p(2, 2), [0, 1], r(3, 2, 1))",
            "linalg.lu_solve(i(2, 2), [1, 0], i(2, 1))",
        ),
    ),
    Row(
        "lu_matrix_inverse", "lower_upper perm", "lower_upper, perm, validate_args=False",
        _lu_matrix_inverse, op="Lu", kinds=_INEXACT,
        doc="Return the inverses of the matrices that `lu` got.",
        examples=(
            "linalg.lu_matrix_inverse(p(3, 3), [2, 0, 1])",
            "linalg.lu_matrix_inverse(*tf.linalg.lu(r(2, 2, 2)))",
            "linalg.lu_matrix_inverse(i(2, 2), [1, 0])",
        ),
    ),
    Row(
        "lstsq", "matrix rhs", "matrix, rhs, l2_regularizer=0.0, fast=True", _lstsq,
        op="MatrixSolveLs", same=True, kinds=_INEXACT, doc="Solve least-squares problems.",
        examples=(
            "linalg.lstsq(r(3, 2), r(3, 1))", "linalg.lstsq(r(2, 3), r(2, 1), l2_regularizer=0.5)",
            "linalg.lstsq(r(3, 2), r(3, 1), fast=False)", "linalg.lstsq(r(3, 2), r(2, 1))",
        ),
    ),
]  # fmt: skip
