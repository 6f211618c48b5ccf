"""What is in a folder of checkpoints, and in a checkpoint, by TensorFlow's names.

Rules this file keeps:
- names of values are TensorFlow's keys: `net/kernel/.ATTRIBUTES/VARIABLE_VALUE`;
- which checkpoint is the latest is told by the checkpoints: there is no file named `checkpoint`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from jaxvars._checkpoint_files import Stored, open_stored
from jaxvars._variable import Variable
from jaxvars.errors import CheckpointError
from jaxvars.tf import _train_graph as graphs
from jaxvars.tf._dtypes import DTYPES, DType, as_dtype, int64, string
from jaxvars.tf._train_checkpoint import SUFFIX, WRITTEN, file_of, opened, saved_graph
from jaxvars.tf._train_graph import Graph, key_of
from jaxvars.tf._variable import face_of
from jaxvars.tf.errors import DataLossError, NotFoundError

_COUNTER = "save_counter"  # int32 in the file, int64 at this door


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
    found = _saved(checkpoint_dir)
    return found[-1][1] if found else None


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

    >>> get_checkpoint_state("/there/is/none") is None
    True
    """
    found = _saved(checkpoint_dir)
    if not found:
        return None
    times, paths = [t for t, _ in found], [path for _, path in found]
    return CheckpointState(paths[-1], paths, times, times[0])


def _saved(folder: Any) -> list[tuple[float, str]]:
    """Return when the checkpoints of a folder were saved, and their paths, in that order."""
    folder = os.fspath(folder)
    if not Path(folder).is_dir():
        return []
    found: list[tuple[int, str]] = []
    for place in Path(folder).iterdir():
        if place.suffix == SUFFIX or (place / "_METADATA").is_file():
            stored = _sound(place)
            if stored is not None and WRITTEN not in stored.about:
                name = place.name.removesuffix(SUFFIX)
                found.append((stored.time_ns, os.path.join(folder, name)))  # noqa: PTH118 - as given: "./x" stays
    return [(time_ns / 1e9, path) for time_ns, path in sorted(found)]


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
        timeout: how many seconds to wait for the next; for ever when None.
        timeout_fn: asked when the time is over whether to end; it ends when None.
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


# ---------------------------------------------------------------- one checkpoint
@final
class CheckpointReader:
    """The values of a checkpoint; made by `tf.train.load_checkpoint`."""

    __slots__ = ("_names", "_stored")

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._names = {key_of(name): name for name in sorted(stored.entries)}

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return the shapes by key."""
        entries = self._stored.entries
        return {key: list(entries[name].shape) for key, name in self._names.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Return the types by key."""
        return {key: self._dtype(name) for key, name in self._names.items()}

    def _dtype(self, name: str) -> DType:
        dtype = self._stored.entries[name].dtype
        if name == _COUNTER:
            return int64
        if dtype.startswith("key<"):  # random keys
            return DTYPES["uint32"]
        return string if dtype == "string" else as_dtype(dtype)

    def has_tensor(self, tensor_str: str) -> bool:
        """Tell whether there is a value of a key."""
        return tensor_str in self._names

    def get_tensor(self, tensor_str: str) -> Any:
        """Return a value, a NumPy array or scalar; text as bytes.

        Raises:
            tf.errors.NotFoundError: when there is none of that key.
            tf.errors.DataLossError: when it is damaged.
        """
        if tensor_str not in self._names:
            raise NotFoundError(None, None, f"Key {tensor_str} not found in checkpoint")
        name = self._names[tensor_str]
        try:
            value = np.asarray(self._stored.value(name))
        except ValueError as error:
            raise DataLossError(None, None, f"{self._stored.path}: {name}: {error}") from error
        if self._dtype(name).is_string:
            value = value.astype(object)
            value = np.vectorize(str.encode, otypes=[object])(value) if value.size else value
        value = value.astype(np.int64) if name == _COUNTER else value
        return value[()] if not value.shape else value

    def debug_string(self) -> bytes:
        """Return a list of the values, a line for each."""
        dtypes, shapes = self.get_variable_to_dtype_map(), self.get_variable_to_shape_map()
        return "".join(f"{key} ({dtypes[key].name}) {shapes[key]}\n" for key in dtypes).encode()


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Return what reads the values of a checkpoint, or of the latest in a folder.

    Raises:
        tf.errors.NotFoundError: when there is no checkpoint of that path.
        ValueError: when there is none in the folder.
    """
    path = os.fspath(ckpt_dir_or_file)
    if file_of(path) is None and Path(path).is_dir():
        latest = latest_checkpoint(path)
        if latest is None:
            raise ValueError(
                f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}"
            )
        path = latest
    if file_of(path) is None:
        raise NotFoundError(
            None,
            None,
            "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
            f"{path}",
        )
    return CheckpointReader(opened(path))


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """Return a value of a checkpoint, or of the latest in a folder; see `load_checkpoint`."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Return the keys and shapes of a checkpoint, or of the latest in a folder.

    >>> import tempfile
    >>> from jaxvars import tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).write(f"{folder}/v")
    ...     list_variables(path)[0]
    ('_CHECKPOINTABLE_OBJECT_GRAPH', [])
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


# ---------------------------------------------------------------- graphs
@final
class CheckpointView:
    """The objects in a checkpoint, as numbers; the root is 0.

    Args:
        save_path: of the checkpoint.
    """

    def __init__(self, save_path: Any) -> None:
        self._graph: Graph = saved_graph(opened(save_path))

    def children(self, node_id: int) -> dict[str, int]:
        """Return the children of an object, by name."""
        return dict(self._graph.edges[node_id])

    def descendants(self) -> list[int]:
        """Return all objects, the root first."""
        return list(range(len(self._graph.edges)))

    def match(self, obj: Any) -> dict[int, Any]:
        """Return which objects below `obj` are which of the checkpoint."""
        graph = graphs.graph_of(obj)
        pairs = graphs.matched(graph, self._graph)
        return {its: _shown(graph.objects[mine]) for mine, its in pairs.items()}

    def diff(self, obj: Any) -> tuple[list[Any], list[int]]:
        """Return the objects below `obj` that the checkpoint has not, and the other way round."""
        graph = graphs.graph_of(obj)
        pairs = graphs.matched(graph, self._graph)
        left = [_shown(x) for i, x in enumerate(graph.objects) if i not in pairs]
        return left, sorted(set(self.descendants()) - set(pairs.values()))


@final
class TrackableView:
    """The objects below one.

    Args:
        root: the object.
    """

    def __init__(self, root: Any) -> None:
        self._root = root

    @property
    def root(self) -> Any:
        """The object."""
        return self._root

    @classmethod
    def children(cls, obj: Any, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """Return the children of an object, by name."""
        return {name: _shown(child) for name, child in graphs.children_of(obj)}

    def descendants(self) -> list[Any]:
        """Return all objects, the root first, by distance from it."""
        return [_shown(one) for one in graphs.graph_of(self._root).objects]


def _shown(value: Any) -> Any:
    return face_of(value) if isinstance(value, Variable) else value
