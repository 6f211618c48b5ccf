"""Many processes: one program runs in each of them, and they compute together.

    # train.py; run it with `mpirun -n 2 python train.py`
    import jax, jaxvars as jv

    jv.parallel.initialize()                      # before anything else of JAX
    with jv.use_mesh({"data": -1}):                  # all devices of all processes
        ...                                          # make the model and restore its checkpoint
        for batch in batches:                        # the same batches in each process, or
            part = jv.parallel.local_part(batch)  # only the part that this one needs
            loss = step(jv.parallel.global_batch(part, jax.P("data")))

The engine is JAX's own: `jax.distributed` connects the processes, and XLA's collectives,
gloo on CPU and NCCL on GPU, move the data. Each process runs the same program in the same order: a
function of arrays that span several processes must be called by all of them. What only one
should do, as to print or to write a file, goes below `if jv.parallel.is_chief():`, and no
such function is called there.

Checkpoints are written by process 0, and read by all:

    manager.restore_or_initialize()
    ...
    if jv.parallel.is_chief():
        manager.save()

That is so for variables that each process has whole. Where some are sharded over processes, all of
them call `save`: they gather the values, and process 0 writes.

On CPU, with several virtual devices in each of several processes, wait for each step, as
`float(loss)` does: of steps that are queued without end, the collectives can take all threads of
XLA's pool and wait for each other for ever. One device in each process does not need this.

Rules this file keeps:
- which process this is comes from the arguments, else from JAX_PROCESS_ID and its like, else from
  Ray Train, else from `mpirun`, else from the cluster (JAX knows Slurm, Kubernetes and others), and
  otherwise it is alone: the same program runs so, too;
- nothing here starts a JAX backend before `initialize` had its chance.
"""

from __future__ import annotations

import atexit
import operator
import os
import socket
import sys
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np

from jaxvars import preemption
from jaxvars.control.forms import read_variables
from jaxvars.errors import DistributedError
from jaxvars.modules.state import State, require_values
from jaxvars.objects.key_order import map_leaves, ordered_like
from jaxvars.tensors.array_like import processes_of
from jaxvars.tensors.dtypes import is_key
from jaxvars.tensors.tensor import check_argument
from jaxvars.typing import Array, PyTree

_alone = False  # initialize has found out that there is one process


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    **options: Any,
) -> None:
    """Join the other processes of the program; alone, do nothing.

    Call it first: JAX finds its devices once, those of the other processes with them. What is not
    given comes from the variables JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID,
    else from Ray Train, `mpirun`, Slurm or another cluster that JAX knows; if none of them started
    this process, it is the only one. A second call does nothing.

    Args:
        coordinator_address: "host:port" where process 0 can be reached.
        num_processes: how many there are.
        process_id: the number of this one, from 0.
        **options: more of `jax.distributed.initialize`, like `local_device_ids`,
            `initialization_timeout` (seconds) or `cluster_detection_method="deactivate"`.

    Raises:
        DistributedError: when JAX has been used before, or what is given does not suffice.

    Example:
        import jaxvars as jv

        jv.parallel.initialize()      # at the top of the program
        print(f"process {jv.parallel.rank()} of {jv.parallel.process_count()}")
    """
    global _alone
    if jax.distributed.is_initialized() or _alone:
        return
    given = {
        "coordinator_address": coordinator_address,
        "num_processes": num_processes,
        "process_id": process_id,
    }
    if all(value is None for value in given.values()):
        found = _read_variables(os.environ)
        if found is None and "cluster_detection_method" not in options:
            found = _read_ray() or _read_mpi(os.environ)
        if found is not None:  # JAX would look for a cluster around it, and count by its nodes
            options = found | {"cluster_detection_method": "deactivate"} | options
            given = {name: options.pop(name) for name in given}
    _alone = not _join(given, options)
    if not _alone:
        atexit.register(_leave_if_failed)


