"""`tf.linalg.LinearOperator`: a matrix that is known by what it does, not by its elements.

declare     hints, parameters and shapes; operators as arguments of compiled functions
diagonal    diagonals, identities, zeros
dense       full matrices, triangles, three diagonals, Toeplitz, permutations, reflections
circulant   circulant ones, by Fourier transforms
made        adjoints, inverses, products, updates of low rank
blocks      diagonals and triangles of blocks, Kronecker products
algebra     products and solutions that are operators of special kinds

Rules this file keeps:
- matrices are the last two axes; the others are a batch, which is broadcast;
- the methods with an underscore do the work: they take and return arrays, and a class has those
  that it does better than by its dense matrix; the tensors that custom ones return are unwrapped;
- parameters are read when they are used, so that variables may be parameters, and train.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf import debugging
from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose, diag_part
from jaxvars.tf.linalg.matrices.factors import cholesky_solve
from jaxvars.tf.linalg.operators.arrays import cholesky, solve
from jaxvars.tf.linalg.operators.declare import Described, Hint, always, array_of
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

ALGEBRA: dict[str, Callable[..., Any]] = {}
"""What makes operators of operators: "adjoint", "inverse", "cholesky", "matmul", "solve"."""

_RESULTS = (
    "_matmul", "_matvec", "_solve", "_solvevec", "_to_dense", "_diag_part", "_trace",
    "_determinant", "_log_abs_determinant", "_add_to_tensor", "_eigvals", "_cond",
)  # fmt: skip


def _return_array(method: Callable[..., Any]) -> Callable[..., Array]:
    """Decorate a method that may return a tensor."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Array:
        return array_of(method(*args, **kwargs))

    return call


