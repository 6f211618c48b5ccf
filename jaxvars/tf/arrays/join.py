"""Operations at the top level that join and cut: `tf.concat`, `tf.stack`, `tf.split`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.wrapping import is_boxing
from jaxvars.tf.registry.rows import list_of, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import ints, one_axis, one_int, refused, require_known, space_of
from jaxvars.tf.tensors.tensor import Tensor, typed
from jaxvars.typing import Array


@op("concat", op="ConcatV2", strings=True, example="[r(2, 1), r(2, 3)], 1")
def concat(values: Any, axis: Any) -> Array:
    """Join tensors along a dimension."""
    if not isinstance(values, list | tuple):
        return _convert.to_array(values)
    arrays = _convert.match_dtypes(values, "ConcatV2")
    if not arrays:
        raise refused("Expected at least one tensor")
    if not arrays[0].ndim:
        raise refused("ConcatOp : Expected concatenating dimensions in the range [0, 0)")
    place = one_axis(axis, arrays[0].ndim, "concat_dim")
    _check_others(arrays, place)
    return space_of(arrays[0]).concatenate(arrays, place)


def _check_others(arrays: Sequence[Array], place: int) -> None:
    first = arrays[0].shape
    for i, array in enumerate(arrays):
        shape = array.shape
        if len(shape) != len(first) or (
            shape[:place] + shape[place + 1 :] != first[:place] + first[place + 1 :]
        ):
            raise refused(
                "ConcatOp : Dimension mismatch: all dimensions but the one to join along must be "
                f"equal: shape[0] = {list(first)} vs. shape[{i}] = {list(shape)}"
            )


@op("stack", op="Pack", strings=True, example="[r(2), r(2)], axis=1")
def stack(values: Any, axis: Any = 0) -> Array:
    """Join tensors along a new dimension."""
    given = list_of(values)
    if type(axis) is int and not axis and not _convert.holds_tensors(given):
        with suppress(TypeError, ValueError):  # as one list, whose numbers have one type
            if not (is_boxing() and any(isinstance(x, np.ndarray) and x.ndim for x in given)):
                return _convert.to_array(given)
    arrays = _convert.match_dtypes(given, "Pack")
    if not arrays:
        raise refused("Expected at least one tensor")
    if any(x.shape != arrays[0].shape for x in arrays):
        raise refused(f"Shapes of all inputs must match: {[list(x.shape) for x in arrays]}")
    return space_of(arrays[0]).stack(arrays, one_axis(axis, arrays[0].ndim + 1, "Argument `axis`"))


@op("unstack", "value", op="Unpack", strings=True, example="r(2, 3)")
def unstack(value: Array, num: Any = None, axis: Any = 0) -> list[Array]:
    """Return a list of the slices along a dimension."""
    if not value.ndim:
        raise refused("Cannot unstack a scalar: it has no dimensions")
    place = one_axis(axis, value.ndim, "Argument `axis`")
    if num is not None and int(num) != value.shape[place]:
        raise refused(f"Input shape axis {place} must equal {num}, got shape {list(value.shape)}")
    if isinstance(value, np.ndarray):
        return list(np.moveaxis(value, place, 0))
    return list(jnp.unstack(value, axis=place))


@op("split", "value", op="SplitV", strings=True, example="r(4, 2), 2")
def split(value: Array, num_or_size_splits: Any, axis: Any = 0, num: Any = None) -> list[Array]:
    """Cut into a number of equal parts, or into parts of given sizes."""
    place = one_axis(axis, value.ndim)
    sizes = require_known(num_or_size_splits, "num_or_size_splits")
    total = value.shape[place]
    if not sizes.ndim:
        if int(sizes) < 1 or total % int(sizes):
            raise refused(
                "Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {place} (size = {total}) and num_split {int(sizes)}"
            )
        return list(space_of(value).split(value, int(sizes), place))
    if num is not None and int(num) != len(sizes):
        raise refused(f"num = {num} is not the number of size_splits: {len(sizes)}")
    counts = _counts(sizes, total)
    return list(space_of(value).split(value, np.cumsum(counts)[:-1].tolist(), place))


def _counts(sizes: np.ndarray, total: int) -> np.ndarray:
    """Return the sizes of parts, with what is left in place of -1."""
    for i, size in enumerate(sizes.tolist()):
        if type(size) is int and size < -1:
            raise refused(f"Split size at index {i} must be >= 0. Got: {size}")
    is_rest = sizes == -1
    rest = total - int(sizes[~is_rest].sum())
    if is_rest.sum() > 1 or rest < 0 or (rest and not is_rest.any()):
        raise refused(
            "Determined shape must either match input shape along split_dim exactly if fully "
            f"specified, or be less than the size of the input along split_dim if not fully "
            f"specified.  Got: {int(sizes[~is_rest].sum())}"
        )
    return np.where(is_rest, rest, sizes)


@op("identity_n", "input*", strings=True, example="[r(2), i(1)]")
def identity_n(input: list[Array]) -> list[Array]:
    """Return the tensors of a list."""
    return list(input)


@op("dynamic_partition", "data", strings=True, eager_only="the sizes of the parts depend on values")
def dynamic_partition(data: Array, partitions: Any, num_partitions: Any) -> list[Array]:
    """Cut into parts by the number of the part that each element belongs to.

    Example: `tf.dynamic_partition(r(4), [0, 1, 1, 0], 3)`.
    """
    which = require_known(partitions, "partitions")
    if data.shape[: which.ndim] != which.shape:
        raise refused(
            f"data.shape {list(data.shape)} must start with partitions.shape {list(which.shape)}"
        )
    count = one_int(num_partitions, "num_partitions")
    if which.size and not (which.min() >= 0 and which.max() < count):
        raise refused(f"partitions is not in [0, {count})")
    flat = data.reshape(which.size, *data.shape[which.ndim :])
    take = space_of(flat).take
    return [take(flat, np.flatnonzero(which == i), axis=0) for i in range(count)]


@op("dynamic_stitch", example="[[0, 2], [1]], [r(2, 2), r(1, 2)]")
def dynamic_stitch(indices: Any, data: Any) -> Array:
    """Put rows at indices, the inverse of `tf.dynamic_partition`.

    Differs from TensorFlow: the indices must be known while a function is traced; what is
    overwritten has gradient 0.
    """
    places = [require_known(part, "indices") for part in indices]
    values = _convert.match_dtypes(data, "DynamicStitch")
    rest = values[0].shape[places[0].ndim :]
    if len(places) != len(values):
        raise refused(
            "List argument 'data' must match the length of list argument 'indices': "
            f"{len(values)} and {len(places)}"
        )
    for where, value in zip(places, values, strict=True):
        if value.shape != (*where.shape, *rest):
            raise refused(
                f"data.shape {list(value.shape)} does not fit indices.shape {list(where.shape)}"
            )
    flat = np.concatenate([where.reshape(-1) for where in places])
    if flat.min(initial=0) < 0:
        raise refused(f"indices[{int(flat.argmin())}] = {flat.min()} is out of range")
    rows = jnp.concatenate([value.reshape(-1, *rest) for value in values])
    size = int(flat.max(initial=-1)) + 1
    source = np.full(size, -1)
    source[flat] = np.arange(flat.size)  # the last one wins
    made = jnp.take(rows, np.maximum(source, 0), axis=0)
    return jnp.where((source >= 0).reshape(-1, *[1] * len(rest)), made, 0).astype(rows.dtype)


# ---------------------------------------------------------------- those with other signatures
def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each axis.

    Args:
        *args: the values along each axis, 1-D.
        **kwargs: `indexing`: "xy", where the second axis comes first, or "ij"; and `name`.

    Raises:
        ValueError: when `indexing` is something else.
        TypeError: when there is another keyword.

    >>> from jaxvars import tf
    >>> [x.numpy().tolist() for x in tf.meshgrid([1, 2], [3, 4, 5])]
    [[[1, 2], [1, 2], [1, 2]], [[3, 3], [4, 4], [5, 5]]]
    """
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` must be either 'xy' or 'ij', got '{indexing}'")
    arrays = _convert.match_dtypes(list(map(typed, args)), "Mul") if args else []
    flat = [jnp.reshape(x, (-1,)) for x in arrays]
    return [Tensor(x) for x in jnp.meshgrid(*flat, indexing=indexing)]


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """Return the shape of what two shapes are broadcast to; sizes may be None.

    Raises:
        ValueError: when they cannot be broadcast.

    >>> broadcast_static_shape(TensorShape([2, 1]), TensorShape([None]))
    TensorShape([2, None])
    """
    x, y = TensorShape(shape_x), TensorShape(shape_y)
    if x.rank is None or y.rank is None:
        return TensorShape(None)
    sizes = [x.as_list(), y.as_list()]
    rank = max(map(len, sizes))
    rows = [[1] * (rank - len(each)) + each for each in sizes]
    return TensorShape([_broad(a, b, x, y) for a, b in zip(*rows, strict=True)])


def _broad(a: int | None, b: int | None, x: TensorShape, y: TensorShape) -> int | None:
    if a == 1 or b == 1:
        return b if a == 1 else a
    if a is not None and b is not None and a != b:
        raise ValueError(f"Incompatible shapes for broadcasting: {x} and {y}.")
    return b if a is None else a


@op("broadcast_dynamic_shape", op="BroadcastArgs", is_listed=False, example="[2, 1], [3]")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> np.ndarray:
    """Return the shape of what two shapes, as tensors, are broadcast to."""
    x, y = ints(shape_x, "shape_x"), ints(shape_y, "shape_y")
    try:
        return np.array(np.broadcast_shapes(x, y), np.int32)
    except ValueError:
        raise ValueError(f"Incompatible shapes: {list(x)} vs. {list(y)}") from None
