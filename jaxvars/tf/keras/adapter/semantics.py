"""Arrays where Keras computes, Tensors where the user's code does: the borders between them.

    tf.keras.Model.__call__      the user calls Keras: arrays in, Tensors out
      Layer.__call__ ...         Keras calls Keras: nothing to do
        call(self, inputs)       Keras calls the user: Tensors in, arrays out

Rules this file keeps:
- whose code is running is known to each thread; an exception changes nothing about it.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, final

import jax
import numpy as np
from jax.experimental.sparse import BCOO

from jaxvars.errors import line_of
from jaxvars.tf.errors import OperatorNotAllowedInGraphError
from jaxvars.tf.keras.adapter.inference import infer, infers_shapes
from jaxvars.tf.tensors.convert import is_text
from jaxvars.tf.tensors.dtypes import DType
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable


@final
class _Place(threading.local):
    """Whose code is running in this thread.

    Attributes:
        is_in_keras: it is Keras's.
    """

    is_in_keras = False


PLACE = _Place()

_NO_BOOL = (
    "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed at {line}: its value is known "
    "when the function runs, not while it is traced, and AutoGraph does not convert the methods of "
    "layers. Use tf.cond or tf.where, or decorate the method with @tf.function."
)


def into_keras(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function of Keras; with Tensors in and out if the user does so."""
    if PLACE.is_in_keras:
        return unwrap(fn(*args, **kwargs))
    PLACE.is_in_keras = True
    try:
        result = fn(*unwrap(args), **unwrap(kwargs))
    finally:
        PLACE.is_in_keras = False
    return _box_jax(unwrap(result))


def into_user(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function of the user; with arrays in and out if Keras does so."""
    if not PLACE.is_in_keras:
        return fn(*args, **kwargs)
    run = lambda: fn(*box_arrays(args), **box_arrays(kwargs))  # noqa: E731 - of two uses
    PLACE.is_in_keras = False
    try:
        result = infer(run) if infers_shapes() else run()
    except jax.errors.TracerBoolConversionError as error:
        line = line_of(error)
        raise OperatorNotAllowedInGraphError(_NO_BOOL.format(line=line)) from None
    except jax.errors.JAXTypeError as error:  # Keras makes them again, which fails
        raise TypeError(str(error)) from error
    finally:
        PLACE.is_in_keras = True
    return unwrap(result)


def of_user(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function, or method, of the user as one that Keras can call."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return into_user(fn, args, kwargs)

    return call


def unwrap(value: Any) -> Any:
    """Return a structure with an array in place of each Tensor or tf.Variable."""
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, Variable):
        return value.value()._array
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return tuple(value)
    if isinstance(value, SparseTensor):
        parts = value.values._array, value.indices._array
        return BCOO(parts, shape=tuple(value.dense_shape._array.tolist()))
    return _map_parts(unwrap, value)


def box_arrays(value: Any) -> Any:
    """Return a structure with a Tensor in place of each array."""
    if isinstance(value, BCOO):
        return _box_jax(value)
    if isinstance(value, jax.Array | np.ndarray):
        return Tensor(value)
    return _map_parts(box_arrays, value)


def _box_jax(value: Any) -> Any:
    """Return a structure with a Tensor in place of each array of JAX, or of strings."""
    if isinstance(value, BCOO):
        return SparseTensor(value.indices, value.data, np.array(value.shape, np.int64))
    is_array = isinstance(value, jax.Array) or is_text(value)
    return Tensor(value) if is_array else _map_parts(_box_jax, value)


def _map_parts(fn: Callable[[Any], Any], value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(fn, value))
    if type(value) is dict:
        return {key: fn(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(fn, value))
    return value
