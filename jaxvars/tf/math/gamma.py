"""The part of `tf.math` about the gamma, beta, zeta, error and Bessel functions.

Rules this file keeps:
- what JAX has is JAX's, with its derivatives.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import jax.scipy.special as sp
import numpy as np
from jax import lax

from jaxvars.tf.math.slopes import with_slope
from jaxvars.tf.registry.rows import Refused, elementwise, op
from jaxvars.typing import Array

_FLOAT = "float"
_row = functools.partial(elementwise, kinds="float", example="p(2, 3)", module=__name__)
_quantile = with_slope(
    sp.ndtri, lambda _, y: np.sqrt(2 * np.pi).astype(y.dtype) * jnp.exp(y * y / 2)
)


@op("math.erfcinv", "x", op="Ndtri", kinds="float int", example="p(2, 3)")
@jax.jit
def erfcinv(x: Array) -> Array:
    """Return the inverse of erfc."""
    if x.dtype.kind in "iu":
        raise Refused(TypeError(f"Cannot convert 0.5 to EagerTensor of dtype {x.dtype}"))
    return _quantile(x / 2) * -np.sqrt(0.5).astype(x.dtype)


@op("math.zeta", "x q", same=True, kinds=_FLOAT, example="[2.0, 3.5], 1.0")
@jax.jit
def zeta(x: Array, q: Array) -> Array:
    """Return the zeta function of Hurwitz: the sum of (q + n)^-x.

    Differs from TensorFlow: It is NaN where an argument is infinite.
    """
    return sp.zeta(lax.stop_gradient(x), q)  # TensorFlow has no derivative by it


@op("math.polygamma", "a x", same=True, kinds=_FLOAT, example="[1.0, 2.0, 3.0], 1.5")
@jax.jit
def polygamma(a: Array, x: Array) -> Array:
    """Return the derivative of order `a` of digamma."""
    return lax.polygamma(*jnp.broadcast_arrays(lax.stop_gradient(a), x))


@op("math.betainc", "a b x", same=True, kinds=_FLOAT, example="2.0, [0.5, 3.0], p(2) * 0.4")
@jax.jit
def betainc(a: Array, b: Array, x: Array) -> Array:
    """Return the regularized incomplete beta function."""
    return sp.betainc(*jnp.broadcast_arrays(*map(lax.stop_gradient, (a, b)), x))


@op("math.igamma", "a x", same=True, kinds=_FLOAT, example="p(2, 3), p(3)")
@jax.jit
def igamma(a: Array, x: Array) -> Array:
    """Return the lower regularized incomplete gamma function.

    Differs from TensorFlow: It is NaN where `a` is infinite.
    """
    return lax.igamma(*jnp.broadcast_arrays(_above_0(a), x))


def _above_0(a: Array) -> Array:
    return jnp.where(a == 0, jnp.nan, a)


@op("math.igammac", "a x", same=True, kinds=_FLOAT, example="p(2, 3), p(3)")
@jax.jit
def igammac(a: Array, x: Array) -> Array:
    """Return the upper regularized incomplete gamma function.

    Differs from TensorFlow: It is NaN where `a` is infinite.
    """
    return lax.igammac(*jnp.broadcast_arrays(_above_0(a), x))


# fmt: off
lbeta = _row("lbeta", jax.jit(lambda x: jnp.sum(lax.lgamma(x), -1) - lax.lgamma(jnp.sum(x, -1))),
             "Return the logarithm of the beta function of the last axis.")
lgamma = _row("lgamma", lax.lgamma,
              "Return the logarithm of the absolute value of the gamma function.")
digamma = _row("digamma", lax.digamma,
               "Return the derivative of the logarithm of the gamma function.")
erf = _row("erf", lax.erf, "Return the error function.", example="r(2, 3)")
erfc = _row("erfc", lax.erfc, "Return 1 - erf(x), exact where it is small.", example="r(2, 3)")
erfinv = _row("erfinv", lax.erf_inv, "Return the inverse of erf.", example="r(2, 3) * 0.3")
ndtri = _row("ndtri", jax.jit(_quantile),
             "Return the quantile of the normal distribution.", example="p(2, 3) * 0.45")
# fmt: on
