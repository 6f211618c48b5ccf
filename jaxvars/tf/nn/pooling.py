"""Pools of `tf.nn`, and moves between space and channels.

Rules this file keeps:
- what is padded does not count in a mean, and never is the largest;
- the derivative of the largest element is that of the first of equal ones. It is found by comparing
  and selecting, which on CPUs is far faster than what XLA makes of `select_and_scatter`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.nn.shapes import (
    Layout,
    as_one_batch,
    layout,
    numbers,
    paddings,
    places_in,
    refused_value,
)
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.dtypes import as_dtype, widen
from jaxvars.tf.tensors.static import refused
from jaxvars.typing import Array

Arrays: TypeAlias = tuple[Array, ...]
Sizes: TypeAlias = tuple[int, ...]
Windows: TypeAlias = tuple[Sizes, Sizes, tuple[tuple[int, int], ...]]
"""Sizes, steps and paddings of windows, for every axis."""

_NAN = "A window with NaN gives NaN."
_FEW = 4  # elements that are compared one after another


def _windows(x: Array, window: Any, strides: Any, padding: Any, where: Layout) -> Windows:
    sizes = numbers(window, where, "ksize")
    steps = numbers(sizes if strides is None else strides, where, "strides")
    spatial = [x.shape[axis] for axis in where.axes]
    pads = [(0, 0)] * x.ndim
    found = paddings(padding, spatial, sizes, steps, where)
    for axis, pair in zip(where.axes, found, strict=True):
        pads[axis] = pair
    return where.everywhere(sizes), where.everywhere(steps), tuple(pads)


@functools.partial(jax.jit, static_argnums=1)
def _largest(xs: Arrays, windows: Windows) -> Arrays:
    """Return the largest element of each window of the first array, and what others have there."""
    sizes, steps, pads = windows
    least = -np.inf if xs[0].dtype.kind not in "iu" else np.iinfo(xs[0].dtype).min
    fills = (least, *[0] * (len(xs) - 1))
    xs = tuple(jnp.pad(x, pads, constant_values=fill) for x, fill in zip(xs, fills, strict=True))
    if math.prod(sizes) <= _FEW:
        return _compare(xs, sizes[1:], steps[1:], [1] * (len(sizes) - 1))
    for axis in reversed(range(1, len(sizes))):  # the first of equals in rows, then of rows
        xs = _along(xs, axis, sizes[axis], steps[axis], 1)
    return xs


def _along(xs: Arrays, axis: int, size: int, step: int, gap: int) -> Arrays:
    if size > _FEW:  # the larger of two halves, which may overlap
        half = size // 2
        xs = _along(xs, axis, size - half, 1, gap)
        size, gap = 2, half * gap
    rest = [1] * (xs[0].ndim - 1 - axis)
    return _compare(xs, *([1] * (axis - 1) + [n, *rest] for n in (size, step, gap)))


def _compare(xs: Arrays, sizes: Sequence[int], steps: Sequence[int], gaps: Sequence[int]) -> Arrays:
    made, *others = zip(*(places_in(x, sizes, steps, gaps) for x in xs), strict=True)
    for part in others:
        stays = (made[0] >= part[0]) | (made[0] != made[0])  # NaN is the largest
        made = tuple(jax.lax.select(stays, x, y) for x, y in zip(made, part, strict=True))
    return made


@functools.partial(jax.jit, static_argnums=1)
def _mean(x: Array, windows: Windows) -> Array:
    sizes, steps, pads = windows
    wide = widen(x)
    zero = np.asarray(0, wide.dtype)[()]
    ones = jnp.ones(
        [n if size > 1 else 1 for n, size in zip(x.shape, sizes, strict=True)], zero.dtype
    )
    total, count = (
        jax.lax.reduce_window(each, zero, jax.lax.add, sizes, steps, pads) for each in (wide, ones)
    )
    return (total / count).astype(x.dtype)


def _pool(
    mean: bool, spatial: int, x: Array, ksize: Any, strides: Any, padding: Any, data_format: Any
) -> Array:
    """Return what pools over so many axes."""
    if mean and not isinstance(padding, str):
        raise refused_value("Explicit padding is for max pools, not for those of means.")
    if not 1 <= spatial <= 3:
        raise refused_value(
            f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={x.shape} of rank "
            f"{x.ndim}."
        )
    where = layout(spatial, data_format)
    flat, batch = as_one_batch(x, where)
    windows = _windows(flat, ksize, strides, padding, where)
    made = _mean(flat, windows) if mean else _largest((flat,), windows)[0]
    return made.reshape(*batch, *made.shape[1:])


def _make_pool(
    name: str, mean: bool, spatial: int, data_format: str | None, doc: str, example: str,
    differs: str = "",
) -> Any:  # fmt: skip
    """Return the operation of a pool over so many axes, all but two when it is 0."""

    def call(
        input: Array, ksize: Any, strides: Any, padding: Any, data_format: Any = data_format
    ) -> Array:
        axes = spatial or input.ndim - 2
        return _pool(mean, axes, input, ksize, strides, padding, data_format)

    call.__name__, call.__doc__ = name, f"Return the {doc}."
    title = ("AvgPool" if mean else "MaxPool") + "3D" * (spatial == 3)
    return op(
        f"nn.{name}", "input", op=title, kinds="float" if mean else "float int", example=example,
        differs=differs,
    )(call)  # fmt: skip


# fmt: off
_MEAN, _MOST = "mean of each window", "largest element of each window"
avg_pool = _make_pool("avg_pool", True, 0, None, _MEAN, "r(1, 4, 4, 1), 2, 2, 'VALID'")
avg_pool1d = _make_pool("avg_pool1d", True, 1, "NWC", f"{_MEAN} of sequences",
                        "r(2, 4, 2), 2, 2, 'VALID'")
avg_pool2d = _make_pool("avg_pool2d", True, 2, "NHWC", f"{_MEAN} of images",
                        "r(1, 4, 4, 1), 2, 2, 'VALID'")
avg_pool3d = _make_pool("avg_pool3d", True, 3, "NDHWC", f"{_MEAN} of volumes",
                        "r(1, 2, 2, 4, 1), 2, 2, 'VALID'")
max_pool = _make_pool("max_pool", False, 0, None, _MOST, "r(1, 4, 4, 1), 2, 2, 'VALID'", _NAN)
max_pool1d = _make_pool("max_pool1d", False, 1, "NWC", f"{_MOST} of sequences",
                        "r(2, 4, 2), 2, 2, 'VALID'", _NAN)
max_pool2d = _make_pool("max_pool2d", False, 2, "NHWC", f"{_MOST} of images",
                        "r(1, 4, 4, 1), 2, 2, 'VALID'", _NAN)
max_pool3d = _make_pool("max_pool3d", False, 3, "NDHWC", f"{_MOST} of volumes",
                        "r(1, 2, 2, 4, 1), 2, 2, 'VALID'",
                        f"Of equal elements the first has the derivative, as elsewhere. {_NAN}")
# fmt: on


@op("nn.max_pool_with_argmax", "input", op="MaxPoolWithArgmax", kinds="float", differs=_NAN)
def max_pool_with_argmax(
    input: Array, ksize: Any, strides: Any, padding: Any, data_format: Any = "NHWC",
    output_dtype: Any = "int64", include_batch_in_index: Any = False,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the largest element of each window, and where in the flat image it is.

    Example: `tf.nn.max_pool_with_argmax(r(1, 4, 4, 1), 2, 2, 'VALID')`.
    """
    where = layout(2, data_format)
    dtype = as_dtype(output_dtype).dtype
    batch = 0 if include_batch_in_index else None
    count = input.size if include_batch_in_index else input.size // max(len(input), 1)
    places = jnp.arange(count, dtype=dtype).reshape(
        input.shape if batch == 0 else (1, *input.shape[1:])
    )
    windows = _windows(input, ksize, strides, padding, where)
    values, indices = _largest((input, jnp.broadcast_to(places, input.shape)), windows)
    return values, indices


