"""Programs that tests/export/test_export.py and tests/goldens/make_saved_golden.py save."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxvars as jv

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
Y = np.array([0, 1, 1, 0], np.int32)
BATCH, LABELS = jv.TensorSpec((None, 3)), jv.TensorSpec((None,), "int32")


class Net(jv.Module):
    """Two layers, with a normalization that keeps the mean of what it saw."""

    def __init__(self):
        first = jv.Variable(np.linspace(-0.5, 0.5, 12, dtype=np.float32).reshape(3, 4), name="w")
        second = jv.Variable(np.linspace(0.5, -0.5, 8, dtype=np.float32).reshape(4, 2), name="w")
        self.layers = [{"w": first}, jnp.tanh, {"w": second}]
        self.mean = jv.Variable(jnp.zeros(4), trainable=False, name="mean")

    @jv.compile
    def __call__(self, x, training=False):
        h = self.layers[1](x @ self.layers[0]["w"])
        if training:
            self.mean.assign(0.9 * self.mean + 0.1 * h.mean(0))
        return (h - self.mean) @ self.layers[2]["w"]


class Trainer(jv.Module):
    """A training step, with all that it changes."""

    def __init__(self):
        self.net = Net()
        self.optimizer = jv.optimizers.Adam(1e-2)
        self.rng = jv.random.Generator(3)

    @jv.compile(guard="finite")
    def step(self, x, y):
        with jv.GradientTape() as tape:
            logits = self.net(x + self.rng.normal(x.shape, stddev=0.1), training=True)
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
        weights = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss, "steps": self.optimizer.iterations.value}


def loss_and_gradients(model, x, weights):
    with jv.GradientTape() as tape:
        x = jnp.asarray(x)
        tape.watch(x)
        loss = jnp.square(model(x)).sum()
    return jax.tree.map(np.asarray, (loss, tape.gradient(loss, [x, *weights])))
