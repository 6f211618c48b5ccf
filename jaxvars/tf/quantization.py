"""`tf.quantization`: numbers rounded to those that few bits can represent, and still floats.

Derivatives pass through rounding as if it were not there, inside of the limits.

Differs from TensorFlow: there are no tensors of quantized types, as XLA has none.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import op, operations
from jaxvars.tf.tensors.static import one_axis
from jaxvars.typing import Array


def _nudge_limits(low: Array, high: Array, bits: int, narrow: bool) -> tuple[Array, Array, Array]:
    """Return limits with which zero is exactly representable, and the step."""
    first, last = float(bool(narrow)), float(2**bits - 1)
    steps = last - first + 0 * high  # of a constant, XLA would multiply by the reciprocal
    scale = jnp.where(high == low, 0, (high - low) / steps)  # else divide by both at once
    zero = first - low / scale
    zero = jnp.where(zero < first, first, jnp.where(zero > last, last, jnp.floor(zero + 0.5)))
    return (first - zero) * scale, (last - zero) * scale, scale


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _fake(x: Array, low: Array, high: Array, bits: int, narrow: bool) -> Array:
    least, most, scale = _nudge_limits(low, high, bits, narrow)
    clipped = jnp.clip(x, least, most)
    made = jnp.floor((clipped - least) / scale + 0.5) * scale + least
    return jnp.where((low == 0) & (high == 0), 0, made).astype(x.dtype)


def _slopes(
    upstream: Array, x: Array, low: Array, high: Array, bits: int, narrow: bool
) -> tuple[Array, Array, Array]:
    """Return the derivatives with respect to the numbers and the limits."""
    least, most, _ = _nudge_limits(low, high, bits, narrow)
    is_zero = (low == 0) & (high == 0)
    below, above = (x < least) & ~is_zero, (x > most) & ~is_zero
    zero = jnp.zeros_like(upstream)
    axes = tuple(range(x.ndim - low.ndim))
    return (
        jnp.where(below | above, zero, upstream),
        jnp.sum(jnp.where(below, upstream, zero), axes).astype(low.dtype),
        jnp.sum(jnp.where(above, upstream, zero), axes).astype(high.dtype),
    )


_fake.defvjp(
    lambda x, low, high, bits, narrow: (_fake(x, low, high, bits, narrow), (x, low, high)),
    lambda bits, narrow, saved, upstream: _slopes(upstream, *saved, bits=bits, narrow=narrow),
)
_fake_compiled = jax.jit(_fake, static_argnums=(3, 4))  # one program: halves are rounded alike


@op("quantization.fake_quant_with_min_max_args", "inputs", kinds="float32")
def fake_quant_with_min_max_args(
    inputs: Array, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    """Round to the numbers that so many bits can represent, between two limits.

    Example: `tf.quantization.fake_quant_with_min_max_args([-7.0, 0.1, 3.0, 8.0])`.
    """
    if not min < max:
        raise ValueError(f"min has to be smaller than max, was: {min} >= {max}")
    return _by_numbers(inputs, float(min), float(max), int(num_bits), bool(narrow_range))


@functools.partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _by_numbers(x: Array, low: float, high: float, bits: int, narrow: bool) -> Array:
    return _by_vars(x, jnp.float32(low), jnp.float32(high), bits, narrow)


def _by_vars(x: Array, low: Array, high: Array, bits: int, narrow: bool) -> Array:
    if not 2 <= bits <= 16:
        raise ValueError(f"num_bits must be between 2 and 16, inclusive: {bits}")
    return _fake_compiled(x, low, high, int(bits), bool(narrow))


@op("quantization.fake_quant_with_min_max_args_gradient", "gradients inputs", kinds="float32")
def fake_quant_with_min_max_args_gradient(
    gradients: Array, inputs: Array, min: float = -6, max: float = 6, num_bits: int = 8,
    narrow_range: bool = False,
) -> Array:  # fmt: skip
    """Return the derivative of `fake_quant_with_min_max_args`.

    Example: `tf.quantization.fake_quant_with_min_max_args_gradient(r(4), [-7.0, 0.1, 3.0, 8.0])`.
    """
    return _final_slopes(
        gradients, inputs, jnp.float32(min), jnp.float32(max), num_bits, narrow_range
    )[0]


def _final_slopes(*arguments: Any) -> tuple[Array, Array, Array]:
    """Return the derivatives; they have none themselves."""
    return _slopes(*map(jax.lax.stop_gradient, arguments[:4]), *arguments[4:])


@op("quantization.fake_quant_with_min_max_vars", "inputs min max", kinds="float32")
def fake_quant_with_min_max_vars(
    inputs: Array, min: Array, max: Array, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    """Round to the numbers that so many bits can represent, between limits that train.

    Example:
    `tf.quantization.fake_quant_with_min_max_vars(r(2, 3), tf.constant(-0.5), tf.constant(1.0))`.
    """
    return _by_vars(inputs, min, max, num_bits, narrow_range)


@op(
    "quantization.fake_quant_with_min_max_vars_gradient",
    "gradients inputs min max",
    kinds="float32",
)
def fake_quant_with_min_max_vars_gradient(
    gradients: Array, inputs: Array, min: Array, max: Array, num_bits: Any = 8,
    narrow_range: Any = False,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the derivatives of `fake_quant_with_min_max_vars`.

    Example:
    `tf.quantization.fake_quant_with_min_max_vars_gradient(r(4), r(4), tf.constant(-0.5),
    tf.constant(0.5))`.
    """
    return _final_slopes(gradients, inputs, min, max, num_bits, narrow_range)


