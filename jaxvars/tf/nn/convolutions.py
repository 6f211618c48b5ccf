"""Convolutions of `tf.nn`, their derivatives as operations, and convolutions of blocks.

Rules this file keeps:
- a transposed convolution is the derivative of a convolution by its input, written as a
  convolution of the input with gaps, by the filters turned around.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.nn.shapes import (
    Layout,
    as_one_batch,
    layout,
    numbers,
    paddings,
    reach,
    refused_value,
)
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.static import refused
from jaxvars.typing import Array


def _convolve(
    spatial: int, x: Array, filters: Array, strides: Any, padding: Any, data_format: Any,
    dilations: Any, groups: int | None = None,
) -> Array:  # fmt: skip
    where = layout(spatial, data_format)
    flat, batch = as_one_batch(x, where)
    steps, gaps = numbers(strides, where, "strides"), numbers(dilations, where, "dilations")
    sizes = [flat.shape[axis] for axis in where.axes]
    windows = reach(filters.shape[: where.spatial], gaps)
    made = jax.lax.conv_general_dilated(
        flat, filters, steps, paddings(padding, sizes, windows, steps, where), rhs_dilation=gaps,
        dimension_numbers=where.names(),
        feature_group_count=_count_groups(flat, filters, where) if groups is None else groups,
    )  # fmt: skip
    return made.reshape(*batch, *made.shape[1:])


def _count_groups(x: Array, filters: Array, where: Layout) -> int:
    channels, taken = x.shape[where.channels], filters.shape[-2]
    if not taken or channels % taken:
        raise refused(
            f"input depth must be evenly divisible by filter depth: {channels} vs {taken}"
        )
    return channels // taken


@op("nn.conv1d", "input filters", op="Conv2D", same=True, kinds="float int")
def conv1d(
    input: Array, filters: Array, stride: Any, padding: Any, data_format: Any = "NWC",
    dilations: Any = None,
) -> Array:  # fmt: skip
    """Convolve sequences with filters [size, in, out].

    Example: `tf.nn.conv1d(r(1, 5, 2), r(3, 2, 2), 1, 'SAME')`.
    """
    return _convolve(1, input, filters, stride, padding, data_format, dilations)


@op("nn.conv2d", "input filters", op="Conv2D", same=True, kinds="float int")
def conv2d(
    input: Array, filters: Array, strides: Any, padding: Any, data_format: Any = "NHWC",
    dilations: Any = None,
) -> Array:  # fmt: skip
    """Convolve images with filters [height, width, in, out].

    Example: `tf.nn.conv2d(r(1, 4, 5, 2), r(3, 2, 2, 1), 1, 'SAME')`.

    Differs from TensorFlow: channels may come first (NCHW) on any device.
    """
    return _convolve(2, input, filters, strides, padding, data_format, dilations)


@op("nn.conv3d", "input filters", op="Conv3D", same=True, kinds="float")
def conv3d(
    input: Array, filters: Array, strides: Any, padding: Any, data_format: Any = "NDHWC",
    dilations: Any = None,
) -> Array:  # fmt: skip
    """Convolve volumes with filters [depth, height, width, in, out].

    Example: `tf.nn.conv3d(r(1, 2, 3, 3, 1), r(2, 2, 2, 1, 1), [1, 1, 1, 1, 1], 'SAME')`.
    """
    return _convolve(3, input, filters, strides, padding, data_format, dilations)


@op("nn.convolution", "input filters", same=True, kinds="float int")
def convolution(
    input: Array, filters: Array, strides: Any = None, padding: Any = "VALID",
    data_format: Any = None, dilations: Any = None,
) -> Array:  # fmt: skip
    """Convolve, with as many spatial axes as the filters have.

    Example: `tf.nn.convolution(r(1, 5, 1), r(2, 1, 2))`.
    """
    return _convolve(filters.ndim - 2, input, filters, strides, padding, data_format, dilations)


# ---------------------------------------------------------------- by channel
@op("nn.depthwise_conv2d", "input filter", op="DepthwiseConv2dNative", same=True, kinds="float")
def depthwise_conv2d(
    input: Array, filter: Array, strides: Any, padding: Any, data_format: Any = None,
    dilations: Any = None,
) -> Array:  # fmt: skip
    """Convolve each channel separately, with filters [height, width, channels, times].

    Example: `tf.nn.depthwise_conv2d(r(1, 3, 4, 2), r(2, 2, 2, 2), [1, 1, 1, 1], 'SAME')`.
    """
    *window, channels, times = filter.shape
    grouped = filter.reshape(*window, 1, channels * times)
    return _convolve(2, input, grouped, strides, padding, data_format, dilations, channels)


@op("nn.separable_conv2d", "input depthwise_filter pointwise_filter", same=True, kinds="float")
def separable_conv2d(
    input: Array, depthwise_filter: Array, pointwise_filter: Array, strides: Any, padding: Any,
    data_format: Any = None, dilations: Any = None,
) -> Array:  # fmt: skip
    """Convolve each channel separately, and mix them with filters [1, 1, channels, out].

    Example: `tf.nn.separable_conv2d(r(1, 3, 3, 2), r(2, 2, 2, 1), r(1, 1, 2, 2), [1] * 4, 'SAME')`.
    """
    made = depthwise_conv2d.__wrapped__(
        input, depthwise_filter, strides, padding, data_format, dilations
    )
    return _convolve(2, made, pointwise_filter, None, "VALID", data_format, None)


# ---------------------------------------------------------------- transposed
def _convolve_transposed(
    spatial: int, x: Array, filters: Array, output_shape: Any, strides: Any, padding: Any,
    data_format: Any, dilations: Any,
) -> Array:  # fmt: skip
    where = layout(spatial, data_format)
    ends = x.shape[0], filters.shape[-2]
    sizes = _output_sizes(output_shape, where, ends)
    steps, gaps = numbers(strides, where, "strides"), numbers(dilations, where, "dilations")
    windows = reach(filters.shape[:spatial], gaps)
    pads = paddings(padding, sizes, windows, steps, where)
    inputs = [x.shape[axis] for axis in where.axes]
    _check_sizes(inputs, sizes, windows, steps, pads)
    turned = [
        _transpose_padding(*axis)
        for axis in zip(inputs, sizes, windows, steps, pads, strict=True)
    ]  # fmt: skip
    around = jnp.flip(filters, tuple(range(spatial))).swapaxes(-1, -2)
    return jax.lax.conv_general_dilated(
        x, around, (1,) * spatial, turned, lhs_dilation=steps, rhs_dilation=gaps,
        dimension_numbers=where.names(),
    )  # fmt: skip


def _make_transposed(
    name: str, spatial: int, data_format: str | None, doc: str, example: str, kinds: str = "float"
) -> Any:
    """Return the operation of a transposed convolution; 0 axes stand for those of the filters."""

    def call(
        input: Array, filters: Array, output_shape: Any, strides: Any, padding: Any = "SAME",
        data_format: Any = data_format, dilations: Any = None,
    ) -> Array:  # fmt: skip
        axes = spatial or filters.ndim - 2
        rest = output_shape, strides, padding, data_format, dilations
        return _convolve_transposed(axes, input, filters, *rest)

    call.__name__, call.__doc__ = name, f"Undo the shape of {doc}."
    title = "Conv3DBackpropInputV2" if spatial == 3 else "Conv2DBackpropInput"
    return op(f"nn.{name}", "input filters", op=title, same=True, kinds=kinds, example=example)(
        call
    )


# fmt: off
conv1d_transpose = _make_transposed(
    "conv1d_transpose", 1, "NWC", "conv1d, with filters [size, out, in]",
    "r(1, 3, 2), r(3, 1, 2), [1, 6, 1], 2")
conv2d_transpose = _make_transposed(
    "conv2d_transpose", 2, "NHWC", "conv2d, with filters [height, width, out, in]",
    "r(1, 2, 2, 2), r(3, 3, 1, 2), [1, 4, 4, 1], 2", "float int")
conv3d_transpose = _make_transposed(
    "conv3d_transpose", 3, "NDHWC", "conv3d",
    "r(1, 1, 2, 1, 1), r(2, 2, 2, 1, 1), [1, 2, 4, 2, 1], 2")
conv_transpose = _make_transposed(
    "conv_transpose", 0, None, "a convolution", "r(1, 3, 1), r(2, 1, 1), [1, 6, 1], 2")
# fmt: on


def _output_sizes(output_shape: Any, where: Layout, ends: tuple[int, int]) -> list[int]:
    """Return the spatial sizes of an output whose batch and channels must be `ends`."""
    shape = [int(size) for size in np.asarray(output_shape).ravel()]
    if len(shape) == where.spatial:
        return shape
    if len(shape) != where.spatial + 2:
        raise refused_value(
            f"output_shape must have length {where.spatial} or {where.spatial + 2}. Received: "
            f"{output_shape}"
        )
    if shape[0] not in (-1, ends[0]) or shape[where.channels] != ends[1]:
        raise refused(
            f"output_shape must have the batch size of the input and the channels of the filters, "
            f"{ends[0]} and {ends[1]}. Received: {shape}"
        )
    return [shape[axis] for axis in where.axes]


def _check_sizes(inputs: Any, sizes: Any, windows: Any, steps: Any, pads: Any) -> None:
    computed = [
        (size + low + high - window) // step + 1
        for size, window, step, (low, high) in zip(sizes, windows, steps, pads, strict=True)
    ]
    if computed != inputs:
        raise refused(
            f"Size of out_backprop doesn't match computed: actual = {inputs}, computed = "
            f"{computed}: output_shape does not belong to this input."
        )


def _transpose_padding(
    size: int, wanted: int, window: int, step: int, pad: tuple[int, int]
) -> tuple[int, int]:
    low = window - 1 - pad[0]
    return low, wanted - ((size - 1) * step + 1) - low + window - 1
