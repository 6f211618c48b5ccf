"""Work of each device, from 1 to 256: what grows, what shrinks, what is sent.

    python tests/benchmarks/scaling.py     # up to 256 virtual CPU devices, a minute or two

A training step (two layers of 1024 x 4096, Adam) is compiled for each number of devices; nothing
runs, and no memory is taken. *Strong* scaling keeps the batch of 1,024 rows and divides it, *weak*
gives 64 rows to each device. Three ways to shard the model: whole on each device ("data"), in four
parts ("data and model"), and in as many parts as there are devices, gathered as they are
needed ("FSDP"). Figures are XLA's for one device: flops, memory in all, and the bytes that
collectives exchange.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from measuring import Effort, Row, run_jobs

import jaxvars as jv

WIDTH, HIDDEN, ROWS, ROWS_EACH = 1024, 4096, 1024, 64
WAYS = {
    "data": (1, (jax.P(), jax.P())),
    "data and model": (4, (jax.P(None, "model"), jax.P("model", None))),
    "FSDP": (1, (jax.P("data", None), jax.P("data", None))),
}


def plan_for(devices: int, rows: int, way: str) -> Any:
    """Return the plan of a training step on some devices."""
    model, (up_spec, down_spec) = WAYS[way]

    def build() -> jv.Function:
        up = jv.Variable(lambda: jnp.zeros((WIDTH, HIDDEN)), sharding=up_spec, name="up")
        down = jv.Variable(lambda: jnp.zeros((HIDDEN, WIDTH)), sharding=down_spec, name="down")
        adam = jv.optimizers.Adam(1e-3)
        adam.build([up, down])

        @jv.compile(in_shardings=jax.P("data"))
        def step(x: jax.Array) -> jax.Array:
            with jv.GradientTape() as tape:
                loss = jnp.mean((jax.nn.relu(x @ up) @ down) ** 2)
            adam.apply_gradients(zip(tape.gradient(loss, [up, down]), [up, down], strict=True))
            return loss

        return step

    with jv.use_mesh({"data": devices // model, "model": model}):
        return jv.plan(jv.abstract(build), jv.TensorSpec((rows, WIDTH)))


def scaling(effort: Effort) -> list[Row]:
    """Return a row for each way and number of devices."""
    most = (256, 32, 4)[effort]
    jv.config.set_logical_devices(most)
    rows: list[Row] = []
    for way, (model, _) in WAYS.items():
        for devices in (2**i for i in range(9) if model <= 2**i <= most):
            row: Row = {"way": way, "devices": devices}
            for kind, size in {"strong": ROWS, "weak": ROWS_EACH * devices // model}.items():
                plan = plan_for(devices, size, way)
                memory, sent = plan.memory["total"] / 2**20, plan.communication / 2**20
                row |= {f"{kind}, Gflops": plan.flops / 1e9, f"{kind}, MiB": memory}
                row[f"{kind}, MiB sent"] = sent
            rows.append(row)
    return rows


if __name__ == "__main__":
    run_jobs(__doc__, {"scaling": scaling})
