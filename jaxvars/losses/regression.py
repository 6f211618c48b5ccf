"""Losses of numbers, distributions and margins: functions with one value for each sample, classes.

The formulas are Keras's, by optax where it has them.
"""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp

from jaxvars.losses.inputs import EPSILON, elementwise
from jaxvars.losses.loss import MEAN, FunctionLoss, PlainLoss, Reduction
from jaxvars.typing import Array, DTypeLike

_NUMBERS = {
    "y_true": "what should come out, of shape [..., n].",
    "y_pred": "what came out, of the same shape.",
    "delta": "where one becomes the other.",
    "return": "An array of shape [...].",
}
_SIGNED = {
    "y_true": "-1 or 1; 0 and 1 are taken as these when there are no others.",
    "y_pred": "scores, of the same shape.",
    "return": "An array without the last axis.",
}


# ---------------------------------------------------------------- functions
@elementwise(_NUMBERS)
def mean_squared_error(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `(y_true - y_pred) ** 2` along the last axis.

    Raises:
        ShapeError: when the shapes differ.

    >>> mean_squared_error([[1.0, 2.0]], [[1.0, 4.0]]).tolist()
    [2.0]
    """
    import optax

    return optax.squared_error(y_pred, y_true).mean(-1)


@elementwise(_NUMBERS)
def mean_absolute_error(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `abs(y_true - y_pred)` along the last axis.

    >>> mean_absolute_error([[1.0, 2.0]], [[1.0, 4.0]]).tolist()
    [1.0]
    """
    return _size(y_true - y_pred).mean(-1)


def _size(x: Array) -> Array:
    """Return the absolute value, whose derivative at 0 is 0."""
    return x * jnp.sign(x)


@elementwise(_NUMBERS)
def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Array:
    """Return 100 times the mean of `abs((y_true - y_pred) / y_true)` along the last axis.

    Args:
        y_true: what should come out, of shape [..., n]; 1e-7 stands for zero in the divisor.
        y_pred: what came out, of the same shape.

    >>> mean_absolute_percentage_error([[2.0, 4.0]], [[1.0, 4.0]]).tolist()
    [25.0]
    """
    part = (y_true - y_pred) / jnp.maximum(jnp.abs(y_true), EPSILON)
    return 100.0 * _size(part).mean(-1)


@elementwise(_NUMBERS)
def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `(log(1 + y_true) - log(1 + y_pred)) ** 2` along the last axis.

    Args:
        y_true: what should come out, of shape [..., n]; negative numbers count as zero.
        y_pred: what came out, of the same shape; negative numbers count as zero.

    >>> round(mean_squared_logarithmic_error([[1.0]], [[3.0]]).item(), 4)
    0.4805
    """
    true, pred = (jnp.log1p(jnp.maximum(y, EPSILON)) for y in (y_true, y_pred))
    return jnp.square(pred - true).mean(-1)


@elementwise()
def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Array:
    """Return minus the cosine of the angle between labels and predictions, from -1 to 1.

    Formula: `-sum(y_true * y_pred) / (norm(y_true) * norm(y_pred))` along the axis.

    -1 is the same direction: a loss gets smaller as things get better. (The metric
    `jv.metrics.CosineSimilarity` has no minus.)

    Args:
        y_true: vectors along an axis.
        y_pred: vectors, of the same shape.
        axis: the axis of the vectors.

    Returns:
        An array without that axis.

    >>> cosine_similarity([[0.0, 2.0], [1.0, 0.0]], [[0.0, 3.0], [0.0, 1.0]]).tolist()
    [-1.0, -0.0]
    """
    import optax

    return -optax.cosine_similarity(y_pred, y_true, epsilon=EPSILON**2, axis=axis)


@elementwise(_NUMBERS)
def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Array:
    """Return the mean Huber loss along the last axis: squared near zero, absolute beyond.

    Formula: the mean of `0.5 * e ** 2` for an error `e` of up to `delta`, and of
    `delta * (abs(e) - 0.5 * delta)` for a larger one.

    Source: Huber, Robust estimation of a location parameter, 1964.

    >>> huber([[0.0, 0.0]], [[1.0, 3.0]]).tolist()
    [1.5]
    """
    import optax

    return optax.huber_loss(y_pred, y_true, delta=delta).mean(-1)


@elementwise(_NUMBERS)
def log_cosh(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `log(cosh(y_pred - y_true))` along the last axis.

    About half the square of a small error, and the size of a large one less `log(2)`.

    >>> round(log_cosh([[0.0, 0.0]], [[0.0, 1.0]]).item(), 4)
    0.2169
    """
    import optax

    return optax.log_cosh(y_pred, y_true).mean(-1)


@elementwise(_NUMBERS)
def poisson(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `y_pred - y_true * log(y_pred)` along the last axis.

    Args:
        y_true: counts, of shape [..., n].
        y_pred: the rates predicted, of the same shape, not negative.

    >>> print(poisson([[1.0, 0.0]], [[1.0, 1.0]]).round(4))
    [1.]
    """
    return (y_pred - y_true * jnp.log(y_pred + EPSILON)).mean(-1)


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

    true, pred = (jnp.maximum(jnp.where(y > 1.0, 1.0, y), EPSILON) for y in (y_true, y_pred))
    return optax.kl_divergence(jnp.log(pred), true)


# ---------------------------------------------------------------- margins
@elementwise(_SIGNED)
def hinge(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `max(0, 1 - y_true * y_pred)` along the last axis.

    >>> hinge([[0, 1]], [[0.5, 0.5]]).tolist()
    [1.0]
    """
    return _find_margins(y_true, y_pred).mean(-1)


@elementwise(_SIGNED)
def squared_hinge(y_true: Any, y_pred: Any) -> Array:
    """Return the mean of `max(0, 1 - y_true * y_pred) ** 2` along the last axis.

    >>> squared_hinge([[0, 1]], [[0.5, 0.5]]).tolist()
    [1.25]
    """
    return jnp.square(_find_margins(y_true, y_pred)).mean(-1)


def _find_margins(y_true: Array, y_pred: Array) -> Array:
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
class MeanSquaredError(
    PlainLoss, fn=mean_squared_error, example=("[[0.0], [0.0]], [[1.0], [3.0]]", 5.0)
):
    """The mean squared error."""


@final
class MeanAbsoluteError(
    PlainLoss, fn=mean_absolute_error, example=("[[0.0], [0.0]], [[1.0], [3.0]]", 2.0)
):
    """The mean absolute error."""


@final
class MeanAbsolutePercentageError(
    PlainLoss, fn=mean_absolute_percentage_error, example=("[[2.0], [4.0]], [[1.0], [4.0]]", 25.0)
):
    """The mean of the errors in per cent of the labels."""


@final
class MeanSquaredLogarithmicError(
    PlainLoss, fn=mean_squared_logarithmic_error, example=("[[1.0], [1.0]], [[1.0], [1.0]]", 0.0)
):
    """The mean squared error of the logarithms of one more."""


@final
class LogCosh(PlainLoss, fn=log_cosh, example=("[[1.0]], [[1.0]]", 0.0)):
    """The mean of the logarithm of the hyperbolic cosine of the errors."""


@final
class Poisson(PlainLoss, fn=poisson, example=("[[0.0]], [[2.0]]", 2.0)):
    """What the Poisson distribution of rate `y_pred` says of counts `y_true`."""


@final
class KLDivergence(PlainLoss, fn=kl_divergence, example=("[[0.5, 0.5]], [[0.5, 0.5]]", 0.0)):
    """The mean Kullback-Leibler divergence of two distributions."""


@final
class Hinge(PlainLoss, fn=hinge, example=("[[0, 1]], [[0.5, 0.5]]", 1.0)):
    """The mean hinge loss of labels -1 and 1, or 0 and 1."""


@final
class SquaredHinge(PlainLoss, fn=squared_hinge, example=("[[0, 1]], [[0.5, 0.5]]", 1.25)):
    """The mean squared hinge loss of labels -1 and 1, or 0 and 1."""


@final
class CategoricalHinge(
    PlainLoss, fn=categorical_hinge, example=("[[0.0, 1.0]], [[0.75, 0.5]]", 1.25)
):
    """The mean hinge loss of one-hot labels."""


@final
class CosineSimilarity(FunctionLoss, fn=cosine_similarity):
    """Minus the cosine of the angle between labels and predictions: -1 is the same direction.

    >>> float(CosineSimilarity()([[0.0, 2.0]], [[0.0, 3.0]]))
    -1.0
    """

    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "cosine_similarity"
    dtype: DTypeLike | None = None


@final
class Huber(FunctionLoss, fn=huber):
    """The Huber loss: squared for errors of up to `delta`, absolute beyond.

    >>> float(Huber()([[0.0, 0.0]], [[1.0, 3.0]]))
    1.5
    """

    delta: float = 1.0
    reduction: Reduction = MEAN
    name: str | None = "huber_loss"
    dtype: DTypeLike | None = None
