"""What the operators of tensors and variables call.

Rules this file keeps:
- an operator does what its function in `tf.math` does, by the same rules for types;
- `&`, `|`, `^` and `~` are logical for bools and bitwise for integers; `*` of bools is `&`;
- `==` of shapes that do not broadcast is False, and so is a comparison with None.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxvars.tf import bitwise, math
from jaxvars.tf.arrays.creation import cast
from jaxvars.tf.arrays.indexing import getitem, index_of
from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.math import basic as _basic
from jaxvars.tf.math.basic import equal, not_equal
from jaxvars.tf.registry.rows import compute_static
from jaxvars.tf.tensors.convert import NotDense, pair
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.tensor import OPERATIONS, Tensor, TensorLike

Binary: TypeAlias = Callable[[Any, Any], Any]
_BOOL = np.dtype(bool)


def _is_bool(x: Any) -> bool:
    return isinstance(x, TensorLike) and x.dtype == _BOOL


def _either(logical: Binary, bits: Binary) -> Binary:
    """Return an operator that is logical or bitwise, by the first tensor or variable."""

    def operator(x: Any, y: Any) -> Any:
        first = x if isinstance(x, TensorLike | RaggedTensor) else y
        return (logical if first.dtype == _BOOL else bits)(x, y)

    return operator


def _reflect(function: Binary, op: str) -> Binary:
    """Return an operator that gives what is NumPy's, on its left, the type of the other operand."""

    def operator(x: Any, y: Any) -> Any:
        if type(x) is not Tensor and isinstance(x, np.ndarray | np.generic):
            with contextlib.suppress(NotDense):
                x, y = map(Tensor, pair(x, y, op))
        return function(x, y)

    return operator


def _multiply(x: Any, y: Any) -> Any:
    """Return a product; it is sparse if the factor on the right is, and `and` with a bool."""
    if isinstance(y, SparseTensor):
        return y * x
    try:
        return math.multiply(x, y)
    except (InvalidArgumentError, TypeError):  # so that a product of numbers costs no more
        if not (_is_bool(x) or _is_bool(y)):
            raise
        return math.logical_and(*(cast(part, "bool") for part in (x, y)))


def _equality(function: Any, op: str, otherwise: bool) -> Binary:
    compare = function.__wrapped__

    def operator(x: Any, y: Any) -> Any:
        if x is None or y is None:
            return otherwise
        try:
            a, b = pair(x, y, op)
        except NotDense:
            return function(x, y)
        is_size = type(a) is type(b) is np.ndarray and a.dtype.kind in "iub"
        try:
            return Tensor(compute_static(compare, a, b) if is_size else compare(a, b))
        except (TypeError, ValueError):  # the shapes do not broadcast
            return Tensor(jnp.asarray(otherwise))

    return operator


OPERATIONS.update(
    {
        "add": _reflect(math.add, "AddV2"), "sub": math.subtract, "mul": _multiply,
        "truediv": _reflect(math.truediv, "RealDiv"), "floordiv": math.floordiv,
        "mod": math.floormod, "pow": math.pow, "matmul": _reflect(_basic.matmul, "MatMul"),
        "neg": math.negative, "abs": math.abs, "lt": math.less, "le": math.less_equal,
        "gt": math.greater, "ge": math.greater_equal,
        "eq": _equality(equal, "Equal", otherwise=False),
        "ne": _equality(not_equal, "NotEqual", otherwise=True),
        "and": _either(math.logical_and, bitwise.bitwise_and),
        "or": _either(math.logical_or, bitwise.bitwise_or),
        "xor": _either(math.logical_xor, bitwise.bitwise_xor),
        "invert": lambda x: (math.logical_not if x.dtype == "bool" else bitwise.invert)(x),
        "getitem": getitem, "index_of": index_of,
    }
)  # fmt: skip
