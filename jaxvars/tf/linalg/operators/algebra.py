"""Products and solutions of linear operators that are operators of special kinds.

Rules this file keeps:
- a product is of a simple kind where one is known; the factors are kept otherwise;
- what is known of both factors counts for the product where that follows.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import joint_batch
from jaxvars.tf.linalg.operators.blocks import LinearOperatorBlockDiag
from jaxvars.tf.linalg.operators.circulant import CirculantOperator
from jaxvars.tf.linalg.operators.dense import LinearOperatorLowerTriangular
from jaxvars.tf.linalg.operators.diagonal import LinearOperatorDiag
from jaxvars.tf.linalg.operators.hints import Hint
from jaxvars.tf.linalg.operators.identity import (
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
)
from jaxvars.tf.linalg.operators.made import LinearOperatorComposition
from jaxvars.tf.linalg.operators.operator import ALGEBRA, LinearOperator
from jaxvars.tf.tensors.tensor import Tensor

_DIAGONALS = LinearOperatorDiag, LinearOperatorScaledIdentity


def self_adjoint_hint(a: LinearOperator, b: LinearOperator) -> Hint:
    """Return whether a product of two that commute equals its adjoint."""
    if a.is_self_adjoint and b.is_self_adjoint:
        return True
    if {a.is_self_adjoint, b.is_self_adjoint} == {True, False}:
        return False
    return None


def positive_hint(a: LinearOperator, b: LinearOperator) -> Hint:
    """Return whether a product of two that commute is positive definite."""
    both = all(op.is_positive_definite and op.is_self_adjoint for op in (a, b))
    return True if both else None


def non_singular_hint(a: LinearOperator, b: LinearOperator) -> Hint:
    """Return whether a product has an inverse."""
    if a.is_non_singular is False or b.is_non_singular is False:
        return False
    return a.is_non_singular and b.is_non_singular


def _commuting(a: LinearOperator, b: LinearOperator) -> dict[str, Any]:
    return {
        "is_non_singular": non_singular_hint(a, b),
        "is_self_adjoint": self_adjoint_hint(a, b),
        "is_positive_definite": positive_hint(a, b),
        "is_square": True,
    }


def matmul(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    """Return the product of two operators."""
    if isinstance(a, LinearOperatorIdentity):
        return b
    if isinstance(b, LinearOperatorIdentity):
        return a
    if isinstance(a, LinearOperatorZeros) or isinstance(b, LinearOperatorZeros):
        square = a.range_dimension == b.domain_dimension
        return LinearOperatorZeros(
            a.range_dimension, b.domain_dimension, joint_batch(a.sizes, b.sizes), a.dtype,
            is_self_adjoint=square, is_square=square,
        )  # fmt: skip
    triangle, diagonal = (a, b) if isinstance(a, LinearOperatorLowerTriangular) else (b, a)
    if isinstance(triangle, LinearOperatorLowerTriangular) and isinstance(diagonal, _DIAGONALS):
        return LinearOperatorLowerTriangular(
            Tensor(a.product(b.dense())), is_non_singular=non_singular_hint(a, b)
        )
    if isinstance(a, LinearOperatorBlockDiag) and isinstance(b, LinearOperatorBlockDiag):
        blocks = list(zip(a.operators, b.operators, strict=False))
        if len(a.operators) == len(b.operators) and all(_fit(x, y) for x, y in blocks):
            return LinearOperatorBlockDiag([matmul(x, y) for x, y in blocks])
    return _of_numbers(a, b, jnp.multiply) or _composed(a, b)


def _fit(a: LinearOperator, b: LinearOperator) -> bool:
    return a.domain_dimension == b.range_dimension


def solve(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    """Return what the inverse of one operator makes of another."""
    if isinstance(a, LinearOperatorIdentity):
        return b
    return _of_numbers(a, b, lambda x, y: y / x) or matmul(a.inverse(), b)


def _of_numbers(a: LinearOperator, b: LinearOperator, how: Any) -> LinearOperator | None:
    """Return an operator of the numbers that two similar ones are made of."""
    hints = _commuting(a, b)
    if isinstance(a, LinearOperatorScaledIdentity) and isinstance(b, LinearOperatorScaledIdentity):
        made = how(tree.array(a.multiplier), tree.array(b.multiplier))
        return LinearOperatorScaledIdentity(a.domain_dimension, Tensor(made), **hints)
    if isinstance(a, _DIAGONALS) and isinstance(b, _DIAGONALS):
        return LinearOperatorDiag(Tensor(how(a.diagonal(), b.diagonal())), **hints)
    if isinstance(a, CirculantOperator) and isinstance(b, type(a)) and a.dtype == b.dtype:
        made = how(tree.array(a.spectrum), tree.array(b.spectrum))
        return type(a)(Tensor(made), a.dtype, **hints)
    return None


def _composed(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    square = a.range_dimension == b.domain_dimension
    singular = non_singular_hint(a, b) if square and a.is_square and b.is_square else None
    if not square:
        return LinearOperatorComposition(
            [a, b], is_non_singular=False, is_self_adjoint=False, is_positive_definite=False,
            is_square=False,
        )  # fmt: skip
    if a is b:
        return LinearOperatorComposition([a, b], **_commuting(a, b))
    return LinearOperatorComposition([a, b], is_non_singular=singular, is_square=True)


ALGEBRA.update(matmul=matmul, solve=solve)
