"""`tf.distribute.Strategy`: the base of the strategies, what they make, and options.

Rules this file keeps:
- a step is one program over the whole batch, which XLA shards over the devices: `run` calls it
  once, and what it returns is one value, of the whole batch;
- options are kept, can be read back, and change no result: XLA chooses.
"""

from __future__ import annotations

import enum
from abc import ABC
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple, NoReturn, final

from jaxvars.autograph.operators.sequences import SEQUENTIALS
from jaxvars.core.frames import is_staged
from jaxvars.parallel import strategies as _core
from jaxvars.parallel.batches import Batches
from jaxvars.parallel.strategies import ReduceOp
from jaxvars.tf import nest
from jaxvars.tf.attributes import getter
from jaxvars.tf.functions.decorator import function
from jaxvars.tf.functions.function import BoundFunction, Function
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import wrap
from jaxvars.tracing import context
from jaxvars.tracing.context import Scoped


class Strategy(_core.Strategy):
    """The base of the strategies: those of `jv.parallel`, of tensors."""

    _compile = staticmethod(function)
    _programs = (Function, BoundFunction)

    @property
    def core(self) -> _core.Strategy:
        """The strategy itself, which is one of jaxvars, too."""
        return self

    @property
    def extended(self) -> Strategy:
        """The strategy itself."""
        return self

    @contextmanager
    def scope(self) -> Generator[Strategy]:
        placed = nullcontext() if is_staged() else super().scope()  # a program has its mesh
        with OPEN.set((self, None)), placed:
            yield self

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Run a step on the whole batch, as one program that XLA shards over the devices.

        Args:
            fn: the step; compiled, if it is not, and no part of a compiled function.
            args: its arguments. Those of a distributed dataset are sharded.
            kwargs: the same.
            options: of no effect.

        Returns:
            What `fn` returns for the whole batch: tensors.

        Differs from TensorFlow: `fn` runs once, for all devices together.
        """
        with self.scope(), OPEN.set((self, ReplicaContext(self))):
            return self._run_inside(fn, args, kwargs or {})

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        given = _arrays(value) if axis is None else to_array(value)  # a list is one tensor
        return wrap(super().reduce(reduce_op, given, axis=axis))

    def gather(self, value: Any, axis: int = 0) -> Any:
        return wrap(super().gather(_arrays(value), axis=axis))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        return tuple(map(wrap, super().experimental_local_results(_arrays(value))))

    unwrap = experimental_local_results

    def _batches(self, dataset: Any, *, local: bool = False) -> DistributedDataset:
        return DistributedDataset(dataset, self.mesh, local=local)

    def experimental_distribute_values_from_function(
        self, value_fn: Callable[..., Any]
    ) -> NoReturn:
        """Raise NotImplementedError: there are no values for each device, which this would make."""
        raise NotImplementedError(
            "A step runs once for all devices, so there are no values for each of them. Make one "
            "tensor of all, and divide it: strategy.experimental_distribute_dataset([tensor])."
        )


@final
class CentralStorageStrategy(Strategy, _core.MirroredStrategy):
    """Train on all devices of this process, as `tf.distribute.MirroredStrategy` does.

    Args:
        compute_devices: which: names like "GPU:0"; all of the default kind when None.
        parameter_device: of no effect: each device has the variables, which are the same.
    """

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        super().__init__(compute_devices)


def _arrays(value: Any) -> Any:
    return nest.map_structure(to_array, value)


@final
class _Arrays:
    """A dataset, with arrays for tensors."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return map(_arrays, iter(self._dataset))


@final
class DistributedDataset:
    """Batches that are sharded over devices; made by a strategy.

    Args:
        dataset: where they come from.
        mesh: over which they are sharded.
        local: each process gives its own part of the batch.
    """

    def __init__(self, dataset: Any, mesh: Any, *, local: bool) -> None:
        self._dataset = dataset
        self._is_plain = type(dataset) in SEQUENTIALS and mesh.size == 1
        self._batches = Batches(_Arrays(dataset), mesh=mesh, local=local)

    def __iter__(self) -> Iterator[Any]:
        if self._is_plain:
            return iter(self._dataset)
        if context.is_staging():
            raise refused(
                "Batches for several devices cannot be taken here, inside a tf.function. Write a "
                "`for` statement over the dataset in it, or give it each batch as an argument."
            )
        return map(wrap, iter(self._batches))

    def __len__(self) -> int:
        return len(self._dataset)

    element_spec = getter("_dataset.element_spec", "What the batches are, of all devices together.")


