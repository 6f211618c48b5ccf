"""What datasets are: a way of making elements, how many there are, and their spec.

Rules this file keeps:
- a dataset does not change, and begins again each time it is iterated over;
- elements are made on the host, one when it is requested: JAX runs the step before while the next
  batch is made, so that there are no threads.
"""

from __future__ import annotations

import functools
from abc import ABC
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, Self, TypeAlias, TypeVar

import numpy as np

from jaxvars.autograph.operators.sequences import SEQUENTIALS, Sequential
from jaxvars.core.frame import cells_in
from jaxvars.core.frames import LOCAL
from jaxvars.random.generator import Generator as CoreGenerator
from jaxvars.tensors.wrapping import is_boxing
from jaxvars.tf import nest
from jaxvars.tf.data.generators.calls import call_function, named_in
from jaxvars.tf.data.generators.counts import INFINITE
from jaxvars.tf.data.generators.cursor import Cursor, Memory, Shared, Step
from jaxvars.tf.data.generators.options import Options
from jaxvars.tf.data.generators.philox import PEEKING, Seeds
from jaxvars.tf.data.generators.staged import Feed, Source, at_once
from jaxvars.tf.data.iterator import DatasetIterator, NumpyIterator, staged
from jaxvars.tf.random.generator import Generator
from jaxvars.tf.random.iteration import ITERATION, Draws
from jaxvars.tf.random.streams import begin_draws, seeds_of
from jaxvars.tf.tensors.elements import (
    DatasetSpec,
    Element,
    is_structure,
    leaves,
    map_leaves,
    open_spec_of,
    to_tensors,
)
from jaxvars.tf.tensors.specs import NoneTensorSpec, TensorSpec
from jaxvars.tf.tensors.static import one_int, refused
from jaxvars.tf.tensors.tensor import Tensor, wrap
from jaxvars.tracing import context

T = TypeVar("T")
Elements: TypeAlias = Iterator[Element]
Change: TypeAlias = Callable[[Elements, Memory], Iterable[Element]]
Forms: TypeAlias = Callable[[], list[Any]]


_OF_DATASETS = {"_WindowDataset", "_TensorDataset", "_TensorSliceDataset", "_VariantDataset"}
"""The datasets whose elements may be datasets, and whose spec is known at once."""


