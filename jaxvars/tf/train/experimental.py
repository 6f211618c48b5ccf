"""`tf.train.experimental`: objects of Python in checkpoints."""

from __future__ import annotations

from jaxvars.tf.listing import namespace
from jaxvars.tf.train.python_state import PythonState as PythonState

__all__ = ["PythonState"]

_ABSENT = dict.fromkeys(
    ["MaxShardSizePolicy", "ShardByTaskPolicy", "ShardableTensor", "ShardingCallback"],
    "a checkpoint is one file, which is not split",
)

__getattr__, __dir__ = namespace(__name__, _ABSENT)
