"""The part of `tf.math` that works on each element of one tensor.

Rules this file keeps:
- results have the type of the argument, except where a docstring states something else;
- at the edges of a domain there are the infinities and NaNs that TensorFlow gives.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.errors import NotFoundError
from jaxvars.tf.math.slopes import inverse, inverse_root, root, with_slope
from jaxvars.tf.registry.rows import Refused, elementwise, op
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


_acosh = with_slope(jnp.arccosh, lambda _, y: 1 / jnp.sinh(y))  # NaN outside of the domain


@op("math.sign", "x", kinds=_NUMBERS, aliases=("sign",), example="r(2, 3)")
def sign(x: Array) -> Array:
    """Return -1, 0 or 1; of complex numbers, x / |x|."""
    if x.dtype.kind != "c":
        return jnp.sign(x)
    other = jnp.where(x == 0, 1, x)  # JAX's has no derivative
    return jnp.where(x == 0, 0, other / jnp.abs(other))


@op("math.softplus", "features", kinds=_FLOAT, aliases=("nn.softplus",), example="r(2, 3)")
def softplus(features: Array) -> Array:
    """Return log(1 + exp(x))."""
    return jax.nn.softplus(features)


# fmt: off
_row = functools.partial(elementwise, module=__name__)
conj = _row("conj", lambda x: jnp.conj(x) if x.dtype.kind == "c" else x,
            "Change the sign of the imaginary part.", kinds=_NUMBERS, example="z(2, 3)")
acos = _row("acos", jnp.arccos, "Return the angle of a cosine.", "acos", example="r(2, 3) * 0.3")
acosh = _row("acosh", _acosh, "Return the inverse of the hyperbolic cosine.", "acosh",
             example="p(2, 3) + 1.0")
asin = _row("asin", jnp.arcsin, "Return the angle of a sine.", "asin", example="r(2, 3) * 0.3")
asinh = _row("asinh", jnp.arcsinh, "Return the inverse of the hyperbolic sine.", "asinh")
atan = _row("atan", jnp.arctan, "Return the angle of a tangent.", "atan")
atanh = _row("atanh", jnp.arctanh, "Return the inverse of the hyperbolic tangent.", "atanh",
             example="r(2, 3) * 0.3")
cos = _row("cos", jnp.cos, "Return the cosine of an angle in radians.", "cos")
cosh = _row("cosh", jnp.cosh, "Return the hyperbolic cosine.", "cosh")
sin = _row("sin", jnp.sin, "Return the sine of an angle in radians.", "sin")
sinh = _row("sinh", jnp.sinh, "Return the hyperbolic sine.", "sinh")
tan = _row("tan", jnp.tan, "Return the tangent of an angle in radians.", "tan")
tanh = _row("tanh", jnp.tanh, "Return the hyperbolic tangent.", "tanh nn.tanh")
exp = _row("exp", jnp.exp, "Return e to the power of x.", "exp")
expm1 = _row("expm1", jnp.expm1, "Return exp(x) - 1, exact near 0.")
log = _row("log", jnp.log, "Return the natural logarithm.", example="p(2, 3)")
log1p = _row("log1p", jnp.log1p, "Return log(1 + x), exact near 0.", example="p(2, 3)")
sqrt = _row("sqrt", root, "Return the square root.", "sqrt", example="p(2, 3)")
rsqrt = _row("rsqrt", inverse_root, "Return 1 / sqrt(x).", example="p(2, 3)")
square = _row("square", jnp.square, "Return x * x.", "square", kinds=_NUMBERS)
ceil = _row("ceil", lambda x: flat(jnp.ceil(x)), "Round up.", kinds=_FLOAT)
floor = _row("floor", lambda x: flat(jnp.floor(x)), "Round down.", "floor", kinds=_FLOAT)
rint = _row("rint", lambda x: flat(jnp.rint(x)), "Round to the next integer, halves to even.",
            kinds=_FLOAT)
sigmoid = _row("sigmoid", jax.nn.sigmoid, "Return 1 / (1 + exp(-x)).", "sigmoid nn.sigmoid")
is_finite = _row("is_finite", jnp.isfinite, "Return which elements are neither infinite nor NaN.",
                 kinds=_FLOAT)
is_inf = _row("is_inf", jnp.isinf, "Return which elements are infinite.", kinds=_FLOAT)
is_nan = _row("is_nan", jnp.isnan, "Return which elements are NaN.", kinds=_FLOAT)
# fmt: on
