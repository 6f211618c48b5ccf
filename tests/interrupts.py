"""Exceptions at each place where CPython lets a signal in, one place after the other.

A place is the start of a Python function or the return of a C function, in jaxvars, in Keras's
scopes or in JAX, and each line of JAX; none where Ctrl-C is deferred.
"""

from __future__ import annotations

import gc
import itertools
import signal
import sys
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import jax.numpy as jnp

import jaxvars as jv
from jaxvars.core.cells import BUSY, CALLBACKS, CURRENT
from jaxvars.core.frame import FAST_PATH_BLOCKERS
from jaxvars.core.frames import LOCAL
from jaxvars.tracing import context
from jaxvars.tracing.signals import DEFERRING

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)

Place: TypeAlias = tuple[str, int, str, str]

ERRORS = (KeyboardInterrupt, TimeoutError)
ENDS = ("TapeBase.__exit__", "_Recording.__exit__")  # begun with, nothing would run of them
BREAKS = (  # an interrupt here, which JAX 0.10 catches, breaks the function for good
    "_weakref_lru_cache.<locals>.<lambda>", "_get_layouts_from_executable",
)  # fmt: skip
INSTEAD = (  # what JAX raises where it swallows an interrupt
    "safe_zip()",
    "local variable 'r2'",  # where tree_map compares trees
    "'int' object has no attribute",  # where it calls hasattr
    "Cache keys should be comparable",  # where a cache compares keys; JAX 0.12 quotes it
)
OURS = (str(Path(jv.__file__).parent), "a compiled step", "keras/src/backend/common/")


def place_of(frame: Any, event: str, arg: Any) -> Place | None:
    code = frame.f_code
    is_jax = "jax/_src" in code.co_filename
    ours = code.co_filename.startswith(OURS[:1]) or any(x in code.co_filename for x in OURS[1:])
    events = ("call", "c_return", "line")[: 2 + is_jax]
    if DEFERRING or code.co_qualname in BREAKS or (code.co_qualname in ENDS and event == "call"):
        return None
    if (is_jax or ours) and event in events:
        return code.co_filename, frame.f_lineno, event, getattr(arg, "__name__", code.co_qualname)
    return None


def places_of(
    action: Callable[[], Any], where: Callable[[], bool] = lambda: True
) -> list[tuple[Place, int]]:
    """Return the places that an action comes to, in order, and how often it had been there.

    Args:
        action: is run.
        where: says, at a place, whether it is wanted.
    """
    found: list[tuple[Place, int]] = []
    count: Counter[Place] = Counter()

    def note(*event: Any) -> None:
        if (place := place_of(*event)) is not None and not is_finalizing(event[0]):
            if where():
                found.append((place, count[place]))
            count[place] += 1

    with seen_by(note):
        action()
    return found


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


def visit(action: Callable[[], Any], place: Place, times: int, handler: Callable[[], Any]) -> None:
    """Run an action, and a handler when that comes to a place and has been there some times."""
    left = [times]

    def see(*event: Any) -> None:
        if left[0] >= 0 and place_of(*event) == place and not is_finalizing(event[0]):
            left[0] -= 1
            if left[0] < 0:
                handler()

    with seen_by(see):
        action()


def interrupt(
    action: Callable[[], Any], place: Place, times: int, error: type[BaseException]
) -> None:
    """Run an action that is interrupted at a place, when it has been there some times."""
    raised: list[BaseException] = []
    causes: list[Any] = []

    def fail() -> None:
        raised.append(error("interrupted"))
        raise raised[0]

    try:
        visit(action, place, times, fail)
    except BaseException as cause:  # noqa: BLE001 - whatever JAX makes of it
        causes.append(cause)
    while causes and causes[-1] is not None:  # JAX may fail in turn as it handles an exception
        causes.append(causes[-1].__context__)
    if causes:
        assert raised
        known = any(isinstance(cause, error) for cause in causes)
        assert known or any(x in str(causes[0]) for x in INSTEAD), causes


def is_finalizing(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_name in ("gone", "__del__"):
            return True
        frame = frame.f_back
    return False


def sweep(
    prepare: Callable[[], Any],
    action: Callable[[], Any],
    check: Callable[[], Any],
    *,
    count: int,
    after: str | None = None,
    again: bool = False,
    among: str = "",
) -> int:
    """Interrupt an action at each place in turn, and return how many there were.

    Args:
        prepare: makes things as they were before the action.
        action: is interrupted.
        check: what holds afterwards.
        count: how many places to choose, evenly.
        after: the function with whose first line to begin.
        again: whether to interrupt it each time that it comes to a place.
        among: what the names of the files have in them.
    """
    prepare()
    places = [x for x in places_of(action) if among in x[0][0] and (again or not x[1])]
    first = [place[3] for place, _ in places].index(after) if after else 0
    places = places[first :: max(1, (len(places) - first) // count)]
    for (place, times), error in zip(places, itertools.cycle(ERRORS), strict=False):
        prepare()
        interrupt(action, place, times, error)
        try:
            check_nothing_is_left()
            check()
        except BaseException as failure:
            failure.add_note(f"{error.__name__} at {place}, after {times} times")
            raise
    return len(places)


def check_nothing_is_left() -> None:
    """Check that nothing blocks the fast path: no frame, no detour, no trace of JAX's."""
    assert LOCAL.frame is LOCAL.eager
    assert not LOCAL.frame.observers
    assert CURRENT[0] is not BUSY
    assert not CALLBACKS
    if FAST_PATH_BLOCKERS:  # until it is gone: a cycle of an exception's may hold it
        gc.collect()
    assert not FAST_PATH_BLOCKERS
    assert context.place(None) is context.EVAL


# ---------------------------------------------------------------- what is interrupted
def make_pair() -> tuple[jv.Variable, jv.Variable, jv.Function]:
    """Return two variables and a compiled step that adds to both alike."""
    a, b = jv.Variable(jnp.zeros(4), name="a"), jv.Variable(jnp.zeros(4), name="b")

    @jv.compile
    def step(x: Any) -> Any:
        a.assign_add(x * jnp.ones(4))
        b.assign_add(x * jnp.ones(4))
        return a + b

    return a, b, step


def whole(*variables: jv.Variable) -> float:
    """Check that the variables agree, and return what they hold."""
    values = {x for v in variables for x in v.numpy().tolist()}
    assert len(values) == 1, values
    return values.pop()
