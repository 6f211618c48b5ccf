"""Programs that are told to stop by a signal, wherever they are, alone and together."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import stopped_training as program
from processes import jax_variables, run_processes

import jaxvars as jv
from jaxvars import preemption
from jaxvars.checkpoint import Checkpoint, CheckpointManager, files
from jaxvars.errors import CheckpointError, DistributedError

is_preempted = jv.parallel.is_preempted


@pytest.fixture
def user_handler(monkeypatch):
    """A list of the signals that come to handlers that were set before."""
    came, numbers = [], (signal.SIGTERM, signal.SIGUSR1)
    before = [signal.signal(number, lambda n, _: came.append(n)) for number in numbers]
    for name, value in {"_before": {}, "_noted": False, "_answered": False, "_cell": None}.items():
        monkeypatch.setattr(preemption, name, value)
    yield came
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def steps():
    return jv.Variable(0, name="steps")


@pytest.fixture
def manager(steps, tmp_path):
    return CheckpointManager(
        Checkpoint(steps=steps), tmp_path / "run", step_counter=steps, checkpoint_interval=100,
        async_save=True, format="npz",
    )  # fmt: skip


def tell(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


# ---------------------------------------------------------------- the signal
def test_a_signal_is_noted_passed_on_and_the_second_is_only_for_others(user_handler):
    tell()
    assert user_handler == [signal.SIGTERM]
    assert not is_preempted(0)  # notes from here on
    tell()
    assert user_handler == [signal.SIGTERM] * 2
    assert is_preempted(1)
    assert is_preempted(2)
    assert signal.getsignal(signal.SIGTERM) is not preemption._note
    tell()
    assert user_handler == [signal.SIGTERM] * 3


def test_more_signals_may_say_so(user_handler):
    assert not is_preempted(0, also=[signal.SIGUSR1])
    tell(signal.SIGUSR1)
    assert user_handler == [signal.SIGUSR1]
    assert is_preempted(1, also=[signal.SIGUSR1])
    tell()  # the end of the time limit, of which the other one has warned
    assert signal.getsignal(signal.SIGTERM) is not preemption._note


def test_a_cell_that_is_run_again_is_not_told_at_once(user_handler, monkeypatch):
    shell = SimpleNamespace(execution_count=1)
    monkeypatch.setattr(preemption, "find_shell", lambda: shell)
    for _ in range(2):
        assert not is_preempted(0)
        tell()
        assert is_preempted(1)
        assert is_preempted(1)
        shell.execution_count += 1
    assert user_handler == [signal.SIGTERM] * 2
    shell.execution_count += 1
    assert not is_preempted(0)
    tell()  # while another cell runs, before it asks
    shell.execution_count += 1
    assert is_preempted(0)


def test_ctrl_c_interrupts_the_second_time(user_handler):
    assert not is_preempted(0, also=[signal.SIGINT])
    tell(signal.SIGINT)
    assert is_preempted(1)
    with pytest.raises(KeyboardInterrupt):
        tell(signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGKILL, 12345])
def test_what_cannot_be_noted_is_refused(user_handler, number):
    with pytest.raises(ValueError, match=r"The signal .* cannot be noted: "):
        is_preempted(0, also=[number])
    with pytest.raises(TypeError, match="integer"):
        is_preempted(0.5)


def test_a_signal_while_a_function_is_traced_is_no_part_of_it(user_handler, steps):
    @jv.compile
    def step():
        tell()
        steps.assign_add(1)

    assert not is_preempted(0)
    with warnings.catch_warnings(action="error"):
        step()
    assert (int(steps), is_preempted(1)) == (1, True)


def test_another_thread_is_answered_after_the_main_one_has_asked(user_handler):
    found = []

    def ask() -> None:
        try:
            found.append(is_preempted(3))
        except DistributedError as error:
            found.append(str(error))

    def run() -> object:
        thread = threading.Thread(target=ask, name="training")
        thread.start()
        thread.join()
        return found.pop()

    assert re.search(r"'training'.* in the main thread only(?s:.*)is_preempted\(0\)\n", run())
    assert not is_preempted(0)
    assert run() is False
    tell()
    assert run() is True


# ---------------------------------------------------------------- saving
def test_save_saves_at_once_waits_and_never_saves_a_step_twice(user_handler, steps, manager):
    assert not is_preempted(0)
    first = manager.save()
    steps.assign_add(1)
    assert manager.save() is None
    tell()
    assert is_preempted(1)  # makes up for it
    assert (path := manager.latest_checkpoint) != first
    assert manager.save() is manager.save(check_interval=False) is None
    steps.assign_add(1)
    assert manager.save() == manager.latest_checkpoint != path


def test_a_save_that_was_left_out_has_its_number_and_metrics(user_handler, steps, tmp_path):
    manager = CheckpointManager(
        Checkpoint(steps=steps), tmp_path, step_counter=steps, checkpoint_interval=100,
        format="npz", best_metric="loss", best_mode="min",
    )  # fmt: skip
    assert not is_preempted(0)
    assert manager.save(10, metrics={"loss": 2.0})
    steps.assign_add(1)
    assert manager.save(11, metrics={"loss": 1.0}) is None
    tell()
    assert is_preempted(1)
    assert manager.metrics(tmp_path / "ckpt-11.npz") == {"loss": 1.0}


def test_a_step_that_is_not_offered_yet_is_left_to_the_program(user_handler, steps, manager):
    assert not is_preempted(0)
    assert manager.save()
    steps.assign_add(1)
    assert manager.save() is None
    steps.assign_add(1)
    tell()
    assert is_preempted(1)
    manager.wait()
    assert len(manager.checkpoints) == 1
    assert manager.save() == manager.latest_checkpoint


def test_all_that_was_left_out_is_saved_where_one_disk_is_full(
    user_handler, steps, tmp_path, monkeypatch
):
    options = {"step_counter": steps, "checkpoint_interval": 100, "format": "npz"}
    others = [
        CheckpointManager(Checkpoint(steps=steps), tmp_path / name, **options) for name in "abc"
    ]
    assert not is_preempted(0)
    for each in others:
        each.save()
    steps.assign_add(1)
    assert [each.save() for each in others] == [None] * 3
    write = files.write

    def write_if_free(path: Path, *rest: Any) -> Path:
        if path.parent.name == "b":
            raise OSError("No space left on device")
        return write(path, *rest)

    tell()
    with monkeypatch.context() as disk:
        disk.setattr(files, "write", write_if_free)
        with pytest.raises(OSError, match="No space left"):
            is_preempted(1)
    assert [len(each.checkpoints) for each in others] == [2, 1, 2]
    assert is_preempted(1)
    assert others[1].save() == others[1].latest_checkpoint


def test_a_background_save_that_failed_is_told_and_made_up_for(
    user_handler, steps, manager, monkeypatch
):
    assert not is_preempted(0)
    first = manager.save()
    manager.wait()
    steps.assign_add(100)
    with monkeypatch.context() as disk:
        disk.setattr(files, "write", lambda *_: Path("/dev/full/no").read_bytes())
        failed = manager.save()
        manager._job._done.wait()
    steps.assign_add(1)
    assert manager.save() is None
    tell()
    with pytest.raises(CheckpointError, match="was not saved in the background"):
        is_preempted(101)
    assert manager.checkpoints == [first, manager.latest_checkpoint]
    assert manager.latest_checkpoint not in (first, failed)


def test_what_was_left_out_before_a_restore_is_another_state(user_handler, steps, tmp_path):
    manager = CheckpointManager(
        Checkpoint(steps=steps), tmp_path, step_counter=steps, checkpoint_interval=100,
        format="npz", best_metric="loss", best_mode="min",
    )  # fmt: skip
    assert not is_preempted(0)
    manager.save(metrics={"loss": 5.0})
    steps.assign_add(1)
    assert manager.save(metrics={"loss": 1.0}) is None
    manager.restore_best()
    steps.assign_add(1)  # trained again, and not evaluated
    tell()
    assert is_preempted(1)
    assert [manager.metrics(path) for path in manager.checkpoints] == [{"loss": 5.0}]


def test_a_save_in_the_background_is_waited_for(user_handler, steps, manager, monkeypatch):
    gate, write = threading.Event(), files.write
    monkeypatch.setattr(files, "write", lambda *args: gate.wait() and write(*args))
    assert not is_preempted(0)
    path = manager.save()
    tell()
    assert is_preempted(1)
    assert manager.latest_checkpoint is None
    threading.Timer(0.2, gate.set).start()
    assert manager.save() is None  # this step is
    assert manager.latest_checkpoint == path


def test_tensorflows_manager_does_the_same(user_handler, tmp_path):
    from jaxvars import tf

    steps = tf.Variable(0)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(steps=steps), tmp_path, 3, step_counter=steps, checkpoint_interval=100
    )
    assert not is_preempted(0)
    assert manager.save()
    steps.assign_add(1)
    assert manager.save() is None
    tell()
    assert is_preempted(1)
    assert manager.latest_checkpoint.endswith("ckpt-2")
    assert manager.save() is None
    with pytest.raises(AttributeError, match=r"ask jaxvars.parallel.is_preempted\(step\) in each"):
        tf.distribute.experimental.PreemptionCheckpointHandler  # noqa: B018


# ---------------------------------------------------------------- processes
ENDS = """
import multiprocessing, os, signal, threading, time
import jaxvars as jv
fork = multiprocessing.get_context("fork")
ready = fork.Semaphore(0)  # before it, Python would lose the signal
def wait(): ready.release(); time.sleep(60)
assert not jv.parallel.is_preempted(0)
children = [fork.Process(target=wait) for _ in range(2)]
children[0].start()
thread = threading.Thread(target=children[1].start)
thread.start(); thread.join()
for child in children: ready.acquire()
for child in children:
    child.terminate()
    child.join()
