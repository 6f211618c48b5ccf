"""Metrics of how labels and predictions go together: cosine similarity and correlations."""

from __future__ import annotations

from abc import ABC
from typing import Any, final

import jax.numpy as jnp

from jaxvars import losses
from jaxvars.losses.inputs import EPSILON, elementwise
from jaxvars.metrics.mean import MeanOfKnown
from jaxvars.typing import Array, DTypeLike

_ALONG = {
    "y_true": "what should come out.",
    "y_pred": "what came out, of the same shape.",
    "axis": "what the correlation is along.",
    "return": "An array without that axis.",
}


@elementwise(_ALONG)
def pearson_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Array:
    """Return the Pearson correlation of labels and predictions along an axis, from -1 to 1.

    Formula: `cov(y_true, y_pred) / (std(y_true) * std(y_pred))`.

    Returns:
        An array without that axis; NaN where nothing varies.

    >>> round(pearson_correlation([[0.0, 1.0, 2.0]], [[3.0, 2.0, 1.0]]).item(), 4)
    -1.0
    """

    def normal(y: Array) -> Array:
        y = y - y.mean(axis, keepdims=True)
        return y / y.std(axis, keepdims=True)

    return (normal(y_true) * normal(y_pred)).mean(axis)


@elementwise(_ALONG)
def concordance_correlation(y_true: Any, y_pred: Any, axis: int = -1) -> Array:
    """Return the concordance correlation of labels and predictions along an axis, from -1 to 1.

    Formula: `2 * cov(y_true, y_pred) / (var(y_true) + var(y_pred) + d ** 2)`, where `d` is the
    difference of the means.

    It is 1 only where they are equal, not merely on a line.

    Source: Lin, A concordance correlation coefficient to evaluate reproducibility, 1989.

    >>> round(concordance_correlation([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).item(), 4)
    0.5714
    """
    true, pred = y_true.mean(axis, keepdims=True), y_pred.mean(axis, keepdims=True)
    scale = y_true.var(axis) + y_pred.var(axis) + jnp.square(true - pred).squeeze(axis)
    return 2 * ((y_true - true) * (y_pred - pred)).mean(axis) / (scale + EPSILON)


_SAME_SAMPLES = "[[-1.0, 1.0]], [[-1.0, 1.0]]", 1.0


class _Along(MeanOfKnown, ABC):
    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, axis: int = -1
    ) -> None:
        super().__init__(name, dtype)
        self.axis = axis


@final
class CosineSimilarity(_Along, fn=losses.cosine_similarity):
    """The mean cosine of the angle between labels and predictions: 1 is the same direction.

    Formula: the mean of `sum(y_true * y_pred) / (norm(y_true) * norm(y_pred))` along the axis.

    >>> float(CosineSimilarity()([[0.0, 2.0]], [[0.0, 3.0]]))
    1.0
    """

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        return -super()._values(y_true, y_pred)


@final
class PearsonCorrelation(_Along, fn=pearson_correlation, example=_SAME_SAMPLES):
    """The mean of the Pearson correlations of labels and predictions, one for each sample."""


@final
class ConcordanceCorrelation(_Along, fn=concordance_correlation, example=_SAME_SAMPLES):
    """The mean of the concordance correlations of labels and predictions, one for each sample."""
