"""Control flow with state: one meaning in every way a program is run.

The programs are in `control_programs.py`. Each is run eagerly, compiled, as a pure function
under `jax.jit`, and with a tape inside, around and both. What a tape's gradient is the eager one
says; what a JAX transform's is, differences of values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from buffers import address
from control_programs import PROGRAMS, Case
from threads import run_in_threads

import jaxvars as jv
from jaxvars.errors import (
    ControlFlowError,
    CreationError,
    ForeignTransformError,
    StringVariableError,
    TapeError,
)

every_program = pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
differentiable = pytest.mark.parametrize(
    "case", [case for case in PROGRAMS if case.differentiable], ids=lambda case: case.name
)


def compiled(fn: Any) -> Any:
    return jv.compile(fn)


def as_it_is(fn: Any) -> Any:
    return fn


both_ways = pytest.mark.parametrize("way", [as_it_is, compiled], ids=["eager", "compiled"])


# ---------------------------------------------------------------- ways to run a program
def plain(tree: Any) -> list[tuple[str, np.ndarray]]:
    leaves = map(jnp.asarray, jax.tree.leaves(tree))
    arrays = [jax.random.key_data(x) if is_key(x) else x for x in leaves]
    return [(str(x.dtype), np.asarray(x).astype(complex)) for x in arrays]


def is_key(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def agree(one: Any, other: Any, tolerance: float = 2e-5) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for (kind, a), (other_kind, b) in zip(plain(one), plain(other), strict=True):
        assert kind == other_kind
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def moves(x: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.inexact)


def loss_of(result: Any) -> Any:
    leaves = [jnp.asarray(x) for x in jax.tree.leaves(result)]
    return sum((jnp.sum(jnp.abs(x).astype("f") ** 2) for x in leaves if moves(x)), jnp.zeros(()))


def run_twice(variables: Any, fn: Any, args: Any) -> Any:
    results = [fn(*args) for _ in range(2)]
    if isinstance(fn, jv.Function):
        assert fn.trace_count == 1
    return results, [v.value for v in variables]


def run_pure(variables: Any, fn: Any, args: Any) -> Any:
    pure, state, results = jax.jit(jv.functionalize(fn)), jv.State.of(variables), []
    for _ in range(2):
        result, state = pure(state, *args)
        results.append(result)
    return results, list(state.values())


def taped(variables: Any, fn: Any) -> Any:
    def run(*args: Any) -> Any:
        with jv.GradientTape() as tape:
            tape.watch(args)
            result = fn(*args)
            loss = loss_of(result)
        sources = [x for x in (*variables, *args) if moves(x)]
        return result, tape.gradient(loss, sources, unconnected_gradients="zero")

    return run


@every_program
def test_eager_is_compiled_is_pure(case: Case):
    expected = run_twice(*case.make())
    variables, fn, args = case.make()
    agree(run_twice(variables, jv.compile(fn), args), expected)
    agree(run_pure(*case.make()), expected)
    variables, fn, args = case.make()
    agree(run_pure(variables, jv.compile(fn), args), expected)


@differentiable
def test_a_tape_inside_around_and_both(case: Case):
    def run(inside: Any, around: Any, way: Any = run_twice) -> Any:
        variables, fn, args = case.make()
        return way(variables, around(taped(variables, inside(fn))), args)

    expected = run(as_it_is, as_it_is)
    agree(run(as_it_is, compiled), expected)
    agree(run(compiled, as_it_is), expected)
    agree(run(compiled, compiled), expected)
    agree(run(compiled, as_it_is, run_pure), expected)


SMOOTH = [case for case in PROGRAMS if case.differentiable and "variable_of" not in case.name]


@pytest.mark.parametrize("case", SMOOTH, ids=lambda case: case.name)
def test_a_transform_of_the_pure_function_is_mathematics(case: Case):
    variables, fn, args = case.make()
    state = jv.State.of(variables)
    point = {k: x for k, x in state.items() if moves(x)}, [x for x in args if moves(x)]

    def loss(fn: Any) -> Any:
        pure = jv.functionalize(fn)

        def run(values: Any, xs: Any) -> Any:
            given = iter(xs)
            inputs = [next(given) if moves(x) else x for x in args]
            result, after = pure(state.replace(values), *inputs)
            again, after = pure(after, *inputs)
            return loss_of(result) + 0.5 * loss_of(again) + loss_of(list(after.values()))

        return run

    leaves, form = jax.tree.flatten(point)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    way = jax.tree.unflatten(
        form, [jax.random.normal(k, x.shape) for k, x in zip(keys, leaves, strict=True)]
    )
    step = jax.tree.map(lambda d: 3e-3 * d, way)
    value = jax.jit(loss(fn))
    ahead = value(*jax.tree.map(jnp.add, point, step))
    behind = value(*jax.tree.map(jnp.subtract, point, step))
    grads = jax.jit(jax.grad(loss(jv.compile(fn)), (0, 1)))(*point)
    slope = sum(map(jnp.vdot, jax.tree.leaves(grads), jax.tree.leaves(way)))
    np.testing.assert_allclose(slope, (ahead - behind) / 6e-3, rtol=0.03, atol=0.03)
    forward = jax.jit(lambda: jax.jvp(loss(fn), point, way)[1])()
    np.testing.assert_allclose(forward, slope, rtol=1e-3, atol=1e-3)


# ---------------------------------------------------------------- what Python does
def test_eagerly_values_are_concrete():
    seen: list[float] = []

    def body(i: Any, total: Any) -> Any:
        seen.append(float(total))
        return total + i

    jv.fori_loop(0, 3, body, 0)
    jv.cond(True, lambda: seen.append(-1.0), lambda: seen.append(-2.0))
    assert seen == [0.0, 0.0, 1.0, -1.0]


@both_ways
def test_what_is_known_is_decided_at_once(way):
    ran: list[str] = []

    def f(x: Any) -> Any:
        y = jv.cond(np.bool_(True), lambda: (ran.append("true"), x)[1], lambda: ran.append("false"))
        return jv.switch(np.int64(1), [lambda: ran.append("first"), lambda: y * 2])

    assert float(way(f)(3.0)) == 6.0
    assert ran == ["true"]


def test_bodies_are_traced_once():
    traced: list[str] = []
    v = jv.Variable(0.0)

    @jv.compile
    def f(x: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            traced.append("body")
            return jv.cond(y > 1, lambda: (traced.append("true"), v.assign_add(y))[1] * 1,
                           lambda: (traced.append("false"), y)[1])  # fmt: skip

        return jv.fori_loop(0, 5, body, x)

    for i in range(3):
        f(jnp.float32(i))
    assert traced == ["body", "true", "false"]


def test_a_known_range_is_a_scan_and_a_traced_one_a_while():
    v = jv.Variable(1.0)
    f = jv.compile(lambda n: jv.fori_loop(0, n, lambda i, y: y * v, 1.0))
    assert "stablehlo.while" in f.trace(3).stablehlo
    first = jnp.int32(0)
    with jv.GradientTape() as tape:
        y = jv.compile(lambda: jv.fori_loop(first, np.int64(3), lambda i, y: y * v, 1.0))()
    assert float(tape.gradient(y, v)) == 3.0
    with jv.GradientTape() as tape:
        y = f(3)
    assert float(tape.gradient(y, v)) == 3.0


@pytest.mark.parametrize("lower", [0, jnp.int32(0)])
@pytest.mark.parametrize("upper", [3, jnp.int32(3)])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_integer_of_a_range_is_typed_as_by_jax(lower: Any, upper: Any, compiled: bool):
    def dtype_of_sum(fori_loop: Any, jit: Any) -> Any:
        found: list[Any] = []

        def body(i: Any, c: Any) -> Any:
            found.append((i + jnp.int8(1)).dtype)
            return c

        run = lambda n: fori_loop(lower, n, body, 0.0)  # noqa: E731
        (jit(run) if compiled else run)(upper)
        return found[-1]

    assert dtype_of_sum(jv.fori_loop, jv.compile) == dtype_of_sum(jax.lax.fori_loop, jax.jit)


def test_known_integers_are_not_cut():
    assert int(jv.cond(2**32, lambda: 1, lambda: 0)) == 1
    assert int(jv.cond(2**70, lambda: 1, lambda: 0)) == 1
    for large in (2**32, 2**70):
        assert int(jv.switch(large, [lambda: 0, lambda: 1])) == 1
        assert int(jv.switch(-large, [lambda: 0, lambda: 1])) == 0
    branches = [lambda k=k: k for k in range(200)]
    assert int(jv.compile(lambda i: jv.switch(i, branches))(jnp.int8(100))) == 100
    for fn in (
        lambda n: jv.fori_loop(0, 2**32, lambda i, x: x + 1, n),
        lambda n: jv.fori_loop(n, 2**32, lambda i, x: x + 1, 0),
        lambda n: jv.fori_loop(np.int64(2**32), n, lambda i, x: x + 1, 0),
    ):
        with pytest.raises(OverflowError):
            jv.compile(fn)(jnp.int32(1))


def test_what_a_loop_goes_over_keeps_its_weak_type():
    xs = jnp.broadcast_to(1.5, (3,))
    double = lambda x: x * jnp.bfloat16(2)  # noqa: E731
    for run in (
        lambda xs: jv.scan(lambda c, x: (c, double(x)), 0, xs)[1],
        lambda xs: jv.map_fn(double, xs),
        lambda xs: jv.vectorized_map(double, xs),
    ):
        assert run(xs).dtype == jv.compile(run)(xs).dtype == jnp.bfloat16


def test_integers_of_few_bits_are_not_joined_with_floats():
    both = jv.compile(lambda p: jv.cond(p, lambda: 1.5, lambda: jnp.int4(3)))
    with pytest.raises(ControlFlowError, match=r"float32\[\] if true, but int4\[\] if false"):
        both(jnp.asarray(True))


def test_a_number_that_the_dtype_of_the_other_branch_does_not_hold():
    choose = lambda n: jv.compile(lambda p: jv.cond(p, lambda: n, lambda: jnp.uint8(2)))  # noqa: E731
    assert int(choose(200)(jnp.asarray(True))) == 200
    for n in (300, -1):
        with pytest.raises(ControlFlowError, match=f"{n} is to be a uint8, .* holds 0 to 255"):
            choose(n)(jnp.asarray(True))


def test_memory_is_used_again():
    v = jv.Variable(jnp.zeros(1000))
    step = jv.compile(lambda: jv.fori_loop(0, 3, lambda i, c: (v.assign_add(v + 1.0), c)[1], 0))

    for _ in range(3):
        step()
    before = address(v)
    for _ in range(3):
        step()
        assert address(v) == before
    held = v.value
    step()
    assert not held.is_deleted()
    assert held[0] != v[0]


def test_threads_lose_no_update():
    n = jv.Variable(0)

    @jv.compile
    def step(x: Any) -> Any:
        return jv.fori_loop(0, 3, lambda i, c: c + jv.cond(i < x, lambda: n.assign_add(1) * 1,
                                                           lambda: 0), 0)  # fmt: skip

    def work() -> None:
        for i in range(50):
            step(i % 4)

    run_in_threads(*[work] * 4)
    assert int(n) == 4 * sum(i % 4 for i in range(50))
    assert step.trace_count == 1


@pytest.mark.parametrize(
    "name",
    ["three_deep", "while_whose_condition_assigns", "bounded_while", "descent_in_a_loop",
     "loops_inside_a_vectorized_map", "cond_in_recompute_in_scan", "tape_around_a_loop_inside"],
)  # fmt: skip
def test_nothing_leaks(name):
    (case,) = [case for case in PROGRAMS if case.name == name]
    expected = run_twice(*case.make())
    variables, fn, args = case.make()
    with jax.checking_leaks():
        agree(run_twice(variables, jv.compile(fn), args), expected)


# ---------------------------------------------------------------- operands
@both_ways
def test_modules_and_strings_as_operands_and_carries(way):
    model = jv.Module()
    model.w = jv.Variable(2.0, name="w")

    @way
    def f(x: Any) -> Any:
        def add(module: Any, word: str, y: Any) -> Any:
            assert word == "text"
            return module.w.assign_add(y) * 1

        y = jv.cond(x > 0, add, lambda module, word, y: y, model, "text", x)

        def body(i: Any, state: Any) -> Any:
            module, y = state
            module.w.assign_add(1.0)
            return module, y * module.w

        module, y = jv.fori_loop(0, 2, body, (model, y))
        assert module is model
        return y

    assert float(f(1.0)) == 3.0 * 4.0 * 5.0
    assert float(model.w) == 5.0


@both_ways
def test_a_variable_that_is_returned_or_carried_is_its_value(way):
    v, w = jv.Variable(1.0), jv.Variable(10.0)

    @way
    def f(x: Any) -> Any:
        chosen = jv.cond(x > 0, lambda: v, lambda: v.assign_add(1.0))
        last, all_of_them = jv.scan(lambda c, _: (w.assign_add(c), v), w, None, length=2)
        v.assign(99.0)
        return {"chosen": chosen, "last": last, "all": all_of_them}

    for x, start in ((1.0, 1.0), (-1.0, 100.0)):
        w.assign(10.0)
        result = f(x)
        assert {k: type(x).__name__ for k, x in result.items()} == {
            "chosen": "ArrayImpl", "last": "ArrayImpl", "all": "ArrayImpl"}  # fmt: skip
        assert float(result["chosen"]) == start
        assert float(result["last"]) == float(w) == 40.0
        assert result["all"].tolist() == [start, start]


def test_a_string_variable_is_read_and_assigned_eagerly():
    text = jv.Variable("a", name="text")
    total = jv.fori_loop(0, 2, lambda i, n: n + len(text.item()), 0)
    jv.cond(True, lambda: text.assign("b"), lambda: text)
    assert (int(total), text.item()) == (2, "b")
    for f in (lambda x: jv.cond(x > 0, lambda: text.assign("c"), lambda: text),
              lambda x: jv.fori_loop(0, 2, lambda i, n: n + len(text.item()), x)):  # fmt: skip
        with pytest.raises(
            StringVariableError, match=r"'text' holds strings .*\n?.*static argument"
        ):
            jv.compile(f)(1)


# ---------------------------------------------------------------- TensorArrays
def written_in_a_while(x: Any) -> Any:
    def body(state: Any) -> Any:
        i, ta = state
        return i + 1, ta.write(i, x * i)

    start = (0, jv.TensorArray(jnp.float32, size=3))
    return jv.while_loop(lambda c: c[0] < 3, body, start, max_iterations=4)[1].stack()


def written_in_a_fori(x: Any) -> Any:
    ta = jv.TensorArray(jnp.float32, size=3)
    return jv.fori_loop(0, 3, lambda i, ta: ta.write(i, jnp.stack([x, x * i])), ta).stack()


def written_in_a_scan(x: Any) -> Any:
    ta = jv.TensorArray(jnp.float32, size=3)
    return jv.scan(lambda ta, i: (ta.write(i, x * i), None), ta, jnp.arange(3))[0].stack()


def written_if_true(x: Any) -> Any:
    ta = jv.TensorArray(jnp.float32, size=3)
    return (
        jv.cond(x > 0, lambda: {"ta": ta.write(0, x)}, lambda: {"ta": ta})["ta"].write(1, x).stack()
    )


def written_if_false(x: Any) -> Any:
    ta = jv.TensorArray(jnp.float32, size=3)
    return jv.cond(x < 0, lambda: ta, lambda: ta.write(0, x)).write(1, x).stack()


def not_written_in_the_branch_that_runs(x: Any) -> Any:
    ta = jv.TensorArray(jnp.float32, size=3)
    return jv.cond(x < 0, lambda: ta.write(0, x), lambda: ta).write(1, x).stack()


def written_in_one_of_three(x: Any) -> Any:
    ta = jv.TensorArray(jnp.float32, size=2)
    branches = [lambda: ta, lambda: ta.write(1, x), lambda: ta]
    return jv.switch(jnp.int32(x), branches).write(0, x).stack()


def written_in_one_branch_in_a_loop(x: Any) -> Any:
    def body(i: Any, ta: Any) -> Any:
        return jv.cond(i % 2 == 1, lambda: ta.write(i, x * i), lambda: ta)

    return jv.fori_loop(0, 4, body, jv.TensorArray(jnp.float32, size=4)).stack()


@pytest.mark.parametrize(
    "f",
    [written_in_a_while, written_in_a_fori, written_in_a_scan, written_if_true, written_if_false,
     not_written_in_the_branch_that_runs, written_in_one_of_three,
     written_in_one_branch_in_a_loop],
)  # fmt: skip
def test_tensor_arrays_that_were_never_written(f):
    x = jnp.float32(2.0)
    expected = run_twice([], taped([], f), (x,))
    agree(run_twice([], jv.compile(taped([], f)), (x,)), expected)
    agree(run_twice([], taped([], jv.compile(f)), (x,)), expected)
    assert jnp.any(expected[0][0][0] != 0)


def test_tensor_arrays_that_do_not_agree():
    def f(x: Any) -> Any:
        ta, other = (jv.TensorArray(jnp.float32, size=n) for n in (3, 4))
        return jv.cond(x > 0, lambda: ta.write(0, x), lambda: other).stack()

    with pytest.raises(ControlFlowError, match=r"the result is TensorArray.*size=3.*if true"):
        jv.compile(f)(1.0)


# ---------------------------------------------------------------- transforms
def test_eagerly_inside_transforms():
    w = jv.Variable(2.0)
    f = lambda x: jv.cond(x > 0, lambda: x * w, lambda: -x)  # noqa: E731
    assert jax.vmap(f)(jnp.array([1.0, -1.0])).tolist() == [2.0, 1.0]
    assert float(jax.grad(f)(3.0)) == 2.0
    power = lambda x: jv.scan(lambda c, _: (c * w * x, None), x, None, length=3)[0]  # noqa: E731
    assert jax.vmap(jax.grad(power))(jnp.ones(2)).tolist() == [32.0, 32.0]
    assert jv.compile(jax.vmap(f))(jnp.array([1.0, -1.0])).tolist() == [2.0, 1.0]
    assert float(jv.compile(jax.grad(power))(1.0)) == 32.0


def _in_vmap(f: Any) -> Any:
    return lambda: jax.vmap(f)(jnp.ones(2))


def _in_scan(f: Any) -> Any:
    return lambda: jax.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)


def _in_jit(f: Any) -> Any:
    return lambda: jax.jit(f)(1.0)


@both_ways
@pytest.mark.parametrize("transform", [_in_vmap, _in_scan, _in_jit])
def test_writes_inside_foreign_transforms_are_refused(transform, way):
    w = jv.Variable(2.0, name="w")
    programs: list[Callable[[Any], Any]] = [
        lambda x: jv.cond(x > 0, lambda: w.assign_add(x) * 1, lambda: x),
        lambda x: jv.fori_loop(0, 2, lambda i, c: w.assign_add(c) * 1, x),
        lambda x: jv.while_loop(lambda c: c < 3, lambda c: w.assign_add(c) * 1, x),
    ]
    for f in programs:
        with pytest.raises(ForeignTransformError, match=r"'w' is written at test_control\.py"):
            way(transform(f))()
    assert float(w) == 2.0


# ---------------------------------------------------------------- higher orders
def looping(w: Any) -> Any:
    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            y = jv.cond(x > 1, lambda: w * w * c, lambda: c * c * w)
            return jnp.sin(c * w * x) + y, None

        return jv.scan(step, 1.0, xs)[0]

    return f


def by_hand(w: Any) -> Any:
    c = 1.0
    for x in (0.5, 1.5):
        c = jnp.sin(c * w * x) + (w * w * c if x > 1 else c * c * w)
    return c


XS = jnp.array([0.5, 1.5])


@both_ways
def test_second_order(way):
    w = jv.Variable(0.7)

    @way
    def second(xs: Any) -> Any:
        with jv.GradientTape() as outer:
            with jv.GradientTape() as inner:
                y = looping(w)(xs)
            first = inner.gradient(y, w)
        return first, outer.gradient(first, w)

    expected = jax.grad(by_hand)(0.7), jax.grad(jax.grad(by_hand))(0.7)
    np.testing.assert_allclose(second(XS), expected, rtol=1e-5)


@both_ways
def test_second_order_through_a_bounded_while(way):
    w = jv.Variable(0.7)

    @way
    def second() -> Any:
        with jv.GradientTape() as outer:
            with jv.GradientTape() as inner:
                y = jv.while_loop(lambda c: c < 3, lambda c: c * (1 + w**2), 1.0, max_iterations=5)
            first = inner.gradient(y, w)
        return first, outer.gradient(first, w)

    by_hand = lambda w: (1 + w**2) ** 3  # noqa: E731
    expected = jax.grad(by_hand)(0.7), jax.grad(jax.grad(by_hand))(0.7)
    np.testing.assert_allclose(second(), expected, rtol=1e-5)


@both_ways
def test_forward_derivatives(way):
    w = jv.Variable(0.7)

    @way
    def forward(xs: Any) -> Any:
        with jv.ForwardAccumulator(w, jnp.float32(1.0)) as accumulator:
            with jv.GradientTape() as tape:
                y = looping(w)(xs)
            grad = tape.gradient(y, w)
            z = jv.while_loop(lambda c: c < 3.0, lambda c: c * (1 + w**2), 1.0)
        return accumulator.jvp(y), accumulator.jvp(grad), accumulator.jvp(z)

    expected = jax.grad(by_hand)(0.7), jax.grad(jax.grad(by_hand))(0.7), 6 * 0.7 * 1.49**2
    np.testing.assert_allclose(forward(XS), expected, rtol=1e-5)


@both_ways
def test_two_tapes_around_one_loop(way):
    w, v = jv.Variable(2.0), jv.Variable(3.0)

    @way
    def f() -> Any:
        with jv.GradientTape() as one, jv.GradientTape(watch_accessed_variables=False) as other:
            other.watch(v)
            y = jv.fori_loop(0, 3, lambda i, c: c * w + v, 1.0)
        return one.gradient(y, [w, v]), other.gradient(y, [w, v])

    agree(f(), ([jnp.float32(12 + 12 + 3), jnp.float32(7)], [None, jnp.float32(7)]))


def test_what_a_tape_around_a_staged_body_cannot_do():
    w = jv.Variable(2.0)

    def paused(x: Any) -> Any:
        with jv.GradientTape() as tape:

            def body(c: Any, _: Any) -> Any:
                with tape.stop_recording():
                    z = w * c
                return c * w + z, None

            y = jv.scan(body, x, None, length=2)[0]
        return tape.gradient(y, w)

    def watching(x: Any) -> Any:
        with jv.GradientTape() as tape:
            y = jv.cond(x > 0, lambda: (tape.watch(x), x * w)[1], lambda: x)
        return tape.gradient(y, x)

    x = jnp.float32(3.0)
    assert [float(f(x)) for f in (paused, watching)] == [18.0, 2.0]
    for f, name in ((paused, "stop_recording"), (watching, "watch")):
        bad(f, x, error=TapeError, match=rf"tape\.{name} is called .* jv\.stop_gradient\(x\)")


# ---------------------------------------------------------------- messages
def bad(f: Any, *args: Any, error: Any = ControlFlowError, match: str, way: Any = compiled) -> None:
    with pytest.raises(error, match=match) as raised:
        way(f)(*args)
    assert "Tracer" not in str(raised.value)
    assert "test_control.py:" in str(raised.value)


@pytest.mark.parametrize(
    ("true", "false", "message"),
    [
        (lambda x: {"a": x}, lambda x: {"b": (x, None)},
         r"the result is {'a': float32\[\]} if true, but {'b': \(float32\[\], None\)} if false"),
        (lambda x: {"a": x}, lambda x: {"a": jnp.ones(2)},
         r"the result\['a'\] is float32\[\] if true, but float32\[2\] if false"),
        (lambda x: x, lambda x: None, r"the result is float32\[\] if true, but None if false"),
        (lambda x: "yes", lambda x: "no", r"the result is 'yes' if true, but 'no' if false"),
        (lambda x: [x, 1], lambda x: [x, jnp.int8(1)], None),
        (lambda x: [x, 1.5], lambda x: [x, jnp.int8(1)],
         r"the result\[1\] is float32\[\] if true, but int8\[\] if false"),
    ],
)  # fmt: skip
def test_branches_that_differ(true, false, message):
    f = lambda x: jv.cond(x > 0, true, false, x)  # noqa: E731
    if message is None:
        assert jv.compile(f)(1.0)[1].dtype == jnp.int8
    else:
        bad(f, 1.0, match=message)


def test_branches_of_a_switch_that_differ():
    f = lambda i: jv.switch(i, [lambda: 1, lambda: 2.5, lambda: "a"])  # noqa: E731
    bad(f, 1, match=r"the result is .*32\[\] if the index is 0, but 'a' if the index is 2")
    with pytest.raises(ControlFlowError, match="at least one branch"):
        jv.switch(0, [])


@both_ways
def test_conditions_that_are_none(way):
    f = lambda x: jv.cond(x, lambda: 1, lambda: 2)  # noqa: E731
    bad(f, jnp.ones(3), match=r"has shape \[3\].*jnp\.all.* or jnp\.any", way=way)
    bad(f, "text", match=r"number or an array is needed .* not str 'text'", way=way)
    switch = lambda i: jv.switch(i, [lambda: 1, lambda: 2])  # noqa: E731
    bad(switch, 1.0, match=r"index of a branch .* is an integer, not float32\[\]", way=way)
    assert int(way(f)(2)) == 1
    assert int(way(f)(jnp.float32(0.0))) == 2
    assert int(way(switch)(-4)) == 1


@both_ways
def test_loops_that_change_what_they_carry(way):
    shape = lambda x: jv.while_loop(  # noqa: E731
        lambda c: c["i"] < 3, lambda c: {"i": c["i"] + 1, "y": jnp.ones(2)}, {"i": 0, "y": x}
    )
    bad(shape, 1.0, match=r"changes \"c\['y'\]\" from float32\[\] to float32\[2\]", way=way)
    dtype = lambda n: jv.scan(lambda total, _: (total + 0.5, None), n, None, length=2)  # noqa: E731
    bad(dtype, jnp.int32(1), match=r"changes 'total' from int32\[\] to float32\[\]", way=way)
    form = lambda x: jv.fori_loop(0, 2, lambda i, pair: [*pair, x], [x])  # noqa: E731
    bad(form, 1.0, match=r"changes 'pair' from \[float32\[\]\] to \[float32\[\], float", way=way)
    assert float(way(dtype)(1)[0]) == 2.0  # a Python number takes the type it gets


@both_ways
def test_scans_over_what_cannot_be_scanned(way):
    scan = lambda *xs, **options: jv.scan(lambda c, x: (c, None), 0, xs, **options)  # noqa: E731
    bad(scan, jnp.ones(3), jnp.ones(2), match=r"one size .* shapes \[\[3\], \[2\]\]", way=way)
    bad(lambda x: scan(x, length=2), jnp.ones(3), match="length=2 must be the same", way=way)
    bad(scan, match="neither arrays to go over nor a length", way=way)
    bad(scan, 1.0, match=r"one size along its first axis.*\[\[\]\]", way=way)
    alone = lambda xs: jv.scan(lambda c, x: c, 0.0, xs)  # noqa: E731
    bad(alone, jnp.ones(3), match=r"returns a tuple of two, .* not float32\[\]", way=way)
    text = lambda xs: jv.scan(lambda c, x: (c, "a"), 0.0, xs)  # noqa: E731
    bad(text, jnp.ones(3), match="non-array, and can't be stacked: 'a'", way=way)


def test_outputs_that_differ_eagerly():
    pairs = lambda xs: jv.map_fn(lambda x: x if x < 1 else (x, x), xs)  # noqa: E731
    message = r"the output is float32\[\] in one iteration and \(float32\[\], float32\[\]\) in"
    bad(pairs, jnp.arange(2.0), match=message, way=as_it_is)
    sizes = lambda xs: jv.map_fn(lambda x: jnp.ones(int(x)), xs)  # noqa: E731
    bad(sizes, jnp.arange(2), match=r"float32\[0\] in one .* float32\[1\]", way=as_it_is)


@both_ways
def test_ranges_and_batches_that_are_none(way):
    bad(lambda n: jv.fori_loop(0, n, lambda i, c: c, 0), 2.5, match="is an integer, not float",
        way=way)  # fmt: skip
    batches = lambda n: jv.map_fn(lambda x: x, jnp.ones(3), batch_size=n)  # noqa: E731
    bad(lambda: batches(0), match="batch_size of map_fn .* 1 or larger, .* not 0", way=way)
    many = lambda n: jv.scan(lambda c, _: (c, c), 0, None, length=n)  # noqa: E731
    bad(lambda: many(-1), match="length of a loop .* whole number, 0 or larger.* not -1", way=way)
    most = lambda n: jv.while_loop(lambda c: c < 3, lambda c: c, 0, max_iterations=n)  # noqa: E731
    bad(lambda: most(-1), match="max_iterations of a loop .* not -1", way=way)
    bad(lambda: most(2.5), match=r"max_iterations of a loop .* not 2\.5", way=way)
    if way is compiled:
        for counted in (batches, many, most):
            bad(counted, 3, match=r"known when the program is staged, not int32\[\]")
    unroll = lambda n: jv.fori_loop(0, n, lambda i, c: c + i, 0, unroll=2)  # noqa: E731
    if way is compiled:
        bad(unroll, 3, match="can't be unrolled.*Leave unroll out")
    else:
        assert int(unroll(3)) == 3


def test_creating_variables_in_branches_and_loops():
    make = lambda x: jv.Variable(x, name="new") * 1  # noqa: E731
    message = r"exist on one way only; create it outside\. Variable 'new': test_control\.py"
    for f in (lambda x: jv.cond(x > 0, make, make, x),
              lambda x: jv.fori_loop(0, 2, lambda i, c: make(c), x)):  # fmt: skip
        bad(f, 1.0, error=CreationError, match=message)


@both_ways
def test_maps_that_are_refused(way):
    v = jv.Variable(1.0, name="v")
    assign = lambda xs: jv.vectorized_map(lambda x: v.assign_add(x), xs)  # noqa: E731
    bad(assign, jnp.ones(3), match=r"(?s)'v' is assigned inside .* v\.assign\(.*map_fn", way=way)
    batch = lambda xs: jv.map_fn(lambda x: v.assign_add(x), xs, batch_size=2)  # noqa: E731
    bad(batch, jnp.ones(3), match="'v' is assigned inside", way=way)
    axis = lambda xs: jv.vectorized_map(lambda x: x, xs, in_axes=2)  # noqa: E731
    bad(axis, jnp.ones(3), match=r"axis 2 of an array of shape \[3\]", way=way)
    none = lambda xs: jv.vectorized_map(lambda x: x, xs, in_axes=None)  # noqa: E731
    bad(none, jnp.ones(3), match=r"number of examples.*in_axes \[None\]", way=way)
    sizes = lambda *xs: jv.vectorized_map(lambda x: x[0] + x[1], xs)  # noqa: E731
    bad(sizes, jnp.ones(3), jnp.ones(2), match=r"shapes \[\[3\], \[2\]\]", way=way)
    text = lambda xs: jv.vectorized_map(lambda x: {"x": x, "name": "a"}, xs)  # noqa: E731
    bad(text, jnp.ones(3), match=r"returns what is not an array: \['a'\]", way=way)
    assert float(v) == 1.0


@both_ways
@pytest.mark.parametrize("batch_size", [None, 1, 3, 4, 9])
def test_maps_over_any_number_of_elements(batch_size, way):
    v = jv.Variable(2.0)
    f = way(lambda xs: jv.map_fn(lambda x: {"y": x * v}, xs, batch_size=batch_size))
    for n in (0, 1, 4):
        xs = jnp.arange(2.0 * n).reshape(n, 2)
        agree(f(xs), {"y": 2 * xs})
