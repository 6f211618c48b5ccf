"""`tf.RaggedTensor`: rows of different lengths, as flat values and where the rows begin.

Rules this file keeps:
- the partitions are NumPy's, on the host: where rows begin is known while a function is traced,
  which is traced for each; the flat values may be traced, and derivatives go to them;
- it becomes a tensor only by `to_tensor`; operations look in `DISPATCH` what to do with it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import jax
import numpy as np

from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.nest import COMPOSITES
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype, int64
from jaxvars.tf.tensors.ragged_base import (
    INVALID,
    Partition,
    RaggedBase,
    check_list,
    check_splits,
    count_kept,
    number_of,
    numbers_of,
    take,
)
from jaxvars.tf.tensors.static import one_axis, one_int, refused, require_known, slice_end
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.typing import Value

Values: TypeAlias = Any  # a Tensor, or a RaggedTensor


@final
class RaggedTensor(RaggedBase):
    """Rows of different lengths: made by `tf.ragged.constant`, `from_row_lengths` and others.

    >>> from jaxvars import tf
    >>> rows = tf.RaggedTensor.from_row_lengths([3, 1, 4], row_lengths=[2, 0, 1])
    >>> rows
    <tf.RaggedTensor [[3, 1], [], [4]]>
    >>> tf.reduce_sum(rows, axis=1).numpy().tolist(), rows.to_tensor().numpy().tolist()
    ([4, 0, 4], [[3, 1], [0, 0], [4, 0]])

    Differs from TensorFlow: where rows begin must be known while a function is traced. A
    `tf.function` takes it as an argument, and is traced for each partition; the values are traced.
    """

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "RaggedTensor constructor is private; please use one of the factory methods instead "
            "(e.g., RaggedTensor.from_row_lengths())"
        )

    # ------------------------------------------------------------ making one
    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        """Make one whose row i is `values[row_splits[i] : row_splits[i + 1]]`."""
        splits = numbers_of(row_splits, "row_splits")
        if not len(splits):
            raise ValueError("row_splits tensor may not be empty.")
        return nested(convert(values), check_splits(splits, "from_row_splits"))

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        """Make one of the lengths of its rows."""
        lengths = numbers_of(row_lengths, "row_lengths")
        if np.any(lengths < 0):
            raise refused(INVALID.format("from_row_lengths", f": {lengths} has negative ones"))
        return nested(convert(values), Partition.of_lengths(lengths, lengths.dtype))

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        """Make one of where its rows begin; each ends where the next one begins."""
        starts, given = numbers_of(row_starts, "row_starts"), convert(values)
        splits = np.append(starts, _size(given)).astype(starts.dtype)
        return nested(given, check_splits(splits, "from_row_starts"))

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: Any = None, validate: bool = True
    ) -> RaggedTensor:
        """Make one of where its rows end; each begins where the one before ends."""
        limits = numbers_of(row_limits, "row_limits")
        splits = np.append(limits.dtype.type(0), limits)
        return nested(convert(values), check_splits(splits, "from_row_limits"))

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: Any = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Make one of the row of each value: sorted numbers."""
        ids, given = numbers_of(value_rowids, "value_rowids"), convert(values)
        last = int(ids[-1]) if len(ids) else -1
        count = last + 1 if nrows is None else number_of(nrows, "nrows")
        if count < 0:
            raise ValueError(f"Expected nrows >= 0; got {count}")
        if count <= last:
            raise ValueError(
                f"Expected nrows >= value_rowids[-1] + 1; got nrows={count}, "
                f"value_rowids[-1]={last}"
            )
        if len(ids) != _size(given):
            raise ValueError(f"Shapes ({_size(given)},) and ({len(ids)},) are incompatible")
        if np.any(np.diff(ids) < 0) or np.any(ids < 0):
            raise refused(INVALID.format("from_value_rowids", f": {ids} are not sorted, from 0"))
        return nested(given, Partition.of_lengths(np.bincount(ids, minlength=count), ids.dtype))

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True,
        name: Any = None,
    ) -> RaggedTensor:  # fmt: skip
        """Make one whose rows have the same length."""
        given, length = convert(values), number_of(uniform_row_length, "uniform_row_length")
        count = one_int(nrows, "nrows") if nrows is not None else _size(given) // max(length, 1)
        if count * length != _size(given):
            raise ValueError(
                f"uniform_row_length={length} times nrows={count} must equal nvals={_size(given)}"
            )
        return nested(given, Partition.regular(count, length))

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: Any = None, validate: bool = True
    ) -> Values:
        """Make one with a dimension for each of some row splits, the outermost first."""
        return functools.reduce(
            cls.from_row_splits, check_list(nested_row_splits, "nested_row_splits"), flat_values
        )

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: Any = None, validate: bool = True
    ) -> Values:
        """Make one with a dimension for each of some row lengths, the outermost first."""
        return functools.reduce(
            cls.from_row_lengths, check_list(nested_row_lengths, "nested_row_lengths"), flat_values
        )

    @classmethod
    def from_nested_value_rowids(
        cls, flat_values: Any, nested_value_rowids: Any, nested_nrows: Any = None,
        name: Any = None, validate: bool = True,
    ) -> Values:  # fmt: skip
        """Make one of the rows of values, and of their rows, and so on, the outermost first."""
        ids = check_list(nested_value_rowids, "nested_value_rowids")
        counts = check_list(
            [None] * len(ids) if nested_nrows is None else nested_nrows, "nested_nrows"
        )
        if len(counts) != len(ids):
            raise ValueError("`nested_nrows` must have the same length as `nested_value_rowids`")
        for each, count in zip(ids, counts, strict=True):
            flat_values = cls.from_value_rowids(flat_values, each, count)
        return flat_values

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1,
        name: Any = None, row_splits_dtype: Any = int64,
    ) -> RaggedTensor:  # fmt: skip
        """Make one of a tensor: of all elements, the first ones, or those before the padding.

        Args:
            tensor: of rank 2 or more.
            lengths: of the rows.
            padding: what ends of rows consist of, that are left out.
            ragged_rank: the number of dimensions whose rows may have different lengths.
            name: of no effect.
            row_splits_dtype: `tf.int64` or `tf.int32`.
        """
        flat, kind = convert(tensor)._array, as_dtype(row_splits_dtype).dtype
        if flat.ndim < 2 or ragged_rank < 1 or ragged_rank >= flat.ndim:
            raise ValueError(
                "The rank of a RaggedTensor must be greater than 1, and ragged_rank less than "
                f"that. Received argument `tensor` with rank {flat.ndim}, {ragged_rank=}."
            )
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        sizes = flat.shape
        parts = [
            Partition.regular(math.prod(sizes[:i]), sizes[i], kind)
            for i in range(1, ragged_rank + 1)
        ]
        whole = flat.reshape(parts[-1].splits[-1], *sizes[ragged_rank + 1 :])
        if lengths is None and padding is None:
            return make(whole, parts)
        last = parts[-1]
        kept = count_kept(whole, last, lengths, padding)
        part, places = Partition(last.splits).select(last.starts, kept)
        return make(take(whole, places), [*parts[:-1], part])

    @classmethod
    def from_sparse(
        cls, st_input: Any, name: Any = None, row_splits_dtype: Any = int64
    ) -> RaggedTensor:
        """Make one of a sparse tensor of rank 2 whose elements stand at the starts of rows."""
        indices = require_known(st_input.indices, "The indices of a sparse tensor")
        count = require_known(st_input.dense_shape, "The shape of a sparse tensor")[0]
        lengths = np.bincount(indices[:, 0], minlength=count)
        part = Partition.of_lengths(lengths, as_dtype(row_splits_dtype).dtype)
        rows = np.stack([part.row_ids, part.offsets], axis=1)
        if not np.array_equal(indices, rows):
            raise refused(f"SparseTensor is not right-ragged: its indices are {indices.tolist()}")
        return nested(st_input.values, part)

    # ------------------------------------------------------------ its values
    values = property(lambda self: inner(self), doc="The values of the rows, put together.")

    def row_lengths(self, axis: Any = 1, name: Any = None) -> Values:
        """Return the length of each row, along a dimension."""
        at = one_axis(axis, len(self._parts) + 1 + self._flat.ndim - 1)
        if at == 0:
            return self.nrows()
        _, parts = deepen(self._flat._array, self._parts, at)
        return make(self._tell(parts[at - 1].lengths), parts[: at - 1])

    # ------------------------------------------------------------ other values, other rows
    def with_values(self, new_values: Any) -> RaggedTensor:
        """Return one with other values in the same rows."""
        given, part = convert(new_values), self._parts[0]
        if _size(given) != part.splits[-1]:
            raise ValueError(f"Shapes ({part.splits[-1]},) and ({_size(given)},) are incompatible")
        return nested(given, part)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Return one with other flat values in the same rows."""
        given, last = convert(new_values), self._parts[-1]
        if _size(given) != last.splits[-1]:
            raise ValueError(f"Shapes ({last.splits[-1]},) and ({_size(given)},) are incompatible")
        return make(flat_of(given), (*self._parts, *parts_of(given)))

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """Return one whose row splits are `tf.int32` or `tf.int64`."""
        kind = as_dtype(dtype).dtype
        if kind not in (np.int32, np.int64):
            raise ValueError(f"Argument `row_splits` dtype must be int32 or int64, not {kind}.")
        return make(self._flat, _of_kind(self._parts, kind))

    def merge_dims(self, outer_axis: Any, inner_axis: Any) -> Values:
        """Return one with some dimensions made one."""
        rank = len(self._parts) + self._flat.ndim
        low, high = one_axis(outer_axis, rank), one_axis(inner_axis, rank)
        if low > high:
            raise ValueError(f"Expected outer_axis ({low}) to be less than inner_axis ({high})")
        flat, parts = deepen(self._flat._array, self._parts, high)
        if not low or low == high:
            return make(flat, parts[high:] if low < high else parts)
        ends = functools.reduce(
            lambda x, part: part.splits[x], parts[low:high], parts[low - 1].splits
        )
        return make(flat, [*parts[: low - 1], Partition(ends), *parts[high:]])

    # ------------------------------------------------------------ Python
    def __getitem__(self, key: Any) -> Values:
        return pick(self, _check_keys(key if isinstance(key, tuple | list) else (key,), self))

    def __iter__(self) -> Iterator[Values]:
        return (self[i] for i in range(self._parts[0].nrows))

    def __copy__(self) -> RaggedTensor:
        return self

    def __deepcopy__(self, memo: Any) -> RaggedTensor:
        return self

    def __reduce__(self) -> Any:
        return make, (self._flat, [*self._parts])


# ---------------------------------------------------------------- parts
def make(flat: Any, parts: Sequence[Partition]) -> Values:
    """Return a ragged tensor, or the flat values if there are no partitions."""
    values = flat if isinstance(flat, Tensor) else Tensor(flat)
    return unflatten(tuple(parts), (values,)) if parts else values


def flat_of(x: Values) -> Tensor:
    """Return the flat values of a tensor, ragged or not."""
    return x._flat if isinstance(x, RaggedTensor) else x


def parts_of(x: Values) -> tuple[Partition, ...]:
    """Return the partitions of a tensor; none if it is not ragged."""
    return x._parts if isinstance(x, RaggedTensor) else ()


def nested(values: Values, part: Partition) -> RaggedTensor:
    """Return the rows of values."""
    if not is_open(_size(values)) and _size(values) != part.splits[-1]:
        what = f"\nCondition x == y did not hold: {part.splits[-1]} is not {_size(values)}"
        raise refused(INVALID.format("_from_row_partition", what))
    kinds = {each.splits.dtype for each in (part, *parts_of(values))}
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(np.int64)
    return make(flat_of(values), _of_kind((part, *parts_of(values)), kind))


def _of_kind(parts: Sequence[Partition], kind: Any) -> list[Partition]:
    return [
        part if part.splits.dtype == kind else Partition(part.splits.astype(kind), part.uniform)
        for part in parts
    ]


def convert(value: Any, dtype: Any = None) -> Values:
    """Return a ragged tensor as it is, and a tensor of anything else."""
    if isinstance(value, RaggedTensor | Tensor):
        return value
    return Tensor(to_array(value) if dtype is None else to_array(value, hint=dtype))


def _size(values: Values) -> int:
    """Return the number of rows."""
    if isinstance(values, RaggedTensor):
        return values._parts[0].nrows
    if not values.ndim:
        raise refused("slice index 0 of dimension 0 out of bounds.")
    return values._array.shape[0]


def inner(x: RaggedTensor) -> Values:
    """Return the values of the rows, put together."""
    return make(x._flat, x._parts[1:])


def rows_of(x: Values, rows: np.ndarray) -> Values:
    """Return some rows of a tensor, ragged or not."""
    made: list[Partition] = []
    for part in parts_of(x):
        new, rows = part.select(part.starts[rows], part.lengths[rows])
        made.append(new)
    return make(take(flat_of(x), rows), made)


def deepen(flat: Value, parts: Sequence[Partition], depth: int) -> tuple[Value, list[Partition]]:
    """Return flat values and as many partitions: those of regular dimensions, too."""
    found = list(parts)
    while len(found) < depth:
        count, size = flat.shape[:2]
        found.append(Partition.regular(count, size))
        flat = flat.reshape(count * size, *flat.shape[2:])
    return flat, found


# ---------------------------------------------------------------- indexing
def _check_keys(keys: Sequence[Any], x: RaggedTensor) -> list[Any]:
    """Return indices as ints, slices and None: an ellipsis stands for whole dimensions."""
    made: list[Any] = []
    count = sum(key is not None and key is not Ellipsis for key in keys)
    for key in keys:
        if key is Ellipsis:
            if count > len(x.shape):
                raise IndexError(f"Too many indices for RaggedTensor: {count}, of {len(x.shape)}")
            made += [slice(None)] * (len(x.shape) - count)
        elif key is None:
            made.append(None)
        elif isinstance(key, slice):
            ends = ((key.start, "offsets"), (key.stop, "offsets"), (key.step, "strides"))
            made.append(slice(*(slice_end(n, what) for n, what in ends)))
        elif isinstance(key, int | np.integer | Tensor) and not isinstance(key, bool):
            made.append(one_int(key, "An index of a ragged tensor"))
        else:
            raise TypeError(
                "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
                f"tf.int32/tf.int64 tensors are valid indices, got {key!r}"
            )
    return made


def pick(x: Values, keys: list[Any]) -> Values:
    """Return what indices pick of a tensor, ragged or not."""
    if not keys or isinstance(x, Tensor):
        return x[tuple(keys)] if keys else x
    key, rest = keys[0], keys[1:]
    count = x._parts[0].nrows
    if key is None:
        made = pick(x, rest)
        return nested(made, Partition.regular(1, _size(made)))
    if isinstance(key, slice):
        return _pick_inside(rows_of(x, np.arange(count)[key]), rest)
    if key >= count:
        raise IndexError(f"Row key {key} out of bounds")
    if key < -count:
        raise refused(f"slice index {key + count} of dimension 0 out of bounds.")
    return pick(inner(rows_of(x, np.arange(count)[key : key + 1 or None])), rest)


def _pick_inside(x: Values, keys: list[Any]) -> Values:
    """Return what indices pick of each row."""
    if not keys:
        return x
    if isinstance(x, Tensor):
        return x[(slice(None), *keys)]
    part, key, rest = x._parts[0], keys[0], keys[1:]
    if key is None:
        return nested(_pick_inside(x, rest), Partition.regular(part.nrows, 1))
    if isinstance(key, slice):
        first, lengths, step = _slice_rows(part.lengths, key)
        uniform = int(lengths[0]) if part.uniform is not None and len(lengths) else part.uniform
        new, places = Partition(part.splits, uniform).select(part.starts + first, lengths, step)
        return nested(_pick_inside(rows_of(inner(x), places), rest), new)
    if part.uniform is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    if not -part.uniform <= key < part.uniform:
        raise refused("Index out of bounds when indexing into a ragged tensor")
    return _pick_inside(rows_of(inner(x), part.starts + key % part.uniform), rest)


def _slice_rows(lengths: np.ndarray, key: slice) -> tuple[np.ndarray, np.ndarray, int]:
    """Return where a slice of rows of some lengths starts, how long it is, and its step."""
    found = [key.indices(n) for n in range(int(lengths.max(initial=0)) + 1)]
    starts = np.array([start for start, _, _ in found])
    sizes = np.array([len(range(*each)) for each in found])
    return starts[lengths], sizes[lengths], found[0][2]


# ---------------------------------------------------------------- display, pytrees
def unflatten(parts: tuple[Partition, ...], children: Any) -> RaggedTensor:
    """Return a ragged tensor of what `_flatten` makes of one."""
    made = object.__new__(RaggedTensor)
    made._flat, made._parts = wrap(children[0]), parts
    return made


def _flatten(x: RaggedTensor) -> tuple[tuple[Any], tuple[Partition, ...]]:
    return (x._flat._array if isinstance(x._flat, Tensor) else x._flat,), x._parts


COMPOSITES[RaggedTensor] = (
    lambda x: [x.flat_values, *x.nested_row_splits],
    lambda _, flat, *splits: RaggedTensor.from_nested_row_splits(flat, splits),
)
jax.tree_util.register_pytree_node(RaggedTensor, _flatten, unflatten)
