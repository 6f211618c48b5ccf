"""Operations at the top level that make tensors: `tf.zeros`, `tf.cast`, `tf.one_hot`, ...

Rules this file keeps:
- sizes are known: `tf.shape` is a number on the host, in a compiled function, too, and so is what
  is computed of it;
- strings are on the host.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.checks import require
from jaxvars.symbolic import propagate as _open_values
from jaxvars.symbolic.specialize import MAY_CHECK, is_open
from jaxvars.tensors.dtypes import as_dtype as core_dtype
from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.arrays.sizes import not_negative, sizes_of, type_of
from jaxvars.tf.errors import UnimplementedError
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors.convert import dtype_of, is_text, to_array
from jaxvars.tf.tensors.dtypes import any_dtype, as_dtype, float32, int32
from jaxvars.tf.tensors.handles import lift
from jaxvars.tf.tensors.static import not_too_many, one_axis, one_int, refused, require_known
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value


# ---------------------------------------------------------------- sizes and types
@op("cast", "x", strings=True, by_rows="x", example="[1.7, -1.7, 0.0], tf.int32")
def cast(x: Array, dtype: Any) -> Array:
    """Convert to another type.

    Differs from TensorFlow: NaN and what is too large become other integers: none is right.
    """
    wanted = type_of(dtype)
    if wanted == dtype_of(x):
        return x
    if wanted.is_string or dtype_of(x).is_string:
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


@op("shape", "input", strings=True, example="r(2, 3)")
def shape(input: Array, out_type: Any = None) -> Value:
    """Return the sizes of the dimensions."""
    dtype = (int32 if out_type is None else type_of(out_type)).dtype
    is_static = all(type(size) is int for size in input.shape)
    return np.array(input.shape, dtype) if is_static else _open_values.array_of(input.shape, dtype)


@op("size", "input", strings=True, example="r(2, 3)")
def size(input: Array, out_type: Any = None) -> Value:
    """Return the number of elements."""
    dtype = (int32 if out_type is None else type_of(out_type)).dtype
    count = math.prod(input.shape)
    return np.array(count, dtype) if type(count) is int else _open_values.number_of(count, dtype)


@op("rank", "input", strings=True, example="r(2, 3)")
def rank(input: Array) -> np.ndarray:
    """Return the number of dimensions."""
    return np.array(input.ndim, np.int32)


@op("identity", "input", strings=True, by_rows="input", example="r(2, 3)")
def identity(input: Array) -> Array:
    """Return a separate tensor."""
    return input.copy() if isinstance(input, np.ndarray) else jnp.copy(input)


@op("reshape", "tensor", strings=True, example="r(2, 3), [3, -1]")
def reshape(tensor: Array, shape: Any) -> Array:
    """Give another shape to the same elements."""
    sizes = _complete(sizes_of(shape, integers=False), tensor)
    try:
        return tensor.reshape(sizes)
    except jax.errors.InconclusiveDimensionOperation:
        if not MAY_CHECK.value or -1 not in sizes:
            raise
        return _reshape_checked(tensor, sizes)


def _reshape_checked(x: Array, sizes: tuple[Any, ...]) -> Array:
    """Give another shape to elements of which there are enough, which is checked at run time."""
    at, have = sizes.index(-1), math.prod(x.shape)
    rest = math.prod(size for i, size in enumerate(sizes) if i != at)
    count = have // rest
    require(
        jnp.asarray(have % rest) == 0,
        f"Input to reshape is a tensor for which the requested shape requires a multiple of {rest}",
        {"number of values": jnp.asarray(have)},
    )
    even = jax.lax.slice_in_dim(x.reshape(-1), 0, count * rest)  # all of them, where it holds
    return even.reshape((*sizes[:at], count, *sizes[at + 1 :]))


_MOST_DIMENSIONS = 253  # of a tensor in TensorFlow


def _complete(sizes: tuple[int, ...], x: Array) -> tuple[int, ...]:
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


def _with_open(sizes: tuple[int, ...], at: int, x: Array) -> tuple[int, ...]:
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
@op("zeros", op="Fill", example="(2, 3)")
def zeros(shape: Any, dtype: Any = "float32") -> Value:
    """Make a tensor of zeros."""
    wanted, sizes = type_of(dtype), not_negative(sizes_of(shape))
    return np.full(sizes, b"", object) if wanted.is_string else jnp.zeros(sizes, wanted.dtype)


@op("ones", op="Fill", example="(2, 3)")
def ones(shape: Any, dtype: Any = "float32") -> Array:
    """Make a tensor of ones."""
    wanted, sizes = type_of(dtype), not_negative(sizes_of(shape))
    if wanted.is_string:
        raise Refused(TypeError("Cannot convert 1 to EagerTensor of dtype string"))
    return jnp.ones(sizes, wanted.dtype)


@op("fill", "value", strings=True, example="[2, 3], 9")
def fill(dims: Any, value: Array) -> Value:
    """Make a tensor of one value."""
    if value.ndim:
        raise ValueError(f"value must represent a scalar, got shape {list(value.shape)}")
    sizes = not_negative(sizes_of(dims, integers=False))
    if is_text(value):
        return np.broadcast_to(value, sizes).copy()  # np.full cuts zero characters at the end off
    return _full(value, sizes)


_full = jax.jit(jnp.broadcast_to, static_argnums=1)


@op("zeros_like", "input", strings=True, example="r(2, 3)")
def zeros_like(input: Array, dtype: Any = None) -> Array:
    """Make a tensor of zeros with the shape of another one."""
    return zeros.__wrapped__(input.shape, dtype_of(input) if dtype is None else dtype)


@op("ones_like", "input", strings=True, example="r(2, 3)")
def ones_like(input: Array, dtype: Any = None) -> Array:
    """Make a tensor of ones with the shape of another one."""
    if is_text(input) and dtype is None:
        raise ValueError("Value for attr 'T' of string is not in the list of allowed values")
    return ones.__wrapped__(input.shape, dtype_of(input) if dtype is None else dtype)


@op("eye", op="Fill", aliases=("linalg.eye",), example="2")
def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = "float32"
) -> Array:
    """Make an identity matrix, or a stack of them."""
    wanted = type_of(dtype)
    (rows,) = not_negative(sizes_of(num_rows))
    (columns,) = (rows,) if num_columns is None else not_negative(sizes_of(num_columns))
    batch = () if batch_shape is None else sizes_of(batch_shape)
    not_too_many((*batch, rows, columns))
    return jnp.broadcast_to(jnp.eye(rows, columns, dtype=wanted.dtype), (*batch, rows, columns))


@op("one_hot", "indices", kinds="int float", example="i(3), 3")
def one_hot(
    indices: Array, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None,
    dtype: Any = None,
) -> Value:  # fmt: skip
    """Put one value at each index and another one elsewhere."""
    on, off = _values_of(on_value, off_value, dtype)
    size = one_int(depth, "depth")
    if size < 0:
        raise refused(f"depth must be non-negative, got: {size}")
    if indices.size and indices.dtype.kind not in "iu":  # an empty list is one of floats
        raise refused(f"Value for attr 'TI' of {indices.dtype} is not an integer type")
    if indices.dtype.itemsize < 4 or not indices.size:  # in which not every depth is itself
        indices = indices.astype(jnp.int32)
    place = indices.ndim if axis is None else one_axis(axis, indices.ndim + 1)
    if is_text(on) or is_text(off):
        hot = _hot(indices, np.True_, np.False_, not_too_many((size,))[0], place)
        if any(map(context.is_tracer, (hot, on, off))):
            return jnp.where(hot, lift(on), lift(off))
        return np.where(np.asarray(hot), on, off)
    return _hot(indices, on, off, not_too_many((size,))[0], place)


@partial(jax.jit, static_argnums=(3, 4))
def _hot(indices: Array, on: Array, off: Array, size: int, place: int) -> Array:
    shape = [1] * (indices.ndim + 1)
    shape[place] = size
    hot = jnp.expand_dims(indices, place) == jnp.arange(size, dtype=indices.dtype).reshape(shape)
    return jnp.where(hot, on, off)


def _values_of(on_value: Any, off_value: Any, dtype: Any) -> tuple[Value, Value]:
    """Return the values of `one_hot`, of one type."""
    wanted = None if dtype is None else as_dtype(dtype)
    try:
        on, off = (None if x is None else to_array(x, wanted) for x in (on_value, off_value))
    except ValueError as error:
        raise Refused(TypeError(f"on_value and off_value must be of dtype: {error}")) from None
    kinds = [dtype_of(x) for x in (on, off) if x is not None]
    kind = kinds[0] if kinds else wanted or float32
    if kind.is_string and (on is None or off is None):
        missing = "off_value" if off is None else "on_value"
        raise Refused(TypeError(f"Of strings, tf.one_hot needs both values: give {missing}, too"))
    if kinds[1:] and kinds[1] != kind:
        raise Refused(
            TypeError(f"dtype {kind!r} of on_value does not match dtype {kinds[1]!r} of off_value")
        )
    on = np.ones((), kind.dtype) if on is None else on
    return on, np.zeros((), kind.dtype) if off is None else off


@op("sequence_mask", "lengths", example="i(3), 4")
def sequence_mask(lengths: Array, maxlen: Any = None, dtype: Any = "bool") -> Array:
    """Mark the first positions: as many as each length.

    Differs from TensorFlow: `maxlen` must be given inside a `tf.function` unless the lengths are
    known there.
    """
    if maxlen is None:
        size = math.ceil(require_known(lengths, "maxlen").max(initial=0))
    else:
        if not isinstance(maxlen, int) and require_known(maxlen, "maxlen").ndim:
            raise refused(f"Argument `maxlen` must be scalar for sequence_mask, received {maxlen}")
        size = one_int(maxlen, "maxlen")
        if size < 0:
            raise refused(f"maxlen must be non-negative, got: {size}")
        if lengths.dtype.kind == "f":  # they are cut only here, as in TensorFlow
            lengths = lengths.astype(narrowed(np.int64))
    not_too_many((*lengths.shape, size))
    return (jnp.arange(size) < lengths[..., None]).astype(as_dtype(dtype).dtype)


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """Read the bits of a tensor as another type.

    Args:
        input: the tensor, of numbers.
        type: the other type. If it is smaller, there is one more dimension; if it is larger, one
            less.
        name: of no effect.

    Raises:
        InvalidArgumentError: when the last dimension does not hold one element of a larger type.

    >>> from jaxvars import tf
    >>> tf.bitcast(tf.constant(1.0), tf.int32)
    <tf.Tensor: shape=(), dtype=int32, numpy=1065353216>
    """
    array, wanted = to_array(input), core_dtype(any_dtype(type).dtype)
    is_complex = "c" in (array.dtype.kind, wanted.kind) and array.dtype != wanted
    try:
        return Tensor((_bitcast_complex if is_complex else _bitcast)(array, wanted))
    except (TypeError, ValueError) as error:
        raise refused(str(error), "Bitcast") from error


_bitcast = jax.lax.bitcast_convert_type


def _bitcast_complex(x: Array, dtype: np.dtype) -> Array:
    """Return the bits of an array as another type, of which one is complex: by way of bytes."""
    old, new = x.dtype.itemsize, dtype.itemsize
    floats = jnp.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x
    octets = _bitcast(floats, jnp.uint8).reshape(*x.shape, old)
    if new > old and x.shape[-1:] != (new // old,):
        raise ValueError(f"The last size must be {new // old} for {x.dtype} to become {dtype}")
    more = (old // new,) if new < old else ()
    octets = octets.reshape(*(x.shape if new <= old else x.shape[:-1]), *more, new)
    if dtype.kind != "c":
        return _bitcast(octets if new > 1 else octets[..., 0], dtype)
    halves = octets.reshape(*octets.shape[:-1], 2, new // 2)
    parts = _bitcast(halves, np.dtype(f"float{4 * new}"))
    return jax.lax.complex(parts[..., 0], parts[..., 1])
