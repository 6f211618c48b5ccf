"""What a `tf.function` was traced for, kept without keeping objects alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxvars.tf import nest
from jaxvars.tf.tensors.convert import dtype_of
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.tensor import Tensor

_KEPT = (TensorSpec, bool, int, float, complex, str, bytes, type(None))


class Seen(NamedTuple):
    """A trace.

    Attributes:
        own: returns the object that the method belongs to, in a tuple.
        args: returns the other positional arguments.
        kwargs: returns those that were given by name.
        result: with specs for its tensors.
    """

    own: Callable[[], Any]
    args: Callable[[], Any]
    kwargs: Callable[[], Any]
    result: Any

    def given(self) -> tuple[Any, Any, Any] | None:
        """Return what it was traced for; None if something of that is gone."""
        try:
            return self.own(), self.args(), self.kwargs()
        except ReferenceError:
            return None


def specs_of(result: Any) -> Any:
    """Return a result with specs for its tensors."""
    return nest.map_structure(
        lambda x: TensorSpec(x.shape, dtype_of(x)) if hasattr(x, "shape") else x, result
    )


def weakened(value: Any) -> Callable[[], Any]:
    """Return what gives a structure with specs for its tensors."""
    leaves = [_weakened(leaf) for leaf in nest.flatten(value)]
    form = nest.pack_sequence_as(value, [None] * len(leaves))
    return lambda: nest.pack_sequence_as(form, [leaf() for leaf in leaves])


def _weakened(leaf: Any) -> Callable[[], Any]:
    if type(leaf) is Tensor:
        spec = TensorSpec(leaf.shape, leaf.dtype)
        return lambda: spec
    if isinstance(leaf, _KEPT):
        return lambda: leaf
    try:
        reference = weakref.ref(leaf)
    except TypeError:
        return lambda: leaf
    return lambda: _there(reference())


def _there(value: Any) -> Any:
    if value is None:
        raise ReferenceError
    return value
