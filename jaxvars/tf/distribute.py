"""`tf.distribute`: training on several devices, over `jaxvars.distribute`.

    strategy = tf.distribute.MirroredStrategy()

    with strategy.scope():
        model, optimizer = Model(), tf.keras.optimizers.Adam()

    @tf.function
    def train_step(batch):
        losses = strategy.run(step, args=(batch,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    for batch in strategy.experimental_distribute_dataset(dataset):
        loss = train_step(batch)

Rules this file keeps:
- a step is one program over the whole batch, which XLA divides over the devices: `run` calls it
  once, and what it returns is one value, of the whole batch. So a loss is divided by the size of
  the global batch, as TensorFlow's guide does, and reduced without effect.
"""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any, NoReturn, final

from jaxvars import _trace
from jaxvars import distribute as _core
from jaxvars._display import did_you_mean
from jaxvars._frames import LOCAL
from jaxvars.distribute import InputContext as InputContext
from jaxvars.distribute import ReduceOp as ReduceOp
from jaxvars.tf import nest
from jaxvars.tf._convert import to_array
from jaxvars.tf._function import BoundFunction, Function, function
from jaxvars.tf._tensor import wrap

__all__ = [
    "DistributedDataset",
    "InputContext",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReplicaContext",
    "Strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]


class Strategy(ABC):
    """The base of the strategies.

    Attributes:
        core: the strategy of jaxvars that does the work.
    """

    core: _core.Strategy

    def __init__(self) -> None:
        self._compiled = functools.lru_cache(maxsize=64)(function)

    @property
    @abstractmethod
    def is_multi_process(self) -> bool:
        """Whether there may be devices of several processes."""

    @property
    def num_replicas_in_sync(self) -> int:
        """How many devices a batch is divided over."""
        return self.core.num_replicas_in_sync

    @property
    def extended(self) -> Strategy:
        """The strategy itself."""
        return self

    @contextmanager
    def scope(self) -> Generator[Strategy]:
        """Make variables that are the same on each device."""
        _OPEN.contexts.append((self, None))
        try:
            with self.core.scope():
                yield self
        finally:
            _OPEN.contexts.pop()

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Run a step on the whole batch, as one program that XLA divides over the devices.

        Args:
            fn: the step; compiled, if it is not, and no part of a compiled function.
            args: its arguments. Those of a distributed dataset are divided.
            kwargs: the same.
            options: of no effect.

        Returns:
            What `fn` returns for the whole batch: tensors.

        Differs from TensorFlow: `fn` runs once, for all devices together.
        """
        _OPEN.contexts.append((self, ReplicaContext(self)))
        try:
            if LOCAL.frame is not LOCAL.eager or _trace.is_staging():
                return fn(*args, **(kwargs or {}))
            with self.core.scope():
                return self._program(fn)(*args, **(kwargs or {}))
        finally:
            _OPEN.contexts.pop()

    def _program(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(fn, Function | BoundFunction):
            return fn
        if isinstance(fn, MethodType):  # a new object each time it is looked up
            return functools.partial(self._compiled(fn.__func__), fn.__self__)
        return self._compiled(fn)

    def reduce(self, reduce_op: Any, value: Any, axis: int | None = None) -> Any:
        """Make one value of what `run` returned.

        Args:
            reduce_op: "SUM", "MEAN" or a `ReduceOp`.
            value: a tensor of the whole batch, or a structure of some.
            axis: reduce along this dimension; None for nothing: there is one value already.

        Raises:
            ValueError: for another operation.
        """
        return wrap(self.core.reduce(reduce_op, _arrays(value), axis=axis))

    def gather(self, value: Any, axis: int = 0) -> Any:
        """Return tensors whole, on each device."""
        return wrap(self.core.gather(_arrays(value), axis=axis))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return what each device of this process has of a value."""
        return tuple(map(wrap, self.core.experimental_local_results(_arrays(value))))

    unwrap = experimental_local_results

    def experimental_distribute_dataset(
        self, dataset: Any, options: Any = None
    ) -> DistributedDataset:
        """Divide the batches of a dataset along their first dimension.

        Args:
            dataset: a `tf.data.Dataset` of global batches, or another iterable of tensors.
            options: of no effect.
        """
        return DistributedDataset(self.core.experimental_distribute_dataset(_Arrays(dataset)))

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> DistributedDataset:
        """Put together batches of which each process gives its part.

        Args:
            dataset_fn: takes an `InputContext`, returns the dataset of this process.
            options: of no effect.

        Differs from TensorFlow: an element of the dataset is the part of a process, for all of its
        devices.
        """
        made = self.core.distribute_datasets_from_function(lambda x: _Arrays(dataset_fn(x)))
        return DistributedDataset(made)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.num_replicas_in_sync} devices>"


