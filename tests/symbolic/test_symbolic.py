"""Programs with unknown dimensions, filled in: values, derivatives, effects."""

from __future__ import annotations

import collections
import fractions
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxvars as jv
from jaxvars.programs.open_sizes import OpenCalls
from jaxvars.symbolic import propagate as _open_values
from jaxvars.symbolic.sizes import to_compared
from jaxvars.symbolic.specialize import at_sizes, size_at, symbol
from jaxvars.tracing import jaxprs, recorder

scaled = jax.custom_vjp(lambda x: jnp.sin(x) * x.shape[0])

scaled.defvjp(lambda x: (scaled(x), x), lambda x, g: (g * jnp.cos(x) * x.shape[0],))


def program(w, x):
    y = jax.checkpoint(lambda x: jax.nn.softmax(jax.nn.relu(scaled(x) @ w)))(x)
    total, rows = jax.lax.scan(lambda c, row: (c + row, c * 2), jnp.zeros(2), y)
    count = jax.lax.while_loop(lambda i: i < x.shape[0], lambda i: i + 1, 0)
    some = jax.lax.cond(y.sum() > 0, lambda: rows, lambda: jnp.zeros((x.shape[0], 2)))
    return total.sum() + some.sum() + count, some


def test_a_program_for_any_size_has_the_values_and_derivatives_of_one_for_that_size():
    w = jnp.asarray(np.random.default_rng(0).normal(size=(3, 2)), jnp.float32)
    spec = jax.ShapeDtypeStruct((symbol("batch"), 3), jnp.float32)
    opened = jax.make_jaxpr(program)(w, spec)
    for n in (1, 4):
        x = jnp.asarray(np.random.default_rng(n).normal(size=(n, 3)), jnp.float32)
        run = jaxprs.jaxpr_function(at_sizes(opened, {"batch": n}))
        for got, wanted in zip(jax.jit(run)(w, x), program(w, x), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
        slope = jax.grad(lambda w: run(w, x)[0])(w)  # noqa: B023
        np.testing.assert_allclose(slope, jax.grad(lambda w: program(w, x)[0])(w), rtol=1e-4)  # noqa: B023


def test_sizes_are_numbers_once_their_symbols_are():
    a, b = export.symbolic_shape("a, b")
    size = 3 * a**2 - (b - 7) // 2 + a % 4
    for m, n in ((5, 8), (3, 20)):
        assert size_at(size, {"a": m, "b": n}) == 3 * m**2 - (n - 7) // 2 + m % 4
    with pytest.raises(KeyError):
        size_at(size, {"a": 1})


def sizes_in(fn, *shapes):
    """Return what a function of arrays gives, as sizes, while it is traced."""
    found = []

    def traced(*xs):
        with recorder.recording(_open_values._CURRENT.value):
            value = fn(*xs)
        found.append(_open_values.sizes_of(value))
        return value

    with _open_values.follow_sizes():
        jax.make_jaxpr(traced)(*[jax.ShapeDtypeStruct(shape, "float32") for shape in shapes])
    return None if found[0] is None else found[0].tolist()


def test_what_is_computed_of_sizes_is_known_to_be_sizes():
    b = symbol("batch")
    shape = lambda x: _open_values.array_of(x.shape, jnp.int32)  # noqa: E731
    assert sizes_in(shape, (b, 3)) == [b, 3]
    assert sizes_in(lambda x: shape(x)[0] * 2 + 1, (b, 3)) == 2 * b + 1
    assert sizes_in(lambda x: jnp.stack([shape(x)[0], 5]), (b, 3)) == [b, 5]
    assert sizes_in(lambda x: jnp.concatenate([shape(x)[::-1], jnp.array([7])]), (b, 3)) == [
        3,
        b,
        7,
    ]
    assert sizes_in(lambda x: jnp.prod(shape(x)) // 2, (b, 4)) == 2 * b
    assert sizes_in(lambda x: jax.jit(lambda n: n[:1] - 1)(shape(x)), (b, 3)) == [b - 1]


def test_what_depends_on_how_large_sizes_are_is_a_number_as_any_other():
    b = symbol("batch")
    shape = lambda x: _open_values.array_of(x.shape, jnp.int32)  # noqa: E731
    assert sizes_in(lambda x: jnp.where(shape(x) > 3, 1, 2), (b, 3)) is None
    assert sizes_in(lambda x: shape(x) * x[:1, 0].astype(int), (b, 3)) is None
    assert sizes_in(lambda x: shape(x) / 2, (b, 3)) is None


def test_a_compiled_function_is_traced_once_for_open_sizes():
    w, steps, runs = jv.Variable(jnp.ones((3, 2))), jv.Variable(0), []

    def step(x, y):
        runs.append(x.shape)
        steps.assign_add(1)
        with jv.GradientTape() as tape:
            loss = jnp.mean((jax.nn.relu(x @ w) - y[:, None]) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    compiled = jv.compile(step)
    compiled.source = OpenCalls(lambda call: [[True, False], [True]])
    for n in (4, 4, 2, 1):
        x = jnp.asarray(np.random.default_rng(n).normal(size=(n, 3)), jnp.float32)
        want, state = jv.functionalize(step)(jv.State.of([w, steps]), x, x[:, 0])
        runs.pop()
        np.testing.assert_allclose(compiled(x, x[:, 0]), want, rtol=1e-5)
        np.testing.assert_allclose(w.value, jax.tree.leaves(state)[0], rtol=1e-5)
    assert len(runs) == compiled.trace_count == 1
    assert int(steps.value) == 4
    compiled(jnp.ones((0, 3)), jnp.ones(0))
    assert runs[1:] == [(0, 3)]


def test_what_needs_to_know_its_sizes_is_traced_for_each():
    made, runs = [], []

    def f(x):
        runs.append(x.shape)
        if not made:
            made.append(jv.Variable(2.0))
        return sum(x[i] for i in range(x.shape[0])) * made[0]

    compiled = jv.compile(f)
    compiled.source = OpenCalls(lambda call: [[True]])
    assert float(compiled(jnp.arange(3.0))) == 6.0
    assert float(compiled(jnp.arange(4.0))) == 12.0
    assert [all(isinstance(n, int) for n in shape) for shape in runs] == [False, True, True]
    assert compiled.trace_count == 2


def test_a_variable_as_large_as_what_was_given_has_a_known_size():
    made = []

    def f(x):
        if not made:
            made.append(jv.Variable(jnp.zeros(x.shape)))
        return made[0].assign_add(x) + 0

    compiled = jv.compile(f)
    compiled.source = OpenCalls(lambda call: [[True]])
    assert compiled(jnp.ones(3)).tolist() == [1.0] * 3
    assert made[0].shape == (3,)
    with pytest.raises(jv.errors.ShapeError, match=r"shape \(3,\): the update has shape \(4,\)"):
        compiled(jnp.ones(4))


SPEC = jax.ShapeDtypeStruct((1, 3), "float32")
same = functools.lru_cache(lambda n: n)


@pytest.mark.parametrize("asks", [
    lambda n: n == 1, lambda n: n != 1, lambda n: n == 1.0, lambda n: np.float32(1) == n,
    lambda n: np.int64(1) == n, lambda n: n % 2 == 0, lambda n: bool(n % 2), lambda n: not n - 1,
    lambda n: n in (1, 2), lambda n: n in {1, 2}, lambda n: (n, 3) == (1, 3),
    lambda n: np.array_equal((n, 3), (1, 3)), lambda n: [1, 2].count(n),
    lambda n: 2 * n + 1 == n + 4, lambda n: n == 1 + 0j, lambda n: fractions.Fraction(1) == n,
    lambda n: {1: 3.0}.get(n, 1.0), lambda n: {(1, 3): 3.0}.get((n, 3), 1.0),
    lambda n: {8: 3.0}.get(2 * n), lambda n: {1: 3.0}.pop(n, 1.0), lambda n: {n} & {1},
    lambda n: len({n, 1}), lambda n: {n: 1.0}, lambda n: collections.Counter([n, 1]),
    lambda n: {SPEC: 3.0}.get(jax.ShapeDtypeStruct((n, 3), "float32")),
    lambda n: jax.ShapeDtypeStruct((n, 3), "float32") == SPEC,
    lambda n: {same(1): 3.0}.get(n), lambda n: (lambda found: found.get(n))({1: 3.0}),
])  # fmt: skip
def test_a_question_whose_answer_depends_on_the_size_raises(asks):
    n = to_compared(symbol("batch"))
    with pytest.raises(
        jax.errors.InconclusiveDimensionOperation,
        match=r"^test_symbolic.py:\d+, in <lambda>, asks whether the unknown dimension .*batch",
    ):
        asks(n)


def test_a_question_with_one_answer_for_all_sizes_has_it():
    n, m = map(to_compared, export.symbolic_shape("n, m", constraints=["m >= n + 2"]))
    assert n == n + 0
    assert (n, 3) == (n + 1 - 1, 3)
    assert not any([n == 0, n == n + 1, m == n, n == "a", n == None])  # noqa: E711
    assert all([n != 0, n, m - n])


class Counted:
    counts = functools.partial(jax.jit, static_argnums=(0, 1))(lambda self, n: jnp.arange(n))


def test_functions_that_keep_results_take_sizes():
    n, counted = to_compared(symbol("batch")), Counted()
    counts, key = jax.jit(jnp.arange, static_argnums=0), types.SimpleNamespace(same=same)
    found = [same(n), same(n=n), key.same(n)]
    assert found == [n, n, n]

    def f(x):
        return x + counts(x.shape[0]) + counted.counts(x.shape[0])

    opened = jax.make_jaxpr(f)(jax.ShapeDtypeStruct((n,), "int32"))
    found = jaxprs.jaxpr_function(at_sizes(opened, {"batch": 3}))(jnp.ones(3, "int32"))
    assert found[0].tolist() == [1, 3, 5]


def test_jax_looks_up_sizes_of_one_hash():  # Python's hash of -1 is that of -2
    n, m = map(to_compared, export.symbolic_shape("n, m"))
    assert [bool(-2 * n - 2 * m - 2 >= 0), bool(-n - m - 1 >= 0)] == [False, False]


def test_sizes_are_compared_with_arrays_in_the_program():
    spec = jax.ShapeDtypeStruct((to_compared(symbol("batch")),), "float32")
    for other in (jnp.array([3, 4]), np.array([3, 4])):
        opened = jax.make_jaxpr(lambda x: x.shape[0] == other)(spec)  # noqa: B023
        found = jaxprs.jaxpr_function(at_sizes(opened, {"batch": 3}))(jnp.ones(3))
        assert found[0].tolist() == [True, False]


def test_what_depends_on_its_size_is_traced_for_each():
    compiled = jv.compile(lambda x: x * (100 if x.shape[0] % 2 else 2))
    compiled.source = OpenCalls(lambda call: [[True]])
    for n in (1, 2, 3, 4):
        np.testing.assert_array_equal(compiled(jnp.ones(n)), jnp.ones(n) * (100 if n % 2 else 2))
    assert compiled.trace_count == 4


def test_an_inner_function_is_traced_once_for_an_open_size():
    inner = jv.compile(lambda x: x * 2)
    spec = jax.ShapeDtypeStruct((symbol("batch"),), "float32")
    inner.trace(spec)
    jv.compile(lambda x: inner(x) + 1).trace(spec)
    assert inner.trace_count == 1
