"""`tf.data.Dataset`: elements one after another, and the steps that change them.

Rules this file keeps:
- a dataset does not change, and begins anew each time it is iterated over;
- elements are made on the host, one when it is asked for: JAX runs the step before while the next
  batch is made, so that there are no threads.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from jaxvars import _trace
from jaxvars import random as _random
from jaxvars.tf import _data_steps as steps
from jaxvars.tf._data_calls import called, checked, result_spec, truth
from jaxvars.tf._data_elements import (
    DatasetSpec,
    Element,
    batched,
    grown,
    host,
    is_structure,
    leaves,
    mapped,
    numpy,
    packed,
    padded,
    shrunk,
    sliced,
    spec_of,
    stored,
    tensors,
    widened,
)
from jaxvars.tf._data_steps import INFINITE, UNKNOWN
from jaxvars.tf._dtypes import as_dtype, int64
from jaxvars.tf._shapes import TensorShape
from jaxvars.tf._specs import TensorSpec
from jaxvars.tf._static import one_int, refused
from jaxvars.tf._tensor import Tensor, wrap
from jaxvars.tf.errors import InvalidArgumentError, OutOfRangeError

Make: TypeAlias = Callable[[], Iterable[Element]]


@final
class Dataset:
    """Elements one after another: made by `from_tensor_slices` and others, changed by steps.

    An element is a tensor, or a tuple or dict of them.

    >>> dataset = Dataset.range(5).map(lambda x: x * x).batch(2)
    >>> [batch.tolist() for batch in dataset.as_numpy_iterator()]
    [[0, 1], [4, 9], [16]]

    Differs from TensorFlow: functions run for each element, not as a graph, unless they are a
    `tf.function`; `num_parallel_calls`, `prefetch` and options have no effect; the order of a
    shuffle with a seed is another one; it cannot be iterated over inside a `tf.function`.
    """

    def __init__(self, kind: str, make: Make, count: int, spec: Callable[[], Any]) -> None:
        self._kind, self._elements, self._count = kind, make, count
        self._find_spec = functools.cache(spec)

    def _step(
        self,
        kind: str,
        step: Callable[[Iterable[Element]], Iterable[Element]],
        count: int | None = None,
        spec: Callable[[], Any] | None = None,
    ) -> Dataset:
        """Return this dataset with a step after it; with as many elements, of the same spec."""

        def make() -> Iterable[Element]:
            return step(_Again(self._elements))

        return Dataset(kind, make, self._count if count is None else count, spec or self._spec)

    def _spec(self) -> Any:
        return self._find_spec()

    # ------------------------------------------------------------ sources
    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Make a dataset of the slices of tensors along their first dimension.

        Raises:
            ValueError: when a tensor is a scalar, or their first sizes differ.

        >>> for x, y in Dataset.from_tensor_slices(([[1, 2], [3, 4]], [5, 6])):
        ...     print(x.numpy(), y.numpy())
        [1 2] 5
        [3 4] 6
        """
        whole = mapped(stored, tensors)
        size, slice_of = sliced(whole)

        def spec() -> Any:
            return mapped(lambda leaf: shrunk(spec_of(leaf)), whole)

        return Dataset("_TensorSliceDataset", lambda: map(slice_of, range(size)), size, spec)

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Make a dataset of one element."""
        whole = mapped(stored, tensors)
        return Dataset("_TensorDataset", lambda: [whole], 1, lambda: mapped(spec_of, whole))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Make a dataset of what a Python generator yields; it is called anew each time.

        Args:
            generator: returns something to iterate over.
            output_types: the types, in the structure of an element.
            output_shapes: the shapes, in that structure.
            args: what `generator` is called with, as NumPy arrays.
            output_signature: `tf.TensorSpec`s, in place of types and shapes.
            name: of no effect.

        Raises:
            TypeError: when `generator` is no function, or nothing is said of the elements.
            InvalidArgumentError: (when iterated) for a value that does not fit.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        spec = _signature(output_types, output_shapes, output_signature)
        given = [stored(arg) for arg in args or ()]
        return Dataset(
            "_FlatMapDataset",
            lambda: steps.generated(generator(*given), spec),
            UNKNOWN,
            lambda: spec,
        )

    @staticmethod
    def range(*args: Any, **kwargs: Any) -> Dataset:
        """Make a dataset of numbers: `range(stop)`, `range(start, stop)`, or with a step.

        Args:
            *args: as for Python's `range`.
            **kwargs: `output_type`, int64 if there is none, and `name`.

        >>> [int(x) for x in Dataset.range(1, 6, 2)]
        [1, 3, 5]
        """
        dtype = as_dtype(kwargs.get("output_type", int64))
        numbers = range(*(one_int(arg, "the range") for arg in args))
        return Dataset(
            "_RangeDataset",
            lambda: (np.asarray(i, dtype.dtype) for i in numbers),
            len(numbers),
            lambda: TensorSpec((), dtype),
        )

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Make a dataset of the elements of several side by side, until one of them ends.

        Raises:
            TypeError: when there is something else than datasets.
        """
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        for part in leaves(given):
            if not isinstance(part, Dataset):
                raise TypeError(f"Invalid input to `zip`: {part} is no dataset.")
        return Dataset(
            "_ZipDataset",
            lambda: steps.zipped(given),
            steps.fewest(part._count for part in leaves(given)),
            lambda: mapped(lambda part: part.element_spec, given),
        )

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None
    ) -> Dataset:
        """Make a dataset of the names of files that match a pattern, shuffled by default.

        Raises:
            InvalidArgumentError: when there are none.
        """
        import glob

        patterns = [x.decode() for x in host(Tensor(_texts(file_pattern))).ravel()]
        lists = map(glob.glob, patterns)
        found = sorted(path for each in lists for path in each)
        if not found:
            raise refused(f"No files matched pattern: {', '.join(patterns)}")
        names = Dataset.from_tensor_slices(_texts(found))
        return names if shuffle is False else names.shuffle(len(found), seed)

    # ------------------------------------------------------------ functions
    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
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

        def step(source: Iterable[Element]) -> Iterable[Element]:
            return (called(func, element) for element in source)

        made = self._step("_MapDataset", step)
        return made._with_spec(lambda: _known_spec(made, result_spec(func, (self._spec(),))))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Keep the elements for which a function returns true."""
        test = checked(predicate)
        return self._step(
            "_FilterDataset", lambda source: (x for x in source if truth(test, x)), UNKNOWN
        )

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Put the elements of the dataset that a function returns in place of each element."""
        made = self.interleave(map_func, cycle_length=1)
        made._kind = "_FlatMapDataset"
        return made

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
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

        def opened(element: Element) -> Iterable[Element]:
            return _dataset(called(func, element))._elements()

        def step(source: Iterable[Element]) -> Iterable[Element]:
            return steps.interleaved(source, opened, cycle, block_length or 1)

        def spec() -> Any:
            first = next(iter(self._elements()), None)
            if first is None:
                raise ValueError("An empty dataset has no element to find the element_spec with.")
            return _dataset(called(func, first)).element_spec

        return self._step("_InterleaveDataset", step, UNKNOWN, spec)

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

        >>> numbers = Dataset.from_tensor_slices([1, 2, 3])
        >>> numbers.reduce(0, lambda total, x: total + x).numpy()
        np.int32(6)
        """
        func = checked(reduce_func)
        state = mapped(stored, initial_state)
        for element in self:
            state = _next_state(state, called(lambda s, x: func(s, x), state, element))
        return tensors(state)

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> Dataset:
        """Put what a function makes of a state and each element in its place.

        Args:
            initial_state: a tensor or structure of them.
            scan_func: takes the state and an element, returns the next state and an element.
            name: of no effect.
        """
        func = checked(scan_func)

        def step(source: Iterable[Element]) -> Iterator[Element]:
            state = mapped(stored, initial_state)
            for element in source:
                after, made = called(lambda s, x: func(s, x), state, element)
                state = _next_state(state, after)
                yield made

        made = self._step("_ScanDataset", step)
        return made._with_spec(lambda: _known_spec(made, None))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Keep the elements before the first for which a function returns false."""
        test = checked(predicate)
        return self._step(
            "_TakeWhileDataset",
            lambda source: itertools.takewhile(lambda x: truth(test, x), source),
            UNKNOWN,
        )

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Return what a function makes of this dataset.

        Raises:
            TypeError: when it is no dataset.
        """
        return _dataset(transformation_func(self))

    # ------------------------------------------------------------ groups
    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Put several elements together as one, with a new first dimension.

        Args:
            batch_size: how many.
            drop_remainder: leave out the last ones if they are fewer; with it all batches have one
                shape, so that a program is compiled once.
            num_parallel_calls: of no effect.
            deterministic: the order is always kept.
            name: of no effect.

        Raises:
            InvalidArgumentError: when `batch_size` is not positive; when shapes differ.
        """
        size, drop = _positive(batch_size, "Batch size"), bool(drop_remainder)
        return self._step(
            "_BatchDataset",
            lambda source: map(_batched, steps.grouped(source, size, drop)),
            steps.divided(self._count, size, drop),
            lambda: mapped(lambda spec: grown(spec, size if drop else None), self._spec()),
        )

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Put several elements together as one, each padded to the size of the largest.

        Args:
            batch_size: how many.
            padded_shapes: to pad to, in the structure of an element; None in a shape means the
                largest size of the batch.
            padding_values: to pad with; zeros and empty text if None.
            drop_remainder: leave out the last ones if they are fewer.
            name: of no effect.
        """
        size, drop = _positive(batch_size, "Batch size"), bool(drop_remainder)
        count = steps.divided(self._count, size, drop)
        made = self._step(
            "_PaddedBatchDataset",
            lambda source: (
                padded(group, padded_shapes, padding_values)
                for group in steps.grouped(source, size, drop)
            ),
            count,
        )

        def spec() -> Any:
            before = leaves(self._spec())
            found = packed(self._spec(), [grown(s, size if drop else None) for s in before])
            return found if padded_shapes is None else _known_spec(made, None)

        return made._with_spec(spec)

    def unbatch(self, name: str | None = None) -> Dataset:
        """Take the slices of each element along its first dimension as elements."""
        return self._step(
            "_UnbatchDataset",
            steps.unbatched,
            UNKNOWN,
            lambda: mapped(shrunk, self._spec()),
        )

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """Make batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Take several elements as a dataset that is one element.

        Args:
            size: how many.
            shift: how far one begins after another; `size` if None.
            stride: which elements are taken: every one, every second one, ...
            drop_remainder: leave out those that are shorter.
            name: of no effect.

        >>> windows = Dataset.range(4).window(3, shift=1, drop_remainder=True)
        >>> [x.tolist() for x in windows.flat_map(lambda w: w.batch(3)).as_numpy_iterator()]
        [[0, 1, 2], [1, 2, 3]]
        """
        length, step = _positive(size, "Window size"), _positive(stride, "Window stride")
        move = length if shift is None else _positive(shift, "Window shift")
        drop, span = bool(drop_remainder), (length - 1) * step + 1
        count = steps.divided(self._count - (span - move if drop else 0), move, drop)

        def make(source: Iterable[Element]) -> Iterable[Element]:
            return map(self._windowed, steps.windows(source, length, move, step, drop))

        return self._step(
            "_WindowDataset",
            make,
            self._count if self._count < 0 else max(count, 0),
            lambda: mapped(DatasetSpec, self._spec()),
        )

    def _windowed(self, group: list[Element]) -> Any:
        columns = zip(*map(leaves, group), strict=True)
        specs = leaves(self._spec())
        pairs = zip(columns, specs, strict=True)
        return packed(group[0], [_fixed(column, spec) for column, spec in pairs])

    # ------------------------------------------------------------ order and number
    def shuffle(
        self,
        buffer_size: Any,
        seed: Any = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Dataset:
        """Put the elements into random order.

        Args:
            buffer_size: from how many next ones each is chosen; all of them for a uniform order.
            seed: an integer; drawn from the global generator if None.
            reshuffle_each_iteration: make another order each time.
            name: of no effect.

        Raises:
            InvalidArgumentError: when `buffer_size` is not positive.
        """
        size = one_int(buffer_size, "buffer_size")
        if size < 1 and size != UNKNOWN:
            raise refused("buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
        limit = size if size > 0 else 2**62
        times = itertools.count()
        first = functools.cache(_drawn_seed if seed is None else lambda: one_int(seed, "seed"))

        def step(source: Iterable[Element]) -> Iterable[Element]:
            turn = 0 if reshuffle_each_iteration is False else next(times)
            words = [first() & (2**64 - 1), turn]
            return steps.shuffled(source, limit, np.random.default_rng(words))

        return self._step("_ShuffleDataset", step)

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Begin again at the end: a number of times, or for ever."""
        times = -1 if count is None else one_int(count, "count")
        return self._step(
            "_RepeatDataset",
            lambda source: steps.repeated(source, times),
            steps.product(self._count, times),
        )

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """Keep the first elements; all of them if `count` is -1."""
        size = one_int(count, "count")
        if size < 0:
            return self._step("_TakeDataset", lambda source: source)
        number = size if self._count == INFINITE else min(self._count, size)
        return self._step("_TakeDataset", lambda source: itertools.islice(source, size), number)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Leave out the first elements; all of them if `count` is -1."""
        size = one_int(count, "count")
        if size < 0:
            return self._step("_SkipDataset", lambda _: iter(()), 0)
        number = self._count if self._count < 0 else max(self._count - size, 0)
        return self._step(
            "_SkipDataset", lambda source: itertools.islice(source, size, None), number
        )

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Keep every `num_shards`th element, from number `index` on."""
        step, first = _positive(num_shards, "num_shards"), one_int(index, "index")
        if not 0 <= first < step:
            raise refused(f"index must be in [0, {step}), got {first}")
        number = self._count if self._count < 0 else len(range(first, self._count, step))
        return self._step(
            "_ShardDataset", lambda source: itertools.islice(source, first, None, step), number
        )

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Put the elements of another dataset after these.

        Raises:
            TypeError: when their types differ.
        """
        for mine, other in zip(leaves(self._spec()), leaves(dataset._spec()), strict=True):
            if getattr(mine, "dtype", None) != getattr(other, "dtype", None):
                raise TypeError(f"Incompatible dataset elements:\n  {mine} vs.   {other}")
        return self._step(
            "_ConcatenateDataset",
            lambda source: itertools.chain(source, _Again(dataset._elements)),
            steps.total(self._count, dataset._count),
            lambda: mapped(widened, self._spec(), dataset._spec()),
        )

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Put pairs of a number, which counts from `start`, and the element in its place."""
        first = one_int(start, "start")
        return self._step(
            "_ZipDataset",
            lambda source: ((np.asarray(i, np.int64), x) for i, x in enumerate(source, first)),
            None,
            lambda: (TensorSpec((), int64), self._spec()),
        )

    def unique(self, name: str | None = None) -> Dataset:
        """Keep each element, a tensor, that was not there before."""
        return self._step("_UniqueDataset", steps.distinct, UNKNOWN)

    # ------------------------------------------------------------ speed
    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Keep the elements in memory once all of them were asked for.

        Raises:
            UnimplementedError: when a file is named.
        """
        if filename:
            from jaxvars.tf.errors import UnimplementedError

            raise UnimplementedError(
                None, None, "Dataset.cache keeps elements in memory, not in a file: cache()."
            )
        kept: list[list[Element]] = []
        return self._step("CacheDataset", lambda source: steps.cached(source, kept))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """Return the same elements: JAX runs a step while the next batch is made."""
        return self._step("_PrefetchDataset", lambda source: source)

    def with_options(self, options: Any, name: str | None = None) -> Dataset:
        """Return the same elements: there are no options that count here."""
        return self._step("_OptionsDataset", lambda source: source)

    def options(self) -> Options:
        """Return the options, of no effect."""
        return Options()

    # ------------------------------------------------------------ what it is
    @property
    def element_spec(self) -> Any:
        """The specs of an element's tensors, in its structure.

        After `map` it is found by tracing the function, or by the first element if that fails.
        """
        return self._spec()

    def cardinality(self) -> Tensor:
        """Return how many elements there are: -1 if it never ends, -2 if that is not known."""
        return wrap(tensors(np.asarray(self._count, np.int64)))

    def __len__(self) -> int:
        if self._count < 0:
            infinite = self._count == INFINITE
            raise TypeError(
                "The dataset is infinite." if infinite else "The dataset length is unknown."
            )
        return self._count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self._kind} element_spec={self.element_spec!r}>"

    # ------------------------------------------------------------ iteration
    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self)

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Yield the elements as NumPy arrays and scalars."""
        _refuse_in_function()
        return map(numpy, self._elements())

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the only element.

        Raises:
            InvalidArgumentError: when there is none, or another one.
        """
        found = list(itertools.islice(self, 2))
        if len(found) != 1:
            words = "more than one element" if found else "no elements"
            raise refused(f"Dataset had {words}. [Op:DatasetToSingleElement] name: ")
        return found[0]

    def _with_spec(self, spec: Callable[[], Any]) -> Dataset:
        self._find_spec = functools.cache(spec)
        return self


@final
class DatasetIterator(Iterator[Any]):
    """Goes through a dataset once; made by `iter(dataset)`."""

    def __init__(self, dataset: Dataset) -> None:
        _refuse_in_function()
        self._dataset = dataset
        self._rest = iter(dataset._elements())

    @property
    def element_spec(self) -> Any:
        """The specs of an element's tensors, in its structure."""
        return self._dataset.element_spec

    def __next__(self) -> Any:
        return tensors(next(self._rest))

    def get_next(self) -> Any:
        """Return the next element.

        Raises:
            OutOfRangeError: when there is none.
        """
        for element in self._rest:
            return tensors(element)
        raise OutOfRangeError(None, None, "End of sequence [Op:IteratorGetNext] name: ")


