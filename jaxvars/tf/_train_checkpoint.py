"""`tf.train.Checkpoint`, over what writes, verifies and restores checkpoints of jaxvars.

Rules this file keeps:
- objects are matched by TensorFlow's rules (`_train_graph.py`), values are written, verified and
  waited for by jaxvars';
- a path is the prefix that TensorFlow programs know: the file is called `<prefix>.npz`;
- what waits for variables that will be made waits as long as the objects do, not the Checkpoint.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

from jaxvars import _checkpoint_restore as restoring
from jaxvars._checkpoint import Checkpoint as CoreCheckpoint
from jaxvars._checkpoint import _refuse_traced as refuse_traced
from jaxvars._checkpoint_files import Stored, open_stored
from jaxvars._checkpoint_files import write as write_file
from jaxvars._variable import Variable as CoreVariable
from jaxvars._walk import _CLOSED as CLOSED
from jaxvars._walk import Alias, Holder
from jaxvars.errors import CheckpointError
from jaxvars.tf import _train_graph as graphs
from jaxvars.tf._train_graph import GRAPH, Graph, Node
from jaxvars.tf._train_options import CheckpointOptions
from jaxvars.tf._variable import Variable, face_of
from jaxvars.tf.errors import DataLossError, InvalidArgumentError, NotFoundError

SUFFIX = ".npz"
WRITTEN = "written"

_WAITING: weakref.WeakKeyDictionary[object, list[_Wait]] = weakref.WeakKeyDictionary()
"""What waits for variables in an object: it lives as long as the object does."""


@final
class Checkpoint(Holder, Node):
    """Objects whose variables are saved and restored.

    Args:
        root: an object whose children are those of the Checkpoint, too.
        **kwargs: variables, modules, optimizers, generators, lists and dicts of them, by name;
            more can be assigned later, as attributes.

    Raises:
        ValueError: when something holds no variables, like a number.

    Example:
        >>> import tempfile
        >>> from jaxvars import tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> v = tf.Variable([1.0, 2.0])
        >>> path = tf.train.Checkpoint(v=v).save(f"{folder.name}/ckpt")
        >>> restored = tf.Variable([0.0, 0.0])
        >>> _ = tf.train.Checkpoint(v=restored).restore(path).assert_consumed()
        >>> restored.numpy()
        array([1., 2.], dtype=float32)
        >>> folder.cleanup()

    Differs from TensorFlow: a checkpoint is one file, `<prefix>.npz`, which `jv.checkpoint` (but
    for optimizers' slots) and NumPy can read, and TensorFlow cannot. Each value is verified by a
    digest. Plain Python objects are looked into as modules are. A variable that existed before
    `restore`, and is put into one of the objects afterwards, has its value when the status is
    asked. `save_counter` is int32.
    """

    __slots__ = ("__core", "__is_counted", "__root")

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        if isinstance(root, list | dict):
            raise ValueError(_untrackable("root", root))
        self.__root = _trackable("root", root)
        self.__is_counted = False
        vars(self).update({name: _trackable(name, value) for name, value in kwargs.items()})
        self.__core = CoreCheckpoint(_Contents(self))

    # ------------------------------------------------------------ what is in it
    def children(self) -> Iterator[tuple[str, object]]:
        """Yield what is in it, with the names."""
        root = graphs.seen_through(self.__root)
        if isinstance(root, CoreVariable):
            yield "", root
        elif root is not None:
            yield from graphs.children_of(root)
        if self.__is_counted:
            yield "save_counter", self.__core.save_counter
        yield from vars(self).items()

    @property
    def root(self) -> Any:
        """The object whose children are those of the Checkpoint; the Checkpoint if none was."""
        return self if self.__root is None else self.__root

    @property
    def save_counter(self) -> Variable:
        """How often it was saved: a variable."""
        self.__is_counted = True
        return face_of(self.__core.save_counter)

    @property
    def core(self) -> CoreCheckpoint:
        """The `jaxvars.checkpoint.Checkpoint` that does the writing."""
        self.__is_counted = True
        return self.__core

    # ------------------------------------------------------------ writing
    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save the values as the next of `<file_prefix>-1`, `-2`, ..., and count.

        Returns:
            The path, for `restore`.

        Raises:
            tf.errors.InvalidArgumentError: when a value cannot be written.
        """
        prefix = os.fspath(file_prefix)
        try:
            path = self.core.save(f"{prefix}{SUFFIX}")
        except CheckpointError as error:
            raise InvalidArgumentError(None, None, str(error)) from error
        _called_back(options, shown := f"{prefix}{_number(path, prefix)}")
        return shown

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Write the values, without a number; for `read`.

        Raises:
            tf.errors.InvalidArgumentError: when a value cannot be written.
        """
        prefix = os.fspath(file_prefix)
        values = self.__core._snapshot()
        if not self.__is_counted:
            values.pop("save_counter", None)
        try:
            write_file(f"{prefix}{SUFFIX}", values, {WRITTEN: True})
        except CheckpointError as error:
            raise InvalidArgumentError(None, None, str(error)) from error
        _called_back(options, prefix)
        return prefix

    # ------------------------------------------------------------ reading
    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Status:
        """Give the variables the values of a checkpoint; those made later will have theirs.

        Returns:
            A status, to ask with `assert_consumed()` and the like.

        Raises:
            tf.errors.NotFoundError: when there is no checkpoint.
            tf.errors.DataLossError: when it is damaged.
            ValueError: when a shape differs.
            tf.errors.InvalidArgumentError: when a type differs. Nothing is changed in any case.
        """
        self.__is_counted = True
        return self.read(save_path, options)

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> Status:
        """Give the variables the values that `write` wrote; see `restore`."""
        refuse_traced("restored")
        if save_path is None:
            return Status(None)
        stored = opened(save_path)
        wait = _Wait(self, saved_graph(stored))
        wait.begin(stored)
        return Status(wait, self)


def _number(path: str, prefix: str) -> str:
    """Return what a numbered path has more than a prefix: "-3"."""
    return Path(path).name.removesuffix(SUFFIX)[len(Path(prefix).name) :]


def _called_back(options: CheckpointOptions | None, path: str) -> None:
    for callback in (options and options.experimental_write_callbacks) or ():
        takes = callback.__code__.co_argcount if hasattr(callback, "__code__") else 1
        callback(path) if takes else callback()


def _trackable(name: str, value: Any) -> Any:
    if isinstance(value, CLOSED) and value is not None:
        raise ValueError(_untrackable(name, value))
    return value


def _untrackable(name: str, value: Any) -> str:
    return (
        f"`Checkpoint` was expecting {name} to be a trackable object (a tf.Variable, tf.Module, "
        f"optimizer, or as an attribute a list or dict of them), got {value!r}."
    )


@final
class _Contents(Alias):
    """All that is saved, by name: the variables, and the graph."""

    __slots__ = ("__weakref__", "_owner")

    def __init__(self, owner: Checkpoint) -> None:
        self._owner = weakref.ref(owner)

    @property
    def aliased(self) -> object:
        """A dict of variables by name."""
        owner = self._owner()
        if owner is None:
            return {}
        graph = graphs.graph_of(owner)
        return {**graphs.by_name(graph), GRAPH: CoreVariable(graph.to_text(), name="graph")}


@final
class _Wait(Alias):
    """The values of a checkpoint on their way into the objects of a Checkpoint."""

    __slots__ = ("__weakref__", "_children", "_others", "_owner", "_restore", "_saved")

    def __init__(self, owner: Checkpoint, saved: Graph) -> None:
        self._owner = weakref.ref(owner)
        self._saved = saved
        self._others: dict[str, CoreVariable] = {}  # take what is no variable's
        self._restore: restoring.Restore | None = None
        children = dict(graphs.children_of(owner))
        self._children = {name: ref for name, x in children.items() if (ref := _weak(x))}

    def begin(self, stored: Stored) -> None:
        """Restore what is there, and wait for the rest."""
        if GRAPH in stored.entries:
            self._others[GRAPH] = CoreVariable("", name="graph")
        self._check(stored)
        try:
            restore = restoring.Restore(stored, self._roots(), self)
            self._supersede(str(stored.path))
            restore.begin()
        except CheckpointError as error:
            raise DataLossError(None, None, str(error)) from error
        self._restore = restore
        if restore.waiting:
            for child in [*self._held(), self._owner()]:
                waiting = _WAITING.setdefault(child, [])
                waiting[:] = [other for other in waiting if other.is_waiting] + [self]

    def _check(self, stored: Stored) -> None:
        """Raise what TensorFlow raises for a variable of another shape or type."""
        cells = restoring.find_cells(self._roots())
        for name in restoring.misfits_of(stored.entries, cells):
            entry, cell = stored.entries[name], cells[name]
            if entry.shape != tuple(cell.aval.shape):
                raise ValueError(
                    f"Received incompatible tensor with shape {entry.shape} when attempting to "
                    f"restore variable with shape {tuple(cell.aval.shape)} and name {cell.name}:0."
                )
            raise InvalidArgumentError(
                None,
                None,
                f"tensor_name = {graphs.key_of(name)}; expected dtype {cell.aval.dtype} does not "
                f"equal original dtype {entry.dtype} [Op:RestoreV2]",
            )

    def _supersede(self, path: str) -> None:
        """End what waits for variables in the same objects."""
        for child in [*self._held(), self._owner()]:
            for other in _WAITING.get(child, []):
                if other._restore is not None and other.is_waiting:
                    other._restore.replaced_by = path
                    other._restore.is_partial = True  # nobody needs to be told
                    other._restore.end()

    def _held(self) -> list[object]:
        return [x for ref in self._children.values() if (x := ref()) is not None]

    @property
    def is_waiting(self) -> bool:
        """Whether there are values that nobody has taken."""
        restore = self._restore
        return restore is not None and bool(restore.waiting) and not restore.replaced_by

    @property
    def restore(self) -> restoring.Restore:
        """What has become of the values, looked at again."""
        if self._restore is None:
            raise CheckpointError("Nothing was restored.")
        refuse_traced("restored")
        self._restore.look()
        return self._restore

    def _roots(self) -> dict[str | None, object]:
        return {None: self}

    @property
    def aliased(self) -> object:
        """A dict of the variables that are there by now, by the names of their values."""
        graph = graphs.graph_of(self._owner() or _Rest(self._children))
        return {**graphs.by_saved_name(graph, self._saved), **self._others}

    def missing(self) -> list[Variable]:
        """Return the variables that have got no value."""
        restore = self.restore
        cells = restoring.find_cells(self._roots())
        owners = [cells[name].owner() for name in restore.missing()]
        return [face_of(owner) for owner in owners if isinstance(owner, CoreVariable)]


@final
class _Rest(Node):
    """What is left of a Checkpoint that is gone."""

    __slots__ = ("_children",)

    def __init__(self, children: dict[str, Any]) -> None:
        self._children = children

    def children(self) -> Iterator[tuple[str, object]]:
        """Yield the objects that are there still."""
        yield from ((name, x) for name, ref in self._children.items() if (x := ref()) is not None)


def _weak(child: object) -> weakref.ref[Any] | None:
    """Return a weak reference; None of what cannot have one, or no place in a dict."""
    try:
        hash(child)
        return weakref.ref(child)
    except TypeError:
        return None


@final
class Status:
    """What has become of the values of a checkpoint; returned by `Checkpoint.restore`.

    Its methods look again each time: variables may have been made since.
    """

    __slots__ = ("_owner", "_wait")

    def __init__(self, wait: _Wait | None, owner: Checkpoint | None = None) -> None:
        self._wait = wait
        self._owner = owner  # which lives as long as somebody may ask

    def assert_consumed(self) -> Status:
        """Raise AssertionError unless all values have variables, and all variables values."""
        wait = self._given()
        restore = wait.restore
        self._refuse_misfits(restore)
        for name in sorted(restore.waiting):
            raise AssertionError(
                f"Unresolved object in checkpoint (root).{name.replace('/', '.')}: no variable has "
                f"taken the value {graphs.key_of(name)}."
            )
        return self._all_have_values(wait)

    def assert_existing_objects_matched(self) -> Status:
        """Raise AssertionError unless all variables that there are have values from it."""
        wait = self._given()
        self._refuse_misfits(wait.restore)
        return self._all_have_values(wait)

    def assert_nontrivial_match(self) -> Status:
        """Raise AssertionError unless a variable besides `save_counter` has a value from it."""
        restore = self._given().restore
        if not restore.taken.keys() - {"save_counter", GRAPH}:
            raise AssertionError(
                f"Nothing to load. No dependencies have been added to the Checkpoint that are in "
                f"{restore.source}."
            )
        return self

    def expect_partial(self) -> Status:
        """Give no warning of values that were never used."""
        if self._wait is not None:
            self._wait.restore.is_partial = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Do nothing: values are restored at once."""

    run_restore_ops = initialize_or_restore

    def _given(self) -> _Wait:
        if self._wait is None:
            raise AssertionError(
                "No checkpoint specified (save_path=None); nothing is being restored."
            )
        return self._wait

    def _refuse_misfits(self, restore: restoring.Restore) -> None:
        if restore.misfits:
            lines = [f"{name}: {what}" for name, what in sorted(restore.misfits.items())]
            raise AssertionError("\n  ".join(["Values that do not fit their variables:", *lines]))

    def _all_have_values(self, wait: _Wait) -> Status:
        if left := wait.missing():
            raise AssertionError(
                f"Found {len(left)} Python objects that were not bound to checkpointed values, "
                "likely due to changes in the Python program. Showing "
                f"{min(10, len(left))} of {len(left)} unmatched objects: {left[:10]}"
            )
        return self


# ---------------------------------------------------------------- files
def opened(path: Any) -> Stored:
    """Return a checkpoint on disk.

    Raises:
        tf.errors.NotFoundError: when there is none.
        tf.errors.DataLossError: when it is damaged.
    """
    place = file_of(path)
    if place is None:
        raise NotFoundError(
            None,
            None,
            f"Error when restoring from checkpoint or SavedModel at {path}: Unsuccessful "
            f"TensorSliceReader constructor: Failed to find any matching files for {path}\nPlease "
            "double-check that the path is correct. You may be missing the checkpoint suffix (e.g. "
            "the '-1' in 'path/to/ckpt-1').",
        )
    try:
        return open_stored(place)
    except CheckpointError as error:
        raise DataLossError(None, None, str(error)) from error


def file_of(path: Any) -> Path | None:
    """Return the file or folder of a checkpoint of which the prefix is given, or the path."""
    path = os.fspath(path)
    for place in (Path(f"{path}{SUFFIX}"), Path(path)):
        if place.is_file() or (place / "_METADATA").is_file():
            return place
    return None


def saved_graph(stored: Stored) -> Graph:
    """Return the graph of a checkpoint on disk; one of its names if jaxvars wrote it."""
    if GRAPH not in stored.entries:
        return graphs.from_names(stored.entries)
    try:
        return graphs.from_text(str(stored.value(GRAPH)))
    except (ValueError, KeyError, TypeError) as error:
        raise DataLossError(None, None, f"{stored.path} is damaged: {GRAPH}: {error}") from error
