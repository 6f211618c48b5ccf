"""Objects of a user's class that consist of tensors, or stand for one.

Those with `__tf_flatten__` and `__tf_unflatten__` consist of tensors: a `tf.function` takes and
returns them, their tensors are traced, and the rest is part of the signature.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import itemgetter
from typing import Any, final

import jax
import numpy as np

from jaxvars.objects.identity import exact, held
from jaxvars.tensors.array_like import BOXES
from jaxvars.tf import nest
from jaxvars.tf.tensors.convert import CONVERSIONS, to_array
from jaxvars.tf.tensors.tensor import WRAPPERS, TensorLike


@final
class Components:
    """The parts of an object, tensors or objects that have some, as a pytree."""

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


def take_apart(structure: Any, change: Callable[[Any], Any]) -> Any:
    """Return a structure with changed leaves, and with objects that have components taken apart."""
    inside = functools.partial(take_apart, change=change)
    if has_components(structure):
        return components(structure, inside)
    if nest.is_nested(structure):
        return nest._like(structure, list(map(inside, nest._parts(structure))))
    return change(structure)


jax.tree_util.register_pytree_node(
    Components,
    lambda value: (value.parts, value.made),
    lambda made, parts: Components(made, list(parts)),
)
WRAPPERS[Components] = lambda value, wrap: value.object(wrap)


# ---------------------------------------------------------------- what stands for a tensor
_TAKEN = (bool, int, float, complex, str, bytes, np.ndarray, np.generic, jax.Array, TensorLike)


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: float = 100
) -> None:
    """Have a function make the tensors that objects of a class stand for.

    Args:
        base_type: the class, or several in a tuple.
        conversion_func: called as `conversion_func(value, dtype=None, name=None, as_ref=False)`;
            it returns a tensor of that type, or NotImplemented to leave it to others.
        priority: those of a lower one are tried first; of equal ones, the first that came.

    Raises:
        TypeError: when it is not a class, one that has tensors already, or not a function.

    >>> from jaxvars import tf
    >>> class Meters:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> def convert(meters, dtype=None, name=None, as_ref=False):
    ...     return tf.constant(meters.value, dtype)
    >>> register_tensor_conversion_function(Meters, convert)
    >>> tf.constant([1.0]) + Meters(2.0)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([3.], dtype=float32)>
    """
    classes = base_type if isinstance(base_type, tuple) else (base_type,)
    if not classes or not all(isinstance(each, type) for each in classes):
        raise TypeError(
            f"Argument `base_type` must be a type or a tuple of types. Obtained: {base_type}"
        )
    variants = {each for each in classes if issubclass(each, TensorLike) and each not in BOXES}
    if any(issubclass(each, _TAKEN) for each in set(classes) - variants):
        raise TypeError(
            "Cannot register conversions for Python numeric types and NumPy scalars and arrays, "
            f"nor for tensors, nor twice for a subclass of tf.Variable. Obtained: {base_type}"
        )
    if not callable(conversion_func):
        raise TypeError(f"Argument `conversion_func` must be callable. Received {conversion_func}.")
    for each in variants:  # classes of variables, which have a type
        BOXES[each] = lambda value: to_array(conversion_func(value, None, None, False))
    CONVERSIONS.append((priority, classes, conversion_func))
    CONVERSIONS.sort(key=itemgetter(0))