def _leave_if_failed() -> None:
    """End the process now if an error ended the program.

    JAX, whose handler comes next, would wait for the other processes, and they for this one; what
    started them would not know that anything is wrong.
    """
    if error := getattr(sys, "last_value", None):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _join(given: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Join the other processes; return whether there are any to join."""
    name = "jax_cpu_collectives_implementation"
    before = getattr(jax.config, name)
    jax.config.update(name, before or "gloo")
    try:
        jax.distributed.initialize(**given, **options)
    except (RuntimeError, ValueError) as error:
        jax.config.update(name, before)
        if "coordinator_address should" in str(error) and set(given.values()) == {None}:
            return False
        raise DistributedError(_describe_problem(str(error), given)) from error
    preemption.keep_jax_handler()
    return True


def _describe_problem(error: str, given: Mapping[str, Any]) -> str:
    if "must be called before" in error:
        return (
            "jv.parallel.initialize() came too late: JAX has looked for its devices already, "
            "and found only those of this process. Call it before all that computes, makes a "
            "Variable or calls jax.devices():\n"
            "    import jaxvars as jv\n"
            "    jv.parallel.initialize()\n"
            "    ...  # everything else"
        )
    if "defined" in error:
        known = {
            **given,
            "coordinator_address": given["coordinator_address"] or os.environ.get(_ADDRESS),
        }
        missing = ", ".join(name for name, value in known.items() if value is None)
        return (
            f"The processes cannot find each other: {missing} is neither given nor known from a "
            "cluster. Give all three, as in\n"
            '    jv.parallel.initialize("10.0.0.1:1234", num_processes=2, process_id=0)\n'
            "or none, and start the program with `mpirun -n 2 python train.py` or another engine."
        )
    return f"The processes could not be brought together: {error}"


_ADDRESS, _COUNT, _NUMBER = "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"


def _read_variables(env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what JAX's variables say, or None if they do not say which process this is.

    JAX reads the address by itself, also beside a cluster, and the other two not at all.
    """
    if _COUNT not in env and _NUMBER not in env:
        return None
    try:
        address = env[_ADDRESS]
        found = {
            "coordinator_address": address,
            "num_processes": int(env[_COUNT]),
            "process_id": int(env[_NUMBER]),
        }
    except (KeyError, ValueError):
        values = ", ".join(f"{name}={env.get(name)!r}" for name in (_ADDRESS, _COUNT, _NUMBER))
        raise DistributedError(
            f"The environment says only in part which process this is: {values}. Set all three, "
            "as in\n"
            f"    export {_ADDRESS}=localhost:12345 {_COUNT}=2\n"
            f"    {_NUMBER}=0 python train.py & {_NUMBER}=1 python train.py; wait\n"
            "or none of them."
        ) from None
    if address.startswith(("localhost:", "127.0.0.1:")):
        found["coordinator_bind_address"] = address  # and nowhere else
    return found


def _read_ray() -> dict[str, Any] | None:
    """Return what Ray Train says, or None if this is not a worker of it."""
    if "ray.train" not in sys.modules:  # a worker has imported it
        return None
    import ray.train  # pyright: ignore[reportMissingImports]
    from ray.train.collective import broadcast_from_rank_zero  # pyright: ignore[reportMissingImports]

    try:
        context: Any = ray.train.get_context()
    except (RuntimeError, DeprecationWarning):  # the program that starts the workers; Ray Tune
        return None
    address = f"{ray.util.get_node_ip_address()}:{_find_free_port()}"
    return {
        "coordinator_address": broadcast_from_rank_zero(address),
        "num_processes": context.get_world_size(),
        "process_id": context.get_world_rank(),
    }


_MPI = (  # Open MPI, whose version 5 JAX does not recognize; MPICH and Intel MPI
    [f"OMPI_COMM_WORLD_{name}" for name in ("SIZE", "RANK", "LOCAL_SIZE", "LOCAL_RANK")],
    ["PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"],
)


def _read_mpi(env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what `mpirun` says, or None if it did not start this process."""
    for names in _MPI:
        if all(name in env for name in names):
            count, number, local_count, local_number = (int(env[name]) for name in names)
            return {
                "coordinator_address": env.get(_ADDRESS)
                or _find_mpi_address(env, count, local_count),
                "num_processes": count,
                "process_id": number,
                "local_device_ids": [local_number],  # JAX's rule for clusters: a GPU each
            }
    return None


def _find_mpi_address(env: Mapping[str, str], count: int, local_count: int) -> str:
    job = env.get("PMIX_NAMESPACE")  # Open MPI's name for this run
    if job is not None and local_count == count:
        return f"127.0.0.1:{61440 + zlib.crc32(job.encode()) % 4096}"  # JAX takes these ports, too
    try:
        from mpi4py import MPI  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise DistributedError(
            f"This is one of {count} processes of MPI, which need mpi4py to find each other: "
            "`pip install mpi4py` on each machine, or "
            "jv.parallel.initialize(coordinator_address, num_processes, process_id)."
        ) from error
    world: Any = MPI.COMM_WORLD
    if world.Get_size() != count:
        raise DistributedError(
            f"`mpirun` started {count} processes, and mpi4py sees {world.Get_size()}: it uses "
            "another MPI. Install it for this one: pip install --no-binary mpi4py mpi4py"
        )
    return world.bcast(f"{socket.gethostname()}:{_find_free_port()}")  # that of process 0


def _find_free_port() -> int:
    """Return a port that is free on this machine."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def shutdown() -> None:
    """Leave the other processes, which all do so together; alone, do nothing.

    JAX does this at the end of the program, too. Afterwards no collective can run.

    >>> shutdown()
    """
    global _alone
    jax.distributed.shutdown()
    _alone = False


# ---------------------------------------------------------------- which process this is
def rank() -> int:
    """Return the number of this process, from 0; JAX's `process_index`.

    Raises:
        DistributedError: before `initialize`, in one of several processes.

    >>> rank()
    0
    """
    _check_joined("rank")
    return jax.process_index()


def process_count() -> int:
    """Return how many processes there are.

    Raises:
        DistributedError: before `initialize`, in one of several processes.

    >>> process_count()
    1
    """
    _check_joined("process_count")
    return jax.process_count()


def is_chief() -> bool:
    """Return whether this is process 0, which prints and writes files for all.

    Raises:
        DistributedError: before `initialize`, in one of several processes.

    >>> is_chief()
    True
    """
    _check_joined("is_chief")
    return jax.process_index() == 0


def _check_joined(what: str) -> None:
    if jax.distributed.is_initialized() or _alone:
        return
    known = ([_COUNT], *_MPI)
    counts = (os.environ[each[0]] for each in known if all(name in os.environ for name in each))
    if any(count != "1" for count in counts):
        raise DistributedError(
            f"jv.parallel.{what}() was called before jv.parallel.initialize(), so this "
            "process knows nothing of the others yet. Call initialize() first, at the top of the "
            "program. If each is to be alone, unset JAX_NUM_PROCESSES, or under `mpirun` call "
            'initialize(cluster_detection_method="deactivate").'
        )


# ---------------------------------------------------------------- together
def barrier(name: str) -> None:
    """Wait until all processes are here.

    Args:
        name: of this place in the program; the same in all processes.

    Raises:
        AssertionError: when another process waits at a barrier with another name.

    >>> barrier("before the evaluation")
    """
    _check_joined("barrier")
    _import_multihost().sync_global_devices(name)


def broadcast(value: Array) -> Array:
    """Return the value that process 0 has, in all processes.

    Args:
        value: a number, array or Variable, or a pytree of them; of the same structure, shapes and
            dtypes in each process.

    Returns:
        The same structure, of NumPy arrays.

    >>> broadcast({"seed": 3})
    {'seed': array(3)}
    """
    _check_joined("broadcast")
    mine = _check_uncut(value)
    found = _import_multihost().broadcast_one_to_all(mine)
    return ordered_like(mine, jax.tree.map(np.asarray, found))


def all_gather(value: PyTree) -> PyTree:
    """Return the values of all processes, in each of them.

    Args:
        value: a number, array or Variable, or a pytree of them; of the same structure, shapes and
            dtypes in each process.

    Returns:
        The same structure, of NumPy arrays with one more axis at the front: the processes. Of an
        array that spans several processes, which is one value for all, the whole of it.

    >>> all_gather([1.5, 2]), all_gather(np.ones(3)).shape
    ([array([1.5]), array([2])], (1, 3))
    """
    _check_joined("all_gather")

    def gather(leaf: Array) -> Array:
        is_sharded = isinstance(leaf, jax.Array) and not leaf.is_fully_addressable
        return _import_multihost().process_allgather(leaf, tiled=is_sharded)

    return map_leaves(gather, _check_uncut(value))


def check_same(*objects: object, **named: object) -> None:
    """Check that variables which each process has whole are the same in all of them.

    A model that is made in each process begins with the same values only if its random values
    do: call `jv.random.set_seed` before. Nothing else would tell, and each process would go on
    with its own.

    Args:
        *objects: Variables, Modules, or anything that holds them; the same in each process.
        **named: the same, with the name that the paths begin with.

    Raises:
        DistributedError: naming the variables that differ.

    >>> import jaxvars as jv
    >>> check_same(jv.Variable([1.0, 2.0]))
    """
    _check_joined("check_same")
    values = require_values(State.of(*objects, copy=False, **named))
    here = {path: _checksum(value) for path, value in values.items() if processes_of(value) == 1}
    sums = np.asarray(all_gather(np.array([*here.values()], np.uint32)))
    differ = [path for path, column in zip(here, sums.T, strict=True) if len({*column}) > 1]
    if differ:
        raise DistributedError(
            f"The processes have different values of {', '.join(differ)}. Make them the same in "
            "each: call jv.random.set_seed(0) before the model is made, and restore the same "
            "checkpoint; or assign what jv.parallel.broadcast(v) returns."
        )


def _checksum(value: Array) -> int:
    if isinstance(value, jax.Array):
        value = value.addressable_data(0)
        if is_key(value):
            value = jax.random.key_data(value)
    data = np.asarray(value)
    is_words = data.dtype.kind in "OSTU"
    return zlib.crc32(repr(data.tolist()).encode() if is_words else data.tobytes())


def is_preempted(step: int, also: Iterable[int] = ()) -> bool:
    """Return whether the program has been told to stop, so that it is time to save and end.

    A cluster sends SIGTERM before it takes a machine away. From the first call on it is noted, in
    the middle of whatever runs, and then passed on to a Python handler that was set before. The
    second one does what it did before: as a rule it ends the program.

    Before this says so, a `CheckpointManager` makes the save that its `checkpoint_interval` has
    left out at this step. From then on `save` saves at once, and returns when all is written.

    Of several processes, JAX tells the others and agrees on a step: all get True at that one.

    In a notebook the answer is that of the cell: one that is run later, or again, goes on.

    Args:
        step: the number of the training step. Call it in each step, in all processes.
        also: more signals that say so, as `[signal.SIGUSR1]` for Slurm's `--signal=USR1@60`.

    Raises:
        DistributedError: when the first call is not in the main thread, as Python's handlers of
            signals are set there; of several processes only for signals other than SIGTERM. Or
            when JAX's handler was replaced before.
        ValueError: when a signal cannot be noted, like SIGKILL.
        OSError, CheckpointError: when a manager cannot save what was left out. All others have.

    Example:
        for i in range(int(steps), 1000):
            if jv.parallel.is_preempted(i):
                break
            train_step()
            manager.save()  # as often as its checkpoint_interval says
        manager.save(check_interval=False)  # the last step, unless it is saved

    >>> is_preempted(7)
    False
    """
    _check_joined("is_preempted")
    return preemption.ask(operator.index(step), also)


def _check_uncut(value: Array) -> Array:
    """Return a value's arrays, none of which would be cut to 32 bits on the way."""
    arrays = read_variables(value)
    for leaf in jax.tree.leaves(arrays):
        if isinstance(leaf, int | np.ndarray | np.generic):
            check_argument(leaf, "a value that processes share")
    return arrays


def _import_multihost() -> Any:
    from jax.experimental import multihost_utils

    return multihost_utils
