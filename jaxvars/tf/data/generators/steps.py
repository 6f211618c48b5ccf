"""The steps of a dataset that give its elements in another order or number, as generators.

Rules this file keeps:
- what a step needs in order to go on is in its memory before it yields; see
  `data/generators/cursor.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.data.generators.cursor import Cursor, Memory
from jaxvars.tf.data.generators.philox import Philox, Seeds
from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.tensors.elements import Element, host, sliced

Elements: TypeAlias = Iterator[Element]

INFINITE, UNKNOWN = -1, -2


# ---------------------------------------------------------------- order
def shuffled(source: Elements, memory: Memory, size: int, seeds: Seeds) -> Elements:
    """Yield elements in random order: each from a buffer of the next `size` ones."""
    kept = memory.values
    if "buffer" not in kept:
        kept.update(seeds=list(seeds.next()), begun=seeds.drawn, buffer=[], start=0, drawn=0)
    seeds.rewind(kept["begun"])
    random = Philox(tuple(kept["seeds"]), kept["drawn"])
    buffer, start = kept["buffer"], kept["start"]
    if "left" not in kept:
        for element in itertools.islice(source, size - len(buffer)):
            buffer.append(element)
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


def repeated(memory: Memory, again: Callable[[], Cursor], count: int) -> Elements:
    """Yield all elements a number of times; for ever if it is negative."""
    kept = memory.values
    turn = kept.get("turn", 0)
    while count < 0 or turn < count:
        for element in memory.opened("source", again):
            kept["some"] = True
            yield element
        if not kept.get("some"):
            return
        memory.closed("source")
        kept["turn"] = turn = turn + 1
        kept["some"] = False


def cached(memory: Memory, again: Callable[[], Cursor], whole: list[list[Element]]) -> Elements:
    """Yield elements; once there was the last one, from memory."""
    kept = memory.values
    if kept.get("full") and not whole:
        whole.append(kept["seen"])
    if whole:
        kept.update(seen=whole[0], full=True)
        for i in range(kept.get("i", 0), len(whole[0])):
            kept["i"] = i + 1
            yield whole[0][i]
        return
    seen = kept.setdefault("seen", [])
    for element in memory.opened("source", again):
        seen.append(element)
        yield element
    kept["i"] = len(seen)
    if not whole:
        whole.append(seen)


# ---------------------------------------------------------------- number
def taken(source: Elements, memory: Memory, size: int) -> Elements:
    """Yield the first elements."""
    for i in range(memory.values.get("i", 0), size):
        for element in source:
            memory.values["i"] = i + 1
            yield element
            break
        else:
            return


def skipped(source: Elements, memory: Memory, size: int) -> Elements:
    """Yield all elements but the first ones."""
    if not memory.values.get("skipped"):
        for _ in itertools.islice(source, size):
            pass
        memory.values["skipped"] = True
    yield from source


def sharded(source: Elements, memory: Memory, step: int, first: int) -> Elements:
    """Yield every `step`th element."""
    for i, element in enumerate(source, memory.values.get("i", 0)):
        if i % step == first:
            memory.values["i"] = i + 1
            yield element


def counted(source: Elements, memory: Memory, start: int) -> Elements:
    """Yield pairs of a number and an element."""
    for i, element in enumerate(source, memory.values.get("i", start)):
        memory.values["i"] = i + 1
        yield np.asarray(i, np.int64), element


def distinct(source: Elements, memory: Memory) -> Elements:
    """Yield each element that was not there before."""
    elements = memory.values.setdefault("seen", [])
    seen = set(map(_key, elements))
    for element in source:
        key = _key(element)
        if key not in seen:
            seen.add(key)
            elements.append(element)
            yield element


def _key(element: Element) -> Any:
    array = host(element)
    return array.tobytes() if array.dtype != object else tuple(array.ravel())


def taken_while(source: Elements, memory: Memory, test: Callable[[Element], bool]) -> Elements:
    """Yield the elements before the first that fails a test."""
    if memory.values.get("over"):
        return
    for element in source:
        if not test(element):
            break
        yield element
    memory.values["over"] = True


def ignoring(
    memory: Memory, make: Callable[[], Cursor], told: Callable[[Exception], None]
) -> Elements:
    """Yield the elements that can be made."""
    cursor = memory.cursor("source", make)
    while True:
        try:
            element = next(iter(cursor))
        except StopIteration:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is: that is the step
            told(error)
            cursor.resume()
            continue
        yield element


# ---------------------------------------------------------------- groups
def grouped(source: Iterable[Element], size: int, drop: bool) -> Iterator[list[Element]]:
    """Yield lists of a number of elements; the last one may be shorter."""
    rest = iter(source)
    while group := list(itertools.islice(rest, size)):
        if len(group) == size or not drop:
            yield group


def unbatched(source: Elements, memory: Memory) -> Elements:
    """Yield the slices of each element."""
    kept = memory.values
    first = [kept["element"]] if "element" in kept else []
    for element in itertools.chain(first, source):
        start = kept["i"] if first else 0
        first = []
        size, slice_of = sliced(element)
        kept["element"] = element
        for i in range(start, size):
            kept["i"] = i + 1
            yield slice_of(i)
        kept["i"] = size


def windows(
    source: Elements, memory: Memory, size: int, shift: int, stride: int, drop: bool
) -> Iterator[list[Element]]:
    """Yield lists of elements that begin at every `shift`th and take every `stride`th."""
    kept, span = memory.values, (size - 1) * stride + 1
    buffer: list[Element] = kept.setdefault("buffer", [])
    while True:
        for _ in itertools.islice(source, kept.pop("gap", 0)):
            pass
        buffer.extend(itertools.islice(source, max(span - len(buffer), 0)))
        if not buffer or (drop and len(buffer) < span):
            return
        found = buffer[:span:stride]
        kept["gap"] = max(shift - len(buffer), 0)
        del buffer[:shift]
        yield found


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


def asserted(source: Elements, memory: Memory, expected: int) -> Elements:
    """Yield elements; raise FailedPreconditionError if they are not as many as they should be."""
    count = memory.values.get("i", 0)
    for element in source:
        count += 1
        if 0 <= expected < count:
            raise _miscounted(expected, f"at least {count}")
        memory.values["i"] = count
        yield element
    if expected == INFINITE or 0 <= expected != count:
        raise _miscounted(expected, f"only {count}")


def _miscounted(expected: int, found: str) -> FailedPreconditionError:
    wanted = "an infinite number of" if expected == INFINITE else str(expected)
    return FailedPreconditionError(
        None, None, f"Input dataset was expected to contain {wanted} elements but contained "
        f"{found} elements. [Op:IteratorGetNext] name: ",
    )  # fmt: skip
