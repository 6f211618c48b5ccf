"""What becomes a tensor, and of which type: TensorFlow's rules.

Rules this file keeps:
- an array keeps its type; what Python and NumPy have becomes one by `tensors/python_values.py`;
- of two operands, what is not a tensor is converted to the type of what is one, or refused if it
  can't be; two tensors of different types are refused;
- what is converted inside of a function that is traced is a constant of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.array_like import BOXES, ArrayProxy
from jaxvars.tensors.foreign_arrays import read
from jaxvars.tensors.tensor import refuse_masked
from jaxvars.tensors.wrapping import is_boxing
from jaxvars.tf.errors import InvalidArgumentError
from jaxvars.tf.tensors.dtypes import DType, any_dtype, as_dtype, string
from jaxvars.tf.tensors.handles import is_text as is_text
from jaxvars.tf.tensors.handles import lift
from jaxvars.tf.tensors.python_values import (
    c_name,
    fits,
    fitting,
    is_array_like,
    kind_of,
    leaves_of,
    of_numpy,
    of_python,
)
from jaxvars.tf.tensors.python_values import string_array as string_array
from jaxvars.tf.tensors.python_values import unsupported_error as unsupported_error
from jaxvars.tracing import context

Array: TypeAlias = Any  # a jax.Array, a tracer, or a NumPy array of bytes objects: strings

Conversion: TypeAlias = Callable[..., Any]

CONVERSIONS: list[tuple[float, Any, Conversion]] = []
"""What `tf.register_tensor_conversion_function` was given: priority, classes, function."""


@final
class NotDense(ValueError):  # noqa: N818 - operations catch it
    """What is raised where a tensor is needed and a ragged or sparse one is given.

    Args:
        message: what it says where an operation has no way with it.
        table: what operations do with it, by full name: called with the row and the arguments.
    """

    def __init__(self, message: str, table: Mapping[str, Callable[[Any, Any], Any]]) -> None:
        super().__init__(message)
        self._table = table

    def dispatch(self, row: Any, given: dict[str, Any]) -> Any:
        """Return what an operation makes of it, or raise this."""
        space, name = row.function.__module__.removeprefix("jaxvars.tf"), row.function.__name__
        how = self._table.get(f"{space}.{name}"[1:])
        if how is None:
            raise self
        return how(row, given)


def to_array(value: Any, dtype: DType | None = None, *, hint: DType | None = None) -> Array:
    """Return the array that a value stands for.

    Args:
        value: a tensor, Variable, array, number, string, or nested list of them.
        dtype: what it must be: others than tensors are converted to it.
        hint: the same, if it can be.
    """
    convert = BOXES.get(type(value))
    if convert is not None:
        return _check_dtype(convert(value), dtype, value)
    if isinstance(value, jax.Array):
        return _check_dtype(value, dtype, value)
    if isinstance(value, ArrayProxy):
        return _check_dtype(value.value, dtype, value)
    if hasattr(value, "__jax_array__"):
        return _check_dtype(value.__jax_array__(), dtype, value)
    if (
        CONVERSIONS
        and (made := convert_registered(value, hint if dtype is None else dtype)) is not None
    ):
        return made
    if hint is not None and dtype is None:
        dtype = _usable_hint(value, hint)
    return _to_host_array(value, dtype)


def convert_registered(value: Any, dtype: DType | None) -> Array | None:
    """Return the array that a user's function makes of a value; None without such a function."""
    for _, classes, function in CONVERSIONS:
        if isinstance(value, classes):
            made = function(value, dtype=dtype, name=None, as_ref=False)
            if made is not NotImplemented:
                return to_array(made, dtype)
    return None


def dtype_of(array: Array) -> DType:
    """Return the type of an array."""
    return string if is_text(array) else any_dtype(array.dtype)


def is_tensor_like(value: Any) -> bool:
    """Return whether a value has its own type, to which others are converted."""
    return type(value) in BOXES or isinstance(value, jax.Array | ArrayProxy)


def pair(x: Any, y: Any, op: str) -> tuple[Array, Array]:
    """Return two operands of an operation, by TensorFlow's name, as arrays of one type."""
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
        if dtype_of(a) != dtype_of(b):
            raise mixed_error(op, 1, dtype_of(a), dtype_of(b))
        return lift(a), lift(b)
    return a, b


def to_operand_of(dtype: DType, value: Any, op: str, number: int = 0) -> Array:
    """Return an operand as an array, of an operation that is there for a single type.

    What is not a tensor becomes that type; of NumPy's numbers each does.
    """
    if not is_tensor_like(value):
        return to_array(value, dtype)
    array = to_array(value)
    if dtype_of(array) != dtype:
        raise mixed_error(op, number, dtype, dtype_of(array))
    return array


def to_operand(value: Any, dtype: Any) -> Array:
    """Return a number or tensor as an array of a type; of a number, one that need not be sent."""
    if type(value) in (int, float):
        return np.asarray(value, dtype)
    return to_array(value, hint=as_dtype(dtype)).astype(dtype)


