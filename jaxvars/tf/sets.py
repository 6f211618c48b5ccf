"""`tf.sets`: rows of a tensor as sets.

Rules this file keeps:
- the last axis holds the elements, each counted once; results are `tf.SparseTensor`s, sorted;
- it is computed on the host, and refused in compiled functions: sizes depend on values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.dtypes import DTYPES
from jaxvars.tf.tensors.sparse_tensor import (
    SparseTensor,
    check_inside,
    host_array,
    of_host,
    on_host,
)
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor, typed

Place: TypeAlias = tuple[int, ...]
Groups: TypeAlias = dict[Place, set[Any]]

_TYPES = frozenset(
    DTYPES[name] for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")
)


def size(a: Any, validate_indices: bool = True) -> Tensor:
    """Return how many elements each set has.

    Args:
        a: a `tf.SparseTensor` of integers or strings.
        validate_indices: refuse indices that are not sorted, or stand twice.

    Raises:
        TypeError: when it is not a sparse tensor, or of another type.
        InvalidArgumentError: when an index is outside of its shape.

    >>> from jaxvars import tf
    >>> size(tf.sparse.from_dense([[1, 2, 2], [0, 0, 1]]))
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 1], dtype=int32)>
    """
    if not isinstance(a, SparseTensor):
        raise TypeError(f"Expected `SparseTensor`, got {a!s}.")
    groups, shape = _groups(_read_set(a, "a"), "SetSize", validate_indices)
    counts = np.zeros(shape, np.int32)
    for place, found in groups.items():
        counts[place] = len(found)
    return Tensor(to_array(counts))


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Return what is in both of two sets.

    Args:
        a: a tensor or `tf.SparseTensor` of integers or strings; the last axis holds the elements.
        b: the same, with the same other axes.
        validate_indices: refuse indices that are not sorted, or stand twice.

    Raises:
        TypeError: when the types differ, or are others.
        InvalidArgumentError: when the other axes differ.

    >>> from jaxvars import tf
    >>> tf.sparse.to_dense(intersection([[1, 2, 2]], [[2, 3]]))
    <tf.Tensor: shape=(1, 1), dtype=int32, numpy=array([[2]], dtype=int32)>
    """
    return _combine(a, b, set.intersection, validate_indices)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """Return what is in one of two sets and not in the other.

    It is `a` without `b`, or `b` without `a` if `aminusb` is False. The other arguments, and what
    is raised, are as for `intersection`.
    """
    how = set.difference if aminusb else lambda x, y: y - x
    return _combine(a, b, how, validate_indices)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """Return what is in one of two sets, or in both.

    The arguments, and what is raised, are as for `intersection`.

    >>> union([[1, 2, 2]], [[2, 3]]).values
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>
    """
    return _combine(a, b, set.union, validate_indices)


def _combine(
    a: Any, b: Any, how: Callable[[set[Any], set[Any]], set[Any]], is_sorted: bool
) -> SparseTensor:
    a = _read_set(a, "a")
    b = typed(b)
    b = _read_set(b, "b", None if isinstance(b, SparseTensor | Tensor) else a.dtype)
    if a.dtype != b.dtype:
        raise TypeError(f"Types don't match, {a.dtype} vs {b.dtype}.")
    (mine, shape), (theirs, other) = (_groups(x, "SetOperation", is_sorted) for x in (a, b))
    if shape != other:
        raise refused(
            f"Mismatched shapes {_format_shape(shape)} vs {_format_shape(other)}", "SetOperation"
        )
    found: list[tuple[Place, list[Any]]] = []
    for place in np.ndindex(shape):
        left = how(mine.get(place, set()), theirs.get(place, set()))
        if left:
            found.append((place, sorted(left)))
    indices = [(*place, i) for place, row in found for i in range(len(row))]
    largest = max((len(row) for _, row in found), default=0)
    dtype = object if a.dtype.is_string else a.dtype.dtype
    values = np.array([x for _, row in found for x in row], dtype)
    return of_host(indices, values, (*shape, largest))


def _read_set(a: Any, name: str, hint: Any = None) -> Any:
    tensor = a if isinstance(a, SparseTensor) else Tensor(to_array(a, hint=hint))
    if tensor.dtype not in _TYPES:
        raise TypeError(
            f"'{name}' has invalid dtype `{tensor.dtype}` not in supported dtypes: `{_TYPES}`."
        )
    return tensor


def _groups(a: Any, op: str, is_sorted: bool) -> tuple[Groups, Place]:
    """Return the sets by their places, and the shape without the last axis."""
    found: Groups = {}
    if isinstance(a, SparseTensor):
        indices, values, sizes = on_host(a, "sets")
        _check_rank(sizes, op)
        check_inside(indices, sizes, is_sorted, op)
        for place, value in zip(indices.tolist(), values.tolist(), strict=True):
            found.setdefault(tuple(place[:-1]), set()).add(value)
        return found, sizes[:-1]
    array = host_array(a._array, "sets")
    _check_rank(array.shape, op)
    for place in np.ndindex(array.shape[:-1]):
        row = array[place]
        found[place] = set(row if is_text(array) else row.tolist())
    return found, array.shape[:-1]


def _check_rank(shape: Place, op: str) -> None:
    if len(shape) < 2:
        raise refused(f"Shape {_format_shape(shape)} has rank {len(shape)} < 2", op)


def _format_shape(shape: Place) -> str:
    return f"[{','.join(map(str, shape))}]"


__dir__ = lister(__name__)
