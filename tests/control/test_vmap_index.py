"""Random values in a `vectorized_map`: each example draws others; the generator advances."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxvars as jv
from jaxvars.errors import ControlFlowError

G = jv.random.Generator
XS = jnp.arange(4.0)


def state(rng):
    return rng.state.numpy().tolist()


def different(*arrays):
    x = np.concatenate([np.ravel(a) for a in arrays])
    return len(np.unique(x)) == x.size


@pytest.mark.parametrize("compiled", [False, True])
def test_examples_draw_different_values_and_the_generator_advances_once(compiled):
    rng = G(7)

    def run():
        return jv.vectorized_map(lambda x: rng.normal((3,)) + 0 * x, XS)

    run = jv.compile(run) if compiled else run
    first, second = run(), run()
    assert first.shape == (4, 3)
    assert different(first, second)
    assert state(rng) == [0, 7, 0, 2]


def test_the_same_eagerly_and_compiled_and_through_an_inner_compiled_function():
    def inner(x):
        return x * rng.normal(())

    rng = G(7)
    expected = jv.vectorized_map(inner, XS)
    compiled = jv.compile(inner)
    compiled(1.0)  # traced outside of any map
    rng.reset_from_seed(7)
    np.testing.assert_allclose(jv.vectorized_map(compiled, XS), expected, rtol=1e-6)
    rng.reset_from_seed(7)
    np.testing.assert_allclose(jv.compile(lambda: jv.vectorized_map(compiled, XS))(), expected)
    rng.reset_from_seed(7)
    alone = [float(compiled(1.0)) for _ in range(3)]  # and is itself again after it
    rng.reset_from_seed(7)
    np.testing.assert_allclose(alone, [float(rng.normal(())) for _ in range(3)], rtol=1e-6)


def test_no_example_draws_what_is_drawn_outside():
    rng = G(7)
    mapped = jv.vectorized_map(lambda x: rng.uniform_full_int(()), jnp.arange(100))
    rng.reset_from_seed(7)
    outside = jnp.stack([rng.uniform_full_int(()) for _ in range(20)])
    assert different(mapped, outside)


@pytest.mark.parametrize("compiled", [False, True])
def test_nested_maps(compiled):
    rng = G(7)

    def run():
        return jv.vectorized_map(
            lambda x: jv.vectorized_map(lambda y: rng.normal(()) + 0 * x * y, XS), XS
        )

    x = (jv.compile(run) if compiled else run)()
    assert x.shape == (4, 4)
    assert different(x)
    assert state(rng) == [0, 7, 0, 1]


def test_loops_in_a_map_and_maps_in_a_loop():
    rng = G(7)
    inside = jv.vectorized_map(
        lambda x: jv.scan(lambda c, _: (c, rng.normal(())), x, length=5)[1], XS
    )
    assert state(rng) == [0, 7, 0, 5]
    around = jv.scan(
        lambda c, _: (c, jv.vectorized_map(lambda x: rng.normal(()), XS)), 0, length=5
    )[1]
    assert state(rng) == [0, 7, 0, 10]
    assert different(inside, around)


@pytest.mark.parametrize("compiled", [False, True])
def test_it_advances_by_what_the_example_drew_that_drew_most(compiled):
    rng = G(7)

    def draw(x):
        first = jv.cond(x > 2, lambda: rng.normal(()) + rng.normal(()), lambda: 0.0)
        return jv.fori_loop(0, x.astype(int), lambda i, total: total + rng.normal(()), first)

    run = lambda: jv.vectorized_map(draw, XS)  # noqa: E731 - one line, in two ways
    x = (jv.compile(run) if compiled else run)()
    assert state(rng) == [0, 7, 0, 5]  # the example 3: two in the branch, three in the loop
    assert x[0] == 0
    assert different(x)


def test_other_axes_and_no_examples():
    rng = G(7)
    elems = (jnp.ones((2, 3)), 5.0)
    x = jv.vectorized_map(lambda e: e[0] + rng.normal(()), elems, in_axes=(1, None), out_axes=1)
    assert x.shape == (2, 3)
    assert different(x[0])
    assert jv.vectorized_map(lambda x: rng.normal(()), jnp.zeros(0)).shape == (0,)
    assert state(rng) == [0, 7, 0, 1]


def test_map_fn_in_batches():
    rng = G(7)
    x = jv.map_fn(lambda x: rng.normal(()) + 0 * x, jnp.zeros(10), batch_size=4)
    assert different(x)
    assert state(rng) == [0, 7, 0, 3]


def test_keys_seeds_and_initializers():
    rng = G(7)
    assert different(jv.vectorized_map(lambda x: jax.random.bits(rng.next_key()), XS))
    assert different(jv.vectorized_map(lambda x: jv.initializers.HeNormal(rng)((3, 2)), XS))
    assert different(jv.vectorized_map(lambda x: jv.random.normal(()), XS))
    same = jv.vectorized_map(lambda x: jax.random.normal(jax.random.key(7)) + 0 * x, XS)
    assert len(np.unique(same)) == 1


def test_as_a_pure_function_and_under_a_tape():
    rng, w = G(7), jv.Variable(2.0)

    def run():
        return jv.vectorized_map(lambda x: w * rng.normal(()), XS)

    expected = run()
    rng.reset_from_seed(7)
    found, after = jax.jit(jv.functionalize(run))(jv.State.of(rng=rng, w=w))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert after["rng/state"].tolist() == [0, 7, 0, 1]
    with jv.GradientTape() as tape:
        y = run().sum()
    np.testing.assert_allclose(tape.gradient(y, w), y / 2, rtol=1e-5)
    np.testing.assert_allclose(y, expected.sum(), rtol=1e-5)


def test_dropout_of_each_example():
    rng = G(7)
    drop = jv.compile(lambda xs: jv.vectorized_map(lambda x: x * rng.bernoulli((64,)), xs))
    masks = [drop(jnp.ones((8, 64))) for _ in range(3)]
    rows = {tuple(row) for mask in masks for row in mask.tolist()}
    assert len(rows) == 24


def test_a_failed_check_draws_nothing():
    rng = G(7)

    def one(x):
        jv.debugging.assert_less(x, 3.0)
        return rng.normal(())

    run = jv.compile(lambda xs: jv.vectorized_map(one, xs))
    run(XS[:3])
    with pytest.raises(jv.errors.CheckError):
        run(XS)
    assert state(rng) == [0, 7, 0, 1]


@pytest.mark.parametrize("draws", [1, 20])
def test_over_all_examples_they_are_distributed_as_they_should(draws):
    x = jv.vectorized_map(lambda x: G_7.normal((draws,)), jnp.arange(20_000 // draws))
    flat = np.asarray(x, np.float64).ravel()
    assert stats.kstest(flat, stats.norm().cdf).pvalue > 1e-3
    assert abs(np.corrcoef(flat[:-1], flat[1:])[0, 1]) < 0.03


G_7 = G(7)


def test_other_variables_are_refused_as_before():
    rng, w = G(7), jv.Variable(1.0, name="w")

    def one(x):
        w.assign(x * rng.normal(()))
        return x

    with pytest.raises(ControlFlowError, match="Variable 'w' is assigned inside"):
        jv.vectorized_map(one, XS)
    assert state(rng) == [0, 7, 0, 0]
