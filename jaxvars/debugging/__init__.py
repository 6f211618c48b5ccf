"""Checks of values while a program runs, eagerly and compiled.

    jv.debugging.assert_positive(x, "a probability")
    jv.debugging.assert_shapes([(x, ("batch", "n")), (w, ("n", "m"))])
    loss = jv.debugging.check_numerics(loss, "the loss")

Shapes, ranks and dtypes are checked when a function is traced, values when it runs: a compiled
step in which a check fails raises CheckError and leaves every variable as it was. `check_indices`
adds such checks to all that reads or writes by index.

Rule this file keeps: a check changes no value and no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.control.index_checks import check_indices
from jaxvars.core.checks import require
from jaxvars.core.frame import Owner, cells_in
from jaxvars.core.variable import Variable
from jaxvars.debugging.verification import verify
from jaxvars.debugging.watchers import (
    disable_check_numerics,
    enable_check_numerics,
    get_log_device_placement,
    set_log_device_placement,
)
from jaxvars.display.docstrings import complete, describe_arguments
from jaxvars.errors import CheckError, DtypeError, ShapeError, called, user_line
from jaxvars.tensors.array_like import ArrayProxy, unwrap
from jaxvars.tensors.dtypes import as_dtype, is_inexact, is_string
from jaxvars.tensors.shapes import Sizes, misfit
from jaxvars.tensors.tensor import to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

__all__ = [
    "assert_equal", "assert_finite", "assert_greater", "assert_greater_equal",
    "assert_less", "assert_less_equal", "assert_near", "assert_negative", "assert_non_negative",
    "assert_non_positive", "assert_none_equal", "assert_positive", "assert_rank", "assert_shapes",
    "assert_type", "check_indices", "check_numerics", "disable_check_numerics",
    "enable_check_numerics", "get_log_device_placement", "set_log_device_placement", "verify",
]  # fmt: skip

Check: TypeAlias = Callable[..., None]
Holds: TypeAlias = Callable[[Array, Array], Array]


# ---------------------------------------------------------------- comparisons
def assert_equal(x: Any, y: Any, message: str | None = None) -> None:
    """Check that x == y, element by element.

    Args:
        x: numbers, strings, or arrays of them; a Variable is read.
        y: the same, of the same shape or one that broadcasts with it.
        message: what to say first if it does not hold.

    Raises:
        CheckError: when it does not hold; from a compiled function, when it is run.
        ShapeError: when the shapes do not broadcast.

    NaN equals nothing.

    >>> assert_equal([1, 2], [1, 2])
    >>> assert_equal([1, 5], 1, "the index")
    Traceback (most recent call last):
    jaxvars.errors.CheckError: the index: x == 1 does not hold: 1 of 2 elements, ... x = 5...
    """
    _compare(x, y, "==", jnp.equal, message)


def _make_check(name: str, sign: str, holds: Holds, meaning: str, example: str) -> Check:
    """Return the check that one relation holds between two arguments."""

    def check(x: Any, y: Any, message: str | None = None) -> None:
        _compare(x, y, sign, holds, message)

    return _document(check, name, f"x {sign} y, element by element{meaning}", example)


def _make_sign_check(name: str, sign: str, holds: Holds, example: str) -> Check:
    """Return the check that one relation holds between an argument and 0."""

    def check(x: Any, message: str | None = None) -> None:
        _compare(x, 0, sign, holds, message)

    return _document(check, name, f"every element is {sign} 0", example)


def _document(check: Check, name: str, what: str, example: str) -> Check:
    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Check that {what}; see `assert_equal`.\n\n>>> {name}({example})\n"
    fails = "CheckError: when it does not hold; from a compiled function, when it is run."
    complete(check, {**describe_arguments(assert_equal), "raise": fails})
    return check


assert_none_equal = _make_check(
    "assert_none_equal", "!=", jnp.not_equal, ": no pair is equal", "[1, 2], 0"
)
assert_less = _make_check("assert_less", "<", jnp.less, "", "[1, 2], 3")
assert_less_equal = _make_check("assert_less_equal", "<=", jnp.less_equal, "", "[1, 3], 3")
assert_greater = _make_check("assert_greater", ">", jnp.greater, "", "[1, 2], 0")
assert_greater_equal = _make_check("assert_greater_equal", ">=", jnp.greater_equal, "", "[1, 0], 0")
assert_positive = _make_sign_check("assert_positive", ">", jnp.greater, "[1.0, 0.5]")
assert_negative = _make_sign_check("assert_negative", "<", jnp.less, "-1.0")
assert_non_negative = _make_sign_check("assert_non_negative", ">=", jnp.greater_equal, "[0, 1]")
assert_non_positive = _make_sign_check("assert_non_positive", "<=", jnp.less_equal, "[0, -1]")


def assert_near(
    x: Any, y: Any, rtol: float | None = None, atol: float | None = None, message: str | None = None
) -> None:
    """Check that |x - y| <= atol + rtol * |y|, element by element.

    Args:
        x: numbers, or arrays of them; a Variable is read.
        y: the same, of the same shape or one that broadcasts with it.
        rtol: ten times the precision of x's dtype when None.
        atol: the same.
        message: what to say first if it does not hold.

    Raises:
        CheckError: when it does not hold; from a compiled function, when it is run.
        ShapeError: when the shapes do not broadcast.

    An infinity is near an equal one only; NaN is near nothing.

    >>> assert_near(0.1 + 0.2, 0.3)
    """
    kind = jnp.result_type(to_tensor(unwrap(x)), to_tensor(unwrap(y)))
    slack = 10 * float(jnp.finfo(kind).eps) if jnp.issubdtype(kind, jnp.inexact) else 0.0
    rtol, atol = slack if rtol is None else rtol, slack if atol is None else atol

    def near(x: Array, y: Array) -> Array:
        is_close = _measure_distance(x, y) <= atol + rtol * _measure_distance(y, jnp.zeros_like(y))
        return (x == y) | (is_close & jnp.isfinite(x) & jnp.isfinite(y))

    _compare(x, y, "near", near, message, f" (rtol {_shorten(rtol)}, atol {_shorten(atol)})")


def _measure_distance(x: Array, y: Array) -> Array:
    """Return |x - y|; of integers, as an unsigned one, which can hold it."""
    if not jnp.issubdtype(jnp.result_type(x, y), jnp.integer):
        return jnp.abs(x - y)
    difference = jnp.maximum(x, y) - jnp.minimum(x, y)
    return difference.astype(f"uint{8 * difference.dtype.itemsize}")


def _compare(x: Any, y: Any, sign: str, holds: Holds, message: str | None, note: str = "") -> None:
    names = _describe(x, "x"), _describe(y, "y")
    if isinstance(x, Variable) and names[0] == names[1]:
        names = f"{names[0]} (x)", f"{names[1]} (y)"
    said = _prefix(message, f"{names[0]} {sign} {names[1]} does not hold{note}")
    left, right = _align_dtypes(x, y, names)
    _check_broadcast(left, right, names)
    if is_string(left.dtype) or is_string(right.dtype):
        _compare_strings(left, right, sign, said)
        return
    left, right = jax.lax.stop_gradient((left, right))
    values = {name: a for name, a, given in zip(names, (left, right), (x, y), strict=True)
              if not _is_number(given)}  # fmt: skip
    _require(_judge(holds, left, right), said, values)


def _align_dtypes(x: Any, y: Any, names: tuple[str, str]) -> tuple[Array, Array]:
    """Return two values as tensors; a Python integer in the other one's dtype if that holds it."""
    left, right = unwrap(x), unwrap(y)
    for given, other in ((left, right), (right, left)):
        dtype = getattr(other, "dtype", None)
        if type(given) is int and dtype is not None and jnp.issubdtype(dtype, jnp.integer):
            info: Any = jnp.iinfo(dtype)
            if info.min <= given <= info.max:
                given = np.asarray(given, dtype)
                left, right = (given, right) if other is right else (left, given)
    return to_tensor(left, what=names[0]), to_tensor(right, what=names[1])


