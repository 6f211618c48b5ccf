"""`transaction`: all assigns in a block happen in one instant, or none does."""

# ruff: noqa: PT012, PT017 - blocks end in an exception; some come or do not

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import signal
import sys
import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from interrupts import INSTEAD, check_nothing_is_left, make_pair, sweep, whole
from threads import run_in_threads

import jaxvars as jv
from jaxvars.core import store
from jaxvars.core.cells import SHARED, TRANSACTIONS
from jaxvars.errors import ContextError, ExecutionError, ForeignTransformError, StateError

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # Python swallows what a finalizer raises
)


class Stop(Exception):  # noqa: N818 - not an error
    """What ends a block."""


def fails(*variables: jv.Variable) -> Any:
    """Assign some variables in a transaction that fails."""
    with pytest.raises(Stop), jv.transaction():
        for v in variables:
            v.assign(v + 100)
        raise Stop


# ---------------------------------------------------------------- what it does
WRITES = {
    "assign": lambda v: v.assign([7.0, 7.0]),
    "assign_add": lambda v: v.assign_add([1.0, 1.0]),
    "assign_sub": lambda v: v.assign_sub(1.0),
    "a slice": lambda v: v[0].assign(7.0),
    "in place": lambda v: v.__imul__(3.0),
    "part": lambda v: v[0].assign_add(1.0),
    "commit": lambda v: jax.tree.map(lambda x: 2 * x, jv.State.of(v)).commit(),
    "compiled": lambda v: jv.compile(lambda: v.assign(v * 3))(),
    "modules": lambda v: jv.optimizers.SGD(0.1).apply_gradients([(jnp.ones(2), v)]),
    "jax.jit": lambda v: v.assign(jax.jit(lambda x: x * 5)(v)),
    "scan": lambda v: jv.scan(lambda c, x: (c, v.assign_add(x).value), 0.0, jnp.ones((3, 2))),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_are_seen_inside_and_made_or_undone_at_the_end(write: Any):
    v, twin = jv.Variable([1.0, 2.0]), jv.Variable([1.0, 2.0])
    write(twin)
    with pytest.raises(Stop), jv.transaction():
        write(v)
        assert v.numpy().tolist() == twin.numpy().tolist() != [1.0, 2.0]
        assert run_in_threads(v.numpy)[0].tolist() == [1.0, 2.0]
        raise Stop
    assert v.numpy().tolist() == [1.0, 2.0]
    with jv.transaction() as nothing:
        write(v)
        assert run_in_threads(lambda: (v + 0).tolist()) == [[1.0, 2.0]]
    assert nothing is None
    assert v.numpy().tolist() == twin.numpy().tolist()
    check_nothing_is_left()
    assert not TRANSACTIONS


def test_an_inner_one_that_fails_undoes_only_its_own():
    a, b = jv.Variable(1), jv.Variable(1)
    with jv.transaction():
        a.assign(2)
        fails(a, b)
        assert (int(a), int(b)) == (2, 1)
        with jv.transaction():
            b.assign(3)
        assert run_in_threads(lambda: int(b)) == [1]
    assert (int(a), int(b)) == (2, 3)
    with pytest.raises(Stop), jv.transaction():
        with jv.transaction():
            b.assign(4)
        raise Stop
    assert int(b) == 3


def test_a_transaction_object_is_used_once():
    once, v = jv.transaction(), jv.Variable(0)
    with once:
        v.assign(1)
    with pytest.raises(RuntimeError, match=r"used once: write `with jv.transaction\(\):`"), once:
        v.assign(2)  # pragma: no cover - the error comes before
    with jv.transaction():
        pass  # in which nothing is assigned
    assert int(v) == 1


@pytest.mark.parametrize(
    "within", [jv.compile, jax.jit, lambda f: lambda: jax.vmap(f)(jnp.ones(2))]
)
def test_it_is_refused_where_functions_are_traced(within: Any):
    def body(*_: Any) -> Any:
        with jv.transaction():
            raise AssertionError("it was opened")  # pragma: no cover

    with pytest.raises(ForeignTransformError, match=r"is opened at .* all-or-nothing as a whole"):
        within(body)()
    jv.config.run_eagerly(True)
    try:
        with pytest.raises(AssertionError, match="it was opened"):
            jv.compile(body)()
    finally:
        jv.config.run_eagerly(False)


def test_strings_keys_and_new_variables():
    s, k = jv.Variable("old"), jv.Variable(jax.random.key(0))
    made: list[jv.Variable] = []
    with pytest.raises(Stop), jv.transaction():
        s.assign("new")
        k.assign(jax.random.key(1))
        made.append(jv.Variable(1.0))
        made[0].assign(2.0)
        raise Stop
    assert s.numpy().item() == "old"
    assert k.value == jax.random.key(0)
    assert float(made[0]) == 1.0
    with jv.transaction():
        s.assign("new")
        jv.abstract(lambda: made.append(jv.Variable(jnp.ones(2))))
        made[1].assign([3.0, 4.0])
        assert made[1].numpy().tolist() == [3.0, 4.0]
        assert repr(made[1]) == "<Variable 'Variable' float32[2] [3. 4.]>"
    assert (s.numpy().item(), made[1].numpy().tolist()) == ("new", [3.0, 4.0])


def test_a_variable_that_is_gone_at_the_end_leaves_nothing():
    with jv.transaction():
        v = jv.Variable(1.0)
        key = v._cell.key
        v.assign(2.0)
        del v
    assert key not in SHARED


# ---------------------------------------------------------------- compiled steps and held values
def test_a_compiled_step_goes_on_with_the_values_and_is_undone_with_them():
    a, b, step = make_pair()
    step(1.0)
    pointer_of = jv.compile(lambda: a.assign_add(jnp.ones(4)))
    with pytest.raises(Stop), jv.transaction():
        step(1.0)
        a.assign_sub(jnp.ones(4))
        assert (step(1.0) / 1).tolist() == [5.0] * 4
        raise Stop
    assert whole(a, b) == 1.0
    with jv.transaction():
        step(1.0)
        held = a.value
        assert step.trace_count == 1
    step(1.0)
    pointer_of()
    assert held.tolist() == [2.0] * 4
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([4.0] * 4, [3.0] * 4)


def test_a_function_that_is_first_called_in_it_makes_its_variables():
    made: list[jv.Variable] = []

    @jv.compile
    def step(x: Any) -> Any:
        if not made:
            made.append(jv.Variable(jnp.zeros(())))
        return made[0].assign_add(x).value

    with pytest.raises(Stop), jv.transaction():
        assert float(step(2.0)) == 2.0
        raise Stop
    assert float(made[0]) == 0.0
    assert float(step(3.0)) == 3.0


def test_a_value_that_cannot_be_computed_leaves_all_as_it_was():
    a, b = jv.Variable(0.0), jv.Variable(0.0)
    failure = pytest.raises(ExecutionError, match=r"The transaction failed .* No variable was")
    with failure, jv.transaction():
        b.assign(1.0)
        a.assign(1.0)
        a.value.delete()
    assert (float(a), float(b)) == (0.0, 0.0)


def test_callbacks_see_what_other_threads_see_and_cannot_assign():
    v, seen = jv.Variable(1.0), []

    def look(x: Any) -> Any:
        seen.append(float(v))
        return np.float32(x)

    def write(x: Any) -> Any:
        v.assign(5.0)  # in XLA's thread refused, in this one part of the block
        return np.float32(x)  # pragma: no cover - depends on the thread

    shape = jax.ShapeDtypeStruct((), jnp.float32)
    calls = [jv.compile(lambda x, f=f: jax.pure_callback(f, shape, x)) for f in (look, write)]
    with jv.transaction():
        v.assign(2.0)
        assert float(calls[0](jnp.float32(3.0))) == 3.0
        try:
            calls[1](jnp.float32(3.0)).block_until_ready()
        except Exception as error:  # noqa: BLE001 - JAX wraps it
            assert "callback" in str(error)
    assert seen[0] in (1.0, 2.0)
    assert float(v) in (2.0, 5.0)


# ---------------------------------------------------------------- tapes, training, checkpoints
@pytest.mark.parametrize("through", [False, True])
def test_tapes_around_inside_and_across(through: bool):
    def gradient(fail: bool) -> float:
        v = jv.Variable(2.0)
        with jv.GradientTape(through_assigns=through) as tape:
            loss = v * v
            try:
                with jv.transaction():
                    v.assign(v * 3.0)
                    with jv.GradientTape() as inner:
                        y = v * v
                    assert float(inner.gradient(y, v)) == 12.0
                    if fail:
                        raise Stop
            except Stop:
                pass
            loss = loss + v * v
        return float(tape.gradient(loss, v))

    assert gradient(fail=True) == 4.0 + 4.0
    assert gradient(fail=False) == (4.0 + 36.0 if through else 4.0 + 12.0)
    v, tape = jv.Variable(2.0), jv.GradientTape()
    with jv.transaction():
        tape.__enter__()
        v.assign(3.0)
        y = v * v
    tape.__exit__(None, None, None)
    assert float(tape.gradient(y, v)) == 6.0
    check_nothing_is_left()


@pytest.mark.parametrize("make", [jv.optimizers.Adam, lambda x: jv.optimizers.Optax(optax.adam(x))])
def test_an_optimizer_is_undone_with_its_slots(make: Any):
    w = jv.Variable([1.0, 2.0])
    optimizer = make(0.1)
    optimizer.apply_gradients([(jnp.ones(2), w)])
    before = jv.State.of(w=w, optimizer=optimizer)
    with pytest.raises(Stop), jv.transaction():
        optimizer.apply_gradients([(jnp.ones(2), w)])
        raise Stop
    after = jv.State.of(w=w, optimizer=optimizer)
    assert jax.tree.all(jax.tree.map(jnp.array_equal, before, after))
    with jv.transaction():
        optimizer.apply_gradients([(jnp.ones(2), w)])
    assert int(optimizer.iterations) == 2


def test_a_checkpoint_restored_inside_is_undone(tmp_path: Any):
    model = {"w": jv.Variable([1.0, 2.0])}
    checkpoint = jv.checkpoint.Checkpoint(model=model)
    first = checkpoint.save(tmp_path / "c.npz")
    model["w"].assign([5.0, 5.0])
    with pytest.raises(Stop), jv.transaction():
        checkpoint.restore(first)
        assert model["w"].numpy().tolist() == [1.0, 2.0]
        raise Stop
    assert model["w"].numpy().tolist() == [5.0, 5.0]
    with jv.transaction():
        model["w"].assign([7.0, 7.0])
        second = checkpoint.save(tmp_path / "d.npz")  # what is seen inside
        checkpoint.restore(first)
    assert model["w"].numpy().tolist() == [1.0, 2.0]
    checkpoint.restore(second)
    assert model["w"].numpy().tolist() == [7.0, 7.0]


def test_values_that_wait_for_a_variable_made_in_it_stay(tmp_path: Any):
    model: dict[str, jv.Variable] = {"w": jv.Variable(1.0)}
    saved = jv.checkpoint.Checkpoint(model=model).save(tmp_path / "c.npz")
    later = jv.Module()
    status = jv.checkpoint.Checkpoint(model=later).restore(saved)
    with pytest.raises(Stop), jv.transaction():
        later.w = jv.Variable(0.0)
        assert float(later.w) == 1.0
        raise Stop
    assert float(later.w) == 1.0
    status.expect_partial()


# ---------------------------------------------------------------- threads and signals
def test_threads_lose_no_update_and_see_no_half():
    a, b, step = make_pair()
    count, is_over = jv.Variable(0), [False]

    def add() -> None:
        for i in range(12):
            with jv.transaction():
                count.assign(count + 1)
                a.assign(a + 1)
                b.assign(b + 1)
            step(1.0) if i % 2 else count.assign_add(0)

    def look() -> None:
        while not is_over[0]:
            state = jv.State.of(a, b)
            assert len({x for v in state.values() for x in v.tolist()}) == 1

    def work() -> None:
        try:
            run_in_threads(*[add] * 8)
        finally:
            is_over[0] = True

    run_in_threads(look, work)
    assert int(count) == 96
    assert whole(a, b) == 96 + 48


def test_another_thread_that_assigns_waits_for_the_end():
    v, done = jv.Variable(0), threading.Event()

    def add() -> None:
        v.assign_add(10)
        done.set()

    thread = threading.Thread(target=add)
    with jv.transaction():
        v.assign(v + 1)
        thread.start()
        assert not done.wait(0.2)
    thread.join()
    assert int(v) == 11


def test_a_thread_that_restores_and_one_that_does_in_a_transaction(tmp_path):
    v = jv.Variable(1.0)
    one, other = (jv.checkpoint.Checkpoint(v=v) for _ in range(2))
    path = one.write(tmp_path / "c.npz")

    def restore() -> None:
        for _ in range(40):
            one.restore(path)

    def transact() -> None:
        for _ in range(40):
            with jv.transaction():
                v.assign(2.0)
                other.restore(path)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        run_in_threads(restore, transact)
    finally:
        sys.setswitchinterval(interval)
    assert float(v) == 1.0


def test_a_thread_that_traces_and_one_in_a_transaction_do_not_wait_for_each_other():
    v, started = jv.Variable(0), threading.Event()
    made: list[jv.Variable] = []

    def first_value() -> Any:
        started.set()
        time.sleep(0.2)  # so that the other thread is where it waits
        return v.assign_add(1).value

    @jv.compile
    def trace() -> Any:
        if not made:
            made.append(jv.Variable(first_value))
        return made[0].value

    def transact() -> None:
        started.wait()
        with jv.transaction():
            v.assign(v + 1)
            jv.compile(lambda: v.assign_add(1))()

    run_in_threads(trace, transact)
    assert (int(v), int(made[0])) == (3, 1)


def test_a_signal_handler_is_part_of_the_block():
    v = jv.Variable(0)
    before = signal.signal(signal.SIGALRM, lambda *_: v.assign_add(1))
    try:
        with pytest.raises(Stop), jv.transaction():
            signal.raise_signal(signal.SIGALRM)
            assert int(v) == 1
            raise Stop
        assert int(v) == 0
        with jv.transaction():
            signal.raise_signal(signal.SIGALRM)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert int(v) == 1


def test_interrupts_at_each_place():
    a, b, step = make_pair()
    step(1.0)
    before = [0.0]

    def act() -> None:
        with jv.transaction():
            a.assign(a + 1)
            try:
                with jv.transaction():
                    a.assign(a + 100)
                    raise Stop
            except Stop:
                pass
            b.assign_add(jnp.ones(4))
            step(1.0)

    def check() -> None:
        assert not TRANSACTIONS
        assert whole(a, b) in (before[0], before[0] + 2)
        before[0] = whole(a, b)
        run_in_threads(lambda: step(0.0))  # no lock is left
        act()
        assert whole(a, b) == before[0] + 2

    def prepare() -> None:
        before[0] = whole(a, b)

    assert sweep(prepare, act, check, count=150, among="jaxvars") > 50


def test_interrupts_at_random_instants():
    a, b, step = make_pair()
    step(1.0)
    rng, hits, done = random.Random(0), 0, whole(a, b)
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(1000):
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(2e-5, 2.5e-3))
                with jv.transaction():
                    a.assign(a + 1)
                    b.assign(b + 1)
                    step(1.0)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except (KeyboardInterrupt, AttributeError) as error:  # JAX swallows some
                assert type(error) is KeyboardInterrupt or INSTEAD[1] in str(error)
                hits += 1
            except RecursionError as error:  # JAX refuses the function: see `interrupts.BREAKS`
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert "Recursively calling <weakref" in str(error)
                assert whole(a, b) == done
                a, b, step = make_pair()
                step(1.0)
                done = whole(a, b)
            with contextlib.suppress(KeyboardInterrupt):  # of an alarm that rang meanwhile
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert not TRANSACTIONS
            now = whole(a, b)
            assert now in (done, done + 2)
            done = now
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(0.005)
        signal.signal(signal.SIGALRM, handler)
    assert hits > 100
    check_nothing_is_left()


