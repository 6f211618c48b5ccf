"""How the functions are run: checked arguments in, and one jitted program for each function.

Rules this file keeps:
- a function is one jitted program, so that it is quick eagerly, and one thing for a tape to record.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec

import jax

from jaxvars.display.docstrings import complete
from jaxvars.errors import ShapeError
from jaxvars.losses.inputs import (
    aligned,
    check_labels,
    check_same_shape,
    class_axis,
    sparse_labels,
    tensor,
    wide,
)
from jaxvars.tracing import context
from jaxvars.typing import Array

P = ParamSpec("P")


@functools.partial(jax.jit, static_argnames=("kernel", "align", "static"))
def _run(
    kernel: Callable[..., Array], y_true: Array, y_pred: Array, align: bool,
    static: tuple[tuple[str, type, Any], ...], numbers: dict[str, Array],
) -> Array:  # fmt: skip
    y_pred = wide(y_pred)
    if align:
        y_true, y_pred = aligned(y_true.astype(y_pred.dtype), y_pred)
    return kernel(y_true, y_pred, **{name: option for name, _, option in static}, **numbers)


def _freeze(options: dict[str, Any]) -> tuple[tuple[str, type, Any], ...]:
    """Return options that a program is found by: with their types, as 1 == True."""
    lists = {name: tuple(x) if isinstance(x, list) else x for name, x in options.items()}
    return tuple((name, type(x), x) for name, x in lists.items())


def elementwise(
    words: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[P, Array]], Callable[P, Array]]:
    """Return a decorator that makes a function of labels and predictions from its formula.

    A formula takes both as floats of one dtype and shape, and options. Those that are floats by
    default are numbers of the program; it is compiled for each value of the others. The words
    are what its docstring leaves out.
    """

    def decorate(formula: Callable[P, Array]) -> Callable[P, Array]:
        complete(formula, words)
        signature = inspect.signature(formula)
        given = signature.parameters.items()
        defaults = {name: p.default for name, p in given if p.default is not p.empty}
        floats = {name: default for name, default in defaults.items() if isinstance(default, float)}
        others = {name: default for name, default in defaults.items() if name not in floats}

        @functools.wraps(formula)
        def call(*args: P.args, **kwargs: P.kwargs) -> Array:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return formula(*args, **kwargs)  # Python's own message about what is wrong
            static = {name: given.get(name, x) for name, x in others.items()}
            static |= {n: bool(static[n]) for n, x in others.items() if isinstance(x, bool)}
            numbers = {name: given.get(name, x) for name, x in floats.items()}
            return _compare(formula, given["y_true"], given["y_pred"], static, numbers)

        return call

    return decorate


@context.restoring()
def _compare(
    formula: Callable[..., Array], y_true: Any, y_pred: Any, static: dict[str, Any],
    numbers: dict[str, Any],
) -> Array:  # fmt: skip
    """Return what a formula makes of labels and predictions of the same shape."""
    what = formula.__name__
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    check_same_shape(true, pred, what)
    if not max(true.ndim, pred.ndim):
        raise ShapeError(f"{what} takes arrays with at least one axis, not numbers.")
    for name, x in numbers.items():
        numbers[name] = x if isinstance(x, float | int) else tensor(x, f"{name} of {what}")
    return _run(formula, true, pred, True, _freeze(static), numbers)


@context.restoring()
def with_labels(
    kernel: Callable[..., Array], y_true: Any, y_pred: Any, axis: int = -1,
    ignore_class: int | None = None, **static: Any,
) -> Array:  # fmt: skip
    """Return what a function makes of integer labels, and predictions with an axis for classes."""
    what = kernel.__name__.lstrip("_")
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    where = class_axis(axis, pred, what)
    labels = sparse_labels(true, pred, where, what)
    check_labels(labels, pred.shape[where], what, ignore_class)
    given = {**static, "axis": where, "ignore_class": ignore_class}
    return _run(kernel, labels, pred, False, _freeze(given), {})
