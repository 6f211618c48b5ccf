"""What messages call a variable that was given no name: by its path in the user's modules."""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import TypeAlias
from weakref import WeakKeyDictionary, ref

from jaxvars.core.cells import Cell
from jaxvars.core.variable import DEFAULT_NAME, Variable
from jaxvars.errors import CALLED
from jaxvars.modules.module import Module, named_variables

_Place: TypeAlias = "tuple[ref[Module] | None, str]"
_KNOWN: WeakKeyDictionary[Cell, _Place] = WeakKeyDictionary()


def install() -> None:
    """Have errors call variables by their paths."""
    CALLED[:] = [called]


def is_unnamed(cell: Cell) -> bool:
    """Return whether a variable was made without an explicit name."""
    return cell.name.rpartition("/")[2] == DEFAULT_NAME


def called(cell: Cell) -> str:
    """Return the name of a variable; of one without, the path in the outermost Module alive.

    It is for messages: the modules are looked for among all objects, and again when it has moved.

    >>> import jaxvars as jv
    >>> class Net(jv.Module):
    ...     def __init__(self):
    ...         self.layers = [jv.Variable(0.0), jv.Variable(1.0, name="scale")]
    >>> net = Net()
    >>> [called(v._cell) for v in net.variables]
    ['layers/0', 'scale']
    """
    if not is_unnamed(cell):
        return cell.name
    if cell not in _KNOWN or not _is_there(cell, *_KNOWN[cell]):
        _KNOWN.update({cell: (None, cell.name)} | _find_paths())
    return _KNOWN[cell][1]


def _find_paths() -> dict[Cell, _Place]:
    """Return the longest path of each variable in a Module, and the Module."""
    found: dict[Cell, _Place] = {}
    for module in [x for x in gc.get_objects() if Module in type(x).__mro__]:
        for path, variable in _variables_in(module).items():
            cell = variable._cell
            if cell not in found or path.count("/") > found[cell][1].count("/"):
                found[cell] = ref(module), path
    return found


def _is_there(cell: Cell, root: ref[Module] | None, path: str) -> bool:
    """Return whether a variable is where it was found; one that was in no Module still is not."""
    return root is None or getattr(_variables_in(root()).get(path), "_cell", None) is cell


def _variables_in(module: Module | None) -> dict[str, Variable]:
    with suppress(Exception):  # another thread changes it now, or what is in it raises
        return named_variables(module)
    return {}
