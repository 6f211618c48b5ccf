"""Confusion matrices: how often each label was predicted as each label."""

from __future__ import annotations

import functools
from typing import Any, final

import jax.numpy as jnp
import numpy as np

from jaxvars.initializers.initializer import one_of
from jaxvars.losses.inputs import as_classes, check_whole, checked_count, divide, wide
from jaxvars.metrics.confusion import inputs
from jaxvars.metrics.metric import KnownMetric, describe_update, unseen
from jaxvars.metrics.sums import group_sums, total
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tensors.tensor import as_dtype
from jaxvars.tracing import context
from jaxvars.typing import Array, DTypeLike

NORMALIZATIONS = ("true", "pred", "all")


# ---------------------------------------------------------------- the matrix
def confusion_matrix(
    labels: Any, predictions: Any, num_classes: int | None = None, weights: Any = None,
    dtype: DTypeLike = "int32",
) -> Array:  # fmt: skip
    """Count how often each label was predicted as each label.

    Formula: `result[i, j] = sum((labels == i) & (predictions == j))`.

    Args:
        labels: integers from 0, of any shape.
        predictions: integers, of the same shape.
        num_classes: how many there are; one more than the largest when None, which must be known.
        weights: a number, or weights along the first axes; they are cut to integers where the
            dtype is one.
        dtype: of the result.

    Returns:
        An array of shape [classes, classes]: labels are rows, predictions columns.

    Raises:
        ShapeError: when the shapes do not go together.
        IndexError: when a label or prediction is not a class. In compiled code, where it is not
            known beforehand, it is not counted.
        ValueError: when `num_classes` must be given.

    >>> confusion_matrix([0, 1, 2], [0, 2, 2]).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    """
    true, pred, weight = _check_classes(labels, predictions, weights, "confusion_matrix")
    if num_classes is None:
        num_classes = _find_largest(true, pred) + 1
    for array, what in ((true, "label"), (pred, "prediction")):
        _check_in(array, num_classes, what)
    kind = as_dtype(dtype)
    if weight is not None:
        whole = kind if kind.itemsize == 8 else jnp.int32
        is_cut = jnp.issubdtype(kind, jnp.integer)
        weight = weight.astype(whole) if is_cut else wide(weight)
    return total(_count_pairs(true, pred, weight, classes=num_classes)).astype(kind)


@context.restoring()
def _check_classes(
    y_true: Any, y_pred: Any, weight: Any, what: str
) -> tuple[Array, Array, Array | None]:
    true, pred, weight = inputs(y_true, y_pred, weight, what)
    check_whole(true, what)
    if weight is not None:
        weight = jnp.broadcast_to(weight, true.shape).reshape(-1)
    return as_classes(true).reshape(-1), as_classes(pred).reshape(-1), weight


def _find_largest(*arrays: Array) -> int:
    if any(map(context.is_tracer, arrays)):
        raise ValueError(
            "confusion_matrix needs num_classes in compiled code: a program has fixed shapes."
        )
    return max((int(np.asarray(a).max()) for a in arrays if a.size), default=-1)


def _check_in(array: Array, classes: int, what: str) -> None:
    if context.is_tracer(array) or not array.size:
        return
    known = np.asarray(array)
    wrong = known[(known < 0) | (known >= classes)]
    if wrong.size:
        raise IndexError(f"A {what} is {wrong[0]}, but the classes are 0 to {classes - 1}.")


@functools.partial(quick_jit, static_argnames="classes")
def _count_pairs(true: Array, pred: Array, weight: Array, classes: int) -> Array:
    ones = jnp.ones(true.shape, jnp.int32) if weight is None else weight
    kept = (true >= 0) & (true < classes) & (pred >= 0) & (pred < classes)
    where = tuple(jnp.where(kept, x, 0).astype(jnp.int32) for x in (true, pred))
    return group_sums(jnp.where(kept, ones, 0), where, (classes, classes))


@final
class ConfusionMatrix(KnownMetric):
    """How often each label was predicted as each label: labels are rows, predictions columns.

    Formula: `result[i, j] = sum((y_true == i) & (y_pred == j))`.

    Args:
        normalize: None for counts; "true", "pred" or "all" for parts of each row, of each
            column, or of all.

    Attributes:
        total_cm: the counts, a Tally of shape [classes, classes].

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric, scores = ConfusionMatrix(2), jnp.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
        >>> metric([0, 1, 1], scores.argmax(-1)).tolist()
        [[1.0, 0.0], [1.0, 1.0]]

    Differs from TensorFlow: TensorFlow has the function alone, not the metric.
    """

    def __init__(
        self, num_classes: int, normalize: str | None = None, name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self.normalize = normalize and one_of(normalize, "normalization", NORMALIZATIONS)
        self.num_classes = checked_count(num_classes, "num_classes")
        self.total_cm = self.add_tally("total_confusion_matrix", (num_classes, num_classes))

    @describe_update(
        "labels: integers.", "predicted labels: integers. What is not a class is not counted."
    )
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and predictions into account."""
        true, pred, weight = _check_classes(y_true, y_pred, sample_weight, self.name)
        weight = None if weight is None else wide(weight)
        found = unseen(lambda: _count_pairs(true, pred, weight, classes=self.num_classes))
        self.total_cm.take(found)

    def result(self) -> Array:
        """Return the matrix."""
        return self._to_dtype(_normalize(self.total_cm.parts.value, how=self.normalize))


@functools.partial(quick_jit, static_argnames="how")
def _normalize(parts: Array, how: str | None) -> Array:
    matrix = total(parts)
    if how is None:
        return matrix
    axis = {"true": 1, "pred": 0, "all": None}[how]
    return divide(matrix, matrix.sum(axis, keepdims=True))
