"""Operations at the top level that take parts: `tf.gather`, `tf.boolean_mask`, `tf.where`, ...

Rules this file keeps:
- an index out of range is refused where it can be seen without waiting for an accelerator: outside
  of a traced function, on the CPU, or where it is a constant. Elsewhere it gives zeros.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.checks import Raised
from jaxvars.derivatives.sparse_rows import lookup, take
from jaxvars.symbolic.specialize import is_open
from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.registry.rows import compute_static, op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import bool_
from jaxvars.tf.tensors.handles import lift
from jaxvars.tf.tensors.static import checkable, one_axis, one_int, refused, require_known, space_of
from jaxvars.tf.tensors.tensor import OPERATIONS
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_FEW = 32  # so many numbers are compared faster by Python than by NumPy


# ---------------------------------------------------------------- by index
BAD = "Bad: indices[{}] == {} out of range [0, {})"
"""What sums of rows say of an index that is out of range, in place of the words of `tf.gather`."""


def check_indices(
    indices: Array, sizes: Any, inner: str = "", whole: Any = (),
    words: str = "indices[{}] = {} is not in [0, {})",
) -> None:  # fmt: skip
    """Raise InvalidArgumentError if one of some indices, which are known, is out of range.

    Args:
        indices: the indices; the last dimension has one for each of `sizes` if `inner` is given.
        sizes: of the dimensions that they are for.
        inner: what the message calls the shape that lists of indices are for.
        whole: that shape, if it has more than `sizes`.
        words: the message of single indices: of the place, the index and the size.
    """
    if not checkable(indices) or any(map(is_open, sizes)):
        return
    given = np.asarray(indices)
    if not inner:
        if _are_within(given, sizes[0]):
            return
        given = given[..., None]
    wrong = ((given < 0) | (given >= np.asarray(sizes))).any(axis=-1)
    if wrong.any():
        place = tuple(map(int, np.argwhere(wrong)[0]))
        one = given[place].tolist()
        where = ",".join(map(str, place))
        if inner:
            shape = ",".join(map(str, whole or sizes))
            raise refused(f"indices[{where}] = {one} does not index into {inner} [{shape}]")
        raise refused(words.format(where, one[0], int(sizes[0])))


def ignores(policy: str | None) -> bool:
    """Return whether indices out of range are passed over, as `bad_indices_policy` says.

    Raises:
        InvalidArgumentError: when it is none that TensorFlow has.
    """
    if policy not in {None, "", "DEFAULT", "ERROR", "IGNORE"}:
        raise refused(
            "bad_indices_policy must be 'ERROR', 'IGNORE' or 'DEFAULT', which is 'ERROR', got "
            f"{policy!r}. A name is given as name=."
        )
    return policy == "IGNORE"


def _are_within(given: np.ndarray, limit: int) -> bool:
    if given.size <= _FEW:
        few = given.ravel().tolist()
        return not few or (max(few) < limit and min(few) >= 0)
    return bool(given.max() < limit and given.min() >= 0)


def rows_at(table: Array, indices: Array) -> Array:
    """Return rows of a table, as `tf.gather` does without further arguments.

    Args:
        table: an array of shape `[n, ...]`.
        indices: integers, which are checked if that can be done.

    Raises:
        InvalidArgumentError: when an index is out of range; while a function is traced, when the
            program runs and needs the rows.
    """
    try:
        check_indices(indices, table.shape)
    except InvalidArgumentError as error:
        if not context.is_staging():
            raise
        return _failing(error, (*indices.shape, *table.shape[1:]), table.dtype)
    return _take(table, indices, 0) if type(table) is np.ndarray else lookup(table, indices)


def _failing(error: InvalidArgumentError, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return what raises an error when a program computes it: not if it is not needed."""

    def on_host() -> Any:
        Raised.error = error
        raise error

    return jax.pure_callback(on_host, jax.ShapeDtypeStruct(shape, dtype))


