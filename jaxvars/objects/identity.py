"""What tells values apart in a cache, where `==` and `repr` say too little.

To `==` the numbers 1, 1.0 and True are one, and so are 0.0 and -0.0; an object of a class may say
that it is equal to any other; and a `repr` shows as many digits as NumPy was told to print.

Rules this file keeps:
- a number counts by its type and bits, a container by its type and what is in it, a frozen
  dataclass by its type and fields, a function or class by identity;
- any other value has no key made of its contents: the caller decides what becomes of it.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import inspect
import operator
import pathlib
import struct
import types
import uuid
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar, final

import jax
import numpy as np

T = TypeVar("T")

_PLAIN = frozenset({bool, int, str, bytes, type(None), types.EllipsisType})
_NUMBERS = (str, bytes, int, float, complex)  # and classes made of them
_UNSET = inspect.Parameter.empty
bits_of = struct.Struct("d").pack
_ITSELF = (enum.Enum, type, types.FunctionType, types.ModuleType)
_EQUAL = (  # their `==` is right
    np.dtype, types.BuiltinFunctionType,
    jax.Device, jax.sharding.Mesh, jax.sharding.PartitionSpec, jax.sharding.Sharding,
)  # fmt: skip

VALUES: set[type[Any]] = {
    dt.date,
    dt.datetime,
    dt.time,
    dt.timedelta,
    dt.timezone,
    decimal.Decimal,
    fractions.Fraction,
    pathlib.PosixPath,
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
    range,
    slice,
    uuid.UUID,
}
"""Classes whose objects are known by what pickle writes of them; their subclasses are others."""

SIZES: dict[type[Any], Callable[[Any], Any]] = {}
"""Classes of sizes that are not numbers, and what makes of one the size that a key has."""


class KeyPart(NamedTuple):
    """A setting of this process that a program is known by, besides its arguments.

    Attributes:
        now: returns what it is; while that is true, a `FastPathBlocker` is in force.
        describe: says of a value that it is this one now.
    """

    now: Callable[[], Hashable]
    describe: Callable[[Any], str]


KEY_PARTS: list[KeyPart] = []
"""The settings that there are."""


def told_by_pickle(kind: type[T]) -> type[T]:
    """Have objects of a class known by what pickle writes of them."""
    VALUES.add(kind)
    return kind


_TOLD_BY_EQUALITY: set[type[Any]] = set()


def told_by_equality(kind: type[T]) -> type[T]:
    """Have objects of a class known by their `==`: to say which are one is what they are for."""
    _TOLD_BY_EQUALITY.add(kind)
    return kind


@final
class Inexact(Exception):  # noqa: N818 - a signal between us, not an error
    """A value can't be told from others by what it holds."""


@final
class Same:
    """Stands for an object itself, and keeps it, so that its identity stays its own."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.held is self.held


def are_same(now: Collection[object], before: Collection[object]) -> bool:
    """Return whether two collections have the same objects, in one order.

    >>> are_same([1.0, "a"], [1.0]), are_same([x := object()], (x,))
    (False, True)
    """
    return len(now) == len(before) and all(map(operator.is_, now, before))


def code_parts(fn: Any) -> tuple[Any, ...]:
    """Return the code and the defaults of a function now: they may be replaced in place."""
    return tuple(getattr(fn, name, None) for name in ("__code__", "__defaults__", "__kwdefaults__"))


def refuse(_: object) -> Hashable:
    """Raise Inexact."""
    raise Inexact


def exact(value: Any, rest: Callable[[Any], Hashable] = refuse) -> Hashable:
    """Return what stands for a value in a key: equal for values that nothing tells apart.

    Args:
        value: it.
        rest: gives what stands for a part that has no key made of its contents.

    >>> exact((1, 0.0)) == exact((1, 0.0))
    True
    >>> exact((1, 0.0)) == exact((True, 0.0)), exact((1, 0.0)) == exact((1, -0.0))
    (False, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if isinstance(value, _ITSELF):
        return Same(value)
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, _NUMBERS):
        return _number(value, kind, rest)
    if isinstance(value, frozenset):
        return kind, frozenset(exact(part, rest) for part in value)
    if isinstance(value, types.MethodType):
        return kind, Same(value.__self__), exact(value.__func__, rest)
    if (parts := _parts(value, kind)) is not None:
        return (kind, *[exact(part, rest) for part in parts])
    is_equal = kind in _TOLD_BY_EQUALITY or isinstance(value, _EQUAL)
    return (kind, value) if is_equal else rest(value)


def _number(value: Any, kind: type, rest: Callable[[Any], Hashable]) -> Hashable:
    """Return what stands for a number or string, or for an object of a class made of one."""
    if kind is float:
        return kind, bits_of(value)
    if kind is complex:
        return kind, bits_of(value.real), bits_of(value.imag)
    if object.__getstate__(value) is not None:  # it has attributes
        return rest(value)
    base: Any = next(base for base in _NUMBERS if issubclass(kind, base))
    (plain,) = base.__getnewargs__(value)
    return kind, exact(plain)


