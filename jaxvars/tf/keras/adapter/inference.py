"""Keras's inference of shapes, which calls what the user writes, and uses the shapes alone.

Rules this file keeps:
- what is assigned is dropped, as the call did not happen: variables and generators of random
  numbers are afterwards what they were;
- a size that is not known, that of a batch, can be used as one: `tf.zeros([tf.shape(x)[0], 3])`;
- variables are made, or refused, as without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar, final

from jaxvars.core.cells import Cell
from jaxvars.core.frame import Frame
from jaxvars.core.frames import LOCAL, within
from jaxvars.symbolic.propagate import follow_sizes
from jaxvars.tracing import context
from jaxvars.tracing.around import AROUND, around
from jaxvars.typing import Array

T = TypeVar("T")


def infers_shapes() -> bool:
    """Return whether Keras infers shapes, and this file has not been told yet."""
    keras = sys.modules.get("keras")
    if keras is None or LOCAL.frame is not LOCAL.eager or not context.is_staging():
        return False
    with keras.SymbolicScope() as probe:
        return probe.original_scope is not None


def infer(run: Callable[[], T]) -> T:
    """Return what a function of the user's returns, for its shapes."""
    with follow_sizes():
        return within(_Inferring(), lambda: around(AROUND, run))


def is_as_eager() -> bool:
    """Return whether variables are what they are outside of functions, which no tape watches."""
    frame = LOCAL.frame
    return (frame is LOCAL.eager or isinstance(frame, _Inferring)) and not frame.observers


@final
class _Inferring(Frame):
    """Holds what is assigned while it lasts."""

    lifts = False

    def __init__(self) -> None:
        super().__init__(context.strip(context.current()))
        self.parent = self._below = LOCAL.eager
        self._values: dict[int, Array] = {}

    def get(self, cell: Cell) -> Array:
        """Return what was assigned here, or the value outside."""
        self.note_inner_read()
        if cell.key not in self._values:
            (self._values[cell.key],) = self._below.take_all([cell])
        return self._values[cell.key]

    def put(self, cell: Cell, value: Array) -> None:
        """Keep a value until the function returns."""
        self.renew()
        self._values[cell.key] = value

    def check_creatable(self, cell: Cell) -> None:
        """Raise CreationError where the frame below does."""
        self._below.check_creatable(cell)

    def create(self, cell: Cell, value: Array) -> None:
        """Give a new cell its first value in the frame below."""
        self._below.create(cell, value)