def _judge(holds: Holds, x: Array, y: Array) -> Array:
    """Return what a comparison says, also of integers of which no dtype holds both."""
    kinds = [jnp.issubdtype(a.dtype, jnp.unsignedinteger) for a in (x, y)]
    floats = [a for a in (x, y) if jnp.issubdtype(a.dtype, jnp.floating)]
    if len(floats) == 1 and x.dtype != bool != y.dtype:  # few bits hold few integers
        wide = jnp.promote_types(floats[0].dtype, jnp.float32)
        return holds(x.astype(wide), y.astype(wide))
    is_whole = all(jnp.issubdtype(a.dtype, jnp.integer) for a in (x, y))
    if kinds[0] == kinds[1] or not is_whole:
        return holds(x, y)
    signed, unsigned = (y, x) if kinds[0] else (x, y)
    width = max(signed.dtype.itemsize, unsigned.dtype.itemsize, 4)
    wide = unsigned.astype(f"uint{8 * width}")
    below = signed < 0
    same = jnp.where(below, 0, signed).astype(wide.dtype)
    # Floats keep how an unsigned integer and one below 0 are ordered.
    apart = wide.astype(float), jnp.minimum(signed, -1).astype(float)
    if kinds[0]:
        return jnp.where(below, holds(*apart), holds(wide, same))
    return jnp.where(below, holds(*apart[::-1]), holds(same, wide))


