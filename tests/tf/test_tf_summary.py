"""`tf.summary`, `tf.profiler` and `tf.distribute`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxvars.tf as tf


def events(folder: Path) -> dict[str, list[tuple[int, Any]]]:
    """Return what is in the event files: steps and summaries by tag."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, list[tuple[int, Any]]] = {}
    for file in sorted(folder.glob("events*")):
        for data in records(file.read_bytes()):
            event = Event.FromString(data)
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value))
    return found


def records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        yield data[at + 12 : at + 12 + size]
        at += 16 + size


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Any]:
    made = tf.summary.create_file_writer(str(tmp_path), flush_millis=10_000, filename_suffix=".x")
    yield made
    made.close()


# ---------------------------------------------------------------- the callback of Keras
def fit_with_callback(folder: Path, optimizer: Any, **options: Any) -> dict[str, list[float]]:
    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile(optimizer, "mse", metrics=["mae"])
    x, y = np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)
    callback = tf.keras.callbacks.TensorBoard(folder, **options)
    assert isinstance(callback, tf.keras.callbacks.Callback)
    given = {"batch_size": 4, "epochs": 2, "validation_data": (x, y), "verbose": 0}
    history: Any = model.fit(x, y, callbacks=[callback], **given)
    return history.history


@pytest.mark.usefixtures("keras_on_jax")
def test_a_callback_writes_losses_metrics_and_rates(tmp_path: Path) -> None:
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
    history = fit_with_callback(tmp_path, tf.keras.optimizers.SGD(rate))
    parts = {name: events(tmp_path / name) for name in ("train", "validation")}
    for part, key, tag in (
        ("train", "loss", "epoch_loss"),
        ("train", "mae", "epoch_mae"),
        ("validation", "val_loss", "epoch_loss"),
    ):
        written = [(step, x.simple_value) for step, x in parts[part][tag]]
        assert written == [(i, pytest.approx(x)) for i, x in enumerate(history[key])]
    rates = [x.simple_value for _, x in parts["train"]["epoch_learning_rate"]]
    assert rates == [0.125, 0.03125]
    assert set(parts["train"]) == {"epoch_loss", "epoch_mae", "epoch_learning_rate"}
    ends = parts["validation"]["evaluation_loss_vs_iterations"]
    assert [step for step, _ in ends] == [2, 4]


@pytest.mark.usefixtures("keras_on_jax")
def test_a_callback_writes_batches_and_weights(tmp_path: Path) -> None:
    options = {"update_freq": "batch", "histogram_freq": 1, "write_images": True}
    fit_with_callback(tmp_path, "adam", write_steps_per_second=True, **options)
    found = events(tmp_path / "train")
    assert [step for step, _ in found["batch_loss"]] == [1, 2, 3, 4]
    assert [step for step, _ in found["epoch_steps_per_second"]] == [0, 1]
    weights = sorted(tag.split("/", 1)[1] for tag in found if "/" in tag)
    assert [tag.rsplit("/", 2)[-2:] for tag in weights[:4]] == [
        ["bias", "histogram"], ["bias", "image"], ["kernel", "histogram"], ["kernel", "image"],
    ]  # fmt: skip


# ---------------------------------------------------------------- summaries
def test_tensors_and_variables_are_written(writer: Any, tmp_path: Path) -> None:
    v = tf.Variable(0.25)
    with writer.as_default(step=3):
        assert tf.summary.scalar("loss", tf.constant(0.5))
        assert tf.summary.scalar("loss", v, step=tf.constant(4, tf.int64))
        with tf.name_scope("inner"):
            tf.summary.histogram("h", tf.constant([1.0, 2.0, 3.0]))
        tf.summary.image("i", tf.zeros([1, 2, 2, 3]))
        tf.summary.text("t", tf.constant("**words**"))
    writer.flush()
    found = events(tmp_path)
    assert [(step, x.simple_value) for step, x in found["loss"]] == [(3, 0.5), (4, 0.25)]
    assert found["inner/h"][0][1].histo.num == 3
    assert found["i"][0][1].image.height == 2
    assert any(tag.startswith("t") for tag in found)


def test_a_compiled_function_writes_each_time(writer: Any, tmp_path: Path) -> None:
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def train(x: Any) -> Any:
        step.assign_add(1)
        with tf.summary.record_if(tf.equal(step % 2, 0)):
            tf.summary.scalar("x", x, step=step)
        return x

    with writer.as_default():
        for i in range(4):
            train(tf.constant(float(i)))
        writer.flush()
    assert [(s, x.simple_value) for s, x in events(tmp_path)["x"]] == [(2, 1.0), (4, 3.0)]


def test_the_default_step(writer: Any, tmp_path: Path) -> None:
    step = tf.Variable(7)
    tf.summary.experimental.set_step(step)
    try:
        assert tf.summary.experimental.get_step() is step
        with writer.as_default():
            tf.summary.scalar("a", 1.0)
            step.assign(8)
            tf.summary.scalar("a", 2.0)
    finally:
        tf.summary.experimental.set_step(None)
    tf.summary.flush(writer)
    assert [s for s, _ in events(tmp_path)["a"]] == [7, 8]


