"""`tf.SparseTensor`: the elements of a tensor that are not zero, and where they are.

Rules this file keeps:
- flattened as a pytree it is its indices and values, and its shape where that is known: a program
  is compiled for each number of elements, and each shape;
- it is never converted to a tensor but by `tf.sparse.to_dense`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.attributes import getter
from jaxvars.tf.nest import COMPOSITES
from jaxvars.tf.tensors.convert import NotDense, to_array
from jaxvars.tf.tensors.dtypes import int64
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import checkable, refused
from jaxvars.tf.tensors.tensor import OPERATIONS, Tensor, wrap
from jaxvars.tracing import context
from jaxvars.typing import Array


@final
class SparseTensor:
    """Some elements of a tensor; the others are zero.

    Args:
        indices: where they are: int64 of shape [n, rank], sorted for most operations.
        values: the elements, of shape [n].
        dense_shape: the shape of the whole tensor: int64 of shape [rank].

    Raises:
        ValueError: when the shapes do not fit.

    >>> from jaxvars import tf
    >>> tf.sparse.to_dense(tf.SparseTensor([[0, 1]], [5], [1, 3]))
    <tf.Tensor: shape=(1, 3), dtype=int32, numpy=array([[0, 5, 0]], dtype=int32)>

    Differs from TensorFlow: `tf.sparse` has only the most common operations; a `tf.function`
    is traced for each number of elements and each shape, since XLA compiles for fixed sizes; in
    it, branches and loops keep them.
    """

    __slots__ = ("__weakref__", "_dense_shape", "_indices", "_values")

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = Tensor(to_array(indices, hint=int64))
        self._values = Tensor(to_array(values))
        self._dense_shape = Tensor(to_array(dense_shape, hint=int64))
        _check(self._indices, self._values, self._dense_shape)

    indices = getter("_indices", "Where the elements are.")
    values = getter("_values", "The elements.")
    dense_shape = getter("_dense_shape", "The shape of the whole tensor, as a tensor.")
    dtype = getter("_values.dtype", "The type of the elements.")

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole tensor, as far as it is known."""
        sizes = self._dense_shape._array
        if context.is_tracer(sizes):
            return TensorShape([None] * sizes.shape[0])
        return TensorShape(np.asarray(sizes).tolist())

    def get_shape(self) -> TensorShape:
        """Return the shape of the whole tensor."""
        return self.shape

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Return a sparse tensor of what has its three parts."""
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        given = sparse_tensor_value
        try:
            return cls(given.indices, given.values, given.dense_shape)
        except AttributeError:
            raise TypeError(
                f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value!r}."
            ) from None

    def set_shape(self, shape: Any) -> None:
        """Check the shape of the whole tensor, where it is known.

        Raises:
            ValueError: when it is another one.
        """
        self.shape.assert_is_compatible_with(shape)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Return one with other elements in the same places."""
        return SparseTensor(self._indices, new_values, self._dense_shape)

    def __mul__(self, other: Any) -> SparseTensor:
        return self._with(OPERATIONS["mul"], other)

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._with(OPERATIONS["truediv"], other)

    def _with(self, operation: Any, other: Any) -> SparseTensor:
        """Return what an operation makes of the elements and those of a tensor at their places."""
        dense = to_array(other, hint=self.dtype)
        if dense.ndim:
            sizes = host_array(self._dense_shape._array, "sparse").tolist()
            places = tuple(indices_of(self, "SparseDenseBinaryOpShared").T)
            try:
                dense = jnp.broadcast_to(dense, sizes)[places]
            except ValueError:
                raise refused(
                    "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible "
                    f"shapes: {sizes} vs. {list(dense.shape)}"
                ) from None
        return self.with_values(operation(self._values, Tensor(dense)))

    def __jax_array__(self) -> NoReturn:
        raise NotDense(
            f"Attempt to convert a value ({self!r}) with an unsupported type ({type(self)}) to a "
            "Tensor. tf.sparse.to_dense(x) is one, x.values has the elements.",
            DISPATCH,
        )

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices!s}, values={self._values!s}, "
            f"dense_shape={self._dense_shape!s})"
        )


