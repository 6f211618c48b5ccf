"""Linear operators made of others: adjoints, inverses, products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, final

import jax.numpy as jnp

from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import cholesky, joint_batch
from jaxvars.tf.linalg.operators.dense import LinearOperatorLowerTriangular
from jaxvars.tf.linalg.operators.operator import ALGEBRA, Hint, LinearOperator, turned
from jaxvars.tf.tensors.tensor import Tensor

Value: TypeAlias = Any

_SHORT = {"adjoint": "adjoint", "inverse": "inv"}
_HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")


def agreed(hints: dict[str, Hint], operator: LinearOperator, words: str) -> dict[str, Hint]:
    """Return what is known of an operator that has the properties of another one.

    Raises:
        ValueError: when a hint and the other operator differ.
    """
    found: dict[str, Hint] = {}
    for name, hint in hints.items():
        known = getattr(operator, name)
        if hint is None or known is None:
            found[name] = known if hint is None else hint
        elif hint != known:
            raise ValueError(
                f"The {words} of an operator with {name} {known} was said to have {name} {hint}."
            )
        else:
            found[name] = hint
    return found


class _OfOne(LinearOperator):
    """What is made of one other operator, and has its properties."""

    _operator: LinearOperator

    def _start(self, operator: LinearOperator, hints: Sequence[Hint], what: str, name: Any) -> None:
        found = agreed(dict(zip(_HINTS, hints, strict=True)), operator, what)
        LinearOperator.__init__(
            self, operator.dtype, name=name or f"{operator.name}_{_SHORT[what]}", **found
        )
        self._operator = operator

    @property
    def operator(self) -> LinearOperator:
        """The other operator."""
        return self._operator


@final
@tree.registered
class LinearOperatorAdjoint(_OfOne):
    """The adjoint of an operator.

    Args:
        operator: the other one.
        is_non_singular: as of the other one when None.
        is_self_adjoint: the same.
        is_positive_definite: the same.
        is_square: the same.
        name: what it is called.

    Raises:
        ValueError: when a hint differs from what is known of the other one.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
    ) -> None:
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._start(operator, hints, "adjoint", name)

    def _shape(self) -> Any:
        *batch, rows, columns = self._operator.sizes
        return (*batch, columns, rows)

    def _matmul(self, x: Value, adjoint: bool = False, adjoint_arg: bool = False) -> Value:
        return self._operator.product(turned(x) if adjoint_arg else x, not adjoint)

    def _matvec(self, x: Value, adjoint: bool = False) -> Value:
        return self._operator._matvec(x, not adjoint)

    def _solve(self, rhs: Value, adjoint: bool = False, adjoint_arg: bool = False) -> Value:
        return self._operator.solution(turned(rhs) if adjoint_arg else rhs, not adjoint)

    def _to_dense(self) -> Value:
        return turned(self._operator.dense())

    def _determinant(self) -> Value:
        return jnp.conj(tree.array(self._operator._determinant()))

    def _log_abs_determinant(self) -> Value:
        return self._operator._log_abs_determinant()

    def _trace(self) -> Value:
        return jnp.conj(tree.array(self._operator._trace()))

    def _eigvals(self) -> Value:
        return jnp.conj(tree.array(self._operator._eigvals()))

    def _cond(self) -> Value:
        return self._operator._cond()

    def _linop_adjoint(self) -> LinearOperator:
        return self._operator

    def _assert_non_singular(self) -> None:
        self._operator._assert_non_singular()