@op("gather", "params indices", op="GatherV2", strings=True, example="r(3, 2), [2, 0, 2]")
def gather(
    params: Array, indices: Array, validate_indices: Any = None, axis: Any = None,
    batch_dims: Any = 0,
) -> Array:  # fmt: skip
    """Take slices along a dimension, by index.

    Differs from TensorFlow: an index out of range is an error on the CPU only, and gives zeros in a
    `tf.function`.
    """
    if indices.dtype.kind not in "iu":
        kind = _convert.c_name(_convert.dtype_of(indices))
        raise refused(
            f"Value for attr 'Tindices' of {kind} is not in the list of allowed values: int16, "
            "int32, int64"
        )
    if not params.ndim:
        raise refused("params must be at least 1 dimensional")
    if (axis is None or (type(axis) is int and axis == 0)) and (
        batch_dims is None or (type(batch_dims) is int and not batch_dims)
    ):
        return rows_at(params, indices)
    batch = 0 if batch_dims is None else one_int(batch_dims, "batch_dims")
    batch = batch + indices.ndim if batch < 0 else batch
    place = batch if axis is None else one_int(axis, "axis")
    if not -params.ndim <= place < params.ndim:
        least = place + 1 if place >= 0 else -place
        raise refused(f"Shape must be at least rank {least} but is rank {params.ndim}: axis {axis}")
    place %= params.ndim
    if batch > min(place, indices.ndim) or params.shape[:batch] != indices.shape[:batch]:
        raise refused(
            f"params.shape {list(params.shape)} and indices.shape {list(indices.shape)} must begin "
            f"with the same {batch} sizes, and axis {place} may not be one of them"
        )
    check_indices(indices, params.shape[place : place + 1])
    if not batch:
        return _take(params, indices, place)
    params = lift(params) if context.is_tracer(indices) else params
    if _convert.is_text(params):
        return _of_text(params, lambda x: _take_in_batches(x, indices, batch, place - batch))
    return _take_in_batches(params, indices, batch, place - batch)


def _take(params: Value, indices: Array, axis: int) -> Value:
    params = lift(params) if context.is_tracer(indices) else params
    if _convert.is_text(params):
        return np.take(params, np.asarray(indices), axis=axis)
    return _take_rows(params, indices, axis)


def _of_text(params: Value, taken: Callable[[Value], Value]) -> Value:
    """Return those strings, of some, whose numbers a function of an array takes; 0 has none."""
    with context.at(context.EVAL):
        places = taken(np.arange(1, 1 + params.size).reshape(params.shape))
    return np.append(np.array([b""], object), params)[np.asarray(places)]


@functools.partial(jax.jit, static_argnums=2)
def _take_rows(params: Array, indices: Array, axis: int) -> Array:
    return take(params, indices, axis)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _take_in_batches(params: Array, indices: Array, batch: int, axis: int) -> Array:
    return _in_batches(functools.partial(take, axis=axis), batch)(params, indices)


def _in_batches(one: Callable[..., Array], batch: int) -> Callable[..., Array]:
    """Return a function that does `one` for each part of the first `batch` dimensions."""
    for _ in range(batch):
        one = jax.vmap(one)
    return one


@op("gather_nd", "params indices", strings=True, example="r(2, 3), [[0, 1], [1, 2]]")
def gather_nd(
    params: Array, indices: Array, batch_dims: Any = 0, bad_indices_policy: str | None = ""
) -> Array:
    """Take elements or slices, by lists of indices.

    With `bad_indices_policy="IGNORE"`, an index out of range gives zeros.

    Differs from TensorFlow: an index out of range is an error on the CPU only, and gives zeros in a
    `tf.function`.
    """
    batch = one_int(batch_dims, "batch_dims")
    if not 0 <= batch < max(1, min(params.ndim, indices.ndim)):
        raise refused(
            f"batch_dims = {batch} must be in [0, {min(params.ndim, indices.ndim)}): less than the "
            "rank of params and that of indices"
        )
    depth = indices.shape[-1]
    if depth > params.ndim - batch:
        raise refused(
            f"index innermost dimension length must be <= params rank; saw: {depth} vs. "
            f"{params.ndim}"
        )
    params = lift(params) if context.is_tracer(indices) else params
    sizes = params.shape[batch : batch + depth]
    if not ignores(bad_indices_policy):
        check_indices(indices, sizes, "param shape", params.shape[batch:])
    if batch == 0 and depth == 1 and indices.ndim == 2 and not _convert.is_text(params):
        return lookup(params, _first(indices))
    if _convert.is_text(params):
        return _of_text(params, lambda x: _at(x, indices, sizes, batch))
    return _at(params, indices, sizes, batch)


