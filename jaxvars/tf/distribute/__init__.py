"""`tf.distribute`: training on several devices, by strategies over a mesh.

    strategy = tf.distribute.MirroredStrategy()

    with strategy.scope():
        model, optimizer = Model(), tf.keras.optimizers.Adam()

    @tf.function
    def train_step(batch):
        losses = strategy.run(step, args=(batch,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    for batch in strategy.experimental_distribute_dataset(dataset):
        loss = train_step(batch)

A step is one program over the whole batch, which XLA shards over the devices. So a loss is divided
by the size of the global batch, as TensorFlow's guide does, and reduced without effect.
"""

from __future__ import annotations

import types
from contextlib import ExitStack
from typing import Any, final

import jax

from jaxvars.tf.distribute import options as _options
from jaxvars.tf.distribute.cluster import join_cluster
from jaxvars.tf.distribute.options import CrossDeviceOps as CrossDeviceOps
from jaxvars.tf.distribute.options import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from jaxvars.tf.distribute.options import InputOptions as InputOptions
from jaxvars.tf.distribute.options import NcclAllReduce as NcclAllReduce
from jaxvars.tf.distribute.options import ReductionToOneDevice as ReductionToOneDevice
from jaxvars.tf.distribute.options import RunOptions as RunOptions
from jaxvars.tf.distribute.strategy import OPEN, CentralStorageStrategy, find_devices
from jaxvars.tf.distribute.strategy import DistributedDataset as DistributedDataset
from jaxvars.tf.distribute.strategy import InputContext as InputContext
from jaxvars.tf.distribute.strategy import ReduceOp as ReduceOp
from jaxvars.tf.distribute.strategy import ReplicaContext as ReplicaContext
from jaxvars.tf.distribute.strategy import Strategy as Strategy
from jaxvars.tf.listing import namespace, not_there


@final
class MirroredStrategy(Strategy):
    """Train on all devices of this process.

    Args:
        devices: which: names like "GPU:0"; all of the default kind when None.
        cross_device_ops: of no effect: XLA chooses.

    Raises:
        DeviceError: when a name is malformed, or the device does not exist.

    >>> from jaxvars import tf
    >>> strategy = MirroredStrategy(["CPU:0"])
    >>> with strategy.scope():
    ...     v = tf.Variable(1.0)
    >>> for x in strategy.experimental_distribute_dataset([tf.constant([1.0, 3.0])]):
    ...     print(strategy.run(lambda x: x * v, args=(x,)).numpy())
    [1. 3.]
    """

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__(find_devices(devices))


@final
class MultiWorkerMirroredStrategy(Strategy):
    """Train on all devices of all processes: each runs the same program.

    Make it at the very beginning. It connects the processes that TF_CONFIG names; those of
    `mpirun` or another engine are connected by `jaxvars.parallel.initialize`, before. In one
    process it is a MirroredStrategy.

    Args:
        cluster_resolver: must be None: `jaxvars.parallel.initialize` takes its place.
        communication_options: of no effect: XLA chooses.

    Raises:
        ValueError: for a cluster_resolver.
    """

    _spans_processes = True

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None) -> None:
        if cluster_resolver is not None:
            raise ValueError(
                "cluster_resolver must be None: call jaxvars.parallel.initialize() at the top of "
                "the program, and make the strategy without arguments."
            )
        join_cluster()
        super().__init__(jax.devices())


@final
class OneDeviceStrategy(Strategy):
    """Train on one device.

    Args:
        device: a name like "GPU:0"; the default one when None.

    >>> OneDeviceStrategy("/cpu:0").num_replicas_in_sync
    1
    """

    def __init__(self, device: Any = None) -> None:
        super().__init__(find_devices(None if device is None else [device])[:1])

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        ReduceOp(reduce_op)  # another one is refused
        return value if axis is None else super().reduce(reduce_op, value, axis)


@final
class TPUStrategy(Strategy):
    """Train on all TPUs of this process.

    Args:
        tpu_cluster_resolver: must be None: JAX finds the TPUs of this machine.
        experimental_device_assignment: must be None: each TPU is a replica.

    Raises:
        ValueError: for an argument, and where there are no TPUs.
    """

    def __init__(
        self, tpu_cluster_resolver: Any = None, experimental_device_assignment: Any = None
    ) -> None:
        if tpu_cluster_resolver is not None or experimental_device_assignment is not None:
            raise ValueError("TPUStrategy() takes no arguments: JAX finds this machine's TPUs.")
        tpus = [device for device in jax.local_devices() if device.platform == "tpu"]
        if not tpus:
            raise ValueError(
                "There is no TPU. tf.distribute.MirroredStrategy() takes the devices that there "
                f"are: {jax.local_devices()}."
            )
        super().__init__(tpus)


def get_strategy() -> Strategy:
    """Return the strategy whose scope is open; one for a single device outside of all.

    >>> with OneDeviceStrategy("CPU:0").scope() as strategy:
    ...     get_strategy() is strategy
    True
    """
    return OPEN.value[0] if OPEN.value else OneDeviceStrategy()


def has_strategy() -> bool:
    """Return whether the scope of a strategy is open.

    >>> has_strategy()
    False
    """
    return OPEN.value is not None


def get_replica_context() -> ReplicaContext | None:
    """Return where a step runs; None in the scope of a strategy, outside of `run`.

    >>> get_replica_context().num_replicas_in_sync
    1
    """
    return OPEN.value[1] if OPEN.value else ReplicaContext(get_strategy())


def in_cross_replica_context() -> bool:
    """Return whether this is the scope of a strategy, outside of `run`.

    >>> in_cross_replica_context()
    False
    """
    return get_replica_context() is None


_SET = ExitStack()


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Open the scope of a strategy, until another one is set.

    Args:
        strategy: the strategy; None for no strategy.

    >>> experimental_set_strategy(OneDeviceStrategy("CPU:0"))
    >>> has_strategy()
    True
    >>> experimental_set_strategy(None)
    """
    _SET.close()
    if strategy is not None:
        _SET.enter_context(strategy.scope())


__getattr__, __dir__ = namespace(__name__)


@final
class _Experimental(types.SimpleNamespace):
    def __getattr__(self, name: str) -> Any:
        """Say what to write instead of a name that is not here."""
        raise not_there("tf.distribute.experimental", name, lambda: dir(self))


experimental = _Experimental(
    CentralStorageStrategy=CentralStorageStrategy,
    MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy,
    TPUStrategy=TPUStrategy,
    CollectiveCommunication=_options.CommunicationImplementation,
    CommunicationImplementation=_options.CommunicationImplementation,
    CommunicationOptions=_options.CommunicationOptions,
)
