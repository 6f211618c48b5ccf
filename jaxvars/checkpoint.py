"""Save and restore the values of variables.

checkpoint = jv.checkpoint.Checkpoint(model=model, optimizer=optimizer)
path = checkpoint.save("runs/7/ckpt")
checkpoint.restore(path)
"""

from __future__ import annotations

from jaxvars._checkpoint import Checkpoint as Checkpoint
from jaxvars._checkpoint import Status as Status
from jaxvars._checkpoint_manager import CheckpointManager as CheckpointManager
