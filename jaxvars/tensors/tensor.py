"""What may become a tensor, dtypes and `TensorSpec`.

A tensor is a `jax.Array`; strings are on the host as a NumPy array of `string` dtype.

Rules this file keeps:
- a Python number fits a variable of its kind or a wider one (bool, int, float, complex);
- an array must have the requested dtype, exactly; NumPy's 64-bit default is taken as 32-bit
  while 64-bit is off in JAX, unless a value does not fit;
- what was requested explicitly is returned, or refused with the cure: never narrowed silently;
- a finite number never becomes an infinite one, nor a whole one another one; if one becomes 0,
  that is said;
- NumPy's masked arrays are refused: a tensor has no mask;
- what is made from NumPy memory is a copy, and made at once: JAX may otherwise share it.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, NotATensorError, Phrase, ShapeError, called, user_line
from jaxvars.tensors.dtypes import (
    LITERALS,
    Array,
    as_dtype,
    check_fits,
    check_kind,
    dtype_error,
    fits_kind,
    is_string,
    narrowed,
    string,
)
from jaxvars.tensors.foreign_arrays import in_numpy, is_foreign_array, read, refuse_grad
from jaxvars.tracing import context
from jaxvars.tracing.guards import GUARDS, ask
from jaxvars.typing import Value

_DEEPEST = 200
_NESTED = frozenset({list, tuple, dict})


def is_host(value: object) -> bool:
    """Return whether a value is in Python's memory, so that a tensor made of it is a copy."""
    return not isinstance(value, jax.Array) and not hasattr(value, "__jax_array__")


def to_tensor(value: object, dtype: object = None, *, what: object = "value") -> Value:
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
    array = array_of(value, what)
    if isinstance(array, np.ndarray) and array.dtype.kind in "SUTO":
        return _text(array, wanted, what)
    if GUARDS:
        ask(f"A tensor is made of {what}")
    if is_string(wanted):
        raise DtypeError(f"{what} is {array.dtype}, but dtype string was requested: use str().")
    if wanted is None and isinstance(array, jax.Array) and not is_weak(array):
        return array
    if wanted is None:
        wanted = narrowed(array.dtype)
        wanted = LITERALS.get(wanted, wanted) if LITERALS and is_literal(value) else wanted
    if isinstance(array, jax.Array) and array.dtype == wanted and not is_weak(array):
        return array
    if not _is_empty_literal(value, array):
        literal = is_literal(value) and {"i": "int", "f": "float", "c": "complex"}.get(
            array.dtype.kind
        )
        check_kind(array.dtype, wanted, what, f"of Python type {literal}" if literal else "")
        check_fits(array, wanted, what)
    return _convert(array, wanted)


def fit(value: Any, shape: tuple[int, ...], dtype: Any, cell: Any) -> Value:
    """Convert to a tensor that the variable of a cell can hold, of `shape` and `dtype`.

    Raises:
        NotATensorError: when the value is not a tensor.
        DtypeError: when its dtype is another one.
        ShapeError: when its shape is another one.
    """
    array = fit_dtype(value, dtype, cell)
    if array.shape != shape:
        raise _shape_error(cell, shape, array.shape)
    return array


