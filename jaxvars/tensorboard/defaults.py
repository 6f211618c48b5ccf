"""The defaults of `jv.tensorboard`: the writer, the step, and whether to write.

Rules this file keeps:
- a default is the process's, not a thread's: a callback of a compiled program, which runs in a
  thread of XLA's, finds the one that its caller has;
- a default that is set inside of a function that is traced belongs to its program.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, final

from jaxvars.core.frames import LOCAL
from jaxvars.errors import CompileError, user_line
from jaxvars.tracing import context


class Setting(NamedTuple):
    """A value of a default.

    Attributes:
        value: what it is.
        traced: whether it was set by a `with` in a function that is being traced.
    """

    value: Any
    traced: bool


@final
class Default:
    """A default: one value for the process, and those of the open `with`s above it."""

    __slots__ = ("_settings", "_what")

    def __init__(self, what: str, value: Any) -> None:
        self._what = what
        self._settings = [[Setting(value, False)]]  # lists, which are told apart by identity

    @property
    def setting(self) -> Setting:
        """What it is now."""
        return self._settings[-1][0]

    def set(self, value: Any) -> None:
        """Set it until it is set again, or until the open `with` ends.

        Raises:
            CompileError: inside a function that is traced, where it would happen once.
        """
        if is_tracing():
            raise CompileError(
                f"The default {self._what} is set at {user_line()} while a function is traced: "
                "that would happen once, and not each time the program runs. Set it outside, or "
                "say it in the call: jv.tensorboard.scalar(name, value, step=step)."
            )
        self._settings[-1][0] = Setting(value, False)

    @contextmanager
    def set_to(self, value: Any) -> Generator[None]:
        """Set it inside of a `with`."""
        level = [Setting(value, is_tracing())]
        self._settings.append(level)
        try:
            yield
        finally:  # not the last one if another thread has opened a `with` meanwhile
            self._settings[:] = [known for known in self._settings if known is not level]


def is_tracing() -> bool:
    """Return whether a function is being traced: what is called now runs later."""
    return LOCAL.frame is not LOCAL.eager or context.is_staging()


WRITER = Default("writer", None)
STEP = Default("step", None)
CONDITION = Default("condition", True)
