"""Checks of values: comparisons, element by element, and signs.

Rules this file keeps:
- a check inside of a compiled function is made when that runs, with a shorter message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.core.checks import require
from jaxvars.tf.tensors.convert import dtype_of, is_text, to_array
from jaxvars.tf.tensors.handles import is_handles
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import pair_typed
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

Holds: TypeAlias = Callable[[Array, Array], Array]


def _make_comparison(name: str, sign: str, holds: Holds) -> Callable[..., None]:
    """Return the check of a sign between each two elements."""

    def check(
        x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: Any = None
    ) -> None:
        _compare(x, y, sign, holds, message, summarize)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Check that x {sign} y, element by element.

    Args:
        x: a tensor, or what becomes one.
        y: the same, of a shape that broadcasts with it.
        message: what to say first if it does not hold.
        summarize: how many elements to show; 3 when None.
        name: of no effect.

    Raises:
        InvalidArgumentError: when it does not hold; from a compiled function, when it is run.
    """
    return check


def _make_sign_check(name: str, sign: str, holds: Holds) -> Callable[..., None]:
    """Return the check of the sign of each element."""

    def check(
        x: Any, message: str | None = None, summarize: int | None = None, name: Any = None
    ) -> None:
        array = to_array(x)
        good = holds(jax.lax.stop_gradient(array), jnp.zeros((), array.dtype))
        error = f"{message or ''}\nCondition x {sign} did not hold element-wise:"
        _require(good, error, {"x": array}, summarize)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Check that x {sign}, element by element; see `assert_equal`."
    return check


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: Any = None
) -> None:
    """Check that x != y for each pair of elements; see `assert_equal`."""
    _compare(x, y, "!=", jnp.not_equal, message, summarize)


def assert_near(
    x: Any, y: Any, rtol: float | None = None, atol: float | None = None,
    message: str | None = None, summarize: int | None = None, name: Any = None,
) -> None:  # fmt: skip
    """Check that |x - y| < atol + rtol |y|, element by element; see `assert_equal`.

    Args:
        x: a tensor.
        y: a tensor.
        rtol: ten times the precision of the type when None.
        atol: the same.
        message: what to say first if it does not hold.
        summarize: how many elements to show.
        name: of no effect.
    """
    a, b = pair_typed(x, y, "Sub")
    is_float = jnp.issubdtype(a.dtype, jnp.inexact)
    slack = 10 * float(jnp.finfo(a.dtype).eps) if is_float else 0.0
    r, t = slack if rtol is None else rtol, slack if atol is None else atol
    # Of floats it must be less, as in TensorFlow: no infinite distance is less than another.
    good = (jnp.less if is_float else jnp.less_equal)(jnp.abs(a - b), t + r * jnp.abs(b))
    error = f"x and y not equal to tolerance rtol = {r}, atol = {t}"
    _require(good, _add_message(message, error), {"x": a, "y": b}, summarize)


def _compare(
    x: Any, y: Any, sign: str, holds: Holds, message: str | None, summarize: int | None
) -> None:
    a, b = pair_typed(x, y, "Equal")
    try:
        good = _evaluate(a, b, sign, holds)
    except (TypeError, ValueError) as error:
        sizes = [f"[{','.join(map(str, part.shape))}]" for part in (a, b)]
        raise refused(f"Incompatible shapes: {sizes[0]} vs. {sizes[1]}") from error
    if context.is_tracer(good):
        require(
            good,
            _add_message(message, f"Condition x {sign} y did not hold"),
            {} if is_handles(a) else {"x": a, "y": b},
        )
    elif not np.all(good):
        raise refused(_difference(np.asarray(good), (a, b), sign, message, summarize))


def _evaluate(x: Array, y: Array, sign: str, holds: Holds) -> Value:
    if is_text(x):
        return np.asarray(x == y if sign == "==" else x != y)
    return x == y if is_handles(x) and sign == "==" else holds(*jax.lax.stop_gradient((x, y)))


def _difference(
    good: np.ndarray, values: tuple[Array, Array], sign: str, message: str | None,
    summarize: int | None,
) -> str:  # fmt: skip
    """Return what TensorFlow says of two tensors that are not as they should be."""
    count = 3 if summarize is None else summarize
    x, y = (np.asarray(part) for part in values)
    lines = [message] if message else []
    lines.append(f"Condition x {sign} y did not hold.")
    if x.shape == y.shape and x.ndim:
        wrong = np.argwhere(~good)[:count]
        lines += [f"Indices of first {len(wrong)} different values:", str(wrong)]
        lines += ["Corresponding x values:", str(x[tuple(wrong.T)])]
        lines += ["Corresponding y values:", str(y[tuple(wrong.T)])]
    for name, part in (("x", x), ("y", y)):
        first = part.reshape(-1)[:count]
        lines += [f"First {len(first)} elements of {name}:", str(first)]
    return "\n".join(lines)


def _require(good: Array, error: str, values: dict[str, Array], summarize: int | None) -> None:
    if context.is_tracer(good):
        require(good, error, values)
    elif not np.all(good):
        parts = [
            f"{name} (shape={tuple(x.shape)} dtype={dtype_of(x).name}) = \n{_summary(x, summarize)}"
            for name, x in values.items()
        ]
        raise refused("\n".join([error, *parts]))


def _summary(array: Array, summarize: int | None) -> str:
    count = 3 if summarize is None else summarize
    flat = np.asarray(array).reshape(-1)
    more = ", ..." if flat.size > count >= 0 else ""
    return ", ".join(map(str, flat[: count if count >= 0 else None])) + more


def _add_message(message: str | None, what: str) -> str:
    return f"{message}\n{what}" if message else what


assert_equal = _make_comparison("assert_equal", "==", jnp.equal)
assert_less = _make_comparison("assert_less", "<", jnp.less)
assert_less_equal = _make_comparison("assert_less_equal", "<=", jnp.less_equal)
assert_greater = _make_comparison("assert_greater", ">", jnp.greater)
assert_greater_equal = _make_comparison("assert_greater_equal", ">=", jnp.greater_equal)
assert_positive = _make_sign_check("assert_positive", "> 0", jnp.greater)
assert_negative = _make_sign_check("assert_negative", "< 0", jnp.less)
assert_non_negative = _make_sign_check("assert_non_negative", ">= 0", jnp.greater_equal)
assert_non_positive = _make_sign_check("assert_non_positive", "<= 0", jnp.less_equal)
