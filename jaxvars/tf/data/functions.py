"""The steps of datasets that call a function: `map`, `filter`, `interleave`, `reduce`, ..."""

from __future__ import annotations

import functools
import os
import warnings
from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any, Self

from jaxvars.tf.data.base import (
    DatasetBase,
    Elements,
    dataset_of,
    first_element,
    first_spec,
    staged_loop,
)
from jaxvars.tf.data.generators.calls import called, checked, result_spec, truth
from jaxvars.tf.data.generators.counts import UNKNOWN
from jaxvars.tf.data.generators.cursor import Cursor, Memory
from jaxvars.tf.tensors.elements import Element, leaves, mapped, spec_of, stored, tensors


class Functions(DatasetBase, ABC):
    """The steps that call a function."""

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
        func = checked(map_func)

        def step(source: Elements, _: Memory) -> Iterable[Element]:
            return (called(func, element) for element in source)

        made = self._step(_kind("Map", num_parallel_calls), step)
        return made._with_spec(lambda: result_spec(func, (self._spec(),)) or first_spec(made))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keep the elements for which a function returns true."""
        test = checked(predicate)
        return self._step(
            "_FilterDataset", lambda source, _: (x for x in source if truth(test, x)), UNKNOWN
        )

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """Put the elements of the dataset that a function returns in place of each element."""
        made = self.interleave(map_func, cycle_length=1)
        made._kind = "_FlatMapDataset"
        return made

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
        func = checked(map_func)
        cycle = os.cpu_count() or 1 if cycle_length in (None, -1) else int(cycle_length or 1)
        block = int(block_length or 1)

        def opened(element: Element) -> Cursor:
            return dataset_of(func, element)._cursor()

        def step(source: Elements, memory: Memory) -> Iterable[Element]:
            kept = memory.values
            given: list[Any] = kept.setdefault("given", [None] * cycle)  # their elements, in lists
            places: list[Any] = [
                x and memory.opened(str(i), functools.partial(opened, x[0]))
                for i, x in enumerate(given)
            ]
            i, count = kept.get("i", 0), kept.get("count", 0)
            while True:
                if places[i] is None:
                    for element in source:
                        given[i] = [element]
                        places[i] = memory.opened(str(i), functools.partial(opened, element))
                        break
                    else:
                        if not any(places):
                            return
                        i, count = (i + 1) % cycle, 0
                        continue
                for element in places[i]:
                    count += 1
                    after = (i + 1) % cycle if count == block else i
                    count %= block
                    kept.update(i=after, count=count)
                    yield element
                    i = after
                    break
                else:
                    places[i] = given[i] = None
                    memory.closed(str(i))
                    i, count = (i + 1) % cycle, 0

        return self._step(
            _kind("Interleave", num_parallel_calls), step, UNKNOWN,
            lambda: dataset_of(func, first_element(self)).element_spec,
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
        func = checked(reduce_func)
        if (items := staged_loop(self)) is not None:
            return _reduced_in_a_program(items, initial_state, func)
        state = mapped(stored, initial_state)
        for element in self:
            state = _next_state(state, called(lambda s, x: func(s, x), state, element))
        return tensors(state)

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> Self:
        """Put what a function makes of a state and each element in its place.

        Args:
            initial_state: a tensor or structure of them.
            scan_func: takes the state and an element, returns the next state and an element.
            name: of no effect.
        """
        func = checked(scan_func)

        def step(source: Elements, memory: Memory) -> Elements:
            state = memory.values.get("state", mapped(stored, initial_state))
            for element in source:
                after, made = called(lambda s, x: func(s, x), state, element)
                memory.values["state"] = state = _next_state(state, after)
                yield made

        def spec() -> Any:
            given = mapped(lambda x: spec_of(stored(x)), initial_state)
            found = result_spec(lambda s, x: func(s, x), (given, self._spec()))
            return first_spec(made) if found is None else found[1]

        made = self._step("_ScanDataset", step)
        return made._with_spec(spec)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Keep the elements before the first for which a function returns false."""
        test = checked(predicate)

        def step(source: Elements, memory: Memory) -> Elements:
            if memory.values.get("over"):
                return
            for element in source:
                if not truth(test, element):
                    break
                yield element
            memory.values["over"] = True

        return self._step("_TakeWhileDataset", step, UNKNOWN)

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


def _kind(name: str, calls: Any) -> str:
    return f"_{name}Dataset" if calls is None else f"_Parallel{name}Dataset"


def _reduced_in_a_program(items: Any, initial: Any, func: Callable[..., Any]) -> Any:
    """Reduce the elements that a program requests."""
    from jaxvars.tf.arrays.constant import convert_to_tensor
    from jaxvars.tf.control.branches import while_loop

    def turn(_: Any, state: Any) -> Any:
        after = func(state, items.item(None))
        return items.more(None), after

    start = mapped(convert_to_tensor, initial)
    return while_loop(lambda go, _: go, turn, (items.more(None), start))[1]


def _next_state(state: Any, after: Any) -> Any:
    for old, new in zip(leaves(state), leaves(after), strict=True):
        if spec_of(old).dtype != spec_of(new).dtype:
            raise TypeError(
                "The element types for the new state must match the initial state. Expected "
                f"{spec_of(old).dtype!r}; got {spec_of(new).dtype!r}."
            )
    return after
