"""Dtypes: what they are called, and which values fit one without loss."""

from __future__ import annotations

import functools
import logging
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, NotATensorError, called, user_line, warn_user
from jaxvars.tracing import context
from jaxvars.typing import Array

string: Any = np.dtypes.StringDType()
"""The dtype of strings."""
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
_X64_CURE = (
    "64-bit numbers are off in JAX. Switch them on before the first computation with\n"
    '    jax.config.update("jax_enable_x64", True)\n'
    "or use {narrow}."
)


def is_string(dtype: object) -> bool:
    """Return whether `dtype` is the dtype of strings."""
    return isinstance(dtype, np.dtypes.StringDType)


WIDE = ("int64", "uint64", "float64", "complex128")
"""The dtypes that JAX cuts while its 64-bit numbers are off, by name."""

LITERALS: dict[Any, Any] = {}
"""The dtypes that Python's numbers get, by those that JAX gives them, where these differ."""


def narrowed(dtype: Any) -> Any:
    """Return the dtype that JAX makes of one: another while 64-bit numbers are off."""
    return jax.dtypes.canonicalize_dtype(dtype, allow_extended_dtype=True)


def keeping(dtype: Any) -> AbstractContextManager[None]:
    """Return a context in which JAX makes arrays of a dtype: else it may cut 64 bits."""
    is_cut = not is_string(dtype) and narrowed(dtype) != dtype
    return jax.enable_x64(True) if is_cut else nullcontext()


def switch_wide_on(who: str) -> None:
    """Switch JAX's 64-bit numbers on, unless they are, and say who did; Python's stay narrow."""
    if jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue] - made by JAX as it is imported
        return
    jax.config.update("jax_enable_x64", True)
    logging.getLogger("jaxvars").warning(
        "%s has switched JAX's 64-bit numbers on, as TensorFlow's programs have them: "
        "jnp.zeros(3) is float64 now, and NumPy's float64 stays. Python's numbers stay float32 and "
        "int32 in jv.Variable. JAX_ENABLE_X64=0 in the environment leaves them off.",
        who,
    )
    for kind, bits in (("float", 32), ("int", 32), ("complex", 64)):
        LITERALS[np.dtype(f"{kind}{2 * bits}")] = np.dtype(f"{kind}{bits}")


@functools.cache
def note_platform(platform: str) -> None:
    """Say, once, what 64-bit numbers cost on a platform, if they are on and it is no CPU."""
    if platform == "cpu" or narrowed(np.float64) != np.float64:
        return
    logging.getLogger("jaxvars").warning(
        "JAX's 64-bit numbers are on, and this program runs on a %s. A TPU emulates them: they are "
        "slow there, and some operations on float64 do not compile; a GPU computes them more "
        "slowly than float32. JAX_ENABLE_X64=0 in the environment leaves them off: int64 is then "
        "int32, and tf.float64 is refused by name.",
        platform,
    )


def is_inexact(value: object) -> bool:
    """Return whether a value, or a spec of one, has a derivative: floats and complex numbers."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and _is_inexact(dtype)


@functools.lru_cache(256)
def _is_inexact(dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.inexact)


def are_floats(*values: object) -> bool:
    """Return whether all have floating dtypes, of which one is cast to another when asked to."""
    return all(jnp.issubdtype(getattr(x, "dtype", None) or bool, jnp.floating) for x in values)


def is_of_kind(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is another one, or of a kind of numbers; that of strings is not."""
    return not is_string(dtype) and jnp.issubdtype(dtype, kind)


