"""Activations of `tf.nn`, joined by `nn.py`.

Rules this file keeps:
- where a function has a corner, the derivative there is the one that TensorFlow takes.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.convert import as_given
from jaxvars.typing import Array

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


@op("nn.leaky_relu", "features", kinds="float int")
def leaky_relu(features: Array, alpha: Any = 0.2) -> Array:
    """Return x where it is positive, else alpha times x.

    Example: `tf.nn.leaky_relu(r(2, 3))`.
    """
    if features.dtype.kind in "iu":
        features = features.astype(jnp.float32)
    return _leaking(features, as_given(alpha, features.dtype))


@jax.jit
def _leaking(x: Array, alpha: Array) -> Array:
    return jnp.where(x > 0, x, alpha * x)


@op("nn.relu6", "features", kinds="float int")
@jax.jit
def relu6(features: Array) -> Array:
    """Return x, but not below 0 nor above 6.

    Example: `tf.nn.relu6(4.0 * r(2, 3))`.
    """
    cut = jnp.clip(features, jnp.asarray(0, features.dtype), jnp.asarray(6, features.dtype))
    inside = (features > 0) & (features < 6)
    return jnp.where(inside, features, jax.lax.stop_gradient(cut))  # no gradient at 0 and 6


@op("nn.selu", "features", kinds="float")
@jax.jit
def selu(features: Array) -> Array:
    """Return the scaled exponential linear unit, which keeps mean 0 and variance 1.

    Example: `tf.nn.selu(r(2, 3))`.
    """
    negative = jnp.asarray(_SELU_SCALE_ALPHA, features.dtype) * jnp.expm1(jnp.minimum(features, 0))
    return jnp.where(features >= 0, jnp.asarray(_SELU_SCALE, features.dtype) * features, negative)


@op("nn.gelu", "features")
def gelu(features: Array, approximate: Any = False) -> Array:
    """Return x times the normal distribution's share below x.

    Example: `tf.nn.gelu(r(2, 3))`.
    """
    if features.dtype.kind in "iub":
        raise Refused(
            ValueError(
                f"`features.dtype` must be a floating point tensor. Received: {features.dtype.name}"
            )
        )
    return _gelu_of(features, bool(approximate))


_gelu_of = jax.jit(jax.nn.gelu, static_argnums=1)


@op("nn.silu", "features", kinds="float", aliases=("nn.swish",))
def silu(features: Array, beta: Any = 1.0) -> Array:
    """Return x times sigmoid(beta x): swish.

    Example: `tf.nn.silu(r(2, 3))`.
    """
    return _silu_of(features, as_given(beta, features.dtype))


@jax.jit
def _silu_of(x: Array, beta: Array) -> Array:
    return x * jax.nn.sigmoid(beta * x)


@op("nn.crelu", "features", op="CRelu", kinds="float int")
def crelu(features: Array, axis: int = -1) -> Array:
    """Return the positive part and that of -x, one behind the other.

    Example: `tf.nn.crelu(r(2, 3))`.
    """
    return relu.__wrapped__(jnp.concatenate([features, -features], axis))


@op("nn.softmax", "logits", kinds="float", aliases=("math.softmax",))
def softmax(logits: Array, axis: Any = None) -> Array:
    """Return exp(x), divided so that the sum along an axis is 1.

    Example: `tf.nn.softmax(r(2, 3)) * r(2, 3)`.
    """
    return _softmax_of(logits, -1 if axis is None else int(axis))


_softmax_of = jax.jit(jax.nn.softmax, static_argnums=1)


@op("nn.log_softmax", "logits", kinds="float", aliases=("math.log_softmax",))
def log_softmax(logits: Array, axis: Any = None) -> Array:
    """Return the logarithm of softmax.

    Example: `tf.nn.log_softmax(r(2, 3))`.
    """
    return jax.nn.log_softmax(logits, axis=-1 if axis is None else int(axis))


@op("nn.relu", "features", kinds="float int")
@jax.jit
def relu(features: Array) -> Array:
    """Return max(x, 0).

    Example: `tf.nn.relu(r(2, 3))`.
    """
    return jax.nn.relu(features)


@op("nn.elu", "features", kinds="float")
@jax.jit
def elu(features: Array) -> Array:
    """Return x where it is positive, else exp(x) - 1.

    Example: `tf.nn.elu(r(2, 3))`.
    """
    return jax.nn.elu(features)
