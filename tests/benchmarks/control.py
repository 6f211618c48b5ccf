"""What a staged loop with variables costs over the same loop hand-written in `jax.lax`.

    python tests/benchmarks/control.py [--quick] [--json PATH] [--only JOB]

A loop of 1,000 cheap iterations (`fori_loop`, `while_loop`, `scan`) over a scalar, which XLA runs
in a few microseconds, and over 100 floats is run without variables, with one that is read and with
one that is carried. Hand-written, it is `lax` in a `jax.jit` whose state is a
donated tuple, as in `dispatch.py`; with jaxvars it is the `jv.` form in `jv.compile`. Calls and
first calls (trace and compile) are compared.

A call has ended when its result is there, since it is the loop that is compared. A first call is
that of a new function, in the same process, after a few to warm up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from measuring import Effort, Row, Step, compared, ratios, run_jobs, timed

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


def calls(effort: Effort) -> list[Row]:
    """Return how long calls take, and their ratio to the hand-written ones."""
    rows: list[Row] = []
    for shape, kind, use in itertools.product(SHAPES, KINDS, USES[:: (1, 1, 2)[effort]]):
        hand, ours = by_hand(kind, use, shape)(), with_variables(kind, use, shape)()
        _check_equal(hand, ours)
        steps = {"lax": _finished(hand), "jaxvars": _finished(ours)}
        row = compared(steps, (201, 41, 1)[effort], 5)[1]
        rows.append({"loop": kind, "variables": use, "shape": str(shape), **row, "target": TARGET})
    return rows


def _finished(step: Step) -> Step:
    return lambda: step().block_until_ready()


def _check_equal(one: Step, other: Step) -> None:
    for _ in range(3):
        a, b = float(one().sum()), float(other().sum())
        if abs(a - b) > 1e-4 * abs(a):
            raise AssertionError(f"the steps do not compute the same: {a} and {b}")


def first_calls(effort: Effort) -> list[Row]:
    """Return how long first calls take: to trace, to compile and to run once."""
    rows: list[Row] = []
    for kind, use in itertools.product(KINDS, USES[:: (1, 1, 2)[effort]]):
        makers = by_hand(kind, use), with_variables(kind, use)
        rounds = [[timed(make()) for make in makers] for _ in range((25, 8, 3)[effort])]
        base, ours = zip(*rounds[2:], strict=True)
        rows.append({"loop": kind, "variables": use, "seconds": min(ours), **ratios(ours, base)})
    return rows


if __name__ == "__main__":
    run_jobs(__doc__, {"calls": calls, "first calls": first_calls})
