"""`tf.sparse`: between tensors and `tf.SparseTensor`.

Where the size of a result depends on values, it is computed on the host, and refused in programs.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.listing import namespace
from jaxvars.tf.registry.rows import find
from jaxvars.tf.tensors.convert import is_text, match_dtypes, pair, to_array
from jaxvars.tf.tensors.sparse_tensor import SparseTensor as SparseTensor
from jaxvars.tf.tensors.sparse_tensor import (
    check_inside,
    check_sparse,
    elements_at,
    host_array,
    indices_of,
    of_host,
)
from jaxvars.tf.tensors.static import ints, not_too_many, one_int, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context


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
    given = to_array(tensor)
    array = host_array(given, "sparse.from_dense")
    indices = np.argwhere(array != b"" if is_text(array) else array != 0)
    return of_host(indices, elements_at(given, tuple(indices.T)), array.shape)


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
    sparse = check_sparse(sp_input)
    values = sparse.values._array
    sizes = not_too_many(_sizes_of(sparse, "to_dense"))
    if not context.is_tracer(sparse.indices._array):
        check_inside(np.asarray(sparse.indices._array), sizes, validate_indices)
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
    return _sorted_of(*_parts_of(sp_input, "reorder"))


def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Return a sparse tensor with another axis of size 1: the last one when `axis` is None.

    Raises:
        ValueError: for an unknown axis.
    """
    places, values, sizes = _parts_of(sp_input, "expand_dims")
    rank = len(sizes)
    place = rank if axis is None or axis == -1 else int(axis)
    if not -rank - 1 <= place <= rank:
        raise ValueError(f"axis {axis} is not in the interval [{-rank - 1}, {rank}]")
    place = place % (rank + 1)
    places = np.insert(places, place, 0, axis=1)
    return of_host(places, values, (*sizes[:place], 1, *sizes[place:]))


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


# ---------------------------------------------------------------- arithmetic
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Multiply a sparse matrix by a tensor; `adjoint_a` and `adjoint_b` transpose them first.

    >>> sparse_dense_matmul(from_dense([[0.0, 2.0]]), [[1.0], [3.0]]).numpy().tolist()
    [[6.0]]
    """
    if isinstance(b, SparseTensor) and not isinstance(sp_a, SparseTensor):
        return find("transpose")(
            sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a), conjugate=False
        )
    sparse = check_sparse(sp_a)
    sizes = _sizes_of(sparse, "sparse_dense_matmul")
    values, dense = pair(sparse.values, b, "SparseTensorDenseMatMul")
    if dense.ndim != 2:
        raise refused("Tensor 'b' is not a matrix", "SparseTensorDenseMatMul")
    rows, columns = indices_of(sparse, "SparseTensorDenseMatMul").T
    if adjoint_a:
        rows, columns, sizes, values = columns, rows, sizes[::-1], jnp.conj(values)
    dense = jnp.conj(dense).T if adjoint_b else dense
    if dense.shape[0] != sizes[1]:
        raise refused(
            "Cannot multiply A and B because inner dimension does not match: "
            f"{sizes[1]} vs. {dense.shape[0]}", "SparseTensorDenseMatMul",
        )  # fmt: skip
    made = jnp.zeros((sizes[0], dense.shape[1]), dense.dtype)
    return Tensor(made.at[rows].add(values[:, None] * dense[columns]))


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """Add sparse tensors, or a sparse one and a tensor; sums below `threshold` are left out.

    Elements that only one of them has are never left out.
    """
    if not any(isinstance(x, SparseTensor) for x in (a, b)):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if not isinstance(b, SparseTensor):
        _, dense = pair(a.values, b, "SparseTensorDenseAdd")
        if dense.shape != _sizes_of(a, "add"):
            raise refused(f"{a.shape} and {list(dense.shape)} differ", "SparseTensorDenseAdd")
        return Tensor(_scatter(a, "add", dense))
    values = [x.values._array for x in (a, b)]
    if values[0].dtype != values[1].dtype or _sizes_of(a, "add") != _sizes_of(b, "add"):
        raise refused(f"{a.dtype.name} {a.shape} cannot be added to {b.dtype.name} {b.shape}")
    given = np.concatenate([_places_of(a, "add"), _places_of(b, "add")])
    places, ids, counts = np.unique(given, axis=0, return_inverse=True, return_counts=True)
    sums = jnp.zeros(len(places), values[0].dtype).at[ids.ravel()].add(jnp.concatenate(values))
    if not threshold:
        return of_host(places, sums, _sizes_of(a, "add"))
    kept = (counts == 1) | (np.abs(host_array(sums, "sparse.add")) >= threshold)
    return of_host(places[kept], elements_at(sums, kept), _sizes_of(a, "add"))


def reduce_sum(sp_input: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Tensor:
    """Add the elements, along one axis, several, or all."""
    whole = _scatter(check_sparse(sp_input), "reduce_sum")
    return find("math.reduce_sum")(Tensor(whole), axis, keepdims)


def reduce_max(sp_input: Any, axis: Any = None, keepdims: bool = False, name: Any = None) -> Tensor:
    """Return the greatest of the elements that there are, along axes; 0 where there are none.

    >>> reduce_max(from_dense([-5, 0, -3])).numpy().item()
    -3
    """
    sparse = check_sparse(sp_input)
    values, places = sparse.values._array, tuple(indices_of(sparse, "reduce_max").T)
    whole = (
        jnp.full(_sizes_of(sparse, "reduce_max"), sparse.dtype.min, values.dtype)
        .at[places]
        .max(values)
    )
    given = jnp.zeros(whole.shape, bool).at[places].set(True)
    most = find("math.reduce_max")(Tensor(whole), axis, keepdims)._array
    is_any = find("math.reduce_any")(Tensor(given), axis, keepdims)._array
    return Tensor(jnp.where(is_any, most, jnp.zeros_like(most)))


def softmax(sp_logits: Any, name: str | None = None) -> SparseTensor:
    """Return the softmax of the elements that there are in each row."""
    sparse = check_sparse(sp_logits)
    rows, ids = np.unique(_places_of(sparse, "softmax")[:, :-1], axis=0, return_inverse=True)
    values, ids = sparse.values, ids.ravel()
    most = find("math.unsorted_segment_max")(values, ids, len(rows))._array
    powers = jnp.exp(values._array - most[ids])
    sums = jnp.zeros(len(rows), powers.dtype).at[ids].add(powers)
    return sparse.with_values(Tensor(powers / sums[ids]))


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
    places, values, sizes = _parts_of(sp_input, "retain")
    kept = host_array(to_array(to_retain), "sparse.retain").astype(bool)
    if kept.shape != values.shape:
        raise ValueError(f"Dimensions {kept.shape} and {values.shape} are not compatible")
    return of_host(places[kept], elements_at(values, kept), sizes)


def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Return the part that begins at a place and has a size, as far as there is one."""
    places, values, whole = _parts_of(sp_input, "slice")
    first, lengths, shape = map(np.array, (ints(start, "start"), ints(size, "size"), whole))
    if not first.size == lengths.size == shape.size or (lengths < 0).any():
        raise refused(f"Expected {shape.size} starts and sizes from 0 on, got {start} and {size}")
    sizes = np.clip(lengths, 0, np.maximum(shape - first, 0))
    places = places - first
    kept = np.all((places >= 0) & (places < sizes), axis=1)
    return of_host(places[kept], elements_at(values, kept), sizes)


