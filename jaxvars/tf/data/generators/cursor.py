"""Places in datasets: what goes through the elements, and can be saved and restored.

A step is a generator function of a `Memory`. What it needs in order to go on after an element is in
the memory before that element is yielded: then a new generator goes on with a copy of the memory.

    def counted(memory):
        for i in range(memory.values.get("i", 0), 3):
            memory.values["i"] = i + 1
            yield i

Rules this file keeps:
- what is restored goes on with the element that would have been next; so does what failed;
- a step that is begun again at its end is at its end;
- what all iterators of a dataset share, as the seeds of a shuffle and what a cache holds, is saved
  where an iterator begins, and for each dataset that a function returns: its step may be closed;
- a place is restored into the steps that it was saved in, or refused;
- a state is saved as a string: no code runs when one is loaded.
"""

from __future__ import annotations

import base64
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import GeneratorType
from typing import Any, ClassVar, TypeAlias, final

import numpy as np

from jaxvars.checkpoint.waiting import PENDING
from jaxvars.core.variable import Variable
from jaxvars.tf.data.generators.components import (
    arrays_of,
    element_of,
    spec_from_json,
    spec_to_json,
)
from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.elements import Element, spec_of
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.train.graph import Node

State: TypeAlias = dict[str, Any]
Step: TypeAlias = "Callable[[Memory], Iterator[Element]]"


@final
class Memory:
    """What a step keeps from one element to the next.

    Attributes:
        values: numbers, elements, and lists and dicts of them.
    """

    __slots__ = ("_children", "_waiting", "values")

    def __init__(self, state: State | None = None) -> None:
        given = state or {"values": {}, "children": {}}
        self.values: dict[str, Any] = copy_containers(given["values"])
        self._waiting: dict[str, State] = dict(given["children"])
        self._children: dict[str, Cursor] = {}

    def iterate(self, name: str, make: Callable[[], Cursor]) -> Iterator[Element]:
        """Return what goes through a dataset of the step: from where it was, if it was open."""
        return iter(self.cursor(name, make))

    def cursor(self, name: str, make: Callable[[], Cursor]) -> Cursor:
        """Return the cursor of a dataset of the step: where it was, if it was open."""
        if name not in self._children:
            cursor = self._children[name] = make()
            if name in self._waiting:
                cursor.load(self._waiting.pop(name))
        return self._children[name]

    def close(self, name: str) -> None:
        """Forget a cursor: it is at its end."""
        self._children.pop(name, None)

    def finish(self, count: int) -> None:
        """Forget what was kept of elements that are stored now, and be at their end."""
        del self.values["seen"]
        self.values["i"] = count
        self.close("source")

    def resume(self) -> None:
        """Have the cursors go on after an error."""
        for child in self._children.values():
            child.resume()

    def save(self) -> State:
        """Return what it is made of."""
        children = {name: child.save() for name, child in self._children.items()}
        return {"values": copy_containers(self.values), "children": {**self._waiting, **children}}


def copy_containers(value: Any) -> Any:
    """Return lists and dicts as others; elements do not change."""
    if isinstance(value, list):
        return list(map(copy_containers, value))
    return {k: copy_containers(x) for k, x in value.items()} if type(value) is dict else value


