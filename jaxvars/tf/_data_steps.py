"""The steps of a dataset, as generators over elements."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf._data_elements import Element, host, leaves, mapped, sliced, typed
from jaxvars.tf._static import refused

Elements: TypeAlias = Iterator[Element]

INFINITE, UNKNOWN = -1, -2


# ---------------------------------------------------------------- order
def shuffled(source: Iterable[Element], size: int, random: np.random.Generator) -> Elements:
    """Yield elements in random order: each from a buffer of the next `size` ones."""
    rest = iter(source)
    buffer = list(itertools.islice(rest, size))
    for element in rest:
        i = int(random.integers(len(buffer)))
        chosen, buffer[i] = buffer[i], element
        yield chosen
    random.shuffle(buffer)  # pyright: ignore[reportArgumentType] - any list will do
    while buffer:
        yield buffer.pop()


def repeated(source: Iterable[Element], count: int) -> Elements:
    """Yield all elements a number of times; for ever if it is negative."""
    for _ in itertools.count() if count < 0 else range(count):
        is_empty = True
        for element in source:
            is_empty = False
            yield element
        if is_empty:
            return


def cached(source: Iterable[Element], kept: list[list[Element]]) -> Elements:
    """Yield elements; once there was the last one, from memory."""
    if kept:
        yield from kept[0]
        return
    seen: list[Element] = []
    for element in source:
        seen.append(element)
        yield element
    if not kept:
        kept.append(seen)


# ---------------------------------------------------------------- groups
def grouped(source: Iterable[Element], size: int, drop: bool) -> Iterator[list[Element]]:
    """Yield lists of a number of elements; the last one may be shorter."""
    rest = iter(source)
    while group := list(itertools.islice(rest, size)):
        if len(group) == size or not drop:
            yield group


def unbatched(source: Iterable[Element]) -> Elements:
    """Yield the slices of each element."""
    for element in source:
        size, slice_of = sliced(element)
        yield from map(slice_of, range(size))


def windows(
    source: Iterable[Element], size: int, shift: int, stride: int, drop: bool
) -> Iterator[list[Element]]:
    """Yield lists of elements that begin at every `shift`th and take every `stride`th."""
    rest, span = iter(source), (size - 1) * stride + 1
    buffer: deque[Element] = deque()
    while True:
        buffer.extend(itertools.islice(rest, max(span - len(buffer), 0)))
        if not buffer or (drop and len(buffer) < span):
            return
        yield list(itertools.islice(buffer, 0, span, stride))
        for _ in range(min(shift, len(buffer))):
            buffer.popleft()
        for _ in itertools.islice(rest, max(shift - span, 0) if not buffer else 0):
            pass


# ---------------------------------------------------------------- several datasets
def interleaved(
    source: Iterable[Element],
    make: Callable[[Element], Iterable[Element]],
    cycle: int,
    block: int,
) -> Elements:
    """Yield blocks of elements from several datasets in turn."""
    rest, slots = iter(source), [None] * cycle
    open_ones: list[Iterator[Element] | None] = list(slots)
    for i in itertools.cycle(range(cycle)):
        if open_ones[i] is None:
            open_ones[i] = next((iter(make(element)) for element in rest), None)
        found = open_ones[i]
        if found is None:
            if not any(open_ones):
                return
            continue
        for _ in range(block):
            try:
                yield next(found)
            except StopIteration:
                open_ones[i] = None
                break


def zipped(structure: Any) -> Elements:
    """Yield structures of the elements of a structure of datasets."""
    parts = [iter(part._elements()) for part in leaves(structure)]
    for row in zip(*parts, strict=False):
        given = iter(row)
        yield mapped(lambda _, given=given: next(given), structure)


def distinct(source: Iterable[Element]) -> Elements:
    """Yield each element that was not there before."""
    seen: set[Any] = set()
    for element in source:
        array = host(element)
        key = array.tobytes() if array.dtype != object else tuple(array.ravel())
        if key not in seen:
            seen.add(key)
            yield element


# ---------------------------------------------------------------- sources
def generated(values: Iterable[Any], spec: Any) -> Elements:
    """Yield what a Python generator does, as elements of a spec.

    Raises:
        InvalidArgumentError: when a value has another structure, shape or type.
    """
    for value in values:
        yield _fitted(value, spec)


def _fitted(value: Any, spec: Any) -> Element:
    try:
        return mapped(_fitted_leaf, spec, value)
    except ValueError as error:
        if "structure" not in str(error):
            raise
        raise refused(
            "TypeError: `generator` yielded an element that did not match the expected structure. "
            f"The expected structure was {spec}, but the yielded element was {value}."
        ) from None


def _fitted_leaf(spec: Any, value: Any) -> np.ndarray:
    try:
        made = typed(value, spec.dtype)
    except (TypeError, ValueError):
        raise refused(
            "TypeError: `generator` yielded an element that could not be converted to the expected "
            f"type. The expected type was {spec.dtype.name}, but the yielded element was {value}."
        ) from None
    if not spec.shape.is_compatible_with(made.shape):
        raise refused(
            f"TypeError: `generator` yielded an element of shape {made.shape} where an element of "
            f"shape {spec.shape} was expected."
        )
    return made


# ---------------------------------------------------------------- how many
def product(count: int, times: int) -> int:
    """Return the number of elements after repeating: INFINITE if `times` is negative."""
    if times == 0 or count == 0:
        return 0
    return INFINITE if times < 0 else count if count < 0 else count * times


def total(first: int, second: int) -> int:
    """Return the number of elements of two datasets, one after the other."""
    if INFINITE in (first, second):
        return INFINITE
    return UNKNOWN if UNKNOWN in (first, second) else first + second


def fewest(counts: Iterable[int]) -> int:
    """Return the number of elements of datasets side by side."""
    given = list(counts)
    if UNKNOWN in given:
        return UNKNOWN
    return min((n for n in given if n != INFINITE), default=INFINITE)


def divided(count: int, size: int, drop: bool) -> int:
    """Return the number of groups."""
    if count < 0:
        return count
    return count // size if drop else -(-count // size)
