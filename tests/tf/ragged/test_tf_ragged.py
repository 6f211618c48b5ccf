"""Ragged tensors against nested Python lists, and against what TensorFlow 2.21 prints."""

# ruff: noqa: E501 - a case is a line

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxvars import tf
from jaxvars.errors import SavedError

NUMBERS = st.integers(-9, 9)
NAMES = ["int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def lists(depth: int, leaf: Any = NUMBERS) -> Any:
    """Return nested lists whose values have a depth."""
    return leaf if not depth else st.lists(lists(depth - 1, leaf), max_size=4)


RAGGED = st.integers(1, 3).flatmap(
    lambda rank: st.tuples(st.just(rank), lists(rank + 1), st.sampled_from(NAMES))
)
FEW = settings(max_examples=12, deadline=None)


def ragged(rank: int, nested: Any, dtype: str = "int32") -> Any:
    return tf.ragged.constant(nested, dtype, ragged_rank=rank)


def deep(nested: Any, func: Any, depth: int) -> Any:
    """Return what a function makes of the lists at a depth."""
    return func(nested) if not depth else [deep(part, func, depth - 1) for part in nested]


def fill(nested: Any, sizes: list[int], value: Any) -> Any:
    if not sizes:
        return nested
    empty = np.full(sizes[1:], value).tolist()
    rows = [fill(part, sizes[1:], value) for part in nested[: sizes[0]]]
    return rows + [empty] * (sizes[0] - len(rows))


def sizes_of(nested: Any, depth: int) -> list[int]:
    if not depth:
        return []
    inner = [sizes_of(part, depth - 1) for part in nested] or [[0] * (depth - 1)]
    return [len(nested), *np.max(inner, axis=0).astype(int).tolist()]


@FEW
@given(RAGGED)
def test_lists_come_back(case: Any) -> None:
    rank, nested, dtype = case
    nested = deep(nested, lambda x: abs(x) if dtype == "uint8" else x, rank + 1)
    x = ragged(rank, nested, dtype)
    assert x.to_list() == nested
    assert (x.ragged_rank, x.dtype.name) == (rank, dtype)
    assert [row.to_list() if rank > 1 else row.numpy().tolist() for row in x] == nested
    splits = tf.RaggedTensor.from_nested_row_splits(x.flat_values, x.nested_row_splits)
    assert splits.to_list() == nested
    lengths = x.nested_row_lengths()
    assert tf.RaggedTensor.from_nested_row_lengths(x.flat_values, lengths).to_list() == nested
    ids = tf.RaggedTensor.from_value_rowids(x.values, x.value_rowids(), x.nrows())
    assert ids.to_list() == nested
    assert pickle.loads(pickle.dumps(x)).to_list() == copy.deepcopy(x).to_list() == nested


@FEW
@given(RAGGED, st.integers(-3, 7))
def test_padding_and_bounds(case: Any, value: int) -> None:
    rank, nested, _ = case
    x, sizes = ragged(rank, nested), sizes_of(nested, rank + 1)
    assert x.bounding_shape().numpy().tolist() == sizes
    assert x.to_tensor(value).numpy().tolist() == fill(nested, sizes, value)
    other = [n + 1 if i % 2 else max(n - 1, 0) for i, n in enumerate(sizes)]
    assert x.to_tensor(value, shape=other).numpy().tolist() == fill(nested, other, value)
    dense = tf.sparse.to_dense(x.to_sparse()).numpy().tolist()
    assert dense == fill(nested, sizes, 0)


@FEW
@given(
    RAGGED, st.tuples(*[st.none() | st.integers(-5, 5)] * 2), st.sampled_from([None, 1, 2, -1, -2])
)
def test_slices(case: Any, ends: Any, step: Any) -> None:
    rank, nested, _ = case
    x, key = ragged(rank, nested), slice(*ends, step)
    for depth in range(rank + 1):
        found = x[(slice(None),) * depth + (key,)]
        assert found.to_list() == deep(nested, lambda rows: rows[key], depth)
    assert x[..., key].to_list() == deep(nested, lambda rows: rows[key], rank)


@FEW
@given(RAGGED, st.sampled_from(["sum", "max", "min", "prod", "mean"]))
def test_reductions_of_the_last_axis(case: Any, name: str) -> None:
    rank, nested, _ = case
    x = ragged(rank, nested, "float64")
    least = {"sum": 0.0, "prod": 1.0, "max": -np.finfo("d").max, "min": np.finfo("d").max}
    wanted = deep(
        nested,
        lambda row: getattr(np, name)(np.array(row, float)) if row else least.get(name, np.nan),
        rank,
    )
    found = getattr(tf, f"reduce_{name}")(x, axis=rank)
    same = found.to_list() if rank > 1 else found.numpy().tolist()
    assert repr(deep(same, float, rank)) == repr(deep(wanted, float, rank))


@FEW
@given(RAGGED)
def test_sums_over_each_axis(case: Any) -> None:
    rank, nested, _ = case
    x, sizes = ragged(rank, nested), sizes_of(nested, rank + 1)
    dense = np.array(fill(nested, sizes, 0), int).reshape(sizes)
    for axis in range(rank + 1):
        found = tf.reduce_sum(x, axis=axis)
        whole = found.to_tensor() if isinstance(found, tf.RaggedTensor) else found
        assert whole.numpy().tolist() == dense.sum(axis).tolist()
    assert int(tf.reduce_sum(x)) == int(tf.reduce_sum(x, axis=list(range(rank + 1)))) == dense.sum()


@FEW
@given(RAGGED)
def test_arithmetic(case: Any) -> None:
    rank, nested, _ = case
    x = ragged(rank, nested)
    square = deep(nested, lambda n: n * n + 1, rank + 1)
    assert (x * x + 1).to_list() == (1 + tf.square(x)).to_list() == square
    rows = tf.reshape(tf.range(len(nested)), [-1, *[1] * rank])
    wanted = [deep(row, lambda n, i=i: n + i, rank) for i, row in enumerate(nested)]
    assert (x + rows).to_list() == (rows + x).to_list() == wanted
    assert tf.cast(x > 0, "int32").to_list() == deep(nested, lambda n: int(n > 0), rank + 1)
    assert tf.where(x > 0, x, -x).to_list() == deep(nested, abs, rank + 1)


@FEW
@given(RAGGED, st.data())
def test_joins(case: Any, data: Any) -> None:
    rank, nested, _ = case
    x = ragged(rank, nested)
    reverse = ragged(rank, nested[::-1])
    assert tf.concat([x, reverse], 0).to_list() == nested + nested[::-1]
    both = [a + b for a, b in zip(nested, nested[::-1], strict=True)]
    assert tf.concat([x, reverse], 1).to_list() == both
    assert tf.concat([x, x], -1).to_list() == deep(nested, lambda row: row + row, rank)
    assert tf.stack([x, reverse]).to_list() == [nested, nested[::-1]]
    pairs = [list(pair) for pair in zip(nested, nested[::-1], strict=True)]
    assert tf.stack([x, reverse], axis=1).to_list() == pairs
    assert tf.stack([x, x], -1).to_list() == deep(nested, lambda n: [n, n], rank + 1)
    for axis in range(rank + 2):
        more = tf.expand_dims(x, axis)
        assert more.to_list() == deep(nested, lambda part: [part], axis)
        assert tf.squeeze(more, axis).to_list() == nested
    if nested:
        ids = data.draw(st.lists(st.integers(0, len(nested) - 1), min_size=1, max_size=4))
        assert tf.gather(x, ids).to_list() == [nested[i] for i in ids]


@FEW
@given(RAGGED, st.data())
def test_merged_dimensions(case: Any, data: Any) -> None:
    rank, nested, _ = case
    low = data.draw(st.integers(0, rank - 1))
    found = ragged(rank, nested).merge_dims(low, low + 1)
    wanted = deep(nested, lambda rows: [part for row in rows for part in row], low)
    assert (found.to_list() if rank > 1 else found.numpy().tolist()) == wanted


@FEW
@given(lists(2), st.data())
def test_masks(nested: Any, data: Any) -> None:
    kept = deep(nested, lambda _: data.draw(st.booleans()), 2)
    wanted = [
        [n for n, is_in in zip(*pair, strict=True) if is_in]
        for pair in zip(nested, kept, strict=True)
    ]
    mask = tf.ragged.constant(kept, "bool", ragged_rank=1)
    assert tf.ragged.boolean_mask(ragged(1, nested), mask).to_list() == wanted


@FEW
@given(lists(2, st.text(max_size=4)))
def test_strings(nested: Any) -> None:
    x = tf.ragged.constant(nested, "string", ragged_rank=1)
    words = deep(nested, lambda word: word.encode(), 2)
    assert x.to_list() == words
    joined = [b"-".join(row) for row in words]
    assert tf.strings.reduce_join(x, axis=1, separator="-").numpy().tolist() == joined
    points = deep(nested, lambda word: [ord(c) for c in word], 2)
    assert tf.strings.unicode_decode(x, "UTF-8").to_list() == points
    characters = deep(nested, lambda word: [c.encode() for c in word], 2)
    assert tf.strings.unicode_split(x, "UTF-8").to_list() == characters
    assert tf.strings.bytes_split(x).to_list() == deep(
        words, lambda word: [word[i : i + 1] for i in range(len(word))], 2
    )
    assert tf.strings.split(x).to_list() == deep(words, lambda word: word.split(), 2)
    assert x.to_tensor("?").shape == x.bounding_shape().numpy().tolist()


@FEW
@given(lists(2))
def test_gradients_go_to_the_values(nested: Any) -> None:
    x = ragged(1, nested, "float32")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = tf.reduce_sum(tf.concat([x, 2.0 * x], axis=1)[:, ::2].to_tensor() ** 2)
    assert tape.gradient(y, x).to_list() == deep(nested, lambda n: 2.0 * n, 2)
    assert tape.gradient(y, x.flat_values).numpy().tolist() == [2.0 * n for r in nested for n in r]

    def even(row: Any) -> Any:
        kept = [(i % 2 == 0) + 4 * ((i + len(row)) % 2 == 0) for i in range(len(row))]
        return [2.0 * n * k for n, k in zip(row, kept, strict=True)]

    assert not any(nested) or tape.gradient(z, x).to_list() == [even(row) for row in nested]


@FEW
@given(lists(2), st.integers(1, 3))
def test_datasets(nested: Any, size: int) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(ragged(1, nested))
    assert [row.numpy().tolist() for row in dataset] == nested
    groups = [nested[i : i + size] for i in range(0, len(nested), size)]
    assert [batch.to_list() for batch in dataset.batch(size)] == groups
    rows = dataset.map(lambda row: row + 1).ragged_batch(size)
    assert [batch.to_list() for batch in rows] == deep(groups, lambda n: n + 1, 3)
    sums = dataset.batch(size).map(lambda batch: tf.reduce_sum(batch, axis=1))
    assert [n for each in sums for n in each.numpy().tolist()] == [sum(row) for row in nested]


# ---------------------------------------------------------------- as TensorFlow prints it
ROWS = tf.ragged.constant([[3, 1, 4, 1], [], [5, 9, 2], [6]])
DEEP = tf.ragged.constant([[[1, 2], [3]], [], [[4, 5, 6], []]])
PAIRS = tf.RaggedTensor.from_row_lengths(tf.reshape(tf.range(12), [6, 2]), [2, 0, 4])


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (lambda: ROWS, "<tf.RaggedTensor [[3, 1, 4, 1], [], [5, 9, 2], [6]]>"),
        (lambda: tf.ragged.constant([[1, 2], [3, 4]]), "<tf.RaggedTensor [[1, 2],\n [3, 4]]>"),
        (lambda: tf.ragged.constant([["a"], []]), "<tf.RaggedTensor [[b'a'], []]>"),
        (lambda: tf.ragged.constant([[1.0, 2.5], [1 / 3]]), "<tf.RaggedTensor [[1.0, 2.5], [0.33333334]]>"),
        (lambda: ROWS.shape, "TensorShape([4, None])"),
        (lambda: PAIRS.shape, "TensorShape([3, None, 2])"),
        (lambda: tf.expand_dims(ROWS, 0).shape, "TensorShape([1, 4, None])"),
        (lambda: tf.expand_dims(DEEP, 1).shape, "TensorShape([3, 1, None, None])"),
        (lambda: tf.strings.split([["a b", "c"], ["d", ""]]).shape, "TensorShape([2, 2, None])"),
        (lambda: tf.ragged.stack([ROWS, ROWS]).shape, "TensorShape([2, None, None])"),
        (lambda: PAIRS[:, :1, 0], "<tf.RaggedTensor [[0], [], [4]]>"),
        (lambda: PAIRS[..., 1], "<tf.RaggedTensor [[1, 3], [], [5, 7, 9, 11]]>"),
        (lambda: (PAIRS + tf.constant([10, 20]))[0].numpy().tolist(), "[[10, 21], [12, 23]]"),
        (lambda: tf.reduce_mean(ROWS, axis=1).dtype, "tf.float64"),
        (lambda: tf.reduce_sum(DEEP, axis=0), "<tf.RaggedTensor [[5, 7, 6], [3]]>"),
        (lambda: tf.reduce_sum(DEEP, axis=[0, 2]).numpy().tolist(), "[18, 3]"),
        (lambda: tf.reduce_sum(ROWS, 1, keepdims=True).shape, "TensorShape([4, 1])"),
        (lambda: tf.reduce_all(ROWS > 1, axis=1).numpy().tolist(), "[False, True, True, True]"),
        (lambda: tf.reduce_any(ROWS > 4, axis=1).numpy().tolist(), "[False, False, True, True]"),
        (lambda: tf.reduce_max(ROWS, axis=1).numpy().tolist(), "[4, -2147483648, 9, 6]"),
        (lambda: tf.gather([10, 20, 30], tf.ragged.constant([[2], [], [0, 1]])), "<tf.RaggedTensor [[30], [], [10, 20]]>"),
        (lambda: tf.gather(ROWS, [[2, 0], [1, 1]]).shape, "TensorShape([2, None, None])"),
        (lambda: tf.gather(ROWS, tf.ragged.constant([[0], [1, 2]])), "<tf.RaggedTensor [[[3, 1, 4, 1]], [[], [5, 9, 2]]]>"),
        (lambda: tf.ragged.range([0, 5, 8], [3, 3, 12], 2), "<tf.RaggedTensor [[0, 2], [], [8, 10]]>"),
        (lambda: tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 3, 0]], padding=0), "<tf.RaggedTensor [[1, 2],\n [0, 3]]>"),
        (lambda: tf.RaggedTensor.from_tensor([[1, 2, 0], [0, 3, 0]], [1, 7]), "<tf.RaggedTensor [[1], [0, 3, 0]]>"),
        (lambda: tf.type_spec_from_value(tf.ragged.constant([[3], [1, 4]])),
         "RaggedTensorSpec(TensorShape([2, None]), tf.int32, 1, tf.int64)"),
        (lambda: ROWS[::1] == ROWS, "<tf.RaggedTensor [[True, True, True, True], [], [True, True, True], [True]]>"),
        (lambda: tf.ragged.range([0.0], [1.0], 0.1)[0, 7].numpy().item(), "0.7000000476837158"),
        (lambda: tf.ragged.range([0.5, 5.0, 1.0], 3.0, [1.0, -1.0, -1.0]), "<tf.RaggedTensor [[0.5, 1.5, 2.5], [5.0, 4.0], []]>"),
        (lambda: tf.strings.reduce_join(tf.ragged.constant([["a", "b"], [], ["c"]])).numpy(), "b'abc'"),
        (lambda: tf.gather(ROWS, tf.ragged.constant([[0, 0], [], [2], [0]]), batch_dims=1), "<tf.RaggedTensor [[3, 3], [], [2], [6]]>"),
        (lambda: ROWS == None, "False"),  # noqa: E711
        (lambda: tf.is_tensor(ROWS), "True"),
        (lambda: tf.where(ROWS > 4).numpy().tolist(), "[[2, 0], [2, 1], [3, 0]]"),
        (lambda: tf.RaggedTensor.from_sparse(ROWS.to_sparse()), repr(ROWS)),
        (lambda: tf.strings.unicode_encode(tf.ragged.constant([[104, 105], []]), "UTF-8").numpy().tolist(), "[b'hi', b'']"),
        (lambda: tf.ragged.constant([[1], [2]], row_splits_dtype=tf.int32).row_splits.dtype, "tf.int32"),
    ],
)  # fmt: skip
def test_what_tensorflow_shows(made: Any, shown: str) -> None:
    assert repr(made()) == shown


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        (lambda: ROWS[10], IndexError, "Row key 10 out of bounds"),
        (lambda: ROWS[-10], tf.errors.InvalidArgumentError, "slice index -6 of dimension 0"),
        (lambda: ROWS[:, 0], ValueError, "Cannot index into an inner ragged dimension."),
        (lambda: ROWS[:, 0.5:1.5], TypeError, "slice offsets must be integers or None"),
        (lambda: ROWS[:, ::"a"], TypeError, "slice strides must be integers or None"),
        (lambda: ROWS[..., 0, 0, 0], IndexError, "Too many indices for RaggedTensor"),
        (lambda: ROWS["a"], TypeError, "Only integers, slices"),
        (lambda: bool(ROWS), TypeError, "RaggedTensor may not be used as a boolean."),
        (lambda: hash(ROWS), TypeError, "RaggedTensor is unhashable."),
        (lambda: len(ROWS), TypeError, "has no len()"),
        (lambda: tf.RaggedTensor([1], [2]), ValueError, "RaggedTensor constructor is private"),
        (lambda: tf.convert_to_tensor(ROWS), ValueError, "TypeError: object of type 'RaggedTensor'"),
        (lambda: tf.sort(ROWS), ValueError, "x.to_tensor() pads them"),
        (lambda: tf.add(ROWS, [[1, 2, 3]]), tf.errors.InvalidArgumentError, "Condition x == y did not hold"),
        (lambda: ROWS + tf.ragged.constant([[1]] * 4), tf.errors.InvalidArgumentError, "Condition x == y"),
        (lambda: ROWS + 1.5, tf.errors.InvalidArgumentError, "cannot compute AddV2 as input #1"),
        (lambda: tf.reduce_sum(ROWS, axis=5), ValueError, "axis=5 out of bounds: expected -2<=axis<2"),
        (lambda: tf.concat([ROWS, ROWS[:1]], 1), tf.errors.InvalidArgumentError, "Input tensors at index 0"),
        (lambda: tf.gather(ROWS, [9]), tf.errors.InvalidArgumentError, "indices[0] = 9 is not in [0, 4)"),
        (lambda: tf.ragged.constant([1, [2]]), ValueError, "the same nesting depth"),
        (lambda: tf.ragged.range([1], 3, 0), tf.errors.InvalidArgumentError, "Requires delta != 0"),
        (lambda: tf.RaggedTensor.from_row_splits([1], [0, 2]), tf.errors.InvalidArgumentError, "do not form"),
        (lambda: tf.RaggedTensor.from_row_splits([1], [1, 1]), tf.errors.InvalidArgumentError, ":zero"),
        (lambda: tf.RaggedTensor.from_row_splits([1], [0, 2, 1]), tf.errors.InvalidArgumentError, ":monotonic"),
        (lambda: tf.RaggedTensor.from_row_splits([1], [0.0, 1.0]), ValueError, "must have dtype int32 or int64"),
        (lambda: tf.RaggedTensor.from_value_rowids([1], [0, 1]), ValueError, "Shapes (1,) and (2,)"),
        (lambda: tf.RaggedTensor.from_row_starts([1], [1]), tf.errors.InvalidArgumentError, "from_row_starts do not form"),
        (lambda: tf.RaggedTensor.from_row_limits([1, 2], [2, 1]), tf.errors.InvalidArgumentError, "from_row_limits do not form"),
        (lambda: tf.ragged.map_flat_values(tf.reduce_sum, ROWS), ValueError, "outer-dimension size"),
        (lambda: list(tf.data.Dataset.from_tensor_slices(ROWS).padded_batch(2)), TypeError, "`padded_batch` is only"),
    ],
)  # fmt: skip
def test_errors(wrong: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind) as error:
        wrong()
    assert words in str(error.value)