def test_errors_of_a_commit_inside_change_nothing():
    v = jv.Variable([1.0, 2.0])
    state = jv.State.of(v)
    with pytest.raises(StateError, match="commit"), jv.transaction():
        v.assign([3.0, 3.0])
        state.replace({"Variable": jnp.ones(3)}).commit()
    assert v.numpy().tolist() == [1.0, 2.0]


# ---------------------------------------------------------------- out of order
def test_one_that_ends_in_another_thread_undoes_all_and_says_so():
    v = jv.Variable(1.0)

    def act() -> None:
        block = jv.transaction()
        block.__enter__()
        v.assign(2.0)
        with pytest.raises(ContextError, match=r"`with jv\.transaction\(\):` ends at .* out of"):
            run_in_threads(lambda: block.__exit__(None, None, None))
        assert float(v) == 1.0
        run_in_threads(lambda: v.assign_add(1.0))  # no lock is left with this thread
        with jv.transaction():
            v.assign_add(1.0)
        run_in_threads(jv.compile(lambda: v.assign_add(1.0).value))

    run_in_threads(act)
    assert v.assign_add(0.0).numpy() == 4.0
    assert not TRANSACTIONS


def test_an_inner_one_that_ends_in_another_thread_leaves_the_outer_ones_locks():
    v = jv.Variable(1.0)

    def act() -> None:
        with jv.transaction():
            v.assign(2.0)
            block = jv.transaction()
            block.__enter__()
            v.assign(5.0)
            with pytest.raises(ContextError, match="out of order"):
                run_in_threads(lambda: block.__exit__(None, None, None))
            assert run_in_threads(lambda: store._waiting.acquire(blocking=False)) == [False]
            assert float(v) == 2.0

    run_in_threads(act)
    assert v.assign_add(1.0).numpy() == 3.0
    check_nothing_is_left()


