"""Nothing stays behind: no tracer, no variable, no memory that grows."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import test_tour

import jaxvars as jv
from jaxvars.core import cells


@pytest.fixture(autouse=True)
def checked():
    with jax.checking_leaks():
        yield


def test_no_tracer_leaks_from_compile_and_tape():
    w = jv.Variable(jnp.ones(3))

    @jv.compile
    def step(x):
        with jv.GradientTape() as tape:
            loss = jnp.sum(jax.nn.gelu(w * x))
        w.assign_sub(tape.gradient(loss, w))
        return loss

    for size in (1, 3):
        step(jnp.ones(size))
        step(jnp.ones(size))


@pytest.mark.parametrize(
    "program",
    [
        test_tour.test_9_a_step_happens_or_does_not,
        test_tour.test_10_variables_are_created_on_the_first_call_or_never,
    ],
)
def test_no_tracer_leaks_from_an_exception_in_a_trace_or_creation_inside(program):
    program()


def test_no_tracer_leaks_from_functionalize():
    w = jv.Variable(jnp.ones(3), name="w")

    def half():
        w.assign(w / 2)
        return jnp.sum(w)

    pure = jv.functionalize(half)
    state = jv.State.of(w)
    jax.jit(pure)(state)
    jax.grad(lambda s: pure(s)[0])(state)
    jax.lax.scan(lambda s, _: pure(s)[::-1], state, None, length=2)


@pytest.mark.parametrize("use", ["nothing", "tape", "compile", "state"])
def test_a_variable_and_its_value_are_freed(use):
    v = jv.Variable(jnp.ones(1000))
    if use == "tape":
        with jv.GradientTape() as tape:
            y = jnp.sum(v * v)
        tape.gradient(y, v)
        del tape, y
    if use == "compile":
        step = jv.compile(lambda v: v.assign_add(1).value.sum())
        step(v)
        step(v)
        step(v)
    if use == "state":
        jv.State.of(v).commit()
    key, ref = v._cell.key, weakref.ref(v)
    assert key in cells.STORE
    del v
    gc.collect()
    assert ref() is None
    assert key not in cells.STORE
    assert key not in cells.SHARED


def test_a_module_with_a_compiled_method_is_freed():
    class Counter(jv.Module):
        def __init__(self):
            self.n = jv.Variable(0)

        @jv.compile
        def step(self):
            self.n.assign_add(1)

    for _ in range(3):
        counter = Counter()
        for _ in range(4):
            counter.step()
        assert int(counter.n) == 4
        ref = weakref.ref(counter)
        del counter
        gc.collect()
        assert ref() is None


def test_a_long_loop_does_not_grow():
    w = jv.Variable(jnp.ones(100))

    @jv.compile
    def step(x):
        w.assign(w * 0.99 + x)
        return jnp.sum(w)

    def loop():
        for _ in range(50):
            step(0.01)
            with jv.GradientTape() as tape:
                y = jnp.sum(w**2)
            tape.gradient(y, w)
        gc.collect()
        return len(jax.live_arrays()), len(cells.STORE), len(cells.SHARED)

    with jax.check_tracer_leaks(False):  # which looks at each operation
        loop()
        assert loop() == loop()


def _made_and_dropped(n: int) -> None:
    """Use each thing that is kept in a table of jaxvars, and drop it."""
    v = jv.Variable(jnp.full(100, float(n)), name=f"v{n}")
    with jv.GradientTape() as tape:
        y = jnp.sum(v * 2)
    v.assign_sub(tape.gradient(y, v))
    jv.State.of(v).commit()
    with jv.name_scope("scope"), pytest.raises(ValueError):
        v.assign(jnp.ones(3))
    if n % 50 == 0:  # what compiles takes longer
        jv.compile(lambda x: v.assign_add(x))(1.0)
        jv.functionalize(lambda: v.value)(jv.State.of(v))
        jv.optimizers.Adam(0.1).apply_gradients([(v.value, v)])


@pytest.mark.slow
def test_what_is_made_and_dropped_leaves_no_memory():
    def memory() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    with jax.check_tracer_leaks(False):
        for n in range(2000):
            _made_and_dropped(n)
        before = memory(), len(jax.live_arrays()), len(cells.STORE)
        for n in range(10_000):
            _made_and_dropped(n)
        after = memory(), len(jax.live_arrays()), len(cells.STORE)
    assert after[1:] == before[1:]
    assert after[0] - before[0] < 2**25, (after[0] - before[0]) / 2**20
