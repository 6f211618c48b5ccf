"""`jv.autograph`: Python's control flow on tensors, eagerly, compiled and differentiated."""

# The programs are as people write them.
# ruff: noqa: B007, B023, C416, PERF401, PERF402, RET503, RET504, RET506, SIM223

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import importlib
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from autograph_objects import map_rows
from autograph_programs import NO_GRADIENT, PROGRAMS

import jaxvars as jv
from jaxvars.autograph import calls
from jaxvars.tracing import jaxprs


def leaves(result):
    return [np.asarray(x, np.float64) for x in jax.tree.leaves(result)]


def agree(result, expected):
    found, wanted = leaves(result), leaves(expected)
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6)


def is_float(x):
    return jnp.issubdtype(jnp.result_type(x), jnp.floating)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_is_eager(name):
    eager, compiled = PROGRAMS[name](), PROGRAMS[name]()
    step = jv.compile(compiled.run, autograph=True)
    for _ in range(2):
        agree(step(*compiled.args), eager.run(*eager.args))
        agree(compiled.variables, eager.variables)
    assert step.trace_count == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_converted_and_run_eagerly_is_plain_python(name):
    plain, converted = PROGRAMS[name](), PROGRAMS[name]()
    expected, result = plain.run(*plain.args), jv.autograph.convert(converted.run)(*converted.args)
    assert str(result) == str(expected)
    agree(converted.variables, plain.variables)


def gradients(made):
    """Return a function that gives the gradients of a program's floats and variables."""
    variables = [v for v in made.variables if v.trainable and is_float(v)]

    def run(*args):
        floats = [x for x in jax.tree.leaves(args) if isinstance(x, jax.Array) and is_float(x)]
        with jv.GradientTape() as tape:
            tape.watch(floats)
            results = [x for x in jax.tree.leaves(made.run(*args)) if is_float(x)]
            loss = sum(jnp.sum(x) for x in results)
        found = tape.gradient(loss, [*floats, *variables])
        return [jnp.zeros(()) if g is None else g for g in found]

    return run


@pytest.mark.filterwarnings("ignore:All gradients are None")
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NO_GRADIENT])
def test_compiled_gradients_are_eager(name):
    eager, compiled = PROGRAMS[name](), PROGRAMS[name]()
    args = jax.tree.map(lambda x: x if isinstance(x, str) else jnp.asarray(x), eager.args)
    expected = gradients(eager)(*args)
    agree(jv.compile(gradients(compiled), autograph=True)(*args), expected)
    agree(compiled.variables, eager.variables)


def compiled(fn):
    return jv.compile(fn, autograph=True)


# ---------------------------------------------------------------- what is staged, and what is not
def primitives(fn, *args):
    return jaxprs.primitives_in(jax.make_jaxpr(jv.autograph.convert(fn))(*args))


def add_up(xs):
    total = 1.0
    for x in xs:
        total += x
    return total


def test_a_traced_array_is_scanned():
    assert "scan" in primitives(add_up, jnp.ones(4))
    assert "while" not in primitives(add_up, jnp.ones(4))


def test_a_traced_range_is_a_while_loop():
    def run(n):
        total = 0
        for i in range(n):
            total += i
        return total

    assert "while" in primitives(run, 4)
    assert compiled(run)(5) == 10
    assert compiled(run)(-3) == 0


def test_a_traced_range_has_the_items_of_pythons():
    def run(start, stop, step):
        out = jnp.zeros(10, jnp.int32)
        for n, i in enumerate(range(start, stop, step)):
            out = out.at[n].set(i)
        return out

    step = compiled(run)
    for bounds in ((3, 11, 2), (11, 3, -2), (4, 4, 1), (10, 3, -3), (0, 7, 3)):
        expected = [*range(*bounds)]
        assert step(*bounds).tolist()[: len(expected)] == expected


def test_reversed_and_zipped_ranges():
    def run(n, xs):
        total = 0.0
        for i, (j, x) in zip(reversed(range(n)), enumerate(xs, start=1), strict=False):
            total = total * 2 + i * j * x
        return total

    assert compiled(run)(3, np.arange(5.0)) == run(3, np.arange(5.0))


def test_known_values_stay_pythons():
    mask = np.array([True, False])  # of NumPy: what JAX computes while tracing is traced
    seen = []

    def run(x):
        for i in range(3):
            seen.append(i)
        while len(seen) < 5:
            seen.append("python")
        for m in mask:
            if m:
                x = x + 1
        return x if mask[0] else None

    assert compiled(run)(1.0) == 2.0
    assert seen == [0, 1, 2, "python", "python"]


def test_a_python_loop_that_a_traced_condition_ends_goes_on_as_one_operation():
    def run(x):
        for i in range(1000):
            x = x * 0.5
            if x < 1e-3:
                break
        return x, i

    assert compiled(run)(1.0)[1] == run(1.0)[1] == 9
    jaxpr = jax.make_jaxpr(jv.autograph.convert(run))(1.0)
    assert len(jaxpr.eqns) < 60