def fit_dtype(value: object, dtype: Any, cell: Any) -> Value:
    """Convert to a tensor of `dtype` if that loses nothing, for the variable of a cell.

    Raises:
        NotATensorError: when the value is not a tensor.
        DtypeError: when its dtype is another one.
    """
    if isinstance(value, jax.Array) and value.dtype == dtype and not is_weak(value):
        return value
    if GUARDS:
        ask(Phrase("Variable {!r} is written", cell))
    number = number_of(value, dtype)
    if number is not None:
        return _convert(number, dtype, cell)
    what = Phrase("the value for variable {!r}", cell)
    array = array_of(value, what)
    loose = is_literal(value) or is_weak(array)
    if isinstance(array, np.ndarray) and array.dtype.kind in "SUTO":
        if is_string(dtype):
            return _text(array, dtype, what)
        raise dtype_error(cell, dtype, "string")
    if is_string(dtype):
        raise dtype_error(cell, dtype, str(array.dtype))
    if loose and (fits_kind(array.dtype, dtype) or _is_empty_literal(value, array)):
        check_fits(array, dtype, what)
        return _convert(array, dtype, cell)
    is_numpy = isinstance(array, np.ndarray)
    if array.dtype != dtype and not (is_numpy and narrowed(array.dtype) == dtype):
        is_number = isinstance(value, int | float | complex)
        raise dtype_error(cell, dtype, type(value).__name__ if is_number else str(array.dtype))
    if is_numpy:
        check_fits(array, dtype, what, refuse_zeros=True)
        return _convert(array, dtype, cell)
    return array


def fit_operand(value: object, dtype: Any, cell: Any) -> Array:
    """Do as `fit_dtype` does, for what the variable is changed by.

    Raises:
        NotATensorError: when the value is not a tensor, or the variable holds strings.
        DtypeError: when its dtype is another one.
    """
    if is_string(dtype):
        raise NotATensorError(f"Variable {called(cell)!r} holds strings: only assign changes it.")
    return fit_dtype(value, dtype, cell)


def number_of(value: object, dtype: Any) -> Any:
    """Return a Python number as NumPy's scalar of a dtype; None if that has to be looked at."""
    make, is_float, most = _NUMBERS.get(dtype, _NO_NUMBER)
    kind = type(value)
    if not (kind is int or (kind is float and is_float)):
        return None
    size = abs(value)  # pyright: ignore[reportArgumentType] - a number
    is_large_enough = kind is int or size > _TINY or not size
    return make(value) if size <= most and is_large_enough else None


_NUMBERS: dict[Any, tuple[Any, bool, float]] = {
    np.dtype(kind): (kind, issubclass(kind, np.floating), most)
    for kind, most in [
        (np.int32, 2**31 - 1), (np.int64, 2**53), (np.float32, 2.0**53), (np.float64, 2.0**53)
    ]
}  # fmt: skip
_NO_NUMBER = (None, False, -1.0)
_TINY = 2.0**-120


def check_argument(value: int | np.ndarray | np.generic, what: str, _: str = "") -> None:
    """Raise if JAX cannot take what a compiled function is given.

    Raises:
        NotATensorError: when it has a dtype that JAX does not have, or a mask.
        DtypeError: when it is an integer that does not fit.
    """
    array = _from_numpy(value, what)
    if isinstance(value, int):
        check_fits(array, jax.dtypes.canonicalize_dtype(array.dtype), what)
    else:
        check_uncut(array, what)


def own_copy(value: Any, what: str) -> Any:
    """Return a copy of an array that others may write to: of NumPy's and foreign ones."""
    if isinstance(value, np.ndarray):
        return value.copy()
    is_other = not hasattr(value, "__jax_array__") and is_foreign_array(value)
    return numbers_of(value, what, "x").copy() if is_other else value


def numbers_of(value: Any, what: str, name: str) -> Array | np.ndarray:
    """Return the numbers of a foreign array that a compiled function is given, in its own memory.

    Raises:
        NotATensorError: as for `contents_of`, and for strings.
    """
    if hasattr(value, "__jax_array__"):
        return array_of(value, what)
    array = contents_of(value, what, name)
    if array.dtype.kind in "SUTO":
        raise NotATensorError(
            f"{what} is a {type(value).__name__} of strings, at {user_line()}: a program has only "
            f"numbers. Pass tuple({name}), whose strings are part of the signature."
        )
    return array


def contents_of(value: Any, what: str, name: str) -> np.ndarray:
    """Return the numbers or strings of a foreign array that a compiled function is given.

    Args:
        value: it.
        what: how errors call it.
        name: how the program that they show calls it.

    Raises:
        NotATensorError: when there are none that JAX can take, or PyTorch is to derive by it.
    """
    refuse_grad(value, what, name)
    return _from_numpy(value, what, name)


