"""Code that interrupts a function while it is traced: signal handlers and finalizers.

Python runs them in the middle of whatever runs. They are no part of the function, so what they do
with variables is done outside of it: they find out here.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from types import CodeType, FrameType


def is_interruption(until: CodeType) -> bool:
    """Return whether this code was called by a signal, or as an object went.

    Args:
        until: of the function below which to look.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not until:
        if frame.f_code.co_name == "__del__" or _is_called_back(frame):
            return True
        frame = frame.f_back
    return False


def _is_called_back(frame: FrameType) -> bool:
    """Return whether a function was given the frame that called it, or a reference to what is gone.

    That is what Python gives to signal handlers and to callbacks of weak references, and hardly
    anybody else to anything.
    """
    code = frame.f_code
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    for name in code.co_varnames[:count]:
        value = frame.f_locals.get(name)
        for part in value if type(value) is tuple else (value,):
            if part is frame.f_back and part is not None:
                return True
            if isinstance(part, weakref.ref) and part() is None and count <= 2:
                return True
    return False
