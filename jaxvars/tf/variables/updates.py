"""What changes a `tf.Variable`: `assign`, `scatter_add`, `v[0].assign`, ...

Rules this file keeps:
- what jaxvars refuses is raised as what TensorFlow raises; a value that is refused changes nothing;
- each gives the variable back, so that calls can be chained.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from jaxvars.core.checks import require
from jaxvars.core.variable import NOTHING
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import JaxvarsError
from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import DType
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import REACHED, refused
from jaxvars.tf.tensors.tensor import OPERATIONS, Tensor, TensorLike
from jaxvars.tf.variables.scatter import SCATTERS
from jaxvars.tf.variables.strings import (
    is_on_host,
    part_shape,
    stage_assign,
    to_core_strings,
    with_part,
)
from jaxvars.tracing import context
from jaxvars.typing import Array, Value


def _make_refusal(operator: str, cure: str) -> Callable[[Updates, Any], Any]:
    def refuse(self: Updates, other: Any) -> Any:
        raise RuntimeError(
            f"`variable {operator}= value` with `tf.Variable`s is not supported. Use "
            f"`variable.{cure}` to modify the variable, or `out = variable {operator} value` if "
            "you need to get a new output Tensor."
        )

    return refuse


def _name_method(method: Any, name: str, doc: str) -> Any:
    method.__name__, method.__qualname__, method.__doc__ = name, f"Updates.{name}", doc
    return method


def _make_scatter(how: str, doc: str) -> Callable[..., Any]:
    """Return the method that changes rows by those of `tf.IndexedSlices`."""

    def scatter(
        self: Updates, sparse_delta: Any, use_locking: bool = False, name: Any = None
    ) -> Any:
        if not hasattr(sparse_delta, "indices"):
            raise TypeError(
                "Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: "
                f"{sparse_delta}"
            )
        parts = sparse_delta.indices, sparse_delta.values
        return self._scatter(f"scatter_{how}", f"ResourceScatter{how.title()}", *parts)

    return _name_method(scatter, f"scatter_{how}", doc)


def _make_scatter_nd(how: str, doc: str) -> Callable[..., Any]:
    """Return the method that changes parts by index."""

    def scatter(self: Updates, indices: Any, updates: Any, name: str | None = None) -> Any:
        op = f"ResourceScatterNd{how.title()}"
        return self._scatter(f"scatter_nd_{how}", op, indices, updates)

    return _name_method(scatter, f"scatter_nd_{how}", doc)


_STRING_INDICES: dict[str, Callable[[Value], Any]] = {
    "scatter_update": lambda places: (places,),
    "scatter_nd_update": lambda places: tuple(places[..., i] for i in range(places.shape[-1])),
}
"""What changes parts of strings, and NumPy's indices for it."""


