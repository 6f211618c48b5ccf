"""By which paths compiled functions reach their variables, and what they do not have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from jaxvars.advice import instead_of
from jaxvars.compiler.executable import Executable, cells_of
from jaxvars.core.frame import Owner, cells_in
from jaxvars.core.traversal import Holder

_CLOSED = (type, FunctionType, BuiltinFunctionType, ModuleType)


def no_attribute(fn: Any, name: str) -> AttributeError:
    """Return the error for an attribute that a compiled function does not have."""
    hint = instead_of(name, "Function")
    return AttributeError(f"{type(fn).__name__!r} object has no attribute {name!r}.{hint}")


def paths_from(fn: Any, arguments: Mapping[str, object], entry: Executable) -> dict[int, str]:
    """Return the paths of the variables that a function's program uses, by their cells' keys.

    Those of its own object begin at it; others with the name of an argument or global, as in
    `model/layers/0/w`. A variable that has a name there is known by the name that it was given.
    Modules are looked through first, and no more when all are found.
    """
    while isinstance(fn, functools.partial):
        fn = fn.func
    found, left = dict[int, str](), {cell.key for cell in cells_of(entry)}
    own: dict[str, object] = {"": getattr(fn, "__self__", fn), **arguments}
    names: dict[str, object] = {}
    with suppress(TypeError, ValueError):  # not written in Python, or a cell is still empty
        known = inspect.getclosurevars(inspect.unwrap(fn))
        names = {**known.globals, **known.nonlocals}
    roots = {**own, **names, **own}.items()  # its own are first, and win
    for name, root in sorted(roots, key=lambda item: not isinstance(item[1], Holder | Owner)):
        if not left:
            break
        if not isinstance(root, _CLOSED):
            with suppress(Exception):  # it cannot be walked
                _find_paths(name, root, left, found)
    return found


def _find_paths(name: str, root: object, left: set[int], found: dict[int, str]) -> None:
    for path, cell in cells_in(root):
        if cell.key in left:
            start = (name,) if name not in ("self", "") and path else ()
            found[cell.key] = "/".join((*start, *path)) or cell.name
            left.remove(cell.key)
        if not left:
            return
