"""Iterators over datasets: in checkpoints, in functions, after errors."""

from __future__ import annotations

import functools
import itertools
import re
import shutil
import sys
import threading
from typing import Any

import numpy as np
import pytest
from threads import run_in_threads

from jaxvars import tf
from jaxvars.tf.data.generators.calls import named_in
from jaxvars.tf.data.generators.cursor import from_string, to_string
from jaxvars.tf.train.graph import graph_of, refuse_lost
from tests.tf.iterator_programs import MAKE_NONE, MAKERS, MOMENTS, REFUSED

Dataset = tf.data.Dataset


CASES = {
    f"{name}: {what}" if what else name: make
    for name, rows in MAKERS.items() for what, make in rows.items()
}  # fmt: skip


def plain(element):
    return tf.nest.map_structure(plain_leaf, element)


def plain_leaf(x):
    if hasattr(x, "element_spec"):
        return list(map(plain, x))
    x = tf.sparse.to_dense(x) if isinstance(x, tf.SparseTensor) else x
    return np.asarray(x.to_tensor() if hasattr(x, "to_tensor") else x).tolist()


def saved_state(iterator):
    refuse_lost(graph_of(tf.train.Checkpoint(it=iterator)))
    return to_string(iterator._save())


def test_each_function_that_makes_a_dataset_has_a_row(tmp_path) -> None:
    public = {
        *(f"Dataset.{name}" for name in dir(Dataset) if not name.startswith("_")),
        *(name for name in tf.data.__all__ if name.endswith("Dataset") and name != "Dataset"),
        *(
            f"experimental.{name}" for name in tf.data.experimental.__all__
            if callable(getattr(tf.data.experimental, name))
        ),
    }  # fmt: skip
    assert public == MAKERS.keys() | MAKE_NONE
    assert not MAKERS.keys() & MAKE_NONE
    assert REFUSED.keys() <= CASES.keys()
    for name, rows in MAKERS.items():
        wanted = functools.reduce(getattr, name.split("."), tf.data).__code__
        for make in rows.values():
            called = set()
            sys.setprofile(lambda frame, *_, called=called: called.add(frame.f_code))
            try:
                made = make(tmp_path)
            finally:
                sys.setprofile(None)
            assert isinstance(made, Dataset)
            assert wanted in called, name


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("case", CASES)
def test_a_saved_iterator_goes_on_or_is_refused(case, moment, tmp_path) -> None:
    refusals, number = [], list(CASES).index(case) + list(MOMENTS).index(moment)
    check_moment(CASES[case], *MOMENTS[moment], (None, 5)[number % 2], tmp_path, refusals)
    for refusal in refusals:
        assert re.search(REFUSED.get(case, "nothing"), refusal, re.DOTALL), refusal


def check_moment(make, epochs, place, seed, folder, refusals):
    def begun():
        tf.random.set_seed(seed)
        return make(folder).repeat(epochs)

    length = len(list(itertools.islice(make(folder), 99)))
    for kept in folder.glob("kept"):
        shutil.rmtree(kept)
    dataset = begun()
    iterator = iter(dataset)
    for _ in itertools.islice(iterator, place(length)):
        pass
    try:
        text = saved_state(iterator)
    except tf.errors.FailedPreconditionError as error:
        refusals.append(str(error))
        return
    wanted = list(map(plain, iterator))
    used = begun()
    list(used)
    begun_before = iter(dataset)
    next(begun_before, None)
    gone = begun()
    for where in iterator, iter(dataset), begun_before, iter(begun()), iter(used), iter(gone):
        if where is gone:
            shutil.rmtree(folder / "kept", ignore_errors=True)
        try:
            where._load(from_string(text))
            assert list(map(plain, where)) == wanted
        except tf.errors.FailedPreconditionError as error:
            refusals.append(str(error))


def test_checkpoint(tmp_path):
    dataset = Dataset.range(20).shuffle(8, seed=4).batch(2)
    iterator, step = iter(dataset), tf.Variable(0)
    checkpoint = tf.train.Checkpoint(step=step, iterator=iterator)
    next(iterator)
    step.assign(1)
    path = checkpoint.save(str(tmp_path / "ckpt"))
    wanted = [x.numpy().tolist() for x in iterator]
    assert len(wanted) == 9
    checkpoint.restore(path).assert_consumed()
    assert [x.numpy().tolist() for x in iterator] == wanted
    other = iter(Dataset.range(20).shuffle(8, seed=4).batch(2))
    tf.train.Checkpoint(step=tf.Variable(7), iterator=other).restore(path).assert_consumed()
    assert [x.numpy().tolist() for x in other] == wanted


