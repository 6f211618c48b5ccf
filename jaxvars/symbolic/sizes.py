"""Unknown dimensions that are compared for all sizes at once: true, false, or an error.

JAX says False where it does not know whether a symbolic size equals another one, and takes each for
true as a condition. So `if x.shape[0] == 1` and `if x.shape[0] % 2` would take one branch for all
sizes, in silence. The sizes made here raise where the answer is not the same for all of them.

Rules this file keeps:
- JAX compares as it always does: it does not rely on two sizes being different;
- what is computed of such a size is such a size;
- to JAX they are other sizes than its own: what it caches for those would return those.

Code that looks sizes up by hash compares them, too: that raises, but for JAX, and for
what keeps results by arguments (`jax.jit`, `functools.lru_cache`): there it is another argument
than any number.

What cannot be seen: `n is 4`, `isinstance(n, int)`, what is tested on a size's string, and `==` of
what `jax.typeof` returns, of which JAX keeps one for each shape.
"""

from __future__ import annotations

import dis
import functools
import numbers
import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import user_line
from jaxvars.objects.identity import SIZES

Size: TypeAlias = Any  # an int, or a symbolic expression

_ARITHMETIC = (
    *("__add__", "__radd__", "__sub__", "__rsub__", "__neg__", "__mul__", "__rmul__", "__pow__"),
    *("__rpow__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__divmod__"),
    *("__rdivmod__", "max", "rmax", "min", "rmin"),
)
_TRANSPARENT = {*sys.stdlib_module_names, "numpy"}  # they compare for their caller
_METHODS = {"__eq__", "__ne__", "__hash__"}  # and so do these, of whatever has sizes in it
_TRUSTED = {"jax", "jaxlib", "opt_einsum"}
_KEYS = "jaxvars.compiler.signature"  # it tells calls apart, which have one size each
_CALLS = "jaxvars.autograph."  # it calls what the user calls
_NAMES = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF")
_PARTS = ("LOAD_ATTR", "LOAD_METHOD")


def to_compared(size: Size) -> Size:
    """Return a symbolic size as one that is compared for all sizes; others as they are.

    >>> from jax import export
    >>> (n,) = map(to_compared, export.symbolic_shape("n"))
    >>> n + 1 == n, 2 * n == 2 * n, n == 0
    (False, True, False)
    """
    return _copy(size, _compared_class()) if type(size) is _compared_class().__base__ else size


def with_compared_sizes(spec: Any) -> Any:
    """Return the shape and dtype of an argument with sizes that are compared for all sizes."""
    aval = spec if hasattr(spec, "shape") else jax.typeof(spec)  # of a number of Python's
    sizes = tuple(map(to_compared, aval.shape))
    return jax.ShapeDtypeStruct(sizes, aval.dtype, weak_type=getattr(aval, "weak_type", False))


@functools.cache
def _compared_class() -> Any:
    from jax import export

    base: Any = type(export.symbolic_shape("n")[0])

    def __hash__(self: Any) -> int:  # noqa: N807
        frame = _asking_frame(sys._getframe(1))
        if not _is_trusted(frame) and not _keeps(frame):
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
    kept = {name: _wrap_method(getattr(base, name)) for name in _ARITHMETIC}
    made = type("OpenSize", (base,), own | kept)
    SIZES[made] = lambda size: _copy(size, base)
    return made


def _wrap_method(method: Callable[..., Any]) -> Callable[..., Any]:
    def run(*sizes: Any) -> Any:
        found = method(*map(_to_plain, sizes))
        return tuple(map(to_compared, found)) if isinstance(found, tuple) else to_compared(found)

    return run


def _to_plain(size: Size) -> Size:
    return _copy(size, _compared_class().__base__) if type(size) is _compared_class() else size


def _copy(size: Size, kind: Any) -> Size:
    made = object.__new__(kind)
    for slot in _compared_class().__base__.__slots__:
        setattr(made, slot, getattr(size, slot))
    return made