@final
class Options:
    """What one may say of how a dataset is to run; accepted, and of no effect."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = Options()
        return self.__dict__[name]


@final
class _Again:
    """What can be iterated over again."""

    def __init__(self, make: Make) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Element]:
        return iter(self._make())


def text_lines(filenames: Any) -> Dataset:
    """Return a dataset of the lines of text files."""
    names = [Path(x.decode()) for x in host(Tensor(_texts(filenames))).ravel()]

    def make() -> Iterator[Element]:
        for path in names:
            with path.open("rb") as file:
                for line in file:
                    yield _texts(line.rstrip(b"\r\n"))

    return Dataset("TextLineDatasetV2", make, UNKNOWN, lambda: TensorSpec((), "string"))


# ---------------------------------------------------------------- small
def _texts(value: Any) -> np.ndarray:
    return stored(np.asarray(value, object) if isinstance(value, bytes) else value)


def _batched(group: list[Element]) -> Element:
    if any(hasattr(leaf, "element_spec") for leaf in leaves(group[0])):
        raise TypeError("Datasets cannot be batched: batch what is in them, and flat_map it.")
    return batched(group)


def _fixed(column: tuple[Any, ...], spec: Any) -> Dataset:
    return Dataset("_VariantDataset", lambda: column, len(column), lambda: spec)


def _dataset(found: Any) -> Dataset:
    if not isinstance(found, Dataset):
        raise TypeError(
            "The function must return a `Dataset` object, but returned an object of type "
            f"{type(found).__name__}."
        )
    return found


def _positive(value: Any, what: str) -> int:
    found = one_int(value, what)
    if found < 1:
        raise refused(f"{what} must be greater than zero.")
    return found


def _drawn_seed() -> int:
    return int(_random.randint((), 0, 2**31 - 1))


def _next_state(state: Any, after: Any) -> Any:
    for old, new in zip(leaves(state), leaves(after), strict=True):
        if spec_of(old).dtype != spec_of(new).dtype:
            raise TypeError(
                "The element types for the new state must match the initial state. Expected "
                f"{spec_of(old).dtype!r}; got {spec_of(new).dtype!r}."
            )
    return after


def _known_spec(made: Dataset, spec: Any) -> Any:
    """Return a spec, or that of the first element if there is none.

    Raises:
        ValueError: when there is no element.
    """
    if spec is not None:
        return spec
    for element in made._elements():
        return mapped(spec_of, element)
    raise ValueError("An empty dataset has no element to find the element_spec with.")


def _signature(types: Any, shapes: Any, signature: Any) -> Any:
    if signature is not None:
        if types is not None or shapes is not None:
            raise TypeError(
                "The `output_types` and `output_shapes` arguments cannot be used together with "
                "the `output_signature` argument."
            )
        return signature
    if types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` "
            "argument or the `output_types` argument."
        )
    types = tuple(types) if isinstance(types, list) else types
    if shapes is None:
        return mapped(lambda dtype: TensorSpec(None, dtype), types)
    return _paired(types, shapes)


def _paired(types: Any, shapes: Any) -> Any:
    """Return specs; a shape may be a tuple, as the structure is."""
    if not is_structure(types):
        return TensorSpec(TensorShape(shapes), types)
    if isinstance(types, dict):
        return {key: _paired(types[key], shapes[key]) for key in types}
    return type(types)(_paired(a, b) for a, b in zip(types, shapes, strict=True))


def _refuse_in_function() -> None:
    if _trace.is_staging():
        raise InvalidArgumentError(
            None,
            None,
            "A dataset cannot be iterated over inside a tf.function: its elements are made in "
            "Python, and would become constants of the program. Put the loop outside:\n"
            "    for batch in dataset:\n"
            "        step(batch)  # the tf.function",
        )
