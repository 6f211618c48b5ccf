"""The part of `tf.math` that operators are made of: arithmetic, comparison, logic, `tf.matmul`.

Rules this file keeps:
- results have the types that TensorFlow gives: integers divide to float64, `floordiv` rounds down;
- integers that are divided by zero are refused, in compiled functions when they run; inside of a
  transform of JAX, or of a `tf.custom_gradient` in a function, they are not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.checks import require
from jaxvars.core.frames import LOCAL
from jaxvars.derivatives.scaling import reads_nothing
from jaxvars.tensors.quick_jit import QuickJit
from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.math.elements import flat, floor, magnitude
from jaxvars.tf.registry.rows import Refused, elementwise, format_shape, op
from jaxvars.tf.tensors.convert import (
    dtype_of,
    is_tensor_like,
    is_text,
    match_dtypes,
    mixed_error,
    pair,
    string_array,
    to_array,
)
from jaxvars.tf.tensors.dtypes import as_dtype, divisible
from jaxvars.tf.tensors.handles import is_handles, on_strings
from jaxvars.tf.tensors.tensor import Tensor, typed
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_ORDERED, _NUMBERS = "float int", "float complex int"


# ---------------------------------------------------------------- arithmetic
def pair_hinted(x: Any, y: Any, op: str) -> tuple[Array, Array]:
    """Return two operands as arrays: `y` that can't have the type of `x` has another one.

    What is NumPy's as `x` has its own type, whatever `y` is.

    Raises:
        InvalidArgumentError: when the types differ.
    """
    x = typed(x)
    is_number = (
        type(x) is Tensor and type(y) is int and getattr(x._array.dtype, "kind", "s") in "ifc"
    )
    if is_number or is_tensor_like(y):  # else only `y` is of no type yet
        return pair(x, y, op)
    a = to_array(x)
    return pair(Tensor(a), Tensor(to_array(y, hint=dtype_of(a))), op)


def _pair_dividend(x: Any, y: Any, op: str) -> tuple[Array, Array]:
    return pair_up(typed(x), y, op)


def pair_up(x: Any, y: Any, op: str) -> tuple[Value, Value]:
    """Return two operands of a division as arrays; raise TypeError when their types differ."""
    if type(x) is Tensor and type(y) in (int, float) and x._array.dtype.kind in "fc":
        return x._array, np.asarray(y, x._array.dtype)  # the common case, fast
    a = to_array(x, hint=dtype_of(to_array(y)) if is_tensor_like(y) else None)
    b = to_array(y, hint=dtype_of(a))
    if a.dtype != b.dtype:
        raise TypeError(
            f"`x` and `y` must have the same dtype, got {dtype_of(a)!r} != {dtype_of(b)!r}."
        )
    return a, b


@op(
    "math.add", "x y", op="AddV2", same=True, kinds="float complex int string", strings=True,
    pairing=pair_hinted, aliases=("add",), example="r(2, 3), r(3)",
)  # fmt: skip
def add(x: Array, y: Array) -> Array:
    """Add, element by element; join strings."""
    if is_text(x) or is_handles(x):
        return on_strings(_join)(x, y)
    return _add(x, y)


_add, _divide = QuickJit(jnp.add, jnp.add), QuickJit(jnp.divide, jnp.divide)


def _join(x: Value, y: Value) -> Value:
    return string_array(np.asarray(x + y, dtype=object))


def _truediv(x: Array, y: Array) -> Array:
    kind = x.dtype.kind
    if kind == "b" or is_text(x):
        raise Refused(TypeError(f"Invalid dtype {dtype_of(x)!r} in __truediv__. Expected a number"))
    return _divide(divisible(x), divisible(y))


@op(
    "math.divide",
    "x y",
    op="RealDiv",
    same=True,
    strings=True,
    pairing=pair_up,
    aliases=("divide",),
)
def divide(x: Array, y: Array) -> Array:
    """Divide; integers become floats.

    Example: `tf.math.divide(r(2, 3), p(3))`.
    """
    return _truediv(x, y)


@op(
    "math.truediv", "x y", op="RealDiv", same=True, strings=True, pairing=_pair_dividend,
    aliases=("truediv",), example="tf.constant([4, 5], tf.int8), 3",
)  # fmt: skip
def truediv(x: Array, y: Array) -> Array:
    """Divide; integers become floats."""
    return _truediv(x, y)


@op("realdiv", "x y", op="RealDiv", same=True, kinds="float complex", example="r(3), p(3)")
def realdiv(x: Array, y: Array) -> Array:
    """Divide floats."""
    return _truediv(x, y)


@op("math.floordiv", "x y", op="FloorDiv", same=True, kinds=_ORDERED, example="i(6), 3")
def floordiv(x: Array, y: Array) -> Array:
    """Divide, and round down.

    Differs from TensorFlow: In a `jax.jit` or other transform of JAX's own, and in a
    `tf.custom_gradient` of a compiled function, integers divided by zero are not refused.
    """
    if x.dtype.kind in "iu":
        _refuse_zero(y)
        return jnp.floor_divide(x, y)
    return floor.__wrapped__(jnp.divide(x, y))


@op("math.floormod", "x y", op="FloorMod", same=True, kinds=_ORDERED, aliases=("math.mod",))
def floormod(x: Array, y: Array) -> Array:
    """Return the rest of a division that rounds down: of the sign of `y`.

    Example: `tf.math.floormod(i(6), -3)`.

    Differs from TensorFlow: as for `floordiv`.
    """
    if x.dtype.kind in "iu":
        _refuse_zero(y)
    return jnp.mod(x, y)


@op("truncatediv", "x y", op="TruncateDiv", same=True, kinds=_ORDERED, example="i(6), -3")
def truncatediv(x: Array, y: Array) -> Array:
    """Divide, and round towards zero."""
    if x.dtype.kind not in "iu":
        return flat(jnp.trunc(jnp.divide(x, y)))
    _refuse_zero(y)
    return jax.lax.div(*jnp.broadcast_arrays(x, y))


@op("truncatemod", "x y", op="TruncateMod", same=True, kinds=_ORDERED, example="i(6), -3")
def truncatemod(x: Array, y: Array) -> Array:
    """Return the rest of a division that rounds towards zero: of the sign of `x`."""
    if x.dtype.kind in "iu":
        _refuse_zero(y)
    return jnp.fmod(x, y)


def _refuse_zero(divisor: Array) -> None:
    if type(divisor) is np.ndarray and not divisor.ndim and divisor.item():
        return  # a number of Python, or a size
    _require(divisor, lambda y: y != 0, "Integer division by zero")


def _require(y: Array, is_good: Callable[[Value], Value], message: str) -> None:
    """Raise unless all of `y` is good: now, or in a function when that runs, if it does."""
    is_known = not context.is_tracer(y)
    if is_known and np.all(is_good(np.asarray(y))):
        return
    if LOCAL.frame.keeps_signals():
        require(is_good(jnp.asarray(y)), message)
    elif is_known:  # else it would be a callback, which is slow and cannot be exported
        raise ValueError(message)


@op("math.pow", "x y", same=True, kinds=_NUMBERS, aliases=("pow",), example="p(2, 3), r(3)")
def pow_(x: Array, y: Array) -> Array:
    """Raise to a power, element by element."""
    if x.dtype.kind == "i":
        _require(y, lambda y: y >= 0, "Integers to negative integer powers are not allowed")
    return _power(x, y)


@jax.jit
def _power(x: Array, y: Array) -> Array:
    floats = jnp.issubdtype(x.dtype, jnp.inexact)
    return _power_of_floats(x, y) if floats else _power_of_integers(x, y)


def _power_of_integers(x: Array, y: Array) -> Array:
    """Return powers modulo 2**bits; jnp.power reads the last 6 bits of an exponent alone."""
    shape = jnp.broadcast_shapes(x.shape, y.shape)

    def square(state: Any) -> Any:
        base, exponent, product = state
        product = jnp.where(exponent & 1, product * base, product)
        return base * base, exponent >> 1, product

    start = jnp.broadcast_to(x, shape), jnp.maximum(y, 0), jnp.ones(shape, x.dtype)
    return jax.lax.while_loop(lambda state: (state[1] > 0).any(), square, start)[2]


@jax.custom_jvp
def _power_of_floats(x: Array, y: Array) -> Array:
    return jnp.power(x, y)


@_power_of_floats.defjvp
@reads_nothing
def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (x, y), (by_x, by_y) = primals, tangents
    z = _power_of_floats(x, y)
    # The derivative by y is z log x: z times 0 where x has no logarithm, as TensorFlow says.
    has_log = (x != 0) if jnp.iscomplexobj(x) else (x > 0)
    log = jnp.where(has_log, jnp.log(jnp.where(has_log, x, 1)), 0)
    return z, by_x * (y * _power_of_floats(x, y - 1)) + by_y * (z * log)


def _check_signed(x: Array) -> None:
    if x.dtype.kind == "u":
        raise InvalidArgumentError(
            None, None, f"Value for attr 'T' of {x.dtype} is not in the list of allowed values"
        )


@op("math.negative", "x", op="Neg", kinds=_NUMBERS, aliases=("negative",), example="r(2, 3)")
def negative(x: Array) -> Array:
    """Change the sign."""
    _check_signed(x)
    return jnp.negative(x)


@op("math.abs", "x", kinds=_NUMBERS, aliases=("abs",), example="r(2, 3)")
def abs_(x: Array) -> Array:
    """Return the absolute value; of complex numbers, the real one."""
    return magnitude(x)


@op(
    "math.scalar_mul", "scalar x", op="Mul", same=True, kinds=_NUMBERS, by_rows="x",
    aliases=("scalar_mul",),
)  # fmt: skip
def scalar_mul(scalar: Array, x: Array) -> Array:
    """Multiply by one number.

    Example: `tf.scalar_mul(2.0, r(3))`.
    """
    if scalar.ndim:
        raise Refused(ValueError(f"The input scalar must be a 0-D value. Received shape "
                                 f"{scalar.shape}."))  # fmt: skip
    return jnp.multiply(scalar, x)


# ---------------------------------------------------------------- comparison
@op("math.equal", "x y", op="Equal", same=True, strings=True, aliases=("equal",))
def equal(x: Array, y: Array) -> Array:
    """Return the truth value of x == y, element by element; NaN equals nothing.

    Example: `tf.math.equal([1.0, nan], [1.0, nan])`.
    """
    return jnp.asarray(x == y) if is_text(x) else jnp.equal(x, y)


@op("math.not_equal", "x y", op="NotEqual", same=True, strings=True, aliases=("not_equal",))
def not_equal(x: Array, y: Array) -> Array:
    """Return the truth value of x != y, element by element.

    Example: `tf.math.not_equal([1.0, nan], [1.0, nan])`.
    """
    return jnp.asarray(x != y) if is_text(x) else jnp.not_equal(x, y)


# ---------------------------------------------------------------- sums of lists
@op("math.add_n", "inputs*", aliases=("add_n",))
def add_n(inputs: list[Array]) -> Array:
    """Add tensors of one shape.

    Example: `tf.add_n([r(2), r(2), r(2)])`.
    """
    if not inputs:
        raise Refused(ValueError("Inputs must be an iterable of at least one Tensor."))
    match_dtypes([Tensor(x) for x in inputs], "AddN")
    if any(x.shape != inputs[0].shape for x in inputs):
        raise ValueError("Dimension 0 in both shapes must be equal: inputs have different shapes")
    return inputs[0] if len(inputs) == 1 else _sum_of(inputs)


@jax.jit
def _sum_of(inputs: list[Array]) -> Array:
    return sum(inputs[1:], inputs[0])


# ---------------------------------------------------------------- logic
def _pair_matrices(a: Any, b: Any, op: str) -> tuple[Array, Array]:
    """Return two matrices as arrays: of two types if their product has a third, or one of them."""
    if is_tensor_like(a) and is_tensor_like(b):
        x, y = to_array(a), to_array(b)
        if {x.dtype.name, y.dtype.name} in _MIXED:
            return x, y
        a, b = Tensor(x), Tensor(y)  # a variable is read once
    return pair_hinted(a, b, op)


_MIXED = ({"int8", "uint8"}, {"bfloat16", "float32"})


@op(
    "matmul", "a b", op="MatMul", same=True, kinds="float complex int", pairing=_pair_matrices,
    aliases=("linalg.matmul",), example="r(2, 3), r(3, 2)",
)  # fmt: skip
def matmul(
    a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False,
    adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
    b_is_sparse: bool = False, output_type: Any = None,
) -> Array:  # fmt: skip
    """Multiply matrices, or stacks of them."""
    check_ranks(a, b)
    if transpose_a or adjoint_a:
        a = _transpose(a, "a", transpose_a, adjoint_a)
    if transpose_b or adjoint_b:
        b = _transpose(b, "b", transpose_b, adjoint_b)
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"Matrix size-incompatible: In[0]: {format_shape(a)}, In[1]: {format_shape(b)}"
        )
    wanted = None if output_type is None else as_dtype(output_type).dtype
    if wanted is None and a.dtype != b.dtype and a.dtype.kind in "iu":
        raise mixed_error("MatMul", 1, dtype_of(a), dtype_of(b))
    return jnp.matmul(a, b, preferred_element_type=wanted)


def check_ranks(a: Array, b: Array) -> None:
    """Raise ValueError unless both are matrices, or batches of them."""
    for i, x in enumerate((a, b)):
        if x.ndim < 2:
            raise ValueError(f"In[{i}] ndims must be >= 2: {x.ndim}")


def _transpose(x: Array, name: str, transpose: bool, adjoint: bool) -> Array:
    if transpose and adjoint:
        raise Refused(
            ValueError(
                f"Only one of `transpose_{name}` and `adjoint_{name}` can be True. Received "
                f"`transpose_{name}`={transpose}, `adjoint_{name}`={adjoint}."
            )
        )
    turned = jnp.swapaxes(x, -1, -2)
    return jnp.conj(turned) if adjoint else turned


# fmt: off
_row = functools.partial(elementwise, tensors="x y", module=__name__)
subtract = _row("subtract", jnp.subtract, "Subtract, element by element.", "subtract",
                kinds=_NUMBERS, title="Sub", example="r(2, 3), r(3)")
multiply = _row("multiply", jnp.multiply, "Multiply, element by element.", "multiply",
                kinds=_NUMBERS, title="Mul", example="r(2, 3), r(3)")
less = _row("less", jnp.less, "Return whether x < y, element by element.", "less", kinds=_ORDERED,
            example="r(4), r(4)")
less_equal = _row("less_equal", jnp.less_equal, "Return whether x <= y, element by element.",
                  "less_equal", kinds=_ORDERED, example="[1.0, nan], 1.0")
greater = _row("greater", jnp.greater, "Return whether x > y, element by element.", "greater",
               kinds=_ORDERED, example="r(4), r(4)")
greater_equal = _row("greater_equal", jnp.greater_equal,
                     "Return whether x >= y, element by element.", "greater_equal", kinds=_ORDERED,
                     example="[1.0, nan], 1.0")
logical_and = _row("logical_and", jnp.logical_and, "Return whether both hold, element by element.",
                   "logical_and", kinds="bool", example="b(4), b(4)")
logical_or = _row("logical_or", jnp.logical_or, "Return whether one holds, element by element.",
                  "logical_or", kinds="bool", example="b(4), b(4)")
logical_xor = _row("logical_xor", jnp.logical_xor,
                   "Return whether one alone holds, element by element.", kinds="bool",
                   title="LogicalXor", example="b(4), b(4)")
logical_not = _row("logical_not", jnp.logical_not,
                   "Return whether it does not hold, element by element.", "logical_not",
                   tensors="x", kinds="bool", example="b(4)")
# fmt: on
