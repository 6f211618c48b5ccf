"""What becomes of a summary after the call: it follows the program, in order, and is not lost."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import shutil
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars import tensorboard as summary
from jaxvars.errors import CheckError
from jaxvars.tensorboard.writer import WRITER, Default
from tests.tensorboard.test_tensorboard import Late, read, scalars


def counter():
    return jv.Variable(0, name="count"), jv.Variable(jnp.zeros(3), name="w")


# ---------------------------------------------------------------- the values of that step
@pytest.mark.parametrize("wrap", [lambda f: f, jv.compile(donate=True)], ids=["eager", "compiled"])
def test_each_value_is_that_of_its_step(writer, tmp_path, wrap):
    count, w = counter()

    @wrap
    def step(x):
        count.assign_add(1)
        w.assign(w + x)
        summary.scalar("w", w[0], step=count)
        summary.scalar("x", x[0], step=count)
        summary.histogram("h", w, step=count)

    buffer = np.zeros(3, np.float32)
    for i in range(1000):
        buffer[:] = i
        step(buffer)
        buffer[:] = -1
        w.assign_add([0.5] * 3)
    writer.flush()
    expected = np.cumsum(np.arange(1000) + 0.5) - 0.5
    events = [(e.step, e.summary.value[0]) for e in read(tmp_path)]
    assert [tag for _, v in events for tag in [v.tag]] == ["w", "x", "h"] * 1000
    assert [i for i, _ in events] == [i + 1 for i in range(1000) for _ in range(3)]
    assert [v.simple_value for _, v in events if v.tag == "w"] == expected.tolist()
    assert [v.simple_value for _, v in events if v.tag == "x"] == list(range(1000))
    assert [v.histo.max for _, v in events if v.tag == "h"] == expected.tolist()


@pytest.mark.parametrize("size", [1, 4096])
def test_a_buffer_that_changes_after_the_call(writer, tmp_path, size):
    for kind in (np.float32, np.float64, np.int32, np.uint8):
        buffer = np.ones((1, size, 1, 1), kind)
        summary.histogram("h", buffer, step=1)
        summary.scalar("x", buffer.ravel()[0], step=1)
        summary.scalar("x", buffer.reshape(-1)[:1].reshape(()), step=1)
        buffer[:] = 0
    picture = np.full((1, 8, 8, 1), 255, np.uint8)
    summary.image("p", picture, step=1)
    picture[:] = 0
    writer.flush()
    found = [v for e in read(tmp_path) for v in e.summary.value]
    assert {v.histo.max for v in found if v.tag == "h"} == {1.0}
    assert {v.simple_value for v in found if v.tag == "x"} == {1.0}


def test_variables_are_donated_and_the_result_is_the_functions(writer, tmp_path):
    _, w = counter()

    @jv.compile(donate=True)
    def step(x):
        w.assign_add(x)
        summary.scalar("w", w[0], step=1)
        summary.scalar("one", 1.0, step=2)
        return {"b": x[0], "a": (w[1], "note")}

    for _ in range(3):
        out = step(np.ones(3, np.float32))
    assert (out["b"], out["a"][0], out["a"][1], list(out)) == (1, 3, "note", ["b", "a"])
    concrete = step.trace(np.ones(3, np.float32))
    assert set(concrete.structured_outputs) == {"a", "b"}
    assert "scalar 'w'" in [node.name for node in concrete.graph.nodes]
    assert scalars(writer, tmp_path) == [(t, s, x) for i in (1, 2, 3) for t, s, x in
                                         [("w", 1, i), ("one", 2, 1)]]  # fmt: skip


# ---------------------------------------------------------------- inside of other things
def step_of(w):
    @jv.compile
    def step(x):
        w.assign_add(x)
        summary.scalar("w", w, step=1)
        return w * x

    return step


def use_outer(step, _):
    jv.compile(lambda x: step(x) + 1)(2.0)


def use_tape(step, w):
    with jv.GradientTape() as tape:
        y = step(jnp.float32(2.0))
    assert tape.gradient(y, w) == 2


def use_pure(step, w):
    pure, state = jv.functionalize(step), jv.State.of(w=w)
    jax.block_until_ready(jax.jit(pure)(state, 2.0))
    jax.effects_barrier()


def use_loop(step, _):
    jv.compile(lambda: jv.fori_loop(0, 1, lambda i, x: step(x), jnp.float32(2.0)))()


def use_grad(step, _):
    assert jax.grad(lambda x: jv.compile(lambda y: (summary.scalar("w", y, step=1), y * y)[1])(x))(
        2.0
    ) == pytest.approx(4.0)


@pytest.mark.parametrize("use", [use_outer, use_tape, use_pure, use_loop, use_grad])
def test_a_step_inside_of_something_else_writes_once(writer, tmp_path, use):
    w = jv.Variable(0.0, name="w")
    use(step_of(w), w)
    assert scalars(writer, tmp_path) == [("w", 1, 2.0)]


def test_a_vmap_of_a_step_is_refused(writer):
    write = jv.compile(lambda x: summary.scalar("x", x, step=1))
    write(1.0)
    with pytest.raises(ValueError, match=r"scalar 'x' is written inside a vmap"):
        jax.vmap(write)(jnp.ones(3))


def test_what_a_loop_writes_stays_in_order_with_the_rest(writer, tmp_path):
    count, _ = counter()

    @jv.compile
    def step():
        count.assign_add(1)
        summary.scalar("first", count, step=count)
        jv.fori_loop(0, 2, lambda i, x: (summary.scalar("in", i, step=i), x)[1], 0.0)
        summary.scalar("last", count, step=count)

    for _ in range(2):
        step()
    loop = [("in", 0, 0), ("in", 1, 1)]
    assert scalars(writer, tmp_path) == [
        x for i in (1, 2) for x in [("first", i, i), *loop, ("last", i, i)]
    ]


def test_a_failed_check_changes_nothing_and_is_written(writer, tmp_path):
    w = jv.Variable(1.0, name="w")

    @jv.compile
    def step(x):
        w.assign(x)
        summary.scalar("w", w, step=1)
        jv.debugging.assert_positive(x)

    with pytest.raises(CheckError):
        step(-1.0)
    assert (w.item(), scalars(writer, tmp_path)) == (1.0, [("w", 1, -1.0)])


def test_a_function_that_writes_is_saved_without_it(tmp_path):
    step = jv.compile(lambda x: (summary.scalar("loss", x, step=1), x)[1])
    with pytest.warns(UserWarning, match="saved without scalar 'loss'"):
        jv.export.save(step.trace(jv.TensorSpec(())), tmp_path / "f")
    assert float(jv.export.load(tmp_path / "f")(2.0)) == 2.0


# ---------------------------------------------------------------- what goes wrong
@pytest.mark.parametrize("compiled", [True, False])
def test_an_error_of_the_thread_runs_no_step_twice_and_loses_nothing_else(tmp_path, compiled):
    writer = summary.create_file_writer(tmp_path)
    w = jv.Variable(0.0, name="w")

    def run(x):
        w.assign_add(x)
        summary.scalar("a", w, step=1)
        summary.scalar("b", x, step=1)

    step = jv.compile(run) if compiled else run
    with writer.as_default():
        for _ in range(3):
            step(1.0)
        gone = jnp.ones(())
        gone.delete()
        summary.scalar("gone", gone, step=1)
        writer._file._queue.put(done := threading.Event())
        done.wait(20)
        with pytest.raises(RuntimeError, match=rf"'gone' to {tmp_path} failed: .* been deleted"):
            step(1.0)
        assert w.item() == 4.0
        step(1.0)
    found = [tag for tag, _, _ in scalars(writer, tmp_path)]
    assert found == ["a", "b"] * 5 if compiled else ["a", "b"] * 3 + ["a", "a", "b"]
    writer.close()


def test_a_folder_that_is_gone(tmp_path):
    writer = summary.create_file_writer(tmp_path / "logs")
    shutil.rmtree(tmp_path / "logs")
    with writer.as_default():
        summary.scalar("a", 1.0, step=1)
    with pytest.raises(RuntimeError, match=r"to .*logs failed: FileNotFoundError"):
        writer.flush()
    with pytest.raises(RuntimeError, match=r"to .*logs failed: FileNotFoundError"):
        writer.close()


FULL = """
import resource, sys, jaxvars as jv
w = jv.tensorboard.create_file_writer("logs")
w.set_as_default()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    for i in range(300):
        jv.tensorboard.scalar("a", 1.0, step=i)
    w.flush()
