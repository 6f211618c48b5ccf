"""The steps of datasets that give other elements of them, or in another order: `shuffle`, ..."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import Any, Self

from jaxvars.tf.data.base import DatasetBase, seeded
from jaxvars.tf.data.generators import steps as steps
from jaxvars.tf.data.generators.cursor import Memory
from jaxvars.tf.data.generators.steps import INFINITE, UNKNOWN
from jaxvars.tf.tensors.dtypes import int64
from jaxvars.tf.tensors.elements import Element
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import one_int, refused


class Order(DatasetBase, ABC):
    """The steps that change the order and number of elements."""

    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Self:
        """Put the elements into random order: with a seed into TensorFlow's.

        Args:
            buffer_size: from how many next ones each is chosen; all of them for a uniform order.
            seed: an integer; follows from the global seed if None.
            reshuffle_each_iteration: make another order each time.
            name: of no effect.

        Raises:
            InvalidArgumentError: when `buffer_size` is not positive.

        >>> from jaxvars import tf
        >>> tf.random.set_seed(3)
        >>> [int(x) for x in tf.data.Dataset.range(5).shuffle(5, seed=1)]
        [2, 1, 4, 0, 3]
        """
        size = one_int(buffer_size, "buffer_size")
        if size < 1 and size != UNKNOWN:
            raise refused("buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
        limit = size if size > 0 else 2**62
        seeds = seeded(seed, reshuffle_each_iteration is not False)

        def step(source: Iterator[Element], memory: Memory) -> Iterator[Element]:
            return steps.shuffled(source, memory, limit, seeds)

        return self._step("_ShuffleDataset", step)

    def repeat(self, count: Any = None, name: str | None = None) -> Self:
        """Begin again at the end: a number of times, or for ever."""
        times = -1 if count is None else one_int(count, "count")
        return self._like(
            "_RepeatDataset",
            lambda memory: steps.repeated(memory, self._cursor, times),
            steps.product(self._count, times),
        )

    def take(self, count: Any, name: str | None = None) -> Self:
        """Keep the first elements; all of them if `count` is -1."""
        size = one_int(count, "count")
        if size < 0:
            return self._step("_TakeDataset", lambda source, _: source)
        number = size if self._count == INFINITE else min(self._count, size)
        return self._step(
            "_TakeDataset", lambda source, memory: steps.taken(source, memory, size), number
        )

    def skip(self, count: Any, name: str | None = None) -> Self:
        """Leave out the first elements; all of them if `count` is -1."""
        size = one_int(count, "count")
        if size < 0:
            return self._step("_SkipDataset", lambda _, __: iter(()), 0)
        number = self._count if self._count < 0 else max(self._count - size, 0)
        return self._step(
            "_SkipDataset", lambda source, memory: steps.skipped(source, memory, size), number
        )

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Self:
        """Keep every `num_shards`th element, from number `index` on."""
        step, first = one_int(num_shards, "num_shards"), one_int(index, "index")
        if step < 1:
            raise refused(
                f"Number of shards must be greater than zero (currently num_shards = {step})."
            )
        if not 0 <= first < step:
            raise refused(f"Index must be between 0 and {step - 1} (currently index = {first}).")
        number = self._count if self._count < 0 else len(range(first, self._count, step))
        return self._step(
            "_ShardDataset",
            lambda source, memory: steps.sharded(source, memory, step, first),
            number,
        )

    def enumerate(self, start: Any = 0, name: str | None = None) -> Self:
        """Put pairs of a number, which counts from `start`, and the element in its place."""
        first = one_int(start, "start")
        return self._step(
            "_ZipDataset",
            lambda source, memory: steps.counted(source, memory, first),
            None,
            lambda: (TensorSpec((), int64), self._spec()),
        )

    def unique(self, name: str | None = None) -> Self:
        """Keep each element, a tensor, that was not there before."""
        return self._step("_UniqueDataset", steps.distinct, UNKNOWN)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Self:
        """Return the same elements: JAX runs a step while the next batch is made."""
        return self._step("_PrefetchDataset", lambda source, _: source)
