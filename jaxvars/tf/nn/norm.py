"""Statistics and normalisation of `tf.nn`, and lookups."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tf.arrays.gather import rows_at
from jaxvars.tf.arrays.join import concat
from jaxvars.tf.arrays.shape import squeeze
from jaxvars.tf.math.pairs import maximum
from jaxvars.tf.math.reduce import reduce_mean
from jaxvars.tf.math.slopes import inverse_root
from jaxvars.tf.nn.shapes import refused_value
from jaxvars.tf.registry.rows import format_shape, op
from jaxvars.tf.tensors.convert import to_array, to_operand
from jaxvars.tf.tensors.static import axes_in, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


# ---------------------------------------------------------------- moments
@op("nn.moments", "x", kinds="float complex int", example="r(2, 3), axes=[0]")
def moments(x: Array, axes: Any, shift: Any = None, keepdims: Any = False) -> tuple[Array, Array]:
    """Return the mean and the variance along axes; of integers, integers."""
    if x.dtype.kind in "iu":
        mean = reduce_mean.__wrapped__(x, axes, keepdims=True)
        variance = reduce_mean.__wrapped__(jnp.square(x - mean), axes, keepdims)
        return (mean if keepdims else squeeze.__wrapped__(mean, axes)), variance
    return _mean_and_variance(x, axes_in(x, axes), bool(keepdims))


@functools.partial(quick_jit, static_argnums=(1, 2))
def _mean_and_variance(x: Array, where: Any, keepdims: bool) -> tuple[Array, Array]:
    wide = x.astype(jnp.float32) if x.dtype.name == "float16" else x
    mean = jnp.mean(wide, where, keepdims=True)
    away = wide - jax.lax.stop_gradient(mean)  # as TensorFlow does
    squares = away * jnp.conj(away) if x.dtype.kind == "c" else jnp.square(away)
    variance = jnp.mean(squares, where, keepdims=True)
    if not keepdims:
        mean, variance = (squeeze.__wrapped__(x, where) for x in (mean, variance))
    return mean.astype(x.dtype), variance.astype(x.dtype)


# ---------------------------------------------------------------- normalisation
@op("nn.batch_normalization", "x mean variance offset? scale?", op="Mul", kinds="float")
def batch_normalization(
    x: Array, mean: Array, variance: Array, offset: Array | None, scale: Array | None,
    variance_epsilon: Any,
) -> Array:  # fmt: skip
    """Return x less a mean, by a deviation, times a scale, plus an offset.

    Example: `tf.nn.batch_normalization(r(2, 3), r(3), p(3), r(3), p(3), 1e-3)`.
    """
    return _normalize(
        x, mean, variance, offset, scale, to_operand(variance_epsilon, variance.dtype)
    )


@quick_jit
def _normalize(
    x: Array, mean: Array, variance: Array, offset: Array | None, scale: Array | None, least: Array
) -> Array:
    factor = inverse_root(variance + least)
    if scale is not None:
        factor = factor * scale
    rest = -mean * factor if offset is None else offset - mean * factor
    return x * factor.astype(x.dtype) + rest.astype(x.dtype)


@op("nn.local_response_normalization", "input", op="LRN", kinds="float", aliases=("nn.lrn",))
def local_response_normalization(
    input: Array, depth_radius: int = 5, bias: Any = 1, alpha: Any = 1, beta: Any = 0.5
) -> Array:
    """Return an image by a power of the squares of the channels nearby.

    Example: `tf.nn.local_response_normalization(r(1, 1, 2, 4))`.
    """
    return _responses(
        input, int(depth_radius), *(to_operand(each, input.dtype) for each in (bias, alpha, beta))
    )


@functools.partial(quick_jit, static_argnums=1)
def _responses(x: Array, radius: int, bias: Array, alpha: Array, beta: Array) -> Array:
    window = (1, 1, 1, 2 * radius + 1)
    pads = [(0, 0), (0, 0), (0, 0), (radius, radius)]
    zero = np.asarray(0, x.dtype)[()]
    total = jax.lax.reduce_window(jnp.square(x), zero, jax.lax.add, window, (1, 1, 1, 1), pads)
    return x / (bias + alpha * total) ** beta


@op("nn.bias_add", "value bias", same=True, kinds="float complex int", example="r(2, 3), r(3)")
def bias_add(value: Array, bias: Array, data_format: Any = None) -> Array:
    """Add a bias to the channels."""
    first = data_format is not None and data_format.startswith("NC")
    if not (first or data_format is None or (data_format[:1] == "N" and data_format[-1] == "C")):
        raise refused_value(
            "`data_format` must be of the form `N...C` or `NC...`. Received: "
            f"data_format={data_format}"
        )
    axis = 1 if first else value.ndim - 1
    if value.ndim < 2 or bias.ndim != 1 or bias.shape[0] != value.shape[axis]:
        raise refused(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{format_shape(bias)} vs. {format_shape(value)} [Op:BiasAdd] name: "
        )
    return value + bias.reshape(-1, *(1,) * (value.ndim - 1 - axis))


# ---------------------------------------------------------------- lookups
def table_of(params: Any) -> Array:
    """Return the rows that may be looked up, of a tensor or of a list of parts of it.

    Raises:
        ValueError: when there are none.
        InvalidArgumentError: when TensorFlow would divide the rows otherwise among so many parts.
    """
    if params is None:
        raise ValueError("params must be specified")
    if not isinstance(params, list):
        return to_array(params)
    if not params:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    table = concat(params, 0)._array
    sizes = [to_array(part).shape[0] for part in params]
    if sizes != [part.size for part in np.array_split(np.arange(len(table)), len(sizes))]:
        raise refused(f"params must be parts of one size, the first ones one larger: {sizes}")
    return table


def _join_parts(lookup: Any) -> Any:
    @functools.wraps(lookup)
    def look_up(params: Any, ids: Any, max_norm: Any = None, name: Any = None) -> Any:
        is_list = params is None or isinstance(params, list)
        return lookup(Tensor(table_of(params)) if is_list else params, ids, max_norm)

    return look_up


@_join_parts
@op("nn.embedding_lookup", "params ids", op="GatherV2", kinds="float int complex")
def embedding_lookup(params: Array, ids: Array, max_norm: Any = None) -> Array:
    """Return rows of a table, or of a list of its parts, by index; scaled down to `max_norm`.

    Example: `tf.nn.embedding_lookup(r(4, 2), [3, 0, 3])`.

    Differs from TensorFlow: on a GPU and in compiled functions an index out of range gives zeros.
    """
    rows = rows_at(params, ids)
    if max_norm is None:
        return rows
    inner = tuple(range(ids.ndim, rows.ndim))
    squares = jnp.sum(jnp.square(rows), inner, keepdims=True)
    norm = jnp.sqrt(jnp.where(squares > 0, squares, 1))
    limit = jnp.asarray(max_norm, rows.dtype)
    return rows * limit / maximum.__wrapped__(norm, jnp.broadcast_to(limit, norm.shape))