print([child.exitcode for child in children], jv.parallel.is_preempted(1))
os.kill(os.getpid(), signal.SIGTERM)
print(jv.parallel.is_preempted(2), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
print("not reached")
"""


def test_the_second_signal_ends_a_program_and_the_first_one_a_child(run_python):
    done = run_python("-c", ENDS)
    assert done.stdout == "[-15, -15] False\nTrue\n", done.stderr
    assert done.returncode == -signal.SIGTERM


TOGETHER = """
import signal, sys, time
import jax, jaxvars as jv
def mine(number, frame): print("passed on", number, flush=True)
when, w = sys.argv[1], None
if when == "before": signal.signal(signal.SIGTERM, mine)
if when == "around":
    address = __import__("os").environ["JAX_COORDINATOR_ADDRESS"]
    number = int(__import__("os").environ["JAX_PROCESS_ID"])
    jax.distributed.initialize(address, 2, number)
else:
    jv.parallel.initialize()
if when != "before": signal.signal(signal.SIGTERM, mine)
step = jv.compile(lambda x: x + 1)
step(1.0)  # the first trace of a function puts Python's handlers aside for a while
try:
    for i in range(100_000):
        if jv.parallel.is_preempted(i, [signal.SIGUSR1]):
            print("leaves at", i, flush=True)
            break
        if i == 3: print("ready", flush=True)
        time.sleep(0.01)
except jv.errors.DistributedError as error:
    print("refused", error, flush=True)
"""


@pytest.mark.parametrize(
    ("when", "number"),
    [("before", signal.SIGTERM), ("after", signal.SIGUSR1), ("after", signal.SIGTERM)],
)
def test_processes_stop_at_one_step_whatever_handlers_there_are(tmp_path, when, number):
    (tmp_path / "together.py").write_text(TOGETHER)
    ready = []

    def watch(line: str, started: list[Any]) -> None:
        ready.extend(["ready"] * ("ready" in line))
        if len(ready) == 2:
            random.choice(started).send_signal(number)
            ready.clear()

    done = run_processes(tmp_path, jax_variables(2), "together.py", when, watch=watch)
    assert done.codes == [0, 0], done
    left = [re.findall(r"leaves at (\d+)", text) for text in done.texts]
    assert len(left[0]) == 1
    assert left[0] == left[1], done
    assert "".join(done.texts).count("passed on 15") == (number == signal.SIGTERM)


def test_a_handler_that_cuts_the_other_processes_off_is_refused(tmp_path):
    (tmp_path / "together.py").write_text(TOGETHER)
    done = run_processes(tmp_path, jax_variables(2), "together.py", "around")
    message = r"refused JAX's handler for SIGTERM.* Join them with jv.parallel.initialize\(\)"
    assert all(re.search(message, text) for text in done.texts), done


# ---------------------------------------------------------------- a training run
def stopping(after: int, wait: float) -> Callable[[str, list[Any]], None]:
    """Have one of the processes told to stop, a while after so many of its lines."""

    def watch(line: str, started: list[Any]) -> None:
        nonlocal after
        after -= line.startswith(("asked", "step"))
        if after == 0:
            after = -1
            time.sleep(random.random() * wait)
            random.choice(started).send_signal(signal.SIGTERM)

    return watch


def train(
    folder: Path, form: str, steps: int, *, stops: int = 0, count: int = 1
) -> list[np.ndarray]:
    """Train, told to stop so often, and started again each time; return the weights."""
    folder.mkdir()
    words = (program.__file__, str(folder), str(steps), form)
    for left in reversed(range(stops + 1)):
        after = random.randrange(1, 10) if left else -1
        watch = stopping(after, 2.0 if after == 1 else 0.1)  # the first line is before XLA compiles
        variables = jax_variables(count) if count > 1 else [{}]
        done = run_processes(folder, variables, *words, watch=watch)
        assert done.codes == [0] * count, done
        ends = {re.findall(r"ends at (\d+)", text)[0] for text in done.texts}
        assert len(ends) == 1
        assert (ends == {str(steps)}) == (not left), done
    done_steps = (folder / "steps").read_text().split()
    assert done_steps == [str(step) for step in range(steps)], "each is done once"
    with np.load(folder / "weights.npz") as file:
        return [file[name] for name in file.files]


def check_stopped(folder: Path, form: str, steps: int, stops: int, count: int = 1) -> None:
    found = train(folder / "stopped", form, steps, stops=stops, count=count)
    wanted = train(folder / "other", form, steps, count=count)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("form", ["npz", "orbax"])
def test_a_program_that_is_told_to_stop_three_times(tmp_path, form):
    check_stopped(tmp_path, form, 60, stops=3)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["npz", "orbax"])
def test_a_program_that_is_told_to_stop_twelve_times(tmp_path, form):
    check_stopped(tmp_path, form, 240, stops=12)


def test_two_processes_that_are_told_to_stop_go_on_where_they_were(tmp_path):
    check_stopped(tmp_path, "npz", 400, stops=2, count=2)
