"""The part of `tf.math` that works on each pair of elements of two tensors, apart from operators.

Rules this file keeps:
- where a value is not wanted (0 / 0, 0 * log 0) it does not reach the derivative either;
- the gradient of the greater of two equal numbers is that of the first one, and where one is NaN
  that of the second one, as in TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxvars.tf.math.basic import pair_up
from jaxvars.tf.math.slopes import choose
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.dtypes import divisible
from jaxvars.typing import Array

_INEXACT = "float complex"
_greater = choose(lambda x, y: jnp.where((x >= y) | jnp.isnan(x), x, y), jnp.greater_equal)
_smaller = choose(lambda x, y: jnp.where((x <= y) | jnp.isnan(x), x, y), jnp.less_equal)


@op("math.maximum", "x y", same=True, kinds="float int", aliases=("maximum",))
@jax.jit
def maximum(x: Array, y: Array) -> Array:
    """Return the greater one of each pair.

    Example: `tf.math.maximum(r(2, 3), 0.0)`.
    """
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.maximum(x, y)
    return _greater(x, y)


@op("math.minimum", "x y", same=True, kinds="float int", aliases=("minimum",))
@jax.jit
def minimum(x: Array, y: Array) -> Array:
    """Return the smaller one of each pair.

    Example: `tf.math.minimum(r(2, 3), r(3))`.
    """
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.minimum(x, y)
    return _smaller(x, y)


def _unless_zero(x: Array, y: Array, of: Callable[[Array, Array], Array]) -> Array:
    """Return 0 where `x` is 0, whatever `y` is."""
    zero = x == 0
    return jnp.where(zero, 0, of(x, jnp.where(zero, 1, y))).astype(x.dtype)


@op(
    "math.divide_no_nan", "x y", op="DivNoNan", same=True, kinds="float complex int",
    pairing=pair_up,
)  # fmt: skip
@jax.jit
def divide_no_nan(x: Array, y: Array) -> Array:
    """Return x / y, and 0 where y is 0.

    Example: `tf.math.divide_no_nan(r(2, 3), p(3))`.
    """
    x, y = divisible(x), divisible(y)
    zero = y == 0
    return jnp.where(zero, 0, x / jnp.where(zero, 1, y))


@op(
    "math.multiply_no_nan", "x y", op="MulNoNan", same=True, kinds=_INEXACT, example="r(2, 3), r(3)"
)
@jax.jit
def multiply_no_nan(x: Array, y: Array) -> Array:
    """Return x * y, and 0 where y is 0, even if x is infinite or NaN."""
    return jnp.where((y == 0) & ~jnp.isfinite(x), 0, x) * y


@op("math.squared_difference", "x y", same=True, kinds="float complex int", example="r(2, 3), r(3)")
@jax.jit
def squared_difference(x: Array, y: Array) -> Array:
    """Return (x - y)^2; of complex numbers, |x - y|^2."""
    difference = x - y
    return difference * jnp.conj(difference)


@jax.custom_jvp
def _nextafter(x1: Array, x2: Array) -> Array:
    return jnp.nextafter(x1, x2)


@_nextafter.defjvp
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    made = _nextafter(*primals)
    return made, jnp.broadcast_to(tangents[0], made.shape) + 0 * tangents[1]


@jax.jit
def _polyval(coeffs: list[Array], x: Array) -> Array:
    total = jnp.zeros_like(x)
    for coefficient in coeffs:
        total = coefficient + total * x
    return total


@op("math.polyval", "coeffs* x", kinds="float complex int", example="[r(1), r(3), 2.0], r(2, 3)")
def polyval(coeffs: list[Array], x: Array) -> Array:
    """Return the value of a polynomial, by its coefficients from the highest power down."""
    if not coeffs:
        return jnp.zeros(x.shape, x.dtype)
    if x.dtype.kind in "iu" and any(c.dtype.kind not in "iu" for c in coeffs):
        raise ValueError(f"the coefficients are not integers, and x has type {x.dtype}")
    return _polyval([jnp.asarray(c, x.dtype) for c in coeffs], x)


@op("complex", "real imag", op="Complex", example="r(2, 3), r(3)")
def complex_(real: Array, imag: Array) -> Array:
    """Make complex numbers of their parts."""
    if real.dtype not in (jnp.float32, jnp.float64) or real.dtype != imag.dtype:
        raise Refused(
            TypeError(
                f"The `real` and `imag` components have incorrect types: {real.dtype} "
                f"{imag.dtype}. They must be consistent, and one of [tf.float32, tf.float64]"
            )
        )
    return jax.lax.complex(*jnp.broadcast_arrays(real, imag))


@op("math.atan2", "y x", same=True, kinds="float", aliases=("atan2",), example="r(2, 3), r(3)")
def atan2(y: Array, x: Array) -> Array:
    """Return the angle of the point (x, y)."""
    return jnp.arctan2(y, x)


@op("math.xlogy", "x y", same=True, kinds=_INEXACT, example="p(2, 3), p(3)")
@jax.jit
def xlogy(x: Array, y: Array) -> Array:
    """Return x log(y), and 0 where x is 0."""
    return _unless_zero(x, y, lambda x, y: x * jnp.log(y))


@op("math.xlog1py", "x y", same=True, kinds=_INEXACT, example="p(2, 3), p(3)")
@jax.jit
def xlog1py(x: Array, y: Array) -> Array:
    """Return x log(1 + y), and 0 where x is 0."""
    return _unless_zero(x, y, lambda x, y: x * jnp.log1p(y))


@op("math.xdivy", "x y", same=True, kinds=_INEXACT, example="r(2, 3), p(3)")
@jax.jit
def xdivy(x: Array, y: Array) -> Array:
    """Return x / y, and 0 where x is 0."""
    return _unless_zero(x, y, lambda x, y: x / y)


@op("math.nextafter", "x1 x2", op="NextAfter", same=True, kinds="float", example="r(2, 3), r(3)")
def nextafter(x1: Array, x2: Array) -> Array:
    """Return the next number from `x1` in the direction of `x2`."""
    return _nextafter(x1, x2)
