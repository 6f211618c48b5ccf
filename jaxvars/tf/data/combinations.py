"""The steps of datasets that take elements from several, or some of their elements by chance."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from jaxvars.tf.data.base import DatasetBase, Elements, make_seeds
from jaxvars.tf.data.generators import counts as counts
from jaxvars.tf.data.generators.calls import call_function, check_function
from jaxvars.tf.data.generators.counts import INFINITE, UNKNOWN
from jaxvars.tf.data.generators.cursor import Cursor, Memory
from jaxvars.tf.data.generators.philox import Seeds
from jaxvars.tf.tensors.dtypes import int32
from jaxvars.tf.tensors.elements import leaves, map_leaves, merge_specs, pack_leaves, to_host
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import one_int, refused, require_known


class Several(DatasetBase, ABC):
    """The steps that take elements from several datasets."""

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None, name: str | None = None) -> Self:
        """Make a dataset of the elements of several side by side, until one of them ends.

        Raises:
            TypeError: when there is something else than datasets.
        """
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if isinstance(given, list):
            raise TypeError(
                "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                "`tf.data.Dataset` objects. Python `list` is not supported and you should use "
                "`tuple` instead."
            )
        for part in leaves(given):
            if not isinstance(part, DatasetBase):
                raise TypeError(f"Invalid input to `zip`: {part} is not a dataset.")

        def step(memory: Memory) -> Elements:
            parts = [memory.iterate(str(i), part._cursor) for i, part in enumerate(leaves(given))]
            for row in zip(*parts, strict=False):
                rest = iter(row)
                yield map_leaves(lambda _, rest=rest: next(rest), given)

        def forms() -> list[Any]:
            rows = [part._forms() for part in leaves(given)]
            count = max(map(len, rows))
            rows = [row * count if len(row) == 1 else row for row in rows]
            return [pack_leaves(given, list(row)) for row in zip(*rows, strict=False)]

        return cls(
            "_ZipDataset",
            step,
            counts.fewest(part._count for part in leaves(given)),
            lambda: map_leaves(lambda part: part.element_spec, given),
            forms=forms,
            parts=_parts_of(leaves(given)),
        )

    def concatenate(self, dataset: Any, name: str | None = None) -> Self:
        """Put the elements of another dataset after these.

        Raises:
            TypeError: when their types differ.
        """
        _require_alike(self, dataset)

        def step(memory: Memory) -> Elements:
            if not memory.values.get("second"):
                yield from memory.iterate("first", self._cursor)
                memory.close("first")
                memory.values["second"] = True
            yield from memory.iterate("second", dataset._cursor)

        return self._like(
            "_ConcatenateDataset",
            step,
            counts.total(self._count, dataset._count),
            lambda: map_leaves(merge_specs, self._spec(), dataset._spec()),
            lambda: [*self._forms(), *dataset._forms()],
            self._parts + dataset._parts,
        )

    @classmethod
    def choose_from_datasets(
        cls, datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = True
    ) -> Self:
        """Make a dataset of elements of several, which another one chooses by number.

        Args:
            datasets: a list of datasets.
            choice_dataset: of their int64 indices.
            stop_on_empty_dataset: end when one ends, not when all do.

        Raises:
            ValueError: without a dataset.
            TypeError: when their types differ, or `choice_dataset` is not one of scalars of int64.

        >>> from jaxvars.tf.data import Dataset
        >>> numbers = [Dataset.range(3), Dataset.range(10, 13)]
        >>> made = Dataset.choose_from_datasets(numbers, Dataset.range(2).repeat(2))
        >>> [int(x) for x in made]
        [0, 10, 1, 11]
        """
        given = _list_datasets(datasets)
        spec = choice_dataset.element_spec
        if spec != TensorSpec((), "int64"):
            raise TypeError(
                "The `choice_dataset` must be a dataset of scalar `tf.int64` elements, not "
                f"{spec!r}."
            )
        makes = [part._cursor for part in given]

        def step(memory: Memory) -> Elements:
            chosen = memory.iterate("choice", choice_dataset._cursor)
            choices = (one_int(to_host(x), "a choice") for x in chosen)
            return _take_in_turn(memory, makes, choices, bool(stop_on_empty_dataset))

        parts = _parts_of([*given, choice_dataset])
        return cls(
            "_DirectedInterleaveDataset", step, UNKNOWN, lambda: _find_common_spec(given),
            parts=parts,
        )  # fmt: skip

    @classmethod
    def sample_from_datasets(
        cls, datasets: Sequence[Any], weights: Any = None, seed: Any = None,
        stop_on_empty_dataset: bool = False, rerandomize_each_iteration: bool | None = None,
    ) -> Self:  # fmt: skip
        """Make a dataset of elements of several, each chosen by chance.

        Differs from TensorFlow: a seed gives other values.

        Args:
            datasets: a list of datasets.
            weights: how often each is chosen: a list of numbers, or a dataset of such lists; all
                alike if None.
            seed: an integer; follows from the global seed if None.
            stop_on_empty_dataset: end when one ends, not when all do.
            rerandomize_each_iteration: choose others each time.

        Raises:
            ValueError: without a dataset, or with another number of weights.
            TypeError: when their types differ.

        Differs from TensorFlow: the random values are others.
        """
        given = _list_datasets(datasets)
        if weights is not None and not isinstance(weights, DatasetBase):
            sizes = np.asarray(require_known(weights, "weights"), np.float64)
            if sizes.shape != (len(given),):
                raise ValueError(
                    "Invalid `weights`. `weights` should have the same length as `datasets` but "
                    f"got `len(weights)={sizes.size}` vs. `len(datasets)={len(given)}`."
                )
        seeds = make_seeds(seed, bool(rerandomize_each_iteration))
        makes = [part._cursor for part in given]

        def step(memory: Memory) -> Elements:
            of_each = _read_weights(memory, weights, len(given))
            choices = _draw_indices(memory, seeds, of_each)
            return _take_in_turn(memory, makes, choices, bool(stop_on_empty_dataset))

        endless = any(part._count == INFINITE for part in given) and not stop_on_empty_dataset
        size = INFINITE if endless else UNKNOWN
        parts = _parts_of([*given, *([weights] if isinstance(weights, DatasetBase) else [])])
        return cls(
            "_DirectedInterleaveDataset", step, size, lambda: _find_common_spec(given),
            parts=(*parts, seeds),
        )  # fmt: skip

    def rejection_resample(
        self, class_func: Callable[..., Any], target_dist: Any, initial_dist: Any = None,
        seed: Any = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Take elements by chance, so that classes come as often as they should.

        Args:
            class_func: takes an element, returns its class, an int32.
            target_dist: how often each class should come.
            initial_dist: how often each comes in this dataset; found out meanwhile if None.
            seed: an integer; follows from the global seed if None.
            name: of no effect.

        Returns:
            A dataset of pairs of a class and an element.

        Differs from TensorFlow: the random values are others.
        """
        target = np.asarray(require_known(target_dist, "target_dist"), np.float64)
        initial = None
        if initial_dist is not None:
            initial = np.asarray(require_known(initial_dist, "initial_dist"), np.float64)
        func, seeds = check_function(class_func), make_seeds(seed, True)

        def step(source: Elements, memory: Memory) -> Elements:
            kept = memory.values
            random = seeds.begin_stream(kept)
            kept.setdefault("seen", [10] * len(target))
            accepts: Any = kept.get("accepts")
            for element in source:
                number = one_int(to_host(call_function(func, element)), "class_func")
                kept["seen"][number] += 1
                have = np.asarray(kept["seen"]) / sum(kept["seen"]) if initial is None else initial
                chances, unchanged = _compute_chances(have, target)
                if accepts is None:  # what comes next is as it comes, or chosen
                    accepts = random.unit() >= unchanged
                takes = not accepts or random.unit() < chances[number]
                kept.update(drawn=random.drawn, accepts=None if takes else accepts)
                if takes:
                    accepts = None
                    yield np.asarray(number, np.int32), element

        def spec() -> Any:
            return TensorSpec((), int32), self._spec()

        return self._step("_MapDataset", step, UNKNOWN, spec, parts=(func, seeds))


