"""What a ragged tensor tells of itself, and what it becomes: tensors, arrays, lists, strings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NoReturn, final

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.convert import NotDense, is_tensor_like, is_text, to_array
from jaxvars.tf.tensors.dtypes import as_dtype, int64
from jaxvars.tf.tensors.handles import is_handles, lift
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.sparse_tensor import SparseTensor, elements_at
from jaxvars.tf.tensors.static import one_int, refused, require_known
from jaxvars.tf.tensors.tensor import Operators, Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

DISPATCH: dict[str, Callable[[Any, dict[str, Any]], Any]] = {}
"""What operations do with ragged tensors, by full name: see `NotDense`."""


NO_TENSOR = (
    "TypeError: object of type 'RaggedTensor' has no len(): its rows have different lengths, and "
    "it is not a tensor. x.to_tensor() pads them, x.flat_values has all."
)


INVALID = "Arguments to {} do not form a valid RaggedTensor{}"


@final
class Partition:
    """Which values belong to which row: `splits`, and the length of all rows if it is known."""

    def __init__(self, splits: np.ndarray, uniform: int | None = None) -> None:
        self.splits, self.uniform = splits, uniform
        splits.setflags(write=False)

    @classmethod
    def of_lengths(cls, lengths: Any, dtype: Any = np.int64, uniform: Any = None) -> Partition:
        """Return the one of rows of some lengths."""
        return cls(np.concatenate([[0], np.cumsum(lengths)]).astype(dtype), uniform)

    @classmethod
    def regular(cls, nrows: int, length: int, dtype: Any = np.int64) -> Partition:
        """Return the one of rows of one length."""
        return cls(np.arange(nrows + 1).astype(dtype) * length, length)

    starts = property(lambda self: self.splits[:-1])
    lengths = property(lambda self: np.diff(self.splits))
    nrows = property(lambda self: len(self.splits) - 1)

    @property
    def row_ids(self) -> np.ndarray:
        """Return the row of each value."""
        return np.repeat(np.arange(self.nrows, dtype=self.splits.dtype), self.lengths)

    @property
    def offsets(self) -> np.ndarray:
        """Return the place of each value in its row."""
        return np.arange(self.splits[-1]) - np.repeat(self.starts, self.lengths)

    def select(self, starts: Any, lengths: Any, step: int = 1) -> tuple[Partition, np.ndarray]:
        """Return the partition of other rows, and which values are in them."""
        made = Partition.of_lengths(lengths, self.splits.dtype, self.uniform)
        return made, np.repeat(starts, lengths) + made.offsets * step

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Partition)
            and (other.uniform, other.splits.dtype) == (self.uniform, self.splits.dtype)
            and np.array_equal(other.splits, self.splits)
        )

    def __hash__(self) -> int:
        return hash(self.splits.tobytes())


def take(flat: Any, places: np.ndarray) -> Any:
    """Return some of the flat values."""
    array = getattr(flat, "_array", flat)
    is_all = len(places) == array.shape[0] and np.array_equal(places, np.arange(len(places)))
    return array if is_all else elements_at(array, places)


class RaggedBase(Operators):
    """Flat values, and partitions for each ragged dimension, the outermost first."""

    __slots__ = ("__weakref__", "_flat", "_parts")
    _flat: Tensor
    _parts: tuple[Partition, ...]

    flat_values = getter("_flat", "All values, in a tensor.")
    dtype = getter("_flat.dtype", "The type of the values.")
    ragged_rank = property(lambda self: len(self._parts), doc="The number of ragged dimensions.")
    uniform_row_length = property(
        lambda self: self._parts[0].uniform, doc="The length of all rows, if it is known."
    )
    row_splits = property(
        lambda self: Tensor(self._parts[0].splits), doc="Where rows begin and end."
    )
    nested_row_splits = property(
        lambda self: tuple(Tensor(part.splits) for part in self._parts),
        doc="The row splits of all ragged dimensions.",
    )

    @property
    def shape(self) -> TensorShape:
        """The sizes, None where rows have different ones."""
        if not self._parts:  # the row of another one, in a dataset
            return self._flat.shape
        sizes = [part.uniform for part in self._parts]
        return TensorShape([self._parts[0].nrows, *sizes, *self._flat._array.shape[1:]])

    def get_shape(self) -> TensorShape:
        """Return `shape`."""
        return self.shape

    def nrows(self, out_type: Any = None, name: Any = None) -> Tensor:
        """Return the number of rows."""
        return self._tell(self._parts[0].nrows, out_type)

    def row_starts(self, name: Any = None) -> Tensor:
        """Return where each row begins."""
        return self._tell(self._parts[0].starts)

    def row_limits(self, name: Any = None) -> Tensor:
        """Return where each row ends."""
        return self._tell(self._parts[0].splits[1:])

    def value_rowids(self, name: Any = None) -> Tensor:
        """Return the row of each value."""
        return self._tell(self._parts[0].row_ids)

    def nested_value_rowids(self, name: Any = None) -> tuple[Tensor, ...]:
        """Return the row of each value, in all ragged dimensions."""
        return tuple(self._tell(part.row_ids) for part in self._parts)

    def nested_row_lengths(self, name: Any = None) -> tuple[Tensor, ...]:
        """Return the lengths of all rows."""
        return tuple(self._tell(part.lengths) for part in self._parts)

    def bounding_shape(self, axis: Any = None, name: Any = None, out_type: Any = None) -> Tensor:
        """Return the shape that `to_tensor` has, or a size of it."""
        sizes = np.array([*_bounds(self), *self._flat._array.shape[1:]])
        return self._tell(sizes if axis is None else sizes[axis], out_type)

    def _tell(self, numbers: Any, dtype: Any = None) -> Tensor:
        kind = self._parts[0].splits.dtype if dtype is None else as_dtype(dtype).dtype
        return Tensor(np.asarray(numbers).astype(kind))  # known while a function is traced, too

    # ------------------------------------------------------------ conversion
    def to_tensor(self, default_value: Any = None, name: Any = None, shape: Any = None) -> Tensor:
        """Return a tensor, with rows filled up.

        Args:
            default_value: what they are filled up with: zero, or an empty string, when None.
            name: of no effect.
            shape: to cut or fill up to; None in it is the size of the longest row.
        """
        flat, sizes = self._flat._array, list(_bounds(self))
        whole = [*sizes, *flat.shape[1:]]
        for i, n in enumerate([] if shape is None else TensorShape(shape).as_list()):
            whole[i : i + 1] = [whole[i] if n is None else n] if i < len(whole) else []
        if shape is not None and len(TensorShape(shape)) != len(whole):
            raise refused(
                f"rt_input.shape and shape={list(TensorShape(shape))} are incompatible: "
                f"rt_input.rank = {len(whole)}"
            )
        if tuple(whole[len(sizes) :]) != flat.shape[1:]:
            raise refused(f"{whole} does not have the inner sizes {flat.shape[1:]} of the values")
        places = np.stack(coordinates(self))
        inside = np.all(places < np.array(whole[: len(sizes)])[:, None], axis=0)
        index, kept = tuple(places[:, inside]), take(flat, np.flatnonzero(inside))
        if is_text(flat):
            fill: Any = b"" if default_value is None else to_array(default_value, self.dtype)
            made = np.broadcast_to(np.asarray(fill, object), whole).copy()
            made[index] = kept
            return Tensor(made)
        if is_handles(flat):
            fill = lift(to_array(b"" if default_value is None else default_value, self.dtype))
            rows = np.full(whole, len(flat))
            rows[index] = np.flatnonzero(inside)
            return Tensor(jnp.concatenate([flat, fill[None]])[rows])
        fill = 0 if default_value is None else to_array(default_value, self.dtype)
        if np.ndim(fill) and fill.shape != flat.shape[1:]:
            raise refused(f"default_value.shape={list(fill.shape)} and values do not fit")
        return Tensor(jnp.full(whole, fill, flat.dtype).at[index].set(kept))

    def to_sparse(self, name: Any = None) -> SparseTensor:
        """Return a sparse tensor of the values."""
        places = np.stack(coordinates(self), axis=1).astype(np.int64)
        return SparseTensor(places, self.flat_values, np.asarray(_bounds(self), np.int64))

    def numpy(self) -> np.ndarray:
        """Return a NumPy array, of arrays where rows have different lengths."""
        made = np.array(self._host())  # what it returns may be written to
        for part in reversed(self._parts):
            rows = np.split(made, part.splits[1:-1]) if part.nrows else []
            if len({len(row) for row in rows}) > 1:
                made = np.empty(len(rows), object)
                made[:] = rows
            else:
                made = np.array(rows) if rows else np.array([], made.dtype)
        return made

    def to_list(self) -> list[Any]:
        """Return nested lists."""
        made = self._host().tolist()
        for part in reversed(self._parts):
            ends = part.splits.tolist()
            made = [made[i:j] for i, j in itertools.pairwise(ends)]
        return made

    def _host(self) -> np.ndarray:
        if context.is_tracer(self._flat._array):
            raise ValueError(
                "RaggedTensor.numpy() is only supported in eager mode: its values are known when "
                "the function runs, not while it is traced."
            )
        return np.asarray(self._flat._array)

    def __bool__(self) -> NoReturn:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __hash__(self) -> int:
        raise TypeError("RaggedTensor is unhashable.")

    def __jax_array__(self) -> NoReturn:
        raise NotDense(NO_TENSOR, DISPATCH)

    def __repr__(self) -> str:
        array = getattr(self._flat, "_array", None)  # error messages have a type there
        if array is None or context.is_tracer(array):
            shown = str(self._flat)
            for splits in reversed(self.nested_row_splits):
                shown = f"tf.RaggedTensor(values={shown}, row_splits={splits})"
            return shown
        with np.printoptions(formatter={"all": _format}):
            return f"<tf.RaggedTensor {_format(self.numpy())}>"


def _bounds(x: RaggedBase) -> tuple[int, ...]:
    most = [int(part.lengths.max(initial=0)) for part in x._parts]
    return x._parts[0].nrows, *most


def coordinates(x: RaggedBase) -> list[np.ndarray]:
    """Return where each flat value is, in all dimensions."""
    found = [np.arange(x._parts[0].nrows)]
    for part in x._parts:
        found = [*(each[part.row_ids] for each in found), part.offsets]
    return found


def _format(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return str(value)
    return np.array2string(value, separator=", ") if value.size else repr(value.tolist())


# ---------------------------------------------------------------- what one is made of
def numbers_of(value: Any, what: str) -> np.ndarray:
    """Return where rows begin, or how long they are."""
    if is_tensor_like(value) or isinstance(value, np.ndarray):
        found = np.array(require_known(value, what))
    else:
        found = np.array(require_known(to_array(value, hint=int64), what))
    if found.ndim != 1:
        raise ValueError(f"Shape {found.shape} must have rank 1")
    if found.size and found.dtype not in (np.int32, np.int64):
        raise ValueError(f"{what} must have dtype int32 or int64")
    return found if found.size else found.astype(np.int64)


def number_of(value: Any, what: str) -> int:
    """Return an int; raise ValueError for what has a dimension."""
    shape = tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
    if shape:
        raise ValueError(f"Shape {shape} must have rank 0")
    return one_int(value, what)


def check_list(value: Any, what: str) -> Any:
    """Return a list, the last part first; raise TypeError for a tensor."""
    if isinstance(value, Tensor):
        raise TypeError(f"Argument `{what}` must be a list of Tensors. Received {value}.")
    return value[::-1]


def check_splits(splits: np.ndarray, where: str) -> Partition:
    """Return a partition; raise InvalidArgumentError unless the splits rise from 0."""
    if splits[0]:
        raise refused(INVALID.format(where, f":zero\n{splits[0]} is not 0"))
    if np.any(np.diff(splits) < 0):
        raise refused(INVALID.format(where, f":monotonic.\n{splits} decreases"))
    return Partition(splits)


def count_kept(flat: Array, part: Partition, lengths: Any, padding: Any) -> np.ndarray:
    """Return how much of each row is not padding."""
    if lengths is not None:
        given = numbers_of(lengths, "lengths")
        if len(given) != part.nrows:
            raise ValueError(f"lengths has {len(given)} numbers for {part.nrows} rows")
        return np.clip(given, 0, part.uniform)
    values = require_known(flat, "A tensor with padding")
    fill = to_array(padding, Tensor(flat).dtype)
    if fill.shape != flat.shape[1:]:
        raise ValueError(f"padding.shape={fill.shape} must be {flat.shape[1:]}")
    differs = (values != np.asarray(fill)).reshape(len(values), math.prod(fill.shape)).any(axis=1)
    ends = np.where(differs, part.offsets + 1, 0).reshape(
        part.nrows, flat.shape[0] // max(part.nrows, 1)
    )
    return ends.max(axis=1, initial=0)