# ---------------------------------------------------------------- operations
def _each(row: Any, given: dict[str, Any]) -> SparseTensor:
    """Return what an operation makes of the elements; one that keeps zeros as they are."""
    first, sparse = next(iter(given.items()))
    return sparse.with_values(row.function(**{**given, first: sparse.values}))


def _of_shape(row: Any, given: dict[str, Any]) -> Tensor:
    """Return what an operation says of a tensor of this shape."""
    sizes = host_array(given["input"].dense_shape._array, row.function.__name__)
    return row.function(**{**given, "input": np.broadcast_to(np.int32(0), sizes)})


DISPATCH = {
    **dict.fromkeys(["cast", "identity", "math.special.bessel_i0e",
                     "math.special.bessel_i1e"], _each),
    **{f"math.{name}": _each for name in (
        "abs", "asin", "asinh", "atan", "atanh", "erf", "negative", "sign", "sin", "sqrt",
        "square", "tan", "tanh",
    )},
    **dict.fromkeys(["rank", "shape", "size"], _of_shape),
}  # fmt: skip
"""What operations do with sparse tensors, by full name: see `NotDense`."""


def _check(indices: Tensor, values: Tensor, sizes: Tensor) -> None:
    """Raise ValueError if the shapes of the parts do not fit."""
    for tensor, rank in ((indices, 2), (values, 1), (sizes, 1)):
        if tensor.ndim != rank:
            raise ValueError(f"Shape {tensor.shape} must have rank {rank}")
    for tensor in (indices, sizes):
        if not tensor.dtype.is_integer:
            raise TypeError(f"Cannot convert {tensor} to EagerTensor of dtype int64")
    pairs = ((indices.shape[0], values.shape[0]), (indices.shape[1], sizes.shape[0]))
    for one, other in pairs:
        if one != other:
            raise ValueError(f"Dimensions {one} and {other} are not compatible")


