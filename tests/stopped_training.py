"""A training run that may be told to stop at any moment, and goes on where it has stopped.

    python stopped_training.py FOLDER STEPS FORMAT

Each step adds its number to the file `steps` in the folder, at the end `weights.npz` is written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv

EVALUATE_EVERY = 5


class Net(jv.Module):
    """A network that draws noise, as Dropout does."""

    def __init__(self):
        self.hidden = jv.Variable(np.linspace(-1, 1, 32, dtype="float32").reshape(4, 8))
        self.out = jv.Variable(np.linspace(1, -1, 8, dtype="float32").reshape(8, 1))
        self.rng = jv.random.Generator.from_seed(7)

    def __call__(self, x):
        return jnp.tanh(x @ self.hidden + self.rng.normal((8,), stddev=0.1)) @ self.out


def batches(first: int, last: int) -> Iterable[jax.Array]:
    steps = map(np.random.default_rng, range(first, last))
    parts = (jv.parallel.local_part(each.normal(size=(16, 4)).astype("float32")) for each in steps)
    return jv.parallel.Batches(parts, local=True, thread=True)


def main(folder: Path, steps: int, form: str) -> None:
    net, adam, error = Net(), jv.optimizers.Adam(0.01), jv.metrics.Mean()
    adam.build(net.trainable_variables)

    def loss_of(x):
        return ((net(x) - jnp.sin(x.sum(1, keepdims=True))) ** 2).mean()

    train = jv.compile(lambda x: adam.minimize(lambda: loss_of(x), net.trainable_variables))
    evaluate = jv.compile(lambda x: error.update_state(loss_of(x)))
    manager = jv.checkpoint.CheckpointManager(
        jv.checkpoint.Checkpoint(net=net, adam=adam, error=error), folder / "run", max_to_keep=3,
        step_counter=adam.iterations, checkpoint_interval=7, async_save=True, format=form,
    )  # fmt: skip
    manager.restore_or_initialize()
    start, is_chief = int(adam.iterations), jv.parallel.is_chief()
    for step, x in enumerate(batches(start, steps), start):
        stops = jv.parallel.is_preempted(step)
        if step == start:
            print("asked", flush=True)
        if stops:
            break
        train(x)
        if is_chief:
            with (folder / "steps").open("a") as file:
                file.write(f"{step}\n")
        print("step", step, flush=True)
        if (step + 1) % EVALUATE_EVERY == 0:
            for each in batches(1000, 1004):
                evaluate(each)
        if is_chief:
            manager.save()
        time.sleep(0.02)  # a larger step takes as long
    if is_chief:
        manager.save(check_interval=False)
        manager.wait()
        np.savez(folder / "weights.npz", *map(np.asarray, (*net.variables, error.result())))
    print("ends at", int(adam.iterations), flush=True)


if __name__ == "__main__":
    jv.parallel.initialize()
    with jv.use_mesh({"data": -1}):
        main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
