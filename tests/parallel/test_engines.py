"""Training under engines: Slurm's variables, `mpirun` and Ray.

Processes compute on sharded weights, one is killed, and what is started again from the last
checkpoint, in as many processes or in others, ends with the values of an undisturbed run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import train_two_processes as program
from processes import DYING, TESTS, TIMEOUT, environment, run_processes, slurm_variables

import jaxvars as jv
from jaxvars.errors import DistributedError
from jaxvars.parallel import processes as _processes

MPIRUN = shutil.which("mpirun") or shutil.which("mpirun", path=Path(sys.executable).parent)
mpirun = pytest.mark.skipif(MPIRUN is None, reason="mpirun is not installed")
ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the program `dying.py`."""
    (tmp_path / "dying.py").write_text(DYING)
    return tmp_path


def run(folder: Path, *command: str, **variables: str) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=folder, env=environment(folder) | variables, text=True, timeout=TIMEOUT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


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
def test_slurm_starts_two_processes(folder):
    done = run_processes(folder, slurm_variables(2), "dying.py", ".", "never", "sharded")
    assert done.codes == [0, 0], done
    assert [f"trained {rank} 2" in text for rank, text in enumerate(done.texts)] == [True, True]
    check_values(folder, 2, exactly=True)


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(2, 2), (2, 4), (2, 1), (1, 2)])
def test_slurm_goes_on_after_a_kill(folder, counts):
    before, after = counts
    command = ("dying.py", ".", f"{before - 1}:6", "sharded")
    died = run_processes(folder, slurm_variables(before), *command)
    assert any(died.codes), died
    assert set(steps(died.texts[0])) >= {0, 1, 2, 3}, died
    done = run_processes(folder, slurm_variables(after), *command)
    assert done.codes == [0] * after, done
    assert steps(done.texts[0]) == [*range(program.SAVE_EVERY, program.STEPS)]
    check_values(folder, after, exactly=before == after)


# ---------------------------------------------------------------- MPI
def mpi(folder: Path, count: int, *command: str) -> tuple[int, str]:
    options = ["--oversubscribe", *(["--allow-run-as-root"] if os.getuid() == 0 else [])]
    return run(folder, str(MPIRUN), "-n", str(count), *options, *command)


@mpirun
@pytest.mark.slow
@pytest.mark.parametrize("counts", [(2, 2), (2, 4), (2, 1), (1, 2)])
def test_mpirun_goes_on_after_a_kill(folder, counts):
    before, after = counts
    command = (sys.executable, "dying.py", ".", f"{before - 1}:6", "sharded")
    code, text = mpi(folder, before, *command)
    assert code, text
    assert set(steps(text)) >= {0, 1, 2, 3}, text
    code, text = mpi(folder, after, *command)
    assert code == 0, text
    assert steps(text) == [*range(program.SAVE_EVERY, program.STEPS)], text
    assert sorted(re.findall(r"trained (\d) (\d)", text)) == [
        (str(rank), str(after)) for rank in range(after)
    ]
    check_values(folder, after, exactly=before == after)


@mpirun
@pytest.mark.slow
@pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
def test_mpi4py_tells_processes_of_several_machines_where_they_meet(folder):
    several = ("env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", sys.executable, "dying.py", ".", "never")
    code, text = mpi(folder, 2, *several)
    assert (code, len(re.findall(r"trained [01] 2", text))) == (0, 2), text


@mpirun
@pytest.mark.slow
def test_an_error_in_one_process_ends_mpirun(folder):
    (folder / "bad.py").write_text(
        "import jaxvars as jv\njv.parallel.initialize()\njv.parallel.barrier('begin')\n"
        "if jv.parallel.rank():\n    raise ValueError('no such data')\n"
        "jv.parallel.barrier('which worker 1 does not reach')\n"
    )
    code, text = mpi(folder, 2, sys.executable, "bad.py")
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
    elsewhere = _processes._read_mpi(OPEN_MPI | {"JAX_COORDINATOR_ADDRESS": "node1:12"}) or {}
    assert elsewhere["coordinator_address"] == "node1:12"
    assert _processes._read_mpi({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None  # srun sets them, too


@pytest.mark.parametrize("env", [MPICH, OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}])
def test_processes_that_cannot_find_each_other_are_not_alone(env, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistributedError, match=r"one of 4 processes of MPI.*pip install mpi4py"):
        _processes._read_mpi(env)


# ---------------------------------------------------------------- Ray
DRIVER = """
import sys
import ray
from dying import train
from train_on_ray import start

before, after = map(int, sys.argv[2:])
config = {"folder": sys.argv[1], "when": f"{before - 1}:6", "sharded": True}
ray.init(num_cpus=4, include_dashboard=False)
if before == after:
    print("trained", start(train, config, before, failures=1))
else:
    try:
        start(train, config, before, failures=0)
    except ray.train.TrainingFailedError:
        print("the run died")
    print("trained", start(train, config, after, failures=0))
"""


@ray
@pytest.mark.slow
@pytest.mark.parametrize("counts", [(2, 2), (2, 4), (2, 1), (1, 2)])
def test_ray_goes_on_after_a_kill(folder, counts):
    (folder / "driver.py").write_text(DRIVER)
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    command = (sys.executable, "driver.py", str(folder), *map(str, counts))
    code, text = run(folder, *command, **variables)
    assert code == 0, text
    before, after = counts
    assert (folder / "killed").exists()
    assert f"trained (0, {after}, [{program.SAVE_EVERY}])" in text
    assert bool(re.search(r"(?m)^the run died$", text)) == (before != after)
    check_values(folder, after, exactly=before == after)


@ray
@pytest.mark.slow
def test_the_example_trains_on_ray(folder):
    """`python train_on_ray.py folder 2`."""
    code, text = run(folder, sys.executable, str(TESTS / "train_on_ray.py"), ".", "2")
    assert code == 0, text
    with jv.use_mesh({"data": 2}):
        expected = program.train(folder / "undisturbed")
    with np.load(folder / "weights.npz") as file:
        for name, wanted in zip(file.files, expected, strict=True):
            np.testing.assert_array_equal(file[name], wanted)
