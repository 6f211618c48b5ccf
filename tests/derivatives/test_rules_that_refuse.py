"""Functions whose rule refuses a derivative by some inputs, as those of equinox and diffrax do."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv

SLOPE = jv.Variable(7.0, name="slope", trainable=False)


@jax.custom_jvp
def constant(x: Any) -> Any:
    return x


@constant.defjvp
def _refuse(*_: Any) -> Any:
    raise RuntimeError("Unexpected tangent.")


@jax.custom_jvp
def reading(x: Any, fixed: Any) -> Any:
    return x * fixed


def _rule(primals: Any, tangents: Any) -> Any:
    x, fixed = primals
    if not isinstance(tangents[1], jax.custom_derivatives.SymbolicZero):
        raise RuntimeError("Unexpected tangent.")
    return reading(x, fixed), tangents[0] * SLOPE.value


reading.defjvp(_rule, symbolic_zeros=True)


@pytest.fixture
def w() -> jv.Variable:
    return jv.Variable([1.0, 2.0], name="w")


@pytest.fixture
def f(w: jv.Variable) -> Any:
    """Refuses only if it is differentiated by its second argument."""
    return jv.compile(lambda x, fixed: w * x * constant(fixed))


X, FIXED = jnp.asarray([3.0, 4.0]), jnp.asarray([2.0, 2.0])


def test_in_another_compiled_function(f: Any) -> None:
    twice = jv.compile(lambda x: f(x, FIXED) * 2)
    np.testing.assert_array_equal(twice(X), [12.0, 32.0])


def test_under_a_tape_and_jax_grad(f: Any, w: jv.Variable) -> None:
    with jv.GradientTape() as tape:
        y = f(X, FIXED)
    np.testing.assert_array_equal(tape.gradient(y, w), X * FIXED)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x, FIXED).sum())(X), w * FIXED)


def test_in_a_vmap(f: Any) -> None:
    many = jax.vmap(lambda x: f(x, FIXED))(jnp.stack([X, 2 * X]))
    np.testing.assert_array_equal(many, [[6.0, 16.0], [12.0, 32.0]])


def test_a_derivative_that_is_refused_is_refused(f: Any) -> None:
    with pytest.raises(RuntimeError, match="Unexpected tangent"):
        jax.grad(lambda fixed: f(X, fixed).sum())(FIXED)


def test_a_rule_that_reads_a_variable_and_refuses_says_so() -> None:
    g = jv.compile(lambda x, fixed: reading(x, fixed))
    with pytest.raises(RuntimeError, match="Unexpected tangent"):
        jv.compile(lambda x: g(x, FIXED))(X)