def as_array(value: Any) -> Array:
    """Return what `jnp.asarray` does; raise DtypeError if it would cut NumPy's integers."""
    if isinstance(value, np.ndarray | np.generic):
        check_uncut(value, "a value that becomes a tensor")
    if GUARDS:
        ask("A tensor is made")
    return jnp.asarray(value)


def check_uncut(value: np.ndarray | np.generic, what: str) -> None:
    """Raise DtypeError if JAX would cut NumPy's integers of 64 bits to others of 32 bits."""
    if not is_uncut(value):
        check_fits(value, jax.dtypes.canonicalize_dtype(value.dtype), what)


def is_uncut(value: np.ndarray | np.generic) -> bool:
    """Return whether JAX does not cut NumPy's integers of 64 bits to others of 32 bits.

    >>> is_uncut(np.int64(7)), is_uncut(np.array([1, 2**31]))
    (True, False)
    """
    kind = value.dtype.kind
    if kind not in "iu" or value.dtype.itemsize < 8 or not value.size:
        return True
    if jax.dtypes.canonicalize_dtype(value.dtype) == value.dtype:
        return True
    least, most = (-(2**31), 2**31) if kind == "i" else (0, 2**32)
    return bool(least <= value.min() and value.max() < most)


def as_operand(value: Any, dtype: Any, cell: Any) -> Any:
    """Return what an operator is given beside a variable: a number as it is, or a tensor.

    Raises:
        NotATensorError: when the value is not a tensor.
        DtypeError: when a number is outside of what `dtype` can hold.
    """
    what = Phrase("the value for variable {!r}", cell)
    if isinstance(value, list | tuple | str | bytes) or not is_literal(value):
        tensor = to_tensor(value, what=what)
        if isinstance(tensor, np.ndarray) and not is_string(dtype):
            raise dtype_error(cell, dtype, "string")
        is_number = isinstance(value, np.generic) and not isinstance(tensor, np.ndarray)
        return value if is_number else tensor  # x ** n is exact where n is known
    known = np.asarray(value)
    if fits_kind(known.dtype, dtype):
        check_fits(known, dtype, what)
    return value


def array_of(value: object, what: object) -> Array | np.ndarray:
    if isinstance(value, jax.Array):
        return value
    if hasattr(value, "__jax_array__"):
        found = value.__jax_array__()  # pyright: ignore[reportAttributeAccessIssue] - just looked
        if isinstance(found, jax.Array):
            return found
        raise NotATensorError(
            f"{what} is a {type(value).__name__}, whose __jax_array__ returned a "
            f"{type(found).__name__}, not a jax.Array."
        )
    if value is None or isinstance(value, dict | set | frozenset) or callable(value):
        raise _not_a_tensor(value, what)
    if isinstance(value, list | tuple):
        if is_endless(value):
            raise NotATensorError(
                f"{what} is a {type(value).__name__} that contains itself, or is nested too deeply."
            )
        leaves = jax.tree.leaves(value)
        refuse_masked(leaves, what)
        if any(isinstance(x, jax.Array) or hasattr(x, "__jax_array__") for x in leaves):
            return _stack(value, what)
    return _from_numpy(value, what)


def is_endless(value: object, depth: int = 0) -> bool:
    """Return whether a list, tuple or dict contains itself, or is nested too deeply.

    To be checked before JAX flattens it: that leaves Python's count of recursions wrong for good.
    """
    if type(value) not in _NESTED:
        return False
    children: Iterable[object] = value.values() if isinstance(value, dict) else value  # pyright: ignore[reportAssignmentType, reportUnknownVariableType]
    if _NESTED.isdisjoint(map(type, children)):  # checked at each call: usually all are arrays
        return False
    return depth == _DEEPEST or any(is_endless(child, depth + 1) for child in children)


