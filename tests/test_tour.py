"""A tour for the newcomer: the ideas of jaxvars, one after another. Read it from the top."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxvars as jv


def test_1_a_variable_is_a_value_that_can_be_assigned():
    w = jv.Variable([1.0, 2.0], name="w")
    before = w.value  # a plain jax.Array: tensors are not wrapped
    w.assign_add([10.0, 10.0])
    assert isinstance(before, jax.Array)
    np.testing.assert_array_equal(before, [1.0, 2.0])  # arrays never change, variables do
    np.testing.assert_array_equal(w, [11.0, 12.0])


def test_2_it_reads_as_an_array_wherever_one_is_expected():
    w = jv.Variable([1.0, -2.0])
    assert float(jnp.sum(w)) == -1.0
    np.testing.assert_array_equal(jax.nn.relu(w), [1.0, 0.0])
    np.testing.assert_array_equal(optax.l2_loss(w, w), [0.0, 0.0])
    np.testing.assert_array_equal(2 * w + 1, [3.0, -3.0])


def test_3_shape_and_dtype_are_for_life_and_errors_say_so():
    w = jv.Variable([1.0, 2.0], name="w")
    with pytest.raises(ValueError, match=r"shape \(3,\) to variable 'w' of shape \(2,\)"):
        w.assign([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(w, [1.0, 2.0])  # and nothing has changed


def test_4_compile_finds_the_variables_by_itself_in_one_trace():
    total = jv.Variable(0.0)
    runs = []

    @jv.compile
    def add(x):
        runs.append("traced")  # Python happens while tracing
        total.assign_add(x)
        return total * 2

    assert [float(add(x)) for x in (1.0, 2.0, 3.0)] == [2.0, 6.0, 12.0]
    assert float(total) == 6.0
    assert runs == ["traced"]


def test_5_a_tape_records_any_jax_code():
    w = jv.Variable(3.0)
    with jv.GradientTape() as tape:
        loss = jax.nn.softplus(w * 2.0)
        if loss > 1.0:  # values are concrete: Python's own control flow works
            loss = loss**2
    expected = jax.grad(lambda v: jax.nn.softplus(v * 2.0) ** 2)(3.0)
    assert float(tape.gradient(loss, w)) == float(expected)


def test_6_a_training_step_is_all_three_together():
    w = jv.Variable(jnp.zeros(2))
    x = jax.random.normal(jax.random.key(0), (64, 2))
    y = x @ jnp.array([2.0, -1.0])

    @jv.compile
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = jnp.mean((x @ w - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    losses = [float(step(x, y)) for _ in range(100)]
    assert losses[-1] < 1e-3 * losses[0]
    np.testing.assert_allclose(w, [2.0, -1.0], atol=0.05)


def test_7_a_module_is_an_object_whose_variables_are_found():
    class Linear(jv.Module):
        def __init__(self):
            self.w = jv.Variable(jnp.ones((2, 3)))
            self.bias = [jv.Variable(jnp.zeros(3), trainable=False)]

        @jv.compile
        def __call__(self, x):
            return x @ self.w + self.bias[0]

    model = Linear()
    assert list(model.named_variables) == ["bias/0", "w"]
    assert model.trainable_variables == (model.w,)
    np.testing.assert_array_equal(model(jnp.ones(2)), [2.0, 2.0, 2.0])


def test_8_the_same_code_is_a_pure_function_of_its_state():
    w = jv.Variable(1.0, name="w")

    def double():
        w.assign(w * 2.0)
        return w + 0.0

    pure = jv.functionalize(double)
    state = jv.State.of(w)  # a pytree: path -> array
    result, after = jax.jit(pure)(state)
    assert (float(result), float(after["w"]), float(w)) == (2.0, 2.0, 1.0)

    many = jax.tree.map(lambda leaf: jnp.stack([leaf, 10 * leaf]), state)
    _, trained = jax.vmap(pure)(many)  # two at once
    np.testing.assert_array_equal(trained["w"], [2.0, 20.0])

    after.commit()  # back into the variable
    assert float(w) == 2.0


def test_9_a_step_happens_or_does_not():
    w = jv.Variable(1.0)

    @jv.compile
    def step(x):
        w.assign(x)
        raise RuntimeError("after the assignment")

    with pytest.raises(RuntimeError, match="after the assignment"):
        step(5.0)
    assert float(w) == 1.0


def test_10_variables_are_created_on_the_first_call_or_never():
    class Lazy(jv.Module):
        def __init__(self):
            self.w = None

        @jv.compile
        def __call__(self, x):
            if self.w is None:
                self.w = jv.Variable(jnp.ones(x.shape))
            return self.w * x

    lazy = Lazy()
    np.testing.assert_array_equal(lazy(jnp.array([1.0, 2.0])), [1.0, 2.0])
    np.testing.assert_array_equal(lazy.w, [1.0, 1.0])  # arrays, not tracers
    kept = []

    @jv.compile
    def careless(x):
        kept.append(jv.Variable(1.0))
        return kept[-1] * x

    with pytest.raises(ValueError, match="tried to create variables on non-first call"):
        careless(1.0)


def test_11_plain_jit_knows_nothing_of_variables_and_is_told_so():
    w = jv.Variable(1.0, name="w")
    with pytest.raises(jv.errors.ForeignTransformError, match=r"'w'.*Use @jv\.compile"):
        jax.jit(lambda x: w.assign(x))(2.0)
    with pytest.warns(jv.errors.StaleReadWarning, match="'w'.*becomes a constant"):
        jax.jit(lambda x: w * x)(2.0)
    assert float(w) == 1.0


def test_12_a_compiled_function_can_be_looked_into():
    w = jv.Variable(2.0, name="w")
    scale = jv.compile(lambda x: w * x)
    concrete = scale.trace(jv.TensorSpec((3,)))
    assert concrete.captured == (w,)
    assert "mul" in str(concrete.jaxpr)
    assert concrete.cost["flops"] == 3.0
    assert concrete.graph.svg.startswith("<svg")
    assert [why for _, why, _ in scale.traces] == ["first call"]


def test_13_a_compiled_function_needs_help_with_an_if_and_says_so():
    def absolute(x):
        if x < 0:  # a question to a value that is known only when the program runs
            x = -x
        return x

    assert absolute(-2.0) == 2.0  # eagerly it is Python
    with pytest.raises(jv.errors.ControlFlowError, match=r"(?s)test_tour\.py.*autograph=True"):
        jv.compile(absolute)(-2.0)
    assert float(jv.compile(autograph=True)(absolute)(-2.0)) == 2.0  # converted, as it stands


def test_14_only_what_python_cannot_know_becomes_part_of_the_program():
    @jv.compile(autograph=True)
    def collatz(n, verbose):
        steps = 0
        if verbose:  # known while the function is traced: Python's own
            jv.print("from", n)
        while n != 1:  # not known: one operation, with a branch in it
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    assert [int(collatz(n, verbose=False)) for n in (1, 6, 27)] == [0, 8, 111]
    assert collatz.trace_count == 1
    names = [str(equation.primitive) for equation in collatz.trace(6, verbose=False).jaxpr.eqns]
    assert names.count("while") == 1
    assert "debug_callback" not in names


def test_15_branches_and_loops_assign_variables():
    total, skipped = jv.Variable(0.0), jv.Variable(0)

    def add_up(xs):
        for x in xs:
            if x < 0:
                skipped.assign_add(1)  # in one branch alone: a variable always has a value
                continue
            total.assign_add(x)
        return total.value

    xs = jnp.array([1.0, -5.0, 2.0])
    assert float(add_up(xs)) == 3.0
    assert float(jv.compile(autograph=True)(add_up)(xs)) == 6.0
    assert int(skipped) == 2


def test_16_the_same_in_the_forms_of_jax():
    level = jv.Variable(1.0)

    @jv.compile
    def step(xs):
        def one(carry, x):
            level.assign(jv.cond(x > level, lambda: x, lambda: level.value))
            return carry + 1, level.value

        return jv.scan(one, 0, xs)

    count, highest = step(jnp.array([0.5, 3.0, 2.0]))
    np.testing.assert_array_equal(highest, [1.0, 3.0, 3.0])
    assert (int(count), float(level)) == (3, 3.0)
    assert float(jv.while_loop(lambda y: y < 10, lambda y: 2 * y, 3.0)) == 12.0
    np.testing.assert_array_equal(jv.map_fn(lambda x: x * level, jnp.arange(3.0)), [0.0, 3.0, 6.0])


def test_17_loops_have_gradients_however_often_they_run():
    w = jv.Variable(2.0)

    def gradient(x, bound):
        with jv.GradientTape() as tape:
            y = jv.while_loop(lambda y: y < 100, lambda y: w * y, x, max_iterations=bound)
        return tape.gradient(y, w)

    assert float(gradient(1.0, None)) == 448.0  # eagerly, the tape has seen seven iterations
    assert float(jv.compile(lambda x: gradient(x, None))(1.0)) == 448.0  # some states are kept
    assert float(jv.compile(lambda x: gradient(x, 20))(1.0)) == 448.0  # JAX's own `grad` can, too


def test_18_a_check_that_fails_leaves_everything_as_it_was():
    w = jv.Variable([1.0, 2.0], name="w")
    steps = jv.Variable(0, trainable=False)

    @jv.compile(guard="finite", autograph=True)
    def step(gradient):
        steps.assign_add(1)
        assert jnp.max(gradient) < 100.0, "exploded"
        w.assign_sub(gradient)

    step(jnp.array([0.5, 0.5]))
    with pytest.raises(jv.errors.CheckError, match=r"exploded \(test_tour\.py"):
        step(jnp.array([0.0, 1000.0]))
    with pytest.raises(jv.errors.CheckError, match="'w' not finite: 1 of 2 elements"):
        step(jnp.array([0.0, -jnp.inf]))
    np.testing.assert_array_equal(w, [0.5, 1.5])
    assert int(steps) == 1


def test_19_print_and_collect_from_inside_a_loop(capsys):
    @jv.compile(autograph=True)
    def halve(n):
        seen = jv.TensorArray(jnp.int32, size=8)  # room for as many; a list would have no length
        count = 0
        while n > 0:
            jv.print("{}: {n}", count, n=n)
            seen = seen.write(count, n)
            n, count = n // 2, count + 1
        return seen.stack(), count

    seen, count = halve(5)
    np.testing.assert_array_equal(seen[:count], [5, 2, 1])
    assert capsys.readouterr().out == "0: 5\n1: 2\n2: 1\n"
