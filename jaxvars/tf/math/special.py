"""`tf.math.special`: Bessel functions, integrals.

Rules this file keeps:
- what JAX has is JAX's; the Bessel functions J, Y and K are SciPy's, called on the host from
  compiled programs, too, with derivatives of our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import jax.scipy.special as sp
import numpy as np

from jaxvars.tf.registry.rows import Row, operations

Value: TypeAlias = Any


def _scipy(name: str) -> Callable[[Value], Value]:
    """Return a function of SciPy's as one of JAX's, which runs on the host."""

    def on_host(x: Any) -> Any:
        import scipy.special

        wide = np.asarray(x).astype(np.float64)
        return np.asarray(getattr(scipy.special, name)(wide), np.asarray(x).dtype)

    def called(x: Value) -> Value:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(on_host, shape, x, vmap_method="expand_dims")

    return called


def _differentiable(name: str, slope: Callable[[Value, Value], Value]) -> Callable[[Value], Value]:
    """Return a function of SciPy's, whose derivative is made of the argument and the result."""
    made = jax.custom_jvp(_scipy(name))

    @made.defjvp
    def _(primals: tuple[Value], tangents: tuple[Value]) -> tuple[Value, Value]:
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


@jax.jit
def _fresnel_cos(x: Value) -> Value:
    return sp.fresnel(x)[1]


@jax.jit
def _fresnel_sin(x: Value) -> Value:
    return sp.fresnel(x)[0]


@jax.custom_jvp
@jax.jit
def _spence(x: Value) -> Value:
    return sp.spence(x)


@_spence.defjvp
def _(primals: tuple[Value], tangents: tuple[Value]) -> tuple[Value, Value]:
    (x,) = primals
    near = x == 1
    slope = jnp.where(near, -1, jnp.log(x) / (1 - jnp.where(near, 0, x)))
    return _spence(x), tangents[0] * slope


@jax.jit
def _dawsn(x: Value) -> Value:
    return sp.dawsn(x)


def _row(name: str, call: Callable[[Value], Value], doc: str, differs: str = "") -> Row:
    return Row(
        name, "x", "x", call, kinds="float", doc=doc, differs=differs,
        examples=(
            f"math.special.{name}(p(2, 3))", f"math.special.{name}([5.0, 20.0])",
            f"math.special.{name}(1)",
        ),
        aliases=(f"math.{name}",) if name[:8] == "bessel_i" else (),
    )  # fmt: skip


_HOST = "It is computed on the host."

ROWS = [
    _row("bessel_i0", sp.i0, "Return the modified Bessel function of the first kind, of order 0."),
    _row("bessel_i0e", sp.i0e, "Return exp(-|x|) times the function bessel_i0."),
    _row("bessel_i1", sp.i1, "Return the modified Bessel function of the first kind, of order 1."),
    _row("bessel_i1e", sp.i1e, "Return exp(-|x|) times the function bessel_i1."),
    _row("bessel_j0", _j0, "Return the Bessel function of the first kind, of order 0.", _HOST),
    _row("bessel_j1", _j1, "Return the Bessel function of the first kind, of order 1.", _HOST),
    _row("bessel_k0", _k0, "Return the modified Bessel function of the second kind, K0.", _HOST),
    _row("bessel_k0e", _k0e, "Return exp(x) times the function bessel_k0.", _HOST),
    _row("bessel_k1", _k1, "Return the modified Bessel function of the second kind, K1.", _HOST),
    _row("bessel_k1e", _k1e, "Return exp(x) times the function bessel_k1.", _HOST),
    _row("bessel_y0", _y0, "Return the Bessel function of the second kind, of order 0.", _HOST),
    _row("bessel_y1", _y1, "Return the Bessel function of the second kind, of order 1.", _HOST),
    _row("dawsn", _dawsn, "Return exp(-x^2) times the integral of exp(t^2) from 0 to x."),
    _row("expint", jax.jit(sp.expi), "Return the exponential integral Ei."),
    _row("fresnel_cos", _fresnel_cos, "Return the integral of cos(pi t^2 / 2) from 0 to x."),
    _row("fresnel_sin", _fresnel_sin, "Return the integral of sin(pi t^2 / 2) from 0 to x."),
    _row("spence", _spence, "Return the integral of log(t) / (1 - t) from 1 to x."),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="math.special")
