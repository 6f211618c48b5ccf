"""The part of `tf.math` that works on each element of one tensor.

Rules this file keeps:
- results have the type of the argument, except where a row says something else;
- at the edges of a domain there are the infinities and NaNs that TensorFlow gives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.errors import NotFoundError
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tracing.context import EVAL, current

Value: TypeAlias = Any


def _flat(rounded: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Return a function through which no gradient goes, where somebody could ask for one."""
    return lambda x: rounded(x) if current() is EVAL else lax.stop_gradient(rounded(x))


@jax.jit
def magnitude(x: Value) -> Value:
    """Return the absolute value, whose derivative at 0 is 0 as in TensorFlow, and not 1."""
    return jnp.abs(x) if x.dtype.kind not in "fV" else x * jnp.sign(x)


floor = _flat(jnp.floor)
_rounded = _flat(jnp.round)


def _round(x: Value) -> Value:
    return x if x.dtype.kind in "iu" else _rounded(x)


def _reciprocal(x: Value) -> Value:
    if x.dtype.kind in "iu":
        raise Refused(NotFoundError(None, None, "Could not find device for node: Reciprocal"))
    return 1 / x


@jax.jit
def _reciprocal_no_nan(x: Value) -> Value:
    nonzero = x != 0
    return jnp.where(nonzero, 1 / jnp.where(nonzero, x, 1), 0)


@jax.jit
def _log_sigmoid(x: Value) -> Value:
    return -jax.nn.softplus(-x)


@jax.jit
def _softsign(x: Value) -> Value:
    return x / (1 + jnp.abs(x))


def _angle(x: Value) -> Value:
    if x.dtype.kind in "iu":
        raise Refused(TypeError(f"Cannot convert {np.pi} to EagerTensor of dtype {x.dtype}"))
    if x.dtype.kind == "c":
        return jnp.angle(x)
    return jnp.where(x < 0, jnp.asarray(np.pi, x.dtype), jnp.zeros_like(x))


def _imag(x: Value) -> Value:
    return jnp.imag(x) if x.dtype.kind == "c" else jnp.zeros_like(x)


def _real(x: Value) -> Value:
    return jnp.real(x) if x.dtype.kind == "c" else x


def _conj(x: Value) -> Value:
    return jnp.conj(x) if x.dtype.kind == "c" else x


_FLOAT, _NUMBERS, _INEXACT = "float", "float complex int", "float complex"