except RuntimeError as error:
    print(error)
jv.tensorboard.scalar("a", 1.0, step=1)
"""


def test_a_disk_that_is_full(run_python):
    pytest.importorskip("resource")
    done = run_python("-c", FULL)
    assert "to logs failed: OSError: [Errno 27] File too large" in done.stdout
    assert "to logs failed: OSError: [Errno 27] File too large" in done.stderr, "at the end, too"


ENDS = """
import sys, jaxvars as jv, jax.numpy as jnp
jv.tensorboard.create_file_writer("logs").set_as_default()
v = jv.Variable(jnp.zeros(10_000), name="v")
@jv.compile
def step(i):
    v.assign(v + 1)
    jv.tensorboard.scalar("a", v[0], step=i)
    jv.tensorboard.histogram("h", v, step=i)
for i in range(200):
    step(i)
{end}
"""


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise ValueError('mine')"])
def test_nothing_is_lost_when_python_ends(run_python, tmp_path, end):
    done = run_python("-c", ENDS.format(end=end))
    assert ("mine" in done.stderr) == ("mine" in end) == bool(done.stderr)
    assert [e.step for e in read(tmp_path / "logs")] == [i for i in range(200) for _ in range(2)]


def test_what_is_dropped_is_counted_and_said_once(tmp_path, monkeypatch):
    late, number = Late(), summary._as_number
    monkeypatch.setattr(summary, "_as_number", lambda x, what: x if x is late else number(x, what))
    writer = summary.create_file_writer(tmp_path, max_queue=1)
    with writer.as_default():
        summary.scalar("late", late, step=0)
        while writer._file._queue.qsize():
            pass
        jax.jit(lambda: [summary.scalar("x", 1.0 * i, step=i) for i in range(100)])()
        jax.effects_barrier()
        late.ready.set()
        with pytest.warns(RuntimeWarning, match=rf"^89 summaries to {tmp_path} were dropped"):
            writer.flush()
    assert [tag for tag, _, _ in scalars(writer, tmp_path)] == ["late", *"x" * 11]
    writer.close()


def test_many_threads_write_in_their_order(writer, tmp_path):
    def work(name):
        for i in range(200):
            summary.scalar(name, float(i), step=i)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = scalars(writer, tmp_path)
    for name in "abcd":
        assert [step for tag, step, _ in found if tag == name] == list(range(200))


def test_each_thread_has_its_own_default_and_programs_that_cannot_tell_say_so(tmp_path):
    writers = [summary.create_file_writer(tmp_path / name) for name in "ab"]
    both = threading.Barrier(2)
    found: list[str] = []

    def work(i: int) -> None:
        with writers[i].as_default(step=i):
            both.wait()
            summary.scalar("ab"[i], float(i))
            both.wait()
            threading.Thread(target=other).start() if i else None
            both.wait()
            ended.wait()

    def other() -> None:
        try:
            summary.scalar("c", 1.0)
        except ValueError as error:
            found.append(str(error))
        ended.set()

    ended = threading.Event()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, name in enumerate("ab"):
        assert [(tag, step) for tag, step, _ in scalars(writers[i], tmp_path / name)] == [(name, i)]
        writers[i].close()
    assert "Several threads or coroutines have set a default writer" in found[0]


def of_another_thread():
    """What a thread finds that has set no default, as one of XLA's."""
    return run_in_threads(lambda: WRITER.setting.value)[0]


