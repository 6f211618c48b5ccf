"""A training run that works in one or many processes, and goes on after any of them has died.

    python -m jaxvars.launch -n 2 train_two_processes.py folder

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


def train(folder: Path, after_step: Callable[[int], None] = lambda step: None) -> list[np.ndarray]:
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
    checkpoint = jv.checkpoint.Checkpoint(model=model, optimizer=optimizer)
    manager = jv.checkpoint.CheckpointManager(checkpoint, folder, max_to_keep=2, format="npz")
    manager.restore_or_initialize()
    jv.parallel.check_same(checkpoint)

    while (step := int(optimizer.iterations)) < STEPS:
        part = jv.parallel.local_part(batch_of(step))
        loss = train_step(*jv.parallel.global_batch(part, jax.P("data")))
        leaving = jv.parallel.is_preempted(step)  # the machine, or the launcher, has to stop
        if jv.parallel.is_chief():
            print(f"step {step} loss {float(loss):.6f}")
            if leaving or (step + 1) % SAVE_EVERY == 0:
                manager.save()
        after_step(step)
        if leaving:
            break
    return [weight.numpy() for weight in model.variables]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network.")
    parser.add_argument("folder", type=Path, help="where checkpoints and the result are kept")
    folder = parser.parse_args().folder
    jv.parallel.initialize()  # before anything else of JAX
    with jv.use_mesh({"data": -1}):  # all devices of all processes
        weights = train(folder / "checkpoints")
    if jv.parallel.is_chief():
        np.savez(folder / "weights.npz", *weights)


if __name__ == "__main__":
    main()
