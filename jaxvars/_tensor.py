"""What may become a tensor, dtypes and `TensorSpec`.

A tensor is a `jax.Array`; text lives on the host as a NumPy array of `string` dtype.

Rules this file keeps:
- a Python number fits a variable of its own kind or a wider one (bool, int, float, complex);
- an array must have the dtype asked for, exactly; NumPy's 64-bit default is taken as 32-bit
  while 64-bit is off in JAX, unless a value does not fit;
- what was asked for explicitly is given, or refused with the cure: never narrowed silently;
- what is made from NumPy memory is a copy: JAX may otherwise share it.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, NotATensorError

Array: TypeAlias = Any  # jax.Array, a tracer, or a NumPy array of strings

string: Any = np.dtypes.StringDType()
"""The dtype of text."""

_KINDS = "?biufcV"
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}  # V: bfloat16 and float8
_X64_CURE = (
    "64-bit numbers are off in JAX. Switch them on before the first computation with\n"
    '    jax.config.update("jax_enable_x64", True)\n'
    "or ask for {narrow}."
)


def is_string(dtype: object) -> bool:
    """Tell whether `dtype` is the dtype of text."""
    return isinstance(dtype, np.dtypes.StringDType)


def as_dtype(dtype: Any) -> Any:
    """Return `dtype` (a NumPy or JAX dtype, a scalar type or a name) as a dtype object.

    Raises:
        DtypeError: when it is a 64-bit dtype and JAX has 64-bit numbers switched off.
        NotATensorError: when it names no dtype.

    >>> as_dtype("bfloat16").name, as_dtype(float).name
    ('bfloat16', 'float32')
    """
    if dtype in (str, bytes, "string") or is_string(dtype):
        return string
    if dtype in (float, int, complex):
        return jax.dtypes.canonicalize_dtype(dtype)
    try:
        found = jnp.dtype(dtype) if not isinstance(dtype, np.dtype) else dtype
    except TypeError:
        raise NotATensorError(
            f"{dtype!r} names no dtype; examples: jnp.float32, 'int32'."
        ) from None
    if found.kind in "SUT":
        return string
    narrow = jax.dtypes.canonicalize_dtype(found) if found.kind in _KINDS else found
    if narrow != found:
        raise DtypeError(f"{found} was asked for, but " + _X64_CURE.format(narrow=narrow))
    return found


def to_tensor(value: object, dtype: object = None, *, what: str = "value") -> Array:
    """Convert to a tensor that shares no memory with NumPy.

    Args:
        value: a number, string, (nested) list of them, NumPy or JAX array, or anything with
            `__jax_array__` or `__array__`.
        dtype: the dtype to give; inferred from the value when None.
        what: how errors call the value, for example "the initial value of 'w'".

    Returns:
        A `jax.Array` (or tracer), or a NumPy array of `string` dtype.

    Raises:
        NotATensorError: when the value is None, a dict, a set, ragged or an object.
        DtypeError: when the value cannot have the dtype without loss.

    >>> to_tensor([1, 2, 3]).dtype.name, to_tensor(3.14).dtype.name
    ('int32', 'float32')
    """
    wanted = None if dtype is None else as_dtype(dtype)
    array = _array_of(value, what)
    if isinstance(array, np.ndarray) and array.dtype.kind in "SUTO":
        return _text(array, wanted, what)
    if is_string(wanted):
        raise DtypeError(f"{what} is {array.dtype}, but dtype string was asked for: use str().")
    if wanted is not None:
        _check_kind(array.dtype, wanted, what)
    if isinstance(array, np.ndarray):
        _check_range(array, wanted or jax.dtypes.canonicalize_dtype(array.dtype), what)
        return jnp.array(array, dtype=wanted)
    wanted = array.dtype if wanted is None else wanted
    if array.dtype == wanted and not array.weak_type:
        return array
    return jax.lax.convert_element_type(array, wanted)


def fit(value: Any, shape: tuple[int, ...], dtype: Any, *, name: str) -> Array:
    """Convert to a tensor that the variable `name` of `shape` and `dtype` can hold.

    Raises:
        NotATensorError: when the value is no tensor.
        DtypeError: when its dtype is another one.
        ShapeError: when its shape is another one.
    """
    if isinstance(value, jax.Array) and value.dtype == dtype and not value.weak_type:
        array = value
    else:
        array = fit_dtype(value, dtype, name)
    if array.shape != shape:
        raise _shape_error(name, shape, array.shape)
    return array


def fit_dtype(value: object, dtype: Any, name: str) -> Array:
    """Convert to a tensor of `dtype` if that loses nothing, for the variable `name`.

    Raises:
        NotATensorError: when the value is no tensor.
        DtypeError: when its dtype is another one.
    """
    what = f"the value for variable {name!r}"
    array = _array_of(value, what)
    loose = _is_literal(value) or getattr(array, "weak_type", False)
    if isinstance(array, np.ndarray) and array.dtype.kind in "SUTO":
        if is_string(dtype):
            return _text(array, dtype, what)
        raise _dtype_error(name, dtype, "string")
    if is_string(dtype):
        raise _dtype_error(name, dtype, str(array.dtype))
    if loose and _fits_kind(array.dtype, dtype):
        if isinstance(array, np.ndarray):
            _check_range(array, dtype, what)
        return jax.lax.convert_element_type(array, dtype)
    if jax.dtypes.canonicalize_dtype(array.dtype) != dtype:
        raise _dtype_error(name, dtype, str(array.dtype))
    if isinstance(array, np.ndarray):
        _check_range(array, dtype, what)
        return jnp.array(array, dtype=dtype)
    return array


def _array_of(value: object, what: str) -> Array:
    if isinstance(value, jax.Array | np.ndarray):
        return value
    if hasattr(value, "__jax_array__"):
        return value.__jax_array__()  # pyright: ignore[reportAttributeAccessIssue] - just looked
    if value is None or isinstance(value, dict | set | frozenset) or callable(value):
        raise _not_a_tensor(value, what)
    if isinstance(value, list | tuple) and any(map(_holds_array, jax.tree.leaves(value))):
        return _stack(value, what)
    return _from_numpy(value, what)


def _from_numpy(value: object, what: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotATensorError(f"{what} cannot become a tensor: {error}") from None
    if array.dtype.kind == "O" and not all(isinstance(x, str | bytes) for x in array.flat):
        raise _not_a_tensor(value, what)
    return array


def _holds_array(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) or hasattr(leaf, "__jax_array__")


def _stack(value: Any, what: str) -> Array:
    try:
        return jnp.asarray(value)
    except (ValueError, TypeError) as error:
        raise NotATensorError(f"{what} cannot become a tensor: {error}") from None


def _text(array: np.ndarray, wanted: Any, what: str) -> np.ndarray:
    if wanted is not None and not is_string(wanted):
        raise DtypeError(f"{what} is text, but dtype {wanted} was asked for: convert it first.")
    decoded = [x.decode() if isinstance(x, bytes) else str(x) for x in array.flat]
    return np.array(decoded, dtype=string).reshape(array.shape)


def _is_literal(value: object) -> bool:
    """Tell whether a value is Python numbers only, whose precision nobody chose."""
    if isinstance(value, list | tuple):
        return all(map(_is_literal, value))
    return isinstance(value, numbers.Number) and not isinstance(value, np.generic)


def _rank(dtype: Any) -> int:
    return _RANK.get(dtype.kind, 9)


def _fits_kind(have: Any, want: Any) -> bool:
    if have.kind == "b" or want.kind == "b":
        return have.kind == want.kind
    return _rank(have) <= _rank(want)


def _check_kind(have: Any, want: Any, what: str) -> None:
    if have.kind != "b" and _rank(have) > _rank(want):
        raise DtypeError(
            f"{what} is {have}, and dtype {want} cannot hold it without loss. "
            f"Convert it yourself, for example with .astype({want})."
        )


def _check_range(array: np.ndarray, dtype: Any, what: str) -> None:
    if dtype.kind not in "iu" or array.dtype == dtype or array.size == 0:
        return
    info = jnp.iinfo(dtype)
    if array.min() < info.min or array.max() > info.max:
        low, high = array.min(), array.max()
        raise DtypeError(
            f"{what} reaches from {low} to {high}, outside of {dtype} ({info.min} to {info.max}). "
            + (_X64_CURE.format(narrow="smaller numbers") if array.dtype.itemsize == 8 else "")
        )


def _not_a_tensor(value: object, what: str) -> NotATensorError:
    cure = (
        " Give each leaf a variable of its own: jax.tree.map(jv.Variable, tree)."
        if isinstance(value, dict)
        else " It takes numbers, strings, (nested) lists of them, and NumPy or JAX arrays."
    )
    return NotATensorError(f"{what} is {type(value).__name__}, which is no tensor.{cure}")


def _shape_error(name: str, shape: tuple[int, ...], got: tuple[int, ...]) -> Exception:
    from jaxvars.errors import ShapeError

    return ShapeError(
        f"Cannot assign a value of shape {got} to variable {name!r} of shape {shape}: "
        f"a variable keeps its shape. Reshape or broadcast the value, for example with "
        f"jnp.broadcast_to(value, {shape}), or make a new Variable."
    )


def _dtype_error(name: str, dtype: Any, got: str) -> DtypeError:
    want = "string" if is_string(dtype) else str(dtype)
    return DtypeError(
        f"Cannot assign a value of dtype {got} to variable {name!r} of dtype {want}: a variable "
        f"keeps its dtype, and nothing is converted silently. Convert the value, for example "
        f"with jnp.asarray(value, {want!r})."
    )


@final
@dataclass(frozen=True)
class TensorSpec:
    """Describe a tensor: shape, dtype and a name.

    Args:
        shape: sizes; None for a size that may differ between calls.
        dtype: a dtype or its name.
        name: what errors and concrete functions call it.

    >>> TensorSpec((None, 3)).matches(jnp.ones((5, 3)))
    True
    """

    shape: tuple[int | None, ...]
    dtype: Any = np.dtype("float32")
    name: str | None = None

    def __post_init__(self) -> None:
        shape = (self.shape,) if isinstance(self.shape, int) else tuple(self.shape)
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", as_dtype(self.dtype))

    @classmethod
    def of(cls, value: Any, name: str | None = None) -> TensorSpec:
        """Return the spec of an array."""
        return cls(tuple(value.shape), value.dtype, name)

    def matches(self, value: Any) -> bool:
        """Tell whether an array has this shape and dtype."""
        return value.dtype == self.dtype and self.accepts_shape(value.shape)

    def accepts_shape(self, shape: Sequence[int]) -> bool:
        """Tell whether `shape` is one of those described."""
        pairs = zip(self.shape, shape, strict=False)
        return len(shape) == len(self.shape) and all(want in (None, have) for want, have in pairs)

    @property
    def is_static(self) -> bool:
        """Tell whether every size is known."""
        return None not in self.shape

    def __str__(self) -> str:
        sizes = ",".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.dtype}[{sizes}]"
