"""The user's lines: in messages, and in tracebacks without those of jaxvars and JAX in between.

JAXVARS_TRACEBACK=full in the environment shows all of them.
"""

from __future__ import annotations

import dis
import inspect
import os
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar, cast

E = TypeVar("E", bound=BaseException)

_RAISE = dis.opmap["RAISE_VARARGS"]


# ---------------------------------------------------------------- whose code it is
def package_of(namespace: Mapping[str, Any]) -> str:
    """Return the top package of code with these globals; "" where they have no module's name.

    It is asked for the module's name: in a frozen program the names of files are relative.
    """
    return str(namespace.get("__name__") or "").partition(".")[0]


def is_library(namespace: Mapping[str, Any], filename: str) -> bool:
    """Return whether code with these globals, in a file, is a library's, not the user's."""
    package = package_of(namespace)
    if package in _OURS or filename.startswith(_LIBRARIES) or "site-packages" in filename:
        return True
    may_be_users = Path(filename).is_absolute() and not _IS_FROZEN
    return package in sys.stdlib_module_names and not may_be_users  # of the same name


_OURS = ("jaxvars", "jax")
_COMPILED = "<a compiled"  # code that is written for compiled functions
_IS_FROZEN = hasattr(sys, "frozen")  # then the user's modules are in Python's folder
_LIBRARIES = (_COMPILED,) if _IS_FROZEN else (_COMPILED, str(Path(os.__file__).parent))


def _is_hidden(frame: FrameType) -> bool:
    is_compiled = frame.f_code.co_filename.startswith(_COMPILED)
    return is_compiled or package_of(frame.f_globals) in (*_OURS, "contextlib")


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
        if not _is_hidden(traceback.tb_frame):
            kept.append(traceback)
        traceback = traceback.tb_next
    for each in reversed(kept):
        traceback = TracebackType(traceback, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return traceback


def render(error: BaseException) -> list[str]:
    """Return what IPython shows of an error: the traceback of the user's lines."""
    shorten(error)
    return find_shell().InteractiveTB.structured_traceback(type(error), error, error.__traceback__)


def shown(error: E) -> E:
    """Return an error of Python's own class that IPython shows so, too."""
    vars(error)["_render_traceback_"] = _render_last  # which keeps nothing alive
    return error


def _render_last() -> list[str]:
    return render(cast("BaseException", sys.last_value))  # IPython has set it when it asks


# ---------------------------------------------------------------- the user's line, for messages
def find_user_frame() -> FrameType | None:
    """Return the innermost frame of the stack that is the user's, not a library's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_library(frame.f_globals, frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """Return "file.py:12, in f" of the user's line that led here."""
    frame = find_user_frame()
    return "an unknown line" if frame is None else line_in(frame.f_code, frame.f_lineno)


def jax_calls() -> list[list[str]]:
    """Return the names of JAX's functions on the stack, innermost first, in unbroken runs."""
    frames = (frame for frame, _ in walk_stack(None))
    runs = groupby(frames, lambda frame: package_of(frame.f_globals) == "jax")
    return [[frame.f_code.co_name for frame in run] for is_jax, run in runs if is_jax]


def line_in(code: CodeType, line: int) -> str:
    """Return "file.py:12, in f" of a line of some code."""
    return f"{_name_place(code, line)}, in {code.co_name}"


def _name_place(code: CodeType, line: int) -> str:
    """Return "file.py:12", or "Cell In[2], line 3" as IPython says it."""
    shell = find_shell()
    cell = shell and shell.compile.format_code_name(code.co_filename)
    return f"{' '.join(cell)}, line {line}" if cell else f"{Path(code.co_filename).name}:{line}"


def find_shell() -> Any:
    """Return the IPython that this runs in, or None."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def line_of(error: BaseException) -> str:
    """Return "file.py:12, in f" of the user's line where an error was raised."""
    line, traceback = "an unknown line", error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if not is_library(frame.f_globals, frame.f_code.co_filename):
            line = line_in(frame.f_code, traceback.tb_lineno)
        traceback = traceback.tb_next
    return line


def frame_of_raise(error: BaseException) -> FrameType | None:
    """Return the frame of the `raise` or `assert` that an error comes from; None of other code."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return None
    frame = traceback.tb_frame
    return frame if frame.f_code.co_code[traceback.tb_lasti] == _RAISE else None


def is_raised_by_user(error: BaseException) -> bool:
    """Return whether it comes from a `raise` or `assert` outside of jaxvars and JAX."""
    frame = frame_of_raise(error)
    return frame is not None and not _is_hidden(frame)


def line_of_function(fn: object) -> str:
    """Return "file.py:12" of the line where a function is defined."""
    code = getattr(inspect.unwrap(fn) if callable(fn) else fn, "__code__", None)
    return _name_place(code, code.co_firstlineno) if code else "an unknown line"
