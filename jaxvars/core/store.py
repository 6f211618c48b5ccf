"""Where the values of variables are, and who may touch them.

Values live in `STORE`, one dict from cell key to array, or, between two runs of a compiled
step, in that step's `Tray`. `HAND[0]` says which:

| `HAND[0]` | the values |
|---|---|
| None | are in `STORE` |
| a tray | are in that tray, for its keys, and in `STORE` for all others |
| `BUSY` | are in the hands of a step or a write: wait |

Rules this file keeps:
- `HAND[0]` is tested and set without a call in between, and a new value is put into its place
  without a call after the one that made it. CPython runs signal handlers and switches threads
  only at calls and backward jumps; so a change happens or does not, for Ctrl-C and for other
  threads. `compiler/fast_path.py` keeps the same rule;
- whoever takes `HAND` puts it back, whatever happens;
- a value that somebody was given, or gave, is marked in `SHARED`, and copied before it is
  donated. It is given only while the values are in `STORE`;
- no user code runs while `HAND` is `BUSY`, except a step's own callbacks;
- XLA runs a step after its call has returned, and may fail then. So a value that a step left
  behind is handed out when that step is known to have succeeded, and not before: see `prove`.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeAlias, TypeVar, final

import jax
import numpy as np

from jaxvars.errors import (
    ExecutionError,
    ForeignTransformError,
    JaxvarsError,
    UninitializedError,
    user_line,
)
from jaxvars.tracing import context
from jaxvars.tracing.fork import FORKED, refuse_if_forked

Value: TypeAlias = Any  # a jax.Array, or a NumPy array of strings
T = TypeVar("T")

STORE: dict[int, Value] = {}
"""The values, by cell key."""

SHARED: set[int] = set()
"""Keys whose value somebody may hold: it must be copied before it is donated."""

CALLBACKS: list[None] = []
"""Not empty while a step runs that calls back into Python: it donates nothing."""

SEEKERS: list[Seeker] = []
"""Who waits for new variables, to give them other values.

A variable is known by its path once it is in an object. So they do not look when it is created,
but before its value is used.
"""

NEWS: dict[int, int] = {}
"""The keys of cells created while somebody waits, until they are found in an object, with how
often they are still looked for: one that is used again and again outside is nobody's."""

UNPROVEN: dict[tuple[int, ...], Step] = {}
"""Steps whose values are in `STORE` and may still fail to be computed, by their cells' keys."""

LOST: dict[int, tuple[Value, str]] = {}
"""Arrays that were deleted because a step failed, by cell key, and what to say of them."""

_LOOKS = 16

HOT_PATH_FILE = "<a compiled step of jaxvars>"
"""The file name of code that takes `HAND` for itself."""

_KEYS = itertools.count(1)
_STATUS = re.compile(
    "[A-Z_]+: "
)  # how messages of XLA begin; jit's fast path makes it a ValueError
_waiting = threading.RLock()
_BOX = {0: object()}
_ALONE = sys.getrefcount(_BOX[0])  # what an object counts that one dict holds and nobody else


@final
class Cell:
    """A name for one value: what frames and states know of a variable.

    Attributes:
        key: a number that is never used again.
        aval: shape and dtype, for life.
        home: the sharding that it was placed with, or None.
        name: what people call it.
        owner: a weak reference to the Variable whose cell this is.
        deliver: for a cell that is a signal and no memory: takes what is written outside of
            a program. Else None.
    """

    __slots__ = ("__weakref__", "aval", "deliver", "home", "key", "name", "owner")

    def __init__(
        self,
        owner: object,
        aval: Any,
        name: str,
        home: Any,
        deliver: Callable[[Any], None] | None = None,
    ) -> None:
        self.key = next(_KEYS)
        self.aval = aval
        self.home = home
        self.name = name
        self.owner = weakref.ref(owner)
        self.deliver = deliver

    def __del__(
        self,
        pop: Callable[..., Any] = STORE.pop,  # bound here: globals are gone at interpreter exit
        discard: Callable[..., Any] = SHARED.discard,
        forget: Callable[..., Any] = NEWS.pop,
        find: Callable[..., Any] = LOST.pop,
    ) -> None:
        # A step in flight and a tray hold their cells, so this comes after them.
        key = getattr(self, "key", None)  # None if Ctrl-C came before there was one
        pop(key, None)
        discard(key)
        forget(key, None)
        find(key, None)