def test_a_python_loop_over_a_list_is_unrolled_behind_a_guard():
    def run(x):
        for name in ["a", "b", "c"]:
            if x > 2:
                break
            x = x + len(name)
        return x, name

    with pytest.raises(jv.errors.ControlFlowError, match="'name'"):
        compiled(run)(1.0)

    def total(x):
        for _ in ["a", "b", "c"]:
            if x > 2:
                break
            x = x + 1
        return x

    assert compiled(total)(1.0) == 3.0


def test_while_true_becomes_a_loop_when_its_break_is_traced():
    def run(n):
        steps = 0
        while True:
            if n <= 1:
                break
            n, steps = n // 2, steps + 1
        return steps

    assert compiled(run)(37) == run(37) == 5


def test_while_true_that_ends_in_a_return():
    def run(x):
        while True:
            x = x * 2
            if x > 100:
                return x, 1.0
            if x < -100:
                return -x, 2.0

    for x in (1.0, -3.0):
        agree(compiled(run)(x), run(x))


def test_while_1_with_every_jump():
    def run(n):
        while 1:
            n = n + 2
            if n > 50:
                continue
            if n % 7 == 0:
                break
            if n > 40:
                return -n
        return n

    assert [compiled(run)(n) for n in (2, 35)] == [run(2), run(35)] == [14, -41]


def test_while_of_a_number_with_a_return():
    def run(n):
        while n:
            n = n - 1
            if n == 3:
                return -n
        return n

    assert [compiled(run)(n) for n in (2, 7)] == [0, -3]


def test_ranges_of_the_unknown_are_refused_outside_of_a_for_statement():
    with pytest.raises(jv.errors.ControlFlowError, match="Only a `for` statement"):
        compiled(lambda n: [i for i in range(n)])(3)
    with pytest.raises(TypeError, match="range\\(\\) takes integers"):
        compiled(lambda n: range(n))(3.0)


def test_a_zero_dimensional_array_cannot_be_iterated():
    def run(x):
        for _ in x:
            pass

    with pytest.raises(TypeError, match="0-d"):
        compiled(run)(3.0)


def test_an_empty_array_runs_no_iteration():
    assert compiled(add_up)(jnp.zeros(0)) == 1.0


def test_a_name_from_a_loop_that_ran():
    def run(xs, n):
        for x in xs:
            y = x * 2
        for i in range(n):
            z = i
        return y, z

    step = compiled(run)
    assert step(np.arange(3.0), 4) == (4.0, 3)
    with pytest.raises(jv.errors.CheckError, match="'z' has no value: only the loop at test_auto"):
        step(np.arange(3.0), 0)


def test_vmap_of_a_converted_function():
    @jv.autograph.convert
    def steps(n):
        count = 0
        while n > 1:
            n, count = n // 2, count + 1
        return count

    assert jax.vmap(steps)(jnp.array([1, 2, 16])).tolist() == [0, 1, 4]


def test_a_function_in_a_converted_one_is_converted():
    first, second = compiled(map_rows)(jnp.array([1.0, -2.0, 3.0]))
    assert (first.tolist(), second) == ([1.0, 0.0, 3.0], 0.0)


def test_a_gradient_taken_eagerly_stays_python():
    @jv.autograph.convert
    def halve(x):
        while x > 1:  # known, though it is differentiated
            x = x / 2
        return x

    assert jax.grad(halve)(5.0) == 0.125


# ---------------------------------------------------------------- operators
def test_operands_are_evaluated_once_and_only_if_needed():
    seen = []

    def see(name, x):
        seen.append(name)
        return x

    def run(x):
        return see("a", 0) < see("b", 1) < see("c", 0) < see("d", x), see("e", 0) and see("f", x)

    assert jv.autograph.convert(run)(1) == run(1) == (False, 0)
    assert seen == ["a", "b", "c", "e"] * 2


def test_and_and_or_return_an_operand():
    def run(x, y):
        return x or y, x and y, not x, (None or x), (0 and x)

    agree(compiled(run)(0.0, 3.0), run(0.0, 3.0))
    agree(compiled(run)(2.0, 3.0), run(2.0, 3.0))


def test_membership():
    def run(i):
        return [
            1 if c else 0 for c in (i in (1, 2), i not in [1, 5], i in range(0, 9, 3), 1 in [1])
        ]

    for i in (1, 3, 5):
        assert compiled(run)(i) == run(i)
    assert compiled(lambda xs: xs[0] in xs and 9.0 not in xs)(jnp.arange(3.0))


