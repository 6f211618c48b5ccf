"""Whatever interrupts an action: it happened or did not, for all variables, and can be repeated."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from interrupts import check_nothing_is_left, interrupt, make_pair, places_of, sweep, visit, whole

import jaxvars as jv
from jaxvars.compiler import program
from jaxvars.core.cells import BUSY, CURRENT
from jaxvars.tracing import context

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # Python swallows what a finalizer raises
)


@contextmanager
def slow_paths(monkeypatch: pytest.MonkeyPatch) -> Generator[list[None]]:
    """Count how often jit leaves its fast path."""
    counted: list[None] = []
    whole = program.Program.__hash__

    def count(program: Any) -> int:
        counted.append(None)
        return whole(program)

    with monkeypatch.context() as patch:
        patch.setattr(program.Program, "__hash__", count)
        yield counted


# ---------------------------------------------------------------- warm steps off jit's fast path
_Off: TypeAlias = tuple[Callable[[ExitStack], Any], Callable[[], Any]]


def _cleared(step: Any) -> _Off:
    return lambda _: jax.clear_caches(), lambda: step(1.0)


def _new_setting(step: Any) -> _Off:
    setting = jax.default_matmul_precision
    return lambda stack: stack.enter_context(setting("highest")), lambda: step(1.0)


def _new_kind(step: Any) -> _Off:
    x = jax.device_put(jnp.float32(1.0), jax.devices()[0])
    return lambda _: None, lambda: step(x)


def _warm_step(off: Any, hot: bool, monkeypatch: pytest.MonkeyPatch, **how: Any) -> int:
    a, b, step = make_pair()
    leave, action = off(step)
    action()  # so that its program is warm
    before = [0.0]
    stack = ExitStack()

    def prepare() -> None:
        stack.close()
        for entry in step._entries.values():
            entry._jitted.clear_cache()
        step(1.0)
        before[0] = float(a.numpy()[0])  # which ends the hot path
        for _ in range(2 * hot):
            step(1.0)
            before[0] += 1
        leave(stack)

    def check() -> None:
        done = {*a.numpy().tolist(), *b.numpy().tolist()}
        assert done in ({before[0]}, {before[0] + 1})
        for _ in range(3):
            action()
        with slow_paths(monkeypatch) as counted:
            action()
        assert not counted
        assert {*a.numpy().tolist(), *b.numpy().tolist()} == {done.pop() + 4}

    with stack:
        return sweep(prepare, action, check, **how)


_OFF = pytest.mark.parametrize("off", [_cleared, _new_setting, _new_kind])
_HOT = pytest.mark.parametrize("hot", [False, True])


@_OFF
@_HOT
def test_a_warm_step_between_execution_and_return(off: Any, hot: bool, monkeypatch: Any):
    assert _warm_step(off, hot, monkeypatch, count=12, after="ExecuteReplicated.__call__") >= 12


@pytest.mark.slow
@_OFF
@_HOT
def test_a_warm_step_anywhere(off: Any, hot: bool, monkeypatch: pytest.MonkeyPatch):
    assert _warm_step(off, hot, monkeypatch, count=400) >= 400


# ---------------------------------------------------------------- warm steps on it
def _nothing() -> None:
    """Leave all as it is."""


def sweep_hot(prepare: Any, act: Any, a: Any, b: Any) -> int:
    def check() -> None:
        whole(a, b)
        act()

    act()
    return sweep(prepare, act, check, count=100, again=True)


def test_a_hot_step():
    a, b, step = make_pair()

    def act() -> None:  # of each call, one place is seen
        for _ in range(4):
            step(1.0)

    assert sweep_hot(_nothing, act, a, b) > 3


def test_a_hot_step_with_arguments_of_several_shapes():
    a, b, step = make_pair()
    xs = [1.0, np.float32(1), jnp.float32(1), jnp.ones(1), jnp.ones(4), jnp.int32(1)]

    def act() -> None:
        for x in xs:
            step(x)

    assert sweep_hot(act, act, a, b) > 3


def test_a_step_that_takes_the_values_out_of_the_store():
    a, b, step = make_pair()
    for _ in range(3):
        step(1.0)

    def take() -> None:
        whole(a, b)
        assert len({x for v in (a, b) for x in v.value.tolist()}) == 1

    assert sweep(take, lambda: step(1.0), take, count=100, again=True) > 10


def test_assignments_and_reads():
    a, b, step = make_pair()
    state = jv.State.of(a=a, b=b)

    def act() -> None:
        step(1.0)
        state.commit()
        np.asarray(a.value)

    step(1.0)
    assert sweep(_nothing, act, functools.partial(whole, a, b), count=60, again=True) > 30


def test_a_step_that_calls_back():
    v, seen = jv.Variable(0.0), list[Any]()

    @jv.compile
    def step(x: Any) -> None:
        jax.debug.callback(seen.append, v.value)
        v.assign_add(x)

    for _ in range(2):
        step(1.0)
    assert sweep(_nothing, lambda: step(1.0), _nothing, count=60, among="jaxvars/compiler") > 10
    before = float(v)
    step(1.0)
    assert float(v) == before + 1.0


# ---------------------------------------------------------------- first calls
class Lazy(jv.Module):
    """Creates a variable from its argument, one from a variable, and one from nothing."""

    def __init__(self) -> None:
        self.w: Any = None
        self.calls = jv.Variable(0.0)

    @jv.compile
    def __call__(self, x: Any) -> Any:
        if self.w is None:
            w = jv.Variable(x * 3)
            self.parts = [jv.Variable(self.calls + 2.0), jv.Variable(jnp.ones(()))]
            self.w = w
        self.calls.assign_add(1.0)
        return self.w * x + self.parts[0] + self.parts[1]


def _first_call(**how: Any) -> int:
    layers: list[Lazy] = []

    def prepare() -> None:
        layers[:] = [Lazy()]

    def check() -> None:
        layer = layers[0]
        before = float(layer.calls)
        assert before in (0.0, 1.0)
        for n in (1, 2, 3):
            assert float(layer(1.0)) in (6.0, 7.0)  # if it was created when there had been a call
            assert float(layer.calls) == before + n
        assert float(layer(jnp.float32(2.0))) in (9.0, 10.0)

    return sweep(prepare, lambda: layers[0](1.0), check, **how)


def test_a_first_call_that_creates_variables_after_its_body():
    assert _first_call(count=15, after="CaptureFrame.create") >= 15


@pytest.mark.slow
def test_a_first_call_that_creates_variables_anywhere():
    assert _first_call(count=600) >= 600


def test_what_a_signal_handler_reads_while_jit_traces_a_first_call():
    def is_traced() -> bool:
        return CURRENT[0] is BUSY and context.current() is not context.EVAL

    places = places_of(lambda: make_pair()[2](1.0), is_traced)
    for place, times in places[:: len(places) // 20]:
        a, b, step = make_pair()
        read: list[Any] = []

        def handler(a: jv.Variable = a, read: list[Any] = read) -> None:
            read.append(a.value)

        visit(functools.partial(step, 1.0), place, times, handler)
        assert [x.tolist() for x in read] in ([[0.0] * 4], [[1.0] * 4], [])
        assert whole(a, b) == 1.0


# ---------------------------------------------------------------- what runs eagerly
def _assign() -> tuple[Callable[[], Any], list[jv.Variable]]:
    a = jv.Variable(jnp.zeros(2), name="a")
    return lambda: a.assign_add(jnp.ones(2)), [a]


def test_what_was_read_is_kept_by_an_assignment_and_a_step_after_it():
    a, _, step = make_pair()
    kept: list[jax.Array] = []

    def prepare() -> None:
        kept[:] = [a.value]

    def check() -> None:
        step(1.0)
        assert not kept[0].is_deleted()

    step(1.0)
    assert sweep(prepare, lambda: a.assign(jnp.ones(4)), check, count=1000, among="jaxvars") > 10


def _tape() -> tuple[Callable[[], Any], list[jv.Variable]]:
    a = jv.Variable(jnp.zeros(2), name="a")

    def act() -> None:
        with jv.GradientTape() as tape:
            y = (a * 1.0).sum()
        a.assign_add(tape.gradient(y, a))

    return act, [a]


def _optimizer() -> tuple[Callable[[], Any], list[jv.Variable]]:
    pair = [jv.Variable(jnp.zeros(2), name=name) for name in "ab"]
    optimizer = jv.optimizers.SGD(1.0)
    grads = [-jnp.ones(2), -jnp.ones(2)]
    return lambda: optimizer.apply_gradients(zip(grads, pair, strict=True)), pair


def _scaled_optimizer() -> tuple[Callable[[], Any], list[jv.Variable]]:
    a = jv.Variable(0.0, name="a")
    optimizer = jv.optimizers.LossScaleOptimizer(jv.optimizers.SGD(1.0), 1.0)
    grads = [(-jnp.ones(()), a)]
    return lambda: optimizer.apply_gradients(grads), [a, optimizer.step_counter]


def _metric() -> tuple[Callable[[], Any], list[jv.Variable]]:
    mean = jv.metrics.Mean()
    return lambda: mean.update_state(jnp.ones(())), list(mean.variables)


def _weighted_metric() -> tuple[Callable[[], Any], list[jv.Variable]]:
    mean, values = jv.metrics.Mean(), jnp.ones(2)  # no work of JAX's alone is interrupted
    return lambda: mean.update_state(values, [1.0, 1.0]), list(mean.variables)


def _jacobian() -> tuple[Callable[[], Any], list[jv.Variable]]:
    a = jv.Variable(jnp.zeros(2), name="a")

    def act() -> None:
        with jv.GradientTape() as tape:
            y = a * 1.0
        a.assign_add(tape.jacobian(y, a).sum(0))

    return act, [a]


def _generator() -> tuple[Callable[[], Any], list[jv.Variable]]:
    rng, total = jv.random.Generator(7), jv.Variable(0.0)
    return lambda: total.assign_add(rng.normal(()) * 0 + 1), [total]


def _loss() -> tuple[Callable[[], Any], list[jv.Variable]]:
    total, loss = jv.Variable(0.0), jv.losses.MeanSquaredError()
    return lambda: total.assign_add(loss([1.0, 1.0], [0.0, 2.0], [1.0, 1.0])), [total]


_EAGER = pytest.mark.parametrize(
    "program",
    [_assign, _tape, _jacobian, _optimizer, _scaled_optimizer, _metric, _weighted_metric,
     _generator, _loss],
)  # fmt: skip


def test_what_was_changed_for_a_while_is_as_before():
    a = jv.Variable(jnp.zeros(2), name="a")
    optimizer = jv.optimizers.SGD(1.0, use_ema=True, ema_momentum=0.5)
    for _ in range(2):
        optimizer.apply_gradients([(-jnp.ones(2), a)])

    def evaluate() -> None:
        with optimizer.averaged():
            a.numpy()

    def add() -> None:
        a.assign_add(jnp.ones(2))

    def check() -> None:
        assert whole(a) == 2.0
        assert whole(optimizer.get_slot(a, "average")) == 1.5

    verify = functools.partial(jv.debugging.verify, add, calls=1, gradients=False)
    profile = functools.partial(jv.profiler.profile, jv.compile(add), steps=1, warmup=1)
    assert sweep(check, evaluate, check, count=100, again=True, among="jaxvars/") > 50
    for action in (verify, profile):
        assert _last(action, 12, check, among="modules/state.py") == 12


def _last(action: Callable[[], Any], count: int, check: Callable[[], Any], *, among: str) -> int:
    """Interrupt an action at each of its last places in some files, and return how many."""
    places = [x for x in places_of(action) if among in x[0][0]][-count:]
    for place, times in places:
        interrupt(action, place, times, KeyboardInterrupt)
        check()
    return len(places)


@_EAGER
def test_what_runs_eagerly_is_all_or_nothing(program: Any):
    assert _eagerly(program, 30) >= 30


@pytest.mark.slow
@_EAGER
def test_what_runs_eagerly_is_all_or_nothing_anywhere(program: Any):
    assert _eagerly(program, 1000) >= 100


def _eagerly(program: Any, count: int) -> int:
    action, variables = program()
    action()
    action()
    before: list[float] = []

    def values() -> list[float]:
        return [float(np.ravel(v.numpy())[0]) for v in variables]

    def prepare() -> None:
        before[:] = values()

    def check() -> None:
        first, second = values(), (action(), values())[1]
        steps = [b - a for a, b in zip(first, second, strict=True)]
        done = [b - a for a, b in zip(before, first, strict=True)]
        assert done in (steps, [0.0] * len(steps))

    return sweep(prepare, action, check, count=count)


def _scattered(v: jv.Variable) -> None:
    v[0].assign_add(1.0)
    v[0].assign(2.0)


def _scored(v: jv.Variable) -> None:
    metric = jv.metrics.Precision()
    metric.update_state(v > 0, v > 0)
    metric.result()
    metric.reset_state()


def _looped(v: jv.Variable) -> None:
    jv.scan(lambda c, x: (c + x, c), 0.0, v)
    jv.while_loop(lambda n: n < 2, lambda n: n + 1, 0)


def _mapped(v: jv.Variable) -> None:
    jv.vectorized_map(lambda x: x * v[1], v)
    jv.map_fn(lambda x: x * v[1], v)


@pytest.mark.parametrize("act", [
    lambda v: jv.Variable(v, shape=(2, 2)), lambda v: v[0:1].value,
    _scattered, _scored, _looped, _mapped, lambda v: jv.recompute(lambda x: x * v)(2.0),
    lambda v: jv.custom_gradient(lambda x: (x * 2, lambda dy: dy))(v.value),
    lambda v: jv.stop_gradient(v), lambda _: jv.random.Generator(0),
    lambda _: jv.initializers.Identity()((2, 2)),
    lambda v: jv.optimizers.Adam().apply_gradients([(v.value, v)]),
])  # fmt: skip
def test_jax_works_on_after_an_interrupt_as_it_enters_or_leaves_a_trace(act: Any):
    v = jv.Variable([1.0, 2.0])
    action = functools.partial(act, v)
    action()
    places = [x for x in places_of(action) if x[0][2:] == ("line", "TracingContext.set_trace")]
    assert places
    for place, times in places[:40]:
        interrupt(action, place, times, KeyboardInterrupt)
        check_nothing_is_left()


# ---------------------------------------------------------------- checkpoints
FORMS = pytest.mark.parametrize("form", ["saved.npz", "saved"])


def _checkpointed() -> tuple[jv.checkpoint.Checkpoint, Callable[[float], None], Callable[[], Any]]:
    """Return a Checkpoint of variables and a tree, what gives them a value, and what returns it."""
    checkpoint = jv.checkpoint.Checkpoint(
        pair=[jv.Variable(jnp.zeros(3), name=name) for name in "ab"], tree={"x": jnp.zeros(2)}
    )

    def give(value: float) -> None:
        for v in checkpoint.pair:
            v.assign(jnp.full(3, value))
        checkpoint.tree = {"x": jnp.full(2, value)}

    def values() -> set[float]:
        found = [*checkpoint.pair, checkpoint.tree["x"]]
        return {x for one in found for x in np.asarray(one).tolist()}

    return checkpoint, give, values


def _restored(folder: Path, form: str, count: int) -> int:
    checkpoint, give, values = _checkpointed()
    give(1.0)
    path = checkpoint.write(folder / form)

    def check() -> None:
        assert values() in ({1.0}, {2.0})
        checkpoint.read(path).assert_consumed()
        assert values() == {1.0}

    return sweep(lambda: give(2.0), lambda: checkpoint.read(path), check, count=count)


def _saved(folder: Path, form: str, count: int) -> int:
    checkpoint, give, values = _checkpointed()
    other, _, others = _checkpointed()

    def prepare() -> None:
        give(1.0)
        checkpoint.write(folder / form)
        give(2.0)

    def check() -> None:
        assert values() == {2.0}
        other.read(folder / form).assert_consumed()
        assert others() in ({1.0}, {2.0})
        give(3.0)
        other.read(checkpoint.write(folder / form)).assert_consumed()
        assert others() == {3.0}
        for _ in range(50):  # threads of orbax may go on writing: a later save clears that
            if [path.name for path in folder.iterdir()] == [form]:
                return
            time.sleep(0.1)
            checkpoint.write(folder / form)
        raise AssertionError(sorted(folder.iterdir()))

    return sweep(prepare, lambda: checkpoint.write(folder / form), check, count=count)


@FORMS
@pytest.mark.parametrize("how", [_restored, _saved])
def test_a_checkpoint_is_whole(how: Any, form: str, tmp_path: Path):
    assert how(tmp_path, form, 10) >= 10


@pytest.mark.slow
@FORMS
@pytest.mark.parametrize("how", [_restored, _saved])
def test_a_checkpoint_is_whole_anywhere(how: Any, form: str, tmp_path: Path):
    assert how(tmp_path, form, 1000) >= 100
