"""Saving: into a directory, in a thread, and together with other processes.

Rules this file keeps:
- nothing is deleted before the new checkpoint is whole;
- whether a save is made together is decided by where the variables are placed, so that all
  processes decide alike; all learn whether it was written;
- a thread ends with its job, and the interpreter not before it. An error of a job is raised by
  `wait`; without one, it is printed when the interpreter ends.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import jax
import numpy as np

from jaxvars.checkpoint import files
from jaxvars.checkpoint.directory import Directory
from jaxvars.checkpoint.disk import is_of_disk
from jaxvars.checkpoint.restore import sources_in_use
from jaxvars.checkpoint.retention import Policy
from jaxvars.errors import CheckpointError, warn_user
from jaxvars.tensors.array_like import processes_of
from jaxvars.typing import Array


@final
@dataclass(frozen=True)
class Save:
    """What is to be saved, as it was when it was asked for."""

    number: int
    step: int
    metrics: Mapping[str, float]
    values: Mapping[str, Any]
    time: float
    about: Mapping[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class Writer:
    """Writes into a directory, and keeps what a policy says."""

    directory: Directory
    policy: Policy
    started: float  # when the manager began, in seconds since 1970

    def put(self, save: Save) -> None:
        """Write a checkpoint with its record."""

        def put() -> None:
            previous = next(reversed(self.directory.records()), None)
            record = self.policy.record(
                save.number, save.step, save.metrics, save.time,
                previous=previous, started=self.started,
            )  # fmt: skip
            self.directory.put(record, lambda path: files.write(path, save.values, save.about))

        self.directory.exclusively(put)

    def prune(self) -> None:
        """Delete what is not to be kept; warn of what could not be deleted."""

        def prune() -> None:
            in_use = sources_in_use()
            for record in self.policy.superfluous(self.directory.records()):
                if str(self.directory.path_of(record.number)) in in_use:
                    continue
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


# ---------------------------------------------------------------- several processes
def span_processes(values: Mapping[str, Array]) -> bool:
    """Return whether some values have parts in other processes."""
    return any(processes_of(value) > 1 for value in values.values())


def gather(values: Mapping[str, Array]) -> dict[str, Array]:
    """Gather what spans processes, value by value, on the host; to be called by all."""
    from jax.experimental.multihost_utils import process_allgather

    return {
        path: process_allgather(value, tiled=True) if processes_of(value) > 1 else value
        for path, value in values.items()
    }


def broadcast_from_first(value: Any) -> Any:
    """Return a number of the first process; to be called by all."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return broadcast_one_to_all(np.asarray(value))


def do_in_first(action: Callable[[], object], what: str) -> None:
    """Have the first process do something; raise CheckpointError in the others if it fails."""
    is_first, done = jax.process_index() == 0, False
    try:
        if is_first:
            action()
            done = True
    finally:
        done = bool(broadcast_from_first(done))
    if not done:
        raise CheckpointError(f"{what} failed in process 0, which says why: nothing was saved.")


# ---------------------------------------------------------------- in the background
_JOBS: set[Job] = set()
"""Those that run, and those whose error has not been raised."""
os.register_at_fork(after_in_child=_JOBS.clear)  # their threads are not there


@final
class Job:
    """Something that runs in the background, in a thread of its own, until it is done."""

    def __init__(self, action: Callable[[], object], name: str) -> None:
        self._error: BaseException | None = None
        self._done = threading.Event()  # Ctrl-C in `join` makes Python 3.11 take it for ended
        # Only the thread holds the action, which holds values, and only until it is done.
        self._thread = threading.Thread(target=self._run, args=(action,), name=name)

    def start(self) -> None:
        """Begin."""
        _wait_at_exit()
        _JOBS.add(self)
        self._thread.start()

    def wait(self) -> None:
        """Return when it is done; raise its error, the first time."""
        if self._thread.ident is not None:  # else Ctrl-C came before it began
            self._done.wait()
            self._thread.join()
        _JOBS.discard(self)
        error, self._error = self._error, None
        if error is not None:
            raise error

    @property
    def is_running(self) -> bool:
        """Whether it is not done yet."""
        return self._thread.ident is not None and not self._done.is_set()

    def _run(self, action: Callable[[], object]) -> None:
        try:
            action()
            _JOBS.discard(self)
        except BaseException as error:  # noqa: BLE001 - kept, and raised by `wait`
            self._error = error
        finally:
            self._done.set()


@functools.cache
def _wait_at_exit() -> None:
    """Have the jobs waited for when the interpreter ends, while orbax can still start threads.

    In `atexit` none can be started any more. What is registered last with `threading`, by a name
    that is not public, is called first: before the pools that orbax uses are closed.
    """
    importlib.import_module("concurrent.futures.thread")  # registers their end
    register = getattr(threading, "_register_atexit", atexit.register)
    register(_finish)


def _finish() -> None:
    for job in list(_JOBS):
        try:
            job.wait()
        except BaseException as error:  # noqa: BLE001 - it cannot be raised any more
            sys.excepthook(type(error), error, error.__traceback__)
