"""The Python objects that the functions of a staged block can reach, and what changes in them.

A block is traced whether or not it runs, so that what it does to Python objects would be done once
in any case. The objects are noted before, compared after, and put back: what has changed is then
carried like the names that the block assigns (`autograph/operators/state.py`), or refused.

| reached from | are |
|---|---|
| a function or method | its cells, the globals that its code names, its defaults and attributes |
| an object of the user's classes | its attributes, also those in slots, and its class |
| a module or class of the user's | its attributes |
| a list, dict, set, deque, tuple, partial, iterator | what it holds |

Rules this file keeps:
- objects of libraries are not looked into: what they keep for themselves, caches for example, does
  not concern a program; variables are handled by frames;
- what is made inside of a block is not compared.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import functools
import gc
import os
import random
import sys
import threading
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from jaxvars.autograph.operators.places import MISSING, Item, Place, cell_place, namespace
from jaxvars.autograph.operators.watch import (
    Attributes,
    Bag,
    Change,
    Entries,
    One,
    Path,
    Printed,
    Slots,
    Watched,
    is_of_c,
    printer_of,
    slots_of,
)
from jaxvars.errors import is_library, package_of
from jaxvars.modules.module import Module
from jaxvars.objects.traversal import Proxy
from jaxvars.tensors.array_like import ArrayProxy

Parts: TypeAlias = Iterable[tuple[Path, Any]]

_LIBRARIES = frozenset({"jax", "jaxlib", "jaxvars", "numpy", "optax", "flax"})
_OPEN = (
    SimpleNamespace, UserDict, UserList, argparse.Namespace, ChainMap, threading.local,
    weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet, contextlib.ExitStack,
)  # fmt: skip
BARE: set[type] = {Module}
"""Classes of ours whose objects, but not those of classes derived from them, hold the user's."""

_ATOMS = (str, bytes, int, float, complex, type(None), type(...), slice, range, np.generic)
_NUMBERS = "np.random", np.random.get_state.__self__
_HIDDEN = {  # what programs change in modules of libraries
    random: ("random", random.random.__self__),
    os: ("os.environ", os.environ),
    np: _NUMBERS,
    np.random: _NUMBERS,
}
_INSIDE = (  # what gives all that they hold to the collector of garbage
    functools.partial, MethodType, BuiltinMethodType, property, staticmethod,
    classmethod, functools.cached_property,
)  # fmt: skip


def is_users(space: dict[str, Any], filename: str, callers: Collection[str]) -> bool:
    """Return whether code is the user's, not a library's; packages of callers are."""
    package = package_of(space)
    return package not in _LIBRARIES and (package in callers or not is_library(space, filename))


def cells_of(fn: Callable[..., Any], names: Collection[str]) -> list[CellType]:
    """Return the cells of those names that a function closes over."""
    pairs = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    return [cell for name, cell in pairs if name in names]


