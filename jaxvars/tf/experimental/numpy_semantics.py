"""`tnp.experimental_enable_numpy_behavior`: Tensors with NumPy's methods, types and indexing.

Rules this file keeps:
- until it is requested, nothing of it counts, and operators cost nothing more; it can't be undone;
- operands of different types are promoted by NumPy's rules, in operators only: Python's numbers
  are as wide as what they meet;
- a list or array of numbers as an index picks, and several pick together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.tensors.convert import is_tensor_like, is_text, to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import NUMPY_METHODS, OPERATIONS, Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

_PROMOTED = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lt", "le", "gt", "ge", "eq", "ne",
)  # fmt: skip
_NUMBERS = (bool, int, float, complex)


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Give Tensors NumPy's methods, types and indexing, from now on.

    Args:
        prefer_float32: must be False.
        dtype_conversion_mode: must be "legacy": NumPy's rules for types.

    Raises:
        NotImplementedError: for other arguments.
    """
    if prefer_float32 or dtype_conversion_mode != "legacy":
        raise NotImplementedError(
            "Types are promoted by NumPy's rules: experimental_enable_numpy_behavior() without "
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
        common = promoted_type(*dtypes)
        return operation(*(_as_type(operand, common) for operand in (x, y)))

    return promoted


def promoted_type(*dtypes: Any) -> np.dtype:
    """Return the type that NumPy gives to what is computed of some: types, or Python's numbers."""
    try:
        return np.result_type(*dtypes)
    except TypeError:  # NumPy knows nothing of bfloat16
        return jnp.result_type(*dtypes)


def _type_of(operand: Any) -> Any:
    """Return the type of an operand, a number of Python as it is, or None for what has none."""
    if isinstance(operand, _NUMBERS) and not isinstance(operand, np.generic):
        return operand
    if isinstance(operand, np.ndarray | np.generic):
        return operand.dtype if operand.dtype.kind in "biufc" else None
    if not is_tensor_like(operand):
        return None
    array = to_array(operand)
    return None if is_text(array) else array.dtype


def _as_type(operand: Any, dtype: np.dtype) -> Tensor:
    if isinstance(operand, _NUMBERS):
        return Tensor(to_array(np.asarray(operand, dtype)))
    array = to_array(operand)
    return Tensor(array if array.dtype == dtype else array.astype(dtype))


# ---------------------------------------------------------------- indexing
def _pick(getitem: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(getitem)
    def picked(x: Any, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not isinstance(x, Tensor) or not any(map(_is_list, parts)):
            return getitem(x, key)
        index = tuple(_index(part) if _is_list(part) else _plain(part) for part in parts)
        _check(index, x._array.shape)
        return Tensor(x._array[index])

    return picked


def _is_list(part: Any) -> bool:
    if isinstance(part, list | tuple):
        return True
    return getattr(part, "ndim", 0) > 0


def _index(part: Any) -> Array:
    array = to_array(part)
    return array if context.is_tracer(array) else np.asarray(array)


def _plain(part: Any) -> Any:
    return int(part) if isinstance(part, Tensor) else part


def _check(index: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    if any(part is Ellipsis or part is None for part in index):
        return
    for part, size in zip(index, shape, strict=False):
        is_known = isinstance(part, np.ndarray) and part.dtype.kind in "iu"
        if is_known and ((part < -size) | (part >= size)).any():
            raise refused(f"indices {part.tolist()} are not in [{-size}, {size})")


# ---------------------------------------------------------------- methods
def _method(function: Callable[..., Array]) -> Callable[[Tensor], Any]:
    """Return what gives a Tensor a method that works on its array."""

    def bound(x: Tensor) -> Callable[..., Tensor]:
        @functools.wraps(function)
        def method(*args: Any, **kwargs: Any) -> Tensor:
            return Tensor(function(jnp.asarray(x._array), *args, **kwargs))

        return method

    return bound


def _clip(x: Array, a_min: Any = None, a_max: Any = None) -> Array:
    return jnp.clip(x, *(None if end is None else to_array(end) for end in (a_min, a_max)))


def _reshape(x: Array, *newshape: Any, order: str = "C") -> Array:
    sizes = newshape[0] if len(newshape) == 1 else newshape
    return x.reshape(tuple(map(int, sizes)) if isinstance(sizes, list | tuple) else int(sizes))


_METHODS: dict[str, Callable[[Tensor], Any]] = {
    "T": lambda x: Tensor(jnp.asarray(x._array).T),
    "data": lambda x: x,
    "size": lambda x: x._array.size,
    "tolist": lambda x: x.numpy().tolist,
    "astype": _method(lambda x, dtype: x.astype(as_dtype(dtype).dtype)),
    "clip": _method(_clip),
    "reshape": _method(_reshape),
    **{name: _method(getattr(jnp, name)) for name in ("max", "mean", "min", "transpose", "ravel")},
    "flatten": _method(jnp.ravel),
}
