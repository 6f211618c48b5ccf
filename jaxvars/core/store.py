"""Where the values of variables are, and what may touch them.

Values are in `STORE`, one dict from cell key to array, or, between two runs of a compiled
step, in that step's `WriteBack`. `CURRENT[0]` says which:

| `CURRENT[0]` | the values |
|---|---|
| None | are in `STORE` |
| a write-back | are in that write-back, for its keys, and in `STORE` for all others |
| `BUSY` | are in use by a step or a write: wait |

Who moves it:

| from | to | who |
|---|---|---|
| None | `BUSY` | `exclusively`; the fast path of a program that only reads |
| a write-back | `BUSY` | its fast path; `replace` of what it has; `exclusively`, which empties it |
| `BUSY` | a write-back | its step, with the new values, or the old ones if it has failed |
| `BUSY` | what it was | `replace`, and `exclusively` where the write-back has values still |
| `BUSY` | None | `exclusively`, when values are in `STORE`; a program that only reads |

What the table cannot say: code that comes in between, in a callback, a signal handler or a
finalizer, finds `BUSY` and would wait for itself. It is known by the frames below it
(`_enclosing_step`): that of `_run_exclusive`, and that of a fast path, whose code is generated; its
names `old` and `write_back` are read there. Such code takes the value in flight.

Rules this file keeps:
- `CURRENT[0]` is tested and set without a call in between, and a new value is put into its place
  without a call after the one that made it. CPython runs signal handlers and switches threads
  only at calls and backward jumps; so a change happens or does not, for Ctrl-C and for other
  threads. `compiler/fast_path.py` keeps the same rule;
- code that takes `CURRENT` puts it back, whatever happens;
- a value that a caller got, or that a program returned to more than the variable, is marked in
  `SHARED`, and copied before it is donated; one that a caller assigns is copied at once. It is
  returned only while it is in `STORE`. What is used at once is not marked, and taken from where it
  is (`look`); a value that nothing else holds is put where the old one is (`replace`): neither
  empties a write-back;
- no user code runs while `CURRENT` is `BUSY`, except a step's own callbacks;
- XLA runs a step after its call has returned, and may fail then. So a value that a step left
  behind is returned when that step is known to have succeeded, and not before: see `prove`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from typing import TypeVar

import jax
import numpy as np

from jaxvars.core.cells import (
    BUSY,
    CALLBACKS,
    CURRENT,
    HOT_PATH_FILE,
    SHARED,
    STORE,
    TRANSACTIONS,
    UNPROVEN,
    XLA_STATUS,
    Cell,
    WriteBack,
)
from jaxvars.core.failures import (
    doubt,
    execution_error,
    failure_of,
    is_ready,
    one_of,
    prove,
    said_of_loss,
)
from jaxvars.core.frame import to_sharding
from jaxvars.errors import (
    ExecutionError,
    ForeignTransformError,
    JaxvarsError,
    UninitializedError,
    called,
    user_line,
)
from jaxvars.tracebacks import package_of
from jaxvars.tracing import context
from jaxvars.tracing.guards import GUARDS, TAKE, ask
from jaxvars.typing import Array

T = TypeVar("T")

_waiting = threading.RLock()
_BOX = {0: object()}
_ALONE = sys.getrefcount(_BOX[0])  # what an object counts that one dict alone holds


def exclusively(action: Callable[[], T], keys: Collection[int] | None = None) -> T:
    """Run `action` with values in `STORE`, while no other thread can touch them.

    The action may leave a write-back in `CURRENT`.

    Args:
        action: what to run.
        keys: of the cells that it uses; all when None.

    Raises:
        ForeignTransformError: where waiting would never end.
    """
    refuse_to_wait()  # before the lock, which the step has that called back from a thread of XLA's
    with context.restoring(), _waiting:
        while CURRENT[0] is BUSY:
            refuse_to_wait()
            time.sleep(1e-5)
        held = CURRENT[0]
        CURRENT[0] = BUSY
        try:
            return _run_exclusive(action, held, keys)
        finally:
            if CURRENT[0] is BUSY:
                CURRENT[0] = held if held is not None and held.values else None


def replace(
    keys: Collection[int], change: Callable[[Sequence[Array]], Mapping[int, Array] | None]
) -> bool:
    """Replace values in the write-back that has them, if one does; return whether that was done.

    Args:
        keys: of the cells.
        change: takes their values; returns the new ones, which nothing else holds, by key, or None:
            to be done in another way. Runs while no other thread can touch them.
    """
    held = CURRENT[0]
    if held is None or not held.values or not held.held >= set(keys):
        return False

    def put() -> bool:
        new = change([held.values[held.index[key]] for key in keys])
        if new is not None:
            held.replace(new)
        return new is not None

    with context.restoring(), _waiting:
        if CURRENT[0] is not held:  # pragma: no cover - another thread has taken it meanwhile
            return False
        CURRENT[0] = BUSY
        try:
            return _run_exclusive(put, held, ())
        finally:
            CURRENT[0] = held


def exchange(cell: Cell, change: Callable[[Array], Array]) -> bool:
    """Replace a value by what `change` makes of it, if it is in `STORE`; return whether it was.

    Not of a step that may have failed.
    """
    if CURRENT[0] is not None or UNPROVEN or TRANSACTIONS:
        return False

    def put() -> bool:
        if UNPROVEN:  # pragma: no cover - another thread's step meanwhile
            return False
        STORE[cell.key] = to_sharding(cell, change(stored(cell)))  # may be the same: stays SHARED
        return True

    return exclusively(put, (cell.key,))


def commit(new: Mapping[int, Array], kept: Set[int]) -> None:
    """Make these the values, by key, all or none; those of `kept` may be referenced elsewhere."""

    def put() -> None:  # in this order: Ctrl-C may come between
        SHARED.update(kept)
        STORE.update(new)
        SHARED.difference_update(new.keys() - kept)

    if kept or not replace(new.keys(), lambda _: new):
        exclusively(put, new)


def alone() -> AbstractContextManager[object]:
    """Return a context in which no other thread changes a variable once one has been read.

    Nothing in it may wait for another thread. In a callback or signal handler of a step it is none.
    """
    return contextlib.nullcontext() if is_interrupting() else _waiting


def _run_exclusive(
    action: Callable[[], T], held: WriteBack | None, keys: Collection[int] | None
) -> T:
    # A separate frame, by which `_enclosing_step` knows that it is below, and where values are.
    if held is not None and (keys is None or not held.held.isdisjoint(keys)):
        STORE.update(zip(held.keys, held.values, strict=True))
        doubt(held)
        held.values = held.before = ()
    return action()


def fail(name: str, error: BaseException) -> None:
    """Raise ExecutionError if an error came from XLA when it ran a function; return if not.

    Args:
        name: of the function.
        error: what it raised.
    """
    from_xla = isinstance(error, jax.errors.JaxRuntimeError) or XLA_STATUS.match(str(error))
    if not from_xla or isinstance(error, JaxvarsError) or is_interrupting():
        return
    exclusively(lambda: prove(None, error))
    if "RESOURCE_EXHAUSTED" in str(error):
        raise execution_error([name], error, []) from error


def has_failed(write_back: WriteBack, *, wait: bool) -> bool:
    """Return whether the last run of the step whose values are in a write-back may have failed."""
    value = one_of(write_back.computed())
    try:
        return value is not None and (wait or is_ready(value)) and failure_of(value) is not None
    except RuntimeError:  # pragma: no cover - another thread has donated it meanwhile
        return True


def refuse_to_wait() -> None:
    """Raise ForeignTransformError if a step is in flight that waits for this very code."""
    if is_interrupting():
        raise ForeignTransformError(
            f"A variable is written, or a compiled function called, at {user_line()} by a callback "
            "or signal handler while a compiled step is running; the step's own results would race "
            "with it. Return the value from the step and assign it afterwards."
        )


def adopt_values() -> bool:
    """Keep the values where all other threads are gone; return whether there are any of JAX's.

    Values that were in use by another thread are not there.
    """
    global _waiting
    if not any(isinstance(value, jax.Array) for value in STORE.values()):
        return False
    held = CURRENT[0]
    if held is not None and held.values:
        STORE.update(zip(held.keys, held.values, strict=True))
    CURRENT[0] = None
    _waiting = threading.RLock()  # another thread may have had it
    UNPROVEN.clear()
    return True


def flush() -> None:
    """Put the values back into `STORE`, unless they are in use; never wait."""
    if CURRENT[0] is None or CURRENT[0] is BUSY or not _waiting.acquire(blocking=False):
        return
    try:
        if CURRENT[0] is not BUSY:  # pragma: no branch - another thread has taken it meanwhile
            exclusively(lambda: None)
    finally:
        _waiting.release()


def take(cell: Cell) -> Array:
    """Return the value of a cell, to be kept by the caller.

    It is safe from donation if, after it was read, the values are in `STORE`, its mark in
    `SHARED` still stands and it is still the one stored: a step that starts later copies it.

    Raises:
        UninitializedError: when the cell has no value.
    """
    key = cell.key
    while True:
        SHARED.add(key)
        held = CURRENT[0]
        is_away = held is not None and (held is BUSY or key in held.held)
        if is_away or (UNPROVEN and _is_unproven(key)):
            flight = _enclosing_step() if held is BUSY else None
            if flight is not None:  # in a signal handler or callback of a step
                return _copy_in_flight(_value_in_flight(flight, cell), cell)
            exclusively(lambda: prove((key,)))
            continue
        try:
            value = stored(cell)
        except JaxvarsError:
            exclusively(lambda: stored(cell))  # raises, unless another thread's step had it
            continue  # pragma: no cover - which is tested where coverage is not on
        is_safe = CURRENT[0] is held and key in SHARED and STORE.get(key) is value
        if is_safe:  # pragma: no branch - another thread has written it meanwhile
            return value


def look(cell: Cell) -> Array | None:
    """Return the value of a cell, to be used at once; None if it is not to be had at once.

    It may not be computed yet, and fail to be. The next step may donate it, also one of another
    thread: what is made of it then raises. So it is not to be kept or returned by the caller.
    """
    key, held = cell.key, CURRENT[0]
    if held is None or (held is not BUSY and key not in held.held):
        value = None if UNPROVEN and _is_unproven(key) else STORE.get(key)
    else:
        values = held.values  # none if another thread takes it meanwhile, or if it is BUSY
        value = values[held.index[key]] if values else None
    return value


def take_all(cells: Collection[Cell]) -> list[Array]:
    """Return the values of several cells at one moment, to be kept by the caller.

    Raises:
        UninitializedError: when a cell has no value.
        ForeignTransformError: as `exclusively`.
    """
    if GUARDS:
        ask(TAKE, tuple(cells))

    def taken() -> list[Array]:
        prove([cell.key for cell in cells])
        SHARED.update([cell.key for cell in cells])
        return list(map(stored, cells))

    return exclusively(taken)


def _is_unproven(key: int) -> bool:
    return bool([None for step in tuple(UNPROVEN.values()) if key in step.held])


def is_interrupting() -> bool:
    """Return whether this code interrupted a step or a write, or was called back by it."""
    if TRANSACTIONS and _is_alien():
        return True
    return CURRENT[0] is BUSY and _enclosing_step() is not None


def is_held_elsewhere(cell: Cell) -> bool:
    """Return whether anything besides `STORE` holds the cell's array."""
    return cell.key in STORE and sys.getrefcount(STORE[cell.key]) > _ALONE


