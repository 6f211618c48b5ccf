"""`tf.bitwise`: integers as rows of bits."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxvars.tf.registry.rows import Row, operations

Value: TypeAlias = Any


@jax.jit
def _left_shift(x: Value, y: Value) -> Value:
    return jnp.left_shift(x, _within(x, y))


@jax.jit
def _right_shift(x: Value, y: Value) -> Value:
    return jnp.right_shift(x, _within(x, y))


def _within(x: Value, y: Value) -> Value:
    """Return a number of bits, not negative and less than there are."""
    return jnp.clip(y, 0, x.dtype.itemsize * 8 - 1).astype(y.dtype)


ROWS = [
    Row(
        "bitwise_and", "x y", "x, y", jnp.bitwise_and, same=True, kinds="int",
        doc="Return the bits that are set in both.",
        examples=(
            "bitwise.bitwise_and(i(4), i(4))", "bitwise.bitwise_and(i(2, 3), 3)",
            "bitwise.bitwise_and(r(2), r(2))",
        ),
    ),
    Row(
        "bitwise_or", "x y", "x, y", jnp.bitwise_or, same=True, kinds="int",
        doc="Return the bits that are set in one or both.",
        examples=(
            "bitwise.bitwise_or(i(4), i(4))", "bitwise.bitwise_or(i(2, 3), 3)",
            "bitwise.bitwise_or(b(2), b(2))",
        ),
    ),
    Row(
        "bitwise_xor", "x y", "x, y", jnp.bitwise_xor, same=True, kinds="int",
        doc="Return the bits that are set in one of both.",
        examples=(
            "bitwise.bitwise_xor(i(4), i(4))", "bitwise.bitwise_xor(i(2, 3), 3)",
            "bitwise.bitwise_xor(i(2), i(3))",
        ),
    ),
    Row(
        "invert", "x", "x", jnp.invert, kinds="int", doc="Change all bits.",
        examples=(
            "bitwise.invert(i(4))", "bitwise.invert(np.array([1, 255], np.uint8))",
            "bitwise.invert(b(2))",
        ),
    ),
    Row(
        "left_shift", "x y", "x, y", _left_shift, same=True, kinds="int",
        doc="Move the bits to the left.",
        examples=(
            "bitwise.left_shift(i(4), 2)", "bitwise.left_shift([1, 1], [33, -1])",
            "bitwise.left_shift(r(2), 1)",
        ),
    ),
    Row(
        "right_shift", "x y", "x, y", _right_shift, same=True, kinds="int",
        doc="Move the bits to the right; the sign stays.",
        examples=(
            "bitwise.right_shift(i(4), 2)", "bitwise.right_shift([-8, 8], [33, -1])",
            "bitwise.right_shift(r(2), 1)",
        ),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS)
