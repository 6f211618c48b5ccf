"""How arguments are given to a concrete function: by place or name, as its function takes them.

What was not a tensor in the signature need not be given, and is refused if it is another one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, final

from jaxvars.tf import nest
from jaxvars.tf.functions.arguments import is_spec


class Parameter(NamedTuple):
    """A parameter.

    Attributes:
        name: what it is called.
        kind: how it is given, by the name that `inspect.Parameter` has for that.
        type_constraint: what may be given: a `tf.TensorSpec`, a value, or a structure of them.
        optional: whether it may be left out.
    """

    name: str
    kind: str
    type_constraint: Any
    optional: bool


class FunctionType(NamedTuple):
    """What a concrete function takes and returns.

    Attributes:
        parameters: by name.
        output: the result, with a `tf.TensorSpec` for each tensor.
    """

    parameters: Mapping[str, Parameter]
    output: Any


@final
class Parameters:
    """The parameters of a concrete function."""

    def __init__(
        self, names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any], only_by_place: bool
    ) -> None:
        self._count, self._keywords = len(names), list(kwargs)
        kind = "POSITIONAL_ONLY" if only_by_place else "POSITIONAL_OR_KEYWORD"
        placed = [(name, kind, value) for name, value in zip(names, args, strict=True)]
        self.rows = placed + [(name, "KEYWORD_ONLY", value) for name, value in kwargs.items()]

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        of_python = inspect.Parameter
        return inspect.Signature(
            [of_python(n, getattr(of_python, kind), default=n) for n, kind, _ in self.rows]
        )

    def kinds(self, bare: Callable[[Any], Any]) -> dict[str, Parameter]:
        """Return all, by name."""
        return {
            name: Parameter(name, kind, bare(value), not _has_specs(value))
            for name, kind, value in self.rows
        }

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], fit: Callable[[Any, Any], Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return all arguments, those that are given and the others."""
        given = self._signature.bind(*args, **kwargs).arguments
        values: list[Any] = []
        for name, _, mine in self.rows:
            if name not in given and _has_specs(mine):
                raise TypeError(f"missing a required argument: {name!r}")
            values.append(fit_structure(given.get(name, mine), mine, fit))
        named = zip(self._keywords, values[self._count :], strict=True)
        return tuple(values[: self._count]), dict(named)


def _has_specs(value: Any) -> bool:
    return any(map(is_spec, nest.flatten(value)))


def fit_structure(value: Any, mine: Any, fit: Callable[[Any, Any], Any]) -> Any:
    """Return an argument, or a part of one, as it is wanted."""
    if not nest.is_nested(mine):
        return fit(value, mine)
    if not nest.is_nested(value) or len(nest._parts(value)) != len(nest._parts(mine)):
        _refuse(value, mine)
    if isinstance(mine, dict) and (not isinstance(value, Mapping) or set(mine) != set(value)):
        _refuse(value, mine)
    pairs = zip(nest._parts(value), nest._parts(mine), strict=True)
    return nest._like(mine, [fit_structure(part, inner, fit) for part, inner in pairs])


def _refuse(value: Any, mine: Any) -> NoReturn:
    kind = "a Dict" if isinstance(mine, dict) else type(mine).__name__
    raise TypeError(f"Can not cast {value!r} to {kind} type.")
