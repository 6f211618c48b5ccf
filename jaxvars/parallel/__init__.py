"""Several processes, what they agree on, and batches for their devices.

    jv.parallel.initialize()                       # in each process of `mpirun`, Slurm or Ray
    for x, y in jv.parallel.Batches(source):       # sharded over the mesh, ahead of the step
        loss = step(x, y)

`jv.mesh`, `jv.shard` and `jv.place` say where values are sharded.
"""

from __future__ import annotations

from jaxvars.parallel.batches import Batches, global_batch, local_part
from jaxvars.parallel.placement import fully_sharded
from jaxvars.parallel.processes import (
    all_gather,
    barrier,
    broadcast,
    check_same,
    initialize,
    is_chief,
    is_preempted,
    process_count,
    rank,
    shutdown,
)

__all__ = [
    "Batches", "all_gather", "barrier", "broadcast", "check_same", "fully_sharded",
    "global_batch", "initialize", "is_chief", "is_preempted", "local_part", "process_count",
    "rank", "shutdown",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