# ---------------------------------------------------------------- compiled functions
def test_a_function_is_traced_for_each_partition() -> None:
    @tf.function
    def step(x: Any) -> Any:
        return x * 2, tf.reduce_sum(x, axis=1), x.to_tensor(), x[:, :1]

    for rows in ([[1, 2], [3]], [[1], [2, 3]], [[5, 6], [7]]):
        double, sums, dense, first = step(tf.ragged.constant(rows))
        assert double.to_list() == deep(rows, lambda n: 2 * n, 2)
        assert sums.numpy().tolist() == [sum(row) for row in rows]
        assert dense.numpy().tolist() == fill(rows, [2, 2], 0)
        assert first.to_list() == [row[:1] for row in rows]
    assert step.experimental_get_tracing_count() == 2


def test_what_numpy_returns_is_a_copy() -> None:
    words = tf.ragged.constant([["a"], ["b", "c"]])
    words.numpy()[1][0] = b"changed"
    assert words.to_list() == [[b"a"], [b"b", b"c"]]


def test_sizes_that_depend_on_values_are_refused_in_a_function() -> None:
    @tf.function
    def make(values: Any, lengths: Any) -> Any:
        return tf.RaggedTensor.from_row_lengths(values, lengths)

    with pytest.raises(tf.errors.InvalidArgumentError, match="row_lengths must be known while"):
        make(tf.constant([1, 2]), tf.constant([1, 1]))