def check_sparse(value: Any) -> SparseTensor:
    """Return a sparse tensor; raise TypeError for anything else."""
    if not isinstance(value, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return value


def indices_of(sparse: SparseTensor, op: str) -> Array:
    """Return where the elements are; raise InvalidArgumentError if some are known to be outside."""
    indices, sizes = sparse._indices._array, sparse._dense_shape._array
    if checkable(indices) and checkable(sizes):
        check_inside(np.asarray(indices), tuple(np.asarray(sizes).tolist()), False, op)
    return indices


def on_host(sparse: SparseTensor, op: str) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return the parts of a sparse tensor as NumPy arrays."""
    parts = (sparse.indices._array, sparse.values._array, sparse.dense_shape._array)
    indices, values, sizes = (host_array(part, op) for part in parts)
    return indices, values, tuple(sizes.tolist())


def host_array(array: Array, op: str) -> np.ndarray:
    """Return an array as NumPy's; refuse it where only the program knows its value."""
    if context.is_tracer(array):
        raise NotImplementedError(
            f"tf.{op} cannot be part of a compiled function: the size of its result depends on "
            "values, and XLA compiles for fixed sizes. Call it outside of tf.function, or by "
            "tf.numpy_function on the host."
        )
    return np.asarray(array)


def elements_at(values: Any, index: Any) -> Any:
    """Return some elements: on the host, which compiles nothing, unless a tape may see it."""
    if not isinstance(values, jax.Array) or not checkable(values):
        return values[index]
    is_seen = context.current() is not context.EVAL
    return values[index] if is_seen else jnp.asarray(np.asarray(values)[index])


def of_host(indices: Any, values: Any, sizes: Any) -> SparseTensor:
    """Return a sparse tensor of places and sizes that are known."""
    places = np.asarray(indices, np.int64).reshape(-1, len(sizes))
    return SparseTensor(places, Tensor(to_array(values)), np.asarray(sizes, np.int64))


# ---------------------------------------------------------------- rows, in datasets
def row_of(sparse: SparseTensor, i: int) -> SparseTensor:
    """Return a slice along the first dimension."""
    indices, values, sizes = on_host(sparse, "sparse.slice")
    if len(sizes) < 2:
        raise refused(f"Rank of input SparseTensor should be > 1, but saw rank: {len(sizes)}")
    is_in = indices[:, 0] == i
    return of_host(indices[is_in, 1:], values[is_in], sizes[1:])


def stack_rows(rows: Sequence[SparseTensor]) -> SparseTensor:
    """Return sparse tensors as one, with a new first dimension, and the largest sizes."""
    parts = [on_host(row, "sparse.concat") for row in rows]
    indices = [np.insert(places, 0, i, axis=1) for i, (places, _, _) in enumerate(parts)]
    sizes = np.max([shape for _, _, shape in parts], axis=0)
    values = np.concatenate([part for _, part, _ in parts])
    return of_host(np.concatenate(indices), values, [len(rows), *sizes])


def whole_of(sparse: SparseTensor) -> np.ndarray:
    """Return the whole tensor as a NumPy array."""
    indices, values, sizes = on_host(sparse, "sparse.to_dense")
    made = np.full(sizes, b"", object) if values.dtype == object else np.zeros(sizes, values.dtype)
    made[tuple(indices.T)] = values
    return made


# ---------------------------------------------------------------- pytrees
def _flatten(sparse: SparseTensor) -> tuple[tuple[Array, ...], tuple[int, ...] | None]:
    parts = (sparse._indices, sparse._values, sparse._dense_shape)
    arrays = tuple(x._array if isinstance(x, Tensor) else x for x in parts)
    if not isinstance(arrays[2], jax.Array | np.ndarray) or context.is_tracer(arrays[2]):
        return arrays, None
    return arrays[:2], tuple(np.asarray(arrays[2]).tolist())


def _unflatten(sizes: tuple[int, ...] | None, parts: Any) -> SparseTensor:
    made = object.__new__(SparseTensor)
    known = [] if sizes is None else [to_array(np.asarray(sizes, np.int64))]
    made._indices, made._values, made._dense_shape = map(wrap, [*parts, *known])
    return made


COMPOSITES[SparseTensor] = (
    lambda x: [x.indices, x.values, x.dense_shape],
    lambda _, *parts: SparseTensor(*parts),
)
jax.tree_util.register_pytree_node(SparseTensor, _flatten, _unflatten)


def check_inside(
    indices: np.ndarray, sizes: tuple[int, ...], is_sorted: bool, op: str = "SparseToDense"
) -> None:
    """Raise InvalidArgumentError if an index is outside, or after a greater one."""
    outside = np.any((indices < 0) | (indices >= np.asarray(sizes, np.int64)), axis=1)
    for i in np.flatnonzero(outside)[:1]:
        raise refused(
            f"indices[{i}] = {format_numbers(indices[i])} is out of bounds: need 0 <= index < "
            f"{format_numbers(sizes)} [Op:{op}] name: "
        )
    rows = list(map(tuple, indices.tolist())) if is_sorted else []
    for i in range(1, len(rows)):
        if rows[i - 1] >= rows[i]:
            why = "repeated" if rows[i - 1] == rows[i] else "out of order"
            raise refused(
                f"indices[{i}] = {format_numbers(rows[i])} is {why}. Many sparse ops require "
                "sorted indices. Use `tf.sparse.reorder` to create a correctly ordered copy. "
                f"[Op:{op}] name: "
            )


def format_numbers(numbers: Any) -> str:
    """Return a list of numbers as TensorFlow's messages write it."""
    return f"[{','.join(map(str, np.asarray(numbers).tolist()))}]"