def test_a_traced_index():
    table, rows = [1.0, 2.0, 4.0], np.arange(6.0).reshape(3, 2)

    def run(n):
        total = 0.0
        for i in range(n):
            total += table[i] + rows[i].sum() + rows[i, 1] + table[-1]
        return total

    assert compiled(run)(3) == run(3)


def test_a_loop_whose_number_must_be_known_is_unrolled():
    layers = [jnp.sin, jnp.cos, jnp.tanh]

    def run(x):
        for i in range(3):
            x = layers[i](x)
            if x < 0.5:
                break
        return x, i

    agree(compiled(run)(1.0), run(1.0))


def test_the_truth_of_an_array():
    with pytest.raises(jv.errors.ControlFlowError, match=r"shape \(3,\) is ambiguous.*jnp.any"):
        compiled(lambda xs: 1 if xs else 2)(jnp.ones(3))
    assert compiled(lambda xs: 1 if xs else 2)(jnp.ones((1, 1))) == 1


def test_assert():
    w = jv.Variable(0.0)

    @compiled
    def step(x):
        w.assign(x)
        assert x > 0, f"x of {x.shape} is negative"
        return x

    assert step(1.0) == 1.0
    with pytest.raises(
        AssertionError, match=r"assert x > 0 failed: x of \(\) is negative.*autogra"
    ):
        step(-1.0)
    assert w == 1.0  # the step is all or nothing

    def plain(x):
        assert x > 0

    with pytest.raises(AssertionError) as error:
        jv.autograph.convert(plain)(-1)
    assert error.value.args == ()


def test_print(capfd):
    @compiled
    def step(x):
        print("before", x, sep=": ")
        for i in range(x):
            print(i, "of", x)
        print("{}", "done")

    step(2)
    out = capfd.readouterr().out
    assert [line for line in out.splitlines() if line != "{} done"] == [
        "before: 2", "0 of 2", "1 of 2",
    ]  # fmt: skip
    assert "{} done" in out


# ---------------------------------------------------------------- lists
def test_a_list_in_a_loop_of_unknown_length():
    def run(n):
        out = []
        for i in range(n):
            out.append(i)
        return out

    with pytest.raises(jv.errors.ControlFlowError, match=r"(?s)in run, whose number.*TensorArray"):
        compiled(run)(3)

    def own(n):
        total = 0
        for i in range(n):
            parts = [i]
            parts.append(2)
            total += sum(parts) + parts.pop()
        return total

    assert compiled(own)(3) == own(3)


def test_a_list_that_grows_in_one_branch():
    def run(xs):
        out = []
        for x in xs:
            if x > 0:
                out.append(x)
        return out

    with pytest.raises(jv.errors.ControlFlowError, match=r"by 1 items if it holds and by 0 if not"):
        compiled(run)(jnp.ones(3))


def test_a_comprehension_has_a_known_length():
    assert compiled(lambda x: [x * i for i in range(4) if i % 2])(2.0) == [2.0, 6.0]
    message = r"comprehension at test_autograph.py:\d+, in <\w+> is a traced value"
    with pytest.raises(jv.errors.ControlFlowError, match=message):
        compiled(lambda xs: [x for x in xs if x > 0])(jnp.ones(3))


def test_a_list_that_shrinks():
    def run(xs):
        todo = [1.0, 2.0, 3.0]
        for x in xs:
            todo.pop()
        return todo

    with pytest.raises(
        jv.errors.ControlFlowError, match=r"'todo' from \[1.0, 2.0, 3.0\] to \[1.0, 2.0\] in"
    ):
        compiled(run)(jnp.ones(3))


def test_a_list_is_as_it_was_after_an_error():
    kept = ["old"]

    def run(xs):
        for x in xs:
            kept.append(x)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        compiled(run)(jnp.ones(3))
    assert kept == ["old"]


def test_extend():
    def run(xs):
        out = [0.0]
        for x in xs:
            out.extend([x, -x])
        return out

    agree(compiled(run)(jnp.arange(3.0)), run(jnp.arange(3.0)))


@pytest.mark.parametrize(
    "name", ["walrus_in_a_test_that_its_branch_assigns", "every_way_that_goes_on_sets_it"]
)
def test_each_way_through_a_program_is_pythons(name):
    run = PROGRAMS[name]().run
    step = compiled(run)
    for x in (0.1, 0.3, 0.6, 1.2, 1.7, 3.0):
        agree(step(x), run(x))


def test_a_name_that_is_not_set_before_a_jump_fails_where_it_is_read():
    def run(x):
        for a in (x, 2 * x):
            if a > 3:
                y = a
            elif a > 1:
                break
            else:
                y = -a
        return y

    assert float(compiled(run)(4.0)) == 8
    with pytest.raises(jv.errors.CheckError, match=r"'y' has no value.*test_autograph\.py"):
        compiled(run)(2.0)