def test_a_signature_and_strings_in_a_function() -> None:
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def sums(x: Any) -> Any:
        return tf.reduce_sum(x, axis=1)

    assert sums(tf.ragged.constant([[1.0], [], [2.0, 3.0]])).numpy().tolist() == [1, 0, 5]
    concrete = sums.get_concrete_function()
    assert concrete(tf.ragged.constant([[1.0], [2.0, 3.0]])).numpy().tolist() == [1, 5]
    assert "x (POSITIONAL_OR_KEYWORD): RaggedTensorSpec(" in str(concrete)
    for wrong in (tf.ones([2, 2]), tf.ragged.constant([[1], [2]])):
        for function in (concrete, sums):
            with pytest.raises(TypeError, match="Can not cast"):
                function(wrong)

    lengths = tf.function(tf.strings.length)
    assert lengths(tf.ragged.constant([["a", "bc"], []])).to_list() == [[1, 2], []]


def test_the_gradient_of_an_embedding_in_a_function() -> None:
    table = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def step(ids: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids) ** 2)
        return tf.convert_to_tensor(tape.gradient(loss, table))

    assert step(tf.ragged.constant([[0], [1, 0], []])).numpy().tolist() == [4.0, 4.0, 0.0]


def test_ragged_elements_keep_their_specs() -> None:
    dataset = tf.data.Dataset.from_tensor_slices((ROWS, [1, 2, 3, 4]))
    assert repr(dataset.element_spec) == (
        "(RaggedTensorSpec(TensorShape([None]), tf.int32, 0, tf.int64), "
        "TensorSpec(shape=(), dtype=tf.int32, name=None))"
    )
    batches = dataset.batch(3, drop_remainder=True)
    assert repr(batches.element_spec[0]) == (
        "RaggedTensorSpec(TensorShape([3, None]), tf.int32, 1, tf.int64)"
    )
    counted = tf.data.Dataset.range(4).map(tf.range)
    for made in (
        counted.ragged_batch(2),
        counted.apply(tf.data.experimental.dense_to_ragged_batch(2)),
    ):
        assert [x.to_list() for x in made] == [[[], [0]], [[0, 1], [0, 1, 2]]]


