"""Cells: names for values; and where the values are, between steps and in them."""

from __future__ import annotations

import itertools
import re
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Any, NamedTuple, final

from jaxvars.tracing.context import Scoped
from jaxvars.typing import Array, Aval, Value

STORE: dict[int, Value] = {}
"""The values, by cell key."""

SHARED: set[int] = set()
"""Keys whose value may be referenced elsewhere: it must be copied before it is donated."""

CALLBACKS: list[None] = []
"""Not empty while a step runs that calls back into Python: it donates nothing."""

TRANSACTIONS: list[None] = []
"""Not empty while a transaction is open, in any thread: a callback of its steps may not wait."""

UNPROVEN: dict[tuple[int, ...], Step] = {}
"""Steps whose values are in `STORE` and may still fail to be computed, by their cells' keys."""

LOST: dict[int, tuple[Array, str]] = {}
"""Arrays that were deleted because a step failed, by cell key, and what to say of them."""

BY_KEY: list[dict[int, Any]] = [STORE, LOST]
"""What is kept by cell key, which the end of a cell takes out."""

UNTRAINABLE: set[int] = set()
"""Keys of the cells of variables that are not trainable, in any thread."""

FROZEN: Scoped[frozenset[int]] = Scoped(frozenset())
"""Keys of the cells that this thread or coroutine has frozen for a while."""

ASKED: Scoped[set[int] | None] = Scoped(None)
"""While a function is traced: keys of the cells of which it asks if they are trainable."""

STREAMS: weakref.WeakKeyDictionary[Cell, Callable[[Array, Array], Array]] = (
    weakref.WeakKeyDictionary()
)
"""Cells of the states of streams of random numbers, which each draw advances, with the merges.

A merge takes the value before a `vectorized_map`, and the values that its examples assigned,
stacked along a first axis, which may be empty; it returns the one value.
"""

FLAG_SET: dict[int, weakref.WeakMethod[Callable[[int], None]]] = {}
"""Methods to call when a variable is made trainable or not, with its cell's key."""

HOT_PATH_FILE = "<a compiled step of jaxvars>"
"""The file name of code that takes `CURRENT` for itself."""

_KEYS = itertools.count(1)
# How messages of XLA begin; jit's fast path makes it a ValueError.
XLA_STATUS = re.compile("[A-Z_]+: ")


class Cell(ABC):
    """A name for one value: what frames and states know of a variable.

    Attributes:
        key: a number that is never used again.
        aval: shape and dtype of the value now.
        dtype: the type of the elements.
        sharding: the one that it was placed with, or None.
        name: what people call it.
        owner: a weak reference to the Variable whose cell this is.
        deliver: for a cell that is a signal and no memory: takes what is written outside of
            a program. Else None.
    """

    __slots__ = ("__weakref__", "deliver", "dtype", "key", "name", "owner", "sharding")
    aval: Aval

    def __init__(
        self,
        owner: object,
        aval: Aval,
        name: str,
        sharding: Any,
        deliver: Callable[[Any], None] | None = None,
    ) -> None:
        self.key = next(_KEYS)
        self.aval = aval
        self.dtype = aval.dtype
        self.sharding = sharding
        self.name = name
        self.owner = weakref.ref(owner)
        self.deliver = deliver

    def __del__(
        self,
        tables: list[dict[int, Any]] = BY_KEY,  # bound here: globals are gone at interpreter exit
        discard: Callable[..., Any] = SHARED.discard,
        unmark: Callable[..., Any] = UNTRAINABLE.discard,
    ) -> None:
        # A step in flight and a write-back hold their cells, so this comes after them.
        key: Any = getattr(self, "key", None)  # None if Ctrl-C came before there was one
        for table in tables:
            table.pop(key, None)
        discard(key)
        unmark(key)

    @property
    @abstractmethod
    def declared(self) -> Sequence[int | None] | None:
        """The sizes that all values have: None for any; None for any number of them."""

    @property
    def is_open(self) -> bool:
        """Whether its values may have several shapes."""
        sizes = self.declared
        return sizes is None or None in sizes

    @abstractmethod
    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether its value may have a shape."""

    @abstractmethod
    def admit(self, value: Any) -> tuple[int, ...]:
        """Return the shape that a value has to have to be assigned."""

    @abstractmethod
    def form(self, frame: Any) -> Aval:
        """Return the shape and dtype of its value now in a frame."""

    def keep_shape(self, change: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Return a change of its value that raises if another thread has changed its shape."""
        return change

    def check_staged(self) -> None:  # noqa: B027 - nothing to refuse
        """Raise where a program of JAX can neither read nor assign it."""