def _require(good: Array, message: str, values: Mapping[str, Array]) -> None:
    if good.size:  # of nothing, everything holds
        require(good, message, values)


def _compare_strings(x: Array, y: Array, sign: str, message: str) -> None:
    """Compare strings, which are never traced."""
    if sign not in ("==", "!="):
        raise CheckError(f"{message}: strings are equal or not, and have no order ({user_line()}).")
    good = (np.asarray(x) == np.asarray(y)) == (sign == "==")
    if not good.all():
        index = np.argwhere(~good)[0].tolist()
        at = f" {np.count_nonzero(~good)} of {good.size} elements, the first at {index}:"
        shown = ", ".join(repr(str(np.broadcast_to(a, good.shape)[tuple(index)])) for a in (x, y))
        raise CheckError(f"{message}:{at if good.ndim else ''} {shown} ({user_line()}).")


def _describe(value: Any, default: str) -> str:
    if isinstance(value, Variable):
        return f"Variable {called(value._cell)!r}"
    return str(value) if _is_number(value) else default


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex)


def _shorten(number: Any) -> str:
    return "traced" if context.is_tracer(number) else f"{float(number):.3g}"


def _prefix(message: str | None, what: str) -> str:
    return f"{message}: {what}" if message else what


def _check_broadcast(x: Array, y: Array, names: tuple[str, str]) -> None:
    try:
        jnp.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise ShapeError(
            f"{names[0]} has shape {x.shape} and {names[1]} {y.shape}: they cannot be compared, "
            f"because the shapes do not broadcast ({user_line()})."
        ) from None


# ---------------------------------------------------------------- NaN and infinities
def assert_finite(x: Any, message: str | None = None) -> None:
    """Check that no element is NaN or infinite.

    Args:
        x: an array, a Variable, a Module, or a pytree of them; what is not of a float or complex
            dtype is passed over.
        message: what to say first if it does not hold.

    Raises:
        CheckError: when it does not hold, naming the variable or the path to the array; from a
            compiled function, when it is run.

    >>> assert_finite({"w": [1.0, 2.0], "step": 3})
    >>> assert_finite({"w": jnp.log(0.0)})
    Traceback (most recent call last):
    jaxvars.errors.CheckError: x['w'] is not finite: x['w'] = -inf (...
    """
    for name, value in _name_leaves(x):
        if is_inexact(value):
            value = jax.lax.stop_gradient(value)
            _require(jnp.isfinite(value), _prefix(message, f"{name} is not finite"), {name: value})


