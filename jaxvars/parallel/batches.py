"""`Batches`: arrays on their way to a mesh, a few steps ahead.

Rule this file keeps: JAX sends in the background, so there is no thread of ours to stop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, final

from jax.sharding import Mesh, PartitionSpec

from jaxvars.devices.mesh import current_mesh, resolved, shard
from jaxvars.distributed import global_batch
from jaxvars.errors import ShardingError


@final
class Batches:
    """Batches on their way to a mesh: iterate over it, as often as over what it is made of.

    The next ones are on their way to the devices while a step runs. No thread is started.

    Args:
        source: NumPy or JAX arrays, or pytrees of them: a list, a generator, or anything else
            that can be iterated.
        spec: how they are spread, as for `jv.shard`.
        mesh: the mesh; the one in force when None.
        prefetch: how many batches are sent ahead.
        local: each process gives its own part of the batch (True), or all of them the whole one.
        drop_remainder: leave out batches that cannot be divided so (True), or refuse them.

    Raises:
        ShardingError: (when iterated) for a batch that cannot be divided; it names the array.
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
        sent = self._sent()
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

    def _sent(self) -> Iterator[Any]:
        first = True  # if the first one cannot be divided, it is no remainder
        for batch in self._source:
            try:
                yield self._global(batch) if self._local else self._whole(batch)
            except ShardingError:
                if first or not self._drop:
                    raise
            first = False

    def _whole(self, batch: Any) -> Any:
        return shard(batch, self._spec, mesh=self._mesh)

    def _global(self, batch: Any) -> Any:
        """Put together the parts that each process gives."""
        place = resolved(self._spec, "a process's part of a batch", self._mesh)
        return global_batch(batch, place)
