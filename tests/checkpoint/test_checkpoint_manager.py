"""`CheckpointManager`: what is in its directory, whatever happens to the process."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checkpoint_storm import check as check_storm
from checkpoint_training import Training

import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager, files, latest_checkpoint
from jaxvars.checkpoint import directory as _checkpoint_directory
from jaxvars.checkpoint import manager as _checkpoint_manager
from jaxvars.checkpoint import saving as _checkpoint_saving
from jaxvars.checkpoint.directory import Directory
from jaxvars.checkpoint.retention import Record
from jaxvars.errors import CheckpointError, ForeignTransformError

HERE = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = set(threading.enumerate())
    yield
    left = {t for t in threading.enumerate() if t.is_alive()} - before
    assert not [t for t in left if t.name.startswith("saving")]
    assert not _checkpoint_saving._JOBS


@pytest.fixture
def w():
    return jv.Variable([0.0, 0.0], name="w")


@pytest.fixture
def manage(w, tmp_path):
    """Make a manager of `w`; npz unless told otherwise, which is faster."""

    def made(*kept, **options):
        options = {"format": "npz"} | options
        return CheckpointManager(Checkpoint(w=w), tmp_path / "d", *kept, **options)

    return made


def names(manager):
    return [Path(path).name.removesuffix(".npz") for path in manager.checkpoints]


def files_in(directory):
    return sorted(path.name for path in Path(directory).iterdir() if path.name != ".ckpt.lock")


def save_each(manager, w, values, **options):
    for value in values:
        w.assign([value, value])
        manager.save(**options)


# ---------------------------------------------------------------- saving
@pytest.mark.parametrize("format_", ["orbax", "npz"])
@pytest.mark.parametrize("async_save", [False, True])
def test_what_is_saved_is_found_and_restored(w, manage, tmp_path, format_, async_save):
    manager = manage(max_to_keep=2, format=format_, async_save=async_save)
    assert manager.latest_checkpoint is None
    assert manager.checkpoints == []
    assert not (tmp_path / "d").exists()
    paths = []
    for i in range(3):
        w.assign([i, -i])
        paths.append(manager.save())
    manager.wait()
    end = ".npz" if format_ == "npz" else ""
    assert paths == [str(tmp_path / "d" / f"ckpt-{i}{end}") for i in (1, 2, 3)]
    assert manager.checkpoints == paths[1:]
    assert manager.latest_checkpoint == paths[2]
    assert files_in(tmp_path / "d") == [Path(path).name for path in paths[1:]]
    w.assign([9.0, 9.0])
    assert manager.restore_or_initialize() == paths[2]
    assert w.numpy().tolist() == [2.0, -2.0]
    assert int(manager.checkpoint.save_counter) == 3
    Checkpoint(w=w).restore(paths[1])
    assert w.numpy().tolist() == [1.0, -1.0]


def test_a_relative_directory_means_the_same_later(w, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    manager = CheckpointManager(Checkpoint(w=w), "d", format="npz", async_save=True)
    monkeypatch.chdir("/")
    path = manager.save()
    manager.wait()
    assert manager.directory == str(tmp_path / "d")
    assert manager.checkpoints == [path] == [str(tmp_path / "d" / "ckpt-1.npz")]


def test_a_number_may_be_given_as_an_integer_or_variable(w, manage):
    manager = manage()
    step = jv.Variable(70)
    assert manager.save(step).endswith("ckpt-70.npz")
    assert manager.save(np.int64(80)).endswith("ckpt-80.npz")
    assert int(step) == 70
    assert int(manager.checkpoint.save_counter) == 2
    assert manager.save().endswith("ckpt-3.npz")
    assert names(manager) == ["ckpt-70", "ckpt-80", "ckpt-3"], "in the order they were saved"


@pytest.mark.parametrize("format_", ["orbax", "npz"])
def test_a_checkpoint_with_the_same_number_is_replaced_and_is_then_the_newest(w, manage, format_):
    manager = manage(max_to_keep=2, format=format_)
    for number in (5, 6, 5):
        w.assign_add([1.0, 0.0])
        manager.save(number)
    assert names(manager) == ["ckpt-6", "ckpt-5"]
    w.assign([0.0, 0.0])
    manager.restore_or_initialize()
    assert w.numpy().tolist() == [3.0, 0.0]


def test_hours_go_on_in_the_next_manager(w, manage, monkeypatch):
    now = [1e6]
    monkeypatch.setattr(_checkpoint_manager, "_clock", lambda: now[0])
    for _ in range(6):
        manager = manage(max_to_keep=1, keep_checkpoint_every_n_hours=1)
        now[0] += 1500
        manager.restore_or_initialize()
        manager.save()
    assert names(manager) == ["ckpt-3", "ckpt-6"]
    now[0] += 1
    manage(max_to_keep=1).save(7)
    assert names(manager) == ["ckpt-3", "ckpt-6", "ckpt-7"], "the promise was for ever"


def test_the_best_is_kept_and_restored(w, manage):
    manager = manage(max_to_keep=1, best_metric="acc", best_mode="max")
    for value, acc in enumerate([0.5, 0.9, 0.7, None, 0.9]):
        w.assign([value, value])
        manager.save(metrics=None if acc is None else {"acc": jnp.float32(acc), "loss": 1})
    assert names(manager) == ["ckpt-2", "ckpt-5"]
    assert manager.best_checkpoint == manager.checkpoints[0]
    assert manager.restore_best() == manager.best_checkpoint
    assert w.numpy().tolist() == [1.0, 1.0]
    assert manager.metrics(manager.best_checkpoint) == {"acc": np.float32(0.9), "loss": 1.0}
    again = manage(max_to_keep=1, best_metric="loss", best_mode="min")
    assert Path(again.best_checkpoint).name == "ckpt-2.npz", "what is best is asked again"
    with pytest.raises(CheckpointError, match="elsewhere is none of the checkpoints"):
        manager.metrics("elsewhere")


def test_there_may_be_no_best(manage):
    with pytest.raises(ValueError, match="What is best"):
        manage().best_checkpoint  # noqa: B018 - the access is the test
    manager = manage(best_metric="loss", best_mode="min")
    manager.save()
    assert manager.best_checkpoint is None
    with pytest.raises(CheckpointError, match="has the metric 'loss'"):
        manager.restore_best()


def test_an_interval_lets_saves_pass(w, manage):
    step = jv.Variable(0)
    manager = manage(step_counter=step, checkpoint_interval=10, keep_every=25, max_to_keep=1)
    saved = []
    for now in range(1, 61):
        step.assign(now)
        if manager.save():
            saved.append(now)
    assert saved == [1, 11, 21, 31, 41, 51]
    assert names(manager) == ["ckpt-4", "ckpt-6"], "at step 31, the first after 25, and the newest"
    assert manager.save(check_interval=False).endswith("ckpt-7.npz")
    assert manager.save(check_interval=False) is None, "not twice at one step"
    step.assign(5)
    assert manager.save() is not None, "the counter went back"
    again = manage(step_counter=lambda: 8, checkpoint_interval=10)
    assert again.checkpoint_interval == 10
    assert again.save() is not None, "nothing is known of the last step before a restore"
    assert again.save() is None


def test_the_interval_goes_on_after_a_restore(w, tmp_path):
    step = jv.Variable(100)

    def manage():
        return CheckpointManager(
            Checkpoint(w=w, step=step), tmp_path, step_counter=step, checkpoint_interval=10,
            format="npz",
        )  # fmt: skip

    manage().save()
    step.assign(0)
    manager = manage()
    manager.restore_or_initialize()
    step.assign(109)
    assert manager.save() is None
    step.assign(110)
    assert manager.save() is not None


# ---------------------------------------------------------------- restoring
def test_init_fn_is_called_when_there_is_nothing(w, manage):
    manager = manage(init_fn=lambda: w.assign([5.0, 5.0]))
    assert manager.restore_or_initialize() is None
    assert w.numpy().tolist() == [5.0, 5.0]
    path = manager.save()
    w.assign([0.0, 0.0])
    assert manager.restore_or_initialize() == path
    assert manage(checkpoint_name="other").restore_or_initialize() is None


def test_the_next_manager_goes_on_where_the_last_one_was(w, manage):
    save_each(manage(max_to_keep=3), w, range(4))
    manager = manage(max_to_keep=3)
    assert names(manager) == ["ckpt-2", "ckpt-3", "ckpt-4"]
    manager.restore_or_initialize()
    save_each(manager, w, [9])
    assert names(manager) == ["ckpt-3", "ckpt-4", "ckpt-5"]
    save_each(manage(max_to_keep=1), w, [10])
    assert names(manager) == ["ckpt-1"], "counts again without a restore, but is the newest"


def test_a_training_run_goes_on_in_a_new_process_bit_for_bit(tmp_path, run_python):
    whole, half = Training(), Training()
    whole.run(20)
    half.run(10)
    path = CheckpointManager(half.checkpoint, tmp_path / "d").save()
    program, end = str(HERE / "checkpoint_training.py"), str(tmp_path / "end")
    done = run_python(program, "manager", str(tmp_path / "d"), "10", end)
    assert (done.returncode, done.stdout.strip()) == (0, path), done.stderr
    ends = map(jv.checkpoint.load, (end, whole.checkpoint.write(tmp_path / "whole")))
    ours, theirs = ({p: np.asarray(x).tobytes() for p, x in values.items()} for values in ends)
    del ours["save_counter"], theirs["save_counter"]
    assert ours == theirs


def damage(path, pattern):
    """Change a bit of each letter and number in the files whose names match."""
    for file in [p for p in Path(path).rglob("*") if p.is_file() and re.search(pattern, str(p))]:
        file.write_bytes(bytes(byte ^ 1 for byte in file.read_bytes()))


@pytest.mark.parametrize("part", ["manager.json", "_METADATA", r"-2/d/"])
def test_a_damaged_checkpoint_is_refused_or_skipped_with_a_warning(w, manage, part):
    manager = manage(format="orbax")
    w.assign([1.0, 1.0])
    first = manager.save()
    w.assign([2.0, 2.0])
    second = manager.save()
    damage(second, part)
    w.assign([3.0, 3.0])
    again = manage(format="orbax")
    with pytest.raises(CheckpointError, match="ckpt-2"):
        again.restore_or_initialize()
    assert w.numpy().tolist() == [3.0, 3.0]
    with pytest.warns(RuntimeWarning, match=r"A damaged checkpoint is skipped: .*ckpt-2"):
        assert again.restore_or_initialize(skip_damaged=True) == first
    assert w.numpy().tolist() == [1.0, 1.0]
    assert again.save(7) is not None, "saving goes on"
    assert Path(second).exists(), "and deletes nothing that it cannot read"


@pytest.mark.filterwarnings("ignore:A damaged checkpoint is skipped:RuntimeWarning")
def test_saving_goes_on_after_a_damaged_checkpoint_was_skipped(w, manage):
    save_each(manage(), w, [1.0, 2.0, 3.0])
    last = Path(manage().latest_checkpoint)
    last.write_bytes(last.read_bytes()[:-20])
    again = manage()
    assert names(again)[-1] == "ckpt-2"
    assert Path(again.restore_or_initialize(skip_damaged=True)).stem == "ckpt-2"
    save_each(again, w, [4.0, 5.0])
    assert names(again)[-2:] == ["ckpt-4", "ckpt-5"]
    assert int(again.checkpoint.save_counter) == 5
    assert last.exists()


def test_what_is_kept_for_ever_is_not_replaced_after_an_older_one_was_restored(w, manage):
    manager = manage(1, keep_every=3, best_metric="loss", best_mode="min")
    for loss in (0.5, 0.1, 0.3, 0.4):
        manager.save(metrics={"loss": loss})
    assert names(manager) == ["ckpt-2", "ckpt-3", "ckpt-4"]
    manager.restore_best()
    assert Path(manager.save(metrics={"loss": 0.2})).stem == "ckpt-5", "3 is kept for ever"
    assert Path(manager.save(metrics={"loss": 0.2})).stem == "ckpt-6"
    assert "ckpt-3" in names(manager)
    assert Path(manager.save(3, metrics={"loss": 0.2})).stem == "ckpt-3", "as it was asked for"


def test_a_manager_of_another_format_leaves_what_was_half_replaced(w, manage, monkeypatch):
    manager = manage()
    save_each(manager, w, [1.0])
    rename = Path.rename

    def rename_once(self: Path, target: Path) -> Path:
        done = rename(self, target)
        if ".old-" in str(target):
            monkeypatch.setattr(_checkpoint_directory, "remove", lambda _: None)
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(Path, "rename", rename_once)
    monkeypatch.setattr(Directory, "_finish_staged", lambda *_: None)  # the process is killed
    with pytest.raises(KeyboardInterrupt):
        manager.save(1)
    monkeypatch.undo()
    manage(format="orbax")
    assert names(manage()) == ["ckpt-1"]


def test_waiting_for_one_save_leaves_a_newer_one_to_be_waited_for(w, manage, monkeypatch):
    manager = manage(async_save=True)
    go, first_is_done, write = threading.Event(), threading.Event(), files.write
    wait = _checkpoint_saving.Job.wait
    save_each(manager, w, [1.0])

    def wait_and_stop(job: _checkpoint_saving.Job) -> None:
        wait(job)
        if threading.current_thread() is other:
            first_is_done.set()
            go.wait(60)

    monkeypatch.setattr(_checkpoint_saving.Job, "wait", wait_and_stop)
    other = threading.Thread(target=manager.wait)
    other.start()
    assert first_is_done.wait(60)
    end = threading.Event()
    monkeypatch.setattr(files, "write", lambda *given: end.wait(60) and write(*given))
    save_each(manager, w, [2.0])
    go.set()
    other.join()
    end.set()
    manager.wait()
    assert names(manager) == ["ckpt-1", "ckpt-2"]


def test_a_process_forked_meanwhile_waits_for_no_save_of_its_parent(run_python, tmp_path):
    program = """
        import multiprocessing, sys, threading, warnings
        warnings.simplefilter("ignore")
        import jaxvars as jv
        from jaxvars.checkpoint import saving
        checkpoint = jv.checkpoint.Checkpoint(v=jv.Variable([1.0]))
        manager = jv.checkpoint.CheckpointManager(
            checkpoint, sys.argv[1], format="npz", async_save=True)
        hold, write = threading.Event(), saving.files.write
        saving.files.write = lambda *given: (hold.wait(), write(*given))[1]
        manager.save()
        child = multiprocessing.get_context("fork").Process(target=int)
        child.start()
        child.join(30)
        print("exit", child.exitcode)
        child.kill()
        hold.set()
    """
    done = run_python("-c", textwrap.dedent(program), str(tmp_path / "d"))
    assert (done.returncode, done.stdout.strip()) == (0, "exit 0"), done.stderr


@pytest.mark.filterwarnings("ignore:.*callback:UserWarning")
def test_a_save_in_a_callback_is_refused_while_another_thread_saves(w, manage):
    manager = manage()
    said: list[BaseException] = []

    def call_back(_: object) -> None:
        with contextlib.suppress(ForeignTransformError):
            manager.save()
            said.append(AssertionError("saved"))

    @jv.compile
    def step(x):
        w.assign_add(x)
        jax.debug.callback(call_back, x)
        return w + 0

    with ThreadPoolExecutor(1) as others, manager._turn:  # as a save in this thread has it
        others.submit(step, jnp.ones(2)).result(timeout=60)
    assert not said


@pytest.mark.parametrize("format_", ["orbax", "npz"])
def test_a_record_is_trusted_only_with_its_checksum(w, manage, format_):
    manager = manage(format=format_, step_counter=lambda: 1234)
    path = Path(manager.save())
    file = path / "manager.json" if path.is_dir() else path
    words = file.read_bytes()
    assert words.count(b'"step": 1234') == 1
    file.write_bytes(words.replace(b'"step": 1234', b'"step": 1235'))
    with pytest.raises(CheckpointError, match=r"ckpt-1.* is damaged: what the manager wrote"):
        manager.restore_or_initialize()
    assert manager.checkpoints == []


@pytest.mark.parametrize("error", [TimeoutError("late"), OSError(5, "I/O"), PermissionError(13)])
def test_no_error_but_that_it_is_gone_hides_the_newest(w, manage, monkeypatch, error):
    save_each(manage(), w, [1, 2])
    stat = Path.stat

    def failing(self, **options):
        if "ckpt-2" in self.name:
            raise error
        return stat(self, **options)

    w.assign([3.0, 3.0])
    manager = manage()
    monkeypatch.setattr(Path, "stat", failing)
    with pytest.raises(type(error)) as caught:
        manager.restore_or_initialize()
    assert caught.value is error
    assert w.numpy().tolist() == [3.0, 3.0]
    with pytest.raises(type(error)):
        jv.checkpoint.latest_checkpoint(manager.directory)


def test_a_signal_handler_ends_the_wait_for_the_lock(w, manage, monkeypatch):
    manager = manage()
    manager.save()
    lock = _checkpoint_directory.fcntl.flock

    def late(file, how):
        if how != _checkpoint_directory.fcntl.LOCK_UN:
            raise TimeoutError("the alarm")
        lock(file, how)

    monkeypatch.setattr(_checkpoint_directory.fcntl, "flock", late)
    with pytest.raises(TimeoutError, match="the alarm"):
        manager.save()
    assert names(manager) == ["ckpt-1"]


@pytest.mark.parametrize("part", ["_METADATA", "manager.json"])
def test_when_all_are_damaged_nothing_is_initialized(w, manage, part):
    manager = manage(format="orbax", init_fn=lambda: w.assign([5.0, 5.0]))
    damage(manager.save(), part)
    with pytest.warns(RuntimeWarning), pytest.raises(CheckpointError, match="All checkpoints"):
        manager.restore_or_initialize(skip_damaged=True)
    assert w.numpy().tolist() == [0.0, 0.0]


def test_what_does_not_fit_is_not_taken_for_damaged(w, manage, tmp_path):
    save_each(manage(), w, [1, 2])
    wider = jv.Variable([0.0, 0.0, 0.0], name="w")
    manager = CheckpointManager(Checkpoint(w=wider), tmp_path / "d", format="npz")
    with pytest.raises(CheckpointError, match="shape"):
        manager.restore_or_initialize(skip_damaged=True)


# ---------------------------------------------------------------- in the background
@pytest.fixture
def gate(monkeypatch):
    """Let the writer wait for `gate.open.set()`; `gate.entered` is set when it waits."""

    class Gate:
        open, entered, fail = threading.Event(), threading.Event(), None
        write = staticmethod(files.write)

    def slow(path, values, about):
        Gate.entered.set()
        assert Gate.open.wait(60)
        if Gate.fail is not None:
            raise Gate.fail
        return Gate.write(path, values, about)

    monkeypatch.setattr(files, "write", slow)
    yield Gate
    Gate.open.set()


def test_what_is_saved_is_what_was_when_save_was_called(w, manage, gate, tmp_path):
    double = jv.compile(lambda: w.assign(2 * w + 1, read_value=False))  # donates
    manager = manage(async_save=True)
    w.assign([1.0, 2.0])
    path = manager.save()
    assert gate.entered.wait(60)
    for _ in range(3):
        double()
    w[0].assign(-1.0)
    assert manager.checkpoints == [], "not before it is whole"
    written = gate.write(tmp_path / "d" / ".ckpt.new-1-01234567.npz", {"w": w.value})
    assert latest_checkpoint(tmp_path / "d") is None, "nor if only its record is missing"
    written.unlink()
    gate.open.set()
    manager.wait()
    assert w.numpy().tolist() == [-1.0, 23.0]
    assert latest_checkpoint(tmp_path / "d") == path
    assert manager.restore_or_initialize() == path
    assert w.numpy().tolist() == [1.0, 2.0]


def test_one_save_is_under_way_at_a_time(w, manage, gate):
    manager = manage(async_save=True)
    manager.save()
    assert gate.entered.wait(60)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(manager.save)
        time.sleep(0.05)
        assert not second.done()
        gate.open.set()
        second.result()
    manager.sync()
    assert names(manager) == ["ckpt-1", "ckpt-2"]


@pytest.mark.parametrize("then", ["wait", "save", "restore_or_initialize", "__exit__"])
def test_an_error_in_the_background_is_told_once_with_the_path(w, manage, gate, then):
    manager = manage(async_save=True)
    gate.fail = OSError(28, "No space left on device")
    gate.open.set()
    manager.save()
    with pytest.raises(CheckpointError, match=r"ckpt-1.npz was not saved .*No space left") as told:
        getattr(manager, then)(*(None, None, None) if then == "__exit__" else ())
    assert told.value.__cause__ is gate.fail
    gate.fail = None
    manager.wait()
    assert manager.save().endswith("ckpt-2.npz")
    manager.wait()
    assert names(manager) == ["ckpt-2"]
    assert files_in(manager.directory) == ["ckpt-2.npz"]


def test_a_with_block_waits_and_its_own_error_comes_first(w, manage, gate):
    gate.open.set()
    with manage(async_save=True) as manager:
        manager.save()
    assert names(manager) == ["ckpt-1"]
    gate.fail = OSError("full")
    other = manage(async_save=True, checkpoint_name="b")
    other.save()
    with pytest.raises(KeyError) as raised, other:
        raise KeyError("mine")
    assert "b-1.npz was not saved" in raised.value.__notes__[0]


def test_nothing_holds_the_values_when_they_are_written(w, manage, gate):
    manager = manage(async_save=True)
    gate.open.set()
    manager.save()
    manager._job._thread.join()
    assert not hasattr(manager._job._thread, "_args")
    manager.wait()
    assert manager._job is None


EXIT = """
import jax.numpy as jnp, jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager, latest_checkpoint
w = jv.Variable(jnp.ones(1000), name="w")
CheckpointManager(Checkpoint(w=w), "good", async_save=True).save()
open("bad", "w").close()
CheckpointManager(Checkpoint(w=w), "bad", async_save=True).save()
"""


def test_a_save_is_finished_and_its_error_told_when_the_interpreter_ends(run_python, tmp_path, w):
    done = run_python("-c", EXIT)
    told = re.findall(r"CheckpointError: .*/bad/ckpt-1 was not saved in the backg", done.stderr)
    assert len(told) == 1, done.stderr
    whole = jv.Variable(jnp.zeros(1000), name="w")
    manager = CheckpointManager(Checkpoint(w=whole), tmp_path / "good")
    assert manager.restore_or_initialize() == str(tmp_path / "good" / "ckpt-1")
    assert float(whole.value.sum()) == 1000.0


LATE = """
import atexit, os, threading, time, jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager
w = jv.Variable([1.0, 2.0], name="w")
checkpoint = Checkpoint(w=w)
managers = {f: CheckpointManager(checkpoint, f, async_save=True, format=f) for f in formats}
if warm: managers["orbax"].save()
def save(when):
    for name, manager in managers.items():
        try:
            print(when, os.path.basename(manager.save(1)), manager.metrics(f"{name}/ckpt-1.npz"))
            w.assign([0.0, 0.0])
            checkpoint.restore(manager.latest_checkpoint)
        except jv.errors.CheckpointError as error:
            print(when, error)
    try: checkpoint.save("plain/ckpt")
    except jv.errors.CheckpointError as error: print(when, error)
    print(checkpoint.save("plain/ckpt.npz") is not None, w.numpy())
