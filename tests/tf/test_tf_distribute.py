"""`tf.distribute`: what strategies return: that of one device on the whole batch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from processes import jax_variables, run_processes

import jaxvars as jv
import jaxvars.tf as tf
from jaxvars.errors import DeviceError, ShardingError
from jaxvars.tf.distribute import ReduceOp, cluster

P = jax.P
eight = pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices: see conftest.py")


def _strategies() -> list[Any]:
    some = tf.distribute
    return [
        some.get_strategy(), some.OneDeviceStrategy("/cpu:0"), some.MirroredStrategy(["/cpu:0"]),
        some.experimental.CentralStorageStrategy(["/cpu:0"], "/cpu:0"),
    ]  # fmt: skip


def test_a_list_is_reduced_as_one_tensor() -> None:
    for strategy in _strategies():
        assert strategy.reduce("SUM", [1.0, 2.0], axis=0).numpy() == 3
        rows = [tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])]
        np.testing.assert_array_equal(strategy.reduce("MEAN", rows, axis=0), [2, 3])
        np.testing.assert_array_equal(strategy.reduce("SUM", tuple(rows), axis=1), [3, 7])
        with pytest.raises(ValueError, match="axis 0 is out of bounds"):
            strategy.reduce("SUM", 1.0, axis=0)
        with pytest.raises(ValueError, match="PRODUCT"):
            strategy.reduce("PRODUCT", 1.0, axis=None)


def test_there_is_nothing_to_reduce_on_one_device() -> None:
    for strategy in _strategies()[:2]:
        for value in (1.0, None, [1.0], {"a": 2}, tf.constant(3.0)):
            assert strategy.reduce("SUM", value, axis=None) is value
    for strategy in _strategies()[2:]:
        assert strategy.reduce("SUM", {"a": 2}, axis=None)["a"].dtype == tf.int32


def test_variables_of_one_device_are_those_of_all() -> None:
    strategy = tf.distribute.experimental.CentralStorageStrategy()
    with strategy.scope():
        v = tf.Variable(2.0)
    assert strategy.num_replicas_in_sync == tf.distribute.MirroredStrategy().num_replicas_in_sync

    @tf.function
    def step(x: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(lambda x: x * v, args=(x,)), axis=None)

    assert step(tf.constant(3.0)).numpy() == 6


# ---------------------------------------------------------------- training
class Network(tf.Module):
    """An MLP with batch normalization over the whole batch."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.hidden = tf.Variable(rng.normal(size=(4, 16)).astype(np.float32) / 2)
        self.mean = tf.Variable(np.zeros(16, np.float32), trainable=False)
        self.out = tf.Variable(rng.normal(size=(16, 1)).astype(np.float32) / 4)

    def __call__(self, x: Any) -> Any:
        h = x @ self.hidden
        mean = tf.reduce_mean(h, axis=0)
        self.mean.assign(0.9 * self.mean + 0.1 * mean)
        return tf.tanh(h - mean) @ self.out


def _dataset() -> Iterator[Any]:
    rng = np.random.default_rng(1)
    for _ in range(5):
        x = rng.normal(size=(16, 4)).astype(np.float32)
        yield x, np.sin(x.sum(1, keepdims=True))


def _train(strategy: Any) -> tuple[Any, Any, Any, Any]:
    with strategy.scope():
        network, optimizer = Network(), tf.keras.optimizers.Adam(0.05)
        optimizer.build(network.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            errors = (network(x) - y)[:, 0] ** 2
            loss = tf.reduce_mean(errors)
        variables = network.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss, errors

    results, batch = list[Any](), None
    for batch in strategy.experimental_distribute_dataset(_dataset()):
        loss, errors = strategy.run(step, args=batch)
        total = strategy.reduce(ReduceOp.SUM, errors, axis=0)
        results.append((float(strategy.reduce("mean", loss)), float(total)))
    return results, [*network.variables, *optimizer.variables], strategy._compiled(step), batch


@eight
def test_a_strategy_gives_the_same_result_as_one_device() -> None:
    expected, on_one, _, _ = _train(tf.distribute.OneDeviceStrategy("CPU:0"))
    strategy = tf.distribute.MirroredStrategy()
    results, on_eight, step, batch = _train(strategy)
    np.testing.assert_allclose(results, expected, rtol=3e-6)
    for one, eight in zip(on_one, on_eight, strict=True):
        np.testing.assert_allclose(eight.numpy(), one.numpy(), atol=3e-6, err_msg=one.name)
        assert eight.aliased.value.sharding.device_set == set(jax.devices())
        assert one.aliased.value.sharding.device_set == {jax.devices()[0]}
    whole = [tf.constant(x.numpy()) for x in batch]
    with strategy.scope():
        programs = [
            step.experimental_get_compiler_ir(*x)("optimized_hlo") for x in (whole, batch, whole)
        ]
    assert ["all-reduce" in program for program in programs] == [False, True, False]
    assert step.experimental_get_tracing_count() == 1


@eight
def test_run_takes_methods_compiled_functions_and_keyword_arguments() -> None:
    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = tf.Variable(0.0)

        def add(self, x: Any, times: float = 1.0) -> Any:
            self.count.assign_add(tf.reduce_sum(x) * times)
            return self.count.read_value()

        step = tf.function(add)

    strategy = tf.distribute.MirroredStrategy(["CPU:2", "CPU:5"])
    with strategy.scope():
        counter = Counter()
    placed = counter.count.aliased.value.sharding.device_set
    assert placed == {jax.devices()[2], jax.devices()[5]}
    x = np.ones(4, np.float32)
    assert float(strategy.run(counter.add, (x,), {"times": 2.0})) == 8
    assert float(strategy.run(counter.add, (x,), {"times": 2.0})) == 16
    assert strategy._compiled(Counter.add).experimental_get_tracing_count() == 1
    assert float(strategy.run(counter.step, (x,))) == 20
    outer = tf.function(lambda x: strategy.run(counter.add, (x,)))
    assert float(outer(x)) == 24
    apart = jax.device_put(x, jax.devices()[7])
    with pytest.raises(ShardingError, match=r"Argument x: CPU:7"):
        strategy.run(counter.add, (apart,))


def test_two_functions_that_say_they_are_equal_are_two() -> None:
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        def __call__(self, x: Any) -> Any:
            return x * self.by

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Scaled)

        def __hash__(self) -> int:
            return 1

    strategy = tf.distribute.OneDeviceStrategy()
    assert [float(strategy.run(Scaled(by), (1.0,))) for by in (2.0, 3.0)] == [2.0, 3.0]


