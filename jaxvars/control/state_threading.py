"""The cells that staged functions touch, threaded through one operation of JAX's.

What `control/branches.py`, `control/loops.py` and `control/maps.py` have in common.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxvars.control.forms import Type, type_of
from jaxvars.core.cells import Cell
from jaxvars.core.frames import LOCAL, CaptureFrame
from jaxvars.core.staging import Staged
from jaxvars.derivatives.custom_gradient import with_explicit_rules
from jaxvars.errors import ControlFlowError, called, user_line
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import jaxprs
from jaxvars.tracing.assigned_read import reread
from jaxvars.typing import Array

CREATES = (
    "A branch or the body of a loop tried to create a variable, which would exist on one way only; "
    "create it outside."
)


@final
class Program:
    """A staged function over the values of cells by key."""

    def __init__(self, staged: Staged) -> None:
        self._run, self.consts = jaxprs.take_out_constants(staged.program)
        self._reads = [cell.key for cell in staged.reads]
        self.writes = [cell.key for cell in staged.writes]

    def __call__(
        self, consts: Any, state: dict[int, Array], values: Sequence[Array]
    ) -> tuple[list[Array], dict[int, Array]]:
        """Return the array results, and the values of all cells afterwards."""
        outputs = self._run(consts, [*(state[key] for key in self._reads), *values])
        n = len(outputs) - len(self.writes)
        return outputs[:n], {**state, **dict(zip(self.writes, outputs[n:], strict=True))}


@final
class Threads:
    """The cells that some programs touch, threaded through one operation."""

    def __init__(self, staged: Sequence[Staged]) -> None:
        staged = list(map(with_explicit_rules, staged))
        self.programs = [Program(s) for s in staged]
        self._frame = LOCAL.frame
        written = {cell.key: cell for s in staged for cell in s.writes}
        self._cells = {cell.key: cell for s in staged for cell in s.reads} | written
        self.written = list(written.values())
        for cell in self.written:
            self._frame.check_writable(cell)
            if cell.is_open:
                _check_shapes(cell, staged)

    def state(self) -> dict[int, Array]:
        """Return the values of all cells now."""
        return {key: self._frame.read(cell) for key, cell in self._cells.items()}

    def changed(self, state: dict[int, Array]) -> list[Array]:
        """Return, of all values, those of the cells that are assigned."""
        return [state[cell.key] for cell in self.written]

    def reread(self, first: dict[int, Array], values: Sequence[Array]) -> dict[int, Array]:
        """Return all values, as an iteration reads them: `values` are of the assigned cells."""

        def read_again(cell: Cell, x: Array) -> Array:
            known = cell.deliver or not is_inexact(cell.aval)
            return x if known else reread(x, first[cell.key])

        pairs = zip(self.written, values, strict=True)
        return {**first, **{cell.key: read_again(cell, x) for cell, x in pairs}}

    def write(self, values: Sequence[Array]) -> None:
        """Assign the cells."""
        self._frame.write_all(self.written, values)


def _check_shapes(cell: Cell, staged: Sequence[Staged]) -> None:
    """Raise ControlFlowError if programs of one operation leave a cell with several shapes."""
    shapes = {str(cell.aval.shape)} if len(staged) == 1 else set()  # sizes may be open
    for one in staged:
        new = dict(zip(one.writes, one.split(one.program.out_avals)[1], strict=True))
        shapes.add(str(new.get(cell, cell.aval).shape))
    if len(shapes) > 1:
        raise ControlFlowError(
            f"Variable {called(cell)!r} would have one of the shapes {', '.join(sorted(shapes))} "
            f"after the branches, or after each iteration of the loop, at {user_line()}. A program "
            "has fixed shapes: assign one shape in all branches, or choose outside of the compiled "
            "function which one is assigned."
        )


def in_block() -> bool:
    """Return whether a branch or the body of a loop is being staged."""
    frame = LOCAL.frame
    return isinstance(frame, CaptureFrame) and frame.refuse_creation is CREATES


def return_tuple(fun: Callable[..., Any]) -> Callable[..., tuple[Any]]:
    return functools.wraps(fun)(lambda *args: (fun(*args),))


def result_types(staged: Staged) -> list[Type]:
    return list(map(type_of, staged.split(staged.program.out_avals)[0]))
