"""What a program can read of where it runs: the time, the logger, the scope, eager or traced."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from jaxvars.tf.arrays.constant import constant, convert_to_tensor
from jaxvars.tf.context.scope import executing_eagerly, whole_scope
from jaxvars.tf.control.callbacks import numpy_function
from jaxvars.tf.tensors.dtypes import DTYPES
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context


def timestamp(name: str | None = None) -> Tensor:
    """Return the seconds since 1970, as a float64 tensor; in a function, of when it runs.

    >>> timestamp().dtype
    tf.float64
    """
    if context.is_staging():
        return numpy_function(lambda: time.time(), [], DTYPES["float64"], stateful=True)
    return constant(time.time(), DTYPES["float64"])


def get_logger() -> logging.Logger:
    """Return the logger named "tensorflow", which programs quieten.

    Functions that AutoGraph cannot convert are told there.

    >>> get_logger().name
    'tensorflow'
    """
    return logging.getLogger("tensorflow")


def get_current_name_scope() -> str:
    """Return the name scopes that are open, like "outer/inner"; "" for none.

    >>> from jaxvars import tf
    >>> with tf.name_scope("outer"), tf.name_scope("inner"):
    ...     get_current_name_scope()
    'outer/inner'
    """
    return whole_scope().removesuffix("/")


def is_symbolic_tensor(tensor: Any) -> bool:
    """Return whether something is a tensor without a value, since a function is being traced.

    >>> is_symbolic_tensor(constant(1))
    False
    """
    return isinstance(tensor, Tensor) and context.is_tracer(tensor._array)


def tuple_(
    tensors: Sequence[Any], control_inputs: Sequence[Any] | None = None, name: str | None = None
) -> Any:
    """Return the tensors of a list, all of which are computed; eagerly, the list itself.

    Args:
        tensors: tensors, IndexedSlices, or None.
        control_inputs: of no effect: what a function does is done in the order it is written.
        name: of no effect.

    Raises:
        ValueError: in a function, without a tensor.

    >>> tuple_([constant(1), None])
    [<tf.Tensor: shape=(), dtype=int32, numpy=1>, None]
    """
    if executing_eagerly():
        return tensors
    found = list(tensors)
    if all(tensor is None for tensor in found):
        raise ValueError(f"Expected at least one tensor in `tensors`, but got {found}.")
    return list(map(_to_tensor, found))


def _to_tensor(tensor: Any) -> Any:
    is_kept = tensor is None or isinstance(tensor, IndexedSlices)
    return tensor if is_kept else convert_to_tensor(tensor)