def test_programs_of_ragged_tensors_cannot_be_saved(tmp_path: Any) -> None:
    class Grow(tf.Module):
        @tf.function
        def __call__(self, x: Any) -> Any:
            return x * 2

    grow = Grow()
    grow.__call__.get_concrete_function(tf.RaggedTensorSpec([None, None], tf.int32))
    with pytest.raises(SavedError, match=r"Save a function of x.to_tensor\(\)"):
        tf.saved_model.save(grow, tmp_path)


def test_where_rows_begin_and_end() -> None:
    for rows in (
        tf.RaggedTensor.from_row_starts([1, 2, 3], [0, 2, 2]),
        tf.RaggedTensor.from_row_limits([1, 2, 3], [2, 2, 3]),
    ):
        assert rows.to_list() == [[1, 2], [], [3]]
        assert rows.row_starts().numpy().tolist() == [0, 2, 2]
        assert rows.row_limits().numpy().tolist() == [2, 2, 3]


def test_vectorized_rows_are_not_ragged() -> None:
    with pytest.raises(NotImplementedError, match="cannot stack ragged or sparse"):
        tf.vectorized_map(lambda x: ragged(1, [[1], [2, 3]]) * x, tf.constant([1, 2]))


def test_rows_are_mapped_and_tiled() -> None:
    rows = ragged(1, [[1, 2], [], [3]])
    int32s = tf.RaggedTensorSpec([None], tf.int32)
    assert tf.map_fn(tf.math.square, rows).to_list() == [[1, 4], [], [9]]
    assert tf.map_fn(tf.reduce_sum, rows, fn_output_signature=tf.int32).numpy().tolist() == [
        3,
        0,
        3,
    ]
    found = tf.map_fn(tf.range, tf.constant([2, 0]), fn_output_signature=int32s)
    assert found.to_list() == [[0, 1], []]
    assert tf.map_fn(tf.math.square, rows[:0]).to_list() == []
    with pytest.raises(ValueError, match="fn_output_signature"):
        tf.map_fn(tf.reduce_sum, rows)
    assert tf.tile(rows, [1, 2]).to_list() == [[1, 2, 1, 2], [], [3, 3]]
    assert tf.tile(rows, [2, 0]).to_list() == [[]] * 6
    assert tf.RaggedTensor.from_tensor(tf.zeros([2, 0]), padding=0.0).to_list() == [[], []]