def test_without_a_writer_or_a_step(writer: Any) -> None:
    assert not tf.summary.scalar("a", 1.0, step=1)
    assert not tf.summary.should_record_summaries()
    with writer.as_default():
        assert tf.summary.should_record_summaries()
        with pytest.raises(ValueError, match="step"):
            tf.summary.scalar("a", 1.0)
        with pytest.raises(ValueError, match="shape"):
            tf.summary.scalar("a", tf.ones([2]), step=1)


# ---------------------------------------------------------------- traces
def test_traces(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Must enable trace before export"):
        tf.summary.trace_export("f", step=0)
    with pytest.raises(ValueError, match="profiler_outdir="):
        tf.summary.trace_on(profiler=True)
    tf.summary.trace_on(graph=True)
    tf.summary.trace_export("f", step=0)
    with pytest.raises(tf.errors.UnavailableError, match="No profiler is running"):
        tf.profiler.experimental.stop()
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=1)
    with tf.profiler.experimental.Profile(str(tmp_path), options):
        with tf.profiler.experimental.Trace("step", step_num=tf.constant(1), _r=1):
            tf.reduce_sum(tf.ones([2])).numpy()
        with pytest.raises(tf.errors.AlreadyExistsError, match="Another profiler is running"):
            tf.profiler.experimental.start(str(tmp_path))
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'graph'"):
        tf.summary.graph  # noqa: B018 - it raises
    with pytest.raises(AttributeError, match="MirroredStrategy runs on all devices"):
        tf.distribute.ParameterServerStrategy  # noqa: B018 - it raises


# ---------------------------------------------------------------- strategies


def test_outside_of_all_scopes() -> None:
    assert not tf.distribute.has_strategy()
    assert tf.distribute.get_strategy().num_replicas_in_sync == 1
    context = tf.distribute.get_replica_context()
    assert context is not None
    assert context.replica_id_in_sync_group == 0
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        assert tf.distribute.has_strategy()
        assert tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None


def test_sound(tmp_path: Path) -> None:
    import io
    import wave

    clips = np.linspace(-1.5, 1.5, 24, dtype=np.float32).reshape(3, 4, 2)
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        assert tf.summary.audio("beep", tf.constant(clips), 8000, step=3, max_outputs=2)
        with pytest.raises(ValueError, match="Unknown encoding: 'mp3'"):
            tf.summary.audio("beep", clips, 8000, step=3, encoding="mp3")
        with pytest.raises(ValueError, match=r"has shape \[clips, frames, channels\], not \[4\]"):
            tf.summary.audio("beep", np.zeros(4), 8000, step=3)
    writer.close()
    found = events(tmp_path)
    assert [(tag, step) for tag in ("beep/0", "beep/1") for step, _ in found[tag]] == [
        ("beep/0", 3), ("beep/1", 3),
    ]  # fmt: skip
    sound = found["beep/0"][0][1].audio
    assert (sound.sample_rate, sound.num_channels, sound.length_frames) == (8000, 2, 4)
    with wave.open(io.BytesIO(sound.encoded_audio_string)) as file:
        whole = np.frombuffer(file.readframes(4), "<i2").reshape(4, 2)
    wanted = np.round(np.clip(clips[0], -1, 1) * 32767)
    np.testing.assert_array_equal(whole, wanted)


# ---------------------------------------------------------------- strategies
def test_losses_are_averaged_over_the_global_batch() -> None:
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.HierarchicalCopyAllReduce(num_packs=1)
    )
    values = tf.constant([1.0, 2.0, 3.0, 6.0])

    def step(x: Any) -> Any:
        context = tf.distribute.get_replica_context()
        assert context.num_replicas_in_sync == strategy.num_replicas_in_sync == 2
        return (
            tf.nn.compute_average_loss(x, global_batch_size=4),
            tf.nn.compute_average_loss(x),
            tf.nn.scale_regularization_loss(tf.constant(5.0)),
            context.all_reduce("sum", tf.reduce_sum(x)),
        )

    for batch in strategy.experimental_distribute_dataset([values]):
        losses = strategy.run(step, args=(batch,), options=tf.distribute.RunOptions())
        total = [strategy.reduce("SUM", loss, axis=None).numpy() for loss in losses]
        assert total == [3.0, 3.0, 5.0, 12.0]  # as TensorFlow's sum over its replicas
    with pytest.raises(NotImplementedError, match="no values for each"):
        strategy.experimental_distribute_values_from_function(lambda context: 1)


def test_a_strategy_that_is_set() -> None:
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    tf.distribute.experimental_set_strategy(strategy)
    try:
        assert tf.distribute.get_strategy() is strategy
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()
    with pytest.raises(AttributeError, match=r"mpirun.*jaxvars\.parallel\.initialize"):
        tf.distribute.cluster_resolver  # noqa: B018 - it raises
    with pytest.raises(ValueError, match="num_packs must be greater"):
        tf.distribute.NcclAllReduce(num_packs=-1)
    with pytest.raises(ValueError, match=r"There is no TPU\. tf\.distribute\.MirroredStrategy"):
        tf.distribute.TPUStrategy()
    with pytest.raises(ValueError, match="takes no arguments: JAX finds"):
        tf.distribute.experimental.TPUStrategy("local")
