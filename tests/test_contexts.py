"""Every context in every situation: what is open twice, ends in another order, or is left behind.

A row of `CONTEXTS` is a context, in two variants, and what code sees of it. In each situation what
is seen is right, or an error of jaxvars comes; and at the end all is as it was before.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from interrupts import check_nothing_is_left
from threads import run_in_threads

import jaxvars as jv
from jaxvars import tf
from jaxvars.compiler.function import running_eagerly
from jaxvars.core.frames import LOCAL
from jaxvars.errors import ContextError, TapeError

REFUSED = (ContextError, TapeError)


class Row(NamedTuple):
    """A context: how it is opened, in two variants, and what is seen of it."""

    open: Callable[[int], AbstractContextManager[Any]]
    look: Callable[[], Any]
    takes_turns: bool = False  # another thread waits until it has ended
    is_of_thread: bool = False  # other coroutines of the thread see it, and lose nothing by it


V, W = jv.Variable(0.0, name="v"), jv.Variable(1.0, name="w")


def _averaging(momentum: float) -> jv.optimizers.Optimizer:
    optimizer = jv.optimizers.SGD(1.0, use_ema=True, ema_momentum=momentum)
    optimizer.apply_gradients([(0.0, W)])
    optimizer.get_slot(W, "average").assign(momentum)
    return optimizer


AVERAGES = [_averaging(0.25), _averaging(0.5)]
TAPE = jv.GradientTape(persistent=True)


@contextmanager
def _transact(i: int) -> Generator[None]:
    with jv.transaction():
        V.assign(i + 1.0)
        yield
        V.assign(0.0)


@contextmanager
def _creator(i: int) -> Generator[None]:
    def create(following: Any, **given: Any) -> Any:
        return following(**{**given, "name": f"{given['name']}{i}"})

    with tf.variable_creator_scope(create):
        yield


def _name() -> str:
    return jv.Variable(0.0, name="x").name


def _tf_name() -> str:
    return tf.Variable(0.0, name="x").name


def _placed() -> str:
    return str(jv.Variable(0.0).sharding)


def _is_eager() -> bool:
    ran: list[None] = []
    step = jv.compile(lambda: ran.append(None))
    step()
    step()
    return len(ran) == 2


CPU = jax.devices("cpu")
CONTEXTS: dict[str, Row] = {
    "transaction": Row(_transact, lambda: float(V), takes_turns=True),
    "optimizer.averaged": Row(lambda i: AVERAGES[i].averaged(), lambda: float(W)),
    "freeze": Row(lambda i: jv.freeze((V, W)[i]), lambda: (V.trainable, W.trainable)),
    "name_scope": Row(lambda i: jv.name_scope("ab"[i]), _name),
    "use_mesh": Row(lambda i: jv.use_mesh(jv.mesh({"ab"[i]: 1}, CPU[i : i + 1])), _placed),
    "device": Row(lambda i: jv.device(f"CPU:{i + 1}"), _placed),
    "GradientTape": Row(
        lambda i: jv.GradientTape(), lambda: len(LOCAL.frame.observers), is_of_thread=True
    ),
    "ForwardAccumulator": Row(
        lambda i: jv.ForwardAccumulator(V, 1.0),
        lambda: len(LOCAL.frame.observers),
        is_of_thread=True,
    ),
    "GradientTape.stop_recording": Row(
        lambda i: TAPE.stop_recording(), lambda: TAPE._record.paused, is_of_thread=True
    ),
    "debugging.verify": Row(lambda i: running_eagerly(), _is_eager),
    "tf.name_scope": Row(lambda i: tf.name_scope("ab"[i]), _tf_name),
    "tf.device": Row(lambda i: tf.device(f"CPU:{i + 1}"), _placed),
    "tf.variable_creator_scope": Row(_creator, _tf_name),
    "tf.distribute.Strategy.scope": Row(
        lambda i: tf.distribute.OneDeviceStrategy(f"CPU:{i + 1}").scope(), _placed
    ),
}
every_context = pytest.mark.parametrize("row", CONTEXTS.values(), ids=CONTEXTS)


@pytest.fixture(autouse=True)
def _all_is_as_before(row: Row) -> Generator[None]:
    before = row.look()
    yield
    gc.collect()
    assert row.look() == before
    assert (float(V), float(W), V.trainable, W.trainable) == (0.0, 1.0, True, True)
    assert run_in_threads(row.look) == [before]
    check_nothing_is_left()


def seen_in(row: Row, *variants: int) -> Any:
    """Return what is seen in contexts that are opened one in the other."""
    with contextlib.ExitStack() as stack:
        for i in variants:
            stack.enter_context(row.open(i))
        return row.look()


def _stay(row: Row, i: int, seen: list[Any]) -> Generator[None]:
    with row.open(i):
        seen.append(row.look())
        yield


def _finish(generator: Generator[None]) -> Exception | None:
    """Run a generator to its end; return the error that refuses that."""
    try:
        next(generator, None)
    except REFUSED as error:
        return error
    return None


# ---------------------------------------------------------------- situations
@every_context
def test_it_is_seen_inside_also_in_itself(row: Row):
    outside = row.look()
    assert seen_in(row, 0) != outside
    with row.open(0):
        first = row.look()
        with row.open(1):
            second = row.look()
            with row.open(0):
                row.look()
            assert row.look() == second or row.takes_turns  # what an inner transaction assigned
        assert row.look() == first or row.takes_turns


@every_context
def test_an_exception_ends_it(row: Row):
    with pytest.raises(KeyError), row.open(0), row.open(1):
        raise KeyError


@every_context
def test_a_generator_that_is_dropped_ends_it(row: Row):
    seen: list[Any] = []
    next(_stay(row, 0, seen))
    assert seen == [seen_in(row, 0)]


@every_context
def test_generators_end_in_the_order_in_which_they_began(row: Row):
    seen: list[Any] = [seen_in(row, 1)]
    first, second = _stay(row, 0, seen), _stay(row, 1, seen)
    next(first)
    next(second)
    errors = [_finish(first)]
    rest = row.look if errors[0] is None else None
    assert rest is None or rest() == seen[0]
    errors.append(_finish(second))
    for error in filter(None, errors):
        assert "out of order" in str(error)
        assert "await" in str(error)


@every_context
def test_coroutines_that_go_on_in_turn(row: Row):
    mine = [seen_in(row, i) for i in range(2)]
    outside = row.look()

    async def wait(i: int) -> None:
        with row.open(i):
            for _ in range(2):
                await asyncio.sleep(0)
                assert row.look() == mine[i] or row.is_of_thread

    async def watch() -> None:
        for _ in range(3):
            assert row.look() == outside or row.is_of_thread
            await asyncio.sleep(0)

    async def run() -> list[Any]:
        return await asyncio.gather(wait(0), wait(1), watch(), return_exceptions=True)

    found = asyncio.run(run())
    assert all(error is None or isinstance(error, REFUSED) for error in found), found
    for error in filter(None, found):
        assert "    x = await fetch()\n    with " in str(error)


@every_context
def test_two_threads_at_once(row: Row):
    mine = [seen_in(row, i) for i in range(2)]
    opened, ended = threading.Event(), threading.Event()
    seen: dict[int, list[Any]] = {0: [], 1: []}

    def first() -> None:
        with row.open(0):
            opened.set()
            if not row.takes_turns:
                ended.wait()
            seen[0].append(row.look())

    def second() -> None:
        opened.wait()
        with row.open(1):
            seen[1].append(row.look())
        ended.set()

    run_in_threads(first, second)
    assert [seen[0], seen[1]] == [[mine[0]], [mine[1]]]


@pytest.mark.parametrize("row", [CONTEXTS["tf.name_scope"], CONTEXTS["tf.device"]])
def test_one_object_in_two_threads_and_again(row: Row):
    once = row.open(0)
    expected = seen_in(row, 0)
    with once:
        assert run_in_threads(lambda: _look_in(once, row)) == [expected]
        with once:
            pass
        assert row.look() == expected


def _look_in(scope: AbstractContextManager[Any], row: Row) -> Any:
    with scope:
        return row.look()


@pytest.mark.parametrize(
    "row",
    # What ends the block of a transaction assigns, and waits for it: see the tests of transactions.
    [pytest.param(row, id=name) for name, row in CONTEXTS.items() if not row.takes_turns],
)
def test_it_ends_in_another_thread(row: Row):
    before, found = row.look(), []

    def begin() -> Generator[None]:
        generator = _stay(row, 0, [])
        next(generator)
        run_in_threads(lambda: found.append(_finish(generator)))
        assert row.look() == before or found[0] is not None
        return generator

    run_in_threads(begin)  # a thread of which something may be left is not used again
    assert row.look() == before


@every_context
@pytest.mark.parametrize("act", ["step", "restore", "commit"])
def test_another_thread_trains_restores_and_commits_inside(row: Row, act: str, tmp_path: Any):
    u = jv.Variable(1.0, name="u")
    optimizer = jv.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    optimizer.apply_gradients([(0.0, u)])
    checkpoint = jv.checkpoint.Checkpoint(u=u, optimizer=optimizer)
    saved = checkpoint.write(tmp_path / "c.npz")
    state = jv.State.of(u=u, optimizer=optimizer)
    optimizer.apply_gradients([(1.0, u)])
    step = jv.compile(lambda: optimizer.apply_gradients([(-1.0, u)]) * 1)
    actions = {
        "step": (step, (1.0, 0.75)),
        "restore": (lambda: checkpoint.restore(saved), (1.0, 1.0)),
        "commit": (state.commit, (1.0, 1.0)),
    }
    action, expected = actions[act]
    thread = threading.Thread(target=action)
    with row.open(0), optimizer.averaged():
        thread.start()
        if not row.takes_turns:
            thread.join()
        assert float(u) == 0.5
    thread.join()
    assert (float(u), float(optimizer.get_slot(u, "average"))) == expected
    assert np.isfinite(float(u))


# ---------------------------------------------------------------- the table is complete
WITHOUT_A_ROW = {
    "checkpoint.CheckpointManager": "it is open in no thread: its files are locked one by one",
    "profiler.trace": "there is one in a process; JAX refuses another one",
    "profiler.step": "a mark in a profile",
    "progress": "a line that is drawn, and sets nothing",
    "tensorboard.record_if": "a default, of which each thread has its own: see its own tests",
    "tensorboard.SummaryWriter": "the same",
    "parallel.Strategy": "as that of tf.distribute",
}


def _is_context(thing: Any) -> bool:
    if inspect.isclass(thing):
        return hasattr(thing, "__enter__")
    returned = getattr(thing, "__annotations__", {}).get("return", "")
    return str(returned).startswith(("Generator[", "AbstractContextManager["))


@pytest.mark.parametrize("row", [CONTEXTS["freeze"]])
def test_the_table_has_every_public_context(row: Row):
    spaces = {"": jv, **{f"{n}.": x for n in jv.__all__ if inspect.ismodule(x := getattr(jv, n))}}
    found = {
        f"{space}{name}"
        for space, module in spaces.items()
        if space != "tf."
        for name in module.__all__
        if _is_context(getattr(module, name))
    }
    assert found - CONTEXTS.keys() - WITHOUT_A_ROW.keys() == set()
