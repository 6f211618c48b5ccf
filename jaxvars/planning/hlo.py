"""What XLA writes of the communication of a compiled program.

Rules this file keeps:
- its form has no promise of stability: what is not understood is left out, not guessed;
- an operation in a loop whose length XLA knows counts as often as it runs.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

_KINDS = (
    "all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|"
    "collective-broadcast"
)
_HEADER = re.compile(r"^(ENTRY )?%?(?P<name>[\w.\-]+) \(.*\{$")
_LINE = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>.*?) (?P<op>[\w\-]+)\((?P<rest>.*)$"
)
_COLLECTIVE = re.compile(rf"^(?P<kind>{_KINDS})(?:-start)?$")
_ARRAY = re.compile(r"\b(?P<dtype>[a-z]+\d*\w*)\[(?P<sizes>[\d,]*)\]")
_CALLED = re.compile(
    r"\b(?:body|condition|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


class Collective(NamedTuple):
    """An operation in which devices exchange data.

    Attributes:
        kind: XLA's name for it, like "all-reduce".
        devices: how many take part in each group; None if that is not known.
        bytes: what goes in, or comes out if that is more, on each device.
    """

    kind: str
    devices: int | None
    bytes: int


class _Instruction(NamedTuple):
    name: str
    type: str
    op: str
    rest: str


def collectives_in(hlo: str) -> Counter[Collective]:
    """Return the collectives that a run of a program executes, and how often each.

    >>> hlo = '''ENTRY %main (p: f32[8]) -> f32[8] {
    ...   %p = f32[8]{0} parameter(0)
    ...   ROOT %r = f32[8]{0} all-reduce(%p), replica_groups=[1,4]<=[4], to_apply=%add
    ... }'''
    >>> collectives_in(hlo)
    Counter({Collective(kind='all-reduce', devices=4, bytes=32): 1})
    """
    bodies, entry = _bodies(hlo)
    found: Counter[Collective] = Counter()
    todo = [(entry, 1)]
    while todo:
        name, times = todo.pop()
        body = bodies.get(name, [])
        sizes = {line.name: nbytes(line.type) for line in body}
        for line in body:
            if kind := _COLLECTIVE.match(line.op):
                found[_collective(kind["kind"], line, sizes)] += times
            else:
                trips = _TRIPS.search(line.rest) if line.op == "while" else None
                inner = times * int(trips[1]) if trips else times
                todo += [(called, inner) for called in _list_called(line.rest)]
    return found


def nbytes(shape: str) -> int:
    """Return the bytes of an array type, or of a tuple of them, as XLA writes it.

    >>> nbytes("(f32[2,3]{1,0}, bf16[4], pred[])")
    33
    """
    total = 0
    for array in _ARRAY.finditer(shape):
        sizes = [int(size) for size in array["sizes"].split(",") if size]
        total += math.ceil(math.prod(sizes) * _bits(array["dtype"]) / 8)
    return total


def _bits(dtype: str) -> int:
    number = re.search(r"\d+", dtype)  # f32, bf16, s4, c64, f8e4m3fn
    return 8 if dtype == "pred" else int(number[0]) if number else 0


def _bodies(hlo: str) -> tuple[dict[str, list[_Instruction]], str]:
    """Return the instructions of each computation by name, and the name of the first to run."""
    bodies: dict[str, list[_Instruction]] = {}
    entry, body = "", list[_Instruction]()
    for line in hlo.splitlines():
        if header := _HEADER.match(line):
            body = bodies.setdefault(header["name"], [])
            entry = header["name"] if line.startswith("ENTRY") else entry
        elif found := _LINE.match(line):
            body.append(_Instruction(*found.group("name", "type", "op", "rest")))
    return bodies, entry


def _list_called(rest: str) -> list[str]:
    branches = _BRANCHES.search(rest)
    names = re.findall(r"[\w.\-]+", branches[1]) if branches else []
    return [*_CALLED.findall(rest), *names]


def _collective(kind: str, line: _Instruction, sizes: dict[str, int]) -> Collective:
    operands = re.findall(r"%?([\w.\-]+)", line.rest.partition(")")[0])
    given, total = sum(sizes.get(name, 0) for name in operands), nbytes(line.type)
    is_started = line.op.endswith("-start") and total > given  # its type lists operands, too
    return Collective(kind, _group_size(line.rest), max(given, total - given * is_started))


def _group_size(rest: str) -> int | None:
    """Return how many devices exchange data with each other."""
    if listed := re.search(r"replica_groups=\{\{([\d,]*)\}", rest):
        return len(listed[1].split(","))
    if tiled := re.search(r"replica_groups=\[\d+,(\d+)\]<=", rest):
        return int(tiled[1])
    if meshed := re.search(r"replica_groups=mesh\[(.*?)\].*?\{([^}]*)\}", rest):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", meshed[1])}
        return math.prod(sizes.get(name, 1) for name in re.findall(r"'(\w+)'", meshed[2]))
    return None
