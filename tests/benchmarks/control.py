"""What a staged loop with variables costs over the same loop hand-written in `jax.lax`.

    python tests/benchmarks/control.py [--quick] [--json PATH] [--only JOB]

A loop of 1,000 cheap iterations (`fori_loop`, `while_loop`, `scan`) over a scalar, which XLA runs
in a few microseconds, and over 100 floats is run without variables, with one that is read and with
one that is carried. Hand-written, it is `lax` in a `jax.jit` whose state is a
donated tuple, as in `dispatch.py`; with jaxvars it is the `jv.` form in `jv.compile`. Calls and
first calls (trace and compile) are compared.

Rules of this file:
- those of `dispatch.py`: candidates take turns, and a ratio is that of two turns in one round;
- a call has ended when its result is there, since it is the loop that is compared;
- a first call is that of a new function, in the same process, after a few to warm up.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from dispatch import _ratio, ratios
from measuring import Step, run_jobs

ITERATIONS = 1000
KINDS = ("fori", "while", "scan")
SHAPES = ((), (100,))
USES = ("no variable", "one read", "one carried")
TARGET = 1.1


def by_hand(kind: str, use: str, shape: tuple[int, ...] = ()) -> Callable[[], Step]:  # noqa: C901
    """Return what makes the step as one writes it with `lax`."""
    import jax
    import jax.numpy as jnp

    def next_of(w: Any, c: Any, x: Any) -> tuple[Any, Any]:
        if use == "no variable":
            return w, c * 0.999 + x
        if use == "one read":
            return w, c * w + x
        return w * 0.999 + x, c + w

    def loop(w: Any, x: Any) -> tuple[Any, Any]:
        start = (w, jnp.zeros(shape)) if use == "one carried" else jnp.zeros(shape)

        def step(state: Any, x: Any) -> Any:
            return next_of(*state, x) if use == "one carried" else next_of(w, state, x)[1]

        if kind == "fori":
            out = jax.lax.fori_loop(0, ITERATIONS, lambda i, c: step(c, x + i), start)
        elif kind == "while":
            out = jax.lax.while_loop(
                lambda s: s[0] < ITERATIONS, lambda s: (s[0] + 1, step(s[1], x)), (0, start)
            )[1]
        else:
            xs = jnp.full((ITERATIONS, *shape), x)
            out = jax.lax.scan(lambda c, x: (step(c, x), None), start, xs)[0]
        return out if use == "one carried" else (w, out)

    def make() -> Step:
        x = jnp.full(shape, 1e-3)
        if use != "one carried":
            read = jax.jit(lambda w, x: loop(w, x)[1])
            value = jnp.full(shape, 0.5)
            return lambda: read(value, x)
        changed = jax.jit(lambda state, x: _in_tuple(loop(state[0], x)), donate_argnums=0)
        state = (jnp.full(shape, 0.5),)

        def step() -> Any:
            nonlocal state
            state, result = changed(state, x)
            return result

        return step

    return make


def _in_tuple(pair: tuple[Any, Any]) -> tuple[tuple[Any], Any]:
    return (pair[0],), pair[1]


def with_variables(kind: str, use: str, shape: tuple[int, ...] = ()) -> Callable[[], Step]:
    """Return what makes the step with jaxvars."""
    import jax.numpy as jnp

    import jaxvars as jv

    def make() -> Step:
        w, x = jv.Variable(jnp.full(shape, 0.5)), jnp.full(shape, 1e-3)

        def step(c: Any, x: Any) -> Any:
            if use == "no variable":
                return c * 0.999 + x
            if use == "one read":
                return c * w + x
            c = c + w
            w.assign(w * 0.999 + x)
            return c

        @jv.compile
        def run(x: Any) -> Any:
            start = jnp.zeros(shape)
            if kind == "fori":
                return jv.fori_loop(0, ITERATIONS, lambda i, c: step(c, x + i), start)
            if kind == "while":
                return jv.while_loop(
                    lambda s: s[0] < ITERATIONS, lambda s: (s[0] + 1, step(s[1], x)), (0, start)
                )[1]
            xs = jnp.full((ITERATIONS, *shape), x)
            return jv.scan(lambda c, x: (step(c, x), None), start, xs)[0]

        return lambda: run(x)

    return make


def calls(quick: bool) -> list[dict[str, Any]]:
    """Return how long calls take, and their ratio to the hand-written ones."""
    rows: list[dict[str, Any]] = []
    for shape, kind, use in itertools.product(SHAPES, KINDS, USES):
        hand, ours = by_hand(kind, use, shape)(), with_variables(kind, use, shape)()
        _check_equal(hand, ours)
        found = ratios(_finished(hand), {"jaxvars": _finished(ours)}, 41 if quick else 201, 5)
        rows.append({"loop": kind, "variables": use, "shape": shape, **found["jaxvars"]})
    return rows


def _finished(step: Step) -> Step:
    return lambda: step().block_until_ready()


def _check_equal(one: Step, other: Step) -> None:
    for _ in range(3):
        a, b = float(one().sum()), float(other().sum())
        if abs(a - b) > 1e-4 * abs(a):
            raise AssertionError(f"the steps do not compute the same: {a} and {b}")


def first_calls(quick: bool) -> list[dict[str, Any]]:
    """Return how long first calls take: to trace, to compile and to run once."""
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        for use in USES:
            makers = by_hand(kind, use), with_variables(kind, use)
            taken: list[list[float]] = [[], []]
            for _ in range(8 if quick else 25):
                for i, make in enumerate(makers):
                    taken[i].append(_first(make()))
            base, ours = (times[2:] for times in taken)
            rows.append(
                {"loop": kind, "variables": use, "seconds": min(ours), **_ratio(ours, base)}
            )
    return rows


def _first(step: Step) -> float:
    start = time.perf_counter()
    step().block_until_ready()
    return time.perf_counter() - start


def report(found: dict[str, Any]) -> None:
    """Print what was measured."""
    print("loop   variables   shape   us a call  ratio of minima  median ratio   target", TARGET)
    for row in found.get("calls", []):
        print(
            f"{row['loop']:6} {row['variables']:11} {row['shape']!s:7} {row['microseconds']:9.1f}  "
            f"{row['ratio of minima']:15.3f}  {row['median ratio']:12.3f}"
        )
    print("loop   variables    ms to the first result  ratio of minima  median ratio")
    for row in found.get("first calls", []):
        print(
            f"{row['loop']:6} {row['variables']:11} {1e3 * row['seconds']:23.1f}  "
            f"{row['ratio of minima']:15.3f}  {row['median ratio']:12.3f}"
        )


def main() -> None:
    """Measure everything and print it."""
    jobs = {"calls": calls, "first calls": first_calls}
    run_jobs("What jaxvars' loops cost over lax's.", jobs, report)


if __name__ == "__main__":
    main()
