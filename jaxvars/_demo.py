"""The main job: train a network on handwritten digits with jaxvars, as a user would write it.

    python -m jaxvars

Read it from the top: the network, the optimizer, the training step, then the same step by hand
in plain JAX, and what is printed and drawn about them.

Rules this file keeps:
- it is a user's program: of the package it uses what `import jaxvars` gives, and the digits;
- what is printed was measured in this run; the two steps are timed in turns;
- it works without a terminal, and without matplotlib.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv
from jaxvars import _digits

if TYPE_CHECKING:
    import optax

Array: TypeAlias = jax.Array
Step: TypeAlias = Callable[[Any, Any], Array]  # images, labels -> loss

_SIZES = (64, 128, 64, 10)
_BATCH = 64
_RATE = 2e-3
_ROUNDS, _STEPS = 15, 50  # of timing


# ---------------------------------------------------------------- the network
@final
class Dense(jv.Module):
    """Multiply by a matrix, add a vector."""

    def __init__(self, key: Array, inputs: int, outputs: int) -> None:
        start = jax.random.normal(key, (inputs, outputs)) * (2 / inputs) ** 0.5
        self.kernel = jv.Variable(start, name="kernel")
        self.bias = jv.Variable(jnp.zeros(outputs), name="bias")

    def __call__(self, x: Array) -> Array:
        """Map [batch, inputs] to [batch, outputs]."""
        return x @ self.kernel + self.bias


@final
class Network(jv.Module):
    """Dense layers with relu between them."""

    def __init__(self, key: Array, sizes: Sequence[int]) -> None:
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = [Dense(*args) for args in zip(keys, sizes[:-1], sizes[1:], strict=True)]

    def __call__(self, images: Array) -> Array:
        """Map images [batch, 8, 8] to logits [batch, 10]."""
        x = images.reshape(len(images), -1)
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


@final
class Optimizer(jv.Module):
    """An optax transformation whose state lives in Variables: it is compiled with the rest."""

    def __init__(
        self, transform: optax.GradientTransformation, variables: dict[str, jv.Variable]
    ) -> None:
        self.transform = transform
        self.state = jax.tree.map(
            lambda x: jv.Variable(x, trainable=False), transform.init(_values(variables))
        )

    def apply(self, variables: dict[str, jv.Variable], grads: dict[str, Array]) -> None:
        """Move the variables, and the state, by one step."""
        updates, state = self.transform.update(grads, _values(self.state), _values(variables))
        for path, variable in variables.items():
            variable.assign_add(updates[path])
        jax.tree.map(lambda old, new: old.assign(new), self.state, state, is_leaf=_is_variable)


def _is_variable(x: object) -> bool:
    return isinstance(x, jv.Variable)


def _values(tree: Any) -> Any:
    """Return a pytree of Variables as one of arrays: flattening a Variable reads it."""
    return jax.tree.map(lambda x: x, tree)


def _cross_entropy(logits: Array, labels: Array) -> Array:
    import optax

    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def make_step(model: Network, optimizer: Optimizer) -> Step:
    """Return a compiled training step: it updates the variables and returns the loss."""

    @jv.compile
    def step(images: Array, labels: Array) -> Array:
        with jv.GradientTape() as tape:
            loss = _cross_entropy(model(images), labels)
        weights = model.named_variables
        optimizer.apply(weights, tape.gradient(loss, weights))
        return loss

    return step


# ---------------------------------------------------------------- training
@final
@dataclass
class History:
    """What training went through.

    Attributes:
        losses: of each step.
        accuracies: on the test images, after each epoch, from 0 to 1.
    """

    losses: list[float] = field(default_factory=list[float])
    accuracies: list[float] = field(default_factory=list[float])


@final
class Run:
    """A network, its data and its training step."""

    def __init__(self, seed: int) -> None:
        self.digits = _digits.load()
        self.model = Network(jax.random.key(seed), _SIZES)
        self.optimizer = Optimizer(_transform(), self.model.named_variables)
        self.step = make_step(self.model, self.optimizer)
        self.predict = jv.compile(lambda images: jax.nn.softmax(self.model(images)))
        self.random = np.random.default_rng(seed)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield one epoch of shuffled batches; a rest that fills none is left out."""
        order = self.random.permutation(len(self.digits.train_labels))
        for start in range(0, len(order) - _BATCH + 1, _BATCH):
            batch = order[start : start + _BATCH]
            yield self.digits.train_images[batch], self.digits.train_labels[batch]

    def train(self, epochs: int, report: Callable[[float, float], None]) -> History:
        """Train, and report the mean loss and the accuracy after each epoch."""
        history = History()
        for _ in range(epochs):
            losses = [float(x) for x in [self.step(*batch) for batch in self.batches()]]
            history.losses += losses
            history.accuracies.append(self.accuracy())
            report(statistics.fmean(losses), history.accuracies[-1])
        return history

    def accuracy(self) -> float:
        """Return which part of the test images is recognised."""
        found = np.argmax(self.predict(self.digits.test_images), axis=-1)
        return float(np.mean(found == self.digits.test_labels))


def _transform() -> optax.GradientTransformation:
    import optax

    return optax.adamw(_RATE, weight_decay=1e-2)


# ---------------------------------------------------------------- the same by hand
def make_step_by_hand(model: Network) -> Step:
    """Return the training step in plain JAX, from the same values: state in one donated tuple."""
    transform = _transform()

    def loss_of(params: dict[str, Array], images: Array, labels: Array) -> Array:
        x = images.reshape(len(images), -1)
        for i in range(len(_SIZES) - 2):
            x = jax.nn.relu(x @ params[f"layers/{i}/kernel"] + params[f"layers/{i}/bias"])
        last = len(_SIZES) - 2
        x = x @ params[f"layers/{last}/kernel"] + params[f"layers/{last}/bias"]
        return _cross_entropy(x, labels)

    params = {path: jnp.array(variable) for path, variable in model.named_variables.items()}
    leaves, treedef = jax.tree.flatten((params, transform.init(params)))

    @partial(jax.jit, donate_argnums=0)
    def step(leaves: list[Array], images: Array, labels: Array) -> tuple[Array, list[Array]]:
        params, state = jax.tree.unflatten(treedef, leaves)
        loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
        updates, state = transform.update(grads, state, params)
        params = jax.tree.map(jnp.add, params, updates)
        return loss, tuple(jax.tree.leaves((params, state)))

    held = [tuple(leaves)]

    def run(images: Array, labels: Array) -> Array:
        loss, held[0] = step(held[0], images, labels)
        return loss

    return run


def compare(run: Run) -> tuple[float, float]:
    """Return the steps per second with jaxvars, and by hand: medians of rounds taken in turns."""
    images, labels = map(jnp.asarray, next(run.batches()))
    steps = (run.step, make_step_by_hand(run.model))
    speeds: tuple[list[float], list[float]] = ([], [])
    for step in steps:
        for _ in range(3):  # compiled before the clock runs
            step(images, labels).block_until_ready()
    for _ in range(_ROUNDS):
        for step, found in zip(steps, speeds, strict=True):
            start = time.perf_counter()
            for _ in range(_STEPS):
                loss = step(images, labels)
            loss.block_until_ready()
            found.append(_STEPS / (time.perf_counter() - start))
    return statistics.median(speeds[0]), statistics.median(speeds[1])
