"""The methods of a Variable that change some of its rows or elements, and operators like `+=`."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.cells import Cell
from jaxvars.core.frame import Owner
from jaxvars.core.frames import LOCAL
from jaxvars.errors import NotATensorError, ShapeError
from jaxvars.tensors.array_like import ArrayProxy, unwrap
from jaxvars.tensors.tensor import (
    as_operand,
    broadcasts,
    fit,
    fit_operand,
    is_elsewhere,
    number_of,
    to_tensor,
)
from jaxvars.tracing import context
from jaxvars.typing import Array, ArrayLike

AROUND_WRITES: list[Callable[[Array], AbstractContextManager[object]]] = []
"""What makes the context around a write by index, given the value before."""


def _around_write(value: Array) -> AbstractContextManager[object]:
    return next((make(value) for make in AROUND_WRITES), nullcontext())


def _in_place(operation: Callable[[Any, Any], Any]) -> Callable[[Scattered, Any], Scattered]:
    """Return the method of an operator like `+=`: it assigns, and returns the variable."""

    def change(self: Scattered, other: Any) -> Scattered:
        cell, given = self._cell, self._near(as_operand(unwrap(other), self.dtype, self.name))

        def changed(old: Array) -> Array:
            new = operation(old, given)
            return fit(new, cell.aval.shape, cell.aval.dtype, name=cell.name)

        LOCAL.frame.modify(cell, changed)
        return self

    return change


class Scattered(ArrayProxy, Owner):
    """An array-like owner of a cell whose rows and elements can be changed in place."""

    __slots__ = ()

    _cell: Cell

    @property
    @abstractmethod
    def name(self) -> str:
        """The name, with the scopes it was created in."""

    # `v += x` is `v.assign(v + x)` as one step: no other thread's change is lost.
    __iadd__ = _in_place(operator.add)
    __isub__ = _in_place(operator.sub)
    __imul__ = _in_place(operator.mul)
    __itruediv__ = _in_place(operator.truediv)
    __ifloordiv__ = _in_place(operator.floordiv)
    __imod__ = _in_place(operator.mod)
    __ipow__ = _in_place(operator.pow)
    __imatmul__ = _in_place(operator.matmul)
    __iand__ = _in_place(operator.and_)
    __ior__ = _in_place(operator.or_)
    __ixor__ = _in_place(operator.xor)
    __ilshift__ = _in_place(operator.lshift)
    __irshift__ = _in_place(operator.rshift)

    def scatter_update(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Replace rows: `v[indices[i]] = updates[i]`.

        Args:
            indices: integers, of any shape; for several equal ones any of the updates wins.
            updates: of shape `indices.shape + v.shape[1:]`, or one that broadcasts to it.

        Raises:
            IndexError: when an index is known and outside of the first dimension. In compiled code
                JAX drops the update then, unless `jv.debugging.check_indices()` is on; this holds
                for all methods that scatter.

        >>> import jaxvars as jv

        >>> jv.Variable([1.0, 2.0, 3.0]).scatter_update([0, 2], [9.0, 8.0]).numpy()
        array([9., 2., 8.], dtype=float32)
        """
        return self._scatter("set", indices, updates)

    def scatter_add(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Add to rows; equal indices add up."""
        return self._scatter("add", indices, updates)

    def scatter_sub(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Subtract from rows; equal indices add up."""
        return self._scatter("subtract", indices, updates)

    def scatter_mul(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Multiply rows; equal indices multiply up."""
        return self._scatter("multiply", indices, updates)

    def scatter_div(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Divide rows, integers towards zero; equal indices divide one after the other."""
        return self._scatter("divide", indices, updates)

    def scatter_max(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Make rows the larger of themselves and the updates."""
        return self._scatter("max", indices, updates)

    def scatter_min(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Make rows the smaller of themselves and the updates."""
        return self._scatter("min", indices, updates)

    def scatter_nd_update(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Replace parts: `v[tuple(indices[i])] = updates[i]`; the last axis is the index.

        >>> import jaxvars as jv

        >>> v = jv.Variable([[1.0, 2.0], [3.0, 4.0]])
        >>> v.scatter_nd_update([[0, 1], [1, 0]], [8.0, 9.0]).numpy()
        array([[1., 8.],
               [9., 4.]], dtype=float32)
        """
        return self._scatter_nd("set", indices, updates)

    def scatter_nd_add(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Add to parts; the last axis of `indices` is the index."""
        return self._scatter_nd("add", indices, updates)

    def scatter_nd_sub(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Subtract from parts; the last axis of `indices` is the index."""
        return self._scatter_nd("subtract", indices, updates)

    def scatter_nd_max(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Make parts the larger of themselves and the updates."""
        return self._scatter_nd("max", indices, updates)

    def scatter_nd_min(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Make parts the smaller of themselves and the updates."""
        return self._scatter_nd("min", indices, updates)

    @context.restoring()
    def batch_scatter_update(self, indices: ArrayLike, updates: ArrayLike) -> Self:
        """Replace rows batch by batch: `v[b, indices[b, i]] = updates[b, i]`.

        Args:
            indices: integers of shape [batch..., n]; its batch dimensions are the first ones
                of the variable.
            updates: of shape `indices.shape` and then the rest of the variable's.

        >>> import jaxvars as jv

        >>> v = jv.Variable([[1.0, 2.0], [3.0, 4.0]])
        >>> v.batch_scatter_update([[0], [1]], [[9.0], [8.0]]).numpy()
        array([[9., 2.],
               [3., 8.]], dtype=float32)
        """
        rows = _integers(indices, self.name)
        dims = self.shape[: max(rows.ndim - 1, 0)]
        if not 1 <= rows.ndim <= self.ndim or rows.shape[:-1] != dims:
            raise ShapeError(
                f"Cannot update variable {self.name!r} of shape {self.shape} batch by batch: the "
                f"indices have shape {rows.shape}, and all sizes but the last must be the first "
                "ones of the variable."
            )
        batch = jnp.indices(rows.shape, sparse=True)[:-1]
        _check_bounds(rows, self.shape[rows.ndim - 1], self.name)
        return self._update("set", (*batch, rows), updates)

    def _scatter(self, how: str, indices: Any, updates: Any) -> Self:
        rows = _integers(indices, self.name)
        if not self.shape:
            raise ShapeError(f"Variable {self.name!r} is a scalar: it has no rows to scatter to.")
        _check_bounds(rows, self.shape[0], self.name)
        return self._update(how, rows, updates)

    @context.restoring()
    def _scatter_nd(self, how: str, indices: Any, updates: Any) -> Self:
        parts = _integers(indices, self.name)
        if not parts.ndim or parts.shape[-1] > self.ndim:
            raise ShapeError(
                f"Cannot update variable {self.name!r} of shape {self.shape}: the last axis of the "
                f"indices, whose shape is {parts.shape}, must have at most {self.ndim} numbers."
            )
        for axis in range(parts.shape[-1]):
            _check_bounds(parts[..., axis], self.shape[axis], self.name)
        return self._update(how, tuple(jnp.moveaxis(parts, -1, 0)), updates)

    @context.restoring()
    def _update(self, how: str, index: Any, updates: Any) -> Self:
        with context.evaluating():
            shape = jax.eval_shape(lambda old: old[index], self._cell.aval).shape
        new = self._operand(updates, shape)

        def change(old: Array) -> Array:
            with _around_write(old):
                if how == "divide" and jnp.issubdtype(old.dtype, jnp.integer):
                    return _divide_rows(old, index, jnp.broadcast_to(new, shape))
                return getattr(old.at[index], how)(new)

        LOCAL.frame.modify(self._cell, change, is_partial=True)
        return self

    def _operand(self, value: Any, shape: tuple[int, ...]) -> Array:
        new = fit_operand(unwrap(value), self.dtype, self.name)
        if not broadcasts(new.shape, shape):
            raise ShapeError(
                f"Cannot update variable {self.name!r} of shape {self.shape}: the update has "
                f"shape {new.shape}, and {shape} (or what broadcasts to it) is needed."
            )
        return self._near(new)

    def _summand(self, value: Any) -> Any:
        """Return what is added to the value, or subtracted: a Python number stays on the host."""
        number = number_of(value, self._cell.aval.dtype)
        return self._operand(value, self.shape) if number is None else number

    def _near(self, value: Any) -> Any:
        """Return a value on the device that the variable was placed on, if that is one."""
        sharding = self._cell.sharding
        if sharding is None or len(sharding.device_set) > 1 or not is_elsewhere(value, sharding):
            return value
        return jax.device_put(value, sharding)


def _divide_rows(old: Array, rows: Array, by: Array) -> Array:
    """Divide rows of integers towards zero, one after the other: divisors' products may wrap."""
    rows, by = rows.reshape(-1), by.reshape(-1, *old.shape[1:])

    def divide(i: Array, value: Array) -> Array:
        return value.at[rows[i]].set(jax.lax.div(value[rows[i]], by[i]))

    return jax.lax.fori_loop(0, rows.size, divide, old)


def widened(index: Any) -> Any:
    """Return an index; an integer array of a dtype that does not hold every size, as int32."""
    dtype = getattr(index, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jnp.integer) or dtype.itemsize >= 4:
        return index
    return index.astype(jnp.int32)


def plain_index(index: Any) -> Any:
    """Return an index with the values of the variables in it."""

    def of(part: Any) -> Any:
        if isinstance(part, slice):
            return slice(unwrap(part.start), unwrap(part.stop), unwrap(part.step))
        return widened(unwrap(part))

    return jax.tree.map(of, index, is_leaf=lambda x: isinstance(x, ArrayProxy))


def check_index(name: str, shape: tuple[int, ...], index: Any) -> None:
    """Refuse an index of a variable that is known and out of bounds; let NumPy be the judge."""
    if any(map(context.is_tracer, jax.tree.leaves(index))):
        return
    known = jax.tree.map(lambda x: np.asarray(x) if isinstance(x, jax.Array) else x, index)
    try:
        np.broadcast_to(np.empty((), bool), shape)[known]
    except IndexError as error:
        raise IndexError(f"Variable {name!r} of shape {shape}: {error}") from None


def _integers(indices: Any, name: str) -> Array:
    given = unwrap(indices)
    known = all(isinstance(x, _KNOWN) and context.is_known(x) for x in jax.tree.leaves(given))
    with context.at(context.EVAL) if known else nullcontext():  # known to the end: not staged
        array = to_tensor(given, what=f"the indices into variable {name!r}")
    if not array.size and isinstance(given, list | tuple):  # of nothing: NumPy makes it floats
        return array.astype(jnp.int32)
    if array.dtype.kind not in "iu":
        raise NotATensorError(f"Indices into variable {name!r} are integers, not {array.dtype}.")
    return widened(array)


def _check_bounds(indices: Array, size: int, name: str) -> None:
    """Refuse indices that JAX would clamp or drop silently."""
    if context.is_tracer(indices) or indices.size == 0:
        return
    known = np.asarray(indices)  # jnp's min would be staged where a function is traced
    low, high = int(known.min()), int(known.max())
    if low < -size or high >= size:
        raise IndexError(f"Index {low if low < -size else high} is outside of variable {name!r}, "
                         f"which has {size} rows.")  # fmt: skip


_KNOWN = (int, np.ndarray, np.generic, jax.Array)
