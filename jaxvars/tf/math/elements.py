"""The part of `tf.math` that works on each element of one tensor.

Rules this file keeps:
- results have the type of the argument, except where a docstring states something else;
- at the edges of a domain there are the infinities and NaNs that TensorFlow gives.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.errors import NotFoundError
from jaxvars.tf.math.slopes import inverse, inverse_root, root, with_slope
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tracing.context import EVAL, current
from jaxvars.typing import Array

_FLOAT, _NUMBERS, _INEXACT = "float", "float complex int", "float complex"


def flat(rounded: Array) -> Array:
    """Return a rounded number, without a gradient where one could be requested."""
    return rounded if current() is EVAL else lax.stop_gradient(rounded)


@jax.jit
def magnitude(x: Array) -> Array:
    """Return the absolute value, whose derivative at 0 is 0 as in TensorFlow, and not 1."""
    return jnp.abs(x) if x.dtype.kind not in "fV" else x * jnp.sign(x)


@op("math.round", "x", kinds="float int", aliases=("round",), example="r(2, 3)")
def round_(x: Array) -> Array:
    """Round to the next integer, halves to even."""
    return x if x.dtype.kind in "iu" else flat(jnp.round(x))


@op("math.reciprocal", "x", kinds=_NUMBERS, example="p(2, 3)")
def reciprocal(x: Array) -> Array:
    """Return 1 / x."""
    if x.dtype.kind in "iu":
        raise Refused(NotFoundError(None, None, "Could not find device for node: Reciprocal"))
    return inverse(x)


@op("math.reciprocal_no_nan", "x", op="DivNoNan", kinds=_INEXACT, example="p(2, 3)")
@jax.jit
def reciprocal_no_nan(x: Array) -> Array:
    """Return 1 / x, and 0 where x is 0."""
    nonzero = x != 0
    return jnp.where(nonzero, 1 / jnp.where(nonzero, x, 1), 0)


@op("math.log_sigmoid", "x", op="Softplus", kinds=_FLOAT, example="r(2, 3)")
@jax.jit
def log_sigmoid(x: Array) -> Array:
    """Return log(sigmoid(x))."""
    return -jax.nn.softplus(-x)


_softsign = with_slope(lambda x: x / (1 + jnp.abs(x)), lambda x, _: 1 / (1 + jnp.abs(x)) ** 2)


@op("math.softsign", "features", kinds=_FLOAT, aliases=("nn.softsign",), example="r(2, 3)")
def softsign(features: Array) -> Array:
    """Return x / (1 + |x|)."""
    return _softsign(features)


@op("math.angle", "input", kinds=_NUMBERS, example="z(2, 3)")
def angle(input: Array) -> Array:
    """Return the angle of a complex number; of real ones, 0 or pi."""
    if input.dtype.kind in "iu":
        raise Refused(TypeError(f"Cannot convert {np.pi} to EagerTensor of dtype {input.dtype}"))
    if input.dtype.kind == "c":
        return jnp.angle(input)
    return jnp.where(input < 0, jnp.asarray(np.pi, input.dtype), jnp.zeros_like(input))


@op("math.imag", "input", kinds=_NUMBERS, example="z(2, 3)")
def imag(input: Array) -> Array:
    """Return the imaginary part."""
    return jnp.imag(input) if input.dtype.kind == "c" else jnp.zeros_like(input)


@op("math.real", "input", kinds=_NUMBERS, example="z(2, 3)")
def real(input: Array) -> Array:
    """Return the real part."""
    return jnp.real(input) if input.dtype.kind == "c" else input


@op("math.conj", "x", kinds=_NUMBERS, example="z(2, 3)")
def conj(x: Array) -> Array:
    """Change the sign of the imaginary part."""
    return jnp.conj(x) if x.dtype.kind == "c" else x


@op("math.acos", "x", kinds=_INEXACT, aliases=("acos",), example="r(2, 3) * 0.3")
def acos(x: Array) -> Array:
    """Return the angle of a cosine."""
    return jnp.arccos(x)


_acosh = with_slope(jnp.arccosh, lambda _, y: 1 / jnp.sinh(y))  # NaN where there is no value


@op("math.acosh", "x", kinds=_INEXACT, aliases=("acosh",), example="p(2, 3) + 1.0")
def acosh(x: Array) -> Array:
    """Return the inverse of the hyperbolic cosine."""
    return _acosh(x)


@op("math.asin", "x", kinds=_INEXACT, aliases=("asin",), example="r(2, 3) * 0.3")
def asin(x: Array) -> Array:
    """Return the angle of a sine."""
    return jnp.arcsin(x)


@op("math.asinh", "x", kinds=_INEXACT, aliases=("asinh",), example="r(2, 3)")
def asinh(x: Array) -> Array:
    """Return the inverse of the hyperbolic sine."""
    return jnp.arcsinh(x)


@op("math.atan", "x", kinds=_INEXACT, aliases=("atan",), example="r(2, 3)")
def atan(x: Array) -> Array:
    """Return the angle of a tangent."""
    return jnp.arctan(x)


@op("math.atanh", "x", kinds=_INEXACT, aliases=("atanh",), example="r(2, 3) * 0.3")
def atanh(x: Array) -> Array:
    """Return the inverse of the hyperbolic tangent."""
    return jnp.arctanh(x)


@op("math.cos", "x", kinds=_INEXACT, aliases=("cos",), example="r(2, 3)")
def cos(x: Array) -> Array:
    """Return the cosine of an angle in radians."""
    return jnp.cos(x)


@op("math.cosh", "x", kinds=_INEXACT, aliases=("cosh",), example="r(2, 3)")
def cosh(x: Array) -> Array:
    """Return the hyperbolic cosine."""
    return jnp.cosh(x)


@op("math.sin", "x", kinds=_INEXACT, aliases=("sin",), example="r(2, 3)")
def sin(x: Array) -> Array:
    """Return the sine of an angle in radians."""
    return jnp.sin(x)


@op("math.sinh", "x", kinds=_INEXACT, aliases=("sinh",), example="r(2, 3)")
def sinh(x: Array) -> Array:
    """Return the hyperbolic sine."""
    return jnp.sinh(x)


@op("math.tan", "x", kinds=_INEXACT, aliases=("tan",), example="r(2, 3)")
def tan(x: Array) -> Array:
    """Return the tangent of an angle in radians."""
    return jnp.tan(x)


@op("math.tanh", "x", kinds=_INEXACT, aliases=("tanh", "nn.tanh"), example="r(2, 3)")
def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent."""
    return jnp.tanh(x)


