"""A training run that works in one or many processes, and goes on after any of them has died.

    mpirun -n 2 python train_two_processes.py folder
    mpirun -n 2 python train_two_processes.py --sharded folder

or, without any engine,

    export JAX_COORDINATOR_ADDRESS=localhost:12345 JAX_NUM_PROCESSES=2
    JAX_PROCESS_ID=0 python train_two_processes.py folder &
    JAX_PROCESS_ID=1 python train_two_processes.py folder; wait

The shape to copy: `initialize` first; make the model, the same in each process; restore the last
checkpoint, if there is one; then go on from the step that it is of, saving now and then. The batch
of a step is a function of the step alone, so that a training run which was interrupted sees what it
would have seen anyway.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import jaxvars as jv

STEPS, SAVE_EVERY, BATCH = 12, 4, 8


class Net(jv.Module):
    def __init__(self):
        uniform = jv.initializers.GlorotUniform
        self.hidden = jv.Variable(uniform(seed=1)((4, 8)), name="hidden")  # a seed: so they are the
        self.out = jv.Variable(uniform(seed=2)((8, 1)), name="out")  # same in each process

    def __call__(self, x):
        return jax.nn.tanh(x @ self.hidden) @ self.out


def batch_of(step: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(step).normal(size=(BATCH, 4)).astype(np.float32)
    return x, np.sin(x.sum(1, keepdims=True))


def train(
    folder: Path, after_step: Callable[[int], None] = lambda step: None, *, sharded: bool = False
) -> list[np.ndarray]:
    """Train, and return the weights."""
    model, optimizer = Net(), jv.optimizers.Adam(0.01)

    @jv.compile
    def train_step(x, y):
        with jv.GradientTape() as tape:
            loss = ((model(x) - y) ** 2).mean()
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    optimizer.build(model.trainable_variables)
    if sharded:  # each process has a part of each weight and of its slots
        jv.place(model, jv.parallel.fully_sharded("data"), optimizer=optimizer)
    checkpoint = jv.checkpoint.Checkpoint(model=model, optimizer=optimizer)
    manager = jv.checkpoint.CheckpointManager(checkpoint, folder, max_to_keep=2, format="npz")
    manager.restore_or_initialize()
    jv.parallel.check_same(checkpoint)

    while (step := int(optimizer.iterations)) < STEPS:
        part = jv.parallel.local_part(batch_of(step))
        loss = train_step(*jv.parallel.global_batch(part, jax.P("data")))
        leaving = jv.parallel.is_preempted(step)  # the machine is to be taken away
        if jv.parallel.is_chief():
            print(f"step {step} loss {float(loss):.6f}", flush=True)
        saves = sharded or jv.parallel.is_chief()  # all of them gather the parts, and one writes
        if saves and (leaving or (step + 1) % SAVE_EVERY == 0):
            manager.save()
        after_step(step)
        if leaving:
            break
    whole = jv.compile(lambda: jv.shard([weight.value for weight in model.variables], jax.P()))
    return list(map(np.asarray, whole()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network.")
    parser.add_argument("folder", type=Path, help="where checkpoints and the result are kept")
    parser.add_argument("--sharded", action="store_true", help="shard the weights, too")
    given = parser.parse_args()
    run(given.folder, sharded=given.sharded)


def run(folder: Path | str, *options: Callable[[int], None], sharded: bool = False) -> None:
    """Train in this process and those beside it, and write the result."""
    folder = Path(folder)
    jv.parallel.initialize()  # before anything else of JAX
    with jv.use_mesh({"data": -1}):  # all devices of all processes
        weights = train(folder / "checkpoints", *options, sharded=sharded)
    if jv.parallel.is_chief():
        np.savez(folder / "weights.npz", *weights)


if __name__ == "__main__":
    main()
