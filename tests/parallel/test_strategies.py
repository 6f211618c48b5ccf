"""Strategies: the same result as one device on the whole batch; batches on their way to a mesh."""

from __future__ import annotations

import json
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from processes import jax_variables, run_processes

import jaxvars as jv
from jaxvars.errors import DeviceError, ShardingError
from jaxvars.parallel.strategies import (
    Batches,
    InputContext,
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    OneDeviceStrategy,
    ReduceOp,
    get_strategy,
    has_strategy,
)

P = jax.P
pytestmark = pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices: see conftest.py")


class Network(jv.Module):
    """An MLP with batch normalization over the whole batch."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.hidden = jv.Variable(rng.normal(size=(4, 16)).astype(np.float32) / 2)
        self.mean = jv.Variable(np.zeros(16, np.float32), trainable=False)
        self.out = jv.Variable(rng.normal(size=(16, 1)).astype(np.float32) / 4)

    def __call__(self, x):
        h = x @ self.hidden
        self.mean.assign(0.9 * self.mean + 0.1 * h.mean(0))
        return jnp.tanh(h - h.mean(0)) @ self.out


def dataset(count=5, size=16):
    rng = np.random.default_rng(1)
    for _ in range(count):
        x = rng.normal(size=(size, 4)).astype(np.float32)
        yield x, np.sin(x.sum(1, keepdims=True))


def train(strategy):
    with strategy.scope():
        network, optimizer = Network(), jv.optimizers.Adam(0.05)

    def step(x, y):
        with jv.GradientTape() as tape:
            errors = (network(x) - y)[:, 0] ** 2
            loss = errors.mean()
        variables = network.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss, errors

    results = []
    for batch in strategy.experimental_distribute_dataset(dataset()):
        loss, errors = strategy.run(step, args=batch)
        total = strategy.reduce(ReduceOp.SUM, errors, axis=0)
        results.append((float(strategy.reduce("mean", loss)), float(total)))
    return results, [*network.variables, *optimizer.variables], strategy._compiled(step)


@pytest.mark.usefixtures("empty_jit_cache")
def test_a_strategy_gives_the_same_result_as_one_device():
    expected, on_one, _ = train(OneDeviceStrategy("CPU:0"))
    strategy = MirroredStrategy()
    results, on_eight, step = train(strategy)
    np.testing.assert_allclose(results, expected, rtol=3e-6)
    for one, eight in zip(on_one, on_eight, strict=True):
        np.testing.assert_allclose(eight.numpy(), one.numpy(), atol=3e-6, err_msg=one.name)
        assert eight.sharding.device_set == set(jax.devices())
        assert one.sharding.device_set == {jax.devices()[0]}
    (entry,) = step._entries.values()
    assert (step.trace_count, entry._jitted._cache_size()) == (1, 1)
    with strategy.scope():
        assert "all-reduce" in entry.lower().compile().as_text()


def test_run_takes_methods_compiled_functions_and_keyword_arguments():
    class Counter(jv.Module):
        def __init__(self):
            self.count = jv.Variable(0.0)

        def add(self, x, times=1.0):
            self.count.assign_add(x.sum() * times)
            return self.count.value

        step = jv.compile(add)

    strategy = MirroredStrategy(["CPU:2", "CPU:5"])
    with strategy.scope():
        counter = Counter()
    assert counter.count.sharding.device_set == {jax.devices()[2], jax.devices()[5]}
    x = np.ones(4, np.float32)
    assert float(strategy.run(counter.add, (x,), {"times": 2.0})) == 8
    assert float(strategy.run(counter.add, (x,), {"times": 2.0})) == 16
    assert strategy._compiled(Counter.add).trace_count == 1
    assert float(strategy.run(counter.step, (x,))) == 20
    outer = jv.compile(lambda x: strategy.run(counter.add, (x,)))
    assert float(outer(x)) == 24
    apart = jax.device_put(x, jax.devices()[7])
    with pytest.raises(ShardingError, match=r"Argument x: CPU:7"):
        strategy.run(counter.add, (apart,))


def test_scopes_nest_and_end():
    outer, inner = MirroredStrategy(), OneDeviceStrategy("CPU:3")
    assert not has_strategy()
    assert isinstance(get_strategy(), OneDeviceStrategy)
    with outer.scope() as given:
        assert get_strategy() is given is outer
        with inner.scope():
            assert get_strategy() is inner
            assert jv.Variable(1.0).device == jax.devices()[3]
        assert get_strategy() is outer
        assert has_strategy()
    assert not has_strategy()
    assert jv.Variable(1.0).sharding == jnp.ones(()).sharding


def test_values_of_a_strategy():
    strategy = MirroredStrategy()
    assert strategy.num_replicas_in_sync == 8
    assert not strategy.is_multi_process
    assert repr(strategy) == "<MirroredStrategy on 8 devices>"
    (x,) = strategy.experimental_distribute_dataset([np.arange(16.0)])
    assert [part.tolist() for part in strategy.experimental_local_results(x)] == [
        [2.0 * i, 2.0 * i + 1] for i in range(8)
    ]
    assert strategy.experimental_local_results({"n": 3})[7] == {"n": 3}
    whole = strategy.gather({"x": x})["x"]
    assert whole.sharding.spec == P()
    assert float(strategy.reduce("SUM", x, axis=0)) == 120
    assert strategy.reduce(ReduceOp.MEAN, {"x": x}, axis=0)["x"] == 7.5
    assert strategy.reduce("mean", 4.0) == 4.0
    with pytest.raises(ValueError, match="'max' is not a valid ReduceOp"):
        strategy.reduce("max", x)


def test_tensorflows_reduce_op_is_understood():
    class Theirs:  # tf.distribute.ReduceOp.SUM.value is "SUM"
        value = "SUM"

    assert ReduceOp(Theirs()) is ReduceOp.SUM


def test_strategies_that_cannot_be():
    jv.config.set_soft_device_placement(False)
    try:
        with pytest.raises(DeviceError, match="no device 'CPU:99'"):
            MirroredStrategy(["CPU:99"])
    finally:
        jv.config.set_soft_device_placement(True)
    with pytest.raises(ValueError, match=r"no cluster_resolver: call jv.parallel.initialize"):
        MultiWorkerMirroredStrategy(cluster_resolver="tf_config")


def test_a_dataset_of_each_process():
    strategy = MultiWorkerMirroredStrategy()

    def make(context):
        assert context == InputContext(1, 0, 8)
        size = context.get_per_replica_batch_size(64) * strategy.num_replicas_in_sync
        return [np.ones((size, 2), np.float32)] * 3

    batches = list(strategy.distribute_datasets_from_function(make))
    assert [(x.shape, x.sharding.spec) for x in batches] == [((64, 2), P("data"))] * 3
    with pytest.raises(ValueError, match="A batch of 12 cannot be divided over 8 devices evenly"):
        InputContext(1, 0, 8).get_per_replica_batch_size(12)


# ---------------------------------------------------------------- batches
@pytest.fixture(scope="module")
def mesh():
    return jv.mesh({"data": 8})


def test_batches_are_sent_ahead_and_no_more(mesh):
    taken = []

    def source():
        for i in range(5):
            taken.append(i)
            yield {"x": np.full((8, 2), i), "y": np.full(8, i)}

    for i, batch in enumerate(Batches(source(), mesh=mesh, prefetch=2)):
        assert len(taken) == min(5, i + 3)
        assert {k: v.sharding.spec for k, v in batch.items()} == dict.fromkeys("xy", P("data"))
        assert batch["x"].dtype == jnp.int32
        assert int(batch["y"][0]) == i
    assert len(taken) == 5


@pytest.mark.parametrize("prefetch", [0, 1, 3, 9])
def test_batches_come_once_each_and_in_order(mesh, prefetch):
    source = [np.full(8, i) for i in range(4)]
    batches = Batches(source, P("data"), mesh=mesh, prefetch=prefetch)
    for _ in range(2):
        assert [int(x[0]) for x in batches] == [0, 1, 2, 3]
    assert len(batches) == 4


def test_batches_on_the_mesh_in_force(mesh):
    with jv.use_mesh(mesh):
        batches = Batches([np.ones((8, 4))], None)
    (x,) = batches
    assert x.sharding == NamedSharding(mesh, P())


def test_batches_that_cannot_be_sharded(mesh):
    ragged = [{"x": np.ones(8)}, {"x": np.ones(8)}, {"x": np.ones(5)}]
    batches = iter(Batches(ragged, mesh=mesh, prefetch=0))
    next(batches)
    next(batches)
    match = r"Batch 2 .*array\['x'\] of shape \(5,\) cannot be sharded(?s:.*)drop_remainder=True"
    with pytest.raises(ShardingError, match=match):
        next(batches)
    assert len(list(Batches(ragged, mesh=mesh, drop_remainder=True))) == 2
    with pytest.raises(ShardingError, match=r"not a multiple of the 8 devices"):
        list(Batches(ragged[2:], mesh=mesh, drop_remainder=True))
    with pytest.raises(ShardingError, match="no mesh in force"):
        list(Batches(ragged, P("data")))
    with pytest.raises(ShardingError, match="no mesh in force"):
        list(Batches(ragged, local=True))
    with pytest.raises(ValueError, match="prefetch is how many"):
        Batches(ragged, mesh=mesh, prefetch=-1)


# ---------------------------------------------------------------- processes
WORKER = """
import json
import jaxvars as jv
jv.parallel.initialize()
import jax, jax.numpy as jnp, numpy as np

