"""Losses of predictions that are numbers: functions with one value for each sample, and classes.

Rules this file keeps:
- the last axis is averaged over, or the one that `axis` names;
- the formulas are Keras's, by optax where it has them.
"""

from __future__ import annotations

from typing import Any, final

import jax.numpy as jnp

from jaxvars.losses.function_loss import FunctionLoss, PlainLoss
from jaxvars.losses.inputs import EPSILON
from jaxvars.losses.loss import MEAN, Reduction
from jaxvars.losses.running import elementwise
from jaxvars.typing import Array, DTypeLike

_NUMBERS = {
    "y_true": "what should come out, of shape [..., n].",
    "y_pred": "what came out, of the same shape.",
    "return": "An array of shape [...].",
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

    It is `0.5 * e ** 2` for an error `e` of up to `delta`, and `delta * (abs(e) - 0.5 * delta)`
    for a larger one.

    Args:
        y_true: what should come out, of shape [..., n].
        y_pred: what came out, of the same shape.
        delta: where one becomes the other.

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


# ---------------------------------------------------------------- classes
@final
class MeanSquaredError(PlainLoss, fn=mean_squared_error):
    """The mean squared error.

    >>> float(MeanSquaredError()([[0.0], [0.0]], [[1.0], [3.0]]))
    5.0
    """


@final
class MeanAbsoluteError(PlainLoss, fn=mean_absolute_error):
    """The mean absolute error.

    >>> float(MeanAbsoluteError()([[0.0], [0.0]], [[1.0], [3.0]]))
    2.0
    """


@final
class MeanAbsolutePercentageError(PlainLoss, fn=mean_absolute_percentage_error):
    """The mean of the errors in per cent of the labels.

    >>> float(MeanAbsolutePercentageError()([[2.0], [4.0]], [[1.0], [4.0]]))
    25.0
    """


@final
class MeanSquaredLogarithmicError(PlainLoss, fn=mean_squared_logarithmic_error):
    """The mean squared error of the logarithms of one more.

    >>> float(MeanSquaredLogarithmicError()([[1.0], [1.0]], [[1.0], [1.0]]))
    0.0
    """


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


@final
class LogCosh(PlainLoss, fn=log_cosh):
    """The logarithm of the hyperbolic cosine of the errors.

    >>> float(LogCosh()([[1.0]], [[1.0]]))
    0.0
    """


@final
class Poisson(PlainLoss, fn=poisson):
    """What the Poisson distribution of rate `y_pred` says of counts `y_true`.

    >>> print(Poisson()([[1.0, 0.0]], [[1.0, 1.0]]).round(4))
    1.0
    """
