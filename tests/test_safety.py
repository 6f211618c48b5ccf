"""Whatever interrupts a step, the variables are as before it or as after it; and no update is lost.

Programs that are sent signals run in a separate process, and say what they found.
"""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from interrupts import OURS, make_pair, places_of, visit, whole
from jax.experimental import io_callback
from threads import run_in_threads

import jaxvars as jv
from jaxvars.control import collecting
from jaxvars.errors import ForeignTransformError
from jaxvars.tracing import context
from jaxvars.tracing.guards import GUARDS


def in_process(run_python: Callable[..., Any], program: str, **options: Any) -> str:
    done = run_python("-c", textwrap.dedent(program), **options)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


# ---------------------------------------------------------------- Ctrl-C
_INTERRUPTED = """
    import _thread, itertools, random, signal, sys, threading, time
    import jax, jax.numpy as jnp, numpy as np
    import jaxvars as jv

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored

    wanted, kinds = int(sys.argv[1]), sys.argv[2:]
    a, b = jv.Variable(jnp.zeros(300)), jv.Variable(jnp.zeros(300))
    c = [jv.Variable(jnp.zeros(5)) for _ in range(8)]

    @jv.compile
    def step(x):
        for v in (a, b, *c):
            v.assign_add(x * jnp.ones(v.shape))
        return a.value.sum()

    other = jv.compile(lambda: b * 1)
    model = jv.Module()
    model.parts = [a, b, *c]
    method = jv.compile(lambda model, x: [v.assign_add(x * jnp.ones(v.shape)) for v in model.parts])
    x = jnp.ones(())
    for _ in range(3):
        step(x), other(), method(model, x)

    turn = 0
    armed, stop = [], []  # not events: an interrupt in the middle of one can leave its lock taken

    def interrupt():
        rng, sent = random.Random(0), 0
        while not stop:
            if armed:
                time.sleep(rng.random() * 3e-4)
                armed.clear()
                sent = turn
                _thread.interrupt_main()
            elif turn > sent + 100 and not armed:  # Python swallows one that meets a finalizer
                sent = turn
                _thread.interrupt_main()
            else:
                time.sleep(1e-5)

    threading.Thread(target=interrupt, daemon=True).start()
    for kind in kinds:
        interrupts = torn = 0
        while interrupts < wanted:
            try:
                armed.append(True)
                for turn in itertools.count(turn):
                    if kind == "steady":
                        step(x)
                    elif kind == "model":
                        method(model, x)
                    else:  # values move between the step and the store
                        step(x)
                        held = a.value
                        other()
                        c[0].assign_add(jnp.zeros(5))
            except KeyboardInterrupt:
                interrupts += 1
            armed.clear()
            values = [np.asarray(v.value) for v in (a, b, *c)]
            torn += len({float(v[0]) for v in values}) != 1
            torn += any(len(set(v.tolist())) != 1 for v in values)
        before = float(a.value[0])
        step(x)
        print(kind, interrupts, torn, float(a.value[0]) - before)
    stop.append(True)
"""


def _interrupt(run_python: Callable[..., Any], count: int) -> None:
    kinds = ("steady", "moving", "model")
    program = textwrap.dedent(_INTERRUPTED)
    done = run_python("-c", program, str(count), *kinds, timeout=count + 100)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"{kind} {count} 0 1.0" for kind in kinds]


def test_interrupts_leave_all_or_nothing(run_python: Callable[..., Any]):
    _interrupt(run_python, 150)


@pytest.mark.slow
def test_1500_interrupts_leave_all_or_nothing(run_python: Callable[..., Any]):
    _interrupt(run_python, 1500)


@pytest.fixture
def pair() -> tuple[jv.Variable, jv.Variable, jv.Function]:
    return make_pair()


