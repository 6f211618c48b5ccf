"""`Batches`: arrays on their way to a mesh, a few steps ahead.

Rule this file keeps: JAX sends in the background, so there is no thread to stop here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxvars.devices.mesh import current_mesh, resolve_sharding, shard
from jaxvars.errors import ShardingError
from jaxvars.parallel.processes import process_count, rank, read_value
from jaxvars.tensors.tensor import check_uncut
from jaxvars.tracing.key_order import map_leaves
from jaxvars.typing import Array


class Batches:
    """Batches on their way to a mesh: iterate over it, as often as over what it is made of.

    The next ones are on their way to the devices while a step runs. No thread is started.

    Args:
        source: NumPy or JAX arrays, or pytrees of them: a list, a generator, or anything else
            that can be iterated.
        spec: how they are sharded, as for `jv.shard`.
        mesh: the mesh; the one in force when None.
        prefetch: how many batches are sent ahead.
        local: each process gives its own part of the batch (True), or all of them the whole one.
        drop_remainder: leave out batches that cannot be sharded so (True), or refuse them.

    Raises:
        ShardingError: (when iterated) for a batch that cannot be sharded; it names the array.
        ValueError: when `prefetch` is negative.

    >>> import jax, numpy as np, jaxvars as jv
    >>> mesh = jv.mesh({"data": 1}, jax.devices()[:1])
    >>> source = [{"x": np.ones((4, 2))}, {"x": np.zeros((4, 2))}]
    >>> for batch in Batches(source, jax.P("data"), mesh=mesh):
    ...     print(batch["x"].sum(), batch["x"].sharding.spec)
    8.0 P('data',)
    0.0 P('data',)
    """

    def __init__(
        self,
        source: Iterable[Any],
        spec: Any = PartitionSpec("data"),  # noqa: B008 - it is immutable
        *,
        mesh: Mesh | None = None,
        prefetch: int = 2,
        local: bool = False,
        drop_remainder: bool = False,
    ) -> None:
        if prefetch < 0:
            raise ValueError(f"prefetch is how many batches are sent ahead, not {prefetch}.")
        self._source = source
        self._spec = spec
        self._mesh = mesh or current_mesh()
        self._prefetch = prefetch
        self._local = local
        self._drop = drop_remainder

    def __iter__(self) -> Iterator[Any]:
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
                raise problem[0]
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
        first = True  # if the first one cannot be sharded, it is not a remainder
        for batch in self._source:
            try:
                yield self._shard(batch)
            except ShardingError:
                if first or not self._drop:
                    raise
            first = False

    def _shard(self, batch: Any) -> Any:
        if not self._local:
            return shard(batch, self._spec, mesh=self._mesh)
        place = resolve_sharding(self._spec, "a process's part of a batch", self._mesh)
        return global_batch(batch, place)


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
    return map_leaves(lambda rows: _take_part(rows, me, count), read_value(batch))


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
        ShardingError: when there is no mesh in force, or a part does not fit.

    >>> import jaxvars as jv
    >>> with jv.use_mesh({"data": 1}):
    ...     global_batch(np.ones((4, 2)), jax.P("data")).shape
    (4, 2)
    """
    if isinstance(sharding, jax.sharding.PartitionSpec):
        sharding = _bind_mesh(sharding)

    def whole(leaf: Array) -> Array:
        check_uncut(local := np.array(leaf), "a part of the batch")  # a copy: JAX reads it in place
        try:
            return jax.make_array_from_process_local_data(sharding, local)
        except ValueError as error:
            raise ShardingError(
                f"A part of shape {np.shape(leaf)} cannot be sharded as {sharding}: {error}"
            ) from error

    return map_leaves(whole, read_value(part))


def _bind_mesh(spec: Any) -> Any:
    mesh = current_mesh()
    if mesh is None:
        raise ShardingError(
            f"{spec} says nothing without a mesh: use it inside of "
            '`with jv.use_mesh({"data": -1}):`, or give a jax.sharding.NamedSharding.'
        )
    return jax.sharding.NamedSharding(mesh, spec)
