"""The part of `tf.math` about the gamma, beta, zeta, error and Bessel functions.

Rules this file keeps:
- what JAX has is JAX's, with its derivatives.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import jax.scipy.special as sp
import numpy as np
from jax import lax

from jaxvars.tf.registry.rows import Refused, Row

Value: TypeAlias = Any


def _erfcinv(x: Value) -> Value:
    if x.dtype.kind in "iu":
        raise Refused(TypeError(f"Cannot convert 0.5 to EagerTensor of dtype {x.dtype}"))
    return sp.ndtri(x / 2) * -np.sqrt(0.5).astype(x.dtype)


@jax.jit
def _zeta(x: Value, q: Value) -> Value:
    return sp.zeta(x, q)


@jax.jit
def _polygamma(a: Value, x: Value) -> Value:
    return lax.polygamma(*jnp.broadcast_arrays(a, x))


@jax.jit
def _betainc(a: Value, b: Value, x: Value) -> Value:
    return sp.betainc(*jnp.broadcast_arrays(a, b, x))


@jax.jit
def _igamma(a: Value, x: Value) -> Value:
    return lax.igamma(*jnp.broadcast_arrays(a, x))


@jax.jit
def _igammac(a: Value, x: Value) -> Value:
    return lax.igammac(*jnp.broadcast_arrays(a, x))


@jax.jit
def _lbeta(x: Value) -> Value:
    return jnp.sum(lax.lgamma(x), -1) - lax.lgamma(jnp.sum(x, -1))


_FLOAT = "float"

ROWS = [
    Row(
        "lgamma", "x", "x", lax.lgamma, kinds=_FLOAT,
        doc="Return the logarithm of the absolute value of the gamma function.",
        examples=("math.lgamma(p(2, 3))", "math.lgamma([0.0, -1.0, -1.5, 20.0])", "math.lgamma(1)"),
    ),
    Row(
        "digamma", "x", "x", lax.digamma, kinds=_FLOAT,
        doc="Return the derivative of the logarithm of the gamma function.",
        examples=("math.digamma(p(2, 3))", "math.digamma([-1.5, 1.0, 20.0])", "math.digamma(1)"),
    ),
    Row(
        "polygamma", "a x", "a, x", _polygamma, same=True, kinds=_FLOAT,
        doc="Return the derivative of order `a` of digamma.",
        examples=(
            "math.polygamma([1.0, 2.0, 3.0], 1.5)", "math.polygamma(1.0, p(2, 3))",
            "math.polygamma(1, 2)",
        ),
    ),
    Row(
        "zeta", "x q", "x, q", _zeta, same=True, kinds=_FLOAT,
        doc="Return the zeta function of Hurwitz: the sum of (q + n)^-x.",
        examples=("math.zeta([2.0, 3.5], 1.0)", "math.zeta(2.5, p(2, 3))", "math.zeta(2, 1)"),
    ),
    Row(
        "igamma", "a x", "a, x", _igamma, same=True, kinds=_FLOAT,
        doc="Return the lower regularized incomplete gamma function.",
        examples=(
            "math.igamma(p(2, 3), p(3))", "math.igamma([-1.0, 1.0], 1.0)", "math.igamma(1, 2)",
        ),
    ),
    Row(
        "igammac", "a x", "a, x", _igammac, same=True, kinds=_FLOAT,
        doc="Return the upper regularized incomplete gamma function.",
        examples=(
            "math.igammac(p(2, 3), p(3))", "math.igammac([-1.0, 1.0], 1.0)", "math.igammac(1, 2)",
        ),
    ),
    Row(
        "betainc", "a b x", "a, b, x", _betainc, same=True, kinds=_FLOAT,
        doc="Return the regularized incomplete beta function.",
        examples=(
            "math.betainc(2.0, [0.5, 3.0], p(2) * 0.4)",
            "math.betainc([1.0, 2.0], 2.0, [0.0, 2.0])",
            "math.betainc(1, 1, 1)",
        ),
    ),
    Row(
        "lbeta", "x", "x", _lbeta, kinds=_FLOAT,
        doc="Return the logarithm of the beta function of the last axis.",
        examples=("math.lbeta(p(2, 3))", "math.lbeta(np.zeros(0, 'f'))", "math.lbeta(i(2))"),
    ),
    Row(
        "erf", "x", "x", lax.erf, kinds=_FLOAT, doc="Return the error function.",
        examples=("math.erf(r(2, 3))", "math.erf([-inf, 0.0, 9.0])", "math.erf(1)"),
    ),
    Row(
        "erfc", "x", "x", lax.erfc, kinds=_FLOAT, doc="Return 1 - erf(x), exact where it is small.",
        examples=("math.erfc(r(2, 3))", "math.erfc([-inf, 0.0, 5.0])", "math.erfc(1)"),
    ),
    Row(
        "erfinv", "x", "x", lax.erf_inv, kinds=_FLOAT, doc="Return the inverse of erf.",
        examples=("math.erfinv(r(2, 3) * 0.3)", "math.erfinv([-1.0, 0.0, 1.0])", "math.erfinv(1)"),
    ),
    Row(
        "erfcinv", "x", "x", _erfcinv, op="Ndtri", kinds="float int",
        doc="Return the inverse of erfc.",
        examples=("math.erfcinv(p(2, 3))", "math.erfcinv([0.0, 2.0, 1.0])", "math.erfcinv(1)"),
    ),
    Row(
        "ndtri", "x", "x", sp.ndtri, kinds=_FLOAT,
        doc="Return the quantile of the normal distribution.",
        examples=("math.ndtri(p(2, 3) * 0.45)", "math.ndtri([0.0, 1.0, 0.5])", "math.ndtri(1)"),
    ),
]  # fmt: skip
