"""Signal handlers and finalizers that come while a function is traced are not part of it."""

from __future__ import annotations

import functools
import gc
import signal
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import pytest

import jaxvars as jv
from jaxvars.errors import ForeignTransformError, TapeError
from jaxvars.tracing import context, interruption


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


def _by_garbage_collector(action: Callable[[], Any], _: Any) -> Callable[[], None]:
    def interrupt() -> None:
        gc.callbacks.append(once := lambda phase, info: phase == "stop" and action())
        gc.collect()
        gc.callbacks.remove(once)

    return interrupt


def _by_del(action: Callable[[], Any], _: Any) -> Callable[[], None]:
    class Node:
        def __del__(self) -> None:
            action()

    return lambda: (Node(), None)[1]


def _by_reference(action: Callable[[], Any], _: Any) -> Callable[[], None]:
    class Node:
        pass

    def interrupt() -> None:
        node = Node()
        reference = weakref.ref(node, lambda _: action())
        del node
        assert reference() is None

    return interrupt


def _by_finalize(action: Callable[[], Any], _: Any) -> Callable[[], None]:
    class Node:
        pass

    return lambda: (weakref.finalize(Node(), action), None)[1]


HOWS = [
    _by_signal,
    _by_handler_without_frame,
    _by_garbage_collector,
    _by_del,
    _by_reference,
    _by_finalize,
]


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")
@pytest.mark.parametrize("how", HOWS)
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


@pytest.mark.parametrize("write", [
    lambda n: n[0].assign_add(1.0), lambda n: n.assign_add(1.0),
    lambda n: n.assign_sub([-1.0, -1.0]), lambda n: n.assign(n.numpy() + 1.0),
    lambda n: n.assign([1.0, 1.0]), lambda n: n.__iadd__(1.0), lambda n: n.__iadd__([1.0, 1.0]),
    lambda n: n.scatter_add([0], [1.0]), lambda n: n.__setitem__(0, 1.0),
    lambda n: n.assign(jv.Variable(n.value).assign_add(1.0)),
])  # fmt: skip
def test_a_variable_is_written_in_the_middle_of_a_bind(write: Callable[[jv.Variable], Any]):
    n = jv.Variable([0.0, 0.0])
    with context.at(None):  # pyright: ignore[reportArgumentType] - as JAX has it there
        write(n)
        assert context.place(None) is None
    assert n.numpy().tolist() in ([1.0, 1.0], [1.0, 0.0])


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")
def test_a_value_of_the_traced_function_is_refused(on_signal: Any):
    count, w = jv.Variable(0.0, name="count"), jv.Variable(0.0)
    on_signal(lambda: count.assign(count + 1.0))

    @jv.compile
    def step(x: Any) -> Any:
        w.assign_add(x)
        signal.raise_signal(signal.SIGUSR1)

    message = r"'count' is assigned at test_interruption.py:\d+, in .* by a signal handler or final"
    for _ in range(2):
        with pytest.raises(ForeignTransformError, match=message):
            step(1.0)
    assert (float(count), float(w)) == (0.0, 0.0)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")
def test_a_tape_is_opened_in_a_compiled_function_or_refused(on_signal: Any):
    v, w, slopes = jv.Variable(3.0), jv.Variable(0.0), jv.Variable(0.0)

    def slope() -> Any:
        with jv.GradientTape() as tape:
            y = v * v
        return tape.gradient(y, v)

    @jv.compile
    def step(x: Any) -> Any:
        w.assign_add(x)
        signal.raise_signal(signal.SIGUSR1)

    on_signal(slope)
    with pytest.raises(TapeError, match=r"opened at test_interruption.py:\d+, in slope by a "):
        step(1.0)
    assert float(w) == 0.0
    compiled = jv.compile(slope)
    on_signal(lambda: slopes.assign(compiled().item()))
    step(1.0)
    assert (float(w), float(slopes)) == (1.0, 6.0)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")
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


def test_a_function_that_is_given_a_frame_is_part_of_the_step():
    count = jv.Variable(0)

    def act(frame: Any) -> None:
        count.assign_add(1)

    step = jv.compile(lambda: act(sys._getframe()))
    for _ in range(3):
        step()
    assert int(count) == 3


def test_a_function_that_is_given_a_dead_reference_may_be_a_finalizer():
    class Node:
        pass

    count, reference = jv.Variable(0), weakref.ref(Node())

    def act(ref: Any) -> None:
        if ref() is None:
            count.assign_add(1)

    message = r"used at test_interruption.py:\d+, in act, .* and act was given a weak reference"
    with pytest.raises(ForeignTransformError, match=message):
        jv.compile(lambda: act(reference))()
    act(reference)  # eagerly it is the same
    assert int(count) == 1


def test_a_handler_that_is_called_without_a_frame_may_be_a_part_of_the_step():
    count = jv.Variable(0)

    def handler(number: int, frame: Any) -> None:
        count.assign_add(1)

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(ForeignTransformError, match="handler is a signal handler whose frame"):
            jv.compile(lambda: handler(signal.SIGUSR1, None))()
    finally:
        signal.signal(signal.SIGUSR1, old)


def test_a_finalizer_reads_the_value_before_a_step_or_is_refused():
    variables = [jv.Variable(jnp.zeros(3), name="v") for _ in range(50)]
    seen: list[Any] = []

    @jv.compile
    def step() -> None:
        for v in variables:
            v.assign_add(jnp.ones(3))

    class Node:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            try:
                seen.append(variables[0].numpy().tolist())
            except ForeignTransformError as error:  # Python 3.11, in the middle of XLA's call
                seen.append(str(error))

    for _ in range(3):
        step()
    gc.collect()
    threshold = gc.get_threshold()
    gc.set_threshold(40)
    try:
        for _ in range(200):
            Node()
            step()
    finally:
        gc.set_threshold(*threshold)
        gc.collect()
    assert seen
    for x in seen:
        refused = isinstance(x, str) and "'v' is read at test_interruption.py" in x
        assert refused or len(set(x)) == 1
    assert variables[0].numpy().tolist() == [203.0] * 3


def _late(*_: Any) -> None:
    raise TimeoutError("too late")


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="needs SIGUSR1")
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
    with interruption.deferred_signals():
        assert interruption.DEFERRING
        signal.raise_signal(signal.SIGUSR1)
        came.append("end")
    assert came == ["end", "handler"]
    assert signal.getsignal(signal.SIGUSR1) is handler
    assert not interruption.DEFERRING


def test_a_deferred_signal_whose_handler_raises_and_one_after_it(on_signal: Any):
    came: list[str] = []
    on_signal(lambda: came.append("handler"))
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), interruption.deferred_signals():  # noqa: PT012 - one after the other
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGINT)
        assert came == ["handler"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, old)
