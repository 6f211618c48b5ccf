"""Several processes of one program on this machine, as an engine starts them.

    done = run_processes(tmp_path, jax_variables(2), "train.py", "folder")

Each finds in its environment which one it is. When one of them fails, the others are killed, as
`srun --kill-on-bad-exit` and `mpirun` do; starting all again is the test's.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).resolve().parent
TIMEOUT = 240.0

# A worker that kills itself once, at a step of a rank: `python dying.py folder 1:6`.
DYING = """
import os, signal, sys
from pathlib import Path
import train_two_processes as program
import jaxvars as jv

def train(config):
    folder, when, steps = config["folder"], config["when"], []

    def after_step(step):
        steps.append(step)
        mark = Path(folder, "killed")
        if f"{jv.parallel.rank()}:{step}" == when and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    program.run(folder, after_step, sharded=config["sharded"])
    return jv.parallel.rank(), jv.parallel.process_count(), steps[:1]

if __name__ == "__main__":
    folder, when, *sharded = sys.argv[1:]
    print("trained", *train({"folder": folder, "when": when, "sharded": bool(sharded)}), flush=True)
"""


class Done(NamedTuple):
    """How the processes ended, and what each of them wrote."""

    codes: list[int]
    texts: list[str]


def jax_variables(count: int) -> list[dict[str, str]]:
    """The variables of `jv.parallel.initialize()`, for each process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    given = {"JAX_COORDINATOR_ADDRESS": f"localhost:{port}", "JAX_NUM_PROCESSES": str(count)}
    return [{**given, "JAX_PROCESS_ID": str(rank)} for rank in range(count)]


def slurm_variables(count: int) -> list[dict[str, str]]:
    """What `srun` says on one machine, as far as JAX reads it."""
    given = {
        "SLURM_JOB_ID": str(random.randrange(10**6)),  # JAX makes a port of it
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_NTASKS": str(count),
    }
    return [{**given, "SLURM_PROCID": str(n), "SLURM_LOCALID": str(n)} for n in range(count)]


def environment(folder: Path, devices: int = 1) -> dict[str, str]:
    """The environment of a process that finds the tests' programs and has CPU devices."""
    paths = os.pathsep.join(map(str, (folder, TESTS, TESTS.parent)))
    return os.environ | {
        "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(devices), "XLA_FLAGS": "",
        "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1",
    }  # fmt: skip


def run_processes(
    folder: Path,
    variables: Sequence[dict[str, str]],
    *words: str,
    devices: int = 1,
    timeout: float = TIMEOUT,
    watch: Callable[[str, list[Any]], None] = lambda line, processes: None,
) -> Done:
    """Run `python *words` in each environment; show `watch` each line as it comes."""
    processes = [
        subprocess.Popen(
            [sys.executable, *words],
            cwd=folder, env=environment(folder, devices) | given, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for given in variables
    ]  # fmt: skip
    texts, lock = [""] * len(processes), threading.Lock()

    def follow(rank: int, process: Any) -> None:
        for line in process.stdout:
            texts[rank] += line
            with lock:
                watch(line, processes)
        if process.wait():
            kill()

    def kill() -> None:
        for process in processes:
            process.kill()

    threads = [threading.Thread(target=follow, args=each) for each in enumerate(processes)]
    alarm = threading.Timer(timeout, kill)
    for thread in [alarm, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    alarm.cancel()
    for process in processes:
        process.communicate()
    return Done([process.returncode for process in processes], texts)
