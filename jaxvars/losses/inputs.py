"""What losses and metrics are given: labels, predictions and weights, checked and aligned.

Rules this file keeps:
- an axis of size 1 at the end may be missing from one of two arrays, as in Keras; beyond that
  shapes must agree, for what merely broadcasts is nearly always a mistake;
- 16-bit floats and integers are computed with in float32;
- what can be known before a program runs is checked before: shapes and dtypes always, labels
  when they are no tracers;
- a function is one jitted program, so that it is quick eagerly, and one thing for a tape to record.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, ShapeError
from jaxvars.tensors.array_like import plain
from jaxvars.tensors.dtypes import as_dtype, is_string
from jaxvars.tensors.tensor import to_tensor
from jaxvars.tracing import context

Value: TypeAlias = Any
Sizes: TypeAlias = tuple[int, ...]
P = ParamSpec("P")

EPSILON = 1e-7  # Keras's


def tensor(value: Any, what: str) -> Value:
    """Return a number, list, array or Variable as an array of numbers."""
    array = to_tensor(plain(value), what=what)
    if is_string(array.dtype):
        raise DtypeError(f"{what} is text; losses and metrics take numbers.")
    return array


def float_dtype(dtype: Any, what: str) -> Any:
    """Return a dtype, float32 for None; raise DtypeError when it is no float.

    >>> float_dtype(None, "Mean").name, float_dtype("bfloat16", "Mean").name
    ('float32', 'bfloat16')
    """
    kind = as_dtype("float32" if dtype is None else dtype)
    if is_string(kind) or not jnp.issubdtype(kind, jnp.floating):
        raise DtypeError(f"The dtype of {what} is that of its result, a float, not {dtype}.")
    return kind


def wide(x: Value) -> Value:
    """Return an array in a dtype that one can compute with: float32, or a wider float."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))


def as_classes(labels: Value) -> Value:
    """Return labels in a dtype that holds -1 and any number of classes, as uint8 does not."""
    if jnp.issubdtype(labels.dtype, jnp.inexact):
        return wide(labels)
    return labels.astype(jnp.int64 if labels.dtype.itemsize == 8 else jnp.int32)


def divide(a: Value, b: Value) -> Value:
    """Return a / b, or 0 where b is 0.

    >>> divide(jnp.array([1.0, 1.0]), jnp.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    return jnp.where(b == 0, 0.0, a / jnp.where(b == 0, 1.0, b))


# ---------------------------------------------------------------- shapes
def squeezed(one: Sizes, other: Sizes, expand: bool = True) -> tuple[Sizes, Sizes]:
    """Return two shapes with as many axes, where an axis of size 1 at the end makes up for it.

    Vectors get the axis, longer shapes lose it, unless `expand` is False.

    >>> squeezed((8,), (8, 1)), squeezed((8, 5, 1), (8, 5)), squeezed((8,), (8, 3))
    (((8, 1), (8, 1)), ((8, 5), (8, 5)), ((8,), (8, 3)))
    """
    if len(one) == len(other) + 1 and one[-1] == 1:
        return (one, (*other, 1)) if len(other) == 1 and expand else (one[:-1], other)
    if len(other) == len(one) + 1 and other[-1] == 1:
        return ((*one, 1), other) if len(one) == 1 and expand else (one, other[:-1])
    return one, other


def check_same_shape(y_true: Value, y_pred: Value, what: str) -> None:
    """Raise ShapeError unless labels and predictions have the same shape, or nearly so."""
    true, pred = squeezed(y_true.shape, y_pred.shape)
    if true != pred:
        raise ShapeError(
            f"{what} compares arrays of the same shape, but y_true has shape {y_true.shape} and "
            f"y_pred {y_pred.shape}.{_shape_hint(true, pred)}"
        )


def _shape_hint(true: Sizes, pred: Sizes) -> str:
    if true == pred[:-1]:
        return " For labels that are integers, use the function whose name begins with 'sparse'."
    if true[:-1] == pred:
        return " Are they swapped? y_true comes first."
    return " Reshape one of them, or jnp.broadcast_to it where that is meant."


def aligned(y_true: Value, y_pred: Value) -> tuple[Value, Value]:
    """Return labels and predictions with one shape."""
    true, pred = squeezed(y_true.shape, y_pred.shape)
    return y_true.reshape(true), y_pred.reshape(pred)


def leading(weight: Value, shape: Sizes, what: str) -> Value:
    """Return weights of whole samples, or of parts of them, with an axis for each of a shape.

    >>> leading(jnp.ones(4), (4, 3), "mse").shape, leading(jnp.ones((4, 1)), (4,), "mse").shape
    ((4, 1), (4,))
    """
    sizes = weight.shape
    if len(sizes) == len(shape) + 1 and sizes[-1] == 1:
        sizes = sizes[:-1]
    sizes = (*sizes, *(1,) * (len(shape) - len(sizes)))
    if len(sizes) != len(shape) or any(s not in (1, n) for s, n in zip(sizes, shape, strict=True)):
        raise ShapeError(
            f"The sample_weight of {what} has shape {weight.shape}, which fits no axes from the "
            f"first on of the values, of shape {shape}: give a number, or one for each sample."
        )
    return weight.reshape(sizes)


# ---------------------------------------------------------------- labels
def class_axis(axis: Any, y_pred: Value, what: str) -> int:
    """Return the axis of the classes, counted from the front."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"The axis of {what} is an integer, not {axis!r}.")
    if not -y_pred.ndim <= axis < y_pred.ndim:
        raise ShapeError(f"y_pred of {what}, of shape {y_pred.shape}, has no axis {axis}.")
    return axis % y_pred.ndim