@final
class Tray:
    """The values of some cells on their way from one run of a step to the next.

    Attributes:
        name: of the step.
        before: the values before its last run, if these were not donated.
    """

    __slots__ = ("before", "cells", "held", "keys", "name", "refs", "values")

    def __init__(self, cells: Sequence[Cell], name: str) -> None:
        self.cells = tuple(cells)
        self.keys = tuple(cell.key for cell in cells)
        self.held = frozenset(self.keys)
        self.refs = tuple(map(weakref.ref, cells))
        self.name = name
        self.before: Sequence[Value] = ()
        self.values: Sequence[Value] = ()


@final
class Step(NamedTuple):
    """What is kept of a tray until its values are known to have been computed."""

    name: str
    held: frozenset[int]  # keys
    refs: Sequence[weakref.ref[Cell]]  # so that nothing lives on
    before: Sequence[Value]
    sample: weakref.ref[Value] | None  # one of the values, that is computed if all are


BUSY = Tray((), "")
HAND: list[Tray | None] = [None]


def exclusively(action: Callable[[], T]) -> T:
    """Run `action` with all values in `STORE`, while nobody else can touch them.

    The action may leave a tray in `HAND`.

    Raises:
        ForeignTransformError: where waiting would never end.
    """
    _refuse_to_wait()  # before the lock, which the step has that called back from a thread of XLA's
    with context.restoring(), _waiting:
        while HAND[0] is BUSY:
            _refuse_to_wait()
            time.sleep(1e-5)
        held = HAND[0]
        HAND[0] = BUSY
        try:
            return _in_flight(action, held)
        finally:
            if HAND[0] is BUSY:
                HAND[0] = held if held is not None and held.values else None


def alone() -> AbstractContextManager[object]:
    """Return a context in which no other thread changes a variable once one has been read.

    Nothing in it may wait for another thread. In a callback or signal handler of a step it is none.
    """
    return contextlib.nullcontext() if is_interrupting() else _waiting


def _in_flight(action: Callable[[], T], held: Tray | None) -> T:
    # A frame of its own, by which `_flight_above` knows that it is below, and where values are.
    if held is not None:
        STORE.update(zip(held.keys, held.values, strict=True))
        doubt(held)
        held.values = held.before = ()
    return action()


# ---------------------------------------------------------------- steps that fail
def doubt(tray: Tray) -> None:
    """Take note that the values of a tray, now in `STORE`, may fail to be computed."""
    value = _one_of(tray.values)
    sample = None if value is None else weakref.ref(value)
    UNPROVEN[tray.keys] = Step(tray.name, tray.held, tray.refs, tray.before, sample)


def prove(keys: Iterable[int] | None = (), error: BaseException | None = None) -> None:
    """Raise ExecutionError if a step that has run has failed; to be called by `exclusively`.

    Args:
        keys: of the cells whose steps to wait for; None for all.
        error: what a step has just raised: what was donated to it is lost.
    """
    for own, step in tuple(UNPROVEN.items()):
        values = [STORE[key] for key in own if key in STORE]
        value = _one_of(values)
        is_gone = value is None or value.is_deleted()
        concerned = keys is None or not step.held.isdisjoint(keys)
        may_wait = concerned or (not keys and step.before)
        if not (may_wait or (not keys and (is_gone or _is_ready(value)))):
            continue
        problem = error if is_gone else _failure_of(step, value, values)
        names = [] if problem is None else _take_back(step, problem)
        UNPROVEN.pop(own, None)
        if problem is not None and (names or step.before):
            raise _failed(step.name, problem, names) from problem


def fail(name: str, error: BaseException) -> None:
    """Raise ExecutionError if an error came from XLA when it ran a function; return if not.

    Args:
        name: of the function.
        error: what it raised.
    """
    from_xla = isinstance(error, jax.errors.JaxRuntimeError) or _STATUS.match(str(error))
    if not from_xla or isinstance(error, JaxvarsError) or is_interrupting():
        return
    exclusively(lambda: prove(None, error))
    if "RESOURCE_EXHAUSTED" in str(error):
        raise _failed(name, error, []) from error


def _is_ready(value: Value) -> bool:
    """Return whether the program that computes a value has run; random keys cannot say so."""
    return getattr(value, "is_ready", lambda: True)()


def failure_of(value: Value) -> Exception | None:
    """Wait until a value is computed; return the error if it could not be."""
    try:
        value.block_until_ready()
    except Exception as error:  # noqa: BLE001 - XLA has several kinds
        return error
    return None


def _failure_of(step: Step, value: Value, values: Sequence[Value]) -> Exception | None:
    """Return why a step failed, by one of the values; by all if that was assigned since."""
    judged = [value] if step.sample is not None and step.sample() is value else values
    return next(filter(None, [failure_of(x) for x in judged if not x.is_deleted()]), None)