strategy = jv.parallel.MultiWorkerMirroredStrategy()
with strategy.scope():
    w = jv.Variable(np.ones((4, 1), np.float32), name="w")
    optimizer = jv.optimizers.SGD(0.1, momentum=0.9)

def step(x):
    with jv.GradientTape() as tape:
        loss = jnp.mean((x @ w - 1) ** 2)
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
print("found", json.dumps([losses, np.asarray(w.value).tolist()]), flush=True)
"""


@pytest.mark.slow
def test_two_processes_give_the_same_result_as_one(tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    alone, both = (
        run_processes(tmp_path, jax_variables(n), "worker.py", devices=2).texts for n in (1, 2)
    )
    (expected,), *results = (
        [json.loads(found) for found in re.findall("found (.*)", text)] for text in (*alone, *both)
    )
    assert len(results) == 2
    for (result,) in results:
        for got, wanted in zip(result, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_two_functions_that_say_they_are_equal_are_two():
    class Scaled:
        def __init__(self, by: float) -> None:
            self.by = by

        def __call__(self, x: Any) -> Any:
            return x * self.by

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Scaled)

        def __hash__(self) -> int:
            return 1

    strategy = jv.parallel.OneDeviceStrategy()
    assert [float(strategy.run(Scaled(by), (1.0,))) for by in (2.0, 3.0)] == [2.0, 3.0]


# ---------------------------------------------------------------- batches that cannot be sent
@pytest.mark.parametrize("prefetch", [0, 1, 2, 9])
def test_batches_before_one_that_fails_arrive(prefetch):
    source = [*(np.full(8, i, np.float32) for i in range(5)), np.ones(3, np.float32)]
    mesh = jv.mesh({"data": 4})
    batches = iter(jv.parallel.Batches(source, mesh=mesh, prefetch=prefetch))
    assert [float(next(batches)[0]) for _ in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ShardingError):
        next(batches)
    batches = jv.parallel.Batches(source, mesh=mesh, prefetch=prefetch, drop_remainder=True)
    assert len(list(batches)) == 5
    with pytest.raises(TypeError, match="remainders are left out"):
        len(batches)


def test_batches_and_trees_with_nothing_in_a_place():
    mesh = jv.mesh({"data": 4})
    (batch,) = jv.parallel.Batches([(np.ones(4, np.float32), None)], mesh=mesh)
    assert (batch[0].shape, batch[1]) == ((4,), None)
    tree = {"a": np.ones(4), "b": None, "c": np.ones(3)}
    spread = jv.shard(tree, {"a": jax.P("data"), "b": None, "c": None}, mesh=mesh)
    assert (spread["a"].sharding.spec, spread["b"]) == (jax.P("data"), None)
