"""Operations at the top level that make tensors: `tf.zeros`, `tf.cast`, `tf.reshape`, ...

Rules this file keeps:
- sizes are known: `tf.shape` is a number on the host, in a compiled function, too, and so is what
  is computed of it;
- text is on the host.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.symbolic import propagate as _open_values
from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.arrays.sizes import not_negative, sizes_of, type_of
from jaxvars.tf.errors import UnimplementedError
from jaxvars.tf.registry.rows import Refused, Row, operations
from jaxvars.tf.tensors.convert import dtype_of, is_text
from jaxvars.tf.tensors.dtypes import int32

Value: TypeAlias = Any


# ---------------------------------------------------------------- sizes and types
def _cast(x: Value, dtype: Any) -> Value:
    wanted = type_of(dtype)
    if wanted == dtype_of(x):
        return x
    if wanted.is_string or is_text(x):
        raise UnimplementedError(
            None,
            None,
            f"Cast {dtype_of(x).name} to {wanted.name} is not supported [Op:Cast] name: ",
        )
    if x.dtype.kind == "c" and not wanted.is_complex:
        x = jnp.real(x)
    if wanted.is_integer and wanted.size < int32.size and x.dtype.kind not in "iub":
        x = x.astype(jnp.int32)  # what does not fit loses its high bits, as in TensorFlow
    return x.astype(wanted.dtype)


def _shape(x: Value, out_type: Any) -> Value:
    dtype = (int32 if out_type is None else type_of(out_type)).dtype
    is_static = all(type(size) is int for size in x.shape)
    return np.array(x.shape, dtype) if is_static else _open_values.array_of(x.shape, dtype)


def _size(x: Value, out_type: Any) -> Value:
    dtype = (int32 if out_type is None else type_of(out_type)).dtype
    count = math.prod(x.shape)
    return np.array(count, dtype) if type(count) is int else _open_values.number_of(count, dtype)


def _rank(x: Value) -> np.ndarray:
    return np.array(x.ndim, np.int32)


def _identity(x: Value) -> Value:
    return x.copy() if isinstance(x, np.ndarray) else jnp.copy(x)


def _reshape(x: Value, shape: Any) -> Value:
    return x.reshape(_complete(sizes_of(shape, integers=False), x))


_MOST_DIMENSIONS = 253  # of a tensor in TensorFlow


def _complete(sizes: tuple[int, ...], x: Value) -> tuple[int, ...]:
    """Return sizes with the one that was left open."""
    open_ = [i for i, size in enumerate(sizes) if type(size) is int and size == -1]
    if len(open_) > 1:
        raise ValueError(f"Only one input size may be -1, not both {open_[0]} and {open_[1]}")
    for i, size in enumerate(sizes):
        if type(size) is int and size < -1:
            raise ValueError(f"Size {i} must be non-negative, not {size}")
    if len(sizes) > _MOST_DIMENSIONS:
        raise ValueError(f"too many dimensions: {len(sizes)}, and at most {_MOST_DIMENSIONS}")
    have = math.prod(x.shape)
    if open_:
        return _with_open(sizes, open_[0], x)
    if math.prod(sizes) != have:
        raise ValueError(
            f"Input to reshape is a tensor with {have} values, but the requested shape has "
            f"{math.prod(sizes)}"
        )
    return sizes


def _with_open(sizes: tuple[int, ...], at: int, x: Value) -> tuple[int, ...]:
    if any(map(is_open, (*sizes, *x.shape))):  # JAX divides expressions better
        return sizes
    rest = math.prod(size for i, size in enumerate(sizes) if i != at and size)
    have = math.prod(size for size in x.shape if size or 0 not in sizes)
    if not rest or have % rest:
        raise ValueError(
            f"Input to reshape is a tensor with {have} values, but the requested shape requires a "
            f"multiple of {rest}"
        )
    return (*sizes[:at], have // rest, *sizes[at + 1 :])


# ---------------------------------------------------------------- filled tensors
def _zeros(shape: Any, dtype: Any) -> Value:
    wanted, sizes = type_of(dtype), not_negative(sizes_of(shape))
    return np.full(sizes, b"", object) if wanted.is_string else jnp.zeros(sizes, wanted.dtype)


def _ones(shape: Any, dtype: Any) -> Value:
    wanted, sizes = type_of(dtype), not_negative(sizes_of(shape))
    if wanted.is_string:
        raise Refused(TypeError("Cannot convert 1 to EagerTensor of dtype string"))
    return jnp.ones(sizes, wanted.dtype)


def _fill(dims: Any, value: Value) -> Value:
    if value.ndim:
        raise ValueError(f"value must represent a scalar, got shape {list(value.shape)}")
    sizes = not_negative(sizes_of(dims, integers=False))
    if is_text(value):
        return np.broadcast_to(value, sizes).copy()  # np.full cuts zero characters at the end off
    return _full(value, sizes)


_full = jax.jit(jnp.broadcast_to, static_argnums=1)


def _zeros_like(x: Value, dtype: Any) -> Value:
    return _zeros(x.shape, dtype_of(x) if dtype is None else dtype)


def _ones_like(x: Value, dtype: Any) -> Value:
    if is_text(x) and dtype is None:
        raise ValueError("Value for attr 'T' of string is not in the list of allowed values")
    return _ones(x.shape, dtype_of(x) if dtype is None else dtype)


def _eye(num_rows: Any, num_columns: Any, batch_shape: Any, dtype: Any) -> Value:
    wanted = type_of(dtype)
    (rows,) = not_negative(sizes_of(num_rows))
    (columns,) = (rows,) if num_columns is None else not_negative(sizes_of(num_columns))
    batch = () if batch_shape is None else sizes_of(batch_shape)
    return jnp.broadcast_to(jnp.eye(rows, columns, dtype=wanted.dtype), (*batch, rows, columns))


ROWS = [
    Row(
        "cast", "x", "x, dtype", _cast, text=True, by_rows="x", doc="Convert to another type.",
        examples=(
            "cast([1.7, -1.7, 0.0], tf.int32)", "cast(i(4), tf.bool)", "cast(b(3), tf.float32)",
            "cast(z(2), tf.float32)", "cast([-1.5, 300.0], tf.uint8)", "cast(r(2), 'complex64')",
            "cast('a', tf.int32)", "cast(r(2), tf.bfloat16)",
        ),
        differs="NaN and what is too large become other integers: there is no right one.",
    ),
    Row(
        "shape", "input", "input, out_type=None", _shape, text=True,
        doc="Return the sizes of the dimensions.",
        examples=("shape(r(2, 3))", "shape(1.0, tf.int64)", "shape([['a'], ['b']])"),
    ),
    Row(
        "size", "input", "input, out_type=None", _size, text=True,
        doc="Return the number of elements.",
        examples=("size(r(2, 3))", "size([], out_type=tf.int64)", "size('a')"),
    ),
    Row(
        "rank", "input", "input", _rank, text=True, doc="Return the number of dimensions.",
        examples=("rank(r(2, 3))", "rank(1)", "rank([['a']])"),
    ),
    Row(
        "identity", "input", "input", _identity, text=True, by_rows="input",
        doc="Return a tensor of its own.",
        examples=("identity(r(2, 3))", "identity([1, 2])", "identity(['a'])"),
    ),
    Row(
        "reshape", "tensor", "tensor, shape", _reshape, text=True,
        doc="Give another shape to the same elements.",
        examples=(
            "reshape(r(2, 3), [3, -1])", "reshape(i(4), [])", "reshape(r(4), [-1, 3])",
            "reshape(r(0, 2), [0, -1])", "reshape(['a', 'b'], (2, 1))", "reshape(r(4), -1)",
            "reshape(r(4), [2.0, 2.0])", "reshape(r(4), [-1, -1])", "reshape(r(4), [None, 2])",
        ),
    ),
    Row(
        "zeros", "", "shape, dtype='float32'", _zeros, op="Fill", doc="Make a tensor of zeros.",
        examples=(
            "zeros((2, 3))", "zeros([], tf.int64)", "zeros(2, tf.string)", "zeros(-1)",
            "zeros([2, i(1)[0] * 0])", "zeros(2.5)", "zeros(None)",
            "zeros(tf.constant([1, 2]), tf.bool)",
        ),
    ),
    Row(
        "ones", "", "shape, dtype='float32'", _ones, op="Fill", doc="Make a tensor of ones.",
        examples=("ones((2, 3))", "ones(2, tf.bool)", "ones(0)", "ones(2, tf.string)"),
    ),
    Row(
        "fill", "value", "dims, value", _fill, text=True, doc="Make a tensor of one value.",
        examples=(
            "fill([2, 3], 9)", "fill([2], 'a')", "fill([], 1.0)", "fill([2], [1, 2])",
            "fill([-1], 1.0)", "fill([2.0], 1)", "fill([2], r(1)[0])",
        ),
    ),
    Row(
        "zeros_like", "input", "input, dtype=None", _zeros_like, text=True,
        doc="Make a tensor of zeros with the shape of another one.",
        examples=("zeros_like(r(2, 3))", "zeros_like(['a'])", "zeros_like([1, 2], tf.float64)"),
    ),
    Row(
        "ones_like", "input", "input, dtype=None", _ones_like, text=True,
        doc="Make a tensor of ones with the shape of another one.",
        examples=("ones_like(r(2, 3))", "ones_like(['a'])", "ones_like([1, 2], dtype='float64')"),
    ),
    Row(
        "eye", "", "num_rows, num_columns=None, batch_shape=None, dtype='float32'", _eye, op="Fill",
        doc="Make an identity matrix, or a stack of them.",
        examples=(
            "eye(2)", "eye(2, 3, dtype=tf.int32)", "eye(1, num_columns=2, batch_shape=[2])",
            "eye(-1)",
        ),
        aliases=("linalg.eye",),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="")
