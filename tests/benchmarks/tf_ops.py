"""What an operation of `jaxvars.tf` costs more than the call of JAX that it makes.

    python tests/benchmarks/tf_ops.py

Each line is the ratio of the smallest times of many short runs, which take turns, so that the
ratio holds on a busy machine, too. An operation may cost at most 1.5 times the call.
"""

from __future__ import annotations

import jax.numpy as jnp
from measuring import Step, print_ratios

from jaxvars import tf


def main() -> None:
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
    print_ratios(cases)


if __name__ == "__main__":
    main()
