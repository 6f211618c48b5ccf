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
  threads. `_hotpath.py` keeps the same rule;
- whoever takes `HAND` puts it back, whatever happens;
- a value that somebody was given, or gave, is marked in `SHARED`, and copied before it is
  donated. It is given only while the values are in `STORE`;
- no user code runs while `HAND` is `BUSY`, except a step's own callbacks.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, final

import jax
import numpy as np

from jaxvars import _trace
from jaxvars.errors import ForeignTransformError, UninitializedError, user_line

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

_LOOKS = 16

HOT_PATH_FILE = "<a compiled step of jaxvars>"
"""The file name of code that takes `HAND` for itself."""

_KEYS = itertools.count(1)
_WAITING = threading.RLock()
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
    ) -> None:
        # A step in flight and a tray hold their cells, so this comes after them.
        key = getattr(self, "key", None)  # None if Ctrl-C came before there was one
        pop(key, None)
        discard(key)
        forget(key, None)


@final
class Tray:
    """The values of some cells on their way from one run of a step to the next."""

    __slots__ = ("cells", "keys", "values")

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = tuple(cells)
        self.keys = tuple(cell.key for cell in cells)
        self.values: Sequence[Value] = ()


BUSY = Tray(())
HAND: list[Tray | None] = [None]


def exclusively(action: Callable[[], T]) -> T:
    """Run `action` with all values in `STORE`, while nobody else can touch them.

    The action may leave a tray in `HAND`.

    Raises:
        ForeignTransformError: where waiting would never end.
    """
    _refuse_to_wait()  # before the lock, which the step has that called back from a thread of XLA's
    with _WAITING:
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


def _in_flight(action: Callable[[], T], held: Tray | None) -> T:
    # A frame of its own, by which `_flight_above` knows that it is below, and where values are.
    if held is not None:
        STORE.update(zip(held.keys, held.values, strict=True))
        held.values = ()
    return action()


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


def settle() -> None:
    """Put the values back into `STORE`, unless they are in use; never wait."""
    if HAND[0] is None or HAND[0] is BUSY or not _WAITING.acquire(blocking=False):
        return
    try:
        if HAND[0] is not BUSY:
            exclusively(lambda: None)
    finally:
        _WAITING.release()


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
        if HAND[0] is not None:
            flight = _flight_above() if HAND[0] is BUSY else None
            if flight is not None:  # in a signal handler or callback of a step
                return _copied(_in_hand(flight, cell))
            exclusively(lambda: None)
            continue
        value = stored(cell)
        if HAND[0] is None and key in SHARED and STORE.get(key) is value:
            return value


def is_interrupting() -> bool:
    """Tell whether this code interrupted a step or a write, or was called back by it."""
    return HAND[0] is BUSY and _flight_above() is not None


def is_held_elsewhere(cell: Cell) -> bool:
    """Tell whether somebody besides `STORE` holds the cell's array."""
    return cell.key in STORE and sys.getrefcount(STORE[cell.key]) > _ALONE


def stored(cell: Cell) -> Value:
    """Return the value of a cell from `STORE`; raise UninitializedError if it has none."""
    try:
        return STORE[cell.key]
    except KeyError:
        SHARED.discard(cell.key)
        raise UninitializedError(
            f"Variable {cell.name!r} has no value: the call that created it failed before its "
            "initial value was computed, or jv.abstract made it. Create it again, outside the "
            "function, or assign a value."
        ) from None


def _in_hand(flight: Tray, cell: Cell) -> Value:
    if cell.key in flight.keys and flight.values:
        return flight.values[flight.keys.index(cell.key)]
    return stored(cell)


def _copied(value: Value) -> Value:
    try:
        with _trace.at(_trace.EVAL):  # whatever JAX was at when the signal came
            return _trace.fresh(value)
    except RecursionError:  # a signal came while JAX was compiling this very copy
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