def test_a_generator_that_is_left_in_a_transaction_and_collected_elsewhere():
    v = jv.Variable(1.0)

    def wait() -> Any:
        with jv.transaction():
            v.assign(2.0)
            yield

    def begin() -> list[Any]:
        waiting = [wait()]
        next(waiting[0])
        run_in_threads(waiting.clear)
        return waiting

    run_in_threads(begin)
    assert v.assign_add(1.0).numpy() == 2.0
    assert not TRANSACTIONS


def test_generators_that_end_in_turn_undo_what_each_has_assigned():
    v, w = jv.Variable(0.0), jv.Variable(0.0)

    def add(x: jv.Variable) -> Any:
        with jv.transaction():
            x.assign_add(1.0)
            yield

    first, second = add(v), add(w)
    next(first)
    next(second)
    for block in (first, second):
        with pytest.raises(ContextError, match=r"out of order[^`]*(`[^`]*`[^`]*)*await fetch"):
            next(block)
    assert (float(v), float(w)) == (0.0, 0.0)
    step = jv.compile(lambda: v.assign_add(1.0).value)
    assert [float(step()) for _ in range(3)] == [1.0, 2.0, 3.0]
    v.assign_add(10.0)
    assert run_in_threads(lambda: float(v)) == [13.0]
    check_nothing_is_left()


def test_another_coroutine_is_refused_at_its_first_use():
    v = jv.Variable(0.0)

    async def hold() -> None:
        with jv.transaction():
            v.assign(5.0)
            await asyncio.sleep(0)

    async def use(act: Any) -> None:
        act()

    acts = [lambda: float(v), lambda: v.assign_add(1.0), lambda: jv.transaction().__enter__()]
    pattern = r"in a coroutine, while another one waits inside of `with jv\.transaction\(\):`"
    for act in acts:
        v.assign(0.0)

        async def run(act: Any = act) -> list[Any]:
            return await asyncio.gather(hold(), use(act), return_exceptions=True)

        done, refused = asyncio.run(run())
        assert done is None
        assert isinstance(refused, ContextError)
        assert re.search(pattern, str(refused))
        assert float(v) == 5.0


def test_it_may_be_entered_by_an_exit_stack():
    v = jv.Variable(0.0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(jv.transaction())
        v.assign(1.0)
        assert run_in_threads(lambda: float(v)) == [0.0]
    assert float(v) == 1.0
