"""Labels that are integers: where the classes are, and which labels there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxvars.errors import DtypeError, ShapeError
from jaxvars.tracing import context
from jaxvars.typing import Array


def class_axis(axis: Any, y_pred: Array, what: str) -> int:
    """Return the axis of the classes, counted from the front."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"The axis of {what} is an integer, not {axis!r}.")
    if not -y_pred.ndim <= axis < y_pred.ndim:
        raise ShapeError(f"y_pred of {what}, of shape {y_pred.shape}, has no axis {axis}.")
    return axis % y_pred.ndim


def sparse_labels(y_true: Array, y_pred: Array, axis: int, what: str) -> Array:
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


def _label_hint(y_true: Array, y_pred: Array) -> str:
    if y_true.shape == y_pred.shape:
        return " If they are one-hot, use the function without 'sparse' in its name."
    if y_true.ndim == y_pred.ndim + 1 and y_true.dtype.kind not in "iub":
        return " Are they swapped? y_true comes first."
    return ""


def check_whole(labels: Array, what: str) -> None:
    """Raise DtypeError where labels are known and are not whole numbers."""
    if labels.dtype.kind in "iub" or context.is_tracer(labels):
        return
    known = np.asarray(labels).astype(np.float64)
    broken = known[known != np.trunc(known)]
    if broken.size:
        raise DtypeError(
            f"The labels of {what} are integers, but y_true has {broken[0]:g}. Are y_true and "
            "y_pred swapped? y_true comes first."
        )


def check_labels(labels: Array, classes: int, what: str, ignored: int | None = None) -> None:
    """Raise where labels are known and are not integers from 0 to below the number of classes."""
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