def outlive():
    threading.main_thread().join()
    time.sleep(0.5)
    save("thread")
atexit.register(save, "atexit")
threading.Thread(target=outlive).start()
"""


@pytest.mark.parametrize("warm", [False, True])
def test_what_is_saved_on_the_way_out_is_saved_or_refused(run_python, tmp_path, warm):
    done = run_python("-c", f"formats, warm = ('npz', 'orbax'), {warm}\n{LATE}")
    refused = r"A folder in (\S+) is written by orbax with threads, and none .* ends in \.npz .*\n"
    each = "".join(
        rf"{when} ckpt-1\.npz {{}}\n{when} {refused}{when} {refused}True \[1\. 2\.\]\n"
        for when in ("thread", "atexit")
    )
    assert (found := re.fullmatch(each, done.stdout)), done.stdout + done.stderr
    assert [Path(path).name for path in found.groups()] == ["orbax", "plain"] * 2
    assert len([*(tmp_path / "orbax").glob("ckpt-*")]) == warm
    assert jv.checkpoint.load(tmp_path / "npz" / "ckpt-1.npz")["w"].tolist() == [1.0, 2.0]


# ---------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_to_keep": 0}, ValueError, "max_to_keep is a positive integer or None"),
        ({"checkpoint_interval": 3}, ValueError, "needs a step_counter"),
        ({"checkpoint_interval": 0, "step_counter": 1}, ValueError, "checkpoint_interval is a pos"),
        ({"checkpoint_name": "a/b"}, ValueError, "first part of file names"),
        ({"checkpoint_name": ".."}, ValueError, "first part of file names"),
        ({"checkpoint_name": ""}, ValueError, "first part of file names"),
        ({"checkpoint_name": 3}, ValueError, "first part of file names"),
        ({"format": "hdf5"}, ValueError, "format is 'orbax' or 'npz', not 'hdf5'"),
    ],
)
def test_options_are_checked(manage, options, error, message):
    with pytest.raises(error, match=message):
        manage(**options)


def test_a_manager_is_of_a_checkpoint(w, tmp_path):
    with pytest.raises(TypeError, match=r"saves a Checkpoint, not Variable: CheckpointManager\("):
        CheckpointManager(w, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"checkpoint_number": 2.0}, TypeError, r"number of a checkpoint is an integer, not 2\.0"),
        ({"checkpoint_number": "a"}, TypeError, "integer, not 'a'"),
        ({"checkpoint_number": -1}, ValueError, "not negative, as -1 is"),
        ({"metrics": {"los": 1.0}}, ValueError, "best checkpoint is chosen by 'loss'"),
        ({"metrics": {"loss": "x"}}, TypeError, "one number"),
    ],
)
def test_a_save_that_is_refused_changes_nothing(manage, tmp_path, arguments, error, message):
    manager = manage(best_metric="loss", best_mode="min")
    with pytest.raises(error, match=message):
        manager.save(**arguments)
    assert int(manager.checkpoint.save_counter) == 0
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("verb", ["save", "restore_or_initialize", "restore_best"])
def test_compiled_code_is_refused(manage, verb):
    manager = manage(best_metric="loss", best_mode="min")
    manager.save(metrics={"loss": 1.0})
    with pytest.raises(ForeignTransformError, match="being traced"):
        jv.compile(getattr(manager, verb))()
    assert names(manager) == ["ckpt-1"]


def test_a_failed_save_changes_nothing(w, manage, monkeypatch):
    manager = manage(max_to_keep=1)
    manager.save()

    def fail(path, values, about):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "write", fail)
        with pytest.raises(OSError, match="No space left"):
            manager.save()
    assert int(manager.checkpoint.save_counter) == 1
    assert files_in(manager.directory) == ["ckpt-1.npz"]


# ---------------------------------------------------------------- what others put there
def test_nothing_is_deleted_that_no_manager_wrote(w, manage, tmp_path):
    manager = manage(max_to_keep=1, format="orbax")
    directory = tmp_path / "d"
    for name in ("ckpt-7", "ckpt-best", "ckpt-08", "other-1", ".ckpt.old-mine", ".ckpt.new-1"):
        (directory / name).mkdir(parents=True)
    (directory / "notes.txt").write_text("mine")
    before = files_in(directory)
    manager.save()
    shutil.copytree(directory / "ckpt-1", directory / "ckpt-99")
    shutil.copytree(directory / "ckpt-1", directory / "ckpt-copy-1")
    for _ in range(2):
        manager.save()
    assert names(manager) == ["ckpt-99", "ckpt-3"], "a copy counts, but as old"
    assert files_in(directory) == sorted([*before, "ckpt-3", "ckpt-99", "ckpt-copy-1"])
    with pytest.raises(CheckpointError, match="ckpt-7 is there and is not replaced: no Checkpoin"):
        manager.save(7)
    assert int(manager.checkpoint.save_counter) == 3


@pytest.mark.parametrize("format_", ["orbax", "npz"])
def test_checkpoints_that_were_saved_without_a_manager_are_found(w, manage, tmp_path, format_):
    end = ".npz" if format_ == "npz" else ""
    alone = Checkpoint(w=w)
    for _ in range(3):
        w.assign_add([1.0, 1.0])
        alone.save(tmp_path / "d" / f"ckpt{end}")
    w.assign([0.0, 0.0])
    manager = manage(max_to_keep=1, keep_checkpoint_every_n_hours=1.0, format=format_)
    assert manager.restore_or_initialize().endswith(f"ckpt-3{end}")
    assert w.numpy().tolist() == [3.0, 3.0]
    assert manager.save().endswith(f"ckpt-4{end}"), "it goes on counting"
    manager.save()
    assert names(manager) == ["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-5"], "not its own to delete"
    with pytest.raises(CheckpointError, match=r"ckpt-2.* is there and is not replaced"):
        manager.save(2)


def test_names_that_begin_alike_are_told_apart(w, manage):
    managers = [manage(max_to_keep=1, checkpoint_name=name) for name in ("ckpt", "ckpt-1", "c.k+")]
    for manager in managers * 2:
        manager.save()
    assert [names(m) for m in managers] == [["ckpt-2"], ["ckpt-1-2"], ["c.k+-2"]]


def test_two_formats_in_one_directory_are_told_apart(w, manage):
    one, other = manage(max_to_keep=1), manage(max_to_keep=1, format="orbax")
    for manager in (one, other, one, other):
        manager.save()
    assert files_in(one.directory) == ["ckpt-2", "ckpt-2.npz"]


def test_a_directory_that_may_not_be_written_can_be_read(w, manage):
    path = Path(manage().save())
    (path.parent / ".ckpt.old-0123abcd").mkdir()
    path.parent.chmod(0o555)
    try:
        assert manage().restore_or_initialize() == str(path)
    finally:
        path.parent.chmod(0o755)


def test_an_old_checkpoint_that_cannot_be_deleted_is_a_warning(w, manage, monkeypatch):
    manager = manage(max_to_keep=1)
    manager.save()

    def refuse(self, number):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Directory, "delete", refuse)
    with pytest.warns(RuntimeWarning, match=r"ckpt-1.npz is not needed .* Permission denied"):
        manager.save()
    assert names(manager) == ["ckpt-1", "ckpt-2"]
    assert int(manager.checkpoint.save_counter) == 2


BESIDE = """
import jaxvars as jv
from jaxvars.checkpoint import Checkpoint, CheckpointManager, latest_checkpoint
w = jv.Variable([0.0, 0.0], name="w")
manager = CheckpointManager(Checkpoint(w=w), "d", max_to_keep=3, format="npz")
print("ready", flush=True)
for i in range(100, 140):
    w.assign([i, i])
    manager.save(i % 5)