@op("math.exp", "x", kinds=_INEXACT, aliases=("exp",), example="r(2, 3)")
def exp(x: Array) -> Array:
    """Return e to the power of x."""
    return jnp.exp(x)


@op("math.expm1", "x", kinds=_INEXACT, example="r(2, 3)")
def expm1(x: Array) -> Array:
    """Return exp(x) - 1, exact near 0."""
    return jnp.expm1(x)


@op("math.log", "x", kinds=_INEXACT, example="p(2, 3)")
def log(x: Array) -> Array:
    """Return the natural logarithm."""
    return jnp.log(x)


@op("math.log1p", "x", kinds=_INEXACT, example="p(2, 3)")
def log1p(x: Array) -> Array:
    """Return log(1 + x), exact near 0."""
    return jnp.log1p(x)


@op("math.sqrt", "x", kinds=_INEXACT, aliases=("sqrt",), example="p(2, 3)")
def sqrt(x: Array) -> Array:
    """Return the square root."""
    return root(x)


@op("math.rsqrt", "x", kinds=_INEXACT, example="p(2, 3)")
def rsqrt(x: Array) -> Array:
    """Return 1 / sqrt(x)."""
    return inverse_root(x)


@op("math.square", "x", kinds=_NUMBERS, aliases=("square",), example="r(2, 3)")
def square(x: Array) -> Array:
    """Return x * x."""
    return jnp.square(x)


@op("math.ceil", "x", kinds=_FLOAT, example="r(2, 3)")
def ceil(x: Array) -> Array:
    """Round up."""
    return flat(jnp.ceil(x))


@op("math.floor", "x", kinds=_FLOAT, aliases=("floor",), example="r(2, 3)")
def floor(x: Array) -> Array:
    """Round down."""
    return flat(jnp.floor(x))


@op("math.rint", "x", kinds=_FLOAT, example="r(2, 3)")
def rint(x: Array) -> Array:
    """Round to the next integer, halves to even."""
    return flat(jnp.rint(x))


@op("math.sign", "x", kinds=_NUMBERS, aliases=("sign",), example="r(2, 3)")
def sign(x: Array) -> Array:
    """Return -1, 0 or 1; of complex numbers, x / |x|."""
    if x.dtype.kind != "c":
        return jnp.sign(x)
    other = jnp.where(x == 0, 1, x)  # JAX's has no derivative
    return jnp.where(x == 0, 0, other / jnp.abs(other))


@op("math.sigmoid", "x", kinds=_INEXACT, aliases=("sigmoid", "nn.sigmoid"), example="r(2, 3)")
def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    return jax.nn.sigmoid(x)


@op("math.softplus", "features", kinds=_FLOAT, aliases=("nn.softplus",), example="r(2, 3)")
def softplus(features: Array) -> Array:
    """Return log(1 + exp(x))."""
    return jax.nn.softplus(features)


@op("math.is_finite", "x", kinds=_FLOAT, example="r(2, 3)")
def is_finite(x: Array) -> Array:
    """Return which elements are neither infinite nor NaN."""
    return jnp.isfinite(x)


@op("math.is_inf", "x", kinds=_FLOAT, example="r(2, 3)")
def is_inf(x: Array) -> Array:
    """Return which elements are infinite."""
    return jnp.isinf(x)


@op("math.is_nan", "x", kinds=_FLOAT, example="r(2, 3)")
def is_nan(x: Array) -> Array:
    """Return which elements are NaN."""
    return jnp.isnan(x)
