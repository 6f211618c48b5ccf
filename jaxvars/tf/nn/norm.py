"""Statistics and normalisation of `tf.nn`, and lookups, joined by `nn.py`."""

from __future__ import annotations

import functools
import operator
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.gather import rows_at
from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.math.pairs import maximum
from jaxvars.tf.nn.shapes import layout
from jaxvars.tf.registry.rows import Row, axes, shape_text
from jaxvars.tf.tensors.convert import as_given

Value: TypeAlias = Any


# ---------------------------------------------------------------- moments
def _moments(x: Value, along: Any, shift: Any, keepdims: Any) -> tuple[Value, Value]:
    return _mean_and_variance(x, axes(along), bool(keepdims))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _mean_and_variance(x: Value, where: Any, keepdims: bool) -> tuple[Value, Value]:
    wide = x.astype(jnp.float32) if x.dtype.name == "float16" else x
    mean = jnp.mean(wide, axis=where, keepdims=True)
    variance = jnp.mean(_square_abs(wide - jax.lax.stop_gradient(mean)), where, keepdims=True)
    if not keepdims:
        mean, variance = jnp.squeeze(mean, where), jnp.squeeze(variance, where)
    return mean.astype(x.dtype), variance.astype(x.dtype)


def _square_abs(x: Value) -> Value:
    return (x * jnp.conj(x)) if x.dtype.kind == "c" else jnp.square(x)


def _weighted_moments(x: Value, along: Any, weights: Value, keepdims: Any) -> tuple[Value, Value]:
    return _weighted(x, axes(along), weights, bool(keepdims))


@functools.partial(jax.jit, static_argnums=(1, 3))
def _weighted(x: Value, where: Any, weights: Value, keepdims: bool) -> tuple[Value, Value]:
    wide = x.astype(jnp.float32) if x.dtype.name == "float16" else x
    spread = jnp.broadcast_to(
        weights.astype(wide.dtype), jnp.broadcast_shapes(x.shape, weights.shape)
    )
    total = jnp.sum(spread, where, keepdims=True)
    mean = jnp.sum(spread * wide, where, keepdims=True) / total
    squares = jnp.square(wide - jax.lax.stop_gradient(mean))
    variance = jnp.sum(spread * squares, where, keepdims=True) / total
    if not keepdims:
        mean, variance = jnp.squeeze(mean, where), jnp.squeeze(variance, where)
    return mean.astype(x.dtype), variance.astype(x.dtype)


def _sufficient_statistics(
    x: Value, along: Any, shift: Value | None, keepdims: Any
) -> tuple[Value, ...]:
    where = range(x.ndim) if along is None else np.ravel(np.asarray(along)).tolist()
    count = functools.reduce(operator.mul, (x.shape[axis] for axis in where), 1)
    moved = x if shift is None else x - shift
    at = tuple(where)
    total = jnp.sum(moved, at, keepdims=bool(keepdims))
    squares = jnp.sum(jnp.square(moved), at, keepdims=bool(keepdims))
    parts = (jnp.asarray(count, x.dtype), total, squares)
    return parts if shift is None else (*parts, shift)


def _normalize_moments(
    counts: Value, mean_ss: Value, variance_ss: Value, shift: Value | None
) -> tuple[Value, Value]:
    moved = mean_ss / counts
    mean = moved if shift is None else moved + shift
    return mean, variance_ss / counts - jnp.square(moved)


# ---------------------------------------------------------------- normalisation
def _batch_normalization(
    x: Value, mean: Value, variance: Value, offset: Value | None, scale: Value | None, epsilon: Any
) -> Value:
    return _normalized(x, mean, variance, offset, scale, as_given(epsilon, variance.dtype))


@jax.jit
def _normalized(
    x: Value, mean: Value, variance: Value, offset: Value | None, scale: Value | None, least: Value
) -> Value:
    factor = jax.lax.rsqrt(variance + least)
    if scale is not None:
        factor = factor * scale
    rest = -mean * factor if offset is None else offset - mean * factor
    return x * factor.astype(x.dtype) + rest.astype(x.dtype)


def _local_response(x: Value, radius: int, bias: Any, alpha: Any, beta: Any) -> Value:
    return _responses(x, int(radius), *(as_given(each, x.dtype) for each in (bias, alpha, beta)))


@functools.partial(jax.jit, static_argnums=1)
def _responses(x: Value, radius: int, bias: Value, alpha: Value, beta: Value) -> Value:
    window = (1, 1, 1, 2 * radius + 1)
    pads = [(0, 0), (0, 0), (0, 0), (radius, radius)]
    zero = np.asarray(0, x.dtype)[()]
    total = jax.lax.reduce_window(jnp.square(x), zero, jax.lax.add, window, (1, 1, 1, 1), pads)
    return x / (bias + alpha * total) ** beta


