"""`tf.train.CheckpointManager`, over that of jaxvars.

Rules this file keeps:
- a path is as the directory was given: `./run` gives `./run/ckpt-1`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, final

from jaxvars.checkpoint.manager import CheckpointManager as CoreManager
from jaxvars.errors import CheckpointError
from jaxvars.tf.attributes import getter
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.train.checkpoint import Checkpoint, CheckpointOptions, call_back
from jaxvars.tf.train.stored import latest_checkpoint, path_in
from jaxvars.tf.variables.variable import Variable


@final
class CheckpointManager:
    """Save checkpoints in a directory, and delete old ones.

    Args:
        checkpoint: the `tf.train.Checkpoint` to save and restore.
        directory: where.
        max_to_keep: how many are kept; all when None.
        keep_checkpoint_every_n_hours: also keep, permanently, one after each so many hours.
        checkpoint_name: what the names begin with.
        step_counter: a variable that says which step it is.
        checkpoint_interval: `save` does nothing before so many steps after the last save.
        init_fn: called by `restore_or_initialize` when no checkpoint exists.
        last_checkpoint_step: at which step the last one was saved; not known when None.

    Raises:
        ValueError: when `max_to_keep` is not positive, or the interval lacks a counter.

    Example:
        >>> import tempfile
        >>> from jaxvars import tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> v = tf.Variable(1.0)
        >>> manager = CheckpointManager(tf.train.Checkpoint(v=v), folder.name, max_to_keep=2)
        >>> paths = [manager.save() for _ in range(3)]
        >>> manager.checkpoints == paths[1:]
        True
        >>> folder.cleanup()

    Differs from TensorFlow: what is in the directory follows from the checkpoints in it, not by a
    file named `checkpoint`: those of other managers and processes are among them.
    """

    def __init__(
        self, checkpoint: Checkpoint, directory: Any, max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None, checkpoint_name: str = "ckpt",
        step_counter: Any = None, checkpoint_interval: int | None = None,
        init_fn: Callable[[], object] | None = None, last_checkpoint_step: int | None = None,
    ) -> None:  # fmt: skip
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                f"Expected a positive integer or `None` for `max_to_keep`, got {max_to_keep}."
            )
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                "`step_counter` should be passed if `checkpoint_interval` is not None."
            )
        self._checkpoint = checkpoint
        self._given = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._init_fn = init_fn
        self._core = CoreManager(
            checkpoint.core,
            directory,
            max_to_keep,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            checkpoint_name=checkpoint_name,
            step_counter=None if step_counter is None else lambda: int(step_counter),
            checkpoint_interval=checkpoint_interval,
            format="npz",
        )
        self._core._last_step = last_checkpoint_step

    checkpoint = getter("_checkpoint", "What is saved and restored.")
    directory = getter("_given", "Where the checkpoints are, as it was given.")

    checkpoint_interval = getter(
        "_core.checkpoint_interval", "How many steps there are between two saves, at least."
    )

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints that managers saved, the oldest first.

        Those kept permanently are among them only as long as they are among the newest.
        """
        records = [record for record in self._core._directory.records() if record.serial]
        newest = 0 if self._max_to_keep is None else len(records) - self._max_to_keep
        listed = [r for i, r in enumerate(records) if i >= newest or not r.forever]
        return [path_in(self._given, self._core._path(record)) for record in listed]

    @property
    def latest_checkpoint(self) -> str | None:
        """The path of the checkpoint that was saved last in the directory, or None.

        It may be another manager's, or one that `Checkpoint.save` put there.
        """
        return latest_checkpoint(self._given)

    def save(
        self, checkpoint_number: Any = None, check_interval: bool = True,
        options: CheckpointOptions | None = None,
    ) -> str | None:  # fmt: skip
        """Save a checkpoint, and delete those that are not to be kept any more.

        Args:
            checkpoint_number: the number in its name; the `save_counter` when None.
            check_interval: False saves within the `checkpoint_interval`, too.
            options: as for `Checkpoint.save`.

        Returns:
            Its path; None if nothing is saved because of the interval.

        Raises:
            tf.errors.InvalidArgumentError: when a value cannot be written.
        """
        if isinstance(checkpoint_number, Variable | Tensor):
            checkpoint_number = int(checkpoint_number)
        try:
            path = self._core.save(checkpoint_number, check_interval)
        except CheckpointError as error:
            raise refused(str(error)) from error
        if path is None:
            return None
        call_back(options, shown := path_in(self._given, path))
        return shown

    def restore_or_initialize(self) -> str | None:
        """Restore the checkpoint that was saved last, or call `init_fn` if there is none.

        Returns:
            The path of what was restored, or None.
        """
        path = self.latest_checkpoint
        if path is not None:
            self._checkpoint.restore(path)
            self._core._last_step = self._core._step()
        elif self._init_fn is not None:
            self._init_fn()
        return path

    def sync(self) -> None:
        """Do nothing: `save` returns when all is written."""
