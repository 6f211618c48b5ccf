"""Many processes: what one process can know, and training runs of two that are killed."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
import train_two_processes as program
from processes import DYING, jax_variables, run_processes, slurm_variables

import jaxvars as jv
from jaxvars.errors import DistributedError, ShardingError
from jaxvars.parallel import batches, processes


# ---------------------------------------------------------------- one process
def test_alone_everything_has_an_answer():
    d = jv.parallel
    assert (d.rank(), d.process_count(), d.is_chief()) == (0, 1, True)
    d.barrier("here")
    d.shutdown()
    assert d.is_preempted(0) is False
    v = jv.Variable([1.0, 2.0])
    assert d.all_gather({"v": v})["v"].tolist() == [[1.0, 2.0]]
    assert d.broadcast([v])[0].tolist() == [1.0, 2.0]
    d.check_same(v=v, word=jv.Variable("text"), key=jv.Variable(jax.random.key(0)))


@pytest.mark.parametrize("ask", [jv.parallel.rank, jv.parallel.process_count, jv.parallel.is_chief])
def test_a_process_of_mpi_does_not_take_itself_for_the_only_one(monkeypatch, ask):
    for name, value in {"SIZE": "2", "RANK": "1", "LOCAL_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", value)
    with pytest.raises(
        DistributedError, match=r"before jv.parallel.initialize\(\)(?s:.*)to be alone"
    ):
        ask()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert int(ask()) == (ask is not jv.parallel.rank)


def test_initialize_after_jax_was_used_says_what_to_do():
    jax.devices()
    for given in ({}, {"coordinator_address": "127.0.0.1:1", "num_processes": 1, "process_id": 0}):
        with pytest.raises(DistributedError, match=r"too late: .*(?s:.*)\n    jv.parallel.init"):
            jv.parallel.initialize(**given)


def test_what_jaxs_variables_say_must_be_whole(monkeypatch):
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", "localhost:1")
    monkeypatch.setenv("JAX_PROCESS_ID", "one")
    match = r"JAX_NUM_PROCESSES=None, JAX_PROCESS_ID='one'(?s:.*)JAX_PROCESS_ID=0 python train.py &"
    with pytest.raises(DistributedError, match=match):
        jv.parallel.initialize()


def test_what_jaxs_variables_say_is_read():
    given = {"JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3"}
    found = processes._read_variables({"JAX_COORDINATOR_ADDRESS": "node1:12", **given})
    assert found == {"coordinator_address": "node1:12", "num_processes": 4, "process_id": 3}
    found = processes._read_variables({"JAX_COORDINATOR_ADDRESS": "localhost:12", **given})
    assert found is not None
    assert found["coordinator_bind_address"] == "localhost:12"
    assert processes._read_variables({"JAX_COORDINATOR_ADDRESS": "node1:12"}) is None  # in Slurm


@pytest.mark.parametrize("name", ["rank", "process_count", "is_chief"])
def test_questions_before_initialize_are_refused_in_one_of_several(monkeypatch, name):
    monkeypatch.setenv("JAX_NUM_PROCESSES", "2")
    with pytest.raises(DistributedError, match=rf"{name}\(\) was called before .*initialize\(\)"):
        getattr(jv.parallel, name)()


def test_what_ray_train_says_is_read(monkeypatch):
    def outside() -> Any:
        raise RuntimeError("cannot be used outside of a Ray Train training function")

    context = SimpleNamespace(get_world_size=lambda: 4, get_world_rank=lambda: 3)
    ray, train, together = map(ModuleType, ("ray", "ray.train", "ray.train.collective"))
    ray.train, ray.util = train, SimpleNamespace(get_node_ip_address=lambda: "10.0.0.7")
    together.broadcast_from_rank_zero = lambda address: address.replace("7:", "1:")
    for module in (ray, together):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "ray.train", raising=False)
    assert processes._read_ray() is None  # nothing of this process has imported it
    monkeypatch.setitem(sys.modules, "ray.train", train)
    train.get_context = outside
    assert processes._read_ray() is None
    train.get_context = lambda: context
    found = processes._read_ray() or {}
    assert re.fullmatch(r"10\.0\.0\.1:\d+", found.pop("coordinator_address"))
    assert found == {"num_processes": 4, "process_id": 3}


def test_alone_initialize_does_nothing_and_half_an_address_is_refused(run_python):
    code = """
