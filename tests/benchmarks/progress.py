"""What watching a loop costs: a bar, an alarm and a scalar for TensorBoard, for each step.

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
from rich.console import Console

import jaxvars as jv

STEPS = 2_000  # of a round: short, so that few are interrupted by other programs
ROUNDS = 101
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


def cost(make: Callable[[], tuple[Iterable[int], Callable[[], object] | None]]) -> float:
    """Return what a watcher adds to a step, in microseconds."""
    found = []
    for _ in range(ROUNDS):
        plain = seconds(range(STEPS), None)
        found.append(1e6 * (seconds(*make()) - plain))
    return statistics.median(found)


def told(name: str, microseconds: float) -> None:
    print(f"{name:<44} {microseconds:>8.3f} us {microseconds / STEP:>8.2%} of a {STEP:.0f} us step")


def drawing() -> float:
    """Return the milliseconds of one drawing."""
    x = jnp.float32(0.5)
    with jv.progress(1000, "training", console=console()) as bar:
        bar.show(loss=x, accuracy=x)
        times = []
        for _ in range(200):
            start = time.perf_counter()
            bar.display.refresh()
            times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main() -> None:
    loss = jnp.float32(0.5)

    def silent():
        bar = jv.progress(STEPS, "training", enabled=False)
        return bar, lambda: bar.show(loss=loss)

    told("a bar, counting", cost(lambda: (jv.progress(STEPS, enabled=False), None)))
    step = cost(silent)
    told("a bar, counting and showing a loss", step)
    draw = drawing()
    told(
        f"a bar over steps of {STEP:.0f} us, {draw:.2f} ms a drawing", step + 4 * draw * STEP / 1e3
    )

    model = [jv.Variable(jnp.zeros((64, 64)), name=f"w{i}") for i in range(20)]

    alarm = jv.debugging.NanAlarm(model, every=10**9)
    told("an alarm, counting", cost(lambda: (range(STEPS), alarm.step)))
    told(
        "an alarm, every 100 steps, 20 variables",
        cost(lambda: (range(STEPS), alarm.step)) + look(alarm) / 100,
    )
    told("a scalar for TensorBoard, handed over", scalar(loss))


def look(alarm: jv.debugging.NanAlarm) -> float:
    """Return what a look takes, in microseconds."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        alarm.check()
        found.append(1e6 * (time.perf_counter() - start))
    return statistics.median(found)


def scalar(loss: jax.Array) -> float:
    """Return what passing a scalar on costs, in microseconds; it is written between rounds."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        writer = jv.tensorboard.create_file_writer(folder)
        with writer.as_default():
            for _ in range(ROUNDS):
                start = time.perf_counter()
                for i in range(100):
                    jv.tensorboard.scalar("loss", loss, step=i)
                found.append(1e6 * (time.perf_counter() - start) / 100)
                writer.flush()
        writer.close()
    return statistics.median(found)


if __name__ == "__main__":
    main()