# ---------------------------------------------------------------- threads
@pytest.fixture
def often() -> Iterator[None]:
    """Have CPython switch threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(n: int, work: Callable[[int], None]) -> None:
    run_in_threads(*(partial(work, i) for i in range(n)))


@pytest.mark.usefixtures("often")
def test_eight_threads_lose_no_update(pair: Any):
    a, b, step = pair
    runs: list[None] = []
    count = jv.Variable(0)

    @jv.compile
    def first(n: Any) -> Any:
        runs.append(None)
        count.assign_add(n)
        return count * 1

    def work(_: int) -> None:
        for _ in range(100):
            step(1.0)
            first(1)

    in_threads(8, work)
    assert whole(a, b) == 800.0
    assert int(count) == 800
    assert len(runs) == 1


@pytest.mark.parametrize("how", ["one", "state", "tape"])
def test_what_reads_variables_reads_those_of_one_moment(pair: Any, how: str):
    a, b, step = pair
    both = jv.compile(lambda: (a * 1.0, b * 1.0))
    threads: list[threading.Thread] = []

    def read() -> Any:
        if how == "one":
            return [a.value] * 2
        if how == "state":
            return jv.State.of(a, b).values()
        with jv.GradientTape():
            return both()

    def in_another_thread() -> None:
        threads.append(threading.Thread(target=step, args=(1.0,)))
        threads[-1].start()
        threads[-1].join(0.05)  # it waits while the values are being taken

    step(1.0)
    both()
    read()
    for place, times in places_of(read):
        if place[0].startswith(OURS[0]):
            found: list[Any] = []
            visit(lambda found=found: found.extend(read()), place, times, in_another_thread)
            assert found[0].tolist() == found[1].tolist(), place
            threads[-1].join()
    assert len(threads) >= 5
    assert whole(a, b) == 1.0 + len(threads)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("how", ["optimizer", "tape"])
def test_steps_that_are_run_eagerly_lose_no_update(pair: Any, how: str):
    a, b, step = pair
    optimizer = jv.optimizers.SGD(1.0)
    optimizer.build([a, b])

    def run_eagerly() -> None:
        if how == "optimizer":
            optimizer.apply_gradients([(-jnp.ones(4), v) for v in (a, b)])
        else:
            with jv.GradientTape():
                step(1.0)

    def work(i: int) -> None:
        for _ in range(30):
            step(1.0) if i else run_eagerly()

    in_threads(2, work)
    assert whole(a, b) == 60.0


@pytest.mark.usefixtures("often")
def test_steps_assignments_and_reads_from_many_threads(pair: Any):
    a, b, step = pair
    count = jv.Variable(0)
    held: list[tuple[Any, Any]] = []

    def work(i: int) -> None:
        for k in range(60):
            if i < 3:
                step(1.0)
            elif i < 5:
                count.assign_add(1)
                jv.compile(lambda: count.assign_add(1))() if k % 20 == 0 else None
            else:
                value = a.value
                held.append((value, np.array(value)))
                b.numpy()

    in_threads(8, work)
    assert whole(a, b) == 180.0
    assert int(count) == 2 * 60 + 2 * 3
    for value, copy in held:
        np.testing.assert_array_equal(value, copy)
        assert len(set(copy.tolist())) == 1


@pytest.mark.usefixtures("often")
def test_threads_each_with_a_model_and_tape():
    def work(i: int) -> None:
        w = jv.Variable(float(i))

        @jv.compile
        def step(x: Any) -> Any:
            with jv.GradientTape() as tape:
                loss = (w * x) ** 2
            w.assign_sub(0.25 * tape.gradient(loss, w))
            return loss

        for k in range(20):
            assert float(step(1.0)) == (i * 0.5**k) ** 2

    in_threads(6, work)


# ---------------------------------------------------------------- callbacks
_CALLBACKS: dict[str, Callable[..., Any]] = {
    "io_callback": lambda f, x: io_callback(f, None, x),
    "ordered": lambda f, x: io_callback(f, None, x, ordered=True),
    "pure_callback": lambda f, x: jax.pure_callback(f, jax.ShapeDtypeStruct((), x.dtype), x),
    "debug": lambda f, x: jax.debug.callback(f, x),
    "in_scan": lambda f, x: jax.lax.scan(
        lambda c, _: (io_callback(f, None, c), (c, None))[1], x, None, length=2
    ),
}


@pytest.mark.parametrize("kind", list(_CALLBACKS))
def test_an_error_in_a_callback_changes_nothing(kind: str):
    a, b = jv.Variable(0.0), jv.Variable(jnp.zeros(3))
    fails = [False]

    def callback(x: Any) -> Any:
        if fails[0]:
            raise RuntimeError("callback failed")
        return np.asarray(x) if kind == "pure_callback" else None

    @jv.compile
    def step(x: Any) -> Any:
        a.assign_add(x)
        out = _CALLBACKS[kind](callback, a.value)
        b.assign_add(jnp.ones(3) * (out if kind == "pure_callback" else 1.0))
        return a * 1

    for _ in range(3):
        step(1.0)
    before = float(a), b.numpy().tolist()
    fails[0] = True
    for _ in range(2):
        with pytest.raises(Exception, match="callback failed"):
            step(1.0)
        assert (float(a), b.numpy().tolist()) == before
    fails[0] = False
    step(1.0)
    assert float(a) == before[0] + 1


def test_callbacks_may_read_and_are_told_not_to_write(run_python: Callable[..., Any]):
    """Small programs call back in the calling thread, large ones in a thread of XLA's."""
    out = in_process(
        run_python,
        """
        import faulthandler
        faulthandler.dump_traceback_later(90, exit=True)
        import jax, jax.numpy as jnp, numpy as np, jaxvars as jv
        from jax.experimental import io_callback

        def run(what, size):
            v = jv.Variable(jnp.zeros(size), name="v")
            seen = []
            bump = jv.compile(lambda: v.assign_add(1.0))
            act = dict(read=lambda x: seen.append(float(v.numpy()[0])), step=lambda x: bump(),
                       write=lambda x: v.assign_add(1.0))[what]
            bump()
            bump()

            @jv.compile
            def step(x):
                v.assign_add(x)
                y = jnp.sin(v.value) @ jnp.ones(size)
                io_callback(act, None, y)
                return y

            for _ in range(3):
                try:
                    step(1.0)
                except Exception as error:
                    assert "by a callback or signal handler" in str(error), error
                    assert "assign it afterwards" in str(error), error
                    seen.append("refused")
            bump()
            print(what, float(v.numpy()[0]), *seen)

        for size in (1, 200_000):
            for what in ("read", "write", "step"):
                run(what, size)
        """,
    )
    refused = "3.0 refused refused refused"
    expected = ["read 6.0 2.0 3.0 4.0", f"write {refused}", f"step {refused}"]
    assert out.splitlines() == expected * 2


