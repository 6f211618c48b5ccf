"""The part of `tf.linalg` about the places in matrices: diagonals, bands, transposes.

Rules this file keeps:
- matrices are the last two axes; the others are a batch.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.typing import Array

_ONE = "`k` is one number: of each diagonal of a band there is a call."


def _places(sizes: Sequence[int], k: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the columns of a diagonal's elements."""
    (rows, columns), k = sizes, _number(k)
    if k and not -rows < k < columns:
        raise ValueError(f"diag_index is out of bound: {k} of {rows} by {columns}")
    places = np.arange(min(rows + min(k, 0), columns - max(k, 0)))
    return places - min(k, 0), places + max(k, 0)


def _number(k: Any) -> int:
    if np.ndim(k):
        raise ValueError(f"diag_index must be one number, not {k}: call it for each diagonal.")
    return operator.index(np.asarray(k)[()])


@op("linalg.diag_part", "input", op="MatrixDiagPartV3", example="r(2, 2, 3)", differs=_ONE)
def diag_part(input: Array, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    """Return a diagonal of matrices."""
    _check_matrix(input)
    _places(input.shape[-2:], k)
    return jnp.diagonal(input, _number(k), -2, -1)


@op("linalg.diag", "diagonal", op="MatrixDiagV3", example="r(2, 3)", differs=_ONE)
def diag(
    diagonal: Array, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Array:  # fmt: skip
    """Make matrices of one of their diagonals."""
    if not diagonal.ndim:
        raise ValueError("diagonal must be at least 1-dim, received shape: []")
    sizes = _sizes(diagonal.shape[-1], _number(k), int(num_rows), int(num_cols))
    whole = jnp.full((*diagonal.shape[:-1], *sizes), padding_value, diagonal.dtype)
    return _replace(whole, diagonal, *_places(sizes, k))


def _sizes(length: int, k: int, rows: int, columns: int) -> tuple[int, int]:
    """Return the size of a matrix for a diagonal of a length; -1 stands for what fits."""
    least = length - min(k, 0), length + max(k, 0)
    if 0 <= rows < least[0] or 0 <= columns < least[1]:
        raise ValueError("The number of rows or columns is too small.")
    if rows < 0 and columns < 0:
        return max(least), max(least)
    made = rows if rows >= 0 else least[0], columns if columns >= 0 else least[1]
    if made[0] != least[0] and made[1] != least[1]:
        raise ValueError("The number of rows or columns does not fit the diagonal.")
    return made


@op("linalg.set_diag", "input diagonal", op="MatrixSetDiagV3", same=True, differs=_ONE)
def set_diag(input: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    """Replace a diagonal of matrices.

    Example: `tf.linalg.set_diag(r(2, 2, 3), r(2, 2))`.
    """
    _check_matrix(input)
    places = _places(input.shape[-2:], k)
    if diagonal.shape != (*input.shape[:-2], len(places[0])):
        raise ValueError(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape "
            "doesn't have the right length."
        )
    return _replace(input, diagonal, *places)


@jax.jit
def _replace(x: Array, diagonal: Array, rows: Array, columns: Array) -> Array:
    return x.at[..., rows, columns].set(diagonal)


def _check_matrix(x: Array) -> None:
    if x.ndim < 2:
        raise ValueError(f"input must be at least 2-dim, received shape: {list(x.shape)}")


# ---------------------------------------------------------------- the rest
@op("linalg.band_part", "input", op="MatrixBandPart", example="r(3, 3), 1, 0")
def band_part(input: Array, num_lower: Any, num_upper: Any) -> Array:
    """Replace what is outside of a band by zeros; -1 stands for all diagonals."""
    _check_matrix(input)
    rows, columns = input.shape[-2:]
    low, high = (operator.index(np.asarray(n)[()]) for n in (num_lower, num_upper))
    if low > rows or high > columns:
        raise ValueError(
            f"num_lower must be negative or less or equal to number of rows ({rows}) got: {low}"
        )
    return _inside(input, low, high)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _inside(x: Array, low: int, high: int) -> Array:
    rows, columns = x.shape[-2:]
    offset = jnp.arange(columns) - jnp.arange(rows)[:, None]
    inside = (offset >= -low if low >= 0 else True) & (offset <= high if high >= 0 else True)
    return jnp.where(inside, x, jnp.zeros((), x.dtype))


@op("linalg.tensor_diag", "diagonal", op="Diag", example="r(3)")
def tensor_diag(diagonal: Array) -> Array:
    """Make a tensor of twice the rank, with these elements where both halves agree."""
    if not diagonal.ndim:
        raise ValueError("Input must be at least rank 1, got 0")
    return jnp.diag(diagonal.reshape(-1)).reshape(diagonal.shape * 2)


@op("linalg.tensor_diag_part", "input", op="DiagPart", example="r(3, 3)")
def tensor_diag_part(input: Array) -> Array:
    """Return the elements where both halves of the indices agree."""
    half, odd = divmod(input.ndim, 2)
    if odd or not half or input.shape[:half] != input.shape[half:]:
        raise ValueError(f"Invalid shape {list(input.shape)}: its two halves do not match.")
    size = math.prod(input.shape[:half])
    return jnp.diagonal(input.reshape(size, size)).reshape(input.shape[:half])


@op("linalg.trace", "x", op="MatrixDiagPartV3", kinds="float complex int", example="r(2, 3, 3)")
def trace(x: Array) -> Array:
    """Return the sum of the main diagonal."""
    _check_matrix(x)
    return jnp.trace(x, axis1=-2, axis2=-1, dtype=x.dtype)


@op("linalg.matrix_transpose", "a", op="Transpose", example="r(2, 2, 3)")
def matrix_transpose(a: Array, conjugate: bool = False) -> Array:
    """Exchange rows and columns."""
    if a.ndim < 2:
        raise Refused(
            ValueError(
                f"Argument `a` should be a (batch) matrix with rank >= 2, not of shape {a.shape}"
            )
        )
    turned = jnp.swapaxes(a, -1, -2)
    return jnp.conj(turned) if conjugate else turned


@op("linalg.adjoint", "matrix", op="Transpose", example="r(2, 3)")
def adjoint(matrix: Array) -> Array:
    """Exchange rows and columns, and conjugate."""
    return conjugate_transpose(matrix)


def conjugate_transpose(x: Array) -> Array:
    """Return matrices with rows and columns exchanged, conjugated if they are complex."""
    return matrix_transpose.__wrapped__(x, x.dtype.kind == "c")


@jax.jit
def _cross(a: Array, b: Array) -> Array:
    x, y, z = (a[..., i] for i in range(3))
    u, v, w = (b[..., i] for i in range(3))
    return jnp.stack([y * w - z * v, z * u - x * w, x * v - y * u], -1)


@op("linalg.cross", "a b", same=True, kinds="float int", example="r(2, 3), r(2, 3)")
def cross(a: Array, b: Array) -> Array:
    """Return the cross products of vectors of three numbers."""
    if a.shape != b.shape or not a.ndim:
        raise ValueError(f"Both inputs must be of same shape: {a.shape} vs. {b.shape}")
    if a.shape[-1] != 3:
        message = "Cross-products are only defined for 3-element vectors."
        raise Refused(FailedPreconditionError(None, None, message))
    return _cross(a, b)
