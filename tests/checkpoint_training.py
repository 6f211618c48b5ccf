"""A training run for the tests of checkpoints, which goes on in another process.

`python checkpoint_training.py checkpoint FROM STEPS TO` restores, trains and saves; with `manager`,
FROM is a manager's directory, and what it restored is printed.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp

import jaxvars as jv


class Net(jv.Module):
    """A network that makes its variables when it is first called, and draws noise."""

    def __init__(self):
        self.hidden = self.out = None
        self.rng = jv.random.Generator.from_seed(7)

    def __call__(self, x):
        if self.hidden is None:
            self.hidden = jv.Variable(self.rng.normal((x.shape[-1], 8)), name="hidden")
            self.out = jv.Variable(self.rng.normal((8, 2)), name="out")
        noise = self.rng.normal((8,), stddev=0.1)
        return (jax.nn.relu(x @ self.hidden) + noise) @ self.out


class Training:
    """All of a training run: what it is made of, a compiled step, and its checkpoint."""

    def __init__(self):
        self.net, self.optimizer = Net(), jv.optimizers.Adam(0.05)
        self.data = jv.random.Generator.from_seed(3)
        self.steps = jv.Variable(0, trainable=False, name="steps")
        self.checkpoint = jv.checkpoint.Checkpoint(
            net=self.net, optimizer=self.optimizer, data=self.data, steps=self.steps
        )
        self.step = jv.compile(self._step)

    def _step(self):
        x = self.data.normal((4, 3))
        with jv.GradientTape() as tape:
            loss = jnp.mean((self.net(x) - x[:, :2]) ** 2)
        weights = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.steps.assign_add(1)
        return loss

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()


def main(how: str, source: str, steps: str, target: str) -> None:
    training = Training()
    if how == "manager":
        manager = jv.checkpoint.CheckpointManager(training.checkpoint, source)
        print(manager.restore_or_initialize())
        training.run(int(steps))
    else:
        status = training.checkpoint.restore(source)
        training.run(int(steps))
        status.assert_consumed()
    training.checkpoint.write(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
