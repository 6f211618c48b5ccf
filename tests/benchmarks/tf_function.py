"""What a call of a `tf.function` costs more than one of `jv.compile`.

    python tests/benchmarks/tf_function.py

Each line is the ratio of the smallest times of many short runs, which take turns, so that the
ratio holds on a busy machine, too.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from measuring import Step, print_ratios

import jaxvars as jv
from jaxvars import tf


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


def main() -> None:
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
    print_ratios(cases)


if __name__ == "__main__":
    main()
