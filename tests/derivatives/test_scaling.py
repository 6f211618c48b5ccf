"""A product that is 0 where its first factor is 0: forwards, backwards, twice, and of batches."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxvars.derivatives.scaling import reads_nothing, scale
from jaxvars.tracing.jaxprs import has_users_rule

X = jnp.array([0.0, 2.0, 3.0])
FACTOR = jnp.array([jnp.inf, jnp.nan, 4.0])


def test_zero_stays_zero():
    for run in (scale, jax.jit(scale), jax.vmap(scale)):
        np.testing.assert_array_equal(run(X, FACTOR), [0.0, np.nan, 12.0])
    assert scale(jnp.complex64(0), jnp.complex64(np.inf)) == 0


def test_an_incoming_gradient_of_zero_stays_zero():
    for run in (scale, jax.jit(scale)):
        _, pull = jax.vjp(lambda x: run(x, FACTOR), X)  # noqa: B023 - called at once
        np.testing.assert_array_equal(pull(X)[0], [0.0, np.nan, 12.0])
        _, moved = jax.jvp(lambda x: run(x, FACTOR), (X,), (X,))  # noqa: B023 - called at once
        np.testing.assert_array_equal(moved, [0.0, np.nan, 12.0])


def test_both_factors_have_derivatives():
    def product(x, y):
        return scale(x * x, y * y)

    x, y = 3.0, 2.0
    for derivative in (jax.grad, jax.jacfwd):
        assert [float(g) for g in derivative(product, (0, 1))(x, y)] == [24.0, 36.0]
    found = jax.hessian(product, (0, 1))(x, y)
    assert [[float(h) for h in row] for row in found] == [[8.0, 24.0], [24.0, 18.0]]


def test_a_batch_of_one_factor():
    rows = jnp.stack([X, X + 1])
    found = jax.vmap(scale, (0, None))(rows, FACTOR)
    np.testing.assert_array_equal(found, [scale(row, FACTOR) for row in rows])
    found = jax.vmap(scale, (None, 1), 1)(X, jnp.stack([FACTOR, FACTOR], 1))
    np.testing.assert_array_equal(found, jnp.stack([scale(X, FACTOR)] * 2, 1))


@pytest.mark.parametrize(("mark", "is_users"), [(lambda rule: rule, True), (reads_nothing, False)])
def test_a_rule_that_reads_nothing_is_as_jaxs_own(mark, is_users):
    made = jax.custom_jvp(jnp.sqrt)
    made.defjvp(mark(lambda primals, tangents: (made(*primals), scale(tangents[0], primals[0]))))
    assert has_users_rule(jax.make_jaxpr(jax.jit(made))(4.0)) is is_users
