"""The part of `tf.linalg` about the places in matrices: diagonals, bands, transposes.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- a band is its diagonals from the highest down, in rows that are as long as the longest one, and
  `align` is at which end the short ones stand.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.typing import Array


class _Band(NamedTuple):
    """Where the elements of a band are: in the matrix and among its diagonals."""

    rows: np.ndarray
    columns: np.ndarray
    diagonals: np.ndarray
    positions: np.ndarray
    height: int
    length: int


@functools.lru_cache(256)
def _band(rows: int, columns: int, low: int, high: int, align: str) -> _Band:
    if low > high:
        raise ValueError(
            f"lower_diag_index must not be larger than upper_diag_index: {low}, {high}"
        )
    if any(k and not -rows < k < columns for k in (low, high)):
        raise ValueError(f"diag_index is out of bound: {low}, {high} of {rows} by {columns}")
    length = min(rows + min(high, 0), columns - max(low, 0))
    upper_left, lower_left = _alignment(align)
    parts: list[np.ndarray] = []
    for number, k in enumerate(range(high, low - 1, -1)):
        own = min(rows + min(k, 0), columns - max(k, 0))
        is_left = (k >= 0 and upper_left) or (k <= 0 and lower_left)
        i = np.arange(own)
        start = 0 if is_left else length - own
        parts.append(np.stack([i - min(k, 0), i + max(k, 0), np.full(own, number), start + i]))
    rows_at, columns_at, diagonals, positions = np.concatenate(parts, axis=1).astype(np.int32)
    return _Band(rows_at, columns_at, diagonals, positions, high - low + 1, length)


def _alignment(align: str) -> tuple[bool, bool]:
    """Return whether diagonals above and below the main one stand at the left."""
    names = {"RIGHT": False, "LEFT": True}
    upper, _, lower = str(align).partition("_")
    if upper not in names or lower not in names:
        raise ValueError(
            f"Value for attr 'align' of {align!r} is not in the list of allowed values"
        )
    return names[upper], names[lower]


def _limits(k: Any) -> tuple[int, int]:
    numbers = [int(x) for x in np.asarray(k).reshape(-1)]
    if len(numbers) not in (1, 2):
        raise ValueError(f"diag_index must be one number or two, not {k}")
    return numbers[0], numbers[-1]


@op("linalg.diag_part", "input", op="MatrixDiagPartV3", example="r(2, 2, 3)")
def diag_part(input: Array, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    """Return diagonals of matrices."""
    _check_matrix(input)
    return _parts(input, padding_value, *_limits(k), align)


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _parts(x: Array, padding: Any, low: int, high: int, align: str) -> Array:
    band = _band(*x.shape[-2:], low, high, align)
    made = jnp.full((*x.shape[:-2], band.height, band.length), padding, x.dtype)
    made = made.at[..., band.diagonals, band.positions].set(x[..., band.rows, band.columns])
    return made[..., 0, :] if low == high else made


@op("linalg.diag", "diagonal", op="MatrixDiagV3", example="r(2, 3)")
def diag(
    diagonal: Array, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Array:  # fmt: skip
    """Make matrices of their diagonals."""
    if not diagonal.ndim:
        raise ValueError("diagonal must be at least 1-dim, received shape: []")
    low, high = _limits(k)
    packed = diagonal[..., None, :] if low == high else diagonal
    if packed.ndim < 2 or packed.shape[-2] != high - low + 1:
        raise ValueError("The number of diagonals provided in the input does not match the band")
    sizes = _sizes(packed.shape[-1], low, high, int(num_rows), int(num_cols))
    return _fill_matrix(packed, padding_value, sizes, low, high, align)


@functools.partial(jax.jit, static_argnums=(2, 3, 4, 5))
def _fill_matrix(
    packed: Array, padding: Any, sizes: tuple[int, int], low: int, high: int, align: str
) -> Array:
    band = _band(*sizes, low, high, align)
    made = jnp.full((*packed.shape[:-2], *sizes), padding, packed.dtype)
    return made.at[..., band.rows, band.columns].set(packed[..., band.diagonals, band.positions])


def _sizes(length: int, low: int, high: int, rows: int, columns: int) -> tuple[int, int]:
    """Return the size of a matrix for diagonals of a length; -1 stands for what fits."""
    least = length - min(high, 0), length + max(low, 0)
    if 0 <= rows < least[0] or 0 <= columns < least[1]:
        raise ValueError("The number of rows or columns is too small.")
    if rows < 0 and columns < 0:
        return max(least), max(least)
    made = rows if rows >= 0 else least[0], columns if columns >= 0 else least[1]
    if made[0] != least[0] and made[1] != least[1]:
        raise ValueError(
            "The number of rows or columns is not consistent with the specified d_lower, d_upper, "
            "and diagonal."
        )
    return made


@op("linalg.set_diag", "input diagonal", op="MatrixSetDiagV3", same=True)
def set_diag(input: Array, diagonal: Array, k: Any = 0, align: str = "RIGHT_LEFT") -> Array:
    """Replace diagonals of matrices.

    Example: `tf.linalg.set_diag(r(2, 2, 3), r(2, 2))`.
    """
    _check_matrix(input)
    low, high = _limits(k)
    band = _band(*input.shape[-2:], low, high, align)
    packed = diagonal[..., None, :] if low == high else diagonal
    if packed.shape != (*input.shape[:-2], band.height, band.length):
        raise ValueError(
            "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape "
            "doesn't have the right number or length of diagonals."
        )
    return _replace_diagonals(input, packed, low, high, align)


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _replace_diagonals(x: Array, packed: Array, low: int, high: int, align: str) -> Array:
    band = _band(*x.shape[-2:], low, high, align)
    part = packed[..., band.diagonals, band.positions]
    return x.at[..., band.rows, band.columns].set(part)


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
