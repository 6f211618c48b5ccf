"""Training under the launchers of others: Slurm's variables, `mpirun` and Ray.

Processes compute on sharded weights, one is killed, and what is started again from the last
checkpoint, in as many processes or in others, ends with the values of an undisturbed run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import train_two_processes as program

import jaxvars as jv
from jaxvars.errors import DistributedError
from jaxvars.parallel import processes as _processes

TESTS = Path(__file__).parents[1]
MPIRUN = shutil.which("mpirun") or shutil.which("mpirun", path=Path(sys.executable).parent)
mpirun = pytest.mark.skipif(MPIRUN is None, reason="mpirun is not installed")
ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")

# A worker kills itself at a step of an attempt: "0:1:6" for attempt 0, rank 1, step 6.
DYING = """
import os, signal, sys
import train_two_processes as program
import jaxvars as jv

def train(folder, when):
    def after_step(step):
        if f"{jv.parallel.attempt()}:{jv.parallel.rank()}:{step}" == when:
            os.kill(os.getpid(), signal.SIGKILL)

    program.run(folder, after_step, sharded=True)
    return jv.parallel.rank(), jv.parallel.process_count(), jv.parallel.attempt()

if __name__ == "__main__":
    print("trained", *train(*sys.argv[1:]), flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts `dying.py`, or another command."""
    (tmp_path / "dying.py").write_text(DYING)
    begun = []

    def popen(*command: str, **variables: str) -> subprocess.Popen[str]:
        paths = os.pathsep.join(map(str, (tmp_path, TESTS, TESTS.parent)))
        env = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "PYTHONPATH": paths, **variables}
        process = subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        begun.append(process)
        return process

    yield popen
    for process in begun:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    text, _ = process.communicate(timeout=240)
    return process.returncode, text


def steps(text: str) -> list[int]:
    return [int(step) for step in re.findall(r"step (\d+) ", text)]


def check_values(folder: Path, processes: int, *, exactly: bool) -> None:
    with jv.use_mesh({"data": processes}):
        expected = program.train(folder / "undisturbed", sharded=True)
    with np.load(folder / "weights.npz") as file:
        for name, wanted in zip(file.files, expected, strict=True):
            np.testing.assert_allclose(
                file[name], wanted, rtol=0 if exactly else 1e-5, atol=0 if exactly else 1e-6
            )


# ---------------------------------------------------------------- Slurm
def slurm(start: Any, count: int, job: int, when: str) -> list[tuple[int, str]]:
    """Do what `srun --kill-on-bad-exit` does on a machine, as far as a program sees it."""
    tasks = [
        start(
            sys.executable, "dying.py", ".", when, SLURM_JOB_ID=str(job),
            SLURM_STEP_NODELIST="localhost", SLURM_NTASKS=str(count), SLURM_PROCID=str(rank),
            SLURM_LOCALID=str(rank),
        )
        for rank in range(count)
    ]  # fmt: skip
    while all(task.poll() is None for task in tasks):
        time.sleep(0.02)
    if any(task.poll() for task in tasks):
        for task in tasks:
            task.kill()
    return [end(task) for task in tasks]


def new_job() -> int:
    return time.monotonic_ns() % 10**6  # JAX makes a port of it


def test_slurm_starts_two_processes(start, tmp_path):
    done = slurm(start, 2, new_job(), "never")
    assert [code for code, _ in done] == [0, 0], done
    assert ["trained 0 2 0" in done[0][1], "trained 1 2 0" in done[1][1]] == [True, True]
    check_values(tmp_path, 2, exactly=True)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(2, 2), (2, 4), (2, 1), (1, 2)])
def test_slurm_goes_on_after_a_kill(start, counts, tmp_path):
    before, after = counts
    job = new_job()
    died = slurm(start, before, job, f"0:{before - 1}:6")
    assert any(code for code, _ in died), died
    assert set(steps(died[0][1])) >= {0, 1, 2, 3}, died
    done = slurm(start, after, job + 1, "never")
    assert [code for code, _ in done] == [0] * after, done
    assert steps(done[0][1]) == [*range(program.SAVE_EVERY, program.STEPS)]
    check_values(tmp_path, after, exactly=before == after)


# ---------------------------------------------------------------- MPI
def mpi(start: Any, count: int, *command: str, **variables: str) -> tuple[int, str]:
    options = ["--oversubscribe", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
    return end(start(str(MPIRUN), "-n", str(count), *options, *command, **variables))


@mpirun
@pytest.mark.slow
@pytest.mark.parametrize("counts", [(2, 2), (2, 4), (2, 1), (1, 2)])
def test_mpirun_goes_on_after_a_kill(start, counts, tmp_path):
    before, after = counts
    code, text = mpi(start, before, sys.executable, "dying.py", ".", f"0:{before - 1}:6")
    assert code, text
    assert set(steps(text)) >= {0, 1, 2, 3}, text
    code, text = mpi(start, after, sys.executable, "dying.py", ".", "never")
    assert code == 0, text
    assert steps(text) == [*range(program.SAVE_EVERY, program.STEPS)], text
    assert sorted(re.findall(r"trained (\d) (\d)", text)) == [
        (str(rank), str(after)) for rank in range(after)
    ]
    check_values(tmp_path, after, exactly=before == after)


@mpirun
@pytest.mark.slow
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_mpi4py_tells_processes_of_several_machines_where_they_meet(start):
    several = ("env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", sys.executable, "dying.py", ".", "never")
    code, text = mpi(start, 2, *several)
    assert (code, len(re.findall(r"trained [01] 2 0", text))) == (0, 2), text


@mpirun
@pytest.mark.slow
def test_an_error_in_one_process_ends_mpirun(start, tmp_path):
    (tmp_path / "bad.py").write_text(
        "import jaxvars as jv\njv.parallel.initialize()\njv.parallel.barrier('begin')\n"
        "if jv.parallel.rank():\n    raise ValueError('no such data')\n"
        "jv.parallel.barrier('which worker 1 does not reach')\n"
    )
    code, text = mpi(start, 2, sys.executable, "bad.py")
    assert code, text
    assert "ValueError: no such data" in text


OPEN_MPI = {
    "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "3", "PMIX_NAMESPACE": "prterun-host-7@1",
}  # fmt: skip
MPICH = {"PMI_SIZE": "4", "PMI_RANK": "3", "MPI_LOCALNRANKS": "2", "MPI_LOCALRANKID": "1"}


def test_what_mpirun_says_is_read():
    found = _processes._read_mpi(OPEN_MPI)
    assert found is not None
    address = found.pop("coordinator_address")
    assert found == {"num_processes": 4, "process_id": 3, "local_device_ids": [3]}
    assert re.fullmatch(r"127.0.0.1:6[1-5]\d{3}", address)
    again = _processes._read_mpi(OPEN_MPI | {"PMIX_NAMESPACE": "prterun-host-8@1"}) or {}
    assert again["coordinator_address"] != address
    assert _processes._read_mpi({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None  # srun sets them, too


@pytest.mark.parametrize("env", [MPICH, OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}])
def test_processes_that_cannot_find_each_other_are_not_alone(env, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistributedError, match=r"one of 4 processes of MPI.*pip install mpi4py"):
        _processes._read_mpi(env)


# ---------------------------------------------------------------- Ray
@ray
@pytest.mark.slow
def test_ray_goes_on_after_a_kill_and_with_other_numbers_of_actors(start, tmp_path):
    (tmp_path / "driver.py").write_text(f"""
import ray, jaxvars as jv
from dying import train
import train_two_processes as program
run = jv.parallel.run_on_ray
ray.init(num_cpus=4, include_dashboard=False)
print("first", run(train, 2, ({str(tmp_path)!r}, "0:1:6"), num_cpus=1, restarts=1))
for folder, before, after in [("a", 2, 4), ("b", 2, 1), ("c", 1, 2)]:
    folder = {str(tmp_path)!r} + "/" + folder
    try:
        run(train, before, (folder, f"0:{{before - 1}}:6"), num_cpus=1, restarts=0)
    except ray.exceptions.RayError:
        print("died", before)
    print("then", run(train, after, (folder, "never"), num_cpus=1))

def fail():
    raise ValueError("no such data")

try:
    run(fail, 2, restarts=0)
except ValueError as error:
    print("refused", str(error).splitlines()[-1])
""")
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_COLOR_PREFIX": "0"}
    code, text = end(start(sys.executable, "driver.py", **variables))
    assert code == 0, text
    assert "first [(0, 2, 1), (1, 2, 1)]" in text
    assert re.findall(r"died (\d)", text) == ["2", "2", "1"], text
    counts = [len(re.findall(r"\(", line)) for line in re.findall(r"^then (.*)", text, re.M)]
    assert counts == [4, 1, 2]
    assert "refused ValueError: no such data" in text
    check_values(tmp_path, 2, exactly=True)
    for folder, after in [("a", 4), ("b", 1), ("c", 2)]:
        check_values(tmp_path / folder, after, exactly=False)


def test_ray_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'pip install "jaxvars\[ray\]"'):
        jv.parallel.run_on_ray(jax.devices, 2)
