"""`FlaxModule`: what the Modules around linen and nnx modules have in common.

Rules this file keeps:
- variables are attributes, in dicts in dicts, so that their paths are flax's own;
- what is flax's is `Kept`: it is neither copied nor searched for variables.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jaxvars.core.module import Module
from jaxvars.errors import InteropError
from jaxvars.interop.form import Kept, Path

_OWN = {"_name", "_flax", "_forms", "_method", "_sources", "_sown"}


class FlaxModule(Module, ABC):
    """A flax module whose state is variables: what `interop.from_flax` makes.

    Its variables are attributes, with flax's own paths. Methods and fields of the flax module
    are reached through it: `model.encode(x)` is `model.call("encode", x)`.
    """

    _flax: Kept

    def __init__(self, flax: Any) -> None:
        super().__init__()
        self._flax = Kept(flax)

    @property
    def name(self) -> str:
        """What it is called: the flax module's class, in small letters."""
        return self._kind().__name__.lower()

    @abstractmethod
    def _kind(self) -> type:
        """Return the class of the flax module."""

    @abstractmethod
    def call(self, method: str | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the flax module, by name, or a function of it.

        Args:
            method: a name like "encode", or a function that takes the flax module first.
            *args: passed on.
            **kwargs: passed on.
        """

    @abstractmethod
    def to_flax(self, *, bound: bool = False) -> Any:
        """Return the state as flax has it; see `interop.to_flax`."""

    @abstractmethod
    def _field(self, name: str) -> Any:
        """Return an attribute of the flax module that is not a method, or raise AttributeError."""

    @abstractmethod
    def _refused(self, name: str) -> str | None:
        """Return why an attribute of the flax module cannot be reached, or None."""

    def __getitem__(self, name: str) -> Any:
        """Return the dict of variables, or the variable, of a name at the top."""
        found = vars(self).get(name) if name not in _OWN else None
        if found is None:
            raise KeyError(f"There is no {name!r} in this model; there are {self._tops()}.")
        return found

    def __getattr__(self, name: str) -> Any:
        # Only reached when there is no such attribute, and no variables of that name.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")
        kind = self._kind()
        if reason := self._refused(name):
            raise AttributeError(reason)
        if callable(getattr(kind, name, None)):
            return functools.partial(self.call, name)
        try:
            return self._field(name)
        except AttributeError:
            raise AttributeError(
                f"Neither this model nor its {kind.__name__} has an attribute {name!r}; its "
                f"variables are under {self._tops()}."
            ) from None

    def __dir__(self) -> Iterable[str]:
        return sorted({*super().__dir__(), *dir(self._kind())})

    def __rich_repr__(self) -> Iterator[Any]:
        yield self._kind().__name__
        for name in self._tops():
            yield name, vars(self)[name]

    def _tops(self) -> list[str]:
        return sorted(name for name in vars(self) if name not in _OWN)


def check_tops(paths: Iterable[Path], *own: str) -> None:
    """Refuse paths whose first name a model needs for itself."""
    for path in paths:
        if not path or path[0] in {*_OWN, *own}:
            raise InteropError(
                f"The flax module has state called {path[0] if path else ''!r}, a name that the "
                "jaxvars Module around it needs for itself. Call it something else."
            )
