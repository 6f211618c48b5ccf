"""`tf.bitwise`: integers as rows of bits."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import elementwise, op, operations
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


# fmt: off
_row = functools.partial(elementwise, space="bitwise", tensors="x y", kinds="int",
                         example="i(4), i(4)", module=__name__)
bitwise_and = _row("bitwise_and", jnp.bitwise_and, "Return the bits that are set in both.")
bitwise_or = _row("bitwise_or", jnp.bitwise_or, "Return the bits that are set in one or both.")
bitwise_xor = _row("bitwise_xor", jnp.bitwise_xor, "Return the bits that are set in one of both.")
invert = _row("invert", jnp.invert, "Change all bits.", tensors="x", example="i(4)")
# fmt: on


__getattr__ = operations(__name__)
