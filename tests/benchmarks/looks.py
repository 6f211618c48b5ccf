"""What a step costs whose variables are looked at or assigned between two of its runs.

    python tests/benchmarks/looks.py

The hand-written step donates a tuple and returns a new one, whose arrays are read in the same way;
what it has for an assignment is the one operation that makes the new array.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from dispatch import by_hand
from measuring import Effort, Row, Step, compared, run_jobs

import jaxvars as jv

COUNTS = (1, 10, 200, 1000)


def ours(n: int) -> Step:
    """Return a step that returns the variables it has assigned."""
    variables, x = [jv.Variable(jnp.zeros(()) + i) for i in range(n)], jnp.ones(())

    @jv.compile
    def step(x: Any) -> Any:
        for variable in variables:
            variable.assign_add(x)
        return variables[0] * 2

    def run() -> list[jv.Variable]:
        step(x)
        return variables

    return run


def looks_at(hand: Step, ours: Step) -> dict[str, tuple[Step, Step]]:
    """Return what is done after a step, hand-written and with variables; no variable is returned.

    Else it would be read, to wait for it, between turns.
    """
    one = jnp.ones(())

    def assign() -> None:
        ours()[0].assign(one)

    def assign_add() -> None:
        ours()[0].assign_add(one)

    return {
        "nothing": (hand, lambda: (ours(), None)[1]),
        "float of all": (lambda: [*map(float, hand())], lambda: [*map(float, ours())]),
        "numpy of all": (lambda: [*map(np.asarray, hand())], lambda: [v.numpy() for v in ours()]),
        "value of all": (lambda: [*hand()], lambda: [v.value for v in ours()]),
        "float of one": (lambda: float(hand()[0]), lambda: float(ours()[0])),
        "v * 2 of one": (lambda: hand()[0] * 2, lambda: ours()[0] * 2),
        "assign one": (lambda: (hand(), jnp.copy(one)), assign),
        "assign_add one": (lambda: hand()[0] + one, assign_add),
    }


def looks(effort: Effort) -> list[Row]:
    """Return a row for each number of variables and look."""
    rows: list[Row] = []
    for n in COUNTS[: (4, 4, 2)[effort]]:
        rounds, calls = (61, 21, 1)[effort], (max(3, min(100, 1000 // (n + 10))), 1)[effort == 2]
        for look, pair in looks_at(by_hand(n, looks=True), ours(n)).items():
            steps = dict(zip(("hand-written", "jaxvars"), pair, strict=True))
            base, row = compared(steps, rounds, calls, waits=False)
            del row["way"]
            rows.append({"variables": n, "look": look, "hand-written, us": base["us"], **row})
    return rows


if __name__ == "__main__":
    run_jobs(__doc__, {"looks": looks})
