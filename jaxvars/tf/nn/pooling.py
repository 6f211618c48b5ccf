"""Pools of `tf.nn`, and moves between space and channels, joined by `nn.py`.

Rules this file keeps:
- what is padded does not count in a mean, and never is the largest.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.nn.shapes import Layout, as_one_batch, layout, numbers, paddings, reach
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tf.tensors.dtypes import as_dtype

Value: TypeAlias = Any
Sizes: TypeAlias = tuple[int, ...]


def _pooled(
    x: Value, window: Any, strides: Any, padding: Any, where: Layout, dilations: Any, mean: bool
) -> Value:
    flat, batch = as_one_batch(x, where, "input")
    sizes = numbers(window, where, "ksize")
    steps = numbers(sizes if strides is None else strides, where, "strides")
    gaps = numbers(dilations, where, "dilations")
    spatial = [flat.shape[axis] for axis in where.axes]
    pads = [(0, 0)] * flat.ndim
    found = paddings(padding, spatial, reach(sizes, gaps), steps, where)
    for axis, pair in zip(where.axes, found, strict=True):
        pads[axis] = pair
    everywhere = [tuple(where.everywhere(each)) for each in (sizes, steps, gaps)]
    rest = (*everywhere[:2], tuple(pads), None, everywhere[2])
    made = (_mean if mean else _largest)(flat, rest)
    return made.reshape(*batch, *made.shape[1:])


@functools.partial(jax.jit, static_argnums=1)
def _largest(x: Value, rest: Any) -> Value:
    least = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    return jax.lax.reduce_window(x, np.asarray(least, x.dtype)[()], jax.lax.max, *rest)


@functools.partial(jax.jit, static_argnums=1)
def _mean(x: Value, rest: Any) -> Value:
    zero = np.asarray(0, x.dtype)[()]
    counts = jax.lax.reduce_window(jnp.ones_like(x), zero, jax.lax.add, *rest)
    return jax.lax.reduce_window(x, zero, jax.lax.add, *rest) / counts


def _pool(spatial: int | None, mean: bool) -> Callable[..., Value]:
    """Return what pools over so many axes; over all but two if None."""

    def call(x: Value, ksize: Any, strides: Any, padding: Any, data_format: Any) -> Value:
        if mean and not isinstance(padding, str):
            raise Refused(ValueError("Explicit padding is for max pools, not for those of means."))
        where = layout(x.ndim - 2 if spatial is None else spatial, data_format)
        return _pooled(x, ksize, strides, padding, where, None, mean)

    return call


def _any_pool(
    x: Value, window_shape: Any, pooling_type: str, strides: Any, padding: Any, data_format: Any,
    dilations: Any,
) -> Value:  # fmt: skip
    if pooling_type not in ("AVG", "MAX"):
        raise Refused(
            ValueError(f"`pooling_type` must be one of AVG, MAX. Received: {pooling_type}")
        )
    where = layout(len(np.asarray(window_shape).ravel()), data_format)
    steps = 1 if strides is None else strides
    return _pooled(x, window_shape, steps, padding, where, dilations, pooling_type == "AVG")


def _max_with_argmax(
    x: Value, ksize: Any, strides: Any, padding: Any, data_format: Any, output_dtype: Any,
    include_batch: Any,
) -> tuple[Value, Value]:  # fmt: skip
    where = layout(2, data_format)
    sizes, steps = numbers(ksize, where, "ksize"), numbers(strides, where, "strides")
    dtype = as_dtype(output_dtype).dtype
    batch = 0 if include_batch else None
    count = x.size if include_batch else x.size // max(len(x), 1)
    places = jnp.arange(count, dtype=dtype).reshape(x.shape if batch == 0 else (1, *x.shape[1:]))
    values = _windows(x, sizes, steps, padding, where, -np.inf)
    found = jnp.argmax(values, axis=0)[None]
    indices = _windows(jnp.broadcast_to(places, x.shape), sizes, steps, padding, where, 0)
    return (
        jnp.take_along_axis(values, found, axis=0)[0],
        jnp.take_along_axis(indices, found, axis=0)[0],
    )


def _windows(
    x: Value, sizes: Sizes, steps: Sizes, padding: Any, where: Layout, fill: float
) -> Value:
    """Return the elements of all windows, along a new first axis."""
    pads = paddings(padding, x.shape[1:3], sizes, steps, where)
    padded = jnp.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    ends = [
        (n - size) // step for n, size, step in zip(padded.shape[1:3], sizes, steps, strict=True)
    ]
    parts = [
        padded[
            :, a : a + ends[0] * steps[0] + 1 : steps[0], b : b + ends[1] * steps[1] + 1 : steps[1]
        ]
        for a, b in itertools.product(*map(range, sizes))
    ]
    return jnp.stack(parts)


# ---------------------------------------------------------------- space and channels
def _space_to_depth(x: Value, block_size: int, data_format: str) -> Value:
    return _moved(_to_depth, x, int(block_size), data_format)


def _depth_to_space(x: Value, block_size: int, data_format: str) -> Value:
    return _moved(_to_space, x, int(block_size), data_format)


def _moved(move: Callable[[Value, int], Value], x: Value, size: int, data_format: str) -> Value:
    if layout(2, data_format).channels_first:
        return jnp.moveaxis(move(jnp.moveaxis(x, 1, -1), size), -1, 1)
    return move(x, size)


def _to_depth(x: Value, size: int) -> Value:
    n, height, width, channels = x.shape
    parts = x.reshape(n, height // size, size, width // size, size, channels)
    moved = parts.transpose(0, 1, 3, 2, 4, 5)
    return moved.reshape(n, height // size, width // size, size * size * channels)


def _to_space(x: Value, size: int) -> Value:
    n, height, width, channels = x.shape
    left = channels // size**2
    parts = x.reshape(n, height, width, size, size, left).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(n, height * size, width * size, left)


_SIGNATURE = "input, ksize, strides, padding, data_format={!r}"

_POOLS = [
    Row(
        f"{word}_pool{dims}", "input", _SIGNATURE.format(names), _pool(n, word == "avg"),
        op=f"{word.title()}Pool", kinds="float" if word == "avg" else "float int",
        doc=f"Return the {what} of each window{over}.", examples=examples,
    )
    for word, what, dims, n, names, over, examples in (
        ("avg", "mean", "", None, None, "", (
            "nn.avg_pool(r(1, 4, 4, 1), 2, 2, 'VALID')",
            "nn.avg_pool(r(1, 3, 4, 2), [2, 3], [1, 2], 'SAME')",
            "nn.avg_pool(r(1, 4, 2), 3, 1, 'SAME')",
        )),
        ("avg", "mean", "1d", 1, "NWC", " of sequences", (
            "nn.avg_pool1d(r(2, 4, 2), 2, 2, 'VALID')", "nn.avg_pool1d(r(1, 5, 1), 3, 2, 'SAME')",
            "nn.avg_pool1d(r(1, 4, 1), [2], [1], 'SAME')",
        )),
        ("avg", "mean", "2d", 2, "NHWC", " of images", (
            "nn.avg_pool2d(r(1, 4, 4, 1), 2, 2, 'VALID')",
            "nn.avg_pool2d(r(1, 3, 3, 2), [1, 2, 2, 1], [1, 1, 1, 1], 'SAME')",
            "nn.avg_pool2d(r(1, 3, 3, 1), 3, 1, 'SAME')",
        )),
        ("avg", "mean", "3d", 3, "NDHWC", " of volumes", (
            "nn.avg_pool3d(r(1, 2, 2, 4, 1), 2, 2, 'VALID')",
            "nn.avg_pool3d(r(1, 2, 3, 2, 1), 2, 1, 'SAME')",
            "nn.avg_pool3d(r(1, 1, 2, 2, 2), [1, 2, 1], 1, 'VALID')",
        )),
        ("max", "largest element", "", None, None, "", (
            "nn.max_pool(r(1, 4, 4, 1), 2, 2, 'VALID')",
            "nn.max_pool(r(1, 3, 4, 2), [2, 3], [1, 2], 'SAME')",
            "nn.max_pool(r(1, 4, 2), 3, 1, 'SAME')",
            "nn.max_pool(i(1, 4, 4, 1), 2, 2, 'VALID')",
        )),
        ("max", "largest element", "1d", 1, "NWC", " of sequences", (
            "nn.max_pool1d(r(2, 4, 2), 2, 2, 'VALID')", "nn.max_pool1d(r(1, 5, 1), 3, 2, 'SAME')",
            "nn.max_pool1d(r(1, 4, 1), [2], [1], 'SAME')",
        )),
        ("max", "largest element", "2d", 2, "NHWC", " of images", (
            "nn.max_pool2d(r(1, 4, 4, 1), 2, 2, 'VALID')",
            "nn.max_pool2d(r(1, 3, 3, 1), 2, 1, [[0, 0], [1, 0], [0, 1], [0, 0]])",
            "nn.max_pool2d(0.0 * r(1, 2, 4, 1), 2, 2, 'SAME')",
        )),
        ("max", "largest element", "3d", 3, "NDHWC", " of volumes", (
            "nn.max_pool3d(r(1, 2, 2, 4, 1), 2, 2, 'VALID')",
            "nn.max_pool3d(r(1, 2, 3, 2, 1), 2, 1, 'SAME')",
            "nn.max_pool3d(r(1, 1, 2, 2, 2), [1, 2, 1], 1, 'VALID')",
        )),
    )
]  # fmt: skip

ROWS = [
    *_POOLS,
    Row(
        "pool", "input",
        "input, window_shape, pooling_type, strides=None, padding='VALID', data_format=None, "
        "dilations=None", _any_pool, kinds="float",
        doc="Return the mean (AVG) or largest element (MAX) of each window.",
        differs="a pool that is dilated and takes the largest has no derivative.",
        examples=(
            "nn.pool(r(1, 4, 4, 1), [2, 2], 'AVG')",
            "nn.pool(r(1, 5, 2), [2], 'MAX', strides=[2], padding='SAME')",
            "nn.pool(r(1, 5, 1), [2], 'AVG', dilations=[2])",
        ),
    ),
    Row(
        "max_pool_with_argmax", "input",
        "input, ksize, strides, padding, data_format='NHWC', output_dtype='int64', "
        "include_batch_in_index=False", _max_with_argmax, op="MaxPoolWithArgmax", kinds="float",
        doc="Return the largest element of each window, and where in the flat image it is.",
        examples=(
            "nn.max_pool_with_argmax(r(1, 4, 4, 1), 2, 2, 'VALID')",
            "nn.max_pool_with_argmax(r(2, 3, 3, 2), 2, 2, 'SAME')",
            "nn.max_pool_with_argmax(r(2, 2, 2, 1), 2, 1, 'VALID', include_batch_in_index=True)",
        ),
    ),
    Row(
        "space_to_depth", "input", "input, block_size, data_format='NHWC'", _space_to_depth,
        doc="Move blocks of pixels to the channels.", aliases=(),
        examples=(
            "nn.space_to_depth(r(1, 4, 2, 1), 2)", "nn.space_to_depth(i(1, 2, 2, 3), 2)",
            "nn.space_to_depth(r(1, 3, 4, 1), 2)",
        ),
    ),
    Row(
        "depth_to_space", "input", "input, block_size, data_format='NHWC'", _depth_to_space,
        doc="Move channels to blocks of pixels.",
        examples=(
            "nn.depth_to_space(r(1, 1, 2, 4), 2)", "nn.depth_to_space(i(1, 2, 1, 12), 2)",
            "nn.depth_to_space(r(1, 1, 1, 3), 2)",
        ),
    ),
]  # fmt: skip
