"""`tf.distribute.Strategy`: the base of the strategies, a mesh with one axis, and what they make.

Rule this file keeps: a step is one program over the whole batch, which XLA shards over the devices:
`run` calls it once, and what it returns is one value, of the whole batch.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import Any, NoReturn, final

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from jaxvars.autograph.operators.sequences import SEQUENTIALS
from jaxvars.compiler.signature import STAGED_ITERATORS
from jaxvars.core.frames import is_staged
from jaxvars.devices.device import find_device
from jaxvars.devices.mesh import mesh, shard, use_mesh
from jaxvars.errors import CreationError
from jaxvars.objects.identity import by_identity
from jaxvars.objects.key_order import map_leaves
from jaxvars.parallel.batches import Batches
from jaxvars.tf import nest
from jaxvars.tf.attributes import getter
from jaxvars.tf.functions.decorator import function
from jaxvars.tf.functions.function import BoundFunction, Function
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.static import end_of_sequence, refused
from jaxvars.tf.tensors.tensor import wrap
from jaxvars.tracing import context
from jaxvars.tracing.context import Scoped


@final
class ReduceOp(enum.Enum):
    """How `Strategy.reduce` makes one value of several.

    >>> ReduceOp("mean")
    <ReduceOp.MEAN: 'mean'>
    """

    SUM = "sum"
    MEAN = "mean"

    @classmethod
    def _missing_(cls, value: object) -> ReduceOp | None:
        word = getattr(value, "value", value)  # TensorFlow's own
        return {"sum": cls.SUM, "mean": cls.MEAN}.get(str(word).lower())


class Strategy:
    """The base of the strategies.

    Attributes:
        mesh: the mesh; its axis is called "data".
    """

    _spans_processes = False

    def __init__(self, devices: Sequence[Any]) -> None:
        self.mesh = mesh({"data": len(devices)}, devices)
        self._compiled = by_identity(function, 64)

    @property
    def extended(self) -> Strategy:
        """The strategy itself."""
        return self

    @property
    def num_replicas_in_sync(self) -> int:
        """How many devices a batch is sharded over."""
        return self.mesh.size

    @contextmanager
    def scope(self) -> Generator[Strategy]:
        """Create variables that are the same on each device."""
        placed = nullcontext() if is_staged() else use_mesh(self.mesh)  # a program has its mesh
        with OPEN.set((self, None)), placed:
            yield self

    def run(
        self, fn: Callable[..., Any], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None, options: Any = None,
    ) -> Any:  # fmt: skip
        """Run a step on the whole batch, as one program that XLA shards over the devices.

        Args:
            fn: the step; compiled, if it is not, and no part of a compiled function. One that
                makes variables in each call, as those of a `tf.random.Generator`, runs eagerly.
            args: its arguments. Those of a distributed dataset are sharded, others are whole.
            kwargs: the same.
            options: of no effect.

        Returns:
            What `fn` returns for the whole batch: tensors.

        Raises:
            ShardingError: when a variable or an argument is placed on other devices.

        Differs from TensorFlow: `fn` runs once, for all devices together. A mean over a replica's
        part becomes the mean over the whole batch, batch normalization uses the statistics of the
        whole batch, and gradients need no all-reduce.
        """
        with self.scope(), OPEN.set((self, ReplicaContext(self))):
            given = partial(fn, *args, **(kwargs or {}))
            if is_staged():
                return given()
            try:
                return self._program(fn)(*args, **(kwargs or {}))
            except CreationError:  # of a variable for each call, as of a tf.random.Generator
                if isinstance(fn, Function | BoundFunction):
                    raise
            return given()

    def _program(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fn, Function | BoundFunction):
            return fn
        if isinstance(fn, MethodType):  # a new object each time it is looked up
            return partial(self._compiled(fn.__func__), fn.__self__)
        return self._compiled(fn)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """Make one value of what `run` returned.

        Args:
            reduce_op: "sum", "mean", or a ReduceOp.
            value: a tensor of the whole batch; without an axis also a structure of them.
            axis: reduce along this dimension. None for nothing: there is one value already.

        Raises:
            ValueError: for another operation.

        Differs from TensorFlow: with `axis=None` there is nothing to reduce, as `run` has run
        for all devices together: the value is returned as it is.
        """
        fold = {ReduceOp.SUM: jnp.sum, ReduceOp.MEAN: jnp.mean}[ReduceOp(reduce_op)]
        if axis is None:
            return wrap(_arrays(value))
        return wrap(fold(jnp.asarray(to_array(value)), axis=axis))  # a list is one tensor

    def gather(self, value: Any, axis: int = 0) -> Any:
        """Return tensors whole, on each device.

        Args:
            value: a tensor, or a structure of them.
            axis: of no effect: a tensor knows along which dimension it is sharded.
        """
        return wrap(shard(_arrays(value), PartitionSpec(), mesh=self.mesh))

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Shard the batches of a dataset along their first dimension.

        Args:
            dataset: tensors or structures of them: a `tf.data.Dataset`, a list, a generator. Its
                batches are whole ones. Each process iterates over all of it, and takes its part.
            options: of no effect.

        Raises:
            ShardingError: (when iterated) for a batch that cannot be sharded.
        """
        return DistributedDataset(dataset, self.mesh, local=False)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> Any:
        """Put together batches of which each process gives its part.

        Args:
            dataset_fn: takes an InputContext, returns the dataset of this process.
            options: of no effect.

        Differs from TensorFlow: an element of the dataset is the part of a process, for all of
        its devices, and not that of a single device.
        """
        workers = jax.process_count() if self._spans_processes else 1
        number = jax.process_index() if self._spans_processes else 0
        context = InputContext(workers, number, self.num_replicas_in_sync)
        return DistributedDataset(dataset_fn(context), self.mesh, local=True)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return what each device of this process has of a value."""
        here = [d for d in self.mesh.devices.flat if d.process_index == jax.process_index()]
        arrays = _arrays(value)
        parts = (map_leaves(partial(_take_part, device=device), arrays) for device in here)
        return tuple(map(wrap, parts))

    unwrap = experimental_local_results

    def experimental_distribute_values_from_function(
        self, value_fn: Callable[..., Any]
    ) -> NoReturn:
        """Raise NotImplementedError: there are no values for each device, which this would make."""
        raise NotImplementedError(
            "A step runs once for all devices, so there are no values for each of them. Make one "
            "tensor of all, and divide it: strategy.experimental_distribute_dataset([tensor])."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.num_replicas_in_sync} devices>"


def find_devices(devices: Sequence[Any] | None) -> Sequence[Any]:
    """Return devices by their names; all of JAX's default kind in this process when None."""
    if devices is None:
        return jax.local_devices()
    return [find_device(d) if isinstance(d, str) else d for d in devices]