class Updates(TensorLike):
    """The methods of `tf.Variable` that change it."""

    __slots__ = ()

    __iadd__ = _make_refusal("+", "assign_add(value)")
    __isub__ = _make_refusal("-", "assign_sub(value)")
    __imul__ = _make_refusal("*", "assign(variable * value)")
    __itruediv__ = _make_refusal("/", "assign(variable / value)")
    __ipow__ = _make_refusal("**", "assign(variable ** value)")

    @property
    @abstractmethod
    def aliased(self) -> CoreVariable: ...

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def dtype(self) -> DType: ...

    @abstractmethod
    def value(self) -> Tensor: ...

    @abstractmethod
    def _kept(self, array: Array) -> Array:
        """Return what is given in the type of what is kept."""

    @abstractmethod
    def _unread(self) -> Self: ...

    def __dir__(self) -> list[str]:  # for completion, in which 13 of them hide the others
        return [name for name in super().__dir__() if "scatter_" not in name]

    # ------------------------------------------------------------ writing
    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Self:
        """Make `value` the value.

        Raises:
            ValueError: when its shape is not the variable's, or is not compatible with it where
                that has unknown sizes; or when it is a tensor of another type.
            TypeError: when it cannot be converted to the type.
        """
        array = to_array(value, self.dtype)
        if not TensorShape(self.shape).is_compatible_with(array.shape):
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable "
                f"shape {TensorShape(self.shape)}, and the assigned value shape "
                f"{TensorShape(array.shape)} are incompatible."
            )
        if is_on_host(self.aliased):
            stage_assign(self.aliased, array)
        else:
            self.aliased.assign(to_core_strings(self._kept(array)))
        return self._unread() if read_value else NOTHING

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Self:  # fmt: skip
        """Add `delta` to the value."""
        self.aliased.assign_add(self._delta(delta, "AssignAddVariableOp"))
        return self._unread() if read_value else NOTHING

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Self:  # fmt: skip
        """Subtract `delta` from the value."""
        self.aliased.assign_sub(self._delta(delta, "AssignSubVariableOp"))
        return self._unread() if read_value else NOTHING

    def load(self, value: Any, session: Any = None) -> None:
        """Make `value` the value."""
        self.assign(value)

    def count_up_to(self, limit: int) -> Tensor:
        """Add 1, and return the value before.

        Raises:
            OutOfRangeError: when it has reached `limit`; from a compiled function, when it is run.
            InvalidArgumentError: when it is not a scalar.
        """
        before = self.value()
        if before.shape.rank:
            raise refused(f"input is not a scalar: {before.shape} [Op:ResourceCountUpTo] name: ")
        is_below = before._array < int(limit)
        if context.is_tracer(is_below):
            require(is_below, f"{REACHED}{limit}")
        elif not is_below:
            raise OutOfRangeError(None, None, f"{REACHED}{limit} [Op:ResourceCountUpTo] name: ")
        self.assign_add(1)
        return before

    def _delta(self, delta: Any, op: str) -> Array:
        """Return what is added, of the variable's shape."""
        array = to_array(delta, self.dtype)
        shape = self.aliased._cell.aval.shape
        if self.dtype.is_string:
            raise refused(
                f"Variable '{self.name}' holds strings: only assign can change it. [Op:{op}]"
            )
        if array.shape != shape:
            raise refused(
                f"Cannot update variable with shape {list(shape)} using a Tensor with shape "
                f"{list(array.shape)}, shapes must be equal. [Op:{op}] name: "
            )
        return self._kept(array)

    scatter_update = _make_scatter("update", "Replace rows by those of `tf.IndexedSlices`.")
    scatter_add = _make_scatter("add", "Add `tf.IndexedSlices`.")
    scatter_sub = _make_scatter("sub", "Subtract `tf.IndexedSlices`.")
    scatter_mul = _make_scatter("mul", "Multiply by `tf.IndexedSlices`.")
    scatter_div = _make_scatter("div", "Divide by `tf.IndexedSlices`.")
    scatter_max = _make_scatter("max", "Take the larger of rows and `tf.IndexedSlices`.")
    scatter_min = _make_scatter("min", "Take the smaller of rows and `tf.IndexedSlices`.")

    scatter_nd_update = _make_scatter_nd("update", "Replace parts by index.")
    scatter_nd_add = _make_scatter_nd("add", "Add to parts by index.")
    scatter_nd_sub = _make_scatter_nd("sub", "Subtract from parts by index.")
    scatter_nd_max = _make_scatter_nd("max", "Take the larger of parts and updates.")
    scatter_nd_min = _make_scatter_nd("min", "Take the smaller of parts and updates.")

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: Any = None
    ) -> Any:
        """Replace rows batch by batch by those of `tf.IndexedSlices`."""
        return self._scatter(
            "batch_scatter_update",
            "batch_scatter_update",
            sparse_delta.indices,
            sparse_delta.values,
        )

    def _scatter(self, method: str, op: str, indices: Any, values: Any) -> Any:
        places, new = to_array(indices), to_array(values, self.dtype)
        with _translate_errors(op):
            if not context.is_tracer(places) and places.size and np.asarray(places).min() < 0:
                raise IndexError(f"index {np.asarray(places).min()} is below 0")  # not from the end
            if self.dtype.is_string and method in _STRING_INDICES:
                known = places if context.is_tracer(places) else np.asarray(places)
                self._put_strings(_STRING_INDICES[method](known), new, is_whole=True)
            else:
                SCATTERS[method](self.aliased, places, new)
        return self._unread()

    def _put_strings(self, index: Any, new: Array, *, is_whole: bool = False) -> None:
        """Replace a part of the strings, by the whole of others or by what these broadcast to."""
        old = to_array(self)
        shape = part_shape(old.shape, index)
        pairs = zip(new.shape[::-1], shape[::-1], strict=False)
        spreads = not is_whole and new.ndim <= len(shape) and all(a in (1, b) for a, b in pairs)
        if new.shape != shape and not spreads:
            raise IndexError(f"the updates have shape {new.shape}, and the part has {shape}")
        self.assign(Tensor(with_part(old, index, new)))

    def assign_part(self, key: Any, value: Any, name: str | None = None) -> Any:
        """Make `value`, or what it broadcasts to, the value of a part: `v[key].assign(value)`."""
        array = to_array(value, self.dtype)
        shape = self.aliased._cell.aval.shape
        index = OPERATIONS["index_of"](key, shape)
        with _translate_errors("ResourceStridedSliceAssign"):
            if self.dtype.is_string:
                self._put_strings(index, array)
            else:
                self.aliased[index].assign(array)
        return self._unread()


@contextmanager
def _translate_errors(op: str) -> Generator[None]:
    """Raise what TensorFlow raises where jaxvars refuses."""
    try:
        yield
    except (JaxvarsError, IndexError) as error:
        raise refused(f"{error} [Op:{op}] name: ") from error
