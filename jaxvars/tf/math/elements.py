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
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tracing.context import EVAL, current
from jaxvars.typing import Array

_FLOAT, _NUMBERS, _INEXACT = "float", "float complex int", "float complex"


def _flat(rounded: Array) -> Array:
    """Return a rounded number, without a gradient where one could be requested."""
    return rounded if current() is EVAL else lax.stop_gradient(rounded)


@jax.jit
def magnitude(x: Array) -> Array:
    """Return the absolute value, whose derivative at 0 is 0 as in TensorFlow, and not 1."""
    return jnp.abs(x) if x.dtype.kind not in "fV" else x * jnp.sign(x)


@op("math.round", "x", kinds="float int", aliases=("round",))
def round_(x: Array) -> Array:
    """Round to the next integer, halves to even.

    Example: `tf.math.round(r(2, 3))`.
    """
    return x if x.dtype.kind in "iu" else _flat(jnp.round(x))


@op("math.reciprocal", "x", kinds=_NUMBERS)
def reciprocal(x: Array) -> Array:
    """Return 1 / x.

    Example: `tf.math.reciprocal(p(2, 3))`.
    """
    if x.dtype.kind in "iu":
        raise Refused(NotFoundError(None, None, "Could not find device for node: Reciprocal"))
    return 1 / x


@op("math.reciprocal_no_nan", "x", op="DivNoNan", kinds=_INEXACT)
@jax.jit
def reciprocal_no_nan(x: Array) -> Array:
    """Return 1 / x, and 0 where x is 0.

    Example: `tf.math.reciprocal_no_nan(p(2, 3))`.
    """
    nonzero = x != 0
    return jnp.where(nonzero, 1 / jnp.where(nonzero, x, 1), 0)


@op("math.log_sigmoid", "x", op="Softplus", kinds=_FLOAT)
@jax.jit
def log_sigmoid(x: Array) -> Array:
    """Return log(sigmoid(x)).

    Example: `tf.math.log_sigmoid(r(2, 3))`.
    """
    return -jax.nn.softplus(-x)


@op("math.softsign", "features", kinds=_FLOAT, aliases=("nn.softsign",))
@jax.jit
def softsign(features: Array) -> Array:
    """Return x / (1 + |x|).

    Example: `tf.math.softsign(r(2, 3))`.
    """
    return features / (1 + jnp.abs(features))


@op("math.angle", "input", kinds=_NUMBERS)
def angle(input: Array) -> Array:
    """Return the angle of a complex number; of real ones, 0 or pi.

    Example: `tf.math.angle(z(2, 3))`.
    """
    if input.dtype.kind in "iu":
        raise Refused(TypeError(f"Cannot convert {np.pi} to EagerTensor of dtype {input.dtype}"))
    if input.dtype.kind == "c":
        return jnp.angle(input)
    return jnp.where(input < 0, jnp.asarray(np.pi, input.dtype), jnp.zeros_like(input))


@op("math.imag", "input", kinds=_NUMBERS)
def imag(input: Array) -> Array:
    """Return the imaginary part.

    Example: `tf.math.imag(z(2, 3))`.
    """
    return jnp.imag(input) if input.dtype.kind == "c" else jnp.zeros_like(input)


@op("math.real", "input", kinds=_NUMBERS)
def real(input: Array) -> Array:
    """Return the real part.

    Example: `tf.math.real(z(2, 3))`.
    """
    return jnp.real(input) if input.dtype.kind == "c" else input


@op("math.conj", "x", kinds=_NUMBERS)
def conj(x: Array) -> Array:
    """Change the sign of the imaginary part.

    Example: `tf.math.conj(z(2, 3))`.
    """
    return jnp.conj(x) if x.dtype.kind == "c" else x


@op("math.acos", "x", kinds=_INEXACT, aliases=("acos",))
def acos(x: Array) -> Array:
    """Return the angle of a cosine.

    Example: `tf.math.acos(r(2, 3) * 0.3)`.
    """
    return jnp.arccos(x)


@op("math.acosh", "x", kinds=_INEXACT, aliases=("acosh",))
def acosh(x: Array) -> Array:
    """Return the inverse of the hyperbolic cosine.

    Example: `tf.math.acosh(p(2, 3) + 1.0)`.
    """
    return jnp.arccosh(x)


@op("math.asin", "x", kinds=_INEXACT, aliases=("asin",))
def asin(x: Array) -> Array:
    """Return the angle of a sine.

    Example: `tf.math.asin(r(2, 3) * 0.3)`.
    """
    return jnp.arcsin(x)


@op("math.asinh", "x", kinds=_INEXACT, aliases=("asinh",))
def asinh(x: Array) -> Array:
    """Return the inverse of the hyperbolic sine.

    Example: `tf.math.asinh(r(2, 3))`.
    """
    return jnp.arcsinh(x)


@op("math.atan", "x", kinds=_INEXACT, aliases=("atan",))
def atan(x: Array) -> Array:
    """Return the angle of a tangent.

    Example: `tf.math.atan(r(2, 3))`.
    """
    return jnp.arctan(x)


@op("math.atanh", "x", kinds=_INEXACT, aliases=("atanh",))
def atanh(x: Array) -> Array:
    """Return the inverse of the hyperbolic tangent.

    Example: `tf.math.atanh(r(2, 3) * 0.3)`.
    """
    return jnp.arctanh(x)