def test_a_generator_that_draws_is_saved_with_the_iterator(tmp_path) -> None:
    rng = tf.random.Generator.from_seed(7)
    dataset = Dataset.range(6).map(lambda x: rng.uniform([])).shuffle(2).repeat(2)
    iterator = iter(dataset)
    path = str(tmp_path / "place")
    for steps in 0, 3:  # before anything was drawn, too
        list(itertools.islice(iterator, steps))
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"without the variable 'Stat"):
            tf.train.Checkpoint(iterator=iterator).write(path)
        numpy_iterator = dataset.as_numpy_iterator()
        list(itertools.islice(numpy_iterator, steps))
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"without .* 'StateVar', w"):
            numpy_iterator.save()
    both = tf.train.Checkpoint(iterator=iterator, rng=rng)
    both.write(path)
    wanted = list(map(plain, iterator))
    assert len(wanted) == 9
    both.read(path).assert_consumed()
    assert list(map(plain, iterator)) == wanted


def test_what_a_function_names_has_one_order_in_all_programs() -> None:
    scope = {name: number for number, name in enumerate("abcdefghijk")}
    made = eval("lambda x: (lambda: k + j + c + a + x + e + d)() + b + f + g + i + h", scope)
    assert list(named_in(made)) == list(range(11))
    assert list(named_in(functools.partial(tf.function(made)))) == list(range(11))


def test_draws_in_a_map_of_a_function_are_not_saved() -> None:
    rows = Dataset.range(4).batch(2)
    iterator = rows.map(
        lambda x: tf.vectorized_map(lambda _: tf.random.uniform([], seed=1), x)
    ).as_numpy_iterator()
    place = iterator.save()
    next(iterator)
    with pytest.raises(
        tf.errors.FailedPreconditionError, match=r"RandomUniform has drawn .* or in a"
    ):
        iterator.save()
    iterator.restore(place)


def test_what_a_generator_yields_must_come_again() -> None:
    left = [4, 1, 3]  # it yields fewer, and then others
    fewer = Dataset.from_generator(lambda: range(left.pop()), tf.int32, [])
    others = Dataset.from_generator(
        lambda: iter(np.random.default_rng().uniform(size=4)), tf.float32, []
    )
    for dataset in fewer, others:
        iterator = dataset.as_numpy_iterator()
        rest = [next(iterator), next(iterator)][2:]
        place = iterator.save()
        iterator.restore(place)
        with pytest.raises(
            tf.errors.FailedPreconditionError,
            match=r"after 2 elements.*np\.random\.default_rng\(7\)",
        ):
            next(iterator)
        assert rest == []


def test_a_place_is_one_in_the_steps_that_it_was_saved_in() -> None:
    batches = Dataset.range(9).batch(2).as_numpy_iterator()
    next(batches)
    place, message = batches.save(), "over the steps of another dataset, with (Batch|Range)Dataset "
    for other in (
        Dataset.range(9).batch(2).map(lambda x: x),
        Dataset.range(9).skip(1).batch(2),
        Dataset.range(9).shuffle(9),
    ):
        iterator = other.as_numpy_iterator()
        with pytest.raises(tf.errors.FailedPreconditionError, match=message):
            [iterator.restore(place), next(iterator)]
    same = Dataset.range(9).batch(2, num_parallel_calls=4).as_numpy_iterator()
    same.restore(place)
    assert next(same).tolist() == [2, 3]


def test_states_of_older_versions() -> None:
    source = {"values": {"i": 2}, "children": {}}
    cached = Dataset.range(3).cache().as_numpy_iterator()
    begun = {"seen": [np.int64(7), np.int64(8)]}
    cached._iterator._load({"values": begun, "children": {"source": source}})
    assert list(cached) == [2]
    cached._iterator._load({"values": {**begun, "full": True, "i": 1}, "children": {}})
    assert list(cached) == [8]
    pairs = Dataset.range(2).flat_map(lambda x: Dataset.range(2)).as_numpy_iterator()
    pairs._iterator._load({"values": {"given": [[np.int64(0)]], "i": 0}, "children": {
        "source": {"values": {"i": 1}, "children": {}}, "0": {"values": {"i": 1}, "children": {}},
    }})  # fmt: skip
    assert list(pairs) == [1, 0, 1]


def test_a_cache_that_another_iterator_has_emptied() -> None:
    dataset = Dataset.range(3).cache()
    empty = iter(dataset)._save()
    list(dataset)
    iterator = iter(dataset)
    next(iterator)
    iter(dataset)._load(empty)
    iterator._cursor.load(iterator._cursor._memory.save())  # as after an error
    with pytest.raises(
        tf.errors.FailedPreconditionError, match="that this iterator reads is empty"
    ):
        next(iterator)


def test_iterators_that_write_one_folder_at_the_same_time(tmp_path) -> None:
    (tmp_path / "shard-00000.tfrecord").write_text("of another program")
    dataset = Dataset.range(4).shuffle(4).cache(str(tmp_path))
    first, second, third = map(iter, (dataset, dataset, dataset))
    next(third)
    orders = [[], []]
    for x, y in zip(first, second, strict=True):
        orders[0].append(int(x))
        orders[1].append(int(y))
    del third
    assert [int(x) for x in dataset] in orders
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left[0] == "dataset.json"
    assert re.fullmatch(r"elements-00000-\w{8}\.tfrecord", left[1])
    assert left[2:] == ["shard-00000.tfrecord"]
    next(iter(dataset.map(lambda x: x).cache(str(tmp_path / "begun"))))
    assert list((tmp_path / "begun").iterdir()) == []


