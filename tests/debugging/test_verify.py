"""`jv.debugging.verify`: it finds what differs, names it, and changes nothing."""

from __future__ import annotations

import functools
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threads import run_in_threads

import jaxvars as jv
from jaxvars.debugging import verify
from jaxvars.errors import CheckError, LeakWarning
from jaxvars.tracing import context

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
        "compiled", "pure under jax.jit", "by a tape around compiled code",
    ]  # fmt: skip
    assert all(worst < 1e-2 for *_, worst in table)
    jax.tree.map(np.testing.assert_array_equal, dict(jv.State.of(model)), before)
    assert jv.compile(lambda: model.w.value)().tolist() == [1.0, 2.0]


def test_arguments_may_be_modules_strings_and_keywords():
    model = Model()

    def step(model, x, *, act):
        return getattr(jnp, act)(model.w * x)

    assert len(verify(step, model, X, act="tanh")) == 3
    assert len(verify(step, model, X, act="tanh", gradients=False)) == 2


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
    with pytest.raises(CheckError, match=r"call 1: result, element \[\d\], is .* by Python"):
        verify(lambda x: x * np.random.default_rng().random(), X)


def test_what_the_function_raises_comes_through():
    with pytest.raises(TypeError, match="dot_general"):
        verify(lambda x: x @ jnp.ones(5), X)


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
        is_traced = context.is_tracer(a + 0)
        return (jax.lax.stop_gradient(a) if is_traced else a + 0) * b

    with pytest.raises(CheckError, match=r"the gradient of variable 'Variable' is 0\.0 by a tape"):
        jv.debugging.verify(loss)


def _changes_its_argument(d, x):
    d["n"] = d["n"] + x
    return x


def _appends_what_it_was_given(items, x):
    items.append(x)
    return x


def _adds_in_place(a):
    a += 1
    return jnp.sum(a * 1.0)


def _other_class(x):
    return [x] if context.is_tracer(x) else (x,)


@pytest.mark.parametrize(
    ("fn", "args", "message"),
    [
        (_changes_its_argument, ({"n": X}, X), r"call 1: argument\[0\]\[0\]\['n'\]"),
        (_appends_what_it_was_given, ([], X), r"call 1: argument\[0\]\[0\]\[0\]"),
        (_adds_in_place, (np.zeros(2, np.float32),), "call 2: result is 2.0 compiled"),
        (_other_class, (X,), r"the structure of the result is \('list', None\) compiled"),
    ],
)
def test_changed_arguments_and_other_containers_are_found(fn, args, message):
    before = repr(args)
    with pytest.raises(CheckError, match=message):
        verify(fn, *args)
    assert repr(args[-1]) in before


_W = jv.Variable(np.random.default_rng(0).standard_normal((8, 64)), name="w", dtype=jnp.float32)
_B = jv.Variable(jnp.zeros(64), name="b")


def _normalized(x):
    y = x @ _W + _B  # normalized, so that a bias has no effect: its gradient is rounding alone
    return jnp.tanh((y - y.mean(0)) / jnp.sqrt(y.var(0) + 1e-5))


_RIGHT = {
    "many": (lambda x: jnp.mean(x**2), (3 * jnp.ones(10**5),)),
    "large": (lambda x: x * 1e20, (X,)),
    "kink": (jnp.abs, (jnp.array([0.0, 1.0]),)),
    "kinks": (lambda x: jnp.mean(jax.nn.relu(x @ _W)), (jnp.ones((4, 8)),)),
    "nan": (jnp.log, (X,)),
    "infinite": (lambda x: 1 / x, (jnp.array([0.0, 2.0]),)),
    "masked": (lambda x: jax.nn.softmax(x), (jnp.array([1.0, -jnp.inf, 2.0]),)),
    "half": (lambda x: jnp.sum(jnp.exp(x)), (jnp.linspace(0, 1, 64).astype(jnp.float16),)),
    "steep": (lambda x: jnp.exp(20 * x), (jnp.array([0.5, 1.0]),)),
    "complex": (lambda z: jnp.abs(z * z), (jnp.array([1 + 2j, 3]),)),
    "cancelling": (_normalized, (np.random.default_rng(1).standard_normal((5, 8), np.float32),)),
}


@pytest.mark.parametrize("name", _RIGHT)
def test_what_is_right_raises_no_false_alarm(name):
    fn, args = _RIGHT[name]
    assert len(verify(fn, *args)) == 3


def test_flags_static_arguments_and_control_flow_stay_those_of_the_compiled_function():
    power = jv.compile(lambda x, n: x**n if n > 1 else x, static_argnames="n")

    @functools.partial(jv.compile, autograph=True)
    def doubled(x):
        while jnp.sum(jnp.abs(x)) < 9:
            x = x * 2
        return x

    verify(lambda x, training: x * 2 if training else x, X, True)
    verify(power, X, n=3)
    verify(doubled, X)


def test_a_difference_of_zero_may_be_asked_for():
    def f(x):
        return x * (1 + 1e-6) if context.is_tracer(x) else x

    verify(f, X)
    with pytest.raises(CheckError, match=r"call 1: result, element"):
        verify(f, X, rtol=0.0)


def test_an_integer_beyond_those_of_jax_differs_and_no_call_is_not_a_check():
    with pytest.raises(CheckError, match=r"is int32\[\] compiled, and 10000000000 by Python"):
        verify(lambda n: n * n, 100_000)
    with pytest.raises(ValueError, match="calls=0 times"):
        verify(lambda n: n * n, 1, calls=0)


def test_warnings_of_other_threads_stay_warnings():
    def warn():
        warnings.warn("of another thread", LeakWarning, stacklevel=1)

    def step(x):
        run_in_threads(warn)
        return 2 * x

    with pytest.warns(LeakWarning, match="of another thread"):
        verify(step, X)
