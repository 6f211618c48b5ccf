"""`TensorArray`: arrays of one shape, written one at a time and stacked at the end.

    ta = jv.TensorArray(jnp.float32, size=n)
    for i in range(n):
        ta = ta.write(i, f(i))
    y = ta.stack()

It is a value, a pytree: a write returns a new one. Elements written at indices that are known
are kept beside the buffer until it is needed, so that a Python loop costs no copies; a write
at a traced index is written to the buffer, as one operation that XLA does in place.

Rules this file keeps:
- all elements have one shape and dtype; an element that was never written is zeros;
- as a pytree it has one leaf, the buffer of all elements; none until the element shape is known;
- nothing that was computed is kept in a TensorArray for later: it may be read in another trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.elements import (
    Shape,
    element_of,
    known_size,
    nearest,
    place_of,
    places_of,
    put,
    row,
    rows_of,
)
from jaxvars.control.index_checks import check_inside
from jaxvars.display.repr import text_repr
from jaxvars.errors import ControlFlowError, NotATensorError, ShapeError
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.dtypes import as_dtype, is_string
from jaxvars.tensors.tensor import to_tensor
from jaxvars.tracing import context
from jaxvars.tracing.guards import ask
from jaxvars.typing import Array


class _Form(NamedTuple):
    """What a TensorArray is, without its values: what must not change in a loop."""

    dtype: Any
    size: int
    element_shape: Shape | None
    dynamic_size: bool


@final
@jax.tree_util.register_pytree_with_keys_class
class TensorArray:
    """Arrays of one shape, written one at a time: for loops that collect what they compute.

    A write returns a new TensorArray; the one written to stays as it is. It may be carried
    through `jv.while_loop`, `scan`, `cond` and autograph's loops, passed to compiled functions and
    returned from them; gradients flow through it.

    Args:
        dtype: of the elements.
        size: how many elements there are.
        element_shape: of each element, when it is known; None for a size that is not. Otherwise
            it is the shape of the first element written.
        dynamic_size: grow when an element is written behind the end. Only at places that are
            known: eagerly, and in Python loops in compiled code.

    Raises:
        TypeError: when the size is not a whole number that is known.
        ValueError: when it is negative.
        NotATensorError: when the dtype is string.

    An element that was never written is zeros. One that is written again is replaced. Outside of
    the array (there are no negative indices), an index that is known raises IndexError; in
    compiled code, a traced one reads the nearest element and writes nothing, unless
    `jv.debugging.check_indices()` makes the step fail.

    Example:
        >>> import jaxvars as jv
        >>> @jv.compile
        ... def powers(x):
        ...     def body(i, ta):
        ...         return ta.write(i, x**i)
        ...
        ...     ta = jv.TensorArray(jnp.float32, size=4, element_shape=())
        ...     return jax.lax.fori_loop(0, 4, body, ta).stack()
        >>> powers(2.0).tolist()
        [1.0, 2.0, 4.0, 8.0]

    Differs from TensorFlow: `write` never changes the TensorArray it is called on (eagerly,
    TensorFlow's does); `size()` is a Python number; `split` takes equal lengths only; the size
    does not grow in staged loops, since XLA's sizes are fixed.
    """

    __slots__ = ("_beside", "_buffer", "_form")

    def __init__(
        self,
        dtype: Any,
        size: int = 0,
        *,
        element_shape: Sequence[int | None] | None = None,
        dynamic_size: bool = False,
    ) -> None:
        dtype = as_dtype(dtype)
        if is_string(dtype):
            raise NotATensorError("A TensorArray holds numbers. Keep strings in a Python list.")
        shape = None if element_shape is None else tuple(element_shape)
        self._form = _Form(dtype, known_size(size), shape, bool(dynamic_size))
        self._buffer: tuple[Array, ...] = ()  # one, or none yet
        self._beside: Mapping[int, Array] = {}

    # ------------------------------------------------------------ what it is
    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self._form.dtype

    @property
    def element_shape(self) -> Shape | None:
        """The shape of each element; None while it is not known."""
        return self._form.element_shape

    @property
    def dynamic_size(self) -> bool:
        """Whether it grows."""
        return self._form.dynamic_size

    def size(self) -> int:
        """Return how many elements there are, written or not."""
        return self._form.size

    def __rich_repr__(self) -> Iterator[Any]:
        yield str(self.dtype)
        yield "size", self.size()
        yield "element_shape", self.element_shape, None
        yield "dynamic_size", self.dynamic_size, False

    def __repr__(self) -> str:
        return text_repr(self)

    # ------------------------------------------------------------ one element
    def write(self, index: Any, value: Any) -> TensorArray:
        """Return a TensorArray with one element replaced.

        Args:
            index: which one: a whole number, or a traced scalar.
            value: of the dtype and the element shape; Python numbers are converted.

        Raises:
            IndexError: when the index is known and outside.
            ShapeError: when the element has another shape than the others.
            DtypeError: when it has another dtype.
            ControlFlowError: when the index is traced and the size dynamic.

        >>> ta = TensorArray(jnp.float32, size=2)
        >>> ta.write(0, [1.0, 2.0]).stack().tolist()
        [[1.0, 2.0], [0.0, 0.0]]
        """
        index = place_of(index)
        element = element_of(value, index, self.dtype, self.element_shape)
        form = self._form._replace(element_shape=element.shape)
        if isinstance(index, int):
            size = self._size_with(index)
            return _make(form._replace(size=size), self._buffer, {**self._beside, index: element})
        self._refuse_growth()
        return _make(form, (put(self._whole(element.shape), index, element),), {})

    def read(self, index: Any) -> Array:
        """Return one element.

        Args:
            index: which one: a whole number, or a traced scalar.

        Raises:
            IndexError: when the index is known and outside.
            ValueError: when nothing was written and the element shape is not known.
        """
        index, shape = place_of(index), self._require_shape()
        if not isinstance(index, int):
            return row(self._whole(shape), index)
        self._check_inside(index)
        if index in self._beside:
            return self._beside[index]
        return self._base(shape)[index] if self._buffer else jnp.zeros(shape, self.dtype)

    # ------------------------------------------------------------ all elements
    def stack(self) -> Array:
        """Return all elements, as one array of shape [size, *element_shape]."""
        return self._whole(self._require_shape())

    def gather(self, indices: Any) -> Array:
        """Return some elements, as one array of shape [len(indices), *element_shape].

        Args:
            indices: whole numbers, of shape [n].

        Raises:
            IndexError: when an index is known and outside, or there are no elements.
        """
        places, whole = places_of(indices), self.stack()
        if isinstance(places, list):
            for index in places:
                self._check_inside(index)
            return whole[np.asarray(places, int)]
        return whole[nearest(whole, places)]

    def concat(self) -> Array:
        """Return all elements one after the other along their first axis.

        Raises:
            ShapeError: when the elements are scalars.
        """
        whole = self.stack()
        if whole.ndim < 2:
            raise ShapeError("The elements of this TensorArray are scalars: use stack().")
        return whole.reshape(whole.shape[0] * whole.shape[1], *whole.shape[2:])

    def unstack(self, value: Any) -> TensorArray:
        """Return a TensorArray of the rows of an array.

        Args:
            value: of shape [n, *element_shape]; n is the new size, and not larger than the old
                one, unless that is dynamic.

        Raises:
            ShapeError: when it is a scalar, has too many rows, or rows of another shape.
            DtypeError: when it has another dtype.
        """
        rows = rows_of(value, self.dtype, self.element_shape)
        if len(rows) > self.size() and not self.dynamic_size:
            raise ShapeError(
                f"{len(rows)} elements do not fit into a TensorArray of size {self.size()}: make "
                f"it with size={len(rows)}, or dynamic_size=True."
            )
        form = self._form._replace(size=len(rows), element_shape=rows.shape[1:])
        return _make(form, (rows,), {})

    def scatter(self, indices: Any, value: Any) -> TensorArray:
        """Return a TensorArray with some elements replaced by the rows of an array.

        Args:
            indices: whole numbers, of shape [n]; of several equal ones the last wins where they
                are known, and any where they are traced.
            value: of shape [n, *element_shape].

        Raises:
            IndexError: when an index is known and outside.
            ShapeError: when there are not as many rows as indices, or rows of another shape.
            DtypeError: when it has another dtype.
            ControlFlowError: when the indices are traced and the size dynamic.
        """
        rows, places = rows_of(value, self.dtype, self.element_shape), places_of(indices)
        if len(rows) != len(places):
            raise ShapeError(f"There are {len(places)} indices, but {len(rows)} elements.")
        if isinstance(places, list):
            written = self
            for index, row in zip(places, rows, strict=True):
                written = written.write(index, row)
            return written
        self._refuse_growth()
        check_inside(places, self.size(), "a TensorArray")
        form = self._form._replace(element_shape=rows.shape[1:])
        places = jnp.where(places < 0, self.size(), places)  # -1 would be the last one
        buffer = self._whole(rows.shape[1:]).at[places].set(rows, mode="drop")
        return _make(form, (buffer,), {})

    def split(self, value: Any, lengths: Any) -> TensorArray:
        """Return a TensorArray of consecutive pieces of an array: the inverse of `concat`.

        Args:
            value: of shape [sum of lengths, ...].
            lengths: how long each piece is: all the same, and known.

        Raises:
            ShapeError: when the lengths are not equal, or do not add up.
            TypeError: when the lengths are traced.
        """
        if context.is_tracer(lengths):
            raise TypeError("The lengths for split are traced: give them as Python numbers.")
        pieces = np.asarray(lengths).ravel().tolist()
        array = to_tensor(unwrap(value), what="the value to split")
        if len(set(pieces)) > 1:
            raise ShapeError(
                f"The lengths {pieces} are not equal, but all elements of a TensorArray have one "
                "shape. Pad them to the longest."
            )
        if array.ndim == 0 or sum(pieces) != len(array):
            raise ShapeError(f"The lengths {pieces} do not add up for the shape {array.shape}.")
        return self.unstack(array.reshape(len(pieces), *pieces[:1], *array.shape[1:]))

    def identity(self) -> TensorArray:
        """Return this TensorArray: it never changes."""
        return self

    # ------------------------------------------------------------ as a pytree
    def tree_flatten(self) -> tuple[tuple[Array, ...], _Form]:
        """Return the buffer, if the element shape is known, and the form."""
        shape = self.element_shape
        if self._beside or not self._buffer:
            return (() if shape is None or None in shape else (self._whole(shape),)), self._form
        return self._buffer, self._form  # whatever it is: JAX puts other things there

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Array]], _Form]:
        """Return the buffer with a key, if the element shape is known, and the form."""
        children, form = self.tree_flatten()
        return [(jax.tree_util.GetAttrKey("elements"), child) for child in children], form

    @classmethod
    def tree_unflatten(cls, form: _Form, children: Sequence[Array]) -> TensorArray:
        """Return a TensorArray around what need not be an array."""
        return _make(form, tuple(children), {})

    def __carry_like__(self, other: object) -> TensorArray:
        """Return what a loop may begin with that goes on with `other`: this, with its shape."""
        form = other._form if isinstance(other, TensorArray) else None
        if form is None or form._replace(element_shape=self.element_shape) != self._form:
            raise ValueError(
                f"A loop that begins with {self!r} goes on with {other!r}: a TensorArray keeps its "
                "dtype and size."
            )
        shape = form.element_shape
        if shape is None or None in shape:
            return self
        return _make(form, (self._whole(shape),), {})

    # ------------------------------------------------------------ values
    def _whole(self, shape: Shape) -> Array:
        """Return all elements, of a shape that is known."""
        ask("A TensorArray is read")
        if self._beside and len(self._beside) == self.size():
            return jnp.stack([self._beside[i] for i in range(self.size())])
        base = self._base(shape)
        if not self._beside:
            return base
        rows = jnp.stack(list(self._beside.values()))
        return base.at[np.asarray(list(self._beside))].set(rows, unique_indices=True)

    def _base(self, shape: Shape) -> Array:
        """Return the buffer, in its full size."""
        if not self._buffer:
            return jnp.zeros((self.size(), *shape), self.dtype)
        (buffer,) = self._buffer
        if jnp.shape(buffer)[1:] != shape:
            raise ValueError(
                f"This TensorArray has elements of shape {shape}, but holds an array of shape "
                f"{jnp.shape(buffer)}: it has come out of a vmap or scan, which gave it one more "
                "axis. Return ta.stack() from the function instead."
            )
        missing = self.size() - buffer.shape[0]
        return jnp.pad(buffer, [(0, missing)] + [(0, 0)] * len(shape)) if missing else buffer

    def _require_shape(self) -> tuple[int, ...]:
        shape = self.element_shape
        if shape is None or None in shape:
            raise ValueError(
                f"Nothing was written to this TensorArray of size {self.size()}, so the shape of "
                "its elements is not known. Say what it is, jv.TensorArray(..., "
                "element_shape=(3,)); or, if you did write, keep what that returned: "
                "ta = ta.write(i, x)."
            )
        return tuple(size for size in shape if size is not None)

    # ------------------------------------------------------------ what is read
    def _check_inside(self, index: int, cure: str = "") -> None:
        if not 0 <= index < self.size():
            hint = " There are no negative indices." if index < 0 else cure
            raise IndexError(
                f"Index {index} is outside of a TensorArray of size {self.size()}.{hint}"
            )

    def _size_with(self, index: int) -> int:
        """Return the size that is needed to write at an index."""
        if index < 0 or not self.dynamic_size:
            self._check_inside(index, f" Make it with size={index + 1}, or dynamic_size=True.")
        return max(self.size(), index + 1)

    def _refuse_growth(self) -> None:
        if self.dynamic_size:
            raise ControlFlowError(
                "A TensorArray with dynamic_size=True is written at a traced index: it might have "
                "to grow, but sizes are fixed in compiled code. Give the largest size instead:\n"
                "    ta = jv.TensorArray(dtype, size=upper_bound)\n"
                "    ...\n"
                "    y = ta.stack()[:n]    # n elements were written: outside of compiled code"
            )


def _make(form: _Form, buffer: tuple[Array, ...], beside: Mapping[int, Array]) -> TensorArray:
    made = object.__new__(TensorArray)
    made._form, made._buffer, made._beside = form, buffer, beside
    return made
