"""Limits for values and gradients: `tf.clip_by_value`, `tf.clip_by_norm`, `tf.saturate_cast`, ...

Rules this file keeps:
- a value at a limit keeps its gradient, as in TensorFlow;
- None among gradients stays None.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.math.pairs import maximum, minimum
from jaxvars.tf.math.slopes import root
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.convert import match_dtypes, to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.static import axes_in
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable
from jaxvars.typing import Array


def _match_limits(t: Any, least: Any, greatest: Any, op: str) -> tuple[Array, ...]:
    """Return arrays of the type of the first, which is not cut where it is not a tensor."""
    return tuple(match_dtypes((Tensor(to_array(t)), least, greatest), op))


@op(
    "clip_by_value", "t clip_value_min clip_value_max", op="Minimum", same=True, kinds="float int",
    pairing=_match_limits, by_rows="t", example="r(2, 3), -0.5, 0.5",
)  # fmt: skip
def clip_by_value(t: Array, clip_value_min: Array, clip_value_max: Array) -> Array:
    """Replace values below and above the limits by these."""
    clipped = _within(t, clip_value_min, clip_value_max)
    return _of_same_shape(t, clipped)


def _of_same_shape(t: Array, clipped: Array) -> Array:
    if clipped.shape != t.shape:
        raise Refused(ValueError(f"Shapes {t.shape} and {clipped.shape} are incompatible"))
    return clipped


@jax.jit
def _within(t: Array, least: Array, greatest: Array) -> Array:
    return maximum.__wrapped__(minimum.__wrapped__(t, greatest), least)


@op("clip_by_norm", "t clip_norm", op="Mul", same=True, kinds="float", by_rows="t")
def clip_by_norm(t: Array, clip_norm: Array, axes: Any = None) -> Array:
    """Scale down to a Euclidean norm, if it is greater.

    Example: `tf.clip_by_norm(r(2, 3), 1.0)`.
    """
    return _of_same_shape(t, _clip(t, clip_norm, axes_in(t, axes)))


@functools.partial(jax.jit, static_argnums=2)
def _clip(t: Array, clip_norm: Array, axis: Any) -> Array:
    total = jnp.sum(t * t, axis=axis, keepdims=True)
    positive = total > 0
    norm = jnp.where(positive, jnp.sqrt(jnp.where(positive, total, 1)), total)
    return t * clip_norm / maximum.__wrapped__(*jnp.broadcast_arrays(norm, clip_norm))


# ---------------------------------------------------------------- lists of gradients
def _arrays(t_list: Any) -> list[Array | None]:
    if isinstance(t_list, Tensor | Variable) or not isinstance(t_list, list | tuple):
        raise Refused(
            TypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
        )
    return [None if t is None else to_array(_values(t)) for t in t_list]


def _values(t: Any) -> Any:
    return t.values if isinstance(t, IndexedSlices) else t


@op("linalg.global_norm", op="L2Loss", example="[r(2), None, r(2, 3)]")
def global_norm(t_list: Any) -> Array:
    """Return the Euclidean norm of all tensors of a list; None is left out."""
    found = [t for t in _arrays(t_list) if t is not None]
    return _root_of_squares(found) if found else jnp.zeros((), np.float32)


@jax.jit
def _root_of_squares(arrays: list[Array]) -> Array:
    total: Any = sum(jnp.sum(jnp.real(t * jnp.conj(t))) for t in arrays)
    return root(total)


@op("clip_by_global_norm", op="Mul", example="[r(2), None, r(2, 3)], 1.0")
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None) -> tuple[Any, Array]:
    """Scale a list of tensors down to a common norm, if it is greater; return both."""
    given = _arrays(t_list)
    norm = global_norm.__wrapped__(t_list) if use_norm is None else to_array(use_norm)
    limit = to_array(clip_norm, as_dtype(norm.dtype)) if norm.ndim == 0 else norm
    made = _scale_all(given, limit, norm)
    return [t.with_values(Tensor(x)) if isinstance(t, IndexedSlices) else x
            for t, x in zip(t_list, made, strict=True)], norm  # fmt: skip


@jax.jit
def _scale_all(arrays: list[Array | None], limit: Array, norm: Array) -> list[Array | None]:
    # An infinite or NaN norm makes NaN of all of them, so that it is noticed.
    scale = limit * minimum.__wrapped__(1 / norm, 1 / limit)
    scale = jnp.where(jnp.isfinite(norm), scale, jnp.nan)
    return [None if t is None else t * scale.astype(t.dtype) for t in arrays]


# ---------------------------------------------------------------- saturate_cast
@op("saturate_cast", "value", op="Cast", example="r(2, 3), np.float16")
def saturate_cast(value: Array, dtype: Any) -> Array:
    """Convert, with what is too small or large replaced by the limits of the type."""
    target = as_dtype(dtype)
    if value.dtype.kind == "c" and not target.is_complex:
        value = jnp.real(value)
    if value.dtype == np.bool_ or target.is_bool:
        return value.astype(target.dtype)
    if target.is_complex:
        parts = jnp.real(value), jnp.imag(value)
        return jax.lax.complex(*(saturate_cast.__wrapped__(x, target.real_dtype) for x in parts))
    low, high = _limits(np.dtype(value.dtype), np.dtype(target.dtype))
    return jnp.clip(value, low, high).astype(target.dtype)


@functools.cache
def _limits(source: np.dtype, target: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and greatest values of one type that another one holds."""
    wide, narrow = _ends(source), _ends(target)
    return (_cut_off(max(wide[0], narrow[0]), source), _cut_off(min(wide[1], narrow[1]), source))


def _ends(dtype: np.dtype) -> tuple[int | float, int | float]:
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return float(jnp.finfo(dtype).min), float(jnp.finfo(dtype).max)


def _cut_off(number: int | float, dtype: np.dtype) -> np.ndarray:
    """Return a number in a type, rounded to zero."""
    if dtype.kind in "iu":
        return np.asarray(int(number), dtype)
    made = np.asarray(float(number)).astype(dtype)
    # Python compares an integer with a float exactly.
    if abs(float(made)) > abs(number):
        made = np.asarray(jnp.nextafter(made, np.zeros((), dtype)))
    return made
