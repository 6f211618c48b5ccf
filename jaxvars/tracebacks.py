"""Tracebacks that show the user's lines, and not those of jaxvars and JAX in between.

JAXVARS_TRACEBACK=full in the environment shows all of them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType

import jax

JAX_FOLDER = str(Path(jax.__file__).parent) + os.sep
_HIDDEN = (
    str(Path(__file__).parent) + os.sep,
    JAX_FOLDER,
    contextlib.__file__,
    "<a compiled",  # code that is written for compiled functions
)


def shorten(error: BaseException | None) -> None:
    """Take the lines of jaxvars and JAX out of the traceback of an error, and of its causes.

    Args:
        error: what is on its way to the user. Nothing is taken out of an interrupt.
    """
    seen: set[int] = set()
    if os.environ.get("JAXVARS_TRACEBACK") == "full":
        return
    while isinstance(error, Exception) and id(error) not in seen:
        seen.add(id(error))
        error.__traceback__ = _shortened(error.__traceback__)
        hidden = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or hidden


def _shortened(traceback: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_HIDDEN):
            kept.append(traceback)
        traceback = traceback.tb_next
    for each in reversed(kept):
        traceback = TracebackType(traceback, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return traceback
