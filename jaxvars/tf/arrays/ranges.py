"""Operations at the top level that make sequences: `tf.range`, `tf.linspace`."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.sizes import type_of
from jaxvars.tf.registry.rows import Refused, op
from jaxvars.tf.tensors import static as _static
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype, divisible, int32
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

_LADDER = ("int32", "int64", "float16", "bfloat16", "float32", "float64")


_LONG = 1024


@op("range", example="5")
def range_(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None) -> Array:
    """Make a sequence of numbers, from `start` to before `limit`."""
    if limit is None:
        start, limit = 0, start
    wanted = None if dtype is None else type_of(dtype)
    try:
        ends = [_end(x, wanted) for x in (start, limit, delta)]
    except (TypeError, ValueError) as error:
        raise Refused(error) from None
    for name, end in zip(("start", "limit", "delta"), ends, strict=True):
        if end.ndim:
            raise ValueError(f"{name} must be a scalar, not shape {list(end.shape)}")
    if any(end.dtype == object for end in ends):
        return _open_sequence(ends, wanted or int32)
    names = [dtype_of(end).name for end in ends]
    kind = wanted or as_dtype(max(names, key=lambda n: _LADDER.index(n) if n in _LADDER else 0))
    first, last, step = (end.astype(kind.dtype) for end in ends)
    (length,) = _static.not_too_many((_length(first, last, step),))
    return _sequence(first, length, step)


def _end(x: Any, wanted: DType | None) -> np.ndarray:
    if type(x) is int and abs(x) < 2**31 and wanted is None:
        return np.asarray(x, np.int32)  # the common case, fast
    return _static.require_known(to_array(x, hint=wanted), "a range")


def _open_sequence(ends: list[np.ndarray], kind: DType) -> Array:
    """Return a sequence whose length is an unknown dimension."""
    first, last, step = (_static.as_size(end[()]) for end in ends)
    if step != 1:
        raise _static.refused("A range between unknown dimensions goes in steps of 1")
    return jnp.arange(last - first).astype(kind.dtype) + jnp.asarray(first).astype(kind.dtype)


def _length(first: np.ndarray, last: np.ndarray, step: np.ndarray) -> int:
    if step == 0:
        raise ValueError("Requires delta != 0: 0")
    if (step > 0 and first > last) or (step < 0 and first < last):
        sign = "<= limit when delta > 0" if step > 0 else ">= limit when delta < 0"
        raise ValueError(f"Requires start {sign}: {first}/{last}")
    if step.dtype.kind in "iu":
        return -((int(first) - int(last)) // int(step))
    return math.ceil(abs((float(last) - float(first)) / float(step)))


def _sequence(first: np.ndarray, length: int, step: np.ndarray) -> Array:
    if length > _LONG:
        return jnp.arange(length).astype(first.dtype) * step + first
    with context.at(context.EVAL):
        return jnp.asarray(np.arange(length).astype(first.dtype) * step + first)


def _ends(start: Any, stop: Any, op: str) -> tuple[Value, Value]:
    if type(start) is float and type(stop) is float and abs(start) + abs(stop) < 1e38:
        return np.float32(start), np.float32(stop)  # the common case, fast
    first = to_array(start)
    try:
        last = to_array(stop, dtype_of(first))
    except ValueError as error:
        raise ValueError(f"stop: {error}") from None
    return first, last


@op("linspace", "start stop", op="LinSpace", same=True, pairing=_ends, example="0.0, 1.0, 3")
def linspace(start: Array, stop: Array, num: Any, axis: Any = 0) -> Array:
    """Make a sequence of numbers with equal distances, both ends included."""
    count = _static.one_int(num, "num")
    if count < 0:
        raise ValueError(f"Dimension {count} must be >= 0")
    place = axis if type(axis) is int else _static.one_int(axis, "axis")
    _static.not_too_many((*np.broadcast_shapes(start.shape, stop.shape), count))
    first, last = divisible(start), divisible(stop)
    return jnp.linspace(first, last, count, axis=place, dtype=first.dtype)
