"""Where a function's code can reach values of a kind: through names, attributes, lists, dicts.

The search begins at the function and at the objects that it is called with, and goes to all that
their code names. So what it finds is alive, and is reached by the user's code: what only libraries
hold is not found, nor what a generator or the frames of an exception hold.

Rules this file keeps:
- no code of the user's runs;
- an object whose class has a base in another library, or is of one, is not entered.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias, final

import jax
import numpy as np

from jaxvars.compiler.function import BoundFunction, Function
from jaxvars.core.frame import Owner
from jaxvars.modules.module import Module
from jaxvars.tensors.array_like import BOXES
from jaxvars.tracebacks import is_library

_ATOMS = (
    str, bytes, int, float, complex, bool, type(None), np.ndarray, np.generic, jax.Array, Owner,
)  # fmt: skip
_PLAIN = (int, float, str)  # of which there may be many
_WRAPPERS = (staticmethod, classmethod)
_CACHES = type(functools.lru_cache(lambda: None))


@final
class Place(NamedTuple):
    """Where a value is.

    Attributes:
        kind: "attribute", "global", "closure", "default" or "cache".
        owner: the object, class or function that has it; None of a global.
        name: of the attribute or variable; of the function, if it is a cache.
        path: from there to the value, as Python writes it: "['x'][0]".
        held: what is there: of which the value is a part, if there is a path.
    """

    kind: str
    owner: Any
    name: str
    path: str = ""
    held: Any = None

    def is_around(self, other: Place) -> bool:
        """Return whether a place is this one, or a part of what is there."""
        is_same = (self.kind, self.name) == (other.kind, other.name)
        return is_same and self.owner is other.owner

    def below(self, path: str) -> Place:
        """Return the place of a part of what is here."""
        return self._replace(path=self.path + path)


_Child: TypeAlias = tuple[Place, object]


@final
class Search:
    """A search for values.

    Args:
        is_wanted: returns whether a value is one.

    Attributes:
        functions: those of the user's that were met, in order.
    """

    def __init__(self, is_wanted: Callable[[object], bool]) -> None:
        self._is_wanted = is_wanted
        self._seen: dict[int, object] = {}
        self.functions: list[FunctionType] = []

    def within(self, place: Place, value: object) -> list[tuple[Place, Any]]:
        """Return what is found in a place, and the lists, dicts and trees in it."""
        return self.run([(place, value)], place.is_around)

    def run(
        self, roots: Iterable[_Child], enters: Callable[[Place], bool] = lambda _: True
    ) -> list[tuple[Place, Any]]:
        """Return what is found, with its place, what is near to the roots first.

        Args:
            roots: where it begins.
            enters: returns whether to look at a place.
        """
        found, left = list[tuple[Place, Any]](), deque(roots)
        while left:
            place, value = left.popleft()
            place = place if place.path else place._replace(held=value)
            if self._is_wanted(value):
                found.append((place, value))
            elif not isinstance(value, _ATOMS) and id(value) not in self._seen:
                self._seen[id(value)] = value
                left.extend(x for x in self._children_of(place, value) if enters(x[0]))
        return found

    def _children_of(self, place: Place, value: Any) -> Iterable[_Child]:
        if isinstance(value, FunctionType):
            return self._children_of_function(place, value)
        if type(value) in BOXES:
            return [(place, BOXES[type(value)](value))]
        if isinstance(value, type):
            return () if is_of_library(value) else _children_of_class(value)
        if isinstance(value, ModuleType):
            return ()  # what of it is named is found with the function
        if isinstance(value, Module):
            return _children_of_object(value)
        for kind, parts in _PARTS.items():
            if isinstance(value, kind):
                return parts(place, value)
        return _children_of_object(value) if is_users(type(value)) else _parts_of_node(place, value)

    def _children_of_function(self, place: Place, fn: FunctionType) -> Iterable[_Child]:
        """Return what a function reaches; of a library's, the function that it wraps."""
        if is_library(fn.__globals__, fn.__code__.co_filename):
            return [(place, vars(fn).get("__wrapped__"))]
        self.functions.append(fn)
        return self._children_of_code(fn)

    def _children_of_code(self, fn: FunctionType) -> Iterator[_Child]:
        names = {name: None for code in codes_of(fn.__code__) for name in code.co_names}
        for name in names:
            value = fn.__globals__.get(name)
            yield Place("global", None, name), value
            if isinstance(value, ModuleType) and not _is_library(value.__name__):
                parts = ((n, vars(value)[n]) for n in names if n in vars(value))
                yield from ((Place("global", None, n), part) for n, part in parts)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            yield from _contents(Place("closure", fn, name), cell)
        given = fn.__defaults__ or ()
        last = fn.__code__.co_argcount
        named = dict(zip(fn.__code__.co_varnames[last - len(given) : last], given, strict=True))
        named |= fn.__kwdefaults__ or {}
        yield from ((Place("default", fn, name), value) for name, value in named.items())
        yield from ((Place("attribute", fn, n), value) for n, value in list(vars(fn).items()))


def codes_of(code: CodeType) -> list[CodeType]:
    """Return the code of a function, and of those in it."""
    found = [code]
    for each in found:  # which grows
        found += [const for const in each.co_consts if isinstance(const, CodeType)]
    return found


