"""Save and restore the values of variables.

    checkpoint = jv.checkpoint.Checkpoint(model=model, optimizer=optimizer)
    path = checkpoint.save("runs/7/ckpt")           # runs/7/ckpt-1
    checkpoint.restore(path).assert_consumed()

What is saved are the Variables in the objects, and the arrays in pytrees, such as an optax state;
what holds neither is refused. A restored tree is a fresh one: `checkpoint.params`.

A checkpoint is a folder that orbax wrote, or one `.npz` file, and holds a checksum of each value.
It is there as a whole or not at all; a damaged one, or one that does not fit, is refused with a
list of all that is wrong, before any variable is changed. Values whose variables do not exist yet
wait for them.

    manager = jv.checkpoint.CheckpointManager(checkpoint, "runs/7", max_to_keep=3)
    manager.restore_or_initialize()                 # from the newest, if there is one
    for _ in range(1000):
        step()
        manager.save()                              # and delete what is not to be kept
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxvars.checkpoint.checkpoint import Checkpoint, Status
from jaxvars.checkpoint.manager import CheckpointManager
from jaxvars.checkpoint.stored import latest_checkpoint, list_variables, load, load_variable
from jaxvars.display.lookup import namespace

__all__ = [
    "Checkpoint", "CheckpointManager", "Status", "latest_checkpoint", "list_variables", "load",
    "load_variable",
]  # fmt: skip


if not TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__, __dir__ = namespace(__name__, __all__)
