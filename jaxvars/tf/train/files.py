"""What is in a checkpoint, by TensorFlow's names.

Rules this file keeps:
- names of values are TensorFlow's keys: `net/kernel/.ATTRIBUTES/VARIABLE_VALUE`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, final

import numpy as np

from jaxvars.checkpoint.stored import Stored
from jaxvars.core.variable import Variable
from jaxvars.tf.attributes import getter
from jaxvars.tf.errors import DataLossError, NotFoundError
from jaxvars.tf.tensors.dtypes import DTYPES, DType, any_dtype, int64, string
from jaxvars.tf.train import graph as graphs
from jaxvars.tf.train.bundle import NOT_READ, Bundle
from jaxvars.tf.train.graph import Graph, key_of
from jaxvars.tf.train.stored import file_of, latest_checkpoint, open_checkpoint, saved_graph
from jaxvars.tf.variables.strings import from_core_strings
from jaxvars.tf.variables.variable import face_of

_COUNTER = "save_counter"  # int32 in the file, int64 at this door


@final
class CheckpointReader:
    """The values of a checkpoint; made by `tf.train.load_checkpoint`."""

    __slots__ = ("_names", "_stored")

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        names = sorted(stored.entries)
        self._names = {n if isinstance(stored, Bundle) else key_of(n): n for n in names}

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return the shapes by key."""
        entries = self._stored.entries
        return {key: list(entries[name].shape) for key, name in self._names.items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Return the types by key, but for those that jaxvars has not, as of an iterator."""
        entries, names = self._stored.entries, self._names.items()
        return {k: self._dtype(name) for k, name in names if entries[name].dtype != NOT_READ}

    def _dtype(self, name: str) -> DType:
        dtype = self._stored.entries[name].dtype
        if name == _COUNTER:
            return int64
        if dtype.startswith("key<"):  # random keys
            return DTYPES["uint32"]
        return string if dtype == "string" else any_dtype(dtype)

    def has_tensor(self, tensor_str: str) -> bool:
        """Return whether there is a value of a key."""
        return tensor_str in self._names

    def get_tensor(self, tensor_str: str) -> Any:
        """Return a value, a NumPy array or scalar; strings as bytes.

        Raises:
            tf.errors.NotFoundError: when there is none of that key.
            tf.errors.DataLossError: when it is damaged.
        """
        if tensor_str not in self._names:
            raise NotFoundError(None, None, f"Key {tensor_str} not found in checkpoint")
        name = self._names[tensor_str]
        try:
            if isinstance(self._stored, Bundle):
                return self._stored.tensor(name)[()]
            value = np.asarray(self._stored.value(name))
        except ValueError as error:
            raise DataLossError(None, None, f"{self._stored.path}: {name}: {error}") from error
        if self._dtype(name).is_string:
            value = from_core_strings(value)
        value = value.astype(np.int64) if name == _COUNTER else value
        return value[()] if not value.shape else value

    def debug_string(self) -> bytes:
        """Return a list of the values, a line for each."""
        dtypes, shapes = self.get_variable_to_dtype_map(), self.get_variable_to_shape_map()
        return "".join(f"{key} ({dtypes[key].name}) {shapes[key]}\n" for key in dtypes).encode()


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Return what reads the values of a checkpoint, or of the latest in a folder.

    It may be one that TensorFlow wrote: `<prefix>.index` and `<prefix>.data-...`.

    Raises:
        tf.errors.NotFoundError: when no checkpoint has that path.
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
            message="Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
            f"for {path}"
        )
    return CheckpointReader(open_checkpoint(path))


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
        self._graph: Graph = saved_graph(open_checkpoint(save_path))

    def children(self, node_id: int) -> dict[str, int]:
        """Return the children of an object, by name."""
        return dict(self._graph.edges[node_id])

    def descendants(self) -> list[int]:
        """Return all objects, the root first."""
        return list(range(len(self._graph.edges)))

    def match(self, obj: Any) -> dict[int, Any]:
        """Return which objects below `obj` are which of the checkpoint."""
        graph = graphs.graph_of(obj)
        pairs = graphs.match_graphs(graph, self._graph)
        return {its: _to_face(graph.objects[mine]) for its, mine in pairs.items()}

    def diff(self, obj: Any) -> tuple[list[Any], list[int]]:
        """Return the objects below `obj` that the checkpoint has not, and the other way round."""
        graph = graphs.graph_of(obj)
        pairs = graphs.match_graphs(graph, self._graph)
        met = set(pairs.values())
        left = [_to_face(x) for i, x in enumerate(graph.objects) if i not in met]
        return left, sorted(set(self.descendants()) - set(pairs))


@final
class TrackableView:
    """The objects below one.

    Args:
        root: the object.
    """

    def __init__(self, root: Any) -> None:
        self._root = root

    root = getter("_root", "The object.")

    @classmethod
    def children(cls, obj: Any, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """Return the children of an object, by name."""
        return {name: _to_face(child) for name, child in graphs.children_of(obj)}

    def descendants(self) -> list[Any]:
        """Return all objects, the root first, by distance from it."""
        return [_to_face(one) for one in graphs.graph_of(self._root).objects]


def _to_face(value: Any) -> Any:
    return face_of(value) if isinstance(value, Variable) else value