def refuse_masked(values: Sequence[object], what: object) -> None:
    """Refuse NumPy's masked arrays, whose masks a tensor cannot have.

    Raises:
        NotATensorError: when one of the values is a masked array.
    """
    if any(isinstance(value, np.ma.MaskedArray) for value in values):
        raise NotATensorError(
            f"A masked array of NumPy was given as {what}: a tensor has no mask, and the masked "
            "elements would count. Fill them, for example with x.filled(0), and use the mask, "
            "x.mask, as a separate array."
        )


_UNKNOWN: tuple[type, ...] = (np.void, np.longdouble, np.clongdouble)


def _from_numpy(value: object, what: object, name: str = "x") -> np.ndarray:
    try:
        array = read(value, what, name) if is_foreign_array(value) else in_numpy(value)
        refuse_masked([array], what)
        array = np.asarray(array)
    except NotATensorError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        why = _unequal_rows(value) or error
        raise NotATensorError(f"{what} cannot become a tensor: {why}") from None
    if array.dtype.kind == "O":
        _check_objects(array, value, what, name)
    if array.dtype.kind in "SU" and not _is_text(value):
        raise NotATensorError(f"{what} mixes strings and numbers: convert all of it with str().")
    if array.dtype.kind in "SU":  # which cut zero characters at the end off
        array = np.asarray(value, object)
    if array.dtype.kind in "mM":
        raise NotATensorError(
            f"{what} is {array.dtype}, which is not a tensor: convert it to numbers, for example "
            "with .astype('int32')."
        )
    if not array.dtype.isnative or issubclass(array.dtype.type, _UNKNOWN):
        cure = f"{name}['a'], one of its fields" if array.dtype.names else _as_floats(value, name)
        raise NotATensorError(
            f"{what} has NumPy's dtype {array.dtype}, which JAX does not have (nor byte orders "
            f"other than the machine's): pass {cure}, for example."
        )
    return array


def _as_floats(value: object, name: str) -> str:
    is_method = isinstance(value, np.ndarray | np.generic)
    return f"{name}.astype('float32')" if is_method else f"np.asarray({name}, 'float32')"


def _unequal_rows(value: object) -> str:
    """Return what to say of a nested list whose rows have several lengths; nothing of others."""
    if not isinstance(value, list | tuple):
        return ""
    rows = [row for row in value if isinstance(row, list | tuple)]
    lengths = list(dict.fromkeys(map(len, rows)))
    if lengths[1:]:
        return (
            f"its rows have {lengths[0]} and {lengths[1]} elements. Pad the shorter ones, or make "
            "a Variable of each."
        )
    return next(filter(None, map(_unequal_rows, rows)), "")


def _check_objects(array: np.ndarray, value: object, what: object, name: str) -> None:
    others = [x for x in array.flat if not isinstance(x, str | bytes)]
    if others and is_foreign_array(value):
        raise NotATensorError(
            f"{what} is a {type(value).__name__} of Python's objects, at {user_line()}, such as "
            f"{others[0]!r:.40}: a tensor has numbers of one dtype. Convert it, for example with "
            f"np.asarray({name}, 'float32'), or pass the columns that are numbers."
        )
    if all(isinstance(x, int) for x in array.flat):
        raise DtypeError(f"{what} has integers of more than 64 bits. Use floats, or smaller ones.")
    if not all(isinstance(x, str | bytes) for x in array.flat):
        raise _not_a_tensor(value, what)


def _is_text(value: object) -> bool:
    """Return whether what NumPy has read as strings holds no number."""
    if isinstance(value, list | tuple):
        return all(map(_is_text, value))
    return not isinstance(value, numbers.Number)