@op("quantization.fake_quant_with_min_max_vars_per_channel", "inputs min max", kinds="float32")
def fake_quant_with_min_max_vars_per_channel(
    inputs: Array, min: Array, max: Array, num_bits: int = 8, narrow_range: bool = False
) -> Array:
    """Round to the numbers that so many bits can represent, between limits of each channel.

    Example: `tf.quantization.fake_quant_with_min_max_vars_per_channel(r(2, 3), -p(3), p(3))`.
    """
    return _by_vars(inputs, min, max, num_bits, narrow_range)


@op(
    "quantization.fake_quant_with_min_max_vars_per_channel_gradient", "gradients inputs min max",
    kinds="float32",
)  # fmt: skip
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Array, inputs: Array, min: Array, max: Array, num_bits: Any = 8,
    narrow_range: Any = False,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the derivatives of `fake_quant_with_min_max_vars_per_channel`.

    Example:
    `tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient(r(2, 3), r(2, 3), -p(3),
    p(3))`.
    """
    return _final_slopes(gradients, inputs, min, max, num_bits, narrow_range)


# ---------------------------------------------------------------- and back
@op("quantization.quantize_and_dequantize_v2", "input input_min input_max", kinds="float")
def quantize_and_dequantize_v2(
    input: Array, input_min: Array, input_max: Array, signed_input: bool = True, num_bits: Any = 8,
    range_given: bool = False, round_mode: str = "HALF_TO_EVEN", narrow_range: bool = False,
    axis: Any = None,
) -> Array:  # fmt: skip
    """Round to the numbers that so many bits can represent.

    Example: `tf.quantization.quantize_and_dequantize_v2([-7.0, 0.1, 3.0, 8.0], 0.0, 0.0)`.
    """
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise ValueError(f"round_mode must be HALF_TO_EVEN or HALF_UP: {round_mode}")
    others = tuple(range(input.ndim))
    if axis is not None:
        kept = one_axis(axis, input.ndim, "invalid axis")
        others = tuple(i for i in others if i != kept)
    if range_given:
        input_min, input_max = (
            jnp.expand_dims(v, others) if axis is not None else v
            for v in (input_min.astype(input.dtype), input_max.astype(input.dtype))
        )
    else:
        fixed = jax.lax.stop_gradient(input)
        input_min, input_max = (f(fixed, axis=others, keepdims=True) for f in (jnp.min, jnp.max))
    return _round_to_steps(
        input, input_min, input_max, bool(signed_input), int(num_bits), round_mode,
        bool(narrow_range),
    )  # fmt: skip


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4, 5, 6))
def _round_to_steps(
    x: Array, low: Array, high: Array, signed: bool, bits: int, mode: str, narrow: bool
) -> Array:
    scale, least, most = _limits(low, high, signed, bits, narrow)
    scaled = jnp.clip(x, least, most) * scale
    whole = jnp.round(scaled) if mode == "HALF_TO_EVEN" else jnp.floor(scaled + 0.5)
    return (whole / scale).astype(x.dtype)


@_round_to_steps.defjvp
def _(
    signed: bool, bits: int, mode: str, narrow: bool, primals: Any, tangents: Any
) -> tuple[Array, Array]:
    x, low, high = primals
    inside = (x >= low) & (x <= high)  # of what was given, as in TensorFlow
    made = _round_to_steps(x, low, high, signed, bits, mode, narrow)
    return made, jnp.where(inside, tangents[0], jnp.zeros_like(made))


def _limits(
    low: Array, high: Array, signed: bool, bits: int, narrow: bool
) -> tuple[Array, Array, Array]:
    """Return the factor to whole numbers, and the limits that both sides can represent."""
    first = -(2 ** (bits - 1)) + int(narrow) if signed else 0
    last = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    by_low = jnp.where(low * first > 0, first / jnp.where(low == 0, 1, low), np.inf)
    by_high = jnp.where(high * last > 0, last / jnp.where(high == 0, 1, high), np.inf)
    scale = jnp.minimum(by_low, by_high)
    scale = jnp.where(jnp.isfinite(scale), scale, 1)
    is_low = by_low < by_high
    return scale, jnp.where(is_low, low, first / scale), jnp.where(is_low, last / scale, high)


_rows = operations(__name__, ["quantize_and_dequantize"])

_WHY = (
    "there are no tensors of quantized types, as XLA has none. tf.quantization."
    "quantize_and_dequantize_v2 and the fake_quant_* functions round and stay floats."
)


def __getattr__(name: str) -> Any:
    if name in ("quantize", "dequantize", "quantized_concat", "experimental"):
        raise AttributeError(f"tf.quantization has no {name!r}: {_WHY}")
    return _rows("quantize_and_dequantize_v2" if name == "quantize_and_dequantize" else name)