def test_rows_of_rows_by_the_number_of_each() -> None:
    made = tf.RaggedTensor.from_nested_value_rowids([1, 2, 3], [[0, 0], [0, 0, 1]], [3, 2])
    assert made.to_list() == [[[1, 2], [3]], [], []]
    assert [x.numpy().tolist() for x in made.nested_value_rowids()] == [[0, 0], [0, 0, 1]]
    for wrong, kind in (
        (lambda: tf.RaggedTensor.from_nested_value_rowids([1], [[0]], []), ValueError),
        (lambda: tf.RaggedTensor.from_nested_value_rowids([1], tf.constant([[0]])), TypeError),
        (lambda: tf.RaggedTensor.from_nested_row_splits([1], tf.constant([[0, 1]])), TypeError),
        (lambda: tf.RaggedTensor.from_value_rowids([1], [0], nrows=[2]), ValueError),
        (lambda: tf.RaggedTensor.from_value_rowids([1], [0], nrows=-2), ValueError),
        (lambda: tf.RaggedTensor.from_uniform_row_length([1, 2], [2]), ValueError),
    ):
        with pytest.raises(kind):
            wrong()


def test_the_type_of_row_splits() -> None:
    made = tf.ragged.constant([[1], [2, 3]]).with_row_splits_dtype(tf.int32)
    assert made.row_splits.dtype == made.row_lengths().dtype == tf.int32
    assert tf.RaggedTensorSpec.from_value(made).row_splits_dtype == tf.int32
    with pytest.raises(ValueError, match="must be int32 or int64"):
        made.with_row_splits_dtype(tf.float32)
    regular = tf.RaggedTensor.from_row_splits([[1, 2], [3, 4], [5, 6]], [0, 1, 3])
    assert regular.row_lengths(axis=2).to_list() == [[2], [2, 2]]


