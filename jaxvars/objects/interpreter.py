"""What the interpreter does right for one thread at a time only: imports and syntax trees.

- Two threads, one of which imports a package while the other imports a file of it, wait for each
  other: Python finds that and raises in one of them. So what is imported when it is first used,
  which several threads of a server do at once, is imported by `load`. (Two threads that each
  import `jaxvars` and `jaxvars.tf` by a statement are Python's own affair.)
- Two threads that make syntax trees at once get a SystemError on some releases of Python.

Rules this file keeps:
- who runs the body of a module of ours, which Python has locked, never waits for the lock here: a
  thread that has it may wait for that module;
- a process is not forked while another thread has the lock: the child could not release it.
"""

from __future__ import annotations

import ast
import importlib
import os
import sys
import threading
from types import ModuleType
from typing import Any

_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )
_PARSING = threading.RLock()
_LOADED: dict[str, ModuleType] = {}  # modules whose bodies have run


def load(name: str) -> ModuleType:
    """Import a module of this package by its name, when it is first used."""
    if (known := _LOADED.get(name)) is not None:
        return known
    if _is_in_body():
        return importlib.import_module(name)
    with _LOCK:
        return _LOADED.setdefault(name, importlib.import_module(name))


def _is_in_body() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))  # `exec` may give a namespace without one
        if frame.f_code.co_name == "<module>" and name.startswith("jaxvars"):
            return True
        frame = frame.f_back
    return False


def parse_source(source: str, mode: str = "exec") -> Any:
    """Return the syntax tree of a source."""
    with _PARSING:
        return ast.parse(source, mode=mode)