def test_coroutines_of_one_thread_that_have_a_default_each_are_told_apart(tmp_path):
    writers = [summary.create_file_writer(tmp_path / name) for name in "ab"]

    async def run() -> None:
        is_open, go = asyncio.Event(), asyncio.Event()

        async def other() -> None:
            with writers[1].as_default():
                is_open.set()
                await go.wait()

        with writers[0].as_default():
            task = asyncio.create_task(other())  # inside: its `with` alone counts
            await is_open.wait()
            assert of_another_thread() is writers[1]
            refused = pytest.raises(ValueError, match="Several threads or coroutines")
            with summary.create_file_writer(tmp_path / "c").as_default(), refused:
                of_another_thread()
            go.set()
            await task
            assert of_another_thread() is writers[0]

    asyncio.run(run())
    assert of_another_thread() is None


@pytest.mark.parametrize("instruction", range(60))
def test_a_default_that_ends_leaves_what_another_thread_begins_meanwhile(instruction):
    default, count = Default("writer", None), itertools.count()
    with contextlib.ExitStack() as others:

        def trace(frame, event, _):
            if event == "call" and frame.f_code is not Default.set_to.__wrapped__.__code__:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and next(count) == instruction:  # in the middle of the end
                contextvars.Context().run(others.enter_context, default.set_to("other's"))
            return trace

        with default.set_to("own"):
            before = sys.gettrace()
            sys.settrace(trace)
        sys.settrace(before)
        is_over = next(count) <= instruction
        assert default.setting.value == (None if is_over else "other's")
    assert default.setting.value is None
