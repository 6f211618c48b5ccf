"""What messages call a variable that was given no name: by its path in the user's modules."""

from __future__ import annotations

import gc
from contextlib import suppress
from weakref import WeakKeyDictionary

from jaxvars.core.cells import Cell
from jaxvars.core.variable import DEFAULT_NAME
from jaxvars.errors import CALLED, InteropError
from jaxvars.modules.module import Module, named_variables

_KNOWN: WeakKeyDictionary[Cell, str] = WeakKeyDictionary()


def install() -> None:
    """Have errors call variables by their paths."""
    CALLED[:] = [called]


def is_unnamed(cell: Cell) -> bool:
    """Return whether a variable was made without an explicit name."""
    return cell.name.rpartition("/")[2] == DEFAULT_NAME


def called(cell: Cell) -> str:
    """Return the name of a variable; of one without, the path in the outermost Module alive.

    It is for messages: the modules are looked for among all objects, once for a variable.

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
    if cell not in _KNOWN:
        _KNOWN.update({cell: cell.name} | _find_paths())
    return _KNOWN[cell]


def _find_paths() -> dict[Cell, str]:
    """Return the longest path of each variable in a Module."""
    found: dict[Cell, str] = {}
    for module in [x for x in gc.get_objects() if Module in type(x).__mro__]:
        with suppress(InteropError, RuntimeError):  # or another thread changes it now
            for path, variable in named_variables(module).items():
                found[variable._cell] = max(found.get(variable._cell, ""), path, key=_depth)
    return found


def _depth(path: str) -> int:
    return len(path.split("/")) if path else 0