def stored(cell: Cell) -> Array:
    """Return the value of a cell from `STORE`; raise UninitializedError if it has none."""
    try:
        value = STORE[cell.key]
        if value.__class__ is not np.ndarray and value.is_deleted():
            raise _deleted_error(cell)
        return value
    except KeyError:
        SHARED.discard(cell.key)
        raise UninitializedError(
            f"Variable {called(cell)!r} has no value: the call that created it failed before its "
            "initial value was computed, or jv.abstract made it. Create it again, outside the "
            "function, or assign a value."
        ) from None


def _deleted_error(cell: Cell) -> JaxvarsError:
    if (said := said_of_loss(cell.key)) is not None:
        return ExecutionError(said)
    return UninitializedError(
        f"Variable {called(cell)!r} is used at {user_line()} and has no value any more: the array "
        "that it holds was read, as with v.value, and then donated to a jitted function "
        "(donate_argnums) or deleted. Assign a new value. An array that is read is the variable's "
        "own, so donate a copy:\n"
        "    step(jnp.copy(v.value))    # not: step(v.value), nor step(v)\n"
        "or use @jv.compile, which donates the memory of the variables that it assigns."
    )


def _value_in_flight(flight: WriteBack, cell: Cell) -> Array:
    if cell.key in flight.keys and flight.values:
        return flight.values[flight.keys.index(cell.key)]
    return STORE[cell.key] if cell.key in STORE else stored(cell)


