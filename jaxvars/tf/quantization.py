"""`tf.quantization`: numbers rounded to those that few bits can say, and still floats.

Rules this file keeps:
- derivatives pass through rounding as if it were not there, inside of the limits.

Differs from TensorFlow: there are no tensors of quantized types, as XLA has none.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import Row, operations

Value: TypeAlias = Any


def _nudged(low: Value, high: Value, bits: int, narrow: bool) -> tuple[Value, Value, Value]:
    """Return limits that zero can be said exactly with, and the step."""
    first, last = float(bool(narrow)), float(2**bits - 1)
    scale = (high - low) / (last - first)
    zero = first - low / scale
    zero = jnp.where(zero < first, first, jnp.where(zero > last, last, jnp.floor(zero + 0.5)))
    return (first - zero) * scale, (last - zero) * scale, scale


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4))
def _fake(x: Value, low: Value, high: Value, bits: int, narrow: bool) -> Value:
    least, most, scale = _nudged(low, high, bits, narrow)
    clipped = jnp.clip(x, least, most)
    made = jnp.floor((clipped - least) / scale + 0.5) * scale + least
    return jnp.where((low == 0) & (high == 0), 0, made).astype(x.dtype)


def _fake_forward(x: Value, low: Value, high: Value, bits: int, narrow: bool) -> Any:
    return _fake(x, low, high, bits, narrow), (x, low, high)


def _fake_backward(bits: int, narrow: bool, saved: Any, upstream: Value) -> Any:
    x, low, high = saved
    return _slopes(upstream, x, low, high, bits, narrow)


_fake.defvjp(_fake_forward, _fake_backward)


def _slopes(
    upstream: Value, x: Value, low: Value, high: Value, bits: int, narrow: bool
) -> tuple[Value, Value, Value]:
    """Return the derivatives with respect to the numbers and the limits."""
    least, most, _ = _nudged(low, high, bits, narrow)
    is_zero = (low == 0) & (high == 0)
    below, above = (x < least) & ~is_zero, (x > most) & ~is_zero
    zero = jnp.zeros_like(upstream)
    axes = tuple(range(x.ndim - low.ndim))
    return (
        jnp.where(below | above, zero, upstream),
        jnp.sum(jnp.where(below, upstream, zero), axes).astype(low.dtype),
        jnp.sum(jnp.where(above, upstream, zero), axes).astype(high.dtype),
    )


def _by_args(x: Value, low: float, high: float, bits: int, narrow: bool) -> Value:
    if not low < high:
        raise ValueError(f"min has to be smaller than max, was: {low} >= {high}")
    return _by_vars(x, jnp.float32(low), jnp.float32(high), bits, narrow)


def _by_vars(x: Value, low: Value, high: Value, bits: int, narrow: bool) -> Value:
    if not 2 <= bits <= 16:
        raise ValueError(f"num_bits must be between 2 and 16, inclusive: {bits}")
    return _fake(x, low, high, int(bits), bool(narrow))


def _args_slope(
    upstream: Value, x: Value, low: float, high: float, bits: int, narrow: bool
) -> Value:
    return _final_slopes(upstream, x, jnp.float32(low), jnp.float32(high), bits, narrow)[0]


def _final_slopes(*arguments: Any) -> tuple[Value, Value, Value]:
    """Return the derivatives; they have none themselves."""
    return _slopes(*map(jax.lax.stop_gradient, arguments[:4]), *arguments[4:])


# ---------------------------------------------------------------- and back
def _and_back(
    x: Value, low: Value, high: Value, signed: bool, bits: Any, given: bool, mode: str,
    narrow: bool, axis: Any,
) -> Value:  # fmt: skip
    if mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise ValueError(f"round_mode must be HALF_TO_EVEN or HALF_UP: {mode}")
    others = tuple(range(x.ndim))
    if axis is not None:
        others = tuple(i for i in others if i != axis % x.ndim)
    if given:
        low, high = (jnp.expand_dims(v, others) if axis is not None else v for v in (low, high))
    else:
        fixed = jax.lax.stop_gradient(x)
        low, high = (f(fixed, axis=others, keepdims=True) for f in (jnp.min, jnp.max))
    return _rounded(x, low, high, bool(signed), int(bits), mode, bool(narrow))


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4, 5, 6))
def _rounded(
    x: Value, low: Value, high: Value, signed: bool, bits: int, mode: str, narrow: bool
) -> Value:
    scale, least, most = _limits(low, high, signed, bits, narrow)
    scaled = jnp.clip(x, least, most) * scale
    whole = jnp.round(scaled) if mode == "HALF_TO_EVEN" else jnp.floor(scaled + 0.5)
    return (whole / scale).astype(x.dtype)


@_rounded.defjvp
def _(
    signed: bool, bits: int, mode: str, narrow: bool, primals: Any, tangents: Any
) -> tuple[Value, Value]:
    x, low, high = primals
    _, least, most = _limits(low, high, signed, bits, narrow)
    inside = (x >= least) & (x <= most)
    made = _rounded(x, low, high, signed, bits, mode, narrow)
    return made, jnp.where(inside, tangents[0], jnp.zeros_like(made))


def _limits(
    low: Value, high: Value, signed: bool, bits: int, narrow: bool
) -> tuple[Value, Value, Value]:
    """Return the factor to whole numbers, and the limits that both sides can say."""
    first = -(2 ** (bits - 1)) + int(narrow) if signed else 0
    last = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    by_low = jnp.where(low * first > 0, first / jnp.where(low == 0, 1, low), np.inf)
    by_high = jnp.where(high * last > 0, last / jnp.where(high == 0, 1, high), np.inf)
    scale = jnp.minimum(by_low, by_high)
    scale = jnp.where(jnp.isfinite(scale), scale, 1)
    is_low = by_low < by_high
    return scale, jnp.where(is_low, low, first / scale), jnp.where(is_low, last / scale, high)


_BITS = "num_bits=8, narrow_range=False"
_BACK = (
    "input, input_min, input_max, signed_input=True, num_bits=8, range_given=False, "
    "round_mode='HALF_TO_EVEN', narrow_range=False, axis=None"
)
_ONE = "fake_quant_with_min_max_args"
_TWO = "fake_quant_with_min_max_vars"
_MANY = "fake_quant_with_min_max_vars_per_channel"

ROWS = [
    Row(
        _ONE, "inputs", f"inputs, min=-6, max=6, {_BITS}", _by_args, kinds="float",
        doc="Round to the numbers that so many bits can say, between two limits.",
        examples=(
            f"quantization.{_ONE}([-7.0, 0.1, 3.0, 8.0])",
            f"quantization.{_ONE}(r(2, 3), -1.0, 2.0, num_bits=3)",
            f"quantization.{_ONE}(r(4), 0.5, 2.0, 4, True)",
            f"quantization.{_ONE}(r(2), 1.0, 1.0)",
        ),
    ),
    Row(
        f"{_ONE}_gradient", "gradients inputs", f"gradients, inputs, min=-6, max=6, {_BITS}",
        _args_slope, kinds="float", doc=f"Return the derivative of `{_ONE}`.",
        examples=(
            f"quantization.{_ONE}_gradient(r(4), [-7.0, 0.1, 3.0, 8.0])",
            f"quantization.{_ONE}_gradient(r(3), r(3), -1.0, 0.5)",
            f"quantization.{_ONE}_gradient(r(3), r(3), -0.5, 0.5, 2, True)",
        ),
    ),
    Row(
        _TWO, "inputs min max", f"inputs, min, max, {_BITS}", _by_vars, kinds="float",
        doc="Round to the numbers that so many bits can say, between limits that train.",
        examples=(
            f"quantization.{_TWO}(r(2, 3), tf.constant(-0.5), tf.constant(1.0))",
            f"quantization.{_TWO}(r(4), tf.constant(0.0), tf.constant(0.0))",
            f"quantization.{_TWO}(r(4), tf.constant(-1.0), tf.constant(1.0), 4, True)",
        ),
    ),
    Row(
        f"{_TWO}_gradient", "gradients inputs min max",
        f"gradients, inputs, min, max, {_BITS}", _final_slopes, kinds="float",
        doc=f"Return the derivatives of `{_TWO}`.",
        examples=(
            f"quantization.{_TWO}_gradient(r(4), r(4), tf.constant(-0.5), tf.constant(0.5))",
            f"quantization.{_TWO}_gradient(r(2, 2), r(2, 2), tf.constant(-0.1), tf.constant(0.1))",
            f"quantization.{_TWO}_gradient(r(2), r(2), tf.constant(0.0), tf.constant(0.0))",
        ),
    ),
    Row(
        _MANY, "inputs min max", f"inputs, min, max, {_BITS}", _by_vars, kinds="float",
        doc="Round to the numbers that so many bits can say, between limits of each channel.",
        examples=(
            f"quantization.{_MANY}(r(2, 3), -p(3), p(3))",
            f"quantization.{_MANY}(r(4), -p(4), p(4), 4)",
            f"quantization.{_MANY}(r(2, 1, 2), -p(2), p(2), 8, True)",
        ),
    ),
    Row(
        f"{_MANY}_gradient", "gradients inputs min max",
        f"gradients, inputs, min, max, {_BITS}", _final_slopes, kinds="float",
        doc=f"Return the derivatives of `{_MANY}`.",
        examples=(
            f"quantization.{_MANY}_gradient(r(2, 3), r(2, 3), -p(3), p(3))",
            f"quantization.{_MANY}_gradient(r(4), r(4), -p(4), p(4))",
            f"quantization.{_MANY}_gradient(r(3, 2), r(3, 2), -0.1 * p(2), 0.1 * p(2))",
        ),
    ),
    Row(
        "quantize_and_dequantize_v2", "input input_min input_max", _BACK, _and_back,
        kinds="float", doc="Round to the numbers that so many bits can say.",
        examples=(
            "quantization.quantize_and_dequantize_v2([-7.0, 0.1, 3.0, 8.0], 0.0, 0.0)",
            "quantization.quantize_and_dequantize_v2(r(4), -1.0, 0.5, range_given=True)",
            "quantization.quantize_and_dequantize_v2(r(4), 0.0, 1.0, False, 4, True, 'HALF_UP')",
            "quantization.quantize_and_dequantize_v2(r(2, 3), 0.0, 0.0, axis=1)",
            ("quantization.quantize_and_dequantize_v2(r(4), -1.0, 1.0, True, 3, True, "
            "narrow_range=True)"),
        ),
    ),
]  # fmt: skip

_rows = operations(__name__, ROWS, ["quantize_and_dequantize"])

_WHY = (
    "there are no tensors of quantized types, as XLA has none. tf.quantization."
    "quantize_and_dequantize_v2 and the fake_quant_* functions round and stay floats."
)


def __getattr__(name: str) -> Any:
    if name in ("quantize", "dequantize", "quantized_concat", "experimental"):
        raise AttributeError(f"tf.quantization has no {name!r}: {_WHY}")
    return _rows("quantize_and_dequantize_v2" if name == "quantize_and_dequantize" else name)
