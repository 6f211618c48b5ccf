"""The part of `tf.math` that counts and permutes, and sums of lists.

Rules this file keeps:
- where the size of a result depends on values it must be given in compiled functions;
- what is out of range is refused where values are known, and left out in compiled functions.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tracing import context

Value: TypeAlias = Any


# ---------------------------------------------------------------- bincount
def _bincount(
    arr: Value, weights: Value, low: Any, high: Any, dtype: Any, axis: Any, binary: bool
) -> Value:
    if axis not in (None, 0, -1):
        raise Refused(ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1"))
    if arr.dtype.kind not in "iu":
        arr = arr.astype(np.int32)
    size = _bins(arr, _number(low), _number(high))
    if weights is None:
        weights = jnp.ones(arr.shape, as_dtype(dtype).dtype)
    if weights.shape != arr.shape:
        raise ValueError("Input weights must have the same shape as arr")
    rows = arr.shape[0] if axis == -1 and arr.ndim > 1 else None
    return _counted(arr, weights, size, rows, bool(binary))


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def _counted(arr: Value, weights: Value, size: int, rows: int | None, binary: bool) -> Value:
    values, shares = arr.reshape(rows or 1, -1), weights.reshape(rows or 1, -1)
    bins = jnp.zeros((rows or 1, size), weights.dtype)
    place = bins.at[jnp.arange(rows or 1)[:, None], values]
    made = place.set(1, mode="drop") if binary else place.add(shares, mode="drop")
    return made if rows is not None else made[0]


def _number(value: Any) -> int | None:
    return None if value is None else operator.index(np.asarray(value)[()])


def _bins(arr: Value, low: int | None, high: int | None) -> int:
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
def _confusion_matrix(
    labels: Value, predictions: Value, num_classes: Any, weights: Value, dtype: Any
) -> Value:
    labels, predictions = _of_same_rank(labels, predictions)
    classes = _number(num_classes)
    _check_labels({"labels": labels, "predictions": predictions}, classes)
    if classes is None:
        pairs = [np.asarray(labels), np.asarray(predictions)]
        classes = max(int(x.max()) + 1 if x.size else 0 for x in pairs)
    wanted = as_dtype(dtype).dtype
    shares = jnp.ones((), wanted) if weights is None else weights.astype(wanted)
    return _matrix(labels, predictions, shares, classes)


@functools.partial(jax.jit, static_argnums=3)
def _matrix(labels: Value, predictions: Value, shares: Value, classes: int) -> Value:
    return jnp.zeros((classes, classes), shares.dtype).at[labels, predictions].add(shares)


def _of_same_rank(labels: Value, predictions: Value) -> tuple[Value, Value]:
    if labels.ndim == predictions.ndim + 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if predictions.ndim == labels.ndim + 1 and predictions.shape[-1] == 1:
        predictions = predictions[..., 0]
    return labels.astype(np.int64), predictions.astype(np.int64)


def _check_labels(arrays: dict[str, Value], classes: int | None) -> None:
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
def _invert_permutation(x: Value) -> Value:
    if x.ndim != 1:
        raise ValueError(f"invert_permutation expects a 1D vector, not shape {x.shape}.")
    if not context.is_tracer(x) and not np.array_equal(np.sort(x), np.arange(x.size)):
        raise ValueError("an element is duplicated in the input, or not between 0 and its size")
    return jnp.zeros_like(x).at[x].set(jnp.arange(x.size, dtype=x.dtype))


def _bins_of(values: Value, limits: Value, nbins: Any, dtype: Any) -> Value:
    count = _number(nbins)
    if count is None or count <= 0:
        raise ValueError(f"nbins should be a positive number, but got '{nbins}'")
    return _numbered(values, limits, count).astype(as_dtype(dtype).dtype)


@functools.partial(jax.jit, static_argnums=2)
def _numbered(values: Value, limits: Value, count: int) -> Value:
    scaled = (values - limits[0]) / (limits[1] - limits[0])
    return jnp.floor(jnp.clip(count * scaled, 0, count - 1)).astype(np.int32)


def _histogram(values: Value, limits: Value, nbins: Any, dtype: Any) -> Value:
    if not context.is_tracer(limits) and not np.diff(np.asarray(limits))[0] > 0:
        words = "value_range should satisfy value_range[0] < value_range[1]"
        raise Refused(InvalidArgumentError(None, None, words))
    places = _bins_of(values, limits, nbins, "int32").reshape(-1)
    empty = jnp.zeros(_number(nbins) or 0, as_dtype(dtype).dtype)
    return empty.at[places].add(jnp.ones((), empty.dtype))


def _accumulate_n(inputs: Sequence[Value], shape: Any, tensor_dtype: Any) -> Value:
    if not inputs or any(x.shape != inputs[0].shape for x in inputs):
        raise Refused(ValueError("inputs must be a list of at least one Tensor of the same shape"))
    if tensor_dtype is not None and inputs[0].dtype != as_dtype(tensor_dtype).dtype:
        raise Refused(TypeError(f"tensor_dtype is {tensor_dtype}, but input is {inputs[0].dtype}"))
    return functools.reduce(jnp.add, inputs)


# ---------------------------------------------------------------- quasi-random numbers
def _sobol_sample(dim: Any, num_results: Any, skip: Any, dtype: Any) -> Value:
    from scipy.stats import qmc

    dim, count, skip = _number(dim), _number(num_results), _number(skip)
    if dim is None or dim < 1 or not count or count < 0 or skip is None or skip < 0:
        raise ValueError("dim and num_results must be positive, and skip not negative")
    stream = qmc.Sobol(dim, scramble=False, bits=32).fast_forward(skip + 1)
    return to_array(stream.random(count), as_dtype(dtype))


ROWS = [
    Row(
        "bincount", "arr weights?",
        "arr, weights=None, minlength=None, maxlength=None, dtype='int32', axis=None, "
        "binary_output=False",
        _bincount, op="DenseBincount", doc="Count how often each number from 0 up is there.",
        examples=(
            "math.bincount([1, 2, 2], minlength=5)", "math.bincount([[1, 2], [2, 2]], axis=-1)",
            "math.bincount([0, 2, 1, 2], p(4), maxlength=2)", "math.bincount([-1])",
            "math.bincount([[3, 0], [0, 0]], axis=-1, binary_output=True)", "math.bincount([])",
        ),
        eager_only="The size of the result depends on values.",
        differs="In a compiled function, minlength and maxlength must be given, and equal.",
    ),
    Row(
        "confusion_matrix", "labels predictions weights?",
        "labels, predictions, num_classes=None, weights=None, dtype='int32'", _confusion_matrix,
        doc="Count how often each class was taken for each class.",
        examples=(
            "math.confusion_matrix([1, 2], [1, 1], num_classes=3)",
            "math.confusion_matrix([0, 2], [2, 2], weights=[0.5, 1.0], dtype=np.float32)",
            "math.confusion_matrix([1, 3], [1, 1], 2)", "math.confusion_matrix([-1], [1])",
            "math.confusion_matrix([[1], [0]], [1, 0])",
        ),
        differs="In a compiled function, num_classes must be given.",
        eager_only="The size of the result depends on values.",
    ),
    Row(
        "invert_permutation", "x", "x", _invert_permutation, kinds="int",
        doc="Return the permutation that undoes one.",
        examples=(
            "math.invert_permutation([2, 0, 1])", "math.invert_permutation([2, 0, 0])",
            "math.invert_permutation([1.0, 0.0])",
        ),
    ),
    Row(
        "accumulate_n", "inputs*", "inputs, shape=None, tensor_dtype=None", _accumulate_n,
        op="AddN", same=True, doc="Add tensors of one shape.",
        examples=(
            "math.accumulate_n([r(2, 3), r(2, 3), r(2, 3)])", "math.accumulate_n([i(2)])",
            "math.accumulate_n([r(2), r(3)])",
        ),
    ),
    Row(
        "sobol_sample", "", "dim, num_results, skip=0, dtype='float32'", _sobol_sample,
        doc="Return quasi-random points of the sequence of Sobol, by the numbers of Joe and Kuo.",
        examples=(
            "math.sobol_sample(2, 5)", "math.sobol_sample(7, 3, skip=10)",
            "math.sobol_sample(1, 4, 2, np.float64)",
        ),
    ),
]  # fmt: skip

TOP_LEVEL = [
    Row(
        "histogram_fixed_width", "values value_range",
        "values, value_range, nbins=100, dtype='int32'", _histogram, same=True,
        kinds="float int", doc="Count how many values are in each of the bins of a range.",
        examples=(
            "histogram_fixed_width(r(9), [-1.0, 1.0], 4)",
            "histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)",
            "histogram_fixed_width(r(4), [1.0, 1.0], 4)",
        ),
    ),
    Row(
        "histogram_fixed_width_bins", "values value_range",
        "values, value_range, nbins=100, dtype='int32'", _bins_of, same=True, kinds="float int",
        doc="Return the number of the bin of a range in which each value is.",
        examples=(
            "histogram_fixed_width_bins(r(2, 3), [-1.0, 1.0], 4)",
            "histogram_fixed_width_bins([-1.0, 0.0, 5.0], [0.0, 5.0], nbins=5)",
            "histogram_fixed_width_bins(r(4), [1.0, 1.0], 4)",
        ),
    ),
]  # fmt: skip
