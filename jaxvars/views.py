"""The socket for what shows objects: a class has views by name, which other files register.

    class Variable(Viewed): ...                       # what is shown knows nothing of it
    register(Variable, string=describe, sketch=draw)    # `sketches.py`

Views of a class are those of the classes below it, unless they have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxvars.display.table import Table as Table
else:
    Table = Any

_VIEWS: dict[tuple[type, str], Callable[..., Any]] = {}


def register(kind: type, **views: Callable[..., Any]) -> None:
    """Give the objects of a class some views, by name: functions of an object."""
    _VIEWS.update({(kind, name): view for name, view in views.items()})


def view(shown: object, name: str, *args: Any) -> Any:
    """Return what a view makes of an object.

    >>> class Point(Viewed):
    ...     x = 1.5
    >>> register(Point, string=lambda point: f"Point({point.x})")
    >>> view(Point(), "string"), repr(Point())
    ('Point(1.5)', 'Point(1.5)')
    """
    known = (_VIEWS.get((kind, name)) for kind in type(shown).__mro__)
    return next(filter(None, known))(shown, *args)


class Viewed:
    """An object that shows itself by the views of its class, also in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return view(self, "string")

    def __sketch__(self) -> Any:
        return view(self, "sketch")

    def _repr_html_(self) -> str:
        return view(self, "html")


class Structured(Viewed):
    """An object that is also shown by its parts, as by rich and treescope."""

    __slots__ = ()

    def __rich_repr__(self) -> Iterator[Any]:
        return view(self, "fields")

    def __treescope_repr__(self, path: Any, subtree_renderer: Any) -> Any:
        return view(self, "treescope", path, subtree_renderer)
