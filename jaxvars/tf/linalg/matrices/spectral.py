"""The part of `tf.linalg` about factors with orthogonal matrices, and functions of matrices.

Rules this file keeps:
- matrices are the last two axes; the others are a batch;
- of a self-adjoint matrix only the lower triangle is read;
- eigenvectors and singular vectors are those of LAPACK, or of the accelerator: their signs may be
  others than TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import expm

from jaxvars.tf.linalg.matrices.diagonals import adjoint
from jaxvars.tf.linalg.matrices.solve import check_matrix, check_square
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tracing import context

Value: TypeAlias = Any


class Qr(NamedTuple):
    """The factors of matrices.

    Attributes:
        q: orthonormal columns.
        r: an upper triangle.
    """

    q: Value
    r: Value


def _qr(x: Value, full_matrices: bool) -> Qr:
    check_matrix(x)
    return Qr(*jnp.linalg.qr(x, mode="complete" if full_matrices else "reduced"))


def _svd(x: Value, full_matrices: bool, compute_uv: bool) -> Any:
    check_matrix(x)
    if not compute_uv:
        return jnp.linalg.svd(x, compute_uv=False)
    u, s, vh = jnp.linalg.svd(x, full_matrices=bool(full_matrices))
    return s, u, adjoint(vh)


def _eigh(x: Value) -> tuple[Value, Value]:
    check_square(x)
    return _of_lower(x)


@jax.jit
def _of_lower(x: Value) -> tuple[Value, Value]:
    whole = jnp.tril(x) + adjoint(jnp.tril(x, -1))
    values, vectors = jnp.linalg.eigh(whole, symmetrize_input=False)
    return values.astype(x.dtype), vectors


def _eigvalsh(x: Value) -> Value:
    return _eigh(x)[0]


def _eig(x: Value) -> tuple[Value, Value]:
    check_square(x)
    values, vectors = jnp.linalg.eig(x)
    return values, vectors


def _eigvals(x: Value) -> Value:
    check_square(x)
    return jnp.linalg.eigvals(x)


def _eigh_tridiagonal(
    alpha: Value, beta: Value, eigvals_only: bool, select: str, select_range: Any, tol: Any
) -> Any:
    if alpha.ndim < 1 or beta.shape != (*alpha.shape[:-1], alpha.shape[-1] - 1):
        raise Refused(ValueError("alpha must have one element more than beta."))
    values, vectors = _of_diagonals(alpha, beta)
    chosen = _chosen(values, select, select_range)
    return values[..., chosen] if eigvals_only else (values[..., chosen], vectors[..., chosen])


@jax.jit
def _of_diagonals(alpha: Value, beta: Value) -> tuple[Value, Value]:
    size = alpha.shape[-1]
    zero = jnp.zeros((), alpha.dtype)
    below = jnp.pad(beta, [(0, 0)] * (beta.ndim - 1) + [(1, 0)])
    lower = jnp.where(np.eye(size, dtype=bool), alpha[..., None], zero)
    lower += jnp.where(np.eye(size, k=-1, dtype=bool), below[..., None], zero)
    values, vectors = _of_lower(lower)
    return jnp.real(values), vectors


def _chosen(values: Value, select: str, limits: Any) -> Any:
    if select == "a":
        return slice(None)
    if select == "i":
        return slice(int(limits[0]), int(limits[1]) + 1)
    if select != "v":
        raise Refused(ValueError("'select' must have a value in {'a', 'i', 'v'}."))
    if context.is_tracer(values):
        raise ValueError("which eigenvalues are in a range a compiled function does not know")
    known = np.asarray(values)
    return np.flatnonzero((known > float(limits[0])) & (known <= float(limits[1])))


# ---------------------------------------------------------------- functions of matrices
def _expm(x: Value) -> Value:
    if x.dtype.kind in "iu":
        raise Refused(ValueError(f"tf.linalg.expm does not support matrices of type {x.dtype}"))
    check_square(x)
    return expm(x)


def _scipy(name: str) -> Callable[[Value], Value]:
    """Return a function of SciPy's of one matrix as one of JAX's, which runs on the host."""

    def on_host(x: Any) -> Any:
        import scipy.linalg

        given = np.asarray(x)
        made = np.empty_like(given)
        for place in np.ndindex(given.shape[:-2]):
            found = getattr(scipy.linalg, name)(given[place].astype(np.complex128))
            made[place] = found if given.dtype.kind == "c" else _real(found)
        return made

    def called(x: Value) -> Value:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(on_host, shape, x, vmap_method="expand_dims")

    return called


def _real(x: np.ndarray) -> np.ndarray:
    """Return the real part; NaN if there is an imaginary one, too."""
    is_real = np.allclose(np.imag(x), 0, atol=1e-6 * max(np.abs(x).max(initial=0), 1e-30))
    return np.real(x) if is_real else np.full(x.shape, np.nan)


_root = jax.custom_jvp(_scipy("sqrtm"))


@_root.defjvp
def _(primals: tuple[Value], tangents: tuple[Value]) -> tuple[Value, Value]:
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


def _sqrtm(x: Value) -> Value:
    check_square(x)
    return _sqrtm_compiled(x)


def _logm(x: Value) -> Value:
    check_square(x)
    return _logm_compiled(x)


_INEXACT = "float complex"
_SIGNS = "The signs of the vectors may be others."

ROWS = [
    Row(
        "qr", "input", "input, full_matrices=False", _qr, op="Qr", kinds=_INEXACT,
        doc="Return orthonormal columns and an upper triangle, whose product is the matrix.",
        examples=(
            "linalg.qr(r(3, 2))", "linalg.qr(r(2, 3), full_matrices=True)", "linalg.qr(r(2))",
        ),
    ),
    Row(
        "svd", "tensor", "tensor, full_matrices=False, compute_uv=True", _svd, op="Svd",
        kinds=_INEXACT, differs=f"{_SIGNS} With full matrices there is no gradient.",
        doc="Return singular values, left and right singular vectors of matrices.",
        examples=(
            "linalg.svd(r(2, 3, 2))[0]", "linalg.svd(r(2, 3), compute_uv=False)",
            "abs(tf.linalg.svd([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], full_matrices=True)[1])",
            "abs(tf.linalg.svd(r(3, 2))[2])",
            "linalg.svd(r(2))",
        ),
    ),
    Row(
        "eigh", "tensor", "tensor", _eigh, op="SelfAdjointEigV2", kinds=_INEXACT, differs=_SIGNS,
        doc="Return the eigenvalues of self-adjoint matrices, and their vectors in columns.",
        examples=(
            "linalg.eigh(r(3, 3))[0]", "abs(tf.linalg.eigh(r(2, 2, 2))[1])",
            "linalg.eigh(r(2, 3))",
        ),
    ),
    Row(
        "eigvalsh", "tensor", "tensor", _eigvalsh, op="SelfAdjointEigV2", kinds=_INEXACT,
        doc="Return the eigenvalues of self-adjoint matrices, the least first.",
        examples=(
            "linalg.eigvalsh(r(3, 3))", "linalg.eigvalsh([[2.0, 9.0], [1.0, 3.0]])",
            "linalg.eigvalsh(z(2, 2))",
        ),
    ),
    Row(
        "eig", "tensor", "tensor", _eig, op="Eig", kinds=_INEXACT, aliases=("eig",),
        doc="Return the eigenvalues of matrices, and their vectors in columns.",
        examples=(
            "linalg.eig(p(2, 2))[0]", "linalg.eig(tf.constant([[2.0, 1.0], [1.0, 3.0]]))[0]",
            "linalg.eig(r(2, 3))",
        ),
        differs="The signs of the vectors may be others; JAX computes it on the CPU only.",
    ),
    Row(
        "eigvals", "tensor", "tensor", _eigvals, op="Eig", kinds=_INEXACT, aliases=("eigvals",),
        doc="Return the eigenvalues of matrices.",
        examples=(
            "linalg.eigvals(p(2, 2))", "linalg.eigvals(tf.constant([[2.0, 1.0], [1.0, 3.0]]))",
            "linalg.eigvals(r(2, 3))",
        ),
        differs="JAX computes it on the CPU only.",
    ),
    Row(
        "eigh_tridiagonal", "alpha beta",
        "alpha, beta, eigvals_only=True, select='a', select_range=None, tol=None",
        _eigh_tridiagonal, same=True, kinds=_INEXACT,
        differs=f"{_SIGNS} The gradients are right.",
        doc="Return the eigenvalues of self-adjoint matrices with three diagonals.",
        examples=(
            "linalg.eigh_tridiagonal([1.0, 2.0, 4.0], [0.5, -1.0])",
            "linalg.eigh_tridiagonal([1.0, 2.0, 4.0], [1.0, 1.0], select='i', select_range=(1, 2))",
            "abs(tf.linalg.eigh_tridiagonal([1.0, 2.0, 4.0], [1.0, 2.0], eigvals_only=False)[1])",
            "linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select='v', select_range=(0.0, 1.0))",
        ),
    ),
    Row(
        "expm", "input", "input", _expm, kinds="float complex int",
        doc="Return the exponential of matrices.",
        examples=("linalg.expm(r(2, 2, 2))", "linalg.expm(r(0, 0))", "linalg.expm(i(2, 2))"),
    ),
    Row(
        "logm", "input", "input", _logm, op="MatrixLogarithm", kinds="complex",
        doc="Return the logarithm of matrices.", differs="It is computed on the host.",
        examples=(
            "linalg.logm(z(2, 2))", "linalg.logm(z(2, 2, 2))", "linalg.logm(r(2, 2))",
        ),
    ),
    Row(
        "sqrtm", "input", "input", _sqrtm, op="MatrixSquareRoot", kinds=_INEXACT,
        doc="Return the square root of matrices; NaN if it is not real.",
        examples=(
            "linalg.sqrtm(p(2, 2) + tf.eye(2) * 3.0)", "linalg.sqrtm([[-1.0, 0.0], [0.0, -1.0]])",
            "linalg.sqrtm(z(2, 2, 2))", "linalg.sqrtm(r(2, 3))",
        ),
        differs="It is computed on the host.", aliases=("matrix_square_root",),
    ),
]  # fmt: skip
