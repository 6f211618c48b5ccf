"""Open sizes that are compared for all sizes at once: true, false, or an error.

JAX says False where it does not know whether a symbolic size equals another one, and takes each for
true as a condition. So `if x.shape[0] == 1` and `if x.shape[0] % 2` would take one branch for all
sizes, in silence. The sizes made here raise where the answer is not the same for all of them.

Rules this file keeps:
- JAX compares as it always does: it does not rely on two sizes being different;
- what is computed of such a size is such a size;
- to JAX they are other sizes than its own: what it remembers of those would bring those back.

What cannot be seen: a size that is looked up in a dict by `get`, or in a cache.
"""

from __future__ import annotations

import dis
import functools
import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import user_line

Size: TypeAlias = Any  # an int, or a symbolic expression

_ARITHMETIC = (
    *("__add__", "__radd__", "__sub__", "__rsub__", "__neg__", "__mul__", "__rmul__", "__pow__"),
    *("__rpow__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__divmod__"),
    *("__rdivmod__", "max", "rmax", "min", "rmin"),
)
_IN = dis.opmap["CONTAINS_OP"]
_TRANSPARENT = {*sys.stdlib_module_names, "numpy"}  # they compare for their caller
_TRUSTED = {"jax", "jaxlib", "opt_einsum"}
_KEYS = "jaxvars._signature"  # it tells calls apart, which have one size each


def compared(size: Size) -> Size:
    """Return a symbolic size as one that is compared for all sizes; others as they are.

    >>> from jax import export
    >>> (n,) = map(compared, export.symbolic_shape("n"))
    >>> n + 1 == n, 2 * n == 2 * n, n == 0
    (False, True, False)
    """
    return _copied(size, _class()) if type(size) is _class().__base__ else size


def uncompared(size: Size) -> Size:
    """Return a size that `compared` made as JAX's own; others as they are."""
    return size if type(size) is int else _plain(size)


def is_compared(value: object) -> bool:
    """Return whether a value is a size that `compared` made."""
    return bool(_class.cache_info().currsize) and isinstance(value, _class())


def with_compared_sizes(spec: Any) -> Any:
    """Return the shape and dtype of an argument with sizes that are compared for all sizes."""
    sizes = tuple(map(compared, spec.shape))
    return jax.ShapeDtypeStruct(sizes, spec.dtype, weak_type=getattr(spec, "weak_type", False))


@functools.cache
def _class() -> Any:
    from jax import export

    base: Any = type(export.symbolic_shape("n")[0])

    def __hash__(self: Any) -> int:  # noqa: N807
        frame = sys._getframe(1)
        if frame.f_code.co_code[frame.f_lasti] == _IN and not _is_trusted(frame):
            _refuse(self, "is in a set or dict")
        return hash((base.__hash__(self), "compared"))

    own = {
        "__slots__": (),
        "__eq__": lambda self, other: _equal(self, other, sys._getframe(1)),
        "__ne__": _unequal,
        "__bool__": _truth,
        "__hash__": __hash__,
        "__deepcopy__": lambda self, memo: self,
        "dtype": property(lambda self: _for_jax(self, "dtype").dtype),
        "aval": property(lambda self: _for_jax(self, "aval")),
    }
    kept = {name: _keeping(getattr(base, name)) for name in _ARITHMETIC}
    return type("OpenSize", (base,), own | kept)


def _keeping(method: Callable[..., Any]) -> Callable[..., Any]:
    def run(*sizes: Any) -> Any:
        found = method(*map(_plain, sizes))
        return tuple(map(compared, found)) if isinstance(found, tuple) else compared(found)

    return run


def _plain(size: Size) -> Size:
    return _copied(size, _class().__base__) if type(size) is _class() else size


def _copied(size: Size, kind: Any) -> Size:
    made = object.__new__(kind)
    for slot in _class().__base__.__slots__:
        setattr(made, slot, getattr(size, slot))
    return made


# ---------------------------------------------------------------- what is asked of a size
def _equal(size: Any, other: Any, asking: FrameType) -> Any:
    number = _number(other)
    if number is None:  # JAX's arrays compare themselves, element by element
        return jnp.equal(size, other) if isinstance(other, np.ndarray) else NotImplemented
    if type(number) is _class().__base__ and _is_trusted(asking):
        return False
    if getattr(number, "scope", size.scope) is not size.scope:
        return False
    apart = size - number
    if isinstance(apart, int):
        return apart == 0
    if not _is_never_0(apart) and not _is_trusted(asking):
        _refuse(size, f"is {other}")
    return False


def _unequal(size: Any, other: Any) -> Any:
    equal = _equal(size, other, sys._getframe(1))
    return equal if equal is NotImplemented else not equal


def _truth(size: Any) -> bool:
    if not _is_never_0(size) and not _is_trusted(sys._getframe(1)):
        _refuse(size, "is 0")
    return True


def _number(other: Any) -> Size | None:
    """Return what can be compared with a size as a size; None for what is not a number."""
    if isinstance(other, _class().__base__):
        return other
    if isinstance(other, float | np.floating):
        return int(other) if other == other // 1 else None
    try:
        return operator.index(other)
    except Exception:  # noqa: BLE001 - a tracer, a string: what has no index is not one
        return None


def _is_never_0(size: Any) -> bool:
    for some in (size, -size):
        try:
            if some >= 1:
                return True
        except jax.errors.InconclusiveDimensionOperation:
            pass
    return False


def _is_trusted(frame: FrameType | None) -> bool:
    """Return whether it is JAX that asks, or what tells calls apart."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        package = name.partition(".")[0]
        if package not in _TRANSPARENT:
            return package in _TRUSTED or name == _KEYS
        frame = frame.f_back
    return False


def _refuse(size: Any, what: str) -> NoReturn:
    raise jax.errors.InconclusiveDimensionOperation(
        f"{user_line()}, asks whether the open size {size} {what}, and that is not the same for "
        "all sizes. A program can decide it: jv.cond(jnp.equal(x.shape[0], 1), ...)."
    )


def _for_jax(size: Any, name: str) -> Any:
    """Return the type of a size as a value, which JAX knows of its own class only."""
    if not _is_trusted(sys._getframe(2)):
        raise AttributeError(f"{type(size).__name__!r} object has no attribute {name!r}")
    return jax.typeof(size)
