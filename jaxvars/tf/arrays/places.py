"""Operations at the top level about places: `tf.unravel_index`, patches of volumes, ..."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.gather import checkable
from jaxvars.tf.registry.rows import Row, operations
from jaxvars.tf.tensors.static import ints, is_known, known, one_axis, refused

Value: TypeAlias = Any


class ApproxTopK(NamedTuple):
    """What `tf.approx_top_k` returns."""

    values: Any
    indices: Any


def _unravel_index(indices: Value, dims: Value) -> Value:
    sizes = known(dims, "dims").reshape(-1)
    product = math.prod(map(int, sizes))
    if product == 0:
        raise refused("Input dims cannot contain a dim of zero, but dims contains zero")
    if product > np.iinfo(sizes.dtype).max:
        raise refused("Input dims product is causing integer overflow: " + str(tuple(sizes)))
    if checkable(indices) and ((np.asarray(indices) < 0) | (np.asarray(indices) >= product)).any():
        raise refused("index is out of bound as with dims")
    found = jnp.unravel_index(indices, tuple(map(int, sizes)))
    return jnp.stack(found).astype(indices.dtype)


def _guarantee_const(x: Value) -> Value:
    return x


def _volume_patches(x: Value, ksizes: Any, strides: Any, padding: str) -> Value:
    sizes, steps = ints(ksizes, "ksizes"), ints(strides, "strides")
    if x.ndim != 5 or len(sizes) != 5 or len(steps) != 5:
        raise refused("input, ksizes and strides must have 5 dimensions")
    if sizes[0] != 1 or sizes[4] != 1 or steps[0] != 1 or steps[4] != 1:
        raise refused("ksizes and strides must be 1 in the first and the last dimension")
    if padding not in ("SAME", "VALID"):
        raise refused(f"padding is 'SAME' or 'VALID', not {padding!r}")
    made = jax.lax.conv_general_dilated_patches(
        jnp.moveaxis(x, -1, 1), sizes[1:4], steps[1:4], padding,
        precision=jax.lax.Precision.HIGHEST,
    )  # fmt: skip
    batch, _, *places = made.shape
    apart = made.reshape(batch, x.shape[-1], math.prod(sizes), *places)
    return jnp.moveaxis(apart, (2, 1), (4, 5)).reshape(batch, *places, -1)


def _space_to_batch_paddings(shape: Value, block: Value, base: Any) -> tuple[Value, Value]:
    names = ("input_shape", "block_shape", "base_paddings")
    if not all(is_known(x) for x in (shape, block, base) if x is not None):
        raise refused(f"{', '.join(names)} must be known when the function is traced")
    sizes, blocks = known(shape, names[0]), known(block, names[1])
    first = np.zeros((len(sizes), 2), np.int32) if base is None else known(base, names[2])
    full = sizes + first.sum(axis=1)
    extra = (-full) % blocks
    crops = np.stack([np.zeros_like(extra), extra], axis=1)
    return (first + crops).astype(np.int32), crops.astype(np.int32)


def _approx_top_k(
    x: Value, k: int, dimension: int, recall: float, is_max: bool, size: int, aggregate: bool
) -> ApproxTopK:
    find = jax.lax.approx_max_k if is_max else jax.lax.approx_min_k
    return ApproxTopK(
        *find(
            x, k, reduction_dimension=one_axis(dimension, x.ndim), recall_target=recall,
            reduction_input_size_override=size, aggregate_to_topk=aggregate,
        )
    )  # fmt: skip


ROWS = [
    Row(
        "unravel_index", "indices dims", "indices, dims", _unravel_index, op="UnravelIndex",
        doc="Return the indices in each dimension of what flat indices point at.",
        examples=(
            "unravel_index([7, 2], [3, 3])", "unravel_index(7, [3, 3])",
            "unravel_index([9], [3, 3])", "unravel_index([2], [3, 0])",
        ),
    ),
    Row(
        "guarantee_const", "input", "input", _guarantee_const, text=True, doc="Return the tensor.",
        examples=("guarantee_const([1, 2])", "guarantee_const(r(2))", "guarantee_const('a')"),
    ),
    Row(
        "extract_volume_patches", "input", "input, ksizes, strides, padding", _volume_patches,
        kinds="float int", doc="Put the patches of volumes into the last dimension.",
        examples=(
            "extract_volume_patches(r(1, 2, 2, 2, 2), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], 'VALID')",
            "extract_volume_patches(r(1, 2, 2, 1, 1), [1, 2, 2, 1, 1], [1, 1, 2, 1, 1], 'SAME')",
            "extract_volume_patches(r(2, 2), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], 'VALID')",
        ),
    ),
    Row(
        "required_space_to_batch_paddings", "input_shape block_shape base_paddings?",
        "input_shape, block_shape, base_paddings=None", _space_to_batch_paddings,
        doc="Return the paddings and crops that make sizes multiples of a block.",
        examples=(
            "required_space_to_batch_paddings([3, 5], [2, 3])",
            "required_space_to_batch_paddings([3, 5], [2, 3], [[1, 0], [0, 1]])",
            "required_space_to_batch_paddings([4], [2])",
        ),
    ),
    Row(
        "approx_top_k", "input",
        "input, k, reduction_dimension=-1, recall_target=0.95, is_max_k=True, "
        "reduction_input_size_override=-1, aggregate_to_topk=True",
        _approx_top_k, kinds="float", op="ApproxTopK",
        doc="Find the largest numbers and where they are; on TPUs, most of them.",
        examples=(
            "approx_top_k(r(5), 2)", "approx_top_k(r(2, 3), 1)",
            "approx_top_k(r(2, 4), 3, recall_target=0.5)",
        ),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="")
