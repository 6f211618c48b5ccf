"""Which results of branches, loops and compiled functions a tape takes for computed from what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tape_programs import run_compiled, run_eagerly

import jaxvars as jv
from jaxvars.autodiff.rules import find_paths

B, V = jv.Variable(2.0, name="b"), jv.Variable(1.0, name="v")


# ---------------------------------------------------------------- of one operation
def spiral(carry: Any, x: Any) -> Any:
    return (carry[1], carry[2], carry[2] + x), x * 2


def through_reference(a: Any, b: Any) -> Any:
    ref = jax.new_ref(a)
    ref[...] = b
    return ref[...], a


ruled = jax.custom_jvp(lambda a, b: (a * 1, b * 1, 1))

ruled.defjvp(lambda primals, tangents: (ruled(*primals), (*tangents, tangents[0])))


ONE: dict[str, tuple[Callable[..., Any], list[int]]] = {
    "several iterations": (lambda a, b, c, x: jax.lax.scan(spiral, (a, b, c), jnp.stack([x, x])),
     [0b1111, 0b1110, 0b1100, 0b1000]),
    "a condition": (lambda a,
     b: jax.lax.while_loop(lambda c: c[0] < a, lambda c: (c[0] + 1, c[1] * b), (a, b)),
     [0b01, 0b10]),
    "some branch": (lambda a, b, c: jax.lax.cond(a > 0, lambda: (b, 1.0, c), lambda: (b, c, 2.0)),
     [0b010, 0b100, 0b100]),
    "stopped": (lambda a,
     b: jax.checkpoint(lambda a, b: (jax.lax.stop_gradient(a) * b, b // 1))(a, b), [0b10, 0b10]),
    "integers": (lambda a,
     b: jax.jit(lambda a, b: (a.astype(int) * b, (a > 0).astype(float)))(a, b), [0b10, 0]),
    "a reference": (lambda a, b: jax.jit(through_reference)(a, b), [0b11, 0b11]),
    "a rule": (lambda a, b: jax.jit(ruled)(a, b), [0b11, 0b11, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_paths(name: str) -> None:
    fn, want = ONE[name]
    given = [1 << i for i in range(fn.__code__.co_argcount)]
    closed = jax.make_jaxpr(fn)(*map(float, given))
    assert find_paths("jit", {"jaxpr": closed}, given, len(want)) == want


# ---------------------------------------------------------------- eager is compiled
def counter() -> Any:
    """Return an intermediate of a loop whose end a variable decides."""
    m = jv.while_loop(lambda i: i < B, lambda i: i + 1.0, 0.0)
    return m * B, [m, B]


def assigned_in_a_branch() -> Any:
    m = jv.cond(B > 0, lambda: (V.assign_add(B), X)[1], lambda: X * 2)
    return m * B, [m, B]


def beside_in_a_scan() -> Any:
    (m, n), ys = jv.scan(lambda c, x: ((c[0] * B, c[1] + 1.0), x), (1.0, 0.0), jnp.arange(3.0))
    return m * n * jnp.sum(ys) * B, [m, n, ys, B]


def beside_in_a_compiled_function() -> Any:
    p, q = jv.compile(lambda a: (a * 2, B * 3))(X)
    return p * q, [p, q, B]


def beside_what_is_made_again() -> Any:
    p, q = jv.recompute(lambda a: (a * 2, B * 3))(X)
    return p * q, [p, q, B]


def no_iteration() -> Any:
    m = jv.while_loop(lambda c: c > 100.0, lambda c: c * B, 3.0)
    return m * 1.0, [B, V, m]


def no_iteration_beside() -> Any:
    z = B * 1.0
    m, n = jv.while_loop(lambda c: c[0] > 100.0, lambda c: (c[0] * z, c[1] + 1), (3.0, 2.0))
    return m * n * V, [B, z, m, n, V]


X = jnp.asarray(3.0)
PROGRAMS = [
    counter, assigned_in_a_branch, beside_in_a_scan, beside_in_a_compiled_function,
    beside_what_is_made_again, no_iteration, no_iteration_beside,
]  # fmt: skip


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_what_has_no_gradient_eagerly_has_none_compiled(fn: Callable[[], Any]) -> None:
    def program() -> Any:
        with jv.ForwardAccumulator(B, 1.0) as forward, jv.GradientTape(persistent=True) as tape:
            y, sources = fn()
        return tape.gradient(y, sources), forward.jvp([y, *sources])

    V.assign(1.0)
    want = run_eagerly(program)
    V.assign(1.0)
    assert jax.tree.map(jnp.sum, run_compiled(program)) == jax.tree.map(jnp.sum, want)


def test_a_body_that_cannot_be_staged_need_not_be_if_it_does_not_run() -> None:
    with jv.GradientTape() as tape:
        y = jv.while_loop(lambda c: c > 100.0, lambda c: c * float(c), B.value)
    assert tape.gradient(y, B) == 1.0


@pytest.mark.parametrize("decorate", [lambda f: f, jv.compile])
def test_a_result_without_elements_depends_on_what_it_was_taken_from(decorate: Any):
    v, none = jv.Variable([1.0, 2.0]), np.array([], np.int32)
    loss = decorate(lambda: jnp.take(v.value, none, axis=0).sum())
    with jv.GradientTape() as tape:
        value = loss()
    assert tape.gradient(value, v).tolist() == [0.0, 0.0]
