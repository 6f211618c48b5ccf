"""Find objects of one kind inside others, by path and in a stable order.

Rules this file keeps:
- attributes and dict entries are visited sorted by name, sequences by position; what is in
  a `Holder` (a Module) comes after its siblings that are not, as TensorFlow orders variables;
- every object is visited once, under the first path that reaches it, so cycles end;
- what cannot hold variables is not entered: a variable, arrays of numbers, strings, numbers,
  functions, classes (nor their attributes, through an instance), modules of Python; nor are slots
  whose names begin with two underscores, which hide what is in them.
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias, TypeVar

import jax
import numpy as np

T = TypeVar("T")

CLOSED_TYPES = (
    str, bytes, int, float, complex, bool, type(None), type, np.ndarray, np.generic, jax.Array,
    ModuleType, FunctionType, MethodType, BuiltinFunctionType,
)  # fmt: skip

Path: TypeAlias = tuple[str, ...]

Pattern: TypeAlias = str | re.Pattern[str] | Callable[[str, Any], bool]
_GLOB = {"**/": "(?:.+/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class Holder(ABC):  # noqa: B024 - a mark, without methods
    """An object whose own contents are listed before those of the holders in it."""


class Tied(str):
    """A part of a path that stands for an object found elsewhere, such as a slot's variable.

    Args:
        name: what the object is called here.
        tie: returns the object, or None if it is gone.
        is_path: whether the name is a path that the user gave, rather than the object's name.
    """

    __slots__ = ("is_path", "tie")

    def __new__(cls, name: str, tie: Callable[[], object], is_path: bool = False) -> Tied:
        made = super().__new__(cls, name)
        made.tie, made.is_path = tie, is_path
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.tie, self.is_path


class Proxy(ABC):
    """An object that stands for another one, which is found in its place, under its path."""

    __slots__ = ()

    @property
    @abstractmethod
    def aliased(self) -> object:
        """The other one."""


PROXIES: dict[type, Callable[[Any], object]] = {}
"""Classes that are not an Alias but stand for another object, and what returns that."""

ATOMS: set[type] = set()
"""Classes whose own objects hold nothing; those of classes below may have other attributes."""

PARTS: dict[type, Callable[[Any], Iterable[tuple[str, object]]]] = {}
"""Classes whose objects, and those of classes below, hold other things than their attributes."""


def resolve_proxy(value: object) -> object:
    """Return what an object stands for; itself, if for nothing else."""
    if isinstance(value, Proxy):
        return value.aliased
    find = PROXIES.get(type(value))
    return value if find is None else find(value)


def walk(root: object, kind: type[T] | tuple[type[T], ...]) -> Iterator[tuple[Path, T]]:
    """Yield each object of `kind` below `root` (or `root` itself), with its path.

    An object of `kind` is entered too, so that modules within modules are found.

    >>> list(walk({"b": [2.0, "x"], "a": "y"}, list))
    [(('b',), [2.0, 'x'])]
    """
    seen: dict[int, object] = {}
    holders: list[tuple[Path, object]] = [((), root)]
    while holders:
        path, holder = holders.pop(0)
        inner: list[tuple[Path, object]] = []
        yield from _walk(holder, kind, path, seen, inner)
        holders[:0] = inner


def _walk(
    value: object,
    kind: type[T] | tuple[type[T], ...],
    path: Path,
    seen: dict[int, object],
    holders: list[tuple[Path, object]],
) -> Iterator[tuple[Path, T]]:
    if (isinstance(value, CLOSED_TYPES) and not holds_objects(value)) or id(value) in seen:
        return
    seen[id(value)] = value  # kept: a Mapping may make its parts as they are read
    if isinstance(value, kind):
        yield path, value
    for name, child in children_of(value):
        if isinstance(child, Holder):
            holders.append(((*path, name), child))
        else:
            below = (*path, name) if name else path
            yield from _walk(child, kind, below, seen, holders)


def reaches(root: object, is_wanted: Callable[[object], bool]) -> bool:
    """Return whether an object that is wanted is `root` or below it.

    >>> reaches({"a": [1, deque(["x"])]}, lambda value: value == "x")
    True
    """
    seen: dict[int, object] = {}
    left = [root]
    while left:
        value = left.pop()
        if is_wanted(value):
            return True
        if id(value) not in seen and (not isinstance(value, CLOSED_TYPES) or holds_objects(value)):
            seen[id(value)] = value
            left.extend(child for _, child in children_of(value))
    return False


def children_of(value: object) -> Iterable[tuple[str, object]]:
    if type(value) in ATOMS:
        return ()
    other = resolve_proxy(value)
    if other is not value:
        return [("", other)]
    if isinstance(value, Mapping):
        return sorted(((_part(key), child) for key, child in value.items()), key=lambda kv: kv[0])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return zip(value._fields, value, strict=True)  # pyright: ignore[reportAttributeAccessIssue] - a named tuple
    if isinstance(value, functools.partial):
        return [("args", value.args), ("func", value.func), ("keywords", value.keywords)]
    if isinstance(value, np.ndarray):
        return [("/".join(map(str, i)), child) for i, child in np.ndenumerate(value)]
    if isinstance(value, list | tuple | deque | ValuesView):
        return [(str(i), child) for i, child in enumerate(value)]
    if isinstance(value, set | frozenset):
        return [("0", child) for child in value]  # a set has no order to number them by
    return next(filter(None, map(PARTS.get, type(value).__mro__)), _list_attributes)(value)


def holds_objects(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.hasobject


def matcher(pattern: Pattern) -> Callable[[str, Any], bool]:
    """Return what says whether a pattern fits a path, and what is there.

    Args:
        pattern: a glob for the whole path, where `*` and `?` stand for characters of one part of
            it and `**` for any parts; a compiled regular expression, to be found in the path; or a
            function of the path and what is there.

    Raises:
        ValueError: when a string is a regular expression rather than a glob.
        TypeError: when it is none of these.

    >>> fits = matcher("layers/*/bias")
    >>> fits("layers/0/bias", None), fits("layers/0/norm/bias", None)
    (True, False)
    >>> [matcher("**/bias")(path, None) for path in ("bias", "layers/0/bias", "layers/0/w")]
    [True, True, False]
    """
    if isinstance(pattern, re.Pattern):
        return lambda path, _: pattern.search(path) is not None
    if type(pattern).__module__ == "flax.nnx.filterlib":  # it is called with other arguments
        raise TypeError(f"{pattern!r} is a filter of nnx: give a class, as nnx.Param, and but=.")
    if callable(pattern):
        return pattern
    if not isinstance(pattern, str):
        raise TypeError(
            "A pattern is a string, a compiled regular expression or a function of a path and a "
            f"variable, not {type(pattern).__name__}."
        )
    if re.search(r"[$^|\\+]|\.\*", pattern):
        raise ValueError(
            f"{pattern!r} is a regular expression, and a pattern that is a string is a glob for "
            f'the whole path, like "**/kernel". Write re.compile({pattern!r}), which is searched.'
        )
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    fits = re.compile("".join(_GLOB.get(part, re.escape(part)) for part in parts)).fullmatch
    return lambda path, _: fits(path) is not None


def first_of(rules: Sequence[tuple[Pattern, T]]) -> Callable[[str, Any], T]:
    """Return what finds the first of some rules whose pattern fits a path and what is there.

    It raises LookupError where none fits.
    """
    known = [(matcher(pattern), rule) for pattern, rule in rules]

    def find(path: str, value: Any) -> T:
        for fits, rule in known:
            if fits(path, value):
                return rule
        raise LookupError(f"its path matches none of {[pattern for pattern, _ in rules]}")

    return find


def _part(key: object) -> str:
    return key if isinstance(key, str) else str(key)


def _list_attributes(value: object) -> list[tuple[str, object]]:
    return sorted(attributes_of(value).items())


def attributes_of(value: object) -> dict[str, object]:
    found = dict(getattr(value, "__dict__", {}))
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                found[name] = getattr(value, name)
    return found
