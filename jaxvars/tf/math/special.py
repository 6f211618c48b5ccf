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

from jaxvars.tf.registry.rows import op, operations
from jaxvars.typing import Array

_ON_HOST = "It is computed on the host."


def _scipy(name: str) -> Callable[[Array], Array]:
    """Return a function of SciPy's as one of JAX's, which runs on the host."""

    def on_host(x: Any) -> Any:
        import scipy.special

        wide = np.asarray(x).astype(np.float64)
        return np.asarray(getattr(scipy.special, name)(wide), np.asarray(x).dtype)

    def call(x: Array) -> Array:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(on_host, shape, x, vmap_method="expand_dims")

    return call


def _differentiable(name: str, slope: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    """Return a function of SciPy's, whose derivative is made of the argument and the result."""
    made = jax.custom_jvp(_scipy(name))

    @made.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        y = made(*primals)
        return y, tangents[0] * slope(primals[0], y)

    return jax.jit(made)


# The derivatives: J0' = -J1, J1' = J0 - J1 / x, as for Y; K0' = -K1, K1' = -K0 - K1 / x.
_j0 = _differentiable("j0", lambda x, _: -_j1(x))
_j1 = _differentiable("j1", lambda x, y: jnp.where(x == 0, 0.5, _j0(x) - y / x))
_y0 = _differentiable("y0", lambda x, _: -_y1(x))
_y1 = _differentiable("y1", lambda x, y: _y0(x) - y / x)
_k0 = _differentiable("k0", lambda x, _: -_k1(x))
_k1 = _differentiable("k1", lambda x, y: -_k0(x) - y / x)
_k0e = _differentiable("k0e", lambda x, y: y - _k1e(x))
_k1e = _differentiable("k1e", lambda x, y: y * (1 - 1 / x) - _k0e(x))


@jax.custom_jvp
@jax.jit
def _spence(x: Array) -> Array:
    return sp.spence(x)


@_spence.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,) = primals
    near = x == 1
    slope = jnp.where(near, -1, jnp.log(x) / (1 - jnp.where(near, 0, x)))
    return _spence(x), tangents[0] * slope


@op("math.special.bessel_i0", "x", kinds="float", aliases=("math.bessel_i0",), example="p(2, 3)")
def bessel_i0(x: Array) -> Array:
    """Return the modified Bessel function of the first kind, of order 0."""
    return sp.i0(x)


@op("math.special.bessel_i0e", "x", kinds="float", aliases=("math.bessel_i0e",), example="p(2, 3)")
def bessel_i0e(x: Array) -> Array:
    """Return exp(-|x|) times the function bessel_i0."""
    return sp.i0e(x)


@op("math.special.bessel_i1", "x", kinds="float", aliases=("math.bessel_i1",), example="p(2, 3)")
def bessel_i1(x: Array) -> Array:
    """Return the modified Bessel function of the first kind, of order 1."""
    return sp.i1(x)


@op("math.special.bessel_i1e", "x", kinds="float", aliases=("math.bessel_i1e",), example="p(2, 3)")
def bessel_i1e(x: Array) -> Array:
    """Return exp(-|x|) times the function bessel_i1."""
    return sp.i1e(x)


@op("math.special.bessel_j0", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_j0(x: Array) -> Array:
    """Return the Bessel function of the first kind, of order 0."""
    return _j0(x)


@op("math.special.bessel_j1", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_j1(x: Array) -> Array:
    """Return the Bessel function of the first kind, of order 1."""
    return _j1(x)


@op("math.special.bessel_k0", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_k0(x: Array) -> Array:
    """Return the modified Bessel function of the second kind, K0."""
    return _k0(x)


@op("math.special.bessel_k0e", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_k0e(x: Array) -> Array:
    """Return exp(x) times the function bessel_k0."""
    return _k0e(x)


@op("math.special.bessel_k1", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_k1(x: Array) -> Array:
    """Return the modified Bessel function of the second kind, K1."""
    return _k1(x)


@op("math.special.bessel_k1e", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_k1e(x: Array) -> Array:
    """Return exp(x) times the function bessel_k1."""
    return _k1e(x)


@op("math.special.bessel_y0", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_y0(x: Array) -> Array:
    """Return the Bessel function of the second kind, of order 0."""
    return _y0(x)


@op("math.special.bessel_y1", "x", kinds="float", example="p(2, 3)", differs=_ON_HOST)
def bessel_y1(x: Array) -> Array:
    """Return the Bessel function of the second kind, of order 1."""
    return _y1(x)


@op("math.special.dawsn", "x", kinds="float", example="p(2, 3)")
@jax.jit
def dawsn(x: Array) -> Array:
    """Return exp(-x^2) times the integral of exp(t^2) from 0 to x."""
    return sp.dawsn(x)


@op("math.special.expint", "x", kinds="float", example="p(2, 3)")
@jax.jit
def expint(x: Array) -> Array:
    """Return the exponential integral Ei."""
    return sp.expi(x)


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
