"""The part of `tf.math` that counts and permutes, and sums of lists.

Rules this file keeps:
- where the size of a result depends on values it must be given in compiled functions;
- what is out of range is refused where values are known, and left out in compiled functions.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import refused
from jaxvars.tracing import context
from jaxvars.typing import Array


# ---------------------------------------------------------------- bincount
@op(
    "math.bincount", "arr weights?", op="DenseBincount",
    eager_only="The size of the result depends on values.", example="[1, 2, 2], minlength=5",
)  # fmt: skip
def bincount(
    arr: Array, weights: Array | None = None, minlength: Any = None, maxlength: Any = None,
    dtype: Any = "int32", axis: Any = None, binary_output: bool = False,
) -> Array:  # fmt: skip
    """Count how often each number from 0 up is there.

    Differs from TensorFlow: in a compiled function, minlength and maxlength must be given, and
    equal; of a ragged tensor count `x.to_tensor(-1) + 1`, of a sparse one `x.values`.
    """
    if axis not in (None, 0, -1):
        raise Refused(ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1"))
    if arr.dtype.kind not in "iu":
        arr = arr.astype(np.int32)
    size = _bins(arr, _number(minlength), _number(maxlength))
    if weights is None:
        weights = jnp.ones(arr.shape, as_dtype(dtype).dtype)
    if weights.shape != arr.shape:
        raise ValueError("Input weights must have the same shape as arr")
    rows = arr.shape[0] if axis == -1 and arr.ndim > 1 else None
    return _count_values(arr, weights, size, rows, bool(binary_output))


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _count_values(arr: Array, weights: Array, size: int, rows: int | None, binary: bool) -> Array:
    values, shares = arr.reshape(rows or 1, -1), weights.reshape(rows or 1, -1)
    bins = jnp.zeros((rows or 1, size), weights.dtype)
    place = bins.at[jnp.arange(rows or 1)[:, None], values]
    made = place.set(1, mode="drop") if binary else place.add(shares, mode="drop")
    return made if rows is not None else made[0]


def _number(value: Any, name: str = "a count") -> int | None:
    if np.ndim(value):
        raise ValueError(f"{name} should be a scalar, but got {value}.")
    return None if value is None else operator.index(np.asarray(value)[()])


def _bins(arr: Array, low: int | None, high: int | None) -> int:
    if context.is_tracer(arr):
        if low is None or low != high:
            raise ValueError(
                "the size of the result depends on values, which a compiled function does not "
                "know. Say it: tf.math.bincount(x, minlength=10, maxlength=10)"
            )
        return low
    known = np.asarray(arr)
    if (known < 0).any():
        raise ValueError("Input arr must be non-negative!")
    size = max(int(known.max()) + 1 if known.size else 0, low or 0)
    return size if high is None else min(size, high)


# ---------------------------------------------------------------- confusion_matrix
@op(
    "math.confusion_matrix", "labels predictions weights?",
    eager_only="The size of the result depends on values.", example="[1, 2], [1, 1], num_classes=3",
)  # fmt: skip
def confusion_matrix(
    labels: Array, predictions: Array, num_classes: Any = None, weights: Array | None = None,
    dtype: Any = "int32",
) -> Array:  # fmt: skip
    """Count how often each class was taken for each class.

    Differs from TensorFlow: In a compiled function, num_classes must be given.
    """
    labels, predictions = _of_same_rank(labels, predictions)
    if labels.shape != predictions.shape:
        raise ValueError(f"Shapes of all inputs must match: {labels.shape}, {predictions.shape}")
    classes = _number(num_classes)
    _check_labels({"labels": labels, "predictions": predictions}, classes)
    if classes is None:
        pairs = [np.asarray(labels), np.asarray(predictions)]
        classes = max(int(x.max()) + 1 if x.size else 0 for x in pairs)
    wanted = as_dtype(dtype).dtype
    shares = jnp.ones((), wanted) if weights is None else weights.astype(wanted)
    return _matrix(labels, predictions, shares, classes)


@functools.partial(jax.jit, static_argnums=3)
def _matrix(labels: Array, predictions: Array, shares: Array, classes: int) -> Array:
    return jnp.zeros((classes, classes), shares.dtype).at[labels, predictions].add(shares)


def _of_same_rank(labels: Array, predictions: Array) -> tuple[Array, Array]:
    if labels.ndim == predictions.ndim + 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if predictions.ndim == labels.ndim + 1 and predictions.shape[-1] == 1:
        predictions = predictions[..., 0]
    kind = narrowed(np.int64)
    return labels.astype(kind), predictions.astype(kind)


def _check_labels(arrays: dict[str, Array], classes: int | None) -> None:
    for name, array in arrays.items():
        if context.is_tracer(array):
            if classes is None:
                raise ValueError(
                    "the number of classes depends on values, which a compiled function does not "
                    "know. Say it: tf.math.confusion_matrix(y, y_, num_classes=10)"
                )
            continue
        known = np.asarray(array)
        if (known < 0).any():
            raise ValueError(f"`{name}` contains negative values.")
        if classes is not None and (known >= classes).any():
            raise ValueError(f"`{name}` out of bound: {known.max()} is not less than {classes}")


# ---------------------------------------------------------------- permutations, histograms
@op("math.invert_permutation", "x", kinds="int", example="[2, 0, 1]")
def invert_permutation(x: Array) -> Array:
    """Return the permutation that undoes one."""
    if x.ndim != 1:
        raise ValueError(f"invert_permutation expects a 1D vector, not shape {x.shape}.")
    if not context.is_tracer(x) and not np.array_equal(np.sort(x), np.arange(x.size)):
        raise ValueError("an element is duplicated in the input, or not between 0 and its size")
    return jnp.zeros_like(x).at[x].set(jnp.arange(x.size, dtype=x.dtype))


@op("histogram_fixed_width_bins", "values value_range", same=True, kinds="float int")
def histogram_fixed_width_bins(
    values: Array, value_range: Array, nbins: Any = 100, dtype: Any = "int32"
) -> Array:
    """Return the number of the bin of a range in which each value is.

    Example: `tf.histogram_fixed_width_bins(r(2, 3), [-1.0, 1.0], 4)`.
    """
    count = _number(nbins, "nbins")
    _check_limits(value_range)
    if count is None or count <= 0:
        raise ValueError(f"nbins should be a positive number, but got '{nbins}'")
    return _number_bins(values, value_range, count).astype(as_dtype(dtype).dtype)


def _check_limits(value_range: Array) -> None:
    if value_range.shape != (2,):
        raise Refused(refused("value_range should be a vector of 2 elements."))


@functools.partial(jax.jit, static_argnums=2)
def _number_bins(values: Array, limits: Array, count: int) -> Array:
    scaled = (values - limits[0]) / (limits[1] - limits[0])
    return jnp.floor(jnp.clip(count * scaled, 0, count - 1)).astype(np.int32)


@op("histogram_fixed_width", "values value_range", same=True, kinds="float int")
def histogram_fixed_width(
    values: Array, value_range: Array, nbins: Any = 100, dtype: Any = "int32"
) -> Array:
    """Count how many values are in each of the bins of a range.

    Example: `tf.histogram_fixed_width(r(9), [-1.0, 1.0], 4)`.

    Differs from TensorFlow: in a compiled function NaN is not refused, and counts in the first bin.
    """
    _check_limits(value_range)
    if not context.is_tracer(value_range) and not np.diff(np.asarray(value_range))[0] > 0:
        message = "value_range should satisfy value_range[0] < value_range[1]"
        raise Refused(refused(message))
    if values.dtype.kind == "f" and not context.is_tracer(values) and jnp.isnan(values).any():
        raise ValueError("Histogram values must not contain NaN")
    places = histogram_fixed_width_bins.__wrapped__(values, value_range, nbins, "int32").reshape(-1)
    empty = jnp.zeros(_number(nbins) or 0, as_dtype(dtype).dtype)
    return empty.at[places].add(jnp.ones((), empty.dtype))


# ---------------------------------------------------------------- quasi-random values