import jaxvars as jv
try:
    jv.parallel.initialize("127.0.0.1:1", cluster_detection_method="deactivate")
except jv.errors.DistributedError as error:
    print(error)
for _ in range(2):
    jv.parallel.initialize(cluster_detection_method="deactivate")
print(jv.parallel.process_count(), jv.Variable(1.0))
jv.parallel.initialize()
print("again")
"""
    done = run_python("-c", code)
    assert "num_processes, process_id is neither given nor known from a cluster" in done.stdout
    assert "1 <Variable 'Variable' float32[] 1.>\nagain\n" in done.stdout, done.stderr


def test_a_cluster_is_asked(run_python):
    code = "import jax, jaxvars as jv; jv.parallel.initialize(); "
    (slurm,) = slurm_variables(1)
    done = run_python("-c", code + "print(jax.distributed.is_initialized())", **slurm)
    assert done.stdout == "True\n", done.stderr


def test_an_address_alone_does_not_suffice(run_python):
    code = "import jaxvars as jv; jv.parallel.initialize()"
    done = run_python("-c", code, JAX_COORDINATOR_ADDRESS="localhost:1")
    assert "each other: num_processes, process_id is neither given nor known" in done.stderr


def test_parts_are_rows_in_order(monkeypatch):
    batch = {"x": np.arange(12).reshape(6, 2), "y": [jv.Variable([1.0, 2.0, 3.0])]}
    monkeypatch.setattr(batches, "process_count", lambda: 3)
    monkeypatch.setattr(batches, "rank", lambda: 1)
    part = jv.parallel.local_part(batch)
    assert part["x"].tolist() == [[4, 5], [6, 7]]
    assert part["y"][0].tolist() == [2.0]
    with pytest.raises(ShardingError, match=r"shape \(4,\) .* among 3 processes: .* multiple of 3"):
        jv.parallel.local_part(np.ones(4))


def test_a_global_batch_is_placed_as_requested():
    with pytest.raises(ShardingError, match="no mesh is in force"):
        jv.parallel.global_batch(np.ones(4), jax.P("data"))
    with jv.use_mesh({"data": 4}) as mesh:
        x, (n,) = jv.parallel.global_batch((np.ones((8, 2)), [np.arange(4)]), jax.P("data"))
        assert x.sharding.is_equivalent_to(jax.NamedSharding(mesh, jax.P("data")), 2)
        assert n.tolist() == [0, 1, 2, 3]
        with pytest.raises(ShardingError, match=r"A part of shape \(3,\) cannot be sharded"):
            jv.parallel.global_batch(np.ones(3), jax.P("data"))
        with pytest.raises(ShardingError, match="'date' is there twice or is not an axis"):
            jv.parallel.global_batch(np.ones(4), jax.P("date"))


# ---------------------------------------------------------------- two processes
TOGETHER = """
import time
import jax, numpy as np, jaxvars as jv
d = jv.parallel
d.initialize()
d.initialize()
assert (d.rank(), d.process_count(), jax.device_count()) == (int(d.is_chief()) ^ 1, 2, 4)
d.barrier("begin")
assert d.broadcast({"rank": d.rank(), "x": np.arange(2.0) + d.rank()})["x"].tolist() == [0, 1]
assert d.all_gather(np.array([d.rank(), 7])).tolist() == [[0, 7], [1, 7]]
assert d.is_preempted(0) is False

