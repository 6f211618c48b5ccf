"""`tf.bitwise`: integers as rows of bits."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import op, operations
from jaxvars.typing import Array


@op("bitwise.left_shift", "x y", same=True, kinds="int", example="i(4), 2")
@jax.jit
def left_shift(x: Array, y: Array) -> Array:
    """Move the bits to the left."""
    return jnp.left_shift(x, _within(x, y))


@op("bitwise.right_shift", "x y", same=True, kinds="int", example="i(4), 2")
@jax.jit
def right_shift(x: Array, y: Array) -> Array:
    """Move the bits to the right; the sign stays."""
    return jnp.right_shift(x, _within(x, y))


def _within(x: Array, y: Array) -> Array:
    """Return a number of bits, not negative and less than there are."""
    return jnp.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(y.dtype)


@op("bitwise.bitwise_and", "x y", same=True, kinds="int", example="i(4), i(4)")
def bitwise_and(x: Array, y: Array) -> Array:
    """Return the bits that are set in both."""
    return jnp.bitwise_and(x, y)


@op("bitwise.bitwise_or", "x y", same=True, kinds="int", example="i(4), i(4)")
def bitwise_or(x: Array, y: Array) -> Array:
    """Return the bits that are set in one or both."""
    return jnp.bitwise_or(x, y)


@op("bitwise.bitwise_xor", "x y", same=True, kinds="int", example="i(4), i(4)")
def bitwise_xor(x: Array, y: Array) -> Array:
    """Return the bits that are set in one of both."""
    return jnp.bitwise_xor(x, y)


@op("bitwise.invert", "x", kinds="int", example="i(4)")
def invert(x: Array) -> Array:
    """Change all bits."""
    return jnp.invert(x)


__getattr__ = operations(__name__)
