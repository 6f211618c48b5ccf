"""Arguments of `tf` and `tf.keras` as Keras takes them."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.semantics import into_user, unwrap


def theirs(value: Any) -> Any:
    """Return an argument as Keras takes it.

    A `tf.DType`, Tensor or `tf.TensorShape` becomes a name, an array, a tuple; a function of `tf`
    Keras's activation of that name; any other function is called with Tensors.
    """
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(theirs, value))
    if type(value) is dict:
        return {key: theirs(part) for key, part in value.items()}
    return _function_of_keras(value) if isinstance(value, types.FunctionType) else unwrap(value)


def _function_of_keras(fn: Any) -> Callable[..., Any]:
    if hasattr(fn, "_of_keras"):
        return fn._of_keras
    if fn.__module__.startswith("keras."):
        return fn
    found = getattr(keras().activations, fn.__name__, None)
    return found if found and fn.__module__.startswith("jaxvars.") else OfTensors(fn)


class OfTensors:
    """A function of the user's that Keras calls."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.__wrapped__, self.__name__ = fn, fn.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with Tensors."""
        return into_user(self.__wrapped__, args, kwargs)
