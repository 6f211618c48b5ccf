"""Arrays of other libraries, and of classes of the user's: what NumPy or DLPack understands.

| an object of | is an array |
|---|---|
| a class with `__dlpack__`, `__array__` or NumPy's array interface | yes: of PyTorch, pandas, PIL |
| a class with a buffer of numbers: `array.array`, `memoryview`, `mmap`, those of ctypes | yes |
| a Module, what stands for a Variable, an enum, what can be called | no: it stays itself |
| a pytree | no: its parts may be |
| str, bytes, bytearray | no |

Rules this file keeps:
- no library is imported: a class says by a protocol what its objects are, and a `__getattr__` that
  answers to any name says nothing;
- an array is read when it is asked for, in its own memory where that can be: who keeps it, or has
  JAX compute with it in the background, makes a copy.
"""

from __future__ import annotations

import contextlib
import enum
import sys
from collections.abc import Hashable
from typing import Any

import jax
import numpy as np

from jaxvars.errors import JaxvarsError, NotATensorError, user_line
from jaxvars.objects.identity import Weak
from jaxvars.objects.traversal import PROXIES, Holder, Proxy

_PROTOCOLS = ("__dlpack__", "__array__", "__array_interface__", "__array_struct__")
_NUMBERS = frozenset("?bBhHiIlLqQnNefdg") | {"Zf", "Zd", "Zg"}
_PLAIN = frozenset(map(id, (list, tuple, dict, set, frozenset, type(None))))
_OTHERS = (
    jax.Array, np.ndarray, np.generic, type, Holder, Proxy, enum.Enum,
    str, bytes, bytearray, bool, int, float, complex,
)  # fmt: skip


# ---------------------------------------------------------------- what is one
def is_foreign_array(value: Any) -> bool:
    """Return whether a value is an array, but not one of JAX or NumPy.

    >>> import array
    >>> is_foreign_array(array.array("f", [1.0])), is_foreign_array([1.0]), is_foreign_array(b"1")
    (True, False, False)
    """
    kind = type(value)
    if id(kind) in _PLAIN or isinstance(value, _OTHERS) or callable(value):
        return False
    if any(kind is known for known in PROXIES):
        return False
    is_array = says_arrays(kind) or _says_itself(value) or _is_buffer(value)
    return is_array and jax.tree_util.all_leaves([value])


def says_arrays(kind: type) -> bool:
    """Return whether a class says that its objects are arrays."""
    for name in _PROTOCOLS:
        found = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
        if found and found[0] is not None:
            return True
    return False


def _says_itself(value: Any) -> bool:
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return False
    return any(name in own for name in _PROTOCOLS)


def _is_buffer(value: Any) -> bool:
    try:
        with memoryview(value) as buffer:
            return buffer.format.lstrip("@=<>!") in _NUMBERS
    except (TypeError, ValueError, BufferError):
        return False


# ---------------------------------------------------------------- what it holds
def in_numpy(value: Any) -> np.ndarray:
    """Return what NumPy makes of a value; what it has no dtype for (bfloat16) through DLPack."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
        return np.asanyarray(value)
    if _is_of_torch(value):  # whose gradient, device and strides are its own
        value = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    with contextlib.suppress(TypeError):
        if (array := np.asanyarray(value)).dtype != object:
            return array
    with contextlib.suppress(BufferError, RuntimeError, TypeError, ValueError):
        return np.from_dlpack(value)
    with jax.enable_x64(True):  # or JAX would cut 64 bits
        return np.array(jax.dlpack.from_dlpack(value))


def read(value: Any, what: object, name: str = "x") -> np.ndarray:
    """Return what a foreign array holds.

    Args:
        value: it.
        what: how errors call it.
        name: how the program that they show calls it.

    Raises:
        NotATensorError: when neither NumPy nor DLPack can read it.
    """
    try:
        return in_numpy(value)
    except JaxvarsError:
        raise
    except Exception as error:  # whatever its class raises
        raise NotATensorError(
            f"{what} cannot become a tensor: at {user_line()} it is a {type(value).__name__} that "
            f"NumPy and DLPack cannot read ({str(error).rstrip('.')}). {_cure(value, name)}"
        ) from error


def with_numbers(content: Any) -> Hashable:
    """Return what stands for what an object holds, with numbers in place of foreign arrays."""
    kind = type(content)
    if kind is tuple or kind is frozenset:
        return kind(map(with_numbers, content))
    value = content() if isinstance(content, Weak) else None
    return _key_of(value, content) if is_foreign_array(value) else content


def _key_of(value: Any, itself: Hashable) -> Hashable:
    """Return what stands for the numbers now: new each time if unknown, `itself` if traced."""
    try:
        array = np.asarray(in_numpy(value))
    except jax.errors.TracerArrayConversionError:
        return itself
    except Exception:  # noqa: BLE001 - whatever its class raises
        return object()
    if not array.dtype.hasobject:
        return array.dtype, array.shape, array.tobytes()
    is_text = all(isinstance(x, str | bytes) for x in array.flat)
    return (array.shape, *array.flat) if is_text else object()


def refuse_grad(value: Any, what: object, name: str) -> None:
    """Raise NotATensorError for a tensor of PyTorch whose gradient would end in silence."""
    if _is_of_torch(value) and value.requires_grad:
        raise NotATensorError(
            f"{what} is a tensor of PyTorch that requires grad, at {user_line()}: PyTorch would "
            f"not see what is computed with it, and give no gradient. Pass its value, "
            f"{name}.detach()."
        )


def _cure(value: Any, name: str) -> str:
    if _is_of_torch(value) and value.is_meta:
        return "It has no numbers: a jv.TensorSpec stands for it in step.trace and jv.plan."
    if _is_of_torch(value) and "strided" not in str(value.layout):
        return f"Pass {name}.to_dense()."
    return "Pass its numbers in an array of NumPy or JAX."


def _is_of_torch(value: Any) -> bool:
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return isinstance(kind, type) and isinstance(value, kind)
