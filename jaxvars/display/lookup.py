"""How a loss, metric or initializer is found by name, or by configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from jaxvars.advice import instead_of
from jaxvars.display.strings import did_you_mean
from jaxvars.tracebacks import shown

T = TypeVar("T")


def find_named(
    name: str,
    known: Mapping[str, T],
    kind: str,
    others: Mapping[str, T] | None = None,
    near: Iterable[str] = (),
) -> T:
    """Return what has a name; raise ValueError, with the nearest of those known, for another name.

    Errors call the thing a `kind`, list the names in `known`, and offer those in `near`, too.

    >>> find_named("sgd", {"sgd": 1, "adam": 2}, "optimizer")
    1
    """
    found = {**known, **(others or {})}.get(name)
    if found is None:
        hint = did_you_mean(name, [*known, *near]) or f" There are: {', '.join(sorted(known))}."
        raise ValueError(f"There is no {kind} {name!r}.{hint}")
    return found


def namespace(
    module: str, known: list[str]
) -> tuple[Callable[[str], NoReturn], Callable[[], list[str]]]:
    """Return a module's `__getattr__`, which offers the nearest of its names, and its `__dir__`."""

    def refuse(name: str) -> NoReturn:
        __tracebackhide__ = True  # IPython and pytest leave the frame out
        hint = "" if name[:1] == "_" else instead_of(name, module) or did_you_mean(name, known)
        raise shown(AttributeError(f"{module} has no attribute {name!r}.{hint}"))

    return refuse, lambda: known


def find(
    identifier: Any, base: type, kind: str, known: Mapping[str, Any], others: Mapping[str, Any],
    near: Iterable[str] = (), like: str = '"mse", or a function of y_true and y_pred',
    **config: Any,
) -> Any:  # fmt: skip
    """Return a thing by its name or configuration; an instance of it where it is a class.

    The identifier is a name, a dict of "class_name" and "config", or the thing; see `named`.
    """
    if isinstance(identifier, dict) and "class_name" in identifier:
        make = find_named(identifier["class_name"], known, kind, others, near)
        return make(**{**identifier.get("config", {}), **config})
    is_name = isinstance(identifier, str)
    thing = find_named(identifier, known, kind, others, near) if is_name else identifier
    if isinstance(thing, type) and issubclass(thing, base):
        return thing(**config)
    if thing is None or (callable(thing) and not config):
        return thing
    what = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}{' that takes arguments' * bool(config)}"
    raise TypeError(f"{identifier!r} is not {what}: give a name like {like}.")