def _contents(place: Place, cell: Any) -> Iterator[_Child]:
    try:
        yield place, cell.cell_contents
    except ValueError:  # it is empty
        return


def attribute(owner: object, name: str) -> Place:
    """Return the place of an attribute."""
    return Place("attribute", owner, name)


def _children_of_class(owner: type) -> Iterator[_Child]:
    for name, value in list(vars(owner).items()):
        inner = value.__func__ if isinstance(value, _WRAPPERS) else value
        parts = [value.fget, value.fset] if isinstance(value, property) else [inner]
        if isinstance(value, functools.cached_property):
            parts = [value.func]
        yield from ((attribute(owner, name), part) for part in parts)
    yield from ((attribute(owner, "__bases__"), base) for base in owner.__bases__)


def _children_of_object(value: object) -> Iterator[_Child]:
    yield from ((attribute(value, name), x) for name, x in attributes(value).items())
    yield attribute(value, "__class__"), type(value)


def attributes(value: object) -> dict[str, Any]:
    """Return the attributes that an object itself has; none of its code runs."""
    try:
        found = dict(object.__getattribute__(value, "__dict__"))
    except AttributeError:
        found = {}
    for owner in type(value).__mro__:
        for name, slot in list(vars(owner).items()):
            if isinstance(slot, MemberDescriptorType):
                found |= _slot_of(value, name, slot)
    return found


def _slot_of(value: object, name: str, slot: Any) -> dict[str, Any]:
    try:
        return {name: slot.__get__(value)}
    except AttributeError:
        return {}


def _parts_of_cache(place: Place, value: Any) -> Iterable[_Child]:
    """Return what `functools.lru_cache` keeps of a function of the user's."""
    fn = getattr(value, "__wrapped__", None)
    if not isinstance(fn, FunctionType) or is_library(fn.__globals__, fn.__code__.co_filename):
        return ()
    kept = Place("cache", fn, fn.__name__)
    return [(place, fn), *((kept, part) for part in gc.get_referents(value) if part is not fn)]


def _parts_of_sequence(place: Place, value: Any) -> Iterable[_Child]:
    names = getattr(type(value), "_fields", None) if isinstance(value, tuple) else None
    found = [(i, x) for i, x in enumerate(_items_of(value)) if not isinstance(x, _PLAIN)]
    return [(place.below(f".{names[i]}" if names else f"[{i}]"), x) for i, x in found]


def _items_of(value: Any) -> list[Any]:
    """Return what is in a sequence or set, whatever its class makes of iteration."""
    kind: Any = next(kind for kind in _ITERABLE if isinstance(value, kind))
    return list(kind.__iter__(value))


_ITERABLE = (list, tuple, deque, set, frozenset)
_PARTS: dict[type | tuple[type, ...], Callable[[Place, Any], Iterable[_Child]]] = {
    dict: lambda place, x: [(place.below(f"[{_show(key)}]"), v) for key, v in list(dict.items(x))],
    (list, tuple, deque): _parts_of_sequence,
    (set, frozenset): lambda place, x: [(place, v) for v in _items_of(x)],
    MethodType: lambda place, x: [(place, x.__self__), (place, x.__func__)],
    functools.partial: lambda place, x: [(place, v) for v in (x.func, x.args, x.keywords)],
    Function: lambda place, x: [(place, x.python_function)],
    BoundFunction: lambda place, x: [(place, x.__self__), (place, x.function)],
    _CACHES: _parts_of_cache,
}  # fmt: skip


def _show(key: object) -> str:
    return repr(key) if type(key) in (str, int, float, bool) else "..."


def _parts_of_node(place: Place, value: Any) -> Iterable[_Child]:
    """Return what is in an object of a library that is a node of trees, or wraps a function."""
    if any(str(base.__module__).startswith(_CHANGED_IN_PLACE) for base in type(value).__mro__):
        return ()
    with suppress(Exception):  # of the library
        if isinstance(wrapped := _wrapped_by(value), FunctionType):
            return [(place, wrapped)]
        leaves = jax.tree_util.tree_leaves_with_path(value, is_leaf=lambda x: x is not value)
        return [(place.below(jax.tree_util.keystr(p)), x) for p, x in leaves if x is not value]
    return ()


_CHANGED_IN_PLACE = ("flax.nnx", "keras.")
"""Where the classes are whose objects keep traced values while a function is traced."""


def _wrapped_by(value: Any) -> object:
    """Return the function that a compiled function of some library is made of."""
    if not callable(value):
        return None
    return getattr(value, "python_function", None) or getattr(value, "__wrapped__", None)


def is_users(kind: type) -> bool:
    """Return whether a class is the user's, and so are its bases."""
    bases = (base for base in kind.__mro__ if base.__module__ not in _NEUTRAL)
    return not any(map(is_of_library, bases))


_NEUTRAL = {"builtins", "abc", "typing", "enum", "types", "collections.abc"}


def is_of_library(kind: type) -> bool:
    """Return whether a class is of a library, or of Python's."""
    return _is_library(kind.__module__)


def _is_library(module: str | None) -> bool:
    if module is None or module == "__main__":
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return is_library({"__name__": module}, file)