def test_an_array_is_indexed_by_a_variable():
    i, rows, xs = jv.Variable(2), jv.Variable([0, 2]), jnp.arange(12.0).reshape(3, 4)

    def run(xs):
        return xs[i], xs[1:, i], xs[rows, i], xs[..., i, None], xs.at[i].set(9.0), xs.at[:, i].get()

    i.assign(1)
    agree(compiled(run)(xs), jax.jit(lambda i, rows: (
        xs[i], xs[1:, i], xs[rows, i], xs[..., i, None], xs.at[i].set(9.0), xs.at[:, i].get()
    ))(i.value, rows.value))  # fmt: skip


# ---------------------------------------------------------------- errors
def test_a_name_that_one_branch_sets():
    def run(x):
        if x > 0:
            y = jnp.ones(3) * x
        return y.sum()

    message = (
        r"(?s)'y' is used at test_autograph.py:\d+, in run, but of the two branches of the `if` at "
        r"test_autograph.py:\d+, in run only one sets it.*y = jnp.zeros\(\(3,\), jnp.float32\)"
    )
    with pytest.raises(jv.errors.ControlFlowError, match=message) as error:
        compiled(run)(1.0)
    lines = [int(part.split(",")[0]) for part in str(error.value).split("py:")[1:]]
    first = run.__code__.co_firstlineno
    assert lines == [first + 3, first + 1]


def test_a_name_that_one_branch_sets_and_that_is_never_read():
    def run(x):
        if x > 0:
            y = x
            x = y * 2
        return x

    assert compiled(run)(2.0) == 4.0


def test_a_name_without_a_value_is_pythons_error():
    def run(n):
        if n > 3:
            y = 1
        return y

    with pytest.raises(UnboundLocalError, match="'y'"):
        jv.autograph.convert(run)(1)


def test_a_global_is_not_assigned_in_a_branch():
    def run(x):
        global counter
        if x > 0:
            counter = x
        return x

    with pytest.raises(jv.errors.ControlFlowError, match=r"global 'counter' is assigned.*Variable"):
        compiled(run)(1.0)
    assert "counter" not in globals()


def test_raise_in_a_branch_is_a_check():
    w = jv.Variable(1.0)

    @compiled
    def step(x):
        w.assign(x)
        if x < 0:
            raise ValueError("x is negative")
        elif x > 100:
            y = 100.0
        else:
            y = x * 2
        while x != 0:
            x = x - 1
        return y

    assert step(3.0) == 6.0
    with pytest.raises(ValueError, match=r"ValueError: x is negative \(test_autograph.py:\d+, in"):
        compiled(lambda x: nonnegative(x))(-3.0)
    assert compiled(lambda x: nonnegative(x))(3.0) == 3.0
    assert w == 3.0

    def always(x):
        if x > 0:
            raise KeyError("a")
        else:
            raise KeyError("b")

    with pytest.raises(KeyError, match="b"):
        compiled(always)(1.0)


def nonnegative(x):
    if x >= 0:
        y = x
    else:
        raise ValueError("x is negative")
    return y


def test_objects_are_as_they_were_after_an_error():
    class Box:
        value = 1.0

    box = Box()

    def run(x):
        if x > 0:
            box.value = x
            box.other = x
            jnp.ones(2) + jnp.ones(3)

    with pytest.raises(TypeError, match="shapes"):
        compiled(run)(1.0)
    assert box.value == 1.0
    assert not hasattr(box, "other")


def test_no_source():
    scope = {}
    text = "def f(x):\n    return 1 if x else 2"
    exec(compile(text, "<no file>", "exec"), scope)  # Python 3.13 knows that of `python -c`
    with pytest.raises(jv.errors.ControlFlowError, match=r"source is not available.*autograph=Fal"):
        compiled(scope["f"])(1.0)
    g = scope["f"]
    assert compiled(lambda: g(True))() == 1  # as it is, where another function calls it


def test_what_cannot_be_converted():
    def generate(n):
        yield from range(n)

    def chosen(x):
        match x:
            case 1:
                return 1
        return 2

    with pytest.raises(jv.errors.ControlFlowError, match=r"it has a yieldfrom in line \d+"):
        jv.autograph.convert(generate)(3)
    with pytest.raises(jv.errors.ControlFlowError, match="it has a match"):
        jv.autograph.convert(chosen)(3)
    assert compiled(lambda x: x * sum(generate(3)) * chosen(1))(2.0) == 6.0
    with pytest.raises(jv.errors.ControlFlowError, match="not a Python function"):
        jv.autograph.convert(abs)


def test_a_function_that_could_not_be_converted_is_named():
    def generate(x):
        if x > 0:
            yield x

    with pytest.raises(jv.errors.ControlFlowError, match=r"test_autograph.py:\d+, in generate"):
        compiled(lambda x: sum(generate(x)))(1.0)

    def chosen(x):
        match x > 0:
            case True:
                return 1
        return 1 if x > 0 else 2

    message = r"at test_autograph.py:\d+, in chosen .*not convert .*chosen: it has a match in line"
    with pytest.raises(jv.errors.ControlFlowError, match=message):
        compiled(lambda x: chosen(x))(1.0)


