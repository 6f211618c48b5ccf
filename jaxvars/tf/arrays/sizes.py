"""What is given as a shape or a type: `tf.zeros([2, n], "float32")`."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.symbolic.specialize import is_open
from jaxvars.tf.registry.rows import Refused
from jaxvars.tf.tensors import static as _static
from jaxvars.tf.tensors.convert import NotDense, to_array, unsupported_error
from jaxvars.tf.tensors.dtypes import DType, as_dtype


def sizes_of(shape: Any, integers: bool = True) -> tuple[int, ...]:
    """Return a shape argument as a tuple.

    Args:
        shape: a size, a list of sizes, which may be tensors, a tensor, or a TensorShape.
        integers: report other numbers as of the wrong type (True) or as an invalid argument.

    Raises:
        Refused: when it is not a shape.
        InvalidArgumentError: when it is not known while a function is traced.
    """
    if type(shape) in (tuple, list) and all(type(size) is int for size in shape):
        return _static.not_too_many(tuple(shape))
    if type(shape) is int:
        return _static.not_too_many((shape,))
    try:
        array = _sizes_array(shape)
    except NotDense:
        raise
    except (TypeError, ValueError) as error:
        raise Refused(error) from None
    if array.dtype.kind not in "iuO" or any(type(size) is bytes for size in array.flat):
        if integers:
            raise Refused(TypeError(f"Cannot convert {shape!r} to EagerTensor of dtype int32"))
        raise ValueError(
            f"Value for attr 'Tshape' of {array.dtype} is not in the list of allowed values: "
            "int32, int64"
        )
    if np.ndim(array) > 1:
        raise ValueError(f"shape must be a vector of sizes, got shape {list(np.shape(array))}")
    return _static.not_too_many(tuple(map(_static.as_size, np.asarray(array).reshape(-1))))


def _sizes_array(shape: Any) -> np.ndarray:
    if isinstance(shape, list | tuple) and any(size is None for size in shape):
        raise unsupported_error(None)
    if isinstance(shape, list | tuple) and any(map(_is_symbolic, shape)):
        return _static.require_known(shape, "a shape")
    array = np.zeros(0, np.int32) if isinstance(shape, list | tuple) and not shape else None
    return _static.require_known(to_array(shape), "a shape") if array is None else array


def _is_symbolic(size: Any) -> bool:
    return (type(size) is not int and not _static.is_known(size)) or is_open(size)


def not_negative(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes; raise ValueError if one is negative."""
    for size in sizes:
        if type(size) is int and size < 0:
            raise ValueError(f"Dimension {size} must be >= 0")
    return sizes


def type_of(dtype: Any) -> DType:
    """Return the type that a dtype argument stands for.

    Raises:
        Refused: when there is none.
    """
    try:
        return as_dtype(dtype)
    except TypeError as error:
        raise Refused(error) from None
