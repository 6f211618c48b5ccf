"""Losses of pictures, sequences and embeddings: Dice, Tversky, CTC, circle."""

from __future__ import annotations

from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars.errors import ShapeError
from jaxvars.losses.inputs import EPSILON, check_labels, elementwise, tensor, wide
from jaxvars.losses.loss import MEAN, FunctionLoss, PlainLoss, Reduction
from jaxvars.typing import Array, DTypeLike

Axis: TypeAlias = int | tuple[int, ...] | list[int] | None

_MASKS = {
    "y_true": "masks.",
    "y_pred": "probabilities, of the same shape.",
    "alpha": "the weight of what is in `y_true` alone.",
    "beta": "the weight of what is in `y_pred` alone.",
    "axis": "what is summed over; all axes when None.",
    "return": "An array without these axes.",
}


# ---------------------------------------------------------------- overlaps
@elementwise(_MASKS)
def dice(y_true: Any, y_pred: Any, axis: Axis = None) -> Array:
    """Return 1 less the Dice coefficient: `2 * sum(true * pred) / (sum(true) + sum(pred))`.

    >>> print(dice([1.0, 1.0, 0.0], [1.0, 0.0, 0.0]).round(4))
    0.3333
    """
    both = (y_true * y_pred).sum(axis)
    return 1.0 - 2.0 * both / (y_true.sum(axis) + y_pred.sum(axis) + EPSILON)


@elementwise(_MASKS)
def tversky(
    y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Axis = None
) -> Array:
    """Return 1 less the Tversky index, which is Dice's with two kinds of error weighed apart.

    Formula: `1 - both / (both + alpha * true_alone + beta * pred_alone)` of the sums `both` of
    `y_true * y_pred`, `true_alone` of `y_true * (1 - y_pred)` and `pred_alone` of `y_pred * (1 -
    y_true)`.

    Source: Salehi, Erdogmus and Gholipour, Tversky loss function for image segmentation using 3D
    fully convolutional deep networks, 2017 (https://arxiv.org/abs/1706.05721).

    >>> print(tversky([1.0, 1.0, 0.0], [1.0, 0.0, 0.0], alpha=1.0, beta=0.0).round(4))
    0.5
    """
    both = (y_true * y_pred).sum(axis)
    true_alone, pred_alone = (y_true * (1 - y_pred)).sum(axis), (y_pred * (1 - y_true)).sum(axis)
    return 1.0 - both / (both + alpha * true_alone + beta * pred_alone + EPSILON)


# ---------------------------------------------------------------- sequences
def ctc(y_true: Any, y_pred: Any) -> Array:
    """Return minus the logarithm of the probability of label sequences, however they are aligned.

    Formula: `-log(sum(p))` of the probabilities `p` of all paths, one class or blank for each time,
    that become the labels when repetitions are merged and blanks are left out.

    Source: Graves et al., Connectionist temporal classification: Labelling unsegmented sequence
    data with recurrent neural networks, 2006; computed by `optax.ctc_loss`.

    Args:
        y_true: labels, integers of shape [batch, length], with zeros after the end of each.
        y_pred: logits, of shape [batch, time, classes]; class 0 is the blank.

    Returns:
        An array of shape [batch]. Labels that are too long for the time have about 1e5.

    Raises:
        ShapeError: when there are other numbers of axes, or two sizes of the batch.
        IndexError: when a label is outside of the classes. In compiled code, where that is not
            known before, its loss is NaN.

    >>> print(ctc([[1, 2]], jnp.zeros((1, 2, 3)))[0].round(4))
    2.1972
    """
    labels, logits = tensor(y_true, "y_true of ctc"), tensor(y_pred, "y_pred of ctc")
    if labels.ndim != 2 or logits.ndim != 3 or len(labels) != len(logits):
        raise ShapeError(
            "ctc takes labels of shape [batch, length] and logits of shape [batch, time, classes], "
            f"but y_true has shape {labels.shape} and y_pred {logits.shape}."
        )
    check_labels(labels, logits.shape[2], "ctc")
    return _ctc(labels, logits)


@jax.jit
def _ctc(labels: Array, logits: Array) -> Array:
    import optax

    logits, labels = wide(logits), labels.astype(jnp.int32)
    lengths = (labels != 0).sum(-1, keepdims=True)
    paddings = (jnp.arange(labels.shape[1]) >= lengths).astype(logits.dtype)
    known = ((labels >= 0) & (labels < logits.shape[2])).all(-1)
    losses = optax.ctc_loss(logits, jnp.zeros(logits.shape[:2], logits.dtype), labels, paddings)
    return jnp.where(known, losses, jnp.nan)


