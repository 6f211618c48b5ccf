"""`tf.data.Dataset`: what TensorFlow gives, element by element.

What is expected here was looked up in TensorFlow 2.21, but for the order of shuffles.
"""

from __future__ import annotations

import gc
import itertools
import types

import numpy as np
import pytest

from jaxvars import tf

Dataset = tf.data.Dataset


def elements(dataset):
    return [
        tf.nest.map_structure(lambda x: x.tolist() if hasattr(x, "tolist") else x, element)
        for element in dataset.as_numpy_iterator()
    ]


def three(x):
    return Dataset.from_tensors(x).repeat(5)


def lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\r\n\n")
    return str(path)


SAME = {
    "slices": (lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    "slices_of_a_dict": (
        lambda: Dataset.from_tensor_slices({"a": [1, 2], "b": (["x", "y"], [0.5, 1.5])}),
        [{"a": 1, "b": (b"x", 0.5)}, {"a": 2, "b": (b"y", 1.5)}],
    ),
    "tensors": (lambda: Dataset.from_tensors(([1, 2], 3)), [([1, 2], 3)]),
    "range": (lambda: Dataset.range(7, 1, -2), [7, 5, 3]),
    "empty": (lambda: Dataset.range(0).batch(2).repeat(), []),
    "batch": (lambda: Dataset.range(5).batch(2), [[0, 1], [2, 3], [4]]),
    "batch_drop": (lambda: Dataset.range(5).batch(2, drop_remainder=True), [[0, 1], [2, 3]]),
    "batch_structure": (
        lambda: Dataset.from_tensor_slices((["a", "b"], {"k": [1, 2]})).batch(2),
        [([b"a", b"b"], {"k": [1, 2]})],
    ),
    "unbatch": (lambda: Dataset.range(5).batch(4).unbatch(), [0, 1, 2, 3, 4]),
    "rebatch": (lambda: Dataset.range(5).batch(4).rebatch(3), [[0, 1, 2], [3, 4]]),
    "padded": (
        lambda: Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).padded_batch(2),
        [[[1, 0], [2, 2]], [[3, 3, 3]]],
    ),
    "padded_to": (
        lambda: (
            Dataset.from_tensor_slices(([1, 2], [3, 4]))
            .map(lambda x, y: (tf.fill([x], x), y))
            .padded_batch(2, padded_shapes=((3,), ()), padding_values=(-1, 0))
        ),
        [([[1, -1, -1], [2, 2, -1]], [3, 4])],
    ),
    "map": (lambda: Dataset.range(3).map(lambda x: {"a": x, "b": (x, 1.5)}).take(1),
            [{"a": 0, "b": (0, 1.5)}]),
    "map_list": (lambda: Dataset.range(2).map(lambda x: [x, x + 1]), [(0, 1), (1, 2)]),
    "map_several": (
        lambda: Dataset.from_tensor_slices(([1, 2], [10, 20])).map(lambda x, y: x + y), [11, 22]),
    "map_branch": (lambda: Dataset.range(3).map(lambda x: x if x > 1 else -x), [0, -1, 2]),
    "filter": (lambda: Dataset.range(5).filter(lambda x: x % 2 == 0), [0, 2, 4]),
    "flat_map": (
        lambda: Dataset.from_tensor_slices([[1, 2], [3, 4]]).flat_map(Dataset.from_tensor_slices),
        [1, 2, 3, 4],
    ),
    "interleave": (
        lambda: Dataset.range(1, 4).interleave(three, cycle_length=2, block_length=2),
        [1, 1, 2, 2, 1, 1, 2, 2, 1, 2, 3, 3, 3, 3, 3],
    ),
    "interleave_many": (
        lambda: Dataset.range(2).interleave(lambda x: Dataset.range(x + 1), cycle_length=4),
        [0, 0, 1],
    ),
    "repeat": (lambda: Dataset.range(2).repeat(2), [0, 1, 0, 1]),
    "repeat_for_ever": (lambda: Dataset.range(2).repeat().take(5), [0, 1, 0, 1, 0]),
    "take_all": (lambda: Dataset.range(3).take(-1), [0, 1, 2]),
    "skip": (lambda: Dataset.range(4).skip(3), [3]),
    "skip_all": (lambda: Dataset.range(4).skip(-1), []),
    "shard": (lambda: Dataset.range(10).shard(3, 1), [1, 4, 7]),
    "concatenate": (lambda: Dataset.range(2).concatenate(Dataset.range(5, 6)), [0, 1, 5]),
    "enumerate": (
        lambda: Dataset.from_tensor_slices([True, False]).enumerate(start=3),
        [(3, True), (4, False)],
    ),
    "zip": (lambda: Dataset.zip((Dataset.range(2), Dataset.range(3))), [(0, 0), (1, 1)]),
    "zip_arguments": (
        lambda: (
            Dataset.zip(Dataset.range(2), {"a": Dataset.range(5, 9)})
            .map(lambda x, y: x + y["a"])
        ),
        [5, 7],
    ),
    "cache": (lambda: Dataset.range(3).cache().repeat(2), [0, 1, 2, 0, 1, 2]),
    "prefetch": (lambda: Dataset.range(3).prefetch(tf.data.AUTOTUNE), [0, 1, 2]),
    "options": (lambda: Dataset.range(3).with_options(tf.data.Options()), [0, 1, 2]),
    "scan": (
        lambda: Dataset.range(5).scan(np.int64(0), lambda s, x: (s + x, s + x)), [0, 1, 3, 6, 10]),
    "take_while": (lambda: Dataset.range(5).take_while(lambda x: x < 3), [0, 1, 2]),
    "unique": (lambda: Dataset.from_tensor_slices(["b", "a", "b"]).unique(), [b"b", b"a"]),
    "apply": (lambda: Dataset.range(3).apply(lambda d: d.batch(3)), [[0, 1, 2]]),
    "windows": (
        lambda: (
            Dataset.range(7)
            .window(3, shift=2, drop_remainder=True)
            .flat_map(lambda window: window.batch(3))
        ),
        [[0, 1, 2], [2, 3, 4], [4, 5, 6]],
    ),
    "windows_apart": (
        lambda: Dataset.range(8).window(2, shift=3, stride=1).flat_map(lambda w: w.batch(2)),
        [[0, 1], [3, 4], [6, 7]],
    ),
    "windows_stride": (
        lambda: Dataset.range(6).window(2, 2, 2).flat_map(lambda w: w.batch(2)),
        [[0, 2], [2, 4], [4]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_elements(name):
    make, wanted = SAME[name]
    dataset = make()
    assert elements(dataset) == wanted
    assert elements(dataset) == wanted  # it begins again
    if dataset.cardinality() >= 0:
        assert len(dataset) == len(wanted)


def test_iteration_gives_tensors_of_the_types_of_tensorflow():
    (x, y), *rest = Dataset.from_tensor_slices((np.ones((2, 2)), [1, 2]))
    assert len(rest) == 1
    assert isinstance(x, tf.Tensor)
    assert x.dtype == tf.float64
    assert y.dtype == tf.int32
    assert next(iter(Dataset.range(1))).dtype == tf.int64
    assert next(iter(Dataset.range(1, output_type=tf.float32))).dtype == tf.float32


def test_what_was_given_may_be_changed_afterwards():
    given = np.zeros(2)
    dataset = Dataset.from_tensor_slices(given)
    given[:] = 7
    assert elements(dataset) == [0.0, 0.0]


def test_iterator():
    iterator = iter(Dataset.range(1))
    assert int(iterator.get_next()) == 0
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        iterator.get_next()
    with pytest.raises(StopIteration):
        next(iterator)


def test_generator():
    spec = (tf.TensorSpec((None,), tf.float32), tf.TensorSpec((), tf.string))

    def values(count):
        for i in range(count):
            yield [i] * i, f"n{i}"

    dataset = Dataset.from_generator(values, args=(3,), output_signature=spec)
    assert dataset.element_spec == spec
    assert elements(dataset) == [([], b"n0"), ([1.0], b"n1"), ([2.0, 2.0], b"n2")]
    older = Dataset.from_generator(lambda: iter([1, 2]), output_types=tf.int32, output_shapes=())
    assert elements(older.batch(2)) == [[1, 2]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1], [2, 3]], r"element of shape \(2,\) where an element of shape \(1,\) was expected"),
        (["a"], "could not be converted to the expected type. The expected type was int32"),
        ([([1], [2])], "did not match the expected structure"),
    ],
)
def test_generator_of_something_else(values, message):
    spec = tf.TensorSpec((1,), tf.int32)
    spec = (spec, spec, spec) if isinstance(values[0], tuple) else spec
    dataset = Dataset.from_generator(lambda: values, output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        list(dataset)


def test_shuffle_with_a_buffer_of_one_keeps_all_elements_and_their_order():
    for n in (0, 1, 4):
        assert elements(Dataset.range(n).shuffle(1)) == list(range(n))
    assert elements(Dataset.range(3).shuffle(1).repeat(2)) == [0, 1, 2] * 2


STEP = 3


def test_a_function_that_reads_its_globals():
    for read in (lambda x: x + globals()["STEP"], lambda x: x + eval("STEP")):
        assert [int(x) for x in tf.data.Dataset.range(3).map(read)] == [3, 4, 5]
    step, settings = 3, types.SimpleNamespace(globals=0)
    kept = tf.data.Dataset.range(3).map(lambda x: x + step + settings.globals)
    step = 7
    assert [int(x) for x in kept] == [3, 4, 5]


def test_shuffle_without_a_seed_follows_the_global_one():
    def order():
        tf.random.set_seed(5)
        return elements(Dataset.range(30).shuffle(30))

    assert order() == order()
    assert elements(Dataset.range(30).shuffle(30)) != order()


def test_shuffle_is_tensorflows():
    tf.random.set_seed(3)
    assert elements(Dataset.range(10).shuffle(4)) == [3, 0, 1, 4, 6, 7, 5, 2, 8, 9]
    once = Dataset.range(10).shuffle(4, seed=1)
    assert elements(once) == [3, 1, 0, 6, 5, 8, 7, 9, 4, 2]
    assert elements(once) == [0, 3, 4, 6, 7, 1, 8, 2, 5, 9]
    fixed = Dataset.range(10).shuffle(4, seed=1, reshuffle_each_iteration=False)
    assert elements(fixed.repeat(2)) == [1, 4, 5, 0, 3, 8, 2, 7, 6, 9] * 2
    assert elements(Dataset.random(seed=3).take(2)) == [354193759, 1683325520]


def test_reduce():
    total = Dataset.range(10).reduce(np.int64(0), lambda total, x: total + x)
    assert total.dtype == tf.int64
    assert int(total) == 45
    pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
    made = pairs.reduce(
        (0, 1), lambda state, element: (state[0] + element[0], state[1] * element[1])
    )
    assert [int(x) for x in made] == [3, 12]
    with pytest.raises(TypeError, match=r"Expected tf.int64; got tf.float32"):
        Dataset.range(2).reduce(np.int64(0), lambda total, x: 1.0)


def test_cache_keeps_what_was_complete():
    calls = []
    dataset = Dataset.range(3).map(lambda x: calls.append(int(x)) or x).cache()
    next(iter(dataset))
    assert elements(dataset) == elements(dataset) == [0, 1, 2]
    assert calls == [0, 0, 1, 2]


def test_elements_are_made_when_they_are_asked_for():
    calls = []
    dataset = Dataset.range(10**9).map(lambda x: calls.append(int(x)) or x)
    for _ in itertools.islice(dataset.batch(2), 2):
        pass
    assert calls == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: Dataset.range(5).repeat(), -1),
        (lambda: Dataset.range(5).filter(lambda x: x > 2), -2),
        (lambda: Dataset.range(5).repeat().batch(2).take(3), 3),
        (lambda: Dataset.zip(Dataset.range(2), Dataset.range(3).repeat()), 2),
        (lambda: Dataset.range(3).repeat().concatenate(Dataset.range(2)), -1),
        (lambda: Dataset.range(3).repeat(0), 0),
        (lambda: Dataset.range(7).window(3, shift=2, drop_remainder=True), 3),
        (lambda: Dataset.range(7).window(3, shift=2), 4),
        (lambda: Dataset.range(10).shard(3, 1), 3),
        (lambda: Dataset.range(5).batch(2).unbatch(), -2),
    ],
)
def test_cardinality(make, wanted):
    found = make().cardinality()
    assert found.dtype == tf.int64
    assert int(found) == wanted
    assert int(tf.data.experimental.cardinality(make())) == wanted


