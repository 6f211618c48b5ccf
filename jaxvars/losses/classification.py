"""Losses of predicted classes: functions with one value for each sample, and classes.

Predictions are probabilities, or logits with `from_logits=True`, which is more exact: a softmax
that has become 0 or 1 knows its logits no more.

Rules this file keeps:
- probabilities are cut to 1e-7 and 1 - 1e-7 before their logarithm is taken, as Keras does;
- from logits, by optax, in the form that overflows nowhere;
- what is not a probability is refused, or gives NaN in compiled code; those of `categorical_...`
  need not add up to 1, as they are divided by their sum.
"""

from __future__ import annotations

import math
from abc import ABC
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.losses.inputs import (
    EPSILON,
    as_classes,
    as_probabilities,
    check_labels,
    class_axis,
    elementwise,
    sparse_labels,
    tensor,
    wide,
)
from jaxvars.losses.loss import MEAN, FunctionLoss, Reduction
from jaxvars.tracing import context
from jaxvars.typing import Array, DTypeLike

_ONE_HOT = {
    "y_true": "one-hot labels, or probabilities.",
    "y_pred": "probabilities, or logits, of the same shape.",
    "alpha": "the weight, or one for each class, along the last axis.",
    "gamma": "the exponent; 0 is the plain cross-entropy.",
    "from_logits": "whether `y_pred` are logits: without it, negative ones are refused, and give "
    "NaN in compiled code.",
    "label_smoothing": "how far labels are moved to being all the same, from 0 to 1.",
    "axis": "the axis of the classes.",
    "return": "An array without that axis.",
}
_TWO_CLASSES = {
    **_ONE_HOT,
    "y_true": "0 or 1, or probabilities.",
    "y_pred": "probabilities of 1, or logits, of the same shape.",
    "apply_class_balancing": "weigh class 1 by `alpha` and class 0 by `1 - alpha`.",
    "alpha": "the weight of class 1.",
    "label_smoothing": "how far labels are moved to 0.5, from 0 to 1.",
    "axis": "what the mean is taken along.",
}


def _smooth(y_true: Array, smoothing: float, classes: int) -> Array:
    return y_true * (1.0 - smoothing) + smoothing / classes


@elementwise(_ONE_HOT, math.inf)
def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
    axis: int = -1,
) -> Array:  # fmt: skip
    """Return the cross-entropy between one-hot labels and predictions.

    Formula: `-sum(y_true * log(y_pred))` along the axis of the classes.

    Differs from TensorFlow: the gradient of logits whose labels do not add up to 1 is that of the
    formula, and not `softmax(logits) - labels`.

    >>> print(categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).round(4))
    [0.6931]
    """
    import optax

    axis = class_axis(axis, y_pred, "categorical_crossentropy")
    y_true = _smooth(y_true, label_smoothing, y_true.shape[axis])
    if from_logits:  # the safe one: a logit of minus infinity is a class that is ruled out
        last = (jnp.moveaxis(y, axis, -1) for y in (y_pred, y_true))
        return optax.safe_softmax_cross_entropy(*last)
    return -(y_true * jnp.log(_normalize(y_pred, axis))).sum(axis)


def _normalize(y_pred: Array, axis: int) -> Array:
    return jnp.clip(y_pred / y_pred.sum(axis, keepdims=True), EPSILON, 1.0 - EPSILON)


@elementwise(_ONE_HOT, math.inf)
def categorical_focal_crossentropy(
    y_true: Any, y_pred: Any, alpha: float = 0.25, gamma: float = 2.0, from_logits: bool = False,
    label_smoothing: float = 0.0, axis: int = -1,
) -> Array:  # fmt: skip
    """Return the cross-entropy, times `alpha * (1 - p) ** gamma` of the right class's `p`.

    >>> print(categorical_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).round(4))
    [0.0433]
    """
    axis = class_axis(axis, y_pred, "categorical_focal_crossentropy")
    y_true = _smooth(y_true, label_smoothing, y_true.shape[axis])
    p = _normalize(jax.nn.softmax(y_pred, axis) if from_logits else y_pred, axis)
    weight = jnp.asarray(alpha, p.dtype)
    return (weight * (1.0 - p) ** gamma * -y_true * jnp.log(p)).sum(axis)


@context.restoring()
def sparse_categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, ignore_class: int | None = None,
    axis: int = -1,
) -> Array:  # fmt: skip
    """Return the cross-entropy between integer labels and predictions.

    Formula: `-log(y_pred[label])`.

    Args:
        y_true: integers below the number of classes; of the shape of `y_pred` without the axis
            of the classes, or with size 1 there.
        y_pred: probabilities, or logits.
        from_logits: whether `y_pred` are logits.
        ignore_class: a label whose loss is 0, like -1 or 255 for "not known".
        axis: the axis of the classes.

    Returns:
        An array of the shape of the labels.

    Raises:
        ShapeError: when the labels are one-hot, or have another shape.
        DtypeError: when labels are not whole numbers.
        IndexError: when a label is outside of the classes.
        ValueError: when probabilities are not from 0 to 1. In compiled code, where both are not
            known beforehand, the loss is NaN.

    >>> print(sparse_categorical_crossentropy([1, 0], [[0.5, 0.5], [0.25, 0.75]]).round(4))
    [0.6931 1.3863]
    """
    what = "sparse_categorical_crossentropy"
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    axis = class_axis(axis, pred, what)
    labels = sparse_labels(true, pred, axis, what)
    check_labels(labels, pred.shape[axis], what, ignore_class)
    pred = pred if from_logits else as_probabilities(pred, what)
    options = {"axis": axis, "ignore_class": ignore_class, "from_logits": bool(from_logits)}
    return _sparse_categorical_crossentropy(labels, pred, **options)


