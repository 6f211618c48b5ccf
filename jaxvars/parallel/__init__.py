"""Several devices and several processes: strategies over a mesh, and what processes agree on.

    strategy = jv.parallel.MirroredStrategy()      # a copy of the variables on each device
    jv.parallel.initialize()                       # in each process of `mpirun`, Slurm or Ray

`jv.mesh`, `jv.shard` and `jv.place` say where values are sharded; here is what stands on them.
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
    process_index,
    rank,
    shutdown,
)
from jaxvars.parallel.strategies import (
    InputContext,
    MirroredStrategy,
    MultiWorkerMirroredStrategy,
    OneDeviceStrategy,
    ReduceOp,
    Strategy,
    get_strategy,
    has_strategy,
)

__all__ = [
    "Batches", "InputContext", "MirroredStrategy", "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy", "ReduceOp", "Strategy", "all_gather", "barrier",
    "broadcast", "check_same", "fully_sharded", "get_strategy", "global_batch", "has_strategy",
    "initialize", "is_chief", "is_preempted", "local_part", "process_count", "process_index",
    "rank", "shutdown",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