def test_an_iterator_that_is_put_into_a_checkpoint_after_the_restore(tmp_path) -> None:
    iterator = iter(Dataset.range(5))
    next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "place"))
    checkpoint = tf.train.Checkpoint()
    status = checkpoint.read(path)
    checkpoint.iterator = iter(Dataset.range(5))
    assert [int(x) for x in checkpoint.iterator] == [1, 2, 3, 4]
    status.assert_consumed()


def test_an_iterator_of_arrays_is_saved_in_a_string():
    make = Dataset.range(9).shuffle(4, seed=1).as_numpy_iterator
    iterator = make()
    next(iterator)
    place, rest = iterator.save(), list(iterator)
    assert (place.dtype, place.shape, len(rest)) == (tf.string, (), 8)
    for other in iterator, make():
        other.restore(place)
        assert list(other) == rest
    for wrong in ("", "a/path", "[]", "{}", 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"NumpyIterator\.save"):
            iterator.restore(wrong)


def test_after_an_error_comes_the_next_element():
    numbers = Dataset.from_tensor_slices([1.0, 0.0, 4.0]).map(
        lambda x: tf.debugging.check_numerics(1.0 / x, "one over x")
    )
    iterator = iter(numbers)
    assert float(next(iterator)) == 1.0
    with pytest.raises(Exception, match="one over x"):
        next(iterator)
    assert float(next(iterator)) == 0.25
    assert [float(x) for x in numbers.ignore_errors()] == [1.0, 0.25]
    with pytest.warns(UserWarning, match="An element was left out: .*one over x"):
        list(numbers.ignore_errors(log_warning=True))


def test_after_the_error_of_a_function_that_makes_datasets() -> None:
    def part(x, group=None):
        if x == 1:
            raise ValueError("none of one")
        return Dataset.from_tensors(x).repeat(2) if group is None else group.batch(3)

    parts = Dataset.range(3).interleave(part, cycle_length=1)
    iterator = iter(parts)
    assert [int(next(iterator)) for _ in range(2)] == [0, 0]
    with pytest.raises(ValueError, match="none of one"):
        next(iterator)
    assert [int(x) for x in iterator] == [2, 2]
    assert [int(x) for x in parts.ignore_errors()] == [0, 0, 2, 2]
    groups = Dataset.range(6).group_by_window(lambda x: x % 3, part, 2)
    assert [x.tolist() for x in groups.ignore_errors().as_numpy_iterator()] == [[0, 3], [2, 5]]


def test_what_cannot_be_saved_can_be_restored(tmp_path) -> None:
    windows = Dataset.range(6).map(lambda x: Dataset.range(x)).shuffle(2, seed=1)
    iterator = iter(windows.flat_map(lambda x: x))
    checkpoint, path = tf.train.Checkpoint(iterator=iterator), str(tmp_path / "place")
    checkpoint.write(path)
    wanted = list(map(plain, iterator))
    other = iter(windows.flat_map(lambda x: x))
    next(other)
    checkpoint = tf.train.Checkpoint(iterator=other)
    with pytest.raises(tf.errors.FailedPreconditionError, match="keeps a Dataset from one element"):
        checkpoint.write(path)
    checkpoint.read(path).assert_consumed()
    assert list(map(plain, other)) == wanted


def test_optional():
    iterator = iter(Dataset.range(1))
    found, none = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    assert bool(found.has_value())
    assert int(found.get_value()) == 0
    assert found.element_spec == none.element_spec == tf.TensorSpec((), tf.int64)
    assert not none.has_value()
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        none.get_value()


# ---------------------------------------------------------------- in functions
def test_a_loop_in_a_function_begins_anew_each_time():
    dataset = Dataset.range(5).batch(2, drop_remainder=True)
    total, traces = tf.Variable(tf.zeros([2], tf.int64)), []

    @tf.function
    def program():
        traces.append(1)
        for i, x in enumerate(dataset):
            if i < 5:
                total.assign_add(x)
        return total + 0

    assert program().numpy().tolist() == [2, 4]
    assert program().numpy().tolist() == [4, 8]
    assert len(traces) == 1


def test_a_loop_that_is_left_in_a_function():
    dataset, calls = Dataset.range(10), []
    dataset = dataset.map(lambda x: calls.append(int(x)) or x)
    dataset = dataset.filter(lambda x: x != 1)

    @tf.function
    def program(limit):
        total = tf.constant(0, tf.int64)
        for x in dataset:
            if total > limit:
                break
            total += x
        return total

    _ = dataset.element_spec
    calls.clear()
    assert int(program(tf.constant(4, tf.int64))) == 5
    assert calls == [0, 1, 2, 3, 4]


def test_datasets_as_arguments_of_functions():
    @tf.function
    def total(dataset, start):
        for x, y in dataset:
            start += x * y
        return start

    pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
    assert int(total(pairs, 0)) == 11
    assert int(total(pairs.skip(1), 0)) == 8


