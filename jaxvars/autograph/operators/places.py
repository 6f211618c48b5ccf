"""Places where Python objects keep values: an attribute, an item, a cell, all of a container.

Rules this file keeps:
- reading and writing a place runs none of the user's code: no property, no `__setattr__`;
- a place without a value is `Undefined`, and is emptied by writing one that is.
"""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import CellType, MemberDescriptorType, ModuleType
from typing import Any, TypeAlias, final

from jaxvars.autograph.operators.values import NoValue, Undefined
from jaxvars.objects.identity import told_by_equality

MISSING = object()
Container: TypeAlias = list[Any] | deque[Any] | set[Any]


@dataclass(slots=True, eq=False)
class Place(ABC):
    """A place where an object keeps a value; where it is empty, `default` is found."""

    owner: Any
    key: Any
    label: str
    default: Any = MISSING

    @property
    def identity(self) -> tuple[int, Any]:
        """What is equal for one place alone."""
        return id(self.owner), self.key

    def read(self) -> Any:
        """Return the value, `Undefined` if there is none."""
        found = self.get()
        found = self.default if found is MISSING else found
        return Undefined(self.label) if found is MISSING else found

    def get(self) -> Any:
        """Return the value, `MISSING` if there is none."""
        try:
            return self._get()
        except (AttributeError, IndexError, KeyError, ValueError):
            return MISSING

    def write(self, value: Any) -> None:
        """Put a value there; take it away if there is to be none."""
        if not isinstance(value, NoValue):
            self._set(value)
        elif self.get() is not MISSING:
            self._delete()

    @abstractmethod
    def _get(self) -> Any: ...
    @abstractmethod
    def _set(self, value: Any) -> None: ...
    @abstractmethod
    def _delete(self) -> None: ...


@final
class Item(Place):
    """An item of a list or dict; an attribute as an item of an object's `__dict__`."""

    __slots__ = ()

    def _get(self) -> Any:
        if isinstance(self.owner, list):
            return list.__getitem__(self.owner, self.key)
        return dict.get(self.owner, self.key, MISSING)  # a defaultdict's own [] would make it

    def _set(self, value: Any) -> None:
        raw_type(self.owner).__setitem__(self.owner, self.key, value)

    def _delete(self) -> None:
        raw_type(self.owner).__delitem__(self.owner, self.key)


@final
class Attribute(Place):
    """A slot of an object, an attribute of a class or module, what is in a cell."""

    __slots__ = ()

    def _get(self) -> Any:
        if isinstance(self.owner, type | ModuleType):
            return vars(self.owner)[self.key]
        return object.__getattribute__(self.owner, self.key)

    def _set(self, value: Any) -> None:
        (type if isinstance(self.owner, type) else object).__setattr__(self.owner, self.key, value)

    def _delete(self) -> None:
        (type if isinstance(self.owner, type) else object).__delattr__(self.owner, self.key)


def cell_place(cell: CellType, label: str) -> Place:
    """Return the place that a variable of a function is to the functions inside of it."""
    return Attribute(cell, "cell_contents", label)


@final
class Whole(Place):
    """All that a list, a deque or a set holds; what was in it before stays what it is."""

    __slots__ = ("_before",)

    def __init__(self, owner: Container, before: Container, label: str) -> None:
        super().__init__(owner, "", label)
        self._before = {id(x): Kept(x) for x in before}

    def _get(self) -> Any:
        if isinstance(self.owner, set):
            return frozenset(self.owner)
        return [self._before.get(id(x), x) for x in self.owner]

    def _set(self, value: Iterable[Any]) -> None:
        refill(self.owner, [x.held if isinstance(x, Kept) else x for x in value])

    def _delete(self) -> None:
        raise TypeError(self.label)


@told_by_equality
@final
@dataclass(slots=True, eq=False)
class Kept:
    """An item that a container held before, as a part of a value that is not traced."""

    held: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)

    def __repr__(self) -> str:
        return repr(self.held)


def raw_type(container: Any) -> Any:
    """Return the builtin class of a container, whose methods run none of the user's code."""
    return next(
        kind for kind in (OrderedDict, dict, list, deque, set) if isinstance(container, kind)
    )


def refill(container: Any, items: Any) -> None:
    """Have a container hold these items alone."""
    kind = raw_type(container)
    kind.clear(container)
    (kind.extend if kind in (list, deque) else kind.update)(container, items)


# ---------------------------------------------------------------- assignments
def attribute(owner_of: Callable[[], Any], name: str, label: str) -> Place | None:
    """Return the place of `owner.name`; None if there is none, or assigning to it may run code."""
    owner = _find(owner_of)
    found = inspect.getattr_static(type(owner), name, None)
    if isinstance(owner, type):
        return Attribute(owner, name, label, find_inherited(above(owner), name))
    if isinstance(found, MemberDescriptorType):
        return Attribute(owner, name, label)
    own = namespace(owner)
    if own is None or hasattr(found, "__set__"):
        return None
    return Item(own, name, label, find_inherited(type(owner).__mro__, name))


def above(kind: type) -> tuple[type, ...]:
    """Return the classes that a class has attributes from: those it derives from, and its own."""
    return (*kind.__mro__[1:], *inspect.getmro(type(kind)))


def find_inherited(kinds: Sequence[type], name: str) -> Any:
    """Return what an object or class has from classes, if it has none itself."""
    found = next((vars(base)[name] for base in kinds if name in vars(base)), MISSING)
    return MISSING if hasattr(type(found), "__get__") else found


def item(owner_of: Callable[[], Any], key: Any, label: str) -> Place | None:
    """Return the place of `owner[key]`; None if there is none, or assigning to it may run code."""
    owner = _find(owner_of)
    if isinstance(owner, list):
        is_inside = isinstance(key, int) and -len(owner) <= key < len(owner)
        return Item(owner, key % len(owner), label) if is_inside else None
    return Item(owner, key, label) if isinstance(owner, dict) else None


def look(place: Place | None) -> Any:
    """Return what is in a place, if it is one."""
    return place and place.get()


def _find(owner_of: Callable[[], Any]) -> Any:
    try:
        return owner_of()
    except (AttributeError, IndexError, KeyError, NameError):
        return None


def namespace(owner: Any) -> dict[str, Any] | None:
    """Return the `__dict__` of an object, without running its code."""
    if isinstance(owner, type):  # a class of a metaclass of the user's
        return None
    if isinstance(owner, threading.local):  # that of this thread
        return owner.__dict__
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
