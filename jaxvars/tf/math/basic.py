"""The part of `tf.math` that operators are made of: arithmetic, comparison, logic.

Rules this file keeps:
- results have the types that TensorFlow gives: integers divide to float64, `floordiv` rounds down;
- integers that are divided by zero are refused when that is seen: outside of compiled functions.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.math.elements import floor, magnitude
from jaxvars.tf.registry.rows import Refused, Row
from jaxvars.tf.tensors.convert import dtype_of, is_tensor_like, is_text, pair, text_array, to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context

Value: TypeAlias = Any


# ---------------------------------------------------------------- arithmetic
def add(x: Value, y: Value) -> Value:
    """Add; of text: join."""
    if is_text(x) and is_text(y):
        return text_array(np.asarray(x + y, dtype=object))
    return jnp.add(x, y)


def _truediv(x: Value, y: Value) -> Value:
    kind = x.dtype.kind
    if kind in "iu":
        wide = jnp.float32 if x.dtype.itemsize < 4 else jnp.float64
        return jnp.divide(x.astype(wide), y.astype(wide))
    if kind == "b" or is_text(x):
        raise Refused(TypeError(f"Invalid dtype {dtype_of(x)!r} in __truediv__. Expected a number"))
    return jnp.divide(x, y)


def hinted(x: Any, y: Any, op: str) -> tuple[Value, Value]:
    """Return two operands as arrays: `y` that can't have the type of `x` has another one.

    Raises:
        InvalidArgumentError: when the types differ.
    """
    if is_tensor_like(y):  # else only `y` is of no type yet
        return pair(x, y, op)
    a = to_array(x)
    return pair(Tensor(a), Tensor(to_array(y, hint=dtype_of(a))), op)


def _divided(x: Any, y: Any, op: str) -> tuple[Value, Value]:
    if type(x) is Tensor and type(y) in (int, float) and x._array.dtype.kind in "fc":
        return x._array, np.asarray(y, x._array.dtype)  # the common case, in a hurry
    a = to_array(x, hint=dtype_of(to_array(y)) if is_tensor_like(y) else None)
    b = to_array(y, hint=dtype_of(a))
    if a.dtype != b.dtype:
        raise TypeError(
            f"`x` and `y` must have the same dtype, got {dtype_of(a)!r} != {dtype_of(b)!r}."
        )
    return a, b


def _floordiv(x: Value, y: Value) -> Value:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
        return jnp.floor_divide(x, y)
    return floor(jnp.divide(x, y))


def _floormod(x: Value, y: Value) -> Value:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
    return jnp.mod(x, y)


def _truncatediv(x: Value, y: Value) -> Value:
    if x.dtype.kind not in "iu":
        return jnp.trunc(jnp.divide(x, y))
    _refuse_zero(y)
    return jax.lax.div(*jnp.broadcast_arrays(x, y))


def _truncatemod(x: Value, y: Value) -> Value:
    if x.dtype.kind in "iu":
        _refuse_zero(y)
    return jnp.fmod(x, y)


def _refuse_zero(divisor: Value) -> None:
    if type(divisor) is np.ndarray and not divisor.ndim:
        is_zero = not divisor.item()  # a number of Python, or a size
    else:
        is_zero = not context.is_tracer(divisor) and not np.asarray(divisor).all()
    if is_zero:
        raise ValueError("Integer division by zero")


def _pow(x: Value, y: Value) -> Value:
    if x.dtype.kind in "iu" and not context.is_tracer(y) and (np.asarray(y) < 0).any():
        raise ValueError("Integers to negative integer powers are not allowed")
    return _power(x, y)


@jax.jit
def _power(x: Value, y: Value) -> Value:
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return jnp.power(x, y)
    # The derivative by y is z log x: 0 where x has no logarithm, as TensorFlow says.
    no_log = (x == 0) if jnp.iscomplexobj(x) else (x <= 0)
    fixed = jnp.where(no_log, jax.lax.stop_gradient(y), y)
    return jnp.power(x, fixed)


# ---------------------------------------------------------------- comparison
def equal(x: Value, y: Value) -> Value:
    """Compare; text, too."""
    return jnp.asarray(x == y) if is_text(x) else jnp.equal(x, y)


def not_equal(x: Value, y: Value) -> Value:
    """Compare; text, too."""
    return jnp.asarray(x != y) if is_text(x) else jnp.not_equal(x, y)


# ---------------------------------------------------------------- sums of lists
def _add_n(inputs: list[Value]) -> Value:
    if not inputs:
        raise Refused(ValueError("Inputs must be an iterable of at least one Tensor."))
    if any(x.shape != inputs[0].shape for x in inputs):
        raise ValueError("Dimension 0 in both shapes must be equal: inputs have different shapes")
    return inputs[0] if len(inputs) == 1 else _sum_of(inputs)


@jax.jit
def _sum_of(inputs: list[Value]) -> Value:
    return sum(inputs[1:], inputs[0])


def _scalar_mul(scalar: Value, x: Value) -> Value:
    if scalar.ndim:
        raise Refused(ValueError(f"The input scalar must be a 0-D value. Received shape "
                                 f"{scalar.shape}."))  # fmt: skip
    return jnp.multiply(scalar, x)


def _signed(x: Value) -> None:
    if x.dtype.kind == "u":
        raise InvalidArgumentError(
            None, None, f"Value for attr 'T' of {x.dtype} is not in the list of allowed values"
        )


def _negative(x: Value) -> Value:
    _signed(x)
    return jnp.negative(x)


_ORDERED, _NUMBERS = "float int", "float complex int"

ROWS = [
    Row(
        "add", "x y", "x, y", add, op="AddV2", same=True, kinds="float complex int string",
        text=True, pairing=hinted, doc="Add, element by element; join text.",
        examples=(
            "math.add(r(2, 3), r(3))", "math.add(i(4), 2)", "math.add(r(0), 1.0)",
            "math.add(['a', 'b'], 'c')", "math.add(b(2), b(2))", "math.add(r(2), r(3))",
            "math.add(r(2), i(2))",
        ),
        aliases=("add",),
    ),
    Row(
        "subtract", "x y", "x, y", jnp.subtract, op="Sub", same=True, kinds=_NUMBERS,
        doc="Subtract, element by element.",
        examples=(
            "math.subtract(r(2, 3), r(3))", "math.subtract(i(4), 2)", "math.subtract(1.0, r(2))",
            "math.subtract(i(4), 1.5)",
        ),
        aliases=("subtract",),
    ),
    Row(
        "multiply", "x y", "x, y", jnp.multiply, op="Mul", same=True, kinds=_NUMBERS,
        doc="Multiply, element by element.",
        examples=(
            "math.multiply(r(2, 3), r(3))", "math.multiply(i(4), 2)", "math.multiply(z(2), z(2))",
        ),
        aliases=("multiply",),
    ),
    Row(
        "divide", "x y", "x, y", _truediv, op="RealDiv", same=True, pairing=_divided, text=True,
        doc="Divide; integers become floats.",
        examples=(
            "math.divide(r(2, 3), p(3))", "math.divide(i(4), 2)", "math.divide(1.0, [2.0, 0.0])",
            "math.divide(i(2), 1.5)",
        ),
        aliases=("divide",),
    ),
    Row(
        "truediv", "x y", "x, y", _truediv, op="RealDiv", same=True, pairing=_divided, text=True,
        doc="Divide; integers become floats.",
        examples=(
            "math.truediv(tf.constant([4, 5], tf.int8), 3)", "math.truediv(7, 2)",
            "math.truediv(b(2), b(2))", "math.truediv(r(2), r(3))",
        ),
        aliases=("truediv",),
    ),
    Row(
        "floordiv", "x y", "x, y", _floordiv, op="FloorDiv", same=True, kinds=_ORDERED,
        doc="Divide, and round down.",
        examples=(
            "math.floordiv(i(6), 3)", "math.floordiv(7.5, [2.0, -2.0])", "math.floordiv(i(2), 0)",
            "math.floordiv([1.0, -1.0], 0.0)",
        ),
        differs="In a compiled function, integers divided by zero are not refused.",
    ),
    Row(
        "floormod", "x y", "x, y", _floormod, op="FloorMod", same=True, kinds=_ORDERED,
        doc="Return the rest of a division that rounds down: of the sign of `y`.",
        examples=(
            "math.floormod(i(6), -3)", "math.floormod(r(3), p(3))", "math.floormod(i(2), 0)",
        ),
        differs="In a compiled function, integers divided by zero are not refused.",
        aliases=("math.mod",),
    ),
    Row(
        "pow", "x y", "x, y", _pow, op="Pow", same=True, kinds=_NUMBERS,
        doc="Raise to a power, element by element.",
        examples=(
            "math.pow(p(2, 3), r(3))", "math.pow(i(4), 2)", "math.pow(i(2), -1)",
            "math.pow([-2.0, 0.0, 3.0], 2.0)",
        ),
        differs="In a compiled function, negative powers of integers are not refused.",
        aliases=("pow",),
    ),
    Row(
        "negative", "x", "x", _negative, op="Neg", kinds=_NUMBERS, doc="Change the sign.",
        examples=("math.negative(r(2, 3))", "math.negative([1, -2])", "math.negative(b(2))"),
        aliases=("negative",),
    ),
    Row(
        "abs", "x", "x", magnitude, op="Abs", kinds=_NUMBERS,
        doc="Return the absolute value; of complex numbers, the real one.",
        examples=("math.abs(r(2, 3))", "math.abs([3 + 4j])", "math.abs(-3)", "math.abs(b(2))"),
        aliases=("abs",),
    ),
    Row(
        "scalar_mul", "scalar x", "scalar, x", _scalar_mul, op="Mul", same=True, kinds=_NUMBERS,
        by_rows="x",
        doc="Multiply by one number.",
        examples=("scalar_mul(2.0, r(3))", "scalar_mul(2, i(2, 2))", "scalar_mul(r(2), r(2))"),
        aliases=("scalar_mul",),
    ),
    Row(
        "add_n", "inputs*", "inputs", _add_n, op="AddN", same=True,
        doc="Add tensors of one shape.",
        examples=("add_n([r(2), r(2), r(2)])", "add_n([i(3)])", "add_n([r(2), r(3)])"),
        aliases=("add_n",),
    ),
    Row(
        "less", "x y", "x, y", jnp.less, op="Less", same=True, kinds=_ORDERED,
        doc="Tell where x < y.",
        examples=("math.less(r(4), r(4))", "math.less(i(2, 3), 2)", "math.less(b(2), b(2))"),
        aliases=("less",),
    ),
    Row(
        "less_equal", "x y", "x, y", jnp.less_equal, op="LessEqual", same=True, kinds=_ORDERED,
        doc="Tell where x <= y.",
        examples=(
            "math.less_equal([1.0, nan], 1.0)", "math.less_equal(i(2, 3), 2)",
            "math.less_equal(i(2), 1.5)",
        ),
        aliases=("less_equal",),
    ),
    Row(
        "greater", "x y", "x, y", jnp.greater, op="Greater", same=True, kinds=_ORDERED,
        doc="Tell where x > y.",
        examples=("math.greater(r(4), r(4))", "math.greater(i(2, 3), 2)", "math.greater(z(2), 1)"),
        aliases=("greater",),
    ),
    Row(
        "greater_equal", "x y", "x, y", jnp.greater_equal, op="GreaterEqual", same=True,
        kinds=_ORDERED, doc="Tell where x >= y.",
        examples=(
            "math.greater_equal([1.0, nan], 1.0)", "math.greater_equal(i(2, 3), 2)",
            "math.greater_equal(r(2), r(3))",
        ),
        aliases=("greater_equal",),
    ),
    Row(
        "equal", "x y", "x, y", equal, op="Equal", same=True, text=True,
        doc="Tell where x == y; NaN equals nothing.",
        examples=(
            "math.equal([1.0, nan], [1.0, nan])", "math.equal(i(2, 3), 2)",
            "math.equal(['a', 'b'], 'a')", "math.equal(i(2), i(3))", "math.equal(b(3), True)",
        ),
        aliases=("equal",),
    ),
    Row(
        "not_equal", "x y", "x, y", not_equal, op="NotEqual", same=True, text=True,
        doc="Tell where x != y.",
        examples=(
            "math.not_equal([1.0, nan], [1.0, nan])", "math.not_equal(i(2, 3), 2)",
            "math.not_equal(['a', 'b'], 'a')",
        ),
        aliases=("not_equal",),
    ),
    Row(
        "logical_and", "x y", "x, y", jnp.logical_and, op="LogicalAnd", same=True, kinds="bool",
        doc="Tell where both are true.",
        examples=(
            "math.logical_and(b(4), b(4))", "math.logical_and(b(2, 3), True)",
            "math.logical_and(i(2), i(2))",
        ),
        aliases=("logical_and",),
    ),
    Row(
        "logical_or", "x y", "x, y", jnp.logical_or, op="LogicalOr", same=True, kinds="bool",
        doc="Tell where one or both are true.",
        examples=(
            "math.logical_or(b(4), b(4))", "math.logical_or(b(2, 3), False)",
            "math.logical_or(1, b(2))",
        ),
        aliases=("logical_or",),
    ),
    Row(
        "logical_xor", "x y", "x, y", jnp.logical_xor, op="LogicalXor", same=True, kinds="bool",
        doc="Tell where one of both is true.",
        examples=(
            "math.logical_xor(b(4), b(4))", "math.logical_xor(b(2, 3), True)",
            "math.logical_xor(r(2), r(2))",
        ),
    ),
    Row(
        "logical_not", "x", "x", jnp.logical_not, op="LogicalNot", kinds="bool",
        doc="Tell where it is false.",
        examples=(
            "math.logical_not(b(4))", "math.logical_not([True, False])", "math.logical_not(i(2))",
        ),
        aliases=("logical_not",),
    ),
]  # fmt: skip
"""Rows of `tf.math`."""

TOP_LEVEL = [
    Row(
        "truncatediv", "x y", "x, y", _truncatediv, op="TruncateDiv", same=True, kinds=_ORDERED,
        doc="Divide, and round towards zero.",
        examples=("truncatediv(i(6), -3)", "truncatediv(i(6), 4)", "truncatediv([7.5, -7.5], 2.0)"),
        differs="In a compiled function, integers divided by zero are not refused.",
    ),
    Row(
        "truncatemod", "x y", "x, y", _truncatemod, op="TruncateMod", same=True, kinds=_ORDERED,
        doc="Return the rest of a division that rounds towards zero: of the sign of `x`.",
        examples=("truncatemod(i(6), -3)", "truncatemod(r(3), p(3))", "truncatemod(7, -2)"),
        differs="In a compiled function, integers divided by zero are not refused.",
    ),
    Row(
        "realdiv", "x y", "x, y", _truediv, op="RealDiv", same=True, kinds="float complex",
        doc="Divide floats.",
        examples=("realdiv(r(3), p(3))", "realdiv(1.0, [2.0, 0.0])", "realdiv(z(2), z(2))"),
    ),
]  # fmt: skip
"""Rows that `tf` alone has."""