def _operand(value: Any, other: Array) -> Array:
    """Return an operand as an array; of the type of the other one, if it is not a tensor."""
    kind = type(value)
    if kind is int or kind is float:
        dtype: Any = other.dtype
        if getattr(dtype, "kind", "") in ("fc" if kind is float else "ifc"):  # of strings: none
            return np.asarray(value, dtype)  # JAX takes it as it is, which is faster
    if is_tensor_like(value) or hasattr(value, "__jax_array__"):
        return to_array(value)
    return to_array(value, dtype_of(other))


def match_dtypes(values: Sequence[Any], op: str) -> list[Array]:
    """Return some operands as arrays of one type: that of the first tensor, or of the first."""
    first = next((value for value in values if is_tensor_like(value)), None)
    wanted = None if first is None else to_array(first)
    arrays: list[Array] = []
    for i, value in enumerate(values):
        array = to_array(value) if wanted is None else _operand(value, wanted)
        wanted = array if wanted is None else wanted
        if array.dtype != wanted.dtype:
            if dtype_of(array) != dtype_of(wanted):
                raise mixed_error(op, i, dtype_of(wanted), dtype_of(array))
            array, arrays = lift(array), list(map(lift, arrays))
        arrays.append(array)
    return arrays


def mixed_error(op: str, number: int, wanted: DType, got: DType) -> Exception:
    """Return the error that says that the types of two operands differ: in a function TypeError."""
    is_wide = wanted.name in {"int64", "uint64", "float64", "complex128"}
    is_narrowed = is_wide and jax.dtypes.canonicalize_dtype(wanted.dtype) != wanted.dtype
    cure = " (64-bit numbers are off: jax.config.update('jax_enable_x64', True))" * is_narrowed
    if is_boxing():
        return TypeError(
            f"Input #{number} of {op!r} Op has type {got.name} that does not match expected type "
            f"of {wanted.name}{cure}. Write tf.cast(x, tf.{wanted.name})."
        )
    return InvalidArgumentError(
        message=f"cannot compute {op} as input #{number}(zero-based) was expected to be a "
        f"{c_name(wanted)} tensor but is a {c_name(got)} tensor{cure} [Op:{op}] name: "
    )


# ---------------------------------------------------------------- what is not a tensor
def _check_dtype(array: Array, dtype: DType | None, value: Any) -> Array:
    if dtype is not None and dtype_of(array) not in (dtype, as_dtype(dtype)):
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for Tensor with dtype "
            f"{dtype_of(array).name}: {value!r}"
        )
    return array


def _usable_hint(value: Any, hint: DType) -> DType | None:
    """Return the hint if a value that is not a tensor can have that type without being changed."""
    if isinstance(value, np.ndarray | np.generic) or is_array_like(value):
        is_number = read(value, "a value").dtype.kind in "biufc"
        return hint if is_number and (hint.is_numeric or hint.is_bool) else None
    others = [leaf for leaf in leaves_of(value) if not is_tensor_like(leaf)]
    kind = kind_of(others)
    return hint if (fits(kind, hint) if kind else hint.is_numeric or hint.is_bool) else None


def _to_host_array(value: Any, dtype: DType | None) -> Array:
    """Return the array that a value of Python or NumPy stands for."""
    refuse_masked(
        jax.tree.leaves(value) if isinstance(value, list | tuple) else [value], "a tensor"
    )
    if isinstance(value, np.ndarray | np.generic):
        given = np.asarray(value)
        made = of_numpy(given, dtype)
        is_shared = made is given
    elif isinstance(value, list | tuple) and holds_tensors(value):
        return _stack(value, dtype)
    elif is_array_like(value):
        made, is_shared = of_numpy(read(value, "a value"), dtype), True
    else:
        made, is_shared = of_python(value, dtype), False
    if made.dtype == object:
        return made
    with context.at(context.EVAL):  # what is not used elsewhere needs no copy
        if is_shared:  # JAX copies in the background, while the caller may already change it: wait
            return jax.block_until_ready(jnp.array(fitting(made)))
        return jnp.asarray(fitting(made))


def holds_tensors(value: Any) -> bool:
    """Return whether a nested list has tensors in it."""
    if isinstance(value, list | tuple):
        return any(map(holds_tensors, value))
    return is_tensor_like(value) or hasattr(value, "__jax_array__")


def _stack(value: Sequence[Any], dtype: DType | None) -> Array:
    parts = [_cast(part, dtype) for part in value] if dtype else match_dtypes(value, "Pack")
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            message=f"Shapes of all inputs must match: {sorted(shapes)} [Op:Pack] name: "
        )
    if is_static(parts) or any(map(is_text, parts)):
        return np.stack(list(map(np.asarray, parts)))
    return jnp.stack(parts)


def _cast(part: Any, dtype: DType) -> Array:
    """Return a part of a list that tensors are in, whose type is requested."""
    if not is_tensor_like(part) and not hasattr(part, "__jax_array__"):
        return to_array(part, dtype)
    array = to_array(part)
    if is_text(array) or dtype == string:
        return _check_dtype(array, dtype, part)
    return array.astype(dtype.dtype)


def is_static(arrays: Sequence[Array]) -> bool:
    """Return whether arrays are sizes, or known integers with sizes among them."""
    return any(type(array) is np.ndarray for array in arrays) and all(
        array.dtype.kind in "iub" and not context.is_tracer(array) for array in arrays
    )
