"""What running eagerly costs: a read, an assignment, and the training step of `python -m jaxvars`.

python tests/benchmarks/eager.py
"""

from __future__ import annotations

import timeit
from collections.abc import Callable

import jax.numpy as jnp

import jaxvars as jv
from jaxvars.demo import train as _demo


def microseconds(fn: Callable[[], object], number: int) -> float:
    """Return the best of five rounds, in microseconds for a call."""
    return min(timeit.repeat(fn, number=number, repeat=5)) / number * 1e6


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
    run = _demo.Run(seed=0)
    batch = next(run.batches())
    print(
        f"{'training step, compiled':<24} {microseconds(lambda: run.step(*batch), 100):>10.1f} us"
    )
    jv.config.run_eagerly(True)
    print(f"{'training step, eager':<24} {microseconds(lambda: run.step(*batch), 10):>10.1f} us")


if __name__ == "__main__":
    main()
