"""`tnp.experimental_enable_numpy_behavior`: Tensors with NumPy's methods, types and indexing.

Rules this file keeps:
- until it is requested, nothing of it counts, and operators cost nothing more; it can't be undone;
- operands of different types are promoted by JAX's rules, in operators only: Python's numbers
  are as wide as what they meet;
- a list or array of numbers as an index picks, and several pick together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf import nest
from jaxvars.tf.tensors.convert import is_tensor_like, is_text, to_array
from jaxvars.tf.tensors.dtypes import DType
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import NUMPY_METHODS, OPERATIONS, Tensor
from jaxvars.tracing import context

_PROMOTED = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lt", "le", "gt", "ge", "eq", "ne",
)  # fmt: skip


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Give Tensors NumPy's methods, types and indexing, from now on.

    Args:
        prefer_float32: must be False.
        dtype_conversion_mode: must be "legacy".

    Raises:
        NotImplementedError: for other arguments.
    """
    if prefer_float32 or dtype_conversion_mode != "legacy":
        raise NotImplementedError(
            "Types are promoted by JAX's rules: experimental_enable_numpy_behavior() without "
            "arguments."
        )
    if NUMPY_METHODS:
        return
    NUMPY_METHODS.update(_METHODS)
    for name in _PROMOTED:
        OPERATIONS[name] = _promote(OPERATIONS[name])
    OPERATIONS["getitem"] = _pick(OPERATIONS["getitem"])


# ---------------------------------------------------------------- types
def _promote(operation: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(operation)
    def promoted(x: Any, y: Any) -> Any:
        dtypes = [_type_of(operand) for operand in (x, y)]
        if any(dtype is None for dtype in dtypes) or dtypes[0] == dtypes[1]:
            return operation(x, y)
        common = jnp.result_type(*dtypes)
        given = (operand if is_tensor_like(operand) else np.asarray(operand) for operand in (x, y))
        return operation(*(Tensor(to_array(operand).astype(common)) for operand in given))

    return promoted


def plain(value: Any) -> Any:
    """Return JAX's array of a tensor or array, NumPy's type of TensorFlow's; else the value."""
    if is_tensor_like(value) or isinstance(value, np.ndarray | np.generic):
        return jnp.asarray(value)
    return value.dtype if isinstance(value, DType) else value


def _type_of(operand: Any) -> Any:
    """Return the type of an operand, a number of Python as it is, or None for what has none."""
    is_array = isinstance(operand, np.ndarray | np.generic) or is_tensor_like(operand)
    if not is_array:
        return operand if isinstance(operand, bool | int | float | complex) else None
    array = to_array(operand)
    return None if is_text(array) else array.dtype


# ---------------------------------------------------------------- indexing
def _pick(getitem: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(getitem)
    def picked(x: Any, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not isinstance(x, Tensor) or not any(map(_is_list, parts)):
            return getitem(x, key)
        arrays = [to_array(part) if _is_list(part) else part for part in parts]
        index = tuple(int(part) if isinstance(part, Tensor) else part for part in arrays)
        if not any(context.is_tracer(part) for part in index):
            try:
                _ = np.broadcast_to(False, x._array.shape)[index]
            except IndexError as error:  # JAX would take the nearest
                raise refused(str(error)) from None
        return Tensor(x._array[index])

    return picked


def _is_list(part: Any) -> bool:
    return isinstance(part, list | tuple) or getattr(part, "ndim", 0) > 0


# ---------------------------------------------------------------- methods
def _method(name: str) -> Callable[[Tensor], Any]:
    """Return what gives a Tensor the method that arrays have."""
    return lambda x: (
        lambda *args, **kwargs: Tensor(
            getattr(jnp.asarray(x._array), name)(*nest.map_structure(plain, args), **kwargs)
        )
    )


_METHODS: dict[str, Callable[[Tensor], Any]] = {
    "T": lambda x: Tensor(jnp.asarray(x._array).T),
    "data": lambda x: x,
    "size": lambda x: x._array.size,
    "tolist": lambda x: x.numpy().tolist,
    **{
        name: _method(name)
        for name in (
            "astype", "clip", "flatten", "max", "mean", "min", "ravel", "reshape", "transpose",
        )
    },
}  # fmt: skip
