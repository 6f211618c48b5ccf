"""Pickles of objects that stand for a Python function: by name, or as what they are made of.

pickle writes a Python function as a name. cloudpickle, which joblib, dask and ray send work with,
writes one of `__main__`, of a notebook or of another function as its code. An object that stands
for a function cannot see who pickles it, so it refers to Python functions of its own, which are
called `step._anchor` and `step._sender` where the object is called `step`. The sender returns the
parts; the anchor returns nothing, for the parts may refer to the object itself:

    who pickles                            writes of them            what is loaded
    pickle; cloudpickle, of a module       their names               the object that has them there
    cloudpickle, of `__main__` or by value their code and the parts  a new object of these parts

An object that is not to be found under its name writes its parts themselves.

Rules this file keeps:
- what is loaded by a name is the object of that name; no values of its variables travel then;
- an object is begun before its parts are written, which may refer to it.
"""

from __future__ import annotations

import copy
import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

T = TypeVar("T")
_Parts: TypeAlias = tuple[Callable[..., Any], dict[str, Any]]

_OWNERS: WeakKeyDictionary[Callable[[], Any], ref[Any]] = WeakKeyDictionary()


class Sent(ABC):
    """An object that stands for a Python function, and is made of it and options by `__init__`."""

    __slots__ = ()
    python_function: Callable[..., Any]
    _options: dict[str, Any]

    @abstractmethod
    def __init__(self, python_function: Callable[..., Any], **options: Any) -> None: ...

    @functools.cached_property
    def _anchor(self) -> Callable[[], None]:
        return _refer(self, "_anchor", None)

    @functools.cached_property
    def _sender(self) -> Callable[[], _Parts]:
        return _refer(self, "_sender", (self.python_function, self._options))

    def __reduce__(self) -> tuple[Any, ...]:
        if _find(self.__module__, _name(self)) is self:
            return _begin, (type(self), self._anchor), self._sender
        return _begin, (type(self),), (self.python_function, self._options)

    def __setstate__(self, sent: Callable[[], _Parts] | _Parts) -> None:
        if callable(sent):
            if _owner(sent) is self:
                return
            sent = sent()
        self.__init__(sent[0], **sent[1])

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return another one, of the copied function: a method of the copied object."""
        return type(self)(copy.deepcopy(self.python_function, memo), **self._options)


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
