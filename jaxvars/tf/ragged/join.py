"""Putting ragged tensors together, and tensors as the rows of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxvars.tf.registry.rows import find
from jaxvars.tf.tensors.ragged_base import Partition
from jaxvars.tf.tensors.ragged_tensor import (
    RaggedTensor,
    convert,
    deepen,
    flat_of,
    inner,
    make,
    nested,
    parts_of,
    rows_of,
)
from jaxvars.tf.tensors.static import one_int, refused
from jaxvars.tf.tensors.tensor import Tensor


def concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """Put tensors, ragged or not, together along an axis.

    >>> from jaxvars import tf
    >>> tf.concat([tf.ragged.constant([[1], [2, 3]]), [[4], [5]]], axis=1)
    <tf.RaggedTensor [[1, 4], [2, 3, 5]]>
    """
    given = _same_depth(values, 0)
    return _concat(given, check_axis(one_int(axis, "axis"), len(given[0].shape)))


def stack(values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Make tensors, whose sizes may differ, the rows of a ragged one.

    >>> stack([[1, 2], [3]])
    <tf.RaggedTensor [[1, 2], [3]]>
    """
    given = _same_depth(values, 0)
    if len(given[0].shape) > 1:
        given = _same_depth(given, min(len(given[0].shape) - 1, 1))
    return _stack(given, check_axis(one_int(axis, "axis"), len(given[0].shape) + 1))


def check_axis(axis: int, rank: int) -> int:
    """Return an axis counted from the front; raise ValueError if there is none."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return axis % rank


def _same_depth(values: Any, depth: int) -> list[Any]:
    """Return ragged tensors with the same number of partitions."""
    ragged = [x for x in values if isinstance(x, RaggedTensor)]
    given = [convert(x, ragged[0].dtype if ragged else None) for x in values]
    if len({len(x.shape) for x in given}) > 1:
        raise ValueError(f"The ranks of the inputs differ: {[x.shape for x in given]}")
    most = max(depth, *(len(parts_of(x)) for x in given))
    return [make(*deepen(flat_of(x)._array, parts_of(x), most)) for x in given]


def _concat(xs: Sequence[Any], axis: int) -> Any:
    if isinstance(xs[0], Tensor):
        return find("concat")(xs, axis)
    if axis > 1:
        return nested(_concat(list(map(inner, xs)), axis - 1), _same_part(xs))
    flat = find("concat")([x._flat for x in xs], 0)
    whole = make(flat, [_chain(level) for level in zip(*(x._parts for x in xs), strict=True)])
    if axis == 0:
        return whole
    made = _in_turn(xs, whole)
    return nested(inner(made), Partition(made._parts[0].splits[:: len(xs)]))


def _stack(xs: Sequence[Any], axis: int) -> Any:
    if not len(xs[0].shape) or (isinstance(xs[0], Tensor) and axis):
        return find("stack")(xs, axis)
    if axis > 1:
        return nested(_stack(list(map(inner, xs)), axis - 1), _same_part(xs))
    whole = _concat(xs, 0)
    if axis == 0:
        sizes = [x._parts[0].nrows if isinstance(x, RaggedTensor) else len(x) for x in xs]
        return nested(whole, Partition.of_lengths(sizes))
    ends = np.arange(xs[0]._parts[0].nrows + 1) * len(xs)  # pyright: ignore[reportAttributeAccessIssue] - ragged
    return nested(_in_turn(xs, whole), Partition(ends))


def _in_turn(xs: Sequence[Any], whole: Any) -> Any:
    """Return the first rows of all, then the second ones, and so on."""
    counts = [x._parts[0].nrows for x in xs]
    for i, count in enumerate(counts):
        if count != counts[0]:
            raise refused(
                f"Input tensors at index 0 (=x) and {i} (=y) have incompatible shapes. "
                f"Condition x == y did not hold: {counts[0]} rows are not {count}"
            )
    return rows_of(whole, np.arange(len(xs) * counts[0]).reshape(len(xs), -1).T.ravel())


def _same_part(xs: Sequence[Any]) -> Partition:
    first = xs[0]._parts[0]
    if any(not np.array_equal(x._parts[0].splits, first.splits) for x in xs):
        raise refused("Condition x == y did not hold. The rows have different lengths.")
    return first


def _chain(parts: Sequence[Partition]) -> Partition:
    """Return the partition of the rows of all, one after another."""
    sizes = {part.uniform for part in parts}
    lengths = np.concatenate([part.lengths for part in parts])
    uniform = sizes.pop() if len(sizes) == 1 else None
    return Partition.of_lengths(lengths, parts[0].splits.dtype, uniform)


def with_parts(made: Any, parts: Sequence[Partition]) -> Any:
    """Return what an operation made of flat values in their rows."""
    if isinstance(made, tuple):
        return tuple(with_parts(each, parts) for each in made)
    return make(flat_of(made), (*parts, *parts_of(made)))
