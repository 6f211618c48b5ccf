"""What the operators of tensors and variables call.

Rules this file keeps:
- an operator does what its function in `tf.math` does, by the same rules for types;
- `&`, `|`, `^` and `~` are logical for bools and bitwise for integers;
- `==` of shapes that do not broadcast is False, and so is a comparison with None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp

from jaxvars.tf import math
from jaxvars.tf.arrays.indexing import getitem, index_of
from jaxvars.tf.math import products as _products
from jaxvars.tf.math.basic import TOP_LEVEL, equal, not_equal
from jaxvars.tf.registry.rows import Row, function_of, operations
from jaxvars.tf.tensors.convert import pair
from jaxvars.tf.tensors.tensor import OPERATIONS, Tensor

Value: TypeAlias = Any
Binary: TypeAlias = Callable[[Any, Any], Any]


def _either(op: str, logical: Binary, bits: Callable[[Value, Value], Value]) -> Binary:
    """Return an operator that is logical or bitwise, by the type of its operands."""
    bitwise = function_of(
        Row(op, "x y", "x, y", bits, op=f"Bitwise{op}", same=True, kinds="int"), __name__
    )

    def operator(x: Any, y: Any) -> Any:
        first = x if type(x) is Tensor else y
        is_bool = first._array.dtype == jnp.bool_ if type(first) is Tensor else _has_bools(x, y)
        return logical(x, y) if is_bool else bitwise(x, y)

    return operator


def _has_bools(x: Any, y: Any) -> bool:
    return any(getattr(part, "dtype", None) == jnp.bool_ for part in (x, y))


def _equality(compare: Binary, op: str, otherwise: bool) -> Binary:
    def operator(x: Any, y: Any) -> Any:
        if x is None or y is None:
            return otherwise
        a, b = pair(x, y, op)
        try:
            return Tensor(compare(a, b))
        except (TypeError, ValueError):  # the shapes do not broadcast
            return Tensor(jnp.asarray(otherwise))

    return operator


def _inverted(x: Any) -> Any:
    if x.dtype == "bool":
        return math.logical_not(x)
    return _INVERT(x)


_INVERT = function_of(Row("invert", "x", "x", jnp.bitwise_not, op="Invert", kinds="int"), __name__)

OPERATIONS.update(
    {
        "add": math.add,
        "sub": math.subtract,
        "mul": math.multiply,
        "truediv": math.truediv,
        "floordiv": math.floordiv,
        "mod": math.floormod,
        "pow": math.pow,
        "matmul": _products.matmul,
        "neg": math.negative,
        "abs": math.abs,
        "lt": math.less,
        "le": math.less_equal,
        "gt": math.greater,
        "ge": math.greater_equal,
        "eq": _equality(equal, "Equal", otherwise=False),
        "ne": _equality(not_equal, "NotEqual", otherwise=True),
        "and": _either("And", math.logical_and, jnp.bitwise_and),
        "or": _either("Or", math.logical_or, jnp.bitwise_or),
        "xor": _either("Xor", math.logical_xor, jnp.bitwise_xor),
        "invert": _inverted,
        "getitem": getitem,
        "index_of": index_of,
    }
)

__getattr__ = operations(__name__, TOP_LEVEL, space="")
