"""What becomes a tensor, and of which type: TensorFlow's rules.

Rules this file keeps:
- an array keeps its type; Python's floats are float32, ints int32 (int64 if they are large),
  complex numbers complex128, text and bytes are strings;
- of two operands, what is no tensor is converted to the type of what is one, or refused if it
  can't be; two tensors of different types are refused;
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
from jaxvars.tf._shapes import TensorShape
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
        TypeError: when what is no tensor can't have the type of the other one.
    """
    read_x, read_y = BOXES.get(type(x)), BOXES.get(type(y))
    if read_x is not None:
        a = read_x(x)
        b = _operand(y, a) if read_y is None else read_y(y)
    elif is_tensor_like(x) or not is_tensor_like(y):
        a = to_array(x)
        b = _operand(y, a)
    else:
        b = to_array(y)
        a = _operand(x, b)
    if a.dtype != b.dtype:
        raise mixed(op, 1, dtype_of(a), dtype_of(b))
    return a, b


def as_given(value: Any, dtype: Any) -> Array:
    """Return a number or tensor as an array of a type; of a number, one that need not be sent."""
    if type(value) in (int, float):
        return np.asarray(value, dtype)
    return to_array(value, hint=as_dtype(dtype)).astype(dtype)


def _operand(value: Any, other: Array) -> Array:
    """Return an operand as an array; of the type of the other one, if it is no tensor."""
    kind = type(value)
    if kind is int or kind is float:
        dtype = other.dtype
        if dtype.kind in ("fc" if kind is float else "ifc"):
            return np.asarray(value, dtype)  # JAX takes it as it is, which is faster
    if is_tensor_like(value) or hasattr(value, "__jax_array__"):
        return to_array(value)
    return to_array(value, dtype_of(other))


def alike(values: Sequence[Any], op: str) -> list[Array]:
    """Return some operands as arrays of one type: that of the first tensor, or of the first.

    Raises:
        InvalidArgumentError: when they are tensors of different types.
        TypeError: when what is no tensor can't have the type of the others.
    """
    first = next((value for value in values if is_tensor_like(value)), None)
    wanted = None if first is None else to_array(first)
    arrays: list[Array] = []
    for i, value in enumerate(values):
        array = to_array(value) if wanted is None else _operand(value, wanted)
        wanted = array if wanted is None else wanted
        if array.dtype != wanted.dtype:
            raise mixed(op, i, dtype_of(wanted), dtype_of(array))
        arrays.append(array)
    return arrays


def mixed(op: str, number: int, wanted: DType, got: DType) -> InvalidArgumentError:
    """Return the error that says that the types of two operands differ."""
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
    return hint if kind is not None and _fits(kind, hint) else None


def _of_numpy(array: np.ndarray, dtype: DType | None) -> Array:
    if array.dtype.kind in "SUTO":
        return text_array(_texts(array))
    if array.dtype.kind in "Mm":
        raise ValueError(
            f"Failed to convert a NumPy array to a Tensor (Unsupported numpy type: {array.dtype})."
        )
    found = as_dtype(array.dtype) if dtype is None else dtype
    if found == string:
        raise TypeError(f"Cannot convert {array!r} to EagerTensor of dtype string")
    with _trace.at(_trace.EVAL):
        return jnp.array(array, dtype=found.dtype)


def _texts(array: np.ndarray) -> np.ndarray:
    other = next((x for x in array.flat if not isinstance(x, str | bytes)), None)
    if array.dtype.kind == "O" and other is not None:
        raise ValueError(
            "Failed to convert a NumPy array to a Tensor (Unsupported object type "
            f"{type(other).__name__})."
        )
    return array


def _of_python(value: Any, dtype: DType | None) -> Array:
    if isinstance(value, TensorShape | range):
        value = list(_fully_known(value))
        dtype = (int32 if dtype is None else dtype) if not value else dtype
    if isinstance(value, list | tuple) and _holds_tensors(value):
        return _stacked(value, dtype)
    kind = _kind_of(value)
    if kind is None and isinstance(value, list | tuple) and not _leaves(value):
        return _of_numpy(np.array(value, np.float32), dtype)
    if kind is None:
        raise unsupported(next(filter(_is_unsupported, _leaves(value)), value))
    found = _default(value, kind) if dtype is None else dtype
    if not _fits(kind, found):
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {_c_name(found)}")
    if found == string:
        return text_array(_rectangle(value, np.dtype(object)))
    made = _numbers(value, found)
    with _trace.at(_trace.EVAL):
        return jnp.asarray(made)  # nobody else has it: without a copy