def _parts_of(datasets: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(part for dataset in datasets for part in dataset._parts)


def _take_in_turn(
    memory: Memory, makes: Sequence[Callable[[], Cursor]], choices: Iterator[int], stops: bool
) -> Elements:
    """Yield elements of the datasets that are chosen by index, one by one."""
    over = memory.values.setdefault("over", [False] * len(makes))
    places = [memory.iterate(str(i), make) for i, make in enumerate(makes)]
    for i in choices:
        if not 0 <= i < len(makes):
            raise refused(f"Selector index out of range: {i} >= {len(makes)}")
        for element in places[i] if not over[i] else ():
            yield element
            break
        else:
            over[i] = True
            if stops or all(over):
                return


def _draw_indices(
    memory: Memory, seeds: Seeds, weights: Callable[[], Sequence[float]]
) -> Iterator[int]:
    """Yield random indices of datasets; the weights are requested for each."""
    kept = memory.values
    random = seeds.begin_stream(kept)
    while True:
        edges = np.cumsum(np.asarray(weights(), np.float64))
        over = kept.get("over") or [False] * len(edges)
        chosen = int(np.searchsorted(edges, random.unit() * edges[-1], side="right"))
        kept["drawn"] = random.drawn
        if not over[chosen]:
            yield chosen
        elif not any(w > 0 and not o for w, o in zip(np.diff(edges, prepend=0), over, strict=True)):
            return


def _compute_chances(initial: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """Return with which chance each class is taken, and how many elements need no choice."""
    ratio = np.divide(target, initial, out=np.zeros_like(target), where=initial > 0)
    least, most = ratio.min(), ratio.max()
    if most == least:
        return np.ones_like(ratio), 1.0
    return (ratio - least) / (most - least), float(least)


def _read_weights(memory: Memory, weights: Any, count: int) -> Callable[[], Sequence[float]]:
    if weights is None:
        return lambda: [1.0] * count
    if isinstance(weights, DatasetBase):
        places = memory.iterate("weights", weights._cursor)
        return lambda: to_host(next(places)).tolist()
    sizes = np.asarray(require_known(weights, "weights"), np.float64).tolist()
    return lambda: sizes


def _list_datasets(datasets: Sequence[Any]) -> list[Any]:
    given = list(datasets)
    if not given:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    for other in given[1:]:
        _require_alike(given[0], other)
    return given


def _require_alike(one: Any, other: Any) -> None:
    if map_leaves(_kind_of, one._spec()) != map_leaves(_kind_of, other._spec()):
        raise TypeError(f"Incompatible dataset elements:\n  {one._spec()} vs.   {other._spec()}")


def _kind_of(spec: Any) -> tuple[Any, Any]:
    return getattr(spec, "value_type", None), getattr(spec, "dtype", None)


def _find_common_spec(datasets: list[Any]) -> Any:
    spec = datasets[0]._spec()
    for other in datasets[1:]:
        spec = map_leaves(merge_specs, spec, other._spec())
    return spec
