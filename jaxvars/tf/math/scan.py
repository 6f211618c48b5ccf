"""The part of `tf.math` along one axis: running sums, positions of extremes, the largest few.

Rules this file keeps:
- positions are int64, or the type that is asked for;
- NaN is never the greatest or smallest one for `argmax` and `argmin`, as in TensorFlow.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.registry.rows import Row, function_of
from jaxvars.tf.tensors.dtypes import as_dtype

Value: TypeAlias = Any


class TopKV2(NamedTuple):
    """The largest elements of rows.

    Attributes:
        values: the elements, the largest first.
        indices: where they were.
    """

    values: Value
    indices: Value


class ApproxTopK(NamedTuple):
    """Elements of rows that are among the largest, or smallest.

    Attributes:
        values: the elements, the largest (smallest) first.
        indices: where they were.
    """

    values: Value
    indices: Value


# ---------------------------------------------------------------- running sums
@functools.partial(jax.jit, static_argnums=(0, 2, 3, 4, 5))
def _shifted(
    scan: Callable[..., Value], x: Value, start: float, axis: int, exclusive: bool, reverse: bool
) -> Value:
    done = scan(x, axis=axis, reverse=reverse)
    if not exclusive:
        return done
    padding = [(0, 0, 0)] * x.ndim
    padding[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(done, jnp.asarray(start, x.dtype), padding)


def _scan(scan: Callable[..., Value], start: float) -> Callable[..., Value]:
    """Return a function along an axis; `start` is its value of nothing."""

    def scanned(x: Value, axis: Any, exclusive: bool, reverse: bool) -> Value:
        place = _place(x, axis, "ScanOp: Expected scan axis")
        return _shifted(scan, x, start, place, bool(exclusive), bool(reverse))

    return scanned


def _place(x: Value, axis: Any, words: str) -> int:
    """Return an axis, counted from the front."""
    number = axis if type(axis) is int else operator.index(np.asarray(axis)[()])
    if not -x.ndim <= number < x.ndim:
        raise ValueError(f"{words} in the range [{-x.ndim}, {x.ndim}), but got {number}")
    return number % x.ndim


# ---------------------------------------------------------------- positions of extremes
def _extreme(
    find: Callable[..., Value], worst: float, types: set[str]
) -> Callable[[Value, Any, Any], Value]:
    """Return argmax or argmin; `worst` stands for NaN."""

    @functools.partial(jax.jit, static_argnums=(1, 2))
    def found(x: Value, axis: int, dtype: Any) -> Value:
        if jnp.issubdtype(x.dtype, jnp.floating):
            x = jnp.where(jnp.isnan(x), jnp.asarray(worst, x.dtype), x)
        return find(x, axis=axis).astype(dtype)

    def checked(x: Value, axis: Any, output_type: Any) -> Value:
        dtype = as_dtype(output_type)
        if dtype.name not in types:
            raise ValueError(f"Value for attr 'output_type' of {dtype.name} is not in the list")
        place = _place(x, 0 if axis is None else axis, "Expected dimension")
        if not x.shape[place]:
            raise ValueError(f"Reduction axis {place} is empty in shape {list(x.shape)}")
        return found(x, place, dtype.dtype)

    return checked


# ---------------------------------------------------------------- the largest few
def _top_k(x: Value, k: Any, is_sorted: bool, index_type: Any) -> TopKV2:
    k = k if type(k) is int else operator.index(np.asarray(k)[()])
    if x.ndim < 1:
        raise ValueError("input must be >= 1-D, got shape []")
    if k > x.shape[-1] or k < 0:
        raise ValueError(f"input must have at least k columns. Had {x.shape[-1]}, needed {k}")
    values, indices = lax.top_k(x, k)
    wanted = as_dtype(index_type).dtype
    return TopKV2(values, indices if indices.dtype == wanted else indices.astype(wanted))


def _in_top_k(targets: Value, predictions: Value, k: Any) -> Value:
    if predictions.ndim != 2 or targets.ndim != 1:
        raise ValueError("predictions must be 2-dimensional, and targets 1-dimensional")
    if predictions.shape[0] != targets.shape[0]:
        raise ValueError(
            f"First dimension of predictions {predictions.shape[0]} must match length of targets "
            f"{targets.shape[0]}"
        )
    return _are_in_top_k(targets, predictions, jnp.asarray(k))


@jax.jit
def _are_in_top_k(targets: Value, predictions: Value, k: Value) -> Value:
    classes = predictions.shape[1]
    inside = (targets >= 0) & (targets < classes)
    place = jnp.where(inside, targets, 0)[:, None]
    own = jnp.take_along_axis(predictions, place, 1)
    known = jnp.all(jnp.isfinite(predictions), 1)
    return inside & known & (jnp.sum(predictions > own, 1) < k)


def _approx(find: Callable[..., Any]) -> Callable[..., ApproxTopK]:
    def found(
        operand: Value, k: Any, dimension: int, recall: float, size: int, aggregate: bool
    ) -> ApproxTopK:
        return ApproxTopK(
            *find(
                operand, operator.index(k), reduction_dimension=dimension, recall_target=recall,
                reduction_input_size_override=size, aggregate_to_topk=aggregate,
            )
        )  # fmt: skip

    return found


_ALONG = "x, axis=0, exclusive=False, reverse=False"
_APPROX = (
    "operand, k, reduction_dimension=-1, recall_target=0.95, "
    "reduction_input_size_override=-1, aggregate_to_topk=True"
)
_NUMBERS, _ORDERED = "float complex int", "float int"

ROWS = [
    Row(
        "cumsum", "x", _ALONG, _scan(lax.cumsum, 0), op="Cumsum", kinds=_NUMBERS,
        doc="Return running sums along an axis.",
        examples=(
            "math.cumsum(r(2, 3), axis=1)", "math.cumsum(i(4), exclusive=True, reverse=True)",
            "math.cumsum(r(2), axis=1)", "math.cumsum(r(0, 2))",
        ),
        aliases=("cumsum",),
    ),
    Row(
        "cumprod", "x", _ALONG, _scan(lax.cumprod, 1), op="Cumprod", kinds=_NUMBERS,
        doc="Return running products along an axis.",
        examples=(
            "math.cumprod(r(2, 3), axis=-1)", "math.cumprod(i(4), exclusive=True, reverse=True)",
            "math.cumprod(1.0)",
        ),
    ),
    Row(
        "cumulative_logsumexp", "x", _ALONG, _scan(lax.cumlogsumexp, -np.inf), kinds="float",
        doc="Return running log(sum(exp(x))) along an axis.",
        examples=(
            "math.cumulative_logsumexp(r(2, 3), axis=1)",
            "math.cumulative_logsumexp(r(3), exclusive=True, reverse=True)",
            "math.cumulative_logsumexp(i(4))",
        ),
    ),
    Row(
        "argmax", "input", "input, axis=None, output_type='int64'",
        _extreme(jnp.argmax, -np.inf, {"int16", "uint16", "int32", "int64"}),
        op="ArgMax", kinds="float int bool",
        doc="Return where the greatest element along an axis is: the first one if there are more.",
        examples=(
            "math.argmax(r(2, 3), axis=1)", "math.argmax([[1, 3, 3]], -1, np.int32)",
            "math.argmax([nan, 1.0, 2.0])", "math.argmax(r(0, 3))", "math.argmax(r(2), axis=1)",
        ),
        aliases=("argmax",),
    ),
    Row(
        "argmin", "input", "input, axis=None, output_type='int64'",
        _extreme(jnp.argmin, np.inf, {"int32", "int64"}), op="ArgMin", kinds="float int bool",
        doc="Return where the smallest element along an axis is: the first one if there are more.",
        examples=(
            "math.argmin(r(2, 3), axis=1)", "math.argmin(i(4), output_type=np.float32)",
            "math.argmin([nan, 2.0, 1.0])",
        ),
        aliases=("argmin",),
    ),
    Row(
        "top_k", "input", "input, k=1, sorted=True, index_type='int32'", _top_k, op="TopKV2",
        kinds=_ORDERED, doc="Return the largest elements of rows, and where they were.",
        examples=(
            "math.top_k(r(2, 3), k=2)", "math.top_k([1, 3, 3], 2, index_type=np.int64)",
            "math.top_k(r(2), 3)",
        ),
        differs="They are always sorted.",
        aliases=("nn.top_k",),
    ),
    Row(
        "in_top_k", "targets predictions", "targets, predictions, k", _in_top_k, op="InTopKV2",
        kinds="int", doc="Tell which targets are among the classes of the k largest predictions.",
        examples=(
            "math.in_top_k([0, 1, 2], r(3, 3), 2)",
            "math.in_top_k([1, 5], [[0.5, 0.5], [0.0, 1.0]], 1)",
            "math.in_top_k([0, 0], [[1.0, nan], [inf, 0.0]], 2)", "math.in_top_k([0], r(2, 2), 1)",
        ),
        aliases=("nn.in_top_k",),
    ),
    Row(
        "approx_max_k", "operand", _APPROX, _approx(lax.approx_max_k), op="ApproxTopK",
        kinds="float", doc="Return elements that are among the largest, and where they were.",
        examples=(
            "math.approx_max_k(r(2, 3), 2)", "math.approx_max_k(r(4), 1)",
            "math.approx_max_k(i(4), 2)",
        ),
        aliases=("nn.approx_max_k",),
    ),
]  # fmt: skip

# No row of the table: TensorFlow has it for other processors only, there is nothing to compare to.
approx_min_k = function_of(
    Row(
        "approx_min_k",
        "operand",
        _APPROX,
        _approx(lax.approx_min_k),
        op="ApproxTopK",
        kinds="float",
        doc="Return elements that are among the smallest, and where they were.",
    ),
    "jaxvars.tf.math",
)