# ---------------------------------------------------------------- comparisons of a size
def _equal(size: Any, other: Any, asking: FrameType) -> Any:
    number = _to_number(other)
    if number is None:  # JAX's arrays compare themselves, element by element
        return jnp.equal(size, other) if isinstance(other, np.ndarray) else NotImplemented
    if type(number) is _compared_class().__base__ and _is_trusted(asking):
        return False
    if getattr(number, "scope", size.scope) is not size.scope:
        return False
    apart = size - number
    if isinstance(apart, int):
        return apart == 0
    if not _is_trusted(asking) and not _is_never_0(apart):  # which calls JAX: not for JAX
        _refuse(size, f"is {other}")
    return False


def _unequal(size: Any, other: Any) -> Any:
    equal = _equal(size, other, sys._getframe(1))
    return equal if equal is NotImplemented else not equal


def _truth(size: Any) -> bool:
    if not _is_never_0(size) and not _is_trusted(sys._getframe(1)):
        _refuse(size, "is 0")
    return True


def _to_number(other: Any) -> Size | None:
    """Return what can be compared with a size as a size; None for what is not a number."""
    if isinstance(other, _compared_class().__base__):
        return other
    try:
        if isinstance(other, numbers.Number | np.generic):
            real: Any = getattr(other, "real", other)
            whole = int(real)
            return whole if whole == other else None
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
    """Return whether it is JAX that compares, or what tells calls apart."""
    name = _module(_asking_frame(frame))
    return name.partition(".")[0] in _TRUSTED or name == _KEYS


def _asking_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame that compares, less those that compare for their callers."""
    while frame is not None and (
        frame.f_code.co_name in _METHODS or _module(frame).partition(".")[0] in _TRANSPARENT
    ):
        frame = frame.f_back
    return frame


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__"))


def _keeps(frame: FrameType | None) -> bool:
    """Return whether things are kept by size here, and none is taken for another size's."""
    name = _module(frame)
    is_ours = name.startswith("jaxvars.") and not name.startswith(_CALLS)
    return is_ours or isinstance(_called_function(frame), _keepers())


@functools.cache
def _keepers() -> tuple[type, ...]:
    """Return the types of functions that keep results by their arguments."""
    return type(jax.jit(lambda: None)), type(functools.lru_cache(lambda: None))


def _called_function(frame: FrameType | None) -> Any:
    """Return what a line calls by a name; None for others. C functions have no frame."""
    if frame is None:
        return None
    steps = [x for x in dis.get_instructions(frame.f_code) if x.offset <= frame.f_lasti]
    call, names = steps.pop(), list[str]()
    for step in reversed(steps):
        if _start(step) != _start(call):
            continue
        if step.opname in _PARTS:
            names.append(step.argval)
        elif step.opname.startswith(_NAMES):
            found = {**frame.f_globals, **frame.f_locals}.get(step.argval)
            for name in reversed(names):
                found = getattr(found, name, None)
            return getattr(found, "__func__", found)  # a method's
        elif names or step.opname.startswith("CALL"):
            return None
    return None


def _start(step: Any) -> tuple[Any, Any]:
    return step.positions.lineno, step.positions.col_offset


def _refuse(size: Any, what: str) -> NoReturn:
    raise jax.errors.InconclusiveDimensionOperation(
        f"{user_line()}, asks whether the unknown dimension {size} {what}, and that is not the "
        "same for "
        "all sizes. A program can decide it: jv.cond(jnp.equal(x.shape[0], 1), ...)."
    )


def _for_jax(size: Any, name: str) -> Any:
    """Return the type of a size as a value, which JAX knows for its own class only."""
    if not _is_trusted(sys._getframe(2)):
        raise AttributeError(f"{type(size).__name__!r} object has no attribute {name!r}")
    return jax.typeof(size)