# ---------------------------------------------------------------- scopes and values
@eight
def test_scopes_nest_and_end() -> None:
    distribute = tf.distribute
    outer, inner = distribute.MirroredStrategy(), distribute.OneDeviceStrategy("CPU:3")
    assert not distribute.has_strategy()
    assert isinstance(distribute.get_strategy(), distribute.OneDeviceStrategy)
    with outer.scope() as given:
        assert distribute.get_strategy() is given is outer
        with inner.scope():
            assert distribute.get_strategy() is inner
            assert jv.Variable(1.0).device == jax.devices()[3]
        assert distribute.get_strategy() is outer
        assert distribute.has_strategy()
        assert jv.Variable(1.0).sharding.mesh == outer.mesh
    assert not distribute.has_strategy()
    assert jv.Variable(1.0).sharding == jax.numpy.ones(()).sharding


@eight
def test_values_of_a_strategy() -> None:
    strategy = tf.distribute.MirroredStrategy()
    assert strategy.num_replicas_in_sync == 8
    assert repr(strategy) == "<MirroredStrategy on 8 devices>"
    (x,) = strategy.experimental_distribute_dataset([np.arange(16.0, dtype=np.float32)])
    assert [part.numpy().tolist() for part in strategy.experimental_local_results(x)] == [
        [2.0 * i, 2.0 * i + 1] for i in range(8)
    ]
    assert strategy.experimental_local_results({"n": 3})[7]["n"].numpy() == 3
    whole = strategy.gather({"x": x})["x"]
    assert whole._array.sharding.spec == P()
    assert float(strategy.reduce("SUM", x, axis=0)) == 120
    assert float(strategy.reduce(ReduceOp.MEAN, x, axis=0)) == 7.5
    assert float(strategy.reduce("mean", 4.0)) == 4.0
    with pytest.raises(ValueError, match="'max' is not a valid ReduceOp"):
        strategy.reduce("max", x)


@eight
def test_an_iterator_over_batches_for_several_devices() -> None:
    strategy = tf.distribute.MirroredStrategy()
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.range(24).batch(8))

    def total(batches: Any) -> Any:
        found = tf.constant(0, tf.int64)
        for x in batches:
            found += tf.reduce_sum(x)
        return found

    iterator = iter(data)
    assert [int(x) for x in (iterator.get_next()[1], next(iterator)[1])] == [1, 9]
    refused = pytest.raises(tf.errors.InvalidArgumentError, match="Write `for x in dataset:` in it")
    for take in (next, total, lambda x: x.get_next(), lambda x: x.get_next_as_optional()):
        with refused:  # TensorFlow takes the next batch
            tf.function(take)(iterator)
    with refused:
        tf.function(lambda: next(iter(data)))()
    assert (int(total(iterator)), int(tf.function(total)(data))) == (156, 276)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        iterator.get_next()


def test_tensorflows_reduce_op_is_understood() -> None:
    class Theirs:  # tf.distribute.ReduceOp.SUM.value is "SUM"
        value = "SUM"

    assert ReduceOp(Theirs()) is ReduceOp.SUM


def test_strategies_that_cannot_be() -> None:
    jv.config.set_soft_device_placement(False)
    try:
        with pytest.raises(DeviceError, match="Device 'CPU:99' does not exist"):
            tf.distribute.MirroredStrategy(["CPU:99"])
    finally:
        jv.config.set_soft_device_placement(True)
    with pytest.raises(
        ValueError, match=r"cluster_resolver must be None: call jaxvars.parallel.initialize"
    ):
        tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver="tf_config")


