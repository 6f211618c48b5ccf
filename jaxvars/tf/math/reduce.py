"""The part of `tf.math` that reduces axes: sums, means, extremes.

Rules this file keeps:
- results have the type of the argument: the mean of integers is one, cut off;
- of nothing, the sum is 0, the product 1, the maximum the smallest value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tf.math.slopes import extreme, root
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.dtypes import as_dtype, widen
from jaxvars.tf.tensors.handles import is_handles, on_strings
from jaxvars.tf.tensors.static import axes_in
from jaxvars.typing import Array

_NUMBERS, _ORDERED = "float complex int", "float int"


@op("math.reduce_sum", "input_tensor", op="Sum", kinds=_NUMBERS, aliases=("reduce_sum",))
def reduce_sum(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Add up, along one axis, several, or all.

    Example: `tf.math.reduce_sum(r(2, 3))`.
    """
    kind = _type_of_sum(input_tensor)
    return jnp.sum(
        input_tensor, axis=axes_in(input_tensor, axis), keepdims=bool(keepdims), dtype=kind
    )


def _type_of_sum(x: Array) -> Any:
    """Return the type to add up in: integers in their own, floats in JAX's wider one."""
    return x.dtype if x.dtype.kind in "iu" else None


@op("math.reduce_prod", "input_tensor", op="Prod", kinds=_NUMBERS, aliases=("reduce_prod",))
def reduce_prod(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Multiply, along one axis, several, or all.

    Example: `tf.math.reduce_prod(r(2, 3), 1)`.
    """
    kind = _type_of_sum(input_tensor)
    return jnp.prod(
        input_tensor, axis=axes_in(input_tensor, axis), keepdims=bool(keepdims), dtype=kind
    )


@op("math.reduce_max", "input_tensor", op="Max", kinds=_ORDERED, aliases=("reduce_max",))
def reduce_max(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the greatest elements, along one axis, several, or all.

    Example: `tf.math.reduce_max(r(2, 3), axis=1)`.
    """
    return _extreme(jnp.max, input_tensor, axes_in(input_tensor, axis), bool(keepdims))


@op("math.reduce_min", "input_tensor", op="Min", kinds=_ORDERED, aliases=("reduce_min",))
def reduce_min(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the smallest elements, along one axis, several, or all.

    Example: `tf.math.reduce_min(r(2, 3), axis=1)`.
    """
    return _extreme(jnp.min, input_tensor, axes_in(input_tensor, axis), bool(keepdims))


@functools.partial(quick_jit, static_argnums=(0, 2, 3))
def _extreme(find: Callable[..., Array], x: Array, axis: Any, keepdims: bool) -> Array:
    if x.size and not jnp.issubdtype(x.dtype, jnp.integer):
        found = extreme(find, axis, x)
        return found if keepdims else jnp.squeeze(found, axis)
    start = None if x.size else _neutral(x.dtype, 1 if find is jnp.min else -1)
    return find(x, axis=axis, keepdims=keepdims, initial=start)


def _neutral(dtype: np.dtype, sign: int) -> Any:
    """Return the value that changes no minimum (1), or no maximum (-1)."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.asarray(limits.max if sign > 0 else limits.min, dtype)  # an int is an int64
    return sign * math.inf


@op("math.reduce_mean", "input_tensor", op="Mean", kinds=_NUMBERS, aliases=("reduce_mean",))
def reduce_mean(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the mean, along one axis, several, or all; of integers, an integer.

    Example: `tf.math.reduce_mean(r(2, 3), axis=0)`.
    """
    if input_tensor.dtype.kind not in "iu":
        return jnp.mean(input_tensor, axis=axes_in(input_tensor, axis), keepdims=bool(keepdims))
    return _mean_of_integers(input_tensor, axes_in(input_tensor, axis), bool(keepdims))


@functools.partial(quick_jit, static_argnums=(1, 2))
def _mean_of_integers(x: Array, axis: Any, keepdims: bool) -> Array:
    with jax.enable_x64(True):  # as TensorFlow adds them, whatever they are
        wide = jnp.int64 if x.dtype.kind == "i" else jnp.uint64
        total = jnp.sum(x, axis=axis, keepdims=keepdims, dtype=wide)
        count = max(x.size // max(total.size, 1), 1)
        return lax.div(total, jnp.full_like(total, count)).astype(x.dtype)


@op("math.reduce_all", "input_tensor", op="All", kinds="bool", aliases=("reduce_all",))
def reduce_all(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return whether all are true, along one axis, several, or all.

    Example: `tf.math.reduce_all(b(2, 3), 1)`.
    """
    return jnp.all(input_tensor, axis=axes_in(input_tensor, axis), keepdims=bool(keepdims))


@op("math.reduce_any", "input_tensor", op="Any", kinds="bool", aliases=("reduce_any",))
def reduce_any(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return whether one is true, along one axis, several, or all.

    Example: `tf.math.reduce_any(b(2, 3), 1)`.
    """
    return jnp.any(input_tensor, axis=axes_in(input_tensor, axis), keepdims=bool(keepdims))


@op(
    "math.reduce_logsumexp", "input_tensor", op="IsFinite", kinds="float",
    aliases=("reduce_logsumexp",), example="r(2, 3), 1",
)  # fmt: skip
def reduce_logsumexp(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return log(sum(exp(x))), without overflow."""
    return _logsumexp(input_tensor, axes_in(input_tensor, axis), bool(keepdims))


@functools.partial(quick_jit, static_argnums=(1, 2))
def _logsumexp(x: Array, axis: Any, keepdims: bool) -> Array:
    if not x.size:
        return jnp.log(jnp.sum(x, axis=axis, keepdims=keepdims))
    return jax.nn.logsumexp(x, axis=axis, keepdims=keepdims)


@op("math.reduce_variance", "input_tensor", op="Mean", kinds=_NUMBERS, example="r(2, 3), 1")
def reduce_variance(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the variance, along one axis, several, or all."""
    _refuse_integers(input_tensor)
    return jnp.var(input_tensor, axis=axes_in(input_tensor, axis), keepdims=bool(keepdims))


def _refuse_integers(x: Array) -> None:
    if x.dtype.kind in "iu":
        raise Refused(
            TypeError(
                "Input must be either real or complex. Received integer type "
                f"<dtype: '{x.dtype.name}'>."
            )
        )


@op("math.reduce_std", "input_tensor", op="Mean", kinds=_NUMBERS, example="r(2, 3), 1")
def reduce_std(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the standard deviation, along one axis, several, or all."""
    _refuse_integers(input_tensor)
    return _deviation(input_tensor, axes_in(input_tensor, axis), bool(keepdims))


@functools.partial(quick_jit, static_argnums=(1, 2))
def _deviation(x: Array, axis: Any, keepdims: bool) -> Array:
    return root(jnp.var(x, axis=axis, keepdims=keepdims))


@op("math.reduce_euclidean_norm", "input_tensor", op="EuclideanNorm", kinds=_NUMBERS)
def reduce_euclidean_norm(input_tensor: Array, axis: Any = None, keepdims: bool = False) -> Array:
    """Return the root of the sum of the squares.

    Example: `tf.math.reduce_euclidean_norm(r(2, 3), 1)`.
    """
    return _euclidean(input_tensor, axes_in(input_tensor, axis), bool(keepdims))


@functools.partial(quick_jit, static_argnums=(1, 2))
def _euclidean(x: Array, axis: Any, keepdims: bool) -> Array:
    wide = widen(x)
    total = jnp.sum(wide * jnp.conj(wide), axis=axis, keepdims=keepdims, dtype=wide.dtype)
    return jnp.sqrt(total).astype(x.dtype)


@op("math.count_nonzero", "input", strings=True, example="i(2, 3), axis=1")
def count_nonzero(
    input: Array, axis: Any = None, keepdims: bool | None = None, dtype: Any = "int64"
) -> Array:
    """Count what is not 0, False, or an empty string."""
    input = on_strings(lambda x: jnp.asarray(x != b""))(input) if is_handles(input) else input
    found = jnp.asarray(input != b"") if is_text(input) else input != 0
    return jnp.sum(
        found, axis=axes_in(input, axis), keepdims=bool(keepdims), dtype=as_dtype(dtype).dtype
    )


@op("math.zero_fraction", "value", op="CountNonzero", aliases=("nn.zero_fraction",))
def zero_fraction(value: Array) -> Array:
    """Return the fraction of elements that are 0.

    Example: `tf.math.zero_fraction(i(2, 3))`.
    """
    # Two calls: a comparison ends the path of a gradient.
    return jnp.mean(value == 0, dtype=np.float32)


@op(
    "math.l2_normalize", "x", op="Square", kinds=_NUMBERS,
    aliases=("nn.l2_normalize", "linalg.l2_normalize"), example="r(2, 3), 1",
)  # fmt: skip
def l2_normalize(x: Array, axis: Any = None, epsilon: float = 1e-12, dim: Any = None) -> Array:
    """Divide by the Euclidean norm along axes."""
    if x.dtype.kind in "iu":
        raise Refused(TypeError(f"Cannot convert {epsilon} to EagerTensor of dtype {x.dtype}"))
    return _normalize(x, axes_in(x, axis if dim is None else dim), epsilon)


@functools.partial(quick_jit, static_argnums=1)
def _normalize(x: Array, axis: Any, epsilon: Any) -> Array:
    total = jnp.sum(jnp.real(x * jnp.conj(x)), axis=axis, keepdims=True)
    return x * lax.rsqrt(jnp.maximum(total, jnp.asarray(epsilon, total.dtype))).astype(x.dtype)


@op("math.is_non_decreasing", "x", kinds=_ORDERED, example="r(4)")
@quick_jit
def is_non_decreasing(x: Array) -> Array:
    """Return whether no element is less than the one before it."""
    flat = x.reshape(-1)
    return jnp.all(flat[1:] >= flat[:-1])


@op("math.is_strictly_increasing", "x", kinds=_ORDERED, example="r(4)")
@quick_jit
def is_strictly_increasing(x: Array) -> Array:
    """Return whether each element is greater than the one before it."""
    flat = x.reshape(-1)
    return jnp.all(flat[1:] > flat[:-1])