def is_key(value: object) -> bool:
    """Return whether a value, or a spec of one, holds keys of `jax.random`."""
    dtype = getattr(value, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def nbytes(x: Any) -> int:
    """Return the memory that the value of an array or variable takes; 0 for strings."""
    return 0 if is_string(x.dtype) else x.size * x.dtype.itemsize


def bytes_per_device(x: Any, sharding: Any = None) -> int:
    """Return the memory that the value takes on each device that has a part of it.

    Args:
        x: an array or a variable.
        sharding: the one that it would have; its own when None.
    """
    sharding = sharding or x.sharding
    if sharding is None:
        return nbytes(x)
    return math.prod(sharding.shard_shape(x.shape)) * x.dtype.itemsize


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
    if isinstance(dtype, type) and dtype in (float, int, complex):
        return jax.dtypes.canonicalize_dtype(dtype)
    try:
        if jnp.issubdtype(dtype, jax.dtypes.extended):
            return dtype  # random keys
        found = jnp.dtype(dtype) if not isinstance(dtype, np.dtype) else dtype
        if found.kind in "SUT":
            return string
    except TypeError:
        raise _no_dtype(dtype) from None
    if found.kind not in "biufcV" or found.itemsize > (16 if found.kind == "c" else 8):
        raise _no_dtype(dtype)  # objects, dates, long doubles
    narrow = jax.dtypes.canonicalize_dtype(found)
    if narrow != found:
        raise DtypeError(f"{found} was requested, but " + _X64_CURE.format(narrow=narrow))
    return found


def _kind(dtype: Any) -> str:
    kind = getattr(dtype, "kind", "key")  # random keys have a dtype of JAX's own
    if kind == "V":  # bfloat16, float8, int4
        return "i" if jnp.issubdtype(dtype, jnp.integer) else "f"
    return kind


def _rank(dtype: Any) -> int:
    return _RANK.get(_kind(dtype), 9)


def fits_kind(have: Any, want: Any) -> bool:
    if {_kind(have), _kind(want)} & {"b", "key"}:
        return have == want
    return _rank(have) <= _rank(want)


def check_kind(have: Any, want: Any, what: object, shown: str = "") -> None:
    if have != want and _kind(have) != "b" and not fits_kind(have, want):
        raise DtypeError(
            f"{what} is {shown or have}, and dtype {want} cannot hold it without loss. "
            f"Convert it yourself, for example with np.asarray(value).astype('{want}')."
        )


def check_fits(
    value: Array | np.ndarray | np.generic, dtype: Any, what: object, *, refuse_zeros: bool = False
) -> None:
    """Refuse numbers that are outside of a dtype; say which are so small that they become 0."""
    if value.dtype == dtype or value.size == 0 or context.is_tracer(value):
        return
    array = np.asarray(value)
    if _kind(dtype) in "iu":
        info: Any = jnp.iinfo(dtype)
        fits = info.min <= array.min() and array.max() <= info.max
    else:
        info = jnp.finfo(dtype)
        with np.errstate(all="ignore"):
            narrow = array.astype(dtype)
        fits = not np.any(np.isfinite(array) & ~np.isfinite(narrow))
        if fits:
            _check_zeros(array, narrow, what, refuse=refuse_zeros)
    if not fits:
        least, most = array.min(), array.max()
        span = f"is {least}" if array.ndim == 0 else f"reaches from {least} to {most}"
        raise DtypeError(
            f"{what} {span}, outside of {dtype} "
            f"({info.min} to {info.max}). {_range_cure(array, dtype)}"
        )


def _check_zeros(array: np.ndarray, narrow: np.ndarray, what: object, *, refuse: bool) -> None:
    """Say it if conversion to a narrower dtype makes 0 of what is not: by an error, or a warning.

    `assign` drops nothing, so there it is an error for arrays; elsewhere the caller has requested
    the dtype, or has the default one, and only has to know.
    """
    parts = ["real", "imag"] if array.dtype.kind == "c" else ["real"]
    lost = [x[(x != 0) & (getattr(narrow, part) == 0)]
            for part in parts for x in [getattr(array, part)]]  # fmt: skip
    found = np.concatenate([np.ravel(x) for x in lost])
    if not found.size:
        return
    message = (
        f"{what} has numbers too small for {narrow.dtype}, which become 0: {found.size} of "
        f"{array.size}, for example {found[0]}. {_range_cure(array, narrow.dtype)} If 0 will do, "
        f"convert it yourself: np.asarray(value).astype({str(narrow.dtype)!r})."
    )
    if refuse:
        raise DtypeError(message)
    warn_user(message, RuntimeWarning)


def _range_cure(array: np.ndarray, dtype: Any) -> str:
    if dtype == jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
        return _X64_CURE.format(narrow="another dtype")
    return "Use a wider dtype, or scale or clip the value."


def _no_dtype(dtype: object) -> NotATensorError:
    return NotATensorError(f"{dtype!r} is not a dtype of tensors; examples: jnp.float32, 'int32'.")


def dtype_error(cell: Any, dtype: Any, got: str) -> DtypeError:
    want = "string" if is_string(dtype) else str(dtype)
    kind = f"a Python {got}" if got in _PYTHONS else f"a value of dtype {got}"
    return DtypeError(
        f"Cannot assign {kind} to variable {called(cell)!r} of dtype {want}: a variable keeps its "
        f"dtype, and nothing is converted silently. {_cure(want, got)}."
    )


_PYTHONS = ("bool", "int", "float", "complex")


def _cure(want: str, got: str) -> str:
    """Return what to write for a value of another dtype, which loses nothing unsaid."""
    if want == "string":
        return "Convert the value: np.asarray(value).astype(str)"
    if want in WIDE and str(narrowed(want)) != want:
        return (
            f"64-bit numbers are off in JAX at {user_line()}, so that results have 32 bits. Write "
            "the variable where they are on:\n"
            "    with jax.enable_x64(True):\n"
            "        v.assign_add(1)    # or call the compiled function that writes it\n"
            'or switch them on for all of the program: jax.config.update("jax_enable_x64", True)'
        )
    if got == "string":
        return f"Convert the value: np.asarray(value).astype({want!r})"
    if want.startswith("key"):
        return "Make keys of a seed: jax.random.key(1)"
    if got.startswith("key"):
        return "Take the key's numbers: jax.random.key_data(value)"
    if want == "bool":
        return "Compare the value: value != 0"
    if "complex" in got and "complex" not in want:
        return "Take its real part: jnp.real(value)"
    if "int" in want and "float" in got:
        return (
            f"Round the value, jnp.round(value).astype({want!r}), or make it a variable of floats: "
            "jv.Variable(..., dtype='float32')"
        )
    return f"Convert the value: jnp.asarray(value, {want!r})"
