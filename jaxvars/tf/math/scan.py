"""The part of `tf.math` along one axis: running sums, positions of extremes, the largest few.

Rules this file keeps:
- positions are int64, or the type that is requested;
- NaN is never the greatest or smallest one for `argmax` and `argmin`, as in TensorFlow.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.dtypes import as_dtype, widen
from jaxvars.tf.tensors.static import one_axis
from jaxvars.typing import Array

_NUMBERS, _ORDERED = "float complex int", "float int"


class TopKV2(NamedTuple):
    """The largest elements of rows.

    Attributes:
        values: the elements, the largest first.
        indices: where they were.
    """

    values: Array
    indices: Array


# ---------------------------------------------------------------- running sums
@functools.partial(jax.jit, static_argnums=(0, 2, 3, 4, 5))
def _scan_shifted(
    scan: Callable[..., Array], x: Array, start: float, axis: int, exclusive: bool, reverse: bool
) -> Array:
    done = scan(widen(x), axis=axis, reverse=reverse).astype(x.dtype)
    if not exclusive:
        return done
    padding = [(0, 0, 0)] * x.ndim
    padding[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(done, jnp.asarray(start, x.dtype), padding)


def _scan(
    scan: Callable[..., Array], x: Array, start: float, axis: Any, exclusive: Any, reverse: Any
) -> Array:
    """Run along an axis; `start` is the value of nothing."""
    place = _place(x, axis, "ScanOp: Expected scan axis")
    return _scan_shifted(scan, x, start, place, bool(exclusive), bool(reverse))


@op("math.cumsum", "x", kinds=_NUMBERS, aliases=("cumsum",), example="r(2, 3), axis=1")
def cumsum(x: Array, axis: Any = 0, exclusive: Any = False, reverse: Any = False) -> Array:
    """Return running sums along an axis."""
    return _scan(lax.cumsum, x, 0, axis, exclusive, reverse)


@op("math.cumprod", "x", kinds=_NUMBERS, example="r(2, 3), axis=-1")
def cumprod(x: Array, axis: Any = 0, exclusive: Any = False, reverse: Any = False) -> Array:
    """Return running products along an axis.

    Differs from TensorFlow: elements of 0 have their gradient.
    """
    return _scan(lax.cumprod, x, 1, axis, exclusive, reverse)


@op("math.cumulative_logsumexp", "x", kinds="float", example="r(2, 3), axis=1")
def cumulative_logsumexp(
    x: Array, axis: Any = 0, exclusive: Any = False, reverse: Any = False
) -> Array:
    """Return running log(sum(exp(x))) along an axis.

    Differs from TensorFlow: from NaN on all is NaN.
    """
    return _scan(lax.cumlogsumexp, x, -np.inf, axis, exclusive, reverse)


def _place(x: Array, axis: Any, message: str) -> int:
    """Return an axis, counted from the front."""
    if type(axis) is not int and np.ndim(axis):
        raise ValueError(f"axis must be a scalar, not {axis}")
    return one_axis(axis, x.ndim, words=message + " in the range [{2}, {1}), but got {0}")


# ---------------------------------------------------------------- positions of extremes
def _extreme(
    find: Callable[..., Array], x: Array, worst: float, axis: Any, output_type: Any, types: str
) -> Array:
    """Return argmax or argmin; `worst` stands for NaN."""
    dtype = as_dtype(output_type)
    if dtype.name not in types.split():
        raise ValueError(f"Value for attr 'output_type' of {dtype.name} is not in the list")
    place = _place(x, 0 if axis is None else axis, "Expected dimension")
    if not x.shape[place]:
        raise ValueError(f"Reduction axis {place} is empty in shape {list(x.shape)}")
    return _find_place(find, x, worst, place, dtype.dtype)


@functools.partial(jax.jit, static_argnums=(0, 2, 3, 4))
def _find_place(find: Callable[..., Array], x: Array, worst: float, axis: int, dtype: Any) -> Array:
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = jnp.where(jnp.isnan(x), jnp.asarray(worst, x.dtype), x)
    return find(x, axis=axis).astype(dtype)


@op("math.argmax", "input", op="ArgMax", kinds="float int bool", aliases=("argmax",))
def argmax(input: Array, axis: Any = None, output_type: Any = "int64") -> Array:
    """Return where the greatest element along an axis is: the first one if there are more.

    Example: `tf.math.argmax(r(2, 3), axis=1)`.
    """
    types = "int16 uint16 int32 int64"
    return _extreme(jnp.argmax, input, -np.inf, axis, output_type, types)


@op("math.argmin", "input", op="ArgMin", kinds="float int bool", aliases=("argmin",))
def argmin(input: Array, axis: Any = None, output_type: Any = "int64") -> Array:
    """Return where the smallest element along an axis is: the first one if there are more.

    Example: `tf.math.argmin(r(2, 3), axis=1)`.
    """
    return _extreme(jnp.argmin, input, np.inf, axis, output_type, "int32 int64")


# ---------------------------------------------------------------- the largest few
@op("math.top_k", "input", op="TopKV2", kinds=_ORDERED, aliases=("nn.top_k",))
def top_k(input: Array, k: Any = 1, sorted: bool = True, index_type: Any = "int32") -> TopKV2:
    """Return the largest elements of rows, and where they were.

    Example: `tf.math.top_k(r(2, 3), k=2)`.

    Differs from TensorFlow: They are always sorted, and NaN is the largest number.
    """
    k = k if type(k) is int else operator.index(np.asarray(k)[()])
    if input.ndim < 1:
        raise ValueError("input must be >= 1-D, got shape []")
    if k < 0:
        raise ValueError(f"Need k >= 0, got {k}")
    if k > input.shape[-1]:
        raise ValueError(f"input must have at least k columns. Had {input.shape[-1]}, needed {k}")
    values, indices = _largest(input, k)
    wanted = as_dtype(index_type).dtype
    return TopKV2(values, indices if indices.dtype == wanted else indices.astype(wanted))


@functools.partial(jax.jit, static_argnums=1)
def _largest(x: Array, k: int) -> tuple[Array, Array]:
    if jnp.issubdtype(x.dtype, jnp.inexact):
        x = x + lax.stop_gradient(jnp.where(x == 0, -x, 0))  # XLA takes -0 to be less than 0
    values, indices = lax.top_k(x, k)
    return values, indices


@op("math.in_top_k", "targets predictions", op="InTopKV2", kinds="int", aliases=("nn.in_top_k",))
def in_top_k(targets: Array, predictions: Array, k: Any) -> Array:
    """Return which targets are among the classes of the k largest predictions.

    Example: `tf.math.in_top_k([0, 1, 2], r(3, 3), 2)`.
    """
    if predictions.ndim != 2 or targets.ndim != 1:
        raise ValueError("predictions must be 2-dimensional, and targets 1-dimensional")
    if predictions.shape[0] != targets.shape[0]:
        raise ValueError(
            f"First dimension of predictions {predictions.shape[0]} must match length of targets "
            f"{targets.shape[0]}"
        )
    return _are_in_top_k(targets, predictions, jnp.asarray(k))


@jax.jit
def _are_in_top_k(targets: Array, predictions: Array, k: Array) -> Array:
    classes = predictions.shape[1]
    inside = (targets >= 0) & (targets < classes)
    place = jnp.where(inside, targets, 0)[:, None]
    own = jnp.take_along_axis(predictions, place, 1)
    known = jnp.all(jnp.isfinite(predictions), 1)
    return inside & known & (jnp.sum(predictions > own, 1) < k)
