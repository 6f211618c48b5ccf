"""`tf.SparseTensor`s as bytes: three strings for the indices, the values and the shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.tf.io.tensors import from_bytes
from jaxvars.tf.io.values import serialize_tensor
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype, string
from jaxvars.tf.tensors.elements import to_stored
from jaxvars.tf.tensors.sparse_tensor import SparseTensor, check_sparse, on_host, row_of, stack_rows
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor


def serialize_sparse(sp_input: Any, out_type: Any = string, name: str | None = None) -> Tensor:
    """Write a sparse tensor as three strings: TensorProtos of its indices, values and shape.

    Args:
        sp_input: a `tf.SparseTensor`.
        out_type: `tf.string`.
        name: of no effect.

    Raises:
        TypeError: when it is not sparse.

    >>> from jaxvars import tf
    >>> serialize_sparse(tf.sparse.from_dense([0, 3])).shape
    TensorShape([3])
    """
    return Tensor(to_array(_strings_of(sp_input, out_type)))


def serialize_many_sparse(sp_input: Any, out_type: Any = string, name: str | None = None) -> Tensor:
    """Write each slice of a sparse tensor along the first dimension as three strings.

    Args:
        sp_input: a `tf.SparseTensor` of two dimensions or more.
        out_type: `tf.string`.
        name: of no effect.

    Returns:
        Strings of shape [n, 3].

    Raises:
        TypeError: when it is not sparse.
        InvalidArgumentError: when it has less than two dimensions.

    >>> from jaxvars import tf
    >>> serialize_many_sparse(tf.sparse.from_dense([[0, 3], [2, 0]])).shape
    TensorShape([2, 3])
    """
    _check(sp_input, out_type)
    count = on_host(sp_input, "io.serialize_many_sparse")[2][0]
    rows = [_strings_of(row_of(sp_input, i), out_type) for i in range(count)]
    return Tensor(to_array(np.array(rows, object).reshape(-1, 3)))


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """Read sparse tensors as one, along a new first dimension; its sizes are the largest.

    Args:
        serialized_sparse: strings of shape [n, 3], as of `serialize_many_sparse`; of shape [3],
            one is read as it is.
        dtype: the type of the elements.
        rank: the number of dimensions of the result, if it is to be checked.
        name: of no effect.

    Raises:
        InvalidArgumentError: when the strings are something else.

    >>> from jaxvars import tf
    >>> strings = serialize_many_sparse(tf.sparse.from_dense([[0, 3], [2, 0]]))
    >>> tf.sparse.to_dense(deserialize_many_sparse(strings, tf.int32)).numpy().tolist()
    [[0, 3], [2, 0]]
    """
    strings = to_stored(serialized_sparse)
    if strings.ndim not in (1, 2) or strings.shape[-1] != 3:
        raise refused(f"Serialized sparse should have 3 columns but has shape {strings.shape}")
    if not len(strings):
        raise refused("There are no sparse tensors to be read: their sizes are not known.")
    if strings.ndim == 1:
        return _read_row(strings, as_dtype(dtype))
    rows = [_read_row(row, as_dtype(dtype)) for row in strings]
    if len({row.shape.rank for row in rows} | ({rank - 1} if rank else set())) > 1:
        raise refused(f"Sparse tensors of ranks {[row.shape.rank for row in rows]}, not {rank}")
    return stack_rows(rows)


def _read_row(strings: np.ndarray, dtype: Any) -> SparseTensor:
    indices, sizes = from_bytes(strings[0], "int64"), from_bytes(strings[2], "int64")
    return SparseTensor(indices, Tensor(to_array(from_bytes(strings[1], dtype))), sizes)


def _strings_of(sparse: Any, out_type: Any) -> list[Any]:
    _check(sparse, out_type)
    parts = (sparse.indices, sparse.values, sparse.dense_shape)
    return [serialize_tensor(part).numpy() for part in parts]


def _check(sparse: Any, out_type: Any) -> None:
    check_sparse(sparse)
    if as_dtype(out_type) != string:
        raise NotImplementedError("A sparse tensor is written as strings alone: out_type=tf.string")
