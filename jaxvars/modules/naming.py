"""What messages call a variable of a Module: by its path, which is longer than most names."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, ref

from jaxvars.core.cells import Cell
from jaxvars.core.variable import DEFAULT_NAME, Variable
from jaxvars.errors import CALLED
from jaxvars.modules.module import Module, named_variables

_Place: TypeAlias = "tuple[ref[Module] | None, str]"
_KNOWN: WeakKeyDictionary[Cell, _Place] = WeakKeyDictionary()


def install() -> None:
    """Have errors call variables by their paths."""
    CALLED[:] = [_find_path]


def is_unnamed(cell: Cell) -> bool:
    """Return whether a variable was made without an explicit name."""
    return cell.name.rpartition("/")[2] == DEFAULT_NAME


def _find_path(cell: Cell) -> str:
    """Return the path of a variable in the outermost Module alive; or its name, if that says more.

    It is for messages: the modules are looked for among all objects, and again when it has moved.

    >>> import jaxvars as jv
    >>> class Net(jv.Module):
    ...     def __init__(self):
    ...         self.layers = [jv.Variable(0.0), jv.Variable(1.0, name="scale")]
    >>> net = Net()
    >>> [_find_path(v._cell) for v in net.variables]
    ['layers/0', 'layers/1']
    >>> adam = jv.optimizers.Adam(0.1)
    >>> _find_path(adam.learning_rate._cell)
    'adam/learning_rate'
    """
    if cell not in _KNOWN or not _is_there(cell, *_KNOWN[cell]):
        _KNOWN.update({cell: (None, cell.name)} | _find_paths())
    path = _KNOWN[cell][1]
    says_more = cell.name.endswith(f"/{path}") or not (is_unnamed(cell) or "/" in path)
    return cell.name if says_more else path


def _find_paths() -> dict[Cell, _Place]:
    """Return the longest path of each variable in a Module, and the Module."""
    found: dict[Cell, _Place] = {}
    kinds = _kinds(Module)
    for module in [x for x in gc.get_objects() if type(x) in kinds]:
        for path, variable in _variables_in(module).items():
            cell = variable._cell
            if cell not in found or path.count("/") > found[cell][1].count("/"):
                found[cell] = ref(module), path
    return found


def _kinds(kind: type[Module]) -> set[type[Module]]:
    return {kind}.union(*map(_kinds, kind.__subclasses__()))


def _is_there(cell: Cell, root: ref[Module] | None, path: str) -> bool:
    """Return whether a variable is where it was found; one that was in no Module still is not."""
    if root is None or getattr(_follow(root(), path), "_cell", None) is cell:
        return True
    return getattr(_variables_in(root()).get(path), "_cell", None) is cell  # a slot, or a proxy


def _follow(value: Any, path: str) -> Any:
    """Return what is at a path of attributes, keys and positions; None if there is nothing."""
    with suppress(Exception):
        for part in path.split("/"):
            if isinstance(value, list | tuple):
                value = value[int(part)]
            else:
                value = (value if isinstance(value, dict) else vars(value))[part]
        return value
    return None


def _variables_in(module: Module | None) -> dict[str, Variable]:
    with suppress(Exception):  # another thread changes it now, or what is in it raises
        return named_variables(module)
    return {}
