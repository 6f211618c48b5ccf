"""Operations at the top level that write parts: `tf.scatter_nd`, `tf.tensor_scatter_nd_add`, ...

Rules this file keeps:
- indices out of range are refused as in `arrays/gather.py`; elsewhere what goes there is dropped,
  as it is where `bad_indices_policy` is "IGNORE".
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.derivatives.scaling import reads_nothing
from jaxvars.tf.arrays.gather import check_indices, ignores
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.static import ints, not_too_many, refused
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_DROPPED = "what goes out of range is an error on the CPU only, and dropped in a `tf.function`."


def _scatter(x: Value, indices: Value, updates: Any, how: str, policy: str | None = "") -> Value:
    x, new = _convert.pair(x, updates, "TensorScatter")
    if context.is_tracer(indices):
        x, new = _convert.lift(x), _convert.lift(new)
    depth = indices.shape[-1] if indices.ndim else 0
    outer, sizes = indices.shape[:-1], new.shape
    if _is_empty(x) and not _is_empty(indices):
        raise refused(f"Indices and updates specified for empty output of shape {list(x.shape)}")
    if sizes[: len(outer)] != outer:
        raise refused(
            f"Dimensions [0,{len(outer)}) of indices[shape={list(indices.shape)}] must match "
            f"dimensions [0,{len(outer)}) of updates[shape={list(sizes)}]"
        )
    if depth > x.ndim or sizes[len(outer) :] != x.shape[depth:]:
        raise refused(
            f"Dimensions [{depth},{x.ndim}) of input[shape={list(x.shape)}] must match dimensions "
            f"[{len(outer)},{len(sizes)}) of updates[shape={list(sizes)}]"
        )
    if not ignores(policy):
        check_indices(indices, x.shape[:depth], "shape")
    if _convert.is_text(x):
        return _put_strings(x, indices, new, how)
    how = "max" if how == "add" and x.dtype == bool else how
    return _put(x, indices, new, how) if depth else _whole(x, new, how)


def _is_empty(x: Array) -> bool:
    return any(type(size) is int and not size for size in x.shape)


@functools.partial(jax.jit, static_argnums=3)
def _put(x: Array, indices: Array, new: Array, how: str) -> Array:
    """Return what updates of parts make of a tensor."""
    depth = indices.shape[-1]
    sizes = jnp.asarray(x.shape[:depth], indices.dtype)
    key = jnp.where(indices < 0, sizes, indices)  # JAX would count from the end
    return _replace(x, key, new) if how == "set" else _at(x, key, how)(new, mode="drop")


def _put_strings(x: Array, indices: Array, new: Array, how: str) -> Array:
    made, depth = x.copy(), indices.shape[-1]
    for place, part in zip(
        np.asarray(indices).reshape(-1, depth), new.reshape(-1, *x.shape[depth:]), strict=True
    ):
        if ((place < 0) | (place >= x.shape[:depth])).any():
            continue
        made[tuple(place)] = part if how == "set" else made[tuple(place)] + part
    return made


def _at(x: Array, key: Array, how: str) -> Any:
    return getattr(x.at[tuple(jnp.moveaxis(key, -1, 0))], how)


@jax.custom_jvp
def _replace(x: Array, key: Array, new: Array) -> Array:
    return _at(x, key, "set")(new, mode="drop")


@_replace.defjvp
@reads_nothing
def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """Of several updates of one place, each has the gradient, as in TensorFlow."""
    x, key, _new = primals
    is_new = _at(jnp.zeros(x.shape, bool), key, "set")(True, mode="drop")
    kept = jnp.where(is_new, 0, tangents[0])
    return _replace(*primals), _at(kept, key, "add")(tangents[2], mode="drop")


def _whole(x: Array, new: Array, how: str) -> Array:
    """Return what updates of the whole tensor make of it."""
    for part in () if _is_empty(x) else new.reshape(-1, *x.shape):
        x = getattr(x.at[...], how)(part)
    return x


@op(
    "scatter_nd", "indices updates", strings=True, example="[[1], [3], [1]], r(3), [4]",
    differs=_DROPPED,
)  # fmt: skip
def scatter_nd(
    indices: Array, updates: Array, shape: Any, bad_indices_policy: str | None = ""
) -> Array:
    """Add parts, by lists of indices, to zeros."""
    sizes = not_too_many(ints(shape, "shape"))
    is_text = _convert.is_text(updates)
    zeros = np.full(sizes, b"", object) if is_text else jnp.zeros(sizes, updates.dtype)
    return _scatter(zeros, indices, updates, "add", bad_indices_policy)


@op("tensor_scatter_nd_add", "tensor indices", op="TensorScatterAdd", differs=_DROPPED)
def tensor_scatter_nd_add(
    tensor: Array, indices: Array, updates: Array, bad_indices_policy: str | None = ""
) -> Array:
    """Add to parts, by lists of indices.

    Example: `tf.tensor_scatter_nd_add(r(4), [[1], [1]], r(2))`.
    """
    return _scatter(tensor, indices, updates, "add", bad_indices_policy)


@op("tensor_scatter_nd_sub", "tensor indices", op="TensorScatterSub", differs=_DROPPED)
def tensor_scatter_nd_sub(
    tensor: Array, indices: Array, updates: Array, bad_indices_policy: str | None = ""
) -> Array:
    """Subtract from parts, by lists of indices.

    Example: `tf.tensor_scatter_nd_sub(r(4), [[1], [1]], r(2))`.
    """
    less = -_convert.pair(tensor, updates, "TensorScatterSub")[1]
    return _scatter(tensor, indices, less, "add", bad_indices_policy)


@op("tensor_scatter_nd_max", "tensor indices", op="TensorScatterMax", differs=_DROPPED)
def tensor_scatter_nd_max(
    tensor: Array, indices: Array, updates: Array, bad_indices_policy: str | None = ""
) -> Array:
    """Take the larger of parts and updates, by lists of indices.

    Example: `tf.tensor_scatter_nd_max(p(4), [[1], [0]], r(2))`.
    """
    return _scatter(tensor, indices, updates, "max", bad_indices_policy)


@op("tensor_scatter_nd_min", "tensor indices", op="TensorScatterMin", differs=_DROPPED)
def tensor_scatter_nd_min(
    tensor: Array, indices: Array, updates: Array, bad_indices_policy: str | None = ""
) -> Array:
    """Take the smaller of parts and updates, by lists of indices.

    Example: `tf.tensor_scatter_nd_min(p(4), [[1], [0]], r(2))`.
    """
    return _scatter(tensor, indices, updates, "min", bad_indices_policy)


@op(
    "tensor_scatter_nd_update", "tensor indices", op="TensorScatterUpdate", strings=True,
    differs=_DROPPED,
)  # fmt: skip
def tensor_scatter_nd_update(tensor: Array, indices: Array, updates: Array) -> Array:
    """Replace parts, by lists of indices.

    Example: `tf.tensor_scatter_nd_update(r(4), [[1], [3]], r(2))`.
    """
    return _scatter(tensor, indices, updates, "set")
