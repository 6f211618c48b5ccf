"""`tf.math.special`: Bessel functions, integrals.

Rules this file keeps:
- what JAX has is JAX's; the Bessel functions J, Y and K are SciPy's, called on the host from
  compiled programs, too, with derivatives of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as sp
import numpy as np

from jaxvars.tf.math.slopes import by_host, with_slope
from jaxvars.tf.registry.rows import op, operations
from jaxvars.typing import Array

_ON_HOST = "It is computed on the host."
_NAN = f"{_ON_HOST} It is NaN for negative numbers, and not infinite."


def _scipy(name: str) -> Callable[[Array], Array]:
    """Return a function of SciPy's as one of JAX's, which runs on the host."""

    def on_host(x: Any) -> Any:
        import scipy.special

        wide = np.asarray(x).astype(np.float64)
        return np.asarray(getattr(scipy.special, name)(wide), np.asarray(x).dtype)

    return by_host(on_host)


def _at_zero(x: Array, value: float, of: Callable[[Array], Array]) -> Array:
    zero = x == 0
    return jnp.where(zero, value, of(jnp.where(zero, 1, x)))


# The derivatives: J0' = -J1, J1' = J0 - J1 / x, as for Y; K0' = -K1, K1' = -K0 - K1 / x.
_j0 = with_slope(_scipy("j0"), lambda x, _: -_j1(x))
_j1 = with_slope(_scipy("j1"), lambda x, y: _at_zero(x, 0.5, lambda x: _j0(x) - y / x))
_y0 = with_slope(_scipy("y0"), lambda x, _: -_y1(x))
_y1 = with_slope(_scipy("y1"), lambda x, y: _y0(x) - y / x)
_k0 = with_slope(_scipy("k0"), lambda x, _: -_k1(x))
_k1 = with_slope(_scipy("k1"), lambda x, y: -_k0(x) - y / x)
_k0e = with_slope(_scipy("k0e"), lambda x, y: y - _k1e(x))
_k1e = with_slope(_scipy("k1e"), lambda x, y: y * (1 - 1 / x) - _k0e(x))

# Those of JAX's own functions have another value at 0, or NaN where both terms overflow.
_i0 = with_slope(sp.i0, lambda x, _: _i1(x))
_i1 = with_slope(sp.i1, lambda x, y: _at_zero(x, 0.5, lambda x: _i0(x) - y / x))
_i0e = with_slope(sp.i0e, lambda x, y: _i1e(x) - jnp.sign(x) * y)
_i1e = with_slope(
    sp.i1e, lambda x, y: _at_zero(x, 0.5, lambda x: _i0e(x) - y * (jnp.sign(x) + 1 / x))
)
_expint = with_slope(
    lambda x: jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, jnp.nan, sp.expi(x))),
    lambda x, _: jnp.exp(x) / x,
)
_spence = with_slope(sp.spence, lambda x, _: _at_zero(x - 1, -1, lambda z: -jnp.log(x) / z))


@op("math.special.bessel_i0", "x", kinds="float", aliases=("math.bessel_i0",), example="p(2, 3)")
def bessel_i0(x: Array) -> Array:
    """Return the modified Bessel function of the first kind, of order 0."""
    return _i0(x)


@op("math.special.bessel_i0e", "x", kinds="float", aliases=("math.bessel_i0e",), example="p(2, 3)")
def bessel_i0e(x: Array) -> Array:
    """Return exp(-|x|) times the function bessel_i0."""
    return _i0e(x)


@op("math.special.bessel_i1", "x", kinds="float", aliases=("math.bessel_i1",), example="p(2, 3)")
def bessel_i1(x: Array) -> Array:
    """Return the modified Bessel function of the first kind, of order 1.

    Differs from TensorFlow: the derivative at 0 is 0.5, and 1 there.
    """
    return _i1(x)


@op("math.special.bessel_i1e", "x", kinds="float", aliases=("math.bessel_i1e",), example="p(2, 3)")
def bessel_i1e(x: Array) -> Array:
    """Return exp(-|x|) times the function bessel_i1."""
    return _i1e(x)


@op("math.special.bessel_j0", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_j0(x: Array) -> Array:
    """Return the Bessel function of the first kind, of order 0."""
    return _j0(x)


@op("math.special.bessel_j1", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_j1(x: Array) -> Array:
    """Return the Bessel function of the first kind, of order 1."""
    return _j1(x)


@op("math.special.bessel_k0", "x", kinds="float", example="p(2, 3)", differs=_NAN)
def bessel_k0(x: Array) -> Array:
    """Return the modified Bessel function of the second kind, K0."""
    return _k0(x)


@op("math.special.bessel_k0e", "x", kinds="float", example="p(2, 3)", differs=_NAN)
def bessel_k0e(x: Array) -> Array:
    """Return exp(x) times the function bessel_k0."""
    return _k0e(x)


@op("math.special.bessel_k1", "x", kinds="float", example="p(2, 3)", differs=_NAN)
def bessel_k1(x: Array) -> Array:
    """Return the modified Bessel function of the second kind, K1."""
    return _k1(x)


@op("math.special.bessel_k1e", "x", kinds="float", example="p(2, 3)", differs=_NAN)
def bessel_k1e(x: Array) -> Array:
    """Return exp(x) times the function bessel_k1."""
    return _k1e(x)


@op("math.special.bessel_y0", "x", kinds="float", example="p(2, 3)", differs=_NAN)
def bessel_y0(x: Array) -> Array:
    """Return the Bessel function of the second kind, of order 0."""
    return _y0(x)


@op("math.special.bessel_y1", "x", kinds="float", example="p(2, 3)", differs=_NAN)
def bessel_y1(x: Array) -> Array:
    """Return the Bessel function of the second kind, of order 1."""
    return _y1(x)


@op("math.special.dawsn", "x", kinds="float", example="p(2, 3)")
@jax.jit
def dawsn(x: Array) -> Array:
    """Return exp(-x^2) times the integral of exp(t^2) from 0 to x."""
    return sp.dawsn(x)


@op("math.special.expint", "x", kinds="float", example="p(2, 3)")
def expint(x: Array) -> Array:
    """Return the exponential integral Ei; NaN for negative numbers."""
    return _expint(x)


@op("math.special.fresnel_cos", "x", kinds="float", example="p(2, 3)")
@jax.jit
def fresnel_cos(x: Array) -> Array:
    """Return the integral of cos(pi t^2 / 2) from 0 to x."""
    return sp.fresnel(x)[1]


@op("math.special.fresnel_sin", "x", kinds="float", example="p(2, 3)")
@jax.jit
def fresnel_sin(x: Array) -> Array:
    """Return the integral of sin(pi t^2 / 2) from 0 to x."""
    return sp.fresnel(x)[0]


@op("math.special.spence", "x", kinds="float", example="p(2, 3)")
def spence(x: Array) -> Array:
    """Return the integral of log(t) / (1 - t) from 1 to x."""
    return _spence(x)


__getattr__ = operations(__name__, space="math.special")