# ---------------------------------------------------------------- embeddings
def circle(
    y_true: Any, y_pred: Any, ref_labels: Any = None, ref_embeddings: Any = None,
    remove_diagonal: bool = True, gamma: float = 80.0, margin: float = 0.4,
) -> Array:  # fmt: skip
    """Return the circle loss of embeddings: those of one class near, others far.

    Formula: `log(1 + sum(exp(near)) * sum(exp(far)))`. `near` is `-gamma * max(1 + margin - s, 0) *
    (s - 1 + margin)` of the similarities `s` to embeddings of the same class, and `far` is `gamma *
    max(s + margin, 0) * (s - margin)` of those to the others.

    Source: Sun et al., Circle loss: A unified perspective of pair similarity optimization, 2020
    (https://arxiv.org/abs/2002.10857).

    Args:
        y_true: integer labels, of shape [batch].
        y_pred: embeddings of length 1, of shape [batch, n].
        ref_labels: labels of what they are compared with; `y_true` when None.
        ref_embeddings: embeddings of it; `y_pred` when None.
        remove_diagonal: whether the i-th embedding is compared with no i-th one: where they are
            the same.
        gamma: the scale.
        margin: how far classes are kept apart.

    Returns:
        An array of shape [batch].

    Raises:
        ShapeError: when the shapes are others.

    >>> circle([0, 0], [[1.0, 0.0], [1.0, 0.0]]).tolist()
    [0.0, 0.0]
    """
    pred = tensor(y_pred, "y_pred of circle")
    true = _check_circle_labels(y_true, pred, "y_true")
    refs = pred if ref_embeddings is None else tensor(ref_embeddings, "ref_embeddings of circle")
    labels = true if ref_labels is None else _check_circle_labels(ref_labels, refs, "ref_labels")
    if labels.shape != refs.shape[:1] or refs.shape[1:] != pred.shape[1:]:
        raise ShapeError(
            f"circle was given {labels.shape[0]} labels for references of shape {refs.shape}, and "
            f"embeddings of shape {pred.shape}: each reference has a label and the same length."
        )
    return _circle(true, pred, labels, refs, bool(remove_diagonal), gamma, margin)


def _check_circle_labels(labels: Any, embeddings: Array, what: str) -> Array:
    array = tensor(labels, f"{what} of circle")
    if embeddings.ndim != 2 or array.size != embeddings.shape[0]:
        raise ShapeError(
            f"circle takes labels of shape [batch] and embeddings of shape [batch, n], but {what} "
            f"has shape {array.shape}, for embeddings of shape {embeddings.shape}."
        )
    return array.reshape(-1)


@jax.jit(static_argnames="apart")
def _circle(
    true: Array, pred: Array, labels: Array, refs: Array, apart: bool, gamma: Array, margin: Array
) -> Array:
    distance = jnp.maximum(1.0 - wide(pred) @ wide(refs).T, 0.0)
    same = true[:, None] == labels[None, :]
    positive = same & ~jnp.eye(*same.shape, dtype=bool) if apart else same
    near = -gamma * jnp.maximum(margin + distance, 0.0) * (margin - distance)
    far = gamma * jnp.maximum(1.0 + margin - distance, 0.0) * (1.0 - margin - distance)
    near, far = (jax.nn.logsumexp(x, 1, where=w) for x, w in ((near, positive), (far, ~same)))
    return jax.nn.softplus(near + far)


# ---------------------------------------------------------------- classes
@final
class Dice(FunctionLoss, fn=dice):
    """One less the Dice coefficient of two masks.

    >>> float(Dice()([1.0, 1.0], [1.0, 1.0]))
    0.0
    """

    reduction: Reduction = MEAN
    name: str | None = "dice"
    axis: Axis = None
    dtype: DTypeLike | None = None


@final
class Tversky(FunctionLoss, fn=tversky):
    """One less the Tversky index of two masks.

    >>> float(Tversky()([1.0, 1.0], [1.0, 1.0]))
    0.0
    """

    alpha: float = 0.5
    beta: float = 0.5
    reduction: Reduction = MEAN
    name: str | None = "tversky"
    axis: Axis = None
    dtype: DTypeLike | None = None


@final
class CTC(PlainLoss, fn=ctc):
    """The loss of label sequences that are not aligned; see `ctc`.

    >>> CTC()([[1, 2]], [[[0.0, 0.0, 0.0]] * 3]).shape
    ()
    """


@final
class Circle(
    FunctionLoss, fn=circle, remove_diagonal="whether an embedding is not compared with itself."
):
    """The circle loss of embeddings of length 1.

    A mean is that of the samples whose loss is not 0.

    >>> float(Circle()([0, 0], [[1.0, 0.0], [1.0, 0.0]]))
    0.0
    """

    gamma: float = 80.0
    margin: float = 0.4
    remove_diagonal: bool = True
    reduction: Reduction = MEAN
    name: str | None = "circle"
    dtype: DTypeLike | None = None

    def _find_counted(self, y_true: Any, y_pred: Any) -> Array:
        return self.call(y_true, y_pred) > 0
