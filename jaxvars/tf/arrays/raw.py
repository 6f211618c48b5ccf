"""Operations that `tf.raw_ops` alone has: no public function takes their arguments."""

from __future__ import annotations

import functools
from typing import Any

from jaxvars.tf.arrays.places import keys_of
from jaxvars.tf.arrays.sort import Unique, UniqueWithCounts, uniques
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, one_axis
from jaxvars.typing import Array

raw = functools.partial(op, is_listed=False)


@raw("raw_ops.TensorStridedSliceUpdate", "input", op="TensorStridedSliceUpdate")
def tensor_strided_slice_update(
    input: Array, begin: Any, end: Any, strides: Any, value: Any, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Array:  # fmt: skip
    """Replace the part that `tf.strided_slice` would take.

    Example: `tf.raw_ops.TensorStridedSliceUpdate(
    input=[1, 2, 3], begin=[0], end=[2], strides=[1], value=0)`.
    """
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    new = _convert.pair(input, value, "TensorStridedSliceUpdate")[1]
    return input.at[keys_of(input, begin, end, strides, masks)].set(new)


def _one_or_none(axis: Any, ndim: int) -> int | None:
    return one_axis(axis, ndim) if ints(axis, "axis") else None


_COUNTED = "the number of values depends on the values"


@raw("raw_ops.UniqueV2", "x", op="UniqueV2", text=True, eager_only=_COUNTED)
def unique_v2(x: Array, axis: Any, out_idx: Any = "int32") -> Unique:
    """Return what `tf.unique` does, of the parts along an axis.

    Example: `tf.raw_ops.UniqueV2(x=[[1, 0], [1, 0]], axis=[0])`.
    """
    return Unique(*uniques(x, out_idx, _one_or_none(axis, x.ndim))[:2])


@raw("raw_ops.UniqueWithCountsV2", "x", op="UniqueWithCountsV2", text=True, eager_only=_COUNTED)
def unique_with_counts_v2(x: Array, axis: Any, out_idx: Any = "int32") -> UniqueWithCounts:
    """Return what `tf.unique_with_counts` does, of the parts along an axis.

    Example: `tf.raw_ops.UniqueWithCountsV2(x=[[1, 0], [1, 0]], axis=[0])`.
    """
    return UniqueWithCounts(*uniques(x, out_idx, _one_or_none(axis, x.ndim)))
