"""`tf.IndexedSlices`: rows of a tensor, by index.

Rules this file keeps:
- it is converted to a tensor where one is needed; rows of one index add up.
"""

from __future__ import annotations

from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars._face import BOXES
from jaxvars.tf._convert import to_array
from jaxvars.tf._dtypes import DType
from jaxvars.tf._shapes import TensorShape
from jaxvars.tf._tensor import Tensor, wrap

Value: TypeAlias = Any


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

    Differs from TensorFlow: gradients are tensors; no operation makes IndexedSlices.
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values, self._indices, self._dense_shape = values, indices, dense_shape

    @property
    def values(self) -> Any:
        """The rows."""
        return self._values

    @property
    def indices(self) -> Any:
        """Which rows they are."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the whole tensor, or None."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole tensor, as far as it is known."""
        if self._dense_shape is None:
            return TensorShape([None, *Tensor(to_array(self._values)).shape[1:]])
        return TensorShape(np.asarray(to_array(self._dense_shape)).tolist())

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return Tensor(to_array(self._values)).dtype

    @property
    def device(self) -> str:
        """The name of the device that the rows are on."""
        return Tensor(to_array(self._values)).device

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-Tensor(to_array(self._values)), self._indices, self._dense_shape)

    def __str__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{shape})"

    __repr__ = __str__


def _dense(slices: IndexedSlices) -> Value:
    """Return the whole tensor."""
    if slices.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices without dense_shape: {slices}"
        )
    values = to_array(slices.values)
    zeros = jnp.zeros(tuple(slices.shape), values.dtype)
    return zeros.at[to_array(slices.indices)].add(values)


def _flatten(slices: IndexedSlices) -> tuple[tuple[Any, ...], None]:
    parts = (slices.values, slices.indices, slices.dense_shape)
    return tuple(None if part is None else to_array(part) for part in parts), None


def _unflatten(_: None, parts: Any) -> IndexedSlices:
    return IndexedSlices(*map(wrap, parts))


BOXES[IndexedSlices] = _dense
jax.tree_util.register_pytree_node(IndexedSlices, _flatten, _unflatten)
