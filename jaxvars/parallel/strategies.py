"""Training on several devices at once, in TensorFlow's terms: strategies over a mesh.

    strategy = jv.parallel.MirroredStrategy()

    with strategy.scope():
        model, optimizer = Model(), jv.optimizers.Adam()

    for x, y in strategy.experimental_distribute_dataset(batches):
        loss = strategy.run(step, args=(x, y))

A strategy is a mesh with one axis, "data". Variables made in its scope are the same on each
device, batches are sharded along the axis, and a step is one program over the whole batch, which
XLA partitions. So the result is that of one device on the whole batch, to rounding.

Differs from TensorFlow: there are no replicas that a step could see, and no values for each.
`tf.reduce_mean(loss)` over a replica's part becomes the mean over the whole batch, batch
normalization uses the statistics of the whole batch, and gradients need no explicit
all-reduce: do not divide a loss by `num_replicas_in_sync`.

For models that are sharded, too, see `jv.mesh`, `jv.place` and `fully_sharded`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import MethodType
from typing import Any, final

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from jaxvars.compiler.decorator import compile
from jaxvars.compiler.function import BoundFunction, Function
from jaxvars.core.frames import is_staged
from jaxvars.devices.device import find_device
from jaxvars.devices.mesh import mesh, shard, use_mesh
from jaxvars.parallel.batches import Batches as Batches
from jaxvars.tracing.context import Scoped
from jaxvars.tracing.identity import by_identity
from jaxvars.tracing.key_order import map_leaves

AXIS = "data"
"""The axis of a strategy's mesh."""


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


