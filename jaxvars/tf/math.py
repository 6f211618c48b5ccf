"""`tf.math`: arithmetic, element by element and along axes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars.tf._rows import Row, axes, operations
from jaxvars.tf._tensor import OPERATIONS


def _reduce_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return jnp.sum(x, axis=axes(axis), keepdims=bool(keepdims), dtype=x.dtype)


ROWS = [
    Row(
        "add", "x y", "x, y", jnp.add, op="AddV2", same=True, doc="Add, element by element.",
        examples=("math.add(r(2, 3), r(3))", "math.add(i(4), 2)", "math.add(r(0), 1.0)"),
        aliases=("add",),
    ),
    Row(
        "subtract", "x y", "x, y", jnp.subtract, op="Sub", same=True, doc="Subtract, element by element.",
        examples=("math.subtract(r(2, 3), r(3))", "math.subtract(i(4), 2)", "math.subtract(1.0, r(2))"),
        aliases=("subtract",),
    ),
    Row(
        "multiply", "x y", "x, y", jnp.multiply, op="Mul", same=True, doc="Multiply, element by element.",
        examples=("math.multiply(r(2, 3), r(3))", "math.multiply(i(4), 2)", "math.multiply(z(2), z(2))"),
        aliases=("multiply",),
    ),
    Row(
        "reduce_sum", "input_tensor", "input_tensor, axis=None, keepdims=False", _reduce_sum,
        op="Sum",
        kinds="float complex int", doc="Add up, along one axis, several, or all.",
        examples=(
            "math.reduce_sum(r(2, 3))", "math.reduce_sum(i(2, 3), axis=-1, keepdims=True)",
            "math.reduce_sum(r(2, 0, 3), axis=[0, 1])",
        ),
        aliases=("reduce_sum",),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS)
OPERATIONS.update(add=__getattr__("add"), sub=__getattr__("subtract"), mul=__getattr__("multiply"))
