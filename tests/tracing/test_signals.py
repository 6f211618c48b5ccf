"""Handlers of signals that come while a function is traced wait, and are not part of it."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from interrupts import places_of, visit

import jaxvars as jv
from jaxvars.tracing import signals

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")


@pytest.fixture
def on_signal() -> Iterator[Callable[[Callable[[], Any]], None]]:
    old = signal.getsignal(signal.SIGUSR1)

    def install(action: Callable[[], Any]) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: action())

    yield install
    signal.signal(signal.SIGUSR1, old)


def _by_signal(action: Callable[[], Any], on_signal: Any) -> Callable[[], None]:
    on_signal(action)
    return lambda: signal.raise_signal(signal.SIGUSR1)


def _by_handler_without_frame(action: Callable[[], Any], on_signal: Any) -> Callable[[], None]:
    class Handler:
        def __call__(self, number: int, frame: Any) -> None:
            del frame
            action()

    on_signal(action)  # its fixture puts the old one back afterwards
    signal.signal(signal.SIGUSR1, functools.partial(Handler()))
    return lambda: signal.raise_signal(signal.SIGUSR1)


@pytest.mark.parametrize("how", [_by_signal, _by_handler_without_frame])
def test_what_it_does_happens_once_and_outside(how: Any, on_signal: Any):
    count, w = jv.Variable(0.0), jv.Variable(jnp.zeros(2))
    mean = jv.metrics.Mean()
    bump = jv.compile(lambda: count.assign_add(1.0))
    seen: list[float] = []

    def act() -> None:
        seen.append(float(count))
        count.assign_add(1.0)
        bump()
        count.assign(count.numpy() + 1.0)
        mean.total.add(jnp.ones(()))
        seen.append(float(count))

    interrupt = how(act, on_signal)

    @jv.compile
    def step(x: Any) -> Any:
        w.assign_add(x * jnp.ones(2))
        interrupt()
        return w * 2

    for n in range(1, 4):
        assert step(1.0).tolist() == [2.0 * n] * 2
    assert seen == [0.0, 3.0]
    assert float(count) == 3.0
    assert float(mean.total.value) == 1.0
    assert w.numpy().tolist() == [3.0, 3.0]


def test_what_it_computes_is_not_staged(on_signal: Any):
    count, w, slopes = jv.Variable(1.0), jv.Variable(0.0), jv.Variable(0.0)

    def act() -> None:
        count.assign(count + 1.0)
        with jv.GradientTape() as tape:
            y = count * count
        slopes.assign(tape.gradient(y, count))

    on_signal(act)

    @jv.compile
    def inner(x: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return jv.cond(x > 0, lambda: (signal.raise_signal(signal.SIGUSR1), x)[1], lambda: -x)

    @jv.compile
    def step(x: Any) -> Any:
        w.assign_add(inner(x))
        assert count.value.aval.shape == ()  # a tracer: no handler has run

    for n in (1.0, 2.0):
        step(1.0)
        assert [float(v) for v in (w, count, slopes)] == [n, 2.0, 4.0]


def test_ctrl_c_does_not_wait(on_signal: Any):
    came: list[str] = []
    on_signal(lambda: came.append("handler"))
    old = signal.signal(signal.SIGINT, signal.default_int_handler)

    @jv.compile
    def step() -> None:
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGINT)
        came.append("traced")

    try:
        with pytest.raises(KeyboardInterrupt):
            step()
    finally:
        signal.signal(signal.SIGINT, old)
    assert came == ["handler"]


def test_wherever_ctrl_c_comes_the_handlers_are_back(on_signal: Any):
    came: list[str] = []
    on_signal(lambda: came.append("handler"))
    handler = signal.getsignal(signal.SIGUSR1)

    def step() -> None:
        jv.compile(lambda: signal.raise_signal(signal.SIGUSR1)).trace()

    def end() -> None:
        raise KeyboardInterrupt

    places = [x for x in places_of(step) if "tracing/signals" in x[0][0]]
    assert len(places) > 70
    for place, times in places:
        with pytest.raises(KeyboardInterrupt):
            visit(step, place, times, end)
        assert signal.getsignal(signal.SIGUSR1) is handler, place
        signal.raise_signal(signal.SIGUSR1)
        assert came.pop() == "handler", place


def test_variables_that_are_created_by_it_or_assigned_by_it_before_their_first_value(
    on_signal: Any,
):
    made: list[jv.Variable] = []
    interrupt = _by_signal(lambda: (made[0].assign(7.0), made.append(jv.Variable(5.0))), on_signal)

    @jv.compile
    def step(x: Any) -> Any:
        if not made:
            made.append(jv.Variable(x))
            interrupt()
        return made[0] * x

    assert float(step(2.0)) == 14.0
    assert [float(v) for v in made] == [7.0, 5.0]


def _late(*_: Any) -> None:
    raise TimeoutError("too late")


@pytest.mark.parametrize("where", ["if", "test", "gradient", "loop"])
def test_what_a_handler_raises_is_raised_and_not_part_of_the_function(where: str, on_signal: Any):
    on_signal(_late)
    interrupt = functools.partial(signal.raise_signal, signal.SIGUSR1)
    v, w = jv.Variable(0.0), jv.Variable(3.0)

    def branches(x: Any) -> None:
        if x > 0:
            v.assign_add(1.0)
        else:
            interrupt()
            v.assign_sub(1.0)

    def tested(x: Any) -> None:
        if x > 0 and (interrupt(), x < 9)[1]:
            v.assign_add(1.0)

    @jv.custom_gradient
    def ruled(x: Any) -> Any:
        return x, lambda dy, variables=(): ((interrupt(), dy * w)[1], [None] * len(variables))

    def differentiated(x: Any) -> None:
        with jv.GradientTape() as tape:
            tape.watch(x)
            y = ruled(x)
        v.assign_add(tape.gradient(y, x) / 3)

    def looped(x: Any) -> None:
        with jv.GradientTape():
            jv.while_loop(lambda n: n < 0, lambda n: (interrupt(), n + 1)[1], 0)
        v.assign_add(x)

    fns = {"if": branches, "test": tested, "gradient": differentiated, "loop": looped}
    step: Any = fns[where]
    if where != "loop":
        step = jv.compile(autograph=True)(step)
    with pytest.raises(TimeoutError, match=r"^too late"):
        step(jnp.float32(1.0))
    assert float(v) == 0.0
    on_signal(lambda: None)
    step(jnp.float32(1.0))
    assert float(v) == 1.0
    if where == "if":
        step(jnp.float32(-1.0))
        assert float(v) == 0.0


# ---------------------------------------------------------------- deferred signals
def test_signals_that_are_deferred_come_at_the_end(on_signal: Any):
    came: list[str] = []
    on_signal(lambda: came.append("handler"))
    handler = signal.getsignal(signal.SIGUSR1)
    with signals.deferred_signals():
        assert signals.DEFERRING
        signal.raise_signal(signal.SIGUSR1)
        came.append("end")
    assert came == ["end", "handler"]
    assert signal.getsignal(signal.SIGUSR1) is handler
    assert not signals.DEFERRING


def test_a_deferred_signal_whose_handler_raises_and_one_after_it(on_signal: Any):
    came: list[str] = []
    on_signal(lambda: came.append("handler"))
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), signals.deferred_signals():  # noqa: PT012 - one after the other
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGINT)
        assert came == ["handler"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, old)


def test_a_handler_may_assign_where_a_transform_is_around(on_signal: Any):
    count, w = jv.Variable(0.0), jv.Variable(2.0)
    on_signal(lambda: count.assign_add(1.0))

    @jv.compile
    def layer(x: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return x * w

    assert float(jax.grad(lambda x: layer(x))(1.0)) == 2
    assert float(count) == 1


def test_a_handler_that_is_set_while_signals_wait_stays_and_one_that_was_fetched_works(
    on_signal: Any,
):
    came: list[str] = []
    on_signal(lambda: came.append("old"))
    with signals.deferred_signals():
        fetched: Any = signal.getsignal(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, lambda *_: came.append("new"))
    signal.raise_signal(signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, fetched)
    signal.raise_signal(signal.SIGUSR1)
    assert came == ["new", "old"]


def test_signals_come_in_the_order_in_which_they_came(on_signal: Any):
    came: list[int] = []
    on_signal(lambda: came.append(1))
    old = signal.signal(signal.SIGUSR2, lambda *_: came.append(2))
    try:
        with signals.deferred_signals():
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR2)
    finally:
        signal.signal(signal.SIGUSR2, old)
    assert came == [1, 2]


def test_a_process_that_is_forked_meanwhile_defers_nothing(on_signal: Any, monkeypatch: Any):
    came: list[None] = []
    on_signal(lambda: came.append(None))
    with signals.deferred_signals():
        monkeypatch.setattr(os, "getpid", lambda: 0)
        signal.raise_signal(signal.SIGUSR1)
        assert came == [None]
