"""`tf.TensorArray`, over `jaxvars.TensorArray`; over a `TensorList` for strings and odd shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.tensor_array import TensorArray as CoreArray
from jaxvars.errors import ControlFlowError, DtypeError, ShapeError
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.errors import OutOfRangeError
from jaxvars.tf.tensors.convert import dtype_of, is_text, to_array
from jaxvars.tf.tensors.dtypes import DType, any_dtype, as_dtype
from jaxvars.tf.tensors.handles import is_handles, lift
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import is_size, one_int, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value


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
        ValueError: without a size.

    >>> from jaxvars import tf
    >>> ta = tf.TensorArray(tf.float32, size=2)
    >>> ta.write(0, 1.0).write(1, 2.0).stack().numpy().tolist()
    [1.0, 2.0]

    Differs from TensorFlow: strings, and elements of different shapes, are written at places that
    are known while a function is traced, and there one grows only where the number of writes is
    known, 256 at most: not in a `while`, nor after a `break`. No bound is exact there: give the
    largest size, and take `ta.stack()[:n]` outside.
    """

    __slots__ = ("_array", "_cleared", "_clears", "_loose")

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None,
        clear_after_read: bool | None = None, tensor_array_name: str | None = None,
        handle: Any = None, flow: Any = None, infer_shape: bool = True, element_shape: Any = None,
        colocate_with_first_write_call: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        if size is None:
            raise ValueError(
                "Size must be declared for TensorArrays when eager execution is enabled."
            )
        shape = None if element_shape is None else TensorShape(element_shape)
        known = None if shape is None or shape.rank is None else tuple(shape)
        self._array = _make_array(
            as_dtype(dtype), _require_known_size(size), known, bool(dynamic_size)
        )
        self._loose = None if infer_shape else TensorShape(known)
        self._clears = clear_after_read is not False
        self._cleared: frozenset[int] = frozenset()

    # ------------------------------------------------------------ what it is
    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return any_dtype(self._array.dtype)

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
            place = self._check_index(int(place), "write")
        element = self._check_element(value)
        if self._loose is not None and not self._loose.is_compatible_with(element.shape):
            raise ValueError(
                f"Incompatible shape for value ({element.shape}), expected ({self._loose})"
            )
        return self._apply(lambda array: array.write(place, element))

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Return an element.

        Raises:
            OutOfRangeError: when the index is outside.
            InvalidArgumentError: when it was read before, unless `clear_after_read` is False.
        """
        place = to_array(index)
        if context.is_tracer(place):
            return Tensor(self._array.read(place))
        place = self._check_index(int(place), "read")
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
        rows = self._check_element(value)
        size = self._array.size()
        if rows.ndim and len(rows) > size and not self.dynamic_size:
            raise ValueError(
                f"Cannot unstack {len(rows)} tensors into a TensorArray of static size {size}"
            )
        return self._apply(lambda array: array.unstack(rows))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write the rows of a tensor at some places."""
        rows, places = self._check_element(value), to_array(indices)
        return self._apply(lambda array: array.scatter(places, rows))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Write consecutive pieces of a tensor, all of the same length.

        Raises:
            InvalidArgumentError: when they are not all of the tensor, or not all elements.
        """
        pieces, whole = to_array(lengths), self._check_element(value)
        _check_pieces(pieces, whole, None if self.dynamic_size else self._array.size())
        return self._apply(lambda array: array.split(whole, pieces))

    def identity(self) -> TensorArray:
        """Return it."""
        return self

    def close(self, name: str | None = None) -> None:
        """Do nothing."""

    # ------------------------------------------------------------ parts
    def _apply(self, change: Callable[[Any], Any]) -> TensorArray:
        """Return the array after a change: itself eagerly, another one in a function."""
        try:
            new = change(self._array)
        except ShapeError as error:
            if self._loose is None:
                raise ValueError(f"Incompatible shape for value: {error}") from None
            new = change(TensorList.of(self._array))
        except DtypeError as error:
            raise refused(str(error)) from None
        except ControlFlowError:
            if not self.dynamic_size:
                raise
            raise ControlFlowError(_GROWS) from None
        if executing_eagerly():
            self._array = new
            self._cleared = frozenset()
            return self
        return _wrap_array(new, self._clears, self._loose)

    def _check_element(self, value: Any) -> Array:
        if isinstance(value, Tensor) and value.dtype != self.dtype:
            raise refused(
                f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype "
                f"{dtype_of(value._array).name}"
            )
        return to_array(value, self.dtype)

    def _check_index(self, index: int, what: str) -> int:
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


_GROWS = (
    "A TensorArray with dynamic_size=True is written at an index that is known when the function "
    "runs: it might have to grow, but XLA compiles for fixed sizes. Give the largest instead:\n"
    "    ta = tf.TensorArray(tf.float32, size=largest)\n"
    "    ...  # n elements are written, the others stay zeros\n"
    "    is_written = tf.sequence_mask(n, largest)\n"
    "or return ta.stack() and n, and take ta.stack()[:n] outside of the function."
)


def _check_pieces(lengths: Array, whole: Array, size: int | None) -> None:
    if lengths.ndim != 1:
        raise refused(f"Expected lengths to be a vector, received shape: {list(lengths.shape)}")
    if not whole.ndim:
        raise refused("Expected value to be at least a vector, but received shape: []")
    total = None if context.is_tracer(lengths) else int(np.asarray(lengths).sum())
    if total is not None and type(whole.shape[0]) is int and total != whole.shape[0]:
        raise refused(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{total} and value's shape is: {list(whole.shape)}"
        )
    if size is not None and size != lengths.shape[0]:
        raise refused(
            f"TensorArray's size is not equal to the size of lengths ({size} vs. "
            f"{lengths.shape[0]}), and the TensorArray is not marked as dynamically resizeable"
        )


def _require_known_size(size: Any) -> Any:
    array = to_array(size)
    if context.is_tracer(array) and is_size(array):
        return one_int(array, "size")
    if context.is_tracer(array):
        raise refused(
            "The size of a TensorArray must be known while a function is traced, since XLA "
            "compiles for fixed sizes. Take it from a shape, or give the largest, and write less:\n"
            "    ta = tf.TensorArray(tf.float32, size=largest)"
        )
    return int(array)


def _make_array(
    dtype: DType, size: int, shape: tuple[int | None, ...] | None, dynamic: bool
) -> Any:
    if dtype.is_string:
        return TensorList(np.dtype(object), (None,) * size, shape, dynamic)
    return CoreArray(dtype.dtype, size, element_shape=shape, dynamic_size=dynamic)


def _wrap_array(array: Any, clears: bool, loose: TensorShape | None) -> TensorArray:
    made = object.__new__(TensorArray)
    made._array, made._clears, made._loose, made._cleared = array, clears, loose, frozenset()
    return made


jax.tree_util.register_pytree_node(
    TensorArray,
    lambda ta: ((ta._array,), (ta._clears, ta._loose)),
    lambda aux, children: _wrap_array(children[0], *aux),
)


# ---------------------------------------------------------------- strings, and other shapes
@final
@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, slots=True)
class TensorList:
    """Elements of one dtype, each of its own shape; None for one that was not written.

    They are strings, or of other shapes than a `jaxvars.TensorArray` keeps; they are written and
    read at places that are known: eagerly, and in Python's loops. A write returns a new list.
    """

    dtype: Any
    elements: tuple[Array | None, ...]
    element_shape: tuple[int | None, ...] | None
    dynamic_size: bool

    @staticmethod
    def of(array: CoreArray) -> TensorList:
        """Return the elements of an array, to be joined by some of other shapes."""
        known = array.element_shape is not None
        elements = tuple(array.read(i) if known else None for i in range(array.size()))
        return TensorList(array.dtype, elements, None, array.dynamic_size)

    def size(self) -> int:
        """Return how many elements there are, written or not."""
        return len(self.elements)

    def write(self, place: Any, value: Value) -> TensorList:
        """Return a list with another element."""
        index = _require_known_index(place)
        elements = [*self.elements, *[None] * (index + 1 - self.size())]
        elements[index] = value
        return replace(self, elements=tuple(elements))

    def read(self, place: Any) -> Array:
        """Return an element; one that was not written is zeros, of the shape of the others."""
        element = self.elements[_require_known_index(place)]
        return self._zeros() if element is None else element

    def _zeros(self) -> Value:
        shapes: set[Any] = {np.shape(x) for x in self.elements if x is not None}
        if self.element_shape is not None and None not in self.element_shape:
            shapes = {self.element_shape}
        if len(shapes) != 1:
            raise refused("An element was not written, and its shape is not known.")
        (shape,) = shapes
        if self.dtype == np.dtype(object):
            return np.full(shape, b"", object)
        return jnp.zeros(shape, self.dtype)

    def _all(self, places: Sequence[Any] | None = None) -> list[Array]:
        return [self.read(i) for i in (range(self.size()) if places is None else places)]

    def stack(self) -> Array:
        """Return all elements along a new first axis."""
        return _join_elements(np.stack, jnp.stack, self._all())

    def gather(self, places: Array) -> Array:
        """Return some elements along a new first axis."""
        return _join_elements(np.stack, jnp.stack, self._all(_require_known_indices(places)))

    def concat(self) -> Array:
        """Return all elements one after another along their first axis."""
        parts = self._all()
        scalar = next((i for i, part in enumerate(parts) if not np.ndim(part)), None)
        if scalar is not None:
            raise refused(
                f"Concat saw a scalar shape at index {scalar} but requires at least vectors"
            )
        return _join_elements(np.concatenate, jnp.concatenate, parts)

    def unstack(self, rows: Array) -> TensorList:
        """Return a list with the rows of an array as its first elements."""
        return self.scatter(range(len(rows)), rows)

    def scatter(self, places: Any, rows: Value) -> TensorList:
        """Return a list with the rows of an array at some places."""
        made = self
        for place, row in zip(_require_known_indices(places), rows, strict=True):
            made = made.write(place, np.asarray(row, object) if is_text(rows) else row)
        return made

    def split(self, value: Array, lengths: Any) -> TensorList:
        """Return a list of consecutive pieces of an array."""
        ends = np.cumsum(_require_known_indices(lengths))
        starts = [0, *ends[:-1]]
        pieces = [value[start:end] for start, end in zip(starts, ends, strict=True)]
        return replace(self, elements=tuple(pieces))

    def tree_flatten(self) -> tuple[Any, Any]:
        """Return the elements, and what else it is; strings are not arrays."""
        if self.dtype == np.dtype(object):
            return (), self
        return (self.elements,), replace(self, elements=())

    @staticmethod
    def tree_unflatten(form: TensorList, children: Any) -> TensorList:
        """Return a list of elements."""
        return replace(form, elements=children[0]) if children else form


def _require_known_index(place: Any) -> int:
    if context.is_tracer(place):
        raise refused(
            "A TensorArray of strings, or of elements of different shapes, takes indices that are "
            "known while a function is traced: XLA's programs have numbers of fixed shapes."
        )
    return int(place)


def _require_known_indices(places: Any) -> list[int]:
    if context.is_tracer(places):
        _require_known_index(places)
    return [int(place) for place in np.asarray(places)]


def _join_elements(
    on_host: Callable[..., Any], on_device: Callable[..., Any], parts: Sequence[Array]
) -> Array:
    """Return elements joined to one; refuse shapes that do not go together."""
    try:
        parts = list(map(lift, parts)) if any(map(is_handles, parts)) else parts
        return (on_host if any(map(is_text, parts)) else on_device)(parts)
    except (TypeError, ValueError) as error:
        shapes = [list(np.shape(part)) for part in parts]
        raise refused(
            f"TensorList contains uninitialized or unequal elements, of shapes {shapes}"
        ) from error
