"""Which operations of a program belong together, so that its picture stays small.

Groups are what the program itself says: the reverse pass of a derivative and what it depends on,
named scopes, the functions that are called, and the written variable that operations lead to. A
group is drawn as one box, or opened where there is room.

Rules this file keeps:
- a box stands for operations that follow each other in an order of the program, so that the arrows
  between boxes lead down, as those between operations do;
- what is not known from the program is in no group.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from typing import TypeAlias

from jaxvars.graph.jaxpr import BACKWARD, Edge, Node

ROOM = 48  # boxes that a picture may have when a group is opened
_MANY = 3  # inputs or outputs of the same groups that are drawn as one box
STEPS = frozenset({"operation", "control"})
_JOINED = ("",)  # instead of a group's name: inputs or outputs that are one box
_NAMES = 8  # of a box's members, in its tooltip

Path: TypeAlias = tuple[str, ...]
Part: TypeAlias = tuple[Path, list[int]]  # the groups it is in, and its nodes


def find_groups(nodes: Sequence[Node], edges: Sequence[Edge]) -> list[Path]:
    """Return the groups that each node is in, outermost first."""
    reverse = {node.id for node in nodes if node.group[:1] == (BACKWARD,)}
    needed = set(reverse)
    for edge in reversed(edges):  # targets only go down, so one pass finds all
        if edge.target in needed:
            needed.add(edge.source)
    ends = _find_ends(nodes, edges, needed)
    return [
        ("forward", *node.group)
        if node.id in needed - reverse
        else (*node.group, *_name_update(ends.get(node.id, "")))
        for node in nodes
    ]


def _name_update(variable: str) -> list[str]:
    """Return the groups of what leads to a written variable: those of its module, and of it."""
    module = variable.rpartition("/")[0]
    return [f"update of {name}" for name in (module, variable) if name]


def _find_ends(nodes: Sequence[Node], edges: Sequence[Edge], but: set[int]) -> dict[int, str]:
    """Return for each operation the written variable that it leads to, if there is one such.

    Of several, as of an optimizer's slots, it is the one that most operations lead to.
    """
    reached = {node.id: {node.id} if node.kind == "written" else set[int]() for node in nodes}
    for edge in reversed(edges):
        reached[edge.source] |= reached[edge.target]
    steps = [node.id for node in nodes if node.kind in STEPS and node.id not in but]
    counts = Counter(end for step in steps for end in reached[step])
    tops = {
        max(reached[step], key=lambda end: (counts[end], -end)) for step in steps if reached[step]
    }
    found = {step: reached[step] & tops for step in steps}
    return {step: nodes[min(ends)].name for step, ends in found.items() if len(ends) == 1}


def sort_nodes(nodes: Sequence[Node], edges: Sequence[Edge], paths: Sequence[Path]) -> list[int]:
    """Return the ids in a valid order that keeps groups in one piece where it can."""
    waits = Counter(edge.target for edge in edges)
    readers: dict[int, list[int]] = {}
    for edge in edges:
        readers.setdefault(edge.source, []).append(edge.target)
    ready: dict[Path, list[int]] = {}  # a heap for each group
    order: list[int] = []

    def admit(some: Iterable[int]) -> None:
        for i in some:
            heapq.heappush(ready.setdefault(paths[i], []), i)

    admit(node.id for node in nodes if not waits[node.id])
    last: Path = ()
    while ready:
        last = max(ready, key=lambda path: (_count_common(path, last), -ready[path][0]))
        chosen = heapq.heappop(ready[last])
        if not ready[last]:
            del ready[last]
        order.append(chosen)
        for reader in readers.get(chosen, ()):
            waits[reader] -= 1
            if not waits[reader]:
                admit([reader])
    return order


def count_operations(ids: Sequence[int], paths: Sequence[Path]) -> str:
    """Return how many operations are in each of the outermost groups, as a sentence."""
    counts = Counter(paths[i][0] for i in ids if paths[i])
    return ", ".join(f"{count} in {name}" for name, count in counts.items())


def cut_runs(order: Sequence[int], paths: Sequence[Path]) -> list[Path]:
    """Return the groups of each node, where long runs of operations are cut into parts."""
    made = list(paths)
    for path, run in groupby(order, key=paths.__getitem__):
        some = list(run)
        count = -(-len(some) // ROOM)
        for n, i in enumerate(some if path and count > 1 else ()):
            made[i] = (*path, f"{path[-1]}, part {n * count // len(some) + 1} of {count}")
    return made


def _count_common(a: Path, b: Path) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


def _open_parts(
    parts: list[Part], paths: Sequence[Path], count: Callable[[list[Part]], int]
) -> None:
    """Open groups, the first ones of the program first, while there is room."""
    place = 0
    while place < len(parts):
        path, some = parts[place]
        made = [*parts[:place], *_split(some, paths, len(path)), *parts[place + 1 :]]
        if path and count(made) <= ROOM:
            parts[:] = made
        else:
            place += 1


def _split(ids: Sequence[int], paths: Sequence[Path], depth: int) -> list[Part]:
    """Return the groups one level deeper, where they are in one piece."""
    parts: list[Part] = []
    for i in ids:
        path = paths[i][: depth + 1] if len(paths[i]) > depth else ()
        if path and parts and parts[-1][0] == path:
            parts[-1][1].append(i)
        else:
            parts.append((path, [i]))
    return [(path if len(some) > 1 else (), some) for path, some in parts]


def fold(
    nodes: Sequence[Node], edges: Sequence[Edge], paths: Sequence[Path], ids: Sequence[int],
    depth: int,
) -> tuple[list[Node], list[Edge], dict[int, Part], int]:  # fmt: skip
    """Return a picture of some operations: nodes, edges, its groups, and how many are inputs.

    Args:
        nodes: all there are.
        edges: all there are.
        paths: the groups of each node, by id.
        ids: the operations to be drawn; what they read and what is written of them is, too.
        depth: how many groups all of them are in.
    """
    chosen = set(ids)
    near = [edge for edge in edges if edge.target in chosen or edge.source in chosen]
    sources = sorted({edge.source for edge in near if edge.target in chosen} - chosen)
    targets = sorted({edge.target for edge in near if nodes[edge.target].kind not in STEPS})
    readers = [(edge.source, edge.target) for edge in near]
    makers = [(edge.target, edge.source) for edge in near]

    def surround(parts: list[Part]) -> tuple[list[Part], list[Part]]:
        part_of = {i: n for n, (_, some) in enumerate(parts) for i in some}
        grouped = {n for n, (path, _) in enumerate(parts) if path}
        return (
            _join(sources, readers, part_of, grouped, nodes),
            _join(targets, makers, part_of, grouped, nodes),
        )

    parts = _split(ids, paths, depth)
    _open_parts(parts, paths, lambda made: len(made) + sum(map(len, surround(made))))
    before, after = surround(parts)
    drawn = [*before, *parts, *after]
    new = {i: n for n, (_, some) in enumerate(drawn) for i in some}
    boxes = [_draw_part(n, part, nodes, paths) for n, part in enumerate(drawn)]
    ends = {(new[e.source], new[e.target]): e for e in near if e.source in new and e.target in new}
    arrows = [replace(e, source=a, target=b) for (a, b), e in sorted(ends.items()) if a != b]
    groups = {n: part for n, part in enumerate(drawn) if boxes[n].kind == "group"}
    return boxes, arrows, groups, len(before)


def _join(
    ids: Iterable[int], ends: Iterable[tuple[int, int]], part_of: dict[int, int],
    grouped: set[int], nodes: Sequence[Node],
) -> list[Part]:  # fmt: skip
    """Return inputs or outputs, those of one kind that the same groups use as one part."""
    uses: dict[int, set[int]] = {}
    for i, other in ends:
        if other in part_of:
            uses.setdefault(i, set()).add(part_of[other])
    alike: dict[object, list[int]] = {}
    for i in ids:
        used = uses.get(i, set())
        alike.setdefault((nodes[i].kind, *sorted(used)) if used <= grouped else i, []).append(i)
    return [
        (_JOINED if len(part) > 1 else (), part)
        for some in alike.values()
        for part in ([some] if len(some) >= _MANY else [[i] for i in some])
    ]


def _draw_part(new: int, part: Part, nodes: Sequence[Node], paths: Sequence[Path]) -> Node:
    path, some = part
    first = nodes[some[0]]
    if not path:
        return replace(first, id=new, group=paths[first.id])
    if path == _JOINED:
        names = [nodes[i].name for i in some[:_NAMES]] + ["..."] * (len(some) > _NAMES)
        what = "written variable" if first.kind == "written" else first.kind
        return Node(new, first.kind, f"{len(some)} {what}s", ", ".join(names))
    return Node(new, "group", path[-1], "", detail=f"{len(some)} operations", group=path[:-1])