# ---------------------------------------------------------------- other places
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Put the dimensions in another order: the reverse one when `perm` is None."""
    places, values, sizes = _parts_of(sp_input, "transpose")
    order = range(len(sizes))[::-1] if perm is None else ints(perm, "perm")
    if sorted(order) != list(range(len(sizes))):
        raise ValueError(f"Dimensions {len(order)} and {len(sizes)} are not compatible: {order}")
    return _sorted_of(places[:, list(order)], values, [sizes[i] for i in order])


def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Give another shape; one size may be -1."""
    places, values, old = _parts_of(sp_input, "reshape")
    new = list(ints(shape, "shape"))
    count, known = math.prod(old), math.prod(n for n in new if n != -1)
    if -1 in new and known:
        new[new.index(-1)] = count // known
    if -1 in new or math.prod(new) != count:
        raise refused(f"Input to reshape is a tensor with {count} dense values, not {new}")
    flat = np.ravel_multi_index(tuple(places.T), old)
    return of_host(np.stack(np.unravel_index(flat, new), axis=1), values, new)


def concat(
    axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None
) -> SparseTensor:
    """Put sparse tensors together along an axis."""
    sparse = list(map(check_sparse, sp_inputs))
    shapes = np.array([_sizes_of(x, "concat") for x in sparse])
    at, rank = one_int(axis, "axis"), shapes.shape[1]
    if not -rank <= at < rank:
        raise refused(f"Concat dimension must be in range [{-rank}, {rank}), got {at}")
    sizes, starts = shapes.max(axis=0), np.cumsum(shapes[:, at]) - shapes[:, at]
    for i in range(rank):
        if i != at % rank and not expand_nonconcat_dims and len(set(shapes[:, i])) > 1:
            raise refused(
                f"Input shapes must match: expected {shapes[0, i]} for dimension {i} but got "
                f"{shapes[:, i].tolist()}"
            )
    sizes[at] = shapes[:, at].sum()
    moves = np.eye(rank, dtype=np.int64)[at]
    places = [_places_of(x, "concat") + moves * n for x, n in zip(sparse, starts, strict=True)]
    join = np.concatenate if is_text(sparse[0].values._array) else jnp.concatenate
    values = join(match_dtypes([x.values for x in sparse], "SparseConcat"))
    return _sorted_of(np.concatenate(places), values, sizes)


def _values(x: Any) -> Any:
    return x.values if isinstance(x, SparseTensor) else x


# ---------------------------------------------------------------- parts
def _parts_of(sp_input: Any, op: str) -> tuple[np.ndarray, Any, tuple[int, ...]]:
    """Return the places, the elements and the sizes of what must be a sparse tensor."""
    sparse = check_sparse(sp_input)
    return _places_of(sparse, op), sparse.values._array, _sizes_of(sparse, op)


def _places_of(sparse: SparseTensor, op: str) -> np.ndarray:
    return host_array(indices_of(sparse, op), f"sparse.{op}")


def _sizes_of(sparse: SparseTensor, op: str) -> tuple[int, ...]:
    return tuple(host_array(sparse.dense_shape._array, f"sparse.{op}").tolist())


def _scatter(sparse: SparseTensor, op: str, onto: Any = None) -> Any:
    """Return a whole tensor with the elements added to it; those of one place add up."""
    values = sparse.values._array
    sizes = not_too_many(_sizes_of(sparse, op))
    whole = jnp.zeros(sizes, values.dtype) if onto is None else onto
    return whole.at[tuple(indices_of(sparse, op).T)].add(values)


def _sorted_of(places: np.ndarray, values: Any, sizes: Any) -> SparseTensor:
    order = np.lexsort(places.T[::-1]) if places.shape[1] else np.arange(len(places))
    return of_host(places[order], elements_at(values, order), sizes)


__getattr__, __dir__ = namespace(__name__)
