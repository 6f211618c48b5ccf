"""Derivatives of convolutions as operations, and convolutions of blocks: joined by `nn.py`.

Rules this file keeps:
- they are the derivatives that JAX makes of the convolutions themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.nn.convolutions import depthwise_conv2d
from jaxvars.tf.nn.morphology import required_space_to_batch_paddings
from jaxvars.tf.registry.rows import find, op
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in np.asarray(shape).ravel())


def _by_input(
    conv: Callable[..., Array], shape: Any, filters: Array, upstream: Array, *rest: Any
) -> Array:
    start = jnp.zeros(_sizes(shape), upstream.dtype)
    return jax.vjp(lambda x: conv(x, filters, *rest), start)[1](upstream)[0]


def _by_filter(
    conv: Callable[..., Array], x: Array, shape: Any, upstream: Array, *rest: Any
) -> Array:
    start = jnp.zeros(_sizes(shape), upstream.dtype)
    return jax.vjp(lambda filters: conv(x, filters, *rest), start)[1](upstream)[0]


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[..., Any],
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Any:
    """Apply an operation on windows as if they had gaps: to blocks of the input.

    Args:
        input: of shape [batch, spatial axes..., channels].
        dilation_rate: how far apart the elements of a window are, for each spatial axis.
        padding: "SAME" or "VALID".
        op: takes the input, the number of spatial axes and the padding.
        filter_shape: the sizes of the window; needed for "SAME".
        spatial_dims: which axes they are; from 1 on when None.
        data_format: "NC..." if channels come first.

    Raises:
        ValueError: when "SAME" comes without `filter_shape`.
    """
    x = Tensor(to_array(input))
    rates = _sizes(dilation_rate)
    first = 2 if str(data_format).startswith("NC") else 1
    axes = list(range(first, first + len(rates))) if spatial_dims is None else list(spatial_dims)
    if all(rate == 1 for rate in rates):
        return op(x, num_spatial_dims=len(rates), padding=padding)
    base = _base_paddings(padding, filter_shape, rates)
    if axes != list(range(1, 1 + len(axes))):
        axes, rates, base = _from_one(axes, rates, base)
    sizes = [int(x.shape[axis]) for axis in axes]
    pads, crops = required_space_to_batch_paddings.__wrapped__(sizes, rates, base)
    made = op(
        find("space_to_batch")(x, rates, pads), num_spatial_dims=len(_sizes(dilation_rate)),
        padding="VALID",
    )  # fmt: skip
    return find("batch_to_space")(made, rates, crops)


def _base_paddings(padding: str, filter_shape: Any, rates: tuple[int, ...]) -> np.ndarray:
    if padding == "VALID":
        return np.zeros((len(rates), 2), np.int32)
    if padding != "SAME":
        raise ValueError(f"Invalid padding method {padding}")
    if filter_shape is None:
        raise ValueError("filter_shape must be specified for `padding='SAME'`.")
    extra = [(n - 1) * rate for n, rate in zip(_sizes(filter_shape), rates, strict=False)]
    return np.array([[n // 2, n - n // 2] for n in extra], np.int32)


def _from_one(axes: list[int], rates: tuple[int, ...], base: Any) -> Any:
    """Return the axes from 1 to the last one, with rates of 1 for those in between."""
    last = max(axes)
    all_rates, all_base = [1] * last, np.zeros((last, 2), np.int32)
    for axis, rate, pad in zip(axes, rates, base, strict=True):
        all_rates[axis - 1], all_base[axis - 1] = rate, pad
    return list(range(1, last + 1)), tuple(all_rates), all_base


@op("nn.depthwise_conv2d_backprop_input", "filter out_backprop", same=True, kinds="float")
def depthwise_conv2d_backprop_input(
    input_sizes: Any, filter: Array, out_backprop: Array, strides: Any, padding: Any,
    data_format: Any = "NHWC", dilations: Any = (1, 1, 1, 1),
) -> Array:  # fmt: skip
    """Return the derivative of `tf.nn.depthwise_conv2d` with respect to its input.

    Example:
    `tf.nn.depthwise_conv2d_backprop_input([1, 4, 4, 1], r(2, 2, 1, 2), r(1, 4, 4, 2), [1, 1, 1, 1],
    'SAME')`.
    """
    return _by_input(
        depthwise_conv2d.__wrapped__, input_sizes, filter, out_backprop, strides, padding,
        data_format, dilations,
    )  # fmt: skip


@op("nn.depthwise_conv2d_backprop_filter", "input out_backprop", same=True, kinds="float")
def depthwise_conv2d_backprop_filter(
    input: Array, filter_sizes: Any, out_backprop: Array, strides: Any, padding: Any,
    data_format: Any = "NHWC", dilations: Any = (1, 1, 1, 1),
) -> Array:  # fmt: skip
    """Return the derivative of `tf.nn.depthwise_conv2d` with respect to its filters.

    Example:
    `tf.nn.depthwise_conv2d_backprop_filter(r(1, 4, 4, 1), [2, 2, 1, 2], r(1, 4, 4, 2), [1, 1, 1,
    1], 'SAME')`.
    """
    return _by_filter(
        depthwise_conv2d.__wrapped__, input, filter_sizes, out_backprop, strides, padding,
        data_format, dilations,
    )  # fmt: skip
