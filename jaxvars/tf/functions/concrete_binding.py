"""How arguments are given to a concrete function: by place or name, as its function takes them.

Rules this file keeps:
- what was not a tensor in the signature need not be given, and is refused if it is another one;
- errors are worded as TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, final

from jaxvars.tf import nest
from jaxvars.tf.functions.arguments import is_spec
from jaxvars.tf.functions.function_type import Parameter

_MISSING = object()


@final
class Parameters:
    """The parameters of a concrete function.

    Args:
        names: of the positional ones.
        args: their values, with specs for tensors.
        kwargs: those that are given by name only.
        only_by_place: whether positional ones cannot be given by name: there may be more of them.
    """

    def __init__(
        self, names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any], only_by_place: bool
    ) -> None:
        self._names, self._args, self._kwargs = names, args, kwargs
        self._only_by_place = only_by_place

    def rows(self) -> Iterator[tuple[str, str, Any]]:
        """Yield the name, kind and value of each."""
        kind = "POSITIONAL_ONLY" if self._only_by_place else "POSITIONAL_OR_KEYWORD"
        for name, value in zip(self._names, self._args, strict=True):
            yield name, kind, value
        for name, value in self._kwargs.items():
            yield name, "KEYWORD_ONLY", value

    def kinds(self, bare: Callable[[Any], Any]) -> Mapping[str, Parameter]:
        """Return all, by name."""
        return {
            name: Parameter(name, kind, bare(value), not _has_specs(value))
            for name, kind, value in self.rows()
        }

    def bound(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], fit: Callable[[Any, Any], Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return all arguments, those that are given and the others.

        Args:
            args: given by place.
            kwargs: given by name.
            fit: returns what is given for a spec or value, or raises TypeError.

        Raises:
            TypeError: when they do not fit.
        """
        if len(args) > len(self._names):
            raise TypeError("too many positional arguments")
        words = dict(kwargs)
        values = [
            fitted(self._one(i, name, args, words), mine, fit)
            for i, (name, mine) in enumerate(zip(self._names, self._args, strict=True))
        ]
        rest = {
            name: fitted(self._given(name, mine, words), mine, fit)
            for name, mine in self._kwargs.items()
        }
        for name in words:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
        return tuple(values), rest

    def _one(self, i: int, name: str, args: tuple[Any, ...], words: dict[str, Any]) -> Any:
        if i >= len(args):
            return self._given(name, self._args[i], {} if self._only_by_place else words)
        if name in words and not self._only_by_place:
            raise TypeError(f"multiple values for argument {name!r}")
        return args[i]

    @staticmethod
    def _given(name: str, mine: Any, words: dict[str, Any]) -> Any:
        value = words.pop(name, _MISSING)
        if value is not _MISSING:
            return value
        if _has_specs(mine):
            raise TypeError(f"missing a required argument: {name!r}")
        return mine


def _has_specs(value: Any) -> bool:
    return any(map(is_spec, nest.flatten(value)))


def fitted(value: Any, mine: Any, fit: Callable[[Any, Any], Any]) -> Any:
    """Return an argument, or a part of one, as it is wanted."""
    if not nest.is_nested(mine):
        return fit(value, mine)
    if not nest.is_nested(value) or len(value) != len(mine):
        _refuse(value, mine)
    if isinstance(mine, dict) and (not isinstance(value, Mapping) or set(mine) != set(value)):
        _refuse(value, mine)
    pairs = zip(nest._parts(value), nest._parts(mine), strict=True)
    return nest._like(mine, [fitted(part, inner, fit) for part, inner in pairs])


def _refuse(value: Any, mine: Any) -> NoReturn:
    kind = "a Dict" if isinstance(mine, dict) else type(mine).__name__
    raise TypeError(f"Can not cast {value!r} to {kind} type.")