with jv.use_mesh({"data": -1}):
    rows = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    batch = d.global_batch(d.local_part(rows), jax.P("data"))
    spread = jv.Variable(rows, sharding=jax.P("data"), name="spread")
    same = jv.Variable(np.ones(2, np.float32), name="same")
    mine = jv.Variable(np.full(2, d.rank(), np.float32), name="mine")

    @jv.compile
    def step(x):
        spread.assign_add(x)
        same.assign_add((x @ spread.value.T).sum(0)[:2])

    step(batch)
    step(batch)
    assert d.all_gather(spread).tolist() == (3 * rows).tolist()
    assert same.numpy().tolist() == [81.0, 361.0], same
    assert repr(spread) == "<Variable 'spread' float32[4,2] (on 2 processes)>"
    spread[0].assign([5.0, 5.0])
    state = jv.State.of(spread, same)
    spread.assign(jax.numpy.zeros((4, 2)))
    state.commit()
    assert d.all_gather(spread)[0].tolist() == [5.0, 5.0]
    d.check_same(spread, same)

    checkpoint = jv.checkpoint.Checkpoint(spread=spread)
    checkpoint.write("spread.npz")  # by all, together
    spread.assign(jax.numpy.zeros((4, 2)))
    checkpoint.read("spread.npz")
    assert d.all_gather(spread)[0].tolist() == [5.0, 5.0]
    assert repr(spread) == "<Variable 'spread' float32[4,2] (on 2 processes)>"

def refused(action):
    try:
        action()
    except jv.errors.DistributedError as error:
        return str(error)
    raise AssertionError("not refused")

for action in (spread.numpy, lambda: np.asarray(spread), lambda: list(spread)):
    assert "is sharded over 2 processes" in refused(action)
assert "all_gather(v), called by all of them" in refused(lambda: __import__("pickle").dumps(spread))
assert "different values of mine. Make them" in refused(lambda: d.check_same(mine, same=same))
print("fine", d.rank())

for i in range(100_000):
    with jv.use_mesh({"data": -1}):
        step(batch)
    jax.block_until_ready(same.value)  # as several virtual devices in a process need
    if d.is_preempted(i):
        print("leaves at", i)
        break
    time.sleep(0.01)
"""


def test_two_processes_compute_together_until_they_are_told_to_leave(tmp_path):
    (tmp_path / "together.py").write_text(TOGETHER)
    fine = list[str]()

    def stop(line: str, started: list[Any]) -> None:
        fine.extend(re.findall(r"fine (\d)", line))
        if len(fine) == 2:
            random.choice(started).send_signal(signal.SIGTERM)
            fine.clear()

    done = run_processes(tmp_path, jax_variables(2), "together.py", devices=2, watch=stop)
    assert done.codes == [0, 0], done
    left = [re.findall(r"leaves at (\d+)", text) for text in done.texts]
    assert len(left[0]) == 1, done
    assert left[0] == left[1], "JAX agrees on a step"


FAILING = """
import jax, numpy as np, jaxvars as jv
jv.parallel.initialize()
jv.parallel.barrier("begin")
if jv.parallel.rank() == 1:
    raise ValueError("no such data")
jv.parallel.barrier("which worker 1 does not reach")
"""


def test_an_error_in_one_process_ends_it_at_once(tmp_path):
    # JAX would wait for the other processes at the end of the program: longer than the time-out.
    (tmp_path / "failing.py").write_text(FAILING)
    done = run_processes(tmp_path, jax_variables(2), "failing.py")
    assert done.codes[1] == 1
    assert done.codes[0] != 0
    assert "ValueError: no such data" in done.texts[1]


SAVING = """
import numpy as np, jax, jaxvars as jv
d = jv.parallel
d.initialize()
with jv.use_mesh({"data": -1}):
    w = jv.Variable(np.arange(8.0, dtype="float32"), sharding=jax.P("data"), name="w")
    b = jv.Variable(np.float32(3.0), name="b")
checkpoint = jv.checkpoint.Checkpoint(w=w, b=b)
path = checkpoint.save("folder/ckpt.npz")
manager = jv.checkpoint.CheckpointManager(checkpoint, "run", max_to_keep=2, async_save=True)
for i in range(3):
    w.assign(w.value + 1)
    assert manager.save() == manager.latest_checkpoint
w.assign(w.value * 0)
manager.restore_or_initialize()
assert np.allclose(d.all_gather(w), np.arange(8.0) + 3), d.all_gather(w)
try:
    checkpoint.write("file_in_the_way/ckpt")
except (OSError, jv.errors.CheckpointError) as error:
    print("refused", type(error).__name__)