def test_private_names_and_super_in_inner_classes():
    class Outer:
        def __init__(self):
            self.__hidden = 2.0

        def run(self, x):
            class Inner(Outer):
                def __init__(self):
                    super().__init__()
                    self.__hidden = 3.0

                def get(self, y):
                    return self.__hidden if y > 0 else -self.__hidden

            if x > 0:
                x = x * self.__hidden
            return x + Inner().get(x)

    assert compiled(lambda x: Outer().run(x))(1.0) == Outer().run(1.0) == 5.0


def test_tracebacks_show_the_users_lines():
    def helper(x):
        while x > 0:
            if x > 1:
                x.no_such_attribute  # noqa: B018
            x = x - 1
        return x

    with pytest.raises(AttributeError) as error:
        jv.compile(lambda x: helper(x), autograph=True)(3.0)
    own = [e for e in error.traceback if str(e.path) == __file__ and e.name == "helper"]
    first = helper.__code__.co_firstlineno
    assert {e.lineno + 1 - first for e in own} == {1, 2, 3}


# ---------------------------------------------------------------- what is converted
def test_do_not_convert():
    @jv.autograph.do_not_convert
    def plain(x):
        return 1 if x > 0 else 2

    with pytest.raises(Exception, match=r"plain|traced"):
        compiled(lambda x: plain(x))(1.0)
    assert compiled(lambda: plain(1))() == 1


def test_only_the_function_itself():
    def helper(x):
        return 1 if x > 0 else 2

    @jv.autograph.convert(recursive=False)
    def run(x):
        return helper(x) if x is not None else 0

    assert run(1.0) == 1
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(run)(1.0)


