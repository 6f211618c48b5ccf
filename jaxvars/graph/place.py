"""Where in its layer each box and bend of a drawing stands: the last step of the layout.

After Brandes and Köpf: in four ways (from above or below, leaning left or right), items are
aligned with the middle one of their neighbours in *blocks* that share one x, and the blocks
packed; the mean of these keeps long arrows straight. Then boxes are pulled between their
neighbours, and straight runs of bends towards their ends, which closes gaps.

Rules this file keeps:
- the order that a layer has is never changed, and neighbours keep their distance: boxes do not
  overlap, and no arrow passes through a box;
- the same layout in, the same x out, on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter
from itertools import pairwise

from jaxvars.graph.layout import Layout, Link

_RELAXATIONS = 40


def place(plan: Layout) -> None:
    """Set each item's x, from 0 on: the mean of the middle two of four extreme alignments.

    >>> from jaxvars.graph.layout import route
    >>> plan = route([20.0, 20.0, 20.0], [(0, 2), (1, 2)], [0, 0, 1])
    >>> place(plan)
    >>> plan.x
    [10.0, 48.0, 29.0]
    """
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
