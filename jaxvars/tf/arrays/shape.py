"""Operations at the top level that change the shape: `tf.expand_dims`, `tf.pad`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.registry.rows import Row, operations
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import ints, known, one_axis, refused, space_of

Value: TypeAlias = Any


def _expand_dims(x: Value, axis: Any) -> Value:
    if not isinstance(axis, int) and known(axis, "axis").size != 1:
        raise refused("'dim' must be a tensor with a single value")
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
    x = x if x.ndim else x.reshape(1)
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
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="")
