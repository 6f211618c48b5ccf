"""Operations at the top level that write parts: `tf.scatter_nd`, `tf.tensor_scatter_nd_add`, ...

Rules this file keeps:
- indices out of range are refused as in `arrays/gather.py`; elsewhere what goes there is dropped.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp

from jaxvars.tf.arrays.gather import check_indices
from jaxvars.tf.registry.rows import Row, operations
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, refused

Value: TypeAlias = Any

_DROPPED = "what goes out of range is an error on the CPU only, and dropped in a `tf.function`."


def _scattered(x: Value, indices: Value, updates: Any, how: str) -> Value:
    new = _convert.pair(x, updates, "TensorScatter")[1]
    depth = indices.shape[-1] if indices.ndim else 0
    if depth > x.ndim or new.shape != indices.shape[:-1] + x.shape[depth:]:
        raise refused(
            "Dimensions [0,1) of indices.shape must match those of updates.shape, and the rest "
            f"that of the tensor: indices {list(indices.shape)}, updates {list(new.shape)}, tensor "
            f"{list(x.shape)}"
        )
    check_indices(indices, x.shape[:depth], "shape")
    if not depth:
        return _whole(x, new, how)
    sizes = jnp.asarray(x.shape[:depth], indices.dtype)
    key = jnp.where(indices < 0, sizes, indices)  # JAX would count from the end
    return getattr(x.at[tuple(jnp.moveaxis(key, -1, 0))], how)(new, mode="drop")


def _whole(x: Value, new: Value, how: str) -> Value:
    """Return what updates of the whole tensor make of it."""
    for part in new.reshape(-1, *x.shape):
        x = getattr(x.at[...], how)(part)
    return x


def _scatter_nd(indices: Value, updates: Value, shape: Any, bad_indices_policy: str) -> Value:
    return _scattered(jnp.zeros(ints(shape, "shape"), updates.dtype), indices, updates, "add")


def _add(x: Value, indices: Value, updates: Value, bad_indices_policy: str) -> Value:
    return _scattered(x, indices, updates, "add")


def _sub(x: Value, indices: Value, updates: Value, bad_indices_policy: str) -> Value:
    return _scattered(x, indices, -_convert.pair(x, updates, "TensorScatterSub")[1], "add")


def _max(x: Value, indices: Value, updates: Value, bad_indices_policy: str) -> Value:
    return _scattered(x, indices, updates, "max")


def _min(x: Value, indices: Value, updates: Value, bad_indices_policy: str) -> Value:
    return _scattered(x, indices, updates, "min")


def _update(x: Value, indices: Value, updates: Value) -> Value:
    return _scattered(x, indices, updates, "set")


_SIGNATURE = "tensor, indices, updates, bad_indices_policy=''"

ROWS = [
    Row(
        "scatter_nd", "indices updates", "indices, updates, shape, bad_indices_policy=''",
        _scatter_nd,
        op="ScatterNd", doc="Add parts, by lists of indices, to zeros.", differs=_DROPPED,
        examples=(
            "scatter_nd([[1], [3], [1]], r(3), [4])", "scatter_nd([[0, 1]], r(1, 2), [2, 2, 2])",
            "scatter_nd([[4]], r(1), [4])", "scatter_nd([[0]], r(2), [3])",
        ),
    ),
    Row(
        "tensor_scatter_nd_add", "tensor indices", _SIGNATURE, _add, op="TensorScatterAdd",
        doc="Add to parts, by lists of indices.", differs=_DROPPED,
        examples=(
            "tensor_scatter_nd_add(r(4), [[1], [1]], r(2))",
            "tensor_scatter_nd_add(i(2, 2), [[0, 1]], [5])",
            "tensor_scatter_nd_add(r(2), [[2]], r(1))",
        ),
    ),
    Row(
        "tensor_scatter_nd_sub", "tensor indices", _SIGNATURE, _sub, op="TensorScatterSub",
        doc="Subtract from parts, by lists of indices.", differs=_DROPPED,
        examples=(
            "tensor_scatter_nd_sub(r(4), [[1], [1]], r(2))",
            "tensor_scatter_nd_sub(i(2, 2), [[1]], [[5, 6]])",
            "tensor_scatter_nd_sub(r(2), [[-1]], r(1))",
        ),
    ),
    Row(
        "tensor_scatter_nd_max", "tensor indices", _SIGNATURE, _max, op="TensorScatterMax",
        doc="Take the larger of parts and updates, by lists of indices.", differs=_DROPPED,
        examples=(
            "tensor_scatter_nd_max(p(4), [[1], [0]], r(2))",
            "tensor_scatter_nd_max(i(4), [[0], [0]], [5, 6])",
            "tensor_scatter_nd_max(r(2), [[0]], r(2))",
        ),
    ),
    Row(
        "tensor_scatter_nd_min", "tensor indices", _SIGNATURE, _min, op="TensorScatterMin",
        doc="Take the smaller of parts and updates, by lists of indices.", differs=_DROPPED,
        examples=(
            "tensor_scatter_nd_min(p(4), [[1], [0]], r(2))",
            "tensor_scatter_nd_min(i(4), [[0], [0]], [5, 6])",
            "tensor_scatter_nd_min(r(2), [[0]], i(1))",
        ),
    ),
    Row(
        "tensor_scatter_nd_update", "tensor indices", "tensor, indices, updates", _update,
        op="TensorScatterUpdate", doc="Replace parts, by lists of indices.", differs=_DROPPED,
        examples=(
            "tensor_scatter_nd_update(r(4), [[1], [3]], r(2))",
            "tensor_scatter_nd_update(i(2, 2), [[1]], [[5, 6]])",
            "tensor_scatter_nd_update(r(2, 2), [[0, 2]], r(1))",
        ),
    ),
]  # fmt: skip

__getattr__ = operations(__name__, ROWS, space="")
