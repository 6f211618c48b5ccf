"""The log of placement: a line for each operation that runs, and for each variable.

    Executing op matmul in device /job:localhost/replica:0/task:0/device:CPU:0

Rules this file keeps:
- a line is written when the operation has been dispatched to the device;
- a compiled function is one operation, by its name: what XLA makes of it has no separate
  devices.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import final

import jax

from jaxvars.core.cells import Cell
from jaxvars.core.frame import PLACED
from jaxvars.debugging.listeners import leave, stand, stands
from jaxvars.devices.device import device_text
from jaxvars.tracing import context, recorder
from jaxvars.typing import Array


def set_log_device_placement(enabled: bool) -> None:
    """Choose whether this thread writes where each operation runs, to stderr.

    A line is written for each operation, also those of plain `jnp` code, and when a variable gets
    its first value or an eager assignment. It has the name that XLA's program has: a whole
    compiled function is one operation. Operations in code that is only traced are not run, and
    give no line.

    Args:
        enabled: write lines (True) or no more (False).

    Raises:
        RuntimeError: inside a tape, a compiled function or a transform.

    >>> import jax.numpy as jnp
    >>> set_log_device_placement(True)
    >>> x = jnp.matmul(jnp.ones((2, 2)), jnp.ones((2, 2)))  # Executing op matmul in device ...
    >>> set_log_device_placement(False)

    Differs from TensorFlow: it holds for the thread, and from the moment that it is set.
    """
    if enabled:
        stand(_LOG, "The log of placement")
        if _told_of not in PLACED:
            PLACED.append(_told_of)
    else:
        leave(_LOG, "The log of placement")


def get_log_device_placement() -> bool:
    """Return whether this thread writes where each operation runs.

    >>> get_log_device_placement()
    False
    """
    return stands(_LOG)


@final
class _Log(recorder.Watcher):
    """Writes a line for each operation."""

    __slots__ = ()

    def run(self, equation: recorder.Equation, staged: bool) -> list[Array]:
        """Run an operation, and write where."""
        outputs = list(equation.function(*equation.inputs))
        where = _where([*outputs, *equation.inputs])
        if where is not None:
            _write(f"Executing op {equation.params.get('name') or equation.name} in {where}")
        return outputs


_LOG = _Log()


def _told_of(cell: Cell, value: Array, verb: str) -> None:
    """Write that a variable was created or assigned."""
    where = _where([value])
    if where is not None and stands(_LOG):
        _write(f"Variable {cell.name!r} {verb} in {where}")


def _where(values: Sequence[Array]) -> str | None:
    """Return the device of the first value that has one; None for values being traced."""
    for value in values:
        if isinstance(value, jax.Array) and not context.is_tracer(value):
            return device_text(value)
    return None


def _write(line: str) -> None:
    sys.stderr.write(line + "\n")
