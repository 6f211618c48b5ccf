"""`tf.train.CheckpointOptions`."""

from __future__ import annotations

from typing import Any, final


@final
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

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Any = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        self.experimental_io_device = experimental_io_device
        self.experimental_enable_async_checkpoint = experimental_enable_async_checkpoint
        self.experimental_write_callbacks = experimental_write_callbacks
        self.enable_async = enable_async or experimental_enable_async_checkpoint
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback
