"""What running eagerly costs: reads, assignments, tapes, the training step of `python -m jaxvars`.

python tests/benchmarks/eager.py
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from measuring import Step, print_ratios

import jaxvars as jv
from jaxvars.demo import train as _demo


def microseconds(fn: Callable[[], object], number: int) -> float:
    """Return the best of five rounds, in microseconds for a call."""
    return min(timeit.repeat(fn, number=number, repeat=5)) / number * 1e6


def taped(layers: int) -> tuple[Step, Step]:
    """Return `4 * layers` operations and their gradient, and the operations alone, of arrays."""
    w, b = jv.Variable(jnp.full((8, 8), 0.1)), jv.Variable(jnp.ones(8))
    x, arrays = jnp.ones((4, 8)), (jnp.full((8, 8), 0.1), jnp.ones(8))

    def loss(w: Any, b: Any) -> Any:
        y = x
        for _ in range(layers - 1):
            y = jnp.tanh(y @ w + b) * 0.9
        return jnp.mean(jnp.exp(y @ w + b))

    def gradient() -> Any:
        with jv.GradientTape() as tape:
            target = loss(w, b)
        return tape.gradient(target, [w, b])

    for _ in range(300):  # what runs often is compiled
        gradient()
    return gradient, lambda: loss(*arrays)


def main() -> None:
    v = jv.Variable(jnp.zeros(8))
    x = jnp.zeros(8)
    for name, fn in {
        "x + x, an array": lambda: x + x,
        "v + x, a variable": lambda: v + x,
        "jnp.sin(x), an array": lambda: jnp.sin(x),
        "jnp.sin(v), a variable": lambda: jnp.sin(v),
        "v.value": lambda: v.value,
        "v.assign(x)": lambda: v.assign(x),
        "v.assign_add(x)": lambda: v.assign_add(x),
    }.items():
        print(f"{name:<24} {microseconds(fn, 2000):>10.1f} us")
    print_ratios(
        {f"tape, {n} operations": taped(n // 4) for n in (8, 100)}  # over the operations alone
    )
    run = _demo.Run(seed=0)
    batch = next(run.batches())
    print(
        f"{'training step, compiled':<24} {microseconds(lambda: run.step(*batch), 100):>10.1f} us"
    )
    jv.config.run_eagerly(True)
    print(f"{'training step, eager':<24} {microseconds(lambda: run.step(*batch), 10):>10.1f} us")


if __name__ == "__main__":
    main()
