"""The operations in a trace of `jax.profiler`, and how long each of them took.

Rules this file keeps:
- a trace is read as text: JAX's own reader of the binary form ends the process where it fails;
- time is counted once: of a loop, only what is not spent in the operations inside of it.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, final


def longest(folder: Path, steps: int) -> list[tuple[str, str, int, float, float]]:
    """Return a row for each operation in a trace, the longest first."""
    spent: dict[tuple[str, str], list[int]] = defaultdict(list)
    for file in folder.glob("*.trace.json.gz"):
        for line in _lines(file):
            for op in _own_times(line):
                spent[op.name, op.program].append(op.own)
    total = sum(map(sum, spent.values())) or 1
    rows = [(*op, len(own), sum(own) / steps / 1e6, sum(own) / total) for op, own in spent.items()]
    return sorted(rows, key=lambda row: row[3], reverse=True)


@final
class _Operation:
    """An operation of a program in a trace; times in nanoseconds.

    Attributes:
        own: the time without that of operations inside of it.
    """

    __slots__ = ("end", "name", "own", "program", "start")

    def __init__(self, event: dict[str, Any]) -> None:
        facts = event["args"]
        self.name = str(facts["hlo_op"])
        self.program = str(facts.get("hlo_module", "")).removeprefix("jit_")
        self.own = round(1e3 * event["dur"])
        self.start = round(1e3 * event["ts"])
        self.end = self.start + self.own


def _lines(file: Path) -> list[list[_Operation]]:
    """Return the operations of each line of a trace."""
    with gzip.open(file) as opened:
        events = json.load(opened)["traceEvents"]
    lines: dict[tuple[Any, Any], list[_Operation]] = defaultdict(list)
    names: dict[tuple[Any, Any], str] = {}
    for event in events:
        line, facts = (event.get("pid"), event.get("tid")), event.get("args", {})
        if event.get("name") == "thread_name":
            names[line] = facts["name"]
        elif event.get("ph") == "X" and "hlo_op" in facts:
            lines[line].append(_Operation(event))
    # On some devices each operation is on a line of this name and on others, too.
    alone = {pid for (pid, _), name in names.items() if name == "XLA Ops"}
    kept = [line for line in lines if line[0] not in alone or names.get(line) == "XLA Ops"]
    return [lines[line] for line in kept]


def _own_times(operations: list[_Operation]) -> list[_Operation]:
    """Take from the time of a loop that of what runs in it."""
    around: list[_Operation] = []
    for op in sorted(operations, key=lambda op: (op.start, -op.end)):
        while around and around[-1].end <= op.start:
            around.pop()
        if around and op.end <= around[-1].end:
            around[-1].own -= op.end - op.start
        around.append(op)
    return operations
