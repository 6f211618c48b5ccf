"""What the benchmarks share: steps timed in turns, fresh processes, tables, the command line.

A benchmark is a file with jobs, functions from the effort to rows of figures; a row is a dict.

Rules of all of them:
- candidates take turns within one process, round by round, in alternating order, and are compared
  with the first of them; the garbage collector is off while a turn is timed;
- first calls and imports are timed in fresh processes, also in turns;
- a size or a number of repetitions is `(full, quick, smoke)[effort]`.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from enum import IntEnum
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = ("jax", "jaxlib", "numpy", "flax", "optax", "orbax-checkpoint")
PACKAGES += ("equinox", "brainstate", "tensorflow", "tensorflow-cpu", "torch")

Step = Callable[[], Any]
Row = dict[str, Any]
Found = dict[str, list[Row]]


class Effort(IntEnum):
    """How much is measured; the last is for a test."""

    FULL, QUICK, SMOKE = range(3)


Job = Callable[[Effort], list[Row]]


# ---------------------------------------------------------------- time
def turn(step: Step, calls: int, *, waits: bool = True) -> float:
    """Return the microseconds of a call, of some in a row; maybe with the last one's result."""
    import jax

    gc.disable()
    start = time.perf_counter()
    for _ in range(calls):
        result = step()
    taken = time.perf_counter() - start
    jax.block_until_ready(result)
    if waits:
        taken = time.perf_counter() - start
    gc.enable()
    return taken / calls * 1e6


def compared(steps: dict[str, Step], rounds: int, calls: int, *, waits: bool = True) -> list[Row]:
    """Time steps in turns; return a row for each: its least time, and its ratios to the first."""
    for step in steps.values():
        turn(step, 4)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(rounds):
        for name in list(steps)[:: 1 if i % 2 else -1]:
            times[name].append(turn(steps[name], calls, waits=waits))
    base = next(iter(times.values()))
    return [{"way": name, "us": min(each)} | ratios(each, base) for name, each in times.items()]


def ratios(ours: Sequence[float], base: Sequence[float]) -> Row:
    """Return the quotient of the best turns, and the median of the quotients in one round."""
    each = [mine / its for mine, its in zip(ours, base, strict=True)]
    return {"ratio of minima": min(ours) / min(base), "median ratio": statistics.median(each)}


def pairs(cases: dict[str, tuple[Step, Step]], rounds: int = 60, calls: int = 60) -> list[Row]:
    """Compare a call with another for each case: a row for each, with the ratio to the second."""
    found = {name: compared({"": its, name: ours}, rounds, calls)
             for name, (ours, its) in cases.items()}  # fmt: skip
    return [{**row, "over, us": base["us"]} for base, row in found.values()]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that imports this source tree, with bytecode."""
    there = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(HERE), str(HERE.parents[1]), *([there] if there else [])])
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return environ | {"PYTHONPATH": path} | more


def fresh(programs: Sequence[Sequence[str]], times: int, **env: str) -> list[list[float]]:
    """Run programs in fresh processes, in turns; return the numbers that each one prints last."""
    found: list[list[float]] = [[] for _ in programs]
    for _ in range(times):
        for i, program in enumerate(programs):
            command = [sys.executable, "-c", *program]
            done = subprocess.run(command, stdout=-1, text=True, check=True, env=environment(**env))
            found[i].append(float(done.stdout.split()[-1]))
    return found


def nnx_ways() -> dict[str, Callable[..., Step]]:
    """Return flax's ways to call a step whose first arguments are given, which are donated."""
    from flax import nnx

    def jitted(step: Step, *given: Any, bind: Any = functools.partial, **options: Any) -> Step:
        return bind(nnx.jit(step, donate_argnums=tuple(range(len(given))), **options), *given)

    def jit_partial(step: Step, *given: Any) -> Step:
        donated = tuple(range(len(given)))
        return nnx.jit_partial(step, *given, donate_argnums=donated, graph=False)

    ways = {
        "nnx.jit": jitted,
        "nnx.jit, cached_partial": functools.partial(jitted, bind=nnx.cached_partial),
        "nnx.jit, graph=False": functools.partial(jitted, graph=False),
        "nnx.jit_partial": jit_partial,
    }
    return ways if hasattr(nnx, "jit_partial") else dict(list(ways.items())[:3])


# ---------------------------------------------------------------- what is said
def about() -> Row:
    """Return what was measured with: the machine, the day and the versions."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"machine": machine, "date": now, "versions": versions}


def text_of(value: Any) -> str:
    """Return how a figure is printed."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def table(rows: list[Row]) -> str:
    """Return rows as a table, with a head and columns as wide as they need."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    lines = [heads, *([text_of(row.get(head, "")) for head in heads] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numbers = [isinstance(rows[-1].get(head), int | float) for head in heads]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in lines
    )


def parser_of(description: str) -> argparse.ArgumentParser:
    """Return the command line of a benchmark, and of all of them."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--quick", dest="effort", action="store_const", default=Effort.FULL,
                        const=Effort.QUICK, help="fewer repetitions")  # fmt: skip
    parser.add_argument("--smoke", dest="effort", action="store_const", const=Effort.SMOKE,
                        help="as little as there is: the figures say nothing")  # fmt: skip
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser


def run_jobs(description: str, jobs: dict[str, Job]) -> None:
    """Measure what the command line asks for, print it, and write it where it says."""
    parser = parser_of(description)
    parser.add_argument("--only", choices=jobs)
    options = parser.parse_args()
    found: Found = {}
    for name in jobs if options.only is None else [options.only]:
        found[name] = jobs[name](options.effort)
        print(f"{name}\n{table(found[name])}\n", flush=True)
    if options.json:
        key = Path(sys.argv[0]).stem
        options.json.write_text(json.dumps({"about": about(), key: found}, indent=1) + "\n")