def test_length_that_is_none():
    with pytest.raises(TypeError, match=r"The dataset is infinite\."):
        len(Dataset.range(5).repeat())
    with pytest.raises(TypeError, match=r"The dataset length is unknown\."):
        len(Dataset.range(5).filter(lambda x: x > 2))
    assert bool(Dataset.range(0))


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (
            lambda: Dataset.from_tensor_slices([1, 2]),
            "<_TensorSliceDataset element_spec=TensorSpec(shape=(), dtype=tf.int32, name=None)>",
        ),
        (
            lambda: Dataset.range(5).batch(2),
            "<_BatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)>",
        ),
        (
            lambda: Dataset.range(6).batch(4).batch(2, drop_remainder=True),
            "<_BatchDataset element_spec=TensorSpec(shape=(2, None), dtype=tf.int64, name=None)>",
        ),
        (
            lambda: Dataset.range(3).batch(2).map(lambda x: {"a": x}),
            (
                "<_MapDataset element_spec={'a': TensorSpec(shape=(None,), dtype=tf.int64, "
                "name=None)}>"
            ),
        ),
        (
            lambda: Dataset.range(3).window(2),
            (
                "<_WindowDataset element_spec=DatasetSpec(TensorSpec(shape=(), dtype=tf.int64, "
                "name=None), TensorShape([]))>"
            ),
        ),
        (
            lambda: Dataset.from_generator(lambda: [1], output_types=tf.int32),
            "<_FlatMapDataset element_spec=TensorSpec(shape=<unknown>, dtype=tf.int32, name=None)>",
        ),
    ],
)
def test_element_spec(make, wanted):
    assert repr(make()) == wanted


