"""`Batches`: arrays on their way to devices, a few steps ahead.

Rules this file keeps:
- JAX sends in the background, so that needs no thread;
- a thread runs the source alone: JAX is called in one order, in the thread that iterates, as
  collectives of several processes need.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, final

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxvars.control.forms import read_variables
from jaxvars.devices.mesh import copy_to_host, current_mesh, resolve_sharding, shard
from jaxvars.errors import ShardingError
from jaxvars.objects.key_order import map_leaves
from jaxvars.parallel.processes import process_count, rank
from jaxvars.tensors.tensor import check_uncut
from jaxvars.typing import Array

_PATIENCE = 10.0  # seconds that the end of a loop waits for what the source is doing


_USED = (
    "These Batches are iterated over again, and their source, a {kind}, gives each batch once: the "
    "ones sent ahead of the first loop would be lost, and there may be no more. Keep one iterator, "
    "`batches = iter(Batches(source))`, for several loops; or make them of what can be iterated "
    "over again, as a list is."
)


@final
class Batches:
    """Batches on their way to a mesh or a device: iterate over it, as often as over its source.

    The next ones are on their way to the devices while a step runs: what others call prefetching
    to the device.

    Args:
        source: arrays of NumPy, JAX or PyTorch, or pytrees of them: a list, a generator, a loader,
            or anything else that can be iterated. It may write to those of NumPy and PyTorch again:
            they are copied.
        spec: how they are sharded, as for `jv.shard`, or a device. When not given,
            `jax.P("data")` on a mesh, and JAX's default device without one.
        mesh: the mesh; the one in force when None.
        prefetch: how many batches are sent ahead.
        local: each process gives its own part of the batch (True), or all of them the whole one.
        drop_remainder: leave out batches that cannot be sharded so (True), or refuse them.
        thread: run the source in a thread, as many batches ahead again (True), or between the steps
            (False). It helps when the loop waits for each step, as `float(loss)` does, and the
            source is slow and does not have processes or threads of its own.

    Raises:
        ShardingError: (when iterated) for a batch that cannot be sharded; it names the array.
        NotATensorError: (when iterated) for what is not an array, such as a string.
        ValueError: when `prefetch` is negative; (when iterated) for an iterator the second time.

    >>> import jax, numpy as np, jaxvars as jv
    >>> mesh = jv.mesh({"data": 1}, jax.devices()[:1])
    >>> source = [{"x": np.ones((4, 2))}, {"x": np.zeros((4, 2))}]
    >>> for batch in Batches(source, jax.P("data"), mesh=mesh):
    ...     print(batch["x"].sum(), batch["x"].sharding.spec)
    8.0 P('data',)
    0.0 P('data',)

    An exception of the source is raised when the batches before it have been used. The thread ends
    with the loop, however that ends. A source in a thread is not inside of the `with` blocks of the
    loop, and should not share a random state with it: which of them draws first is not fixed.
    """

    def __init__(
        self,
        source: Iterable[Any],
        spec: Any = ...,
        *,
        mesh: Mesh | None = None,
        prefetch: int = 2,
        local: bool = False,
        drop_remainder: bool = False,
        thread: bool = False,
    ) -> None:
        if prefetch < 0:
            raise ValueError(f"prefetch is how many batches are sent ahead, not {prefetch}.")
        self._source = source
        self._spec = spec
        self._mesh = mesh or current_mesh()
        self._prefetch = prefetch
        self._local = local
        self._drop = drop_remainder
        self._thread = thread
        self._is_used = False

    def __iter__(self) -> Iterator[Any]:
        if self._is_used and isinstance(self._source, Iterator):
            raise ValueError(_USED.format(kind=type(self._source).__name__))
        self._is_used = True
        sent = self._send_all()
        ahead: deque[Any] = deque()
        problem: list[Exception] = []
        while True:
            while not problem and len(ahead) <= self._prefetch:
                try:
                    ahead.append(next(sent))
                except Exception as error:  # noqa: BLE001 - raised when its turn has come
                    problem.append(error)
            if not ahead:
                if isinstance(problem[0], StopIteration):
                    return
                raise problem.pop()
            yield ahead.popleft()

    def __len__(self) -> int:
        """Return how many batches there are, if the source knows and none is left out.

        Raises:
            TypeError: when that is not known.
        """
        if self._drop:
            raise TypeError("How many batches there are is not known: remainders are left out.")
        return len(self._source)  # pyright: ignore[reportArgumentType] - raises TypeError else

    def _send_all(self) -> Iterator[Any]:
        spec = self._find_spec()
        source = _run_ahead(self._source, self._prefetch) if self._thread else self._source
        for number, batch in enumerate(source):
            try:
                yield self._shard(batch, spec)
            except ShardingError as error:
                if not number:  # the first one is not a remainder
                    raise
                if not self._drop:
                    raise ShardingError(
                        f"Batch {number} (from 0): {error} To leave such batches out: "
                        "jv.parallel.Batches(..., drop_remainder=True)."
                    ) from error

    def _find_spec(self) -> Any:
        if self._spec is not ...:
            return self._spec
        if self._mesh is not None and "data" not in (axes := self._mesh.axis_names):
            raise ShardingError(
                "Batches are sharded along the axis 'data' unless another is given, and this mesh "
                f"has {list(axes)}: jv.parallel.Batches(source, jax.P({axes[0]!r}), mesh=mesh)."
            )
        if self._mesh is not None or self._local or process_count() > 1:
            return PartitionSpec("data")
        return jax.numpy.zeros(()).sharding  # on the device of a scope, or JAX's default one

    def _shard(self, batch: Any, spec: Any) -> Any:
        if not self._local:
            return shard(batch, spec, mesh=self._mesh)
        place = resolve_sharding(spec, "a process's part of a batch", self._mesh)
        return global_batch(batch, place)


def _run_ahead(source: Iterable[Any], ahead: int) -> Iterator[Any]:
    """Return what a source gives, which a thread takes from it up to `ahead` items early."""
    permits: SimpleQueue[bool] = SimpleQueue()
    ready: SimpleQueue[list[Any] | BaseException] = SimpleQueue()
    over = threading.Event()
    worker = threading.Thread(
        target=copy_context().run,
        args=(_take_all, source, permits, ready, over),
        name="jaxvars batches",
        daemon=True,  # a source that never returns does not keep the program from ending
    )

    end = partial(_end, worker, permits, over)
    atexit.register(end)  # later than JAX's own, so before it
    try:
        worker.start()
        for _ in range(ahead):
            permits.put(True)
        while True:
            permits.put(True)
            found = ready.get()
            if isinstance(found, StopIteration):
                return
            if isinstance(found, BaseException):
                raise found
            yield found.pop()  # and no reference is kept
    finally:
        if not over.is_set():  # else the program is at its end
            atexit.unregister(end)
            end()


def _end(worker: threading.Thread, permits: SimpleQueue[bool], over: threading.Event) -> None:
    over.set()
    permits.put(False)
    if worker.ident and worker is not threading.current_thread():  # it may collect garbage
        worker.join(_PATIENCE)


def _take_all(
    source: Iterable[Any],
    permits: SimpleQueue[bool],
    ready: SimpleQueue[list[Any] | BaseException],
    over: threading.Event,
) -> None:
    try:
        items = iter(source)
        while permits.get() and not over.is_set():
            ready.put([map_leaves(copy_to_host, next(items))])
    except BaseException as error:  # noqa: BLE001 - raised in the thread that iterates
        ready.put(error)


# ---------------------------------------------------------------- data
def local_part(batch: Array) -> Array:
    """Return this process's rows of a batch: the first of as many equal parts, the second, ...

    Args:
        batch: an array, or a pytree of them, the same in each process; the first dimension is
            split.

    Returns:
        The same structure.

    Raises:
        ShardingError: when the rows cannot be split evenly.

    >>> local_part({"x": np.ones((8, 3))})["x"].shape
    (8, 3)
    """
    me, count = rank(), process_count()
    return map_leaves(lambda rows: _take_part(rows, me, count), read_variables(batch))


def _take_part(rows: Array, me: int, count: int) -> Array:
    shape = np.shape(rows)
    if not shape or shape[0] % count:
        raise ShardingError(
            f"An array of shape {shape} cannot be split among {count} processes: its first "
            f"dimension must be a multiple of {count}. Leave the last rows out, or add some."
        )
    size = shape[0] // count
    return rows[me * size : (me + 1) * size]


def global_batch(part: Array, sharding: Any) -> Array:
    """Make one array of the parts that the processes hold.

    Args:
        part: what this process has: an array, or a pytree of them, of the same shapes in each
            process.
        sharding: how the whole is sharded over the devices of all processes: a
            `jax.sharding.Sharding`, or a `jax.P` for the mesh in force.

    Returns:
        The same structure, of arrays that span several processes. Their first dimension is as many
        times longer, when it is sharded over the processes.

    Raises:
        ShardingError: when no mesh is in force, or a part does not fit.

    >>> import jaxvars as jv
    >>> with jv.use_mesh({"data": 1}):
    ...     global_batch(np.ones((4, 2)), jax.P("data")).shape
    (4, 2)
    """
    place = resolve_sharding(sharding, "A part of a batch")

    def whole(leaf: Array) -> Array:
        local = np.asarray(copy_to_host(leaf))  # a copy: JAX reads it in place
        check_uncut(local, "a part of the batch")
        try:
            return jax.make_array_from_process_local_data(place, local)
        except ValueError as error:
            raise ShardingError(
                f"A part of shape {np.shape(leaf)} cannot be sharded as {place}: {error}"
            ) from error

    return map_leaves(whole, read_variables(part))