class Shared(ABC):
    """What all iterators of a dataset share, and a place needs."""

    __slots__ = ()

    @abstractmethod
    def save(self) -> Any:
        """Return what it is made of, as in `Memory.values`."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """Become what was saved."""


@final
class Cursor:
    """A place in a dataset, whose elements a step makes.

    Args:
        step: makes them.
        kind: the name of the dataset's class.
        shared: what is to be saved with the place, where an iterator begins.
    """

    __slots__ = ("_kind", "_memory", "_rest", "_shared", "_step")

    def __init__(self, step: Step, kind: str, shared: Sequence[Shared] = ()) -> None:
        self._step, self._shared = step, shared
        self._kind = kind.strip("_").replace("Parallel", "")
        self._memory = Memory()
        self._rest: Any = None  # the step begins when a place may have been loaded

    def __iter__(self) -> Iterator[Element]:
        if self._rest is None:
            self._rest = self._step(self._memory)
        return self._rest

    def save(self) -> State:
        """Return the place."""
        shared = {"shared": [one.save() for one in self._shared]} if self._shared else {}
        return {"kind": self._kind, **self._memory.save(), **shared}

    def load(self, state: State) -> None:
        """Go to a place.

        Raises:
            FailedPreconditionError: when it is one in other steps.
        """
        shared = state.get("shared", [])
        if state.get("kind", self._kind) != self._kind or len(shared) not in (0, len(self._shared)):
            raise FailedPreconditionError(message=_OTHER.format(state.get("kind"), self._kind))
        for one, its in zip(self._shared, shared, strict=False):
            one.load(its)
        self._memory, self._rest = Memory(state), None

    def resume(self) -> None:
        """Go on with the next element after an error, which has ended the generators."""
        self._memory.resume()
        if not isinstance(self._rest, GeneratorType) or self._rest.gi_frame is None:
            self._rest = None


_OTHER = (
    "The iterator was saved over the steps of another dataset, with {} where {} is now, and no "
    "place is known in these. Make the dataset as it was, or leave the iterator out of the "
    "Checkpoint and begin again."
)


def indexed(memory: Memory, size: int | None, item: Callable[[int], Element]) -> Iterator[Element]:
    """Yield items by index; indefinitely without a size."""
    first = memory.values.get("i", 0)
    for i in itertools.count(first) if size is None else range(first, size):
        memory.values["i"] = i + 1
        yield item(i)


def numbered(memory: Memory, read: Callable[[int], Iterable[Element]]) -> Iterator[Element]:
    """Yield elements that can be read from a number on."""
    first = memory.values.get("i", 0)
    for i, element in enumerate(read(first), first):
        memory.values["i"] = i + 1
        yield element


# ---------------------------------------------------------------- as a string
def to_string(state: State) -> str:
    """Return a state as a string; raise FailedPreconditionError for what is not a tensor."""
    return json.dumps(_plain(state))


def from_string(string: str) -> State:
    """Return the state that a string holds."""
    return _rebuild(json.loads(string))


WINDOWS: list[Callable[[list[Element], Any], Any]] = []
"""What makes a dataset of elements and their spec: windows are saved, too."""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return list(map(_plain, value))
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return _plain_dict(value)
    if type(value) is dict:
        return {"pairs": [[_plain(key), _plain(x)] for key, x in value.items()]}
    if type(value) is tuple:
        return {"tuple": list(map(_plain, value))}
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return _plain_array(np.asarray(value._array if isinstance(value, Tensor) else value))
    if (kept := getattr(value, "_kept", None)) is not None:
        elements, spec = kept
        return {"window": _plain(elements), "spec": spec_to_json(spec)}
    if isinstance(value, RaggedTensor | SparseTensor):
        return {
            "parts": list(map(_plain_array, arrays_of(value))),
            "spec": spec_to_json(spec_of(value)),
        }
    raise _NoTensorError(type(value).__name__)


@final
class _NoTensorError(TypeError):
    """Says what is kept and cannot be written."""


def _plain_dict(value: dict[str, Any]) -> Any:
    try:
        return {"dict": {key: _plain(x) for key, x in value.items()}}
    except _NoTensorError as error:
        if "kind" not in value:
            raise
        raise FailedPreconditionError(message=_KEPT.format(value["kind"], error)) from None


_KEPT = (
    "An iterator cannot be saved while a step of its dataset, {}, keeps a {} from one element to "
    "the next: elements that are kept, as by `shuffle`, are tensors, and tuples, dicts and windows "
    "of them. Have it keep what datasets are made of, and make them after it:\n"
    "    files.shuffle(9).interleave(lambda name: tf.data.TFRecordDataset(name))"
)


def _plain_array(array: np.ndarray) -> Any:
    shape = list(array.shape)
    if is_text(array):
        return {"text": [base64.b64encode(x).decode() for x in array.ravel()], "shape": shape}
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"array": data, "dtype": array.dtype.name, "shape": shape}


def _rebuild(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_rebuild, value))
    if not isinstance(value, dict):
        return value
    if "dict" in value:
        return {key: _rebuild(x) for key, x in value["dict"].items()}
    if "pairs" in value:
        return {_rebuild(key): _rebuild(x) for key, x in value["pairs"]}
    if "window" in value:
        return WINDOWS[0](_rebuild(value["window"]), spec_from_json(value["spec"]))
    if "parts" in value:
        return element_of(spec_from_json(value["spec"]), map(_rebuild_array, value["parts"]))
    return tuple(map(_rebuild, value["tuple"])) if "tuple" in value else _rebuild_array(value)


def _rebuild_array(facts: dict[str, Any]) -> np.ndarray:
    if "text" in facts:
        made = np.empty(len(facts["text"]), object)
        made[:] = [base64.b64decode(x) for x in facts["text"]]
        return made.reshape(facts["shape"])
    dtype = np.dtype(facts["dtype"])
    return np.frombuffer(base64.b64decode(facts["array"]), dtype).reshape(facts["shape"])


# ---------------------------------------------------------------- in checkpoints
class Recorded(Node, ABC):
    """An object whose state is written when a checkpoint requests it, and read once restored."""

    _entry: ClassVar[tuple[str, str]]  # the name in the checkpoint, and that of the variable
    _variable: Variable | None = None
    _written = ""
    _refusal: FailedPreconditionError | None = None

    @abstractmethod
    def _save(self) -> State:
        """Return the state."""

    @abstractmethod
    def _load(self, state: State) -> None:
        """Take another state."""

    def children(self) -> Iterator[tuple[str, object]]:
        """Yield the variable that holds the state."""
        key, name = self._entry
        if self._variable is None:
            self._variable = Variable("", name=name, trainable=False)
        self._take_restored()
        try:
            string, self._refusal = to_string(self._save()), None
        except FailedPreconditionError as error:  # one that cannot be saved may be restored
            string, self._refusal = "", error
        if string != self._written:
            self._variable.assign(string)
            self._written = string
        yield key, self._variable

    def refusal(self, held: set[int]) -> Exception | None:
        """Return why the state could not be written when the children were requested."""
        return self._refusal

    def strings(self) -> dict[Variable, Callable[[], str]]:
        """Return the variable that holds the state, and what returns it as it is then."""
        return {} if self._variable is None else {self._variable: lambda: to_string(self._save())}

    def _read(self) -> None:
        """Take the value of the variable, if it was restored, or waits for one in an object."""
        for restore in tuple(PENDING):
            if any(wanted.path.endswith(self._entry[0]) for wanted in restore.values.values()):
                restore.look()
        self._take_restored()

    def _take_restored(self) -> None:
        if self._variable is not None and (string := str(self._variable.value)) != self._written:
            self._load(from_string(string))
            self._written = string
