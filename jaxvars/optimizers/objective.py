"""`Objective`: a loss as a function of values, for transformations that search along a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NoReturn, final

from jaxvars.core.cells import Cell, without_signals
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import Staged, stage
from jaxvars.errors import ControlFlowError, called, user_line
from jaxvars.tracing import context
from jaxvars.typing import Array


@final
class NoObjectiveError(TypeError):
    """A transformation calls `value_fn`, and was not given any."""


def ask_for_objective(*_: Any, **__: Any) -> NoReturn:
    """Stand for `value_fn` where none is given."""
    raise NoObjectiveError(
        "The transformation evaluates the loss at other values, as a line search does: give "
        "minimize a function that computes the loss, `minimize(lambda: ..., variables)`, without a "
        "tape; or apply_gradients a function of the values by name, `value_fn=`."
    )


@final
class Objective:
    """The loss of `minimize` as a function of the values of its variables, by name.

    It is traced at its first call, outside of the loop that calls it. Most transformations do not.
    """

    def __init__(self, loss: Callable[[], Any]) -> None:
        self._loss, self._here = loss, context.current()
        self.cells: Mapping[str, Cell] = {}

    def __call__(self, params: Mapping[str, Array]) -> Array:
        staged, others = self._traced
        mine = {self.cells[name].key: value for name, value in params.items()}
        pairs = zip(staged.reads, others, strict=True)
        return staged.function()(*[mine.get(cell.key, other) for cell, other in pairs])[0]

    @cached_property
    def _traced(self) -> tuple[Staged, list[Array]]:
        """The program of the loss, and the values of all variables that it reads."""
        with context.at(self._here):
            staged = stage(self._loss, (), _CREATES)
            if written := without_signals(staged.writes):
                raise ControlFlowError(
                    f"The transformation of the update at {user_line()} evaluates the loss again, "
                    f"and the loss assigns variable {called(written[0])!r}, as random draws and "
                    "moving statistics do. Draw outside of the loss, and compute it as in "
                    "evaluation, with training=False; or use a transformation without a line "
                    "search."
                )
            return staged, LOCAL.frame.read_all(staged.reads)


_CREATES = "The loss of a line search tried to create a variable: call it once before."
