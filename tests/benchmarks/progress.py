"""What watching a loop costs: a bar, and a scalar for TensorBoard, for each step.

python tests/benchmarks/progress.py

Loops of empty steps with and without the watcher take turns; what is said is the median of the
differences, and its part of a step of 100 us. A drawing is counted where the bar is live: as if the
loop stood still for it, four times a second.
"""

from __future__ import annotations

import io
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
from measuring import Effort, Row, run_jobs, timed, turn
from rich.console import Console

import jaxvars as jv

STEPS = 2_000  # of a round: short, so that few are interrupted by other programs
STEP = 100.0  # us


class Terminal(io.StringIO):
    """Takes what is drawn, as a terminal would."""

    def isatty(self) -> bool:
        return True


def console() -> Console:
    return Console(file=Terminal(), force_terminal=True, width=100)


def seconds(steps: Iterable[int], watch: Callable[[], object] | None) -> float:
    """Return how long a loop of empty steps takes, for one of them."""
    start = time.perf_counter()
    if watch is None:
        for _ in steps:
            pass
    else:
        for _ in steps:
            watch()
    return (time.perf_counter() - start) / STEPS


def cost(
    make: Callable[[], tuple[Iterable[int], Callable[[], object] | None]], rounds: int
) -> float:
    """Return what a watcher adds to a step, in microseconds."""
    added = (seconds(*make()) - seconds(range(STEPS), None) for _ in range(rounds))
    return 1e6 * statistics.median(added)


def drawing(rounds: int) -> float:
    """Return the microseconds of one drawing."""
    x = jnp.float32(0.5)
    with jv.progress(1000, "training", console=console()) as bar:
        bar.show(loss=x, accuracy=x)
        return 1e6 * statistics.median(timed(bar.display.refresh) for _ in range(2 * rounds))


def progress(effort: Effort) -> list[Row]:
    """Return what each watcher adds to a step."""
    rounds, loss = (101, 31, 3)[effort], jnp.float32(0.5)

    def silent() -> tuple[Iterable[int], Callable[[], object]]:
        bar = jv.progress(STEPS, "training", enabled=False)
        return bar, lambda: bar.show(loss=loss)

    shown, draw = cost(silent, rounds), drawing(rounds)
    found = {
        "a bar, counting": cost(lambda: (jv.progress(STEPS, enabled=False), None), rounds),
        "a bar, counting and showing a loss": shown,
        f"a bar over steps of {STEP:.0f} us": shown + 4 * draw * STEP / 1e6,
        "a scalar for TensorBoard, handed over": scalar(loss, rounds),
        "one drawing": draw,
    }
    part = f"of a step of {STEP:.0f} us"
    return [{"watcher": name, "us": us, part: us / STEP} for name, us in found.items()]


def scalar(loss: jax.Array, rounds: int) -> float:
    """Return what passing a scalar on costs, in microseconds; it is written between rounds."""
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        writer = jv.tensorboard.create_file_writer(folder)
        with writer.as_default():
            for _ in range(rounds):
                found.append(turn(lambda: jv.tensorboard.scalar("loss", loss, step=0), 100))
                writer.flush()
        writer.close()
    return statistics.median(found)


if __name__ == "__main__":
    run_jobs(__doc__, {"progress": progress})
