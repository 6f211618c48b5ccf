"""What pools and convolutions of `jaxvars.tf` cost backwards, and a step of a small network.

    python tests/benchmarks/convolution.py

Each line is the ratio of two calls: a gradient over what it is of, a compiled step over an eager
one and over one whose pools are means.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from measuring import Step, print_ratios

from jaxvars import tf


def noise(*shape: int) -> Any:
    return tf.constant(np.random.default_rng(0).normal(size=shape).astype("f") * 0.1)


def waited_for(call: Step) -> Step:
    return lambda: np.asarray(call())


def both(layer: Any, x: Any) -> tuple[Step, Step]:
    """Return compiled calls of the gradient of a layer, and of the layer."""

    def gradient(x: Any, wanted: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = layer(x)
        return tape.gradient(made, x, wanted)

    forward, backward, wanted = tf.function(layer), tf.function(gradient), layer(x)
    return waited_for(lambda: backward(x, wanted)), waited_for(lambda: forward(x))


def step(pool: Any) -> Step:
    """Return a training step of two convolutions, each with a pool, and a dense layer."""
    x, labels = noise(64, 32, 32, 3), tf.zeros([64], tf.int32)
    shapes = ((3, 3, 3, 32), (3, 3, 32, 64), (8 * 8 * 64, 10))
    *filters, dense = variables = [tf.Variable(noise(*shape)) for shape in shapes]

    def run() -> Any:
        with tf.GradientTape() as tape:
            h = x
            for each in filters:
                h = pool(tf.nn.relu(tf.nn.conv2d(h, each, 1, "SAME")))
            h = tf.reshape(h, [64, -1]) @ dense
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, h)
        for v, change in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(0.001 * change)
        return dense

    return run


def main() -> None:
    x = noise(64, 32, 32, 32)
    largest = functools.partial(tf.nn.max_pool2d, ksize=2, strides=2, padding="SAME")
    mean = functools.partial(tf.nn.avg_pool2d, ksize=2, strides=2, padding="SAME")
    compiled = waited_for(tf.function(step(largest)))
    cases = {
        "max_pool 2x2": both(largest, x),
        "max_pool 3x3": both(lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), x),
        "avg_pool 2x2": both(mean, x),
        "conv2d 3x3": both(lambda x: tf.nn.conv2d(x, noise(3, 3, 32, 32), 1, "SAME"), x),
        "step, compiled": (compiled, waited_for(step(largest))),
        "step, of means": (compiled, waited_for(tf.function(step(mean)))),
    }
    print_ratios(cases, rounds=12, times_each=1)


if __name__ == "__main__":
    main()