def _staged_batches(batches: DistributedDataset) -> Any:
    given = batches._dataset
    return SEQUENTIALS[type(given)](given) if type(given) in SEQUENTIALS else None


SEQUENTIALS[DistributedDataset] = _staged_batches


@final
class ReplicaContext:
    """Where a step runs: for all devices together.

    Args:
        strategy: that runs it.
    """

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """How many devices a batch is sharded over."""
        return self.strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self) -> int:
        """0: there is one run, for all devices."""
        return 0

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """Return the value: it is that of the whole batch already.

        Raises:
            ValueError: for another operation than a sum or a mean.
        """
        ReduceOp(reduce_op)
        return value

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Return the value: it is whole already."""
        return value

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call a function with the strategy before its arguments."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))


OPEN: Scoped[tuple[Strategy, ReplicaContext | None] | None] = Scoped(None)
"""The strategy whose scope is open, and where a step of it runs."""


class CrossDeviceOps(ABC):  # noqa: B024 - a mark, without methods
    """How values of several devices are made one: XLA chooses."""


class _Packed(CrossDeviceOps):
    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"num_packs must be greater or equal to 0, not {num_packs}.")
        self.num_packs = num_packs


@final
class NcclAllReduce(_Packed):
    """Accepted, and of no effect: XLA uses NCCL where there is one.

    Args:
        num_packs: of no effect.

    >>> NcclAllReduce(num_packs=2).num_packs
    2
    """


@final
class HierarchicalCopyAllReduce(_Packed):
    """Accepted, and of no effect: XLA chooses.

    Args:
        num_packs: of no effect.
    """


@final
class ReductionToOneDevice(CrossDeviceOps):
    """Accepted, and of no effect: XLA chooses.

    Args:
        reduce_to_device: of no effect.
        accumulation_fn: of no effect.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[..., Any] | None = None
    ) -> None:
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn


class InputReplicationMode(enum.Enum):
    """For whom a dataset function is called: for each process, whatever is requested."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class _InputOptions(NamedTuple):
    experimental_fetch_to_device: bool
    experimental_replication_mode: InputReplicationMode
    experimental_place_dataset_on_device: bool
    experimental_per_replica_buffer_size: int


@final
class InputOptions(_InputOptions):
    """How batches come to devices; of no effect.

    >>> InputOptions().experimental_fetch_to_device
    True
    """

    __slots__ = ()

    def __new__(
        cls,
        experimental_fetch_to_device: bool | None = None,
        experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
        experimental_place_dataset_on_device: bool = False,
        experimental_per_replica_buffer_size: int = 1,
    ) -> InputOptions:
        """Make the options."""
        fetch = True if experimental_fetch_to_device is None else experimental_fetch_to_device
        return super().__new__(
            cls, fetch, experimental_replication_mode, experimental_place_dataset_on_device,
            experimental_per_replica_buffer_size,
        )  # fmt: skip


@final
class RunOptions(NamedTuple):
    """How a step runs; of no effect.

    >>> RunOptions().experimental_bucketizing_dynamic_shape
    False
    """

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class CommunicationImplementation(enum.Enum):
    """How processes talk to each other: XLA chooses."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@final
class CommunicationOptions:
    """How processes talk to each other; of no effect.

    Args:
        bytes_per_pack: of no effect.
        timeout_seconds: of no effect.
        implementation: of no effect.
    """

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: Any = CommunicationImplementation.AUTO,
    ) -> None:
        self.bytes_per_pack, self.timeout_seconds = bytes_per_pack, timeout_seconds
        self.implementation = CommunicationImplementation(implementation)
