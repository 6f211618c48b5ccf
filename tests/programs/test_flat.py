"""What stands twice in a program on a mesh runs once, and what only looks the same twice."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.programs.flat import flat_function
from jaxvars.tracing import jaxprs


def count(closed: Any, name: str) -> int:
    return sum(eqn.primitive.name == name for eqn in jaxprs.open_jaxpr(closed).eqns)


def test_a_flat_function_runs_once_what_is_the_same_and_twice_what_only_looks_so() -> None:
    half = jax.jit(lambda x: jnp.sin(x) * 0.5)
    tripled = jax.custom_jvp(lambda x: x * 3.0)
    tripled.defjvp(lambda xs, ts: (xs[0], ts[0]))
    loop = lambda x, c: jax.lax.scan(lambda y, _: (y * c, None), x, None, 2)[0]  # noqa: E731

    def f(x: Any) -> Any:
        same = half(x) + half(x), tripled(x) + tripled(x)
        other = jax.lax.pad(x, 0.0, [(1, 0, 0)]) + jax.lax.pad(x, -0.0, [(1, 0, 0)])
        return same, other, loop(x, 2.0), loop(x, 3.0)

    closed = jax.make_jaxpr(f)(jnp.ones(2))
    flat = jax.make_jaxpr(flat_function(closed))(jnp.ones(2))
    counts = [count(flat, name) for name in ("sin", "custom_jvp_call", "pad", "scan")]
    assert counts == [1, 1, 2, 2]


def test_a_flat_function_runs_what_stands_twice_once():
    inner = jax.jit(lambda x: jnp.sin(x) * 2.0)

    def f(x, y):
        return inner(x) + jnp.sin(x), inner(y), jnp.sin(y)

    closed = jax.make_jaxpr(f)(1.0, 2.0)
    flat = jax.make_jaxpr(flat_function(closed))(1.0, 2.0)
    assert (count(flat, "sin"), count(flat, "jit")) == (2, 0)
    expected = f(0.3, 0.4)
    for got, wanted in zip(flat_function(closed)(0.3, 0.4), expected, strict=True):
        assert float(got) == float(wanted)


def test_a_flat_function_keeps_effects_and_inner_shardings():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    inner = jax.jit(lambda x: x * 2.0, out_shardings=spread)

    def f(x):
        jax.debug.callback(lambda: None)
        jax.debug.callback(lambda: None)
        return inner(x)

    flat = jax.make_jaxpr(flat_function(jax.make_jaxpr(f)(jnp.ones(2))))(jnp.ones(2))
    assert (count(flat, "debug_callback"), count(flat, "jit")) == (2, 1)


def test_a_flat_function_tells_literals_apart():
    closed = jax.make_jaxpr(lambda x: (x * 0.0, x * -0.0, x * 2.0, x * 2.0))(3.0)
    flat = jax.make_jaxpr(flat_function(closed))(3.0)
    assert count(flat, "mul") == 3
    assert [float(x) for x in flat_function(closed)(3.0)] == [0.0, -0.0, 6.0, 6.0]
