"""The losses of pictures, sequences and embeddings: a class for each function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

from jaxvars.losses.loss import MEAN, FunctionLoss, Reduction
from jaxvars.losses.structured import (
    Axis,
    circle,
    ctc,
    dice,
    tversky,
)

Value: TypeAlias = Any


@final
@dataclass(frozen=True)
class Dice(FunctionLoss):
    """One less the Dice coefficient of two masks.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        axis: what is summed over; all axes when None.
        dtype: of the result; see `Loss`.

    >>> float(Dice()([1.0, 1.0], [1.0, 1.0]))
    0.0
    """

    reduction: Reduction = MEAN
    name: str | None = "dice"
    axis: Axis = None
    dtype: Any = None
    fn = staticmethod(dice)


@final
@dataclass(frozen=True)
class Tversky(FunctionLoss):
    """One less the Tversky index of two masks.

    Args:
        alpha: the weight of what is in `y_true` alone.
        beta: the weight of what is in `y_pred` alone.
        reduction: see `Loss`.
        name: what errors call it.
        axis: what is summed over; all axes when None.
        dtype: of the result; see `Loss`.

    >>> float(Tversky()([1.0, 1.0], [1.0, 1.0]))
    0.0
    """

    alpha: float = 0.5
    beta: float = 0.5
    reduction: Reduction = MEAN
    name: str | None = "tversky"
    axis: Axis = None
    dtype: Any = None
    fn = staticmethod(tversky)


@final
@dataclass(frozen=True)
class CTC(FunctionLoss):
    """The loss of label sequences that are not aligned; see `ctc`.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> CTC()([[1, 2]], [[[0.0, 0.0, 0.0]] * 3]).shape
    ()
    """

    reduction: Reduction = MEAN
    name: str | None = "ctc"
    dtype: Any = None
    fn = staticmethod(ctc)


@final
@dataclass(frozen=True)
class Circle(FunctionLoss):
    """The circle loss of embeddings of length 1.

    A mean is that of the samples whose loss is not 0.

    Args:
        gamma: the scale.
        margin: how far classes are kept apart.
        remove_diagonal: whether an embedding is not compared with itself.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(Circle()([0, 0], [[1.0, 0.0], [1.0, 0.0]]))
    0.0
    """

    gamma: float = 80.0
    margin: float = 0.4
    remove_diagonal: bool = True
    reduction: Reduction = MEAN
    name: str | None = "circle"
    dtype: Any = None
    fn = staticmethod(circle)

    def _counted(self, y_true: Any, y_pred: Any) -> Value:
        return self.call(y_true, y_pred) > 0
