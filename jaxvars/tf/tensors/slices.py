"""`tf.IndexedSlices`: rows of a tensor, by index; rows of one index add up."""

from __future__ import annotations

from typing import Any, final

import jax
import numpy as np

from jaxvars.derivatives.sparse_rows import Rows
from jaxvars.tensors.array_like import BOXES
from jaxvars.tf.attributes import getter
from jaxvars.tf.nest import COMPOSITES
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tracing import context
from jaxvars.typing import Array


@final
class IndexedSlices:
    """Rows of a larger tensor.

    Args:
        values: the rows, of shape [n, ...].
        indices: which they are: integers of shape [n].
        dense_shape: the shape of the whole tensor.

    >>> from jaxvars import tf
    >>> rows = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([2, 2]))
    >>> tf.convert_to_tensor(rows)
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[0., 0.],
           [1., 2.]], dtype=float32)>

    Differs from TensorFlow: the gradient of what a loop, branch or `tf.function` looked up in is a
    tensor, where a tape is around these.
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    values = getter("_values", "The rows.")
    indices = getter("_indices", "Which rows they are.")
    dense_shape = getter("_dense_shape", "The shape of the whole tensor, or None.")
    dtype = getter("_rows.dtype", "The type of the elements.")
    device = getter("_rows.device", "The name of the device that the rows are on.")

    @property
    def _rows(self) -> Tensor:
        return Tensor(to_array(self._values))

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole tensor, as far as it is known."""
        if self._dense_shape is None:
            return TensorShape([None, *self._rows.shape[1:]])
        return TensorShape(np.asarray(to_array(self._dense_shape)).tolist())

    def with_values(self, values: Any) -> IndexedSlices:
        """Return others of the same indices."""
        return IndexedSlices(values, self._indices, self._dense_shape)

    def consumers(self) -> list[Any]:
        """Return an empty list: graphs are not kept."""
        return []

    def __neg__(self) -> IndexedSlices:
        return self.with_values(-self._rows)

    def __str__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shape})"

    __repr__ = __str__


def _to_dense(slices: IndexedSlices) -> Array:
    """Return the whole tensor."""
    if slices.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices without dense_shape: {slices}"
        )
    parts = to_array(slices.values), to_array(slices.indices)
    return Rows(*parts, tuple(slices.shape)).whole()


def _flatten(slices: IndexedSlices) -> tuple[tuple[Any, ...], tuple[int, ...] | None]:
    """Return the parts that may be traced, and the shape if it is known."""
    parts = _part(slices.values), _part(slices.indices)
    shape = None if slices.dense_shape is None else _part(slices.dense_shape)
    if shape is None or not context.is_known(shape):
        return (*parts, shape), None
    return (*parts, None), tuple(np.asarray(shape).tolist())


def _part(x: Any) -> Any:
    return x if isinstance(x, jax.ShapeDtypeStruct) else to_array(x)  # of which an error tells


def _unflatten(shape: tuple[int, ...] | None, parts: Any) -> IndexedSlices:
    known = parts[2] if shape is None else np.array(shape, np.int32)
    return IndexedSlices(wrap(parts[0]), wrap(parts[1]), wrap(known))


BOXES[IndexedSlices] = _to_dense
COMPOSITES[IndexedSlices] = (
    lambda x: [x.values, x.indices, *([] if x.dense_shape is None else [x.dense_shape])],
    lambda _, *parts: IndexedSlices(*parts),
)
jax.tree_util.register_pytree_node(IndexedSlices, _flatten, _unflatten)