def test_an_iterator_in_a_function_goes_on():
    iterator = iter(Dataset.range(3))
    step = tf.function(lambda: next(iterator) * 2)
    assert int(step()) == 0
    assert int(next(iterator)) == 1
    assert int(step()) == 4
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        step()


def test_an_optional_in_a_function():
    @tf.function
    def total(iterator):
        found, item = tf.constant(0, tf.int64), iterator.get_next_as_optional()
        while item.has_value():
            found += item.get_value()
            item = iterator.get_next_as_optional()
        return found

    @tf.function
    def total_of_three(iterator):
        found = tf.constant(0, tf.int64)
        for _ in tf.range(3):
            item = iterator.get_next_as_optional()
            if not item.has_value():
                break
            found += item.get_value()
        return found

    assert int(total(iter(Dataset.range(4)))) == 6
    iterator = iter(Dataset.range(4))
    assert [int(total_of_three(iterator)) for _ in range(3)] == [3, 3, 0]
    assert int(total_of_three(iter(Dataset.range(3).map(lambda x: x * x)))) == 5


def test_what_becomes_of_an_optional_in_a_function():
    first = tf.function(lambda iterator: iterator.get_next_as_optional())
    value = tf.function(lambda item: (item.get_value(), item.has_value()))
    iterator = iter(Dataset.from_tensor_slices((["a"], {"b": [1.0]})))
    found, none = first(iterator), first(iterator)
    assert (bool(found.has_value()), bool(none.has_value())) == (True, False)
    assert found.element_spec == none.element_spec == iterator.element_spec
    string, numbers = found.get_value()
    assert (string.numpy(), numbers["b"].numpy()) == (b"a", 1.0)
    assert repr(none).startswith("Optional.empty((TensorSpec")
    assert value(tf.experimental.Optional.from_value(3))[0].numpy() == 3
    empty = tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32))
    for run in (none.get_value, lambda: value(none), lambda: value(empty)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
            run()


def test_a_loop_over_an_iterator_in_a_function():
    iterator = iter(Dataset.range(5))
    next(iterator)

    @tf.function
    def program():
        total = tf.constant(0, tf.int64)
        for x in iterator:
            total += x
        return total

    assert int(program()) == 10
    assert int(program()) == 0


def test_reduce_in_a_function():
    program = tf.function(lambda start: Dataset.range(4).reduce(start, lambda state, x: state + x))
    assert int(program(tf.constant(1, tf.int64))) == 7


def test_training_in_a_function():
    x = np.linspace(-1, 1, 8, dtype=np.float32)[:, None]
    dataset = Dataset.from_tensor_slices((x, 2 * x)).batch(4, drop_remainder=True).repeat(20)
    w = tf.Variable([[0.0]])

    @tf.function
    def train(data):
        for a, b in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.matmul(a, w) - b) ** 2)
            w.assign_sub(0.5 * tape.gradient(loss, w))
        return loss

    assert float(train(dataset)) < 1e-3
    assert abs(float(w[0, 0]) - 2) < 0.05


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Dataset.range(5).filter(lambda x: x < 4).batch(2), "drop_remainder=True"),
        (Dataset.range(5).batch(2).concatenate(Dataset.range(3).batch(3)), "drop_remainder=True"),
        (Dataset.range(3).window(2), "tensors of fixed shapes only"),
    ],
)
def test_what_is_refused_in_a_function(dataset, message):
    @tf.function
    def program():
        for _ in dataset:
            pass

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        program()


# ---------------------------------------------------------------- shapes and values of a program
PAIRS = Dataset.from_tensor_slices((np.arange(20.0, dtype=np.float32).reshape(10, 2), range(10)))
REMAINDERS = {
    "batch": PAIRS.batch(3),
    "all in one": PAIRS.batch(20),
    "no remainder": PAIRS.batch(5),
    "repeated": PAIRS.batch(3).repeat(2),
    "mapped": PAIRS.batch(3).map(lambda x, y: (x * 2.0, y + 1)).prefetch(1),
    "shuffled": PAIRS.batch(3).shuffle(4, seed=1, reshuffle_each_iteration=False),
    "infinite": PAIRS.repeat().batch(3).take(5),
    "padded": PAIRS.padded_batch(4),
    "zipped": Dataset.zip((PAIRS.map(lambda x, _: x).batch(3), Dataset.range(10).batch(3))),
    "concatenated": PAIRS.batch(3).concatenate(PAIRS.batch(3)),
    "enumerated": PAIRS.batch(3).enumerate().map(lambda i, e: e),
    "empty": PAIRS.take(0).batch(3),
}


def totals(data, seen, number):
    total = tf.constant(0.0)
    for i, (x, y) in enumerate(data):
        product = x * tf.cast(y, tf.float32)[:, None]
        seen.assign_add(tf.reduce_mean(product) * tf.cast(i + 1, tf.float32))
        if seen > 400.0:
            break
        number.assign_add(tf.shape(x)[0])
        total += tf.reduce_sum(product)
    return total


@pytest.mark.parametrize("name", REMAINDERS)
def test_a_last_batch_may_be_smaller(name):
    found = []
    for fn in (totals, tf.function(totals)):
        seen, number = tf.Variable(0.0), tf.Variable(0)
        found.append((float(fn(REMAINDERS[name], seen, number)), float(seen), int(number)))
    assert found[1] == pytest.approx(found[0])