def check_numerics(x: Any, message: str | None = None) -> Any:
    """Check that no element is NaN or infinite, and return the value.

    Args:
        x: as for `assert_finite`.
        message: what to say first if it does not hold.

    Returns:
        `x`; the value of a Variable.

    Raises:
        CheckError: when it does not hold; from a compiled function, when it is run.

    >>> float(check_numerics(jnp.float32(2.0), "the loss"))
    2.0

    Differs from TensorFlow: takes pytrees, and integers, which are finite.
    """
    assert_finite(x, message)
    return unwrap(x)


def _name_leaves(tree: Any) -> Iterator[tuple[str, Array]]:
    """Yield the numeric leaves of a tree, with the names of variables or the paths."""
    is_leaf = lambda x: isinstance(x, ArrayProxy | Owner)  # noqa: E731
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree, is_leaf=is_leaf):
        name = "x" + jax.tree_util.keystr(path)
        if isinstance(leaf, ArrayProxy):
            yield _describe(leaf, name), leaf.value
        elif isinstance(leaf, jax.Array | np.ndarray | np.generic) or _is_number(leaf):
            yield name, to_tensor(leaf, what=name)
        else:
            cells = (cell.owner() for _, cell in cells_in(leaf))
            yield from ((_describe(v, name), v.value) for v in cells if isinstance(v, Variable))


# ---------------------------------------------------------------- shapes and dtypes
def assert_rank(x: Any, rank: int | Iterable[int], message: str | None = None) -> None:
    """Check how many dimensions an array has: when the function is traced.

    Args:
        x: an array, a number or a Variable.
        rank: the number of dimensions, or several that are allowed.
        message: what to say first if it does not hold.

    Raises:
        ShapeError: when it has another number.

    >>> assert_rank(jnp.ones((2, 3)), 2)
    """
    ranks = (rank,) if isinstance(rank, int) else tuple(rank)
    shape = jnp.shape(unwrap(x))
    if len(shape) not in ranks:
        wanted = " or ".join(map(str, ranks))
        what = f"{_describe(x, 'x')} has shape {shape}, of rank {len(shape)}, not {wanted}"
        raise ShapeError(f"{_prefix(message, what)} ({user_line()}).")


def assert_type(x: Any, dtype: Any, message: str | None = None) -> None:
    """Check the dtype of an array: when the function is traced.

    Args:
        x: an array, a number or a Variable.
        dtype: a dtype or its name.
        message: what to say first if it does not hold.

    Raises:
        DtypeError: when it is another one.

    >>> assert_type(jnp.ones(2), jnp.float32)
    """
    have, want = to_tensor(unwrap(x)).dtype, as_dtype(dtype)
    if have != want:
        what = f"{_describe(x, 'x')} is {have}, not {want}"
        raise DtypeError(f"{_prefix(message, what)} ({user_line()}).")


def assert_shapes(
    shapes: Mapping[Any, Any] | Iterable[tuple[Any, Any]], message: str | None = None
) -> None:
    """Check the shapes of arrays, and that sizes of one name are equal: when traced.

    Args:
        shapes: pairs of an array and its shape, or a dict of Variables and theirs. A size is a
            number, a name, or None for any. `...` or "*" at the beginning or end of a shape
            stands for any number of sizes. A shape may be a string, one letter for each size:
            "NHWC".
        message: what to say first if it does not hold.

    Raises:
        ShapeError: when a shape is another one, or a name has two sizes.
        TypeError: when a pattern is none.

    >>> x, w = jnp.ones((8, 3)), jnp.ones((3, 5))
    >>> assert_shapes([(x, ("batch", "n")), (w, ("n", "m"))])
    >>> assert_shapes([(x, ("n", "n"))])
    Traceback (most recent call last):
    jaxvars.errors.ShapeError: array 0 has shape (8, 3): n is 8 (dimension 0 of array 0), but ...
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    sizes: Sizes = {}
    for i, (x, pattern) in enumerate(pairs):
        name, shape = _describe(x, f"array {i}"), jnp.shape(unwrap(x))
        if problem := misfit(name, shape, pattern, sizes):
            said = _prefix(message, f"{name} has shape {shape}: {problem}")
            raise ShapeError(f"{said} ({user_line()}).")


def __dir__() -> list[str]:
    return __all__
