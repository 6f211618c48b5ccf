"""`tf.train.Checkpoint`, over what writes, verifies and restores checkpoints of jaxvars.

Rules this file keeps:
- what is written is named by TensorFlow's rules (`train/graph.py`);
- the variables, and nothing else, change when something is restored (`train/restore.py`).
"""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from jaxvars.checkpoint.checkpoint import Checkpoint as CoreCheckpoint
from jaxvars.checkpoint.checkpoint import refuse_traced
from jaxvars.checkpoint.files import write as write_file
from jaxvars.core.frames import LOCAL, entered
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import CheckpointError
from jaxvars.objects.traversal import CLOSED_TYPES as CLOSED
from jaxvars.objects.traversal import HIDING, Holder, Proxy, resolve_proxy
from jaxvars.tensors.tensor import to_tensor
from jaxvars.tf.control.callbacks import py_function
from jaxvars.tf.errors import NotFoundError
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.train import graph as graphs
from jaxvars.tf.train.bundle import Bundle
from jaxvars.tf.train.graph import GRAPH, Node
from jaxvars.tf.train.restore import Status, Wait
from jaxvars.tf.train.stored import SUFFIX, WRITTEN, open_checkpoint, saved_graph
from jaxvars.tf.variables.strings import to_core_strings
from jaxvars.tf.variables.variable import Variable, face_of
from jaxvars.tracing import context


@final
@dataclass(eq=False, repr=False)
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

    experimental_io_device: str | None = None
    experimental_enable_async_checkpoint: bool = False
    experimental_write_callbacks: Any = None
    enable_async: bool = False
    experimental_skip_slot_variables: bool = False
    experimental_sharding_callback: Any = None

    def __post_init__(self) -> None:
        self.enable_async = self.enable_async or self.experimental_enable_async_checkpoint