def test_a_value_that_keeps_the_shape_of_a_batch_is_refused():
    @tf.function
    def program():
        kept = tf.zeros([3], tf.int64)
        for x in Dataset.range(5).batch(3):
            kept = x
        return kept

    with pytest.raises(Exception, match=r"'kept' is int64\[3\] if true, but int64\[2\] if false"):
        program()


def test_reduce_of_batches_and_iterators_in_a_function():
    add = tf.function(lambda data: data.reduce(0.0, lambda s, e: s + tf.reduce_mean(e[0])))
    assert float(add(PAIRS.batch(3))) == 2.5 + 8.5 + 14.5 + 18.5
    step = tf.function(lambda rows: tf.reduce_sum(next(rows)[0]))
    assert float(step(iter(PAIRS.repeat().batch(3)))) == 15.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(3, 2\).* or .*\(1, 2\)"):
        step(iter(PAIRS.batch(3)))


def test_datasets_of_tensors_of_a_program():
    @tf.function
    def program(x, n):
        total = tf.constant(0.0)
        pairs = Dataset.from_tensor_slices({"a": x, "b": 2.0 * x}).batch(2)
        for row in pairs.map(lambda row: (row["a"] + 1.0, row["b"])):
            total += tf.reduce_sum(row[0] * row[1])
        for i, other in Dataset.zip((Dataset.range(n, 3 * n), Dataset.from_tensors(x).repeat(3))):
            total += tf.cast(i, tf.float32) * tf.reduce_sum(other)
        for _ in tf.range(2):
            for y in Dataset.from_tensor_slices(x).concatenate(Dataset.from_tensor_slices(x)):
                total += y
        return total

    for size, n in ((3, 1), (3, 2), (5, 2)):
        x = tf.range(float(size)) + float(n)
        assert float(program(x, tf.constant(n, tf.int64))) == float(program.python_function(x, n))
    with pytest.raises(ValueError, match="rank >= 1"):
        tf.function(lambda x: Dataset.from_tensor_slices(x))(tf.constant(1.0))
    kept = []
    tf.function(lambda x: kept.append(Dataset.from_tensors(x)))(tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="is for a `for` statement"):
        list(kept[0])


def test_zip_of_datasets_and_of_one_iterator_in_a_function():
    @tf.function
    def program(rows, *others):
        total = tf.constant(0, tf.int64)
        for a, b in zip(rows, *others, strict=False):
            total += 10 * a + tf.cast(b, tf.int64)
        return total

    assert int(program(Dataset.range(3), Dataset.range(1, 9))) == 36
    assert int(program(Dataset.range(5), tf.range(3))) == 33
    rows = iter(Dataset.range(4))
    assert int(program(rows, rows)) == 24
    with pytest.raises(Exception, match="whose last batch has another size"):
        program(Dataset.range(5).batch(2), Dataset.range(3))


def test_a_list_of_a_dataset_in_a_function_is_refused():
    dataset = Dataset.range(2)
    program = tf.function(lambda: list(iter(dataset)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="would become constants"):
        program()


def test_a_distributed_dataset_in_a_function():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    batches = strategy.experimental_distribute_dataset(Dataset.range(5).batch(2))
    assert batches.element_spec == tf.TensorSpec([None], tf.int64)

    @tf.function
    def total(data):
        found = tf.constant(0, tf.int64)
        for x in data:
            found += tf.reduce_sum(strategy.run(lambda y: y * 2, args=(x,)))
        return found

    assert int(total(batches)) == int(total(batches)) == 20
    rows = iter(strategy.experimental_distribute_dataset(Dataset.range(4).batch(2)))
    step = tf.function(lambda it: tf.reduce_sum(next(it)))
    assert [int(step(rows)), int(step(rows))] == [1, 5]


# ---------------------------------------------------------------- tapes around loops
ROWS = Dataset.from_tensor_slices(np.float32([[1, 2], [3, 4], [5, 6]]))


def loss_and_gradient(data, w):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w)
        for i, x in enumerate(data):
            if tf.reduce_sum(x) > 60.0:
                break
            loss += tf.reduce_mean(w * x * x) * tf.cast(i + 1, tf.float32)
    return loss, tape.gradient(loss, w)


@pytest.mark.parametrize(
    "data",
    [
        ROWS, ROWS.batch(2), ROWS.batch(2, drop_remainder=True), ROWS.batch(2).repeat(2),
        ROWS.concatenate(ROWS.map(lambda x: 10.0 * x)), ROWS.take(0), ROWS.take(0).batch(2),
    ],
)  # fmt: skip
def test_the_gradient_of_a_loop_over_a_dataset_of_known_size(data):
    w = tf.Variable([1.0, 2.0])
    found = [[np.asarray(x) for x in f(data, w)]
             for f in (loss_and_gradient, tf.function(loss_and_gradient))]  # fmt: skip
    for eager, staged in zip(*found, strict=True):
        np.testing.assert_allclose(staged, eager, rtol=1e-6)


