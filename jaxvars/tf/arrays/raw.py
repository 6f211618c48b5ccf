"""Operations that `tf.raw_ops` alone has: no public function takes their arguments."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.places import keys_of
from jaxvars.tf.arrays.scatter import tensor_scatter_nd_add
from jaxvars.tf.arrays.sort import Unique, UniqueWithCounts, uniques
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, one_axis, refused, require_known
from jaxvars.typing import Array

raw = functools.partial(op, is_listed=False)


@raw("raw_ops.ConcatOffset", op="ConcatOffset", example="concat_dim=0, shape=[[2, 3], [1, 3]]")
def concat_offset(concat_dim: Any, shape: Any) -> list[Array]:
    """Return where each tensor begins in what `tf.concat` makes of some, by their shapes."""
    shapes = [require_known(each, "shape") for each in shape]
    place = one_axis(concat_dim, len(shapes[0]))
    begins = np.cumsum([0, *[each[place] for each in shapes[:-1]]])
    where = np.arange(len(shapes[0])) == place
    return [np.where(where, begin, 0).astype(shapes[0].dtype) for begin in begins]


@raw("raw_ops.MirrorPadGrad", "input", op="MirrorPadGrad")
def mirror_pad_grad(input: Array, paddings: Any, mode: str) -> Array:
    """Add what `tf.pad` has copied to where it was copied from.

    Example: `tf.raw_ops.MirrorPadGrad(input=[1, 2, 3], paddings=[[1, 0]], mode="REFLECT")`.
    """
    widths = require_known(paddings, "paddings")
    sizes = np.array(input.shape) - widths.sum(axis=1)
    if (sizes < 0).any():
        raise refused(f"paddings {widths.tolist()} are more than the tensor {list(input.shape)}")
    places = np.pad(np.arange(sizes.prod()).reshape(sizes), widths, mode.lower())  # pyright: ignore[reportCallIssue, reportArgumentType] - a mode of its list
    made = jnp.zeros(sizes.prod(), input.dtype).at[places.reshape(-1)].add(input.reshape(-1))
    return made.reshape(tuple(sizes))


@raw("raw_ops.ScatterNdNonAliasingAdd", "input indices", op="ScatterNdNonAliasingAdd")
def scatter_nd_non_aliasing_add(
    input: Array, indices: Array, updates: Array, bad_indices_policy: str = ""
) -> Array:
    """Add to parts, by lists of indices, as `tf.tensor_scatter_nd_add` does.

    Example: `tf.raw_ops.ScatterNdNonAliasingAdd(input=[1, 2], indices=[[1]], updates=[5])`.
    """
    return tensor_scatter_nd_add.__wrapped__(input, indices, updates)


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


@raw("raw_ops.StridedSliceGrad", "dy", op="StridedSliceGrad")
def strided_slice_grad(
    shape: Any, begin: Any, end: Any, strides: Any, dy: Array, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
) -> Array:  # fmt: skip
    """Put a part, as `tf.strided_slice` takes it, into zeros.

    Example: `tf.raw_ops.StridedSliceGrad(shape=[3], begin=[0], end=[2], strides=[1], dy=[1, 2])`.
    """
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    zeros = jnp.zeros(ints(shape, "shape"), dy.dtype)
    return tensor_strided_slice_update.__wrapped__(zeros, begin, end, strides, dy, *masks)


def _one_or_none(axis: Any, ndim: int) -> int | None:
    given = ints(axis, "axis")
    return one_axis(given[0], ndim) if given else None


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
