"""Limits for values and gradients: `tf.clip_by_value`, `tf.clip_by_norm`, `tf.saturate_cast`, ...

Rules this file keeps:
- a value at a limit keeps its gradient, as in TensorFlow;
- None among gradients stays None.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.math import counts as _math_counts
from jaxvars.tf.math import pairs as _math_pairs
from jaxvars.tf.math.pairs import maximum, minimum
from jaxvars.tf.registry.rows import Refused, Row, axes, operations
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable

Value: TypeAlias = Any


def _clip_by_value(t: Value, clip_value_min: Value, clip_value_max: Value) -> Value:
    clipped = _within(t, clip_value_min, clip_value_max)
    if clipped.shape != t.shape:
        raise ValueError(f"Incompatible shapes: {list(t.shape)} vs. {list(clipped.shape)}")
    return clipped


@jax.jit
def _within(t: Value, least: Value, greatest: Value) -> Value:
    return maximum(minimum(t, greatest), least)


def _clip_by_norm(t: Value, clip_norm: Value, axis: Any) -> Value:
    return _clipped(t, clip_norm, axes(axis))


@functools.partial(jax.jit, static_argnums=2)
def _clipped(t: Value, clip_norm: Value, axis: Any) -> Value:
    total = jnp.sum(t * t, axis=axis, keepdims=True)
    positive = total > 0
    norm = jnp.where(positive, jnp.sqrt(jnp.where(positive, total, 1)), total)
    return t * clip_norm / maximum(norm, jnp.broadcast_to(clip_norm, norm.shape))


# ---------------------------------------------------------------- lists of gradients
def _arrays(t_list: Any) -> list[Value]:
    if isinstance(t_list, Tensor | Variable) or not isinstance(t_list, list | tuple):
        raise Refused(
            TypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
        )
    return [None if t is None else to_array(_values(t)) for t in t_list]


def _values(t: Any) -> Any:
    return t.values if isinstance(t, IndexedSlices) else t


def _global_norm(t_list: Any) -> Value:
    found = [t for t in _arrays(t_list) if t is not None]
    return _root_of_squares(found) if found else jnp.zeros((), np.float32)


@jax.jit
def _root_of_squares(arrays: list[Value]) -> Value:
    return jnp.sqrt(sum(jnp.sum(jnp.real(t * jnp.conj(t))) for t in arrays))


def _clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any) -> tuple[Value, Value]:
    given = _arrays(t_list)
    norm = _global_norm(t_list) if use_norm is None else to_array(use_norm)
    limit = to_array(clip_norm, as_dtype(norm.dtype)) if norm.ndim == 0 else norm
    made = _scaled(given, limit, norm)
    return [t.with_values(Tensor(x)) if isinstance(t, IndexedSlices) else x
            for t, x in zip(t_list, made, strict=True)], norm  # fmt: skip


@jax.jit
def _scaled(arrays: list[Value], limit: Value, norm: Value) -> list[Value]:
    # An infinite or NaN norm makes NaN of all of them, so that it is noticed.
    scale = limit * jnp.minimum(1 / norm, 1 / limit)
    scale = jnp.where(jnp.isfinite(norm), scale, jnp.nan)
    return [None if t is None else t * scale.astype(t.dtype) for t in arrays]


# ---------------------------------------------------------------- saturate_cast
def _saturate_cast(value: Value, dtype: Any) -> Value:
    target = as_dtype(dtype)
    if value.dtype.kind == "c" and not target.is_complex:
        value = jnp.real(value)
    if value.dtype == np.bool_ or target.is_complex or target.is_bool:
        return value.astype(target.dtype)
    low, high = _limits(np.dtype(value.dtype), np.dtype(target.dtype))
    return jnp.clip(value, low, high).astype(target.dtype)


@functools.cache
def _limits(source: np.dtype, target: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and greatest values of one type that another one holds."""
    wide, narrow = _ends(source), _ends(target)
    return (
        _held(max(wide[0], narrow[0]), source),
        _held(min(wide[1], narrow[1]), source),
    )


def _ends(dtype: np.dtype) -> tuple[int | float, int | float]:
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return float(jnp.finfo(dtype).min), float(jnp.finfo(dtype).max)


def _held(number: int | float, dtype: np.dtype) -> np.ndarray:
    """Return a number in a type, rounded to zero."""
    if dtype.kind in "iu":
        return np.asarray(int(number), dtype)
    made = np.asarray(float(number)).astype(dtype)
    # Python compares an integer with a float exactly.
    if abs(float(made)) > abs(number):
        made = np.asarray(jnp.nextafter(made, np.zeros((), dtype)))
    return made


LINALG = [
    Row(
        "global_norm", "", "t_list", _global_norm, op="L2Loss",
        doc="Return the Euclidean norm of all tensors of a list; None is left out.",
        examples=(
            "linalg.global_norm([r(2), None, r(2, 3)])", "linalg.global_norm([None])",
            "linalg.global_norm(r(2))",
        ),
    ),
]  # fmt: skip
"""Rows of `tf.linalg`."""

ROWS = [
    Row(
        "clip_by_value", "t clip_value_min clip_value_max", "t, clip_value_min, clip_value_max",
        _clip_by_value, op="Minimum", same=True, kinds="float int", by_rows="t",
        doc="Replace values below and above the limits by these.",
        examples=(
            "clip_by_value(r(2, 3), -0.5, 0.5)", "clip_by_value([1.0, nan, 3.0], 1.0, [1, 1, 2.0])",
            "clip_by_value(i(4), 0, 3)", "clip_by_value(i(2), 0.0, 1.5)",
        ),
    ),
    Row(
        "clip_by_norm", "t clip_norm", "t, clip_norm, axes=None", _clip_by_norm, op="Mul",
        same=True, kinds="float", by_rows="t",
        doc="Scale down to a Euclidean norm, if it is greater.",
        examples=(
            "clip_by_norm(r(2, 3), 1.0)", "clip_by_norm(r(2, 3), 0.5, axes=[1])",
            "clip_by_norm([0.0, 0.0], 1.0)",
        ),
    ),
    Row(
        "clip_by_global_norm", "", "t_list, clip_norm, use_norm=None", _clip_by_global_norm,
        op="Mul",
        doc="Scale a list of tensors down to a common norm, if it is greater; return both.",
        examples=(
            "clip_by_global_norm([r(2), None, r(2, 3)], 1.0)",
            "clip_by_global_norm([r(2)], 5.0, use_norm=tf.constant(10.0))",
            "clip_by_global_norm([[inf], [1.0]], 1.0)", "clip_by_global_norm(r(2), 1.0)",
        ),
    ),
    Row(
        "saturate_cast", "value", "value, dtype", _saturate_cast, op="Cast",
        doc="Convert, with what is too small or large replaced by the limits of the type.",
        examples=(
            "saturate_cast(r(2, 3), np.float16)", "saturate_cast([300.0, -1.0, 7.9], np.uint8)",
            "saturate_cast([3e9, -inf, inf], np.int32)", "saturate_cast([-1, 70000], np.int16)",
        ),
    ),
    *_math_pairs.TOP_LEVEL,
    *_math_counts.TOP_LEVEL,
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="")
