"""Processes that were forked after JAX had been used: what computes in them says so.

JAX's threads are not there, so it would wait for them forever. What has been computed can be read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from jaxvars.core import store
from jaxvars.core.cells import STORE, Cell
from jaxvars.core.failures import is_ready
from jaxvars.core.frame import FAST_PATH_BLOCKERS
from jaxvars.errors import ExecutionError, called, user_line
from jaxvars.tracing.guards import GUARDS, READ, SHOW, TAKE, WRITE

_RANK = 0  # nothing may compute first
_TAKEN = "Variable {!r}, which was still being computed, is read"
_DOINGS: dict[object, str] = {
    READ: "Variable {!r} is read to compute with it",
    TAKE: _TAKEN,
    SHOW: _TAKEN,
    WRITE: "Variable {!r} is written",
}


def _refuse(doing: object, cells: Sequence[Cell]) -> bool:
    """Raise ExecutionError, but where a value is taken that is there; return True then."""
    left = [cell for cell in cells if not _is_there(cell)] if doing in (TAKE, SHOW) else cells
    if doing in _DOINGS and not left:
        return True
    what = _DOINGS[doing].format(called(left[0])) if doing in _DOINGS else doing
    raise ExecutionError(
        f"{what} at {user_line()} in a process that was forked after JAX had been used. JAX's "
        "threads are not there, so it would wait forever. Use processes that are spawned:\n"
        '    multiprocessing.get_context("spawn").Pool()    # or .Process(...)\n'
        "or fork before JAX is used. Values of variables can be read here, as with v.numpy()."
    )


def _is_there(cell: Cell) -> bool:
    value = STORE.get(cell.key)
    return value is None or isinstance(value, np.ndarray) or is_ready(value)


def _begin() -> None:
    """Keep the values in a process that was just forked, and refuse to compute."""
    if store.adopt_values():
        GUARDS.clear()  # what others do takes computing
        GUARDS[_RANK] = _refuse
        FAST_PATH_BLOCKERS[0] = _refuse  # compiled functions take the slow way, which asks


def install() -> None:
    """Guard the processes that are forked from now on."""
    if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has none
        os.register_at_fork(after_in_child=_begin)