def _one_of(values: Sequence[Value]) -> Value:
    """Return one of the values that a step has computed, all of which it computes or none."""
    for value in values:  # a generator that is interrupted as it is closed hides the interrupt
        if hasattr(value, "is_ready"):
            return value
    return values[0] if values else None


def has_failed(tray: Tray, *, wait: bool) -> bool:
    """Return whether the last run of the step whose values are in a tray may have failed."""
    value = _one_of(tray.values)
    try:
        return value is not None and (wait or _is_ready(value)) and failure_of(value) is not None
    except RuntimeError:  # pragma: no cover - another thread has donated it meanwhile
        return True


def _take_back(step: Step, problem: BaseException) -> list[str]:
    """Give cells the values before a failed step; return the names of those that have none."""
    lost: list[Cell] = []
    for i, ref in enumerate(step.refs):
        cell = ref()
        value = None if cell is None else STORE.get(cell.key)
        if cell is None or value is None:
            continue
        if not value.is_deleted() and failure_of(value) is None:
            continue
        old = step.before[i] if step.before else None
        if old is None:
            lost.append(cell)
        else:
            SHARED.add(cell.key)
            STORE[cell.key] = old
    names = [cell.name for cell in lost]
    for cell in lost:
        LOST[cell.key] = (STORE[cell.key], str(_failed(step.name, problem, names)))
        STORE[cell.key].delete()  # so that no program runs with it
    return names


def _failed(name: str, problem: BaseException, lost: Sequence[str]) -> ExecutionError:
    why = str(problem).replace("INTERNAL: ", "").replace("Error dispatching computation: ", "")
    if not lost:
        return ExecutionError(f"{name} failed when it ran: {why} No variable was changed by it.")
    return ExecutionError(
        f"{name} failed when it ran: {why} It had been given the memory of its variables, so these "
        f"have no value any more: {', '.join(map(repr, lost))}. Assign them, or restore a "
        "checkpoint. With jv.compile(donate=False) they keep their values in such a case."
    )


def _refuse_to_wait() -> None:
    """Raise ForeignTransformError if a step is in flight that waits for this very code."""
    if is_interrupting():
        raise ForeignTransformError(
            f"A variable is written, or a compiled function called, at {user_line()} by a callback "
            "or signal handler while a compiled step is running; the step's own results would race "
            "with it. Return the value from the step and assign it afterwards."
        )


class Seeker(ABC):
    """Who waits for new variables."""

    @abstractmethod
    def seek(self) -> set[int]:
        """Give new variables their values; return the keys of all cells that can be found."""


def announce(cell: Cell) -> None:
    """Say that a cell is new, if somebody waits."""
    if SEEKERS:
        NEWS[cell.key] = _LOOKS


def seek(cells: Iterable[Cell]) -> None:
    """Let whoever waits for new variables look for them, if some of these are new.

    Not to be called while `HAND` is `BUSY` for this thread: they write.
    """
    wanted = [cell.key for cell in cells if cell.key in NEWS]
    if not wanted or is_interrupting():
        return
    for seeker in tuple(SEEKERS):
        for key in seeker.seek():
            NEWS.pop(key, None)
    for key in wanted:
        if (left := NEWS.pop(key, 0) - 1) > 0:
            NEWS[key] = left


# ---------------------------------------------------------------- forked processes
def be_forked() -> None:
    """Have a process that was just forked keep the values, and refuse to compute.

    Values that were in the hands of another thread are not there.
    """
    global _waiting
    if not any(isinstance(value, jax.Array) for value in STORE.values()):
        return  # JAX may start here
    held = HAND[0]
    if held is not None and held.values:
        STORE.update(zip(held.keys, held.values, strict=True))
    HAND[0] = None
    _waiting = threading.RLock()  # another thread may have had it
    FORKED.append(None)


def inherited(cell: Cell) -> Value:
    """Return a value that was there when this process was forked."""
    value = stored(cell)
    if value.__class__ is not np.ndarray and not _is_ready(value):
        refuse_if_forked(f"Variable {cell.name!r}, which was still being computed, is read")
    return value


def settle() -> None:
    """Put the values back into `STORE`, unless they are in use; never wait."""
    if HAND[0] is None or HAND[0] is BUSY or not _waiting.acquire(blocking=False):
        return
    try:
        if HAND[0] is not BUSY:  # pragma: no branch - another thread has taken it meanwhile
            exclusively(lambda: None)
    finally:
        _waiting.release()


