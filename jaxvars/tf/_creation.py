"""Operations at the top level that make tensors: `tf.zeros`, `tf.range`, `tf.cast`, ...

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

from jaxvars import _open_values, _trace
from jaxvars._open_program import is_open
from jaxvars.tf import _static
from jaxvars.tf._convert import dtype_of, is_text, to_array, unsupported
from jaxvars.tf._dtypes import DType, as_dtype, float64, int32
from jaxvars.tf._rows import Refused, Row, operations
from jaxvars.tf.errors import UnimplementedError

Value: TypeAlias = Any


# ---------------------------------------------------------------- sizes and types
def sizes_of(shape: Any, integers: bool = True) -> tuple[int, ...]:
    """Return a shape argument as a tuple.

    Args:
        shape: a size, a list of sizes, which may be tensors, a tensor, or a TensorShape.
        integers: say that other numbers are of the wrong type (True) or an invalid argument.

    Raises:
        Refused: when it is no shape.
        InvalidArgumentError: when it is not known while a function is traced.
    """
    if type(shape) in (tuple, list) and all(type(size) is int for size in shape):
        return tuple(shape)
    if type(shape) is int:
        return (shape,)
    try:
        array = _sizes_array(shape)
    except (TypeError, ValueError) as error:
        raise Refused(error) from None
    if array.dtype.kind not in "iuO":
        if integers:
            raise Refused(TypeError(f"Cannot convert {shape!r} to EagerTensor of dtype int32"))
        raise ValueError(
            f"Value for attr 'Tshape' of {array.dtype} is not in the list of allowed values: "
            "int32, int64"
        )
    return tuple(map(_static.as_size, np.asarray(array).reshape(-1)))


def _sizes_array(shape: Any) -> np.ndarray:
    if isinstance(shape, list | tuple) and any(size is None for size in shape):
        raise unsupported(None)
    if isinstance(shape, list | tuple) and any(map(_is_symbolic, shape)):
        return _static.known(shape, "a shape")
    array = np.zeros(0, np.int32) if isinstance(shape, list | tuple) and not shape else None
    return _static.known(to_array(shape), "a shape") if array is None else array


def _is_symbolic(size: Any) -> bool:
    return (type(size) is not int and not _static.is_known(size)) or is_open(size)


def _not_negative(sizes: tuple[int, ...]) -> tuple[int, ...]:
    for size in sizes:
        if type(size) is int and size < 0:
            raise ValueError(f"Dimension {size} must be >= 0")
    return sizes


def type_of(dtype: Any) -> DType:
    """Return the type that a dtype argument stands for.

    Raises:
        Refused: when there is none.
    """
    try:
        return as_dtype(dtype)
    except TypeError as error:
        raise Refused(error) from None


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


def _complete(sizes: tuple[int, ...], x: Value) -> tuple[int, ...]:
    """Return sizes with the one that was left open."""
    open_ = [i for i, size in enumerate(sizes) if type(size) is int and size == -1]
    if len(open_) > 1:
        raise ValueError(f"Only one input size may be -1, not both {open_[0]} and {open_[1]}")
    for i, size in enumerate(sizes):
        if type(size) is int and size < -1:
            raise ValueError(f"Size {i} must be non-negative, not {size}")
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
    wanted, sizes = type_of(dtype), _not_negative(sizes_of(shape))
    return np.full(sizes, b"", object) if wanted.is_string else jnp.zeros(sizes, wanted.dtype)


def _ones(shape: Any, dtype: Any) -> Value:
    wanted, sizes = type_of(dtype), _not_negative(sizes_of(shape))
    if wanted.is_string:
        raise Refused(TypeError("Cannot convert 1 to EagerTensor of dtype string"))
    return jnp.ones(sizes, wanted.dtype)


def _fill(dims: Any, value: Value) -> Value:
    if value.ndim:
        raise ValueError(f"value must represent a scalar, got shape {list(value.shape)}")
    sizes = _not_negative(sizes_of(dims, integers=False))
    return np.full(sizes, value[()], object) if is_text(value) else _full(value, sizes)


_full = jax.jit(jnp.broadcast_to, static_argnums=1)


def _zeros_like(x: Value, dtype: Any) -> Value:
    return _zeros(x.shape, dtype_of(x) if dtype is None else dtype)


def _ones_like(x: Value, dtype: Any) -> Value:
    if is_text(x) and dtype is None:
        raise ValueError("Value for attr 'T' of string is not in the list of allowed values")
    return _ones(x.shape, dtype_of(x) if dtype is None else dtype)


def _eye(num_rows: Any, num_columns: Any, batch_shape: Any, dtype: Any) -> Value:
    wanted = type_of(dtype)
    (rows,) = _not_negative(sizes_of(num_rows))
    (columns,) = (rows,) if num_columns is None else _not_negative(sizes_of(num_columns))
    batch = () if batch_shape is None else sizes_of(batch_shape)
    return jnp.broadcast_to(jnp.eye(rows, columns, dtype=wanted.dtype), (*batch, rows, columns))


# ---------------------------------------------------------------- sequences
_LADDER = ("int32", "int64", "float16", "bfloat16", "float32", "float64")
_LONG = 1024


def _range(start: Any, limit: Any, delta: Any, dtype: Any) -> Value:
    if limit is None:
        start, limit = 0, start
    wanted = None if dtype is None else type_of(dtype)
    try:
        ends = [_end(x, wanted) for x in (start, limit, delta)]
    except (TypeError, ValueError) as error:
        raise Refused(error) from None
    for name, end in zip(("start", "limit", "delta"), ends, strict=True):
        if end.ndim:
            raise ValueError(f"{name} must be a scalar, not shape {list(end.shape)}")
    if any(end.dtype == object for end in ends):
        return _open_sequence(ends, wanted or int32)
    names = [dtype_of(end).name for end in ends]
    kind = wanted or as_dtype(max(names, key=lambda n: _LADDER.index(n) if n in _LADDER else 0))
    first, last, step = (end.astype(kind.dtype) for end in ends)
    return _sequence(first, _length(first, last, step), step)


def _end(x: Any, wanted: DType | None) -> np.ndarray:
    if type(x) is int and abs(x) < 2**31 and wanted is None:
        return np.asarray(x, np.int32)  # the common case, in a hurry
    return _static.known(to_array(x, hint=wanted), "a range")


def _open_sequence(ends: list[np.ndarray], kind: DType) -> Value:
    """Return a sequence whose length is an open size."""
    first, last, step = (_static.as_size(end[()]) for end in ends)
    if step != 1:
        raise _static.refused("A range between open sizes goes in steps of 1")
    return jnp.arange(last - first).astype(kind.dtype) + jnp.asarray(first).astype(kind.dtype)


def _length(first: np.ndarray, last: np.ndarray, step: np.ndarray) -> int:
    if step == 0:
        raise ValueError("Requires delta != 0: 0")
    if (step > 0 and first > last) or (step < 0 and first < last):
        sign = "<= limit when delta > 0" if step > 0 else ">= limit when delta < 0"
        raise ValueError(f"Requires start {sign}: {first}/{last}")
    if step.dtype.kind in "iu":
        return -((int(first) - int(last)) // int(step))
    return math.ceil(abs((float(last) - float(first)) / float(step)))


def _sequence(first: np.ndarray, length: int, step: np.ndarray) -> Value:
    if length > _LONG:
        return jnp.arange(length).astype(first.dtype) * step + first
    with _trace.at(_trace.EVAL):
        return jnp.asarray(np.arange(length).astype(first.dtype) * step + first)


def _ends(start: Any, stop: Any, op: str) -> tuple[Value, Value]:
    if type(start) is float and type(stop) is float and abs(start) + abs(stop) < 1e38:
        return np.float32(start), np.float32(stop)  # the common case, in a hurry
    first = to_array(start)
    try:
        last = to_array(stop, dtype_of(first))
    except ValueError as error:
        raise ValueError(f"stop: {error}") from None
    if first.dtype.kind in "iub":
        return first.astype(float64.dtype), last.astype(float64.dtype)
    return first, last


def _linspace(start: Value, stop: Value, num: Any, axis: Any) -> Value:
    count = _static.one_int(num, "num")
    if count < 0:
        raise ValueError(f"Dimension {count} must be >= 0")
    place = axis if type(axis) is int else _static.one_int(axis, "axis")
    return jnp.linspace(start, stop, count, axis=place, dtype=start.dtype)


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
    Row(
        "range", "", "start, limit=None, delta=1, dtype=None", _range,
        doc="Make a sequence of numbers, from `start` to before `limit`.",
        examples=(
            "range(5)", "range(3, 18, 3)", "range(3, 1, -0.5)", "range(0, 1, 0.1)",
            "range(3, tf.constant(5, tf.int64))", "range(1, 5, dtype=tf.float32)", "range(5, 2)",
            "range(1, 5, 0)", "range([1, 2])", "range(0)",
        ),
    ),
    Row(
        "linspace", "start stop", "start, stop, num, axis=0", _linspace, op="LinSpace", same=True,
        pairing=_ends, doc="Make a sequence of numbers with equal distances, both ends included.",
        examples=(
            "linspace(0.0, 1.0, 3)", "linspace([0.0, 5.0], [10.0, 40.0], 5, axis=-1)",
            "linspace(0, 1, 3)", "linspace(0.0, 1.0, 1)",
            "linspace(0.0, tf.cast(1.0, 'float64'), 2)",
            "linspace(r(2), r(2), 3)",
        ),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS)
