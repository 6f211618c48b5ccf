"""What becomes a tensor, and of which type: TensorFlow's rules.

Rules this file keeps:
- an array keeps its type; Python's floats are float32, ints int32 (int64 if they are large),
  complex numbers complex128, text and bytes are strings;
- of two operands, what is no tensor is converted to the type of what is one; two tensors of
  different types are refused;
- what is converted inside of a function that is traced is a constant of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars import _trace
from jaxvars._face import BOXES, Face
from jaxvars.tf._dtypes import DType, as_dtype, float32, int32, int64, string
from jaxvars.tf.errors import InvalidArgumentError

Array: TypeAlias = Any  # a jax.Array, a tracer, or a NumPy array of bytes objects: text

_PYTHON_KINDS = (bool, int, float, complex, str, bytes)
_INT32 = np.iinfo(np.int32)


def to_array(value: Any, dtype: DType | None = None, *, hint: DType | None = None) -> Array:
    """Return the array that a value stands for.

    Args:
        value: a tensor, Variable, array, number, text, or nested list of them.
        dtype: what it must be: Python and NumPy values are converted, tensors are refused if they
            are something else.
        hint: the same, if it can be.

    Raises:
        ValueError: when it is no tensor, or a tensor of another type.
        TypeError: when a Python value cannot have the type.
    """
    convert = BOXES.get(type(value))
    if convert is not None:
        return _checked(convert(value), dtype, value)
    if isinstance(value, jax.Array):
        return _checked(value, dtype, value)
    if isinstance(value, Face):
        return _checked(value.value, dtype, value)
    if hasattr(value, "__jax_array__"):
        return _checked(value.__jax_array__(), dtype, value)
    if hint is not None and dtype is None:
        dtype = _possible(value, hint)
    if isinstance(value, np.ndarray | np.generic):
        return _of_numpy(np.asarray(value), dtype)
    return _of_python(value, dtype)


def dtype_of(array: Array) -> DType:
    """Return the type of an array."""
    return string if is_text(array) else as_dtype(array.dtype)


def is_text(array: Array) -> bool:
    """Tell whether an array is text, on the host."""
    return isinstance(array, np.ndarray) and array.dtype == object


def is_tensor_like(value: Any) -> bool:
    """Tell whether a value has a type of its own, to which others are converted."""
    return type(value) in BOXES or isinstance(value, jax.Array | Face)


def pair(x: Any, y: Any, op: str) -> tuple[Array, Array]:
    """Return two operands as arrays of one type.

    Args:
        x: an operand, whose type counts if it is a tensor, or `y` is none.
        y: an operand.
        op: what TensorFlow calls the operation, for the message.

    Raises:
        InvalidArgumentError: when they are tensors of different types.
    """
    if is_tensor_like(x) or not is_tensor_like(y):
        a = to_array(x)
        b = _operand(y, a)
    else:
        b = to_array(y)
        a = _operand(x, b)
    if a.dtype != b.dtype:
        raise _mixed(op, 1, dtype_of(a), dtype_of(b))
    return a, b


def _operand(value: Any, other: Array) -> Array:
    """Return an operand as an array, of the type of the other one if it can be."""
    hint = dtype_of(other)
    if type(value) in (int, float) and _possible(value, hint):
        return np.asarray(value, hint.dtype)  # JAX takes it as it is, which is faster
    return to_array(value, hint=hint)


def alike(values: Sequence[Any], op: str) -> list[Array]:
    """Return some operands as arrays of one type: that of the first tensor, or of the first.

    Raises:
        InvalidArgumentError: when they are tensors of different types.
    """
    first = next((value for value in values if is_tensor_like(value)), None)
    wanted = None if first is None else dtype_of(to_array(first))
    arrays: list[Array] = []
    for i, value in enumerate(values):
        array = to_array(value, hint=wanted)
        wanted = wanted or dtype_of(array)
        if dtype_of(array) != wanted:
            raise _mixed(op, i, wanted, dtype_of(array))
        arrays.append(array)
    return arrays


def _mixed(op: str, number: int, wanted: DType, got: DType) -> InvalidArgumentError:
    return InvalidArgumentError(
        None,
        None,
        f"cannot compute {op} as input #{number}(zero-based) was expected to be a {_c_name(wanted)}"
        f" tensor but is a {_c_name(got)} tensor [Op:{op}] name: ",
    )


def _c_name(dtype: DType) -> str:
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)


# ---------------------------------------------------------------- what is no tensor
def _checked(array: Array, dtype: DType | None, value: Any) -> Array:
    if dtype is not None and dtype_of(array) != dtype:
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype "
            f"{dtype_of(array).name}: {value!r}"
        )
    return array


def _possible(value: Any, hint: DType) -> DType | None:
    """Return the hint if a value that is no tensor can have that type without being changed."""
    if isinstance(value, np.ndarray | np.generic):
        is_number = np.asarray(value).dtype.kind in "biufc"
        return hint if is_number and (hint.is_numeric or hint.is_bool) else None
    kind = _kind_of(value)
    allowed = {
        bool: hint.is_bool,
        int: hint.is_numeric,
        float: hint.is_floating or hint.is_complex,
        complex: hint.is_complex,
        str: hint == string,
        bytes: hint == string,
    }
    return hint if kind is not None and allowed[kind] else None


def _of_numpy(array: np.ndarray, dtype: DType | None) -> Array:
    if array.dtype.kind in "SUTO":
        return text_array(array)
    found = as_dtype(array.dtype) if dtype is None else dtype
    if found == string:
        raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype string")
    with _trace.at(_trace.EVAL):
        return jnp.array(array, dtype=found.dtype)


def _of_python(value: Any, dtype: DType | None) -> Array:
    if isinstance(value, list | tuple) and _holds_tensors(value):
        return _stacked(value, dtype)
    kind = _kind_of(value)
    if kind is None and isinstance(value, list | tuple):
        kind = float  # an empty list
    if kind is None:
        raise ValueError(
            f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a "
            "Tensor."
        )
    found = _default(value, kind) if dtype is None else dtype
    _check_kind(value, kind, found)
    if found == string:
        return text_array(np.array(value, dtype=object))
    return _of_numpy(_rectangle(value, found), found)


def _rectangle(value: Any, dtype: DType) -> np.ndarray:
    try:
        return np.array(value, dtype=dtype.dtype)
    except OverflowError:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}") from None
    except (ValueError, TypeError):
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None


def _check_kind(value: Any, kind: type, dtype: DType) -> None:
    fits = {
        bool: dtype.is_bool,
        int: dtype.is_numeric,
        float: dtype.is_floating or dtype.is_complex,
        complex: dtype.is_complex,
    }.get(kind, dtype == string)
    if not fits:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {_c_name(dtype)}")


def _default(value: Any, kind: type) -> DType:
    if kind is int:
        numbers = np.array(_leaves(value) or [0], dtype=object)
        is_small = _INT32.min <= min(numbers) and max(numbers) <= _INT32.max
        return int32 if is_small else int64
    by_kind = {bool: "bool", float: "float32", complex: "complex128"}
    return as_dtype(by_kind.get(kind, "string"))


def _kind_of(value: Any) -> type | None:
    """Return the Python type that all numbers in a nested list are read as; None if there is none.

    Raises:
        ValueError: when they are of types that do not mix.
    """
    kinds = {_scalar_kind(leaf) for leaf in _leaves(value)}
    if len(kinds) < 2:
        return next(iter(kinds), None)
    if kinds <= {int, float}:
        return float
    if kinds <= {str, bytes}:
        return str
    if None in kinds:
        return None
    raise ValueError("Can't convert Python sequence with mixed types to Tensor.")


def _scalar_kind(leaf: Any) -> type | None:
    if isinstance(leaf, np.generic):
        leaf = leaf.item()
    return next((kind for kind in _PYTHON_KINDS if isinstance(leaf, kind)), None)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    if isinstance(value, np.ndarray):
        return list(value.flat)
    return [value]


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_tensors, value))
    return is_tensor_like(value) or hasattr(value, "__jax_array__")


def _stacked(value: Sequence[Any], dtype: DType | None) -> Array:
    parts = [to_array(part, dtype) for part in value] if dtype else alike(value, "Pack")
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            None, None, f"Shapes of all inputs must match: {sorted(shapes)} [Op:Pack] name: "
        )
    return jnp.stack(parts)


def text_array(array: np.ndarray) -> np.ndarray:
    """Return text as an array of bytes objects."""
    made = np.empty(array.shape, dtype=object)
    for index, part in np.ndenumerate(array):
        made[index] = part if isinstance(part, bytes) else str(part).encode()
    return made


DEFAULT_FLOAT = float32
