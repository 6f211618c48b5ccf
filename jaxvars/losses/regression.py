"""Losses of predictions that are numbers: the functions, one value for each sample.

Rules this file keeps:
- the last axis is averaged over, or the one that `axis` names;
- the formulas are Keras's, by optax where it has them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp

from jaxvars.losses.inputs import EPSILON, elementwise

Value: TypeAlias = Any


def mean_squared_error(y_true: Any, y_pred: Any) -> Value:
    """Return the mean of `(y_true - y_pred) ** 2` along the last axis.

    Args:
        y_true: what should come out, of shape [..., n].
        y_pred: what came out, of the same shape.

    Returns:
        An array of shape [...].

    Raises:
        ShapeError: when the shapes differ.

    >>> mean_squared_error([[1.0, 2.0]], [[1.0, 4.0]]).tolist()
    [2.0]
    """
    return elementwise(_mean_squared_error, y_true, y_pred)


def _mean_squared_error(y_true: Value, y_pred: Value) -> Value:
    import optax

    return optax.squared_error(y_pred, y_true).mean(-1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Value:
    """Return the mean of `abs(y_true - y_pred)` along the last axis.

    Args:
        y_true: what should come out, of shape [..., n].
        y_pred: what came out, of the same shape.

    Returns:
        An array of shape [...].

    >>> mean_absolute_error([[1.0, 2.0]], [[1.0, 4.0]]).tolist()
    [1.0]
    """
    return elementwise(_mean_absolute_error, y_true, y_pred)


def _mean_absolute_error(y_true: Value, y_pred: Value) -> Value:
    return _size(y_true - y_pred).mean(-1)


def _size(x: Value) -> Value:
    """Return the absolute value, whose derivative at 0 is 0."""
    return x * jnp.sign(x)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Value:
    """Return 100 times the mean of `abs((y_true - y_pred) / y_true)` along the last axis.

    Args:
        y_true: what should come out, of shape [..., n]; 1e-7 stands for zero in the divisor.
        y_pred: what came out, of the same shape.

    Returns:
        An array of shape [...].

    >>> mean_absolute_percentage_error([[2.0, 4.0]], [[1.0, 4.0]]).tolist()
    [25.0]
    """
    return elementwise(_mean_absolute_percentage_error, y_true, y_pred)


def _mean_absolute_percentage_error(y_true: Value, y_pred: Value) -> Value:
    part = (y_true - y_pred) / jnp.maximum(jnp.abs(y_true), EPSILON)
    return 100.0 * _size(part).mean(-1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Value:
    """Return the mean of `(log(1 + y_true) - log(1 + y_pred)) ** 2` along the last axis.

    Args:
        y_true: what should come out, of shape [..., n]; negative numbers count as zero.
        y_pred: what came out, of the same shape; negative numbers count as zero.

    Returns:
        An array of shape [...].

    >>> round(mean_squared_logarithmic_error([[1.0]], [[3.0]]).item(), 4)
    0.4805
    """
    return elementwise(_mean_squared_logarithmic_error, y_true, y_pred)


def _mean_squared_logarithmic_error(y_true: Value, y_pred: Value) -> Value:
    true, pred = (jnp.log1p(jnp.maximum(y, EPSILON)) for y in (y_true, y_pred))
    return jnp.square(pred - true).mean(-1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Value:
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
    return -cosine(y_true, y_pred, axis)


def cosine(y_true: Any, y_pred: Any, axis: int = -1) -> Value:
    """Return the cosine of the angle between labels and predictions."""
    return elementwise(_cosine_similarity, y_true, y_pred, {"axis": axis})


def _cosine_similarity(y_true: Value, y_pred: Value, axis: int) -> Value:
    import optax

    return optax.cosine_similarity(y_pred, y_true, epsilon=EPSILON**2, axis=axis)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Value:
    """Return the mean Huber loss along the last axis: squared near zero, absolute beyond.

    It is `0.5 * e ** 2` for an error `e` of up to `delta`, and `delta * (abs(e) - 0.5 * delta)`
    for a larger one.

    Args:
        y_true: what should come out, of shape [..., n].
        y_pred: what came out, of the same shape.
        delta: where one becomes the other.

    Returns:
        An array of shape [...].

    >>> huber([[0.0, 0.0]], [[1.0, 3.0]]).tolist()
    [1.5]
    """
    return elementwise(_huber, y_true, y_pred, delta=delta)


def _huber(y_true: Value, y_pred: Value, delta: Value) -> Value:
    import optax

    return optax.huber_loss(y_pred, y_true, delta=delta).mean(-1)


def log_cosh(y_true: Any, y_pred: Any) -> Value:
    """Return the mean of `log(cosh(y_pred - y_true))` along the last axis.

    About half the square of a small error, and the size of a large one less `log(2)`.

    Args:
        y_true: what should come out, of shape [..., n].
        y_pred: what came out, of the same shape.

    Returns:
        An array of shape [...].

    >>> round(log_cosh([[0.0, 0.0]], [[0.0, 1.0]]).item(), 4)
    0.2169
    """
    return elementwise(_log_cosh, y_true, y_pred)


def _log_cosh(y_true: Value, y_pred: Value) -> Value:
    import optax

    return optax.log_cosh(y_pred, y_true).mean(-1)


def poisson(y_true: Any, y_pred: Any) -> Value:
    """Return the mean of `y_pred - y_true * log(y_pred)` along the last axis.

    Args:
        y_true: counts, of shape [..., n].
        y_pred: the rates predicted, of the same shape, not negative.

    Returns:
        An array of shape [...].

    >>> print(poisson([[1.0, 0.0]], [[1.0, 1.0]]).round(4))
    [1.]
    """
    return elementwise(_poisson, y_true, y_pred)


def _poisson(y_true: Value, y_pred: Value) -> Value:
    return (y_pred - y_true * jnp.log(y_pred + EPSILON)).mean(-1)