@eight
def test_a_dataset_of_each_process() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def make(context: Any) -> Any:
        assert context == tf.distribute.InputContext(1, 0, 8)
        size = context.get_per_replica_batch_size(64) * strategy.num_replicas_in_sync
        return [np.ones((size, 2), np.float32)] * 3

    batches = [x._array for x in strategy.distribute_datasets_from_function(make)]
    assert [(x.shape, x.sharding.spec) for x in batches] == [((64, 2), P("data"))] * 3
    with pytest.raises(ValueError, match="A batch of 12 cannot be divided over 8 devices evenly"):
        tf.distribute.InputContext(1, 0, 8).get_per_replica_batch_size(12)


# ---------------------------------------------------------------- processes
WORKER = """
import json, os
import jaxvars as jv
if "TF_CONFIG" not in os.environ:
    jv.parallel.initialize()
import jaxvars.tf as tf
import numpy as np

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    w = tf.Variable(np.ones((4, 1), np.float32))
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)

def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w - 1) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    return loss

data = [np.random.default_rng(i).normal(size=(16, 4)).astype(np.float32) for i in range(3)]
losses = []
for x in strategy.experimental_distribute_dataset(data):
    losses.append(float(strategy.run(step, (x,))))

def mine(context):
    n = 16 // context.num_input_pipelines
    return [x[context.input_pipeline_id * n :][:n] for x in data]

for x in strategy.distribute_datasets_from_function(mine):
    losses.append(float(strategy.run(step, (x,))))
print("found", json.dumps([losses, w.numpy().tolist()]), flush=True)
"""


def _tf_config(count: int) -> list[dict[str, str]]:
    """TF_CONFIG for each of several workers."""
    port = 40000 + os.getpid() % 10000
    workers = [f"localhost:{port + number}" for number in range(count)]
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": n}}
            )
        }
        for n in range(count)
    ]


def test_numbers_of_tf_config(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = list[Any]()
    monkeypatch.setattr(cluster, "initialize", lambda *given: joined.append(given))
    both = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}
    for config in (
        {"cluster": both, "task": {"type": "chief", "index": 0}},
        {"cluster": both, "task": {"type": "worker", "index": 1}},
        {"cluster": both, "task": {"type": "evaluator", "index": 0}},
        {"cluster": {"worker": ["b:1"]}, "task": {"type": "worker", "index": 0}},
    ):
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
        cluster.join_cluster()
    assert joined == [("a:1", 3, 0), ("a:1", 3, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("variables", [jax_variables, _tf_config])
def test_two_processes_give_the_same_result_as_one(tmp_path: Path, variables: Any) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    alone, both = (
        run_processes(tmp_path, variables(n), "worker.py", devices=2).texts for n in (1, 2)
    )
    (expected,), *results = (
        [json.loads(found) for found in re.findall("found (.*)", text)] for text in (*alone, *both)
    )
    assert len(results) == 2
    for (result,) in results:
        for got, wanted in zip(result, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


# ---------------------------------------------------------------- generators
@eight
def test_a_generator_made_in_a_step_is_new_in_each() -> None:
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])

    def step() -> Any:
        generator = tf.random.Generator.from_seed(1)
        return tf.stack([generator.normal([]), generator.normal([])])

    with strategy.scope():
        for _ in range(2):
            np.testing.assert_allclose(strategy.run(step), [0.43842274, 1.6272374], rtol=1e-6)
    with pytest.raises(ValueError, match=r"only supports singleton tf\.Variables"):
        strategy.run(tf.function(step))


@eight
def test_a_generator_is_saved_in_a_scope(tmp_path: Path) -> None:
    class Draws(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.generator = tf.random.Generator.from_seed(0)

        @tf.function
        def __call__(self) -> Any:
            return self.generator.normal([])

    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    with strategy.scope():
        draws = Draws()
        strategy.run(draws)
        tf.saved_model.save(draws, str(tmp_path))  # it was refused, as a program for two devices
        found = [float(strategy.run(draws)) for _ in range(2)]
    loaded = tf.saved_model.load(str(tmp_path))
    assert [float(loaded()), float(loaded())] == found


@eight
def test_a_generator_is_restored_to_another_number_of_devices(tmp_path: Path) -> None:
    three, two = (tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(n)]) for n in (3, 2))
    with three.scope():
        generator = tf.random.Generator.from_seed(1)
        checkpoint = tf.train.Checkpoint(generator=generator)
        three.run(lambda: generator.normal([]))
        checkpoint.write(str(tmp_path / "state"))
        after = float(three.run(lambda: generator.normal([])))
    with two.scope():
        other = tf.random.Generator.from_seed(7)
        tf.train.Checkpoint(generator=other).restore(str(tmp_path / "state"))
        assert float(two.run(lambda: other.normal([]))) == after
    alone = tf.random.Generator.from_seed(7)
    tf.train.Checkpoint(generator=alone).restore(str(tmp_path / "state"))
    assert float(alone.normal([])) == after
