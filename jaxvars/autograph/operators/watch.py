"""Python objects as they were: what has changed in them since, undone.

Rule this file keeps: what cannot be carried through a program as a value is refused.
"""

from __future__ import annotations

import ctypes
import functools
import io
import itertools
import os
import pickle
import queue
import random
import zlib
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from operator import is_, length_hint
from types import GeneratorType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from jaxvars.autograph.operators.places import (
    MISSING,
    Attribute,
    Item,
    Kept,
    Place,
    Whole,
    above,
    find_inherited,
    raw_type,
    refill,
)
from jaxvars.autograph.operators.values import Later, Undefined
from jaxvars.objects.identity import are_same

Change: TypeAlias = "Place | Grown | Other"

_NOTHING = Undefined("nothing")
PUT_BACK: list[Callable[[object, str], None]] = []
"""What is told of an attribute of an object that has its old value again."""


@final
class Path(NamedTuple):
    """How an object is reached, as it would be written."""

    form: str
    key: Any
    before: Any = None

    def __str__(self) -> str:
        return self.form.format(self.before, self.key)

    def item(self, key: Any) -> Path:
        """Return the path of an item."""
        return Path("{0}[{1!r}]", key, self)

    def attribute(self, name: str) -> Path:
        """Return the path of an attribute."""
        return Path("{0}.{1}", name, self)


class Watched(ABC):
    """An object as it was, and how it is reached."""

    __slots__ = ("before", "owner", "path")

    def __init__(self, owner: Any, path: Path) -> None:
        self.owner, self.path = owner, path
        self.before = self.now()

    @abstractmethod
    def now(self) -> Any:
        """Return what is in the object now."""

    @abstractmethod
    def is_same(self) -> bool:
        """Return whether nothing has changed."""

    @abstractmethod
    def undo(self) -> list[Change]:
        """Put back what was there; return what had changed."""


# ---------------------------------------------------------------- objects that have places
class _ByKey(Watched):
    """Values by key."""

    __slots__ = ()

    @abstractmethod
    def now(self) -> dict[Any, Any]: ...

    @abstractmethod
    def place(self, key: Any) -> Place:
        """Return the place of a value."""

    def is_same(self) -> bool:
        old, now = self.before, self.now()
        return are_same(now.values(), old.values()) and are_same(now, old)

    def undo(self) -> list[Change]:
        found, now = [], self.now()
        for key in {**self.before, **now}:
            old, place = self.before.get(key, MISSING), self.place(key)
            if old is not now.get(key, MISSING):
                place.write(_NOTHING if old is MISSING else old)
                found.append(place)
        return found


class Entries(_ByKey):
    """A dict."""

    __slots__ = ()

    def now(self) -> dict[Any, Any]:
        return dict(raw_type(self.owner).items(self.owner))

    def place(self, key: Any) -> Place:
        return Item(self.owner, key, str(self.path.item(key)))

    def undo(self) -> list[Change]:
        now = self.now()
        found = super().undo()
        if not all(map(is_, self.before, self.now())):
            refill(self.owner, self.before)
        moved = [k for k in self.before if k in now] != [k for k in now if k in self.before]
        return found if found and not moved else [Other(f"the order of {str(self.path)!r}")]


@final
class Attributes(Entries):
    """The `__dict__` of an object."""

    __slots__ = ("holder",)

    def __init__(self, owner: dict[str, Any], path: Path, holder: object) -> None:
        super().__init__(owner, path)
        self.holder = holder

    def place(self, key: str) -> Place:
        label = str(self.path.attribute(key))
        return Item(self.owner, key, label, find_inherited(type(self.holder).__mro__, key))

    def undo(self) -> list[Change]:
        """Put back what was there; a `cached_property` is computed again when it is read."""
        kind, found = type(self.holder), super().undo()
        names = [place.key if isinstance(place, Place) else "" for place in found]
        cached = [isinstance(getattr(kind, x, None), functools.cached_property) for x in names]
        found = [place for place, is_cached in zip(found, cached, strict=True) if not is_cached]
        for place, tell in itertools.product(found, PUT_BACK):
            if isinstance(place, Place):
                tell(self.holder, place.key)
        return found


@final
class Slots(_ByKey):
    """The slots of an object; what a class or module holds."""

    __slots__ = ()

    def now(self) -> dict[str, Any]:
        if isinstance(self.owner, type | ModuleType):
            found = vars(self.owner).items()
            return {k: x for k, x in found if k[:2] != "__" and not isinstance(x, ModuleType)}
        return {
            name: value
            for name in slots_of(type(self.owner))
            if (value := getattr(self.owner, name, MISSING)) is not MISSING
        }

    def place(self, key: str) -> Place:
        default = find_inherited(above(self.owner) if isinstance(self.owner, type) else (), key)
        return Attribute(self.owner, key, str(self.path.attribute(key)), default)


@functools.lru_cache(1024)
def slots_of(kind: type) -> tuple[str, ...]:
    """Return the names of the slots that the objects of a class have."""
    return tuple(
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, MemberDescriptorType) and not name.startswith("__")
    )


@final
class One(_ByKey):
    """The value of one place: a cell or a global."""

    __slots__ = ()
    owner: Place

    def now(self) -> dict[str, Any]:
        return {} if (value := self.owner.get()) is MISSING else {"": value}

    def place(self, key: str) -> Place:
        return self.owner


# ---------------------------------------------------------------- containers without keys
class Grown(NamedTuple):
    """A list that has grown at its end, and by what."""

    owner: list[Any]
    items: tuple[Any, ...]
    label: str

    def own(self) -> Grown:
        """Return the same without what stands for the items of other iterations."""
        return self._replace(items=tuple(x for x in self.items if not isinstance(x, Later)))