@jax.jit
def _first(indices: Array) -> Array:
    return indices[:, 0]


@functools.partial(jax.jit, static_argnums=(2, 3))
def _at(params: Array, indices: Array, sizes: tuple[int, ...], batch: int) -> Array:
    """Return the parts at lists of indices, one for each of some dimensions, of some sizes."""

    def one(params: Array, indices: Array) -> Array:
        if not sizes:
            return jnp.broadcast_to(params, indices.shape[:-1] + params.shape)
        limits = jnp.asarray(sizes, indices.dtype)
        found = params[tuple(jnp.moveaxis(jnp.clip(indices, 0, limits - 1), -1, 0))]
        is_there = jnp.all((indices >= 0) & (indices < limits), axis=-1)
        is_there = jnp.expand_dims(is_there, range(is_there.ndim, found.ndim))
        return jnp.where(is_there, found, jnp.zeros((), found.dtype))

    return _in_batches(one, batch)(params, indices)


# ---------------------------------------------------------------- by condition
@op("boolean_mask", "tensor", strings=True, eager_only="the size of the result depends on values")
def boolean_mask(tensor: Array, mask: Any, axis: Any = None) -> Array:
    """Take the elements or slices for which a mask is true.

    Example: `tf.boolean_mask(r(3, 2), [True, False, True])`.

    Differs from TensorFlow: inside a `tf.function` the mask must be known.
    """
    chosen = _known_condition(mask, "mask (use tf.where(mask, x, 0), which keeps the shape): it")
    start = 0 if axis is None else one_axis(axis, tensor.ndim)
    if not chosen.ndim:
        raise refused("mask cannot be scalar.")
    masked = tensor.shape[start : start + chosen.ndim]
    if masked != chosen.shape:
        raise refused(f"Shapes {masked} and {chosen.shape} are incompatible")
    flat = tensor.reshape(*tensor.shape[:start], chosen.size, *tensor.shape[start + chosen.ndim :])
    return space_of(tensor).take(flat, np.flatnonzero(chosen), axis=start)


def _known_condition(condition: Any, what: str) -> np.ndarray:
    given = _convert.to_array(condition)
    if _convert.is_text(given):
        raise refused("Value for attr 'T' of string is not in the list of allowed values", "Where")
    return require_known(given, what)


@op("where", op="SelectV2", strings=True, example="b(2, 3), r(2, 3), 0.0")
def where(condition: Any, x: Any = None, y: Any = None) -> Array:
    """Choose from two tensors by a condition; alone, return where it is true.

    Differs from TensorFlow: with a condition alone, it must be known inside a `tf.function`.
    """
    if (x is None) != (y is None):
        raise refused("x and y must both be non-None or both be None.")
    if x is None:
        cure = "condition (give x and y, too, which keeps the shape): it"
        found = _known_condition(condition, cure)
        if not found.ndim:
            raise refused("WhereOp : Unhandled input dimensions: 0", "Where")
        return jnp.asarray(np.argwhere(found), narrowed(np.int64))
    chosen = _convert.to_operand_of(bool_, condition, "SelectV2")
    a, b = _convert.pair(x, y, "SelectV2")
    if context.is_tracer(chosen):
        return jnp.where(chosen, lift(a), lift(b))
    if _convert.is_text(a):
        return np.where(np.asarray(chosen), a, b)
    if _convert.is_static((chosen, a, b)):
        return compute_static(jnp.where, chosen, a, b)
    return jnp.where(chosen, a, b)


OPERATIONS.update(gather=gather, gather_nd=gather_nd)
