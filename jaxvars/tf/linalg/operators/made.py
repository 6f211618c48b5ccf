"""Linear operators made of others: adjoints, inverses, products, updates of low rank."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, final

import jax.numpy as jnp

from jaxvars.tf.attributes import getter
from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.matrices.factors import cholesky_solve
from jaxvars.tf.linalg.operators.arrays import cholesky, joint_batch, solve, times
from jaxvars.tf.linalg.operators.declare import (
    HINTS,
    Hint,
    Hints,
    accept_hints,
    always,
    array_of,
    imply,
    parameter,
    register,
)
from jaxvars.tf.linalg.operators.dense import LinearOperatorLowerTriangular
from jaxvars.tf.linalg.operators.diagonal import LinearOperatorDiag, LinearOperatorIdentity
from jaxvars.tf.linalg.operators.operator import ALGEBRA, LinearOperator
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

_SHORT = {"adjoint": "adjoint", "inverse": "inv"}


def check_operators(operators: Any) -> list[LinearOperator]:
    """Return operators as a list, when there are any and their types are the same."""
    found = list(operators)
    if not found:
        raise ValueError(f"Expected a non-empty list of operators. Found: {operators}")
    if any(op.dtype != found[0].dtype for op in found):
        pairs = " ".join(f"{op.name}: {op.dtype.name}" for op in found)
        raise TypeError(f"Expected all operators to have the same dtype.  Found {pairs}")
    return found


def hint_of_all(operators: Sequence[LinearOperator], name: str, hint: Hint) -> Hint:
    """Return True if all operators have a property, which the hint must not contradict."""
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

    @abstractmethod
    def _change(self, x: Array) -> Array:
        """Return what becomes of a determinant, or of eigenvalues."""

    def _determinant(self) -> Array:
        return self._change(self._operator._determinant())

    def _eigvals(self) -> Array:
        return self._change(self._operator._eigvals())

    def _cond(self) -> Array:
        return self._operator._cond()

    operator = getter("_operator", "The other operator.")


@final
@register
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

    @accept_hints(name=None)
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

    def _change(self, x: Array) -> Array:
        return jnp.conj(x)

    def _log_abs_determinant(self) -> Array:
        return self._operator._log_abs_determinant()

    def _trace(self) -> Array:
        return self._change(self._operator._trace())

    def _linop_adjoint(self) -> LinearOperator:
        return self._operator

    def _assert_non_singular(self) -> None:
        self._operator._assert_non_singular()


@final
@register
class LinearOperatorInversion(_OfOne):
    """The inverse of an operator.

    The arguments are as for `LinearOperatorAdjoint`.

    Raises:
        ValueError: when it is known to have none, or a hint differs from what is known.
    """

    @accept_hints(name=None)
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

    def _change(self, x: Array) -> Array:
        return 1 / x

    def _log_abs_determinant(self) -> Array:
        return -self._operator._log_abs_determinant()

    def _linop_inverse(self) -> LinearOperator:
        return self._operator


class OfSeveral(LinearOperator):
    """What is made of several other operators."""

    _operators: list[LinearOperator]

    def _start(self, operators: Any, hints: Hints, link: str, shared: Sequence[str] = ()) -> None:
        self._operators = check_operators(operators)
        for name in shared:
            hints[name] = hint_of_all(self._operators, name, hints[name])
        hints["name"] = hints["name"] or link.join(op.name for op in self._operators)
        LinearOperator.__init__(self, self._operators[0].dtype, **hints)

    operators = getter("_operators", "The factors.", list)

    def _change_each(self, change: str) -> list[LinearOperator]:
        """Return the adjoints, inverses or factors of all."""
        return [getattr(op, change)() for op in self._operators]

    def _all_square(self) -> bool:
        """Return whether all are square."""
        return all(op.is_square for op in self._operators)


@final
@register
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

    @accept_hints(name=None)
    def __init__(self, operators: Sequence[LinearOperator], **hints: Any) -> None:
        self._operators = check_operators(operators)
        if all(op.is_non_singular for op in self._operators):
            message = "The composition of non-singular operators is always non-singular."
            imply(hints, "is_non_singular", message)
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
        if not self._all_square():
            return jnp.linalg.det(self.dense())
        found = (op._determinant() for op in self._operators)
        return jnp.broadcast_to(functools.reduce(jnp.multiply, found), self.sizes[:-2])

    def _log_abs_determinant(self) -> Array:
        if not self._all_square():
            return jnp.linalg.slogdet(self.dense())[1].astype(self.dtype.dtype)
        found = (op._log_abs_determinant() for op in self._operators)
        return jnp.broadcast_to(functools.reduce(jnp.add, found), self.sizes[:-2])

    def _assert_non_singular(self) -> None:
        if not self._all_square():
            return super()._assert_non_singular()
        for op in self._operators:
            op._assert_non_singular()
        return None


def _cholesky(operator: LinearOperator) -> LinearOperator:
    factor = Tensor(cholesky(operator.dense()))
    return LinearOperatorLowerTriangular(
        factor, is_non_singular=True, is_self_adjoint=False, is_square=True
    )


ALGEBRA.update(
    inverse=lambda x: LinearOperatorInversion(x, **x._hints(), is_square=x.is_square),
    adjoint=LinearOperatorAdjoint,
    cholesky=_cholesky,
)


@final
@register
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

    @accept_hints()
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
        self._u = parameter(u, base_operator.dtype)
        self._v = self._u if v is None else parameter(v, base_operator.dtype)
        self._has_own_v = v is not None
        self._diag_update = (
            None if diag_update is None else parameter(diag_update, base_operator.dtype)
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

    base_operator = getter("_base_operator", "L.")
    u = getter("_u", "U.")
    v = getter("_v", "V.")
    diag_update = getter("_diag_update", "The diagonal of D; None for ones.")
    is_diag_update_positive = getter(
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
        return array_of(self._u), array_of(self._v)

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
        own = self._base_operator._diag_part()
        return own + jnp.sum(u * jnp.conj(scaled), -1)

    def _capacitance(self) -> Array:
        """Return D^-1 + V^H L^-1 U."""
        u, v = self._arrays()
        inner = times(v, self._base_operator.solution(u), is_adjoint=True)
        return self.diag_operator._linop_inverse()._add_to_tensor(inner)

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
            found = cholesky_solve.__wrapped__(cholesky(capacitance), inner)
        else:
            found = solve(capacitance, inner, adjoint)
        return first - self._base_operator.solution(times(left, found), adjoint)

    def _determinant(self) -> Array:
        own = jnp.linalg.det(self._capacitance())
        return own * self.diag_operator._determinant() * self._base_operator._determinant()

    def _log_abs_determinant(self) -> Array:
        own = jnp.linalg.slogdet(self._capacitance())[1].astype(self.dtype.dtype)
        own = own + self.diag_operator._log_abs_determinant()
        return own + self._base_operator._log_abs_determinant()
