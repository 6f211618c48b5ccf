"""Linear operators that keep lengths: permutations and reflections."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.linalg.matrices.diagonals import conjugate_transpose
from jaxvars.tf.linalg.operators import tree as tree
from jaxvars.tf.linalg.operators.arrays import in_batch
from jaxvars.tf.linalg.operators.hints import always, hinted, imply
from jaxvars.tf.linalg.operators.operator import LinearOperator
from jaxvars.tf.tensors.attributes import held
from jaxvars.tf.tensors.dtypes import as_dtype, float32
from jaxvars.tf.tensors.static import refused
from jaxvars.typing import Array


class _Orthogonal(LinearOperator):
    """What keeps lengths."""

    def _log_abs_determinant(self) -> Array:
        return jnp.zeros(self.sizes[:-2], self.dtype.dtype)

    def _cond(self) -> Array:
        return jnp.ones(self.sizes[:-2], self.dtype.dtype)

    def _assert_non_singular(self) -> None:
        """Do nothing: it is."""


@final
@tree.registered
class LinearOperatorPermutation(_Orthogonal):
    """A matrix that changes the order: row i of the product is row `perm[i]`.

    Args:
        perm: integers of shape [..., n]: each of 0 to n - 1 once.
        dtype: the type of the elements.
        is_non_singular: it is.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.
        TypeError: when they are not integers.

    >>> LinearOperatorPermutation([2, 0, 1]).matvec([5.0, 6.0, 7.0]).numpy().tolist()
    [7.0, 5.0, 6.0]
    """

    @hinted()
    def __init__(self, perm: Any, dtype: Any = float32, **hints: Any) -> None:
        self._perm = tree.parameter(perm)
        if not self._perm.shape.rank:
            raise ValueError(f"Argument `perm` must have at least 1 dimension.  Found: {perm}.")
        if not self._perm.dtype.is_integer:
            raise TypeError(
                f"Argument `perm` must be integer dtype.  Found: {self._perm.dtype.name}."
            )
        imply(hints, "is_square", "A Permutation operator is always square.")
        always(hints["is_non_singular"], "A Permutation operator is always non-singular.")
        super().__init__(as_dtype(dtype), **hints)

    perm = held("_perm", "Which row each row of a product is.")

    def _shape(self) -> Any:
        sizes = tuple(self._perm.shape.as_list())
        return (*sizes, sizes[-1])

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        perm = tree.array(self._perm)
        order = (jnp.argsort(perm, -1) if adjoint else perm)[..., None]
        x = in_batch(x, order.shape[:-2])
        return jnp.take_along_axis(x, in_batch(order, x.shape[:-2]), -2)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._matmul(rhs, not adjoint)

    def _to_dense(self) -> Array:
        columns = jnp.arange(self.sizes[-1])
        return (tree.array(self._perm)[..., None] == columns).astype(self.dtype.dtype)

    def _diag_part(self) -> Array:
        columns = jnp.arange(self.sizes[-1])
        return (tree.array(self._perm) == columns).astype(self.dtype.dtype)

    def _determinant(self) -> Array:
        perm = tree.array(self._perm)
        turns = jnp.triu(perm[..., :, None] > perm[..., None, :], 1)
        count = jnp.sum(turns, (-2, -1))
        return (1 - 2 * (count % 2)).astype(self.dtype.dtype)


@final
@tree.registered
class LinearOperatorHouseholder(_Orthogonal):
    """A reflection: I - 2 v v^H, with v of length 1.

    Args:
        reflection_axis: the direction that is reflected, of shape [..., n].
        is_non_singular: it is.
        is_self_adjoint: it is.
        is_positive_definite: it is not.
        is_square: it is.

    Raises:
        ValueError: when the hints cannot hold.

    >>> LinearOperatorHouseholder([0.0, 2.0]).matvec([3.0, 4.0]).numpy().tolist()
    [3.0, -4.0]
    """

    @hinted()
    def __init__(self, reflection_axis: Any, **hints: Any) -> None:
        self._reflection_axis = tree.parameter(reflection_axis)
        if not self._reflection_axis.shape.rank:
            raise ValueError(
                "Argument reflection_axis must have at least 1 dimension.  Found: "
                f"{reflection_axis}"
            )
        words = "A Householder operator is always {}."
        imply(hints, "is_self_adjoint", words.format("self adjoint"))
        if hints["is_positive_definite"] is True:
            raise ValueError(words.format("non-positive definite"))
        imply(hints, "is_square", words.format("square"))
        always(hints["is_non_singular"], words.format("non-singular"))
        hints["is_positive_definite"] = False
        super().__init__(self._reflection_axis.dtype, **hints)

    reflection_axis = held("_reflection_axis", "The direction that is reflected.")

    def _unit(self) -> Array:
        axis = tree.array(self._reflection_axis)
        return axis / jnp.linalg.norm(axis, axis=-1, keepdims=True).astype(axis.dtype)

    def _shape(self) -> Any:
        sizes = tuple(self._reflection_axis.shape.as_list())
        return (*sizes, sizes[-1])

    def _matmul(self, x: Array, adjoint: bool = False) -> Array:
        unit = self._unit()[..., None]
        return x - 2 * unit * jnp.matmul(conjugate_transpose(unit), x)

    def _solve(self, rhs: Array, adjoint: bool = False) -> Array:
        return self._matmul(rhs, adjoint)

    def _diag_part(self) -> Array:
        unit = self._unit()
        return 1 - 2 * unit * jnp.conj(unit)

    def _trace(self) -> Array:
        return jnp.full(self.sizes[:-2], self.sizes[-1] - 2, self.dtype.dtype)

    def _determinant(self) -> Array:
        return jnp.full(self.sizes[:-2], -1, self.dtype.dtype)

    def _eigvals(self) -> Array:
        values = np.ones(self.sizes[-1], self.dtype.dtype)
        values[0] = -1
        return jnp.broadcast_to(values, self.sizes[:-1])

    def _linop_inverse(self) -> LinearOperator:
        return self

    def _assert_self_adjoint(self) -> None:
        """Do nothing: it is."""

    def _assert_positive_definite(self) -> None:
        raise refused("Householder operators are always non-positive definite.")
