"""How much memory the first three steps take beyond the state, and the same steps hand-written.

    python tests/benchmarks/memory.py

The state is eight parameters and two slots for each, as of Adam. Each case runs in a process of its
own, in which large blocks are given back to the system when they are free. Linux only: what counts
is the most memory that was resident during the steps, above what was before the first of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import Effort, Row, fresh, run_jobs

CASES = ("hand-written", "hand-written, mesh", "there", "created", "read", "restored", "mesh")
COUNT = 8


def _resident(line: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) * 1024 for x in lines if x.startswith(line))


def measure(case: str, megabytes: int) -> float:
    """Return the memory beyond the state, as a share of it."""
    import jax
    import jax.numpy as jnp

    size = megabytes * 2**20 // (3 * COUNT * 4)
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.NamedSharding(mesh, jax.P("x")) if "mesh" in case else None

    def full(value: float) -> jax.Array:
        return jax.device_put(jnp.full(size, value), sharding)

    def update(w: Any, m: Any, v: Any) -> tuple[Any, Any, Any]:
        g = w * 1e-3 + 1
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return w - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v

    run = (hand_written if case.startswith("hand-written") else ours)(case, full, update, sharding)
    resident = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # so that the most is of the steps alone
    for _ in range(3):
        run()
    created = 2 / 3 if case == "created" else 0
    return (_resident("VmHWM") - resident) / (megabytes * 2**20) - created


def hand_written(_: str, full: Any, update: Any, __: Any) -> Callable[[], None]:
    """Return the step as one writes it with jax.jit, donated."""
    import jax

    state = [(full(0.1 * i), full(0.0), full(0.0)) for i in range(COUNT)]
    step = jax.jit(lambda state: [update(*each) for each in state], donate_argnums=0)

    def run() -> None:
        nonlocal state
        state = jax.block_until_ready(step(state))

    return run


def ours(case: str, full: Any, update: Any, sharding: Any) -> Callable[[], None]:
    """Return the step of Variables."""
    import jax

    import jaxvars as jv

    def make(value: float) -> jv.Variable:
        return jv.Variable(lambda: full(value), sharding=sharding)

    weights = [make(0.1 * i) for i in range(COUNT)]
    slots = [] if case == "created" else [(make(0.0), make(0.0)) for _ in weights]
    if case == "restored":
        saved = jv.checkpoint.Checkpoint(weights=weights, slots=slots)
        saved.restore(saved.save(tempfile.mkdtemp() + "/c"))

    @jv.compile
    def step() -> None:
        if not slots:
            slots.extend((make(0.0), make(0.0)) for _ in weights)
        for w, (m, v) in zip(weights, slots, strict=True):
            for variable, value in zip((w, m, v), update(w, m, v), strict=True):
                variable.assign(value)

    def run() -> None:
        step()
        jax.block_until_ready(weights[0] * 1)

    jax.block_until_ready([w.value for w in weights] if case == "read" else weights[0] * 1)
    return run


def memory(effort: Effort) -> list[Row]:
    """Return the memory of each case beyond the state, as a part of it."""
    environment = {
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    code = "import sys, memory; print(memory.measure(sys.argv[1], int(sys.argv[2])))"
    cases = CASES[:: (1, 1, 3)[effort]]
    programs = [(code, case, str((288, 96, 24)[effort])) for case in cases]
    found = fresh(programs, 1, **environment)
    return [
        {"case": case, "of the state, beyond it": share}
        for case, (share,) in zip(cases, found, strict=True)
    ]


if __name__ == "__main__":
    run_jobs(__doc__, {"memory": memory})