# ---------------------------------------------------------------- space and channels
@op("nn.space_to_depth", "input", aliases=(), example="r(1, 4, 2, 1), 2")
def space_to_depth(input: Array, block_size: int, data_format: str = "NHWC") -> Array:
    """Move blocks of pixels to the channels."""
    return _with_channels_last(_to_depth, input, int(block_size), data_format)


@op("nn.depth_to_space", "input", example="r(1, 1, 2, 4), 2")
def depth_to_space(input: Array, block_size: int, data_format: str = "NHWC") -> Array:
    """Move channels to blocks of pixels."""
    return _with_channels_last(_to_space, input, int(block_size), data_format)


def _with_channels_last(
    move: Callable[[Array, int], Array], x: Array, size: int, data_format: str
) -> Array:
    if size < 2:
        raise refused(f"Value for attr 'block_size' of {size} must be at least minimum 2")
    if layout(2, data_format).channels_first:
        return jnp.moveaxis(move(jnp.moveaxis(x, 1, -1), size), -1, 1)
    return move(x, size)


def _to_depth(x: Array, size: int) -> Array:
    n, height, width, channels = x.shape
    parts = x.reshape(n, height // size, size, width // size, size, channels)
    moved = parts.transpose(0, 1, 3, 2, 4, 5)
    return moved.reshape(n, height // size, width // size, size * size * channels)


def _to_space(x: Array, size: int) -> Array:
    n, height, width, channels = x.shape
    left = channels // size**2
    parts = x.reshape(n, height, width, size, size, left).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(n, height * size, width * size, left)