def test_callbacks_while_other_threads_run_steps(pair: Any):
    a, b, step = pair
    seen: list[float] = []

    @jv.compile
    def talking(x: Any) -> Any:
        a.assign_add(x * jnp.ones(4))
        b.assign_add(x * jnp.ones(4))
        jax.debug.callback(lambda y: seen.append(float(y)), a.value[0])

    def work(i: int) -> None:
        for _ in range(30):
            (talking if i == 0 else step)(1.0)
            b.numpy()

    in_threads(4, work)
    assert whole(a, b) == 120.0
    assert len(seen) == 30
    assert sorted(seen) == seen


# ---------------------------------------------------------------- signal handlers, finalizers
@pytest.mark.slow  # a storm of signals: minutes where the machine is busy
def test_a_signal_handler_may_read_and_keep_values(run_python: Callable[..., Any]):
    out = in_process(
        run_python,
        """
        import signal
        import jax.numpy as jnp, numpy as np, jaxvars as jv

        v, other = jv.Variable(jnp.zeros(200)), jv.Variable(jnp.zeros(3))
        step = jv.compile(lambda: v.assign_add(jnp.ones(200)) * 1)
        for _ in range(3):  # JAX itself is not ready for signals while it compiles
            step()
            v.value, other.value, other.assign_add(jnp.ones(3))
        held = []
        signal.signal(signal.SIGALRM, lambda *_: held.append((v.value, v.numpy(), other.value)))
        signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
        n = 3
        while len(held) < 300:
            step()
            n += 1
            if n % 7 == 0:
                v.value, other.assign_add(jnp.ones(3))
        signal.setitimer(signal.ITIMER_REAL, 0)
        for value, array, _ in held:
            assert len(set(np.asarray(value).tolist())) == 1
            assert (np.asarray(value) == array).all()
        assert float(v.value[0]) == n, (float(v.value[0]), n)
        print("fine")
        """,
    )
    assert out == "fine\n"


