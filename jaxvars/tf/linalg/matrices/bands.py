"""The part of `tf.linalg` about matrices that are given by a few diagonals.

Rules this file keeps:
- an element of a band stands at the number of its row; what is outside of the matrix is not read.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.linalg.matrices.factors import triangular_solve
from jaxvars.tf.linalg.matrices.solve import check_matrix
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.convert import match_dtypes, to_array
from jaxvars.typing import Array

_INEXACT = "float complex"


def _three_diagonals(diagonals: Any, form: str) -> list[Array]:
    """Return the diagonals above, at and below the middle, each of full length."""
    if form == "sequence":
        high, middle, low = match_dtypes(list(diagonals), "Pack")
        return [_pad_part(high, middle, (0, 1)), middle, _pad_part(low, middle, (1, 0))]
    diagonals = to_array(diagonals)
    if form == "compact":
        if diagonals.ndim < 2 or diagonals.shape[-2] != 3:
            raise Refused(ValueError(f"Expected 3 diagonals got the shape {diagonals.shape}"))
        return [diagonals[..., i, :] for i in range(3)]
    if form != "matrix":
        raise Refused(ValueError(f"Unrecognized diagonals_format: {form}"))
    middle = jnp.diagonal(diagonals, axis1=-2, axis2=-1)
    parts = [jnp.diagonal(diagonals, k, axis1=-2, axis2=-1) for k in (1, -1)]
    return [_pad_part(parts[0], middle, (0, 1)), middle, _pad_part(parts[1], middle, (1, 0))]


def _pad_part(part: Array, middle: Array, ends: tuple[int, int]) -> Array:
    if part.shape[-1] == middle.shape[-1]:
        return part
    return jnp.pad(part, [(0, 0)] * (part.ndim - 1) + [ends])


@op("linalg.tridiagonal_solve", "rhs", op="TridiagonalSolve", kinds=_INEXACT)
def tridiagonal_solve(
    diagonals: Any, rhs: Array, diagonals_format: str = "compact", transpose_rhs: bool = False,
    conjugate_rhs: bool = False, partial_pivoting: bool = True, perturb_singular: bool = False,
) -> Array:  # fmt: skip
    """Solve systems of linear equations of matrices with three diagonals.

    Example: `tf.linalg.tridiagonal_solve(p(3, 4), r(4, 2))`.
    """
    high, middle, low = _three_diagonals(diagonals, diagonals_format)
    is_vector = rhs.ndim == middle.ndim
    rhs = jnp.conj(rhs) if conjugate_rhs else rhs
    if is_vector:
        rhs = rhs[..., None]
    elif transpose_rhs:
        rhs = jnp.swapaxes(rhs, -1, -2)
    if rhs.shape[-2] != middle.shape[-1]:
        raise ValueError(f"the right-hand side has {rhs.shape[-2]} rows, not {middle.shape[-1]}")
    made = _solve_of_three(high, middle, low, rhs)
    return made[..., 0] if is_vector else made


@jax.jit
def _solve_of_three(high: Array, middle: Array, low: Array, rhs: Array) -> Array:
    """Solve equations of matrices with three diagonals."""
    size = middle.shape[-1]
    matrix = _matrix_of([high, middle, low], size, (1, 0, -1))
    if jnp.iscomplexobj(middle) or size < 3:
        return jnp.linalg.solve(matrix, rhs)
    high, low = high.at[..., -1].set(0), low.at[..., 0].set(0)
    return lax.linalg.tridiagonal_solve(low, middle, high, rhs)


def _matrix_of(bands: list[Array], size: int, offsets: tuple[int, ...]) -> Array:
    """Return matrices of which each band gives a diagonal, by the number of the row."""
    total: Any = 0
    for band, k in zip(bands, offsets, strict=True):
        place = np.eye(size, k=k, dtype=bool)
        total = total + jnp.where(place, band[..., :, None], jnp.zeros((), band.dtype))
    return total


@functools.partial(jax.jit, static_argnums=(1, 2))
def _dense(bands: Array, size: int, offsets: tuple[int, ...]) -> Array:
    return _matrix_of([bands[..., i, :] for i in range(len(offsets))], size, offsets)


@op("linalg.tridiagonal_matmul", "rhs", op="TridiagonalMatMul", kinds=_INEXACT)
def tridiagonal_matmul(diagonals: Any, rhs: Array, diagonals_format: str = "compact") -> Array:
    """Multiply by matrices with three diagonals.

    Example: `tf.linalg.tridiagonal_matmul(p(3, 4), r(4, 2))`.
    """
    return _multiply_bands(_three_diagonals(diagonals, diagonals_format), rhs)


@jax.jit
def _multiply_bands(bands: list[Array], rhs: Array) -> Array:
    """Multiply by matrices with three diagonals."""
    return _matrix_of(bands, bands[1].shape[-1], (1, 0, -1)) @ rhs


@op("linalg.banded_triangular_solve", "bands rhs", same=True, kinds=_INEXACT)
def banded_triangular_solve(
    bands: Array, rhs: Array, lower: bool = True, adjoint: bool = False
) -> Array:
    """Solve systems of linear equations of triangular matrices with few diagonals.

    Example: `tf.linalg.banded_triangular_solve(p(2, 4), r(4, 2))`.
    """
    check_matrix(bands)
    count, size = bands.shape[-2:]
    offsets = tuple(range(0, -count, -1)) if lower else tuple(range(count - 1, -1, -1))
    matrix = _dense(bands, size, offsets)
    return triangular_solve.__wrapped__(matrix, rhs, lower, adjoint)
