"""The part of `tf.math` that reduces axes: sums, means, extremes.

Rules this file keeps:
- results have the type of the argument: the mean of integers is one, cut off;
- of nothing, the sum is 0, the product 1, the maximum the smallest value.
"""

from __future__ import annotations

import functools
import math
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.registry.rows import Refused, Row, axes
from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.dtypes import as_dtype

Value: TypeAlias = Any


def _reduce_sum(x: Value, axis: Any, keepdims: bool) -> Value:
    return jnp.sum(x, axis=axes(axis), keepdims=bool(keepdims), dtype=x.dtype)


def _reduce_prod(x: Value, axis: Any, keepdims: bool) -> Value:
    return jnp.prod(x, axis=axes(axis), keepdims=bool(keepdims), dtype=x.dtype)


def reduce_max(x: Value, axis: Any, keepdims: bool) -> Value:
    """Return the greatest element; of none, the smallest value of the type."""
    return jnp.max(x, axis=axes(axis), keepdims=bool(keepdims), initial=_start(x, -1))


def _reduce_min(x: Value, axis: Any, keepdims: bool) -> Value:
    return jnp.min(x, axis=axes(axis), keepdims=bool(keepdims), initial=_start(x, 1))


def _start(x: Value, sign: int) -> Any:
    """Return the value that changes no minimum (maximum), if there may be no element."""
    if x.size:
        return None
    if x.dtype.kind in "iu":
        limits = np.iinfo(x.dtype)
        return limits.max if sign > 0 else limits.min
    return sign * math.inf


