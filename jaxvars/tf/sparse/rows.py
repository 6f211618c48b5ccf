"""`tf.sparse`: some of the elements, elements for empty rows, other sizes, and two by two."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.tf.registry.rows import find
from jaxvars.tf.sparse.parts import parts_of, places_of, scatter, sizes_of
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.sparse_tensor import (
    SparseTensor,
    check_sparse,
    elements_at,
    host_array,
    of_host,
    on_host,
)
from jaxvars.tf.tensors.static import ints, one_int, refused
from jaxvars.tf.tensors.tensor import Tensor


def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Keep some elements.

    Args:
        sp_input: a `tf.SparseTensor`.
        to_retain: a bool for each element.

    Raises:
        ValueError: when there are not as many bools as elements.

    >>> from jaxvars import tf
    >>> retain(tf.sparse.from_dense([3, 0, 4]), [False, True]).indices.numpy().tolist()
    [[2]]
    """
    places, values, sizes = parts_of(sp_input, "retain")
    kept = host_array(to_array(to_retain), "sparse.retain").astype(bool)
    if kept.shape != values.shape:
        raise ValueError(f"Dimensions {kept.shape} and {values.shape} are not compatible")
    return of_host(places[kept], elements_at(values, kept), sizes)


def fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Put an element at the beginning of each row that has none.

    Args:
        sp_input: a `tf.SparseTensor`.
        default_value: the elements that are put there.
        name: of no effect.

    Returns:
        The sparse tensor, sorted by rows, and True for each row that was empty.

    Raises:
        InvalidArgumentError: when an element is in no row.

    >>> from jaxvars import tf
    >>> made, is_empty = fill_empty_rows(tf.sparse.from_dense([[0, 0], [0, 5]]), 9)
    >>> tf.sparse.to_dense(made).numpy().tolist(), is_empty.numpy().tolist()
    ([[9, 0], [0, 5]], [True, False])
    """
    sparse = check_sparse(sp_input)
    places, sizes = places_of(sparse, "fill_empty_rows"), sizes_of(sparse, "fill_empty_rows")
    is_empty = np.bincount(places[:, 0], minlength=sizes[0]) == 0
    new = np.zeros((is_empty.sum(), len(sizes)), np.int64)
    new[:, 0] = np.flatnonzero(is_empty)
    fill = find("fill")([len(new)], to_array(default_value, sparse.dtype))
    values = find("concat")([sparse.values, fill], 0)._array
    whole = np.concatenate([places, new])
    order = np.argsort(whole[:, 0], kind="stable")
    return of_host(whole[order], elements_at(values, order), sizes), Tensor(to_array(is_empty))


def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """Give other sizes to the same elements: the smallest ones that hold them if None.

    Raises:
        ValueError: when there are not as many sizes, or one is smaller than before.
    """
    sparse = check_sparse(sp_input)
    places, _, sizes = on_host(sparse, "sparse.reset_shape")  # they may be outside
    if new_shape is None:
        return of_host(places, sparse.values._array, np.max(places + 1, axis=0, initial=0))
    new = list(ints(new_shape, "new_shape"))
    if len(new) != len(sizes):
        raise ValueError(f"Shapes {sizes} and {new} must have the same rank")
    if any(a < b for a, b in zip(new, sizes, strict=True)):
        raise ValueError(f"New shape {new} should have dimension sizes >= sp_input.shape {sizes}")
    return of_host(places, sparse.values._array, new)


def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Return the part that begins at a place and has a size, as far as there is one."""
    places, values, whole = parts_of(sp_input, "slice")
    first, lengths, shape = map(np.array, (ints(start, "start"), ints(size, "size"), whole))
    if not first.size == lengths.size == shape.size or (lengths < 0).any():
        raise refused(f"Expected {shape.size} starts and sizes from 0 on, got {start} and {size}")
    sizes = np.clip(lengths, 0, np.maximum(shape - first, 0))
    places = places - first
    kept = np.all((places >= 0) & (places < sizes), axis=1)
    return of_host(places[kept], elements_at(values, kept), sizes)


def split(
    sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None
) -> list[SparseTensor]:
    """Cut a sparse tensor into parts along an axis; the first parts are larger if need be.

    Raises:
        InvalidArgumentError: when there is no such axis, or there are more parts than its size.
    """
    sizes = sizes_of(check_sparse(sp_input), "split")
    count, at = one_int(num_split, "num_split"), one_int(axis, "axis")
    if not -len(sizes) <= at < len(sizes):
        raise refused(f"Input axis should be in range [{-len(sizes)}, {len(sizes)}), got {at}")
    size = sizes[at]
    if not 0 < count <= size:
        raise refused(f"Input num_split should be in range (0, {size}], got {count}")
    made: list[SparseTensor] = []
    start = 0
    for i in range(count):
        length = size // count + (i < size % count)
        first, lengths = np.zeros(len(sizes), np.int64), np.array(sizes)
        first[at], lengths[at] = start, length
        made.append(slice(sp_input, first, lengths))
        start += length
    return made


def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Return the greater of the elements of two sparse tensors at each place that one has.

    >>> from jaxvars import tf
    >>> made = maximum(tf.sparse.from_dense([-3, 0, 4]), tf.sparse.from_dense([0, 0, 5]))
    >>> made.indices.numpy().tolist(), made.values.numpy().tolist()
    ([[0], [2]], [0, 5])
    """
    return _pair(sp_a, sp_b, "maximum")


def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """Return the smaller of the elements of two sparse tensors at each place that one has."""
    return _pair(sp_a, sp_b, "minimum")


def _pair(sp_a: Any, sp_b: Any, op: str) -> SparseTensor:
    pair = [check_sparse(x) for x in (sp_a, sp_b)]
    first, second = (sizes_of(x, op) for x in pair)
    if len(first) != len(second):
        raise refused(
            f"Operands do not have the same ranks; got shapes: {list(first)} and {list(second)}"
        )
    for i, (m, n) in enumerate(zip(first, second, strict=True)):
        if m != n:
            raise refused(f"Operands' shapes do not match: got {m} and {n} for dimension {i}")
    given = np.concatenate([places_of(x, op) for x in pair])
    places, ids = np.unique(given, axis=0, return_inverse=True)
    cut = np.split(ids.ravel(), [len(pair[0].values)])
    lined = [
        scatter(SparseTensor(at[:, None], x.values, [len(places)]), op)
        for x, at in zip(pair, cut, strict=True)
    ]
    return of_host(places, find(f"math.{op}")(*map(Tensor, lined))._array, first)
