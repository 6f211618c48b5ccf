"""`tf.experimental.DynamicRaggedShape`: the shape of a tensor whose rows have different lengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias, final

import numpy as np

from jaxvars.tf.ragged.dispatch import align
from jaxvars.tf.tensors.convert import NotDense
from jaxvars.tf.tensors.dtypes import DType, as_dtype, int32, int64
from jaxvars.tf.tensors.ragged_base import DISPATCH, Partition
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor, convert, flat_of, make, parts_of
from jaxvars.tf.tensors.static import ints, refused
from jaxvars.tf.tensors.tensor import Tensor

Given: TypeAlias = dict[str, Any]
_SHAPED: dict[str, Callable[[Any, Given], Any]] = {}
"""What operations do with such a shape, by full name: see `NotDense`."""


@final
class DynamicRaggedShape:
    """The shape of a ragged tensor: what `tf.shape` of one returns.

    Args:
        row_partitions: empty; `from_lengths` makes shapes with rows of different lengths.
        inner_shape: the sizes.
        dtype: `tf.int32` or `tf.int64`: of its sizes, and of the row splits of what it is given to.

    >>> from jaxvars import tf
    >>> shape = tf.shape(tf.ragged.constant([[1, 2], [3], []]))
    >>> shape
    <DynamicRaggedShape lengths=[3, (2, 1, 0)] num_row_partitions=1>
    >>> tf.reshape([4, 5, 6], shape), shape[0].numpy().item()
    (<tf.RaggedTensor [[4, 5], [6], []]>, 3)

    Differs from TensorFlow: without `row_partitions`; `static_lengths` has what it is made of.
    """

    __slots__ = ("_inner", "_kind", "_parts")

    def __init__(self, row_partitions: Sequence[Any], inner_shape: Any, dtype: Any = int64) -> None:
        self._parts = tuple(row_partitions)
        self._inner = tuple(ints(inner_shape, "inner_shape"))
        self._kind = as_dtype(dtype)

    @classmethod
    def from_lengths(
        cls, lengths: Sequence[Any], num_row_partitions: int | None = None, dtype: Any = int64
    ) -> DynamicRaggedShape:
        """Make one of the size of each dimension: a number, or the lengths of all of its rows.

        Raises:
            ValueError: when there are not as many lengths as rows.

        >>> DynamicRaggedShape.from_lengths([2, (3, 1)])
        <DynamicRaggedShape lengths=[2, (3, 1)] num_row_partitions=1>
        """
        ragged = [axis for axis, size in enumerate(lengths) if np.ndim(size)]
        if 0 in ragged:
            raise ValueError(f"Shape {tuple(lengths[0])} must have rank 1")
        depth = max(ragged, default=0) if num_row_partitions is None else num_row_partitions
        if depth < max(ragged, default=0) or depth > max(len(lengths) - 1, 0):
            raise ValueError(f"{num_row_partitions=} does not fit the lengths {list(lengths)}")
        parts: list[Partition] = []
        count = lengths[0] if len(lengths) else 0
        for size in lengths[1 : depth + 1]:
            if np.ndim(size) and len(size) != count:
                raise ValueError(f"Shape not consistent: {len(size)} lengths, but {count} rows.")
            kind, is_regular = as_dtype(dtype).dtype, not np.ndim(size)
            parts.append(
                Partition.regular(count, size, kind)
                if is_regular
                else Partition.of_lengths(size, kind)
            )
            count = int(parts[-1].splits[-1])
        return cls(parts, [count, *lengths[depth + 1 :]] if len(lengths) else [], dtype)

    @classmethod
    def from_tensor(cls, t: Any, dtype: Any = None) -> DynamicRaggedShape:
        """Return the shape of a tensor, ragged or not."""
        return _shape_of(convert(t), int64 if dtype is None else dtype)

    rank = property(lambda self: len(self._parts) + len(self._inner), doc="The number of sizes.")
    inner_rank = property(
        lambda self: len(self._inner), doc="The number of sizes of the flat values."
    )
    num_row_partitions = property(
        lambda self: len(self._parts), doc="How many dimensions have row splits."
    )

    @property
    def dtype(self) -> DType:
        """The type of the sizes."""
        return self._kind

    @property
    def inner_shape(self) -> Tensor:
        """The shape of the flat values."""
        return self._tell(self._inner)

    def static_lengths(self, ragged_lengths: bool = True) -> list[Any]:
        """Return the size of each dimension: the lengths of its rows where they differ.

        Args:
            ragged_lengths: None in place of these lengths if False.
        """
        if not self._parts:
            return list(self._inner)
        rows = [
            (tuple(part.lengths.tolist()) if ragged_lengths else None)
            if part.uniform is None
            else int(part.uniform)
            for part in self._parts
        ]
        return [self._parts[0].nrows, *rows, *self._inner[1:]]

    def is_uniform(self, axis: int) -> bool:
        """Return whether the rows of a dimension have one length."""
        return self.static_lengths(False)[self._check_axis(axis)] is not None

    def with_dtype(self, dtype: Any) -> DynamicRaggedShape:
        """Return the same shape with sizes of another type."""
        kind = as_dtype(dtype)
        parts = [Partition(part.splits.astype(kind.dtype), part.uniform) for part in self._parts]
        return DynamicRaggedShape(parts, self._inner, kind)

    def __getitem__(self, index: Any) -> Any:
        sizes = self.static_lengths(False)
        if isinstance(index, slice):
            return self._pick(sizes, index)
        if isinstance(index, bool) or not isinstance(index, int):
            raise TypeError("Argument is not an int or a slice")
        size = sizes[self._check_axis(index + self.rank if index < 0 else index)]
        if size is None:
            raise ValueError(f"Index {index % self.rank} is not uniform")
        return self._tell(size)

    def _pick(self, sizes: list[Any], index: slice) -> DynamicRaggedShape:
        """Return the shape of some dimensions: the first ones, or some whose rows are alike."""
        if index.step is not None:
            raise IndexError("Cannot stride through a shape")
        first, last, _ = index.indices(self.rank)
        if not first:
            depth = min(len(self._parts), max(last - 1, 0))
            return self.from_lengths(self.static_lengths()[:last], depth, self._kind)
        if None in sizes[first:last]:
            raise ValueError("All relevant dimensions must be uniform")
        return DynamicRaggedShape([], sizes[first:last], self._kind)

    def _check_axis(self, axis: int) -> int:
        if not 0 <= axis < self.rank:
            raise IndexError(f"Expected axis={axis} < rank={self.rank}")
        return axis

    def _tell(self, sizes: Any) -> Tensor:
        return Tensor(np.asarray(sizes, self._kind.dtype))  # known while a function is traced

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicRaggedShape):
            return NotImplemented
        return self.static_lengths() == other.static_lengths() and self._kind == other._kind

    __hash__ = None  # type: ignore[assignment]

    def __jax_array__(self) -> NoReturn:
        raise NotDense(
            f"{self} is the shape of a ragged tensor, and rows of different lengths have no one "
            "size. x.bounding_shape() is the shape that x.to_tensor() has.", _SHAPED,
        )  # fmt: skip

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.static_lengths()))
        return f"<DynamicRaggedShape lengths=[{sizes}] num_row_partitions={len(self._parts)}>"


# ---------------------------------------------------------------- operations
def _shape_of(x: Any, dtype: Any) -> DynamicRaggedShape:
    return DynamicRaggedShape(parts_of(x), flat_of(x).shape, int64).with_dtype(dtype)


def _shape(row: Any, given: Given) -> DynamicRaggedShape:
    kind = given["out_type"]
    return _shape_of(given["input"], int32 if kind is None else kind)


def _filled(row: Any, given: Given) -> Any:
    """Return what fills the flat values of a shape, in its rows."""
    name = next(iter(given))
    shape = given[name]
    return make(row.function(**given | {name: shape._inner}), shape._parts)


def _reshape(row: Any, given: Given) -> Any:
    shape, flat = given["shape"], flat_of(convert(given["tensor"]))
    if not isinstance(shape, DynamicRaggedShape):
        return row.function(flat, shape)
    return make(row.function(flat, shape._inner), shape._parts)


def _broadcast_to(row: Any, given: Given) -> Any:
    shape, x = given["shape"], convert(given["input"])
    if not isinstance(shape, DynamicRaggedShape):
        raise refused("A ragged tensor is broadcast to the shape of one: see tf.shape")
    flat, both = _broadcast(x, shape)
    if both.static_lengths() != shape.static_lengths():
        raise refused(f"Cannot broadcast {_shape_of(x, shape.dtype)} to {shape}")
    return make(row.function(flat, shape._inner), shape._parts)


def _broadcast_shapes(row: Any, given: Given) -> DynamicRaggedShape:
    x, y = (
        each if isinstance(each, DynamicRaggedShape) else DynamicRaggedShape([], each, int32)
        for each in (given["shape_x"], given["shape_y"])
    )
    return _broadcast(_frame(x), y)[1]


def _broadcast(x: Any, shape: DynamicRaggedShape) -> tuple[Any, DynamicRaggedShape]:
    """Return the flat values of a tensor in the rows that it has in common with a shape."""
    pair, parts = [x, _frame(shape)], ()
    if any(isinstance(each, RaggedTensor) for each in pair):
        pair, parts = align(pair)
    try:
        inner = np.broadcast_shapes(*(each.shape for each in pair))
    except ValueError as error:
        raise refused(f"Cannot broadcast: {error}") from None
    return pair[0], DynamicRaggedShape(parts, inner, shape.dtype)


def _frame(shape: DynamicRaggedShape) -> Any:
    """Return a tensor of a shape."""
    return make(np.zeros(shape._inner, bool), shape._parts)


DISPATCH.update({"shape": _shape, "reshape": _reshape, "broadcast_to": _broadcast_to})
_SHAPED.update(
    dict.fromkeys(["zeros", "ones", "fill"], _filled),
    reshape=_reshape, broadcast_to=_broadcast_to, broadcast_dynamic_shape=_broadcast_shapes,
)  # fmt: skip
