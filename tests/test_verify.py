"""`jv.debugging.verify`: it finds what differs, names it, and changes nothing."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import _trace
from jaxvars.debugging import verify
from jaxvars.errors import CheckError

X = jnp.array([0.5, -1.0])


class Model(jv.Module):
    def __init__(self):
        self.w = jv.Variable([1.0, 2.0], name="w")
        self.random = jv.random.Generator(3)

    @jv.compile
    def step(self, x, power=2):
        with jv.GradientTape() as tape:
            loss = jnp.sum((self.w * x - self.random.normal((2,))) ** power)
        self.w.assign_sub(0.1 * tape.gradient(loss, self.w))
        return {"loss": loss, "steps": 3, "name": "step"}


def test_what_agrees_is_listed_and_nothing_changes():
    model = Model()
    before = dict(jv.State.of(model))
    table = verify(model.step, X)
    assert [row[0] for row in table] == [
        "compiled", "pure under jax.jit", "by a tape around compiled code", "slope", "slope",
    ]  # fmt: skip
    assert all(worst < 1e-2 for *_, worst in table)
    jax.tree.map(np.testing.assert_array_equal, dict(jv.State.of(model)), before)
    assert jv.compile(lambda: model.w.value)().tolist() == [1.0, 2.0]


def test_arguments_may_be_modules_strings_and_keywords():
    model = Model()

    def step(model, x, *, act):
        return getattr(jnp, act)(model.w * x)

    assert len(verify(step, model, X, act="tanh")) == 5


def test_python_state_is_found_in_the_call_and_element_where_it_shows():
    calls = []

    def counting(x):
        calls.append(None)
        return {"y": x * min(len(calls), 3)}

    with pytest.raises(
        CheckError, match=r"verify\(counting\): call 1: result\['y'\], element \[\d"
    ):
        verify(counting, X)


def test_a_variable_that_parts_is_named():
    total, counter = jv.Variable(0.0, name="total"), itertools.count(1)

    def step():
        total.assign_add(next(counter))

    with pytest.raises(
        CheckError, match=r"variable 'total' is .* compiled, .* values must come from"
    ):
        verify(step)
    assert float(total) == 0.0


def test_a_branch_of_python_by_numpy_is_found():
    def step(x):
        return x * np.random.default_rng().random()

    with pytest.raises(CheckError, match=r"call 1: result, element \[\d\], is .* by Python"):
        verify(step, X)


def test_a_wrong_rule_is_found_by_finite_differences():
    @jax.custom_jvp
    def square(x):
        return x**2

    square.defjvps(lambda t, out, x: 3 * x * t)
    with pytest.raises(CheckError, match=r"finite differences. Is there a rule of its own"):
        verify(lambda x: square(x), X)
    assert len(verify(lambda x: square(x), X, gradients=False)) == 2


@pytest.mark.parametrize("loop", ["forward only", "reverse only"])
def test_functions_with_one_mode_of_derivatives_are_checked_in_that(loop):
    if loop == "forward only":

        def fn(x):
            return jv.while_loop(lambda c: jnp.sum(c) < 5.0, lambda c: c + jnp.exp(x), x)
    else:

        @jax.custom_vjp
        def fn(x):
            return jnp.sin(x)

        fn.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))
    assert [row[0] for row in verify(lambda x: fn(x), X)][-1] == "slope"


def test_what_the_function_raises_comes_through():
    def wrong(x):
        return x @ jnp.ones(5)

    with pytest.raises(TypeError, match="dot_general"):
        verify(wrong, X)


def test_integers_and_random_keys_agree_exactly():
    count = jv.Variable(1, name="count")
    key = jv.Variable(jax.random.key(0), name="key")

    def step():
        key.assign(jax.random.split(key.value)[0])
        count.assign(count * 3)
        return key.value

    verify(step, calls=3)


def test_gradients_of_variables_that_share_a_name_are_all_compared():
    a, b = jv.Variable(2.0), jv.Variable(3.0)

    def loss():
        is_traced = _trace.is_tracer(a + 0)
        return (jax.lax.stop_gradient(a) if is_traced else a + 0) * b

    with pytest.raises(CheckError, match=r"the gradient of variable 'Variable' is 0\.0 by a tape"):
        jv.debugging.verify(loss)
