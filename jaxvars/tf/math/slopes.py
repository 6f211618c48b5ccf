"""Functions of one tensor whose derivatives are TensorFlow's where a formula has no value.

Rules this file keeps:
- the derivative is made of the argument and the result, and is differentiated in turn;
- of roots and reciprocals, an incoming gradient of 0 stays 0 where the slope is infinite or NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxvars.derivatives.scaling import reads_nothing, scale
from jaxvars.typing import Array


def with_slope(
    fn: Callable[[Array], Array],
    slope: Callable[[Array, Array], Array],
    multiply: Callable[[Array, Array], Array] = jnp.multiply,
) -> Callable[[Array], Array]:
    """Return a function whose derivative is `slope(x, y)`, multiplied by `multiply`."""
    made = jax.custom_jvp(fn)

    @made.defjvp
    @reads_nothing
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        y = made(*primals)
        return y, multiply(tangents[0], slope(primals[0], y))

    return jax.jit(made)


def by_host(fn: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """Return a function of one NumPy array, which keeps its shape and type, as one of JAX's."""

    def call(x: Array) -> Array:
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(fn, shape, x, vmap_method="expand_dims")

    return call


def choose(
    pick: Callable[[Array, Array], Array], is_first: Callable[[Array, Array], Array]
) -> Callable[[Array, Array], Array]:
    """Return a function of pairs whose derivative is that of the first one, or of the second."""
    made = jax.custom_jvp(pick)

    @made.defjvp
    @reads_nothing
    def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
        return made(*primals), jnp.where(is_first(*primals), *tangents)

    return made


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def extreme(find: Callable[..., Array], axis: Any, x: Array) -> Array:
    """Return the maximum or minimum along axes, which stay, and whose equals share the derivative.

    That of NaN is NaN: XLA makes 0 of the infinite share of none.
    """
    return find(x, axis=axis, keepdims=True)


@extreme.defjvp
@reads_nothing
def _(find: Any, axis: Any, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), y = primals, extreme(find, axis, *primals)
    equal = (x == y).astype(x.dtype)
    share = jnp.where(jnp.isnan(y), jnp.nan, equal / equal.sum(axis, keepdims=True))
    return y, jnp.sum(tangents[0] * share.astype(x.dtype), axis, keepdims=True)


root = with_slope(jnp.sqrt, lambda _, y: 0.5 / y, scale)
inverse_root = with_slope(lax.rsqrt, lambda _, y: -0.5 * y * y * y, scale)
inverse = with_slope(jnp.reciprocal, lambda _, y: -y * y, scale)
