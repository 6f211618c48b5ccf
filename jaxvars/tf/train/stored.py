"""Checkpoints on disk, by the prefixes that TensorFlow programs know.

Rules this file keeps:
- a path is the prefix that TensorFlow programs know: the file is called `<prefix>.npz`;
- the variables of a folder of `tf.saved_model.save` can be restored like a checkpoint.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, final

import numpy as np

from jaxvars.checkpoint.checksum import Entry
from jaxvars.checkpoint.stored import Stored, open_stored
from jaxvars.errors import CheckpointError, SavedError
from jaxvars.export import files as saved
from jaxvars.tf.errors import DataLossError, NotFoundError
from jaxvars.tf.train import graph as graphs
from jaxvars.tf.train.graph import GRAPH, Graph

SUFFIX = ".npz"
WRITTEN = "written"
SAVED_FILE = "saved_model.jaxvars"
"""The file in a folder of `tf.saved_model.save`."""
SAVED_TREE = "_SAVED_OBJECT_GRAPH"
"""Its value that says which object has what."""

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
            words, self._members = saved.read(path, None)
            self._files = {name: x["file"] for name, x in words["variables"].items()}
            self.entries = {n: Entry.from_json(x) for n, x in words["variables"].items()}
        except (SavedError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{path}: {error}") from error
        self.about = {}
        self.time_ns = path.stat().st_mtime_ns

    def _words(self) -> Any:
        return {"variables": self._files}

    def _size(self) -> int:
        return self.path.stat().st_size

    def _array(self, name: str, entry: Entry) -> np.ndarray:
        return saved.array_of(self._members[self._files[name]], entry)

    def read(self, path: str) -> np.ndarray:
        """Return the plain numbers of one variable."""
        return self._array(path, self.entries[path])


def opened(path: Any) -> Stored:
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
        return SavedVariables(place) if place.name == SAVED_FILE else open_stored(place)
    except CheckpointError as error:
        raise DataLossError(None, None, str(error)) from error


def file_of(path: Any) -> Path | None:
    """Return the file or folder of a checkpoint of which the prefix is given, or the path."""
    path = os.fspath(path)
    for place in (Path(f"{path}{SUFFIX}"), Path(path)):
        if place.is_file() or (place / "_METADATA").is_file():
            return place
        if (place / SAVED_FILE).is_file():
            return place / SAVED_FILE
    return None


def saved_graph(stored: Stored) -> Graph:
    """Return the graph of a checkpoint on disk; one of its names if jaxvars wrote it."""
    note = next((name for name in NOTES if name in stored.entries), None)
    if note is None:
        return graphs.from_names(stored.entries)
    try:
        text = str(stored.value(note))
        return _of_tree(text) if note == SAVED_TREE else graphs.from_text(text)
    except (ValueError, KeyError, TypeError) as error:
        raise DataLossError(None, None, f"{stored.path} is damaged: {note}: {error}") from error


def _of_tree(text: str) -> Graph:
    items: Any = json.loads(text)["items"]
    names = {n: item["value"] for n, item in enumerate(items) if item["kind"] == "variable"}
    return Graph([dict(item["children"]) for item in items], names, [])
