"""Functions of one tensor whose derivatives are TensorFlow's where a formula has no value.

Rules this file keeps:
- the derivative is made of the argument and the result, and is differentiated in turn;
- of roots and reciprocals, an incoming gradient of 0 stays 0 where the slope is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from jaxvars.autodiff.scaling import reads_nothing, scale
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


root = with_slope(jnp.sqrt, lambda _, y: 0.5 / y, scale)
inverse_root = with_slope(lax.rsqrt, lambda _, y: -0.5 * y * y * y, scale)
inverse = with_slope(jnp.reciprocal, lambda _, y: -y * y, scale)
