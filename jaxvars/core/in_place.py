"""What changes a Variable in place besides `assign`: operators like `+=`, and writes of parts."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.cells import Cell
from jaxvars.core.frame import Owner
from jaxvars.core.frames import LOCAL
from jaxvars.errors import ShapeError, called, shown
from jaxvars.tensors.array_like import ArrayProxy, unwrap
from jaxvars.tensors.tensor import as_operand, broadcasts, fit, fit_operand, is_elsewhere, number_of
from jaxvars.tracing import context
from jaxvars.typing import Array

V = TypeVar("V", bound="InPlace")
Write: TypeAlias = Callable[[Array, Any, Array], Array]
"""What makes a new value of the one before, an index, and an array for that part."""

AROUND_WRITES: list[Callable[[Array], AbstractContextManager[object]]] = []
"""What makes the context around a write by index, given the value before."""


def _around_write(value: Array) -> AbstractContextManager[object]:
    return next((make(value) for make in AROUND_WRITES), nullcontext())


def _in_place(operation: Callable[[Any, Any], Any]) -> Callable[[V, jax.typing.ArrayLike], V]:
    """Return the method of an operator like `+=`: it assigns, and returns the variable."""

    def change(self: V, other: Any) -> V:
        cell, given = self._cell, self._near(as_operand(unwrap(other), self.dtype, self._cell))

        def changed(old: Array) -> Array:
            new = operation(old, given)
            return fit(new, cell.aval.shape, cell.aval.dtype, cell)

        LOCAL.frame.modify(cell, changed)
        return self

    return change


def write_part(how: str, old: Array, index: Any, new: Array) -> Array:
    """Return a value with a part changed by one of the methods of `jax.Array.at`, like "add"."""
    return getattr(old.at[index], how)(new)


class InPlace(ArrayProxy, Owner):
    """An array-like owner of a cell whose value can be changed in place, and parts of it."""

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

    @context.restoring()
    def _update(self, write: Write, index: Any, updates: Any) -> Self:
        """Change a part of the value by a `Write`."""
        with context.evaluating():
            shape = jax.eval_shape(lambda old: old[index], self._cell.aval).shape
        new = self._operand(updates, shape)

        def change(old: Array) -> Array:
            with _around_write(old):
                return write(old, index, new)

        LOCAL.frame.modify(self._cell, change, is_partial=True)
        return self

    def _operand(self, value: Any, shape: tuple[int, ...]) -> Array:
        new = fit_operand(unwrap(value), self.dtype, self._cell)
        if not broadcasts(new.shape, shape):
            raise ShapeError(
                f"Cannot update variable {called(self._cell)!r} of shape {self.shape}: the update "
                f"has shape {new.shape}, and {shape} (or what broadcasts to it) is needed."
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


def check_index(cell: Cell, shape: tuple[int, ...], index: Any) -> None:
    """Refuse an index of a variable that is known and out of bounds; let NumPy be the judge."""
    if any(map(context.is_tracer, jax.tree.leaves(index))):
        return
    known = jax.tree.map(lambda x: np.asarray(x) if isinstance(x, jax.Array) else x, index)
    try:
        np.broadcast_to(np.empty((), bool), shape)[known]
    except IndexError as error:
        raise shown(IndexError(f"Variable {called(cell)!r} of shape {shape}: {error}")) from None
