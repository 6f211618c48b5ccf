"""Objects of which a checkpoint holds the state, as a string in a variable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from jaxvars.core.variable import Variable
from jaxvars.tf.data.generators.cursor import State, from_text, to_text
from jaxvars.tf.train.graph import Node


class Recorded(Node, ABC):
    """An object whose state is written when a checkpoint requests it, and read once restored."""

    _entry: ClassVar[tuple[str, str]]  # the name in the checkpoint, and that of the variable
    _variable: Variable | None = None
    _written = ""

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
        self._read()
        text = to_text(self._save())
        if text != self._written:
            self._variable.assign(text)
            self._written = text
        yield key, self._variable

    def _read(self) -> None:
        """Take the value of the variable, if it was restored."""
        if self._variable is not None and (text := str(self._variable.value)) != self._written:
            self._load(from_text(text))
            self._written = text
