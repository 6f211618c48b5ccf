"""`LinearOperatorLowRankUpdate`: an operator and a product of few columns."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import cholesky, cholesky_solved, joint_batch, solved, times
from jaxvars.tf.linalg.operators.diagonal import LinearOperatorDiag
from jaxvars.tf.linalg.operators.hints import Hint, hinted
from jaxvars.tf.linalg.operators.identity import LinearOperatorIdentity
from jaxvars.tf.linalg.operators.made import reduced
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.attributes import held
from jaxvars.typing import Array


@final
@tree.registered
class LinearOperatorLowRankUpdate(LinearOperator):
    """Another operator and a product of few columns: L + U D V^H.

    Args:
        base_operator: L, of shape [..., m, n].
        u: U, of shape [..., m, k].
        diag_update: the diagonal of D, of shape [..., k]; ones when None.
        v: V, of shape [..., n, k]; U when None.
        is_diag_update_positive: whether D is positive.

    Raises:
        ValueError: when sizes do not fit, or the hints cannot hold.

    >>> from jaxvars import tf
    >>> base = tf.linalg.LinearOperatorIdentity(2)
    >>> LinearOperatorLowRankUpdate(base, [[1.0], [2.0]]).to_dense().numpy().tolist()
    [[2.0, 2.0], [2.0, 5.0]]
    """

    @hinted()
    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: Hint = None,
        **hints: Any,
    ) -> None:
        self._base_operator = base_operator
        self._u = tree.parameter(u, base_operator.dtype)
        self._v = self._u if v is None else tree.parameter(v, base_operator.dtype)
        self._has_own_v = v is not None
        self._diag_update = (
            None if diag_update is None else tree.parameter(diag_update, base_operator.dtype)
        )
        self._is_diag_update_positive = True if diag_update is None else is_diag_update_positive
        if diag_update is None and is_diag_update_positive is False:
            raise ValueError(
                "Default diagonal is the identity, which is positive.  However, user set "
                "'is_diag_update_positive' to False."
            )
        if not self._has_own_v and base_operator.is_self_adjoint:
            real = diag_update is None or not base_operator.dtype.is_complex
            positive = base_operator.is_positive_definite and self._is_diag_update_positive
            for name, holds in (("is_self_adjoint", real), ("is_positive_definite", positive)):
                if holds and hints[name] is None:
                    hints[name] = True
        if hints["is_square"] is None:
            hints["is_square"] = base_operator.is_square
        super().__init__(base_operator.dtype, **hints)
        self._check_parts()

    def _check_parts(self) -> None:
        rows, columns = self._base_operator.sizes[-2:]
        pairs = [(rows, self._u.shape[-2]), (columns, self._v.shape[-2])]
        pairs.append((self._u.shape[-1], self._v.shape[-1]))
        if self._diag_update is not None:
            pairs.append((self._u.shape[-1], self._diag_update.shape[-1]))
        for one, other in pairs:
            if one != other:
                raise ValueError(f"Dimensions {one} and {other} are not compatible")

    base_operator = held("_base_operator", "L.")
    u = held("_u", "U.")
    v = held("_v", "V.")
    diag_update = held("_diag_update", "The diagonal of D; None for ones.")
    is_diag_update_positive = held(
        "_is_diag_update_positive", "Whether D is positive; None when that is not known."
    )

    @property
    def diag_operator(self) -> LinearOperator:
        """D."""
        if self._diag_update is None:
            rank = self._u.shape[-1]
            return LinearOperatorIdentity(rank, dtype=self.dtype)
        positive = self._is_diag_update_positive
        return LinearOperatorDiag(self._diag_update, is_positive_definite=positive)

    def _arrays(self) -> tuple[Array, Array]:
        return tree.array(self._u), tree.array(self._v)

    def _shape(self) -> Any:
        parts = [self._base_operator.sizes, tuple(self._u.shape), tuple(self._v.shape)]
        if self._diag_update is not None:
            parts.append((*self._diag_update.shape[:-1], 1, 1))
        return (*joint_batch(*parts), *self._base_operator.sizes[-2:])

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        u, v = self._arrays()
        left, right = (v, u) if adjoint else (u, v)
        inner = self.diag_operator.product(times(right, x, is_adjoint=True), adjoint)
        return self._base_operator.product(x, adjoint) + times(left, inner)

    def _to_dense(self) -> Array:
        u, v = self._arrays()
        update = times(u, self.diag_operator.product(conjugate_transpose(v)))
        return jnp.broadcast_to(self._base_operator.dense() + update, self.sizes)

    def _diag_part(self) -> Array:
        u, v = self._arrays()
        scaled = conjugate_transpose(self.diag_operator.product(conjugate_transpose(v)))
        own = tree.array(self._base_operator._diag_part())
        return own + jnp.sum(u * jnp.conj(scaled), -1)

    def _capacitance(self) -> Array:
        """Return D^-1 + V^H L^-1 U."""
        u, v = self._arrays()
        inner = times(v, self._base_operator.solution(u), is_adjoint=True)
        return tree.array(self.diag_operator._linop_inverse()._add_to_tensor(inner))

    def _is_symmetric(self) -> bool:
        base = self._base_operator
        real = self._diag_update is None or self._is_diag_update_positive
        return bool(
            not self._has_own_v and real and base.is_self_adjoint and base.is_positive_definite
        )

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        # The Woodbury identity: (L + UDV^H)^-1 = L^-1 - L^-1 U C^-1 V^H L^-1.
        u, v = self._arrays()
        left, right = (v, u) if adjoint else (u, v)
        first = self._base_operator.solution(rhs, adjoint)
        inner, capacitance = times(right, first, is_adjoint=True), self._capacitance()
        if self._is_symmetric():
            found = cholesky_solved(cholesky(capacitance), inner)
        else:
            found = solved(capacitance, inner, adjoint)
        return first - self._base_operator.solution(times(left, found), adjoint)

    def _determinant(self) -> Array:
        parts = (self.diag_operator._determinant(), self._base_operator._determinant())
        return reduced(jnp.multiply, [jnp.linalg.det(self._capacitance()), *map(tree.array, parts)])

    def _log_abs_determinant(self) -> Array:
        own = jnp.linalg.slogdet(self._capacitance())[1].astype(self.dtype.dtype)
        parts = (
            self.diag_operator._log_abs_determinant(), self._base_operator._log_abs_determinant()
        )  # fmt: skip
        return reduced(jnp.add, [own, *map(tree.array, parts)])
