"""Where the boxes of a layered drawing go: numbers in, numbers out.

The layout is Sugiyama's, in four steps, each a function here: `layers` (longest path, then boxes
pulled down towards their readers), `_route` (a long arrow gets a *bend* in each layer between, and
all arrows that leave one box share these), `_order` (barycenter sweeps that cut crossings) and
`_place` (x after Brandes and Köpf, which keeps long arrows straight, then boxes pulled between
their neighbours).

Rules this file keeps:
- no randomness and no set iteration: the same input gives the same layout, on any machine;
- boxes of one layer never overlap, and no arrow passes through a box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import NamedTuple, final

GAP = 18.0  # between neighbours in a layer
BEND_WIDTH = 4.0
_SWEEPS, _RELAXATIONS = 24, 40


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
        """Tell whether an item is a bend."""
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


def lay_out(widths: Sequence[float], arrows: Sequence[tuple[int, int]]) -> Layout:
    """Return where boxes go that are joined by arrows.

    Args:
        widths: of the boxes.
        arrows: pairs (source, target) of positions in `widths`, with source < target.

    Returns:
        The layout; its left edge is at x = 0.

    Example:
        >>> plan = lay_out([20.0, 20.0, 20.0], [(0, 2), (1, 2)])
        >>> plan.layer, plan.x
        ([0, 0, 1], [10.0, 48.0, 29.0])
    """
    plan = _route(widths, arrows)
    _order(plan)
    _place(plan)
    return plan


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
    while any([_lowered(box, layer, reads, readers) for box in reversed(range(count))]):
        pass
    return [n - min(layer, default=0) for n in layer]


def _lowered(
    box: int, layer: list[int], reads: Sequence[Sequence[int]], readers: Sequence[Sequence[int]]
) -> bool:
    """Move a box down to its first reader if its wire shrinks by more than those to it grow."""
    down = min((layer[i] for i in readers[box]), default=0) - 1 - layer[box]
    if down <= 0:
        return False
    cone = {box}  # and all that nobody else reads: it can follow at no cost
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


def _route(widths: Sequence[float], arrows: Sequence[tuple[int, int]]) -> Layout:
    """Return the items: the boxes, and the bends of arrows that cross a layer."""
    layer = layers(len(widths), arrows)
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


def _order(plan: Layout) -> None:
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


# ---------------------------------------------------------------- across
def _place(plan: Layout) -> None:
    """Set each item's x: the mean of the middle two of four extreme alignments."""
    apart, tries = _conflicts(plan), list[list[float]]()
    for rows, near in ((plan.rows, plan.above), (plan.rows[::-1], plan.below)):
        tries.append(_pack(plan, rows, _blocks(plan, rows, near, apart)))
        mirrored = [row[::-1] for row in rows]
        packed = _pack(plan, mirrored, _blocks(plan, mirrored, near, apart))
        tries.append([max(packed, default=0.0) - x for x in packed])
    plan.x = [sum(sorted(places)[1:3]) / 2 for places in zip(*_level(tries), strict=True)]
    wires = _straight(plan)
    for sweep in range(_RELAXATIONS):
        for row in plan.rows if sweep % 2 == 0 else plan.rows[::-1]:
            _settle(plan, row)
        for wire in wires:
            _slide(plan, wire)
    _close(plan)
    left = min((x - w / 2 for x, w in zip(plan.x, plan.width, strict=True)), default=0.0)
    plan.x = [x - left for x in plan.x]


def _conflicts(plan: Layout) -> set[tuple[int, int]]:
    """Return the links that may not be vertical, so that long wires can be."""
    apart: set[tuple[int, int]] = set()
    for link in plan.links:  # a branch of a wire that goes on
        inner = [k.lower for k in plan.below[link.upper] if plan.is_bend(k.lower)]
        if plan.is_bend(link.upper) and inner and link.lower not in inner:
            apart.add((link.upper, link.lower))
    for upper, lower in pairwise(plan.rows):
        apart |= _crossed(plan, {item: n for n, item in enumerate(upper)}, lower)
    return apart


def _crossed(plan: Layout, rank: dict[int, int], lower: Sequence[int]) -> set[tuple[int, int]]:
    """Return the links of one gap that cross a link between two bends."""
    found: set[tuple[int, int]] = set()
    waiting: list[int] = []
    left = 0
    for n, item in enumerate(lower):
        waiting.append(item)
        ends = [k.upper for k in plan.above[item] if plan.is_bend(item) and plan.is_bend(k.upper)]
        if not ends and n < len(lower) - 1:
            continue
        right = rank[ends[0]] if ends else len(rank) - 1
        links = [link for i in waiting for link in plan.above[i]]
        found |= {(k.upper, k.lower) for k in links if not left <= rank[k.upper] <= right}
        left, waiting = right, []
    return found


def _blocks(
    plan: Layout,
    rows: Sequence[Sequence[int]],
    near: Sequence[Sequence[Link]],
    apart: set[tuple[int, int]],
) -> list[int]:
    """Return the head of each item's block: items that shall have the same x."""
    head = list(range(len(plan.layer)))
    for before, row in pairwise(rows):
        rank, reached = {item: n for n, item in enumerate(before)}, -1
        for item in row:
            for link in _middle(plan, near[item], rank):
                other = link.upper + link.lower - item
                free = head[item] == item and (link.upper, link.lower) not in apart
                if free and rank[other] > reached:
                    head[item], reached = head[other], rank[other]
    return head


