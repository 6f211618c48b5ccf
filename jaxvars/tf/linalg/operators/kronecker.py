"""`LinearOperatorKronecker`: the Kronecker product of operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import in_batch, joint_batch
from jaxvars.tf.linalg.operators.hints import HINTS, hinted
from jaxvars.tf.linalg.operators.made import OfSeveral, require_square
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.typing import Array


@final
@tree.registered
class LinearOperatorKronecker(OfSeveral):
    """The Kronecker product of operators.

    Args:
        operators: one or more, of one type.
        is_non_singular: whether it has an inverse; it has when all have, if None.
        is_self_adjoint: whether it equals its adjoint; the same.
        is_positive_definite: whether it is positive definite; the same.
        is_square: whether it has as many rows as columns; the same.

    Raises:
        ValueError: when there are none, or the hints cannot hold.
        TypeError: when types differ.
    """

    @hinted(name=None)
    def __init__(self, operators: Sequence[LinearOperator], **hints: Any) -> None:
        self._start(operators, hints, "_x_", HINTS)

    def _batch(self) -> tuple[int, ...]:
        return joint_batch(*(op.sizes for op in self._operators))

    def _shape(self) -> Any:
        rows = math.prod(op.range_dimension for op in self._operators)
        return (*self._batch(), rows, math.prod(op.domain_dimension for op in self._operators))

    def _each(self, x: Array, axis: int, change: Callable[..., Array]) -> Array:
        """Return what the factors, one axis each, make of the columns of matrices.

        Args:
            x: the matrices.
            axis: -1 if the factors are applied, -2 if their adjoints or inverses are.
            change: takes a factor and matrices.
        """
        x = in_batch(x, self._batch())
        batch, columns = x.shape[:-2], x.shape[-1]
        made = x.reshape(*batch, *(op.sizes[axis] for op in self._operators), columns)
        for i, op in enumerate(self._operators):
            front = jnp.moveaxis(made, len(batch) + i, len(batch))
            rest = front.shape[len(batch) + 1 :]
            new = change(op, front.reshape(*batch, front.shape[len(batch)], -1))
            made = jnp.moveaxis(new.reshape(*batch, -1, *rest), len(batch), len(batch) + i)
        return made.reshape(*batch, -1, columns)

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return self._each(x, -2 if adjoint else -1, lambda op, part: op.product(part, adjoint))

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._each(rhs, -1 if adjoint else -2, lambda op, part: op.solution(part, adjoint))

    def _products(self, parts: Sequence[Array]) -> Array:
        """Return the products of all pairs of elements of vectors."""
        batch = self._batch()
        made = jnp.broadcast_to(parts[0], (*batch, parts[0].shape[-1]))
        for part in parts[1:]:
            made = (made[..., :, None] * part[..., None, :]).reshape(*batch, -1)
        return made

    def _diag_part(self) -> Array:
        if not all(op.is_square for op in self._operators):
            return super()._diag_part()
        return self._products([tree.array(op._diag_part()) for op in self._operators])

    def _eigvals(self) -> Array:
        return self._products([tree.array(op._eigvals()) for op in self._operators])

    def _determinant(self) -> Array:
        total: Any = 1
        for op in self._operators:
            power = self.domain_dimension // op.domain_dimension
            total = total * tree.array(op._determinant()) ** power
        return total

    def _log_abs_determinant(self) -> Array:
        total: Any = 0
        for op in self._operators:
            times = self.domain_dimension // op.domain_dimension
            total = total + times * tree.array(op._log_abs_determinant())
        return total

    def _check_solvable(self) -> None:
        super()._check_solvable()
        require_square(self._operators, "Exact solve")

    def _check_square(self, what: str) -> None:
        require_square(self._operators, what)

    def _changed(self, change: str) -> LinearOperator:
        return LinearOperatorKronecker(self._each_changed(change))

    def _linop_adjoint(self) -> LinearOperator:
        return self._changed("adjoint")

    def _linop_inverse(self) -> LinearOperator:
        if not all(op.is_square for op in self._operators):
            return super()._linop_inverse()
        return self._changed("inverse")

    def _linop_cholesky(self) -> LinearOperator:
        if not all(op._can_use_cholesky() for op in self._operators):
            return super()._linop_cholesky()
        return self._changed("cholesky")

    def _assert_non_singular(self) -> None:
        if not all(op.is_square for op in self._operators):
            raise ValueError(
                "Kronecker products of operators that are not square are not known to have an "
                "inverse."
            )
        for op in self._operators:
            op._assert_non_singular()
