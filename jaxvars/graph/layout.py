"""Where each box of a drawing stands: numbers in, numbers out.

Sugiyama's four steps: `layers` puts each box in a layer, and `arrange` does the rest: a long arrow
gets a *bend* in each layer between (all arrows that leave one box share these), barycenter sweeps
order each layer so that few arrows cross, and places are chosen. Layers and places are linear
programs, as in Graphviz: the shortest wires that keep the distances.

Rules this file keeps:
- no randomness, and one best layout: the same input gives the same picture, anywhere;
- a source has a lower position than its target, and is in a higher layer of the picture.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias, final

import numpy as np

Arrow: TypeAlias = tuple[int, int]

GAP = 18.0  # between neighbours in a layer
BEND_WIDTH = 4.0
_STRAIGHT = (1, 4, 16)  # what a link costs that leans, by how many of its ends are bends
_SWEEPS = 24


@final
@dataclass(slots=True)
class Layout:
    """Where things are. Items are the boxes, in order, and after them the bends.

    Attributes:
        boxes: how many items are boxes.
        layer: of each item, from the top.
        source: the box whose value passes at each item (a box's is itself).
        width: of each item.
        links: pairs (upper, lower) of items in adjacent layers.
        above: the items that each item is linked to in the layer above.
        below: those in the layer below.
        rows: the items of each layer, from left to right.
        x: the middle of each item.
    """

    boxes: int
    layer: list[int]
    source: list[int]
    width: list[float]
    links: list[Arrow]
    above: list[list[int]]
    below: list[list[int]]
    rows: list[list[int]]
    x: list[float]

    def is_bend(self, item: int) -> bool:
        """Return whether an item is a bend."""
        return item >= self.boxes

    def distance(self, left: int, right: int) -> float:
        """Return how far apart the middles of two neighbours in a layer must be."""
        return (self.width[left] + self.width[right]) / 2 + GAP

    def trails(self) -> list[list[int]]:
        """Return for each box the items where its value passes: the box, then its bends."""
        trails: list[list[int]] = [[] for _ in range(self.boxes)]
        for item, box in enumerate(self.source):
            trails[box].append(item)
        return trails


def layers(count: int, arrows: Sequence[Arrow]) -> list[int]:
    """Return each box's layer: those with the shortest wires, each to its box's last reader.

    >>> layers(4, [(0, 2), (1, 3), (2, 3)])
    [0, 1, 1, 2]
    """
    ends = range(count, 2 * count)  # where the wires end
    apart = [(source, target, 1.0) for source, target in arrows]
    apart += [(target, ends[source], 0.0) for source, target in arrows]
    apart += [(box, end, 0.0) for box, end in enumerate(ends)]
    cost = [tie - 1.0 for tie in _break_ties(count)] + [1.0] * count
    return [round(layer) for layer in _solve(cost, apart)[:count]]


def _break_ties(count: int) -> list[float]:
    """Return small costs, all different: where wires do not decide, up and to the left is best."""
    return [0.01 + 0.005 * (0.618034 * i % 1) for i in range(count)]


def _solve(cost: Sequence[float], apart: Sequence[tuple[int, int, float]]) -> list[float]:
    """Return numbers of the least cost, none below 0, with b - a >= gap for each (a, b, gap)."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    if not apart:
        return [0.0] * len(cost)
    low, high, gap = map(np.array, zip(*apart, strict=True))
    rows = np.arange(len(apart))
    signs = np.repeat([1.0, -1.0], len(apart))
    place = np.tile(rows, 2), np.concatenate([low, high])
    matrix: Any = coo_array((signs, place), shape=(len(apart), len(cost)))
    return linprog(cost, matrix, -gap, method="highs-ds").x.tolist()


def arrange(widths: Sequence[float], arrows: Sequence[Arrow], layer: Sequence[int]) -> Layout:
    """Return where boxes stand, and the bends of arrows that cross a layer.

    >>> plan = arrange([20.0, 20.0, 20.0], [(0, 1), (1, 2), (0, 2)], [0, 1, 2])
    >>> plan.rows, plan.x
    ([[0], [3, 1], [2]], [17.0, 32.0, 17.0, 2.0])
    """
    plan = _route(widths, arrows, layer)
    _order(plan, _find_parts(plan))
    _place(plan)
    return plan


def _route(widths: Sequence[float], arrows: Sequence[Arrow], layer: Sequence[int]) -> Layout:
    layer, source_of, width = list(layer), list(range(len(widths))), list(widths)
    seen: dict[Arrow, int] = {}  # (source, layer) -> the bend there
    links: dict[Arrow, None] = {}  # an ordered set
    for source, target in arrows:
        at = source
        for depth in range(layer[source] + 1, layer[target]):
            bend = seen.setdefault((source, depth), len(layer))
            if bend == len(layer):
                layer.append(depth)
                source_of.append(source)
                width.append(BEND_WIDTH)
            links[at, bend] = None
            at = bend
        links[at, target] = None
    above, below = [[] for _ in layer], [[] for _ in layer]
    for upper, lower in links:
        below[upper].append(lower)
        above[lower].append(upper)
    return Layout(len(widths), layer, source_of, width, list(links), above, below, [], [])


def _find_parts(plan: Layout) -> list[int]:
    """Return for each item the number of the connected part that it belongs to."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = len(plan.layer)
    ends = np.array(plan.links, int).reshape(-1, 2).T
    links: Any = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(count, count))
    return connected_components(links, directed=False)[1].tolist()


def _order(plan: Layout, part: Sequence[int]) -> None:
    """Sort each layer by the mean place of its neighbours, keeping the best order met."""
    plan.rows = [[] for _ in range(max(plan.layer, default=-1) + 1)]
    for item in sorted(range(len(part)), key=lambda i: (part[i], plan.source[i], i)):
        plan.rows[plan.layer[item]].append(item)
    best, fewest = [list(row) for row in plan.rows], _count_crossings(plan)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        near, rows = (plan.below, plan.rows[::-1]) if sweep % 2 else (plan.above, plan.rows)
        place = {i: (n + 0.5) / len(row) for row in rows for n, i in enumerate(row)}
        for row in rows:
            keys = {i: (part[i], _mean([place[k] for k in near[i]], place[i])) for i in row}
            if sweep % 4 > 1:  # a stable sort: ties now fall the other way
                row.reverse()
            row.sort(key=keys.__getitem__)
            place.update({item: (n + 0.5) / len(row) for n, item in enumerate(row)})
        if (now := _count_crossings(plan)) < fewest:
            best, fewest = [list(row) for row in plan.rows], now
    plan.rows = best


def _mean(values: Sequence[float], default: float) -> float:
    return math.fsum(values) / len(values) if values else default


def _count_crossings(plan: Layout) -> int:
    """Count the pairs of links that cross."""
    rank = {item: n for row in plan.rows for n, item in enumerate(row)}
    total = 0
    for row in plan.rows:
        seen: list[int] = []
        for item in row:
            ends = sorted(rank[lower] for lower in plan.below[item])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _place(plan: Layout) -> None:
    """Set each item's x, from 0 on: the least lean of all links, then boxes between neighbours."""
    count = len(plan.layer)
    apart = [(a, b, plan.distance(a, b)) for row in plan.rows for a, b in pairwise(row)]
    cost = _break_ties(count)
    for upper, lower in plan.links:  # costs how far apart its ends are, `right` less `left`
        left, right = len(cost), len(cost) + 1
        weight = _STRAIGHT[plan.is_bend(upper) + plan.is_bend(lower)]
        cost += [-weight, weight]
        apart += [(left, end, 0.0) for end in (upper, lower)]
        apart += [(end, right, 0.0) for end in (upper, lower)]
    plan.x = _solve(cost, apart)[:count]
    for _ in range(_SWEEPS):
        for row in [*plan.rows, *plan.rows[::-1]]:
            _relax(plan, row)
    left = min((x - w / 2 for x, w in zip(plan.x, plan.width, strict=True)), default=0.0)
    plan.x = [x - left for x in plan.x]


def _relax(plan: Layout, row: Sequence[int]) -> None:
    """Move the boxes of a layer towards the mean of their neighbours, as far as there is room."""
    x = plan.x
    for n, item in enumerate(row):
        near = [x[i] for i in plan.above[item] + plan.below[item]]
        if near and not plan.is_bend(item):
            low = x[row[n - 1]] + plan.distance(row[n - 1], item) if n else -math.inf
            high = x[row[n + 1]] - plan.distance(item, row[n + 1]) if row[n + 1 :] else math.inf
            x[item] = min(max(_mean(near, 0.0), low), high)
