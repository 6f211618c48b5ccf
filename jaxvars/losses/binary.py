"""Losses of two predicted classes: functions with one value for each sample, and classes."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp

from jaxvars.losses.classification import smoothed
from jaxvars.losses.function_loss import FunctionLoss
from jaxvars.losses.inputs import EPSILON
from jaxvars.losses.loss import MEAN, Reduction
from jaxvars.losses.running import elementwise
from jaxvars.typing import Array, DTypeLike

_TWO_CLASSES = {
    "y_true": "0 or 1, or probabilities.",
    "y_pred": "probabilities of 1, or logits, of the same shape.",
    "apply_class_balancing": "weigh class 1 by `alpha` and class 0 by `1 - alpha`.",
    "alpha": "the weight of class 1.",
    "gamma": "the exponent; 0 is the plain cross-entropy.",
    "from_logits": "whether `y_pred` are logits.",
    "label_smoothing": "how far labels are moved to 0.5, from 0 to 1.",
    "axis": "what the mean is taken along.",
    "return": "An array without that axis.",
}


@elementwise(_TWO_CLASSES)
def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0,
    axis: int = -1,
) -> Array:  # fmt: skip
    """Return the mean cross-entropy between labels and predictions of two classes.

    >>> print(binary_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).round(4))
    [0.6931]
    """
    import optax

    y_true = smoothed(y_true, label_smoothing, 2)
    if from_logits:
        return optax.sigmoid_binary_cross_entropy(y_pred, y_true).mean(axis)
    return _binary_entropy(y_true, y_pred).mean(axis)


def _binary_entropy(y_true: Array, y_pred: Array) -> Array:
    p = jnp.clip(y_pred, EPSILON, 1.0 - EPSILON)
    return -(y_true * jnp.log(p) + (1.0 - y_true) * jnp.log(1.0 - p))


@elementwise(_TWO_CLASSES)
def binary_focal_crossentropy(
    y_true: Any, y_pred: Any, apply_class_balancing: bool = False, alpha: float = 0.25,
    gamma: float = 2.0, from_logits: bool = False, label_smoothing: float = 0.0, axis: int = -1,
) -> Array:  # fmt: skip
    """Return the cross-entropy of two classes, times `(1 - p) ** gamma` of the right one's `p`.

    What is right already counts little (Lin et al., https://arxiv.org/abs/1708.02002).

    >>> print(binary_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).round(4))
    [0.1733]
    """
    import optax

    y_true = smoothed(y_true, label_smoothing, 2)
    if from_logits:
        loss = optax.sigmoid_focal_loss(y_pred, y_true, gamma=gamma)
    else:
        right = y_true * y_pred + (1.0 - y_true) * (1.0 - y_pred)
        loss = (1.0 - right) ** gamma * _binary_entropy(y_true, y_pred)
    if apply_class_balancing:
        loss = loss * (y_true * alpha + (1.0 - y_true) * (1.0 - alpha))
    return loss.mean(axis)


@final
class BinaryCrossentropy(FunctionLoss, fn=binary_crossentropy):
    """The cross-entropy of two classes; see `binary_crossentropy`.

    >>> float(BinaryCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """

    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "binary_crossentropy"
    dtype: DTypeLike | None = None


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
