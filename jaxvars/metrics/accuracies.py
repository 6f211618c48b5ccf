"""How often predictions are right: the functions, and the metrics of their means.

Rules this file keeps:
- a function returns 1.0 or 0.0 for each sample;
- of equal scores the first one is the best, and a score equal to the k-th best is among the
  first k, as in TensorFlow; NaN is never among them.
"""

from __future__ import annotations

import functools
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.display.docstrings import complete_by
from jaxvars.errors import ShapeError
from jaxvars.losses.inputs import (
    as_classes,
    check_same_shape,
    check_whole,
    checked_count,
    elementwise,
    reshape_alike,
    sparse_labels,
    tensor,
    wide,
)
from jaxvars.metrics.mean import MeanOfKnown
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.typing import Array, DTypeLike

_SCORES = {
    "y_true": "one-hot labels, of shape [..., classes].",
    "y_pred": "scores, of the same shape.",
    "threshold": "a number.",
    "k": "how many are enough.",
    "from_sorted_ids": "whether `y_pred` are not scores but labels, the best first.",
    "return": "An array of shape [...].",
}
_SPARSE = {
    **_SCORES,
    "y_true": "integer labels, of shape [...] or [..., 1]. A label that is not a class is never "
    "right.",
    "y_pred": "scores, of shape [..., classes].",
}


# ---------------------------------------------------------------- functions
def accuracy(y_true: Any, y_pred: Any) -> Array:
    """Return 1 where label and prediction are equal, else 0.

    Formula: `y_true == y_pred`.

    Args:
        y_true: labels.
        y_pred: predicted labels, of the same shape.

    >>> accuracy([1, 2, 3], [1, 2, 4]).tolist()
    [1.0, 1.0, 0.0]
    """
    true, pred = tensor(y_true, "y_true of accuracy"), tensor(y_pred, "y_pred of accuracy")
    check_same_shape(true, pred, "accuracy")
    return _accuracy(true, pred)


@quick_jit
def _accuracy(y_true: Array, y_pred: Array) -> Array:
    return jnp.equal(*reshape_alike(as_classes(y_true), as_classes(y_pred))).astype(jnp.float32)


@elementwise(
    {
        "y_true": "0 or 1.",
        "y_pred": "scores, of the same shape; those above the threshold mean 1.",
        "threshold": "a number.",
    }
)
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Array:
    """Return 1 where a prediction is on the side of the threshold that the label is on, else 0.

    Formula: `y_true == (y_pred > threshold)`.

    >>> binary_accuracy([1, 0, 1], [0.7, 0.5, 0.2]).tolist()
    [1.0, 1.0, 0.0]
    """
    return (y_true == (y_pred > threshold).astype(y_true.dtype)).astype(jnp.float32)


@elementwise(_SCORES)
def categorical_accuracy(y_true: Any, y_pred: Any) -> Array:
    """Return 1 where the best score is that of the label, else 0.

    Formula: `argmax(y_true) == argmax(y_pred)` along the last axis.

    >>> categorical_accuracy([[0, 1], [1, 0]], [[0.2, 0.8], [0.3, 0.7]]).tolist()
    [1.0, 0.0]
    """
    return (y_true.argmax(-1) == y_pred.argmax(-1)).astype(jnp.float32)


@complete_by(_SPARSE)
def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Array:
    """Return 1 where the best score is that of the label, else 0.

    Formula: `y_true == argmax(y_pred)` along the last axis.

    Raises:
        ShapeError: when the labels have another shape.
        DtypeError: when labels are not whole numbers.

    >>> sparse_categorical_accuracy([1, 0], [[0.2, 0.8], [0.3, 0.7]]).tolist()
    [1.0, 0.0]
    """
    return _sparse_categorical_accuracy(*_as_sparse(y_true, y_pred, "sparse_categorical_accuracy"))


@quick_jit
def _sparse_categorical_accuracy(labels: Array, y_pred: Array) -> Array:
    return (labels.astype(jnp.int32) == y_pred.argmax(-1)).astype(jnp.float32)


def _as_sparse(y_true: Any, y_pred: Any, what: str) -> tuple[Array, Array]:
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    if not pred.ndim:
        raise ShapeError(f"y_pred of {what} has an axis for the classes, the last one.")
    labels = sparse_labels(true, pred, pred.ndim - 1, what)
    check_whole(labels, what)  # no more: a label that is not a class is never right
    return labels, pred


