"""Objects that declare what tensors they consist of: `__tf_flatten__` and `__tf_unflatten__`.

A `tf.function` takes and returns them: their tensors are traced, and the rest is part of the
signature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import jax

from jaxvars.tf.tensors.tensor import WRAPPERS
from jaxvars.tracing.identity import exact, held


@final
class Components:
    """The parts of an object, as a pytree.

    Attributes:
        made: the object's class, and what it returns besides its parts.
        parts: its tensors, or objects that have some.
    """

    def __init__(self, made: Made, parts: list[Any]) -> None:
        self.made = made
        self.parts = parts

    def object(self, change: Callable[[Any], Any]) -> Any:
        """Return the object, with changed parts."""
        return self.made.kind.__tf_unflatten__(self.made.metadata, tuple(map(change, self.parts)))


@final
class Made:
    """A class and what an object of it is besides tensors, which may be unhashable."""

    def __init__(self, kind: Any, metadata: Any) -> None:
        self.kind = kind
        self.metadata = metadata
        self._told = exact(metadata, held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Made) and other.kind is self.kind and other._told == self._told

    def __hash__(self) -> int:
        return hash(self.kind)


def has_components(value: Any) -> bool:
    """Return whether an object, or a class, declares what it consists of."""
    return hasattr(value, "__tf_flatten__")


def components(value: Any, change: Callable[[Any], Any]) -> Components:
    """Return an object taken apart, with changed parts."""
    metadata, parts = value.__tf_flatten__()
    return Components(Made(type(value), metadata), list(map(change, parts)))


jax.tree_util.register_pytree_node(
    Components,
    lambda value: (value.parts, value.made),
    lambda made, parts: Components(made, list(parts)),
)
WRAPPERS[Components] = lambda value, wrap: value.object(wrap)