def _bias_add(value: Value, bias: Value, data_format: Any) -> Value:
    first = data_format is not None and data_format.startswith("NC")
    if data_format not in (None, "N...C", "NC...") and value.ndim > 2:
        first = layout(value.ndim - 2, data_format).channels_first
    axis = 1 if first else value.ndim - 1
    if value.ndim < 2 or bias.ndim != 1 or bias.shape[0] != value.shape[axis]:
        raise InvalidArgumentError(
            None,
            None,
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shape_text(bias)} vs. {shape_text(value)} [Op:BiasAdd] name: ",
        )
    return value + bias.reshape(-1, *(1,) * (value.ndim - 1 - axis))


# ---------------------------------------------------------------- lookups
def _embedding_lookup(params: Value, ids: Value, max_norm: Any) -> Value:
    rows = rows_at(params, ids)
    if max_norm is None:
        return rows
    inner = tuple(range(ids.ndim, rows.ndim))
    squares = jnp.sum(jnp.square(rows), inner, keepdims=True)
    norm = jnp.sqrt(jnp.where(squares > 0, squares, 1))
    limit = jnp.asarray(max_norm, rows.dtype)
    return rows * limit / maximum(norm, jnp.broadcast_to(limit, norm.shape))


ROWS = [
    Row(
        "moments", "x", "x, axes, shift=None, keepdims=False", _moments, kinds="float",
        doc="Return the mean and the variance along axes.",
        examples=(
            "nn.moments(r(2, 3), axes=[0])", "nn.moments(r(2, 3), [0, 1], keepdims=True)",
            "nn.moments(tf.cast(r(2, 3), 'float16'), -1)",
        ),
    ),
    Row(
        "weighted_moments", "x frequency_weights", "x, axes, frequency_weights, keepdims=False",
        _weighted_moments, kinds="float",
        doc="Return the mean and the variance along axes, each element counted by its weight.",
        examples=(
            "nn.weighted_moments(r(2, 3), [1], p(2, 3))", "nn.weighted_moments(r(2, 3), 0, 2.0)",
            "nn.weighted_moments(r(2, 3), [0, 1], p(2, 1), keepdims=True)",
        ),
    ),
    Row(
        "sufficient_statistics", "x shift?", "x, axes, shift=None, keepdims=False",
        _sufficient_statistics, kinds="float",
        doc="Return the count, the sum and the sum of squares, which give the moments.",
        examples=(
            "nn.sufficient_statistics(r(2, 3), [0])",
            "nn.sufficient_statistics(r(2, 3), [0, 1], shift=1.5)",
            "nn.sufficient_statistics(r(2, 3), [-1], keepdims=True)",
        ),
    ),
    Row(
        "normalize_moments", "counts mean_ss variance_ss shift?",
        "counts, mean_ss, variance_ss, shift", _normalize_moments, kinds="float",
        doc="Return the mean and the variance that sums of values and squares stand for.",
        examples=(
            "nn.normalize_moments(4.0, r(3), p(3), None)",
            "nn.normalize_moments(4.0, r(3), p(3), shift=r(3))",
            "nn.normalize_moments(p(2), r(2), p(2), 1.0)",
        ),
    ),
    Row(
        "batch_normalization", "x mean variance offset? scale?",
        "x, mean, variance, offset, scale, variance_epsilon", _batch_normalization, op="Mul",
        kinds="float", doc="Return x less a mean, by a deviation, times a scale, plus an offset.",
        examples=(
            "nn.batch_normalization(r(2, 3), r(3), p(3), r(3), p(3), 1e-3)",
            "nn.batch_normalization(r(2, 3), r(3), p(3), None, None, 1e-3)",
            "nn.batch_normalization(r(2, 3), 0.5, p(3), r(3), scale=None, variance_epsilon=1)",
        ),
    ),
    Row(
        "local_response_normalization", "input",
        "input, depth_radius=5, bias=1, alpha=1, beta=0.5", _local_response, op="LRN",
        kinds="float", aliases=("nn.lrn",),
        doc="Return an image by a power of the squares of the channels nearby.",
        examples=(
            "nn.local_response_normalization(r(1, 1, 2, 4))",
            "nn.lrn(r(1, 2, 1, 4), 1, 2, 0.5, 0.75)",
            "nn.lrn(r(1, 1, 1, 3), depth_radius=2)",
        ),
    ),
    Row(
        "bias_add", "value bias", "value, bias, data_format=None", _bias_add, op="BiasAdd",
        same=True, kinds="float complex int", doc="Add a bias to the channels.",
        examples=(
            "nn.bias_add(r(2, 3), r(3))", "nn.bias_add(r(1, 2, 2, 2), r(2), data_format='NCHW')",
            "nn.bias_add(r(2, 3), r(2))", "nn.bias_add(i(2, 3), [1, 2, 3])",
        ),
    ),
    Row(
        "embedding_lookup", "params ids", "params, ids, max_norm=None", _embedding_lookup,
        op="GatherV2", kinds="float int complex",
        doc="Return rows of a table by index, scaled down to a norm if one is given.",
        differs="on a GPU and in compiled functions an index out of range gives zeros.",
        examples=(
            "nn.embedding_lookup(r(4, 2), [3, 0, 3])",
            "nn.embedding_lookup(r(3, 2), [[1], [2]], max_norm=0.5)",
            "nn.embedding_lookup(r(3, 2), [0, 3])",
        ),
    ),
]  # fmt: skip