@pytest.mark.parametrize(
    ("given", "kind"),
    [({}, ValueError), ({"ragged_rank": 1.0}, TypeError), ({"shape": [2], "ragged_rank": 1}, ValueError)],
)  # fmt: skip
def test_specs_that_are_none(given: Any, kind: Any) -> None:
    with pytest.raises(kind):
        tf.RaggedTensorSpec(**given)


@pytest.mark.parametrize(
    ("rows", "indices", "axis", "batch", "found"),
    [
        ([[1, 2], [3, 4, 5]], 1, 1, 0, [2, 4]),
        ([[1, 2], [3, 4, 5]], [1, 0], 1, 0, [[2, 1], [4, 3]]),
        ([[[1, 2], [3]], [[4]]], [0], 2, 0, [[[1], [3]], [[4]]]),
        ([[[1, 2], [3, 4]], [[5, 6]]], [1, 0], 2, 1, [[2, 4], [5]]),
        ([[[1, 2], [3]], [[4, 5]]], tf.ragged.constant([[1, 0], [1]]), 2, 2, [[2, 3], [5]]),
        ([[[1, 2], [3]], [[4, 5]]], tf.ragged.constant([[[1, 0], []], [[1]]]), None, 2, [[[2, 1], []], [[5]]]),
        ([[1, 2], [3, 4]], tf.ragged.constant([[0], [1, 0]]), None, -1, [[1], [4, 3]]),
    ],
)  # fmt: skip
def test_gather_along_any_axis(rows: Any, indices: Any, axis: Any, batch: int, found: Any) -> None:
    made = tf.gather(tf.ragged.constant(rows), indices, axis=axis, batch_dims=batch)
    assert (made.to_list() if isinstance(made, tf.RaggedTensor) else made.numpy().tolist()) == found