def _fully_known(shape: Any) -> Any:
    if isinstance(shape, TensorShape) and not shape.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape {shape} to a Tensor.")
    return shape


def unsupported(value: Any) -> ValueError:
    """Return the error that says that something is no tensor."""
    return ValueError(
        f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a "
        "Tensor."
    )


def _is_unsupported(leaf: Any) -> bool:
    return _scalar_kind(leaf) is None


def _numbers(value: Any, dtype: DType) -> np.ndarray:
    if dtype.is_integer:
        return _integers(value, dtype)
    with np.errstate(over="ignore"):
        made = _rectangle(value, dtype.dtype)
    too_large = np.isinf(made) if dtype == float32 else np.zeros(made.shape, bool)
    if too_large.any() and np.isfinite(np.array(value, np.float64)[too_large]).any():
        raise ValueError(
            "Can't convert Python sequence with a value out of range for a double-precision float."
        )
    return made


def _integers(value: Any, dtype: DType) -> np.ndarray:
    try:
        wide = _rectangle(value, np.dtype(np.uint64 if dtype.name == "uint64" else np.int64))
    except OverflowError:
        raise ValueError(
            "Can't convert Python sequence with out-of-range integer to Tensor."
        ) from None
    made = wide.astype(dtype.dtype)
    if dtype.size >= int32.size and not np.array_equal(made, wide):
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {dtype.name}")
    return made


def _rectangle(value: Any, dtype: np.dtype) -> np.ndarray:
    try:
        return np.array(value, dtype=dtype)
    except (ValueError, TypeError):
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None


def _fits(kind: type, dtype: DType) -> bool:
    """Tell whether Python values of a kind become tensors of a type."""
    if kind is bool:
        return dtype.is_bool or dtype.is_numeric
    if kind is int:
        return dtype.is_numeric
    if issubclass(kind, float):
        return dtype.is_floating or dtype.is_complex
    return dtype.is_complex if kind is complex else dtype == string


def _default(value: Any, kind: type) -> DType:
    if kind is int:
        numbers = np.array([int(x) for x in _leaves(value)], dtype=object)
        is_small = _INT32.min <= min(numbers) and max(numbers) <= _INT32.max
        return int32 if is_small else int64
    if kind is np.float64:
        return as_dtype("float64")
    by_kind = {bool: "bool", float: "float32", complex: "complex128"}
    return as_dtype(by_kind.get(kind, "string"))


def _kind_of(value: Any) -> type | None:
    """Return the type that all numbers in a nested list are read as; None if there is none.

    Raises:
        ValueError: when they are of types that do not mix.
    """
    leaves = _leaves(value)
    kinds = [_scalar_kind(leaf) for leaf in leaves]
    found = set(kinds)
    if len(found) < 2 or None in found:
        return kinds[0] if len(found) == 1 else None
    if found <= {str, bytes}:
        return str
    if np.float64 in found and found <= {np.float64, float, int, bool}:
        return np.float64
    if found <= {int, float, bool} and kinds[0] is not bool:
        return float if float in found else int
    raise ValueError("Can't convert Python sequence with mixed types to Tensor.")


def _scalar_kind(leaf: Any) -> type | None:
    if type(leaf) is np.float64:  # also a Python float
        return np.float64
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
    if is_static(parts):
        return np.stack(list(map(np.asarray, parts)))
    return jnp.stack(parts)


def is_static(arrays: Sequence[Array]) -> bool:
    """Tell whether arrays are sizes, or known integers with sizes among them."""
    return any(type(array) is np.ndarray for array in arrays) and all(
        array.dtype.kind in "iub" and not _trace.is_tracer(array) for array in arrays
    )


def text_array(array: np.ndarray) -> np.ndarray:
    """Return text as an array of bytes objects."""
    made = np.empty(array.shape, dtype=object)
    for index, part in np.ndenumerate(array):
        made[index] = part if isinstance(part, bytes) else str(part).encode()
    return made
