"""Operations at the top level about places: `tf.slice`, `tf.transpose`, `tf.unravel_index`, ..."""

from __future__ import annotations

import builtins  # the functions of the table have names of theirs: `slice`
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import (
    checkable,
    ints,
    is_known,
    one_axis,
    refused,
    require_known,
    space_of,
)
from jaxvars.typing import Array


@op("slice", "input_", strings=True, example="r(3, 4), [1, 0], [2, -1]")
def slice_(input_: Array, begin: Any, size: Any) -> Array:
    """Take a part by start and size."""
    sizes = ints(size, "size")
    if len(sizes) != input_.ndim:
        raise refused(
            f"Expected begin and size arguments to be 1-D tensors of size {input_.ndim}, but got "
            f"shapes [{len(sizes)}] instead"
        )
    if not is_known(begin):
        return _moving_slice(input_, _convert.to_array(begin), sizes)
    starts = ints(begin, "begin")
    stops = [
        _stop(i, *each) for i, each in enumerate(zip(input_.shape, starts, sizes, strict=True))
    ]
    return input_[tuple(map(builtins.slice, starts, stops))]


def _stop(i: int, total: int, start: int, size: int) -> int:
    stop = total if size == -1 else start + size
    if start < 0 or start > total:
        raise refused(f"Expected begin[{i}] in [0, {total}], but got {start}")
    if stop < start or stop > total:
        raise refused(f"Expected size[{i}] in [0, {total - start}], but got {size}")
    return stop


def _moving_slice(x: Array, starts: Array, sizes: tuple[int, ...]) -> Array:
    if any(size == -1 != total for size, total in zip(sizes, x.shape, strict=True)):
        raise refused("size must be known, not -1, where begin depends on an argument")
    return jax.lax.dynamic_slice(_convert.lift(x), list(starts), sizes)


@op("strided_slice", "input_", strings=True, example="r(3, 4), [0, 1], [3, 4], [2, 2]")
def strided_slice(
    input_: Array, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
    var: Any = None,
) -> Array:  # fmt: skip
    """Take a part as indexing does, by start, end and step."""
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    return input_[_keys_of(input_, begin, end, strides, masks)]


def _keys_of(x: Array, begin: Any, end: Any, strides: Any, masks: Sequence[int]) -> tuple[Any, ...]:
    """Return the index of a part that is given by start, end and step, as for `x[...]`."""
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask = masks
    starts, stops = ints(begin, "begin"), ints(end, "end")
    steps = ints(strides, "strides") if strides is not None else (1,) * len(starts)
    keys: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(starts, stops, steps, strict=True)):
        if ellipsis_mask >> i & 1:
            keys.append(...)
        elif new_axis_mask >> i & 1:
            keys.append(None)
        elif shrink_axis_mask >> i & 1:
            keys.append(start)
        else:
            first, last = begin_mask >> i & 1, end_mask >> i & 1
            keys.append(builtins.slice(None if first else start, None if last else stop, step))
    _check_keys(x, keys)
    return tuple(keys)


def _check_keys(x: Array, keys: list[Any]) -> None:
    used = sum(key is not None and key is not ... for key in keys)
    if used and not x.ndim:
        raise refused("Attempting to slice scalar input.")
    if used > x.ndim:
        raise refused(f"Index out of range using input dim {x.ndim}; input has only {x.ndim} dims")
    dim = 0
    for key in keys:
        if key is ...:
            dim += x.ndim - used
            continue
        if isinstance(key, int) and not -x.shape[dim] <= key < x.shape[dim]:
            raise refused(f"slice index {key} of dimension {dim} out of bounds.")
        if isinstance(key, builtins.slice) and key.step == 0:
            raise refused(f"strides[{dim}] must be non-zero")
        dim += key is not None


@op("transpose", "a", strings=True, example="r(2, 3)")
def transpose(a: Array, perm: Any = None, conjugate: bool = False) -> Array:
    """Permute the dimensions; reverse them without `perm`."""
    order = tuple(reversed(range(a.ndim))) if perm is None else _read_order(perm, a.ndim)
    made = space_of(a).transpose(a, order)
    return jnp.conj(made) if conjugate and jnp.iscomplexobj(a) else made


