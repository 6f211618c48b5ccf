"""The part of `tf.linalg` about equations: inverses, determinants, factors, least squares.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- a matrix that has no inverse is refused where values are known, and gives infinities or NaN in
  compiled functions;
- of a symmetric matrix only the lower triangle is read.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars import _trace
from jaxvars.tf._convert import alike, to_array
from jaxvars.tf._dtypes import as_dtype
from jaxvars.tf._linalg_diagonals import adjoint
from jaxvars.tf._rows import Refused, Row

Value: TypeAlias = Any


class LogMatrixDeterminant(NamedTuple):
    """The determinant of matrices.

    Attributes:
        sign: its sign; of complex matrices, a number of absolute value 1.
        log_abs_determinant: the logarithm of its absolute value.
    """

    sign: Value
    log_abs_determinant: Value


class Lu(NamedTuple):
    """The factors of matrices.

    Attributes:
        lu: the lower one below the diagonal (it has ones there), the upper one from there on.
        p: the order of the rows.
    """

    lu: Value
    p: Value


def check_square(x: Value) -> None:
    """Raise ValueError if these are no square matrices."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError("Input matrix must be square.")


def check_matrix(x: Value, number: int = 0) -> None:
    """Raise ValueError if these are no matrices."""
    if x.ndim < 2:
        raise ValueError(f"Input tensor {number} must have rank >= 2, got {x.ndim}")


def _floats(a: Value) -> None:
    if a.dtype.kind in "iuc":
        raise Refused(TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype})."))


def _refuse_singular(singular: Value) -> None:
    if not _trace.is_tracer(singular) and np.asarray(singular):
        raise ValueError("Input is not invertible.")


# ---------------------------------------------------------------- inverses and determinants
@functools.partial(jax.jit, static_argnums=2)
def _solved(matrix: Value, rhs: Value, is_adjoint: bool) -> tuple[Value, Value]:
    """Return the solution, and whether there is none."""
    turned = adjoint(matrix) if is_adjoint else matrix
    made = jnp.linalg.solve(turned, rhs)
    is_given = jnp.all(jnp.isfinite(matrix)) & jnp.all(jnp.isfinite(rhs))
    return made, is_given & ~jnp.all(jnp.isfinite(made))


def _inv(x: Value, is_adjoint: bool) -> Value:
    check_square(x)
    eye = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    made, singular = _solved(x, eye, bool(is_adjoint))
    _refuse_singular(singular)
    return made


def _solve(matrix: Value, rhs: Value, is_adjoint: bool) -> Value:
    check_square(matrix)
    if matrix.ndim != rhs.ndim or matrix.shape[:-1] != rhs.shape[:-1]:
        raise ValueError(
            f"All input tensors must have the same rank and batch: {matrix.shape}, {rhs.shape}"
        )
    made, singular = _solved(matrix, rhs, bool(is_adjoint))
    _refuse_singular(singular)
    return made


def _det(x: Value) -> Value:
    check_square(x)
    return jnp.linalg.det(x)


def _slogdet(x: Value) -> LogMatrixDeterminant:
    check_square(x)
    sign, logarithm = jnp.linalg.slogdet(x)
    return LogMatrixDeterminant(sign, logarithm.astype(x.dtype))


def _logdet(x: Value) -> Value:
    factor = _cholesky(x)
    return 2 * jnp.sum(jnp.log(jnp.real(jnp.diagonal(factor, axis1=-2, axis2=-1))), -1)


# ---------------------------------------------------------------- triangles
@functools.partial(jax.jit, static_argnums=(2, 3))
def _triangular(matrix: Value, rhs: Value, lower: bool, is_adjoint: bool) -> Value:
    batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    matrix = jnp.broadcast_to(matrix, batch + matrix.shape[-2:])
    rhs = jnp.broadcast_to(rhs, batch + rhs.shape[-2:])
    return lax.linalg.triangular_solve(
        matrix, rhs, left_side=True, lower=lower, transpose_a=is_adjoint, conjugate_a=is_adjoint
    )


def _triangular_solve(matrix: Value, rhs: Value, lower: bool, is_adjoint: bool) -> Value:
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
    half = _triangular_solve(chol, rhs, True, False)
    return _triangular_solve(chol, half, True, True)


# ---------------------------------------------------------------- LU
def _lu(x: Value, output_idx_type: Any) -> Lu:
    check_square(x)
    factors, _, order = lax.linalg.lu(x)
    _refuse_singular(jnp.any(jnp.diagonal(factors, axis1=-2, axis2=-1) == 0))
    return Lu(factors, order.astype(as_dtype(output_idx_type).dtype))


def _both(lower_upper: Value) -> tuple[Value, Value]:
    eye = jnp.eye(lower_upper.shape[-1], dtype=lower_upper.dtype)
    return jnp.tril(lower_upper, -1) + eye, jnp.triu(lower_upper)


def _lu_reconstruct(lower_upper: Value, perm: Value, validate_args: bool) -> Value:
    check_square(lower_upper)
    lower, upper = _both(lower_upper)
    back = jnp.argsort(perm, axis=-1)
    return jnp.take_along_axis(lower @ upper, back[..., None], axis=-2)


