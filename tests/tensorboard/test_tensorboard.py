"""`jv.tensorboard`: what is in the event file, eagerly and compiled, and that nothing waits."""

from __future__ import annotations

import gc
import io
import struct
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from tensorboardX.proto.event_pb2 import Event

import jaxvars as jv
from jaxvars import tensorboard as summary
from jaxvars.errors import CompileError, DtypeError, NotATensorError, ShapeError


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert summary.get_step() is None
    assert not [t for t in threading.enumerate() if t.name == "jaxvars summary" and t.is_alive()]
    for default in (summary.WRITER, summary.STEP, summary.CONDITION):
        assert default._levels == {}


def read(folder) -> list:
    """The events of the files in a folder, from the framing of TFRecord."""
    events = []
    for file in sorted(folder.glob("events.out.tfevents.*")):
        data = file.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            events.append(Event.FromString(data[12 : 12 + size]))
            data = data[16 + size :]
    return [event for event in events if event.summary.value]


def scalars(writer, folder) -> list[tuple[str, int, float]]:
    writer.flush()
    return [
        (value.tag, event.step, round(value.simple_value, 6))
        for event in read(folder)
        for value in event.summary.value
    ]


# ---------------------------------------------------------------- eagerly
def test_scalars_are_read_back(writer, tmp_path):
    before = time.time()
    v = jv.Variable(2.5, name="v")
    given = [0.5, 3, np.float32(1.5), np.int64(4), jnp.bfloat16(0.25), jnp.int32(7), True, v]
    for i, x in enumerate(given):
        summary.scalar("x", x, step=i)
    v.assign(9.0)
    expected = [0.5, 3, 1.5, 4, 0.25, 7, 1, 2.5]
    assert scalars(writer, tmp_path) == [("x", i, x) for i, x in enumerate(expected)]
    assert all(before <= event.wall_time <= time.time() for event in read(tmp_path))


def test_histograms(writer, tmp_path):
    summary.histogram("w", jnp.asarray([1.0, 2.0, 2.0, 4.0]), step=3, buckets=3)
    summary.histogram("n", jnp.asarray([1, 1]), step=3)
    summary.histogram("some", jnp.asarray([1.0, jnp.nan, jnp.inf]), step=3)
    summary.histogram("none", jnp.asarray([jnp.nan]), step=3)
    writer.flush()
    found = {e.summary.value[0].tag: e.summary.value[0].histo for e in read(tmp_path)}
    assert set(found) == {"w", "n", "some"}
    w = found["w"]
    assert (w.min, w.max, w.num, w.sum, w.sum_squares) == (1, 4, 4, 9, 25)
    assert list(w.bucket) == [0, 1, 2, 1]
    assert np.allclose(w.bucket_limit, [1, 2, 3, 4])
    assert (found["some"].num, found["n"].num) == (1, 2)


def picture(value) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(value.image.encoded_image_string)))


def test_images(writer, tmp_path):
    grey = np.asarray([[0.0, 0.5], [1.0, 7.0]], np.float32)
    summary.image("grey", jnp.asarray(grey)[None, :, :, None], step=1)
    colours = np.arange(4 * 2 * 3 * 3, dtype=np.uint8).reshape(4, 2, 3, 3)
    summary.image("colours", colours, step=2, max_outputs=2)
    writer.flush()
    found = {v.tag: v for e in read(tmp_path) for v in e.summary.value}
    assert set(found) == {"grey", "colours/0", "colours/1"}
    assert picture(found["grey"])[..., 0].tolist() == [[0, 127], [255, 255]]
    np.testing.assert_array_equal(picture(found["colours/1"]), colours[1])


def test_strings(writer, tmp_path):
    summary.text("note", "**äh**", step=1)
    summary.text("name", jv.Variable("a label", name="label"), step=1)
    writer.flush()
    found = {
        v.tag: v.tensor.string_val[0].decode() for e in read(tmp_path) for v in e.summary.value
    }
    assert found == {"note/text_summary": "**äh**", "name/text_summary": "a label"}


def test_name_scopes_come_before_names(writer, tmp_path):
    with jv.name_scope("train"), jv.name_scope("inner"):
        summary.scalar("loss", 1.0, step=0)
    assert scalars(writer, tmp_path) == [("train/inner/loss", 0, 1.0)]


