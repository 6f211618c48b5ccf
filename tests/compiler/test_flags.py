"""Whether a variable is trainable is a part of what a compiled function is known by."""

from __future__ import annotations

import functools
import gc
import threading
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.core.cells import FLAG_SET, FROZEN, UNTRAINABLE


class Net(jv.Module):
    def __init__(self) -> None:
        self.a, self.b = jv.Variable(2.0, name="a"), jv.Variable(3.0, name="b")

    def loss(self) -> Any:
        return self.a * self.b

    @jv.compile
    def step(self) -> Any:
        with jv.GradientTape() as tape:
            loss = self.loss()
        return tape.gradient(loss, [self.a, self.b], unconnected_gradients="zero")


def gradients_of(step: Any) -> list[float]:
    return [float(x) for x in step()]


BOTH, ONLY_B, ONLY_A = [3.0, 2.0], [0.0, 2.0], [3.0, 0.0]


def test_setting_the_flag_reaches_a_compiled_function_and_keeps_both_programs() -> None:
    net = Net()
    step = jv.compile(net.step.python_function.func)
    step = functools.partial(step, net)
    for _ in range(2):
        for flag, expected in ((True, BOTH), (False, ONLY_B)):
            net.a.trainable = flag
            assert [gradients_of(step) for _ in range(3)] == [expected] * 3
    assert step.func.trace_count == 2
    assert step.func.traces.column("why")[1] == "other variables are trainable"


def test_a_function_that_does_not_ask_is_not_traced_again() -> None:
    net = Net()
    double = jv.compile(lambda: net.a * 2)
    double()
    net.a.trainable = False
    with jv.freeze(net):
        assert float(double()) == 4
    assert double.trace_count == 1


def test_an_optimizer_follows_and_slots_are_kept() -> None:
    net, optimizer = Net(), jv.optimizers.SGD(0.1, momentum=0.5)
    step = jv.compile(lambda: optimizer.minimize(net.loss, net))
    step()
    net.a.trainable = False
    a = float(net.a)
    step(), step()
    assert float(net.a) == a
    slot = float(optimizer.get_slot(net.a, "momentum"))
    net.a.trainable = True
    step()
    assert float(net.a) != a
    assert float(optimizer.get_slot(net.a, "momentum")) != slot
    assert step.trace_count == 2


@pytest.mark.parametrize("compiled", [True, False])
def test_freeze_holds_around_calls(compiled: bool) -> None:
    net = Net()
    step = net.step if compiled else lambda: net.step.python_function()
    before = net.step.trace_count  # of all objects
    for _ in range(2):
        assert [gradients_of(step) for _ in range(3)] == [BOTH] * 3
        with jv.freeze(net.select("a")):
            assert [gradients_of(step) for _ in range(3)] == [ONLY_B] * 3
            assert (net.a.trainable, net.trainable_variables) == (False, (net.b,))
            with jv.freeze(net.b):
                assert gradients_of(step) == [0.0, 0.0]
            assert gradients_of(step) == ONLY_B
    assert net.step.trace_count - before == (3 if compiled else 0)


def test_freeze_first_and_then_not() -> None:
    net = Net()
    before = net.step.trace_count
    for _ in range(2):
        with jv.freeze(net.a):
            assert gradients_of(net.step) == ONLY_B
        assert gradients_of(net.step) == BOTH
    assert net.step.trace_count - before == 2


def test_freeze_inside_of_a_function_depends_on_nothing_outside() -> None:
    net = Net()

    @jv.compile
    def step() -> Any:
        with jv.freeze(net.select("a")):
            frozen = net.step()
        return frozen, net.step()

    for _ in range(3):
        frozen, both = step()
        assert (list(map(float, frozen)), list(map(float, both))) == (ONLY_B, BOTH)
    assert FROZEN.value == frozenset()
    net.b.trainable = False
    frozen, only_a = step()
    assert (list(map(float, frozen)), list(map(float, only_a))) == ([0.0, 0.0], ONLY_A)


def test_a_function_inside_another_one_that_was_traced_before_is_asked_for() -> None:
    net = Net()
    net.step()
    outer = jv.compile(lambda: [x * 1 for x in net.step()])
    assert gradients_of(outer) == BOTH
    net.a.trainable = False
    assert gradients_of(outer) == ONLY_B
    with jv.freeze(net):
        assert gradients_of(outer) == [0.0, 0.0]
    assert gradients_of(outer) == ONLY_B


def body(carry: Any, _: Any) -> Any:  # of a module: JAX remembers its traces
    return carry + (1.0 if HELD[0].trainable else 10.0), None


HELD: list[Any] = []


