"""`tf.sparse`: between tensors and `tf.SparseTensor`.

Where the size of a result depends on values, it is computed on the host, and refused in programs.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.display.text import did_you_mean
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.sparse_tensor import SparseTensor as SparseTensor
from jaxvars.tf.tensors.sparse_tensor import host_array, of_host, on_host
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context

__all__ = ["SparseTensor", "expand_dims", "from_dense", "map_values", "reorder", "to_dense"]


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Return the elements of a tensor that are not zero.

    Args:
        tensor: of any shape and type; a string is zero when it is empty.
        name: of no effect.

    Raises:
        NotImplementedError: in a compiled function: how many they are depends on values.

    >>> from_dense([[0, 3], [0, 0]]).values
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([3], dtype=int32)>
    """
    array = host_array(to_array(tensor), "sparse.from_dense")
    given = array != b"" if is_text(array) else array != 0
    indices = np.argwhere(given)
    return of_host(indices, array[tuple(indices.T)], array.shape)


def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Return the whole tensor.

    Args:
        sp_input: a `tf.SparseTensor`.
        default_value: what the other elements are; zero, or an empty string, when None.
        validate_indices: refuse indices that are not sorted, or stand twice.
        name: of no effect.

    Raises:
        TypeError: when it is not a sparse tensor.
        InvalidArgumentError: when an index is outside, or they are not sorted.
    """
    sparse = _check_sparse(sp_input)
    values = sparse.values._array
    sizes = tuple(host_array(sparse.dense_shape._array, "sparse.to_dense").tolist())
    if not context.is_tracer(sparse.indices._array):
        _check_inside(np.asarray(sparse.indices._array), sizes, validate_indices)
    zero: Any = b"" if is_text(values) else values.dtype.type(0)
    fill = zero if default_value is None else to_array(default_value, sparse.dtype)
    places = tuple(sparse.indices._array.T)
    if is_text(values):
        whole = np.broadcast_to(np.asarray(fill, object), sizes).copy()
        whole[places] = values
        return Tensor(whole)
    return Tensor(jnp.full(sizes, fill, values.dtype).at[places].set(values))


def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Return a sparse tensor with its elements sorted by their places."""
    sparse = _check_sparse(sp_input)
    indices, values, sizes = on_host(sparse, "sparse.reorder")
    order = np.lexsort(indices.T[::-1]) if indices.shape[1] else np.arange(len(indices))
    return of_host(indices[order], values[order], sizes)


def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Return a sparse tensor with another axis of size 1: the last one when `axis` is None.

    Raises:
        ValueError: when there is no such axis.
    """
    sparse = _check_sparse(sp_input)
    indices, values, sizes = on_host(sparse, "sparse.expand_dims")
    rank = len(sizes)
    place = rank if axis is None or axis == -1 else int(axis)
    if not -rank - 1 <= place <= rank:
        raise ValueError(f"axis {axis} is not in the interval [{-rank - 1}, {rank}]")
    place = place % (rank + 1)
    return of_host(
        np.insert(indices, place, 0, axis=1), values, (*sizes[:place], 1, *sizes[place:])
    )


def map_values(op: Any, *args: Any, **kwargs: Any) -> SparseTensor:
    """Return what a function makes of the elements of sparse tensors, in the same places.

    Args:
        op: a function of tensors that keeps the number of elements.
        *args: its arguments; the sparse ones among them have the same places.
        **kwargs: the same, by name.

    Raises:
        ValueError: when no argument is sparse.

    >>> map_values(lambda x: x * 2, from_dense([0, 3])).values
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([6], dtype=int32)>
    """
    sparse = [x for x in (*args, *kwargs.values()) if isinstance(x, SparseTensor)]
    if not sparse:
        raise ValueError("No SparseTensor in argument list of map_values")
    made = op(*map(_values, args), **{key: _values(x) for key, x in kwargs.items()})
    return sparse[0].with_values(made)


def _values(x: Any) -> Any:
    return x.values if isinstance(x, SparseTensor) else x


def _check_sparse(sparse: Any) -> SparseTensor:
    if not isinstance(sparse, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return sparse


def _check_inside(indices: np.ndarray, sizes: tuple[int, ...], is_sorted: bool) -> None:
    """Raise InvalidArgumentError if an index is outside, or after a greater one."""
    outside = np.any((indices < 0) | (indices >= np.asarray(sizes, np.int64)), axis=1)
    for i in np.flatnonzero(outside)[:1]:
        raise refused(
            f"indices[{i}] = {_format_numbers(indices[i])} is out of bounds: need 0 <= index < "
            f"{_format_numbers(sizes)} [Op:SparseToDense] name: "
        )
    rows = list(map(tuple, indices.tolist()))
    for i in range(1, len(rows) if is_sorted else 0):
        if rows[i - 1] >= rows[i]:
            why = "repeated" if rows[i - 1] == rows[i] else "out of order"
            raise refused(
                f"indices[{i}] = {_format_numbers(rows[i])} is {why}. Many sparse ops require "
                "sorted indices. Use `tf.sparse.reorder` to create a correctly ordered copy. "
                "[Op:SparseToDense] name: "
            )


def _format_numbers(numbers: Any) -> str:
    return f"[{','.join(map(str, np.asarray(numbers).tolist()))}]"


def __getattr__(name: str) -> Any:
    hint = did_you_mean(name, __all__) or "tf.sparse.to_dense(x) has all of tf.math."
    raise AttributeError(
        f"tf.sparse has no attribute {name!r}: of sparse tensors there is only what tf.sets and "
        f"parsed examples need. {hint}"
    )


__dir__ = lister(__name__)
