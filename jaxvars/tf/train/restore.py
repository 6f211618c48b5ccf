"""The values of a checkpoint on their way into the objects of a `tf.train.Checkpoint`.

`Checkpoint.restore` returns a `Status`, which says what has become of them.

Rules this file keeps:
- objects are matched by TensorFlow's rules (`train/graph.py`), values are verified and waited for
  by jaxvars (`checkpoint/restore.py`);
- what waits for variables that will be made waits as long as the objects do, not the Checkpoint;
- a variable that is put into one of the objects later has its value when it is used next, were it
  older than the restore, as in TensorFlow.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any, final

import jax.numpy as jnp

from jaxvars.checkpoint import restore as restoring
from jaxvars.checkpoint.checkpoint import refuse_traced
from jaxvars.checkpoint.matching import misfits_of
from jaxvars.checkpoint.stored import Stored
from jaxvars.checkpoint.trees import Trees
from jaxvars.checkpoint.waiting import announce, given_by
from jaxvars.core.cells import STORE, Cell
from jaxvars.core.store import exclusively
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.errors import CheckpointError
from jaxvars.objects.identity import Weak
from jaxvars.objects.traversal import Proxy
from jaxvars.tf.errors import DataLossError
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.train import graph as graphs
from jaxvars.tf.train.graph import Graph, Node
from jaxvars.tf.train.stored import NOTES
from jaxvars.tf.variables.variable import Variable, face_of

_WAITING: dict[Weak, list[Wait]] = {}
"""What waits for variables in an object: it lives as long as the object does."""

_LOOKS = 4  # how often a variable that is older is looked for, when it is used


def _forget(gone: Weak) -> None:
    _WAITING.pop(gone, None)


@final
class Wait(Proxy):
    """The values of a checkpoint on their way into the objects of a Checkpoint.

    Args:
        owner: the Checkpoint.
        saved: the graph of what was saved.
    """

    __slots__ = (
        "__weakref__", "_children", "_owner", "_restore", "_saved", "_sinks", "_stamp", "_stored",
    )  # fmt: skip

    def __init__(self, owner: Node, saved: Graph) -> None:
        self._owner = weakref.ref(owner)
        self._saved = saved
        self._sinks: dict[str, CoreVariable] = {}  # take what is not a variable's
        self._restore: restoring.Restore | None = None
        self._stored: Stored | None = None
        self._stamp: object = None
        children = dict(graphs.children_of(owner))
        self._children = {name: ref for name, x in children.items() if (ref := _weak(x))}

    def begin(self, stored: Stored) -> None:
        """Restore what is there, and wait for the rest."""
        self._stored, self._stamp = stored, stored.stamp
        for note in NOTES & stored.entries.keys():
            self._sinks[note] = CoreVariable("", name="graph")
        shapes = {path: entry.shape for path, entry in stored.entries.items()}
        restoring.build_late(dict(graphs.children_of(self._owner())), shapes)
        cells = restoring.cells_of(restoring.find(self._roots(), CoreVariable))
        self._check(stored, cells)
        try:
            restore = restoring.Restore(stored, self._roots(), self, cells, Trees())
            self._supersede(stored)
            restore.begin()
        except CheckpointError as error:
            raise DataLossError(None, None, str(error)) from error
        self._restore, self._stored = restore, None
        if restore.waiting:
            for child in [*self._list_children(), self._owner()]:
                waiting = _WAITING.setdefault(Weak(child, _forget), [])
                waiting[:] = [other for other in waiting if other.is_waiting] + [self]
            exclusively(lambda: announce(tuple(STORE), _LOOKS))  # those that there are, too

    def _check(self, stored: Stored, cells: Mapping[str, Cell]) -> None:
        """Raise what TensorFlow raises for a variable of another shape or type."""
        for name in misfits_of(stored.entries, cells):
            entry, cell = stored.entries[name], cells[name]
            if not cell.takes(entry.shape):
                raise ValueError(
                    f"Received incompatible tensor with shape {entry.shape} when attempting to "
                    f"restore variable with shape {cell.declared} and name {cell.name}:0."
                )
            key = self._saved.key_of(name)
            raise refused(
                f"tensor_name = {key}; expected dtype {cell.aval.dtype} does not equal "
                f"original dtype {entry.dtype} [Op:RestoreV2]"
            )

    def _supersede(self, stored: Stored) -> None:
        """End what waits for the same places, in the same objects, as these values."""
        for child in [*self._list_children(), self._owner()]:
            for other in _WAITING.get(Weak(child), []):
                if other._restore is not None:
                    same = {name for name in stored.entries if self._shares(other, name)}
                    other._restore.give_up(same, str(stored.path))

    def _shares(self, other: Wait, name: str) -> bool:
        """Return whether the name of a value leads to the same object in another Checkpoint."""
        refs = {graphs.escape(child): ref for child, ref in other._children.items()}
        mine = {graphs.escape(child): ref for child, ref in self._children.items()}
        child = name.split("/")[0]
        is_same = child in refs and child in mine and refs[child]() is mine[child]()
        return is_same or other._owner() is self._owner()

    def _list_children(self) -> list[object]:
        return [x for ref in self._children.values() if (x := ref()) is not None]

    @property
    def is_waiting(self) -> bool:
        """Whether there are values that no variable has taken."""
        return self._restore is not None and self._restore.is_waiting

    @property
    def restore(self) -> restoring.Restore:
        """What has become of the values, looked at again."""
        if self._restore is None:
            raise CheckpointError("Nothing was restored.")
        refuse_traced("restored")
        self._restore.look()
        return self._restore

    # ------------------------------------------------------------ which value is whose
    def graph(self) -> Graph:
        """Return the graph of the objects that there are by now."""
        numbers = {name: number for number, name in self._saved.names.items()}
        given = given_by(self._stamp).items()
        known = {key: numbers[name] for key, name in given if name in numbers}
        return graphs.graph_of(self._owner() or _Rest(self._children), known)

    def matched(self) -> dict[int, int]:
        """Return which saved object is which of `graph()`."""
        return graphs.match_graphs(self.graph(), self._saved)

    def owner_of(self, name: str) -> int | None:
        """Return which object of `graph()` a value belongs to; None if there is none."""
        numbers = {own: number for number, own in self._saved.names.items()}
        return self.matched().get(numbers.get(name, -1))

    def _roots(self) -> dict[str | None, object]:  # what the restore asks for
        return {None: self}

    @property
    def aliased(self) -> object:
        """A dict of the variables that are there by now, by the names of their values."""
        found = graphs.by_saved_name(self.graph(), self._saved)
        named = {name: self._sink(name) if v is None else v for name, v in found.items()}
        return {**self._sinks, **named}

    def _sink(self, name: str) -> CoreVariable:
        """Return a variable for a value whose variable has another one already."""
        if name not in self._sinks:
            source: Any = self._stored or self._restore
            entry = (source.entries if self._stored else source._entries)[name]
            self._sinks[name] = CoreVariable(jnp.zeros(entry.shape, entry.dtype), name=name)
        return self._sinks[name]

    def missing(self) -> list[Variable]:
        """Return the variables that have got no value."""
        restore = self.restore
        cells = restore.look()
        owners = [cells[name].owner() for name in restore.missing(cells)]
        return [face_of(v) for v in owners if isinstance(v, CoreVariable)]


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


# ---------------------------------------------------------------- what has become of them
@final
class Status:
    """What has become of the values of a checkpoint; returned by `Checkpoint.restore`.

    Its methods look again each time: variables may have been made since.
    """

    __slots__ = ("_owner", "_wait")

    def __init__(self, wait: Wait | None, owner: object = None) -> None:
        self._wait = wait
        self._owner = owner  # which lives as long as its values may be queried

    def assert_consumed(self) -> Status:
        """Raise AssertionError unless all values have variables, and all variables values."""
        wait = self.assert_existing_objects_matched()._require_wait()
        restore = wait.restore
        for name in sorted(restore.waiting):
            key = wait._saved.key_of(name)
            place = f"(root).{key.partition('/.ATTRIBUTES/')[0].replace('/', '.')}"
            if wait.owner_of(name) is not None:
                raise AssertionError(
                    "Unused attributes in these objects (the attributes exist in the checkpoint "
                    f"but were not restored):\n{place}: it is not a variable, and there is the "
                    f"value {key}."
                )
            raise AssertionError(
                f"Unresolved object in checkpoint {place}: no variable has taken the value {key}."
            )
        return self

    def assert_existing_objects_matched(self) -> Status:
        """Raise AssertionError unless all variables that there are have values from it."""
        wait = self._require_wait()
        self._refuse_misfits(wait.restore)
        return self._all_have_values(wait)

    def assert_nontrivial_match(self) -> Status:
        """Raise AssertionError unless a variable has a value from it."""
        wait = self._require_wait()
        if not wait.restore.taken.keys() - NOTES:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means "
                "that the checkpoint does not match the Python program. In it are: "
                f"{sorted(wait.restore.waiting)[:10]}"
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

    def _require_wait(self) -> Wait:
        if self._wait is None:
            raise AssertionError(
                "No checkpoint specified (save_path=None); nothing is being restored."
            )
        return self._wait

    def _refuse_misfits(self, restore: restoring.Restore) -> None:
        if restore.misfits:
            lines = [f"{name}: {what}" for name, what in sorted(restore.misfits.items())]
            raise AssertionError("\n  ".join(["Values that do not fit their variables:", *lines]))

    def _all_have_values(self, wait: Wait) -> Status:
        if left := wait.missing():
            raise AssertionError(
                f"Found {len(left)} Python objects that were not bound to checkpointed values, "
                "likely due to changes in the Python program. Showing "
                f"{min(10, len(left))} of {len(left)} unmatched objects: {left[:10]}"
            )
        return self