def test_steps(tmp_path):
    writer, count = summary.create_file_writer(tmp_path), jv.Variable(5, name="count")
    with writer.as_default(step=3):
        assert summary.get_step() == 3
        summary.scalar("a", 1.0)
        summary.scalar("b", 1.0, step=jnp.int32(4))
        summary.set_step(count)
        summary.scalar("c", 1.0)
        count.assign_add(1)
        summary.scalar("d", 1.0)
        assert summary.get_step() is count
    assert summary.get_step() is None
    assert scalars(writer, tmp_path) == [("a", 3, 1), ("b", 4, 1), ("c", 5, 1), ("d", 6, 1)]
    writer.close()


def test_conditions(writer, tmp_path):
    v = jv.Variable(True, name="v")
    for name, condition in {
        "a": True, "b": False, "c": lambda: True, "d": lambda: False, "e": v,
        "f": jnp.asarray(False), "g": lambda: jnp.asarray(True),
    }.items():  # fmt: skip
        with summary.record_if(condition):
            assert bool(summary.should_record_summaries()) is (name in "aceg")
            summary.scalar(name, 1.0, step=0)
    with summary.record_if(False), summary.record_if(True):
        summary.scalar("inner", 1.0, step=0)
    assert [tag for tag, _, _ in scalars(writer, tmp_path)] == ["a", "c", "e", "g", "inner"]


def test_without_a_writer_nothing_is_written_and_nothing_refused():
    assert summary.should_record_summaries() is False
    summary.scalar("loss", 1.0)
    jv.compile(lambda x: summary.scalar("loss", x))(1.0)
    summary.flush()


def test_a_noop_writer_takes_the_place_of_another(writer, tmp_path):
    with summary.create_noop_writer().as_default():
        summary.scalar("a", 1.0, step=1)
    assert scalars(writer, tmp_path) == []