def test_the_gradient_of_reduce_of_zip_and_of_a_loop_that_is_written_out():
    w = tf.Variable([1.0, 2.0])

    def program(data, x):
        with tf.GradientTape(persistent=True) as tape:
            first = data.batch(2).reduce(0.0, lambda s, x: s + tf.reduce_sum(w * x))
            second, rows = 0.0, tf.zeros([0, 2])
            for a, i in zip(data, tf.range(2), strict=False):
                second += tf.reduce_sum(w * a) * tf.cast(i, tf.float32)
            for b in Dataset.from_tensor_slices(x):
                rows = tf.concat([rows, [b * w]], 0)
            third = tf.reduce_sum(rows**2)
        return [tape.gradient(y, w) for y in (first, second, third)]

    staged = tf.function(program)
    for scale in (1.0, 2.0):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]) * scale
        found = [g.numpy().tolist() for g in staged(ROWS, x)]
        assert found[:2] == [[9.0, 12.0], [3.0, 4.0]]
        assert found[2] == [70.0 * scale**2, 224.0 * scale**2]


def rows_noting(calls):
    counted = Dataset.from_tensor_slices([1.0, 3.0, 5.0]).map(lambda x: calls.append(float(x)) or x)
    return counted.map(lambda x: tf.stack([x, x + 1.0]))


def test_each_element_is_made_once_for_a_gradient():
    calls = []
    data = rows_noting(calls)
    _ = data.element_spec
    calls.clear()
    tf.function(loss_and_gradient)(data, tf.Variable([1.0, 2.0]))
    assert calls == [1.0, 3.0, 5.0]


def test_a_wrong_cardinality_is_told_when_all_elements_are_made():
    data = ROWS.take(2)
    data._count = 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="cardinality of the dataset is 3"):
        tf.function(loss_and_gradient)(data, tf.Variable([1.0, 2.0]))


@pytest.mark.parametrize("shape", ["unknown", "infinite", "large", "outside", "nested"])
def test_a_gradient_of_a_loop_over_a_dataset_that_cannot_be(shape):
    w, calls = tf.Variable([1.0, 2.0]), []
    data = rows_noting(calls)
    _ = data.element_spec
    calls.clear()

    def total(rows):
        loss = tf.constant(0.0)
        for _ in tf.range(2 if shape == "nested" else 1):
            for x in rows:
                if tf.reduce_sum(x) > 8.0:
                    break
                loss += tf.reduce_sum(w * x)
        return loss

    def gradient(rows):
        with tf.GradientTape() as tape:
            loss = tf.constant(0.0)
            for x in rows:
                loss += tf.reduce_sum(w * x)
        return tape.gradient(loss, w)

    if shape in ("outside", "nested"):
        with tf.GradientTape() as tape:
            loss = tf.function(total)(data)
        assert float(loss) == (32.0 if shape == "nested" else 16.0)
        before = list(calls)
        run = lambda: tape.gradient(loss, w)  # noqa: E731
    else:
        before = []
        kinds = {"unknown": data.filter(lambda x: True), "infinite": data.repeat(),
                 "large": data.repeat(1 << 28)}  # fmt: skip
        run = lambda: tf.function(gradient)(kinds[shape])  # noqa: E731
    with pytest.raises(RuntimeError, match=r"otherwise inside the loop:\n    for x in") as caught:
        run()
    assert "jv." not in str(caught.value)
    assert shape in ("unknown", "infinite", "large") or calls == before


# ---------------------------------------------------------------- strings
WORDS = Dataset.from_tensor_slices((["a", "bcd", "\u00e9", "", "zz"], [1, 2, 3, 4, 5]))


def joined(data, start):
    total = tf.constant(0)
    for words, numbers in data:
        start = tf.strings.join([start, tf.strings.reduce_join(words)], "-")
        total += tf.reduce_sum(tf.strings.length(words) * numbers)
    return start, total


@pytest.mark.parametrize(
    "data",
    [
        WORDS, WORDS.batch(2), WORDS.batch(2, drop_remainder=True), WORDS.take(0),
        WORDS.filter(lambda s, n: n > 1), WORDS.map(lambda s, n: (tf.strings.upper(s), n)),
    ],
)  # fmt: skip
def test_a_loop_over_strings_in_a_function(data):
    program, start = tf.function(joined), tf.constant("x")
    for _ in range(2):
        eager, staged = joined(data, start), program(data, start)
        assert [x.numpy() for x in staged] == [x.numpy() for x in eager]


def test_strings_of_a_program_of_iterators_and_of_reduce():
    made = tf.function(lambda x, n: joined(Dataset.from_tensor_slices((x, n)), tf.constant("x")))
    for words in (["a", "bc"], ["d", "e"], ["a", "bc"]):
        assert made(tf.constant(words), tf.constant([1, 2]))[0] == "-".join(["x", *words])
    rows = iter(WORDS)
    step = tf.function(lambda: next(rows)[0] + "!")
    assert [step().numpy(), step().numpy()] == [b"a!", b"bcd!"]
    add = tf.function(lambda data: data.reduce("", lambda s, e: s + e[0]))
    assert add(WORDS).numpy() == "abcd\u00e9zz".encode()


