"""Programs of others that start the processes: MPI's `mpirun`, and Ray.

JAX knows Slurm. It knows Open MPI by a variable that version 5 no longer sets, so MPI is read here.

Rules this file keeps:
- a process that is one of several is never taken for the only one: what the processes need to
  find each other is there, or an error says what is missing;
- mpi4py and ray are imported when they are needed.
"""

from __future__ import annotations

import os
import socket
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from jaxvars.errors import DistributedError
from jaxvars.launch.worker import ATTEMPT

_MPI = (  # Open MPI; MPICH and Intel MPI
    [f"OMPI_COMM_WORLD_{name}" for name in ("SIZE", "RANK", "LOCAL_SIZE", "LOCAL_RANK")],
    ["PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"],
)


def read_mpi(env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what `jax.distributed.initialize` is to know, or None outside of `mpirun`."""
    for names in _MPI:
        if all(name in env for name in names):
            count, rank, local_count, local_rank = (int(env[name]) for name in names)
            return {
                "coordinator_address": _find_address(env, count, local_count),
                "num_processes": count,
                "process_id": rank,
                "local_device_ids": [local_rank],  # JAX's rule for clusters: a GPU each
            }
    return None


def _find_address(env: Mapping[str, str], count: int, local_count: int) -> str:
    job = env.get("PMIX_NAMESPACE")  # Open MPI's name for this run
    if job is not None and local_count == count:
        return f"127.0.0.1:{61440 + zlib.crc32(job.encode()) % 4096}"  # JAX takes these ports, too
    if find_spec("mpi4py") is None:
        raise DistributedError(
            f"This is one of {count} processes of MPI, which need mpi4py to find each other: "
            "`pip install mpi4py` on each machine, or "
            "jv.parallel.initialize(coordinator_address, num_processes, process_id)."
        )
    return _agree_on_address(count)


def _agree_on_address(count: int) -> str:
    from mpi4py import MPI  # pyright: ignore[reportMissingImports]

    world: Any = MPI.COMM_WORLD
    if world.Get_size() != count:
        raise DistributedError(
            f"`mpirun` started {count} processes, and mpi4py sees {world.Get_size()}: it uses "
            "another MPI. Install it for this one: pip install --no-binary mpi4py mpi4py"
        )
    return world.bcast(f"{socket.gethostname()}:{_free_port()}" if world.Get_rank() == 0 else None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


# ---------------------------------------------------------------- Ray
def run_on_ray(
    train: Callable[..., Any],
    processes: int,
    args: Sequence[Any] = (),
    *,
    restarts: int = 3,
    **options: Any,
) -> list[Any]:
    """Run a function in several Ray actors that compute together; again when one of them dies.

    In each, the processes have joined when the function is called. As under the launcher, it
    restores its last checkpoint and saves one now and then. It needs an extra:
    `pip install "jaxvars[ray]"`.

    Args:
        train: the function, which Ray pickles.
        processes: how many actors.
        args: its arguments, the same in each.
        restarts: how often all actors are started again after one has died or raised.
        **options: those of each actor: `num_cpus`, `num_gpus`, `runtime_env` and others of Ray.

    Returns:
        What the function returned in each process, in their order.

    Raises:
        ImportError: when Ray is not installed.
        ray.exceptions.RayError: when an actor has died or raised, and no restart is left.

    Example:
        def train(folder):
            with jv.use_mesh({"data": -1}):     # all devices of all actors
                ...                             # restore the last checkpoint, and go on

        jv.parallel.run_on_ray(train, 2, ("/shared/run",), num_gpus=1)
    """
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError('run_on_ray needs Ray: pip install "jaxvars[ray]"') from None
    engine: Any = ray
    for attempt in range(restarts):
        try:
            return _run_once(engine, train, processes, args, options, attempt)
        except engine.exceptions.RayError:
            continue
    return _run_once(engine, train, processes, args, options, restarts)


class _Member:
    """What an actor does."""

    def choose_address(self) -> str:
        import ray  # pyright: ignore[reportMissingImports]

        return f"{ray.util.get_node_ip_address()}:{_free_port()}"

    def run(self, train: Any, args: Any, attempt: int, *place: Any) -> Any:
        from jaxvars.parallel.processes import initialize, shutdown

        os.environ[ATTEMPT] = str(attempt)
        initialize(*place)
        result = train(*args)
        shutdown()  # together, or the first one killed would bring the others down with much noise
        return result


def _run_once(
    ray: Any, train: Any, processes: int, args: Sequence[Any], options: Any, attempt: int
) -> list[Any]:
    actor = ray.remote(_Member)
    members = [(actor.options(**options) if options else actor).remote() for _ in range(processes)]
    try:
        address = ray.get(members[0].choose_address.remote())
        calls = [
            member.run.remote(train, args, attempt, address, processes, rank)
            for rank, member in enumerate(members)
        ]
        left = calls
        while left:
            done, left = ray.wait(left)
            ray.get(done)  # the first one that failed raises here, and the others are killed
        return ray.get(calls)
    finally:
        for member in reversed(members):  # the coordinator last
            ray.kill(member)
