"""A training run that stops and goes on: python tests/checkpoint_programs.py DIRECTORY STEPS."""

from __future__ import annotations

import hashlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv


class Net(jv.Module):
    def __init__(self):
        self.rng = jv.random.Generator(7)
        self.hidden = jv.Variable(self.rng.normal((4, 8)), name="hidden")
        self.out = jv.Variable(self.rng.normal((8, 1)), name="out")

    def __call__(self, x):
        h = jnp.tanh(x @ self.hidden)
        keep = self.rng.bernoulli(h.shape, 0.8)
        return jnp.where(keep, h / 0.8, 0.0) @ self.out


class Training:
    """A model with dropout, Adam, a count of steps, and its own stream of data."""

    def __init__(self):
        self.model = Net()
        self.data = jv.random.Generator(8)
        self.optimizer = jv.optimizers.Adam(0.05)
        self.steps = jv.Variable(0, trainable=False, name="steps")

    @jv.compile
    def step(self):
        x = self.data.normal((16, 4))
        with jv.GradientTape() as tape:
            loss = jnp.mean((self.model(x) - jnp.sum(x, axis=1, keepdims=True)) ** 2)
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.steps.assign_add(1)
        return loss

    def manager(self, directory, **options):
        checkpoint = jv.checkpoint.Checkpoint(
            model=self.model, data=self.data, optimizer=self.optimizer, steps=self.steps
        )
        return jv.checkpoint.CheckpointManager(checkpoint, directory, **options)

    def digest(self):
        """The bits of all variables."""
        state = jv.State.of(model=self.model, data=self.data, rest=[self.optimizer, self.steps])
        words = {path: np.asarray(value).tobytes().hex() for path, value in state.items()}
        return hashlib.sha256(repr(sorted(words.items())).encode()).hexdigest()


def main():
    directory, steps = sys.argv[1], int(sys.argv[2])
    training = Training()
    path = training.manager(directory).restore_or_initialize()
    for _ in range(steps):
        training.step()
    print(path, training.digest(), len(jax.devices()))


if __name__ == "__main__":
    main()