def test_decorators_and_partials_and_callables():
    def twice(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            if args[0] > 10:
                return fn(*args)
            return fn(fn(*args))

        return wrapper

    @twice
    def half(x):
        return x / 2 if x > 1 else x

    class Callable:
        def __call__(self, x, y):
            return x if x > y else y

    step = compiled(functools.partial(lambda f, g, x: f(x) + g(x, 1.0), half, Callable()))
    assert step(8.0) == 10.0
    assert step(0.5) == 1.5


def test_a_method_is_compiled_for_each_object():
    class Model(jv.Module):
        def __init__(self, limit):
            self.limit = limit
            self.seen = jv.Variable(0.0)

        @jv.compile(autograph=True)
        def __call__(self, x):
            if x > self.limit:
                self.seen.assign_add(x)
            return self.seen * 2

    assert Model(1.0)(2.0) == 4.0
    assert Model(3.0)(2.0) == 0.0


def test_variables_are_created_once_in_a_converted_function():
    class Layer(jv.Module):
        w = None

        def __call__(self, x):
            if self.w is None:
                self.w = jv.Variable(3.0, name="w")
            if x > 0:
                x = x * self.w
            return x

    layer = Layer()
    step = compiled(lambda x: layer(x))
    assert step(2.0) == 6.0
    assert step(-2.0) == -2.0
    assert isinstance(layer.w, jv.Variable)


def test_a_part_of_a_variable_is_assigned_in_a_loop():
    v = jv.Variable(jnp.zeros(3))

    @compiled
    def step(xs):
        for i, x in enumerate(xs):
            if x > 0:
                v[i] = x
        return v.value

    assert step(jnp.array([1.0, -1.0, 2.0])).tolist() == [1.0, 0.0, 2.0]
    assert isinstance(v, jv.Variable)


def test_functions_of_libraries_are_left_alone():
    code = jv.autograph.to_code(lambda x: jax.nn.relu(x))
    assert "converted_call(jax.nn.relu" in code
    assert compiled(lambda x: optax.l2_loss(jnp.clip(x, 0, 1), 0.0))(3.0) == 0.5
    assert len(calls._REWRITTEN) < 1000


def test_loop_options():
    def run(n):
        while n > 0:
            jv.autograph.set_loop_options(max_iterations=3)
            n = n - 1
        return n

    assert run(5) == jv.autograph.convert(run)(5) == 0
    assert compiled(run)(5) == 2


def test_code_is_rewritten_once():
    made = [PROGRAMS["collatz"]().run for _ in range(3)]
    codes = {jv.autograph._new(fn, recursive=True).__code__ for fn in made}
    assert len({fn.__code__ for fn in made}) == len(codes) == 1


def test_what_follows_a_return_in_a_suppressed_block_runs():
    @jv.autograph.convert
    def number(wanted, text):
        if wanted:
            with contextlib.suppress(ValueError):
                return int(text)
        return 2

    assert [number(True, "7"), number(True, "a"), number(False, "7")] == [7, 2, 2]


# ---------------------------------------------------------------- what has no one form
def different_shapes(x):
    if x > 0:
        y = jnp.ones(2)
    else:
        y = jnp.ones(3)
    return y


def different_dtypes(x):
    y = jnp.ones(2) if x > 0 else jnp.ones(2, jnp.int32)
    return y


def none_in_one_branch(x):
    y = None
    if x > 0:
        y = x
    return y


def nothing_returned(x):
    if x > 0:
        return x


def different_texts(x):
    if x > 0:
        name = "low"
    else:
        name = "high"
    return len(name)


def other_dtype_in_a_loop(x):
    total = jnp.int32(0)
    while total < 3:
        total = total + x
    return total


def other_shape_in_a_loop(x):
    xs = jnp.ones(1)
    for i in range(jnp.int32(x)):
        xs = jnp.concatenate([xs, xs])
    return xs


def other_structure_in_a_loop(x):
    state = (x,)
    while state[0] < 3:
        state = (*state, x)
    return state


DISAGREEMENTS = {
    different_shapes: r"'y' is float32\[2\] if true, but float32\[3\] if false",
    different_dtypes: r"'jnp.ones\(2\) if x > 0 else .*' is float32\[2\] if true, but int32\[2\]",
    none_in_one_branch: r"'y' is float32\[\] if true, but None if false",
    nothing_returned: r"the returned value is float32\[\] if true, but None if false",
    different_texts: r"'name' is 'low' if true, but 'high' if false",
    other_dtype_in_a_loop: r"changes 'total' from int32\[\] to float32\[\]",
    other_shape_in_a_loop: r"changes 'xs' from float32\[1\] to float32\[2\]",
    other_structure_in_a_loop: r"changes 'state' from \(float32\[\],\) to \(float32",
}


@pytest.mark.parametrize("fn", DISAGREEMENTS, ids=lambda fn: fn.__name__)
def test_what_has_no_one_form_is_refused_by_name_and_line(fn):
    with pytest.raises(jv.errors.ControlFlowError, match=DISAGREEMENTS[fn]) as error:
        compiled(fn)(1.0)
    assert f"test_autograph.py:{fn.__code__.co_firstlineno + 1 + (fn in LATER)}" in str(error.value)


LATER = {
    none_in_one_branch,
    other_dtype_in_a_loop,
    other_shape_in_a_loop,
    other_structure_in_a_loop,
}


def test_links_that_debuggers_put_into_syntax_trees_do_no_harm():
    # Tools that explain tracebacks link each node to its parent, `ast.Load()` too, of which
    # Python has one for all trees.
    load = ast.parse("x").body[0].value.ctx
    load.parent = ast.parse("x").body[0].value
    assert load.parent.ctx is load

    def run(x):
        while x < 10:
            x = x * 2
        return x

    try:
        assert float(compiled(run)(1.0)) == 16.0
    finally:
        del load.parent


def test_a_gradient_through_an_open_loop():
    def by_while(x):
        while x < 100:
            x = x * 2
        return x

    def by_range(x):
        for _ in range(jnp.int32(x)):
            x = x * 2
        return x

    def slope(fn, x):
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, x)

    assert compiled(slope)(by_while, 3.0) == 64.0
    assert compiled(slope)(by_range, 3.0) == 8.0


def test_a_gradient_through_an_open_loop_that_prints_names_its_line():
    def by_while(x):
        while x < 100:
            jv.print("x =", x)
            x = x * 2
        return x

    def slope(x):
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = by_while(x)
        return tape.gradient(y, x)

    line = by_while.__code__.co_firstlineno + 1
    with pytest.raises(jv.errors.TapeError, match=rf" at test_autograph\.py:{line}\n"):
        compiled(slope)(3.0)


def test_a_print_of_a_string_in_a_staged_branch_prints_when_the_branch_runs(capsys):
    @jv.compile(autograph=True)
    def fizz(n):
        print("counting")  # outside of any branch: when it is traced, as in TensorFlow
        for i in range(1, n):
            if i % 3 == 0:
                print("Fizz")
            else:
                print(i)

    fizz(5)
    assert capsys.readouterr().out == "counting\n1\n2\nFizz\n4\n"
    fizz(3)
    assert capsys.readouterr().out == "1\n2\n"


# ---------------------------------------------------------------- integers, as Python counts
@jv.compile(autograph=True)
def _counted(a, b, step):
    count, last = 0, 0
    for i in range(a, b, step):
        count += 1
        last = i
    return count, last


