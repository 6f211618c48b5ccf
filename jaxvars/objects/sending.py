"""Pickles of objects that stand for a Python function: by name, or as what they are made of.

pickle writes a Python function as a name. cloudpickle, which joblib, dask and ray send work with,
writes one of `__main__`, of a notebook or of another function as its code. An object that stands
for a function cannot see who pickles it, so it refers to Python functions of its own, which are
called `step._anchor` and `step._sender` where the object is called `step`. The sender returns the
parts; the anchor returns nothing, for the parts may refer to the object itself:

    who pickles                            writes of them            what is loaded
    pickle; cloudpickle, of a module       their names               the object that has them there
    cloudpickle, of `__main__` or by value their code and the parts  a new object of these parts

An object that is not to be found under its name writes its parts themselves: its function, its
options, the attributes that it was given, and the sources, if it is converted by autograph:
cloudpickle writes code without the name of its file.

Rules this file keeps:
- what is loaded by a name is the object of that name; no values of its variables travel then;
- an object is begun before its parts are written, which may refer to it;
- what is an object's own is in slots: its `__dict__` holds what a function's does, which
  `functools.wraps` copies to other functions and which is sent.
"""

from __future__ import annotations

import copy
import functools
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from linecache import getlines
from types import FunctionType
from typing import Any, TypeAlias, TypeVar, final
from weakref import WeakKeyDictionary, ref

T = TypeVar("T")
_Parts: TypeAlias = tuple[Callable[..., Any], dict[str, Any], dict[str, Any], Any]

_NAMES_WITH_DOTS = 4  # the first protocol of pickle that writes them

_OWNERS: WeakKeyDictionary[Callable[[], Any], ref[Any]] = WeakKeyDictionary()


SOURCES: deque[tuple[str, ...]] = deque(maxlen=4096)
"""The lines of files that functions were compiled from which others have sent here, newest last."""


class Sent(ABC):
    """An object that stands for a Python function, and is made of it and options by `__init__`."""

    __slots__ = ("_anchor", "_options", "_sender", "python_function")
    python_function: Callable[..., Any]
    _options: dict[str, Any]
    _anchor: Callable[[], None]
    _sender: Callable[[], _Parts]

    @abstractmethod
    def __init__(self, python_function: Callable[..., Any], **options: Any) -> None: ...

    def _stand_for(  # pyright: ignore[reportUnusedFunction] - the classes' `__init__` calls it
        self, python_function: Callable[..., Any], options: dict[str, Any]
    ) -> None:
        """Note what it is made of; it is called by its name already."""
        self.python_function, self._options = python_function, options
        self._anchor = _refer(self, "_anchor", None)
        self._sender = _refer(self, "_sender", self._parts())

    def _parts(self) -> _Parts:
        is_converted = self._options.get("convert") or self._options.get("autograph")
        sources = _Sources(self.python_function) if is_converted else None
        return self.python_function, self._options, vars(self), sources

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        """Return the names, or the parts; before protocol 4 the one name.

        `step._anchor` would be written there as an attribute of `step`, without end.
        """
        if _find(self._anchor.__module__, self._anchor.__qualname__) is not self._anchor:
            return _begin, (type(self),), self._parts()
        if protocol < _NAMES_WITH_DOTS:
            return _name(self)
        return _begin, (type(self), self._anchor), self._sender

    def __setstate__(self, sent: Callable[[], _Parts] | _Parts) -> None:
        if callable(sent):
            if _owner(sent) is self:
                return
            sent = sent()
        self.__init__(sent[0], **sent[1])
        vars(self).update(sent[2])

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return another one, of the copied function: a method of the copied object."""
        memo[id(self)] = made = _begin(type(self))
        python_function, options, attributes, _ = self._parts()
        made.__init__(copy.deepcopy(python_function, memo), **options)
        vars(made).update(copy.deepcopy(attributes, memo))
        return made


@final
class _Sources:
    """The sources of a function and of those of its module, which are read when it is sent."""

    def __init__(self, fn: Any) -> None:
        self._fn = getattr(fn, "__func__", getattr(fn, "func", fn))  # of a method, of a partial

    def __reduce__(self) -> tuple[Any, ...]:
        space = getattr(self._fn, "__globals__", {})
        own = [x for x in space.values() if isinstance(x, type | FunctionType)]
        own = [x for x in own if x.__module__ == space.get("__name__")]
        parts = [part for x in own if isinstance(x, type) for part in vars(x).values()]
        found = [x for x in (self._fn, *own, *parts) if isinstance(x, FunctionType)]
        files = dict.fromkeys(fn.__code__.co_filename for fn in found)
        return _keep_sources, ([tuple(getlines(file, space)) for file in files],)


def _keep_sources(sources: list[tuple[str, ...]]) -> None:
    for lines in reversed(sources):  # a function's own file last: where there are too many it stays
        with suppress(ValueError):
            SOURCES.remove(lines)
        SOURCES.append(lines)


def _refer(owner: Sent, name: str, sent: T) -> Callable[[], T]:
    """Return a function without arguments that is called as an attribute of an object is."""

    def refer() -> T:
        return sent

    refer.__module__, refer.__qualname__ = owner.__module__, f"{_name(owner)}.{name}"
    _OWNERS[refer] = ref(owner)
    return refer


def _begin(kind: type[Sent], anchor: Callable[[], None] | None = None) -> Sent:
    """Return the object whose anchor was found by its name; a new one, to be made of parts."""
    return (None if anchor is None else _owner(anchor)) or kind.__new__(kind)


def _owner(refer: Callable[[], Any]) -> Sent | None:
    owner = _OWNERS.get(refer)
    return None if owner is None else owner()


def _name(sent: Any) -> str:
    return getattr(sent, "__qualname__", "")


def _find(module: str, name: str) -> Any:
    """Return what is called so in a module that is loaded; None if nothing is."""
    try:
        return functools.reduce(getattr, name.split("."), sys.modules.get(module))
    except AttributeError:
        return None
