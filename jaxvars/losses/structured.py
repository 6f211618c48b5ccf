"""Losses of pictures and sequences: Dice, CTC."""

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
class CTC(PlainLoss, fn=ctc):
    """The loss of label sequences that are not aligned; see `ctc`.

    >>> CTC()([[1, 2]], [[[0.0, 0.0, 0.0]] * 3]).shape
    ()
    """