def _reduce_mean(x: Value, axis: Any, keepdims: bool) -> Value:
    if x.dtype.kind not in "iu":
        return jnp.mean(x, axis=axes(axis), keepdims=bool(keepdims))
    return _mean_of_integers(x, axes(axis), bool(keepdims))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _mean_of_integers(x: Value, axis: Any, keepdims: bool) -> Value:
    with jax.enable_x64(True):  # as TensorFlow adds them, whatever they are
        wide = jnp.int64 if x.dtype.kind == "i" else jnp.uint64
        total = jnp.sum(x, axis=axis, keepdims=keepdims, dtype=wide)
        count = max(x.size // max(total.size, 1), 1)
        return lax.div(total, jnp.full_like(total, count)).astype(x.dtype)


def _reduce_all(x: Value, axis: Any, keepdims: bool) -> Value:
    return jnp.all(x, axis=axes(axis), keepdims=bool(keepdims))


def _reduce_any(x: Value, axis: Any, keepdims: bool) -> Value:
    return jnp.any(x, axis=axes(axis), keepdims=bool(keepdims))


def _reduce_logsumexp(x: Value, axis: Any, keepdims: bool) -> Value:
    return _logsumexp(x, axes(axis), bool(keepdims))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _logsumexp(x: Value, axis: Any, keepdims: bool) -> Value:
    if not x.size:
        return jnp.log(jnp.sum(x, axis=axis, keepdims=keepdims))
    return jax.nn.logsumexp(x, axis=axis, keepdims=keepdims)


def _reduce_variance(x: Value, axis: Any, keepdims: bool) -> Value:
    _refuse_integers(x)
    return jnp.var(x, axis=axes(axis), keepdims=bool(keepdims))


def _refuse_integers(x: Value) -> None:
    if x.dtype.kind in "iu":
        raise Refused(
            TypeError(
                "Input must be either real or complex. Received integer type "
                f"<dtype: '{x.dtype.name}'>."
            )
        )


def _reduce_std(x: Value, axis: Any, keepdims: bool) -> Value:
    _refuse_integers(x)
    return jnp.std(x, axis=axes(axis), keepdims=bool(keepdims))


def _reduce_euclidean_norm(x: Value, axis: Any, keepdims: bool) -> Value:
    return _euclidean(x, axes(axis), bool(keepdims))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _euclidean(x: Value, axis: Any, keepdims: bool) -> Value:
    total = jnp.sum(x * jnp.conj(x), axis=axis, keepdims=keepdims, dtype=x.dtype)
    return jnp.sqrt(total).astype(x.dtype)


def _count_nonzero(x: Value, axis: Any, keepdims: bool | None, dtype: Any) -> Value:
    found = jnp.asarray(x != b"") if is_text(x) else x != 0
    return jnp.sum(found, axis=axes(axis), keepdims=bool(keepdims), dtype=as_dtype(dtype).dtype)


def _zero_fraction(value: Value) -> Value:
    # Two calls: a comparison ends the path of a gradient.
    return jnp.mean(value == 0, dtype=np.float32)


def _l2_normalize(x: Value, axis: Any, epsilon: float, dim: Any) -> Value:
    if x.dtype.kind in "iu":
        raise Refused(TypeError(f"Cannot convert {epsilon} to EagerTensor of dtype {x.dtype}"))
    return _normalized(x, axes(axis if dim is None else dim), epsilon)


@functools.partial(jax.jit, static_argnums=1)
def _normalized(x: Value, axis: Any, epsilon: Any) -> Value:
    total = jnp.sum(jnp.real(x * jnp.conj(x)), axis=axis, keepdims=True)
    return x * lax.rsqrt(jnp.maximum(total, jnp.asarray(epsilon, total.dtype))).astype(x.dtype)


@jax.jit
def _is_non_decreasing(x: Value) -> Value:
    flat = x.reshape(-1)
    return jnp.all(flat[1:] >= flat[:-1])


@jax.jit
def _is_strictly_increasing(x: Value) -> Value:
    flat = x.reshape(-1)
    return jnp.all(flat[1:] > flat[:-1])


_ALONG = "input_tensor, axis=None, keepdims=False"
_NUMBERS, _ORDERED = "float complex int", "float int"

ROWS = [
    Row(
        "reduce_sum", "input_tensor", _ALONG, _reduce_sum, op="Sum", kinds=_NUMBERS,
        doc="Add up, along one axis, several, or all.",
        examples=(
            "math.reduce_sum(r(2, 3))", "math.reduce_sum(i(2, 3), axis=-1, keepdims=True)",
            "math.reduce_sum(r(2, 0, 3), axis=[0, 1])", "math.reduce_sum(b(2))",
        ),
        aliases=("reduce_sum",),
    ),
    Row(
        "reduce_prod", "input_tensor", _ALONG, _reduce_prod, op="Prod", kinds=_NUMBERS,
        doc="Multiply, along one axis, several, or all.",
        examples=(
            "math.reduce_prod(r(2, 3), 1)", "math.reduce_prod(i(2, 3), axis=-1, keepdims=True)",
            "math.reduce_prod(r(0, 3), axis=[0])",
        ),
        aliases=("reduce_prod",),
    ),
    Row(
        "reduce_max", "input_tensor", _ALONG, reduce_max, op="Max", kinds=_ORDERED,
        doc="Return the greatest elements, along one axis, several, or all.",
        examples=(
            "math.reduce_max(r(2, 3), axis=1)", "math.reduce_max(i(0, 2), 0)",
            "math.reduce_max([[1.0, nan]])", "math.reduce_max(b(2))", "math.reduce_max(r(0, 2), 0)",
        ),
        aliases=("reduce_max",),
    ),
    Row(
        "reduce_min", "input_tensor", _ALONG, _reduce_min, op="Min", kinds=_ORDERED,
        doc="Return the smallest elements, along one axis, several, or all.",
        examples=(
            "math.reduce_min(r(2, 3), axis=1)", "math.reduce_min(i(0, 2), 0)",
            "math.reduce_min(r(2, 3), axis=2)",
        ),
        aliases=("reduce_min",),
    ),
    Row(
        "reduce_mean", "input_tensor", _ALONG, _reduce_mean, op="Mean", kinds=_NUMBERS,
        doc="Return the mean, along one axis, several, or all; of integers, an integer.",
        examples=(
            "math.reduce_mean(r(2, 3), axis=0)", "math.reduce_mean([1, 2, -4])",
            "math.reduce_mean(np.zeros(0, 'f'))",
        ),
        aliases=("reduce_mean",),
    ),
    Row(
        "reduce_all", "input_tensor", _ALONG, _reduce_all, op="All", kinds="bool",
        doc="Tell whether all are true, along one axis, several, or all.",
        examples=("math.reduce_all(b(2, 3), 1)", "math.reduce_all(b(0))", "math.reduce_all(i(2))"),
        aliases=("reduce_all",),
    ),
    Row(
        "reduce_any", "input_tensor", _ALONG, _reduce_any, op="Any", kinds="bool",
        doc="Tell whether one is true, along one axis, several, or all.",
        examples=("math.reduce_any(b(2, 3), 1)", "math.reduce_any(b(0))", "math.reduce_any(i(2))"),
        aliases=("reduce_any",),
    ),
    Row(
        "reduce_logsumexp", "input_tensor", _ALONG, _reduce_logsumexp, op="IsFinite",
        kinds="float", doc="Return log(sum(exp(x))), without overflow.",
        examples=(
            "math.reduce_logsumexp(r(2, 3), 1)", "math.reduce_logsumexp([-inf, -inf])",
            "math.reduce_logsumexp(i(2))", "math.reduce_logsumexp(r(0, 2), 0)",
        ),
        aliases=("reduce_logsumexp",),
    ),
    Row(
        "reduce_variance", "input_tensor", _ALONG, _reduce_variance, op="Mean", kinds=_NUMBERS,
        doc="Return the variance, along one axis, several, or all.",
        examples=(
            "math.reduce_variance(r(2, 3), 1)", "math.reduce_variance(z(4))",
            "math.reduce_variance(i(2))",
        ),
    ),
    Row(
        "reduce_std", "input_tensor", _ALONG, _reduce_std, op="Mean", kinds=_NUMBERS,
        doc="Return the standard deviation, along one axis, several, or all.",
        examples=("math.reduce_std(r(2, 3), 1)", "math.reduce_std(z(4))", "math.reduce_std(i(2))"),
    ),
    Row(
        "reduce_euclidean_norm", "input_tensor", _ALONG, _reduce_euclidean_norm,
        op="EuclideanNorm", kinds=_NUMBERS, doc="Return the root of the sum of the squares.",
        examples=(
            "math.reduce_euclidean_norm(r(2, 3), 1)", "math.reduce_euclidean_norm([3, 4])",
            "math.reduce_euclidean_norm(z(4))",
        ),
    ),
    Row(
        "count_nonzero", "input", "input, axis=None, keepdims=None, dtype='int64'",
        _count_nonzero, text=True, doc="Count what is not 0, False, or empty text.",
        examples=(
            "math.count_nonzero(i(2, 3), axis=1)", "math.count_nonzero(['a', ''])",
            "math.count_nonzero([[1.0, nan, 0.0]], 0, True, np.int32)",
        ),
    ),
    Row(
        "zero_fraction", "value", "value", _zero_fraction, op="CountNonzero",
        doc="Return the fraction of elements that are 0.",
        examples=(
            "math.zero_fraction(i(2, 3))", "math.zero_fraction([0.0, nan])",
            "math.zero_fraction(r(0))",
        ),
        aliases=("nn.zero_fraction",),
    ),
    Row(
        "l2_normalize", "x", "x, axis=None, epsilon=1e-12, dim=None", _l2_normalize,
        op="Square", kinds=_NUMBERS, doc="Divide by the Euclidean norm along axes.",
        examples=(
            "math.l2_normalize(r(2, 3), 1)", "math.l2_normalize([0.0, 0.0])",
            "math.l2_normalize(i(2))", "math.l2_normalize(z(4))",
        ),
        aliases=("nn.l2_normalize", "linalg.l2_normalize"),
    ),
    Row(
        "is_non_decreasing", "x", "x", _is_non_decreasing, kinds=_ORDERED,
        doc="Tell whether no element is less than the one before it.",
        examples=(
            "math.is_non_decreasing(r(4))", "math.is_non_decreasing([[1, 1], [2, 3]])",
            "math.is_non_decreasing([])",
        ),
    ),
    Row(
        "is_strictly_increasing", "x", "x", _is_strictly_increasing, kinds=_ORDERED,
        doc="Tell whether each element is greater than the one before it.",
        examples=(
            "math.is_strictly_increasing(r(4))", "math.is_strictly_increasing([1, 1])",
            "math.is_strictly_increasing([1.0])",
        ),
    ),
]  # fmt: skip