def _parts(value: Any, kind: type) -> Iterable[Any] | None:
    """Return what tells a value from others of its type, in order; None if that is not known."""
    if kind in (tuple, list) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return value
    if kind is dict:
        return value.items()
    if kind in VALUES:
        return value.__reduce_ex__(4)  # the first that tells the two hours of a clock set back
    if kind is functools.partial:
        return value.func, value.args, value.keywords
    is_frozen = kind.__eq__ is not object.__eq__ and getattr(
        getattr(kind, "__dataclass_params__", None), "frozen", False
    )
    return attributes(value, kind).items() if is_frozen else None


def attributes(value: Any, kind: type) -> dict[str, Any]:
    """Return the fields of a dataclass, and what else it was given but what it computed late."""
    names = [field.name for field in dataclasses.fields(value)]
    late = {
        name
        for name in getattr(value, "__dict__", ())
        if isinstance(getattr(kind, name, None), functools.cached_property)
    }
    rest = sorted({*getattr(value, "__dict__", ())} - late - {*names})
    return {name: getattr(value, name, _UNSET) for name in [*names, *rest]}


@final
class Form:
    """Stands for the structure of a pytree whose keys or static parts `==` may confuse."""

    __slots__ = ("nodes", "treedef")

    def __init__(self, treedef: Any) -> None:
        self.treedef = treedef
        self.nodes = _nodes(treedef)

    def __hash__(self) -> int:
        return hash(self.treedef)

    def __eq__(self, other: object) -> bool:
        nodes = other.nodes if isinstance(other, Form) else _nodes(other)
        return bool(self.nodes == nodes)


_NAMES = (str, type(None))
_CLEAR: dict[Any, Any] = {}  # structures with names alone
_KEPT = 1024


def form_of(treedef: Any) -> Any:
    """Return what stands for a pytree's structure in a key; itself where `==` will do.

    As the key of a dict it is found by the structure itself if that is the same.

    >>> one, other = jax.tree.structure({1: 2.0}), jax.tree.structure({True: 2.0})
    >>> one == other, form_of(one) == form_of(other), {form_of(one): "found"}.get(one)
    (True, False, 'found')
    """
    if treedef in _CLEAR:
        return treedef
    if not _has_only((*_NAMES, types.FunctionType), treedef):
        return Form(treedef)
    if _has_only(_NAMES, treedef):  # nothing that would be kept alive
        while len(_CLEAR) >= _KEPT:
            _CLEAR.pop(next(iter(_CLEAR)), None)
        _CLEAR[treedef] = None
    return treedef


def leaf_paths(treedef: Any) -> list[tuple[Any, ...]]:
    """Return the path of each leaf of a pytree's structure, as JAX's keys.

    >>> [jax.tree_util.keystr(path) for path in leaf_paths(jax.tree.structure({"a": (1, 2)}))]
    ["['a'][0]", "['a'][1]"]
    """
    numbered = jax.tree.unflatten(treedef, range(treedef.num_leaves))
    return [path for path, _ in jax.tree_util.tree_flatten_with_path(numbered)[0]]


def _has_only(kinds: tuple[type, ...], treedef: Any) -> bool:
    """Return whether the keys and static parts of a pytree are of these types or are classes."""
    todo = [treedef]
    while todo:
        data = (tree := todo.pop()).node_data()
        todo += tree.children()
        parts = [] if data is None else [data[1]]
        while parts:
            part = parts.pop()
            if type(part) in (tuple, list):
                parts += part
            elif type(part) not in (*kinds, type):
                return False
    return True


def _nodes(treedef: Any) -> Hashable:
    data = treedef.node_data()
    if data is None:
        return None
    return (data[0], exact(data[1], held), *map(_nodes, treedef.children()))


def by_identity(make: Callable[[Any], T], size: int) -> Callable[[Any], T]:
    """Return a function that makes one thing for each object, and keeps the last ones."""
    known = functools.lru_cache(size)(lambda same: make(same.held))
    return lambda value: known(Same(value))


@final
class Weak(weakref.ref[Any]):
    """A weak reference that is known by what it refers to, and not by that object's `==`."""

    __slots__ = ("_number",)

    def __new__(cls, held: Any, gone: Callable[[Any], object] | None = None, /) -> Weak:
        made = super().__new__(cls, held, gone)
        made._number = id(held)
        return made

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Weak) and self() is other() and self() is not None
        )


def held(value: Any) -> Hashable:
    """Return what stands for an object in a key that keeps it: itself, or what it is equal to."""
    kind = type(value)
    if kind.__eq__ is object.__eq__ or kind.__hash__ in (None, object.__hash__):
        return Same(value)
    return kind, value
