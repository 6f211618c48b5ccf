"""What operations do with ragged tensors.

Most work on the flat values. What joins rows, or picks some, computes on the host which values
these are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.ragged.gather import gather, gather_nd, insert
from jaxvars.tf.ragged.join import check_axis, concat, stack, with_parts
from jaxvars.tf.registry.rows import find
from jaxvars.tf.tensors.convert import string_array, to_array
from jaxvars.tf.tensors.handles import on_strings
from jaxvars.tf.tensors.ragged_base import DISPATCH, Partition, coordinates, take
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
from jaxvars.tf.tensors.static import ints, one_int, refused, require_known
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Value

Given: TypeAlias = dict[str, Any]

_ELEMENTWISE = """
cast clip_by_value complex identity one_hot ones_like realdiv saturate_cast truncatediv truncatemod
where zeros_like
bitwise: left_shift right_shift bitwise_and bitwise_or bitwise_xor invert
math: abs acos acosh add add_n angle asin asinh atan atan2 atanh ceil conj cos cosh digamma divide
divide_no_nan equal erf erfc erfinv exp expm1 floor floordiv floormod greater greater_equal imag
is_finite is_inf is_nan less less_equal lgamma log log1p log_sigmoid logical_and logical_not
logical_or logical_xor maximum minimum multiply multiply_no_nan ndtri negative not_equal pow real
reciprocal reciprocal_no_nan rint round rsqrt sigmoid sign sin sinh softplus softsign sqrt square
squared_difference subtract tan tanh truediv xdivy xlog1py xlogy
math.special: bessel_i0e bessel_i1e
nn: elu gelu leaky_relu relu relu6 selu sigmoid_cross_entropy_with_logits silu
strings: as_string bytes_split join length lower regex_full_match regex_replace split strip substr
to_hash_bucket_fast to_number unicode_decode unicode_decode_with_offsets unicode_split
unicode_split_with_offsets upper
"""


# ---------------------------------------------------------------- element by element
def _each(row: Any, given: Given) -> Any:
    """Return what an operation makes of the values of ragged tensors, in their rows."""
    names = [word.rstrip("*?") for word in row.tensors.split()]
    if row.function.__name__ == "where":
        names = ["condition", "x", "y"]
        if given["x"] is None:
            return _where_true(given["condition"])
    if "*" in row.tensors:
        flats, parts = align(list(given[names[0]]))
        return with_parts(row.function(**{**given, names[0]: flats}), parts)
    flats, parts = align([given[name] for name in names])
    return with_parts(row.function(**given | dict(zip(names, flats, strict=True))), parts)


def _where_true(condition: RaggedTensor) -> Tensor:
    known = require_known(condition.flat_values, "The condition of tf.where")
    return Tensor(to_array(np.stack(coordinates(condition), axis=1)[known != 0].astype(np.int64)))


def align(operands: list[Any]) -> tuple[list[Any], Sequence[Partition]]:
    """Return the flat values of operands that are broadcast to the same rows, and these.

    Scalars stay as they are. Dimensions of size 1 that are not ragged are repeated.
    """
    ragged = [x for x in operands if isinstance(x, RaggedTensor)]
    first = ragged[0]
    whole = [x if x is None else convert(x, first.dtype) for x in operands]
    alone = [x is None or (isinstance(x, Tensor) and not x.ndim) for x in whole]
    if all(
        is_alone or parts_of(x) == first._parts for x, is_alone in zip(whole, alone, strict=True)
    ):
        ranks = {flat_of(x).ndim for x, is_alone in zip(whole, alone, strict=True) if not is_alone}
        if len(ranks) == 1:
            given = zip(operands, whole, alone, strict=True)
            return [x if is_alone else flat_of(y) for x, y, is_alone in given], first._parts
    rows = [x for x, is_alone in zip(whole, alone, strict=True) if not is_alone]
    rank = max(len(parts_of(x)) + flat_of(x).ndim for x in rows)
    depth = max(rank - flat_of(x).ndim for x in rows if isinstance(x, RaggedTensor))
    flats, parts = _broadcast([_lift(x, rank, depth) for x in rows])
    new = iter(flats)
    given = zip(operands, alone, strict=True)
    return [x if is_alone else next(new) for x, is_alone in given], parts


def _lift(x: Any, rank: int, depth: int) -> tuple[int, Any, list[Partition]]:
    """Return the number of rows, flat values and partitions of an operand, to a depth."""
    flat, parts = flat_of(x)._array, list(parts_of(x))
    missing = rank - len(parts) - flat.ndim
    if not parts:
        flat = flat.reshape(*[1] * missing, *flat.shape)
        return flat.shape[0], *deepen(flat, parts, depth)
    count = parts[0].nrows
    for _ in range(missing):
        parts.insert(0, Partition.regular(1, count))
        count = 1
    return count, *deepen(flat, parts, depth)


def _broadcast(
    operands: Sequence[tuple[int, Any, list[Partition]]],
) -> tuple[list[Any], list[Partition]]:
    """Return flat values for the same rows: level by level, which values of each there are."""
    counts = [count for count, _, _ in operands]
    total = next((n for n in counts if n != 1), 1)
    if any(n not in (1, total) for n in counts):
        raise _differ(f"{counts} rows")
    places = [np.zeros(total, np.int64) if n == 1 else np.arange(n) for n in counts]
    made: list[Partition] = []
    for level in zip(*(parts for _, _, parts in operands), strict=True):
        pairs = list(zip(level, places, strict=True))
        wide = [part.uniform != 1 for part in level]
        lengths = [part.lengths[at] for part, at in pairs]
        chosen = [n for n, is_wide in zip(lengths, wide, strict=True) if is_wide] or lengths
        if any(not np.array_equal(n, chosen[0]) for n in chosen):
            raise _differ(f"rows of the lengths {' and '.join(str(n.tolist()) for n in chosen)}")
        sizes = {part.uniform for part, is_wide in zip(level, wide, strict=True) if is_wide} or {1}
        uniform = sizes.pop() if len(sizes) == 1 else None
        new = Partition.of_lengths(chosen[0], level[0].splits.dtype, uniform)
        places = [
            np.repeat(part.starts[at], new.lengths) + new.offsets * is_wide
            for (part, at), is_wide in zip(pairs, wide, strict=True)
        ]
        made.append(new)
    flats = [Tensor(take(flat, at)) for (_, flat, _), at in zip(operands, places, strict=True)]
    return flats, made


def _differ(what: str) -> Exception:
    return refused(f"Condition x == y did not hold. The operands have {what}.")


# ---------------------------------------------------------------- reductions
def _fold(x: Any, axes: Sequence[int], name: str) -> Any:
    """Return a reduction along axes, the last one first."""
    for axis in sorted(axes, reverse=True):
        x = _fold_axis(x, axis, name)
    return x


def _fold_axis(x: Any, axis: int, name: str) -> Any:
    if isinstance(x, Tensor):
        return find(f"math.reduce_{name}")(x, axis)
    part, depth = x._parts[0], len(x._parts)
    if axis > depth:
        return x.with_flat_values(_fold_axis(x._flat, axis - depth, name))
    if axis == 0:
        return _fold_rows(inner(x), part.offsets, int(part.lengths.max(initial=0)), name)
    if axis == 1:
        return _fold_rows(inner(x), part.row_ids, part.nrows, name)
    return nested(_fold_axis(inner(x), axis - 1, name), part)


def _fold_rows(x: Any, ids: np.ndarray, count: int, name: str) -> Any:
    """Return the reductions of the rows of the same number."""
    if isinstance(x, Tensor):
        return find(f"math.unsorted_segment_{name}")(x, np.asarray(ids, np.int64), count)
    part = x._parts[0]
    lengths = np.zeros(count, np.int64)
    np.maximum.at(lengths, ids, part.lengths)
    new = Partition.of_lengths(lengths, part.splits.dtype)
    places = np.repeat(new.starts[ids], part.lengths) + part.offsets
    return nested(_fold_rows(inner(x), places, int(new.splits[-1]), name), new)


def _reduce(fold: Callable[[Any, Sequence[int] | None], Any]) -> Callable[[Any, Given], Any]:
    """Return what a reduction does with ragged tensors, of what it does along axes."""

    def reduced(row: Any, given: Given) -> Any:
        x, rank = given["input_tensor"], len(given["input_tensor"].shape)
        axes = None if given["axis"] is None else _axes(given["axis"], rank)
        made = fold(x, axes)
        for axis in range(rank) if axes is None else sorted(axes):
            made = insert(made, axis) if given["keepdims"] else made
        return made

    return reduced


def _axes(axis: Any, rank: int) -> list[int]:
    axes = [check_axis(each, rank) for each in ints(axis, "axis")]
    if len(set(axes)) < len(axes):
        raise refused(f"Invalid reduction dimension: {axis} has one twice [Op:Sum]")
    return axes


def _plain(name: str) -> Callable[[Any, Sequence[int] | None], Any]:
    def fold(x: Any, axes: Sequence[int] | None) -> Any:
        return find(f"math.reduce_{name}")(x.flat_values) if axes is None else _fold(x, axes, name)

    return fold


def _mean(x: Any, axes: Sequence[int] | None) -> Any:
    ones = x.with_flat_values(find("ones_like")(x.flat_values))
    return _plain("sum")(x, axes) / _plain("sum")(ones, axes)


def _variance(x: Any, axes: Sequence[int] | None) -> Any:
    mean = _mean(x, axes)
    return find("math.maximum")(_mean(x * x, axes) - mean * mean, 0)


def _logsumexp(x: Any, axes: Sequence[int] | None) -> Any:
    if axes is None:
        return find("math.reduce_logsumexp")(x.flat_values)
    limit = find("math.minimum")(
        find("math.maximum")(_fold(x, axes, "max"), x.dtype.min), x.dtype.max
    )
    most = limit
    for axis in sorted(axes):
        most = insert(most, axis)
    return find("math.log")(_fold(find("math.exp")(x - most), axes, "sum")) + limit


def _truth(name: str) -> Callable[[Any, Sequence[int] | None], Any]:
    def fold(x: Any, axes: Sequence[int] | None) -> Any:
        return _plain(name)(find("cast")(x, "int32"), axes) != 0

    return fold


def _segments(row: Any, given: Given) -> Any:
    """Return a reduction of the rows of each number."""
    ids = require_known(convert(given["segment_ids"]), "The segments of ragged rows")
    if ids.shape != (given["data"].shape[0],):
        raise refused(f"segment_ids.shape={ids.shape} must be that of the rows")
    count = one_int(given["num_segments"], "num_segments")
    kept = np.flatnonzero(ids >= 0)
    name = row.function.__name__.removeprefix("unsorted_segment_")
    return _fold_rows(rows_of(given["data"], kept), ids[kept], count, name)


def _softmax(row: Any, given: Given) -> Any:
    """Return the softmax of each row."""
    x, axis = given["logits"], given["axis"]
    rank = len(x.shape)
    if check_axis(-1 if axis is None else one_int(axis, "axis"), rank) != rank - 1:
        raise ValueError("tf.nn.softmax of a ragged tensor is along the last axis.")
    if x.flat_values.ndim > 1:
        return x.with_flat_values(row.function(x.flat_values))
    ids, last = x._parts[-1].row_ids, x._parts[-1].nrows
    most = _fold_rows(x.flat_values, ids, last, "max")
    powers = find("math.exp")(x.flat_values - Tensor(most._array[ids]))
    sums = _fold_rows(powers, ids, last, "sum")
    return x.with_flat_values(powers / Tensor(sums._array[ids]))


# ---------------------------------------------------------------- other rows
def _expand(row: Any, given: Given) -> Any:
    x, axis = given["input"], one_int(given["axis"], "axis")
    return insert(x, check_axis(axis, len(x.shape) + 1))


def _squeeze(row: Any, given: Given) -> Any:
    x = given["input"]
    if given["axis"] is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    axes = _axes(given["axis"], len(x.shape))
    for axis in sorted(axes, reverse=True):
        parts = parts_of(x)
        is_ragged = 0 < axis <= len(parts)
        if np.any(parts[axis - 1].lengths != 1) if is_ragged else x.shape[axis] != 1:
            raise refused(f"Can not squeeze dim[{axis}], expected a dimension of 1")
        if is_ragged:
            x = make(flat_of(x), [*parts[: axis - 1], *parts[axis:]])
        else:
            x = x[(*[slice(None)] * axis, 0)]
    return x


def _reverse(row: Any, given: Given) -> Any:
    x = given["tensor"]
    axes = _axes(given["axis"], len(x.shape))
    return x[tuple(slice(None, None, -1 if i in axes else None) for i in range(len(x.shape)))]


def _tile(row: Any, given: Given) -> Any:
    x, counts = given["input"], ints(given["multiples"], "multiples")
    if len(counts) != len(x.shape):
        raise refused(f"multiples must be a vector of length {len(x.shape)}, not {len(counts)}")
    for axis, n in enumerate(counts):
        x = concat([x] * n, axis) if n else x[(*[slice(None)] * axis, slice(0))]
    return x


def _split(row: Any, given: Given) -> list[Any]:
    """Return the parts along a dimension whose rows have one length."""
    x, sizes = given["value"], require_known(given["num_or_size_splits"], "num_or_size_splits")
    axis = check_axis(one_int(given["axis"], "axis"), len(x.shape))
    total = x.shape[axis]
    if total is None:
        raise ValueError(f"Cannot split a ragged dimension. Got `value` = {x} and `axis` {axis}.")
    if not sizes.ndim:
        count = max(int(sizes), 1)
        sizes = np.full(count, total // count)
    if np.any(sizes < 0) or sizes.sum() != total:
        raise refused(
            "Cannot exactly split the `axis` dimension of `value` with the given "
            f"`num_or_size_split`: its size is {total}"
        )
    ends = itertools.pairwise([0, *np.cumsum(sizes).tolist()])
    return [x[(*[slice(None)] * axis, slice(*each))] for each in ends]


def _matmul(row: Any, given: Given) -> Any:
    """Return the products of the matrices of two tensors."""
    a, b = (convert(given[name]) for name in ("a", "b"))
    if a.dtype != b.dtype:
        raise ValueError(f"`a` and `b` must have the same dtype, not {a.dtype} and {b.dtype}.")
    rank = len(a.shape)
    if rank != len(b.shape):
        raise ValueError("`a` and `b` must have the same rank.")
    if rank == 2:
        return row.function(**given | {"a": _dense(a), "b": _dense(b)})
    if a.shape[0] != b.shape[0]:
        raise refused(f"Condition x == y did not hold: {a.shape[0]} is not {b.shape[0]}")
    made = [row.function(**given | {"a": x, "b": y}) for x, y in zip(a, b, strict=True)]
    if not made:
        whole = {name: convert(given[name]) for name in ("a", "b")}
        filled = {name: x if isinstance(x, Tensor) else x.to_tensor() for name, x in whole.items()}
        return RaggedTensor.from_tensor(row.function(**given | filled))
    if any(isinstance(x, RaggedTensor) or x.shape[1:] != made[0].shape[1:] for x in made):
        return stack(made)
    return nested(find("concat")(made, 0), Partition.of_lengths([x.shape[0] for x in made]))


def _dense(x: Any) -> Tensor:
    """Return the tensor of a ragged one whose rows have one length."""
    if isinstance(x, RaggedTensor) and len(set(x._parts[0].lengths.tolist())) > 1:
        raise refused(
            "The matrices in `a` and `b` may not be ragged in their innermost dimension. "
            f"Condition x == y did not hold: the rows have the lengths {x._parts[0].lengths}"
        )
    return x.to_tensor() if isinstance(x, RaggedTensor) else x


def _join_rows(row: Any, given: Given) -> Any:
    """Return the strings, or characters, of the innermost rows put together."""
    x = given[next(iter(given))]
    rank, axis = len(x.shape), given.get("axis", -1)
    if axis is None:
        return row.function(**given | {next(iter(given)): x.flat_values})
    if x.flat_values.ndim > 1 or _axes(axis, rank) != [rank - 1]:
        raise refused("Strings of a ragged tensor are put together along the last axis")
    given = given | {"axis": 0} if "axis" in given else given
    name, ends = next(iter(given)), x._parts[-1].splits

    def join(flat: Value) -> Value:
        parts = (flat[i:j] for i, j in itertools.pairwise(ends))
        made = [row.function(**given | {name: part}).numpy() for part in parts]
        return string_array(np.array(made, object))

    return make(Tensor(on_strings(join)(x.flat_values._array)), x._parts[:-1])


_SEGMENTS = "sum", "prod", "max", "min", "mean"
DISPATCH.update(
    {
        "concat": lambda row, given: concat(given["values"], given["axis"]),
        "stack": lambda row, given: stack(given["values"], given["axis"]),
        "expand_dims": _expand, "gather": gather, "gather_nd": gather_nd,
        "nn.embedding_lookup": gather, "reverse": _reverse, "split": _split, "squeeze": _squeeze,
        "tile": _tile, "matmul": _matmul, "nn.softmax": _softmax,
        "strings.reduce_join": _join_rows, "strings.unicode_encode": _join_rows,
        "rank": lambda row, given: Tensor(to_array(len(given["input"].shape))),
        "size": lambda row, given: row.function(**given | {"input": given["input"].flat_values}),
        **{f"math.reduce_{name}": _reduce(_plain(name)) for name in ("sum", "prod", "max", "min")},
        **{f"math.unsorted_segment_{name}": _segments for name in _SEGMENTS},
        "math.reduce_mean": _reduce(_mean), "math.reduce_variance": _reduce(_variance),
        "math.reduce_logsumexp": _reduce(_logsumexp),
        "math.reduce_std": _reduce(lambda x, axes: find("math.sqrt")(_variance(x, axes))),
        "math.reduce_all": _reduce(_truth("prod")), "math.reduce_any": _reduce(_truth("sum")),
    }
)  # fmt: skip
_space = ""
for _word in _ELEMENTWISE.split():
    _space = f"{_word[:-1]}." if _word.endswith(":") else _space
    DISPATCH.setdefault(f"{_space}{_word}", _each)
