"""Operations at the top level that turn tensors: `tf.transpose`, `tf.reverse`, `tf.roll`, ..."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.gather import checkable
from jaxvars.tf.registry.rows import Row, operations
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, known, one_axis, refused, space_of

Value: TypeAlias = Any


def _transpose(x: Value, perm: Any, conjugate: bool) -> Value:
    order = tuple(reversed(range(x.ndim))) if perm is None else ints(perm, "perm")
    if sorted(i % x.ndim if -x.ndim <= i < x.ndim else i for i in order) != list(range(x.ndim)):
        raise refused(f"perm {list(order)} is no permutation of the {x.ndim} dimensions")
    made = space_of(x).transpose(x, order)
    return jnp.conj(made) if conjugate and jnp.iscomplexobj(x) else made


def _reverse(x: Value, axis: Any) -> Value:
    if known(axis, "axis").ndim != 1:
        raise refused("'dims' must be 1-dimension, not 0")
    dims = ints(axis, "axis")
    for i, dim in enumerate(dims):
        if not -x.ndim <= dim < x.ndim:
            raise refused(f"'axis'[{i}] = {dim} is out of valid range [0, {x.ndim - 1}]")
    places = tuple(dim % x.ndim for dim in dims)
    twice = next((dim for i, dim in enumerate(places) if dim in places[:i]), None)
    if twice is not None:
        raise refused(f"axis {twice} specified more than once.")
    return space_of(x).flip(x, places)


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


def _reverse_sequence(x: Value, seq_lengths: Any, seq_axis: Any, batch_axis: Any) -> Value:
    time = one_axis(1 if seq_axis is None else seq_axis, x.ndim, "seq_axis")
    batch = one_axis(0 if batch_axis is None else batch_axis, x.ndim, "batch_axis")
    lengths = jnp.asarray(_convert.to_array(seq_lengths))
    if lengths.shape != (x.shape[batch],):
        raise refused(
            f"Length of seq_lengths != input.dims({batch}), ({lengths.shape} vs. {x.shape[batch]})"
        )
    if checkable(lengths) and (np.asarray(lengths) > x.shape[time]).any():
        raise refused(f"seq_lengths must be at most {x.shape[time]}, the size of axis {time}")
    steps = jnp.arange(x.shape[time])
    turned = jnp.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    shape = [n if i in (batch, time) else 1 for i, n in enumerate(x.shape)]
    index = (turned if batch < time else turned.T).reshape(shape)
    return jnp.take_along_axis(x, index, axis=time)


ROWS = [
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
        "reverse_sequence", "input", "input, seq_lengths, seq_axis=None, batch_axis=None",
        _reverse_sequence, doc="Reverse the first steps of each sequence of a batch.",
        examples=(
            "reverse_sequence(r(2, 3), [2, 3], seq_axis=1)",
            "reverse_sequence(r(3, 2), [1, 3], seq_axis=0, batch_axis=1)",
            "reverse_sequence(r(2, 3), [1], 1)",
        ),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="")
