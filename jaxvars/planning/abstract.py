"""Variables without values: to look at a program that is too large for this machine.

    model = jv.abstract(lambda: Transformer(layers=96))     # takes no memory
    jv.plan(model.step, jv.TensorSpec((1024, 2048), "int32"))

Rules this file keeps:
- nothing is computed and no variable that exists is changed: what the function assigns is forgotten
  when it returns;
- variables that it creates have names, shapes, dtypes and shardings, and no value until one is
  assigned or restored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

import jax
import jax.numpy as jnp

from jaxvars.core.cells import STORE, Cell
from jaxvars.core.frame import Frame
from jaxvars.core.frames import is_traced, within
from jaxvars.core.store import take
from jaxvars.errors import ForeignTransformError, user_line
from jaxvars.tracing import context
from jaxvars.typing import Array

T = TypeVar("T")


def abstract(fn: Callable[[], T]) -> T:
    """Run a function that creates variables, without giving them values.

    No variable that exists is changed. The new ones can be planned with, placed on a mesh, listed
    in a summary, assigned, and restored from a checkpoint; reading one before that raises
    UninitializedError.

    Args:
        fn: creates Modules, optimizers and the like; takes no arguments. What it computes is
            traced, so Python can't decide by it.

    Returns:
        What `fn` returns; traced values in it are of no use.

    Raises:
        ForeignTransformError: inside a compiled function or a transform.

    >>> import jax.numpy as jnp
    >>> import jaxvars as jv
    >>> large = abstract(lambda: jv.Variable(lambda: jnp.zeros((10**6, 10**6)), name="large"))
    >>> large
    <Variable 'large' float32[1000000,1000000] without a value>
    """
    return run_abstract(fn, [], "jv.abstract")


def run_abstract(fn: Callable[[], T], late: list[Callable[[], None]], caller: str) -> T:
    """Return what a function returns, see `abstract`; note what would give variables values."""
    returned: list[T] = []

    def run() -> None:
        returned.append(within(_AbstractFrame(late), fn))

    if is_traced():
        raise ForeignTransformError(
            f"{caller} is called at {user_line()} inside a compiled function or a transform. "
            "Call it outside, and use there what it returned."
        )
    jax.eval_shape(run)
    return returned[0]


@final
class _AbstractFrame(Frame):
    """Holds what is assigned while it lasts; a cell without a value reads as a traced one."""

    lifts = False
    is_plan = True

    def __init__(self, late: list[Callable[[], None]]) -> None:
        super().__init__(context.strip(context.current()))
        self.values: dict[int, Array] = {}
        self.late = late

    def get(self, cell: Cell) -> Array:
        """Return what was assigned here, the value outside, or a traced stand-in."""
        self.note_inner_read()
        if cell.key not in self.values:
            known = cell.key in STORE
            self.values[cell.key] = take(cell) if known else self._stand_in(cell)
        return self.values[cell.key]

    def put(self, cell: Cell, value: Array) -> None:
        """Keep a value until the function returns."""
        self.renew()
        self.values[cell.key] = value

    def create(self, cell: Cell, value: Array) -> None:
        """Keep the first value until the function returns."""
        self.values[cell.key] = value

    def postpone(self, give: Callable[[], None]) -> None:
        """Keep it for a caller that gives the variables values afterwards."""
        self.late.append(give)

    def _stand_in(self, cell: Cell) -> Array:
        with context.at(self.trace):
            return jnp.zeros(cell.aval.shape, cell.aval.dtype)