def test_strings_beside_a_tape():
    w = tf.Variable(2.0)

    @tf.function
    def program(data):
        with tf.GradientTape() as tape:
            loss = 0.0
            for words, n in data:
                sizes = tf.cast(tf.strings.length(words) * n, tf.float32)
                loss += w * tf.reduce_sum(sizes)
        return tape.gradient(loss, w)

    for data in (WORDS, WORDS.batch(2)):
        assert float(program(data)) == 1 + 6 + 6 + 0 + 10


def test_next_is_a_method_too():
    data = tf.data.Dataset.range(2)
    for iterator, kind in ((data.as_numpy_iterator(), np.int64), (iter(data), tf.Tensor)):
        first = iterator.next()
        assert isinstance(first, kind)
        assert [int(first), int(iterator.next())] == [0, 1]
        with pytest.raises(StopIteration):
            iterator.next()


def test_seeded_draws_begin_again_with_each_iterator() -> None:
    tf.random.set_seed(5)
    numbers = tf.data.Dataset.range(3)
    drawn = numbers.map(lambda _: tf.random.uniform([], seed=11))
    first = [0.73040366, 0.18204284, 0.01101351]
    for _ in range(2):
        assert np.allclose(list(drawn.as_numpy_iterator()), first)
    twice = list(drawn.repeat(2).as_numpy_iterator())
    assert np.allclose(twice, [*first, 0.7515782, 0.19713295, 0.33986807])
    scanned = numbers.scan(0.0, lambda s, _: (s, tf.random.uniform([], seed=11)))
    assert np.allclose(list(scanned.as_numpy_iterator()), first)
    inner = numbers.interleave(  # one function, for which there is a dataset for each element
        lambda _: tf.data.Dataset.range(2).map(lambda _: tf.random.uniform([], seed=11))
    )
    assert np.allclose(list(inner.as_numpy_iterator()), twice)
    other = numbers.map(lambda _: tf.random.uniform([], seed=11))
    pairs = tf.data.Dataset.zip((drawn, other))  # as of images and their masks
    both = numbers.map(lambda _: [tf.random.uniform([], seed=11) for _ in range(2)])
    for a, b in [*pairs, *both]:
        assert a.numpy() == b.numpy()
    assert np.allclose(tf.random.uniform([], seed=11), first[0])  # which others do not advance


def test_a_function_that_draws_does_so_for_each_step_anew() -> None:
    tf.random.set_seed(5)
    numbers, first = tf.data.Dataset.range(3), [0.73040366, 0.18204284, 0.01101351]
    inner = tf.function(lambda _: tf.random.uniform([], seed=11))
    outer = tf.function(lambda x: inner(x) + 1)
    assert np.allclose([inner(0), inner(0)], first[:2])  # eagerly it goes on
    for draw in (inner, lambda x: inner(x), lambda x: outer(x) - 1):
        for a, b in tf.data.Dataset.zip((numbers.map(draw), numbers.map(draw))):
            assert a.numpy() == b.numpy()
        assert np.allclose(list(numbers.map(draw).as_numpy_iterator()), first)
    assert np.allclose(inner(0), first[2])  # which datasets do not advance


def test_draws_without_a_seed_are_numbered_in_the_function_of_a_dataset() -> None:
    tf.random.set_seed(5)
    drawn = tf.data.Dataset.range(3).map(lambda _: tf.random.uniform([]))
    for _ in range(2):  # what TensorFlow gives, each time
        assert np.allclose(list(drawn.as_numpy_iterator()), [0.18286479, 0.67307663, 0.9363872])
    pairs = tf.data.Dataset.range(1).map(lambda _: [tf.random.uniform([]) for _ in range(2)])
    first, second = next(iter(pairs))
    assert first.numpy() != second.numpy()


def test_none_is_no_tensor_of_an_element() -> None:
    pairs = tf.data.Dataset.range(4).map(lambda x: (x, None))
    assert pairs.element_spec == (tf.TensorSpec([], tf.int64), tf.NoneTensorSpec())
    for batch in (pairs.batch(4), pairs.padded_batch(4, padding_values=(None, None))):
        ((found, nothing),) = batch
        assert found.numpy().tolist() == [0, 1, 2, 3]
        assert nothing is None
    assert [x[1] for x in pairs.batch(2).unbatch().repeat(2).shuffle(8).as_numpy_iterator()] == [
        None
    ] * 8
    sums = tf.function(lambda: pairs.reduce(tf.constant(0, tf.int64), lambda s, x: s + x[0]))
    assert int(sums()) == 6
    assert list(tf.data.Dataset.from_tensor_slices({"a": [1], "b": None})) == [{"a": 1, "b": None}]


def test_datasets_in_a_list_are_elements() -> None:
    lists = [tf.data.Dataset.range(n) for n in (1, 3)]
    made = tf.data.Dataset.from_tensor_slices(lists)
    assert made.element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    assert [int(x) for x in made.interleave(lambda x: x)] == [0, 0, 1, 2]
    with pytest.raises(ValueError, match="one `element_spec`"):
        tf.data.Dataset.from_tensor_slices([*lists, tf.data.Dataset.from_tensors(1.0)])


