"""Operations at the top level about places: `tf.unravel_index`, patches of volumes, ..."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.gather import checkable
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.static import ints, known, one_axis, refused
from jaxvars.typing import Array


class ApproxTopK(NamedTuple):
    """What `tf.approx_top_k` returns."""

    values: Any
    indices: Any


@op("unravel_index", "indices dims", example="[7, 2], [3, 3]")
def unravel_index(indices: Array, dims: Array) -> Array:
    """Return the indices in each dimension of what flat indices point at."""
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


@op("guarantee_const", "input", text=True, example="[1, 2]")
def guarantee_const(input: Array) -> Array:
    """Return the tensor."""
    return input


@op("extract_volume_patches", "input", kinds="float int")
def extract_volume_patches(input: Array, ksizes: Any, strides: Any, padding: str) -> Array:
    """Put the patches of volumes into the last dimension.

    Example:
    `tf.extract_volume_patches(r(1, 2, 2, 2, 2), [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], 'VALID')`.
    """
    sizes, steps = ints(ksizes, "ksizes"), ints(strides, "strides")
    if input.ndim != 5 or len(sizes) != 5 or len(steps) != 5:
        raise refused("input, ksizes and strides must have 5 dimensions")
    if sizes[0] != 1 or sizes[4] != 1 or steps[0] != 1 or steps[4] != 1:
        raise refused("ksizes and strides must be 1 in the first and the last dimension")
    if padding not in ("SAME", "VALID"):
        raise refused(f"padding is 'SAME' or 'VALID', not {padding!r}")
    made = jax.lax.conv_general_dilated_patches(
        jnp.moveaxis(input, -1, 1), sizes[1:4], steps[1:4], padding,
        precision=jax.lax.Precision.HIGHEST,
    )  # fmt: skip
    batch, _, *places = made.shape
    apart = made.reshape(batch, input.shape[-1], math.prod(sizes), *places)
    return jnp.moveaxis(apart, (2, 1), (4, 5)).reshape(batch, *places, -1)


@op("approx_top_k", "input", op="ApproxTopK", kinds="float", example="r(5), 2")
def approx_top_k(
    input: Array, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    is_max_k: bool = True, reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
) -> ApproxTopK:  # fmt: skip
    """Find the largest numbers and where they are; on TPUs, most of them."""
    find = jax.lax.approx_max_k if is_max_k else jax.lax.approx_min_k
    return ApproxTopK(
        *find(
            input, k, reduction_dimension=one_axis(reduction_dimension, input.ndim),
            recall_target=recall_target, aggregate_to_topk=aggregate_to_topk,
            reduction_input_size_override=reduction_input_size_override,
        )
    )  # fmt: skip
