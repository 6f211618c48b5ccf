"""`tf.TensorArray`, over `jaxvars.TensorArray`; over a `TensorList` for strings and odd shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.tensor_array import TensorArray as CoreArray
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.control.tensor_list import TensorList
from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import is_size, one_int, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array


@final
class TensorArray:
    """Tensors of one type, written one at a time.

    Args:
        dtype: of the elements.
        size: how many there are.
        dynamic_size: grow when an element is written behind the end: at places that are known.
        clear_after_read: refuse to read an element twice (eagerly); True when None.
        tensor_array_name: of no effect.
        handle: must be None.
        flow: of no effect.
        infer_shape: False for elements of different shapes.
        element_shape: the shape of each element, if it is known.
        colocate_with_first_write_call: of no effect.
        name: of no effect.

    Raises:
        ValueError: when there is no size.

    >>> from jaxvars import tf
    >>> ta = tf.TensorArray(tf.float32, size=2)
    >>> ta.write(0, 1.0).write(1, 2.0).stack().numpy().tolist()
    [1.0, 2.0]

    Differs from TensorFlow: strings, and elements of different shapes, are written at places that
    are known while a function is traced.
    """

    __slots__ = ("_array", "_cleared", "_clears", "_loose")

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if size is None:
            raise ValueError(
                "Size must be declared for TensorArrays when eager execution is enabled."
            )
        shape = None if element_shape is None else TensorShape(element_shape)
        known = None if shape is None or shape.rank is None else tuple(shape)
        self._array = _made(as_dtype(dtype), _known(size), known, bool(dynamic_size))
        self._loose = not infer_shape
        self._clears = clear_after_read is not False
        self._cleared: frozenset[int] = frozenset()

    # ------------------------------------------------------------ what it is
    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return as_dtype(self._array.dtype)

    @property
    def element_shape(self) -> TensorShape:
        """The shape of each element, as far as it is known."""
        return TensorShape(self._array.element_shape)

    @property
    def dynamic_size(self) -> bool:
        """Whether it grows."""
        return self._array.dynamic_size

    @property
    def handle(self) -> None:
        """None: there are no resources."""
        return

    @property
    def flow(self) -> Tensor:
        """A tensor without meaning."""
        return Tensor(jnp.zeros((), jnp.int32))

    def size(self, name: str | None = None) -> Tensor:
        """Return how many elements there are."""
        return Tensor(to_array(self._array.size()))

    # ------------------------------------------------------------ elements
    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write an element; return the array to go on with.

        Raises:
            OutOfRangeError: when the index is outside.
            InvalidArgumentError: when the element has another type.
            ValueError: when it has another shape.
        """
        place = to_array(index)
        if not context.is_tracer(place):
            place = self._inside(int(place), "write")
        return self._after(lambda array: array.write(place, self._element(value)))

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Return an element.

        Raises:
            OutOfRangeError: when the index is outside.
            InvalidArgumentError: when it was read before, unless `clear_after_read` is False.
        """
        place = to_array(index)
        if context.is_tracer(place):
            return Tensor(self._array.read(place))
        place = self._inside(int(place), "read")
        if place in self._cleared:
            raise refused(
                f"Could not read index {place} twice because it was cleared after a previous read "
                "(perhaps try setting clear_after_read = false?)"
            )
        if self._clears and executing_eagerly():
            self._cleared |= {place}
        return Tensor(self._array.read(place))

    def stack(self, name: str | None = None) -> Tensor:
        """Return all elements, in one tensor."""
        if not self._array.size() and self._array.element_shape is None:
            empty = np.zeros if isinstance(self._array, TensorList) else jnp.zeros
            return Tensor(empty((0,), self._array.dtype))
        return Tensor(self._array.stack())

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """Return some elements, in one tensor."""
        return Tensor(self._array.gather(to_array(indices)))

    def concat(self, name: str | None = None) -> Tensor:
        """Return all elements one after the other along their first axis."""
        return Tensor(self._array.concat())

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Write the rows of a tensor.

        Raises:
            ValueError: when there are more of them than places.
        """
        rows = self._element(value)
        size = self._array.size()
        if rows.ndim and len(rows) > size and not self.dynamic_size:
            raise ValueError(
                f"Cannot unstack {len(rows)} tensors into a TensorArray of static size {size}"
            )
        return self._after(lambda array: array.unstack(rows))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write the rows of a tensor at some places."""
        rows, places = self._element(value), to_array(indices)
        return self._after(lambda array: array.scatter(places, rows))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Write consecutive pieces of a tensor, all of the same length."""
        pieces = to_array(lengths)
        return self._after(lambda array: array.split(self._element(value), pieces))

    def identity(self) -> TensorArray:
        """Return it."""
        return self

    def close(self, name: str | None = None) -> None:
        """Do nothing."""

    # ------------------------------------------------------------ parts
    def _after(self, change: Callable[[Any], Any]) -> TensorArray:
        """Return the array after a change: itself eagerly, another one in a function."""
        try:
            new = change(self._array)
        except ShapeError as error:
            if not self._loose:
                raise ValueError(f"Incompatible shape for value: {error}") from None
            new = change(TensorList.of(self._array))
        except DtypeError as error:
            raise refused(str(error)) from None
        if executing_eagerly():
            self._array = new
            self._cleared = frozenset()
            return self
        return _around(new, self._clears, self._loose)

    def _element(self, value: Any) -> Array:
        if isinstance(value, Tensor) and value.dtype != self.dtype:
            raise refused(
                f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype "
                f"{dtype_of(value._array).name}"
            )
        return to_array(value, self.dtype)

    def _inside(self, index: int, what: str) -> int:
        size = self._array.size()
        if index < 0:
            verb = "Writing to" if what == "write" else "Reading from"
            raise OutOfRangeError(
                message=f"{verb} negative indices (index {index}) is not allowed."
            )
        if index < size or (what == "write" and self.dynamic_size):
            return index
        preposition = "to" if what == "write" else "from"
        resize = "is not resizeable and " if what == "write" else ""
        raise OutOfRangeError(
            message=f"Tried to {what} {preposition} index {index} but array {resize}size is: {size}"
        )

    def __repr__(self) -> str:
        shape = self.element_shape
        return f"<tf.TensorArray size={self._array.size()} shape={shape} dtype={self.dtype.name}>"


def _known(size: Any) -> Any:
    array = to_array(size)
    if context.is_tracer(array) and is_size(array):
        return one_int(array, "size")
    if context.is_tracer(array):
        raise refused(
            "The size of a TensorArray must be known while a function is traced, since XLA "
            "compiles for fixed sizes. Take it from a shape, or give the largest."
        )
    return int(array)


def _made(dtype: DType, size: int, shape: tuple[int | None, ...] | None, dynamic: bool) -> Any:
    if dtype.is_string:
        return TensorList(np.dtype(object), [None] * size, shape, dynamic_size=dynamic)
    return CoreArray(dtype.dtype, size, element_shape=shape, dynamic_size=dynamic)


def _around(array: Any, clears: bool, loose: bool) -> TensorArray:
    made = object.__new__(TensorArray)
    made._array, made._clears, made._loose, made._cleared = array, clears, loose, frozenset()
    return made


def _unflatten(aux: tuple[bool, bool], children: Any) -> TensorArray:
    return _around(children[0], *aux)


jax.tree_util.register_pytree_node(
    TensorArray, lambda ta: ((ta._array,), (ta._clears, ta._loose)), _unflatten
)