@final
class CentralStorageStrategy(Strategy):
    """Train on all devices of this process, as `tf.distribute.MirroredStrategy` does.

    Args:
        compute_devices: which: names like "GPU:0"; all of the default kind when None.
        parameter_device: of no effect: each device has the variables, which are the same.
    """

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        super().__init__(find_devices(compute_devices))


def _take_part(value: Any, device: Any) -> Any:
    shards = value.addressable_shards if isinstance(value, jax.Array) else ()
    return next((shard.data for shard in shards if shard.device == device), value)


def _arrays(value: Any) -> Any:
    return nest.map_structure(to_array, value)


@final
class _Arrays:
    """A dataset, with arrays for tensors."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return map(_arrays, iter(self._dataset))


_TAKEN = (
    "Batches for several devices cannot be taken by an iterator inside a tf.function. Write "
    "`for x in dataset:` in it, of the dataset itself, or give it each batch:\n"
    "    for x in dataset:\n"
    "        step(x)  # the tf.function"
)


@final
class DistributedIterator(Iterator[Any]):
    """Goes through batches that are sharded over devices; made by `iter(dataset)`."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches

    def __next__(self) -> Any:
        if context.is_staging():
            raise refused(_TAKEN)
        return wrap(next(self._batches))

    def get_next(self) -> Any:
        """Return the next batch; raise OutOfRangeError when there is none."""
        for batch in self:
            return batch
        raise end_of_sequence()

    def get_next_as_optional(self) -> NoReturn:
        """Raise InvalidArgumentError: it is for loops in a `tf.function`."""
        raise refused(_TAKEN)


STAGED_ITERATORS.add(DistributedIterator)  # it says itself what to write


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
            raise refused(_TAKEN)
        return DistributedIterator(iter(self._batches))

    def __len__(self) -> int:
        return len(self._dataset)

    element_spec = getter("_dataset.element_spec", "What the batches are, of all devices together.")


def _staged_batches(batches: DistributedDataset) -> Any:
    given = batches._dataset
    return SEQUENTIALS[type(given)](given) if type(given) in SEQUENTIALS else None


SEQUENTIALS[DistributedDataset] = _staged_batches


@final
@dataclass(frozen=True)
class InputContext:
    """Which part of the input a process reads.

    Attributes:
        num_input_pipelines: how many processes there are.
        input_pipeline_id: which of them this is.
        num_replicas_in_sync: how many devices a batch is sharded over.

    >>> InputContext(2, 0, 8).get_per_replica_batch_size(64)
    8
    """

    num_input_pipelines: int
    input_pipeline_id: int
    num_replicas_in_sync: int

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return how many examples of a batch one device has.

        Raises:
            ValueError: when the batch cannot be divided evenly.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"A batch of {global_batch_size} cannot be divided over "
                f"{self.num_replicas_in_sync} devices evenly."
            )
        return global_batch_size // self.num_replicas_in_sync


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
