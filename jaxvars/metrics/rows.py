"""The metrics that are the mean of a loss, or of a correlation, over all samples so far."""

from __future__ import annotations

from abc import ABC
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars import losses
from jaxvars.losses.inputs import (
    EPSILON,
    aligned,
    as_classes,
    check_same_shape,
    leading,
    tensor,
    wide,
)
from jaxvars.losses.regression import make_plain
from jaxvars.losses.running import elementwise
from jaxvars.metrics.mean import MeanOfFunction, MeanOfKnown
from jaxvars.metrics.metric import unseen
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

    It is 1 only where they are equal, not merely on a line: L. Lin, Biometrics 45 (1989).

    >>> round(concordance_correlation([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).item(), 4)
    0.5714
    """
    true, pred = y_true.mean(axis, keepdims=True), y_pred.mean(axis, keepdims=True)
    spread = y_true.var(axis) + y_pred.var(axis) + jnp.square(true - pred).squeeze(axis)
    return 2 * ((y_true - true) * (y_pred - pred)).mean(axis) / (spread + EPSILON)


# ---------------------------------------------------------------- means of losses
def _plain(name: str) -> type[MeanOfKnown]:
    return make_plain(name, MeanOfKnown, __name__)


MeanSquaredError = _plain("MeanSquaredError")
MeanAbsoluteError = _plain("MeanAbsoluteError")
MeanAbsolutePercentageError = _plain("MeanAbsolutePercentageError")
MeanSquaredLogarithmicError = _plain("MeanSquaredLogarithmicError")
Poisson = _plain("Poisson")
KLDivergence = _plain("KLDivergence")
Hinge = _plain("Hinge")
SquaredHinge = _plain("SquaredHinge")
CategoricalHinge = _plain("CategoricalHinge")


@final
class LogCoshError(MeanOfKnown, fn=losses.log_cosh, name='what it is called; "logcosh" when None.'):
    """The mean of the logarithm of the hyperbolic cosine of the errors.

    >>> float(LogCoshError()([[1.0]], [[1.0]]))
    0.0
    """

    def __init__(self, name: str | None = "logcosh", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)


class _Along(MeanOfKnown, ABC):
    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, axis: int = -1
    ) -> None:
        super().__init__(name, dtype)
        self.axis = axis


@final
class CosineSimilarity(_Along, fn=losses.cosine_similarity):
    """The mean cosine of the angle between labels and predictions: 1 is the same direction.

    >>> float(CosineSimilarity()([[0.0, 2.0]], [[0.0, 3.0]]))
    1.0
    """

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        return -super()._values(y_true, y_pred)


@final
class PearsonCorrelation(_Along, fn=pearson_correlation):
    """The mean of the Pearson correlations of labels and predictions, one for each sample.

    >>> round(PearsonCorrelation()([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).item(), 4)
    1.0
    """


@final
class ConcordanceCorrelation(_Along, fn=concordance_correlation):
    """The mean of the concordance correlations of labels and predictions, one for each sample.

    >>> round(ConcordanceCorrelation()([[0.0, 1.0, 2.0]], [[0.0, 1.0, 2.0]]).item(), 4)
    1.0
    """


@final
class RootMeanSquaredError(MeanOfFunction):
    """The root of the mean squared error of everything so far.

    >>> float(RootMeanSquaredError()([[0.0], [0.0]], [[1.0], [7.0]]))
    5.0
    """

    def _values(self, y_true: Any, y_pred: Any) -> Array:
        true, pred = tensor(y_true, "y_true"), tensor(y_pred, "y_pred")
        check_same_shape(true, pred, self.name)
        return _squares(true, pred)

    def result(self) -> Array:
        """Return the root; 0 when there were no samples."""
        return self._rounded(jnp.sqrt(self._mean()))


@jax.jit
def _squares(true: Array, pred: Array) -> Array:
    pred = wide(pred)
    return jnp.square(jnp.subtract(*aligned(true.astype(pred.dtype), pred)))


@final
class BinaryCrossentropy(MeanOfKnown, fn=losses.binary_crossentropy):
    """The mean cross-entropy of two classes.

    >>> float(BinaryCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(name, dtype)
        self.from_logits, self.label_smoothing = from_logits, label_smoothing


@final
class CategoricalCrossentropy(MeanOfKnown, fn=losses.categorical_crossentropy):
    """The mean cross-entropy of one-hot labels.

    >>> float(CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[0.0, 200.0]]))
    200.0
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, from_logits: bool = False,
        label_smoothing: float = 0.0, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(name, dtype)
        self.from_logits, self.label_smoothing, self.axis = from_logits, label_smoothing, axis


@final
class SparseCategoricalCrossentropy(
    MeanOfKnown,
    fn=losses.sparse_categorical_crossentropy,
    ignore_class='a label that does not count, like -1 or 255 for "not known".',
):
    """The mean cross-entropy of integer labels.

    Differs from TensorFlow:
        Ignored samples never count; TensorFlow counts them as 0 unless there are weights.

    >>> float(
    ...     SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)(
    ...         [0, -1], [[0.0, 200.0], [0.0, 0.0]]
    ...     )
    ... )
    200.0
    """

    def __init__(
        self, name: str | None = None, dtype: DTypeLike | None = None, from_logits: bool = False,
        ignore_class: int | None = None, axis: int = -1,
    ) -> None:  # fmt: skip
        super().__init__(name, dtype)
        self.from_logits, self.ignore_class, self.axis = from_logits, ignore_class, axis

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        values = unseen(lambda: self._values(y_true, y_pred))
        if self.ignore_class is None:
            self._take(values, sample_weight)
            return
        labels = as_classes(tensor(y_true, "y_true"))
        counted = labels.reshape(values.shape) != self.ignore_class
        if sample_weight is not None:
            weight = tensor(sample_weight, "sample_weight")
            counted = counted * leading(weight, values.shape, self.name)
        self._take(values, counted.astype(jnp.float32))
