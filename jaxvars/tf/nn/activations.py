"""Activations of `tf.nn`, and dropout.

Rules this file keeps:
- where a function has a corner, the derivative there is the one that TensorFlow takes, and its own
  derivative is 0, also where it is constant.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.derivatives.dependencies import in_slope
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tf.nn.shapes import refused_value
from jaxvars.tf.random import draws as draws
from jaxvars.tf.random.stateless import start_of
from jaxvars.tf.random.streams import source
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.convert import to_array, to_operand
from jaxvars.tf.tensors.static import one_int
from jaxvars.tf.tensors.tensor import Tensor, TensorLike
from jaxvars.typing import Array

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


@op("nn.leaky_relu", "features", kinds="float int", example="r(2, 3)")
def leaky_relu(features: Array, alpha: Any = 0.2) -> Array:
    """Return x where it is positive, else alpha times x."""
    if features.dtype.kind in "iu":
        features = features.astype(jnp.float32)
    return _leak(features, to_operand(alpha, features.dtype))


@quick_jit
def _leak(x: Array, alpha: Array) -> Array:
    x = in_slope(x)
    return jnp.where(x > 0, x, alpha * x)


@op("nn.relu6", "features", kinds="float int", example="4.0 * r(2, 3)")
@quick_jit
def relu6(features: Array) -> Array:
    """Return x, but not below 0 nor above 6."""
    cut = jnp.clip(features, jnp.asarray(0, features.dtype), jnp.asarray(6, features.dtype))
    inside = (features > 0) & (features < 6)  # no gradient at 0 and 6
    return jnp.where(inside, in_slope(features), jax.lax.stop_gradient(cut))


@op("nn.selu", "features", kinds="float", example="r(2, 3)")
@quick_jit
def selu(features: Array) -> Array:
    """Return the scaled exponential linear unit, which keeps mean 0 and variance 1."""
    negative = features < 0
    falling = jnp.expm1(jnp.where(negative, features, 0)) * _SELU_SCALE_ALPHA
    return jnp.where(negative, falling, _SELU_SCALE * features)


@op("nn.gelu", "features", example="r(2, 3)")
def gelu(features: Array, approximate: Any = False) -> Array:
    """Return x times the normal distribution's share below x."""
    if features.dtype.kind in "iub":
        raise refused_value(
            f"`features.dtype` must be a floating point tensor. Received: {features.dtype.name}"
        )
    return _gelu_of(features, bool(approximate))


_gelu_of = quick_jit(jax.nn.gelu, static_argnums=1)


@op("nn.silu", "features", kinds="float", aliases=("nn.swish",), example="r(2, 3)")
def silu(features: Array, beta: Any = 1.0) -> Array:
    """Return x times sigmoid(beta x): swish."""
    return _silu_of(features, to_operand(beta, features.dtype))


@quick_jit
def _silu_of(x: Array, beta: Array) -> Array:
    return x * jax.nn.sigmoid(beta * x)


@op("nn.crelu", "features", op="CRelu", kinds="float int", example="r(2, 3)")
def crelu(features: Array, axis: int = -1) -> Array:
    """Return the positive part and that of -x, one behind the other."""
    return relu.__wrapped__(jnp.concatenate([features, -features], axis))


@op("nn.softmax", "logits", kinds="float", aliases=("math.softmax",), example="r(2, 3)) * r(2, 3")
def softmax(logits: Array, axis: Any = None) -> Array:
    """Return exp(x), divided so that the sum along an axis is 1.

    Differs from TensorFlow: with NaN all along the axis is NaN.
    """
    return _softmax_of(logits, -1 if axis is None else one_int(axis, "axis"))


_softmax_of = quick_jit(jax.nn.softmax, static_argnums=1)


@op("nn.log_softmax", "logits", kinds="float", aliases=("math.log_softmax",), example="r(2, 3)")
def log_softmax(logits: Array, axis: Any = None) -> Array:
    """Return the logarithm of softmax."""
    return jax.nn.log_softmax(logits, axis=-1 if axis is None else one_int(axis, "axis"))


@op("nn.relu", "features", kinds="float int", example="r(2, 3)")
@quick_jit
def relu(features: Array) -> Array:
    """Return max(x, 0)."""
    return jax.nn.relu(in_slope(features))


@op("nn.elu", "features", kinds="float", example="r(2, 3)")
@quick_jit
def elu(features: Array) -> Array:
    """Return x where it is positive, else exp(x) - 1."""
    negative = features < 0
    return jnp.where(negative, jnp.expm1(jnp.where(negative, features, 0)), features)


# ---------------------------------------------------------------- dropout
def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None
) -> Tensor:
    """Set elements to zero at random, and scale up the others so that the sum stays.

    Args:
        x: floating.
        rate: the part to set to zero, from 0 to below 1.
        noise_shape: what is drawn, 1 where an axis is kept or dropped as a whole; all when None.
        seed: of this operation; see `tf.random`.
        name: of no effect.

    Raises:
        ValueError: when the rate is out of range, or the tensor is of integers.

    >>> dropout([1.0, 2.0], 0.0).numpy().tolist()
    [1.0, 2.0]
    """
    return _drop(x, rate, noise_shape, source("RandomUniform float32", seed))


def stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = "auto_select", noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Set elements to zero at random, by a seed of two integers; see `dropout`."""
    return _drop(x, rate, noise_shape, start_of(seed, rng_alg))


def _drop(x: Any, rate: Any, noise_shape: Any, key: Any) -> Tensor:
    array = to_array(x)
    if array.dtype.kind in "iub":
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x.dtype="
            f"{array.dtype.name}"
        )
    is_number = not isinstance(rate, TensorLike | jax.Array)
    if is_number and not (isinstance(rate, Real) and 0 <= float(rate) < 1):
        raise ValueError(
            f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
        )
    if is_number and rate == 0:
        return Tensor(array)
    part = jnp.asarray(rate if is_number else to_array(rate), array.dtype)
    noise = draws.uniform(key, _noise_shape(array, noise_shape), 0, None, draws.as_dtype("float32"))
    kept = noise._array >= part.astype(jnp.float32)
    return Tensor(jnp.where(kept, array / (1 - part), jnp.zeros_like(array)))


def _noise_shape(array: Array, noise_shape: Any) -> tuple[int, ...]:
    if noise_shape is None:
        return array.shape
    given = list(noise_shape) if isinstance(noise_shape, list | tuple) else draws.sizes(noise_shape)
    return tuple(
        size if want is None else int(want) for size, want in zip(array.shape, given, strict=True)
    )
