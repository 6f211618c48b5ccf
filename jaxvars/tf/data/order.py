"""The steps of datasets that give other elements of them, or in another order: `shuffle`, ..."""

from __future__ import annotations

import itertools
from abc import ABC
from typing import Any, Self

import numpy as np

from jaxvars.tf.data.base import DatasetBase, Elements, seeded
from jaxvars.tf.data.generators import counts as counts
from jaxvars.tf.data.generators.counts import INFINITE, UNKNOWN
from jaxvars.tf.data.generators.cursor import Memory
from jaxvars.tf.data.generators.philox import Philox
from jaxvars.tf.tensors.dtypes import int64
from jaxvars.tf.tensors.elements import Element, host
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

        def step(source: Elements, memory: Memory) -> Elements:
            kept = memory.values
            if "buffer" not in kept:
                kept.update(
                    seeds=list(seeds.next()), begun=seeds.drawn, buffer=[], start=0, drawn=0
                )
            seeds.rewind(kept["begun"])
            random = Philox(tuple(kept["seeds"]), kept["drawn"])
            buffer, start = kept["buffer"], kept["start"]
            if "left" not in kept:
                buffer.extend(itertools.islice(source, limit - len(buffer)))
                kept["left"] = len(buffer)
            left, room = kept["left"], len(buffer)  # a ring: TensorFlow's order follows from it
            while True:
                for new in source if 0 < left < room else ():
                    buffer[(start + left) % room] = new
                    left += 1
                    break
                if not left:
                    return
                chosen = (start + random.below(left)) % room
                element, buffer[chosen] = buffer[chosen], buffer[start % room]
                start, left = start + 1, left - 1
                kept.update(start=start, left=left, drawn=random.drawn)
                yield element

        return self._step("_ShuffleDataset", step)

    def repeat(self, count: Any = None, name: str | None = None) -> Self:
        """Begin again at the end: a number of times, or indefinitely."""
        times = -1 if count is None else one_int(count, "count")

        def step(memory: Memory) -> Elements:
            kept = memory.values
            turn = kept.get("turn", 0)
            while times < 0 or turn < times:
                for element in memory.opened("source", self._cursor):
                    kept["some"] = True
                    yield element
                if not kept.get("some"):
                    return
                memory.closed("source")
                kept["turn"] = turn = turn + 1
                kept["some"] = False

        return self._like("_RepeatDataset", step, counts.product(self._count, times))

    def take(self, count: Any, name: str | None = None) -> Self:
        """Keep the first elements; all of them if `count` is -1."""
        size = one_int(count, "count")
        if size < 0:
            return self._step("_TakeDataset", lambda source, _: source)
        number = size if self._count == INFINITE else min(self._count, size)

        def step(source: Elements, memory: Memory) -> Elements:
            for i in range(memory.values.get("i", 0), size):
                for element in source:
                    memory.values["i"] = i + 1
                    yield element
                    break
                else:
                    return

        return self._step("_TakeDataset", step, number)

    def skip(self, count: Any, name: str | None = None) -> Self:
        """Leave out the first elements; all of them if `count` is -1."""
        size = one_int(count, "count")
        if size < 0:
            return self._step("_SkipDataset", lambda _, __: iter(()), 0)
        number = self._count if self._count < 0 else max(self._count - size, 0)

        def step(source: Elements, memory: Memory) -> Elements:
            if not memory.values.get("skipped"):
                for _ in itertools.islice(source, size):
                    pass
                memory.values["skipped"] = True
            yield from source

        return self._step("_SkipDataset", step, number)

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

        def chosen(source: Elements, memory: Memory) -> Elements:
            for i, element in enumerate(source, memory.values.get("i", 0)):
                if i % step == first:
                    memory.values["i"] = i + 1
                    yield element

        return self._step("_ShardDataset", chosen, number)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Self:
        """Put pairs of a number, which counts from `start`, and the element in its place."""
        first = one_int(start, "start")

        def step(source: Elements, memory: Memory) -> Elements:
            for i, element in enumerate(source, memory.values.get("i", first)):
                memory.values["i"] = i + 1
                yield np.asarray(i, np.int64), element

        return self._step("_ZipDataset", step, spec=lambda: (TensorSpec((), int64), self._spec()))

    def unique(self, name: str | None = None) -> Self:
        """Keep each element, a tensor, that was not there before."""

        def step(source: Elements, memory: Memory) -> Elements:
            elements = memory.values.setdefault("seen", [])
            seen = set(map(_key, elements))
            for element in source:
                key = _key(element)
                if key not in seen:
                    seen.add(key)
                    elements.append(element)
                    yield element

        return self._step("_UniqueDataset", step, UNKNOWN)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Self:
        """Return the same elements: JAX runs a step while the next batch is made."""
        return self._step("_PrefetchDataset", lambda source, _: source)


def _key(element: Element) -> Any:
    array = host(element)
    return array.tobytes() if array.dtype != object else tuple(array.ravel())