def _lu_solve(lower_upper: Value, perm: Value, rhs: Value, validate_args: bool) -> Value:
    check_square(lower_upper)
    check_matrix(rhs, 2)
    lower, upper = _both(lower_upper)
    batch = np.broadcast_shapes(perm.shape[:-1], rhs.shape[:-2])
    rows = jnp.broadcast_to(perm, batch + perm.shape[-1:])[..., None]
    ordered = jnp.take_along_axis(jnp.broadcast_to(rhs, batch + rhs.shape[-2:]), rows, axis=-2)
    return _triangular(upper, _triangular(lower, ordered, True, False), False, False)


def _lu_matrix_inverse(lower_upper: Value, perm: Value, validate_args: bool) -> Value:
    eye = jnp.eye(lower_upper.shape[-1], dtype=lower_upper.dtype)
    rhs = jnp.broadcast_to(eye, lower_upper.shape)
    return _lu_solve(lower_upper, perm, rhs, validate_args)


# ---------------------------------------------------------------- least squares
def _pinv(a: Value, rcond: Any, validate_args: bool) -> Value:
    _floats(a)
    check_matrix(a)
    return jnp.linalg.pinv(a, rtol=None if rcond is None else jnp.asarray(rcond, a.dtype))


def _matrix_rank(a: Value, tol: Any, validate_args: bool) -> Value:
    _floats(a)
    check_matrix(a)
    values = jnp.linalg.svd(a, compute_uv=False)
    if tol is None:
        tol = np.finfo(a.dtype).eps * max(a.shape[-2:]) * jnp.max(values, -1, keepdims=True)
    return jnp.sum(values > tol, -1, dtype=np.int32)


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


# ---------------------------------------------------------------- bands
def _three(diagonals: Any, form: str) -> list[Value]:
    """Return the diagonals above, at and below the middle, each of full length."""
    if form == "compact":
        return [diagonals[..., i, :] for i in range(3)]
    if form == "sequence":
        high, middle, low = diagonals
        return [_padded(high, middle, (0, 1)), middle, _padded(low, middle, (1, 0))]
    if form != "matrix":
        raise Refused(ValueError(f"Unrecognized diagonals_format: {form}"))
    middle = jnp.diagonal(diagonals, axis1=-2, axis2=-1)
    parts = [jnp.diagonal(diagonals, k, axis1=-2, axis2=-1) for k in (1, -1)]
    return [_padded(parts[0], middle, (0, 1)), middle, _padded(parts[1], middle, (1, 0))]


def _padded(part: Value, middle: Value, ends: tuple[int, int]) -> Value:
    if part.shape[-1] == middle.shape[-1]:
        return part
    return jnp.pad(part, [(0, 0)] * (part.ndim - 1) + [ends])


def _diagonals(diagonals: Any, form: str) -> list[Value]:
    is_list = form == "sequence"
    given = alike(list(diagonals), "Pack") if is_list else to_array(diagonals)
    return _three(given, form)


def _tridiagonal_solve(
    diagonals: Any, rhs: Value, form: str, transpose_rhs: bool, conjugate_rhs: bool,
    partial_pivoting: bool, perturb_singular: bool,
) -> Value:  # fmt: skip
    high, middle, low = _diagonals(diagonals, form)
    is_vector = rhs.ndim == middle.ndim
    rhs = jnp.conj(rhs) if conjugate_rhs else rhs
    if is_vector:
        rhs = rhs[..., None]
    elif transpose_rhs:
        rhs = jnp.swapaxes(rhs, -1, -2)
    if rhs.shape[-2] != middle.shape[-1]:
        raise ValueError(f"the right-hand side has {rhs.shape[-2]} rows, not {middle.shape[-1]}")
    made = _of_three(high, middle, low, rhs)
    return made[..., 0] if is_vector else made


@jax.jit
def _of_three(high: Value, middle: Value, low: Value, rhs: Value) -> Value:
    size = middle.shape[-1]
    matrix = _matrix_of([high, middle, low], size, (1, 0, -1))
    if jnp.iscomplexobj(middle) or size < 3:
        return jnp.linalg.solve(matrix, rhs)
    high, low = high.at[..., -1].set(0), low.at[..., 0].set(0)
    return lax.linalg.tridiagonal_solve(low, middle, high, rhs)


def _matrix_of(bands: list[Value], size: int, offsets: tuple[int, ...]) -> Value:
    """Return matrices of which each band gives a diagonal, by the number of the row."""
    total: Any = 0
    for band, k in zip(bands, offsets, strict=True):
        place = np.eye(size, k=k, dtype=bool)
        total = total + jnp.where(place, band[..., :, None], jnp.zeros((), band.dtype))
    return total


def _tridiagonal_matmul(diagonals: Any, rhs: Value, form: str) -> Value:
    bands = _diagonals(diagonals, form)
    return _matrix_of(bands, bands[1].shape[-1], (1, 0, -1)) @ rhs


