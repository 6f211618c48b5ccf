"""The steps of datasets that call a function, as `map`, or change the order, as `shuffle`."""

from __future__ import annotations

import functools
import itertools
import os
import warnings
from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from jaxvars.tf.data.base import (
    DatasetBase,
    Elements,
    dataset_of,
    element_like,
    first_spec,
    make_seeds,
    staged_loop,
)
from jaxvars.tf.data.generators import counts as counts
from jaxvars.tf.data.generators.calls import call_function, check_function, result_spec, truth
from jaxvars.tf.data.generators.counts import INFINITE, UNKNOWN
from jaxvars.tf.data.generators.cursor import Cursor, Memory
from jaxvars.tf.data.generators.philox import Philox
from jaxvars.tf.data.generators.staged import reduce_in_program
from jaxvars.tf.random.iteration import call_again, place_of_draws
from jaxvars.tf.tensors.dtypes import int64
from jaxvars.tf.tensors.elements import (
    Element,
    key_of,
    leaves,
    map_leaves,
    merge_specs,
    pack_leaves,
    spec_of,
    to_stored,
    to_tensors,
)
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import one_int, refused


class Steps(DatasetBase, ABC):
    """The steps that call a function, and those that change the order and number of elements."""

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None,
        deterministic: bool | None = None, synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Put what a function makes of each element in its place.

        Args:
            map_func: takes an element; a tuple is given as several arguments.
            num_parallel_calls: of no effect, as what follows.
            deterministic: the order is always kept.
            synchronous: always.
            use_unbounded_threadpool: there are no threads.
            name: of no effect.
        """
        func = check_function(map_func)

        def step(source: Elements, _: Memory) -> Iterable[Element]:
            return (call_function(func, element) for element in source)

        made = self._step(
            _kind("Map", num_parallel_calls), step, None,
            lambda: result_spec(func, (self._spec(),)) or first_spec(made),
            lambda: [result_spec(func, (form,)) or made._spec() for form in self._forms()], (func,),
        )  # fmt: skip
        return made

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keep the elements for which a function returns true."""
        test = check_function(predicate)
        return self._step(
            "_FilterDataset", lambda source, _: (x for x in source if truth(test, x)), UNKNOWN,
            parts=(test,),
        )  # fmt: skip

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """Put the elements of the dataset that a function returns in place of each element."""
        made = self.interleave(map_func, cycle_length=1)
        return made._like("_FlatMapDataset", made._run)

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: int | None = None,
        block_length: int | None = None, num_parallel_calls: Any = None,
        deterministic: bool | None = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Take blocks of elements in turn from datasets that a function returns.

        Args:
            map_func: takes an element, returns a dataset.
            cycle_length: how many datasets are open; as many as there are processors if None.
            block_length: how many elements are taken from each in its turn; 1 if None.
            num_parallel_calls: of no effect.
            deterministic: the order is always kept.
            name: of no effect.

        Raises:
            TypeError: (when iterated) when the function returns something else.
        """
        func = check_function(map_func)
        cycle = os.cpu_count() or 1 if cycle_length in (None, -1) else int(cycle_length or 1)
        block = int(block_length or 1)

        def opened(element: Element) -> Cursor:
            return dataset_of(func, element)._begin()

        def step(source: Elements, memory: Memory) -> Iterable[Element]:
            kept = memory.values
            # Their elements, and where the streams were at their calls.
            given: list[Any] = kept.setdefault("given", [None] * cycle)
            places: list[Any] = [
                x and memory.iterate(str(i), functools.partial(call_again, x[1:], opened, x[0]))
                for i, x in enumerate(given)
            ]
            i, count, turns = kept.get("i", 0), kept.get("count", 0), len(given)
            while True:
                if places[i] is None:
                    for element in source:
                        place = place_of_draws()  # which is not kept of a call that fails
                        places[i] = memory.iterate(str(i), functools.partial(opened, element))
                        given[i] = [element, place]
                        break
                    else:
                        if not any(places):
                            return
                        i, count = (i + 1) % turns, 0
                        continue
                for element in places[i]:
                    count += 1
                    after = (i + 1) % turns if count == block else i
                    count %= block
                    kept.update(i=after, count=count)
                    yield element
                    i = after
                    break
                else:
                    places[i] = given[i] = None
                    memory.close(str(i))
                    i, count = (i + 1) % turns, 0

        return self._step(
            _kind("Interleave", num_parallel_calls), step, UNKNOWN,
            lambda: dataset_of(func, element_like(self)).element_spec, parts=(func,),
        )  # fmt: skip

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """Return what a function makes of a state and each element, one after another.

        Args:
            initial_state: a tensor or structure of them.
            reduce_func: takes the state and an element, returns the next state.
            name: of no effect.

        Raises:
            TypeError: when the next state has another type.

        >>> from jaxvars.tf.data import Dataset
        >>> numbers = Dataset.from_tensor_slices([1, 2, 3])
        >>> numbers.reduce(0, lambda total, x: total + x).numpy()
        np.int32(6)
        """
        func = check_function(reduce_func)
        if (items := staged_loop(self)) is not None:
            return reduce_in_program(items, initial_state, func)
        state = map_leaves(to_stored, initial_state)
        for element in self:
            state = _check_state(state, call_function(func, state, element))
        return to_tensors(state)

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> Self:
        """Put what a function makes of a state and each element in its place.

        Args:
            initial_state: a tensor or structure of them.
            scan_func: takes the state and an element, returns the next state and an element.
            name: of no effect.
        """
        func = check_function(scan_func)

        def step(source: Elements, memory: Memory) -> Elements:
            state = memory.values.get("state", map_leaves(to_stored, initial_state))
            for element in source:
                pair = call_function(func, state, element)
                if not isinstance(pair, tuple) or len(pair) != 2:
                    raise TypeError(
                        "`scan_func` should return a pair consisting of new state and the output "
                        f"value, not {pair}."
                    )
                after, made = pair
                memory.values["state"] = state = _check_state(state, after)
                yield made

        def spec() -> Any:
            given = map_leaves(lambda x: spec_of(to_stored(x)), initial_state)
            while True:  # sizes of the state that change are open
                found = result_spec(lambda s, x: func(s, x), (given, self._spec()))
                if found is None:
                    return first_spec(made)
                before, given = given, map_leaves(merge_specs, given, found[0])
                if given == before:
                    return found[1]

        made = self._step("_ScanDataset", step, None, spec, parts=(func,))
        return made

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keep the elements before the first for which a function returns false."""
        test = check_function(predicate)

        def step(source: Elements, memory: Memory) -> Elements:
            if memory.values.get("over"):
                return
            for element in source:
                if not truth(test, element):
                    break
                yield element
            memory.values["over"] = True

        return self._step("_TakeWhileDataset", step, UNKNOWN, parts=(test,))

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """Return what a function makes of this dataset.

        Raises:
            TypeError: when it is not a dataset.
        """
        made = transformation_func(self)
        if not isinstance(made, DatasetBase):
            raise TypeError(
                f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(made)}."
            )
        return made

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """Leave out the elements that cannot be made.

        Args:
            log_warning: give a warning of each.
            name: of no effect.

        >>> from jaxvars import tf
        >>> numbers = tf.data.Dataset.from_tensor_slices([1.0, 0.0])
        >>> numbers = numbers.map(lambda x: tf.debugging.check_numerics(1.0 / x, "wrong"))
        >>> [float(x) for x in numbers.ignore_errors()]
        [1.0]
        """

        def step(memory: Memory) -> Elements:
            cursor = memory.cursor("source", self._cursor)
            while True:
                try:
                    element = next(iter(cursor))
                except StopIteration:
                    return
                except Exception as error:  # noqa: BLE001 - whatever it is: that is the step
                    if log_warning:
                        warnings.warn(f"An element was left out: {error}", stacklevel=1)
                    cursor.resume()
                    continue
                yield element

        return self._like("_IgnoreErrorsDataset", step, UNKNOWN)

    # ------------------------------------------------------------ order and number
    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Self:  # fmt: skip
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
        seeds = make_seeds(seed, reshuffle_each_iteration is not False)

        def step(source: Elements, memory: Memory) -> Elements:
            kept = memory.values
            if "buffer" not in kept:
                kept.update(seeds=list(seeds.next()), buffer=[], start=0, drawn=0)
            random = Philox(tuple(kept["seeds"]), kept["drawn"])
            buffer, start = kept["buffer"], kept["start"]
            if "left" not in kept:
                buffer.extend(itertools.islice(source, limit - len(buffer)))
                kept["left"] = len(buffer)
            left, room = kept["left"], len(buffer)  # a ring: TensorFlow's order follows from it
            while True:
                for new in source if left < room else ():
                    buffer[(start + left) % room] = new
                    left += 1
                    break
                if not left:
                    return
                chosen = (start + random.next() % left) % room
                element, buffer[chosen] = buffer[chosen], buffer[start % room]
                start, left = start + 1, left - 1
                kept.update(start=start, left=left, drawn=random.drawn)
                yield element

        return self._step("_ShuffleDataset", step, parts=(seeds,))

    def repeat(self, count: Any = None, name: str | None = None) -> Self:
        """Begin again at the end: a number of times, or indefinitely."""
        times = -1 if count is None else one_int(count, "count")

        def step(memory: Memory) -> Elements:
            kept = memory.values
            turn = kept.get("turn", 0)
            while times < 0 or turn < times:
                for element in memory.iterate("source", self._cursor):
                    kept["some"] = True
                    yield element
                if not kept.get("some"):
                    return
                memory.close("source")
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

        number = TensorSpec((), int64)
        return self._step(
            "_ZipDataset", step, None,
            lambda: (number, self._spec()), lambda: [(number, form) for form in self._forms()],
        )  # fmt: skip

    def unique(self, name: str | None = None) -> Self:
        """Keep each element, a tensor, that was not there before."""

        def step(source: Elements, memory: Memory) -> Elements:
            elements = memory.values.setdefault("seen", [])
            seen = set(map(key_of, elements))
            for element in source:
                key = key_of(element)
                if key not in seen:
                    seen.add(key)
                    elements.append(element)
                    yield element

        return self._step("_UniqueDataset", step, UNKNOWN)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Self:
        """Return the same elements: JAX runs a step while the next batch is made."""
        return self._step("_PrefetchDataset", lambda source, _: source)


def _kind(name: str, calls: Any) -> str:
    return f"_{name}Dataset" if calls is None else f"_Parallel{name}Dataset"


def _check_state(state: Any, after: Any) -> Any:
    for old, new in zip(leaves(state), leaves(after), strict=True):
        if spec_of(old).dtype != spec_of(new).dtype:
            raise TypeError(
                "The element types for the new state must match the initial state. Expected "
                f"{spec_of(old).dtype!r}; got {spec_of(new).dtype!r}."
            )
    return pack_leaves(state, leaves(after))
