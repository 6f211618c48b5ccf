"""Dilation, erosion and pools of fractional sizes; isotonic regression.

Rules this file keeps:
- what is padded is never the largest or the smallest.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.math.slopes import inverse_root
from jaxvars.tf.nn.shapes import layout, numbers, paddings, places_in, reach, refused_value
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


# ---------------------------------------------------------------- dilation and erosion
@op("nn.dilation2d", "input filters", op="Dilation2D", same=True, kinds="float int")
def dilation2d(
    input: Array, filters: Array, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Array:
    """Return the largest sum of each window of images and a filter [height, width, in].

    Example:
    `tf.nn.dilation2d(r(1, 4, 4, 1), r(2, 2, 1), [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])`.

    Differs from TensorFlow: a window with NaN gives NaN.
    """
    if data_format != "NHWC":
        raise refused_value("NHWC is the only data format that is there.")
    where = layout(2, data_format)
    steps, gaps = numbers(strides, where, "strides"), numbers(dilations, where, "dilations")
    windows = reach(filters.shape[:2], gaps)
    pads = paddings(padding, input.shape[1:3], windows, steps, where)
    least = -np.inf if input.dtype.kind not in "iu" else np.iinfo(input.dtype).min
    padded = jnp.pad(input, [(0, 0), *pads, (0, 0)])
    inside = np.pad(np.ones((1, *input.shape[1:3], 1), bool), [(0, 0), *pads, (0, 0)])
    seen, known = (places_in(x, filters.shape[:2], steps, gaps) for x in (padded, inside))
    made: Any = None
    for x, is_known, weight in zip(seen, known, filters.reshape(-1, filters.shape[2]), strict=True):
        part = jnp.where(is_known, x + weight, jnp.asarray(least, input.dtype))
        made = part if made is None else jnp.where(part > made, part, made)  # the first of equals
    return made


@op("nn.erosion2d", "value filters", op="Dilation2D", same=True, kinds="float int")
def erosion2d(
    value: Array, filters: Array, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Array:
    """Return the smallest difference of each window of images and a filter.

    Example:
    `tf.nn.erosion2d(r(1, 4, 4, 1), r(2, 2, 1), [1, 1, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])`.

    Differs from TensorFlow: a window with NaN gives NaN.
    """
    turned = filters[::-1, ::-1]
    return -dilation2d.__wrapped__(-value, turned, strides, padding, data_format, dilations)


# ---------------------------------------------------------------- pools of fractional sizes
class FractionalPool(NamedTuple):
    """A pool whose windows differ in size.

    Attributes:
        output: the result.
        row_pooling_sequence: where the windows begin, along the rows, and where the last one ends.
        col_pooling_sequence: the same along the columns.
    """

    output: Array
    row_pooling_sequence: Array
    col_pooling_sequence: Array


def fractional_max_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    seed: int = 0, name: str | None = None,
) -> FractionalPool:  # fmt: skip
    """Return the largest element of each of some windows of random sizes.

    Args:
        value: images of shape [batch, height, width, channels].
        pooling_ratio: how much smaller the images become: a number, two, or one for each axis with
            1 for the batch and the channels.
        pseudo_random: whether the sizes of windows change regularly, from a random start.
        overlapping: whether the end of a window is in the next one, too.
        seed: for the same windows each time; 0 for others.
        name: of no effect.

    Raises:
        ValueError: when the ratios are not one, two or four numbers of 1 or more.

    Source: https://arxiv.org/abs/1412.6071

    Differs from TensorFlow: the random values are those of `jax.random`.
    """
    return _fractional(value, pooling_ratio, pseudo_random, overlapping, seed, is_mean=False)


def fractional_avg_pool(
    value: Any, pooling_ratio: Any, pseudo_random: bool = False, overlapping: bool = False,
    seed: int = 0, name: str | None = None,
) -> FractionalPool:  # fmt: skip
    """Return the mean of each of some windows of random sizes.

    The arguments, and what is raised, are as for `fractional_max_pool`.
    """
    return _fractional(value, pooling_ratio, pseudo_random, overlapping, seed, is_mean=True)


def _fractional(
    value: Any, ratio: Any, pseudo: bool, overlaps: bool, seed: int, is_mean: bool
) -> FractionalPool:
    from jaxvars.tf.random import streams as streams
    from jaxvars.tf.tensors.convert import to_array

    x, ratios = to_array(value), _ratios(ratio)
    sizes = [int(n / r) for n, r in zip(x.shape[1:3], ratios, strict=True)]
    keys = jax.random.split(streams.key("FractionalPool", seed or None))
    rows, columns = (
        _sequence(key, n, size, pseudo)
        for key, n, size in zip(keys, x.shape[1:3], sizes, strict=True)
    )
    pool = _mean_within if is_mean else _largest_within
    made = pool(pool(x, columns, 2, overlaps), rows, 1, overlaps)
    return FractionalPool(Tensor(made), Tensor(rows), Tensor(columns))


def _ratios(ratio: Any) -> list[float]:
    given = [float(r) for r in np.asarray(ratio).ravel()]
    given = given * 2 if len(given) == 1 else given
    if len(given) not in (2, 4) or min(given) < 1 or (len(given) == 4 and given[::3] != [1, 1]):
        raise ValueError(
            "pooling_ratio is a number, two of them, or [1.0, rows, columns, 1.0], each 1 or more. "
            f"Received: {ratio}"
        )
    return given[1:3] if len(given) == 4 else given


def _sequence(key: Array, size: int, wanted: int, pseudo: bool) -> Array:
    """Return where windows begin, and where the last one ends: int64 of shape [wanted + 1]."""
    least = size // wanted
    if size % wanted == 0:
        steps = jnp.full(wanted, least, jnp.int64)
    elif pseudo:
        alpha = size / wanted
        limit = min((least + 2) / alpha - 1, (size + 1 - least) / alpha - (wanted - 1))
        start = jax.random.uniform(key, dtype=jnp.float64) * limit
        places = jnp.ceil(alpha * (jnp.arange(wanted) + start)).astype(jnp.int64)
        places = jnp.concatenate([jnp.ones(1, jnp.int64), places[1:], jnp.full(1, size + 1)])
        return places - 1
    else:
        longer = np.arange(wanted) < size % wanted
        steps = jax.random.permutation(key, jnp.asarray(least + longer, jnp.int64))
    return jnp.concatenate([jnp.zeros(1, jnp.int64), jnp.cumsum(steps)])


def _inside(size: int, places: Array, overlaps: bool) -> Array:
    """Return which elements are in which window: bools of shape [windows, size]."""
    index = jnp.arange(size)
    last = places[1:, None] if overlaps else places[1:, None] - 1
    return (index >= places[:-1, None]) & (index <= last)


def _largest_within(x: Array, places: Array, axis: int, overlaps: bool) -> Array:
    inside = _inside(x.shape[axis], places, overlaps)
    moved = jnp.moveaxis(x, axis, -1)
    least = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
    known = jnp.where(inside, moved[..., None, :], jnp.asarray(least, x.dtype))
    is_largest = inside & ((known == jnp.max(known, -1, keepdims=True)) | (known != known))
    made = jnp.take_along_axis(moved, jnp.argmax(is_largest, -1), -1)  # the first of equals
    return jnp.moveaxis(made, -1, axis)


def _mean_within(x: Array, places: Array, axis: int, overlaps: bool) -> Array:
    inside = _inside(x.shape[axis], places, overlaps).astype(x.dtype)
    weights = inside / jnp.sum(inside, 1, keepdims=True)
    return jnp.moveaxis(jnp.moveaxis(x, axis, -1) @ weights.T, -1, axis).astype(x.dtype)


# ---------------------------------------------------------------- isotonic regression
class IsotonicRegression(NamedTuple):
    """The nearest ordered numbers.

    Attributes:
        output: the numbers.
        segments: which of them are one mean: the number of each one's group.
    """

    output: Array
    segments: Array


@op("nn.isotonic_regression", "inputs", kinds="float int", example="r(2, 5)")
def isotonic_regression(
    inputs: Array, decreasing: bool = True, axis: int = -1
) -> IsotonicRegression:
    """Return the nearest numbers that are in order, along an axis.

    Differs from TensorFlow: The groups are found on the host.
    """
    wide = {"i": 4, "u": 4}.get(inputs.dtype.kind)
    if wide is not None:
        inputs = inputs.astype(np.float64 if inputs.dtype.itemsize >= wide else np.float32)
    moved = jnp.moveaxis(inputs, axis, -1)
    shape = jax.ShapeDtypeStruct(moved.shape, np.int32)
    groups = jax.pure_callback(
        functools.partial(_groups, bool(decreasing)), shape, jax.lax.stop_gradient(moved),
        vmap_method="expand_dims",
    )  # fmt: skip
    same = groups[..., :, None] == groups[..., None, :]
    weights = same / jnp.sum(same, -1, keepdims=True, dtype=inputs.dtype)
    made = jnp.sum(weights.astype(inputs.dtype) * moved[..., None, :], -1)
    return IsotonicRegression(jnp.moveaxis(made, -1, axis), jnp.moveaxis(groups, -1, axis))


def _groups(decreasing: bool, x: Any) -> np.ndarray:
    """Return the number of each element's group, by pooling neighbours that are out of order."""
    rows = np.asarray(x).astype(np.float64) * (-1 if decreasing else 1)
    made = np.zeros(rows.shape, np.int32)
    for place in np.ndindex(rows.shape[:-1]):
        pools: list[tuple[float, int]] = []  # sums and lengths
        for number in rows[place].tolist():
            pools.append((number, 1))
            while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
                total, count = pools.pop()
                pools[-1] = (pools[-1][0] + total, pools[-1][1] + count)
        made[place] = np.repeat(np.arange(len(pools)), [count for _, count in pools])
    return made