def _banded_triangular_solve(bands: Value, rhs: Value, lower: bool, is_adjoint: bool) -> Value:
    check_matrix(bands)
    count, size = bands.shape[-2:]
    offsets = tuple(range(0, -count, -1)) if lower else tuple(range(count - 1, -1, -1))
    matrix = _matrix_of([bands[..., i, :] for i in range(count)], size, offsets)
    return _triangular_solve(matrix, rhs, lower, is_adjoint)


_INEXACT = "float complex"

ROWS = [
    Row(
        "inv", "input", "input, adjoint=False", _inv, op="MatrixInverse", kinds=_INEXACT,
        doc="Return the inverse of matrices, or of their adjoints.",
        examples=(
            "linalg.inv(r(2, 3, 3))", "linalg.inv([[1.0, 2.0], [2.0, 4.0]])",
            "linalg.inv(z(2, 2), adjoint=True)", "linalg.inv(r(2, 3))", "linalg.inv(i(2, 2))",
        ),
        differs="In a compiled function, a matrix without inverse is not refused.",
    ),
    Row(
        "solve", "matrix rhs", "matrix, rhs, adjoint=False", _solve, op="MatrixSolve", same=True,
        kinds=_INEXACT, doc="Solve systems of linear equations.",
        examples=(
            "linalg.solve(r(3, 3), r(3, 2))", "linalg.solve([[1.0, 2.0], [2.0, 4.0]], r(2, 1))",
            "linalg.solve(z(2, 2), z(2, 1), adjoint=True)", "linalg.solve(r(2, 2), r(2))",
        ),
        differs="In a compiled function, a matrix without inverse is not refused.",
    ),
    Row(
        "det", "input", "input", _det, op="MatrixDeterminant", kinds=_INEXACT,
        doc="Return the determinants of matrices.",
        examples=(
            "linalg.det(r(2, 3, 3))", "linalg.det(np.zeros((0, 0), 'f'))", "linalg.det(r(2, 3))",
        ),
    ),
    Row(
        "slogdet", "input", "input", _slogdet, op="LogMatrixDeterminant", kinds=_INEXACT,
        doc="Return the signs of the determinants, and the logarithms of their absolute values.",
        examples=(
            "linalg.slogdet(r(3, 3))", "linalg.slogdet([[0.0, 1.0], [0.0, 0.0]])",
            "linalg.slogdet(z(2, 2))",
        ),
    ),
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
        _triangular_solve, op="MatrixTriangularSolve", same=True, kinds=_INEXACT,
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
        "pinv", "a", "a, rcond=None, validate_args=False", _pinv, op="Svd",
        kinds="float complex int", doc="Return the pseudo-inverses of matrices.",
        examples=(
            "linalg.pinv(r(2, 3))", "linalg.pinv([[1.0, 2.0], [2.0, 4.0]])", "linalg.pinv(i(2, 2))",
        ),
    ),
    Row(
        "matrix_rank", "a", "a, tol=None, validate_args=False", _matrix_rank, op="Svd",
        kinds="float complex int", doc="Return the ranks of matrices.",
        examples=(
            "linalg.matrix_rank(r(2, 2, 3))", "linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])",
            "linalg.matrix_rank(i(2, 2))",
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
    Row(
        "tridiagonal_solve", "rhs",
        "diagonals, rhs, diagonals_format='compact', transpose_rhs=False, conjugate_rhs=False, "
        "partial_pivoting=True, perturb_singular=False",
        _tridiagonal_solve, op="TridiagonalSolve", kinds=_INEXACT,
        doc="Solve systems of linear equations of matrices with three diagonals.",
        examples=(
            "linalg.tridiagonal_solve(p(3, 4), r(4, 2))",
            "linalg.tridiagonal_solve((p(3), p(4), p(3)), r(4), diagonals_format='sequence')",
            "linalg.tridiagonal_solve(p(3, 3), r(2, 3), 'matrix', transpose_rhs=True)",
        ),
    ),
    Row(
        "tridiagonal_matmul", "rhs", "diagonals, rhs, diagonals_format='compact'",
        _tridiagonal_matmul, op="TridiagonalMatMul", kinds=_INEXACT,
        doc="Multiply by matrices with three diagonals.",
        examples=(
            "linalg.tridiagonal_matmul(p(3, 4), r(4, 2))",
            "linalg.tridiagonal_matmul(p(2, 3, 3), r(2, 3, 1))",
            "linalg.tridiagonal_matmul(p(3, 3), r(3, 2), diagonals_format='matrix')",
        ),
    ),
    Row(
        "banded_triangular_solve", "bands rhs", "bands, rhs, lower=True, adjoint=False",
        _banded_triangular_solve, same=True, kinds=_INEXACT,
        doc="Solve systems of linear equations of triangular matrices with few diagonals.",
        examples=(
            "linalg.banded_triangular_solve(p(2, 4), r(4, 2))",
            "linalg.banded_triangular_solve(p(2, 3), r(3, 1), lower=False)",
            "linalg.banded_triangular_solve(p(2, 3), r(3, 1), adjoint=True)",
        ),
    ),
]  # fmt: skip
