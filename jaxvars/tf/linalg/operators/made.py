"""Linear operators made of others: adjoints, inverses, products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import cholesky, joint_batch
from jaxvars.tf.linalg.operators.dense import LinearOperatorLowerTriangular
from jaxvars.tf.linalg.operators.hints import HINTS, Hint, Hints, always, hinted, imply
from jaxvars.tf.linalg.operators.operator import ALGEBRA, LinearOperator
from jaxvars.tf.tensors.attributes import held
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

_SHORT = {"adjoint": "adjoint", "inverse": "inv"}


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


def of_all(operators: Sequence[LinearOperator], name: str, hint: Hint) -> Hint:
    """Return True if all operators have a property.

    Raises:
        ValueError: when the hint contradicts it.
    """
    if not all(getattr(op, name) for op in operators):
        return hint
    if hint is False:
        raise ValueError(f"It is made of operators that all have {name}, and has it, too.")
    return True


def require_square(operators: Sequence[LinearOperator], what: str) -> None:
    """Raise NotImplementedError unless all operators are square."""
    if not all(op.is_square for op in operators):
        raise NotImplementedError(
            f"{what} not implemented for an operator that is expected to not be square: its blocks "
            "are not."
        )


class _OfOne(LinearOperator):
    """What is made of one other operator, and has its properties."""

    _operator: LinearOperator

    def _start(self, operator: LinearOperator, hints: Hints, what: str) -> None:
        for name in HINTS:
            known, hint = getattr(operator, name), hints[name]
            if hint is None:
                hints[name] = known
            elif known is not None and hint != known:
                raise ValueError(
                    f"The {what} of an operator with {name} {known} was said to have {name} {hint}."
                )
        hints["name"] = hints["name"] or f"{operator.name}_{_SHORT[what]}"
        LinearOperator.__init__(self, operator.dtype, **hints)
        self._operator = operator

    def _cond(self) -> Array:
        return self._operator._cond()

    operator = held("_operator", "The other operator.")


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

    Raises:
        ValueError: when a hint differs from what is known of the other one.
    """

    @hinted(name=None)
    def __init__(self, operator: LinearOperator, **hints: Any) -> None:
        self._start(operator, hints, "adjoint")

    def _shape(self) -> Any:
        *batch, rows, columns = self._operator.sizes
        return (*batch, columns, rows)

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return self._operator.product(x, not adjoint)

    def _matvec(self, x: Array, adjoint: bool = False) -> Array:
        return self._operator._matvec(x, not adjoint)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._operator.solution(rhs, not adjoint)

    def _to_dense(self) -> Array:
        return conjugate_transpose(self._operator.dense())

    def _determinant(self) -> Array:
        return jnp.conj(tree.array(self._operator._determinant()))

    def _log_abs_determinant(self) -> Array:
        return self._operator._log_abs_determinant()

    def _trace(self) -> Array:
        return jnp.conj(tree.array(self._operator._trace()))

    def _eigvals(self) -> Array:
        return jnp.conj(tree.array(self._operator._eigvals()))

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

    Raises:
        ValueError: when it is known to have none, or a hint differs from what is known.
    """

    @hinted(name=None)
    def __init__(self, operator: LinearOperator, **hints: Any) -> None:
        if operator.is_square is False or operator.is_non_singular is False:
            raise ValueError(
                f"operator {operator.name} must be square and non-singular to have an inverse."
            )
        for name in ("is_square", "is_non_singular"):
            always(hints[name], f"A LinearOperatorInversion must have {name}=True.")
        self._start(operator, hints, "inverse")

    def _shape(self) -> Any:
        return self._operator.shape

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return self._operator.solution(x, adjoint)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._operator.product(rhs, adjoint)

    def _determinant(self) -> Array:
        return 1 / tree.array(self._operator._determinant())

    def _log_abs_determinant(self) -> Array:
        return -tree.array(self._operator._log_abs_determinant())

    def _eigvals(self) -> Array:
        return 1 / tree.array(self._operator._eigvals())

    def _linop_inverse(self) -> LinearOperator:
        return self._operator


class OfSeveral(LinearOperator):
    """What is made of several other operators."""

    _operators: list[LinearOperator]

    def _start(self, operators: Any, hints: Hints, link: str, shared: Sequence[str] = ()) -> None:
        self._operators = checked_operators(operators)
        for name in shared:
            hints[name] = of_all(self._operators, name, hints[name])
        hints["name"] = hints["name"] or link.join(op.name for op in self._operators)
        LinearOperator.__init__(self, self._operators[0].dtype, **hints)

    operators = held("_operators", "The factors.", list)

    def _each_changed(self, change: str) -> list[LinearOperator]:
        return [getattr(op, change)() for op in self._operators]


@final
@tree.registered
class LinearOperatorComposition(OfSeveral):
    """A product of operators: the last one is applied first.

    Args:
        operators: one or more, of one type and of sizes that fit.
        is_non_singular: whether it has an inverse; it has when all have, if None.

    Raises:
        ValueError: when there are none, or sizes do not fit.
        TypeError: when types differ.

    >>> from jaxvars import tf
    >>> twice, swap = tf.linalg.LinearOperatorScaledIdentity(2, 2.0), [[0.0, 1.0], [1.0, 0.0]]
    >>> both = [twice, tf.linalg.LinearOperatorFullMatrix(swap)]
    >>> LinearOperatorComposition(both).matvec([3.0, 4.0]).numpy().tolist()
    [8.0, 6.0]
    """

    @hinted(name=None)
    def __init__(self, operators: Sequence[LinearOperator], **hints: Any) -> None:
        self._operators = checked_operators(operators)
        if all(op.is_non_singular for op in self._operators):
            words = "The composition of non-singular operators is always non-singular."
            imply(hints, "is_non_singular", words)
        self._start(self._operators, hints, "_o_")
        for one, other in zip(self._operators[:-1], self._operators[1:], strict=True):
            if one.domain_dimension != other.range_dimension:
                raise ValueError(
                    f"Argument operators: expected range dimension {one.domain_dimension}, but "
                    f"got {other.range_dimension}"
                )

    def _shape(self) -> Any:
        batch = joint_batch(*(op.sizes for op in self._operators))
        return (*batch, self._operators[0].sizes[-2], self._operators[-1].sizes[-1])

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        made = x
        for op in self._operators if adjoint else reversed(self._operators):
            made = op.product(made, adjoint)
        return made

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        made = rhs
        for op in reversed(self._operators) if adjoint else self._operators:
            made = op.solution(made, adjoint)
        return made

    def _determinant(self) -> Array:
        if not all(op.is_square for op in self._operators):
            return jnp.linalg.det(self.dense())
        found = [tree.array(op._determinant()) for op in self._operators]
        return jnp.broadcast_to(reduced(jnp.multiply, found), self.sizes[:-2])

    def _log_abs_determinant(self) -> Array:
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


def reduced(how: Any, parts: Sequence[Array]) -> Array:
    """Return what a function of two makes of all parts."""
    made, *rest = parts
    for part in rest:
        made = how(made, part)
    return made


def _inverse(operator: LinearOperator) -> LinearOperator:
    return LinearOperatorInversion(operator, **operator._hints(), is_square=operator.is_square)


def _cholesky(operator: LinearOperator) -> LinearOperator:
    factor = Tensor(cholesky(operator.dense()))
    return LinearOperatorLowerTriangular(
        factor, is_non_singular=True, is_self_adjoint=False, is_square=True
    )


ALGEBRA.update(inverse=_inverse, adjoint=LinearOperatorAdjoint, cholesky=_cholesky)
