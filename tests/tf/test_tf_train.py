"""`tf.train`: checkpoints by TensorFlow's rules, managers, readers, averages."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
import jaxvars.tf as tf

VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Model(tf.Module):
    """Variables in many places, and one in three of them."""

    def __init__(self) -> None:
        super().__init__()
        self.vars = [tf.Variable(1.0), tf.Variable(2.0)]
        self.w = self.vars[0]
        self._p = tf.Variable(5.0)
        self.d = {"k": self.w, "a/b.c": tf.Variable(7)}
        self.n = 3
        self.t = (tf.Variable(8.0),)


class Late(tf.Module):
    """A module whose variables are made by its first call."""

    w: tf.Variable | None = None

    def __call__(self, x: Any) -> Any:
        if self.w is None:
            self.w = tf.Variable(tf.zeros([2]))
        return x * self.w


def keys(path: str) -> list[str]:
    return [key.removesuffix(VALUE) for key, _ in tf.train.list_variables(path)]


# ---------------------------------------------------------------- names
def test_names_are_the_shortest_ways(tmp_path: Path) -> None:
    model = Model()
    path = tf.train.Checkpoint(m=model, z=model).write(tmp_path / "c")
    assert keys(path) == [GRAPH, "m/_p", "m/d/a.Sb..c", "m/t/0", "m/vars/1", "m/w"]
    assert tf.train.Checkpoint(model).save(str(tmp_path / "r")) == str(tmp_path / "r-1")
    assert keys(str(tmp_path / "r-1"))[1:4] == ["_p", "d/a.Sb..c", "save_counter"]


def test_a_variable_can_be_the_root(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(tf.Variable(3.0)).write(tmp_path / "v")
    assert tf.train.list_variables(path) == [(VALUE, []), (GRAPH, [])]
    v = tf.Variable(0.0)
    tf.train.Checkpoint(v).read(path).assert_consumed()
    assert v.numpy() == 3


def test_what_holds_no_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="expecting a to be a trackable object"):
        tf.train.Checkpoint(a=1)
    with pytest.raises(ValueError, match="expecting root to be a trackable object"):
        tf.train.Checkpoint([tf.Variable(1)])
    for lost in enumerate(tf.data.Dataset.range(3)), iter([1, 2]), (x for x in [1, 2]):
        with pytest.raises(
            ValueError, match=r"rows to be .* iterator of Python's .* iter\(dataset\);"
        ):
            tf.train.Checkpoint(rows=lost)


# ---------------------------------------------------------------- restoring
def test_it_counts_and_returns_the_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    seen: list[str] = []
    options = tf.train.CheckpointOptions(experimental_write_callbacks=[seen.append])
    assert checkpoint.save("./run/ckpt", options) == "./run/ckpt-1" == seen[0]
    assert checkpoint.save("./run/ckpt") == "./run/ckpt-2"
    assert int(checkpoint.save_counter) == 2
    assert checkpoint.write("./run/plain") == "./run/plain"
    assert tf.train.latest_checkpoint("./run") == "./run/ckpt-2"
    state = tf.train.get_checkpoint_state("./run")
    assert state is not None
    assert state.all_model_checkpoint_paths == ["./run/ckpt-2"]  # no manager saved it


def test_a_part_of_a_model_and_delayed_values(tmp_path: Path) -> None:
    net, step = Model(), tf.Variable(4)
    path = tf.train.Checkpoint(net=net, step=step).save(tmp_path / "c")
    p = tf.Variable(0.0)
    root = tf.train.Checkpoint(net=tf.train.Checkpoint(_p=p))
    status = root.restore(path).assert_existing_objects_matched().assert_nontrivial_match()
    assert p.numpy() == 5.0
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)\.net"):
        status.assert_consumed()
    late = tf.Variable(0.0)
    assert late.numpy() == 0.0
    root.net.w = late
    assert late.numpy() == 1.0
    status.expect_partial()


def test_values_wait_as_long_as_the_objects(tmp_path: Path) -> None:
    first = Late()
    first(tf.ones([2]))
    assert first.w is not None
    first.w.assign([3.0, 4.0])
    path = tf.train.Checkpoint(net=first).save(tmp_path / "c")
    second = Late()
    tf.train.Checkpoint(net=second).restore(path)
    gc.collect()
    np.testing.assert_array_equal(tf.function(second)(tf.ones([2])).numpy(), [3, 4])


def test_optimizers_and_generators(tmp_path: Path) -> None:
    g, v = tf.random.Generator.from_seed(3), tf.Variable([1.0], name="v")
    adam = tf.keras.optimizers.Adam(0.1)
    adam.apply_gradients([(tf.ones([1]), v)])
    path = tf.train.Checkpoint(v=v, opt=adam, g=g).save(tmp_path / "c")
    state = ["opt/_iterations", "opt/_learning_rate", "opt/_variables/2", "opt/_variables/3"]
    assert [key for key in keys(path) if key.startswith("opt")] == state  # TensorFlow's
    drawn = g.normal([2]).numpy()
    adam.apply_gradients([(tf.ones([1]), v)])
    w, other = tf.Variable([0.0], name="w"), tf.keras.optimizers.Adam(0.5)
    h = tf.random.Generator.from_seed(4)
    status = tf.train.Checkpoint(v=w, opt=other, g=h).restore(path)
    np.testing.assert_array_equal(h.normal([2]).numpy(), drawn)
    other.apply_gradients([(tf.ones([1]), w)])  # makes the slots, of a variable of another name
    np.testing.assert_array_equal(w.numpy(), v.numpy())
    status.assert_consumed()


# ---------------------------------------------------------------- what goes wrong
def test_slots_go_to_their_variables_in_any_order(tmp_path: Path) -> None:
    def made(order: str) -> tuple[tf.Module, list[tf.Variable], tf.keras.optimizers.SGD]:
        model = tf.Module()
        for name in order:
            setattr(model, name, tf.Variable(tf.zeros([2])))
        weights = [getattr(model, name) for name in order]
        return model, weights, tf.keras.optimizers.SGD(1.0, momentum=0.5)

    first, (a, b), ours = made("ab")
    ours.apply_gradients([(tf.ones([2]), a), (2 * tf.ones([2]), b)])
    path = tf.train.Checkpoint(model=first, opt=ours).save(tmp_path / "c")
    second, weights, theirs = made("ba")
    status = tf.train.Checkpoint(model=second, opt=theirs).restore(path)
    theirs.build(weights)
    status.assert_consumed()
    theirs.apply_gradients([(tf.zeros([2]), weight) for weight in weights])
    assert [w.numpy()[0] for w in weights] == [-3.0, -1.5]
    with pytest.raises(ValueError, match="slots for several variables of one name"):
        tf.train.Checkpoint(opt=ours).save(tmp_path / "d")


def test_averages_go_to_their_variables_in_any_order(tmp_path: Path) -> None:
    def made(order: str) -> tuple[tf.Module, tf.train.ExponentialMovingAverage]:
        model, average = tf.Module(), tf.train.ExponentialMovingAverage(0.9)
        for name in order:
            setattr(model, name, tf.Variable(float(ord(name))))
        average.apply([getattr(model, name) for name in order])
        return model, average

    first, ours = made("ab")
    path = tf.train.Checkpoint(model=first, ema=ours).save(tmp_path / "c")
    second, theirs = made("ba")
    for variable in second.variables:
        theirs.average(variable).assign(0.0)
    tf.train.Checkpoint(model=second, ema=theirs).restore(path).assert_consumed()
    assert [theirs.average(getattr(second, name)).numpy() for name in "ab"] == [97.0, 98.0]


@pytest.mark.parametrize("lost", [{"w": tf.ones([3])}, [{"w": jnp.ones(3)}], [np.ones(3)]])
def test_tensors_that_would_be_lost_are_refused(tmp_path: Path, lost: Any) -> None:
    checkpoint = tf.train.Checkpoint(lost=lost, v=tf.Variable(1.0))
    with pytest.raises(ValueError, match=r"expecting lost to hold variables.*lost\.(w|0)"):
        checkpoint.save(tmp_path / "c")
    assert int(checkpoint.save_counter.numpy()) == 0


def test_errors_are_those_of_tensorflow(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), b=tf.Variable(3)).save(tmp_path / "c")
    other = tf.Variable([9.0])
    with pytest.raises(ValueError, match=r"with shape \(2,\) when .* with shape \(1,\)"):
        tf.train.Checkpoint(a=other).restore(path)
    assert other.numpy() == 9.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype int64 does not equal"):
        tf.train.Checkpoint(b=tf.Variable(3, dtype=tf.int64)).restore(path)
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files"):
        tf.train.Checkpoint().restore(tmp_path / "none")
    more = tf.train.Checkpoint(a=tf.Variable([0.0, 0.0]), b=tf.Variable(0), c=tf.Variable(1.0))
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
        more.restore(path).assert_consumed()


def test_nothing_is_restored_from_none() -> None:
    status = tf.train.Checkpoint(a=tf.Variable(1.0)).restore(None).expect_partial()
    with pytest.raises(AssertionError, match="nothing is being restored"):
        status.assert_consumed()


def test_damage_is_found(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(a=tf.Variable(tf.ones([64]))).save(tmp_path / "c")
    file = Path(f"{path}.npz")
    data = bytearray(file.read_bytes())
    place = data.find(np.ones(64, np.float32).tobytes())
    data[place + 5] ^= 1
    file.write_bytes(bytes(data))
    v = tf.Variable(tf.zeros([64]))
    with pytest.raises(tf.errors.DataLossError, match="a: corrupt"):
        tf.train.Checkpoint(a=v).restore(path)
    assert not v.numpy().any()


# ---------------------------------------------------------------- both doors
def test_the_core_reads_what_is_written_here_and_the_other_way(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(tmp_path / "c")
    w = jv.Variable(np.zeros(2, np.float32))
    jv.checkpoint.Checkpoint(v=w).restore(f"{path}.npz").expect_partial()
    np.testing.assert_array_equal(w, [1, 2])
    folder = jv.checkpoint.Checkpoint(m={"v": w}).save(tmp_path / "core.npz")
    v = tf.Variable([0.0, 0.0])
    tf.train.Checkpoint(m={"v": v}).restore(folder).assert_consumed()
    np.testing.assert_array_equal(v.numpy(), [1, 2])


# ---------------------------------------------------------------- readers and views
def test_the_reader(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(a=tf.Variable([1.0, 2.0]), s=tf.Variable("text"))
    path = checkpoint.save(tmp_path / "c")
    reader = tf.train.load_checkpoint(str(tmp_path))
    assert reader.get_variable_to_shape_map()[f"a{VALUE}"] == [2]
    dtypes = reader.get_variable_to_dtype_map()
    assert dtypes[f"s{VALUE}"] == tf.string
    assert dtypes[f"save_counter{VALUE}"] == tf.int64
    assert reader.has_tensor(f"a{VALUE}")
    assert not reader.has_tensor("a")
    assert reader.get_tensor(f"s{VALUE}") == b"text"
    np.testing.assert_array_equal(tf.train.load_variable(path, f"a{VALUE}"), [1, 2])
    with pytest.raises(tf.errors.NotFoundError, match="Key a not found in checkpoint"):
        reader.get_tensor("a")
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching"):
        tf.train.load_checkpoint(str(tmp_path / "none"))


def test_views(tmp_path: Path) -> None:
    model = Model()
    view = tf.train.CheckpointView(tf.train.Checkpoint(m=model, z=model).write(tmp_path / "c"))
    assert view.children(0) == {"m": 1, "z": 1}
    assert set(view.children(1)) == {"vars", "w", "_p", "d", "t"}
    assert view.match(tf.train.Checkpoint(z=model))[1] is model
    assert view.diff(tf.train.Checkpoint(z=model)) == ([], [])
    assert set(tf.train.TrackableView(model).children(model)) == {"vars", "w", "_p", "d", "t"}
    assert tf.train.TrackableView(model).descendants()[0] is model


# ---------------------------------------------------------------- managers
def test_a_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    v, begun = tf.Variable(0.0), []
    checkpoint = tf.train.Checkpoint(v=v)
    manager = tf.train.CheckpointManager(
        checkpoint, "./m", max_to_keep=2, init_fn=lambda: begun.append(1)
    )
    assert manager.restore_or_initialize() is None
    assert begun == [1]
    for i in range(3):
        v.assign(float(i))
        assert manager.save() == f"./m/ckpt-{i + 1}"
    assert manager.checkpoints == ["./m/ckpt-2", "./m/ckpt-3"]
    assert manager.save(checkpoint_number=tf.constant(7)) == "./m/ckpt-7"
    v.assign(100.0)
    assert manager.restore_or_initialize() == manager.latest_checkpoint == "./m/ckpt-7"
    assert v.numpy() == 2.0
    assert tf.train.latest_checkpoint("./m") == "./m/ckpt-7"


def test_a_manager_calls_back(tmp_path: Path) -> None:
    seen: list[str] = []
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), tmp_path, 1)
    options = tf.train.CheckpointOptions(experimental_write_callbacks=[seen.append])
    assert [manager.save(options=options), manager.save()][:1] == seen


def test_a_manager_waits_for_its_interval(tmp_path: Path) -> None:
    step = tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(step=step), tmp_path, 3, step_counter=step, checkpoint_interval=2
    )
    saved = []
    for _ in range(4):
        step.assign_add(1)
        saved.append(manager.save() is not None)
    assert saved == [True, False, True, False]
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), tmp_path, 1, checkpoint_interval=2)
    with pytest.raises(ValueError, match="Expected a positive integer or `None`"):
        tf.train.CheckpointManager(tf.train.Checkpoint(), tmp_path, 0)


# ---------------------------------------------------------------- averages
@pytest.mark.parametrize(("updates", "value"), [(None, 1.2), (3, 2.3846154)])
def test_a_moving_average(updates: int | None, value: float) -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    average = tf.train.ExponentialMovingAverage(0.9, num_updates=updates)
    average.apply([v])
    v.assign([3.0, 4.0])
    average.apply([v])
    np.testing.assert_allclose(average.average(v).numpy(), [value, value + 1], rtol=1e-6)
    assert average.average_name(v) == "v/ExponentialMovingAverage"
    assert average.average(tf.Variable(1.0)) is None
    with pytest.raises(TypeError, match="does not support non-Variable tensors"):
        average.apply([tf.constant([1.0])])
    with pytest.raises(TypeError, match="must be half, float, or double"):
        average.apply([tf.Variable(1)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("updates", [None, 100_000])
def test_a_moving_average_moves_in_any_dtype(dtype: str, updates: int | None) -> None:
    v = tf.Variable(0.0, dtype=dtype)
    average = tf.train.ExponentialMovingAverage(0.999, num_updates=updates)
    average.apply([v])
    v.assign(tf.cast(1.0, dtype))
    average.apply([v])
    np.testing.assert_allclose(float(average.average(v)), 0.001, rtol=0.004)


def test_metrics_that_data_builds_are_built(tmp_path: Path) -> None:
    metric, again = tf.keras.metrics.F1Score(), tf.keras.metrics.F1Score()
    metric.update_state([[1.0, 0.0], [0.0, 1.0]], [[0.9, 0.1], [0.7, 0.8]])
    path = tf.train.Checkpoint(metrics=[metric]).save(tmp_path / "c")
    tf.train.Checkpoint(metrics=[again]).restore(path).assert_consumed()
    assert np.array_equal(again.result(), metric.result())