def _arrays(value: Any) -> Any:
    return nest.map_structure(to_array, value)


@final
class _Arrays:
    """A dataset, with arrays for tensors."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        return map(_arrays, iter(self._dataset))

    def __len__(self) -> int:
        return len(self._dataset)


@final
class DistributedDataset:
    """Batches that are divided over devices; made by a strategy."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches

    def __iter__(self) -> Iterator[Any]:
        return map(wrap, iter(self._batches))

    def __len__(self) -> int:
        return len(self._batches)


@final
class MirroredStrategy(Strategy):
    """Train on all devices of this process.

    Args:
        devices: which: names like "GPU:0"; all of the default kind when None.
        cross_device_ops: of no effect: XLA chooses.

    >>> from jaxvars import tf
    >>> strategy = MirroredStrategy(["CPU:0"])
    >>> with strategy.scope():
    ...     v = tf.Variable(1.0)
    >>> for x in strategy.experimental_distribute_dataset([tf.constant([1.0, 3.0])]):
    ...     print(strategy.run(lambda x: x * v, args=(x,)).numpy())
    [1. 3.]
    """

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        super().__init__()
        self.core = _core.MirroredStrategy(devices)

    @property
    def is_multi_process(self) -> bool:
        """False."""
        return False


@final
class MultiWorkerMirroredStrategy(Strategy):
    """Train on all devices of all processes; see `jv.distribute.MultiWorkerMirroredStrategy`.

    Args:
        cluster_resolver: must be None: `jv.distributed.initialize` takes its place.
        communication_options: of no effect: XLA chooses.

    Raises:
        ValueError: for a cluster_resolver.
    """

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None) -> None:
        super().__init__()
        self.core = _core.MultiWorkerMirroredStrategy(cluster_resolver)

    @property
    def is_multi_process(self) -> bool:
        """True."""
        return True


@final
class OneDeviceStrategy(Strategy):
    """Train on one device.

    Args:
        device: a name like "GPU:0".

    >>> OneDeviceStrategy("/cpu:0").num_replicas_in_sync
    1
    """

    def __init__(self, device: Any = None) -> None:
        super().__init__()
        self.core = _core.OneDeviceStrategy(device)

    @property
    def is_multi_process(self) -> bool:
        """False."""
        return False


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
        """How many devices a batch is divided over."""
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


@final
class _Open(threading.local):
    """The strategies whose scopes are open, for each thread, and what runs in them."""

    def __init__(self) -> None:
        self.contexts: list[tuple[Strategy, ReplicaContext | None]] = []


_OPEN = _Open()


def get_strategy() -> Strategy:
    """Return the strategy whose scope is open; one for a single device outside of all.

    >>> with OneDeviceStrategy("CPU:0").scope() as strategy:
    ...     get_strategy() is strategy
    True
    """
    return _OPEN.contexts[-1][0] if _OPEN.contexts else OneDeviceStrategy()


def has_strategy() -> bool:
    """Tell whether the scope of a strategy is open.

    >>> has_strategy()
    False
    """
    return bool(_OPEN.contexts)


def get_replica_context() -> ReplicaContext | None:
    """Return where a step runs; None in the scope of a strategy, outside of `run`.

    >>> get_replica_context().num_replicas_in_sync
    1
    """
    return _OPEN.contexts[-1][1] if _OPEN.contexts else ReplicaContext(get_strategy())


def in_cross_replica_context() -> bool:
    """Tell whether this is the scope of a strategy, outside of `run`.

    >>> in_cross_replica_context()
    False
    """
    return get_replica_context() is None


def __getattr__(name: str) -> NoReturn:
    if name in {"TPUStrategy", "ParameterServerStrategy", "experimental"}:
        raise AttributeError(
            f"tf.distribute has no {name}: MirroredStrategy runs on all devices of JAX's default "
            "kind, TPUs too, and MultiWorkerMirroredStrategy on those of all processes."
        )
    hint = did_you_mean(name, __all__)
    raise AttributeError(f"tf.distribute has no attribute {name!r}.{' ' + hint if hint else ''}")
