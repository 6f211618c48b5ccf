"""Linear operators of several others: blocks on or below the diagonal, Kronecker products."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.attributes import getter
from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.operators.arrays import in_batch, joint_batch
from jaxvars.tf.linalg.operators.declare import HINTS, accept_hints, array_of, imply, register
from jaxvars.tf.linalg.operators.dense import LinearOperatorFullMatrix
from jaxvars.tf.linalg.operators.diagonal import make_zeros
from jaxvars.tf.linalg.operators.made import OfSeveral, check_operators, hint_of_all, require_square
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

Rows: TypeAlias = list[list[LinearOperator]]


class _Blocks(LinearOperator):
    """A matrix of operators, lower triangular in blocks.

    What it is applied to may be a list: a tensor for each column of blocks.
    """

    @abstractmethod
    def rows(self) -> Rows:
        """Return the operators of each row, from the first column on, zeros among them."""

    def _sizes(self, axis: int) -> list[int]:
        return [row[-1].sizes[axis] for row in self.rows()]

    def _shape(self) -> Any:
        batch = joint_batch(*(op.sizes for row in self.rows() for op in row))
        return (*batch, sum(self._sizes(-2)), sum(self._sizes(-1)))

    # ------------------------------------------------------------ arrays
    def _split(self, x: Array, axis: int) -> list[Array]:
        return jnp.split(x, np.cumsum(self._sizes(axis))[:-1], axis=-2)

    def _join(self, parts: list[Array]) -> Array:
        batch = np.broadcast_shapes(self.sizes[:-2], *(part.shape[:-2] for part in parts))
        return jnp.concatenate([in_batch(part, batch) for part in parts], -2)

    def _multiply_parts(self, parts: list[Array], adjoint: bool) -> list[Array]:
        rows = self.rows()
        if adjoint:
            return [
                sum(rows[i][j].product(parts[i], True) for i in range(j, len(rows)))
                for j in range(len(rows))
            ]
        return [sum(op.product(x) for op, x in zip(row, parts, strict=False)) for row in rows]

    def _solve_parts(self, parts: list[Array], adjoint: bool) -> list[Array]:
        rows, count = self.rows(), len(parts)
        found: dict[int, Array] = {}
        for i in reversed(range(count)) if adjoint else range(count):
            left = parts[i]
            for j, known in found.items():
                op = rows[j][i] if adjoint else rows[i][j]
                left = left - op.product(known, adjoint)
            found[i] = rows[i][i].solution(left, adjoint)
        return [found[i] for i in range(count)]

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        return self._join(self._multiply_parts(self._split(x, -2 if adjoint else -1), adjoint))

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._join(self._solve_parts(self._split(rhs, -1 if adjoint else -2), adjoint))

    def _on_diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self.rows()]

    def _check_solvable(self) -> None:
        super()._check_solvable()
        require_square(self._on_diagonal(), "Exact solve")

    def _check_square(self, what: str) -> None:
        require_square(self._on_diagonal(), what)

    def _concatenate(self, parts: Sequence[Array]) -> Array:
        batch = self.sizes[:-2]
        parts = [jnp.broadcast_to(part, (*batch, part.shape[-1])) for part in parts]
        return jnp.concatenate(parts, -1)

    def _diag_part(self) -> Array:
        if not all(op.is_square for op in self._on_diagonal()):
            return super()._diag_part()
        return self._concatenate([op._diag_part() for op in self._on_diagonal()])

    def _eigvals(self) -> Array:
        return self._concatenate([op._eigvals() for op in self._on_diagonal()])

    def _trace(self) -> Array:
        if not all(op.is_square for op in self._on_diagonal()):
            return super()._trace()
        total = sum(op._trace() for op in self._on_diagonal())
        return jnp.broadcast_to(total, self.sizes[:-2])

    def _determinant(self) -> Array:
        product = math.prod(op._determinant() for op in self._on_diagonal())
        return jnp.broadcast_to(product, self.sizes[:-2])

    def _log_abs_determinant(self) -> Array:
        total = sum(op._log_abs_determinant() for op in self._on_diagonal())
        return jnp.broadcast_to(total, self.sizes[:-2])

    def _assert_non_singular(self) -> None:
        for op in self._on_diagonal():
            op._assert_non_singular()

    # ------------------------------------------------------------ lists of blocks
    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """Return the product; a list of blocks if `x` is one."""
        if not self._is_blocks(x, -2 if adjoint else -1, -1 if adjoint_arg else -2):
            return super().matmul(x, adjoint, adjoint_arg, name)
        return _wrap_all(self._multiply_parts(self._read_all(x, adjoint_arg), adjoint))

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """Return the product with vectors; a list of blocks if `x` is one."""
        if not self._is_blocks(x, -2 if adjoint else -1, -1):
            return super().matvec(x, adjoint, name)
        parts = [part[..., None] for part in self._read_all(x)]
        return _wrap_all([part[..., 0] for part in self._multiply_parts(parts, adjoint)])

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """Return the solution; a list of blocks if `rhs` is one."""
        if not self._is_blocks(rhs, -1 if adjoint else -2, -1 if adjoint_arg else -2):
            return super().solve(rhs, adjoint, adjoint_arg, name)
        self._check_solvable()
        return _wrap_all(self._solve_parts(self._read_all(rhs, adjoint_arg), adjoint))

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """Return the solution for vectors; a list of blocks if `rhs` is one."""
        if not self._is_blocks(rhs, -1 if adjoint else -2, -1):
            return super().solvevec(rhs, adjoint, name)
        self._check_solvable()
        parts = [part[..., None] for part in self._read_all(rhs)]
        return _wrap_all([part[..., 0] for part in self._solve_parts(parts, adjoint)])

    def _is_blocks(self, x: Any, axis: int, own_axis: int) -> bool:
        """Return whether something is a list of a tensor for each block."""
        sizes = self._sizes(axis)
        if not isinstance(x, list | tuple) or len(x) != len(sizes):
            return False
        shapes = [array_of(part).shape for part in x]
        return all(
            len(s) >= -own_axis and s[own_axis] == n for s, n in zip(shapes, sizes, strict=True)
        )

    def _read_all(self, x: Any, adjoint_arg: bool = False) -> list[Array]:
        parts = [self._read(part) for part in x]
        return list(map(conjugate_transpose, parts)) if adjoint_arg else parts


def _wrap_all(parts: list[Array]) -> list[Tensor]:
    return [Tensor(array_of(part)) for part in parts]


@final
@register
class LinearOperatorBlockDiag(OfSeveral, _Blocks):
    """A matrix of operators on the diagonal; zeros elsewhere.

    Args:
        operators: one or more, of one type.
        is_non_singular: whether it has an inverse; it has when all have, if None.
        is_self_adjoint: whether it equals its adjoint; the same.
        is_positive_definite: whether it is positive definite; the same.
        is_square: whether all are square.

    Raises:
        ValueError: when there are none, or the hints cannot hold.
        TypeError: when types differ.

    >>> from jaxvars import tf
    >>> one, two = tf.linalg.LinearOperatorDiag([2.0]), tf.linalg.LinearOperatorDiag([3.0])
    >>> LinearOperatorBlockDiag([one, two]).to_dense().numpy().tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """

    @accept_hints(is_square=True, name=None)
    def __init__(self, operators: Sequence[LinearOperator], **hints: Any) -> None:
        self._start(operators, hints, "_ds_", HINTS[:3])

    operators = getter("_operators", "The blocks.", list)

    def rows(self) -> Rows:
        """Return the operators of each row, from the first column on, zeros among them."""
        ops = self._operators
        return [[*(_fill(op, other) for other in ops[:i]), op] for i, op in enumerate(ops)]

    def _multiply_parts(self, parts: list[Array], adjoint: bool) -> list[Array]:
        pairs = zip(self._operators, parts, strict=True)
        return [op.product(part, adjoint) for op, part in pairs]

    def _solve_parts(self, parts: list[Array], adjoint: bool) -> list[Array]:
        pairs = zip(self._operators, parts, strict=True)
        return [op.solution(part, adjoint) for op, part in pairs]

    def _change(self, change: str) -> LinearOperator:
        return LinearOperatorBlockDiag(self._change_each(change), is_square=self.is_square)

    def _linop_adjoint(self) -> LinearOperator:
        return self._change("adjoint")

    def _linop_inverse(self) -> LinearOperator:
        return self._change("inverse")

    def _linop_cholesky(self) -> LinearOperator:
        return self._change("cholesky")


def _fill(op: LinearOperator, other: LinearOperator) -> LinearOperator:
    return make_zeros(op.range_dimension, other.domain_dimension, None, op.dtype)


@final
@register
class LinearOperatorBlockLowerTriangular(_Blocks):
    """A lower triangle of operators.

    Args:
        operators: a list for each row of blocks: one operator, two, and so on; those on the
            diagonal are square.
        is_square: it is.

    Raises:
        ValueError: when the rows are not that long, or sizes do not fit.
        TypeError: when types differ.

    >>> from jaxvars import tf
    >>> one = tf.linalg.LinearOperatorFullMatrix([[2.0]])
    >>> LinearOperatorBlockLowerTriangular([[one], [one, one]]).to_dense().numpy().tolist()
    [[2.0, 0.0], [2.0, 2.0]]
    """

    @accept_hints()
    def __init__(self, operators: Sequence[Sequence[LinearOperator]], **hints: Any) -> None:
        self._operators = [list(row) for row in operators]
        check_operators([op for row in self._operators for op in row])
        imply(hints, "is_square", "Only square operators currently supported.")
        if [len(row) for row in self._operators] != list(range(1, len(self._operators) + 1)):
            raise ValueError(
                "The argument `operators` must have a list for each row of blocks, each one longer "
                "than the one before."
            )
        self._check_blocks()
        ends = [row[-1] for row in self._operators]
        hints["is_non_singular"] = hint_of_all(ends, "is_non_singular", hints["is_non_singular"])
        super().__init__(ends[0].dtype, **hints)

    def _check_blocks(self) -> None:
        for i, row in enumerate(self._operators):
            for j, op in enumerate(row):
                wanted = (self._operators[i][i].sizes[-2], self._operators[j][j].sizes[-1])
                if op.sizes[-2:] != wanted:
                    raise ValueError(
                        f"Operator ({i}, {j}) must have the same range dimension as the other "
                        f"blocks of its row, and domain dimension as those of its column: it has "
                        f"shape {op.sizes[-2:]}, not {wanted}."
                    )

    @property
    def operators(self) -> Rows:
        """The blocks, row by row."""
        return [list(row) for row in self._operators]

    def rows(self) -> Rows:
        """Return the operators of each row, from the first column on."""
        return self._operators

    def _linop_inverse(self) -> LinearOperator:
        """Return the inverse, a lower triangle of operators, too."""
        rows, made = self._operators, []
        for i, row in enumerate(rows):
            last = row[i].inverse()
            new = []
            for j in range(i):
                total: Any = 0
                for k in range(j, i):
                    total = total + rows[i][k].product(made[k][j].dense())
                new.append(LinearOperatorFullMatrix(Tensor(-last.product(total))))
            made.append([*new, last])
        return LinearOperatorBlockLowerTriangular(made, is_non_singular=True)


@final
@register
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

    @accept_hints(name=None)
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
        if not self._all_square():
            return super()._diag_part()
        return self._products([op._diag_part() for op in self._operators])

    def _eigvals(self) -> Array:
        return self._products([op._eigvals() for op in self._operators])

    def _determinant(self) -> Array:
        total: Any = 1
        for op in self._operators:
            power = self.domain_dimension // op.domain_dimension
            total = total * op._determinant() ** power
        return total

    def _log_abs_determinant(self) -> Array:
        total: Any = 0
        for op in self._operators:
            times = self.domain_dimension // op.domain_dimension
            total = total + times * op._log_abs_determinant()
        return total

    def _check_solvable(self) -> None:
        super()._check_solvable()
        require_square(self._operators, "Exact solve")

    def _check_square(self, what: str) -> None:
        require_square(self._operators, what)

    def _change(self, change: str) -> LinearOperator:
        return LinearOperatorKronecker(self._change_each(change))

    def _linop_adjoint(self) -> LinearOperator:
        return self._change("adjoint")

    def _linop_inverse(self) -> LinearOperator:
        if not self._all_square():
            return super()._linop_inverse()
        return self._change("inverse")

    def _linop_cholesky(self) -> LinearOperator:
        if not all(op._can_use_cholesky() for op in self._operators):
            return super()._linop_cholesky()
        return self._change("cholesky")

    def _assert_non_singular(self) -> None:
        if not self._all_square():
            raise ValueError(
                "Kronecker products of operators that are not square are not known to have an "
                "inverse."
            )
        for op in self._operators:
            op._assert_non_singular()