def test_element_spec_of_a_function_that_needs_values():
    calls = []
    dataset = Dataset.range(2).map(lambda x: calls.append(0) or tf.constant(x.numpy() * 2.0))
    assert dataset.element_spec == tf.TensorSpec((), tf.float64)
    assert dataset.element_spec is dataset.element_spec  # found once
    with pytest.raises(ValueError, match="no element to find the element_spec with"):
        _ = Dataset.range(0).map(lambda x: x.numpy()).element_spec


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Dataset.from_tensor_slices(([1, 2], [1])), ValueError, "Dimensions 2 and 1"),
        (lambda: Dataset.from_tensor_slices(5), ValueError, "rank >= 1"),
        (lambda: Dataset.from_tensor_slices([[1], [1, 2]]), ValueError, "non-rectangular"),
        (lambda: Dataset.from_generator([1], tf.int32), TypeError, "Python callable"),
        (lambda: Dataset.from_generator(lambda: [1]), TypeError, "output signature"),
        (lambda: Dataset.range(3).batch(0), tf.errors.InvalidArgumentError, "Batch size"),
        (lambda: Dataset.range(3).shuffle(0), tf.errors.InvalidArgumentError, "buffer_size"),
        (lambda: Dataset.range(3).shard(2, 2), tf.errors.InvalidArgumentError, "Index must be"),
        (lambda: Dataset.range(3).map(5), ValueError, "must be a callable"),
        (lambda: list(Dataset.range(3).map(lambda x: None)), TypeError, "returned None"),
        (lambda: list(Dataset.range(3).filter(lambda x: x)), ValueError, "must return a `tf.bool`"),
        (lambda: list(Dataset.range(3).flat_map(lambda x: x)), TypeError, "return a `Dataset`"),
        (
            lambda: Dataset.range(2).concatenate(Dataset.from_tensor_slices([1.0])),
            TypeError,
            "Incompatible dataset elements",
        ),
        (lambda: Dataset.zip(Dataset.range(2), [1]), TypeError, "is not a dataset"),
        (lambda: list(Dataset.range(3).window(2).batch(2)), TypeError, "cannot be batched"),
        (lambda: Dataset.range(2).get_single_element(), ValueError, "more than one element"),
        (lambda: Dataset.range(3).sparse_batch(2), AttributeError, "padded_batch"),
        (
            lambda: list(Dataset.range(1, 4).map(lambda x: tf.fill([x], x)).batch(2)),
            tf.errors.InvalidArgumentError,
            (r"Cannot batch tensors with different shapes in component 0. First element had shape "
            r"\[1\] and element 1 had shape \[2\]"),
        ),
        (
            lambda: list(Dataset.from_tensors([1, 2]).padded_batch(1, padded_shapes=(1,))),
            ValueError,
            "is not compatible with the shape",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_function_of_tf_is_traced_once():
    traces = []

    @tf.function
    def double(x):
        traces.append(None)
        return 2 * x

    assert elements(Dataset.range(4).map(double)) == [0, 2, 4, 6]
    assert len(traces) == 1


def test_files(tmp_path):
    path = lines(tmp_path)
    assert elements(tf.data.TextLineDataset(path)) == [b"one", b"two", b""]
    names = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    assert elements(names) == [path.encode()]
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched"):
        Dataset.list_files(str(tmp_path / "*.none"))


def test_a_generator_is_closed_with_its_iterator():
    closed = []

    def values():
        try:
            yield from range(3)
        finally:
            closed.append(True)

    spec = tf.TensorSpec((), tf.int32)
    iterator = iter(Dataset.from_generator(values, output_signature=spec).batch(2))
    next(iterator)
    assert not closed
    del iterator
    gc.collect()
    assert closed


def test_datasets_made_of_others_have_tensorflows_kind_size_and_spec(tmp_path):
    made, path = tf.data.Dataset, str(tmp_path)
    (tmp_path / "x.csv").write_text("1,2\n")
    number = tf.TensorSpec((), tf.int64)
    pair = (tf.TensorSpec((), tf.int32),) * 2
    csv = tf.data.experimental.CsvDataset(f"{path}/x.csv", [tf.int32, tf.int32])
    assert (csv._kind, csv._count, csv.element_spec) == ("CsvDatasetV2", -2, pair)
    assert made.range(3).flat_map(made.range)._kind == "_FlatMapDataset"
    some = [made.range(3).repeat(), made.range(2)]
    assert int(made.sample_from_datasets(some).cardinality()) == -1
    made.range(5).save(f"{path}/a", shard_func=lambda x: x % 2)
    assert len(made.load(f"{path}/a")) == 5
    made.range(0).save(f"{path}/b")
    empty = made.load(f"{path}/b")
    assert (len(empty), empty.element_spec, list(empty)) == (0, number, [])
    padded = made.range(3).map(lambda x: {"a": x}).filter(lambda _: True)
    assert len(padded.pad_to_cardinality(5, "valid")) == 5


def test_a_function_keeps_the_values_that_names_have_when_it_is_given():
    made, total = [], 0
    for i in range(2):
        made.append(tf.data.Dataset.range(1).map(lambda x: (x, i)))  # noqa: B023, PERF401
    assert [[int(label) for _, label in ds] for ds in made] == [[0], [1]]
    scope = {"tf": tf, "made": []}
    exec("for i in range(2): made.append(tf.data.Dataset.range(3).filter(lambda x: x > i))", scope)
    assert [len([*ds]) for ds in scope["made"]] == [2, 1]

    def count(x):
        nonlocal total
        total += 1
        return x + total

    assert [int(x) for x in tf.data.Dataset.range(2).map(count)] == [1, 3]
    assert total == 2


def test_what_a_function_raises_is_not_hidden_by_the_spec():
    data = tf.data.Dataset.range(2).map(lambda x: x.no_such_thing)
    with pytest.raises(AttributeError, match="no_such_thing"):
        data.element_spec  # noqa: B018 - it is found now
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        data.nothing  # noqa: B018


@pytest.mark.parametrize("kind", ["save", "cache", "snapshot"])
@pytest.mark.parametrize(
    ("value", "is_whole"),
    [
        ([[1, 2, 3], [], [4]], False),
        ([[[1], [2, 3]], [[]], []], True),
        ([[b"a"], [], [b"b", b""]], True),
        (tf.sparse.from_dense([[1, 0], [0, 2]]), False),
        (tf.sparse.from_dense([["a", ""], ["", "b"]]), True),
    ],
)
def test_ragged_and_sparse_elements_are_in_files(tmp_path, kind, value, is_whole):
    tensor = tf.ragged.constant(value) if isinstance(value, list) else value
    sets = tf.data.Dataset
    whole = sets.from_tensors(tensor) if is_whole else sets.from_tensor_slices(tensor)
    data = tf.data.Dataset.zip((whole, whole.map(lambda _: 7)))
    path = str(tmp_path / "files")
    if kind == "save":
        data.save(path)
        again = tf.data.Dataset.load(path)
        assert again.element_spec == data.element_spec
    else:
        again = getattr(data, kind)(path)
        list(again)
        assert (tmp_path / "files").exists()
    rows = [(repr(x), int(n)) for x, n in data]
    assert [(repr(x), int(n)) for x, n in again] == rows
    assert {n for _, n in rows} == {7}


def test_ragged_elements_of_a_file_are_batched_again(tmp_path):
    rows = tf.ragged.constant([[1, 2, 3], [], [4]], row_splits_dtype=tf.int32)
    tf.data.Dataset.from_tensor_slices(rows).save(str(tmp_path))
    batch = next(iter(tf.data.Dataset.load(str(tmp_path)).batch(3)))
    assert batch.to_list() == [[1, 2, 3], [], [4]]