def test_gather_inside_of_rows_has_gradients_and_bounds() -> None:
    values = tf.Variable([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        rows = tf.RaggedTensor.from_row_lengths(values, [2, 2])
        loss = tf.reduce_sum(tf.gather(rows, [1, 1], axis=1) * [1.0, 2.0])
    assert tf.convert_to_tensor(tape.gradient(loss, values)).numpy().tolist() == [0, 3, 0, 3]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[1\] = 1 is not in \[0, 1\)"
    ):
        tf.gather(tf.ragged.constant([[1, 2], [3]]), 1, axis=1)
    with pytest.raises(ValueError, match="out of bounds"):
        tf.gather(tf.ragged.constant([[1, 2], [3]]), 1, axis=2)


GIVEN_ROWS = tf.ragged.constant([[[1, 2], [3]], [[4, 5, 6]]])


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (lambda: tf.gather_nd(ROWS, [[0, 1]]), [ROWS[0, 1].numpy()]),
        (lambda: tf.gather_nd(GIVEN_ROWS, [[0, 1], [1, 0]]), [[3], [4, 5, 6]]),
        (lambda: tf.gather_nd(GIVEN_ROWS, [[[0, 1, 0], [1, 0, 2]]]), [[3, 6]]),
        (lambda: tf.gather_nd(GIVEN_ROWS, [[[1], [0]]]), [[[[4, 5, 6]], [[1, 2], [3]]]]),
        (lambda: tf.gather_nd(GIVEN_ROWS, [0, 1]), [3]),
        (lambda: (GIVEN_ROWS > 3) | (GIVEN_ROWS < 2), [[[True, False], [False]], [[True] * 3]]),
        (lambda: True & (GIVEN_ROWS > 4) ^ True, [[[True, True], [True]], [[True, False, False]]]),
        (lambda: tf.math.unsorted_segment_sum(GIVEN_ROWS, [1, 1], 3), [[], [[5, 7, 6], [3]], []]),
        (lambda: tf.math.unsorted_segment_max(GIVEN_ROWS, [0, -1], 1), [[[1, 2], [3]]]),
        (lambda: tf.math.unsorted_segment_mean(tf.ragged.constant([[1.0], [3.0, 4.0]]), [0, 0], 1), [[2, 4]]),
        (lambda: tf.squeeze(tf.ragged.constant([[[1], [2]], [[3]]]), 2), [[1, 2], [3]]),
        (lambda: tf.squeeze(tf.ragged.constant([[[1, 4]], [[2]]]), 1), [[1, 4], [2]]),
    ],
)  # fmt: skip
def test_operations_on_rows(made: Any, found: Any) -> None:
    rows = made()
    assert (rows.to_list() if isinstance(rows, tf.RaggedTensor) else rows.numpy().tolist()) == found


def test_what_operations_on_rows_refuse() -> None:
    for wrong in (
        lambda: tf.gather_nd(GIVEN_ROWS, [[0, 2]]),
        lambda: tf.gather_nd(GIVEN_ROWS, []),
        lambda: tf.gather(GIVEN_ROWS, [0.5]),
        lambda: tf.squeeze(GIVEN_ROWS, 1),
        lambda: tf.math.unsorted_segment_sum(GIVEN_ROWS, [0], 1),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError):
            wrong()
    with pytest.raises(ValueError, match="does not match params"):
        tf.gather(GIVEN_ROWS, [[0]], axis=2, batch_dims=1)
    with pytest.raises(ValueError, match="1 numbers for 2 rows"):
        tf.RaggedTensor.from_tensor([[1], [2]], lengths=[1])
