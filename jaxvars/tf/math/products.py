"""`tf.matmul`.

Rules this file keeps:
- sizes that do not fit are refused in TensorFlow's words: matrices, or stacks of them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp

from jaxvars.tf.math.basic import hinted
from jaxvars.tf.registry.rows import Refused, Row, operations, shape_text
from jaxvars.tf.tensors.dtypes import as_dtype

Value: TypeAlias = Any


def _matmul(
    a: Value,
    b: Value,
    transpose_a: bool,
    transpose_b: bool,
    adjoint_a: bool,
    adjoint_b: bool,
    a_is_sparse: bool,
    b_is_sparse: bool,
    output_type: Any,
) -> Value:
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


def _check_ranks(a: Value, b: Value) -> None:
    for i, x in enumerate((a, b)):
        if x.ndim < 2:
            raise ValueError(f"In[{i}] ndims must be >= 2: {x.ndim}")


def _turned(x: Value, name: str, transpose: bool, adjoint: bool) -> Value:
    if transpose and adjoint:
        raise Refused(
            ValueError(
                f"Only one of `transpose_{name}` and `adjoint_{name}` can be True. Received "
                f"`transpose_{name}`={transpose}, `adjoint_{name}`={adjoint}."
            )
        )
    turned = jnp.swapaxes(x, -1, -2)
    return jnp.conj(turned) if adjoint else turned


ROWS = [
    Row(
        "matmul", "a b",
        "a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, "
        "a_is_sparse=False, b_is_sparse=False, output_type=None",
        _matmul, op="MatMul", same=True, pairing=hinted, kinds="float complex int",
        doc="Multiply matrices, or stacks of them.",
        examples=(
            "matmul(r(2, 3), r(3, 2))", "matmul(r(2, 2, 3), r(4, 3), transpose_b=True)",
            "matmul(z(2, 3), z(2, 3), adjoint_a=True)", "matmul(i(2, 3), i(3, 2))",
            "matmul(r(2, 3), r(2, 3))", "matmul(r(3), r(3, 3))", "matmul(r(0, 3), r(3, 2))",
            "matmul(r(2, 2), r(2, 2), transpose_a=True, adjoint_a=True)",
        ),
        aliases=("linalg.matmul",),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="")
