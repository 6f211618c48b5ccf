"""What several benchmarks share: timing in turns, and their arguments."""

from __future__ import annotations

import argparse
import json
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

ROUNDS, CALLS = 60, 60

Step = Callable[[], Any]


def turn(step: Step, steps: int) -> float:
    """Return the microseconds of a step, of some in a row; the last one's result is waited for."""
    start = time.perf_counter()
    for _ in range(steps - 1):
        step()
    float(step())
    return (time.perf_counter() - start) / steps * 1e6


def print_ratios(
    cases: dict[str, tuple[Step, Step]], rounds: int = ROUNDS, times_each: int = CALLS
) -> None:
    """Print the smallest times of two calls each, which take turns, and their ratio."""
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}")
    for name, calls in cases.items():
        times: list[list[float]] = [[], []]
        for _ in range(rounds):
            for which, call in enumerate(calls):
                times[which].append(timeit.timeit(call, number=times_each) / times_each * 1e6)
        mine, theirs = map(min, times)
        print(f"{name:18} {mine:7.1f} us  {theirs:7.1f} us  x{mine / theirs:.2f}")


def run_jobs(
    description: str,
    jobs: dict[str, Callable[[bool], Any]],
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--only", choices=jobs)
    options = parser.parse_args()
    found = {k: job(options.quick) for k, job in jobs.items() if options.only in (None, k)}
    report(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2))