class DatasetBase(ABC):  # noqa: B024 - its parts are classes for the sake of their files
    """A dataset without its steps; `kind` is TensorFlow's name of the class."""

    def __init__(
        self, kind: str, step: Step, count: int, spec: Callable[[], Any], options: Any = None,
        forms: Forms | None = None, parts: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        self._kind, self._run, self._count = kind, step, count
        self._spec = functools.cache(lambda: _apart(spec))
        self._forms = forms or (lambda: [self._spec()])  # all specs, with all sizes
        self._parts = parts  # tensors of a program, functions, and what iterators share
        self._options = options or Options()
        self._kept: Any = None  # the elements and their spec, of a window

    def _step(
        self, kind: str, change: Change, count: int | None = None,
        spec: Callable[[], Any] | None = None, forms: Forms | None = None,
        parts: tuple[Any, ...] = (),
    ) -> Self:  # fmt: skip
        """Return this dataset with a step after it; with as many elements, of the same spec."""

        def run(memory: Memory) -> Any:
            return iter(change(memory.iterate("source", self._cursor), memory))

        return self._like(kind, run, count, spec, forms, self._parts + parts)

    def _like(
        self, kind: str, step: Step, count: int | None = None,
        spec: Callable[[], Any] | None = None, forms: Forms | None = None,
        parts: tuple[Any, ...] | None = None,
    ) -> Self:  # fmt: skip
        """Return a dataset that is like this one but for its elements."""
        number = self._count if count is None else count
        return type(self)(
            kind, step, number, spec or self._spec, self._options,
            forms if spec else self._forms, self._parts if parts is None else parts,
        )  # fmt: skip

    def _cursor(self) -> Cursor:
        """Return the beginning, of a step of another dataset."""
        return Cursor(self._run, self._kind)

    def _begin(self) -> Cursor:
        """Return the beginning, of an iterator or a dataset that a function returned."""
        return Cursor(self._run, self._kind, self._parts_of(Shared))

    def _parts_of(self, kind: type[T]) -> list[T]:
        return [part for part in self._all_parts() if isinstance(part, kind)]

    def _all_parts(self) -> list[Any]:
        """Return the parts, each one once, with those of datasets that functions name."""
        found, waiting = dict[int, Any](), list(self._parts)
        for part in waiting:  # grows meanwhile
            if id(part) not in found:
                found[id(part)] = part
                named = [x for x in named_in(part) if isinstance(x, DatasetBase)]
                waiting += [inner for dataset in named for inner in dataset._parts]
        return list(found.values())

    def _draws(self) -> Draws:
        """Return the streams of an iterator, which begin."""
        parts = self._all_parts()
        kinds = Generator, CoreGenerator
        makers = [x for part in parts for x in named_in(part) if isinstance(x, kinds)]
        return begin_draws(parts, [cell for x in makers for _, cell in cells_in(x)])

    def _elements(self) -> Iterator[Element]:
        items, draws = iter(self._cursor()), self._draws()
        while True:
            try:
                with ITERATION.set(draws):
                    element = next(items)
            except StopIteration:
                return
            yield element

    # ------------------------------------------------------------ what it is
    @property
    def element_spec(self) -> Any:
        """The specs of an element's tensors, in its structure.

        After `map` it is found by tracing the function. If that fails, it is the first element's,
        with sizes of None.
        """
        return _show_none(self._spec() if not context.is_staging() else at_once(self._spec))

    def cardinality(self) -> Tensor:
        """Return how many elements there are: -1 if it never ends, -2 if that is not known."""
        return wrap(to_tensors(np.asarray(self._count, np.int64)))

    def options(self) -> Options:
        """Return the options, which change nothing here."""
        return self._options

    def with_options(self, options: Any, name: str | None = None) -> Self:
        """Return the same elements, with other options: they are kept, and change nothing here."""
        made = self._step("_OptionsDataset", lambda source, _: source)
        made._options = self._options.merge(options)
        return made

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

    @property
    def sparse_batch(self) -> NoReturn:
        """Raise AttributeError: say what to write instead."""
        raise AttributeError(
            "There is no Dataset.sparse_batch, since XLA compiles for fixed shapes. Use "
            "Dataset.padded_batch, and a mask."
        )

    # ------------------------------------------------------------ iteration
    def __iter__(self) -> DatasetIterator:
        if context.is_staging():
            raise refused(
                "A dataset cannot be iterated over here, inside a tf.function: its elements would "
                "become constants of the program. Write a `for` statement over it in the function, "
                "which AutoGraph converts, or put the loop outside:\n"
                "    for batch in dataset:\n"
                "        step(batch)  # the tf.function"
            )
        return DatasetIterator(self._begin(), self._spec, self._forms, self._draws())

    def as_numpy_iterator(self) -> NumpyIterator:
        """Return an iterator over the elements as NumPy arrays and scalars.

        Raises:
            TypeError: when elements are datasets.
        """
        for leaf in leaves(self._spec()) if self._kind in _OF_DATASETS else ():
            if isinstance(leaf, DatasetSpec):
                raise TypeError(
                    "`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that "
                    f"produce values of type {type(self)}"
                )
        return NumpyIterator(self)


def staged_loop(dataset: DatasetBase) -> Sequential | None:
    """Return what a staged loop over a dataset goes through."""
    if not context.is_staging():
        return None
    feed = Feed(dataset._elements, at_once(dataset._forms), "A dataset", dataset._parts_of(Source))
    is_taped = is_boxing() and LOCAL.frame.observers and dataset._count >= 0
    made = feed.all(dataset._count) if is_taped else None
    return staged(feed) if made is None else made


def register_loops(kind: type[DatasetBase]) -> None:
    """Have loops in converted code go through datasets of a type."""
    SEQUENTIALS[kind] = staged_loop


# ---------------------------------------------------------------- small
def dataset_of(func: Callable[..., Any], *elements: Element) -> DatasetBase:
    """Return the dataset that a function returns for elements."""
    return check_dataset(call_function(func, *elements))


def check_dataset(found: Any) -> Any:
    """Return a dataset; raise TypeError for what is none."""
    if not isinstance(found, DatasetBase):
        raise TypeError(
            "The `map_func` argument must return a `Dataset` object, but returned an object of "
            f"type {type(found).__name__}."
        )
    return found


def check_positive(value: Any, what: str) -> int:
    """Return a number; raise InvalidArgumentError unless it is positive."""
    found = one_int(value, what)
    if found < 1:
        raise refused(f"{what} must be greater than zero, but got {found}.")
    return found


def make_seeds(seed: Any, changing: bool) -> Seeds:
    """Return the seeds of a dataset whose own seed may be None."""
    return Seeds(seeds_of(None if seed is None else one_int(seed, "seed")), changing)


def _apart(spec: Callable[[], Any]) -> Any:
    """Return a spec; what functions draw until it is found is not drawn for an iterator."""
    with ITERATION.set(begin_draws((), ())):
        return spec()


def _show_none(spec: Any) -> Any:
    if not is_structure(spec):
        return NoneTensorSpec() if spec is None else spec
    return nest._like(spec, list(map(_show_none, nest._parts(spec))))


def first_spec(made: DatasetBase) -> Any:
    """Return the spec of the first element, with sizes that may be others in the next."""
    return map_leaves(open_spec_of, first_element(made))


def element_like(dataset: Any) -> Element:
    """Return the first element, or one of zeros if there is none, to find a spec with."""
    try:
        return first_element(dataset)
    except _EmptyError:
        return map_leaves(lambda spec: _make_blank(dataset, spec), dataset._spec())


def _make_blank(dataset: Any, spec: Any) -> Any:
    if isinstance(spec, DatasetSpec):
        return dataset._from_elements([], spec.element_spec)
    if not isinstance(spec, TensorSpec) or spec.shape.rank is None:
        raise _EmptyError(_EMPTY)
    fill = b"" if spec.dtype.is_string else 0
    sizes = [n or 0 for n in spec.shape.as_list()]
    return np.full(sizes, fill, object if spec.dtype.is_string else spec.dtype.dtype)


class _EmptyError(ValueError):
    pass


_EMPTY = "An empty dataset has no element to find the element_spec with."


def first_element(dataset: DatasetBase) -> Element:
    """Return the first element, to find a spec with; raise ValueError if there is none."""
    with PEEKING.set(True):
        for element in dataset._elements():
            return element
    raise _EmptyError(_EMPTY)