@pytest.mark.parametrize(
    ("shapes", "values", "kind", "words"),
    [
        ([1], None, ValueError, r"shape \(1,\) is not compatible with the shape \(3,\)"),
        ([3, 3], None, ValueError, "not compatible with the shape"),
        ([[1, 1], [1, 1]], None, ValueError, r"but its shape was \(2, 2\)"),
        (tf.constant([3.0]), None, TypeError, "but its element type was float32"),
        (None, "a", TypeError, "Invalid `padding_values`"),
        (None, 1.5, TypeError, "tf.float32 does not match type tf.int32"),
        (None, [1], ValueError, "should be scalars"),
    ],
)
def test_padding_that_does_not_fit(shapes: Any, values: Any, kind: Any, words: str) -> None:
    dataset = tf.data.Dataset.from_tensors([1, 2, 3])
    with pytest.raises(kind, match=words):
        dataset.padded_batch(2, shapes, values)
    late = dataset.map(lambda x: x).padded_batch(2, None, values if shapes is None else 1.5)
    with pytest.raises((TypeError, ValueError), match="Invalid `padding_values`"):
        next(iter(late))


def test_strings_without_dimensions_may_be_padded() -> None:
    (found,) = tf.data.Dataset.from_tensor_slices(["a", "b"]).padded_batch(2)
    assert found.numpy().tolist() == [b"a", b"b"]


def test_a_state_keeps_its_structure() -> None:
    assert tf.data.Dataset.range(3).reduce(0, lambda s, x: (s + 1,)).numpy() == 3


def test_what_has_no_dimensions_cannot_be_taken_apart() -> None:
    with pytest.raises(ValueError, match="scalar components"):
        tf.data.Dataset.range(2).unbatch()


def test_elements_that_cannot_be_padded() -> None:
    longer = tf.data.Dataset.range(3).map(tf.range).padded_batch(3, [1])
    with pytest.raises(tf.errors.DataLossError, match="pad to a smaller size"):
        next(iter(longer))
    for whole in (tf.ragged.constant([[1]]), tf.sparse.from_dense([1])):
        with pytest.raises(TypeError, match="only supported for datasets that produce tensor"):
            tf.data.Dataset.from_tensors(whole).padded_batch(2)


def test_specs_of_what_has_no_elements() -> None:
    pairs = tf.data.Dataset.from_tensor_slices((tf.zeros([0, 3]), tf.constant([], tf.string)))
    made = pairs.window(2).flat_map(lambda x, s: tf.data.Dataset.zip((x.batch(2), s.batch(2))))
    assert made.element_spec == (tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.string))
    assert list(made) == []


def test_what_a_scan_says_of_a_state_that_grows() -> None:
    doubled = tf.data.Dataset.range(3).scan([1], lambda s, _: (tf.concat([s, s], 0), s))
    assert doubled.element_spec.shape.as_list() == [None]
    assert [len(x) for x in doubled] == [1, 2, 4]
    with pytest.raises(TypeError, match="should return a pair"):
        next(iter(tf.data.Dataset.range(3).scan(0, lambda s, _: s)))


def test_structures_that_differ_are_refused() -> None:
    one, other = (tf.data.Dataset.from_tensor_slices({"a": [1], key: [2]}) for key in "bc")
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        one.concatenate(other)
    with pytest.raises(ValueError, match="not compatible"):
        tf.data.Dataset.from_tensors((tf.range(2), tf.range(3))).unbatch()
    endless = (
        tf.data.Dataset.range(2)
        .repeat()
        .group_by_window(lambda x: x, lambda _, d: d.batch(2), window_size=2)
    )
    assert endless.cardinality().numpy() == tf.data.INFINITE_CARDINALITY


def test_a_dataset_is_an_element() -> None:
    pair = tf.data.Dataset.from_tensors((1, tf.data.Dataset.range(3)))
    assert [int(x) for x in pair.flat_map(lambda _, d: d)] == [0, 1, 2]
    with pytest.raises(TypeError, match="is not supported for datasets that"):
        pair.as_numpy_iterator()


class Noted:
    """A lock that says when a thread waits for it."""

    def __init__(self, lock, begun, waits):
        self.lock, self.begun, self.waits = lock, begun, waits

    def __enter__(self):
        self.waits.set() if self.begun.is_set() else None
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def test_threads_may_share_an_iterator():
    begun, waits = threading.Event(), threading.Event()

    def function(x):
        if int(x) == 1:
            begun.set()
            waits.wait(20)
        return x

    def second():
        begun.wait(20)
        try:
            return int(next(iterator))
        finally:
            waits.set()

    iterator = iter(Dataset.range(4).map(function))
    iterator._lock = Noted(threading.RLock(), begun, waits)
    assert int(next(iterator)) == 0
    assert run_in_threads(lambda: int(next(iterator)), second) == [1, 2]
    assert list(map(int, iterator)) == [3]
