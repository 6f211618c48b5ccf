"""The steps that take elements from several datasets, or sort them into groups, as generators.

Rules this file keeps:
- what a step needs in order to go on is in its memory before it yields; see
  `data/generators/cursor.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxvars.tf.data.generators.cursor import Cursor, Memory
from jaxvars.tf.data.generators.philox import Philox, Seeds
from jaxvars.tf.tensors.elements import Element, leaves, mapped
from jaxvars.tf.tensors.static import refused

Elements: TypeAlias = Iterator[Element]
Make: TypeAlias = Callable[[], Cursor]


def interleaved(
    source: Elements, memory: Memory, make: Callable[[Element], Cursor], cycle: int, block: int
) -> Elements:
    """Yield blocks of elements from several datasets in turn."""
    kept = memory.values
    given: list[Any] = kept.setdefault("given", [None] * cycle)  # what each is made of, in a list
    places: list[Any] = [
        x and memory.opened(str(i), functools.partial(make, x[0])) for i, x in enumerate(given)
    ]
    i, count = kept.get("i", 0), kept.get("count", 0)
    while True:
        if places[i] is None:
            for element in source:
                given[i] = [element]
                places[i] = memory.opened(str(i), functools.partial(make, element))
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


def concatenated(memory: Memory, first: Make, second: Make) -> Elements:
    """Yield the elements of one dataset, and then those of another."""
    if not memory.values.get("second"):
        yield from memory.opened("first", first)
        memory.closed("first")
        memory.values["second"] = True
    yield from memory.opened("second", second)


def zipped(memory: Memory, structure: Any) -> Elements:
    """Yield structures of the elements of a structure of datasets."""
    parts = [memory.opened(str(i), part._cursor) for i, part in enumerate(leaves(structure))]
    for row in zip(*parts, strict=False):
        given = iter(row)
        yield mapped(lambda _, given=given: next(given), structure)


def directed(
    memory: Memory, makes: Sequence[Make], choices: Iterator[int], stops: bool
) -> Elements:
    """Yield elements of the datasets that are chosen, one by one.

    Args:
        memory: of the step.
        makes: open the datasets.
        choices: numbers of datasets.
        stops: end when the first dataset does, not the last one.
    """
    over = memory.values.setdefault("over", [False] * len(makes))
    places = [memory.opened(str(i), make) for i, make in enumerate(makes)]
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


def drawn(memory: Memory, seeds: Seeds, weights: Callable[[], Sequence[float]]) -> Iterator[int]:
    """Yield random numbers of datasets.

    Args:
        memory: of the step.
        seeds: of the stream.
        weights: returns how often each is chosen; called for each number.
    """
    kept = memory.values
    if "seeds" not in kept:
        kept.update(seeds=list(seeds.next()), drawn=0)
    random = Philox(tuple(kept["seeds"]), kept["drawn"])
    while True:
        edges = np.cumsum(np.asarray(weights(), np.float64))
        over = kept.get("over") or [False] * len(edges)
        chosen = int(np.searchsorted(edges, random.unit() * edges[-1], side="right"))
        kept["drawn"] = random.drawn
        if not over[chosen]:
            yield chosen
        elif not any(w > 0 and not o for w, o in zip(np.diff(edges, prepend=0), over, strict=True)):
            return


def rejecting(
    source: Elements,
    memory: Memory,
    seeds: Seeds,
    class_of: Callable[[Element], int],
    target: np.ndarray,
    initial: np.ndarray | None,
) -> Elements:
    """Yield pairs of a class and an element, so that the classes come as often as they should.

    Args:
        source: the elements.
        memory: of the step.
        seeds: of the random numbers.
        class_of: tells the class of an element.
        target: how often each class should come.
        initial: how often each comes in `source`; found out meanwhile if None.
    """
    kept = memory.values
    if "seeds" not in kept:
        kept.update(seeds=list(seeds.next()), drawn=0, seen=[10] * len(target))
    random = Philox(tuple(kept["seeds"]), kept["drawn"])
    accepts: Any = kept.get("accepts")
    for element in source:
        number = class_of(element)
        kept["seen"][number] += 1
        have = np.asarray(kept["seen"]) / sum(kept["seen"]) if initial is None else initial
        chances, unchanged = _chances(have, target)
        if accepts is None:  # what comes next is as it comes, or chosen
            accepts = random.unit() >= unchanged
        takes = not accepts or random.unit() < chances[number]
        kept.update(drawn=random.drawn, accepts=None if takes else accepts)
        if takes:
            accepts = None
            yield np.asarray(number, np.int32), element


def _chances(initial: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """Return with which chance each class is taken, and how many elements need no choice."""
    ratio = np.divide(target, initial, out=np.zeros_like(target), where=initial > 0)
    least, most = ratio.min(), ratio.max()
    if most == least:
        return np.ones_like(ratio), 1.0
    return (ratio - least) / (most - least), float(least)


def group_windows(
    source: Elements,
    memory: Memory,
    key_of: Callable[[Element], int],
    size_of: Callable[[int], int],
    make: Callable[[int, list[Element]], Cursor],
) -> Elements:
    """Yield what is made of groups of elements of one key.

    Args:
        source: the elements.
        memory: of the step.
        key_of: tells the key of an element.
        size_of: tells how many elements make a group of a key.
        make: returns the dataset that a group becomes.
    """
    kept = memory.values
    groups, sizes = kept.setdefault("groups", {}), kept.setdefault("sizes", {})
    while True:
        if "window" in kept:
            yield from memory.opened("window", functools.partial(make, *kept["window"]))
            memory.closed("window")
            del kept["window"]
        for element in source:
            key = key_of(element)
            groups.setdefault(key, []).append(element)
            if key not in sizes:
                sizes[key] = size_of(key)
            if len(groups[key]) == sizes[key]:
                break
        else:
            if not groups:
                return
            key = min(groups)
        sizes.pop(key)
        kept["window"] = [key, groups.pop(key)]
