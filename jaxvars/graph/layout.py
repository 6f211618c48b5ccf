"""In which layer a box of a drawing stands, and in which order: numbers in, numbers out.

The first three steps of Sugiyama's method: `layers` (longest path, then boxes pulled down towards
their readers), `route` (a long arrow gets a *bend* in each layer between, and all arrows that
leave one box share these) and `order` (barycenter sweeps that cut crossings). The fourth,
`place`, is `graph/place.py`.

Rules this file keeps:
- no randomness, and sets are never iterated: the same input gives the same layout, anywhere;
- a source has a lower position than its target, and is in a higher layer of the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

GAP = 18.0  # between neighbours in a layer
BEND_WIDTH = 4.0
_SWEEPS = 24


class Link(NamedTuple):
    """One step of an arrow, between items of two adjacent layers."""

    upper: int
    lower: int


@final
@dataclass(slots=True)
class Layout:
    """Where things are. Items are the boxes, in order, and after them the bends.

    Attributes:
        layer: of each item, from the top.
        source: the box whose value passes at each item (a box's is itself).
        width: of each item.
        boxes: how many items are boxes.
        links: between items of adjacent layers.
        rows: the items of each layer, from left to right.
        above: the links that end at each item.
        below: the links that leave it.
        part: of each item, the connected part it belongs to; parts stand side by side.
        x: the middle of each item.
    """

    layer: list[int]
    source: list[int]  # item -> the box whose value passes there
    width: list[float]
    boxes: int
    links: list[Link] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    above: list[list[Link]] = field(default_factory=list)
    below: list[list[Link]] = field(default_factory=list)
    part: list[int] = field(default_factory=list)
    x: list[float] = field(default_factory=list)

    def is_bend(self, item: int) -> bool:
        """Return whether an item is a bend."""
        return item >= self.boxes

    def near(self, item: int) -> list[int]:
        """Return the items that an item is linked to."""
        return [k.upper for k in self.above[item]] + [k.lower for k in self.below[item]]

    def distance(self, left: int, right: int) -> float:
        """Return how far apart the middles of two neighbours in a layer must be."""
        return (self.width[left] + self.width[right]) / 2 + GAP

    def trails(self) -> list[list[int]]:
        """Return for each box the items where its value passes: the box, then its bends."""
        trails: list[list[int]] = [[] for _ in range(self.boxes)]
        for item, box in enumerate(self.source):
            trails[box].append(item)
        return trails


def layers(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """Return each box's layer: right below its lowest source, or lower if that saves wire.

    >>> layers(4, [(0, 2), (1, 3), (2, 3)])
    [0, 1, 1, 2]
    """
    reads: list[list[int]] = [[] for _ in range(count)]
    readers: list[list[int]] = [[] for _ in range(count)]
    for source, target in arrows:
        reads[target].append(source)
        readers[source].append(target)
    layer: list[int] = []
    for box in range(count):
        layer.append(max((layer[i] + 1 for i in reads[box]), default=0))
    moving = True
    while moving:  # ends: boxes only go down, and never below their first reader
        moved = [_lowered(box, layer, reads, readers) for box in reversed(range(count))]
        moving = any(moved)
    return [n - min(layer, default=0) for n in layer]


def _lowered(
    box: int, layer: list[int], reads: Sequence[Sequence[int]], readers: Sequence[Sequence[int]]
) -> bool:
    """Move a box down to its first reader if its wire shrinks by more than those to it grow."""
    down = min((layer[i] for i in readers[box]), default=0) - 1 - layer[box]
    if down <= 0:
        return False
    cone = {box}  # and all that nothing else reads: it can follow at no cost
    for i in range(box - 1, -1, -1):
        if readers[i] and cone.issuperset(readers[i]):
            cone.add(i)
    ends: dict[int, int] = {}  # the other sources: where the lowest reader would be
    for i in cone:
        ends |= {k: max(ends.get(k, 0), layer[i] + down) for k in reads[i] if k not in cone}
    if sum(max(0, end - max(layer[i] for i in readers[k])) for k, end in ends.items()) >= down:
        return False
    for i in cone:
        layer[i] += down
    return True


def route(
    widths: Sequence[float], arrows: Sequence[tuple[int, int]], layer: Sequence[int]
) -> Layout:
    """Return the items: the boxes, and the bends of arrows that cross a layer.

    >>> route([20.0, 20.0, 20.0], [(0, 1), (1, 2), (0, 2)], [0, 1, 2]).rows
    [[0], [3, 1], [2]]
    """
    layer = list(layer)
    plan = Layout(layer, list(range(len(widths))), list(widths), len(widths))
    seen: dict[tuple[int, int], int] = {}  # (source, layer) -> the bend there
    links: dict[Link, None] = {}  # an ordered set
    for source, target in arrows:
        at = source
        for depth in range(layer[source] + 1, layer[target]):
            bend = seen.setdefault((source, depth), len(layer))
            if bend == len(layer):
                layer.append(depth)
                plan.source.append(source)
                plan.width.append(BEND_WIDTH)
            links[Link(at, bend)] = None
            at = bend
        links[Link(at, target)] = None
    plan.links = list(links)
    _index(plan, _parts(len(layer), plan.links))
    return plan


def _parts(count: int, links: Sequence[Link]) -> list[int]:
    """Return for each item the first item of the connected part that it belongs to."""
    part = list(range(count))

    def first(item: int) -> int:
        while part[item] != item:
            part[item] = item = part[part[item]]
        return item

    for upper, lower in links:
        a, b = sorted((first(upper), first(lower)))
        part[b] = a
    return [first(item) for item in range(count)]


def _index(plan: Layout, part: list[int]) -> None:
    count, plan.part = len(plan.layer), part
    plan.above, plan.below = [[] for _ in range(count)], [[] for _ in range(count)]
    for link in plan.links:
        plan.below[link.upper].append(link)
        plan.above[link.lower].append(link)
    plan.rows = [[] for _ in range(max(plan.layer, default=-1) + 1)]
    for item in sorted(range(count), key=lambda i: (part[i], plan.source[i], i)):
        plan.rows[plan.layer[item]].append(item)


def order(plan: Layout) -> None:
    """Sort each layer by the mean place of its neighbours, keeping the best order met."""
    best, fewest = [list(row) for row in plan.rows], _crossings(plan)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        place = _ranks(plan)
        for row in plan.rows if down else reversed(plan.rows):
            keys = {i: (plan.part[i], _barycenter(plan, i, place, down)) for i in row}
            if sweep % 4 > 1:  # a stable sort: ties now fall the other way
                row.reverse()
            row.sort(key=keys.__getitem__)
            place.update({item: (n + 0.5) / len(row) for n, item in enumerate(row)})
        if (now := _crossings(plan)) < fewest:
            best, fewest = [list(row) for row in plan.rows], now
        if fewest == 0:
            break
    plan.rows = best


def _ranks(plan: Layout) -> dict[int, float]:
    return {i: (n + 0.5) / len(row) for row in plan.rows for n, i in enumerate(row)}


def _barycenter(plan: Layout, item: int, place: dict[int, float], down: bool) -> float:
    near = [k.upper for k in plan.above[item]] if down else [k.lower for k in plan.below[item]]
    return sum(place[i] for i in near) / len(near) if near else place[item]


def _crossings(plan: Layout) -> int:
    """Count the pairs of links that cross."""
    rank = {item: n for row in plan.rows for n, item in enumerate(row)}
    total = 0
    for row in plan.rows:
        ends = [sorted(rank[link.lower] for link in plan.below[item]) for item in row]
        total += _inversions([end for group in ends for end in group])
    return total


def _inversions(values: Sequence[int]) -> int:
    tree, total = [0] * (max(values, default=0) + 2), 0
    for count, value in enumerate(values):
        i, smaller = value + 1, 0
        while i:  # a Fenwick tree: how many earlier values are at most this one
            smaller, i = smaller + tree[i], i & (i - 1)
        total += count - smaller
        i = value + 1
        while i < len(tree):
            tree[i] += 1
            i += i & -i
    return total
