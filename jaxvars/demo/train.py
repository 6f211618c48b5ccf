"""The main job: train a network on handwritten digits with jaxvars, as a user would write it.

Read it from the top: the network, the optimizer, the training step, then the same step
hand-written in plain JAX, and what is printed about them.

Rules this file keeps:
- it is a user's program: of the package it uses what `import jaxvars` gives, and the digits;
- what is printed was measured in this run; the two steps are timed in turns.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv
from jaxvars.demo import digits as _digits
from jaxvars.demo.picture import History, draw

if TYPE_CHECKING:
    import optax

Array: TypeAlias = jax.Array
Step: TypeAlias = Callable[[Any, Any], Array]  # images, labels -> loss

_SIZES = (64, 128, 64, 10)
_BATCH = 64
_RATE = 2e-3
_ROUNDS, _STEPS = 30, 25  # of timing


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


def _compute_loss(logits: Array, labels: Array) -> Array:
    import optax

    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def make_optimizer(model: Network) -> jv.optimizers.Optimizer:
    """Return an optimizer whose state is Variables: it is compiled with the rest."""
    optimizer = jv.optimizers.Optax(_make_transform())
    optimizer.build(model)
    return optimizer


def _make_transform() -> optax.GradientTransformation:
    import optax

    return optax.adamw(_RATE, weight_decay=1e-2)


def make_step(model: Network, optimizer: jv.optimizers.Optimizer) -> Step:
    """Return a compiled training step: it updates the variables and returns the loss."""

    @jv.compile
    def step(images: Array, labels: Array) -> Array:
        with jv.GradientTape() as tape:
            loss = _compute_loss(model(images), labels)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return step


# ---------------------------------------------------------------- training
@final
class Run:
    """A network, its data and its training step."""

    def __init__(self, seed: int) -> None:
        self.digits = _digits.load()
        self.model = Network(jax.random.key(seed), _SIZES)
        self.optimizer = make_optimizer(self.model)
        self.step = make_step(self.model, self.optimizer)
        self.predict = jv.compile(lambda images: jax.nn.softmax(self.model(images)))
        self.random = np.random.default_rng(seed)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield one epoch of shuffled batches; a rest that fills none is left out."""
        order = self.random.permutation(len(self.digits.train_labels))
        for start in range(0, len(order) - _BATCH + 1, _BATCH):
            batch = order[start : start + _BATCH]
            yield self.digits.train_images[batch], self.digits.train_labels[batch]

    def train(self, epochs: int, report: Callable[[int, float, float], None]) -> History:
        """Train; after each epoch report its number, the mean loss and the accuracy."""
        history = History()
        for epoch in range(1, epochs + 1):
            losses = [float(x) for x in [self.step(*batch) for batch in self.batches()]]
            history.losses += losses
            history.accuracies.append(self.accuracy())
            report(epoch, statistics.fmean(losses), history.accuracies[-1])
        return history

    def accuracy(self) -> float:
        """Return which part of the test images is recognised."""
        found = np.argmax(self.predict(self.digits.test_images), axis=-1)
        return float(np.mean(found == self.digits.test_labels))


# ---------------------------------------------------------------- the same, hand-written
def make_step_by_hand(model: Network) -> Step:
    """Return the training step in plain JAX: all of its state in one donated tuple."""
    import optax

    transform, depth = _make_transform(), len(model.layers)

    def loss_of(weights: dict[str, Array], images: Array, labels: Array) -> Array:
        x = images.reshape(len(images), -1)
        for i in range(depth):
            x = x @ weights[f"layers/{i}/kernel"] + weights[f"layers/{i}/bias"]
            x = jax.nn.relu(x) if i < depth - 1 else x
        return _compute_loss(x, labels)

    @partial(jax.jit, donate_argnums=0)
    def step(held: Any, images: Array, labels: Array) -> tuple[Any, Array]:
        weights, state = held
        loss, grads = jax.value_and_grad(loss_of)(weights, images, labels)
        updates, state = transform.update(grads, state, weights)
        return (optax.apply_updates(weights, updates), state), loss

    weights = {name: jnp.copy(w.value) for name, w in model.named_variables.items()}
    held: Any = weights, transform.init(weights)

    def run(images: Array, labels: Array) -> Array:
        nonlocal held
        held, loss = step(held, images, labels)
        return loss

    return run


