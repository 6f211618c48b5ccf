"""The part of `tf.math` that reduces groups of rows: `segment_sum`, `unsorted_segment_sum`, ...

Rules this file keeps:
- of no rows, the sum is 0, the product 1; the extremes are 0 of sorted segments, the limits of the
  type of unsorted ones;
- the number of sorted segments depends on values, so that compiled functions use unsorted ones;
- gradients are TensorFlow's: rows that share the maximum share its gradient, and a product is
  differentiated where factors are 0.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxvars.tf.registry.rows import op
from jaxvars.tf.tensors.dtypes import divisible, widen
from jaxvars.tracing import context
from jaxvars.typing import Array

_NAN = "A segment with NaN gives NaN."
_LEFT_OUT = "In a compiled function, ids that are too large are left out, too."

Reduce: TypeAlias = Callable[[Array, Array, int], Array]

_NUMBERS, _ORDERED = "float complex int", "float int"
_SIZE = "The size of the result depends on values."
_LIMIT_WORDS = (
    "the number of segments depends on values, which a compiled function does not know. Use "
    "tf.math.unsorted_segment_sum(data, segment_ids, num_segments) and the like"
)


# ---------------------------------------------------------------- sums of rows
def _sum(data: Array, ids: Array, count: int) -> Array:
    return jax.ops.segment_sum(data, ids, count)


def _sizes(data: Array, ids: Array, count: int) -> Array:
    """Return the number of rows of each segment, of a shape that fits to the sums."""
    sizes = jax.ops.segment_sum(jnp.ones(ids.shape, np.int32), ids, count)
    return sizes.reshape(sizes.shape + (1,) * (data.ndim - 1))


def _mean(data: Array, ids: Array, count: int) -> Array:
    sizes = jnp.maximum(_sizes(data, ids, count), 1).astype(data.dtype)
    total = _sum(data, ids, count)
    if data.dtype.kind in "iu":
        return lax.div(*jnp.broadcast_arrays(total, sizes))
    return total / sizes


def _wide_mean(data: Array, ids: Array, count: int) -> Array:
    return _mean(divisible(data), ids, count)


# ---------------------------------------------------------------- extremes and products
def _with_gradient(value: Reduce, share: Reduce) -> Reduce:
    """Return a reduction with a derivative: each row's share of it, times its change."""
    made = jax.custom_jvp(value, nondiff_argnums=(2,))

    @made.defjvp
    def _(count: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
        data, ids = primals
        change = _sum(share(data, ids, count) * tangents[0], ids, count)
        return made(data, ids, count), change

    return made


def _equal_share(extreme: Reduce) -> Reduce:
    def share(data: Array, ids: Array, count: int) -> Array:
        chosen = (data == _of_rows(extreme(data, ids, count), ids)).astype(data.dtype)
        return chosen / jnp.maximum(_of_rows(_sum(chosen, ids, count), ids), 1)

    return share


def _of_rows(segments: Array, ids: Array) -> Array:
    """Return for each row the value of its segment."""
    return segments.at[ids].get(mode="clip", wrap_negative_indices=False)


def _product_of_others(data: Array, ids: Array, count: int) -> Array:
    zero = data == 0
    zeros = _of_rows(_sum(zero.astype(np.int32), ids, count), ids)
    rest = _of_rows(_prod(jnp.where(zero, 1, data), ids, count), ids)
    without = jnp.where(zero, rest, rest / jnp.where(zero, 1, data))
    return jnp.where(zeros == zero, without, 0)


def _extreme(find: Callable[..., Array], fill: float | None, sign: int) -> Reduce:
    """Return a maximum or minimum; `fill` is that of no rows, the limit of the type if None."""

    def found(data: Array, ids: Array, count: int) -> Array:
        empty = _sizes(data, ids, count) == 0
        nothing = _limit(data.dtype, sign) if fill is None else jnp.asarray(fill, data.dtype)
        return jnp.where(empty, nothing, find(data, ids, count))

    return _with_gradient(found, _equal_share(found))


def _limit(dtype: Any, sign: int) -> Array:
    limits = jnp.iinfo(dtype) if jnp.issubdtype(dtype, jnp.integer) else jnp.finfo(dtype)
    return jnp.asarray(limits.min if sign < 0 else limits.max, dtype)


_prod = _with_gradient(
    lambda data, ids, count: jax.ops.segment_prod(data, ids, count), _product_of_others
)
_max_or_0 = _extreme(jax.ops.segment_max, 0, -1)
_min_or_0 = _extreme(jax.ops.segment_min, 0, 1)
_max_or_least = _extreme(jax.ops.segment_max, None, -1)
_min_or_greatest = _extreme(jax.ops.segment_min, None, 1)
_EXTREMES = {_max_or_0, _min_or_0, _max_or_least, _min_or_greatest}


# ---------------------------------------------------------------- segments, sorted and not
def _reduce_sorted(reduce: Reduce, data: Array, ids: Array) -> Array:
    _check_types(ids)
    if not data.ndim:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if ids.ndim != 1 or ids.shape[0] != data.shape[0]:
        raise ValueError("segment_ids should be the same size as dimension 0 of input.")
    if context.is_tracer(ids):
        raise ValueError(_LIMIT_WORDS)
    known = np.asarray(ids)
    if (known < 0).any():
        raise ValueError("segment ids must be >= 0")
    if (np.diff(known) < 0).any():
        raise ValueError("segment ids are not increasing")
    return _run(reduce, data, ids, int(known[-1]) + 1 if known.size else 0)


def _reduce_unsorted(reduce: Reduce, data: Array, ids: Array, num_segments: Any) -> Array:
    _check_types(ids)
    if data.shape[: ids.ndim] != ids.shape:
        raise ValueError(
            f"data.shape = {list(data.shape)} does not start with segment_ids.shape = "
            f"{list(ids.shape)}"
        )
    count = operator.index(np.asarray(num_segments)[()])
    _check_range(ids, count)
    return _run(reduce, data, ids, count)


@functools.partial(jax.jit, static_argnums=(0, 3))
def _run(reduce: Reduce, data: Array, ids: Array, count: int) -> Array:
    rows = data.reshape((ids.size, *data.shape[ids.ndim :]))
    if count * math.prod(rows.shape[1:]) * rows.dtype.itemsize >= 2**62:  # XLA ends the process
        raise ValueError(f"{count} segments do not fit into memory")
    wide = rows if reduce in _EXTREMES else widen(rows)
    made = reduce(wide, ids.reshape(-1), count)
    return made if wide is rows else made.astype(rows.dtype)


def _check_types(ids: Array) -> None:
    if ids.dtype.kind not in "iu":
        raise ValueError(f"Value for attr 'Tindices' of {ids.dtype} is not int32 or int64")


def _check_range(ids: Array, count: int) -> None:
    if count < 0:
        raise ValueError(f"Input num_segments == {count} must not be negative.")
    if context.is_tracer(ids):
        return  # those that are out of range are dropped
    wrong = np.argwhere(np.asarray(ids) >= count)
    if len(wrong):
        place = ",".join(map(str, wrong[0]))
        number = np.asarray(ids)[tuple(wrong[0])]
        raise ValueError(f"segment_ids[{place}] = {number} is out of range [0, {count})")


def _make_sorted(
    name: str, reduce: Reduce, doc: str, kinds: str = _NUMBERS, differs: str = ""
) -> Any:
    """Return the operation of rows whose segment ids increase."""

    def call(data: Array, segment_ids: Array) -> Array:
        return _reduce_sorted(reduce, data, segment_ids)

    call.__name__ = name
    call.__doc__ = f"{doc}, for each segment, of rows whose segment ids increase."
    options: Any = {"kinds": kinds, "eager_only": _SIZE, "differs": differs}
    return op(f"math.{name}", "data segment_ids", **options, example="r(4, 2), [0, 0, 1, 3]")(call)


def _make_unsorted(
    name: str, reduce: Reduce, doc: str, kinds: str = _NUMBERS, differs: str = _LEFT_OUT
) -> Any:
    """Return the operation of rows in any order."""

    def call(data: Array, segment_ids: Array, num_segments: Any) -> Array:
        return _reduce_unsorted(reduce, data, segment_ids, num_segments)

    call.__name__, call.__doc__ = name, f"{doc}, for each segment; negative ids are left out."
    options: Any = {"kinds": kinds, "differs": differs, "example": "r(4, 2), [2, 0, 2, -1], 4"}
    return op(f"math.{name}", "data segment_ids", **options)(call)


# fmt: off
_MAX, _MIN, _MEAN = "Return the maximum", "Return the minimum", "Return the mean"
segment_sum = _make_sorted("segment_sum", _sum, "Add up")
segment_prod = _make_sorted("segment_prod", _prod, "Multiply")
segment_mean = _make_sorted("segment_mean", _mean, _MEAN)
segment_max = _make_sorted("segment_max", _max_or_0, _MAX, _ORDERED, _NAN)
segment_min = _make_sorted("segment_min", _min_or_0, _MIN, _ORDERED, _NAN)
unsorted_segment_sum = _make_unsorted("unsorted_segment_sum", _sum, "Add up")
unsorted_segment_prod = _make_unsorted("unsorted_segment_prod", _prod, "Multiply")
unsorted_segment_mean = _make_unsorted("unsorted_segment_mean", _wide_mean, _MEAN)
unsorted_segment_max = _make_unsorted("unsorted_segment_max", _max_or_least, _MAX, _ORDERED,
                                      f"{_NAN} {_LEFT_OUT}")
unsorted_segment_min = _make_unsorted("unsorted_segment_min", _min_or_greatest, _MIN, _ORDERED,
                                      f"{_NAN} {_LEFT_OUT}")
# fmt: on
