"""`tf.math.special`: Bessel functions, integrals.

Rules this file keeps:
- what JAX has is JAX's; the Bessel functions J, Y and K are SciPy's, called on the host from
  compiled programs, too, with derivatives of our own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as sp
import numpy as np

from jaxvars.tf.math.slopes import by_host, with_slope
from jaxvars.tf.registry.rows import elementwise, operations
from jaxvars.typing import Array

_HOST = "It is computed on the host."
_NAN = f"{_HOST} It is NaN for negative numbers, and not infinite."
_AT_0 = "the derivative at 0 is 0.5, and 1 there."
_row = functools.partial(
    elementwise, space="math.special", kinds="float", example="p(2, 3)", module=__name__
)


def _scipy(name: str) -> Callable[[Array], Array]:
    """Return a function of SciPy's as one of JAX's, which runs on the host."""

    def on_host(x: Any) -> Any:
        import scipy.special

        wide = np.asarray(x).astype(np.float64)
        return np.asarray(getattr(scipy.special, name)(wide), np.asarray(x).dtype)

    return by_host(on_host)


def _in_its_type(function: Callable[[Array], Any]) -> Callable[[Array], Any]:
    """Return a function of JAX's that makes no float64 of float32 where 64-bit numbers are on."""

    def run(x: Array) -> Any:
        with jax.enable_x64(x.dtype.itemsize == 8):
            return function(x)

    return jax.jit(run)


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
_expi, _fresnel = _in_its_type(sp.expi), _in_its_type(sp.fresnel)
_expint = with_slope(
    lambda x: jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, jnp.nan, _expi(x))),
    lambda x, _: jnp.exp(x) / x,
)
_spence = with_slope(
    _in_its_type(sp.spence), lambda x, _: _at_zero(x - 1, -1, lambda z: -jnp.log(x) / z)
)


# fmt: off
bessel_i0 = _row("bessel_i0", _i0, "Return the modified Bessel function I0.", "math.bessel_i0")
bessel_i0e = _row("bessel_i0e", _i0e, "Return exp(-|x|) times bessel_i0.", "math.bessel_i0e")
bessel_i1 = _row("bessel_i1", _i1,
                 "Return the modified Bessel function I1.", "math.bessel_i1", differs=_AT_0)
bessel_i1e = _row("bessel_i1e", _i1e, "Return exp(-|x|) times bessel_i1.", "math.bessel_i1e")
bessel_j0 = _row("bessel_j0", _j0, "Return the Bessel function J0.", differs=_HOST)
bessel_j1 = _row("bessel_j1", _j1, "Return the Bessel function J1.", differs=_HOST)
bessel_k0 = _row("bessel_k0", _k0, "Return the modified Bessel function K0.", differs=_NAN)
bessel_k0e = _row("bessel_k0e", _k0e, "Return exp(x) times bessel_k0.", differs=_NAN)
bessel_k1 = _row("bessel_k1", _k1, "Return the modified Bessel function K1.", differs=_NAN)
bessel_k1e = _row("bessel_k1e", _k1e, "Return exp(x) times bessel_k1.", differs=_NAN)
bessel_y0 = _row("bessel_y0", _y0, "Return the Bessel function Y0.", differs=_NAN)
bessel_y1 = _row("bessel_y1", _y1, "Return the Bessel function Y1.", differs=_NAN)
dawsn = _row("dawsn", jax.jit(sp.dawsn),
             "Return exp(-x^2) times the integral of exp(t^2) from 0 to x.")
expint = _row("expint", _expint, "Return the exponential integral Ei; NaN for negative numbers.")
fresnel_cos = _row("fresnel_cos", lambda x: _fresnel(x)[1],
                   "Return the integral of cos(pi t^2 / 2) from 0 to x.")
fresnel_sin = _row("fresnel_sin", lambda x: _fresnel(x)[0],
                   "Return the integral of sin(pi t^2 / 2) from 0 to x.")
spence = _row("spence", _spence, "Return the integral of log(t) / (1 - t) from 1 to x.")
# fmt: on

__getattr__ = operations(__name__)
