"""`tf.train.CheckpointOptions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final


@final
@dataclass(eq=False, repr=False)
class CheckpointOptions:
    """How a checkpoint is written.

    Args:
        experimental_io_device: of no effect.
        experimental_enable_async_checkpoint: of no effect: use
            `jv.checkpoint.CheckpointManager(async_save=True)`.
        experimental_write_callbacks: functions to call with the path when it is written.
        enable_async: of no effect.
        experimental_skip_slot_variables: of no effect.
        experimental_sharding_callback: of no effect.

    >>> CheckpointOptions(experimental_io_device="/job:localhost").experimental_io_device
    '/job:localhost'
    """

    experimental_io_device: str | None = None
    experimental_enable_async_checkpoint: bool = False
    experimental_write_callbacks: Any = None
    enable_async: bool = False
    experimental_skip_slot_variables: bool = False
    experimental_sharding_callback: Any = None

    def __post_init__(self) -> None:
        self.enable_async = self.enable_async or self.experimental_enable_async_checkpoint
