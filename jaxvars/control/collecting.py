"""Finalizers that the garbage collector runs: what computes in one is refused.

The collector begins anywhere, also in the middle of JAX's own code, which is not made for it: a
finalizer that calls a jitted function then, also without jaxvars, ends the process. What has been
computed can be read.

Rules this file keeps:
- there is a guard between the collector's start and its stop alone, and for its thread alone, so
  that other calls cost nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from typing import Any

from jaxvars.core.frame import FAST_PATH_BLOCKERS
from jaxvars.errors import ForeignTransformError, called, user_line
from jaxvars.tracing.guards import GUARDS, READ, SHOW, TAKE, WRITE

_RANK = -1  # first: what waits for variables is restored by a guard
_thread = 0  # in which the collector runs


def _follow(phase: str, _: dict[str, int]) -> None:
    global _thread
    if phase == "start":
        _thread = threading.get_ident()
        GUARDS[_RANK] = _refuse
        FAST_PATH_BLOCKERS[_RANK] = _refuse  # compiled functions take the slow way, which asks
    else:
        GUARDS.pop(_RANK, None)
        FAST_PATH_BLOCKERS.pop(_RANK, None)


def _refuse(doing: object, cells: Sequence[Any]) -> bool:
    """Raise ForeignTransformError, but where a value is read; return True then."""
    if threading.get_ident() != _thread or doing in (READ, TAKE, SHOW):
        return threading.get_ident() == _thread
    gc.collect(0)  # nothing while the collector runs; else Ctrl-C has kept `_follow` from its end
    if _RANK not in GUARDS:
        return False
    what = f"Variable {called(cells[0])!r} is written" if doing == WRITE else doing
    raise ForeignTransformError(
        f"{what} at {user_line()} in a finalizer that the garbage collector runs, perhaps in the "
        "middle of JAX's own code, which is not made for it: the process could end. Have the "
        "finalizer note what is gone, and compute afterwards:\n"
        "    gone = queue.SimpleQueue()\n"
        "    def __del__(self):\n        gone.put(self.name)\n"
        "Values of variables can be read here, as with v.numpy()."
    )


def install() -> None:
    """Guard the collections from now on."""
    gc.callbacks.append(_follow)