@op("math.cos", "x", kinds=_INEXACT, aliases=("cos",))
def cos(x: Array) -> Array:
    """Return the cosine of an angle in radians.

    Example: `tf.math.cos(r(2, 3))`.
    """
    return jnp.cos(x)


@op("math.cosh", "x", kinds=_INEXACT, aliases=("cosh",))
def cosh(x: Array) -> Array:
    """Return the hyperbolic cosine.

    Example: `tf.math.cosh(r(2, 3))`.
    """
    return jnp.cosh(x)


@op("math.sin", "x", kinds=_INEXACT, aliases=("sin",))
def sin(x: Array) -> Array:
    """Return the sine of an angle in radians.

    Example: `tf.math.sin(r(2, 3))`.
    """
    return jnp.sin(x)


@op("math.sinh", "x", kinds=_INEXACT, aliases=("sinh",))
def sinh(x: Array) -> Array:
    """Return the hyperbolic sine.

    Example: `tf.math.sinh(r(2, 3))`.
    """
    return jnp.sinh(x)


@op("math.tan", "x", kinds=_INEXACT, aliases=("tan",))
def tan(x: Array) -> Array:
    """Return the tangent of an angle in radians.

    Example: `tf.math.tan(r(2, 3))`.
    """
    return jnp.tan(x)


@op("math.tanh", "x", kinds=_INEXACT, aliases=("tanh", "nn.tanh"))
def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent.

    Example: `tf.math.tanh(r(2, 3))`.
    """
    return jnp.tanh(x)


@op("math.exp", "x", kinds=_INEXACT, aliases=("exp",))
def exp(x: Array) -> Array:
    """Return e to the power of x.

    Example: `tf.math.exp(r(2, 3))`.
    """
    return jnp.exp(x)


@op("math.expm1", "x", kinds=_INEXACT)
def expm1(x: Array) -> Array:
    """Return exp(x) - 1, exact near 0.

    Example: `tf.math.expm1(r(2, 3))`.
    """
    return jnp.expm1(x)


@op("math.log", "x", kinds=_INEXACT)
def log(x: Array) -> Array:
    """Return the natural logarithm.

    Example: `tf.math.log(p(2, 3))`.
    """
    return jnp.log(x)


@op("math.log1p", "x", kinds=_INEXACT)
def log1p(x: Array) -> Array:
    """Return log(1 + x), exact near 0.

    Example: `tf.math.log1p(p(2, 3))`.
    """
    return jnp.log1p(x)


@op("math.sqrt", "x", kinds=_INEXACT, aliases=("sqrt",))
def sqrt(x: Array) -> Array:
    """Return the square root.

    Example: `tf.math.sqrt(p(2, 3))`.
    """
    return jnp.sqrt(x)


@op("math.rsqrt", "x", kinds=_INEXACT)
def rsqrt(x: Array) -> Array:
    """Return 1 / sqrt(x).

    Example: `tf.math.rsqrt(p(2, 3))`.
    """
    return lax.rsqrt(x)


@op("math.square", "x", kinds=_NUMBERS, aliases=("square",))
def square(x: Array) -> Array:
    """Return x * x.

    Example: `tf.math.square(r(2, 3))`.
    """
    return jnp.square(x)


@op("math.ceil", "x", kinds=_FLOAT)
def ceil(x: Array) -> Array:
    """Round up.

    Example: `tf.math.ceil(r(2, 3))`.
    """
    return _flat(jnp.ceil(x))


@op("math.floor", "x", kinds=_FLOAT, aliases=("floor",))
def floor(x: Array) -> Array:
    """Round down.

    Example: `tf.math.floor(r(2, 3))`.
    """
    return _flat(jnp.floor(x))


@op("math.rint", "x", kinds=_FLOAT)
def rint(x: Array) -> Array:
    """Round to the next integer, halves to even.

    Example: `tf.math.rint(r(2, 3))`.
    """
    return _flat(jnp.rint(x))


@op("math.sign", "x", kinds=_NUMBERS, aliases=("sign",))
def sign(x: Array) -> Array:
    """Return -1, 0 or 1; of complex numbers, x / |x|.

    Example: `tf.math.sign(r(2, 3))`.
    """
    return jnp.sign(x)


@op("math.sigmoid", "x", kinds=_INEXACT, aliases=("sigmoid", "nn.sigmoid"))
def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)).

    Example: `tf.math.sigmoid(r(2, 3))`.
    """
    return jax.nn.sigmoid(x)


@op("math.softplus", "features", kinds=_FLOAT, aliases=("nn.softplus",))
def softplus(features: Array) -> Array:
    """Return log(1 + exp(x)).

    Example: `tf.math.softplus(r(2, 3))`.
    """
    return jax.nn.softplus(features)


@op("math.is_finite", "x", kinds=_FLOAT)
def is_finite(x: Array) -> Array:
    """Return which elements are neither infinite nor NaN.

    Example: `tf.math.is_finite(r(2, 3))`.
    """
    return jnp.isfinite(x)


@op("math.is_inf", "x", kinds=_FLOAT)
def is_inf(x: Array) -> Array:
    """Return which elements are infinite.

    Example: `tf.math.is_inf(r(2, 3))`.
    """
    return jnp.isinf(x)


@op("math.is_nan", "x", kinds=_FLOAT)
def is_nan(x: Array) -> Array:
    """Return which elements are NaN.

    Example: `tf.math.is_nan(r(2, 3))`.
    """
    return jnp.isnan(x)
