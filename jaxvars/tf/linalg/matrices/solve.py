"""The part of `tf.linalg` about equations: inverses, determinants, ranks.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- a matrix that has no inverse is refused where values are known, and gives infinities or NaN in
  compiled functions.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tracing import context
from jaxvars.typing import Array

_INEXACT = "float complex"


class LogMatrixDeterminant(NamedTuple):
    """The determinant of matrices.

    Attributes:
        sign: its sign; of complex matrices, a number of absolute value 1.
        log_abs_determinant: the logarithm of its absolute value.
    """

    sign: Array
    log_abs_determinant: Array


def check_square(x: Array) -> None:
    """Raise ValueError if these are not square matrices."""
    check_matrix(x)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError("Input matrix must be square.")


def check_matrix(x: Array, number: int = 0) -> None:
    """Raise ValueError if these are not matrices."""
    if x.ndim < 2:
        raise ValueError(f"Input tensor {number} must have rank >= 2, got {x.ndim}")


def _floats(a: Array) -> None:
    if a.dtype.kind in "iuc":
        raise Refused(TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype})."))


def refuse_singular(singular: Array, what: str = "Input matrix") -> None:
    """Raise ValueError if an inverse is known not to exist."""
    if not context.is_tracer(singular) and np.asarray(singular):
        raise ValueError(f"{what} is not invertible.")


# ---------------------------------------------------------------- inverses and determinants
@functools.partial(jax.jit, static_argnums=2)
def _try_solve(matrix: Array, rhs: Array, is_adjoint: bool) -> tuple[Array, Array]:
    """Return the solution, and whether there is none."""
    turned = conjugate_transpose(matrix) if is_adjoint else matrix
    made = jnp.linalg.solve(turned, rhs)
    is_given = jnp.all(jnp.isfinite(matrix)) & jnp.all(jnp.isfinite(rhs))
    return made, is_given & ~jnp.all(jnp.isfinite(made))


@op("linalg.inv", "input", op="MatrixInverse", kinds=_INEXACT, example="r(2, 3, 3)")
def inv(input: Array, adjoint: bool = False) -> Array:
    """Return the inverse of matrices, or of their adjoints.

    Differs from TensorFlow: In a compiled function, a matrix without inverse is not refused.
    """
    check_square(input)
    wide = widen_half(input)
    eye = jnp.broadcast_to(jnp.eye(input.shape[-1], dtype=wide.dtype), input.shape)
    made, singular = _try_solve(wide, eye, bool(adjoint))
    refuse_singular(singular, "Input")
    return made.astype(input.dtype)


def widen_half(x: Array) -> Array:
    """Return float16 as float32, which the algorithms take."""
    return x.astype(jnp.float32) if x.dtype.name == "float16" else x


@op("linalg.solve", "matrix rhs", op="MatrixSolve", same=True, kinds=_INEXACT)
def solve(matrix: Array, rhs: Array, adjoint: bool = False) -> Array:
    """Solve systems of linear equations.

    Example: `tf.linalg.solve(r(3, 3), r(3, 2))`.

    Differs from TensorFlow: In a compiled function, a matrix without inverse is not refused.
    """
    check_square(matrix)
    if matrix.ndim != rhs.ndim or matrix.shape[:-1] != rhs.shape[:-1]:
        raise ValueError(
            f"All input tensors must have the same rank and batch: {matrix.shape}, {rhs.shape}"
        )
    made, singular = _try_solve(matrix, rhs, bool(adjoint))
    refuse_singular(singular)
    return made


@op("linalg.det", "input", op="MatrixDeterminant", kinds=_INEXACT, example="r(2, 3, 3)")
def det(input: Array) -> Array:
    """Return the determinants of matrices."""
    check_square(input)
    return jnp.linalg.det(input)


@op("linalg.slogdet", "input", op="LogMatrixDeterminant", kinds=_INEXACT, example="r(3, 3)")
def slogdet(input: Array) -> LogMatrixDeterminant:
    """Return the signs of the determinants, and the logarithms of their absolute values."""
    check_square(input)
    sign, logarithm = jnp.linalg.slogdet(input)
    return LogMatrixDeterminant(sign, logarithm.astype(input.dtype))


# ---------------------------------------------------------------- pseudo-inverses
@op("linalg.pinv", "a", op="Svd", kinds="float complex int", example="r(2, 3)")
def pinv(a: Array, rcond: Any = None, validate_args: bool = False) -> Array:
    """Return the pseudo-inverses of matrices."""
    _floats(a)
    check_matrix(a)
    return jnp.linalg.pinv(a, rtol=None if rcond is None else jnp.asarray(rcond, a.dtype))


@op("linalg.matrix_rank", "a", op="Svd", kinds="float complex int", example="r(2, 2, 3)")
def matrix_rank(a: Array, tol: Any = None, validate_args: bool = False) -> Array:
    """Return the ranks of matrices."""
    _floats(a)
    check_matrix(a)
    values = jnp.linalg.svd(a, compute_uv=False)
    if tol is None:
        tol = np.finfo(a.dtype).eps * max(a.shape[-2:]) * jnp.max(values, -1, keepdims=True)
    return jnp.sum(values > jnp.asarray(tol, values.dtype), -1, dtype=np.int32)
