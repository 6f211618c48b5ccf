"""Which names a module makes public: what `dir` lists, for completion, and the page of names shows.

Rules this file keeps:
- public is what a module defines, re-exports (`from x import name as name`), or has in `__all__`;
- what a module imports for itself is not, nor are its tables.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from jaxvars.display.strings import did_you_mean
from jaxvars.objects.interpreter import parse_source
from jaxvars.tf.registry.absent import reason

HOMES: dict[str, str] = {}
"""The modules of operations, by their full names and aliases; `registry/rows.py` fills it."""


def lister(module: str, others: Iterable[str] = ()) -> Callable[[], list[str]]:
    """Return a module's `__dir__`: its own names and those of operations, for completion.

    `others` are names that its `__getattr__` knows besides.
    """
    space = module.removeprefix("jaxvars.tf").removeprefix(".")

    def listed() -> list[str]:
        own = operations_in(space)
        named = vars(sys.modules[module]).get("__all__", ())
        return sorted({*list_defined(module), *own, *others, *named})

    return listed


def namespace(
    module: str, others: Iterable[str] = (), find: Callable[[str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a module's `__getattr__` and `__dir__`: an unknown name is answered with a near one.

    Args:
        module: its `__name__`.
        others: names that are there besides its own and those of operations.
        find: returns the value of another name, or raises AttributeError.
    """
    space, listed = module.removeprefix("jaxvars."), lister(module, others)

    def attribute(name: str) -> Any:
        if find is not None:
            return find(name)
        raise not_there(space, name, listed)

    return attribute, listed


def not_there(space: str, name: str, known: Callable[[], list[str]]) -> AttributeError:
    """Return the error for a name that a namespace has not: why it is not there, or a near one.

    >>> print(not_there("tf.nn", "erosion2d", list))
    tf.nn has no attribute 'erosion2d': use -tf.nn.max_pool2d(-x, ...), for a flat filter.
    """
    message = f"{space} has no attribute {name!r}"
    if name.startswith("__"):  # Python asks often
        return AttributeError(f"{message}.")
    if why := reason(f"{space}.{name}".removeprefix("tf.")):
        return AttributeError(f"{message}: {why}")
    return AttributeError(f"{message}.{did_you_mean(name, known())}")


def operations_in(space: str) -> list[str]:
    """Return the operations of a namespace, "" for `tf` itself."""
    found = [name.rpartition(".") for name in tuple(HOMES)]  # which an import adds to
    return sorted(name for where, _, name in found if where == space)


@functools.cache
def list_defined(module: str) -> frozenset[str]:
    """Return the names that a module makes public itself.

    Args:
        module: its `__name__`.

    >>> import jaxvars.tf.version
    >>> sorted(list_defined("jaxvars.tf.version"))[-1]
    'VERSION'
    """
    try:
        tree = parse_source(inspect.getsource(sys.modules[module]))
        found = {name for node in tree.body for name in _list_names(node)}
    except OSError:  # it is shipped without
        found = set(vars(sys.modules[module]))
    return frozenset(name for name in found if not name.startswith("_"))


def _list_names(node: ast.stmt) -> list[str]:
    """Return the names that a statement makes public."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names if alias.asname == alias.name]
    if isinstance(node, ast.Assign):
        parts = [part for target in node.targets for part in ast.walk(target)]
        stored = [x for x in parts if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)]
        names = [part.id for part in stored]
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        is_constant = all(isinstance(value, ast.Constant) for value in values)
        return [name for name in names if is_constant or not name.isupper()]
    return []