class FixedCell(Cell):
    """A cell whose values have one shape, for life."""

    __slots__ = ("aval",)

    @property
    def declared(self) -> Sequence[int | None] | None:
        """The sizes of its value."""
        return self.aval.shape

    def takes(self, shape: Sequence[int]) -> bool:
        """Return whether a shape is that of its value."""
        return tuple(shape) == self.aval.shape

    def admit(self, value: Any) -> tuple[int, ...]:
        """Return the shape, which all values have."""
        return self.aval.shape

    def form(self, frame: Any) -> Aval:
        """Return shape and dtype, which are the same in all frames."""
        return self.aval


class Shapes(ABC):
    """What a variable is given in place of a shape, if its values may have several."""

    @abstractmethod
    def make_cell(self, owner: object, aval: Aval, name: str, sharding: Any) -> Cell:
        """Return its cell, of a kind for such shapes."""


def without_signals(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that are variables'."""
    return [cell for cell in cells if cell.deliver is None]


def untrainable(keys: Set[int]) -> frozenset[int]:
    """Return those of some cells, by key, that are not trainable now in this thread."""
    return frozenset(keys & UNTRAINABLE) | (keys & FROZEN.value)


def is_trainable(cell: Cell) -> bool:
    """Return whether a variable is trainable now in this thread."""
    if ASKED.value is not None:
        ASKED.value.add(cell.key)
    return cell.key not in UNTRAINABLE and cell.key not in FROZEN.value


def trainable_flag(cell: Cell) -> bool:
    """Return whether a variable is trainable where nothing is frozen: what copies of it are."""
    return cell.key not in UNTRAINABLE


def set_trainable(cell: Cell, flag: bool) -> None:
    """Make a variable trainable or not, and tell those who must know."""
    if flag is (cell.key in UNTRAINABLE):
        (UNTRAINABLE.discard if flag else UNTRAINABLE.add)(cell.key)
        for ref in list(FLAG_SET.values()):
            if (tell := ref()) is not None:  # pragma: no branch - it is just going
                tell(cell.key)


@final
class WriteBack:
    """The values of some cells on their way from one run of a step to the next.

    Attributes:
        names: of the step, and of those before it that may still have failed as it last ran.
        index: where the value of each cell is, by key.
        before: the values before its last run, if these were not donated.
        assigned: what was assigned since some run of the step, by where it is.
    """

    __slots__ = (
        "__weakref__", "assigned", "before", "cells", "held", "index", "keys", "names", "refs",
        "values",
    )  # fmt: skip

    def __init__(self, cells: Sequence[Cell], name: str) -> None:
        self.cells = tuple(cells)
        self.index = {cell.key: i for i, cell in enumerate(cells)}
        self.keys = tuple(self.index)
        self.held = self.index.keys()
        self.assigned: dict[int, weakref.ref[Array]] = {}
        self.refs = tuple(map(weakref.ref, cells))
        self.names: Sequence[str] = (name,)
        self.before: Sequence[Value | None] = ()
        self.values: Sequence[Array] = ()

    def replace(self, new: Mapping[int, Array]) -> None:
        """Take other values for some cells, by key, all in one instant."""
        values = list(self.values)
        for key, value in new.items():
            values[self.index[key]] = value
            self.assigned[self.index[key]] = weakref.ref(value)
        self.values = tuple(values)

    def computed(self) -> Sequence[Array]:
        """Return the values that the last run of the step has computed."""
        if not self.assigned:
            return self.values
        found = map(self.assigned.get, range(len(self.values)))
        return [
            x for x, ref in zip(self.values, found, strict=True) if ref is None or ref() is not x
        ]


@final
class Step(NamedTuple):
    """What is kept of a write-back until its values are known to have been computed."""

    names: Sequence[str]  # of the steps whose failure it may be
    held: Set[int]  # keys
    refs: Sequence[weakref.ref[Cell]]  # so that nothing lives on
    before: Sequence[Value | None]
    sample: weakref.ref[Array] | None  # one of the values, that is computed if all are


BUSY = WriteBack((), "")
CURRENT: list[WriteBack | None] = [None]
"""The write-back that has the values now; `BUSY`: in use; None: they are in `STORE`."""


# ---------------------------------------------------------------- names
NAMES: Scoped[tuple[str, ...]] = Scoped(())
"""The open name scopes."""


@contextmanager
def name_scope(name: str) -> Generator[str]:
    """Put `name/` before the names of the variables created inside.

    Args:
        name: any string.

    Yields:
        The whole scope, outer ones included.

    >>> import jaxvars as jv
    >>> with name_scope("encoder"), name_scope("dense"):
    ...     jv.Variable(0.0, name="bias").name
    'encoder/dense/bias'
    """
    with NAMES.change(lambda outer: (*outer, name)) as scopes:
        yield "/".join(scopes)
