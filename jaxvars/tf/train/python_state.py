"""`tf.train.experimental.PythonState`: objects of Python whose state a checkpoint keeps.

Rules this file keeps:
- a hidden variable holds the state on its way into a file, and out of it;
- `serialize` is called when a checkpoint is written, `deserialize` when one is restored;
- one that is put into an object after that has its state before anything of it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, final

from jaxvars.checkpoint.waiting import giver_of, list_pending
from jaxvars.core.cells import PENDING_RESTORES
from jaxvars.core.frames import LOCAL, entered
from jaxvars.core.variable import Variable
from jaxvars.tf.tensors.python_values import to_bytes, to_text
from jaxvars.tracing import context
from jaxvars.tracing.identity import Weak

PY_STATE = ".ATTRIBUTES/py_state"
"""What the state is called in the object, as in TensorFlow's keys."""


class PythonState(ABC):
    """An object whose state a checkpoint keeps as a string; a base for classes of yours.

    Example:
        >>> import json, tempfile
        >>> from jaxvars import tf
        >>> class Place(tf.train.experimental.PythonState):
        ...     def __init__(self, place):
        ...         self.place = place
        ...
        ...     def serialize(self):
        ...         return json.dumps(self.place)
        ...
        ...     def deserialize(self, string_value):
        ...         self.place = json.loads(string_value)
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = tf.train.Checkpoint(place=Place([3, 4])).save(f"{folder.name}/ckpt")
        >>> place = Place(None)
        >>> _ = tf.train.Checkpoint(place=place).restore(path).assert_consumed()
        >>> place.place
        [3, 4]
        >>> folder.cleanup()

    Differs from TensorFlow: one that is put into an object after `restore` has its state when it
    is used next.
    """

    __slots__ = ("__weakref__",)

    @abstractmethod
    def serialize(self) -> str | bytes:
        """Return the state."""

    @abstractmethod
    def deserialize(self, string_value: Any) -> None:
        """Take a state that `serialize` returned: it is given as bytes."""

    def __getattribute__(self, name: str) -> Any:
        if PENDING_RESTORES and name != "__class__":  # which `isinstance` asks for
            _settle(self)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if PENDING_RESTORES:
            _settle(self)
        super().__setattr__(name, value)


@final
class _Held:
    """The variable of an object, and which restore the state is of, by number."""

    __slots__ = ("giver", "variable")

    def __init__(self, name: str) -> None:
        with context.at(context.EVAL), entered(LOCAL.eager):
            self.variable = Variable("", name=name, trainable=False)
        self.giver = 0


_HELD: dict[Weak, _Held] = {}


def _forget(gone: Weak) -> None:
    _HELD.pop(gone, None)


def variable_of(state: PythonState) -> Variable:
    """Return the variable that holds the state of an object in a checkpoint."""
    held = _HELD.get(Weak(state)) or _HELD.setdefault(
        Weak(state, _forget), _Held(type(state).__name__)
    )
    return held.variable


def states_of(variables: Iterable[object]) -> list[PythonState]:
    """Return the objects whose states are in some of these variables."""
    numbers = set(map(id, variables))
    found = [ref() for ref, held in list(_HELD.items()) if id(held.variable) in numbers]
    return [state for state in found if isinstance(state, PythonState)]


def serialized(state: PythonState) -> str:
    """Return the state of an object as text.

    Raises:
        TypeError: when `serialize` returns no string.
    """
    made: Any = state.serialize()
    if not isinstance(made, str | bytes):
        raise TypeError(
            f"{type(state).__name__}.serialize() must return a string or bytes, and it returned "
            f"{made!r}: write json.dumps(state), for example."
        )
    return to_text(made.encode() if isinstance(made, str) else made)


def take_restored(state: PythonState) -> None:
    """Have an object take the state that was restored for it, once."""
    held = _HELD.get(Weak(state))
    if held is not None and (giver := giver_of(held.variable._cell)) != held.giver:
        held.giver = giver
        state.deserialize(to_bytes(str(held.variable.value)))


def _settle(state: PythonState) -> None:
    """Have an object take the state that waits for it, if it is in an object by now."""
    for restore in list_pending():
        if any(path.endswith("py_state") for path in restore.values):
            restore.look()
    take_restored(state)
