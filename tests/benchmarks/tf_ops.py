"""What `jaxvars.tf` costs over what it is made of.

    python tests/benchmarks/tf_ops.py

operations    over the call of JAX that each makes: at most 1.5 times
functions     a call of a `tf.function` over one of `jv.compile`
convolutions  a gradient over what it is of, a compiled step of a small network over an eager one
              and over one whose pools are means
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from measuring import Effort, Row, Step, pairs, run_jobs

import jaxvars as jv
from jaxvars import tf

REPEATS = ((60, 60), (20, 60), (1, 1))


def operations(effort: Effort) -> list[Row]:
    x, y = jnp.ones((8, 8)), jnp.ones((8, 8))
    i = jnp.arange(8, dtype=jnp.int32)
    a, b, k, v = tf.constant(x), tf.constant(y), tf.constant(i), tf.Variable(x)
    cases: dict[str, tuple[Step, Step]] = {
        "x + y": (lambda: a + b, lambda: jnp.add(x, y)),
        "x * 2.0": (lambda: a * 2.0, lambda: jnp.multiply(x, 2.0)),
        "x / y": (lambda: a / b, lambda: jnp.divide(x, y)),
        "x ** 2.0": (lambda: a**2.0, lambda: jnp.power(x, 2.0)),
        "x == y": (lambda: a == b, lambda: jnp.equal(x, y)),
        "x < y": (lambda: a < b, lambda: jnp.less(x, y)),
        "-x": (lambda: -a, lambda: jnp.negative(x)),
        "i // i": (lambda: k // 2, lambda: jnp.floor_divide(i, 2)),
        "x @ y": (lambda: a @ b, lambda: jnp.matmul(x, y)),
        "variable @ y": (lambda: v @ b, lambda: jnp.matmul(x, y)),
        "x[0]": (lambda: a[0], lambda: x[0]),
        "x[1:, ..., None]": (lambda: a[1:, ..., None], lambda: x[1:, ..., None]),
        "reshape": (lambda: tf.reshape(a, [4, -1]), lambda: jnp.reshape(x, (4, -1))),
        "cast": (lambda: tf.cast(a, tf.int32), lambda: x.astype(jnp.int32)),
        "reduce_sum": (lambda: tf.reduce_sum(a), lambda: jnp.sum(x)),
        "zeros": (lambda: tf.zeros((8, 8)), lambda: jnp.zeros((8, 8), jnp.float32)),
        "constant": (lambda: tf.constant([1.0, 2.0]), lambda: jnp.array([1.0, 2.0], jnp.float32)),
        "exp": (lambda: tf.exp(a), lambda: jnp.exp(x)),
    }
    return pairs(cases, *REPEATS[effort])


class Ours:
    """A method of `tf.function`."""

    @tf.function
    def add(self, x: Any) -> Any:
        """Add one."""
        return x + 1.0


class Core:
    """The same of `jv.compile`."""

    @jv.compile
    def add(self, x: Any) -> Any:
        """Add one."""
        return x + 1.0


def functions(effort: Effort) -> list[Row]:
    x, y = jnp.ones(4), jnp.ones(4)
    a, b = tf.constant(x), tf.constant(y)
    v, w = tf.Variable(x), jv.Variable(x)
    multiply, core_multiply = tf.function(lambda p, q: p * q), jv.compile(lambda p, q: p * q)
    step, core_step = tf.function(lambda p: v.assign_add(p)), jv.compile(lambda p: w.assign_add(p))
    ours, core = Ours(), Core()
    cases: dict[str, tuple[Step, Step]] = {
        "f(x, y)": (lambda: multiply(a, b), lambda: core_multiply(x, y)),
        "f(x, 2.0)": (lambda: multiply(a, 2.0), lambda: core_multiply(x, 2.0)),
        "f(x, q=y)": (lambda: multiply(a, q=b), lambda: core_multiply(x, q=y)),
        "step(x)": (lambda: step(a), lambda: core_step(x)),
        "object.f(x)": (lambda: ours.add(a), lambda: core.add(x)),
    }
    return pairs(cases, *REPEATS[effort])


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


def convolutions(effort: Effort) -> list[Row]:
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
    return pairs(cases, (12, 4, 1)[effort], 1)


if __name__ == "__main__":
    jobs = {"operations": operations, "functions": functions, "convolutions": convolutions}
    run_jobs(__doc__, jobs)
