"""Putting checkpoints into a directory, and deleting those that are not to be kept.

Rule this file keeps: nothing is deleted before the new checkpoint is whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from jaxvars.checkpoint import files
from jaxvars.checkpoint.directory import Directory
from jaxvars.checkpoint.disk import is_of_disk
from jaxvars.checkpoint.retention import Policy
from jaxvars.errors import CheckpointError, warn_user


@final
@dataclass(frozen=True)
class Save:
    """What is to be saved, as it was when it was asked for."""

    number: int
    step: int
    metrics: Mapping[str, float]
    values: Mapping[str, Any]
    time: float


@final
@dataclass(frozen=True)
class Writer:
    """Writes into a directory, and keeps what a policy says.

    Attributes:
        directory: where the checkpoints are.
        policy: which of them are kept.
        started: when the manager began, in seconds since 1970.
    """

    directory: Directory
    policy: Policy
    started: float

    def put(self, save: Save) -> None:
        """Write a checkpoint with its record."""

        def put() -> None:
            previous = next(reversed(self.directory.records()), None)
            record = self.policy.record(
                save.number, save.step, save.metrics, save.time,
                previous=previous, started=self.started,
            )  # fmt: skip
            self.directory.put(record, lambda path: files.write(path, save.values))

        self.directory.exclusively(put)

    def prune(self) -> None:
        """Delete what is not to be kept; warn of what could not be deleted."""

        def prune() -> None:
            for record in self.policy.superfluous(self.directory.records()):
                try:
                    self.directory.delete(record.number)
                except OSError as error:
                    if not is_of_disk(error):
                        raise
                    path = self.directory.path_of(record.number)
                    warn_user(
                        f"{path} is not needed any more and could not be deleted: {error}.",
                        RuntimeWarning,
                    )

        self.directory.exclusively(prune)

    def put_and_prune(self, save: Save) -> None:
        """Write a checkpoint and delete others, in the background."""
        try:
            self.put(save)
            self.prune()
        except Exception as error:
            place = self.directory.path_of(save.number)
            raise CheckpointError(
                f"{place} was not saved in the background: {type(error).__name__}: {error}"
            ) from error
