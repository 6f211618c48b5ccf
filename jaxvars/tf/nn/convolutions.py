"""Convolutions of `tf.nn`, joined by `nn.py`.

Rules this file keeps:
- a transposed convolution is the derivative of a convolution by its input, written as a
  convolution of the input with gaps, by the filters turned around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.nn.shapes import Layout, as_one_batch, layout, numbers, paddings, reach
from jaxvars.tf.registry.rows import Refused, Row

Value: TypeAlias = Any


def _convolved(
    x: Value, filters: Value, strides: Any, padding: Any, where: Layout, dilations: Any,
    groups: int | None = None,
) -> Value:  # fmt: skip
    flat, batch = as_one_batch(x, where, "input")
    steps, gaps = numbers(strides, where, "strides"), numbers(dilations, where, "dilations")
    sizes = [flat.shape[axis] for axis in where.axes]
    windows = reach(filters.shape[: where.spatial], gaps)
    made = jax.lax.conv_general_dilated(
        flat, filters, steps, paddings(padding, sizes, windows, steps, where), rhs_dilation=gaps,
        dimension_numbers=where.names(),
        feature_group_count=_groups(flat, filters, where) if groups is None else groups,
    )  # fmt: skip
    return made.reshape(*batch, *made.shape[1:])


def _groups(x: Value, filters: Value, where: Layout) -> int:
    channels, taken = x.shape[where.channels], filters.shape[-2]
    if not taken or channels % taken:
        raise Refused(
            InvalidArgumentError(
                None,
                None,
                f"input depth must be evenly divisible by filter depth: {channels} vs {taken}",
            )
        )
    return channels // taken


def _conv(spatial: int) -> Callable[..., Value]:
    def call(
        x: Value, filters: Value, strides: Any, padding: Any, data_format: Any, dilations: Any
    ) -> Value:
        where = layout(spatial, data_format)
        return _convolved(x, filters, strides, padding, where, dilations)

    return call


def _convolution(
    x: Value, filters: Value, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Value:
    return _conv(filters.ndim - 2)(x, filters, strides, padding, data_format, dilations)


def _atrous(x: Value, filters: Value, rate: int, padding: Any) -> Value:
    return _convolved(x, filters, None, padding, layout(2, None), rate)


# ---------------------------------------------------------------- by channel
def _depthwise(
    x: Value, filters: Value, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Value:
    where = layout(2, data_format)
    *window, channels, times = filters.shape
    spread = filters.reshape(*window, 1, channels * times)
    return _convolved(x, spread, strides, padding, where, dilations, groups=channels)


def _separable(
    x: Value, depthwise: Value, pointwise: Value, strides: Any, padding: Any, data_format: Any,
    dilations: Any,
) -> Value:  # fmt: skip
    made = _depthwise(x, depthwise, strides, padding, data_format, dilations)
    return _convolved(made, pointwise, None, "VALID", layout(2, data_format), None)


# ---------------------------------------------------------------- transposed
def _transposed(spatial: int) -> Callable[..., Value]:
    def call(
        x: Value, filters: Value, output_shape: Any, strides: Any, padding: Any, data_format: Any,
        dilations: Any,
    ) -> Value:  # fmt: skip
        where = layout(spatial, data_format)
        sizes = _output_sizes(output_shape, where)
        steps, gaps = numbers(strides, where, "strides"), numbers(dilations, where, "dilations")
        windows = reach(filters.shape[:spatial], gaps)
        pads = paddings(padding, sizes, windows, steps, where)
        inputs = [x.shape[axis] for axis in where.axes]
        _check_sizes(inputs, sizes, windows, steps, pads)
        turned = [
            _turned_padding(*axis)
            for axis in zip(inputs, sizes, windows, steps, pads, strict=True)
        ]  # fmt: skip
        around = jnp.flip(filters, tuple(range(spatial))).swapaxes(-1, -2)
        return jax.lax.conv_general_dilated(
            x, around, (1,) * spatial, turned, lhs_dilation=steps, rhs_dilation=gaps,
            dimension_numbers=where.names(),
        )  # fmt: skip

    return call


def _conv_transpose(x: Value, filters: Value, *rest: Any) -> Value:
    return _transposed(filters.ndim - 2)(x, filters, *rest)


def _atrous_transposed(
    x: Value, filters: Value, output_shape: Any, rate: int, padding: Any
) -> Value:
    return _transposed(2)(x, filters, output_shape, None, padding, None, rate)


def _output_sizes(output_shape: Any, where: Layout) -> list[int]:
    shape = [int(size) for size in np.asarray(output_shape).ravel()]
    if len(shape) == where.spatial:
        return shape
    if len(shape) != where.spatial + 2:
        raise Refused(
            ValueError(
                f"output_shape must have length {where.spatial} or {where.spatial + 2}. Received: "
                f"{output_shape}"
            )
        )
    return [shape[axis] for axis in where.axes]


def _check_sizes(inputs: Any, sizes: Any, windows: Any, steps: Any, pads: Any) -> None:
    computed = [
        (size + low + high - window) // step + 1
        for size, window, step, (low, high) in zip(sizes, windows, steps, pads, strict=True)
    ]
    if computed != inputs:
        raise Refused(
            InvalidArgumentError(
                None,
                None,
                f"Size of out_backprop doesn't match computed: actual = {inputs}, computed = "
                f"{computed}: output_shape does not belong to this input.",
            )
        )


def _turned_padding(
    size: int, wanted: int, window: int, step: int, pad: tuple[int, int]
) -> tuple[int, int]:
    low = window - 1 - pad[0]
    return low, wanted - ((size - 1) * step + 1) - low + window - 1


_SIGNATURE = "input, filters, {}, padding, data_format={!r}, dilations=None"
_TRANSPOSED = (
    "input, filters, output_shape, strides, padding='SAME', data_format={!r}, dilations=None"
)

ROWS = [
    Row(
        "conv1d", "input filters", _SIGNATURE.format("stride", "NWC"), _conv(1), op="Conv1D",
        same=True, kinds="float int", doc="Convolve sequences with filters [size, in, out].",
        examples=(
            "nn.conv1d(r(1, 5, 2), r(3, 2, 2), 1, 'SAME')",
            "nn.conv1d(r(2, 5, 1), r(2, 1, 2), stride=2, padding='VALID')",
            "nn.conv1d(r(1, 6, 1), r(2, 1, 1), 1, 'VALID', dilations=2)",
        ),
    ),
    Row(
        "conv2d", "input filters", _SIGNATURE.format("strides", "NHWC"), _conv(2), op="Conv2D",
        same=True, kinds="float int",
        doc="Convolve images with filters [height, width, in, out].",
        differs="channels may come first (NCHW) on any device.",
        examples=(
            "nn.conv2d(r(1, 4, 5, 2), r(3, 2, 2, 1), 1, 'SAME')",
            "nn.conv2d(r(1, 4, 4, 1), r(2, 2, 1, 2), [1, 2, 2, 1], 'VALID')",
            "nn.conv2d(r(1, 3, 3, 1), r(2, 2, 1, 1), 2, [[0, 0], [1, 0], [0, 2], [0, 0]])",
            "nn.conv2d(r(1, 5, 5, 1), r(2, 2, 1, 1), 1, 'SAME', dilations=[2, 1])",
            "nn.conv2d(r(1, 3, 3, 2), r(2, 2, 3, 1), 1, 'SAME')",
        ),
    ),
    Row(
        "conv3d", "input filters", _SIGNATURE.format("strides", "NDHWC"), _conv(3), op="Conv3D",
        same=True, kinds="float",
        doc="Convolve volumes with filters [depth, height, width, in, out].",
        examples=(
            "nn.conv3d(r(1, 2, 3, 3, 1), r(2, 2, 2, 1, 1), [1, 1, 1, 1, 1], 'SAME')",
            "nn.conv3d(r(1, 3, 3, 3, 1), r(2, 2, 2, 1, 1), [1, 2, 2, 2, 1], 'VALID')",
            "nn.conv3d(r(1, 2, 2, 2, 1), r(1, 1, 1, 1, 2), [1, 1, 1, 1, 1], 'VALID')",
        ),
    ),
    Row(
        "convolution", "input filters",
        "input, filters, strides=None, padding='VALID', data_format=None, dilations=None",
        _convolution, same=True, kinds="float int",
        doc="Convolve, with as many spatial axes as the filters have.",
        examples=(
            "nn.convolution(r(1, 5, 1), r(2, 1, 2))",
            "nn.convolution(r(1, 4, 4, 1), r(2, 2, 1, 1), strides=2, padding='SAME')",
            "nn.convolution(r(1, 5, 4, 1), r(2, 2, 1, 1), dilations=[2, 1])",
        ),
    ),
    Row(
        "atrous_conv2d", "value filters", "value, filters, rate, padding", _atrous, same=True,
        kinds="float", doc="Convolve images with filters that have gaps.",
        examples=(
            "nn.atrous_conv2d(r(1, 5, 5, 1), r(2, 2, 1, 1), 2, 'VALID')",
            "nn.atrous_conv2d(r(1, 4, 4, 1), r(2, 2, 1, 1), 2, 'SAME')",
            "nn.atrous_conv2d(r(1, 3, 3, 1), r(2, 2, 1, 2), 1, 'SAME')",
        ),
    ),
    Row(
        "depthwise_conv2d", "input filter",
        "input, filter, strides, padding, data_format=None, dilations=None", _depthwise,
        op="DepthwiseConv2dNative", same=True, kinds="float",
        doc="Convolve each channel by itself, with filters [height, width, channels, times].",
        examples=(
            "nn.depthwise_conv2d(r(1, 3, 4, 2), r(2, 2, 2, 2), [1, 1, 1, 1], 'SAME')",
            "nn.depthwise_conv2d(r(1, 4, 4, 2), r(2, 2, 2, 1), [1, 2, 2, 1], 'VALID')",
            "nn.depthwise_conv2d(r(1, 4, 4, 1), r(2, 2, 1, 1), [1] * 4, 'VALID', dilations=[2, 2])",
        ),
    ),
    Row(
        "separable_conv2d", "input depthwise_filter pointwise_filter",
        "input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, "
        "dilations=None", _separable, same=True, kinds="float",
        doc="Convolve each channel by itself, and mix them with filters [1, 1, channels, out].",
        examples=(
            "nn.separable_conv2d(r(1, 3, 3, 2), r(2, 2, 2, 1), r(1, 1, 2, 2), [1] * 4, 'SAME')",
            "nn.separable_conv2d(r(1, 4, 4, 1), r(2, 2, 1, 2), r(1, 1, 2, 1), [1] * 4, 'SAME')",
            "nn.separable_conv2d(r(1, 3, 3, 1), r(2, 2, 1, 1), r(1, 1, 1, 3), [1] * 4, 'VALID')",
        ),
    ),
    Row(
        "conv1d_transpose", "input filters", _TRANSPOSED.format("NWC"), _transposed(1), same=True,
        kinds="float", doc="Undo the shape of conv1d, with filters [size, out, in].",
        examples=(
            "nn.conv1d_transpose(r(1, 3, 2), r(3, 1, 2), [1, 6, 1], 2)",
            "nn.conv1d_transpose(r(1, 3, 1), r(2, 2, 1), [1, 4, 2], 1, 'VALID')",
            "nn.conv1d_transpose(r(1, 3, 1), r(2, 2, 1), [1, 5, 2], [1, 2, 1])",
        ),
    ),
    Row(
        "conv2d_transpose", "input filters", _TRANSPOSED.format("NHWC"), _transposed(2), same=True,
        kinds="float int", doc="Undo the shape of conv2d, with filters [height, width, out, in].",
        examples=(
            "nn.conv2d_transpose(r(1, 2, 2, 2), r(3, 3, 1, 2), [1, 4, 4, 1], 2)",
            "nn.conv2d_transpose(r(1, 2, 3, 1), r(2, 2, 2, 1), [1, 3, 4, 2], 1, 'VALID')",
            "nn.conv2d_transpose(r(1, 2, 2, 1), r(2, 2, 1, 1), [1, 3, 5, 1], [1, 2, 3, 1], 'SAME')",
        ),
    ),
    Row(
        "conv3d_transpose", "input filters", _TRANSPOSED.format("NDHWC"), _transposed(3),
        same=True, kinds="float", doc="Undo the shape of conv3d.",
        examples=(
            "nn.conv3d_transpose(r(1, 1, 2, 1, 1), r(2, 2, 2, 1, 1), [1, 2, 4, 2, 1], 2)",
            "nn.conv3d_transpose(r(1, 1, 1, 1, 1), r(2, 2, 2, 2, 1), [1, 2, 2, 2, 2], 1, 'VALID')",
            "nn.conv3d_transpose(r(1, 1, 1, 2, 1), r(1, 1, 2, 1, 1), [1, 1, 1, 4, 1], [1, 1, 2])",
        ),
    ),
    Row(
        "atrous_conv2d_transpose", "value filters", "value, filters, output_shape, rate, padding",
        _atrous_transposed, same=True, kinds="float", doc="Undo the shape of atrous_conv2d.",
        examples=(
            "nn.atrous_conv2d_transpose(r(1, 3, 3, 1), r(2, 2, 2, 1), [1, 5, 5, 2], 2, 'VALID')",
            "nn.atrous_conv2d_transpose(r(1, 4, 4, 1), r(2, 2, 1, 1), [1, 4, 4, 1], 2, 'SAME')",
            "nn.atrous_conv2d_transpose(r(1, 3, 3, 2), r(2, 2, 1, 2), [1, 3, 3, 1], 1, 'SAME')",
        ),
    ),
    Row(
        "conv_transpose", "input filters", _TRANSPOSED.format(None), _conv_transpose, same=True,
        kinds="float", doc="Undo the shape of a convolution.",
        examples=(
            "nn.conv_transpose(r(1, 3, 1), r(2, 1, 1), [1, 6, 1], 2)",
            "nn.conv_transpose(r(1, 2, 2, 1), r(2, 2, 1, 1), [1, 3, 3, 1], 1, 'VALID')",
            "nn.conv_transpose(r(1, 2, 1), r(2, 2, 1), output_shape=[1, 2, 2], strides=1)",
        ),
    ),
]  # fmt: skip