def test_the_default_writer_can_be_set(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    writer.set_as_default(step=7)
    summary.scalar("a", 1.0)
    summary.flush()
    assert len(read(tmp_path)) == 1
    summary.WRITER.set(None)
    summary.set_step(None)
    writer.close()


def test_two_writers_of_one_folder_have_two_files(tmp_path):
    for _ in range(2):
        writer = summary.create_file_writer(tmp_path, filename_suffix=".v2")
        with writer.as_default():
            summary.scalar("a", 1.0, step=1)
        writer.close()
    assert len(list(tmp_path.glob("*.v2"))) == len(read(tmp_path)) == 2


# ---------------------------------------------------------------- mistakes
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: summary.scalar("x", [1.0, 2.0], step=0), ShapeError, r"'x' has shape \(2,\)"),
        (lambda: summary.scalar("x", 1j, step=0), DtypeError, "scalar 'x' is complex64"),
        (lambda: summary.scalar("x", "a", step=0), NotATensorError, "scalar 'x' is a string"),
        (lambda: summary.scalar("x", None, step=0), NotATensorError, "scalar 'x'"),
        (lambda: summary.scalar(3, 1.0, step=0), TypeError, "name of a summary is a string, not 3"),
        (lambda: summary.scalar("x", 1.0), ValueError, r"'x' has no step \(test_tensorboard"),
        (lambda: summary.scalar("x", 1.0, step=1.5), TypeError, r"A step is an integer, not 1\.5"),
        (lambda: summary.scalar("x", 1.0, step=True), TypeError, "A step is an integer, not True"),
        (lambda: summary.set_step("a"), TypeError, "A step is an integer, not 'a'"),
        (lambda: summary.histogram("x", 1.0, step=0, buckets=0), ValueError, "buckets=0"),
        (lambda: summary.image("x", jnp.ones((8, 8)), step=0), ShapeError, r"x\[None, :, :, None"),
        (lambda: summary.image("x", np.ones((1, 2, 2, 1), int), step=0), DtypeError, "is int32"),
        (lambda: summary.image("x", jnp.ones((1, 2, 2, 1)), 0, 0), ValueError, "max_outputs=0"),
        (lambda: summary.text("x", 3, step=0), NotATensorError, "text 'x' is not a string"),
        (lambda: summary.record_if(3).__enter__(), TypeError, "record_if takes a bool"),
        (lambda: summary.create_file_writer("x", max_queue=0), ValueError, "max_queue=0"),
    ],
)  # fmt: skip
def test_mistakes(writer, call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_missing_tensorboardx_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "jaxvars\[tensorboard\]"'):
        summary.create_file_writer(tmp_path)


def test_a_closed_writer(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    writer.close()
    writer.close()
    with writer.as_default(), pytest.raises(RuntimeError, match="is closed, and scalar 'x' cannot"):
        summary.scalar("x", 1.0, step=1)


def test_what_goes_wrong_in_the_thread_is_raised_once_by_the_next_call(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default():
        gone = jnp.ones(())
        gone.delete()
        summary.scalar("gone", gone, step=1)
        with pytest.raises(RuntimeError, match=r"Writing scalar 'gone' to .* failed: RuntimeError"):
            writer.flush()
        summary.scalar("next", 1.0, step=2)
    assert scalars(writer, tmp_path) == [("next", 2, 1.0)]
    writer.close()


# ---------------------------------------------------------------- nothing waits
class Late:
    """An array that is still being computed until it is let go."""

    shape, dtype = (), np.dtype(np.float32)

    def __init__(self):
        self.ready = threading.Event()

    def __array__(self, *_, **__):
        self.ready.wait(30)
        return np.asarray(0.5, np.float32)


def test_a_value_that_is_still_computed_is_not_waited_for(tmp_path, monkeypatch):
    late = Late()
    monkeypatch.setattr(summary, "_as_number", lambda data, what: data)
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default():
        summary.scalar("late", late, step=1)
        summary.scalar("next", np.float32(1.0), step=2)
        assert read(tmp_path) == []
        late.ready.set()
    assert scalars(writer, tmp_path) == [("late", 1, 0.5), ("next", 2, 1.0)], "in their order"
    writer.close()


@pytest.mark.parametrize("how", ["eager", "after", "in a program"])
def test_when_the_queue_is_full_a_call_waits_but_no_program(tmp_path, monkeypatch, how):
    late = Late()
    number = summary._as_number
    monkeypatch.setattr(summary, "_as_number", lambda x, what: x if x is late else number(x, what))
    writer = summary.create_file_writer(tmp_path, max_queue=1)

    def write(x):
        for i in range(4):
            summary.scalar("x", x, step=i)

    run = {"eager": write, "after": jv.compile(write), "in a program": jax.jit(write)}[how]
    with writer.as_default():
        summary.scalar("late", late, step=0)
        call = threading.Thread(target=run, args=(1.0,))
        call.start()
        call.join(20 if how == "in a program" else 0.2)
        assert call.is_alive() is (how != "in a program")
        late.ready.set()
        call.join(20)
    assert [tag for tag, _, _ in scalars(writer, tmp_path)] == ["late", *"xxxx"]
    writer.close()


def test_it_is_flushed_now_and_then(tmp_path):
    writer = summary.create_file_writer(tmp_path, flush_millis=20)
    with writer.as_default():
        summary.scalar("a", 1.0, step=1)
    for _ in range(500):
        if read(tmp_path):
            break
        time.sleep(0.02)
    assert len(read(tmp_path)) == 1
    writer.close()


def test_a_writer_that_is_dropped_writes_what_it_has(tmp_path):
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default():
        for i in range(20):
            summary.scalar("a", 1.0, step=i)
    del writer
    gc.collect()
    assert len(read(tmp_path)) == 20


# ---------------------------------------------------------------- compiled
def trained(wrap):
    w, steps = jv.Variable(1.0, name="w"), jv.Variable(0, name="steps")

    @wrap
    def step(x):
        w.assign_add(x)
        steps.assign_add(1)
        summary.scalar("w", w, step=steps)
        summary.scalar("x", x)
        with summary.record_if(steps % 2 == 0):
            summary.histogram("even", jnp.stack([w.value, x]), step=steps)
        with summary.record_if(w < 0):
            summary.text("never", "it is", step=steps)
        return w * 2

    for i in range(4):
        summary.set_step(10 * i)
        step(0.5)
    summary.set_step(None)
    return w.item()


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile], ids=["eager", "compiled"])
def test_a_compiled_step_writes_what_an_eager_one_does(writer, tmp_path, wrap):
    with writer.as_default(step=0):
        assert trained(wrap) == 3.0
    found = [(tag, step) for tag, step, _ in scalars(writer, tmp_path)]
    expected = []
    for i in range(4):
        expected += [("w", i + 1), ("x", 10 * i)] + [("even", i + 1)] * (i % 2)
    assert found == expected
    assert [x for tag, _, x in scalars(writer, tmp_path) if tag == "w"] == [1.5, 2, 2.5, 3]


def test_a_program_writes_to_the_writer_that_is_default_when_it_runs(tmp_path):
    step = jv.compile(lambda x: summary.scalar("x", x, step=1))
    step(0.0)  # traced when there is none
    for name in ("a", "b"):
        writer = summary.create_file_writer(tmp_path / name)
        with writer.as_default():
            step(1.0)
        assert scalars(writer, tmp_path / name) == [("x", 1, 1.0)]
        writer.close()
    assert step.trace_count == 1


def test_a_writer_that_is_set_inside_belongs_to_the_program(tmp_path):
    writer = summary.create_file_writer(tmp_path)

    @jv.compile
    def step(x, i):
        with writer.as_default(step=i):
            summary.scalar("x", x)

    for i in range(2):
        step(0.5, i)
    assert scalars(writer, tmp_path) == [("x", 0, 0.5), ("x", 1, 0.5)]
    writer.close()


def test_in_loops_and_branches_in_order(writer, tmp_path):
    @jv.compile
    def run():
        def body(i, x):
            summary.scalar("i", x, step=i)
            jv.cond(i == 1, lambda: summary.scalar("one", 1.0, step=i), lambda: None)
            return x * 2

        return jv.fori_loop(0, 3, body, 1.0)

    run()
    assert scalars(writer, tmp_path) == [("i", 0, 1), ("i", 1, 2), ("one", 1, 1), ("i", 2, 4)]


def test_plain_jit_writes_too(writer, tmp_path):
    jax.jit(lambda x: summary.scalar("x", x, step=3))(2.0)
    jax.effects_barrier()
    assert scalars(writer, tmp_path) == [("x", 3, 2.0)]


def test_it_changes_no_gradient_and_no_tape_sees_it(writer, tmp_path):
    w = jv.Variable(3.0, name="w")

    def slope():
        with jv.GradientTape() as tape:
            y = w * w
            summary.scalar("y", y, step=1)
        return tape.gradient(y, w)

    assert slope() == jv.compile(slope)() == 6
    assert jax.grad(lambda x: (summary.scalar("y", x * x, step=2), x * x)[1])(3.0) == 6
    assert scalars(writer, tmp_path) == [("y", 1, 9.0)] * 2 + [("y", 2, 9.0)]


@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile, jax.jit], ids=["eager", "jv", "jit"])
def test_a_value_for_each_example_is_refused(writer, wrap):
    many = jax.vmap(lambda x: summary.scalar("x", x, step=1))
    with pytest.raises(
        ValueError, match=r"scalar 'x' is written inside a vmap \(test_tensorboard.*3 val"
    ):
        wrap(many)(jnp.ones(3))


def test_defaults_cannot_be_set_inside(writer):
    with pytest.raises(
        CompileError, match=r"default step is set at test_tensorboard\.py.*step=step"
    ):
        jv.compile(lambda: summary.set_step(3))()
    with pytest.raises(CompileError, match="default writer is set"):
        jv.compile(writer.set_as_default)()


def test_a_failed_step_is_raised_and_mistakes_are_found_while_tracing(writer):
    with pytest.raises(ShapeError, match="scalar 'x' has shape"):
        jv.compile(lambda x: summary.scalar("x", x, step=1))(jnp.ones(2))


def test_how_a_writer_looks(writer, tmp_path):
    assert repr(summary.create_noop_writer()) == "<summary writer to nowhere>"
    assert repr(writer) == f"<summary writer to {tmp_path}>"
