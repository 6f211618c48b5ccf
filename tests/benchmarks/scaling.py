"""Work of each device, from 1 to 256: what grows, what shrinks, what is sent.

    python tests/benchmarks/scaling.py            # up to 256 virtual CPU devices, a minute or two
    python tests/benchmarks/scaling.py --most 32

A training step (two layers of 1024 x 4096, Adam) is compiled for each number of devices; nothing
runs, and no memory is taken. *Strong* scaling keeps the batch of 1,024 rows and divides it, *weak*
gives 64 rows to each device. Three ways to shard the model: whole on each device ("data"), in four
parts ("data and model"), and in as many parts as there are devices, gathered as they are
needed ("FSDP"). Figures are XLA's for one device: flops, memory in all, and the bytes that
collectives exchange.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

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


def main() -> None:
    parser = argparse.ArgumentParser(description="Work of each device, from 1 to many.")
    parser.add_argument("--most", type=int, default=256, help="the largest number of devices")
    most = parser.parse_args().most
    jv.config.set_logical_devices(most)
    print(f"{'':16}{'':8}{'strong: 1,024 rows':>36}{'weak: 64 rows each':>38}")
    heads = "".join(f"{'Gflops':>14}{'MiB':>10}{'MiB sent':>12}" for _ in range(2))
    print(f"{'way':16}{'devices':>8}{heads}")
    for way, (model, _) in WAYS.items():
        for devices in (n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256) if model <= n <= most):
            print(f"{way:16}{devices:8}", end="")
            for rows in (ROWS, ROWS_EACH * devices // model):
                plan = plan_for(devices, rows, way)
                memory, sent = plan.memory["total"] / 2**20, plan.communication / 2**20
                print(f"{plan.flops / 1e9:14.3f}{memory:10.1f}{sent:12.3f}", end="", flush=True)
            print()


if __name__ == "__main__":
    main()
