"""Operations at the top level that order and find: `tf.sort`, `tf.argsort`, `tf.unique`, ..."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.symbolic import propagate as _open_values
from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors import convert as _convert
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import is_known, one_axis, refused, require_known
from jaxvars.tf.tensors.tensor import Tensor, pair_typed
from jaxvars.typing import Array, Value

_NO_AXIS = "slice index {0} of dimension 0 out of bounds: there are {1} dimensions."


class Unique(NamedTuple):
    """What `tf.unique` returns: the values in order of their first use, and which one each is."""

    y: Any
    idx: Any


class UniqueWithCounts(NamedTuple):
    """What `tf.unique_with_counts` returns: as `Unique`, and how often each value is there."""

    y: Any
    idx: Any
    count: Any


def _is_descending(direction: Any) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise refused(
            "Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Received: "
            f"{direction}"
        )
    return direction == "DESCENDING"


@op("sort", "values", kinds="float int", example="r(5)")
def sort(values: Array, axis: Any = -1, direction: Any = "ASCENDING") -> Array:
    """Sort along a dimension.

    Differs from TensorFlow: NaN is the largest number, and others are in order around it.
    """
    place = one_axis(axis, values.ndim, words=_NO_AXIS)
    return jnp.sort(values, axis=place, descending=_is_descending(direction))


@op("argsort", "values", kinds="float int", example="r(5)")
def argsort(
    values: Array, axis: Any = -1, direction: Any = "ASCENDING", stable: Any = False
) -> Array:
    """Return the indices that sort along a dimension.

    Differs from TensorFlow: the sort is always stable, and NaN the largest number.
    """
    place, falls = one_axis(axis, values.ndim, words=_NO_AXIS), _is_descending(direction)
    return jnp.argsort(values, axis=place, stable=True, descending=falls).astype(np.int32)


@op(
    "searchsorted", "sorted_sequence values", op="LowerBound", same=True, kinds="float int",
    pairing=pair_typed,
)  # fmt: skip
def searchsorted(
    sorted_sequence: Array, values: Array, side: Any = "left", out_type: Any = "int32"
) -> Array:
    """Return where values would have to be put into sorted sequences.

    Example: `tf.searchsorted([1.0, 3.0, 5.0], r(4))`.

    Differs from TensorFlow: the place of NaN is the end.
    """
    if side not in ("left", "right"):
        raise refused(
            f"Argument `side` must be either 'right' or 'left'. Received: `side` = {side}."
        )
    if np.prod(sorted_sequence.shape[:-1]) != np.prod(values.shape[:-1]):
        raise refused(
            "Leading dim_size of both tensors must match: "
            f"{list(sorted_sequence.shape)} and {list(values.shape)}"
        )
    if not sorted_sequence.size or not values.size:
        return jnp.zeros(values.shape, as_dtype(out_type).dtype)
    rows = sorted_sequence.reshape(-1, sorted_sequence.shape[-1])
    asked = values.reshape(rows.shape[0], -1)
    found = jax.vmap(lambda a, b: jnp.searchsorted(a, b, side=side))(rows, asked)
    return found.reshape(values.shape).astype(as_dtype(out_type).dtype)


@op("unique", "x", strings=True, eager_only="the number of values depends on the values")
def unique(x: Array, out_idx: Any = "int32") -> Unique:
    """Return the values in the order of their first use, and which of them each element is.

    Example: `tf.unique([1, 1, 2, 4, 2, 0])`.
    """
    return Unique(*_uniques(x, out_idx)[:2])


@op(
    "unique_with_counts", "x", strings=True, eager_only="the number of values depends on the values"
)
def unique_with_counts(x: Array, out_idx: Any = "int32") -> UniqueWithCounts:
    """Return what `tf.unique` does, and how often each value is there.

    Example: `tf.unique_with_counts([3, 1, 3])`.
    """
    return UniqueWithCounts(*_uniques(x, out_idx))


def _uniques(x: Array, out_idx: Any) -> tuple[Value, Array, Array]:
    """Return the values, which of them each element is, and how often each is there."""
    given = require_known(x, "x")
    if given.ndim != 1:
        raise refused(f"unique expects a 1D vector, not shape {list(given.shape)}")
    found, first, which, counts = np.unique(given, True, True, True, equal_nan=False)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    dtype = as_dtype(out_idx).dtype
    indices, numbers = rank[which].astype(dtype), counts[order].astype(dtype)
    made = found[order] if _convert.is_text(x) else jnp.take(x, np.sort(first))
    return made, jnp.asarray(indices), jnp.asarray(numbers)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value of a tensor as a NumPy array if it is known, else None.

    Args:
        tensor: a tensor or variable.
        partial: of no effect: a value is known as a whole, or not.

    >>> from jaxvars import tf
    >>> tf.get_static_value(tf.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    array = _convert.to_array(tensor)
    if is_known(array):
        return Tensor(array).numpy()
    _open_values.ask_for_sizes()
    found = _open_values.sizes_of(array)
    if found is None or any(map(is_open, found.flat)):
        return None
    return found.astype(array.dtype)
