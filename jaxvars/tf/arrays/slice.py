"""Operations at the top level that take parts by place: `tf.slice`, `tf.strided_slice`."""

from __future__ import annotations

import builtins  # the functions of the table have names of theirs: `slice`
from typing import Any

import jax

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, is_known, refused
from jaxvars.typing import Array


@op("slice", "input_", text=True, example="r(3, 4), [1, 0], [2, -1]")
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
    return jax.lax.dynamic_slice(x, list(starts), sizes)


@op("strided_slice", "input_", text=True, example="r(3, 4), [0, 1], [3, 4], [2, 2]")
def strided_slice(
    input_: Array, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
    var: Any = None,
) -> Array:  # fmt: skip
    """Take a part as indexing does, by start, end and step."""
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
    _check_keys(input_, keys)
    return input_[tuple(keys)]


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
