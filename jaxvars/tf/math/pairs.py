"""The part of `tf.math` that works on each pair of elements of two tensors, apart from operators.

Rules this file keeps:
- where a value is not wanted (0 / 0, 0 * log 0) it does not reach the derivative either;
- the gradient of the greater of two equal numbers is that of the first one, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import Refused, Row

Value: TypeAlias = Any


@jax.jit
def maximum(x: Value, y: Value) -> Value:
    """Return the greater one; `x` if they are equal, to which the gradient goes then."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.maximum(x, y)
    return jnp.where((x >= y) | jnp.isnan(x), x, y)


@jax.jit
def minimum(x: Value, y: Value) -> Value:
    """Return the smaller one; `x` if they are equal, to which the gradient goes then."""
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.minimum(x, y)
    return jnp.where((x <= y) | jnp.isnan(x), x, y)


def _unless_zero(of: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """Return a function that is 0 where `x` is, whatever `y` is."""

    def guarded(x: Value, y: Value) -> Value:
        zero = x == 0
        return jnp.where(zero, 0, of(x, jnp.where(zero, 1, y))).astype(x.dtype)

    return jax.jit(guarded)


@jax.jit
def _divide_no_nan(x: Value, y: Value) -> Value:
    if x.dtype.kind in "iu":
        wide = jnp.float32 if x.dtype.itemsize < 4 else jnp.float64
        x, y = x.astype(wide), y.astype(wide)
    zero = y == 0
    return jnp.where(zero, 0, x / jnp.where(zero, 1, y))


@jax.jit
def _multiply_no_nan(x: Value, y: Value) -> Value:
    return jnp.where((y == 0) & ~jnp.isfinite(x), 0, x) * y


@jax.jit
def _squared_difference(x: Value, y: Value) -> Value:
    difference = x - y
    return difference * jnp.conj(difference)


@jax.custom_jvp
def _nextafter(x1: Value, x2: Value) -> Value:
    return jnp.nextafter(x1, x2)


@_nextafter.defjvp
def _(primals: tuple[Value, Value], tangents: tuple[Value, Value]) -> tuple[Value, Value]:
    made = _nextafter(*primals)
    return made, jnp.broadcast_to(tangents[0], made.shape) + 0 * tangents[1]


@jax.jit
def _polyval(coeffs: list[Value], x: Value) -> Value:
    total = jnp.zeros_like(x)
    for coefficient in coeffs:
        total = coefficient + total * x
    return total


def _polynomial(coeffs: list[Value], x: Value) -> Value:
    if not coeffs:
        return jnp.zeros(x.shape, x.dtype)
    return _polyval([jnp.asarray(c, x.dtype) for c in coeffs], x)


def _complex(real: Value, imag: Value) -> Value:
    if real.dtype not in (jnp.float32, jnp.float64) or real.dtype != imag.dtype:
        raise Refused(
            TypeError(
                f"The `real` and `imag` components have incorrect types: {real.dtype} "
                f"{imag.dtype}. They must be consistent, and one of [tf.float32, tf.float64]"
            )
        )
    return jax.lax.complex(*jnp.broadcast_arrays(real, imag))


_INEXACT = "float complex"

ROWS = [
    Row(
        "maximum", "x y", "x, y", maximum, op="Maximum", same=True, kinds="float int",
        doc="Return the greater one of each pair.",
        examples=(
            "math.maximum(r(2, 3), 0.0)", "math.maximum([nan, 1, 2], [1, nan, 2.0])",
            "math.maximum(z(2), 1)",
        ),
        aliases=("maximum",),
    ),
    Row(
        "minimum", "x y", "x, y", minimum, op="Minimum", same=True, kinds="float int",
        doc="Return the smaller one of each pair.",
        examples=(
            "math.minimum(r(2, 3), r(3))", "math.minimum([nan, 1, 2], [1, nan, 2.0])",
            "math.minimum(i(2), 1.5)",
        ),
        aliases=("minimum",),
    ),
    Row(
        "atan2", "y x", "y, x", jnp.arctan2, op="Atan2", same=True, kinds="float",
        doc="Return the angle of the point (x, y).",
        examples=(
            "math.atan2(r(2, 3), r(3))", "math.atan2([0.0, 1.0, -1.0], [-1.0, 0.0, 0.0])",
            "math.atan2(1, 1)",
        ),
        aliases=("atan2",),
    ),
    Row(
        "squared_difference", "x y", "x, y", _squared_difference, same=True,
        kinds="float complex int", doc="Return (x - y)^2; of complex numbers, |x - y|^2.",
        examples=(
            "math.squared_difference(r(2, 3), r(3))", "math.squared_difference(i(4), 3)",
            "math.squared_difference(z(2), z(2))",
        ),
    ),
    Row(
        "xlogy", "x y", "x, y", _unless_zero(lambda x, y: x * jnp.log(y)), same=True,
        kinds=_INEXACT, doc="Return x log(y), and 0 where x is 0.",
        examples=(
            "math.xlogy(p(2, 3), p(3))", "math.xlogy([0.0, 0.0, 1.0], [0.0, -1.0, 0.0])",
            "math.xlogy(1, 1)",
        ),
    ),
    Row(
        "xlog1py", "x y", "x, y", _unless_zero(lambda x, y: x * jnp.log1p(y)), same=True,
        kinds=_INEXACT, doc="Return x log(1 + y), and 0 where x is 0.",
        examples=(
            "math.xlog1py(p(2, 3), p(3))", "math.xlog1py([0.0, 1.0], -1.0)", "math.xlog1py(1, 1)",
        ),
    ),
    Row(
        "xdivy", "x y", "x, y", _unless_zero(lambda x, y: x / y), same=True,
        kinds=_INEXACT, doc="Return x / y, and 0 where x is 0.",
        examples=(
            "math.xdivy(r(2, 3), p(3))", "math.xdivy([0.0, 1.0, -1.0], 0.0)", "math.xdivy(1, 1)",
        ),
    ),
    Row(
        "divide_no_nan", "x y", "x, y", _divide_no_nan, op="DivNoNan", same=True,
        kinds="float complex int", doc="Return x / y, and 0 where y is 0.",
        examples=(
            "math.divide_no_nan(r(2, 3), p(3))", "math.divide_no_nan([0.0, 1.0], 0.0)",
            "math.divide_no_nan(i(3), [1, 0, 2])",
        ),
    ),
    Row(
        "multiply_no_nan", "x y", "x, y", _multiply_no_nan, op="MulNoNan", same=True,
        kinds=_INEXACT, doc="Return x * y, and 0 where y is 0, even if x is infinite or NaN.",
        examples=(
            "math.multiply_no_nan(r(2, 3), r(3))",
            "math.multiply_no_nan([nan, inf, 2.0], [0.0, 0.0, nan])", "math.multiply_no_nan(1, 1)",
        ),
    ),
    Row(
        "nextafter", "x1 x2", "x1, x2", _nextafter, op="NextAfter", same=True, kinds="float",
        doc="Return the next number from `x1` in the direction of `x2`.",
        examples=(
            "math.nextafter(r(2, 3), r(3))", "math.nextafter([0.0, 1.0, inf], [1.0, 1.0, 0.0])",
            "math.nextafter(i(2), i(2))",
        ),
    ),
    Row(
        "polyval", "coeffs* x", "coeffs, x", _polynomial, kinds=_INEXACT,
        doc="Return the value of a polynomial, by its coefficients from the highest power down.",
        examples=(
            "math.polyval([r(1), r(3), 2.0], r(2, 3))", "math.polyval([], r(2))",
            "math.polyval([z(2)], z(2))",
        ),
    ),
]  # fmt: skip

TOP_LEVEL = [
    Row(
        "complex", "real imag", "real, imag", _complex, op="Complex",
        doc="Make complex numbers of their parts.",
        examples=("complex(r(2, 3), r(3))", "complex(1.0, [2.0, -0.5])", "complex(i(2), i(2))"),
    ),
]  # fmt: skip
