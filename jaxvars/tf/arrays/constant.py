"""Making tensors: `tf.constant`, `tf.convert_to_tensor`, `tf.is_tensor`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.slices import IndexedSlices
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """Make a tensor of a value.

    Args:
        value: a number, a string, a (nested) list of them, a NumPy array.
        dtype: the type to give.
        shape: of the result; one number fills it.
        name: of no effect.

    Raises:
        TypeError: when the value cannot have the type, or has not as many elements as the shape.
        ValueError: when it is not a tensor.

    >>> constant([1, 2, 3, 4], shape=(2, 2))
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 2],
           [3, 4]], dtype=int32)>
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor) and wanted is not None and value.dtype != wanted:
        raise TypeError(
            f"Expected tensor {value.numpy()} with dtype {wanted!r}, but got dtype {value.dtype!r}."
        )
    array = to_array(value, wanted)
    return Tensor(array if shape is None else _fit_shape(array, TensorShape(shape), value))


def _fit_shape(array: Any, shape: TensorShape, value: Any) -> Any:
    sizes = tuple(shape)
    if array.size == shape.num_elements():
        return array.reshape(sizes)
    if array.size != 1:
        raise TypeError(
            f"Eager execution of tf.constant with unsupported shape. Tensor {array} (converted "
            f"from {value!r}) has {array.size} elements, but got `shape` {shape} with "
            f"{shape.num_elements()} elements)."
        )
    filled = np if is_text(array) else jnp
    return filled.broadcast_to(array.reshape(()), sizes)


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """Make a tensor of a value, or return it if it is one.

    Args:
        value: a tensor, Variable, array, number, string or nested list of them.
        dtype: the type that it must have; a tensor of another one is refused.
        dtype_hint: the type to give, if that is possible.
        name: of no effect.

    Raises:
        ValueError: when it is not a tensor, or one of another type.
        TypeError: when the value cannot have the type.

    >>> convert_to_tensor([1, 2.5]).dtype
    tf.float32
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor) and wanted in (None, value.dtype):
        return value
    hint = None if dtype_hint is None else as_dtype(dtype_hint)
    return Tensor(to_array(value, wanted, hint=hint))


_TENSORS = (Tensor, Variable, jax.Array, SparseTensor, IndexedSlices, RaggedTensor)


def is_tensor(x: Any) -> bool:
    """Return whether something is a tensor, sparse or ragged or not, or a variable.

    >>> is_tensor(constant(1)), is_tensor(1)
    (True, False)
    """
    return isinstance(x, _TENSORS)