def test_inner_functions_that_jax_remembers_follow() -> None:
    HELD[:] = [jv.Variable(0.0)]
    run = jv.compile(lambda: jax.lax.scan(body, jnp.float32(0), None, 2)[0])
    assert float(run()) == 2
    with jv.freeze(HELD):
        assert float(run()) == 20
    HELD[0].trainable = False
    assert float(run()) == 20

    @jv.compile
    def twice() -> Any:
        one = jax.lax.scan(body, jnp.float32(0), None, 1)[0]
        with jv.freeze(HELD):
            return one, jax.lax.scan(body, jnp.float32(0), None, 1)[0]

    HELD[0].trainable = True
    assert list(map(float, twice())) == [1, 10]


@pytest.mark.parametrize("how", ["set", "freeze"])
def test_a_pure_function_under_jit_follows(how: str) -> None:
    net = Net()
    pure = jax.jit(jv.functionalize(net.step.python_function.func), static_argnums=1)
    state = jv.State.of(net)
    assert [float(x) for x in pure(state, net)[0]] == BOTH
    if how == "set":
        net.a.trainable = False
        assert [float(x) for x in pure(state, net)[0]] == ONLY_B
    else:
        with jv.freeze(net.a):
            result, new = pure(state, net)
            assert [float(x) for x in result] == ONLY_B
        assert [float(x) for x in pure(new, net)[0]] == BOTH
    assert jax.tree.structure(state) == jax.tree.structure(jv.State.of(net))


def test_freeze_is_of_one_thread() -> None:
    net, inside, seen = Net(), threading.Event(), []
    net.step()

    def other() -> None:
        inside.wait(30)
        seen.append((net.a.trainable, gradients_of(net.step)))

    thread = threading.Thread(target=other)
    thread.start()
    with jv.freeze(net.a):
        assert gradients_of(net.step) == ONLY_B
        inside.set()
        thread.join()
    assert seen == [(True, BOTH)]


def test_an_error_inside_leaves_nothing_frozen() -> None:
    net = Net()
    with pytest.raises(ZeroDivisionError), jv.freeze(net):
        _ = 1 / 0
    assert net.a.trainable
    assert gradients_of(net.step) == BOTH


def test_the_flag_is_not_set_while_a_function_is_traced() -> None:
    v = jv.Variable(1.0, name="v")

    @jv.compile
    def step() -> Any:
        v.trainable = False
        return v * 1

    message = "`trainable` of variable 'v' is set at .*test_flags.py.* with jv.freeze"
    with pytest.raises(jv.errors.ForeignTransformError, match=f"(?s){message}"):
        step()
    assert v.trainable


def test_nothing_to_freeze_is_an_error() -> None:
    message = "no Variable to freeze at .*test_flags.py"
    with pytest.raises(jv.errors.StateError, match=message), jv.freeze([1.0]):
        pass


def test_custom_gradients_follow() -> None:
    w = jv.Variable(2.0, name="w")

    @jv.custom_gradient
    def square(x: Any) -> Any:
        def grad(upstream: Any, variables: Any = ()) -> Any:
            return upstream * w.value, [upstream * 7.0 for _ in variables]

        return x * w, grad

    def gradients() -> Any:
        x = jnp.float32(3.0)
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = square(x)
        return tape.gradient(y, [x, w], unconnected_gradients="zero")

    for run in (gradients, jv.compile(gradients)):
        for _ in range(2):
            for flag in (True, True, True, False, False, False):
                w.trainable = flag
                assert [float(g) for g in run()] == [2.0, 7.0 if flag else 0.0]


def test_marks_go_with_their_variables_and_functions() -> None:
    net = Net()
    net.a.trainable = False
    net.step()
    own = jv.compile(lambda v: 1.0 if v.trainable else 0.0)
    own(net.b)
    key, flags = net.a._cell.key, weakref.ref(own._flags)
    count = len(FLAG_SET)
    del net, own
    gc.collect()
    assert key not in UNTRAINABLE
    assert flags() is None
    assert len(FLAG_SET) < count


def test_a_program_that_is_gone_takes_those_of_other_flags_along():
    switch, first, others = jv.Variable(1.0), jv.Variable(10.0), {"a": jv.Variable(20.0)}

    @jv.compile
    def step():
        return (first if switch.trainable else others["a"]) * 1.0

    assert step() == 10.0
    switch.trainable = False
    assert step() == 20.0
    del others["a"]
    gc.collect()
    others["a"] = jv.Variable(30.0)
    assert step() == 30.0  # and not what it was for a trainable switch
    switch.trainable = True
    assert step() == 10.0
