"""`optimizer.averaged()`: averages in place of variables, in one thread, assigned nowhere."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from interrupts import check_nothing_is_left
from threads import run_in_threads

import jaxvars as jv
from jaxvars.errors import StateError


def make() -> tuple[jv.Variable, jv.optimizers.SGD]:
    """Return a variable that is 2.0, and an optimizer whose average of it is 1.5."""
    w = jv.Variable(0.0, name="w")
    optimizer = jv.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    for _ in range(2):
        optimizer.apply_gradients([(-1.0, w)])
    return w, optimizer


def check(w: jv.Variable, optimizer: jv.optimizers.SGD, *expected: float) -> None:
    values = float(w), float(optimizer.get_slot(w, "average"))
    assert values == (expected or (2.0, 1.5))
    check_nothing_is_left()


def evaluate(w: jv.Variable, optimizer: jv.optimizers.SGD) -> Any:
    with optimizer.averaged():
        return w * 1.0


WAYS: dict[str, Callable[[Callable[[], Any], jv.State], Any]] = {
    "eager": lambda f, _: f(),
    "compiled": lambda f, _: jv.compile(f)(),
    "pure": lambda f, state: jv.functionalize(f)(state)[0],
    "jitted": lambda f, state: jax.jit(jv.functionalize(f))(state)[0],
    "in a branch": lambda f, _: jv.compile(lambda x: jv.cond(x > 0, f, f))(1.0),
    "in a transaction": lambda f, _: _in(jv.transaction(), f),
    "in a thread": lambda f, _: run_in_threads(f)[0],
    "abstract": lambda f, _: jv.abstract(lambda: (f(), None)[1]) or 1.5,
}


def _in(context: Any, f: Callable[[], Any]) -> Any:
    with context:
        return f()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("nested", [False, True])
def test_averages_are_read_and_nothing_is_changed(way: Any, nested: bool):
    w, optimizer = make()
    state = jv.State.of(w=w, optimizer=optimizer)

    def run() -> Any:
        with optimizer.averaged() if nested else contextlib.nullcontext():
            first = evaluate(w, optimizer)
            again = w * 1.0 if nested else first
        return jnp.stack([first, again]).min() if nested else first

    assert float(way(run, state)) == 1.5
    check(w, optimizer)
    with optimizer.averaged():
        assert float(way(run, state)) == 1.5
    check(w, optimizer)


def test_a_compiled_function_of_outside_reads_them_too_and_is_not_traced_again():
    w, optimizer = make()
    double = jv.compile(lambda: w * 2.0)
    assert float(double()) == 4.0
    with optimizer.averaged():
        assert float(double()) == 3.0
        assert run_in_threads(lambda: float(double())) == [4.0]
        with jv.GradientTape() as tape:
            y = double() * w
        assert float(tape.gradient(y, w)) == 6.0
    assert (float(double()), double.trace_count) == (4.0, 1)


def test_two_threads_evaluate_and_a_third_one_trains():
    w, optimizer = make()
    begun, trained = threading.Barrier(3), threading.Event()

    def look() -> float:
        with optimizer.averaged():
            begun.wait()
            trained.wait()
            return float(w)

    def train() -> None:
        begun.wait()
        optimizer.apply_gradients([(-1.0, w)])
        trained.set()

    assert run_in_threads(look, look, train)[:2] == [1.5, 1.5]
    check(w, optimizer, 3.0, 2.25)


WRITES = {
    "assign": lambda w, o: w.assign(5.0),
    "assign_add": lambda w, o: w.assign_add(1.0),
    "a step": lambda w, o: o.apply_gradients([(1.0, w)]),
    "a compiled step": lambda w, o: jv.compile(lambda: w.assign_add(1.0))(),
    "commit": lambda w, o: jv.State.of(w).commit(),
    "swap_averages": lambda w, o: o.swap_averages(),
    "in a transaction": lambda w, o: _in(jv.transaction(), lambda: w.assign(5.0)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_what_is_shown_as_its_average_cannot_be_assigned(write: Any):
    w, optimizer = make()
    pattern = r"Variable 'w' is assigned at .* inside of `with optimizer\.averaged\(\):`, where"
    with pytest.raises(StateError, match=pattern), optimizer.averaged():
        write(w, optimizer)
    check(w, optimizer)
    assert int(optimizer.iterations) == 2


@pytest.mark.parametrize("wrap", [jv.compile, jv.functionalize])
def test_nor_in_a_function_that_is_traced(wrap: Any):
    w, optimizer = make()

    def step() -> None:
        with optimizer.averaged():
            w.assign(w + 1.0)

    state = [jv.State.of(w=w, optimizer=optimizer)] if wrap is jv.functionalize else []
    with pytest.raises(StateError, match=r"'w' is assigned at .*inside of `with optimizer\.aver"):
        wrap(step)(*state)
    check(w, optimizer)


def test_a_restore_inside_is_refused_and_changes_nothing(tmp_path: Any):
    w, optimizer = make()
    checkpoint = jv.checkpoint.Checkpoint(w=w, optimizer=optimizer)
    saved = checkpoint.write(tmp_path / "c.npz")
    optimizer.apply_gradients([(-1.0, w)])
    with pytest.raises(StateError, match="Train, assign and restore before the block"):
        _in(optimizer.averaged(), lambda: checkpoint.restore(saved))
    check(w, optimizer, 3.0, 2.25)
    checkpoint.restore(saved)
    check(w, optimizer)
    only = jv.checkpoint.Checkpoint(w=w)
    with optimizer.averaged():
        exported = only.write(tmp_path / "average.npz")
    only.restore(exported)
    check(w, optimizer, 1.5, 1.5)


def test_what_has_no_average_is_assigned_as_ever():
    w, optimizer = make()
    total, late = jv.Variable(0.0), jv.Variable(8.0, name="late")
    count = jv.compile(lambda: total.assign_add(w).value)
    with optimizer.averaged():
        total.assign_add(w)
        count()
        optimizer.apply_gradients([(4.0, late)])
    assert (float(total), float(late)) == (3.0, 4.0)
    with contextlib.suppress(KeyError), optimizer.averaged(), jv.transaction():
        total.assign(7.0)
        raise KeyError
    assert float(total) == 3.0


def test_two_optimizers_of_one_variable():
    w, first = make()
    second = jv.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    second.build([w])
    with second.averaged():
        assert float(w) == 2.0
        with first.averaged():
            assert float(w) == 1.5
        assert float(w) == 2.0
    check(w, first)


def test_a_value_that_is_gone_is_not_kept():
    w, optimizer = make()
    block = optimizer.averaged()
    with block:
        pass
    with pytest.raises(RuntimeError, match=r"used once: write `with optimizer\.averaged\(\):`"):
        block.__enter__()
    check(w, optimizer)
