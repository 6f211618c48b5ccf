"""Checkpoints on disk, by the prefixes that TensorFlow programs know.

Rules this file keeps:
- which checkpoint of a folder is the latest follows from the checkpoints, no file named
  `checkpoint` is written;
- a path is the prefix that TensorFlow programs know: the file is called `<prefix>.npz`;
- the variables of a folder of `tf.saved_model.save` can be restored like a checkpoint;
- checkpoints and saved models of TensorFlow's are read like those of jaxvars: of two with one
  prefix the one that was written last. Their folders have a file named `checkpoint`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from jaxvars.checkpoint.checksum import Entry, from_npy
from jaxvars.checkpoint.directory import record_in
from jaxvars.checkpoint.retention import Record
from jaxvars.checkpoint.stored import Stored, open_stored
from jaxvars.errors import CheckpointError, SavedError
from jaxvars.export import files as saved
from jaxvars.tf.errors import DataLossError, InvalidArgumentError, NotFoundError
from jaxvars.tf.train import graph as graphs
from jaxvars.tf.train.bundle import INDEX, Bundle, is_table
from jaxvars.tf.train.graph import GRAPH, Graph

SUFFIX = ".npz"
WRITTEN = "written"
SAVED_FILE = "saved_model.jaxvars"
"""The file in a folder of `tf.saved_model.save`."""
SAVED_TREE = "_SAVED_OBJECT_GRAPH"
"""Its value that says which object has what."""

_FACT = re.compile(r'^(\w+): "?(.*?)"?$', re.MULTILINE)
NOTES = {GRAPH, SAVED_TREE}
"""Values that are not a variable's."""


@final
class SavedVariables(Stored):
    """The variables in a folder of `tf.saved_model.save`, as a checkpoint.

    Raises:
        CheckpointError: when the file is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            facts, self._members = saved.read(path, None)
            self._files = {name: x["file"] for name, x in facts["variables"].items()}
            self.entries = {n: Entry.from_json(x) for n, x in facts["variables"].items()}
        except (SavedError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: {error}") from error
        self.about = {}
        self.time_ns = path.stat().st_mtime_ns

    def _words(self) -> Any:
        return {"variables": self._files}

    def _size(self) -> int:
        return self.path.stat().st_size

    def _array(self, path: str, entry: Entry) -> np.ndarray:
        return from_npy(self._members[self._files[path]], entry)


def open_checkpoint(path: Any) -> Stored:
    """Return a checkpoint on disk.

    Raises:
        tf.errors.NotFoundError: when there is none.
        tf.errors.DataLossError: when it is damaged.
    """
    place = file_of(path)
    if place is None:
        raise NotFoundError(
            message=f"Error when restoring from checkpoint or SavedModel at {path}: Unsuccessful "
            f"TensorSliceReader constructor: Failed to find any matching files for {path}\nPlease "
            "double-check that the path is correct. You may be missing the checkpoint suffix (e.g. "
            "the '-1' in 'path/to/ckpt-1')."
        )
    try:
        if place.suffix == INDEX or is_table(place):
            return Bundle(place)
        return SavedVariables(place) if place.name == SAVED_FILE else open_stored(place)
    except CheckpointError as error:
        raise DataLossError(None, None, str(error)) from error


def file_of(path: Any) -> Path | None:
    """Return the file or folder of a checkpoint of which the prefix is given, or the path."""
    path = os.fspath(path)
    found = [place for end in (SUFFIX, INDEX) if (place := Path(f"{path}{end}")).is_file()]
    if found:
        return max(found, key=lambda place: place.stat().st_mtime_ns)
    for place in (Path(f"{path}{SUFFIX}"), Path(_first_shard(path))):
        if place.is_file() or (place / "_METADATA").is_file():
            return place
        for name in (SAVED_FILE, f"variables/variables{INDEX}"):
            if (place / name).is_file():
                return place / name
    return None


def _first_shard(path: str) -> str:
    return path.replace("-?????-of-", "-00000-of-")


def saved_graph(stored: Stored) -> Graph:
    """Return the graph of a checkpoint on disk; one of its names if jaxvars wrote it."""
    if isinstance(stored, Bundle):
        try:
            return stored.graph()
        except (ValueError, InvalidArgumentError) as error:
            raise DataLossError(
                None, None, f"{stored.path} is damaged: {GRAPH}: {error}"
            ) from error
    note = next((name for name in NOTES if name in stored.entries), None)
    if note is None:
        return graphs.from_names(stored.entries)
    try:
        string = str(stored.value(note))
        return _of_tree(string) if note == SAVED_TREE else graphs.from_string(string)
    except (ValueError, KeyError, TypeError) as error:
        raise DataLossError(None, None, f"{stored.path} is damaged: {note}: {error}") from error


def _of_tree(string: str) -> Graph:
    items: Any = json.loads(string)["items"]
    names = {n: item["value"] for n, item in enumerate(items) if item["kind"] == "variable"}
    return Graph([dict(item["children"]) for item in items], names, [])


# ---------------------------------------------------------------- folders
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
                found.append((stored.time_ns, path_in(folder, place), _record_of(place)))
    found += _last_of_tensorflow(folder)
    rows = sorted(found, key=lambda row: row[:2])
    return [Saved(r.time if r else time_ns / 1e9, path, r) for time_ns, path, r in rows]


def _last_of_tensorflow(folder: str) -> list[tuple[int, str, Record | None]]:
    """Return the checkpoint that a folder's file `checkpoint` says is the latest."""
    note = Path(folder) / "checkpoint"
    words = dict(_FACT.findall(note.read_text("utf-8"))) if note.is_file() else {}
    word = words.get("model_checkpoint_path", "").encode()  # protobuf writes bytes as octal numbers
    path = word.decode("unicode_escape").encode("latin-1").decode("utf-8")
    # If it is not where it was, the folder was moved; "./x" stays so.
    for place in (os.path.join(folder, path), path_in(folder, path)):  # noqa: PTH118
        found = [x for x in (f"{place}{INDEX}", _first_shard(place)) if Path(x).is_file()]
        if found:
            seconds = float(words.get("all_model_checkpoint_timestamps", 0))  # the last of them
            return [(int(seconds * 1e9) or Path(found[0]).stat().st_mtime_ns, place, None)]
    return []


def path_in(folder: str, place: str | Path) -> str:
    """Return the prefix of a checkpoint in a folder as that was given: "./x" stays so."""
    return os.path.join(folder, Path(place).name.removesuffix(SUFFIX))  # noqa: PTH118


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
    checkpoint_dir: Any, min_interval_secs: float = 0, timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:  # fmt: skip
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