def sparse_labels(y_true: Value, y_pred: Value, axis: int, what: str) -> Value:
    """Return integer labels with the shape of the predictions less the axis of the classes."""
    shape = y_pred.shape[:axis] + y_pred.shape[axis + 1 :]
    if y_true.shape == shape:
        return y_true
    if y_true.shape == (*shape[:axis], 1, *shape[axis:]):
        return y_true.reshape(shape)
    raise ShapeError(
        f"{what} takes integer labels of shape {shape} for predictions of shape {y_pred.shape}, "
        f"but y_true has shape {y_true.shape}.{_label_hint(y_true, y_pred)}"
    )


def _label_hint(y_true: Value, y_pred: Value) -> str:
    if y_true.shape == y_pred.shape:
        return " If they are one-hot, use the function without 'sparse' in its name."
    if y_true.ndim == y_pred.ndim + 1 and y_true.dtype.kind not in "iub":
        return " Are they swapped? y_true comes first."
    return ""


def check_whole(labels: Value, what: str) -> None:
    """Raise DtypeError where labels are known and are no whole numbers."""
    if labels.dtype.kind in "iub" or context.is_tracer(labels):
        return
    known = np.asarray(labels).astype(np.float64)
    broken = known[known != np.trunc(known)]
    if broken.size:
        raise DtypeError(
            f"The labels of {what} are integers, but y_true has {broken[0]:g}. Are y_true and "
            "y_pred swapped? y_true comes first."
        )


def check_labels(labels: Value, classes: int, what: str, ignored: int | None = None) -> None:
    """Raise where labels are known and are no integers from 0 to below the number of classes."""
    check_whole(labels, what)
    if context.is_tracer(labels) or not labels.size:
        return
    known = np.asarray(labels).astype(np.int64)
    wrong = known[((known < 0) | (known >= classes)) & (known != ignored)]
    if wrong.size:
        raise IndexError(
            f"{what} has {classes} classes, 0 to {classes - 1}, by the shape of y_pred, but y_true "
            f"has a label {wrong[0]}."
        )


# ---------------------------------------------------------------- running
@functools.partial(jax.jit, static_argnames=("kernel", "align", "static"))
def _run(
    kernel: Callable[..., Value], y_true: Value, y_pred: Value, align: bool,
    static: tuple[tuple[str, Any], ...], numbers: dict[str, Value],
) -> Value:  # fmt: skip
    y_pred = wide(y_pred)
    if align:
        y_true, y_pred = aligned(y_true.astype(y_pred.dtype), y_pred)
    return kernel(y_true, y_pred, **dict(static), **numbers)


def elementwise(formula: Callable[P, Value]) -> Callable[P, Value]:
    """Return the function of labels and predictions of the same shape that a formula computes.

    Args:
        formula: takes both as floats of one dtype and shape, and options. Those that are floats by
            default are numbers of the program; it is compiled for each value of the others.
    """
    signature = inspect.signature(formula)
    defaults = {n: p.default for n, p in signature.parameters.items() if p.default is not p.empty}

    @functools.wraps(formula)
    def call(*args: P.args, **kwargs: P.kwargs) -> Value:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return formula(*args, **kwargs)  # Python's own words for what is wrong
        options = {name: given.get(name, default) for name, default in defaults.items()}
        numbers = {n: options.pop(n) for n, default in defaults.items() if type(default) is float}
        static = {name: _hashable(x, defaults[name]) for name, x in options.items()}
        return compare(formula, given["y_true"], given["y_pred"], static, **numbers)

    return call


def _hashable(option: Any, default: Any) -> Any:
    if isinstance(default, bool):
        return bool(option)
    return tuple(option) if isinstance(option, list) else option


@context.restoring()
def compare(
    kernel: Callable[..., Value], y_true: Any, y_pred: Any, static: dict[str, Any] | None = None,
    **numbers: Any,
) -> Value:  # fmt: skip
    """Return what a function makes of labels and predictions of the same shape.

    Args:
        kernel: takes both as floats of one dtype and shape; its name, less an underscore, is what
            errors call it.
        y_true: the labels.
        y_pred: the predictions.
        static: arguments of the kernel that its program depends on.
        **numbers: arguments that are numbers.
    """
    what = kernel.__name__.lstrip("_")
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    check_same_shape(true, pred, what)
    if not max(true.ndim, pred.ndim):
        raise ShapeError(f"{what} takes arrays with at least one axis, not numbers.")
    for name, x in numbers.items():
        numbers[name] = x if isinstance(x, float | int) else tensor(x, f"{name} of {what}")
    return _run(kernel, true, pred, True, tuple((static or {}).items()), numbers)


@context.restoring()
def with_labels(
    kernel: Callable[..., Value], y_true: Any, y_pred: Any, axis: int = -1,
    ignore_class: int | None = None, **static: Any,
) -> Value:  # fmt: skip
    """Return what a function makes of integer labels, and predictions with an axis for classes."""
    what = kernel.__name__.lstrip("_")
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    where = class_axis(axis, pred, what)
    labels = sparse_labels(true, pred, where, what)
    check_labels(labels, pred.shape[where], what, ignore_class)
    given = {**static, "axis": where, "ignore_class": ignore_class}
    return _run(kernel, labels, pred, False, tuple(given.items()), {})
