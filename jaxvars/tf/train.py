"""`tf.train`: checkpoints, and averages of variables.

checkpoint = tf.train.Checkpoint(net=net, optimizer=optimizer)
manager = tf.train.CheckpointManager(checkpoint, "./run", max_to_keep=3)
checkpoint.restore(manager.latest_checkpoint)

_train_checkpoint, _train_options    Checkpoint
_train_graph                         which object is which
_train_manager                       CheckpointManager
_train_files                         what is in folders and files
_train_average                       ExponentialMovingAverage
"""

from __future__ import annotations

from typing import NoReturn

from jaxvars._display import did_you_mean
from jaxvars.tf._train_average import ExponentialMovingAverage as ExponentialMovingAverage
from jaxvars.tf._train_checkpoint import Checkpoint as Checkpoint
from jaxvars.tf._train_files import CheckpointView as CheckpointView
from jaxvars.tf._train_files import TrackableView as TrackableView
from jaxvars.tf._train_files import checkpoints_iterator as checkpoints_iterator
from jaxvars.tf._train_files import get_checkpoint_state as get_checkpoint_state
from jaxvars.tf._train_files import latest_checkpoint as latest_checkpoint
from jaxvars.tf._train_files import list_variables as list_variables
from jaxvars.tf._train_files import load_checkpoint as load_checkpoint
from jaxvars.tf._train_files import load_variable as load_variable
from jaxvars.tf._train_manager import CheckpointManager as CheckpointManager
from jaxvars.tf._train_options import CheckpointOptions as CheckpointOptions


def __getattr__(name: str) -> NoReturn:
    hint = did_you_mean(name, list(globals()))
    raise AttributeError(f"tf.train has no attribute {name!r}.{' ' + hint if hint else ''}")