@elementwise(_SCORES)
def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Array:
    """Return 1 where the label's score is among the k best, else 0.

    Formula: `sum(y_pred > y_pred[argmax(y_true)]) < k` along the last axis.

    >>> top_k_categorical_accuracy([[0, 0, 1]], [[0.1, 0.7, 0.2]], k=2).tolist()
    [1.0]
    """
    return _in_top_k(y_true.argmax(-1), y_pred, checked_count(k, "k"))


@complete_by(_SPARSE)
def sparse_top_k_categorical_accuracy(
    y_true: Any, y_pred: Any, k: int = 5, from_sorted_ids: bool = False
) -> Array:
    """Return 1 where the label's score is among the k best, else 0.

    Formula: `sum(y_pred > y_pred[y_true]) < k` along the last axis.

    Raises:
        ShapeError: when the labels have another shape.
        DtypeError: when labels are not whole numbers.

    >>> sparse_top_k_categorical_accuracy([2], [[0.1, 0.7, 0.2]], k=2).tolist()
    [1.0]
    """
    what = "sparse_top_k_categorical_accuracy"
    return _sparse_top_k(
        *_as_sparse(y_true, y_pred, what), k=checked_count(k, "k"), ids=bool(from_sorted_ids)
    )


@functools.partial(quick_jit, static_argnames=("k", "ids"))
def _sparse_top_k(labels: Array, y_pred: Array, k: int, ids: bool) -> Array:
    if ids:
        return (as_classes(labels)[..., None] == wide(y_pred)[..., :k]).any(-1).astype(jnp.float32)
    return _in_top_k(labels.astype(jnp.int32), y_pred, k)


def _in_top_k(labels: Array, y_pred: Array, k: int) -> Array:
    mine = jax.nn.one_hot(labels, y_pred.shape[-1], dtype=bool)
    score = jnp.where(mine, y_pred, 0).sum(-1, keepdims=True)
    better = (y_pred > score).sum(-1)
    known = mine.any(-1) & jnp.isfinite(score[..., 0])
    return (known & (better < k)).astype(jnp.float32)


# ---------------------------------------------------------------- metrics
@final
class Accuracy(MeanOfKnown, fn=accuracy, example=("[1, 2, 3, 4], [0, 2, 3, 4]", 0.75)):
    """How often predicted labels are the labels."""

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        return accuracy(y_true, y_pred)  # both as they are: float64 does not hold all labels


@final
class CategoricalAccuracy(
    MeanOfKnown,
    fn=categorical_accuracy,
    example=("[[0, 1], [1, 0]], [[0.2, 0.8], [0.3, 0.7]]", 0.5),
):
    """How often the best score is that of the one-hot label."""


@final
class SparseCategoricalAccuracy(
    MeanOfKnown, fn=sparse_categorical_accuracy, example=("[1, 0], [[0.2, 0.8], [0.3, 0.7]]", 0.5)
):
    """How often the best score is that of the integer label."""


@final
class BinaryAccuracy(MeanOfKnown, fn=binary_accuracy, threshold="scores above it mean 1."):
    """How often scores are on the right side of a threshold.

    >>> float(BinaryAccuracy()([1, 1, 0, 0], [0.9, 0.4, 0.3, 0.1]))
    0.75
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, threshold: float = 0.5
    ) -> None:
        super().__init__(name, dtype)
        self.threshold = threshold


@final
class TopKCategoricalAccuracy(MeanOfKnown, fn=top_k_categorical_accuracy):
    """How often the score of the one-hot label is among the k best.

    >>> float(TopKCategoricalAccuracy(k=2)([[0, 0, 1]], [[0.1, 0.7, 0.2]]))
    1.0
    """

    def __init__(self, k: int = 5, name: str | None = None, dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)
        self.k = checked_count(k, "k")


@final
class SparseTopKCategoricalAccuracy(
    MeanOfKnown,
    fn=sparse_top_k_categorical_accuracy,
    from_sorted_ids="whether predictions are not scores but labels, the best first.",
):
    """How often the score of the integer label is among the k best.

    >>> float(SparseTopKCategoricalAccuracy(k=2)([2, 0], [[0.1, 0.7, 0.2], [0.1, 0.7, 0.2]]))
    0.5
    """

    def __init__(
        self, k: int = 5, name: str | None = None, dtype: DTypeLike | None = None,
        from_sorted_ids: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(name, dtype)
        self.k = checked_count(k, "k")
        self.from_sorted_ids = from_sorted_ids
