"""What running eagerly costs: reads, assignments, tapes, the training step of `python -m jaxvars`.

python tests/benchmarks/eager.py
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from measuring import Effort, Row, Step, compared, pairs, run_jobs, turn

import jaxvars as jv
from jaxvars.demo import train as _demo


def reads(effort: Effort) -> list[Row]:
    """Return what an operation, a read and an assignment take."""
    v, x, n = jv.Variable(jnp.zeros(8)), jnp.zeros(8), jv.Variable(0)
    steps: dict[str, Step] = {
        "x + x, an array": lambda: x + x,
        "v + x, a variable": lambda: v + x,
        "jnp.sin(x), an array": lambda: jnp.sin(x),
        "jnp.sin(v), a variable": lambda: jnp.sin(v),
        "v.value": lambda: v.value,
        "v.assign(x)": lambda: v.assign(x),
        "v.assign_add(x)": lambda: v.assign_add(x),
        "v.assign_add(1.0)": lambda: v.assign_add(1.0),
        "n.assign(1), a scalar": lambda: n.assign(1),
    }
    return compared(steps, 5, (2000, 500, 5)[effort])


def taped(layers: int, warm: int) -> tuple[Step, Step]:
    """Return `4 * layers` operations and their gradient, and the operations alone, of arrays."""
    w, b = jv.Variable(jnp.full((8, 8), 0.1)), jv.Variable(jnp.ones(8))
    x, arrays = jnp.ones((4, 8)), (jnp.full((8, 8), 0.1), jnp.ones(8))

    def loss(w: Any, b: Any) -> Any:
        y = x
        for _ in range(layers - 1):
            y = jnp.tanh(y @ w + b) * 0.9
        return jnp.mean(jnp.exp(y @ w + b))

    def gradient() -> Any:
        with jv.GradientTape() as tape:
            target = loss(w, b)
        return tape.gradient(target, [w, b])

    turn(gradient, warm)  # what runs often is compiled
    return gradient, lambda: loss(*arrays)


def tapes(effort: Effort) -> list[Row]:
    """Return what a gradient costs over its operations alone."""
    warm, rounds, calls = ((300, 60, 60), (300, 20, 10), (1, 1, 1))[effort]
    sizes = (8, 100)[: (2, 2, 1)[effort]]
    return pairs({f"{n} operations": taped(n // 4, warm) for n in sizes}, rounds, calls)


def training(effort: Effort) -> list[Row]:
    """Return what the demo's training step takes, compiled and eagerly."""
    run = _demo.Run(seed=0)
    batch = next(run.batches())
    run.step(*batch)
    compiled = min(turn(lambda: run.step(*batch), 20) for _ in range((25, 5, 1)[effort]))
    jv.config.run_eagerly(True)
    eager = min(turn(lambda: run.step(*batch), (10, 5, 1)[effort]) for _ in range(5))
    return [{"way": "compiled", "us": compiled}, {"way": "eager", "us": eager}]


if __name__ == "__main__":
    run_jobs(__doc__, {"reads": reads, "tapes": tapes, "training step": training})
