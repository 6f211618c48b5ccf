"""Operations at the top level about codes: `tf.one_hot`, `tf.sequence_mask`, `tf.bitcast`."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import known, one_axis, one_int, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


@op("one_hot", "indices", kinds="int", example="i(3), 3")
def one_hot(
    indices: Array, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None,
    dtype: Any = None,
) -> Array:  # fmt: skip
    """Put one value at each index and another one elsewhere."""
    on, off = _values_of(on_value, off_value, dtype)
    size = one_int(depth, "depth")
    if size < 0:
        raise refused(f"depth must be non-negative, got: {size}")
    if indices.dtype.itemsize < 4:  # in which not every depth is itself
        indices = indices.astype(jnp.int32)
    place = indices.ndim if axis is None else one_axis(axis, indices.ndim + 1)
    return _hot(indices, on, off, size, place)


@partial(jax.jit, static_argnums=(3, 4))
def _hot(indices: Array, on: Array, off: Array, size: int, place: int) -> Array:
    shape = [1] * (indices.ndim + 1)
    shape[place] = size
    hot = jnp.expand_dims(indices, place) == jnp.arange(size, dtype=indices.dtype).reshape(shape)
    return jnp.where(hot, on, off)


def _values_of(on_value: Any, off_value: Any, dtype: Any) -> tuple[Array, Array]:
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


@op("sequence_mask", "lengths", example="i(3), 4")
def sequence_mask(lengths: Array, maxlen: Any = None, dtype: Any = "bool") -> Array:
    """Mark the first positions: as many as each length.

    Differs from TensorFlow: `maxlen` must be given inside a `tf.function` unless the lengths are
    known there.
    """
    if maxlen is None:
        size = int(known(lengths, "maxlen").max(initial=0))
    else:
        if not isinstance(maxlen, int) and known(maxlen, "maxlen").ndim:
            raise refused(f"Argument `maxlen` must be scalar for sequence_mask, received {maxlen}")
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
