"""What of `tf.keras` and `tf` becomes Keras's own, when it is given to a layer or model of Keras.

| given | Keras gets |
|---|---|
| an initializer, regularizer, constraint of `tf.keras` | its own of that name and configuration |
| an activation of `tf.keras` or `tf.nn` | its own of that name |
| any other function | that function, called with Tensors |
| a `tf.DType`, Tensor, `tf.TensorShape` | a name, an array, a tuple |
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from jaxvars.tf.keras import constraints, initializers, regularizers
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.semantics import into_user, unwrap


def theirs(value: Any) -> Any:
    """Return an argument as Keras takes it."""
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(theirs, value))
    if type(value) is dict:
        return {key: theirs(part) for key, part in value.items()}
    for kind, space in _NAMED:
        if isinstance(value, kind):
            return _same(value, getattr(keras(), space))
    if isinstance(value, types.FunctionType):
        return _function(value)
    return unwrap(value)


_NAMED = (
    (initializers.Initializer, "initializers"),
    (regularizers.Regularizer, "regularizers"),
    (constraints.Constraint, "constraints"),
)


def _same(value: Any, space: Any) -> Any:
    """Return Keras's object of the same name and configuration; this one if there is none."""
    found = getattr(space, type(value).__name__, None)
    return value if found is None else found(**value.get_config())


def _function(fn: Callable[..., Any]) -> Callable[..., Any]:
    if fn.__module__.startswith("keras."):
        return fn
    if fn.__module__.startswith("jaxvars."):
        found = getattr(keras().activations, fn.__name__, None)
        return _of_tensors(fn) if found is None else found
    return _of_tensors(fn)


def _of_tensors(fn: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(fn, _OfTensors):
        return fn
    return _OfTensors(fn)


class _OfTensors:
    """A function of the user's that Keras calls."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.__wrapped__, self.__name__ = fn, fn.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with Tensors."""
        return into_user(self.__wrapped__, args, kwargs)
