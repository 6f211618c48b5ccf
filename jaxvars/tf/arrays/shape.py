"""Operations at the top level that change the shape: `tf.expand_dims`, `tf.pad`, ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.arrays.sizes import not_negative
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.handles import is_handles, on_strings
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import ints, not_too_many, one_axis, refused, require_known, space_of
from jaxvars.typing import Array, Value


@op("expand_dims", "input", strings=True, example="r(2, 3), 0")
def expand_dims(input: Array, axis: Any) -> Array:
    """Insert a dimension of size 1."""
    if not isinstance(axis, int) and require_known(axis, "axis").size != 1:
        raise refused("'dim' must be a tensor with a single value")
    return space_of(input).expand_dims(input, one_axis(axis, input.ndim + 1))


@op("squeeze", "input", strings=True, example="r(1, 2, 1)")
def squeeze(input: Array, axis: Any = None) -> Array:
    """Remove dimensions of size 1: all of them, or those that are named."""
    given = () if axis is None else ints(axis, "axis")
    if not given and any(map(is_open, input.shape)):
        raise refused("Which dimensions are 1 is not known while sizes are open: give an axis")
    wanted = [one_axis(a, input.ndim) for a in given] or [
        i for i, n in enumerate(input.shape) if n == 1
    ]
    for i in wanted:
        if input.shape[i] != 1:
            raise refused(
                f"Can not squeeze dim[{i}], expected a dimension of 1, got {input.shape[i]}"
            )
    return input.reshape([n for i, n in enumerate(input.shape) if i not in wanted])


@op("tile", "input", strings=True, example="r(2, 1), [1, 3]")
def tile(input: Array, multiples: Any) -> Array:
    """Repeat a tensor along each dimension."""
    counts = ints(multiples, "multiples")
    if len(counts) != input.ndim or require_known(multiples, "multiples").ndim != 1:
        raise refused(
            f"Expected multiples argument to be a vector of length {input.ndim} but got length "
            f"{len(counts)}"
        )
    not_too_many([n * count for n, count in zip(input.shape, not_negative(counts), strict=True)])
    return space_of(input).tile(input, counts)


@op("repeat", "input", strings=True, example="r(2, 2), 2, axis=0")
def repeat(input: Array, repeats: Any, axis: Any = None) -> Array:
    """Repeat each element, or each slice along an axis."""
    counts = require_known(repeats, "repeats")
    input = input if input.ndim else input.reshape(1)
    found = None if axis is None else one_axis(axis, input.ndim)
    size = input.size if found is None else input.shape[found]
    if counts.dtype != object:
        not_too_many((int(counts.sum()) * (size if counts.size == 1 else 1),))
    if counts.size == 1:
        return space_of(input).repeat(input, int(counts.reshape(())), axis=found)
    if counts.shape != (size,):
        raise refused(f"repeats has {counts.size} elements, and the axis {size}")
    return space_of(input).take(input, np.repeat(np.arange(size), counts), axis=found)


@op("broadcast_to", "input", strings=True, example="r(3), [2, 3]")
def broadcast_to(input: Array, shape: Any) -> Array:
    """Broadcast to a shape."""
    sizes = not_too_many(ints(shape, "shape"))
    try:
        return space_of(input).broadcast_to(input, sizes)
    except ValueError as error:
        raise refused(
            f"Unable to broadcast tensor of shape {list(input.shape)} to {list(sizes)}: {error}"
        ) from None


@op("ensure_shape", "x", strings=True, example="r(2, 3), [None, 3]")
def ensure_shape(x: Array, shape: Any) -> Array:
    """Return the tensor if its shape is compatible with another one, and raise else."""
    wanted = TensorShape(shape)
    if not wanted.is_compatible_with(x.shape):
        raise refused(
            f"Shape of tensor x {list(x.shape)} is not compatible with expected shape {wanted}"
        )
    return x


# ---------------------------------------------------------------- padding and blocks
@op("pad", "tensor", strings=True, example="r(2, 2), [[1, 0], [0, 2]], constant_values=7")
def pad(tensor: Array, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0) -> Value:
    """Pad with a constant, or by reflection."""
    widths = require_known(paddings, "paddings")
    if widths.ndim != 2 or widths.shape[1] != 2:
        raise refused(f"paddings must be a matrix with 2 columns: {list(widths.shape)}")
    if widths.size and widths.dtype.kind not in "iuO":
        raise refused(f"paddings must be integers: {widths.tolist()}")
    if widths.shape != (tensor.ndim, 2):
        raise refused(
            "The first dimension of paddings must be the rank of inputs"
            f"{list(widths.shape)} {list(tensor.shape)}"
        )
    how = mode.upper()
    if widths.dtype != object and (widths < 0).any():
        raise refused(f"Paddings must be non-negative: {widths.tolist()}")
    not_too_many([n + a + b for n, (a, b) in zip(tensor.shape, widths.tolist(), strict=True)])
    if is_handles(tensor):
        return on_strings(pad.__wrapped__)(tensor, widths, mode, constant_values)
    if how == "CONSTANT" and not _convert.is_text(tensor):
        edges = tuple([(a, b, 0) for a, b in widths.tolist()])
        return _padded(tensor, _filler(tensor, constant_values), edges)
    if how == "CONSTANT":
        made = space_of(tensor).pad(
            tensor, widths, constant_values=_filler(tensor, constant_values)
        )
        return _convert.string_array(made) if _convert.is_text(tensor) else made
    if how not in {"REFLECT", "SYMMETRIC"}:
        raise refused(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT' or 'SYMMETRIC'. "
            f"Received `mode` = {how}"
        )
    most = np.array(tensor.shape) - (how == "REFLECT")
    if (widths > most[:, None]).any():
        raise refused(f"paddings must be no greater than the dimension size: {widths.tolist()}")
    return space_of(tensor).pad(tensor, widths, mode=how.lower())


_padded = jax.jit(jax.lax.pad, static_argnums=2)


def _filler(x: Array, constant_values: Any) -> Value:
    if type(constant_values) is int and 0 <= constant_values < 128 and x.dtype.kind in "iuf":
        return np.asarray(constant_values, x.dtype)
    if type(constant_values) is int and not constant_values and x.dtype.kind == "b":
        return np.asarray(False)  # the default, for bools
    if not _convert.is_text(x):
        return _convert.pair(x, constant_values, "PadV2")[1]
    return b"" if isinstance(constant_values, int) else _convert.to_array(constant_values)[()]


@op("space_to_batch", "input", op="SpaceToBatchND", aliases=("space_to_batch_nd",))
def space_to_batch(input: Array, block_shape: Any, paddings: Any) -> Array:
    """Cut blocks of the spatial dimensions apart, into the batch.

    Example: `tf.space_to_batch(r(1, 2, 3, 1), [2, 2], [[0, 0], [1, 0]])`.
    """
    blocks = ints(block_shape, "block_shape")
    widths = require_known(paddings, "paddings").reshape(-1, 2).tolist()
    rest = input.ndim - 1 - len(blocks)
    input = jnp.pad(input, [(0, 0), *widths, *[(0, 0)] * rest])
    split = _divide_sizes(input.shape[1 : 1 + len(blocks)], blocks)
    y = input.reshape(input.shape[0], *split, *input.shape[1 + len(blocks) :])
    order = [2 * i + 2 for i in range(len(blocks))]
    order += [0] + [2 * i + 1 for i in range(len(blocks))]
    y = y.transpose(*order, *range(len(order), y.ndim))
    batch = input.shape[0] * int(np.prod(blocks))
    return y.reshape(batch, *split[::2], *input.shape[1 + len(blocks) :])


def _divide_sizes(sizes: Sequence[int], blocks: Sequence[int]) -> list[int]:
    if any(size % block for size, block in zip(sizes, blocks, strict=True)):
        raise refused(f"padded_shape {list(sizes)} is not divisible by block_shape {list(blocks)}")
    pairs = zip(sizes, blocks, strict=True)
    return [n for size, block in pairs for n in (size // block, block)]


@op("batch_to_space", "input", op="BatchToSpaceND")
def batch_to_space(input: Array, block_shape: Any, crops: Any) -> Array:
    """Put blocks from the batch together, the inverse of `tf.space_to_batch`.

    Example: `tf.batch_to_space(r(4, 1, 2, 1), [2, 2], [[0, 0], [1, 0]])`.
    """
    blocks = ints(block_shape, "block_shape")
    cut = require_known(crops, "crops").reshape(-1, 2).tolist()
    count = len(blocks)
    if input.shape[0] % int(np.prod(blocks)):
        raise refused(
            f"Input batch dimension ({input.shape[0]}) is not divisible by product of blocks"
        )
    batch, sizes = input.shape[0] // int(np.prod(blocks)), input.shape[1 : 1 + count]
    y = input.reshape(*blocks, batch, *input.shape[1:])
    order = [count, *[n for i in range(count) for n in (count + 1 + i, i)]]
    y = y.transpose(*order, *range(2 * count + 1, y.ndim))
    whole = [size * block for size, block in zip(sizes, blocks, strict=True)]
    y = y.reshape(batch, *whole, *input.shape[1 + count :])
    if any(a < 0 or b < 0 or a + b > n for (a, b), n in zip(cut, whole, strict=True)):
        raise refused(f"crops must be non-negative, and at most {whole} together: {cut}")
    kept = [slice(a, n - b) for (a, b), n in zip(cut, whole, strict=True)]
    return y[(slice(None), *kept)]
