"""`tf.math`: arithmetic, element by element and along axes."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars.tf import _math_basic, _math_elements, _math_gamma
from jaxvars.tf import _math_special as special
from jaxvars.tf._rows import Row, axes, operations


def _reduce_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return jnp.sum(x, axis=axes(axis), keepdims=bool(keepdims), dtype=x.dtype)


ROWS = [
    *_math_basic.ROWS,
    *_math_elements.ROWS,
    *_math_gamma.ROWS,
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
