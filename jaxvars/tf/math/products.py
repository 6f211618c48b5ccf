"""`tf.matmul`.

Rules this file keeps:
- sizes that do not fit are refused in TensorFlow's words: matrices, or stacks of them.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from jaxvars.tf.math.basic import hinted
from jaxvars.tf.registry.rows import Refused, op, shape_text
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.typing import Array


@op(
    "matmul", "a b", op="MatMul", same=True, kinds="float complex int", pairing=hinted,
    aliases=("linalg.matmul",), example="r(2, 3), r(3, 2)",
)  # fmt: skip
def matmul(
    a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False,
    adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, output_type: Any = None,
) -> Array:  # fmt: skip
    """Multiply matrices, or stacks of them."""
    _check_ranks(a, b)
    if transpose_a or adjoint_a:
        a = _turned(a, "a", transpose_a, adjoint_a)
    if transpose_b or adjoint_b:
        b = _turned(b, "b", transpose_b, adjoint_b)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}"
        )
    wanted = None if output_type is None else as_dtype(output_type).dtype
    return jnp.matmul(a, b, preferred_element_type=wanted)


def _check_ranks(a: Array, b: Array) -> None:
    for i, x in enumerate((a, b)):
        if x.ndim < 2:
            raise ValueError(f"In[{i}] ndims must be >= 2: {x.ndim}")


def _turned(x: Array, name: str, transpose: bool, adjoint: bool) -> Array:
    if transpose and adjoint:
        raise Refused(
            ValueError(
                f"Only one of `transpose_{name}` and `adjoint_{name}` can be True. Received "
                f"`transpose_{name}`={transpose}, `adjoint_{name}`={adjoint}."
            )
        )
    turned = jnp.swapaxes(x, -1, -2)
    return jnp.conj(turned) if adjoint else turned
