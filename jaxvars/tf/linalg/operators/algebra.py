"""Products and solutions of linear operators that are operators of special kinds.

Rules this file keeps:
- a product is of a simple kind where one is known; the factors are kept otherwise;
- what is known of both factors counts for the product where that follows.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars.tf.linalg.operators.arrays import joint_batch
from jaxvars.tf.linalg.operators.blocks import LinearOperatorBlockDiag
from jaxvars.tf.linalg.operators.circulant import CirculantOperator
from jaxvars.tf.linalg.operators.declare import Hint
from jaxvars.tf.linalg.operators.dense import LinearOperatorLowerTriangular
from jaxvars.tf.linalg.operators.diagonal import (
    LinearOperatorDiag,
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
    LinearOperatorZeros,
    OfNumbers,
    make_zeros,
)
from jaxvars.tf.linalg.operators.made import LinearOperatorComposition
from jaxvars.tf.linalg.operators.operator import ALGEBRA, LinearOperator
from jaxvars.tf.tensors.tensor import Tensor

_DIAGONALS = LinearOperatorDiag, LinearOperatorScaledIdentity


def _combine_non_singular(a: LinearOperator, b: LinearOperator) -> Hint:
    if a.is_non_singular is False or b.is_non_singular is False:
        return False
    return a.is_non_singular and b.is_non_singular


def _combine_hints(a: LinearOperator, b: LinearOperator) -> dict[str, Any]:
    """Return what is known of a product of two that commute."""
    self_adjoint = {a.is_self_adjoint, b.is_self_adjoint}
    known = None not in self_adjoint and True in self_adjoint
    positive = all(op.is_positive_definite and op.is_self_adjoint for op in (a, b))
    return {
        "is_non_singular": _combine_non_singular(a, b),
        "is_self_adjoint": False not in self_adjoint if known else None,
        "is_positive_definite": True if positive else None,
        "is_square": True,
    }


def matmul(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    """Return the product of two operators."""
    if isinstance(a, LinearOperatorIdentity):
        return b
    if isinstance(b, LinearOperatorIdentity):
        return a
    if isinstance(a, LinearOperatorZeros) or isinstance(b, LinearOperatorZeros):
        batch = joint_batch(a.sizes, b.sizes)
        return make_zeros(a.range_dimension, b.domain_dimension, batch, a.dtype)
    triangle, diagonal = (a, b) if isinstance(a, LinearOperatorLowerTriangular) else (b, a)
    if isinstance(triangle, LinearOperatorLowerTriangular) and isinstance(diagonal, _DIAGONALS):
        return LinearOperatorLowerTriangular(
            Tensor(a.product(b.dense())), is_non_singular=_combine_non_singular(a, b)
        )
    if isinstance(a, LinearOperatorBlockDiag) and isinstance(b, LinearOperatorBlockDiag):
        blocks = list(zip(a.operators, b.operators, strict=False))
        if len(a.operators) == len(b.operators) and all(_fit(x, y) for x, y in blocks):
            return LinearOperatorBlockDiag([matmul(x, y) for x, y in blocks])
    return _combine_numbers(a, b, jnp.multiply) or _compose(a, b)


def _fit(a: LinearOperator, b: LinearOperator) -> bool:
    return a.domain_dimension == b.range_dimension


def solve(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    """Return what the inverse of one operator makes of another."""
    if isinstance(a, LinearOperatorIdentity):
        return b
    return _combine_numbers(a, b, lambda x, y: y / x) or matmul(a.inverse(), b)


def _combine_numbers(a: LinearOperator, b: LinearOperator, how: Any) -> LinearOperator | None:
    """Return an operator of the numbers that two similar ones are made of."""
    hints = _combine_hints(a, b)
    is_same = type(a) is type(b) and (a.dtype == b.dtype or not isinstance(a, CirculantOperator))
    if isinstance(a, OfNumbers) and isinstance(b, OfNumbers) and is_same:
        return a._of_numbers(how(a._numbers(), b._numbers()), **hints)
    if isinstance(a, _DIAGONALS) and isinstance(b, _DIAGONALS):
        return LinearOperatorDiag(Tensor(how(a.diagonal(), b.diagonal())), **hints)
    return None


def _compose(a: LinearOperator, b: LinearOperator) -> LinearOperator:
    square = a.range_dimension == b.domain_dimension
    singular = _combine_non_singular(a, b) if square and a.is_square and b.is_square else None
    if not square:
        return LinearOperatorComposition(
            [a, b], is_non_singular=False, is_self_adjoint=False, is_positive_definite=False,
            is_square=False,
        )  # fmt: skip
    if a is b:
        return LinearOperatorComposition([a, b], **_combine_hints(a, b))
    return LinearOperatorComposition([a, b], is_non_singular=singular, is_square=True)


ALGEBRA.update(matmul=matmul, solve=solve)
