"""Saving what spans several processes: all gather it, and the first writes.

Rules this file keeps:
- whether a save is made together is decided by where the variables are placed, so that all
  processes decide alike; one that has all of them whole may save alone;
- all learn whether it was written: none goes on as if it had been.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import numpy as np

from jaxvars.errors import CheckpointError
from jaxvars.tensors.array_like import processes_of
from jaxvars.typing import Array


def lie_apart(values: Mapping[str, Array]) -> bool:
    """Return whether some values have parts in other processes."""
    return any(processes_of(value) > 1 for value in values.values())


def brought_together(values: Mapping[str, Array]) -> dict[str, Array]:
    """Return values of which this process has all; to be called by all processes.

    What spans several of them is gathered, one value after the other, into memory of the host.
    """
    from jax.experimental.multihost_utils import process_allgather

    return {
        path: process_allgather(value, tiled=True) if processes_of(value) > 1 else value
        for path, value in values.items()
    }


def by_the_first(action: Callable[[], object], what: str) -> None:
    """Have the first process do something, and the others wait for it.

    Args:
        action: what is done.
        what: the same in words, like "writing /runs/ckpt-1".

    Raises:
        CheckpointError: in the others, when it failed in the first, which raises its own error.
    """
    from jax.experimental.multihost_utils import broadcast_one_to_all

    is_first, done = jax.process_index() == 0, False
    try:
        if is_first:
            action()
            done = True
    finally:
        done = bool(broadcast_one_to_all(np.asarray(done)))
    if not done:
        raise CheckpointError(f"{what} failed in process 0, which says why: nothing was saved.")