"""


def test_two_processes_may_save_in_one_directory(w, manage, run_python, tmp_path):
    manager = manage(max_to_keep=3)
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_python, "-c", BESIDE)
        rounds = 0
        while not beside.done() or rounds < 40:
            w.assign([rounds, rounds])
            manager.save(rounds % 5)
            rounds += 1
            assert manager.restore_or_initialize() is not None
            left, right = w.numpy().tolist()
            assert left == right
        assert beside.result().returncode == 0, beside.result().stderr
    assert len(manager.checkpoints) == 3
    assert len(files_in(tmp_path / "d")) == 3


# ---------------------------------------------------------------- killed, or interrupted
class Killed(BaseException):
    """What stands for kill -9: after it, nothing more happens on disk."""


class Doom:
    """Let the n-th change of the disk, and all after it if `killed`, fail."""

    CHANGES = ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync")

    def __init__(self, monkeypatch, at, error, *, killed):
        self.left, self.error, self.killed = at, error, killed
        for name in self.CHANGES:
            monkeypatch.setattr(os, name, self.doomed(getattr(os, name)))

    def doomed(self, change):
        def run(*args, **kwargs):
            self.left -= 1
            if self.left == -1 or (self.killed and self.left < 0):
                raise self.error
            return change(*args, **kwargs)

        return run


FILES = "abcmnopxyz"  # more than one, whichever is deleted first


def put(directory, number, serial):
    """Put a checkpoint that says its serial number in other files, too."""

    def write(path):
        if path.suffix == ".npz":
            np.savez(path, serial=serial)
        else:
            path.mkdir()
            for name in FILES:
                (path / name).write_text(str(serial))

    record = Record(number, serial, serial, float(serial))
    directory.exclusively(lambda: directory.put(record, write))


def check_whole(directory):
    """Check that all that is listed is whole; return numbers and serials."""
    for record in directory.records():
        path = directory.path_of(record.number)
        texts = (
            [np.load(path)["serial"]] if path.suffix else [(path / n).read_text() for n in FILES]
        )
        assert {int(text) for text in texts} == {record.serial}
    return [(r.number, r.serial) for r in directory.records()]


def change(directory):
    put(directory, 2, 3)  # takes the place of another
    directory.exclusively(lambda: directory.delete(1))


BEFORE, BETWEEN, AFTER = [(1, 1), (2, 2)], [(1, 1), (2, 3)], [(2, 3)]


@pytest.mark.parametrize("suffix", ["", ".npz"])
@pytest.mark.parametrize("error", [Killed(), KeyboardInterrupt()])
def test_a_kill_or_interrupt_at_any_change_of_the_disk_leaves_things_whole(
    tmp_path, monkeypatch, suffix, error
):
    seen = []
    for at in range(100):
        path = tmp_path / str(at)
        directory = Directory(path, "ckpt", suffix)
        put(directory, 1, 1)
        put(directory, 2, 2)
        with monkeypatch.context() as patch:
            doom = Doom(patch, at, error, killed=isinstance(error, Killed))
            with contextlib.suppress(Killed, KeyboardInterrupt):
                change(directory)
        if isinstance(error, Killed):
            directory._turn.depth = 0
        at_once = check_whole(Directory(path, "ckpt", suffix))
        assert at_once in (BEFORE, BETWEEN, AFTER, [(1, 1)]), "2 is away between two renames"
        after = Directory(path, "ckpt", suffix)
        after.tidy() if at % 2 else after.exclusively(lambda: None)
        seen.append(check_whole(after))
        assert seen[-1] in (BEFORE, BETWEEN, AFTER)
        assert all(name.startswith("ckpt-") for name in files_in(path)), files_in(path)
        if doom.left >= 0:
            break
    assert sorted(seen, key=[BEFORE, BETWEEN, AFTER].index) == seen
    assert {len(each) for each in seen} == {1, 2}
    assert BETWEEN in seen
    assert len(seen) > 8


def test_an_interrupt_while_waiting_loses_nothing(w, manage, gate):
    manager = manage(async_save=True)
    manager.save()
    assert gate.entered.wait(60)

    def interrupted():
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        manager.wait()

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGALRM, before)
    gate.open.set()
    manager.wait()
    assert names(manager) == ["ckpt-1"]


def test_a_signal_handler_may_save_while_a_save_runs(w, manage, monkeypatch):
    manager = manage()
    write, inner = files.write, []

    def interrupted(path, values, about):
        if not inner:
            inner.append(None)
            inner.append(manager.save(50))
        return write(path, values, about)

    monkeypatch.setattr(files, "write", interrupted)
    manager.save(40)
    assert names(manager) == ["ckpt-40", "ckpt-50"], "as the values were"
    assert len(files_in(manager.directory)) == 2


def test_killed_at_any_moment_it_leaves_what_it_had_saved(run_python, tmp_path):
    check_storm(run_python, tmp_path, "managers", 10, 1)


@pytest.mark.slow
def test_killed_a_hundred_times_it_leaves_what_it_had_saved(run_python, tmp_path):
    check_storm(run_python, tmp_path, "managers", 100, 2)


# ---------------------------------------------------------------- display
def test_it_shows_what_is_there(w, manage, monkeypatch):
    monkeypatch.setattr(_checkpoint_manager, "_clock", lambda: 86400.0)
    manager = manage(keep_every=2, step_counter=lambda: 14)
    manager.save(metrics={"loss": 0.5})
    assert list(manager.table()) == [("ckpt-1.npz", 14, "1970-01-02 00:00:00+00:00", 0.5, True)]
    assert manager.table().columns == ("checkpoint", "step", "saved", "loss", "for ever")
    assert "checkpoints=['ckpt-1.npz']" in repr(manager)
    assert "ckpt-1.npz" in manager._repr_html_()
