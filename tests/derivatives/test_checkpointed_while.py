"""Loops whose number of iterations is known when they run, differentiated in reverse."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tape_programs import derivatives

import jaxvars as jv
from jaxvars.derivatives import checkpointed_while, checkpoints
from jaxvars.derivatives.checkpointed_while import while_loop
from jaxvars.errors import TapeError


def turned(c: Any, x: Any) -> Any:
    return c * 0.99 + 0.1 * jnp.sin(c) + 0.01 * x


def by_loop(x: Any, n: Any) -> Any:
    return while_loop(
        lambda n, at: at[0] < n[1],
        lambda given, at: (at[0] + 1, turned(at[1], given[0])),
        (x, n),
        (0, x),
    )[1]


def by_scan(x: Any, n: int) -> Any:
    return jax.lax.scan(lambda c, _: (turned(c, x), None), x, None, length=n)[0]


@jv.compile
def slope(x: Any, n: Any) -> Any:
    with jv.GradientTape() as tape:
        tape.watch(x)
        y = by_loop(x, n)
    return y, tape.gradient(y, x)


@pytest.mark.parametrize("n", [0, 1, 5, 16, 17, 33, 100])
def test_however_often_it_runs(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    for name, value in (("_BITS", 2), ("CHECKPOINTS", 4), ("_SEGMENT", 4)):  # few make a long loop
        monkeypatch.setattr(checkpoints, name, value)
    expected = jax.value_and_grad(by_scan)(0.5, n)
    np.testing.assert_allclose(slope(jnp.float32(0.5), n), expected, rtol=1e-5)


def test_what_is_kept_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_BITS", 3), ("CHECKPOINTS", 8)):
        monkeypatch.setattr(checkpoints, name, value)
    places: dict[int, int] = {}
    found = jax.vmap(checkpoints.slot)(jnp.arange(300, dtype=jnp.int32))
    places.update(zip(found.tolist(), range(300), strict=True))
    halvings = int(checkpoints._count_halvings(jnp.int32(299)))
    del places[checkpoints.CHECKPOINTS]
    kept = range(0, 300, 1 << halvings)
    assert sorted(n for n in places.values() if n % (1 << halvings) == 0) == list(kept)
    assert all(
        places[int(checkpoints._slot_of(jnp.int32(i), jnp.int32(halvings)))] == n
        for i, n in enumerate(kept)
    )


def test_a_loop_in_a_loop_and_a_second_derivative() -> None:
    v = jv.Variable(1.5)

    @jv.compile
    def run(n: Any) -> Any:
        with jv.GradientTape() as tape:
            y = jv.while_loop(
                lambda c: c[0] < n,
                lambda c: (c[0] + 1, jv.fori_loop(0, c[0], lambda _, y: y * v, c[1])),
                (0, v.value),
            )[1]
        return y, tape.gradient(y, v)

    x = 1.5  # y is x to the power of 1 + (0 + 1 + 2)
    np.testing.assert_allclose(run(3), (x**4, 4 * x**3), rtol=1e-5)

    @jv.compile
    def twice(n: Any) -> Any:
        with jv.GradientTape() as outer:
            with jv.GradientTape() as inner:
                y = jv.fori_loop(0, n, lambda _, y: y * v, v.value)
            first = inner.gradient(y, v)
        return outer.gradient(first, v)

    np.testing.assert_allclose(twice(3), 12 * x**2, rtol=1e-5)


def test_a_derivative_that_would_compile_for_an_hour_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpointed_while, "_LOOPS", 1)
    x = jnp.float32(1.5)
    doubled = jax.custom_vjp(lambda c: c * 1.0)
    doubled.defvjp(lambda c: (c * 1.0, None), lambda _, ct: (ct * 1.0,))

    def second(**bound: Any) -> Any:
        with jv.GradientTape() as outer:
            outer.watch(x)
            with jv.GradientTape() as tape:
                tape.watch(x)
                y = jv.while_loop(lambda c: c < 10.0, lambda c: doubled(c) * x, x, **bound)
            first = tape.gradient(y, x)
        return outer.gradient(first, x)

    refused = (
        r"(?s)requested at test_checkpointed_while\.py:\d+, in second goes .*max_iterations=100"
    )
    with pytest.raises(TapeError, match=refused) as told:
        jv.compile(second)()
    assert told.value.__cause__ is None  # the traceback that JAX puts in front
    want = second()  # in Python there is no such loop
    assert np.allclose(jv.compile(lambda: second(max_iterations=8))(), want)


def test_a_loop_in_one_branch_and_a_rule_in_the_other() -> None:
    b, s = jv.Variable(2.0), jv.Variable(3.0)
    tripled = jax.custom_vjp(lambda x: x * 2.0)
    tripled.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 3.0,))

    @jv.compile
    def slopes(goes: Any) -> Any:
        with jv.GradientTape(persistent=True) as tape:
            loop = lambda: jv.while_loop(lambda c: c < 10.0, lambda c: c * b, b * 1.0)  # noqa: E731
            y = jv.cond(goes, loop, lambda: tripled(s * 1.0))
        return tape.gradient(y, b), tape.gradient(y, [b, s])

    assert slopes(jnp.asarray(True)) == (32.0, [32.0, 0.0])
    assert slopes(jnp.asarray(False)) == (0.0, [0.0, 3.0])


@pytest.mark.slow
def test_the_third_derivative_of_a_compiled_loop_ends() -> None:
    w = jv.Variable(1.1)

    def program() -> Any:
        loop = lambda w: jv.while_loop(lambda c: c < 10.0, lambda c: c * w * w, w * 1.0)  # noqa: E731
        return derivatives(w, loop, 3)

    assert np.allclose(jv.compile(program)(), program(), rtol=1e-5)


def in_loops(depth: int, x: Any, w: Any) -> Any:
    if not depth:
        return jnp.sin(x) * w + 0.1 * x * w * w
    body = lambda c: (c[0] + 1, in_loops(depth - 1, c[1], w))  # noqa: E731
    return jv.while_loop(lambda c: c[0] < 3, body, (0, x))[1]


def slope_of(order: int, depth: int, x: Any, w: Any) -> Any:
    """Differentiate by x at first, and then by x and w."""
    if not order:
        return in_loops(depth, x, w)
    with jv.GradientTape() as tape:
        tape.watch([x, w])
        y = slope_of(order - 1, depth, x, w)
    found = tape.gradient(y, [x, w][:order])
    return found[0] + sum(found[1:])


@pytest.mark.parametrize(("depth", "most"), [(1, 4), (2, 30)])
def test_a_higher_order_has_larger_loops_and_hardly_more(depth: int, most: int) -> None:
    args = jnp.float32(0.7), jnp.float32(1.1)
    programs = [
        jax.jit(functools.partial(slope_of, order, depth)).lower(*args).as_text()
        for order in (1, 2, 3)
    ]
    assert all(text.count("stablehlo.while") <= most for text in programs)
    first, second, third = map(len, programs)
    assert second < 2.5 * first
    assert third < 2.5 * second


WAYS = ["reverse", pytest.param("in loops", marks=pytest.mark.slow), "forward", "jacobian"]


@pytest.mark.parametrize("way", WAYS)
def test_a_derivative_of_a_derivative_by_what_the_first_is_not_of(way: str) -> None:
    args = jnp.float32(0.7), jnp.float32(1.1)

    def run(x: Any, w: Any) -> Any:
        if way == "reverse":
            return slope_of(2, 1, x, w)
        if way == "in loops":
            return slope_of(2, 2, x, w)
        if way == "forward":
            with jv.ForwardAccumulator([w], [jnp.float32(1.0)]) as accumulator:
                y = slope_of(1, 1, x, w)
            return accumulator.jvp(y)
        xs = jnp.stack([x, w])
        with jv.GradientTape() as tape:
            tape.watch(xs)
            with jv.GradientTape() as inner:
                inner.watch(xs)
                body = lambda c: (c[0] + 1, jnp.tanh(c[1][::-1] * c[1] + 1))  # noqa: E731
                y = jv.while_loop(lambda c: c[0] < 4, body, (0, xs))[1].sum()
            first = inner.gradient(y, xs)
        return tape.jacobian(first, xs)

    np.testing.assert_allclose(jv.compile(run)(*args), run(*args), rtol=1e-4)


def test_what_is_kept_of_a_value_on_a_mesh_of_explicit_axes_is_placed_like_it() -> None:
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Explicit,))

    def run(x: Any) -> Any:
        with jv.GradientTape() as tape:
            tape.watch(x)
            body = lambda c: (c[0] + 1, jnp.sin(c[1]))  # noqa: E731
            y = jv.while_loop(lambda c: c[0] < 3, body, (0, x))[1].sum()
        return tape.gradient(y, x)

    want = run(jnp.arange(4.0))
    with jax.set_mesh(mesh):
        found = jv.compile(run)(
            jax.device_put(jnp.arange(4.0), jax.NamedSharding(mesh, jax.P("data")))
        )
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_a_rule_that_knows_its_pullback_alone_has_the_derivatives_of_its_code() -> None:
    def rule(kind: Any) -> Any:
        cube = kind(lambda x: x**3)
        cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x * x * ct,))
        return cube

    def run(cube: Any, x: Any) -> Any:
        with jv.GradientTape() as outer:
            outer.watch(x)
            with jv.GradientTape() as tape:
                tape.watch(x)
                y = jv.while_loop(lambda c: c < 3.0, lambda c: cube(c) + x, x)
            first = tape.gradient(y, x)
        return first, outer.gradient(first, x)

    x = jnp.float32(0.8)
    found = jv.compile(functools.partial(run, rule(jax.custom_vjp)))(x)
    np.testing.assert_allclose(found, run(lambda x: x**3, x), rtol=1e-4)


def test_state_that_is_not_a_float() -> None:
    @jv.compile
    def run(x: Any, n: Any) -> Any:
        def turn(c: Any) -> Any:
            i, key, y = c
            return i + 1, jax.random.split(key)[0], y * x * (1 + jax.random.uniform(key))

        with jv.GradientTape() as tape:
            tape.watch(x)
            y = jv.while_loop(lambda c: c[0] < n, turn, (0, jax.random.key(0), 1.0))[2]
        return y, tape.gradient(y, x)

    y, g = run(jnp.float32(2.0), 3)
    assert float(g) == pytest.approx(float(3 * y / 2.0), rel=1e-5)


def test_forwards_and_in_pure_functions_it_is_jaxs() -> None:
    def power(x: Any, n: Any) -> Any:
        return jv.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[1]

    step = jax.jit(power)
    assert [float(x) for x in jax.jvp(lambda x: step(x, 3), (2.0,), (1.0,))] == [8.0, 12.0]
    assert jax.vmap(step, (0, None))(jnp.arange(3.0), 2).tolist() == [0.0, 1.0, 4.0]
    with pytest.raises(ValueError, match="Reverse-mode differentiation does not work"):
        jax.grad(lambda x: step(x, 3))(2.0)


def test_a_body_that_searches() -> None:
    table = jnp.asarray([-1.0, 0.5, 2.0])

    def run(x: Any, n: Any) -> Any:
        def turn(c: Any) -> Any:
            return c[0] + 1, jnp.interp(c[1], table, table**2) * x

        with jv.GradientTape() as tape:
            tape.watch(x)
            y = jv.while_loop(lambda c: c[0] < n, turn, (0, 0.7))[1]
        return y, tape.gradient(y, x)

    expected = run(jnp.float32(0.9), 3)
    np.testing.assert_allclose(jv.compile(run)(jnp.float32(0.9), 3), expected, rtol=1e-6)