@op(
    "nn.batch_norm_with_global_normalization", "input mean variance beta gamma", same=True,
    kinds="float",
)  # fmt: skip
def batch_norm_with_global_normalization(
    input: Array, mean: Array, variance: Array, beta: Array, gamma: Array, variance_epsilon: Any,
    scale_after_normalization: bool,
) -> Array:  # fmt: skip
    """Normalise by means and variances given.

    Example:
    `tf.nn.batch_norm_with_global_normalization(r(1, 2, 2, 3), r(3), p(3), r(3), p(3), 0.1, True)`.
    """
    scale = inverse_root(variance + jnp.asarray(variance_epsilon, input.dtype))
    scale = scale * gamma if scale_after_normalization else scale
    return input * scale + (beta - mean * scale)


@op("required_space_to_batch_paddings", example="[4, 5], [2, 2]")
def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None
) -> tuple[Array, Array]:
    """Return the paddings that `tf.space_to_batch` needs, and its crops."""
    sizes, blocks = np.asarray(input_shape), np.asarray(block_shape)
    none = np.zeros((len(blocks), 2), np.int32)
    pads = none if base_paddings is None else np.asarray(base_paddings)
    if sizes.shape != blocks.shape:
        raise refused(f"Shapes {sizes.shape} and {blocks.shape} are incompatible")
    more = -(sizes + pads.sum(1)) % blocks
    found = np.stack([pads[:, 0], pads[:, 1] + more], 1).astype(np.int32)
    return found, np.stack([np.zeros_like(more), more], 1).astype(np.int32)