@jax.jit(static_argnames=("axis", "ignore_class", "from_logits"))
def _sparse_categorical_crossentropy(
    labels: Array, y_pred: Array, axis: int, ignore_class: int | None, from_logits: bool
) -> Array:
    import optax

    y_pred, labels = wide(y_pred), labels.astype(jnp.int32)
    ignored = labels == ignore_class if ignore_class is not None else jnp.zeros_like(labels, bool)
    labels = jnp.where(ignored, 0, labels)
    labels = jnp.where(labels < 0, y_pred.shape[axis], labels)  # not from the end, but nowhere
    logits = y_pred if from_logits else jnp.log(jnp.clip(y_pred, EPSILON, 1.0 - EPSILON))
    logits = jnp.where(jnp.expand_dims(ignored, axis), 0.0, logits)
    highest = jax.lax.stop_gradient(logits.max(axis, keepdims=True))  # or large ones would cancel
    logits = logits - jnp.where(jnp.isfinite(highest), highest, 0)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels, axis)
    return jnp.where(ignored, 0.0, losses)


@elementwise(_TWO_CLASSES, 1.0)
def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
    axis: int = -1,
) -> Array:  # fmt: skip
    """Return the mean cross-entropy between labels and predictions of two classes.

    Formula: the mean of `-y_true * log(y_pred) - (1 - y_true) * log(1 - y_pred)` along the axis.

    >>> print(binary_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).round(4))
    [0.6931]
    """
    import optax

    y_true = _smooth(y_true, label_smoothing, 2)
    if from_logits:
        return optax.sigmoid_binary_cross_entropy(y_pred, y_true).mean(axis)
    return _binary_entropy(y_true, y_pred).mean(axis)


def _binary_entropy(y_true: Array, y_pred: Array) -> Array:
    p = jnp.clip(y_pred, EPSILON, 1.0 - EPSILON)
    return -(y_true * jnp.log(p) + (1.0 - y_true) * jnp.log(1.0 - p))


@elementwise(_TWO_CLASSES, 1.0)
def binary_focal_crossentropy(
    y_true: Any, y_pred: Any, apply_class_balancing: bool = False, alpha: float = 0.25,
    gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
) -> Array:  # fmt: skip
    """Return the cross-entropy of two classes, times `(1 - p) ** gamma` of the right one's `p`.

    What is right already counts little.

    Source: Lin et al., Focal loss for dense object detection, 2017
    (https://arxiv.org/abs/1708.02002).

    >>> print(binary_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).round(4))
    [0.1733]
    """
    import optax

    y_true = _smooth(y_true, label_smoothing, 2)
    if from_logits:
        loss = optax.sigmoid_focal_loss(y_pred, y_true, gamma=gamma)
    else:
        right = y_true * y_pred + (1.0 - y_true) * (1.0 - y_pred)
        loss = (1.0 - right) ** gamma * _binary_entropy(y_true, y_pred)
    if apply_class_balancing:
        loss = loss * (y_true * alpha + (1.0 - y_true) * (1.0 - alpha))
    return loss.mean(axis)


# ---------------------------------------------------------------- classes
class _CrossEntropy(FunctionLoss, ABC):
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = None
    dtype: DTypeLike | None = None


@final
class BinaryCrossentropy(_CrossEntropy, fn=binary_crossentropy):
    """The cross-entropy of two classes.

    >>> float(BinaryCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """


@final
class BinaryFocalCrossentropy(FunctionLoss, fn=binary_focal_crossentropy):
    """The cross-entropy of two classes in which what is right counts little.

    >>> float(BinaryFocalCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """

    apply_class_balancing: bool = False
    alpha: float = 0.25
    gamma: float = 2.0
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "binary_focal_crossentropy"
    dtype: DTypeLike | None = None


@final
class CategoricalCrossentropy(_CrossEntropy, fn=categorical_crossentropy):
    """The cross-entropy of one-hot labels.

    Differs from TensorFlow: as the function `categorical_crossentropy`.

    >>> float(CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[0.0, 200.0]]))
    200.0
    """


@final
class CategoricalFocalCrossentropy(
    FunctionLoss,
    fn=categorical_focal_crossentropy,
    alpha="the weight, or a tuple of one for each class.",
):
    """The cross-entropy of one-hot labels in which what is right counts little.

    >>> CategoricalFocalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).shape
    ()
    """

    alpha: Any = 0.25
    gamma: float = 2.0
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "categorical_focal_crossentropy"
    dtype: DTypeLike | None = None


@final
class SparseCategoricalCrossentropy(
    FunctionLoss,
    fn=sparse_categorical_crossentropy,
    ignore_class='a label that does not count, like -1 or 255 for "not known".',
):
    """The cross-entropy of integer labels.

    A mean is that of the samples that are not ignored.

    >>> float(
    ...     SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)(
    ...         [1, -1], [[0.0, 200.0], [0.0, 0.0]]
    ...     )
    ... )
    0.0
    """

    from_logits: bool = False
    ignore_class: int | None = None
    reduction: Reduction = MEAN
    axis: int = -1
    name: str | None = "sparse_categorical_crossentropy"
    dtype: DTypeLike | None = None

    def _find_counted(self, y_true: Any, y_pred: Any) -> Array | None:
        if self.ignore_class is None:
            return None
        labels, logits = as_classes(tensor(y_true, "y_true")), tensor(y_pred, "y_pred")
        counted = labels != self.ignore_class
        return counted.squeeze(self.axis) if counted.ndim == logits.ndim else counted