class LinearOperator(Described):
    """The base of linear operators: a batch of matrices of shape [..., m, n].

    A custom class has `_shape` and `_matmul`, and whatever else it does better than by its
    dense matrix: `_solve`, `_to_dense`, `_diag_part`, `_log_abs_determinant`, ...

    Args:
        dtype: the type of the elements.
        graph_parents: accepted, and of no effect.
        is_non_singular: whether it has an inverse; None when that is not known.
        is_self_adjoint: whether it equals its adjoint.
        is_positive_definite: whether x^H A x has a positive real part for all x that are not 0.
        is_square: whether m is n.
        name: what it is called.
        parameters: accepted, and of no effect.

    Raises:
        ValueError: when the hints cannot hold.

    >>> from jaxvars import tf
    >>> operator = tf.linalg.LinearOperatorDiag([1.0, 2.0])
    >>> operator.matvec([1.0, 1.0]).numpy().tolist(), operator.determinant().numpy().tolist()
    ([1.0, 2.0], 2.0)

    Differs from TensorFlow: the methods with an underscore take and return arrays.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in vars(cls).keys() & set(_RESULTS):
            setattr(cls, name, _return_array(vars(cls)[name]))

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
        parameters: Any = None,
    ) -> None:
        super().__init__(name=name or type(self).__name__)
        if is_positive_definite:
            message = "A positive definite matrix is always non-singular."
            is_non_singular = always(is_non_singular, message)
        if is_non_singular:
            is_square = always(is_square, "A non-singular matrix is always square.")
        if is_self_adjoint:
            is_square = always(is_square, "A self-adjoint matrix is always square.")
        self._dtype = as_dtype(dtype)
        self._is_non_singular, self._is_self_adjoint = is_non_singular, is_self_adjoint
        self._is_positive_definite, self._is_square = is_positive_definite, is_square

    # ------------------------------------------------------------ what a class defines
    @abstractmethod
    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        """Return the product with matrices."""

    def _matvec(self, x: Array, adjoint: bool = False) -> Array:
        return self._matmul(x[..., None], adjoint)[..., 0]

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        dense = self.dense()
        if self._can_use_cholesky():
            return cholesky_solve.__wrapped__(cholesky(dense), rhs)
        return solve(dense, rhs, adjoint)

    def _solvevec(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._solve(rhs[..., None], adjoint)[..., 0]

    def _to_dense(self) -> Array:
        *batch, _, columns = self.sizes
        eye = jnp.eye(columns, dtype=self.dtype.dtype)
        return self.product(jnp.broadcast_to(eye, (*batch, columns, columns)))

    def _diag_part(self) -> Array:
        return diag_part.__wrapped__(self.dense())

    def _trace(self) -> Array:
        return jnp.sum(self._diag_part(), -1)

    def _determinant(self) -> Array:
        if self._can_use_cholesky():
            return jnp.exp(self._log_abs_determinant())
        return jnp.linalg.det(self.dense())

    def _log_abs_determinant(self) -> Array:
        if self._can_use_cholesky():
            return 2 * jnp.sum(jnp.log(diag_part.__wrapped__(cholesky(self.dense()))), -1)
        return jnp.linalg.slogdet(self.dense())[1].astype(self.dtype.dtype)

    def _add_to_tensor(self, x: Array) -> Array:
        return self.dense() + x

    def _eigvals(self) -> Array:
        return jnp.linalg.eigvalsh(self.dense()).astype(self.dtype.dtype)

    def _cond(self) -> Array:
        if self.is_self_adjoint:
            values = jnp.abs(self._eigvals())
        else:
            values = jnp.linalg.svd(self.dense(), compute_uv=False)
        return jnp.max(values, -1) / jnp.min(values, -1)

    def _assert_non_singular(self) -> None:
        limit = 1 / (max(100, *self.sizes[-2:]) * np.finfo(self.dtype.dtype).eps)
        cond = Tensor(jnp.abs(self._cond()))
        debugging.assert_less(
            cond,
            Tensor(jnp.asarray(limit, cond.dtype)),
            message="Singular matrix up to precision epsilon.",
        )

    def _assert_positive_definite(self) -> None:
        if not self.is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is not implemented.")
        diagonal = Tensor(jnp.real(diag_part.__wrapped__(cholesky(self.dense()))))
        debugging.assert_positive(diagonal, message="Matrix was not positive definite.")

    def _assert_self_adjoint(self) -> None:
        dense = self.dense()
        debugging.assert_equal(
            Tensor(conjugate_transpose(dense)),
            Tensor(dense),
            message="Matrix was not equal to its adjoint.",
        )

    def _linop_adjoint(self) -> LinearOperator:
        return ALGEBRA["adjoint"](self)

    def _linop_inverse(self) -> LinearOperator:
        return ALGEBRA["inverse"](self)

    def _linop_cholesky(self) -> LinearOperator:
        return ALGEBRA["cholesky"](self)

    # ------------------------------------------------------------ for other operators
    def dense(self) -> Array:
        """Return the dense matrix as an array."""
        return self._to_dense()

    def product(self, x: Array, adjoint: bool = False) -> Array:
        """Return the product with an array."""
        return self._matmul(x, adjoint)

    def solution(self, rhs: Array, adjoint: bool = False) -> Array:
        """Return what `solve` does, of arrays."""
        return self._solve(rhs, adjoint)

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    def _read(self, x: Any) -> Array:
        """Return an argument as an array."""
        array = array_of(x, self.dtype)
        if array.dtype != self.dtype.dtype:
            raise TypeError(f"Input had dtype {array.dtype} but expected {self.dtype}.")
        return array

    def _fit(self, x: Any, own: int, axis: int, adjoint_arg: bool = False) -> Array:
        """Return an argument as an array, of which a size must be one of the operator's."""
        array = self._read(x)
        other = array.shape[-1 if adjoint_arg else axis]
        if own != other:
            raise ValueError(f"Dimensions {own} and {other} are not compatible")
        return conjugate_transpose(array) if adjoint_arg else array

    def _combine(self, how: str, x: LinearOperator, adjoint: bool, adjoint_arg: bool) -> Any:
        """Return a product, or solution, of operators."""
        left, right = (self.adjoint() if adjoint else self), (x.adjoint() if adjoint_arg else x)
        if left.domain_dimension != right.range_dimension:
            raise ValueError(
                f"Operators are incompatible. Expected `x` to have dimension "
                f"{left.domain_dimension} but got {right.range_dimension}."
            )
        return ALGEBRA[how](left, right)

    # ------------------------------------------------------------ what it does
    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """Return the product with matrices, or with another operator, as an operator.

        Args:
            x: of shape [..., n, k]; or a LinearOperator.
            adjoint: multiply by the adjoint.
            adjoint_arg: multiply the adjoint of `x`.
            name: of no effect.

        Raises:
            ValueError: when sizes do not fit.
        """
        if isinstance(x, LinearOperator):
            return self._combine("matmul", x, adjoint, adjoint_arg)
        own = self.range_dimension if adjoint else self.domain_dimension
        return Tensor(self.product(self._fit(x, own, -2, adjoint_arg), adjoint))

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """Return the product with vectors of shape [..., n].

        Raises:
            ValueError: when sizes do not fit.
        """
        own = self.range_dimension if adjoint else self.domain_dimension
        return Tensor(self._matvec(self._fit(x, own, -1), adjoint))

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """Return X where A X is given: matrices, or another operator, as an operator.

        Args:
            rhs: of shape [..., m, k]; or a LinearOperator.
            adjoint: solve for the adjoint of A.
            adjoint_arg: solve for the adjoint of `rhs`.
            name: of no effect.

        Raises:
            NotImplementedError: when it is known to have no inverse.
            ValueError: when sizes do not fit.
        """
        self._check_solvable()
        if isinstance(rhs, LinearOperator):
            return self._combine("solve", rhs, adjoint, adjoint_arg)
        own = self.domain_dimension if adjoint else self.range_dimension
        return Tensor(self.solution(self._fit(rhs, own, -2, adjoint_arg), adjoint))

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """Return x where A x is given: vectors of shape [..., m].

        Raises:
            NotImplementedError: when it is known to have no inverse.
            ValueError: when sizes do not fit.
        """
        self._check_solvable()
        own = self.domain_dimension if adjoint else self.range_dimension
        return Tensor(self._solvevec(self._fit(rhs, own, -1), adjoint))

    def _check_solvable(self) -> None:
        message = "Exact solve not implemented for an operator that is expected to "
        if self.is_non_singular is False:
            raise NotImplementedError(f"{message}be singular.")
        if self.is_square is False:
            raise NotImplementedError(f"{message}not be square.")

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Return the adjoint: the transpose with conjugate elements."""
        return self if self.is_self_adjoint is True else self._linop_adjoint()

    @property
    def H(self) -> LinearOperator:  # noqa: N802 - TensorFlow's name
        """The adjoint."""
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """Return the inverse.

        Raises:
            ValueError: when it is known to have none.
        """
        for holds, kind in ((self.is_square, "non square"), (self.is_non_singular, "singular")):
            if holds is False:
                raise ValueError(
                    f"Cannot take the Inverse: This operator represents a {kind} matrix."
                )
        return self._linop_inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """Return the lower factor L of A = L L^H.

        Raises:
            ValueError: when it is not known to be positive definite and self-adjoint.
        """
        if not self._can_use_cholesky():
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint "
                "matrix."
            )
        return self._linop_cholesky()

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """Return the matrices with all elements."""
        return Tensor(self.dense())

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """Return the diagonals."""
        return Tensor(self._diag_part())

    def trace(self, name: str = "trace") -> Tensor:
        """Return the sums of the diagonals."""
        return Tensor(self._trace())

    def determinant(self, name: str = "det") -> Tensor:
        """Return the determinants.

        Raises:
            NotImplementedError: when it is not square.
        """
        self._check_square("Determinant")
        return Tensor(self._determinant())

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """Return the logarithms of the absolute values of the determinants.

        Raises:
            NotImplementedError: when it is not square.
        """
        self._check_square("Determinant")
        return Tensor(self._log_abs_determinant())

    def _check_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(
                f"{what} not implemented for an operator that is expected to not be square."
            )

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """Return the sums with matrices."""
        return Tensor(self._add_to_tensor(self._read(x)))

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """Return the eigenvalues of a self-adjoint operator.

        Raises:
            NotImplementedError: when it is not known to be self-adjoint.
        """
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return Tensor(self._eigvals())

    def cond(self, name: str = "cond") -> Tensor:
        """Return the condition numbers: how much errors may grow when it is solved."""
        return Tensor(self._cond())

    def assert_non_singular(self, name: str = "assert_non_singular") -> None:
        """Raise InvalidArgumentError, now or when the program runs, if there is no inverse."""
        self._assert_non_singular()

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> None:
        """Raise InvalidArgumentError if it is not positive definite."""
        self._assert_positive_definite()

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> None:
        """Raise InvalidArgumentError if it does not equal its adjoint."""
        self._assert_self_adjoint()