def _convert(array: Array | np.ndarray | np.generic, dtype: Any, cell: Any = "") -> Array:
    if isinstance(array, np.generic) and context.place(None) is not context.EVAL:
        array = np.asarray(array)
    with context.restoring(), context.evaluating():
        if isinstance(array, np.generic):  # a number of this dtype
            new = context.fresh(array)  # in a third of the time of jnp.array
        elif not isinstance(array, np.ndarray):  # of which lax would make 32 bits first
            new = jax.lax.convert_element_type(array, dtype)
        else:  # JAX copies in the background, while the caller may already change the array: wait.
            new = jax.block_until_ready(jnp.array(array.astype(dtype, copy=False)))
    if new.dtype != dtype:  # it is a variable's, and 64-bit numbers have been switched off
        raise dtype_error(cell, dtype, str(new.dtype))
    return new


def is_elsewhere(value: Any, sharding: Any) -> bool:
    """Return whether a value was put on a single device that is not that of a sharding."""
    known = isinstance(value, jax.Array) and not context.is_tracer(value)
    alone = known and value.committed and len(value.sharding.device_set) == 1
    return alone and value.sharding != sharding


def is_weak(array: object) -> bool:
    return getattr(array, "weak_type", False)


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _stack(value: Any, what: object) -> Array:
    if GUARDS:
        ask(f"A tensor is made of {what}")
    if any(map(_is_dict, jax.tree.leaves(value, is_leaf=_is_dict))):  # a dtype to NumPy
        raise NotATensorError(f"{what} cannot become a tensor: it contains a dict.")
    try:
        return jnp.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotATensorError(f"{what} cannot become a tensor: {error}") from None


def _text(array: np.ndarray, wanted: Any, what: object) -> np.ndarray:
    if wanted is not None and not is_string(wanted):
        raise DtypeError(f"{what} is a string, but dtype {wanted} was requested: convert it first.")
    try:
        decoded = [x.decode() if isinstance(x, bytes) else str(x) for x in array.flat]
    except UnicodeDecodeError as error:
        raise NotATensorError(
            f"{what} has bytes that are not valid UTF-8 ({error}). Keep bytes as numbers: "
            "np.frombuffer(data, 'uint8')."
        ) from None
    strings = np.array(decoded, dtype=string).reshape(array.shape)
    strings.flags.writeable = False  # only assign changes a variable
    return strings


def is_literal(value: object) -> bool:
    """Return whether a value is Python numbers only, whose precision was not chosen."""
    if isinstance(value, list | tuple):
        return all(map(is_literal, value))
    return isinstance(value, numbers.Number) and not isinstance(value, np.generic)


def _is_empty_literal(value: object, array: Array | np.ndarray) -> bool:
    """Return whether a value is a list of nothing, which has no dtype: NumPy makes it floats."""
    return array.size == 0 and isinstance(value, list | tuple) and is_literal(value)


def _not_a_tensor(value: object, what: object) -> NotATensorError:
    cure = (
        " Give each leaf a separate variable: jax.tree.map(jv.Variable, tree)."
        if isinstance(value, dict)
        else " It takes numbers, strings, (nested) lists of them, and NumPy or JAX arrays."
    )
    return NotATensorError(f"{what} is {type(value).__name__}, which is not a tensor.{cure}")


def _shape_error(cell: Any, shape: tuple[int, ...], got: tuple[int, ...]) -> Exception:
    cure = "Take the part of the value that fits, or make a new Variable"
    if broadcasts(got, shape):
        cure = f"Broadcast the value: jnp.broadcast_to(value, {shape})"
    elif math.prod(got) == math.prod(shape):
        cure = f"Reshape the value: jnp.reshape(value, {shape})"
    elif len(got) == len(shape) and all(map(operator.le, got, shape)):
        cure = f"Assign a part: v[{', '.join(f':{n}' for n in got)}].assign(value)"
    return ShapeError(
        f"Cannot assign a value of shape {got} to variable {called(cell)!r} of shape {shape}: "
        f"a variable keeps its shape. {cure}."
    )


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    if shape == to:
        return True
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False
