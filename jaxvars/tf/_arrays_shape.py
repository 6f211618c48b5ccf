"""Operations at the top level that change the shape: `tf.expand_dims`, `tf.pad`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars._open_program import is_open
from jaxvars.tf import _convert
from jaxvars.tf._dtypes import as_dtype
from jaxvars.tf._rows import Row, operations
from jaxvars.tf._shapes import TensorShape
from jaxvars.tf._static import ints, known, one_axis, one_int, refused, space_of
from jaxvars.tf._tensor import Tensor

Value: TypeAlias = Any


def _expand_dims(x: Value, axis: Any) -> Value:
    return space_of(x).expand_dims(x, one_axis(axis, x.ndim + 1))


def _squeeze(x: Value, axis: Any) -> Value:
    given = () if axis is None else ints(axis, "axis")
    if not given and any(map(is_open, x.shape)):
        raise refused("Which dimensions are 1 is not known while sizes are open: give an axis")
    wanted = [one_axis(a, x.ndim) for a in given] or [i for i, n in enumerate(x.shape) if n == 1]
    for i in wanted:
        if x.shape[i] != 1:
            raise refused(f"Can not squeeze dim[{i}], expected a dimension of 1, got {x.shape[i]}")
    return x.reshape([n for i, n in enumerate(x.shape) if i not in wanted])


def _transpose(x: Value, perm: Any, conjugate: bool) -> Value:
    order = tuple(reversed(range(x.ndim))) if perm is None else ints(perm, "perm")
    if sorted(i % x.ndim if -x.ndim <= i < x.ndim else i for i in order) != list(range(x.ndim)):
        raise refused(f"perm {list(order)} is no permutation of the {x.ndim} dimensions")
    made = space_of(x).transpose(x, order)
    return jnp.conj(made) if conjugate and jnp.iscomplexobj(x) else made


def _reverse(x: Value, axis: Any) -> Value:
    if known(axis, "axis").ndim != 1:
        raise refused("'dims' must be 1-dimension, not 0")
    return space_of(x).flip(x, tuple(one_axis(a, x.ndim, "'dims'") for a in ints(axis, "axis")))


def _roll(x: Value, shift: Any, axis: Any) -> Value:
    if not x.ndim:
        raise refused("input must be 1-D or higher")
    dims = tuple(one_axis(a, x.ndim) for a in ints(axis, "axis"))
    shifts = jnp.reshape(_convert.to_array(shift), (-1,))
    if shifts.size != len(dims):
        raise refused("shift and axis must have the same size")
    for i, dim in enumerate(dims):
        x = jnp.roll(x, shifts[i], dim)
    return x


def _tile(x: Value, multiples: Any) -> Value:
    counts = ints(multiples, "multiples")
    if len(counts) != x.ndim or known(multiples, "multiples").ndim != 1:
        raise refused(
            f"Expected multiples argument to be a vector of length {x.ndim} but got length "
            f"{len(counts)}"
        )
    return space_of(x).tile(x, counts)


def _repeat(x: Value, repeats: Any, axis: Any) -> Value:
    counts = known(repeats, "repeats")
    found = None if axis is None else one_axis(axis, x.ndim)
    size = x.size if found is None else x.shape[found]
    if counts.size == 1:
        return space_of(x).repeat(x, int(counts.reshape(())), axis=found)
    if counts.shape != (size,):
        raise refused(f"repeats has {counts.size} elements, and the axis {size}")
    return space_of(x).take(x, np.repeat(np.arange(size), counts), axis=found)


def _broadcast_to(x: Value, shape: Any) -> Value:
    return space_of(x).broadcast_to(x, ints(shape, "shape"))


def _ensure_shape(x: Value, shape: Any) -> Value:
    wanted = TensorShape(shape)
    if not wanted.is_compatible_with(x.shape):
        raise refused(
            f"Shape of tensor x {list(x.shape)} is not compatible with expected shape {wanted}"
        )
    return x


# ---------------------------------------------------------------- padding and blocks
def _pad(x: Value, paddings: Any, mode: str, constant_values: Any) -> Value:
    widths = known(paddings, "paddings")
    if widths.shape != (x.ndim, 2):
        raise refused(
            "The first dimension of paddings must be the rank of inputs"
            f"{list(widths.shape)} {list(x.shape)}"
        )
    how = mode.upper()
    if how == "CONSTANT" and not _convert.is_text(x) and (widths >= 0).all():
        edges = tuple([(a, b, 0) for a, b in widths.tolist()])
        return _padded(x, _filler(x, constant_values), edges)
    if how == "CONSTANT":
        return space_of(x).pad(x, widths, constant_values=_filler(x, constant_values))
    if how not in {"REFLECT", "SYMMETRIC"}:
        raise refused(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT' or 'SYMMETRIC'. "
            f"Received `mode` = {mode}"
        )
    most = np.array(x.shape) - (how == "REFLECT")
    if (widths > most[:, None]).any():
        raise refused(f"paddings must be no greater than the dimension size: {widths.tolist()}")
    return space_of(x).pad(x, widths, mode=how.lower())


_padded = jax.jit(jax.lax.pad, static_argnums=2)


def _filler(x: Value, constant_values: Any) -> Value:
    if type(constant_values) is int and 0 <= constant_values < 128 and x.dtype.kind in "iuf":
        return np.asarray(constant_values, x.dtype)
    if not _convert.is_text(x):
        return _convert.pair(x, constant_values, "PadV2")[1]
    return b"" if isinstance(constant_values, int) else _convert.to_array(constant_values)[()]


def _space_to_batch(x: Value, block_shape: Any, paddings: Any) -> Value:
    blocks = ints(block_shape, "block_shape")
    widths = known(paddings, "paddings").reshape(-1, 2).tolist()
    rest = x.ndim - 1 - len(blocks)
    x = jnp.pad(x, [(0, 0), *widths, *[(0, 0)] * rest])
    split = _divided(x.shape[1 : 1 + len(blocks)], blocks)
    y = x.reshape(x.shape[0], *split, *x.shape[1 + len(blocks) :])
    order = [2 * i + 2 for i in range(len(blocks))]
    order += [0] + [2 * i + 1 for i in range(len(blocks))]
    y = y.transpose(*order, *range(len(order), y.ndim))
    batch = x.shape[0] * int(np.prod(blocks))
    return y.reshape(batch, *split[::2], *x.shape[1 + len(blocks) :])


def _divided(sizes: Sequence[int], blocks: Sequence[int]) -> list[int]:
    if any(size % block for size, block in zip(sizes, blocks, strict=True)):
        raise refused(f"padded_shape {list(sizes)} is not divisible by block_shape {list(blocks)}")
    pairs = zip(sizes, blocks, strict=True)
    return [n for size, block in pairs for n in (size // block, block)]


def _batch_to_space(x: Value, block_shape: Any, crops: Any) -> Value:
    blocks = ints(block_shape, "block_shape")
    cut = known(crops, "crops").reshape(-1, 2).tolist()
    count = len(blocks)
    if x.shape[0] % int(np.prod(blocks)):
        raise refused(f"Input batch dimension ({x.shape[0]}) is not divisible by product of blocks")
    batch, sizes = x.shape[0] // int(np.prod(blocks)), x.shape[1 : 1 + count]
    y = x.reshape(*blocks, batch, *x.shape[1:])
    order = [count, *[n for i in range(count) for n in (count + 1 + i, i)]]
    y = y.transpose(*order, *range(2 * count + 1, y.ndim))
    whole = [size * block for size, block in zip(sizes, blocks, strict=True)]
    y = y.reshape(batch, *whole, *x.shape[1 + count :])
    kept = [slice(a, n - b) for (a, b), n in zip(cut, whole, strict=True)]
    return y[(slice(None), *kept)]


# ---------------------------------------------------------------- masks and bits
def _one_hot(
    indices: Value, depth: Any, on_value: Any, off_value: Any, axis: Any, dtype: Any
) -> Value:
    on, off = _values_of(on_value, off_value, dtype)
    size = one_int(depth, "depth")
    if size < 0:
        raise refused(f"depth must be non-negative, got: {size}")
    place = indices.ndim if axis is None else one_axis(axis, indices.ndim + 1)
    return _hot(indices, on, off, size, place)


@partial(jax.jit, static_argnums=(3, 4))
def _hot(indices: Value, on: Value, off: Value, size: int, place: int) -> Value:
    shape = [1] * (indices.ndim + 1)
    shape[place] = size
    hot = jnp.expand_dims(indices, place) == jnp.arange(size, dtype=indices.dtype).reshape(shape)
    return jnp.where(hot, on, off)


def _values_of(on_value: Any, off_value: Any, dtype: Any) -> tuple[Value, Value]:
    """Return the values of `one_hot`, of one type."""
    wanted = None if dtype is None else as_dtype(dtype)
    on = None if on_value is None else _convert.to_array(on_value, wanted)
    off = None if off_value is None else _convert.to_array(off_value, wanted)
    kind = next((x.dtype for x in (on, off) if x is not None), None)
    kind = kind or (wanted.dtype if wanted else np.dtype(np.float32))
    on = np.ones((), kind) if on is None else on
    off = np.zeros((), kind) if off is None else off
    if on.dtype != off.dtype:
        raise refused(f"dtype of on_value {on.dtype} does not match that of off_value {off.dtype}")
    return on, off


def _sequence_mask(lengths: Value, maxlen: Any, dtype: Any) -> Value:
    if maxlen is None:
        size = int(known(lengths, "maxlen").max(initial=0))
    else:
        size = one_int(maxlen, "maxlen")
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
    try:
        return Tensor(jax.lax.bitcast_convert_type(_convert.to_array(input), as_dtype(type).dtype))
    except (TypeError, ValueError) as error:
        raise refused(f"{error} [Op:Bitcast] name: ") from error


def _reverse_sequence(x: Value, seq_lengths: Any, seq_axis: Any, batch_axis: Any) -> Value:
    time = one_axis(1 if seq_axis is None else seq_axis, x.ndim, "seq_axis")
    batch = one_axis(0 if batch_axis is None else batch_axis, x.ndim, "batch_axis")
    lengths = jnp.asarray(_convert.to_array(seq_lengths))
    if lengths.shape != (x.shape[batch],):
        raise refused(
            f"Length of seq_lengths != input.dims({batch}), ({lengths.shape} vs. {x.shape[batch]})"
        )
    steps = jnp.arange(x.shape[time])
    turned = jnp.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    shape = [n if i in (batch, time) else 1 for i, n in enumerate(x.shape)]
    index = (turned if batch < time else turned.T).reshape(shape)
    return jnp.take_along_axis(x, index, axis=time)


ROWS = [
    Row(
        "expand_dims", "input", "input, axis", _expand_dims, text=True,
        doc="Insert a dimension of size 1.",
        examples=("expand_dims(r(2, 3), 0)", "expand_dims(i(2), -1)", "expand_dims(r(2), 3)"),
    ),
    Row(
        "squeeze", "input", "input, axis=None", _squeeze, text=True,
        doc="Remove dimensions of size 1: all of them, or those that are named.",
        examples=("squeeze(r(1, 2, 1))", "squeeze(i(1, 2, 1), [-1])", "squeeze(r(2, 1), 0)"),
    ),
    Row(
        "transpose", "a", "a, perm=None, conjugate=False", _transpose, text=True,
        doc="Permute the dimensions; reverse them if there is no `perm`.",
        examples=(
            "transpose(r(2, 3))", "transpose(r(2, 1, 3), perm=[1, 2, 0])",
            "transpose(z(2, 2), conjugate=True)", "transpose(r(2, 2), [0, 0])",
        ),
    ),
    Row(
        "reverse", "tensor", "tensor, axis", _reverse, op="ReverseV2", text=True,
        doc="Reverse along some dimensions.",
        examples=("reverse(r(2, 3), [1])", "reverse(i(2, 2), [-1, 0])", "reverse(r(2), 0)"),
    ),
    Row(
        "roll", "input", "input, shift, axis", _roll,
        doc="Shift elements along dimensions, around.",
        examples=(
            "roll(r(5), 2, 0)", "roll(i(2, 3), [1, -1], [0, 1])", "roll(r(4), [1, 2], [0, 0])",
        ),
    ),
    Row(
        "tile", "input", "input, multiples", _tile, text=True,
        doc="Repeat a tensor along each dimension.",
        examples=("tile(r(2, 1), [1, 3])", "tile(i(2), [0])", "tile(r(2, 1), [2])"),
    ),
    Row(
        "repeat", "input", "input, repeats, axis=None", _repeat, text=True,
        doc="Repeat each element, or each slice along an axis.",
        examples=(
            "repeat(r(2, 2), 2, axis=0)", "repeat(r(2, 2), [1, 3], axis=-1)", "repeat(i(2, 2), 2)",
        ),
    ),
    Row(
        "broadcast_to", "input", "input, shape", _broadcast_to, text=True,
        doc="Broadcast to a shape.",
        examples=("broadcast_to(r(3), [2, 3])", "broadcast_to(1, (2,))", "broadcast_to(r(3), [2])"),
    ),
    Row(
        "ensure_shape", "x", "x, shape", _ensure_shape, text=True,
        doc="Return the tensor if its shape is compatible with another one, and raise else.",
        examples=(
            "ensure_shape(r(2, 3), [None, 3])", "ensure_shape(i(0, 3), [0, 3])",
            "ensure_shape(r(2, 3), [2, 2])",
        ),
    ),
    Row(
        "pad", "tensor", "tensor, paddings, mode='CONSTANT', constant_values=0", _pad, text=True,
        doc="Pad with a constant, or by reflection.",
        examples=(
            "pad(r(2, 2), [[1, 0], [0, 2]], constant_values=7)",
            "pad(r(3), [[2, 1]], 'reflect')", "pad(r(3), [[2, 3]], 'SYMMETRIC')",
            "pad(r(3), [[3, 0]], 'REFLECT')",
        ),
    ),
    Row(
        "space_to_batch", "input", "input, block_shape, paddings", _space_to_batch,
        op="SpaceToBatchND",
        doc="Cut blocks of the spatial dimensions apart, into the batch.",
        aliases=("space_to_batch_nd",),
        examples=(
            "space_to_batch(r(1, 2, 3, 1), [2, 2], [[0, 0], [1, 0]])",
            "space_to_batch(i(1, 4), [2], [[0, 0]])", "space_to_batch(r(1, 3, 1), [2], [[0, 0]])",
        ),
    ),
    Row(
        "batch_to_space", "input", "input, block_shape, crops", _batch_to_space,
        op="BatchToSpaceND",
        doc="Put blocks from the batch together, the inverse of `tf.space_to_batch`.",
        examples=(
            "batch_to_space(r(4, 1, 2, 1), [2, 2], [[0, 0], [1, 0]])",
            "batch_to_space(i(2, 2), [2], [[0, 0]])", "batch_to_space(r(3, 2, 1), [2], [[0, 0]])",
        ),
    ),
    Row(
        "one_hot", "indices",
        "indices, depth, on_value=None, off_value=None, axis=None, dtype=None",
        _one_hot, kinds="int", doc="Put one value at each index and another one elsewhere.",
        examples=(
            "one_hot(i(3), 3)", "one_hot([0, 2, -1, 5], 3, 5, 1, axis=0)",
            "one_hot([[1]], 2, on_value=True, off_value=False)", "one_hot([0.5], 2)",
        ),
    ),
    Row(
        "sequence_mask", "lengths", "lengths, maxlen=None, dtype='bool'", _sequence_mask,
        doc="Mark the first positions: as many as each length says.",
        differs="`maxlen` must be given inside a `tf.function` unless the lengths are known there.",
        examples=(
            "sequence_mask(i(3), 4)", "sequence_mask([[1, 3], [0, 2]])",
            "sequence_mask([2, 5], 3, dtype=tf.float32)",
        ),
    ),
    Row(
        "reverse_sequence", "input", "input, seq_lengths, seq_axis=None, batch_axis=None",
        _reverse_sequence, doc="Reverse the first steps of each sequence of a batch.",
        examples=(
            "reverse_sequence(r(2, 3), [2, 3], seq_axis=1)",
            "reverse_sequence(r(3, 2), [1, 3], seq_axis=0, batch_axis=1)",
            "reverse_sequence(r(2, 3), [1], 1)",
        ),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS)
