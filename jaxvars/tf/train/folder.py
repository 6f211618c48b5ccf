"""What checkpoints are in a folder: `tf.train.latest_checkpoint` and the like.

Rules this file keeps:
- which checkpoint is the latest is told by the checkpoints: there is no file named `checkpoint`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from jaxvars.checkpoint.directory import record_in
from jaxvars.checkpoint.retention import Record
from jaxvars.checkpoint.stored import Stored, open_stored
from jaxvars.errors import CheckpointError
from jaxvars.tf.train.stored import SUFFIX, WRITTEN


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Return the path of the checkpoint that was saved last in a folder; None if there is none.

    Args:
        checkpoint_dir: the folder. What `Checkpoint.write` wrote does not count.
        latest_filename: of no effect.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(latest_checkpoint(folder))
    None
    """
    found = saved_in(checkpoint_dir)
    return found[-1].path if found else None


@final
@dataclass(frozen=True)
class CheckpointState:
    """The checkpoints of a folder.

    Attributes:
        model_checkpoint_path: the one that was saved last.
        all_model_checkpoint_paths: all, in the order they were saved.
        all_model_checkpoint_timestamps: when each was, in seconds.
        last_preserved_timestamp: when the first was.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float = 0.0


def get_checkpoint_state(
    checkpoint_dir: Any, latest_filename: str | None = None
) -> CheckpointState | None:
    """Return what checkpoints there are in a folder; None if there is none.

    Where the latest was saved by a `CheckpointManager`, these are what managers saved and may
    delete; else it is the latest alone.

    >>> get_checkpoint_state("/there/is/none") is None
    True
    """
    found = saved_in(checkpoint_dir)
    if not found:
        return None
    last = found[-1]
    if last.record is None:
        return CheckpointState(last.path, [last.path], [last.time], last.time)
    listed = [one for one in found if one.record is not None and not one.record.forever]
    paths, times = [one.path for one in listed], [one.time for one in listed]
    return CheckpointState(last.path, paths, times, last.record.clock)


@final
@dataclass(frozen=True)
class Saved:
    """A checkpoint in a folder.

    Attributes:
        time: when it was saved, in seconds.
        path: its prefix, as the folder was given.
        record: what a manager says of it; None if none saved it.
    """

    time: float
    path: str
    record: Record | None


def saved_in(folder: Any) -> list[Saved]:
    """Return the checkpoints of a folder, in the order they were saved."""
    folder = os.fspath(folder)
    if not Path(folder).is_dir():
        return []
    found: list[tuple[int, str, Record | None]] = []
    for place in Path(folder).iterdir():
        if place.suffix == SUFFIX or (place / "_METADATA").is_file():
            stored = _sound(place)
            if stored is not None and WRITTEN not in stored.about:
                path = os.path.join(folder, place.name.removesuffix(SUFFIX))  # noqa: PTH118 - as given: "./x" stays
                found.append((stored.time_ns, path, _record_of(place)))
    rows = sorted(found, key=lambda row: row[:2])
    return [Saved(r.time if r else time_ns / 1e9, path, r) for time_ns, path, r in rows]


def _record_of(place: Path) -> Record | None:
    try:
        return record_in(place)
    except FileNotFoundError:
        return None


def _sound(place: Path) -> Stored | None:
    if place.name[0] == "." or ".tmp-" in place.name:
        return None
    try:
        return open_stored(place)
    except CheckpointError:
        return None


def checkpoints_iterator(
    checkpoint_dir: Any,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yield the path of each checkpoint that comes to be the latest in a folder.

    Args:
        checkpoint_dir: the folder.
        min_interval_secs: how many seconds are between two, at least.
        timeout: how many seconds to wait for the next; indefinitely when None.
        timeout_fn: called when the time is over whether to end; it ends when None.
    """
    last: str | None = None
    while True:
        start = time.monotonic()
        new = latest_checkpoint(checkpoint_dir)
        while new in (None, last):
            if timeout is not None and time.monotonic() - start > timeout:
                if timeout_fn is None or timeout_fn():
                    return
                start = time.monotonic()
            time.sleep(min(1.0, timeout or 1.0) / 4)
            new = latest_checkpoint(checkpoint_dir)
        last = new
        yield str(new)
        time.sleep(max(0.0, min_interval_secs - (time.monotonic() - start)))
