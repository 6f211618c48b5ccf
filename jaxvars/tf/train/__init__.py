"""`tf.train`: checkpoints, and averages of variables.

checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer)
manager = tf.train.CheckpointManager(checkpoint, "./run", max_to_keep=3)
checkpoint.restore(manager.latest_checkpoint)

checkpoint    Checkpoint, CheckpointOptions
restore       values on their way to variables, and what became of them
graph         which object is which
manager       CheckpointManager
stored        checkpoints on disk, and folders of them
files         what is in a checkpoint
average       ExponentialMovingAverage
"""

from __future__ import annotations

from typing import Any

from jaxvars.tf.listing import namespace
from jaxvars.tf.messages import MESSAGES, message
from jaxvars.tf.train.average import ExponentialMovingAverage as ExponentialMovingAverage
from jaxvars.tf.train.checkpoint import Checkpoint as Checkpoint
from jaxvars.tf.train.checkpoint import CheckpointOptions as CheckpointOptions
from jaxvars.tf.train.files import CheckpointView as CheckpointView
from jaxvars.tf.train.files import TrackableView as TrackableView
from jaxvars.tf.train.files import list_variables as list_variables
from jaxvars.tf.train.files import load_checkpoint as load_checkpoint
from jaxvars.tf.train.files import load_variable as load_variable
from jaxvars.tf.train.manager import CheckpointManager as CheckpointManager
from jaxvars.tf.train.stored import checkpoints_iterator as checkpoints_iterator
from jaxvars.tf.train.stored import get_checkpoint_state as get_checkpoint_state
from jaxvars.tf.train.stored import latest_checkpoint as latest_checkpoint

_unknown, __dir__ = namespace(__name__, MESSAGES)


def __getattr__(name: str) -> Any:
    return message(name) if name in MESSAGES else _unknown(name)