print("saved", int(checkpoint.save_counter))
"""


def test_variables_on_several_processes_are_saved_by_all_and_restored_by_one(tmp_path):
    (tmp_path / "saving.py").write_text(SAVING)
    (tmp_path / "file_in_the_way").write_text("no folder")
    done = run_processes(tmp_path, jax_variables(2), "saving.py", devices=2)
    assert done.codes == [0, 0], done
    assert all("saved 4" in text for text in done.texts), done
    refused = re.findall(r"refused (\w+)", "".join(done.texts))
    assert sorted(refused) == ["CheckpointError", "FileExistsError"]
    assert jv.checkpoint.load(tmp_path / "folder/ckpt-1.npz")["w"].tolist() == list(range(8))
    with jv.use_mesh({"data": 8}):  # another mesh, in one process
        w = jv.Variable(np.zeros(8, np.float32), sharding=jax.P("data"))
        b = jv.Variable(np.float32(0.0))
    jv.checkpoint.Checkpoint(w=w, b=b).restore(tmp_path / "run" / "ckpt-4").assert_consumed()
    assert w.numpy().tolist() == [3, 4, 5, 6, 7, 8, 9, 10]
    assert (float(b), w.sharding.spec) == (3.0, jax.P("data"))


def undisturbed(devices: int, folder: Path) -> list[np.ndarray]:
    """The weights of the same training in this process."""
    with jv.use_mesh({"data": devices}):
        return program.train(folder)


def weights(folder: Path) -> list[np.ndarray]:
    with np.load(folder / "weights.npz") as file:
        return [file[name] for name in file.files]


@pytest.mark.parametrize("after", [2, 1])
def test_a_killed_worker_leaves_no_trace_in_the_values(tmp_path, after):
    rank, step = random.randrange(2), random.randrange(program.STEPS)
    (tmp_path / "dying.py").write_text(DYING)
    command = ("dying.py", ".", f"{rank}:{step}")
    died = run_processes(tmp_path, jax_variables(2), *command)
    assert died.codes[rank] == -signal.SIGKILL, died
    done = run_processes(tmp_path, jax_variables(after), *command)
    assert done.codes == [0] * after, done
    again = re.findall(r"step (\d+) ", done.texts[0])
    saved = (step + 1) // program.SAVE_EVERY * program.SAVE_EVERY
    # Worker 1 looks at no value, so it may be ahead, and have died while worker 0 was saving.
    first = {saved, saved - program.SAVE_EVERY} if rank else {saved}
    assert int(again[0]) in first if again else program.STEPS in first, (died, done)
    exactly = after == 2
    tolerance = {"rtol": 0 if exactly else 1e-5, "atol": 0 if exactly else 1e-6}
    for ours, theirs in zip(undisturbed(after, tmp_path / "other"), weights(tmp_path), strict=True):
        np.testing.assert_allclose(ours, theirs, **tolerance)


@pytest.mark.slow
def test_a_storm_of_kills_leaves_no_trace_in_the_values(tmp_path):
    """Twenty times, one of the workers is killed at a random moment, wherever it is."""
    kills, pids = 20, set[int]()
    (tmp_path / "slowly.py").write_text("""
import os
print(f"pid={os.getpid()}")
import train_two_processes as program
program.STEPS = 200
program.main()
""")

    def watch(line: str, started: list[Any]) -> None:
        nonlocal kills
        pids.update(map(int, re.findall(r"pid=(\d+)", line)))
        if kills and len(pids) == 2 and random.random() < (0.25 if "step" in line else 0.3):
            time.sleep(random.random() * (0.02 if "step" in line else 1.0))
            with suppress(ProcessLookupError):
                os.kill(random.choice([*pids]), signal.SIGKILL)
            kills -= 1
            pids.clear()

    while any(run_processes(tmp_path, jax_variables(2), "slowly.py", ".", watch=watch).codes):
        pids.clear()
    assert kills == 0
    program.STEPS, steps = 200, program.STEPS
    try:
        expected = undisturbed(2, tmp_path / "other")
    finally:
        program.STEPS = steps
    for ours, theirs in zip(expected, weights(tmp_path), strict=True):
        np.testing.assert_array_equal(ours, theirs)
