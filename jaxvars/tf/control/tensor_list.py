"""What a `tf.TensorArray` keeps that `jaxvars.TensorArray` does not: strings, other shapes.

Rules this file keeps:
- a write returns a new one;
- an element is written and read at places that are known: eagerly, and in Python's loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.tensor_array import TensorArray as CoreArray
from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.static import refused
from jaxvars.tracing import context
from jaxvars.typing import Array


@final
@jax.tree_util.register_pytree_node_class
class TensorList:
    """Elements of one dtype, each of its own shape; None for one that was not written."""

    __slots__ = ("_elements", "dtype", "dynamic_size", "element_shape")

    def __init__(
        self,
        dtype: Any,
        elements: Sequence[Array | None],
        element_shape: tuple[int | None, ...] | None,
        *,
        dynamic_size: bool,
    ) -> None:
        self.dtype, self._elements = dtype, tuple(elements)
        self.element_shape, self.dynamic_size = element_shape, dynamic_size

    @classmethod
    def of(cls, array: CoreArray) -> TensorList:
        """Return the elements of an array, to be joined by some of other shapes."""
        known = array.element_shape is not None
        elements = [array.read(i) if known else None for i in range(array.size())]
        return cls(array.dtype, elements, None, dynamic_size=array.dynamic_size)

    def _with(self, elements: Sequence[Array | None]) -> TensorList:
        return TensorList(self.dtype, elements, self.element_shape, dynamic_size=self.dynamic_size)

    def size(self) -> int:
        """Return how many elements there are, written or not."""
        return len(self._elements)

    # ------------------------------------------------------------ elements
    def write(self, place: Any, value: Array) -> TensorList:
        """Return a list with another element."""
        index = _known(place)
        missing = [None] * (index + 1 - self.size())
        elements = [*self._elements, *missing]
        elements[index] = value
        return self._with(elements)

    def read(self, place: Any) -> Array:
        """Return an element; one that was not written is zeros, of the shape of the others."""
        element = self._elements[_known(place)]
        return self._zeros() if element is None else element

    def _zeros(self) -> Array:
        shapes: set[Any] = {np.shape(x) for x in self._elements if x is not None}
        if self.element_shape is not None and None not in self.element_shape:
            shapes = {self.element_shape}
        if len(shapes) != 1:
            raise refused("An element was not written, and there is no telling its shape.")
        (shape,) = shapes
        if self.dtype == np.dtype(object):
            return np.full(shape, b"", object)
        return jnp.zeros(shape, self.dtype)

    def _all(self, places: Sequence[Any] | None = None) -> list[Array]:
        return [self.read(i) for i in (range(self.size()) if places is None else places)]

    def stack(self) -> Array:
        """Return all elements along a new first axis."""
        return _joined(np.stack, jnp.stack, self._all())

    def gather(self, places: Array) -> Array:
        """Return some elements along a new first axis."""
        return _joined(np.stack, jnp.stack, self._all(_known_all(places)))

    def concat(self) -> Array:
        """Return all elements one after another along their first axis."""
        return _joined(np.concatenate, jnp.concatenate, self._all())

    def unstack(self, rows: Array) -> TensorList:
        """Return a list with the rows of an array as its first elements."""
        return self.scatter(range(len(rows)), rows)

    def scatter(self, places: Any, rows: Array) -> TensorList:
        """Return a list with the rows of an array at some places."""
        made = self
        for place, row in zip(_known_all(places), rows, strict=True):
            made = made.write(place, _element(row, rows))
        return made

    def split(self, value: Array, lengths: Any) -> TensorList:
        """Return a list of consecutive pieces of an array."""
        ends = np.cumsum(_known_all(lengths))
        starts = [0, *ends[:-1]]
        pieces = [value[start:end] for start, end in zip(starts, ends, strict=True)]
        return self._with(pieces)

    # ------------------------------------------------------------ as a pytree
    def tree_flatten(self) -> tuple[Any, Any]:
        """Return the elements, and what else it is; strings are not arrays."""
        if self.dtype == np.dtype(object):
            return (), (self.dtype, self.element_shape, self.dynamic_size, self._elements)
        return (self._elements,), (self.dtype, self.element_shape, self.dynamic_size, None)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Self:
        """Return a list of elements."""
        dtype, shape, dynamic, texts = aux
        elements = children[0] if texts is None else texts
        return cls(dtype, elements, shape, dynamic_size=dynamic)


def _known(place: Any) -> int:
    if context.is_tracer(place):
        raise refused(
            "A TensorArray of strings, or of elements of different shapes, takes indices that are "
            "known while a function is traced: XLA's programs have numbers of fixed shapes."
        )
    return int(place)


def _known_all(places: Any) -> list[int]:
    if context.is_tracer(places):
        _known(places)
    return [int(place) for place in np.asarray(places)]


def _element(row: Any, rows: Array) -> Array:
    return np.asarray(row, object) if is_text(rows) else row


def _joined(
    on_host: Callable[..., Any], on_device: Callable[..., Any], parts: Sequence[Array]
) -> Array:
    """Return elements joined to one; refuse shapes that do not go together."""
    try:
        return (on_host if any(map(is_text, parts)) else on_device)(parts)
    except (TypeError, ValueError) as error:
        shapes = [list(np.shape(part)) for part in parts]
        raise refused(f"TensorList contains uninitialized or unequal elements: {shapes}") from error