def _read_order(perm: Any, rank: int) -> tuple[int, ...]:
    known = require_known(perm, "perm")
    if known.ndim != 1:
        raise refused(f"perm must be rank 1, got shape {list(known.shape)}")
    order = ints(known, "perm")
    if len(order) != rank:
        raise refused(
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size "
            f"{len(order)}"
        )
    for i in order:
        if not -rank <= i < rank:
            raise refused(f"{i} is out of range [0 .. {rank})")
    for i in sorted(set(range(rank)) - {i % rank for i in order}):
        raise refused(f"{i} is missing from {{{','.join(map(str, order))}}}.")
    return order


@op("reverse", "tensor", op="ReverseV2", strings=True, example="r(2, 3), [1]")
def reverse(tensor: Array, axis: Any) -> Array:
    """Reverse along some dimensions."""
    if require_known(axis, "axis").ndim != 1:
        raise refused("'dims' must be 1-dimension, not 0")
    dims = ints(axis, "axis")
    for i, dim in enumerate(dims):
        if not -tensor.ndim <= dim < tensor.ndim:
            raise refused(f"'axis'[{i}] = {dim} is out of valid range [0, {tensor.ndim - 1}]")
    places = tuple(dim % tensor.ndim for dim in dims)
    twice = next((dim for i, dim in enumerate(places) if dim in places[:i]), None)
    if twice is not None:
        raise refused(f"axis {twice} specified more than once.")
    return space_of(tensor).flip(tensor, places)


@op("roll", "input", example="r(5), 2, 0")
def roll(input: Array, shift: Any, axis: Any) -> Array:
    """Shift elements along dimensions, around."""
    if not input.ndim:
        raise refused("input must be 1-D or higher")
    dims = tuple(one_axis(a, input.ndim) for a in ints(axis, "axis"))
    shifts = jnp.reshape(_convert.to_array(shift), (-1,))
    if shifts.dtype.kind not in "iu":  # jnp.roll would cut it
        raise refused("shift must be of integers")
    if shifts.size != len(dims):
        raise refused("shift and axis must have the same size")
    for i, dim in enumerate(dims):
        input = jnp.roll(input, shifts[i], dim)
    return input


@op("reverse_sequence", "input", example="r(2, 3), [2, 3], seq_axis=1")
def reverse_sequence(
    input: Array, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None
) -> Array:
    """Reverse the first steps of each sequence of a batch."""
    rank = "must be < input rank, but it"
    time = one_axis(1 if seq_axis is None else seq_axis, input.ndim, f"seq_dim {rank}")
    batch = one_axis(0 if batch_axis is None else batch_axis, input.ndim, f"batch_dim {rank}")
    if time == batch:
        raise refused(f"batch_dim == seq_dim == {time}")
    lengths = jnp.asarray(_convert.to_array(seq_lengths))
    if lengths.ndim != 1:
        raise refused(f"seq_lengths must be 1-dim, not {lengths.ndim}")
    if lengths.shape != (input.shape[batch],):
        raise refused(
            f"Length of seq_lengths != input.dims({batch}), ({lengths.shape} vs. "
            f"{input.shape[batch]})"
        )
    known = np.asarray(lengths) if checkable(lengths) else np.zeros(0)
    if ((known > input.shape[time]) | (known < 0)).any():
        raise refused(f"seq_lengths must be in [0, {input.shape[time]}], the size of axis {time}")
    return _turn(input, lengths, time, batch)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _turn(input: Array, lengths: Array, time: int, batch: int) -> Array:
    steps = jnp.arange(input.shape[time])
    turned = jnp.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    shape = [n if i in (batch, time) else 1 for i, n in enumerate(input.shape)]
    index = (turned if batch < time else turned.T).reshape(shape)
    return jnp.take_along_axis(input, index, axis=time)


@op("unravel_index", "indices dims", example="[7, 2], [3, 3]")
def unravel_index(indices: Array, dims: Array) -> Array:
    """Return the indices in each dimension of what flat indices point at."""
    sizes = require_known(dims, "dims").reshape(-1)
    product = math.prod(map(int, sizes))
    if product == 0:
        raise refused("Input dims cannot contain a dim of zero, but dims contains zero")
    if product > np.iinfo(sizes.dtype).max:
        raise refused("Input dims product is causing integer overflow: " + str(tuple(sizes)))
    if checkable(indices) and ((np.asarray(indices) < 0) | (np.asarray(indices) >= product)).any():
        raise refused("index is out of bound as with dims")
    found = jnp.unravel_index(indices, tuple(map(int, sizes)))
    return jnp.stack(found).astype(indices.dtype)
