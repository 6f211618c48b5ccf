"""The part of `tf.linalg` about factors with orthogonal matrices, and functions of matrices.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- of a self-adjoint matrix only the lower triangle is read;
- eigenvectors and singular vectors are those of LAPACK, or of the accelerator: their signs may be
  others than TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm

from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.matrices.solve import check_matrix, check_square, widen_half
from jaxvars.tf.math.slopes import by_host
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.typing import Array

_INEXACT = "float complex"


class Qr(NamedTuple):
    """The factors of matrices.

    Attributes:
        q: orthonormal columns.
        r: an upper triangle.
    """

    q: Array
    r: Array


@op("linalg.qr", "input", kinds=_INEXACT, example="r(3, 2)")
def qr(input: Array, full_matrices: bool = False) -> Qr:
    """Return orthonormal columns and an upper triangle, whose product is the matrix."""
    check_matrix(input)
    made = jnp.linalg.qr(widen_half(input), mode="complete" if full_matrices else "reduced")
    return Qr(*(part.astype(input.dtype) for part in made))


@op("linalg.svd", "tensor", op="Svd", kinds=_INEXACT)
def svd(tensor: Array, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """Return singular values, left and right singular vectors of matrices.

    Example: `tf.linalg.svd(r(2, 3, 2))[0]`.

    Differs from TensorFlow: The signs of the vectors may be others. With full matrices no
    gradient exists.
    """
    check_matrix(tensor)
    if not compute_uv:
        return jnp.linalg.svd(tensor, compute_uv=False)
    u, s, vh = jnp.linalg.svd(tensor, full_matrices=bool(full_matrices))
    return s, u, conjugate_transpose(vh)


@op("linalg.eigh", "tensor", op="SelfAdjointEigV2", kinds=_INEXACT)
def eigh(tensor: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of self-adjoint matrices, and their vectors in columns.

    Example: `tf.linalg.eigh(r(3, 3))[0]`.

    Differs from TensorFlow: The signs of the vectors may be others.
    """
    check_square(tensor)
    return _of_lower(tensor)


@jax.jit
def _of_lower(x: Array) -> tuple[Array, Array]:
    below, real = jnp.tril(x, -1), jnp.real(x).astype(x.dtype)  # of the diagonal it is all
    whole = below + conjugate_transpose(below) + jnp.where(np.eye(x.shape[-1], dtype=bool), real, 0)
    values, vectors = jnp.linalg.eigh(whole, symmetrize_input=False)
    return values.astype(x.dtype), vectors


@op("linalg.eigvalsh", "tensor", op="SelfAdjointEigV2", kinds=_INEXACT, example="r(3, 3)")
def eigvalsh(tensor: Array) -> Array:
    """Return the eigenvalues of self-adjoint matrices, the least first."""
    return eigh.__wrapped__(tensor)[0]


@op("linalg.eig", "tensor", op="Eig", kinds=_INEXACT, aliases=("eig",))
def eig(tensor: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of matrices, and their vectors in columns.

    Example: `tf.linalg.eig(p(2, 2))[0]`.

    Differs from TensorFlow: The signs of the vectors may be others. TPUs have no such operation.
    """
    check_square(tensor)
    values, vectors = jax.lax.linalg.eig(
        tensor, compute_left_eigenvectors=False, enable_eigvec_derivs=True
    )
    return values, vectors


@op("linalg.eigvals", "tensor", op="Eig", kinds=_INEXACT, aliases=("eigvals",), example="p(2, 2)")
def eigvals(tensor: Array) -> Array:
    """Return the eigenvalues of matrices.

    Differs from TensorFlow: TPUs have no such operation.
    """
    check_square(tensor)
    return jnp.linalg.eigvals(tensor)


# ---------------------------------------------------------------- functions of matrices
@op("linalg.expm", "input", kinds="float complex int", example="r(2, 2, 2)")
def expm_(input: Array) -> Array:
    """Return the exponential of matrices."""
    if input.dtype.kind in "iu":
        raise Refused(ValueError(f"tf.linalg.expm does not support matrices of type {input.dtype}"))
    check_square(input)
    return expm(input)


def _scipy(name: str) -> Callable[[Array], Array]:
    """Return a function of SciPy's of one matrix as one of JAX's, which runs on the host."""

    def on_host(x: Any) -> Any:
        import scipy.linalg

        given = np.asarray(x)
        made = np.empty_like(given)
        for place in np.ndindex(given.shape[:-2]):
            found = getattr(scipy.linalg, name)(given[place].astype(np.complex128))
            made[place] = found if given.dtype.kind == "c" else _real(found)
        return made

    return by_host(on_host)


def _real(x: np.ndarray) -> np.ndarray:
    """Return the real part; NaN if there is an imaginary one, too."""
    is_real = np.allclose(np.imag(x), 0, atol=1e-6 * max(np.abs(x).max(initial=0), 1e-30))
    return np.real(x) if is_real else np.full(x.shape, np.nan)


_root = jax.custom_jvp(_scipy("sqrtm"))


@_root.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # R R = A, so that dR R + R dR = dA: a linear equation for dR.
    root = _root(*primals)
    eye = jnp.eye(root.shape[-1], dtype=root.dtype)
    left = jnp.einsum("...ij,kl->...ikjl", root, eye)
    right = jnp.einsum("ij,...lk->...ikjl", eye, root)
    size = root.shape[-1] ** 2
    matrix = (left + right).reshape(*root.shape[:-2], size, size)
    change = jnp.linalg.solve(matrix, tangents[0].reshape(*root.shape[:-2], size, 1))
    return root, change.reshape(root.shape)


_sqrtm_compiled, _logm_compiled = jax.jit(_root), jax.jit(_scipy("logm"))


@op("linalg.sqrtm", "input", op="MatrixSquareRoot", kinds=_INEXACT, aliases=("matrix_square_root",))
def sqrtm(input: Array) -> Array:
    """Return the square root of matrices; NaN if it is not real.

    Example: `tf.linalg.sqrtm(p(2, 2) + tf.eye(2) * 3.0)`.

    Differs from TensorFlow: It is computed on the host.
    """
    check_square(input)
    return _sqrtm_compiled(input)


@op("linalg.logm", "input", op="MatrixLogarithm", kinds="complex", example="z(2, 2)")
def logm(input: Array) -> Array:
    """Return the logarithm of matrices.

    Differs from TensorFlow: It is computed on the host.
    """
    check_square(input)
    return _logm_compiled(input)