@final
@tree.registered
class LinearOperatorInversion(_OfOne):
    """The inverse of an operator.

    Args:
        operator: the other one.
        is_non_singular: as of the other one when None.
        is_self_adjoint: the same.
        is_positive_definite: the same.
        is_square: the same.
        name: what it is called.

    Raises:
        ValueError: when it is known to have none, or a hint differs from what is known.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
    ) -> None:
        if operator.is_square is False or operator.is_non_singular is False:
            raise ValueError(
                f"operator {operator.name} must be square and non-singular to have an inverse."
            )
        if is_square is False:
            raise ValueError("A LinearOperatorInversion must have is_square=True.")
        if is_non_singular is False:
            raise ValueError("A LinearOperatorInversion must have is_non_singular=True.")
        hints = (is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._start(operator, hints, "inverse", name)

    def _shape(self) -> Any:
        return self._operator.shape

    def _matmul(self, x: Value, adjoint: bool = False, adjoint_arg: bool = False) -> Value:
        return self._operator.solution(turned(x) if adjoint_arg else x, adjoint)

    def _solve(self, rhs: Value, adjoint: bool = False, adjoint_arg: bool = False) -> Value:
        return self._operator.product(turned(rhs) if adjoint_arg else rhs, adjoint)

    def _determinant(self) -> Value:
        return 1 / tree.array(self._operator._determinant())

    def _log_abs_determinant(self) -> Value:
        return -tree.array(self._operator._log_abs_determinant())

    def _eigvals(self) -> Value:
        return 1 / tree.array(self._operator._eigvals())

    def _cond(self) -> Value:
        return self._operator._cond()

    def _linop_inverse(self) -> LinearOperator:
        return self._operator


@final
@tree.registered
class LinearOperatorComposition(LinearOperator):
    """A product of operators: the last one is applied first.

    Args:
        operators: one or more, of one type and of sizes that fit.
        is_non_singular: whether it has an inverse; it has when all have, if None.
        is_self_adjoint: whether it equals its adjoint.
        is_positive_definite: whether it is positive definite.
        is_square: whether it has as many rows as columns.
        name: what it is called.

    Raises:
        ValueError: when there are none, or sizes do not fit.
        TypeError: when types differ.

    >>> from jaxvars import tf
    >>> twice, swap = tf.linalg.LinearOperatorScaledIdentity(2, 2.0), [[0.0, 1.0], [1.0, 0.0]]
    >>> both = [twice, tf.linalg.LinearOperatorFullMatrix(swap)]
    >>> LinearOperatorComposition(both).matvec([3.0, 4.0]).numpy().tolist()
    [8.0, 6.0]
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
    ) -> None:
        self._operators = checked_operators(operators)
        if all(op.is_non_singular for op in self._operators):
            if is_non_singular is False:
                raise ValueError(
                    "The composition of non-singular operators is always non-singular."
                )
            is_non_singular = True
        super().__init__(
            self._operators[0].dtype, None, is_non_singular, is_self_adjoint, is_positive_definite,
            is_square, name or "_o_".join(op.name for op in self._operators),
        )  # fmt: skip
        for one, other in zip(self._operators[:-1], self._operators[1:], strict=True):
            if one.domain_dimension != other.range_dimension:
                raise ValueError(
                    f"Argument operators: expected range dimension {one.domain_dimension}, but "
                    f"got {other.range_dimension}"
                )

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors."""
        return list(self._operators)

    def _shape(self) -> Any:
        batch = joint_batch(*(op.sizes for op in self._operators))
        return (*batch, self._operators[0].sizes[-2], self._operators[-1].sizes[-1])

    def _matmul(self, x: Value, adjoint: bool = False, adjoint_arg: bool = False) -> Value:
        made = turned(x) if adjoint_arg else x
        for op in self._operators if adjoint else reversed(self._operators):
            made = op.product(made, adjoint)
        return made

    def _solve(self, rhs: Value, adjoint: bool = False, adjoint_arg: bool = False) -> Value:
        made = turned(rhs) if adjoint_arg else rhs
        for op in reversed(self._operators) if adjoint else self._operators:
            made = op.solution(made, adjoint)
        return made

    def _determinant(self) -> Value:
        if not all(op.is_square for op in self._operators):
            return jnp.linalg.det(self.dense())
        found = [tree.array(op._determinant()) for op in self._operators]
        return jnp.broadcast_to(reduced(jnp.multiply, found), self.sizes[:-2])

    def _log_abs_determinant(self) -> Value:
        if not all(op.is_square for op in self._operators):
            return jnp.linalg.slogdet(self.dense())[1].astype(self.dtype.dtype)
        found = [tree.array(op._log_abs_determinant()) for op in self._operators]
        return jnp.broadcast_to(reduced(jnp.add, found), self.sizes[:-2])

    def _assert_non_singular(self) -> None:
        if not all(op.is_square for op in self._operators):
            return super()._assert_non_singular()
        for op in self._operators:
            op._assert_non_singular()
        return None


def checked_operators(operators: Any) -> list[LinearOperator]:
    """Return operators as a list.

    Raises:
        ValueError: when there are none.
        TypeError: when their types differ.
    """
    found = list(operators)
    if not found:
        raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
    if any(op.dtype != found[0].dtype for op in found):
        pairs = " ".join(f"{op.name}: {op.dtype.name}" for op in found)
        raise TypeError(f"Expected all operators to have the same dtype.  Found {pairs}")
    return found


def reduced(how: Any, parts: Sequence[Value]) -> Value:
    """Return what a function of two makes of all parts."""
    made, *rest = parts
    for part in rest:
        made = how(made, part)
    return made


def _inverse(operator: LinearOperator) -> LinearOperator:
    return LinearOperatorInversion(
        operator, operator.is_non_singular, operator.is_self_adjoint, operator.is_positive_definite,
        operator.is_square,
    )  # fmt: skip


def _adjoint(operator: LinearOperator) -> LinearOperator:
    return LinearOperatorAdjoint(operator)


def _cholesky(operator: LinearOperator) -> LinearOperator:
    factor = Tensor(cholesky(operator.dense()))
    return LinearOperatorLowerTriangular(
        factor, is_non_singular=True, is_self_adjoint=False, is_square=True
    )


ALGEBRA.update(inverse=_inverse, adjoint=_adjoint, cholesky=_cholesky)