# ---------------------------------------------------------------- strategies
class Strategy:
    """The base of the strategies: a mesh with one axis, and TensorFlow's terms for it.

    Attributes:
        mesh: the mesh; its axis is called "data".
    """

    _compile: Any = staticmethod(compile)
    _programs: tuple[type, ...] = (Function, BoundFunction)
    _spans_processes = False

    def __init__(self, devices: Sequence[Any]) -> None:
        self.mesh: Mesh = mesh({AXIS: len(devices)}, devices)
        self._compiled = by_identity(self._compile, 64)

    @property
    def is_multi_process(self) -> bool:
        """Whether the mesh may have devices of several processes."""
        return self._spans_processes

    @property
    def num_replicas_in_sync(self) -> int:
        """How many devices a batch is sharded over."""
        return self.mesh.size

    @contextmanager
    def scope(self) -> Generator[Strategy]:
        """Create variables that are the same on each device.

        >>> import jaxvars as jv
        >>> with OneDeviceStrategy().scope() as strategy:
        ...     v = jv.Variable(1.0)
        >>> v.sharding.mesh == strategy.mesh
        True
        """
        with _OPEN.set(self), use_mesh(self.mesh):
            yield self

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run a step on the whole batch, as one program that XLA partitions over the devices.

        Args:
            fn: a function that reads and assigns variables. It is compiled, unless it is
                already, or the call is inside of a compiled function.
            args: arguments. Those of a distributed dataset are sharded, others are whole.
            kwargs: the same.

        Returns:
            What `fn` returns for the whole batch.

        Raises:
            ShardingError: when a variable or an argument is placed on other devices.

        Differs from TensorFlow: `fn` runs once, for all devices together. See `jv.parallel`.
        """
        with nullcontext() if is_staged() else Strategy.scope(self):
            return self._run_inside(fn, args, kwargs or {})

    def _run_inside(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run a step in the scope of the strategy, or as a part of a program."""
        return (fn if is_staged() else self._program(fn))(*args, **kwargs)

    def _program(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fn, self._programs):
            return fn
        if isinstance(fn, MethodType):  # a new object each time it is looked up
            return functools.partial(self._compiled(fn.__func__), fn.__self__)
        return self._compiled(fn)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """Make one value of what `run` returned.

        Args:
            reduce_op: "sum", "mean", or a ReduceOp; TensorFlow's will do.
            value: an array or tensor of the whole batch, or a pytree of them.
            axis: reduce along this dimension. None for nothing: there is one value already.

        Raises:
            ValueError: for another operation.

        >>> strategy = OneDeviceStrategy()
        >>> float(strategy.reduce("mean", jnp.array([1.0, 3.0]), axis=0))
        2.0

        Differs from TensorFlow: with `axis=None` there is nothing to reduce, as `run` has run
        for all devices together: the value is returned as it is.
        """
        fold = {ReduceOp.SUM: jnp.sum, ReduceOp.MEAN: jnp.mean}[ReduceOp(reduce_op)]
        return map_leaves(lambda x: x if axis is None else fold(jnp.asarray(x), axis=axis), value)

    def gather(self, value: Any, axis: int = 0) -> Any:
        """Return arrays or tensors whole, on each device.

        Args:
            value: an array or tensor, or a pytree of them.
            axis: for TensorFlow's sake: an array knows along which dimension it is sharded.
        """
        return shard(value, PartitionSpec(), mesh=self.mesh)

    def experimental_distribute_dataset(
        self, dataset: Iterable[Any], options: Any = None
    ) -> Iterable[Any]:
        """Shard the batches of a dataset along their first dimension.

        Args:
            dataset: arrays or tensors, or pytrees of them: a list, a generator, a loader, a
                `tf.data.Dataset`. Its batches are whole ones. Each process iterates over all of
                it, and takes its part.
            options: ignored.

        Raises:
            ShardingError: (when iterated) for a batch that cannot be sharded.
        """
        return self._batches(dataset)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Iterable[Any]], options: Any = None
    ) -> Iterable[Any]:
        """Put together batches of which each process gives its part.

        Args:
            dataset_fn: takes an InputContext, returns the dataset of this process.
            options: ignored.

        Differs from TensorFlow: an element of the dataset is the part of a process, for all of
        its devices, and not that of a single device.
        """
        workers = jax.process_count() if self.is_multi_process else 1
        number = jax.process_index() if self.is_multi_process else 0
        context = InputContext(workers, number, self.num_replicas_in_sync)
        return self._batches(dataset_fn(context), local=True)

    def _batches(self, dataset: Iterable[Any], *, local: bool = False) -> Iterable[Any]:
        return Batches(dataset, mesh=self.mesh, local=local)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return what each device of this process has of a value.

        >>> OneDeviceStrategy().experimental_local_results(3)
        (3,)
        """
        devices = [d for d in self.mesh.devices.flat if d.process_index == jax.process_index()]
        return tuple(
            map_leaves(functools.partial(_take_part, device=device), value) for device in devices
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.num_replicas_in_sync} devices>"


def _take_part(value: Any, device: Any) -> Any:
    shards = value.addressable_shards if isinstance(value, jax.Array) else ()
    return next((shard.data for shard in shards if shard.device == device), value)


class MirroredStrategy(Strategy):
    """Train on all devices of this process.

    Args:
        devices: which: names like "GPU:0" or `jax.Device`s; all of JAX's default kind when None.
        cross_device_ops: ignored: XLA chooses.

    Raises:
        DeviceError: when a name is malformed, or there is no such device.

    >>> import jax, jaxvars as jv
    >>> strategy = MirroredStrategy(jax.devices()[:1])
    >>> with strategy.scope():
    ...     w = jv.Variable(0.0)
    >>> def step(x):
    ...     w.assign_add(x.mean())
    ...     return w.value
    >>> for x in strategy.experimental_distribute_dataset([jnp.array([1.0, 3.0])]):
    ...     print(strategy.run(step, args=(x,)))
    2.0
    """

    def __init__(self, devices: Sequence[Any] | None = None, cross_device_ops: Any = None) -> None:
        names = jax.local_devices() if devices is None else devices
        super().__init__([find_device(d) if isinstance(d, str) else d for d in names])


class MultiWorkerMirroredStrategy(Strategy):
    """Train on all devices of all processes: each runs the same program.

    Start the processes with `mpirun` or another engine, and connect them with
    `jv.parallel.initialize` at their very beginning. In one process it is a MirroredStrategy.

    Args:
        cluster_resolver: refused: `jv.parallel.initialize` takes its place.
        communication_options: ignored: XLA chooses.

    Raises:
        ValueError: for a cluster_resolver.

    >>> MultiWorkerMirroredStrategy().is_multi_process
    True
    """

    _spans_processes = True

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None) -> None:
        if cluster_resolver is not None:
            raise ValueError(
                "There is no cluster_resolver: call jv.parallel.initialize() at the top of the "
                "program, and make the strategy without arguments."
            )
        super().__init__(jax.devices())


class OneDeviceStrategy(Strategy):
    """Train on one device: to see that a program does the same on one as on many.

    Args:
        device: a name like "GPU:0" or a `jax.Device`; JAX's default one when None.

    >>> OneDeviceStrategy().num_replicas_in_sync
    1
    """

    def __init__(self, device: Any = None) -> None:
        chosen = find_device(device) if isinstance(device, str) else device
        super().__init__([jax.local_devices()[0] if chosen is None else chosen])


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


_OPEN: Scoped[Strategy | None] = Scoped(None)
"""The strategy whose scope is open."""


def get_strategy() -> Strategy:
    """Return the strategy whose scope is open; one for a single device outside of all.

    >>> with MirroredStrategy().scope() as strategy:
    ...     get_strategy() is strategy
    True
    """
    return _OPEN.value or OneDeviceStrategy()


def has_strategy() -> bool:
    """Return whether the scope of a strategy is open.

    >>> has_strategy()
    False
    """
    return _OPEN.value is not None
