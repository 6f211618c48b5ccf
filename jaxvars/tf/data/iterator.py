"""Iterators over datasets: eagerly, inside of a `tf.function`, and in a checkpoint.

Rules this file keeps:
- an error does not end an iterator: the next element comes after it;
- threads may share one: each element goes to one of them;
- the state is written when a checkpoint requests it (`data/generators/cursor.py`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np

from jaxvars.autograph.operators.sequences import SEQUENTIALS, Sequential
from jaxvars.compiler.signature import STAGED_ITERATORS
from jaxvars.tf.data.generators.cursor import Cursor, Recorded, State, from_string, to_string
from jaxvars.tf.data.generators.optional import Optional
from jaxvars.tf.data.generators.staged import Feed, at_once
from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.random.iteration import ITERATION, Draws
from jaxvars.tf.tensors.convert import string_array, to_array
from jaxvars.tf.tensors.elements import Element, PlainSpec, to_numpy, to_tensors
from jaxvars.tf.tensors.static import end_of_sequence, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.train.graph import Node
from jaxvars.tracing import context


@final
class DatasetIterator(Recorded, Iterator[Any]):
    """Goes through a dataset once; made by `iter(dataset)`.

    `tf.train.Checkpoint(iterator=iterator)` saves where it is, what its shuffles and caches hold,
    and where the random streams of its functions are: what is restored, in this program or in
    another one that has made the same dataset, goes on with the same elements.

    Differs from TensorFlow: an iterator over `from_generator`, and over functions that draw random
    numbers, can be saved, too. The generator is gone through again up to the place, and the last
    element that it had yielded must come again. A variable that a function assigns, as that of a
    `tf.random.Generator`, must be in the same Checkpoint. What Python and NumPy draw is not seen.
    """

    _entry = "ITERATOR_STATE", "iterator"

    def __init__(
        self, cursor: Cursor, spec: Callable[[], Any], forms: Callable[[], list[Any]], draws: Draws
    ) -> None:
        self._cursor, self._spec, self._forms = cursor, spec, forms
        self._feed: Feed | None = None
        self._draws = draws  # of the functions of the dataset
        self._lock = threading.RLock()

    @property
    def element_spec(self) -> Any:
        """The specs of an element's tensors, in its structure."""
        return self._spec()

    def __iter__(self) -> DatasetIterator:
        return self

    def __next__(self) -> Any:
        if context.is_staging():
            return self._make_feed().next()
        return to_tensors(self.next_element())

    def next(self) -> Any:
        """Return the next element, as `next` of Python does."""
        return self.__next__()

    def get_next(self) -> Any:
        """Return the next element.

        Raises:
            OutOfRangeError: when there is none.
        """
        try:
            return next(self)
        except StopIteration:
            raise end_of_sequence() from None

    def get_next_as_optional(self) -> Optional:
        """Return the next element as an Optional, which has no value at the end."""
        if context.is_staging():
            has, value = self._make_feed().next_or_none()
            return Optional(self._spec(), [value], has)
        for element in self:
            return Optional(self._spec(), [element])
        return Optional(self._spec(), [])

    # ------------------------------------------------------------ the state
    def next_element(self) -> Element:
        """Return the next element as the dataset has it; threads that share it take turns."""
        with self._lock:
            self._read()
            try:
                with ITERATION.set(self._draws):
                    return next(iter(self._cursor))
            except StopIteration:
                raise
            except Exception:
                self._cursor.resume()
                raise

    def refusal(self, held: set[int]) -> Exception | None:
        """Return why the place cannot be saved with the cells of some keys."""
        left = (cell for key, cell in self._draws.assigned.items() if key not in held)
        needed = (FailedPreconditionError(message=_NEEDED.format(repr(x.name))) for x in left)
        return super().refusal(held) or next(needed, None)

    def _save(self) -> State:
        return {**self._cursor.save(), "draws": self._draws.save()}

    def _load(self, state: State) -> None:
        self._cursor.load(state)
        self._draws.load(state.get("draws"))

    # ------------------------------------------------------------ in a function
    def _make_feed(self) -> Feed:
        if self._feed is None:
            forms = at_once(self._forms)
            self._feed = Feed(lambda: _iterate(self), forms, "An iterator")
        return self._feed


_NEEDED = (
    "An iterator cannot be saved without the variable {}, which a function of its dataset assigns, "
    "as a Generator does when it draws: after a restore other elements would come. Put both into "
    "one Checkpoint: tf.train.Checkpoint(iterator=iter(dataset), generator=generator)."
)


def _iterate(iterator: DatasetIterator) -> Iterator[Element]:
    with contextlib.suppress(StopIteration):
        while True:
            yield iterator.next_element()


def staged(feed: Feed) -> Sequential:
    """Return what a staged loop goes through: it begins where the loop does."""
    feed.begin()
    return Sequential(None, lambda _: feed.item(), None, lambda _: feed.more())


SEQUENTIALS[DatasetIterator] = lambda x: staged(x._make_feed()) if context.is_staging() else None
STAGED_ITERATORS.add(DatasetIterator)


@final
class NumpyIterator(Node, Iterator[Any]):
    """Goes through a dataset once, and gives NumPy arrays; made by `as_numpy_iterator`."""

    __slots__ = ("_iterator",)

    def __init__(self, dataset: Any) -> None:
        self._iterator = iter(dataset)

    def __repr__(self) -> str:
        return f"NumpyIterator(iterator={self._iterator!r})"

    def children(self) -> Iterator[tuple[str, object]]:
        """Yield the iterator that holds the state."""
        yield "_iterator", self._iterator

    def __next__(self) -> Any:
        return to_numpy(self._iterator.next_element())

    def next(self) -> Any:
        """Return the next element, as `next` of Python does."""
        return self.__next__()

    def save(self) -> Tensor:
        """Return the place in the dataset, a string, for `restore`.

        Raises:
            FailedPreconditionError: when the dataset keeps what cannot be written, or its functions
                have assigned variables, as those of generators.
        """
        string = to_string(self._iterator._save())
        if refusal := self._iterator.refusal(set()):
            raise refusal
        return Tensor(string_array(np.asarray(string)))

    def restore(self, save: Any) -> None:
        """Go to a place that `save` has returned, of this iterator or of another one like it.

        Raises:
            InvalidArgumentError: when it is none.
        """
        try:
            given = from_string(bytes(np.asarray(to_array(save)).item()).decode())
            state = {**given, **{part: given[part] for part in ("values", "children")}}
        except (KeyError, TypeError, ValueError):
            raise refused(f"{save!r} is not what NumpyIterator.save() returned") from None
        self._iterator._load(state)


@final
class IteratorSpec(PlainSpec):
    """The spec of an iterator.

    Args:
        element_spec: of its elements.
    """

    def __init__(self, element_spec: Any) -> None:
        self.element_spec = element_spec

    def __repr__(self) -> str:
        return f"IteratorSpec({self.element_spec!r},)"
