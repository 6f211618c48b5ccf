"""Properties that only return an attribute."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


def getter(name: str, doc: str, change: Callable[[Any], Any] | None = None) -> property:
    """Return a property that reads an attribute, or one of an attribute: "a.b"."""
    read = operator.attrgetter(name)
    return property(read if change is None else lambda self: change(read(self)), doc=doc)
