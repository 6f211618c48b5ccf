"""`tf.RaggedTensorSpec`."""

from __future__ import annotations

from typing import Any, final

from jaxvars.tf.tensors.dtypes import as_dtype, float32, int64
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor, parts_of
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.specs import Parts, TypeSpec
from jaxvars.tf.tensors.tensor import Tensor


@final
class RaggedTensorSpec(TypeSpec):
    """What is known of a ragged tensor.

    Args:
        shape: of the tensor, None where rows have different lengths.
        dtype: of the values.
        ragged_rank: the number of ragged dimensions: all but the first when None.
        row_splits_dtype: `tf.int64` or `tf.int32`.

    >>> RaggedTensorSpec([None, None])
    RaggedTensorSpec(TensorShape([None, None]), tf.float32, 1, tf.int64)
    """

    __slots__ = ("_kept",)

    def __init__(
        self, shape: Any = None, dtype: Any = float32, ragged_rank: Any = None,
        row_splits_dtype: Any = int64,
    ) -> None:  # fmt: skip
        sizes = TensorShape(shape)
        if ragged_rank is None and sizes.rank is None:
            raise ValueError("Must specify ragged_rank or a shape with a known rank.")
        if not (ragged_rank is None or isinstance(ragged_rank, int)):
            raise TypeError(f"Argument `ragged_rank` must be an int. Received {ragged_rank}.")
        if sizes.rank is not None and (ragged_rank or 0) >= max(sizes.rank, 1):
            raise ValueError(f"{ragged_rank=} must be less than rank ({sizes.rank}).")
        rank = (sizes.rank or 2) - 1 if ragged_rank is None else int(ragged_rank)
        self._kept: Parts = sizes, as_dtype(dtype), rank, as_dtype(row_splits_dtype)

    shape = property(lambda self: self._kept[0], doc="The sizes, as far as they are known.")
    dtype = property(lambda self: self._kept[1], doc="The type of the values.")
    ragged_rank = property(lambda self: self._kept[2], doc="The number of ragged dimensions.")

    row_splits_dtype = property(lambda self: self._kept[3], doc="The type of the row splits.")

    @property
    def value_type(self) -> type:
        """RaggedTensor, or Tensor of the ragged rank 0."""
        return RaggedTensor if self.ragged_rank else Tensor

    @classmethod
    def from_value(cls, value: Any) -> RaggedTensorSpec:
        """Return the spec of a ragged tensor."""
        parts = parts_of(value)
        kind = as_dtype(parts[0].splits.dtype) if parts else int64
        return cls(value.shape, value.dtype, len(parts), kind)

    @classmethod
    def _of(cls, value: Any) -> RaggedTensorSpec:
        return cls.from_value(value)

    def _serialize(self) -> Parts:
        return self._kept