def _copy_in_flight(value: Array, cell: Cell) -> Array:
    if getattr(value, "is_deleted", bool)():  # Python 3.11 collects garbage inside of XLA's call
        raise ForeignTransformError(
            f"Variable {called(cell)!r} is read at {user_line()} by a finalizer, while a compiled "
            "step runs that its memory was donated to: the old value is gone, and the new one is "
            "not there yet. Read it before, and keep what the finalizer needs."
        )
    if value.__class__ is np.ndarray:
        return value  # of strings, which no step has
    try:
        with context.at(context.EVAL):  # whatever JAX was at when the signal came
            return context.fresh(value)
    except RecursionError:  # pragma: no cover - a signal came while JAX compiled this very copy
        return jax.device_put(np.array(value), value.sharding)


def _enclosing_step() -> WriteBack | None:
    """Return the write-back of the step that this code interrupted or was called back by, if any.

    That is in a callback, a signal handler or a finalizer: waiting would never end. The write-back
    is empty if the values are in `STORE`.
    """
    frame = sys._getframe(1)
    while (frame := frame.f_back) is not None:
        if frame.f_code is _run_exclusive.__code__:
            return frame.f_locals["held"] or BUSY
        in_fast_path = frame.f_code.co_filename == HOT_PATH_FILE
        if in_fast_path and frame.f_locals.get("old") is not None:
            return frame.f_globals["write_back"] or BUSY
    return BUSY if CALLBACKS and _is_alien() else None


def _is_alien() -> bool:
    """Return whether the thread is one of XLA's: not begun by Python, and in a callback of JAX."""
    if type(threading.current_thread()).__name__ != "_DummyThread":
        return False
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return package_of(frame.f_globals) == "jax"
