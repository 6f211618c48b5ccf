"""Rows of ragged tensors by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.tf.ragged.join import check_axis, with_parts
from jaxvars.tf.registry.rows import find
from jaxvars.tf.tensors.dtypes import int64
from jaxvars.tf.tensors.ragged_base import Partition
from jaxvars.tf.tensors.ragged_tensor import (
    convert,
    deepen,
    flat_of,
    inner,
    make,
    nested,
    parts_of,
    rows_of,
)
from jaxvars.tf.tensors.static import one_int, refused, require_known
from jaxvars.tf.tensors.tensor import Tensor


def gather(row: Any, given: dict[str, Any]) -> Any:
    """Return rows of a tensor by index: either is ragged, or both are."""
    x, indices = (
        convert(given[name], kind) for name, kind in zip(given, (None, int64), strict=False)
    )
    batch, axis = one_int(given.get("batch_dims", 0), "batch_dims"), given.get("axis")
    batch += len(indices.shape) if batch < 0 else 0
    axis = batch if axis is None else check_axis(one_int(axis, "axis"), len(x.shape))
    if not 0 <= batch <= min(axis, len(indices.shape)):
        raise ValueError(f"batch_dims={batch} must be at most axis={axis}, and rank(indices)")
    if not indices.dtype.is_integer:
        raise refused(f"Value for attr 'Tindices' of {indices.dtype.name} is not int32 or int64")
    if batch and indices.shape[0] != x.shape[0]:
        raise ValueError(
            f"batch shape from indices {indices.shape} does not match params {x.shape}"
        )

    def of_flat(params: Tensor, ids: Tensor) -> Any:
        first, second, *_ = given
        return row.function(**{**given, first: params, second: ids})

    return _gather_inside(of_flat, x, indices, axis, batch)


def _gather_inside(of_flat: Any, x: Any, indices: Any, axis: int, batch: int) -> Any:
    """Return what indices pick along an axis, which are different for the first dimensions."""
    if axis == 1 and not batch:  # the same ones in each row
        indices, batch = rows_of(insert(indices, 0), np.zeros(x.shape[0], np.int64)), 1
    if axis <= 1:
        return _gather_rows(of_flat, x, indices, batch)
    outer = _with_rows(x)
    part = outer._parts[0]
    if batch > 1:
        indices = _with_rows(indices)
        if not np.array_equal(indices._parts[0].splits, part.splits):
            raise refused("Condition x == y did not hold. The batches have other lengths.")
        indices = inner(indices)
    elif batch:
        indices = rows_of(indices, part.row_ids)
    rest = max(batch - 1, min(batch, 1))
    return nested(_gather_inside(of_flat, inner(outer), indices, axis - 1, rest), part)


def _gather_rows(of_flat: Any, x: Any, indices: Any, batch: int) -> Any:
    """Return rows by index, or values by their index in the row of the same number."""
    if not batch and isinstance(x, Tensor):
        return with_parts(of_flat(x, flat_of(indices)), parts_of(indices))
    known = require_known(flat_of(indices), "The indices of ragged rows")
    ids, parts = deepen(known, parts_of(indices), max(known.ndim - 1 + len(parts_of(indices)), 0))
    if batch:
        outer = _with_rows(x)
        rows = np.arange(outer._parts[0].nrows)
        for part in parts:
            rows = rows[part.row_ids]
        sizes, starts = outer._parts[0].lengths[rows], outer._parts[0].starts[rows]
        x = inner(outer)
    else:
        sizes, starts = np.full(ids.shape, x._parts[0].nrows), 0
    for at in np.flatnonzero((ids < 0) | (ids >= sizes))[:1]:
        raise refused(f"indices[{at}] = {ids[at]} is not in [0, {sizes[at]})", "RaggedGather")
    if not ids.ndim:
        return x[int(ids)]
    found = rows_of(x, np.asarray(ids + starts))
    loose = [Partition(part.splits) for part in parts]
    return make(flat_of(found), (*loose, *parts_of(found)))


def gather_nd(row: Any, given: dict[str, Any]) -> Any:
    """Return values, or rows, by their indices in several dimensions: those in the last one."""
    x, indices = convert(given["params"]), convert(given["indices"], int64)
    is_list = isinstance(indices, Tensor) and indices._array.shape[-1:] not in ((), (0,))
    if given.get("batch_dims") or not is_list:
        raise refused("tf.gather_nd of ragged tensors takes lists of indices, and no batch_dims")
    known = require_known(indices, "The indices of ragged rows")
    places, sizes = np.zeros(known.shape[:-1], np.int64), x.shape[0]
    for i, at in enumerate(np.moveaxis(known, -1, 0)):
        starts: Any = 0
        if i:
            outer = _with_rows(x)
            starts, sizes = outer._parts[0].starts[places], outer._parts[0].lengths[places]
            x = inner(outer)
        if np.any((at < 0) | (at >= sizes)):
            raise refused(f"indices {at.tolist()} are not all in the rows", "RaggedGatherNd")
        places = starts + at
    found = rows_of(x, places.ravel())
    if places.ndim == 1:
        return found
    ends = [
        Partition.regular(int(np.prod(places.shape[:i])), n) for i, n in enumerate(places.shape)
    ]
    flat = flat_of(found)
    if not parts_of(found):
        return find("reshape")(flat, [*places.shape, *flat.shape[1:]])
    return make(flat, [*ends[1:], *parts_of(found)]) if places.ndim else found[0]


def _with_rows(x: Any) -> Any:
    """Return a tensor as a ragged one."""
    return make(*deepen(flat_of(x)._array, parts_of(x), 1))


def insert(x: Any, axis: int) -> Any:
    """Return a tensor, ragged or not, with a new dimension of size 1."""
    parts, flat = list(parts_of(x)), flat_of(x)
    if axis > len(parts) or not parts:
        return make(find("expand_dims")(flat, axis - len(parts)), parts)
    size, at = (parts[axis - 1].nrows, axis - 1) if axis else (1, 0)
    new = Partition.regular(size, 1 if axis else parts[0].nrows)
    return make(flat, [*parts[:at], new, *parts[at:]])
