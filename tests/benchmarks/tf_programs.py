"""What programs written for TensorFlow cost in `jaxvars.tf` over TensorFlow, where it is installed.

python tests/benchmarks/tf_programs.py

Each program is one function of `tf`, which stands for either library. A step is a training step,
eagerly or as a `tf.function`; the first one is timed in a fresh process, its variables made before.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
import os
from typing import Any

import numpy as np
from measuring import Effort, Row, Step, fresh, pairs, ratios, run_jobs, turn

OURS, THEIRS = "jaxvars.tf", "tensorflow"
MODES = {"eager": False, "tf.function": True}
NONE = [{"program": "none: TensorFlow is not installed"}]


def _data(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32) * np.float32(0.1)


def _training(tf: Any, loss: Any, variables: list[Any], optimizer: Any, *metrics: Any) -> Step:
    """Return a training step of a function that returns a loss, or a loss and logits."""

    def step() -> Any:
        with tf.GradientTape() as tape:
            value, *rest = loss()
        gradients = tape.gradient(value, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        for metric in metrics:
            metric(value, *rest)
        return value

    return step


def _cross_entropy(tf: Any, labels: Any, logits: Any) -> Any:
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(each)


def linear_regression(tf: Any) -> Step:
    x, y = tf.constant(_data(64, 10)), tf.constant(_data(64, 1))
    w, b = tf.Variable(tf.zeros([10, 1])), tf.Variable(0.0)

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(0.1 * dw)
        b.assign_sub(0.1 * db)
        return loss

    return step


def _layers(tf: Any, *sizes: int) -> list[Any]:
    shapes = [shape for pair in itertools.pairwise(sizes) for shape in (pair, pair[1:])]
    return [tf.Variable(_data(*shape)) for shape in shapes]


def perceptron(tf: Any, optimizer: Any = None, *metrics: Any) -> Step:
    x, labels = tf.constant(_data(64, 10)), tf.constant(np.arange(64) % 10)
    variables = w1, b1, w2, b2 = _layers(tf, 10, 32, 10)

    def loss() -> Any:
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
        return _cross_entropy(tf, labels, logits), logits

    optimizer = optimizer or tf.keras.optimizers.SGD(0.1)
    return _training(tf, loss, variables, optimizer, *metrics)


def with_metrics(tf: Any) -> Step:
    mean, accuracy = tf.keras.metrics.Mean(), tf.keras.metrics.SparseCategoricalAccuracy()
    labels = tf.constant(np.arange(64) % 10)
    notes = (lambda loss, _: mean.update_state(loss), lambda _, z: accuracy.update_state(labels, z))
    return perceptron(tf, tf.keras.optimizers.Adam(1e-3), *notes)


def convolutions(tf: Any) -> Step:
    images, labels = tf.constant(_data(16, 14, 14, 1)), tf.constant(np.arange(16) % 10)
    kernels = [tf.Variable(_data(3, 3, 1, 8)), tf.Variable(_data(3, 3, 8, 16))]
    w, b = _layers(tf, 144, 10)

    def loss() -> tuple[Any]:
        x = images
        for kernel in kernels:
            x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), 2, 2, "VALID")
        return (_cross_entropy(tf, labels, tf.matmul(tf.reshape(x, [16, -1]), w) + b),)

    return _training(tf, loss, [*kernels, w, b], tf.keras.optimizers.Adam(1e-3))


def recurrent(tf: Any) -> Step:
    sequences = tf.constant(_data(16, 10, 8))
    w, b = _layers(tf, 24, 64)

    def loss() -> tuple[Any]:
        h = c = tf.zeros([16, 16])
        for t in range(10):
            gates = tf.matmul(tf.concat([sequences[:, t], h], 1), w) + b
            i, f, o, g = tf.split(gates, 4, axis=1)
            c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
            h = tf.sigmoid(o) * tf.tanh(c)
        return (tf.reduce_mean(tf.square(h)),)

    return _training(tf, loss, [w, b], tf.keras.optimizers.SGD(0.1))


def transformer(tf: Any) -> Step:
    x = tf.constant(_data(8 * 16, 32))
    variables = wq, bq, w1, b1, w2, b2 = _layers(tf, 32, 96) + _layers(tf, 32, 64, 32)

    def normed(x: Any) -> Any:
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)

    def loss() -> tuple[Any]:
        parts = tf.split(tf.matmul(normed(x), wq) + bq, 3, axis=1)
        q, k, v = (tf.transpose(tf.reshape(p, [8, 16, 4, 8]), [0, 2, 1, 3]) for p in parts)
        shares = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / math.sqrt(8.0))
        seen = tf.reshape(tf.transpose(tf.matmul(shares, v), [0, 2, 1, 3]), [8 * 16, 32])
        h = x + seen
        h += tf.matmul(tf.nn.gelu(tf.matmul(normed(h), w1) + b1), w2) + b2
        return (tf.reduce_mean(tf.square(h)),)

    return _training(tf, loss, variables, tf.keras.optimizers.Adam(1e-3))


PROGRAMS = {
    "linear regression": linear_regression, "perceptron": perceptron, "with metrics": with_metrics,
    "convolutions": convolutions, "recurrent": recurrent, "transformer": transformer,
}  # fmt: skip


def made(library: str, name: str, mode: str) -> Step:
    """Return the step of a program, compiled or not."""
    os.environ["KERAS_BACKEND"] = THEIRS  # which its `tf.keras` runs on, and ours uses for none
    tf = importlib.import_module(library)
    step = PROGRAMS[name](tf)
    return tf.function(step) if MODES[mode] else step


def first(library: str, name: str, mode: str) -> float:
    """Return the seconds of the first step."""
    return turn(made(library, name, mode), 1) / 1e6


def steps(effort: Effort) -> list[Row]:
    """Return what a step costs over TensorFlow's, both in this process, in turns."""
    if importlib.util.find_spec(THEIRS) is None:
        return NONE
    cases = {f"{name}, {mode}": (made(OURS, name, mode), made(THEIRS, name, mode))
             for name in PROGRAMS for mode in MODES}  # fmt: skip
    rounds, calls = ((30, 20), (8, 8), (1, 1))[effort]
    return pairs(cases, rounds, calls)


def first_calls(effort: Effort) -> list[Row]:
    """Return what a first step costs over TensorFlow's, in fresh processes."""
    if importlib.util.find_spec(THEIRS) is None:
        return NONE
    rows: list[Row] = []
    for name in list(PROGRAMS)[: (9, 9, 1)[effort]]:
        for mode in MODES:
            call = "import tf_programs; print(tf_programs.first({!r}, {!r}, {!r}))".format
            codes = [[call(library, name, mode)] for library in (THEIRS, OURS)]
            theirs, ours = fresh(codes, (5, 3, 1)[effort])
            row: Row = {"way": f"{name}, {mode}", "s": min(ours), "over, s": min(theirs)}
            rows.append(row | ratios(ours, theirs))
    return rows


if __name__ == "__main__":
    run_jobs(__doc__, {"steps": steps, "first calls": first_calls})