def _middle(plan: Layout, links: Sequence[Link], rank: dict[int, int]) -> list[Link]:
    """Return the one or two links in the middle; of a wire that goes on, the link that does."""
    inner = [k for k in links if plan.is_bend(k.upper) and plan.is_bend(k.lower)]
    ends = sorted(inner or links, key=lambda k: rank[k.upper if k.upper in rank else k.lower])
    return ends[(len(ends) - 1) // 2 : len(ends) // 2 + 1]


def _pack(plan: Layout, rows: Sequence[Sequence[int]], head: Sequence[int]) -> list[float]:
    """Return x of all items: blocks as far left as they go, then towards their neighbours."""
    before: dict[int, dict[int, float]] = {block: {} for block in head}
    after: dict[int, dict[int, float]] = {block: {} for block in head}
    for row in rows:
        for a, b in pairwise(row):
            space = max(plan.distance(a, b), before[head[b]].get(head[a], 0.0))
            before[head[b]][head[a]] = after[head[a]][head[b]] = space
    order = list(TopologicalSorter(before).static_order())
    x: dict[int, float] = {}
    for block in order:
        x[block] = max((x[i] + space for i, space in before[block].items()), default=0.0)
    for block in reversed(order):
        x[block] = min((x[i] - space for i, space in after[block].items()), default=x[block])
    return [x[block] for block in head]


def _level(tries: Sequence[list[float]]) -> Iterator[list[float]]:
    """Shift alignments (left, right, left, right) to the edges of the narrowest."""
    spans = [(min(xs, default=0.0), max(xs, default=0.0)) for xs in tries]
    low, high = min(spans, key=lambda span: span[1] - span[0])
    for n, (xs, (first, last)) in enumerate(zip(tries, spans, strict=True)):
        shift = low - first if n % 2 == 0 else high - last
        yield [x + shift for x in xs]


def _settle(plan: Layout, row: Sequence[int]) -> None:
    """Move the boxes of a layer towards their neighbours, as far as the order and bends let.

    An isotonic regression: the nearest places, in least squares, that keep the distances.
    """
    shift, blocks, shifts = 0.0, list[tuple[float, float, int]](), list[float]()
    for n, item in enumerate(row):
        shift += plan.distance(row[n - 1], item) if n else 0.0
        shifts.append(shift)
        weight = 1e6 if plan.is_bend(item) else 1.0
        total, count = (_wish(plan, item) - shift) * weight, 1
        while blocks and blocks[-1][0] * weight >= total * blocks[-1][1]:
            more, heavy, many = blocks.pop()
            total, weight, count = total + more, weight + heavy, count + many
        blocks.append((total, weight, count))
    places = [total / weight for total, weight, count in blocks for _ in range(count)]
    for item, place, shift in zip(row, places, shifts, strict=True):
        plan.x[item] = place + shift


def _straight(plan: Layout) -> list[list[int]]:
    """Return the straight runs of bends."""
    runs: list[list[int]] = []
    for trail in plan.trails():
        for before, item in pairwise(trail):
            joined = runs and runs[-1][-1] == before and abs(plan.x[before] - plan.x[item]) < 1e-6
            if joined:
                runs[-1].append(item)
            else:
                runs.append([item])
    return runs


def _slide(plan: Layout, run: Sequence[int]) -> None:
    """Move a straight run of bends towards its ends, as far as its neighbours let."""
    low, high = float("-inf"), float("inf")
    for item in run:
        row = plan.rows[plan.layer[item]]
        n = row.index(item)
        if n > 0:
            low = max(low, plan.x[row[n - 1]] + plan.distance(row[n - 1], item))
        if n + 1 < len(row):
            high = min(high, plan.x[row[n + 1]] - plan.distance(item, row[n + 1]))
    inside = set(run)
    ends = [end for item in run for end in plan.near(item) if end not in inside]
    wish = sum(plan.x[end] for end in ends) / len(ends)
    if low <= high:
        for item in run:
            plan.x[item] = min(max(wish, low), high)


def _close(plan: Layout) -> None:
    """Move each connected part next to those on its left."""
    last: dict[int, int] = {}  # layer -> the item at the right end so far
    for part in sorted(set(plan.part)):
        rows = [[i for i in row if plan.part[i] == part] for row in plan.rows]
        firsts = [row[0] for row in rows if row]
        pairs = [(last[plan.layer[i]], i) for i in firsts if plan.layer[i] in last]
        free = [plan.x[i] - plan.x[j] - plan.distance(j, i) for j, i in pairs]
        shift = min(free, default=0.0)
        for item in (i for row in rows for i in row):
            plan.x[item] -= shift
            last[plan.layer[item]] = item


def _wish(plan: Layout, item: int) -> float:
    near = plan.near(item)
    if plan.is_bend(item) or not near:
        return plan.x[item]
    return sum(plan.x[i] for i in near) / len(near)