@final
class Checkpoint(Holder, Node):
    """Objects whose variables are saved and restored.

    Args:
        root: an object whose children are those of the Checkpoint, too; or a weak reference to it.
        **kwargs: variables, modules, optimizers, generators, lists and dicts of them, by name;
            more can be assigned later, as attributes.

    Raises:
        ValueError: when something holds no variables, like a number, or when it is saved a dict of
            tensors; when `root` has another child of a name; when slots are saved of variables
            that have the same name and are not in the Checkpoint.

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
    for optimizers' slots) and NumPy can read, and TensorFlow cannot. TensorFlow's are read, too:
    slots of optimizers where Keras has the same. Each value is verified by a checksum. Plain
    Python objects are looked into as modules are. A variable that is put into one of the objects
    after `restore` has its value when it is used next, not at once. `save_counter` is int32.
    """

    __slots__ = ("__core", "__is_counted", "__root")

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        held = _dereference(root)
        _check_trackable("root", held, (*CLOSED, list, dict))
        self._begin(root)
        taken = dict(graphs.children_of(resolve_proxy(held))) if kwargs else {}
        for name, value in kwargs.items():
            if name in taken and taken[name] is not resolve_proxy(value):
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if root.{name} "
                    "already exists."
                )
            _check_trackable(name, value, CLOSED)
            vars(self)[name] = value

    def _begin(self, root: Any) -> None:
        self.__root = root
        self.__is_counted = False
        self.__core = CoreCheckpoint(_Contents(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Checkpoint:
        made: Checkpoint = object.__new__(type(self))
        memo[id(self)] = made
        made._begin(copy.deepcopy(self.__root, memo))
        vars(made).update(copy.deepcopy(vars(self), memo))
        if self.__is_counted:
            made.save_counter.assign(int(self.save_counter))
        return made

    # ------------------------------------------------------------ what is in it
    def children(self) -> Iterator[tuple[str, object]]:
        """Yield what is in it, with the names."""
        root = resolve_proxy(_dereference(self.__root))
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
        return self if self.__root is None else _dereference(self.__root)

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
            NotImplementedError: in a `tf.function`, where there is `write`.
        """
        if is_traced():
            raise NotImplementedError(
                "Calling tf.train.Checkpoint.save() from a function is not supported: it counts, "
                "and chooses a name, in Python. Call it outside, or use "
                "tf.train.Checkpoint.write(prefix)."
            )
        prefix = _path(file_prefix)
        try:
            path = self.core.save(f"{prefix}{SUFFIX}")
        except CheckpointError as error:
            raise refused(str(error)) from error
        call_back(options, shown := f"{prefix}{_number(path, prefix)}")
        return shown

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> Any:
        """Write the values, without a number; for `read`.

        In a `tf.function` they are written each time that the program is run.

        Returns:
            The path; in a `tf.function` as a tensor.

        Raises:
            tf.errors.InvalidArgumentError: when a value cannot be written.
            tf.errors.NotFoundError: in a `tf.function`, when the folder does not exist.
        """
        prefix = _path(file_prefix)
        if is_traced():
            return self._write_in_program(prefix, options)
        values = self.__core._snapshot()
        if not self.__is_counted:
            values.pop("save_counter", None)
        _write(prefix, values, options)
        return prefix

    def _write_in_program(self, prefix: str, options: CheckpointOptions | None) -> Tensor:
        with context.at(context.EVAL), entered(LOCAL.eager):
            graph = graphs.graph_of(self)
        graphs.refuse_lost(graph)
        nodes = [one for one in graph.objects if isinstance(one, Node)]
        strings = {v: string for one in nodes for v, string in one.strings().items()}
        named = graphs.by_name(graph)
        given = {name: v for name, v in named.items() if v not in strings}

        def write(*values: Tensor) -> None:
            if not Path(prefix).parent.is_dir():
                raise NotFoundError(None, None, f"{Path(prefix).parent}; No such file or directory")
            graphs.refuse_lost(graph)
            arrays = [to_core_strings(value._array) for value in values]
            found = {n: to_tensor(strings[v]()) for n, v in named.items() if n not in given}
            notes = {**found, GRAPH: to_tensor(graph.to_string())}
            _write(prefix, {**dict(zip(given, arrays, strict=True)), **notes}, options)

        py_function(write, [face_of(v).value() for v in given.values()], [])
        return Tensor(to_array(prefix))

    # ------------------------------------------------------------ reading
    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> Status:
        """Give the variables the values of a checkpoint; those made later will have theirs.

        Args:
            save_path: what `save` or `write` returned, here or in TensorFlow, or a folder of
                `tf.saved_model.save`; None does nothing.
            options: of no effect.

        Returns:
            A status, to check with `assert_consumed()` and the like.

        Raises:
            tf.errors.NotFoundError: without a checkpoint.
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
        stored = open_checkpoint(_path(save_path))
        wait = Wait(self, graph := saved_graph(stored))
        if isinstance(stored, Bundle):
            stored.prepare(graph)
        wait.begin(stored)
        return Status(wait, self)


HIDING.add(Checkpoint)


def is_traced() -> bool:
    """Return whether a function is being traced, so that no file can be read or written now."""
    return LOCAL.frame is not LOCAL.eager or context.strip(context.current()) is not context.EVAL


def _path(prefix: Any) -> str:
    """Return a path, which may be a tensor, as a string."""
    value = prefix.numpy().decode() if isinstance(prefix, Tensor) else prefix
    return os.fspath(value)


def _write(prefix: str, values: dict[str, Any], options: CheckpointOptions | None) -> None:
    try:
        write_file(f"{prefix}{SUFFIX}", values, {WRITTEN: True})
    except CheckpointError as error:
        raise refused(str(error)) from error
    call_back(options, prefix)


def _number(path: str, prefix: str) -> str:
    """Return what a numbered path has more than a prefix: "-3"."""
    return Path(path).name.removesuffix(SUFFIX)[len(Path(prefix).name) :]


def call_back(options: CheckpointOptions | None, path: str) -> None:
    """Call the functions of some options with the path of what was written."""
    callbacks: Sequence[Any] = (options and options.experimental_write_callbacks) or ()
    for callback in callbacks:
        takes = callback.__code__.co_argcount if hasattr(callback, "__code__") else 1
        callback(path) if takes else callback()


def _dereference(root: Any) -> Any:
    return root() if isinstance(root, weakref.ref) else root


def _check_trackable(name: str, value: Any, refused_types: tuple[type, ...]) -> None:
    if (
        isinstance(value, Iterator)
        and not isinstance(value, Node)
        and not hasattr(value, "__dict__")
    ):
        raise ValueError(
            f"`Checkpoint` was expecting {name} to be a trackable object, got {value!r}: where an "
            "iterator of Python's is cannot be saved. Put that of the dataset into it: "
            "iterator = iter(dataset); tf.train.Checkpoint(iterator=iterator)."
        )
    if value is not None and isinstance(value, refused_types):
        raise ValueError(
            f"`Checkpoint` was expecting {name} to be a trackable object (a tf.Variable, "
            f"tf.Module, optimizer, or as an attribute a list or dict of them), got {value!r}."
        )


@final
class _Contents(Proxy):
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
        graphs.refuse_lost(graph)
        return {**graphs.by_name(graph), GRAPH: CoreVariable(graph.to_string(), name="graph")}
