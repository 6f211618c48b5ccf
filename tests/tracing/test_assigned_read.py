"""A read after an assign: a tape's source, a transform's value, and nothing when it runs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxvars as jv
from jaxvars.tracing.assigned_read import for_tape, reread


def square(value: Any, source: Any) -> Any:
    return reread(value, source) ** 2


def test_it_is_the_value():
    assert float(reread(jnp.float32(3.0), jnp.float32(5.0))) == 3.0
    assert float(jax.jit(square)(3.0, 5.0)) == 9.0


def test_a_transform_differentiates_the_value_and_a_tape_the_source():
    for transform in (lambda f: f, jax.jit):
        grads = jax.grad(transform(square), (0, 1))
        assert [float(g) for g in grads(3.0, 5.0)] == [6.0, 0.0]
        with for_tape():
            assert [float(g) for g in grads(3.0, 5.0)] == [0.0, 6.0]
        assert [float(g) for g in grads(3.0, 5.0)] == [6.0, 0.0]


def test_what_jax_remembers_is_kept_apart():
    f = jax.jit(lambda x, y: jax.lax.scan(lambda c, _: (square(c, y), None), x, None, length=2)[0])
    grads = jax.grad(f, (0, 1))
    expected = [float(g) for g in grads(1.5, 2.0)]
    with for_tape():
        assert [float(g) for g in grads(1.5, 2.0)] == [0.0, 2 * 1.5**2]
    assert [float(g) for g in grads(1.5, 2.0)] == expected == [4 * 1.5**3, 0.0]


def test_for_tape_ends_with_an_error():
    try:
        with for_tape():
            raise RuntimeError
    except RuntimeError:
        assert float(jax.grad(square)(3.0, 5.0)) == 6.0


def test_batches():
    xs = jnp.arange(3.0)
    np.testing.assert_array_equal(jax.vmap(square)(xs, xs), xs**2)
    np.testing.assert_array_equal(jax.vmap(square, (0, None))(xs, 1.0), xs**2)
    np.testing.assert_array_equal(jax.vmap(square, (None, 0))(2.0, xs), [4.0] * 3)
    rows = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(jax.vmap(square, (1, 0), 1)(rows, rows.T), rows**2)


def test_forward_over_reverse():
    second = jax.jvp(jax.grad(lambda x: square(x, 5.0) * x), (3.0,), (1.0,))
    assert [float(x) for x in second] == [27.0, 18.0]


def test_it_is_gone_from_the_program_that_runs():
    v = jv.Variable(1.0)

    @jv.compile
    def step(x: Any) -> Any:
        v.assign(x * 2)
        return v * x

    def primitives(program: Any) -> set[str]:
        return {eqn.primitive.name for eqn in program.eqns}

    step(1.0)
    (entry,) = step._entries.values()
    assert "reread" not in primitives(entry.staged.program.jaxpr)
    assert "reread" in primitives(entry._whole.program.jaxpr)
    assert not entry.staged.reads  # what was held before is needed for derivatives only


def test_an_assigned_variable_is_a_source_in_every_way():
    v = jv.Variable(2.0)

    def f(x: Any) -> Any:
        v.assign(v * x)
        return v * v

    def gradient(f: Any, x: Any) -> Any:
        v.assign(2.0)
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [v, x], unconnected_gradients="zero")

    x = jnp.float32(3.0)
    for way in (f, jv.compile(f)):
        assert [float(g) for g in gradient(way, x)] == [12.0, 0.0]
        pure, state = jv.functionalize(way), jv.State.of({"v": jv.Variable(2.0), "w": v})
        state = state.replace({"w": jnp.float32(2.0)})
        grads = jax.grad(lambda s, x, pure=pure: pure(s, x)[0], (0, 1))(state, x)
        assert [float(grads[0]["w"]), float(grads[1])] == [2 * 2.0 * 9.0, 2 * 4.0 * 3.0]