@final
class World:
    """What some functions can reach, as it is now; `own` are cells that may change."""

    def __init__(self, roots: Sequence[Any], own: Collection[CellType] = ()) -> None:
        self._watched: list[Watched] = []
        self._seen: dict[int, Any] = {}
        self._places: set[tuple[int, Any]] = set()
        self._own = {id(cell) for cell in own}
        self._roots = [root for root in roots if isinstance(root, FunctionType)]
        self._callers = {package_of(fn.__globals__) for fn in self._roots}
        todo = deque((_name(""), root) for root in roots)
        while todo:
            path, value = todo.popleft()
            if not issubclass(type(value), _ATOMS) and id(value) not in self._seen:
                self._seen[id(value)] = value
                todo.extend(self._parts(path, value))

    def will_find(self, place: Place) -> bool:
        """Return whether a place is empty, and would be found: keys come in the order of a dict."""
        return self.holds(place.owner) and place.get() is MISSING

    def holds(self, value: Any) -> bool:
        """Return whether an object could be reached."""
        return id(value) in self._seen

    def undo(self) -> list[Change]:
        """Put everything back; return what had changed."""
        changed = [watched for watched in self._watched if not watched.is_same()]
        return [change for watched in changed for change in watched.undo()]

    def _watch(self, watched: Watched) -> None:
        self._watched.append(watched)

    # ------------------------------------------------------------ what is in what
    def _parts(self, path: Path, value: Any) -> Parts:
        kind = type(value)
        if printer := printer_of(kind):
            self._watch(Printed(value, path, printer))
        if issubclass(kind, ArrayProxy | Proxy):
            return
        enter = next((run for base, run in self._ENTER.items() if issubclass(kind, base)), None)
        if enter is not None:
            yield from enter(self, path, value)
        elif hasattr(kind, "__next__") and is_of_c(kind):
            yield from self._referents(path, value)
        if kind in BARE or issubclass(kind, _OPEN) or self._is_users_class(kind):
            yield from self._object(path, value, kind)

    def _is_users_class(self, kind: type) -> bool:
        if is_of_c(kind):
            return False
        name = kind.__module__ if isinstance(kind.__module__, str) else ""  # it may be None
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        is_builtin = name in sys.builtin_module_names and name != "builtins"
        return not is_builtin and is_users({"__name__": name}, file, self._callers)

    def _dict(self, path: Path, value: dict[Any, Any]) -> Parts:
        self._watch(Entries(value, path))
        for key, item in dict.items(value):
            yield path, key
            yield path.item(key), item

    def _bag(self, path: Path, value: Any) -> Parts:
        self._watch(Bag(value, path))
        yield from self._tuple(path, value)

    def _tuple(self, path: Path, value: Iterable[Any]) -> Parts:
        yield from ((path.item(i), item) for i, item in enumerate(value))

    def _elements(self, path: Path, value: np.ndarray) -> Parts:
        if value.dtype == object:
            yield from self._tuple(path, value.flat)

    def _referents(self, path: Path, value: Any) -> Parts:
        yield from ((path, item) for item in gc.get_referents(value))

    def _object(self, path: Path, value: Any, kind: type) -> Parts:
        yield from self._attributes(path, value)
        if slots_of(kind):
            slots = Slots(value, path)
            self._watch(slots)
            yield from ((path.attribute(name), x) for name, x in slots.before.items())
        yield _name(kind.__name__), kind

    def _attributes(self, path: Path, value: Any) -> Parts:
        own = namespace(value)
        if own is not None and id(own) not in self._seen:
            self._seen[id(own)] = own
            self._watch(Attributes(own, path, value))
            yield from ((path.attribute(name), x) for name, x in own.items())

    def _class(self, path: Path, value: type) -> Parts:
        if self._is_users_class(value):
            self._watch(Slots(value, path))
            yield from ((_name(base.__name__), base) for base in value.__mro__)
            yield from ((path.attribute(name), x) for name, x in vars(value).items())

    def _module(self, path: Path, value: ModuleType) -> Parts:
        if value in _HIDDEN:
            label, hidden = _HIDDEN[value]
            yield _name(label), hidden
        file = getattr(value, "__file__", None) or ""
        if file and is_users(vars(value), file, self._callers):
            members = Slots(value, path)
            self._watch(members)
            yield from ((path.attribute(name), x) for name, x in members.before.items())

    def _wrapped(self, path: Path, value: Any) -> Parts:
        yield path, getattr(value, "__wrapped__", None)

    def _target(self, path: Path, value: Callable[[], Any]) -> Parts:
        yield path, value()

    def _function(self, path: Path, value: FunctionType) -> Parts:
        space, code = value.__globals__, value.__code__
        yield from self._wrapped(path, value)
        is_ours = package_of(space) == "jaxvars" and value in self._roots
        if not is_ours and not is_users(space, code.co_filename, self._callers):
            return
        for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=True):
            if name != "ag__":
                yield from self._place(cell_place(cell, name), is_own=id(cell) in self._own)
        for name in () if is_ours else _names(code):
            if name in space or name not in vars(builtins):
                yield from self._place(Item(space, name, f"global {name}"))
        yield from ((path, x) for x in (value.__defaults__, value.__kwdefaults__))
        yield from self._attributes(path, value)

    def _place(self, place: Place, *, is_own: bool = False) -> Parts:
        if place.identity not in self._places:
            self._places.add(place.identity)
            one = One(place, _name(place.label.removeprefix("global ")))
            if not is_own:
                self._watch(one)
            yield one.path, one.before.get("")

    _ENTER: ClassVar[dict[Any, Callable[[World, Path, Any], Parts]]] = {
        dict: _dict,
        (list, deque, set): _bag,
        (tuple, frozenset): _tuple,
        np.ndarray: _elements,
        _INSIDE: _referents,
        FunctionType: _function,
        type: _class,
        ModuleType: _module,
        type(functools.cache(len)): _wrapped,
        weakref.ReferenceType: _target,
    }


@functools.lru_cache(4096)
def _names(code: CodeType) -> frozenset[str]:
    """Return the names of globals and attributes in some code."""
    inner = [_names(const) for const in code.co_consts if isinstance(const, CodeType)]
    return frozenset(code.co_names).union(*inner)


def _name(name: str) -> Path:
    return Path("{1}", name)
