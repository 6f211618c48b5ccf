"""Operations at the top level that turn tensors: `tf.transpose`, `tf.reverse`, `tf.roll`, ..."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.gather import checkable
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, known, one_axis, refused, space_of
from jaxvars.typing import Array


@op("transpose", "a", text=True, example="r(2, 3)")
def transpose(a: Array, perm: Any = None, conjugate: bool = False) -> Array:
    """Permute the dimensions; reverse them if there is no `perm`."""
    order = tuple(reversed(range(a.ndim))) if perm is None else ints(perm, "perm")
    if sorted(i % a.ndim if -a.ndim <= i < a.ndim else i for i in order) != list(range(a.ndim)):
        raise refused(f"perm {list(order)} is not a permutation of the {a.ndim} dimensions")
    made = space_of(a).transpose(a, order)
    return jnp.conj(made) if conjugate and jnp.iscomplexobj(a) else made


@op("reverse", "tensor", op="ReverseV2", text=True, example="r(2, 3), [1]")
def reverse(tensor: Array, axis: Any) -> Array:
    """Reverse along some dimensions."""
    if known(axis, "axis").ndim != 1:
        raise refused("'dims' must be 1-dimension, not 0")
    dims = ints(axis, "axis")
    for i, dim in enumerate(dims):
        if not -tensor.ndim <= dim < tensor.ndim:
            raise refused(f"'axis'[{i}] = {dim} is out of valid range [0, {tensor.ndim - 1}]")
    places = tuple(dim % tensor.ndim for dim in dims)
    twice = next((dim for i, dim in enumerate(places) if dim in places[:i]), None)
    if twice is not None:
        raise refused(f"axis {twice} specified more than once.")
    return space_of(tensor).flip(tensor, places)


@op("roll", "input", example="r(5), 2, 0")
def roll(input: Array, shift: Any, axis: Any) -> Array:
    """Shift elements along dimensions, around."""
    if not input.ndim:
        raise refused("input must be 1-D or higher")
    dims = tuple(one_axis(a, input.ndim) for a in ints(axis, "axis"))
    shifts = jnp.reshape(_convert.to_array(shift), (-1,))
    if shifts.size != len(dims):
        raise refused("shift and axis must have the same size")
    for i, dim in enumerate(dims):
        input = jnp.roll(input, shifts[i], dim)
    return input


@op("reverse_sequence", "input", example="r(2, 3), [2, 3], seq_axis=1")
def reverse_sequence(
    input: Array, seq_lengths: Any, seq_axis: Any = None, batch_axis: Any = None
) -> Array:
    """Reverse the first steps of each sequence of a batch."""
    time = one_axis(1 if seq_axis is None else seq_axis, input.ndim, "seq_axis")
    batch = one_axis(0 if batch_axis is None else batch_axis, input.ndim, "batch_axis")
    lengths = jnp.asarray(_convert.to_array(seq_lengths))
    if lengths.shape != (input.shape[batch],):
        raise refused(
            f"Length of seq_lengths != input.dims({batch}), ({lengths.shape} vs. "
            f"{input.shape[batch]})"
        )
    if checkable(lengths) and (np.asarray(lengths) > input.shape[time]).any():
        raise refused(f"seq_lengths must be at most {input.shape[time]}, the size of axis {time}")
    steps = jnp.arange(input.shape[time])
    turned = jnp.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    shape = [n if i in (batch, time) else 1 for i, n in enumerate(input.shape)]
    index = (turned if batch < time else turned.T).reshape(shape)
    return jnp.take_along_axis(input, index, axis=time)
