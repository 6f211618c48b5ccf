"""`tf.ragged`: making ragged tensors, and working on their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.listing import namespace
from jaxvars.tf.ragged import dispatch as _dispatch  # noqa: F401  # pyright: ignore[reportUnusedImport] - fills the table
from jaxvars.tf.ragged import shapes as _shapes  # noqa: F401  # pyright: ignore[reportUnusedImport] - fills the table
from jaxvars.tf.ragged.join import stack as stack
from jaxvars.tf.tensors.convert import match_dtypes, to_array
from jaxvars.tf.tensors.dtypes import as_dtype, int64
from jaxvars.tf.tensors.ragged_base import Partition
from jaxvars.tf.tensors.ragged_tensor import (
    RaggedTensor,
    convert,
    deepen,
    flat_of,
    make,
    nested,
    parts_of,
    rows_of,
)
from jaxvars.tf.tensors.static import refused, require_known


def constant(
    pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None,
    name: str | None = None, row_splits_dtype: Any = int64,
) -> Any:  # fmt: skip
    """Make a ragged tensor of nested lists; a tensor of a list that is not nested.

    Args:
        pylist: lists, of any lengths, in lists; all values have the same depth.
        dtype: of the values.
        ragged_rank: the number of dimensions with rows of different lengths; all when None.
        inner_shape: of the values, if they are not scalars.
        name: of no effect.
        row_splits_dtype: `tf.int64` or `tf.int32`.

    Raises:
        ValueError: when values are at different depths.

    >>> constant([["a", "b"], [], ["c"]])
    <tf.RaggedTensor [[b'a', b'b'], [], [b'c']]>
    """
    scalar, deepest = _depths(pylist)
    shape = None if inner_shape is None else tuple(np.atleast_1d(inner_shape).tolist())
    whole = deepest if scalar is None else scalar
    if scalar is not None and deepest > scalar:
        raise ValueError("all scalar values must have the same nesting depth")
    if ragged_rank is not None and scalar is not None and ragged_rank >= max(scalar, 1):
        raise ValueError(
            f"pylist has scalar values depth {scalar}, but {ragged_rank=} requires scalar value "
            f"depth greater than {ragged_rank}"
        )
    rank = ragged_rank
    if rank is None:
        rank = max(whole - 1 - len(shape or ()), 0)
    parts, flat = [], pylist
    for _ in [None] * rank:
        kind = as_dtype(row_splits_dtype).dtype
        parts.append(Partition.of_lengths([len(row) for row in flat], kind))
        flat = [part for row in flat for part in row]
    try:
        found = to_array(flat, None if dtype is None else as_dtype(dtype))
    except ValueError as error:
        if "non-rectangular" not in str(error):
            raise
        raise ValueError("inner values have inconsistent shape") from None
    if shape is not None and (rank or not found.size):
        found = found.reshape(-1, *shape)
    return make(found, parts)


def _depths(value: Any) -> tuple[int | None, int]:
    """Return the depth of the values, None if there are none, and that of the lists."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return 0, 0
    found = [_depths(part) for part in value]
    scalars = {scalar for scalar, _ in found if scalar is not None}
    if len(scalars) > 1:
        raise ValueError("all scalar values must have the same nesting depth")
    deepest = 1 + max((depth for _, depth in found), default=0)
    return (scalars.pop() + 1 if scalars else None), deepest


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a function makes of the flat values, in the same rows.

    Args:
        op: a function of tensors that keeps the first size.
        *args: its arguments; the ragged ones among them have the same rows.
        **kwargs: the same, by name.

    Raises:
        ValueError: when rows differ, or the first size changes.

    >>> map_flat_values(lambda x: x * 2, constant([[1], [2, 3]]))
    <tf.RaggedTensor [[2], [4, 6]]>
    """
    ragged = [x for x in (*args, *kwargs.values()) if isinstance(x, RaggedTensor)]
    if not ragged:
        return op(*args, **kwargs)
    sizes = {len(x.flat_values) for x in ragged}
    if len(sizes) > 1:
        raise ValueError(
            "Input RaggedTensors' flat_values must all have the same outer-dimension size.  Got "
            f"sizes: {sizes}"
        )
    if any(x._parts != ragged[0]._parts for x in ragged):
        raise refused("Inputs must have identical ragged splits. Condition x == y did not hold.")
    made = convert(op(*map(flat_of, args), **{key: flat_of(x) for key, x in kwargs.items()}))
    if made.shape.rank == 0 or made.shape[0] not in sizes:
        raise ValueError(
            "tf.ragged.map_flat_values requires that the output of `op` have the same "
            "outer-dimension size as flat_values of any ragged inputs. (output shape: "
            f"{made.shape}; expected outer dimension size: {sizes.pop()})"
        )
    return ragged[0].with_flat_values(made)


def range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: Any = None, name: str | None = None,
    row_splits_dtype: Any = int64,
) -> RaggedTensor:  # fmt: skip
    """Make a row of numbers in steps for each of some starts and limits.

    >>> range([3, 2])
    <tf.RaggedTensor [[0, 1, 2], [0, 1]]>
    """
    given = (0, starts, deltas) if limits is None else (starts, limits, deltas)
    if dtype is None:
        ends = match_dtypes([given[1], given[0], given[2]], "RaggedRange")
        arrays = [ends[1], ends[0], ends[2]]
    else:
        arrays = [to_array(x, as_dtype(dtype)) for x in given]
    known = [require_known(x, "What tf.ragged.range is made of") for x in arrays]
    first, last, step = np.broadcast_arrays(*map(np.atleast_1d, known))
    if not np.all(step):
        raise refused("Requires delta != 0", "RaggedRange")
    rows = [_steps(*each) for each in zip(first, last, step, strict=True)]
    flat = np.concatenate([np.zeros(0, known[0].dtype), *rows])
    lengths = [len(row) for row in rows]
    return make(
        jnp.asarray(flat), [Partition.of_lengths(lengths, as_dtype(row_splits_dtype).dtype)]
    )


def _steps(start: Any, limit: Any, step: Any) -> np.ndarray:
    """Return numbers from a start in steps, each the sum of the one before and the step."""
    if start.dtype.kind in "iu":
        return np.arange(start, limit, step, dtype=start.dtype)
    count = int(np.ceil((limit - start) / step)) if (limit - start) * step > 0 else 0
    each = np.append(start, np.full(max(count - 1, 0), step, start.dtype))
    return np.add.accumulate(each, dtype=start.dtype)[:count]


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """Keep what a mask has True for; the rows stay.

    >>> boolean_mask([[1, 2], [3, 4]], [[True, False], [False, False]])
    <tf.RaggedTensor [[1], []]>
    """
    x, kept = convert(data), convert(mask)
    depth = len(kept.shape) - 1
    mask_flat, parts = deepen(flat_of(kept)._array, parts_of(kept), depth)
    flat, found = deepen(flat_of(x)._array, parts_of(x), depth)
    if [part.splits.tolist() for part in found[:depth]] != [p.splits.tolist() for p in parts]:
        raise refused("Input tensors have incompatible shapes. Condition x == y did not hold.")
    known = require_known(mask_flat, "A mask")
    made: Any = rows_of(make(flat, found[depth:]), np.flatnonzero(known))
    for i, part in enumerate(reversed(parts)):
        size = np.add.reduceat(np.append(known, False).astype(int), part.starts) if i == 0 else None
        lengths = part.lengths if size is None else np.where(part.lengths, size, 0)
        made = nested(made, Partition.of_lengths(lengths, part.splits.dtype))
    return made


__getattr__, __dir__ = namespace(__name__)
