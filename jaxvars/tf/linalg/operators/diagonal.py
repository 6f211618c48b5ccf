"""`LinearOperatorDiag`, and what all linear operators of a diagonal share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf import debugging
from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.hints import hinted, imply
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.attributes import held
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


def require_nonzero(x: Array, words: str) -> None:
    """Raise InvalidArgumentError, now or when the program runs, if an element is zero."""
    size = Tensor(jnp.abs(x))
    debugging.assert_less(Tensor(jnp.zeros((), size.dtype)), size, message=words)


def require_real(x: Array, words: str) -> None:
    """Raise InvalidArgumentError, now or when the program runs, if an element is complex."""
    part = Tensor(jnp.imag(x))
    debugging.assert_equal(Tensor(jnp.zeros((), part.dtype)), part, message=words)


def require_positive(x: Array, words: str) -> None:
    """Raise InvalidArgumentError, now or when the program runs, if a real part is not positive."""
    debugging.assert_positive(Tensor(jnp.real(x)), message=words)


class TriangularOperator(LinearOperator):
    """What has its eigenvalues on its diagonal."""

    def _determinant(self) -> Array:
        return jnp.prod(self._diag_part(), -1)

    def _log_abs_determinant(self) -> Array:
        return jnp.sum(jnp.log(jnp.abs(self._diag_part())), -1).astype(self.dtype.dtype)

    def _eigvals(self) -> Array:
        return self._diag_part()


class DiagonalOperator(TriangularOperator):
    """What is zero beside its diagonal, which is broadcast to all rows."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the diagonal, of shape [..., n] or [..., 1]."""

    def _scaled(self, x: Array, adjoint: bool, divides: bool) -> Array:
        factors = self.diagonal()[..., None]
        factors = jnp.conj(factors) if adjoint else factors
        return x / factors if divides else factors * x

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return self._scaled(x, adjoint, divides=False)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._scaled(rhs, adjoint, divides=True)

    def _diag_part(self) -> Array:
        return jnp.broadcast_to(self.diagonal(), self.sizes[:-1])

    def _to_dense(self) -> Array:
        return self._diag_part()[..., None] * jnp.eye(self.sizes[-1], dtype=self.dtype.dtype)

    def _cond(self) -> Array:
        sizes = jnp.abs(self._diag_part())
        return jnp.max(sizes, -1) / jnp.min(sizes, -1)


@final
@tree.registered
class LinearOperatorDiag(DiagonalOperator):
    """A diagonal matrix.

    Args:
        diag: the diagonal, of shape [..., n].
        is_self_adjoint: whether it equals its adjoint; one of real numbers does.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.

    >>> LinearOperatorDiag([1.0, 2.0]).to_dense().numpy().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """

    @hinted()
    def __init__(self, diag: Any, **hints: Any) -> None:
        self._diag = tree.parameter(diag)
        if not self._diag.shape.rank:
            raise ValueError("Argument `diag` must have at least 1 dimension.  Found: ()")
        if not self._diag.dtype.is_complex:
            imply(hints, "is_self_adjoint", "A real diagonal operator is always self adjoint.")
        imply(hints, "is_square", "Only square diagonal operators currently supported.")
        super().__init__(self._diag.dtype, **hints)

    diag = held("_diag", "The diagonal.")

    def diagonal(self) -> Array:
        """Return the diagonal."""
        return tree.array(self._diag)

    def _shape(self) -> Any:
        sizes = tuple(self._diag.shape.as_list())
        return (*sizes, sizes[-1])

    def _assert_non_singular(self) -> None:
        require_nonzero(self.diagonal(), "Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self) -> None:
        require_positive(
            self.diagonal(),
            "Diagonal operator had diagonal entries with non-positive real part, thus was "
            "not positive definite.",
        )

    def _assert_self_adjoint(self) -> None:
        require_real(
            self.diagonal(),
            "This diagonal operator contained non-zero imaginary values.  Thus it was not "
            "self-adjoint.",
        )

    def _linop_adjoint(self) -> LinearOperator:
        diag = Tensor(jnp.conj(self.diagonal())) if self.dtype.is_complex else self._diag
        return LinearOperatorDiag(diag, **self._hints(), is_square=True)

    def _linop_inverse(self) -> LinearOperator:
        return LinearOperatorDiag(Tensor(1 / self.diagonal()), **self._hints(), is_square=True)

    def _linop_cholesky(self) -> LinearOperator:
        root = Tensor(jnp.sqrt(self.diagonal()))
        return LinearOperatorDiag(root, True, True, True, True)