def test_a_finalizer_may_read_variables(pair: Any):
    a, b, step = pair
    count = jv.Variable(0)

    class Node:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            with contextlib.suppress(ForeignTransformError):  # in XLA's call: see below
                a.numpy()

    gc.collect()
    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        for _ in range(30):
            for _ in range(10):
                Node()
            step(1.0)
            count.assign_add(1)
    finally:
        gc.set_threshold(*threshold)
        gc.collect()  # the last of them
    assert whole(a, b) == 30.0
    assert int(count) == 30


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
        refused = isinstance(x, str) and "'v' is read at test_safety.py" in x
        assert refused or len(set(x)) == 1
    assert variables[0].numpy().tolist() == [203.0] * 3


@pytest.mark.parametrize("act", [
    lambda v, f: f(1.0), lambda v, f: v.assign(2.0), lambda v, f: v.assign_add(2.0),
    lambda v, f: jv.Variable(2.0), lambda v, f: jv.compile(lambda: v * 1.0)(),
])  # fmt: skip
def test_a_finalizer_that_the_collector_runs_reads_and_computes_nothing(act: Any):
    v, f, found = jv.Variable(1.0), jv.compile(lambda x: x * 2.0), list[Any]()

    class Node:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            found.append(float(v.numpy()))
            try:
                act(v, f)
            except ForeignTransformError as error:
                found.append(str(error))

    for _ in range(3):
        f(1.0)
        Node()
        gc.collect()
        value, error = found
        assert value == 1.0
        assert re.search("at test_safety.py:.* in a finalizer that the garbage collector", error)
        found.clear()
    act(v, f)  # outside of it


def test_a_collector_whose_end_was_interrupted_refuses_nothing():
    v = jv.Variable(1.0)
    collecting._follow("start", {})
    assert float(v.assign(2.0)) == 2.0
    assert not GUARDS


def test_a_finalizer_is_part_of_the_function_that_is_traced_meanwhile():
    count = jv.Variable(0)

    class Node:
        def __del__(self) -> None:
            count.assign_add(1)

    step = jv.compile(lambda: (Node(), None)[1])
    for n in range(1, 4):
        step()
        assert int(count) == n


@pytest.mark.parametrize("write", [
    lambda n: n[:1].assign_add([1.0]), lambda n: n.assign_add(1.0),
    lambda n: n.assign_sub([-1.0, -1.0]), lambda n: n.assign(n.numpy() + 1.0),
    lambda n: n.assign([1.0, 1.0]), lambda n: n.__iadd__(1.0), lambda n: n.__iadd__([1.0, 1.0]),
    lambda n: n[0].assign_add(1.0), lambda n: n.__setitem__(0, 1.0),
    lambda n: n.assign(jv.Variable(n.value).assign_add(1.0)),
])  # fmt: skip
def test_a_variable_is_written_in_the_middle_of_a_bind(write: Callable[[jv.Variable], Any]):
    n = jv.Variable([0.0, 0.0])
    with context.at(None):  # pyright: ignore[reportArgumentType] - as JAX has it there
        write(n)
        assert context.place(None) is None
    assert n.numpy().tolist() in ([1.0, 1.0], [1.0, 0.0])


# ---------------------------------------------------------------- steps that fail as they run
def test_a_step_that_xla_refuses_changes_nothing(pair: Any):
    _, _, step = pair
    for _ in range(3):
        step(1.0)
    devices = jax.devices()
    if len(devices) < 2:
        pytest.skip("needs two devices")
    on_first = jv.Variable(0.0, sharding=devices[0])
    bound = jv.compile(lambda x: on_first.assign_add(x))
    here, there = (jax.device_put(jnp.float32(1.0), d) for d in devices[:2])
    for _ in range(3):
        bound(here)
    for _ in range(2):
        with pytest.raises(ValueError, match="incompatible devices"):
            bound(there)
        assert float(on_first) == 3.0
    bound(here)
    assert float(on_first) == 4.0


def test_writes_by_a_transform_in_the_same_thread_never_leak(pair: Any):
    a, b, step = pair
    for _ in range(3):
        step(1.0)
    for transform, x in ((jax.jit, 1.0), (jax.vmap, jnp.ones(3)), (jax.grad, 1.0)):
        with pytest.raises(ForeignTransformError):
            transform(lambda x: step(x).sum())(x)
    assert whole(a, b) == 3.0