@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [
        ("uint8", (5, 3, 1)), ("uint16", (5, 3, 1)), ("uint32", (5, 3, 1)), ("int32", (5, 3, 1)),
        ("uint8", (0, 5, 2)), ("uint8", (200, 255, 60)), ("int8", (-100, 100, 1)),
        ("int8", (100, -120, -30)), ("int32", (2**31 - 1, -(2**31), -(2**30))),
        ("int32", (-(2**31), 2**31 - 1, 2**30)), ("int32", (10, 0, -3)), ("int32", (4, 4, 1)),
    ],
)  # fmt: skip
def test_a_range_to_a_traced_end_is_that_of_python(dtype, bounds):
    numbers = range(*bounds)
    found = _counted(*(jnp.asarray(x, dtype) for x in bounds))
    assert [*map(int, found)] == [len(numbers), [0, *numbers][-1]]


def _numbered(xs):
    found = []
    for i, x in enumerate(xs):
        found.append(x + i * 100)
    return found


def _numbered_by_a_range(xs):
    found = []
    for i, x in zip(range(3), xs):  # noqa: B905
        found.append(x + i * 100)
    return found


def _until(x, n):
    for i in range(300):
        if i > n:
            break
        x = x * (i + 1)
    return x


def _total(xs):
    return sum(xs)


def _total_from(xs):
    return sum(xs, 0.5)


@pytest.mark.parametrize(("fn", "args"), [
    (_numbered, [jnp.array([100, 200, 100], jnp.uint8)]),
    (_numbered_by_a_range, [jnp.array([100, 200, 100], jnp.uint8)]),
    (_until, [jnp.int8(1), jnp.int32(3)]), (_total, [jnp.array([200, 100], jnp.uint8)]),
    (_total, [jnp.array([True, True])]), (_total_from, [jnp.array([200, 100], jnp.uint8)]),
])  # fmt: skip
def test_integers_of_loops_take_the_dtype_of_what_they_meet(fn, args):
    for x, y in zip(
        jax.tree.leaves(fn(*args)), jax.tree.leaves(jv.compile(fn, autograph=True)(*args)),
        strict=True,
    ):  # fmt: skip
        assert (x.dtype, x.tolist()) == (y.dtype, y.tolist())


# ---------------------------------------------------------------- functions and classes in it
def _closure_in_a_loop(n):
    for i in range(3):

        def g():
            return i

    i = 50
    return [g()]


def _closures_kept(n):
    kept = []
    for i in range(3):
        kept.append(lambda: i)
    return [f() for f in kept]


def _closures_kept_by_key(n):
    kept = {}
    for i in range(3):
        k = i * 2
        kept[i] = lambda: k
    return [f() for f in kept.values()]


def _closures_in_two_loops(n):
    kept, i = [], 0
    while i < 2:
        for j in range(2):
            kept += [lambda: 10 * i + j]
        i += 1
    return [f() for f in kept]


def _closures_with_defaults(n):
    kept = []
    for i in range(3):
        kept.append(lambda i=i: i)
    return [f() for f in kept]


@pytest.mark.filterwarnings("ignore:.*does not bind loop variable")
@pytest.mark.parametrize(
    "fn",
    [
        _closure_in_a_loop, _closures_kept, _closures_kept_by_key, _closures_in_two_loops,
        _closures_with_defaults,
    ],
)  # fmt: skip
def test_functions_made_in_a_loop_see_what_its_end_left(fn):
    expected = fn(0)
    assert jv.autograph.convert(fn)(0) == expected
    assert [*map(int, jv.compile(fn, autograph=True)(jnp.int32(0)))] == expected


def _made_of_fields(n):
    @dataclasses.dataclass
    class Pair:
        x: int = 1
        y: ClassVar[int] = 3

    class Named(NamedTuple):
        a: int
        b: int = 2

    one, other = Pair(), Pair(5)
    return [one == other, len(dataclasses.fields(Pair)), other.x, *Named(n)]


def test_classes_keep_their_fields():
    assert jv.autograph.convert(_made_of_fields)(7) == _made_of_fields(7) == [False, 1, 5, 7, 2]


# Two lambdas on a line, told apart by where their instructions are.
_UP, _DOWN = (lambda x: x + 1 if x > 0 else x), (lambda x: x - 1 if x > 0 else x)  # fmt: skip
_BY_NAME = {"a": lambda x: x * 2 if x > 0 else x, "b": lambda x: x * 10 if x > 0 else x}
_SAME, _OTHER = (lambda x: x if x > 0 else -x), (lambda x: x if x > 0 else -x)  # fmt: skip


@pytest.mark.parametrize("fn", [_UP, _DOWN, *_BY_NAME.values(), _SAME, _OTHER])
def test_lambdas_of_one_line(fn):
    compiled = jv.compile(fn, autograph=True)
    for x in (5, -5):
        assert int(compiled(jnp.int32(x))) == fn(x)


def _numbered_from(xs, start):
    last = 0
    for i, _ in enumerate(xs, start):
        last = i
    return last