ROWS = [
    # ------------------------------------------------------------ angles
    Row(
        "acos", "x", "x", jnp.arccos, kinds=_INEXACT, doc="Return the angle of a cosine.",
        examples=("math.acos(r(2, 3) * 0.3)", "math.acos([-1.0, 0.0, 1.0, 2.0])", "math.acos(1)"),
        aliases=("acos",),
    ),
    Row(
        "acosh", "x", "x", jnp.arccosh, kinds=_INEXACT,
        doc="Return the inverse of the hyperbolic cosine.",
        examples=("math.acosh(p(2, 3) + 1.0)", "math.acosh([1.0, 0.5, inf])", "math.acosh(z(2))"),
        aliases=("acosh",),
    ),
    Row(
        "asin", "x", "x", jnp.arcsin, kinds=_INEXACT, doc="Return the angle of a sine.",
        examples=("math.asin(r(2, 3) * 0.3)", "math.asin([-1.0, 0.0, 1.0, 2.0])", "math.asin(1)"),
        aliases=("asin",),
    ),
    Row(
        "asinh", "x", "x", jnp.arcsinh, kinds=_INEXACT,
        doc="Return the inverse of the hyperbolic sine.",
        examples=("math.asinh(r(2, 3))", "math.asinh([-inf, 0.0, 1e8])", "math.asinh(z(2))"),
        aliases=("asinh",),
    ),
    Row(
        "atan", "x", "x", jnp.arctan, kinds=_INEXACT, doc="Return the angle of a tangent.",
        examples=("math.atan(r(2, 3))", "math.atan([-inf, 0.0, inf])", "math.atan(z(2))"),
        aliases=("atan",),
    ),
    Row(
        "atanh", "x", "x", jnp.arctanh, kinds=_INEXACT,
        doc="Return the inverse of the hyperbolic tangent.",
        examples=("math.atanh(r(2, 3) * 0.3)", "math.atanh([-1.0, 1.0, 2.0])", "math.atanh(z(2))"),
        aliases=("atanh",),
    ),
    Row(
        "cos", "x", "x", jnp.cos, kinds=_INEXACT, doc="Return the cosine of an angle in radians.",
        examples=("math.cos(r(2, 3))", "math.cos([0.0, inf])", "math.cos(i(2))"),
        aliases=("cos",),
    ),
    Row(
        "cosh", "x", "x", jnp.cosh, kinds=_INEXACT, doc="Return the hyperbolic cosine.",
        examples=("math.cosh(r(2, 3))", "math.cosh([100.0, -inf])", "math.cosh(z(2))"),
        aliases=("cosh",),
    ),
    Row(
        "sin", "x", "x", jnp.sin, kinds=_INEXACT, doc="Return the sine of an angle in radians.",
        examples=("math.sin(r(2, 3))", "math.sin([0.0, inf])", "math.sin(i(2))"),
        aliases=("sin",),
    ),
    Row(
        "sinh", "x", "x", jnp.sinh, kinds=_INEXACT, doc="Return the hyperbolic sine.",
        examples=("math.sinh(r(2, 3))", "math.sinh([100.0, -inf])", "math.sinh(z(2))"),
        aliases=("sinh",),
    ),
    Row(
        "tan", "x", "x", jnp.tan, kinds=_INEXACT, doc="Return the tangent of an angle in radians.",
        examples=("math.tan(r(2, 3))", "math.tan([0.0, inf])", "math.tan(z(2))"),
        aliases=("tan",),
    ),
    Row(
        "tanh", "x", "x", jnp.tanh, kinds=_INEXACT, doc="Return the hyperbolic tangent.",
        examples=("math.tanh(r(2, 3))", "math.tanh([-inf, 0.0, inf, nan])", "math.tanh(z(2))"),
        aliases=("tanh", "nn.tanh"),
    ),
    # ------------------------------------------------------------ powers and exponentials
    Row(
        "exp", "x", "x", jnp.exp, kinds=_INEXACT, doc="Return e to the power of x.",
        examples=("math.exp(r(2, 3))", "math.exp([-inf, 0.0, 100.0])", "math.exp(1)"),
        aliases=("exp",),
    ),
    Row(
        "expm1", "x", "x", jnp.expm1, kinds=_INEXACT, doc="Return exp(x) - 1, exact near 0.",
        examples=("math.expm1(r(2, 3))", "math.expm1([1e-8, -inf])", "math.expm1(z(2))"),
    ),
    Row(
        "log", "x", "x", jnp.log, kinds=_INEXACT, doc="Return the natural logarithm.",
        examples=("math.log(p(2, 3))", "math.log([0.0, -1.0, inf])", "math.log(z(2))"),
    ),
    Row(
        "log1p", "x", "x", jnp.log1p, kinds=_INEXACT, doc="Return log(1 + x), exact near 0.",
        examples=("math.log1p(p(2, 3))", "math.log1p([1e-8, -1.0])", "math.log1p(i(2))"),
    ),
    Row(
        "sqrt", "x", "x", jnp.sqrt, kinds=_INEXACT, doc="Return the square root.",
        examples=("math.sqrt(p(2, 3))", "math.sqrt([0.0, -1.0, inf])", "math.sqrt(4)"),
        aliases=("sqrt",),
    ),
    Row(
        "rsqrt", "x", "x", lax.rsqrt, kinds=_INEXACT, doc="Return 1 / sqrt(x).",
        examples=("math.rsqrt(p(2, 3))", "math.rsqrt([0.0, -1.0, inf])", "math.rsqrt(4)"),
    ),
    Row(
        "square", "x", "x", jnp.square, kinds=_NUMBERS, doc="Return x * x.",
        examples=("math.square(r(2, 3))", "math.square(i(4))", "math.square(b(2))"),
        aliases=("square",),
    ),
    Row(
        "reciprocal", "x", "x", _reciprocal, kinds=_NUMBERS, doc="Return 1 / x.",
        examples=(
            "math.reciprocal(p(2, 3))", "math.reciprocal([0.0, -inf])", "math.reciprocal(i(2))",
        ),
    ),
    Row(
        "reciprocal_no_nan", "x", "x", _reciprocal_no_nan, op="DivNoNan", kinds=_INEXACT,
        doc="Return 1 / x, and 0 where x is 0.",
        examples=(
            "math.reciprocal_no_nan(p(2, 3))", "math.reciprocal_no_nan([0.0, -2.0])",
            "math.reciprocal_no_nan([0])",
        ),
    ),
    # ------------------------------------------------------------ rounding
    Row(
        "ceil", "x", "x", _flat(jnp.ceil), kinds=_FLOAT, doc="Round up.",
        examples=("math.ceil(r(2, 3))", "math.ceil([-0.5, inf, nan])", "math.ceil(1)"),
    ),
    Row(
        "floor", "x", "x", floor, kinds=_FLOAT, doc="Round down.",
        examples=("math.floor(r(2, 3))", "math.floor([-0.5, inf, nan])", "math.floor(1)"),
        aliases=("floor",),
    ),
    Row(
        "rint", "x", "x", _flat(jnp.rint), kinds=_FLOAT,
        doc="Round to the next integer, halves to even.",
        examples=("math.rint(r(2, 3))", "math.rint([0.5, 1.5, -2.5])", "math.rint(1)"),
    ),
    Row(
        "round", "x", "x", _round, kinds="float int",
        doc="Round to the next integer, halves to even.",
        examples=("math.round(r(2, 3))", "math.round([0.5, 1.5, -2.5])", "math.round(i(2))"),
        aliases=("round",),
    ),
    Row(
        "sign", "x", "x", jnp.sign, kinds=_NUMBERS,
        doc="Return -1, 0 or 1; of complex numbers, x / |x|.",
        examples=("math.sign(r(2, 3))", "math.sign([3 + 4j, 0j])", "math.sign(b(2))"),
        aliases=("sign",),
    ),
    # ------------------------------------------------------------ activations
    Row(
        "sigmoid", "x", "x", jax.nn.sigmoid, kinds=_INEXACT, doc="Return 1 / (1 + exp(-x)).",
        examples=("math.sigmoid(r(2, 3))", "math.sigmoid([-inf, 0.0, 100.0])", "math.sigmoid(1)"),
        aliases=("sigmoid", "nn.sigmoid"),
    ),
    Row(
        "log_sigmoid", "x", "x", _log_sigmoid, op="Softplus", kinds=_FLOAT,
        doc="Return log(sigmoid(x)).",
        examples=(
            "math.log_sigmoid(r(2, 3))", "math.log_sigmoid([-200.0, 200.0])", "math.log_sigmoid(1)",
        ),
    ),
    Row(
        "softplus", "features", "features", jax.nn.softplus, kinds=_FLOAT,
        doc="Return log(1 + exp(x)).",
        examples=("math.softplus(r(2, 3))", "math.softplus([-200.0, 200.0])", "math.softplus(1)"),
        aliases=("nn.softplus",),
    ),
    Row(
        "softsign", "features", "features", _softsign, kinds=_FLOAT,
        doc="Return x / (1 + |x|).",
        examples=("math.softsign(r(2, 3))", "math.softsign([-1e9, 0.0])", "math.softsign(1)"),
        aliases=("nn.softsign",),
    ),
    # ------------------------------------------------------------ complex numbers
    Row(
        "angle", "input", "input", _angle, kinds=_NUMBERS,
        doc="Return the angle of a complex number; of real ones, 0 or pi.",
        examples=("math.angle(z(2, 3))", "math.angle(r(3))", "math.angle(i(2))"),
    ),
    Row(
        "conj", "x", "x", _conj, kinds=_NUMBERS, doc="Change the sign of the imaginary part.",
        examples=("math.conj(z(2, 3))", "math.conj(r(3))", "math.conj(i(2))"),
    ),
    Row(
        "imag", "input", "input", _imag, kinds=_NUMBERS, doc="Return the imaginary part.",
        examples=("math.imag(z(2, 3))", "math.imag([1.0, 2.0])", "math.imag(i(2))"),
    ),
    Row(
        "real", "input", "input", _real, kinds=_NUMBERS, doc="Return the real part.",
        examples=("math.real(z(2, 3))", "math.real(r(3))", "math.real(i(2))"),
    ),
    # ------------------------------------------------------------ questions
    Row(
        "is_finite", "x", "x", jnp.isfinite, op="IsFinite", kinds=_FLOAT,
        doc="Tell where it is neither infinite nor NaN.",
        examples=("math.is_finite(r(2, 3))", "math.is_finite([inf, nan])", "math.is_finite(1)"),
    ),
    Row(
        "is_inf", "x", "x", jnp.isinf, op="IsInf", kinds=_FLOAT, doc="Tell where it is infinite.",
        examples=("math.is_inf(r(2, 3))", "math.is_inf([inf, -inf, nan])", "math.is_inf(1)"),
    ),
    Row(
        "is_nan", "x", "x", jnp.isnan, op="IsNan", kinds=_FLOAT, doc="Tell where it is NaN.",
        examples=("math.is_nan(r(2, 3))", "math.is_nan([inf, -inf, nan])", "math.is_nan(1)"),
    ),
]  # fmt: skip
