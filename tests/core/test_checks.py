"""Checks in compiled code: a step in which one fails raises, and has changed nothing.

Rules of this file:
- each program is run well, then badly, then well again: the state is as if the bad call had
  never been made, on the compiling call, on the next and on the hot path;
- values are looked at in memory where taking them would mark them as held.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from buffers import address

import jaxvars as jv
from jaxvars.core.checks import NO_FAILURE, first_failure, raise_if_failed, require
from jaxvars.debugging import assert_less, assert_positive
from jaxvars.errors import CheckError

N = 1000


def fails(call: Callable[[], Any], *words: str) -> None:
    with pytest.raises(CheckError) as raised:
        call()
    message = str(raised.value)
    for word in (*words, "test_checks.py:"):
        assert word in message


# ---------------------------------------------------------------- all or nothing
def test_a_failed_step_changes_nothing_with_donation_on():
    big, small = jv.Variable(jnp.zeros(N)), jv.Variable(1.0)
    only_written, read = jv.Variable(0.0), jv.Variable(3.0)

    @jv.compile
    def step(x: Any) -> Any:
        big.assign_add(x * jnp.ones(N))
        small.assign(small * 2)
        only_written.assign(x * read)
        assert_positive(x, "the step")
        return jnp.sum(big)

    def values() -> list[float]:
        return [float(big.numpy()[0]), float(small), float(only_written), float(read)]

    for i in range(1, 5):
        fails(lambda: step(-1.0), "the step: x > 0 does not hold: x = -1.0")
        assert values() == [i - 1, 2.0 ** (i - 1), 3.0 * (i > 1), 3.0]
        held = big.value
        fails(lambda: step(-2.0))
        assert float(step(1.0)) == i * N
        assert not held.is_deleted()
        assert held[0] == i - 1
    assert step.trace_count == 1


def test_memory_is_used_again_after_a_failure():
    v = jv.Variable(jnp.zeros(N))

    @jv.compile
    def step(x: Any) -> None:
        v.assign_add(x * jnp.ones(N))
        assert_positive(x)

    for _ in range(3):
        step(1.0)
    before = address(v)
    for _ in range(3):
        step(1.0)
        with pytest.raises(CheckError):
            step(-1.0)
        assert address(v) == before
    assert float(v.numpy()[0]) == 6.0


def test_the_hot_path_stays_hot(monkeypatch):
    v = jv.Variable(0.0)

    @jv.compile
    def step(x: Any) -> None:
        v.assign_add(x)
        assert_positive(x)

    for _ in range(3):
        step(1.0)
    slow: list[None] = []
    usual = jv.Function._slow_call
    monkeypatch.setattr(
        jv.Function, "_slow_call", lambda *args: (slow.append(None), usual(*args))[1]
    )
    for x in (1.0, -1.0, 1.0, -1.0, 1.0):
        try:
            step(x)
        except CheckError:
            assert x < 0
    assert not slow
    assert float(v) == 6.0


def test_threads():
    n = jv.Variable(0)

    @jv.compile
    def step(x: Any) -> None:
        n.assign_add(1)
        assert_positive(x)

    failed: list[None] = []

    def work() -> None:
        for i in range(60):
            try:
                step(1.0 if i % 3 else -1.0)
            except CheckError:
                failed.append(None)

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(work)
    assert (int(n), len(failed)) == (4 * 40, 4 * 20)
    assert step.trace_count == 1


def test_a_first_call_that_creates_and_fails():
    class Model(jv.Module):
        def __init__(self) -> None:
            self.w: Any = None

        @jv.compile
        def __call__(self, x: Any) -> Any:
            if self.w is None:
                self.w = jv.Variable(2.0, name="w")
            self.w.assign_add(x)
            assert_positive(x, "the input")
            return self.w * 1

    model = Model()
    fails(lambda: model(-1.0), "the input")
    assert float(model.w) == 2.0  # it exists, with its first value
    assert float(model(1.0)) == 3.0


# ---------------------------------------------------------------- where a check may stand
def in_a_branch(v: Any, x: Any) -> Any:
    def yes() -> Any:
        v.assign_add(1.0)
        assert_less(x, 5.0, "too large")
        return v * 1

    return jv.cond(x > 0, yes, lambda: x)


def in_a_switch(v: Any, x: Any) -> Any:
    v.assign_add(1.0)
    return jv.switch(
        jnp.int32(x > 0), [lambda: x, lambda: (assert_less(x, 5.0, "too large"), x)[1]]
    )


def in_a_fori(v: Any, x: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        assert_less(x + i, 7.0, "too large")
        return c + v.assign_add(0.5)

    return jv.fori_loop(0, 2, body, x)


def in_a_while(v: Any, x: Any, **options: Any) -> Any:
    def body(c: Any) -> Any:
        v.assign_add(1.0)
        assert_less(c, 5.0, "too large")
        return c + 100.0

    return jv.while_loop(lambda c: c < 50, body, x, **options)


def in_a_bounded_while(v: Any, x: Any) -> Any:
    return in_a_while(v, x, max_iterations=4)


def in_a_condition(v: Any, x: Any) -> Any:
    def test(c: Any) -> Any:
        assert_less(x, 5.0, "too large")
        return c < 3

    return jv.while_loop(test, lambda c: c + v.assign_add(1.0), x)


def in_a_scan(v: Any, x: Any) -> Any:
    def step(c: Any, y: Any) -> Any:
        assert_less(x * y, 5.0, "too large")
        return c, v.assign_add(y)

    return jv.scan(step, x, jnp.ones(3))


def in_a_map(v: Any, x: Any) -> Any:
    v.assign_add(1.0)
    return jv.map_fn(
        lambda y: (assert_less(x * y, 5.0, "too large"), y)[1], jnp.ones(3), batch_size=2
    )


def in_a_vectorized_map(v: Any, x: Any) -> Any:
    v.assign_add(1.0)

    def one(y: Any) -> Any:
        return jv.cond(y > 0, lambda: (assert_less(x * y, 5.0, "too large"), y)[1], lambda: y)

    return jv.vectorized_map(one, jnp.array([-9.0, 1.0, 1.0]))


def in_a_recomputed_function(v: Any, x: Any) -> Any:
    v.assign_add(1.0)
    return jv.recompute(lambda y: (assert_less(y, 5.0, "too large"), jnp.sin(y * v))[1])(x)


def in_a_compiled_function(v: Any, x: Any) -> Any:
    @jv.compile
    def inner(y: Any) -> Any:
        v.assign_add(1.0)
        assert_less(y, 5.0, "too large")
        return y * v

    return inner(x)


def in_a_loop_in_a_branch_in_a_loop(v: Any, x: Any) -> Any:
    def inner(i: Any, c: Any) -> Any:
        return in_a_branch(v, c)

    def outer(c: Any, _: Any) -> Any:
        return jv.cond(c > -5, lambda: jv.fori_loop(0, 1, inner, c), lambda: c) * 0.5, c

    return jv.scan(outer, x, None, length=2)


def under_a_tape_inside(v: Any, x: Any) -> Any:
    with jv.GradientTape() as tape:
        y = in_a_scan(v, x)[1]
    v.assign_add(1.0)
    return tape.gradient(y, v)


def in_the_body_of_a_lax_scan(v: Any, x: Any) -> Any:
    v.assign_add(1.0)
    body = lambda c, y: ((assert_less(c * y, 5.0, "too large"), c)[1], None)  # noqa: E731
    return jax.lax.scan(body, x, jnp.ones(2))[0]


PLACES = [
    in_a_branch, in_a_switch, in_a_fori, in_a_while, in_a_bounded_while, in_a_condition, in_a_scan,
    in_a_map, in_a_vectorized_map, in_a_recomputed_function, in_a_compiled_function,
    in_a_loop_in_a_branch_in_a_loop, under_a_tape_inside,
]  # fmt: skip
every_place = pytest.mark.parametrize("place", PLACES)


@pytest.mark.filterwarnings("ignore:.*callback:UserWarning")
@pytest.mark.parametrize("place", [*PLACES, in_the_body_of_a_lax_scan])
def test_a_check_anywhere_fails_the_step(place):
    v, counted = jv.Variable(0.0), jv.Variable(0)

    @jv.compile
    def step(x: Any) -> Any:
        counted.assign_add(1)
        return place(v, x)

    fails(lambda: step(9.0), "too large", "< ", "does not hold")
    assert (float(v), int(counted)) == (0.0, 0)
    step(1.0)
    after = float(v)
    assert (after > 0, int(counted)) == (True, 1)
    for _ in range(3):
        fails(lambda: step(9.0), "too large")
    assert (float(v), int(counted)) == (after, 1)
    step(1.0)
    assert int(counted) == 2
    assert step.trace_count == 1


@pytest.mark.filterwarnings("ignore:.*callback:UserWarning")
def test_a_failure_of_another_threads_program_is_not_that_of_the_step():
    checked = jax.jit(lambda x: (assert_positive(x, "theirs"), x)[1])
    threads = ThreadPoolExecutor(1)

    def fail_there() -> None:
        with pytest.raises(jax.errors.JaxRuntimeError, match="theirs"):
            jax.block_until_ready(checked(jnp.float32(-1.0)))

    def call_back(x: Any) -> Any:
        threads.submit(fail_there).result(timeout=60)
        raise ValueError("mine")

    @jv.compile
    def step(x: Any) -> Any:
        return jax.pure_callback(call_back, jax.ShapeDtypeStruct((), jnp.float32), x)

    with threads, pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: mine"):
        step(1.0)


@every_place
def test_a_check_anywhere_raises_eagerly(place):
    v = jv.Variable(0.0)
    fails(lambda: place(v, jnp.float32(9.0)), "too large")
    place(v, jnp.float32(1.0))


@every_place
def test_a_check_under_a_tape_around(place):
    v = jv.Variable(0.0)
    step = jv.compile(lambda x: place(v, x))

    def run(x: float) -> Any:
        with jv.GradientTape(watch_accessed_variables=place is not in_a_while) as tape:
            result = step(x)
        return tape, result

    fails(lambda: run(9.0), "too large")
    assert float(v) == 0.0
    run(1.0)
    assert float(v) > 0


def test_a_check_in_a_pure_function():
    v = jv.Variable(0.0)
    step = jv.compile(lambda x: in_a_fori(v, x))
    pure, state = jv.functionalize(step), jv.State.of({"v": v})
    fails(lambda: pure(state, 9.0), "too large")
    assert float(pure(state, 1.0)[1]["v"]) == 1.0
    jitted = jax.jit(pure)
    assert float(jax.block_until_ready(jitted(state, 1.0))[1]["v"]) == 1.0
    with pytest.raises(jax.errors.JaxRuntimeError, match="too large"):  # XLA passes its text on
        (jax.block_until_ready(jitted(state, 9.0)), jax.effects_barrier())


def test_a_check_in_a_plain_jit():
    jitted = jax.jit(lambda x: (assert_less(x, 5.0, "too large"), x)[1])
    assert float(jitted(1.0)) == 1.0
    with pytest.raises(jax.errors.JaxRuntimeError, match="too large"):
        (jax.block_until_ready(jitted(9.0)), jax.effects_barrier())


@pytest.mark.parametrize("calls", [0, 1, 3])
def test_a_step_that_only_checks_in_traces(calls: int):
    step = jv.compile(lambda x: (assert_less(x, 5.0, "too large"), x + 1)[1])
    x, total = jnp.arange(3.0), jv.Variable(0.0)
    for _ in range(calls):
        step(x)
        step(x[0])
    outer = jv.compile(lambda x: (total.assign_add(1.0), step(x))[1])
    around = [outer, jax.jit(step), jax.vmap(step), lambda x: jax.lax.map(step, x)]
    assert [f(x).tolist() for f in around] == [[1.0, 2.0, 3.0]] * 4
    fails(lambda: outer(x + 9), "too large")
    assert float(total) == 1.0
    with pytest.raises(jax.errors.JaxRuntimeError, match="too large"):
        (jax.block_until_ready(around[1](x + 9)), jax.effects_barrier())


# ---------------------------------------------------------------- what is said
def test_the_first_example_that_fails():
    v = jv.Variable(2.0)
    f = lambda xs: jv.vectorized_map(lambda x: (assert_positive(x, "each"), x * v)[1], xs)  # noqa: E731
    for way in (f, jv.compile(f)):
        fails(lambda way=way: way(jnp.array([1.0, -2.0, -3.0])), "each", "x = -2.0")
        assert way(jnp.array([1.0, 2.0])).tolist() == [2.0, 4.0]
        assert way(jnp.zeros(0)).tolist() == []


def test_the_first_failure_in_a_loop():
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            assert_less(i, 2, "first")
            assert_less(i, 1, "second")
            return c

        return jv.fori_loop(0, 4, body, x)

    for way in (f, jv.compile(f)):
        fails(lambda way=way: way(1.0), "second", "x = 1")


def test_elements_and_integers():
    @jv.compile
    def f(xs: Any) -> None:
        require(xs < 3, "small", {"xs": xs})

    fails(lambda: f(jnp.arange(6).reshape(2, 3)), "small: 3 of 6 elements, the first at [1, 0]",
          "xs = 3 ")  # fmt: skip
    f(jnp.zeros((2, 3), int))
    f(jnp.zeros((0, 3), int))


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        (np.int64(-(2**40)), 0, "xs = -1099511627776"),
        (np.uint64(2**63), 2**63 + 1, "xs = 9223372036854775808"),
        (np.float64(1 - 1e-12), 1.0, "xs = 0.999999999999 "),
        (np.complex128(1e-60), 0.5, "xs = 1e-60 "),
        (np.int8(-3), 0, "xs = -3 "),
        (np.float16(0.5), 1.0, "xs = 0.5 "),
    ],
)
def test_values_of_64_bits_are_shown_whole(value, limit, shown):
    @jv.compile
    def f(xs: Any) -> None:
        require(xs.real > np.asarray(limit, xs.real.dtype), "small", {"xs": xs})

    with jax.enable_x64(True):
        fails(lambda: f(value), shown)
        fails(lambda: f(np.array([value, value])), f"2 of 2 elements, the first at [0]: {shown}")


def test_failures():
    raise_if_failed(NO_FAILURE)
    rows = np.stack([NO_FAILURE, NO_FAILURE + 1, NO_FAILURE + 2])
    assert first_failure(jnp.asarray(rows))[0] == 1
    assert first_failure(jnp.asarray(rows[:1]))[0] == 0
    assert first_failure(jnp.asarray(rows[:0]))[0] == 0


# ---------------------------------------------------------------- guard="finite"
def test_the_guard_names_the_first_variable_and_changes_none():
    n, a = jv.Variable(0, name="n"), jv.Variable(1.0, name="a")
    b = jv.Variable([1.0, 2.0], name="b")

    @jv.compile(guard="finite")
    def step(x: Any) -> Any:
        n.assign_add(1)
        b.assign(b / x)
        a.assign(x / x)
        return n * 1

    for i in (1, 2, 3):
        fails(lambda: step(0.0), "step would make Variable 'b' not finite",
              "2 of 2 elements, the first at [0]: value = inf")  # fmt: skip
        assert (int(n), float(a), b.numpy().tolist()) == (i - 1, 1.0, [1.0, 2.0])
        assert int(step(1.0)) == i
    assert step.trace_count == 1


def test_the_guard_with_a_print(capsys):
    v = jv.Variable(1.0, name="v")

    @jv.compile(guard="finite")
    def step(x: Any) -> None:
        jv.print("x is", x)
        v.assign(v * x)

    for _ in range(2):
        fails(lambda: step(float("nan")), "'v' not finite", "value = nan")
        step(2.0)
    assert float(v) == 4.0
    assert capsys.readouterr().out.split() == ["x", "is", "nan", "x", "is", "2.0"] * 2


def test_the_guard_of_a_function_around_and_inside():
    v, count = jv.Variable(1.0, name="v"), jv.Variable(0.0, name="count")

    def divide(x: Any) -> None:
        v.assign(v / x)

    def count_and(divide: Any) -> Any:
        def step(x: Any) -> None:
            count.assign_add(1.0)
            divide(x)

        return step

    around = jv.compile(guard="finite")(count_and(jv.compile(divide)))
    inside = jv.compile(count_and(jv.compile(guard="finite")(divide)))
    for step, name in ((around, "step"), (inside, "divide")):
        fails(lambda step=step: step(0.0), f"{name} would make Variable 'v' not finite")
        assert (float(v), float(count)) == (1.0, 0.0)
        step(1.0)
        count.assign(0.0)


def test_the_guard_in_a_loop_and_under_a_tape():
    v = jv.Variable(1.0, name="v")

    @jv.compile(guard="finite")
    def step(x: Any) -> Any:
        return jv.fori_loop(0, 2, lambda i, c: (v.assign(v / x), c + v)[1], x)

    def run(x: float) -> Any:
        with jv.GradientTape() as tape:
            y = step(x)
        return tape.gradient(y, v)

    fails(lambda: run(0.0), "'v' not finite: value = inf")
    assert float(v) == 1.0
    assert float(run(1.0)) == 2.0
    fails(lambda: step(0.0), "'v' not finite")


def test_a_guarded_first_call_that_creates():
    class Model(jv.Module):
        def __init__(self) -> None:
            self.w: Any = None

        @jv.compile(guard="finite")
        def __call__(self, x: Any) -> None:
            if self.w is None:
                self.w = jv.Variable(1.0, name="w")
            self.w.assign(self.w / x)

    model = Model()
    fails(lambda: model(0.0), "'w' not finite")
    assert float(model.w) == 1.0
    model(2.0)
    fails(lambda: model(0.0), "'w' not finite")
    assert float(model.w) == 0.5


def test_there_is_no_guard_when_python_runs_the_body():
    v = jv.Variable(1.0)
    step = jv.compile(guard="finite")(lambda x: v.assign(v / x))
    jv.config.run_eagerly(True)
    try:
        step(jnp.float32(0.0))
    finally:
        jv.config.run_eagerly(False)
    assert float(v) == float("inf")
