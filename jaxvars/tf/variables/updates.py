"""What changes a `tf.Variable`: `assign`, `scatter_add`, `v[0].assign`, ...

Rules this file keeps:
- what is assigned is converted by TensorFlow's rules, and what jaxvars refuses is raised as
  what TensorFlow raises; a value that is refused changes nothing;
- each gives the variable back, so that calls can be chained.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import JaxvarsError
from jaxvars.tf.errors import InvalidArgumentError, OutOfRangeError
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import DType
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import OPERATIONS, Tensor, TensorLike
from jaxvars.tracing import context
from jaxvars.typing import Array


def _refusal(operator: str, cure: str) -> Callable[[Updates, Any], Any]:
    def refuse(self: Updates, other: Any) -> Any:
        raise RuntimeError(
            f"`variable {operator}= value` with `tf.Variable`s is not supported. Use "
            f"`variable.{cure}` to modify the variable, or `out = variable {operator} value` if "
            "you need to get a new output Tensor."
        )

    return refuse


class Updates(TensorLike):
    """The methods of `tf.Variable` that change it."""

    __slots__ = ()

    __iadd__ = _refusal("+", "assign_add(value)")
    __isub__ = _refusal("-", "assign_sub(value)")
    __imul__ = _refusal("*", "assign(variable * value)")
    __itruediv__ = _refusal("/", "assign(variable / value)")
    __ipow__ = _refusal("**", "assign(variable ** value)")

    @property
    @abstractmethod
    def aliased(self) -> CoreVariable:
        """The `jaxvars.Variable` that it stands for."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name, with its scopes, and ":0"."""

    @property
    @abstractmethod
    def dtype(self) -> DType:
        """The type of the elements."""

    @abstractmethod
    def value(self) -> Tensor:
        """Return the value."""

    @abstractmethod
    def _unread(self) -> Any:
        """Return what assigning gives."""

    # ------------------------------------------------------------ writing
    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Make `value` the value.

        Raises:
            ValueError: when it has another shape, or is a tensor of another type.
            TypeError: when it cannot be converted to the type.
        """
        array = to_array(value, self.dtype)
        shape = self.aliased._cell.aval.shape
        if array.shape != shape:
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable "
                f"shape {TensorShape(shape)}, and the assigned value shape "
                f"{TensorShape(array.shape)} are incompatible."
            )
        self.aliased.assign(text_or(array))
        return self._unread() if read_value else None

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add `delta` to the value."""
        self.aliased.assign_add(self._delta(delta, "AssignAddVariableOp"))
        return self._unread() if read_value else None

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract `delta` from the value."""
        self.aliased.assign_sub(self._delta(delta, "AssignSubVariableOp"))
        return self._unread() if read_value else None

    def load(self, value: Any, session: Any = None) -> None:
        """Make `value` the value."""
        self.assign(value)

    def count_up_to(self, limit: int) -> Tensor:
        """Add 1, and return the value before.

        Raises:
            OutOfRangeError: when it has reached `limit`.
        """
        before = self.value()
        if int(before) >= limit:
            raise OutOfRangeError(None, None, f"Reached limit of {limit} [Op:ResourceCountUpTo]")
        self.assign_add(1)
        return before

    def _delta(self, delta: Any, op: str) -> Array:
        """Return what is added, of the variable's shape."""
        array = to_array(delta, self.dtype)
        shape = self.aliased._cell.aval.shape
        if self.dtype.is_string:
            raise InvalidArgumentError(
                None,
                None,
                f"Variable '{self.name}' holds strings: only assign can change it. [Op:{op}]",
            )
        if array.shape != shape:
            raise InvalidArgumentError(
                None,
                None,
                f"Cannot update variable with shape {list(shape)} using a Tensor with shape "
                f"{list(array.shape)}, shapes must be equal. [Op:{op}] name: ",
            )
        return array

    def scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Replace rows by those of `tf.IndexedSlices`."""
        return self._scatter("update", sparse_delta)

    def scatter_add(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Add `tf.IndexedSlices`."""
        return self._scatter("add", sparse_delta)

    def scatter_sub(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Subtract `tf.IndexedSlices`."""
        return self._scatter("sub", sparse_delta)

    def scatter_mul(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Multiply by `tf.IndexedSlices`."""
        return self._scatter("mul", sparse_delta)

    def scatter_div(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Divide by `tf.IndexedSlices`."""
        return self._scatter("div", sparse_delta)

    def scatter_max(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Take the larger of rows and `tf.IndexedSlices`."""
        return self._scatter("max", sparse_delta)

    def scatter_min(self, sparse_delta: Any, use_locking: bool = False, name: Any = None) -> Any:
        """Take the smaller of rows and `tf.IndexedSlices`."""
        return self._scatter("min", sparse_delta)

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: Any = None
    ) -> Any:
        """Replace rows batch by batch by those of `tf.IndexedSlices`."""
        indices, values = to_array(sparse_delta.indices), to_array(sparse_delta.values, self.dtype)
        with _scattering("batch_scatter_update"):
            _refuse_negative(indices)
            self.aliased.batch_scatter_update(indices, values)
        return self._unread()

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Replace parts by index."""
        return self._scatter_nd("update", indices, updates)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add to parts by index."""
        return self._scatter_nd("add", indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract from parts by index."""
        return self._scatter_nd("sub", indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the larger of parts and updates."""
        return self._scatter_nd("max", indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Take the smaller of parts and updates."""
        return self._scatter_nd("min", indices, updates)

    def _scatter(self, how: str, sparse_delta: Any) -> Any:
        if not hasattr(sparse_delta, "indices"):
            raise TypeError(
                "Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: "
                f"{sparse_delta}"
            )
        indices, values = to_array(sparse_delta.indices), to_array(sparse_delta.values, self.dtype)
        with _scattering(f"ResourceScatter{how.title()}"):
            _refuse_negative(indices)
            getattr(self.aliased, f"scatter_{how}")(indices, values)
        return self._unread()

    def _scatter_nd(self, how: str, indices: Any, updates: Any) -> Any:
        parts, new = to_array(indices), to_array(updates, self.dtype)
        with _scattering(f"ResourceScatterNd{how.title()}"):
            _refuse_negative(parts)
            getattr(self.aliased, f"scatter_nd_{how}")(parts, new)
        return self._unread()

    def __getitem__(self, key: Any) -> Any:
        return OPERATIONS["getitem"](self, key)

    def assign_part(self, key: Any, value: Any, name: str | None = None) -> Any:
        """Make `value`, or what it broadcasts to, the value of a part: `v[key].assign(value)`."""
        array = to_array(value, self.dtype)
        shape = self.aliased._cell.aval.shape
        index = OPERATIONS["index_of"](key, shape)
        with _scattering("ResourceStridedSliceAssign"):
            self.aliased[index].assign(array)
        return self._unread()


@contextmanager
def _scattering(op: str) -> Generator[None]:
    """Raise what TensorFlow raises where jaxvars refuses."""
    try:
        yield
    except (JaxvarsError, IndexError) as error:
        raise InvalidArgumentError(None, None, f"{error} [Op:{op}] name: ") from error


def _refuse_negative(indices: Array) -> None:
    """Refuse indices that are known and count from the end, as they do in jaxvars."""
    if not context.is_tracer(indices) and indices.size and np.asarray(indices).min() < 0:
        raise IndexError(f"index {np.asarray(indices).min()} is below 0")


def text_or(array: Array) -> Array:
    """Return an array as jaxvars keeps it: strings not as bytes."""
    if not _convert.is_text(array):
        return array
    if not array.size:
        return np.zeros(array.shape, np.str_)
    return np.vectorize(bytes.decode, otypes=[object])(array)
