"""The part of `tf.linalg` about equations: inverses, determinants, ranks.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- a matrix that has no inverse is refused where values are known, and gives infinities or NaN in
  compiled functions.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.linalg.matrices.diagonals import adjoint
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tracing import context

Value: TypeAlias = Any


class LogMatrixDeterminant(NamedTuple):
    """The determinant of matrices.

    Attributes:
        sign: its sign; of complex matrices, a number of absolute value 1.
        log_abs_determinant: the logarithm of its absolute value.
    """

    sign: Value
    log_abs_determinant: Value


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


def refuse_singular(singular: Value) -> None:
    """Raise ValueError if there is no inverse, and that is known."""
    if not context.is_tracer(singular) and np.asarray(singular):
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
    refuse_singular(singular)
    return made


def _solve(matrix: Value, rhs: Value, is_adjoint: bool) -> Value:
    check_square(matrix)
    if matrix.ndim != rhs.ndim or matrix.shape[:-1] != rhs.shape[:-1]:
        raise ValueError(
            f"All input tensors must have the same rank and batch: {matrix.shape}, {rhs.shape}"
        )
    made, singular = _solved(matrix, rhs, bool(is_adjoint))
    refuse_singular(singular)
    return made


def _det(x: Value) -> Value:
    check_square(x)
    return jnp.linalg.det(x)


def _slogdet(x: Value) -> LogMatrixDeterminant:
    check_square(x)
    sign, logarithm = jnp.linalg.slogdet(x)
    return LogMatrixDeterminant(sign, logarithm.astype(x.dtype))


# ---------------------------------------------------------------- pseudo-inverses
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
]  # fmt: skip