class Other(NamedTuple):
    """An object that has changed in a way that a program cannot have."""

    label: str


@final
class Bag(Watched):
    """A list, a deque or a set."""

    __slots__ = ()

    def now(self) -> Any:
        return raw_type(self.owner).copy(self.owner)

    def is_same(self) -> bool:
        if isinstance(self.owner, set):
            return set(map(id, self.owner)) == set(map(id, self.before))
        return are_same(self.owner, self.before)

    def undo(self) -> list[Change]:
        if isinstance(self.owner, deque | set) or len(self.owner) < len(self.before):
            return self._refill()
        more = tuple(self.owner[len(self.before) :])
        pairs = enumerate(zip(self.before, self.owner, strict=False))
        changed = [i for i, (old, new) in pairs if old is not new]
        if changed and more:
            return self._refill()
        del self.owner[len(self.before) :]
        for i in changed:
            self.owner[i] = self.before[i]
        if more:
            return [Grown(self.owner, more, str(self.path))]
        return [Item(self.owner, i, str(self.path.item(i))) for i in changed]

    def _refill(self) -> list[Change]:
        refill(self.owner, self.before)
        return [Whole(self.owner, self.before, str(self.path))]


@final
class Printed(Watched):
    """An object whose state can be compared, but not carried."""

    __slots__ = ("printer",)

    def __init__(self, owner: Any, path: Path, printer: Printer) -> None:
        self.printer = printer
        super().__init__(owner, path)

    def now(self) -> Any:
        return self.printer.take(self.owner)

    def is_same(self) -> bool:
        return self.now() == self.before

    def undo(self) -> list[Change]:
        self.printer.put(self.owner, self.before)
        return [Other(f"{str(self.path)!r} ({type(self.owner).__name__})")]


class Printer(NamedTuple):
    """How the state of an object is taken, and put back where that is possible."""

    take: Callable[[Any], Any]
    put: Callable[[Any, Any], object] = lambda *_: None


_MOST_KEPT, _MOST_READ = 1 << 20, 1 << 28  # bytes


def _take_array(x: Any) -> Any:
    """Return the form and values of an array; of a large one a checksum, if anything."""
    if not x.flags.writeable or x.nbytes > _MOST_READ or isinstance(x, np.memmap):
        return None
    form = x.shape, x.strides, x.dtype
    if x.dtype == object:
        return form, tuple(map(Kept, x.flat))
    data = x.tobytes()
    return form, data if x.nbytes <= _MOST_KEPT else zlib.crc32(data)


def _put_array(x: Any, old: Any) -> None:
    form, data = old
    if not x.flags.writeable or form != (x.shape, x.strides, x.dtype):
        return
    if isinstance(data, tuple):
        x.flat[:] = [kept.held for kept in data]
    elif isinstance(data, bytes):
        x[...] = np.frombuffer(data, x.dtype).reshape(x.shape)


def _take_generator(x: GeneratorType[Any, Any, Any]) -> Any:
    frame = x.gi_frame
    return frame and (frame.f_lasti, {name: Kept(x) for name, x in frame.f_locals.items()})


def _take_state(x: Any) -> bytes | None:
    """Return what an object is pickled as; None for a file that is closed."""
    return None if getattr(x, "closed", False) else pickle.dumps(x.__getstate__())


def _put_state(x: Any, old: bytes) -> None:
    x.__setstate__(pickle.loads(old))


def _put_items(x: Any, old: bytes) -> None:
    if isinstance(x, bytearray):
        x[:] = old
    else:
        del x[:]
        x.frombytes(old)


def _put_context(x: ContextVar[Any], old: Kept) -> None:
    if old.held is not MISSING:
        x.set(old.held)


_STATEFUL = (io.BytesIO, io.StringIO, random.Random, np.random.RandomState)
_C_MEMORY = (ctypes.c_int.__mro__[1], ctypes.Structure, ctypes.Union, ctypes.Array)
_PRINTERS: dict[type, Printer] = {
    np.ndarray: Printer(_take_array, _put_array),
    np.random.Generator: Printer(
        lambda x: _take_state(x.bit_generator), lambda x, old: _put_state(x.bit_generator, old)
    ),
    GeneratorType: Printer(_take_generator),
    itertools.count: Printer(repr),
    **dict.fromkeys((bytearray, array), Printer(bytes, _put_items)),
    **dict.fromkeys(_STATEFUL, Printer(_take_state, _put_state)),
    ContextVar: Printer(lambda x: Kept(x.get(MISSING)), _put_context),
    **dict.fromkeys((queue.SimpleQueue, queue.Queue), Printer(lambda x: x.qsize())),
    type(os.environ): Printer(dict),
    **dict.fromkeys(_C_MEMORY, Printer(bytes)),
}


@functools.lru_cache(1024)
def printer_of(kind: type) -> Printer | None:
    """Return what takes the state of objects of a class, if there is anything."""
    found = next((printer for base, printer in _PRINTERS.items() if issubclass(kind, base)), None)
    is_iterator = hasattr(kind, "__next__") and hasattr(kind, "__length_hint__") and is_of_c(kind)
    return found or (Printer(length_hint) if is_iterator else None)


def is_of_c(kind: type) -> bool:
    """Return whether a class is written in C."""
    is_made, is_fixed = kind.__flags__ & 1 << 9, kind.__flags__ & 1 << 8
    return bool(is_fixed or not is_made)  # Py_TPFLAGS_HEAPTYPE, Py_TPFLAGS_IMMUTABLETYPE
