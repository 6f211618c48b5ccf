"""How costs grow with the number of variables, the depth, the signatures, the length of a tape.

    python tests/benchmarks/growth.py --plot tests/benchmarks/growth.png    # some minutes

The exponent is the slope of the upper half of the sizes where both axes are logarithms: 1 is a cost
that grows as the size does. What lies clearly above, 1.2, is marked. Hand-written JAX is there for
first calls, in which XLA's compiler has the largest part.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from measuring import Effort, Found, Row, Step, run_jobs, timed

import jaxvars as jv

REPEATS, ENOUGH = 7, 0.5  # no cost is measured again that has taken so many seconds
TOO_STEEP = 1.2


def least(call: Step) -> float:
    """Return the least microseconds of some calls, after one."""
    gc.collect()
    times = [timed(call)]
    while len(times) < REPEATS and sum(times) < ENOUGH:
        times.append(timed(call))
    return 1e6 * min(times)


def rows_of(sizes: Iterable[int], costs: Callable[[int], dict[str, float]]) -> list[Row]:
    """Return a row for each cost: what it is for each size, and the exponent of its growth."""
    found = {size: costs(size) for size in sizes}
    rows: list[Row] = []
    for cost in next(iter(found.values())):
        times = {size: each[cost] for size, each in found.items()}
        slope = exponent(times)
        row = {"cost, us": cost, **{str(size): time for size, time in times.items()}}
        rows.append({**row, "exponent": slope, "": "steep" if slope > TOO_STEEP else ""})
    return rows


def exponent(times: dict[int, float]) -> float:
    """Return the slope of the upper half of the sizes."""
    sizes = sorted(times)[-max(2, (len(times) + 1) // 2) :]
    logs = np.log([[size, times[size]] for size in sizes])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


# ---------------------------------------------------------------- variables and depth
def costs_of(model: jv.Module, n: int) -> dict[str, float]:
    """Return what is done with a model as a whole."""
    x = jnp.ones(())

    @jv.compile
    def step(x: Any) -> None:
        for variable in model.trainable_variables:
            variable.assign_add(x)

    @functools.partial(jax.jit, donate_argnums=0)
    def by_hand(values: list[Any], x: Any) -> list[Any]:
        return [value + x for value in values]

    def run() -> list[Any]:
        step(x)
        return [model.trainable_variables[0] * 1]

    values = [jnp.ones(()) + i for i in range(n)]

    def run_by_hand() -> None:
        values[:] = by_hand(values, x)

    first, theirs = timed(run), timed(run_by_hand)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = jv.checkpoint.Checkpoint(model=model)
        write = least(lambda: checkpoint.write(Path(folder) / "c"))
    return {
        "first call": 1e6 * first,
        "first call, hand-written": 1e6 * theirs,
        "step": least(lambda: step(x)),
        "step, hand-written": least(run_by_hand),
        "trainable_variables": least(lambda: (model.trainable_variables, None)[1]),
        "State.of": least(lambda: jv.State.of(model)),
        "checkpoint": write,
        "summary": least(lambda: summary_of(model)),
    }


def summary_of(model: jv.Module) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        model.summary()


def wide(n: int) -> jv.Module:
    """Return a model of some variables."""
    model = jv.Module()
    model.each = [jv.Variable(0.0) for _ in range(n)]  # pyright: ignore[reportAttributeAccessIssue]
    return model


def deep(depth: int) -> jv.Module:
    """Return modules in modules, each with a variable."""
    model = jv.Module()
    model.v = jv.Variable(0.0)  # pyright: ignore[reportAttributeAccessIssue]
    if depth > 1:
        model.inner = deep(depth - 1)  # pyright: ignore[reportAttributeAccessIssue]
    return model


def variables(effort: Effort) -> list[Row]:
    """Return the costs of 1 to 10,000 variables."""
    sizes = ((1, 10, 100, 1000, 3000, 10000), (1, 10, 100, 300, 1000), (1, 4))[effort]
    return rows_of(sizes, lambda n: costs_of(wide(n), n))


def depth(effort: Effort) -> list[Row]:
    """Return the costs of modules in modules."""
    sizes = ((1, 10, 50, 100, 200), (1, 10, 50, 100, 200), (1, 4))[effort]
    return rows_of(sizes, lambda n: costs_of(deep(n), n))


# ---------------------------------------------------------------- signatures and tapes
def signatures(effort: Effort) -> list[Row]:
    """Return the costs of a function with some signatures."""

    def costs(n: int) -> dict[str, float]:
        v, xs = jv.Variable(0.0), [jnp.ones(i + 1) for i in range(n + 1)]
        fn = jv.compile(lambda x: v.assign_add(x[0]))
        warnings.simplefilter("ignore", jv.errors.RetraceWarning)
        for x in xs[:-1]:
            fn(x)
        return {
            "another one": 1e6 * timed(lambda: (fn(xs[-1]), None)[1]),
            "a call of the first": least(lambda: (fn(xs[0]), None)[1]),
            "a call of each": least(lambda: [fn(x) for x in xs] and None),
        }

    return rows_of(((1, 3, 10, 30, 100), (1, 3, 10, 30, 100), (1, 2))[effort], costs)


def tapes(effort: Effort) -> list[Row]:
    """Return the costs of a tape of some operations, the first time, eagerly."""

    def costs(n: int) -> dict[str, float]:
        v = jv.Variable(0.5)
        box: list[Any] = []

        def record() -> Any:
            with jv.GradientTape() as tape:
                y = v * 1.0
                for _ in range(n - 1):
                    y = y * 0.999
            box[:] = tape, y
            return y

        recorded = least(record)
        return {
            "operations": least(lambda: [x := jnp.ones(())] + [x * 0.999 for _ in range(n)]),
            "record": recorded,
            "gradient": 1e6 * timed(lambda: box[0].gradient(box[1], v)),
        }

    sizes = ((1, 10, 100, 1000, 3000, 10000), (1, 10, 100, 300, 1000), (1, 4))[effort]
    costs(2)  # the first gradient of all imports and compiles
    return rows_of(sizes, costs)


# ---------------------------------------------------------------- the picture
def plot(found: Found, path: Path) -> None:
    """Draw a panel for each job: cost over size, on axes that are logarithms."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4.2 * len(found), 4.4), squeeze=False)
    for axis, (name, rows) in zip(axes[0], found.items(), strict=True):
        for row in rows:
            sizes = [key for key in row if key.isdigit()]
            label = f"{row['cost, us']} ({row['exponent']:.2f})"
            seconds = [row[size] / 1e6 for size in sizes]
            axis.loglog([int(size) for size in sizes], seconds, ".-", label=label)
        axis.set(title=name, xlabel="number", ylabel="seconds")
        axis.legend(fontsize=7, frameon=False, title="exponent in parentheses", title_fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    jobs = {"variables": variables, "depth": depth, "signatures": signatures, "tapes": tapes}
    run_jobs(__doc__, jobs, plot)
