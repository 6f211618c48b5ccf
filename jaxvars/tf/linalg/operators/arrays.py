"""What linear operators do with arrays: products, solutions, factors, in broadcast batches."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.matrices.factors import cholesky as factor_of
from jaxvars.tf.linalg.matrices.factors import in_one_batch
from jaxvars.tf.linalg.matrices.solve import try_solve
from jaxvars.tf.tensors.static import refused
from jaxvars.tracing import context
from jaxvars.typing import Array


def times(matrix: Array, x: Array, is_adjoint: bool = False) -> Array:
    """Return the product of matrices, or of the adjoint of the first."""
    return jnp.matmul(conjugate_transpose(matrix) if is_adjoint else matrix, x)


def solve(matrix: Array, rhs: Array, is_adjoint: bool = False) -> Array:
    """Return X where a matrix times X is given.

    Raises:
        InvalidArgumentError: when there is none, and that is known.
    """
    made, singular = try_solve(*in_one_batch(matrix, rhs), is_adjoint)
    if not context.is_tracer(singular) and bool(np.asarray(singular)):
        raise refused("Input matrix is not invertible.")
    return made


def cholesky(matrix: Array) -> Array:
    """Return the lower factor of a positive definite matrix.

    Raises:
        InvalidArgumentError: when it is none, and that is known.
    """
    made = factor_of.__wrapped__(matrix)
    if not context.is_tracer(made) and not np.isfinite(np.asarray(made)).all():
        raise refused("Cholesky decomposition was not successful. The input might not be valid.")
    return made


def joint_batch(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch that some shapes of matrices have together."""
    return np.broadcast_shapes(*(shape[:-2] for shape in shapes))


def in_batch(x: Array, batch: tuple[int, ...]) -> Array:
    """Return matrices with a batch at least as large as another one."""
    return jnp.broadcast_to(x, np.broadcast_shapes(x.shape[:-2], batch) + x.shape[-2:])
