"""The losses of predictions that are numbers: a class for each function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from jaxvars.losses.loss import MEAN, FunctionLoss, Reduction
from jaxvars.losses.regression import (
    cosine_similarity,
    huber,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
)


@final
@dataclass(frozen=True)
class MeanSquaredError(FunctionLoss):
    """The mean squared error.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(MeanSquaredError()([[0.0], [0.0]], [[1.0], [3.0]]))
    5.0
    """

    reduction: Reduction = MEAN
    name: str | None = "mean_squared_error"
    dtype: Any = None
    fn = staticmethod(mean_squared_error)


@final
@dataclass(frozen=True)
class MeanAbsoluteError(FunctionLoss):
    """The mean absolute error.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(MeanAbsoluteError()([[0.0], [0.0]], [[1.0], [3.0]]))
    2.0
    """

    reduction: Reduction = MEAN
    name: str | None = "mean_absolute_error"
    dtype: Any = None
    fn = staticmethod(mean_absolute_error)


@final
@dataclass(frozen=True)
class MeanAbsolutePercentageError(FunctionLoss):
    """The mean of the errors in per cent of the labels.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(MeanAbsolutePercentageError()([[2.0], [4.0]], [[1.0], [4.0]]))
    25.0
    """

    reduction: Reduction = MEAN
    name: str | None = "mean_absolute_percentage_error"
    dtype: Any = None
    fn = staticmethod(mean_absolute_percentage_error)


@final
@dataclass(frozen=True)
class MeanSquaredLogarithmicError(FunctionLoss):
    """The mean squared error of the logarithms of one more.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(MeanSquaredLogarithmicError()([[1.0], [1.0]], [[1.0], [1.0]]))
    0.0
    """

    reduction: Reduction = MEAN
    name: str | None = "mean_squared_logarithmic_error"
    dtype: Any = None
    fn = staticmethod(mean_squared_logarithmic_error)


@final
@dataclass(frozen=True)
class CosineSimilarity(FunctionLoss):
    """Minus the cosine of the angle between labels and predictions: -1 is the same direction.

    Args:
        axis: the axis of the vectors.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(CosineSimilarity()([[0.0, 2.0]], [[0.0, 3.0]]))
    -1.0
    """

    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "cosine_similarity"
    dtype: Any = None
    fn = staticmethod(cosine_similarity)


@final
@dataclass(frozen=True)
class Huber(FunctionLoss):
    """The Huber loss: squared for errors of up to `delta`, absolute beyond.

    Args:
        delta: where one becomes the other.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(Huber()([[0.0, 0.0]], [[1.0, 3.0]]))
    1.5
    """

    delta: float = 1.0
    reduction: Reduction = MEAN
    name: str | None = "huber_loss"
    dtype: Any = None
    fn = staticmethod(huber)


@final
@dataclass(frozen=True)
class LogCosh(FunctionLoss):
    """The logarithm of the hyperbolic cosine of the errors.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(LogCosh()([[1.0]], [[1.0]]))
    0.0
    """

    reduction: Reduction = MEAN
    name: str | None = "log_cosh"
    dtype: Any = None
    fn = staticmethod(log_cosh)


@final
@dataclass(frozen=True)
class Poisson(FunctionLoss):
    """What the Poisson distribution of rate `y_pred` says of counts `y_true`.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> print(Poisson()([[1.0, 0.0]], [[1.0, 1.0]]).round(4))
    1.0
    """

    reduction: Reduction = MEAN
    name: str | None = "poisson"
    dtype: Any = None
    fn = staticmethod(poisson)