@final
@dataclass
class Comparison:
    """The two steps side by side.

    Attributes:
        ours: steps per second with jaxvars, the median of the rounds.
        by_hand: the same for the step in plain JAX.
        ratio: the time of ours over that of the hand-written step, the median of the rounds.
        difference: the largest difference of a loss between them.
    """

    ours: float
    by_hand: float
    ratio: float
    difference: float


def compare(run: Run) -> Comparison:
    """Time the step with jaxvars and the hand-written one, in turns, and put the variables back."""
    before = jv.State.of(run.model)
    batch = tuple(map(jnp.asarray, next(run.batches())))
    ours = make_step(run.model, make_optimizer(run.model))  # both from the start
    by_hand = make_step_by_hand(run.model)
    for _ in range(3):  # compiled before the clock runs
        jax.block_until_ready((ours(*batch), by_hand(*batch)))
    rounds = [(*_time(ours, batch), *_time(by_hand, batch)) for _ in range(_ROUNDS)]
    before.commit()
    fast, losses, plain, expected = np.asarray(rounds).T
    return Comparison(
        ours=float(np.median(fast)),
        by_hand=float(np.median(plain)),
        ratio=float(np.median(plain / fast)),
        difference=float(np.abs(losses - expected).max()),
    )


def _time(step: Step, batch: tuple[Any, ...]) -> tuple[float, float]:
    """Return the steps per second of one round, and its last loss."""
    start = time.perf_counter()
    for _ in range(_STEPS - 1):
        step(*batch)
    loss = float(step(*batch))
    return _STEPS / (time.perf_counter() - start), loss


# ---------------------------------------------------------------- what is printed
def run(*, epochs: int, seed: int, save: Path | None) -> None:
    """Train, and print what came out.

    Args:
        epochs: passes over the training images.
        seed: of the first values and the order of the images.
        save: where to draw a picture, if matplotlib is there.
    """
    picture = _check_drawable(save)
    run = Run(seed)
    known, held = len(run.digits.train_labels), len(run.digits.test_labels)
    print(f"{known} handwritten digits to learn from, {held} held out; ", end="")
    print(f"JAX {jax.__version__}, {jax.devices()[0].platform}\n")
    history = _train_shown(run, epochs)
    print()
    run.model.summary()
    accuracy = run.accuracy()
    print(f"\nTest accuracy: {accuracy:.1%} ({round(accuracy * held)} of {held} images)")
    _print_speed(compare(run))
    if picture is not None:
        probabilities = np.asarray(run.predict(run.digits.test_images))
        draw(picture, history, run.digits.test_images, run.digits.test_labels, probabilities)
        print(f"Picture:       {picture}")
    _print_next(save)


def _check_drawable(save: Path | None) -> Path | None:
    if save is None or importlib.util.find_spec("matplotlib") is not None:
        return save
    print(
        f"{save} will not be drawn: matplotlib is not installed (pip install matplotlib).\n",
        file=sys.stderr,
    )
    return None


def _train_shown(run: Run, epochs: int) -> History:
    """Train behind a progress bar; without a terminal, print a line now and then."""
    live = sys.stdout.isatty()
    with jv.progress(total=epochs, description="epoch", enabled=live) as bar:

        def report(epoch: int, loss: float, accuracy: float) -> None:
            bar.show(loss=loss, accuracy=f"{accuracy:.1%}")
            bar.advance()
            if not live and (epoch % -(-epochs // 8) == 0 or epoch == epochs):
                told = f"loss {loss:.4f}  test accuracy {accuracy:.1%}"
                print(f"epoch {epoch:>3}/{epochs}  {told}", flush=True)

        return run.train(epochs, report)


def _print_speed(speed: Comparison) -> None:
    print(
        f"Speed:         {speed.ours:,.0f} steps/s with jaxvars, {speed.by_hand:,.0f} hand-written "
        f"in plain JAX: {speed.ratio:.2f}x the time\n"
        f"               (medians of {_ROUNDS} rounds of {_STEPS} steps, in turns; largest "
        f"difference of a loss: {speed.difference:.1g})"
    )


def _print_next(save: Path | None) -> None:
    print(f"\nNext, in the source tree:\n{_NEXT}")
    if save is None:
        print("\nA picture of it: python -m jaxvars --save digits.png")


_NEXT = """\
  jaxvars/demo/train.py              this program
  notebooks/01_variables.ipynb       all about variables
  tests/test_tour.py                 the main ideas, as tests
  README.md                          what it is, and what it is not"""
