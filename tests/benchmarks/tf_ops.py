"""What an operation of `jaxvars.tf` costs more than the call of JAX that it makes.

    python tests/benchmarks/tf_ops.py

Each line is the ratio of the smallest times of many short runs, which take turns, so that the
ratio holds on a busy machine, too. An operation may cost at most 1.5 times the call.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxvars import tf

ROUNDS, CALLS = 60, 60


def main() -> None:
    x, y = jnp.ones((8, 8)), jnp.ones((8, 8))
    i = jnp.arange(8, dtype=jnp.int32)
    a, b, k, v = tf.constant(x), tf.constant(y), tf.constant(i), tf.Variable(x)
    cases: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
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
    print(f"jax {jax.__version__}, {jax.devices()[0].device_kind}")
    for name, (ours, jax_s) in cases.items():
        times: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for which, call in enumerate((ours, jax_s)):
                times[which].append(timeit.timeit(call, number=CALLS) / CALLS * 1e6)
        mine, theirs = map(min, times)
        print(f"{name:18} {mine:7.1f} us  {theirs:7.1f} us  x{mine / theirs:.2f}")


if __name__ == "__main__":
    main()
