"""Hints: declared properties of a linear operator, the last arguments of each constructor."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

Hint: TypeAlias = bool | None
Hints: TypeAlias = dict[str, Any]

HINTS = ("is_non_singular", "is_self_adjoint", "is_positive_definite", "is_square")
_ARGUMENTS = {  # their types, and what they are
    "is_non_singular": ("Hint", "whether it has an inverse."),
    "is_self_adjoint": ("Hint", "whether it equals its adjoint."),
    "is_positive_definite": ("Hint", "whether it is positive definite."),
    "is_square": ("Hint", "whether it has as many rows as columns."),
    "assert_proper_shapes": ("bool", "accepted; shapes are always checked."),
    "name": ("str | None", "what it is called."),
}


def hinted(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a constructor: its `**hints` become arguments, which may be given by position.

    Args:
        defaults: those of the hints that are not None, and that of the name if it is not the name
            of the class.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function)
        own = list(signature.parameters.values())[:-1]
        name = {"name": function.__qualname__.partition(".")[0]}
        given: dict[str, Any] = dict.fromkeys(HINTS) | name | defaults
        more = [
            inspect.Parameter(name, own[0].kind, default=given[name], annotation=kind)
            for name, (kind, _) in _ARGUMENTS.items()
            if name in given
        ]
        signature = signature.replace(parameters=[*own, *more])

        @functools.wraps(function)
        def start(*args: Any, **kwargs: Any) -> None:
            found = signature.bind(*args, **kwargs)
            found.apply_defaults()
            function(**found.arguments)

        vars(start)["__signature__"] = signature
        return start

    return decorate


def document(kind: type) -> None:
    """Add the hints to the arguments in a class's docstring, but those it has itself."""
    words, end, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n\nRaises:")
    own: list[str] = []
    said: dict[str, str] = {}
    for line in words.split("\n"):
        name = line.strip().partition(":")[0]
        if name in _ARGUMENTS:
            said[name] = line
        else:
            own.append(line)
    names = [name for name in inspect.signature(kind).parameters if name in _ARGUMENTS]
    lines = [said.get(name, f"    {name}: {_ARGUMENTS[name][1]}") for name in names]
    kind.__doc__ = "\n".join([*own, *lines]) + end + rest


def always(hint: Hint, words: str) -> bool:
    """Return True; raise ValueError if a hint is False."""
    if hint is False:
        raise ValueError(words)
    return True


def imply(hints: Hints, name: str, words: str) -> None:
    """Make a hint True; raise ValueError if it is False."""
    hints[name] = always(hints[name], words)
