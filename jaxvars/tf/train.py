"""`tf.train`: checkpoints, and averages of variables.

checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer)
manager = tf.train.CheckpointManager(checkpoint, "./run", max_to_keep=3)
checkpoint.restore(manager.latest_checkpoint)

_train_checkpoint, _train_options    Checkpoint
_train_restore, _train_status        values on their way to variables, and what became of them
_train_graph                         which object is which
_train_manager                       CheckpointManager
_train_stored, _train_files          one checkpoint on disk, and what is in it
_train_folder                        folders of checkpoints
_train_average                       ExponentialMovingAverage
_train_example                       Example and its parts
"""

from __future__ import annotations

from typing import Any

from jaxvars.display.repr import did_you_mean
from jaxvars.tf._listing import lister
from jaxvars.tf._train_average import ExponentialMovingAverage as ExponentialMovingAverage
from jaxvars.tf._train_checkpoint import Checkpoint as Checkpoint
from jaxvars.tf._train_example import MESSAGES, message
from jaxvars.tf._train_files import CheckpointView as CheckpointView
from jaxvars.tf._train_files import TrackableView as TrackableView
from jaxvars.tf._train_files import list_variables as list_variables
from jaxvars.tf._train_files import load_checkpoint as load_checkpoint
from jaxvars.tf._train_files import load_variable as load_variable
from jaxvars.tf._train_folder import checkpoints_iterator as checkpoints_iterator
from jaxvars.tf._train_folder import get_checkpoint_state as get_checkpoint_state
from jaxvars.tf._train_folder import latest_checkpoint as latest_checkpoint
from jaxvars.tf._train_manager import CheckpointManager as CheckpointManager
from jaxvars.tf._train_options import CheckpointOptions as CheckpointOptions


def __getattr__(name: str) -> Any:
    if name in MESSAGES:
        return message(name)
    hint = did_you_mean(name, [*globals(), *MESSAGES])
    raise AttributeError(f"tf.train has no attribute {name!r}.{' ' + hint if hint else ''}")


__dir__ = lister(__name__, MESSAGES)