def test_counting_from_a_traced_number_of_few_bits():
    last = jv.compile(_numbered_from, autograph=True)(jnp.zeros(300), jnp.int8(100))
    assert int(last) == 399


def test_the_largest_and_smallest_are_pythons():
    def run(xs):
        return max(xs), min(xs), 1 / max(xs), 1 / min(xs)

    step = compiled(run)
    for xs in ([1, np.nan, 2], [np.nan, 1, 2], [-0.0, 0.0], [-np.inf, np.nan]):
        xs = jnp.array(xs, jnp.float32)
        np.testing.assert_array_equal(np.array(step(xs)), np.array(run(xs)))


def test_of_equal_elements_the_first_is_the_largest():
    def slope(xs):
        with jv.GradientTape() as tape:
            tape.watch(xs)
            y = max(xs) + 3 * min(xs)
        return tape.gradient(y, xs)

    xs = jnp.array([2.0, 2.0, 1.0, 1.0])
    assert jv.compile(slope, autograph=True)(xs).tolist() == slope(xs).tolist() == [1, 0, 3, 0]
    assert jv.compile(lambda n: max(n), autograph=True)(jnp.array([1, 3, 3])) == 3
    assert jv.compile(lambda n: min(n), autograph=True)(jnp.array([True, False])) == 0


def test_a_file_that_was_edited_since_its_import_is_not_the_source(tmp_path, monkeypatch):
    file = tmp_path / "edited_program.py"
    text = (
        "from __future__ import annotations\n"
        "def step(x: float):\n    return x + 1.0 if x > 0 else x\n"
        "def other(x, y=frozenset({1, 2})):\n    return [z for z in y if x] if x is None else x\n"
        "pick = lambda x: x + 1.0 if x > 0 else x\n"
    )
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("edited_program")
    file.write_text(text.replace("1.0", "12.0"))
    for fn in (module.step, module.pick):
        with pytest.raises(jv.errors.ControlFlowError, match="source has changed since it was rea"):
            compiled(fn)(1.0)
    assert compiled(module.other)(1.0) == 1.0
    importlib.reload(module)
    assert compiled(module.step)(1.0) == compiled(module.pick)(1.0) == 13.0


def test_a_file_that_was_edited_and_loaded_again_is_the_source(tmp_path, monkeypatch):
    file = tmp_path / "reloaded_program.py"
    text = (
        "def step(x):\n    return x + {0} if x > 0 else x\n"
        "pick = lambda x: x * {0} if x > 0 else x\n"
    )
    file.write_text(text.format("1.0"))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("reloaded_program")
    for number, lines in enumerate(("", "# a line above\n", "\n\n"), start=1):
        if lines:
            file.write_text(lines + text.format(f"{number}.00"))
            importlib.reload(module)
        assert float(compiled(module.step)(jnp.float32(1.0))) == 1.0 + number
        assert float(compiled(module.pick)(jnp.float32(1.0))) == number
    file.write_text("# it is edited, and not loaded again\n" + text.format("9.0000"))
    assert float(compiled(module.step)(jnp.float32(1.0))) == 4.0  # of what was loaded


def test_a_function_is_converted_again_when_its_code_is_replaced():
    def scale(x, by=2.0, *, more=0.0):
        return x * by + more if x > 0 else x

    def other(x, by=2.0, *, more=0.0):
        return x * by * 10.0 + more if x > 0 else x

    def run():
        found = (lambda x: sum(map(scale, [x])), lambda x: jv.cond(x > 0, scale, scale, x))
        return [float(compiled(fn)(jnp.float32(3.0))) for fn in found]

    assert run() == run() == [6.0, 6.0]
    scale.__code__ = other.__code__  # as IPython's autoreload does, and in the lines below
    assert run() == run() == [60.0, 60.0]
    scale.__defaults__ = (1.0,)
    assert run() == [30.0, 30.0]
    scale.__kwdefaults__ = {"more": 1.0}
    assert run() == [31.0, 31.0]


def _absolute(x):
    return x if x > 0 else -x


_recomputed = jv.recompute(_absolute)
_with_gradient = jv.custom_gradient(lambda x: (x if x > 0 else -x, lambda upstream: upstream))


@functools.wraps(_recomputed)
def _twice(x):
    return 2 * _recomputed(x)


@pytest.mark.parametrize("fn", [
    _recomputed, _with_gradient, lambda x: _recomputed(x), lambda x: _twice(x) / 2,
    lambda x: jv.recompute(_absolute)(x),
], ids=["recomputed", "with a gradient", "called", "decorated", "made inside"])  # fmt: skip
def test_functions_with_derivatives_of_their_own_are_converted(fn):
    step = jv.compile(fn, autograph=True)
    assert [float(step(x)) for x in (2.0, -3.0, 0.0)] == [2.0, 3.0, 0.0]
