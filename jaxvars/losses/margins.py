"""Losses of distributions and of margins: functions with one value for each sample, and classes."""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp

from jaxvars.losses.function_loss import PlainLoss
from jaxvars.losses.inputs import EPSILON
from jaxvars.losses.running import elementwise
from jaxvars.typing import Array

_SIGNED = {
    "y_true": "-1 or 1; 0 and 1 are taken as these when there are no others.",
    "y_pred": "scores, of the same shape.",
    "return": "An array without the last axis.",
}


@elementwise()
def kl_divergence(y_true: Any, y_pred: Any) -> Array:
    """Return the sum of `y_true * log(y_true / y_pred)` along the last axis.

    Args:
        y_true: probabilities, of shape [..., n].
        y_pred: probabilities, of the same shape.

    Returns:
        An array of shape [...].

    >>> round(kl_divergence([[0.5, 0.5]], [[0.25, 0.75]]).item(), 4)
    0.1438
    """
    import optax

    true, pred = (jnp.clip(y, EPSILON, 1.0) for y in (y_true, y_pred))
    return optax.kl_divergence(jnp.log(pred), true)


# ---------------------------------------------------------------- margins
@elementwise(_SIGNED)
def hinge(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `max(0, 1 - y_true * y_pred)` along the last axis.

    >>> hinge([[0, 1]], [[0.5, 0.5]]).tolist()
    [1.0]
    """
    return _margins(y_true, y_pred).mean(-1)


@elementwise(_SIGNED)
def squared_hinge(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `max(0, 1 - y_true * y_pred) ** 2` along the last axis.

    >>> squared_hinge([[0, 1]], [[0.5, 0.5]]).tolist()
    [1.25]
    """
    return jnp.square(_margins(y_true, y_pred)).mean(-1)


def _margins(y_true: Array, y_pred: Array) -> Array:
    is_binary = ((y_true == 0) | (y_true == 1)).all()
    return _positive(1.0 - y_pred * jnp.where(is_binary, 2.0 * y_true - 1.0, y_true))


def _positive(x: Array) -> Array:
    """Return the larger of a value and 0, with all of the slope at 0, as in Keras; NaN for NaN."""
    return jnp.where(x < 0, 0.0, x)


@elementwise()
def categorical_hinge(y_true: Any, y_pred: Any) -> Array:
    """Return `max(0, 1 + the best wrong score - the right one)`.

    Args:
        y_true: one-hot labels, of shape [..., n].
        y_pred: scores, of the same shape.

    Returns:
        An array of shape [...].

    >>> categorical_hinge([[0.0, 1.0]], [[0.75, 0.5]]).tolist()
    [1.25]
    """
    right = (y_true * y_pred).sum(-1)
    wrong = ((1.0 - y_true) * y_pred).max(-1)
    return _positive(wrong - right + 1.0)


# ---------------------------------------------------------------- classes
@final
class KLDivergence(PlainLoss, fn=kl_divergence):
    """The Kullback-Leibler divergence of two distributions.

    >>> float(KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]]))
    0.0
    """


@final
class Hinge(PlainLoss, fn=hinge):
    """The hinge loss of labels -1 and 1, or 0 and 1.

    >>> float(Hinge()([[0, 1]], [[0.5, 0.5]]))
    1.0
    """


@final
class SquaredHinge(PlainLoss, fn=squared_hinge):
    """The squared hinge loss of labels -1 and 1, or 0 and 1.

    >>> float(SquaredHinge()([[0, 1]], [[0.5, 0.5]]))
    1.25
    """


@final
class CategoricalHinge(PlainLoss, fn=categorical_hinge):
    """The hinge loss of one-hot labels.

    >>> float(CategoricalHinge()([[0.0, 1.0]], [[0.75, 0.5]]))
    1.25
    """
