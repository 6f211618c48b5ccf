"""Exceptions at each place where CPython lets a signal in, one place after the other.

A place is the start of a Python function or the return of a C function, in jaxvars or in JAX, and
each line of JAX, the first time that an action comes there. What holds after each exception:
- the action happened or did not, for all variables; it can be repeated;
- nothing is left that blocks the fast path: no frame, no detour, no trace of JAX's. Not so where
  Python begins with a tape's `__exit__`: nothing of it would run, and the tape stay open.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxvars as jv
from jaxvars import _entry, _trace
from jaxvars._frames import DETOUR, LOCAL
from jaxvars._store import BUSY, HAND

Place: TypeAlias = tuple[str, int, str, str]

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"  # Python swallows what a finalizer raises
)

ERRORS = (KeyboardInterrupt, TimeoutError)


# ---------------------------------------------------------------- the instrument
def place_of(frame: Any, event: str, arg: Any) -> Place | None:
    code = frame.f_code
    is_jax = "jax/_src" in code.co_filename
    ours = "jaxvars/_" in code.co_filename or "a compiled step" in code.co_filename
    events = ("call", "c_return", "line")[: 2 + is_jax]
    if code is jv.GradientTape.__exit__.__code__ and event == "call":
        return None
    if (is_jax or ours) and event in events:
        return code.co_filename, frame.f_lineno, event, getattr(arg, "__name__", code.co_qualname)
    return None


def places_of(action: Callable[[], Any]) -> list[Place]:
    """Return the places that an action comes to, in order."""
    found: dict[Place, None] = {}

    def note(*event: Any) -> None:
        if (place := place_of(*event)) is not None:
            found.setdefault(place)

    with seen_by(note):
        action()
    return list(found)


@contextmanager
def seen_by(see: Callable[..., None]) -> Generator[None]:
    """Have every event in this thread seen; finalizers, which run where they please, wait."""

    def trace(frame: Any, event: str, arg: Any) -> Any:
        see(frame, event, arg)
        return trace if "jax/_src" in frame.f_code.co_filename else None

    before = sys.gettrace()  # what measures coverage
    gc.disable()
    sys.settrace(trace)
    sys.setprofile(lambda frame, event, arg: event == "c_return" and see(frame, event, arg))
    try:
        yield
    finally:
        sys.setprofile(None)
        sys.settrace(before)
        gc.enable()


def interrupt(action: Callable[[], Any], place: Place, error: type[BaseException]) -> None:
    """Run an action that is interrupted when it comes to a place, if it does."""
    fired: list[None] = []

    def see(*event: Any) -> None:
        if not fired and place_of(*event) == place and not is_finalizing(event[0]):
            fired.append(None)
            raise error("interrupted")

    causes: list[Any] = []
    try:
        with seen_by(see):
            action()
    except BaseException as raised:  # noqa: BLE001 - whatever JAX makes of it
        causes.append(raised)
    while causes and causes[-1] is not None:  # JAX may fail in turn as it handles an exception
        causes.append(causes[-1].__context__)
    if causes:
        assert fired
        known = any(isinstance(cause, error) for cause in causes)
        assert known or "should be comparable" in str(causes[0])  # where JAX runs by itself


def is_finalizing(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_name in ("gone", "__del__"):
            return True
        frame = frame.f_back
    return False


def sweep(
    prepare: Callable[[], Any],
    action: Callable[[], Any],
    check: Callable[[], None],
    *,
    count: int,
    after: str | None = None,
) -> int:
    """Interrupt an action at each place in turn, and return how many there were.

    Args:
        prepare: makes things as they were before the action.
        action: is interrupted.
        check: what holds afterwards.
        count: how many places to choose, evenly.
        after: the function with whose first line to begin.
    """
    prepare()
    places = places_of(action)
    first = [place[3] for place in places].index(after) if after else 0
    places = places[first :: max(1, (len(places) - first) // count)]
    for place, error in zip(places, itertools.cycle(ERRORS), strict=False):
        prepare()
        interrupt(action, place, error)
        try:
            assert LOCAL.frame is LOCAL.eager
            assert HAND[0] is not BUSY
            if DETOUR:  # until it is gone: a cycle of an exception's may hold it
                gc.collect()
            assert not DETOUR
            assert _trace.current() is _trace.EVAL
            check()
        except BaseException as failure:
            failure.add_note(f"{error.__name__} at {place}")
            raise
    return len(places)


@contextmanager
def slow_paths(monkeypatch: pytest.MonkeyPatch) -> Generator[list[None]]:
    """Count how often jit leaves its fast path."""
    counted: list[None] = []
    whole = _entry._Program.__hash__

    def count(program: Any) -> int:
        counted.append(None)
        return whole(program)

    with monkeypatch.context() as patch:
        patch.setattr(_entry._Program, "__hash__", count)
        yield counted


# ---------------------------------------------------------------- warm steps off jit's fast path
def _cleared(step: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    return jax.clear_caches, lambda: step(1.0)


def _new_setting(step: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    def action() -> None:
        with jax.default_matmul_precision("highest"):
            step(1.0)

    return lambda: None, action


def _new_kind(step: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    x = jax.device_put(jnp.float32(1.0), jax.devices()[0])
    return lambda: None, lambda: step(x)


def _warm_step(off: Any, monkeypatch: pytest.MonkeyPatch, **how: Any) -> int:
    a, b = jv.Variable(jnp.zeros(4), name="a"), jv.Variable(jnp.zeros(4), name="b")

    @jv.compile
    def step(x: Any) -> Any:
        a.assign_add(x * jnp.ones(4))
        b.assign_add(x * jnp.ones(4))
        return a + b

    leave, action = off(step)
    before = [0.0]

    def prepare() -> None:
        for entry in step._entries.values():
            entry._jitted.clear_cache()
        step(1.0)
        step(1.0)
        leave()
        before[0] = float(a.numpy()[0])

    def check() -> None:
        done = {*a.numpy().tolist(), *b.numpy().tolist()}
        assert done in ({before[0]}, {before[0] + 1})
        for _ in range(3):
            action()
        with slow_paths(monkeypatch) as counted:
            action()
        assert not counted
        assert {*a.numpy().tolist(), *b.numpy().tolist()} == {done.pop() + 4}

    return sweep(prepare, action, check, **how)


_OFF = pytest.mark.parametrize("off", [_cleared, _new_setting, _new_kind])


@_OFF
def test_a_warm_step_between_execution_and_return(off: Any, monkeypatch: pytest.MonkeyPatch):
    assert _warm_step(off, monkeypatch, count=12, after="ExecuteReplicated.__call__") >= 12


@pytest.mark.slow
@_OFF
def test_a_warm_step_anywhere(off: Any, monkeypatch: pytest.MonkeyPatch):
    assert _warm_step(off, monkeypatch, count=400) >= 400


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


# ---------------------------------------------------------------- what runs eagerly
def _assign() -> tuple[Callable[[], Any], list[jv.Variable]]:
    a = jv.Variable(jnp.zeros(2), name="a")
    return lambda: a.assign_add(jnp.ones(2)), [a]


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


def _metric() -> tuple[Callable[[], Any], list[jv.Variable]]:
    mean = jv.metrics.Mean()
    return lambda: mean.update_state(jnp.ones(())), list(mean.variables)


@pytest.mark.parametrize("program", [_assign, _tape, _optimizer, _metric])
def test_what_runs_eagerly_is_all_or_nothing(program: Any):
    assert _eagerly(program, 30) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("program", [_assign, _tape, _optimizer, _metric])
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