def take(cell: Cell) -> Value:
    """Return the value of a cell, to be kept by whoever asked.

    It is safe from donation if, after it was read, the values are in `STORE`, its mark in
    `SHARED` still stands and it is still the one stored: a step that starts later copies it.

    Raises:
        UninitializedError: when the cell has no value.
    """
    key = cell.key
    while True:
        SHARED.add(key)
        if HAND[0] is not None or (UNPROVEN and _is_unproven(key)):
            flight = _flight_above() if HAND[0] is BUSY else None
            if flight is not None:  # in a signal handler or callback of a step
                return _copied(_in_hand(flight, cell), cell)
            exclusively(lambda: prove((key,)))
            continue
        try:
            value = stored(cell)
        except JaxvarsError:
            exclusively(lambda: stored(cell))  # raises, unless another thread's step had it
            continue  # pragma: no cover - which is tested where coverage is not on
        is_safe = HAND[0] is None and key in SHARED and STORE.get(key) is value
        if is_safe:  # pragma: no branch - another thread has written it meanwhile
            return value


def take_all(cells: Collection[Cell]) -> list[Value]:
    """Return the values of several cells at one moment, to be kept by whoever asked.

    Raises:
        UninitializedError: when a cell has no value.
        ForeignTransformError: as `exclusively`.
    """
    if NEWS:
        seek(cells)

    def taken() -> list[Value]:
        prove([cell.key for cell in cells])
        SHARED.update([cell.key for cell in cells])
        return list(map(stored, cells))

    return exclusively(taken)


def _is_unproven(key: int) -> bool:
    return bool([None for step in tuple(UNPROVEN.values()) if key in step.held])


def is_interrupting() -> bool:
    """Tell whether this code interrupted a step or a write, or was called back by it."""
    return HAND[0] is BUSY and _flight_above() is not None


def is_held_elsewhere(cell: Cell) -> bool:
    """Tell whether somebody besides `STORE` holds the cell's array."""
    return cell.key in STORE and sys.getrefcount(STORE[cell.key]) > _ALONE


def stored(cell: Cell) -> Value:
    """Return the value of a cell from `STORE`; raise UninitializedError if it has none."""
    try:
        value = STORE[cell.key]
        if value.__class__ is not np.ndarray and value.is_deleted():
            raise _deleted(cell)
        return value
    except KeyError:
        SHARED.discard(cell.key)
        raise UninitializedError(
            f"Variable {cell.name!r} has no value: the call that created it failed before its "
            "initial value was computed, or jv.abstract made it. Create it again, outside the "
            "function, or assign a value."
        ) from None


def _deleted(cell: Cell) -> JaxvarsError:
    lost = LOST.get(cell.key)
    if lost is not None and lost[0] is STORE.get(cell.key):
        return ExecutionError(lost[1])
    return UninitializedError(
        f"Variable {cell.name!r} is used at {user_line()} and has no value any more: the array "
        "that it holds was read, as with v.value, and then donated to a jitted function "
        "(donate_argnums) or deleted. Assign a new value. An array that is read is the variable's "
        "own, so donate a copy:\n"
        "    step(jnp.copy(v.value))    # not: step(v.value), nor step(v)\n"
        "or use @jv.compile, which donates the memory of the variables that it assigns."
    )


def _in_hand(flight: Tray, cell: Cell) -> Value:
    if cell.key in flight.keys and flight.values:
        return flight.values[flight.keys.index(cell.key)]
    return STORE[cell.key] if cell.key in STORE else stored(cell)


def _copied(value: Value, cell: Cell) -> Value:
    if getattr(value, "is_deleted", bool)():  # Python 3.11 collects garbage inside of XLA's call
        raise ForeignTransformError(
            f"Variable {cell.name!r} is read at {user_line()} by a finalizer, while a compiled "
            "step runs that has been given its memory: the old value is gone, and the new one is "
            "not there yet. Read it before, and keep what the finalizer needs."
        )
    try:
        with context.at(context.EVAL):  # whatever JAX was at when the signal came
            return context.fresh(value)
    except RecursionError:  # pragma: no cover - a signal came while JAX compiled this very copy
        return jax.device_put(np.array(value), value.sharding)


def _flight_above() -> Tray | None:
    """Return the tray of the step that this code interrupted or was called back by, if any.

    That is in a callback, a signal handler or a finalizer: waiting would never end. The tray
    is empty if the values are in `STORE`.
    """
    frame = sys._getframe(1)
    while (frame := frame.f_back) is not None:
        if frame.f_code is _in_flight.__code__:
            return frame.f_locals["held"] or BUSY
        in_hot_path = frame.f_code.co_filename == HOT_PATH_FILE
        if in_hot_path and frame.f_locals.get("old") is not None:
            return frame.f_globals["tray"] or BUSY
    alien = type(threading.current_thread()).__name__ == "_DummyThread"  # not Python's: XLA's
    return BUSY if CALLBACKS and alien else None
