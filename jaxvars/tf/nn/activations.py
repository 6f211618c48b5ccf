"""Activations of `tf.nn`, joined by `nn.py`.

Rules this file keeps:
- where a function has a corner, the derivative there is the one that TensorFlow takes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tf.tensors.convert import as_given

Value: TypeAlias = Any

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


_relu = jax.jit(jax.nn.relu)


def _leaky_relu(x: Value, alpha: Any) -> Value:
    if x.dtype.kind in "iu":
        x = x.astype(jnp.float32)
    return _leaking(x, as_given(alpha, x.dtype))


@jax.jit
def _leaking(x: Value, alpha: Value) -> Value:
    return jnp.where(x > 0, x, alpha * x)


@jax.jit
def _relu6(x: Value) -> Value:
    cut = jnp.clip(x, jnp.asarray(0, x.dtype), jnp.asarray(6, x.dtype))
    return jnp.where((x > 0) & (x < 6), x, jax.lax.stop_gradient(cut))  # no gradient at 0 and 6


_elu = jax.jit(jax.nn.elu)


@jax.jit
def _selu(x: Value) -> Value:
    negative = jnp.asarray(_SELU_SCALE_ALPHA, x.dtype) * jnp.expm1(jnp.minimum(x, 0))
    return jnp.where(x >= 0, jnp.asarray(_SELU_SCALE, x.dtype) * x, negative)


def _gelu(x: Value, approximate: Any) -> Value:
    if x.dtype.kind in "iub":
        raise Refused(
            ValueError(
                f"`features.dtype` must be a floating point tensor. Received: {x.dtype.name}"
            )
        )
    return _gelu_of(x, bool(approximate))


_gelu_of = jax.jit(jax.nn.gelu, static_argnums=1)


def _silu(x: Value, beta: Any) -> Value:
    return _silu_of(x, as_given(beta, x.dtype))


@jax.jit
def _silu_of(x: Value, beta: Value) -> Value:
    return x * jax.nn.sigmoid(beta * x)


def _crelu(x: Value, axis: int) -> Value:
    return _relu(jnp.concatenate([x, -x], axis))


def _softmax(x: Value, axis: Any) -> Value:
    return _softmax_of(x, -1 if axis is None else int(axis))


_softmax_of = jax.jit(jax.nn.softmax, static_argnums=1)


def _log_softmax(x: Value, axis: Any) -> Value:
    return jax.nn.log_softmax(x, axis=-1 if axis is None else int(axis))


ROWS = [
    Row(
        "relu", "features", "features", _relu, kinds="float int", doc="Return max(x, 0).",
        examples=("nn.relu(r(2, 3))", "nn.relu(i(4))", "nn.relu([-1.0, 0.0, nan, inf])"),
    ),
    Row(
        "relu6", "features", "features", _relu6, op="Relu6", kinds="float int",
        doc="Return x, but not below 0 nor above 6.",
        examples=("nn.relu6(4.0 * r(2, 3))", "nn.relu6(i(6))", "nn.relu6(r(0))"),
    ),
    Row(
        "leaky_relu", "features", "features, alpha=0.2", _leaky_relu, kinds="float int",
        doc="Return x where it is positive, else alpha times x.",
        examples=(
            "nn.leaky_relu(r(2, 3))", "nn.leaky_relu(i(4), alpha=0.5)",
            "nn.leaky_relu([-1.0, 0.0, 2.0])",
        ),
    ),
    Row(
        "elu", "features", "features", _elu, kinds="float",
        doc="Return x where it is positive, else exp(x) - 1.",
        examples=("nn.elu(r(2, 3))", "nn.elu([-1e30, 0.0, nan])", "nn.elu(i(3))"),
    ),
    Row(
        "selu", "features", "features", _selu, kinds="float",
        doc="Return the scaled exponential linear unit, which keeps mean 0 and variance 1.",
        examples=("nn.selu(r(2, 3))", "nn.selu([-1e30, 0.0, nan])", "nn.selu(0.0 * r(2))"),
    ),
    Row(
        "gelu", "features", "features, approximate=False", _gelu,
        doc="Return x times the normal distribution's share below x.",
        examples=("nn.gelu(r(2, 3))", "nn.gelu(r(2, 3), approximate=True)", "nn.gelu(i(3))"),
    ),
    Row(
        "silu", "features", "features, beta=1.0", _silu, kinds="float", aliases=("nn.swish",),
        doc="Return x times sigmoid(beta x): swish.",
        examples=("nn.silu(r(2, 3))", "nn.silu(r(3), 2.0)", "nn.swish([-100.0, 0.0, 100.0])"),
    ),
    Row(
        "crelu", "features", "features, axis=-1", _crelu, op="CRelu", kinds="float int",
        doc="Return the positive part and that of -x, one behind the other.",
        examples=("nn.crelu(r(2, 3))", "nn.crelu(r(2, 3), axis=0)", "nn.crelu(i(3))"),
    ),
    Row(
        "softmax", "logits", "logits, axis=None", _softmax, kinds="float",
        aliases=("math.softmax",),
        doc="Return exp(x), divided so that the sum along an axis is 1.",
        examples=(
            "nn.softmax(r(2, 3)) * r(2, 3)", "nn.softmax(r(2, 3), axis=0)",
            "nn.softmax([1000.0, 0.0, -inf])", "nn.softmax(r(0, 3))",
        ),
    ),
    Row(
        "log_softmax", "logits", "logits, axis=None", _log_softmax, kinds="float",
        aliases=("math.log_softmax",),
        doc="Return the logarithm of softmax.",
        examples=(
            "nn.log_softmax(r(2, 3))", "nn.log_softmax(r(2, 3, 2), axis=1)",
            "nn.log_softmax([1000.0, 0.0])",
        ),
    ),
]  # fmt: skip
