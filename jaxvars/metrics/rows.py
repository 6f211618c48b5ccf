"""The metrics that are the mean of a loss, over all samples so far: one class a row."""

from __future__ import annotations

from abc import ABC
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars import losses
from jaxvars.losses.inputs import aligned, as_classes, check_same_shape, leading, tensor, wide
from jaxvars.metrics.correlation import concordance_correlation, pearson_correlation
from jaxvars.metrics.mean import MeanOfFunction, MeanOfKnown
from jaxvars.metrics.metric import unseen
from jaxvars.typing import Array, DTypeLike


# ---------------------------------------------------------------- numbers
@final
class MeanSquaredError(MeanOfKnown, fn=losses.mean_squared_error):
    """The mean squared error.

    >>> float(MeanSquaredError()([[0.0], [0.0]], [[1.0], [3.0]]))
    5.0
    """


@final
class MeanAbsoluteError(MeanOfKnown, fn=losses.mean_absolute_error):
    """The mean absolute error.

    >>> float(MeanAbsoluteError()([[0.0], [0.0]], [[1.0], [3.0]]))
    2.0
    """


@final
class MeanAbsolutePercentageError(MeanOfKnown, fn=losses.mean_absolute_percentage_error):
    """The mean of the errors in per cent of the labels.

    >>> float(MeanAbsolutePercentageError()([[2.0], [4.0]], [[1.0], [4.0]]))
    25.0
    """


@final
class MeanSquaredLogarithmicError(MeanOfKnown, fn=losses.mean_squared_logarithmic_error):
    """The mean squared error of the logarithms of one more.

    >>> float(MeanSquaredLogarithmicError()([[1.0]], [[1.0]]))
    0.0
    """


@final
class LogCoshError(MeanOfKnown, fn=losses.log_cosh, name='what it is called; "logcosh" when None.'):
    """The mean of the logarithm of the hyperbolic cosine of the errors.

    >>> float(LogCoshError()([[1.0]], [[1.0]]))
    0.0
    """

    def __init__(self, name: str | None = "logcosh", dtype: DTypeLike | None = None) -> None:
        super().__init__(name, dtype)


@final
class Poisson(MeanOfKnown, fn=losses.poisson):
    """What the Poisson distribution of rate `y_pred` says of counts `y_true`.

    >>> float(Poisson()([[0.0]], [[2.0]]))
    2.0
    """


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


# ---------------------------------------------------------------- the root
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


# ---------------------------------------------------------------- classes
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


@final
class KLDivergence(MeanOfKnown, fn=losses.kl_divergence):
    """The mean Kullback-Leibler divergence of two distributions.

    >>> float(KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]]))
    0.0
    """


@final
class Hinge(MeanOfKnown, fn=losses.hinge):
    """The mean hinge loss of labels -1 and 1, or 0 and 1.

    >>> float(Hinge()([[0, 1]], [[0.5, 0.5]]))
    1.0
    """


@final
class SquaredHinge(MeanOfKnown, fn=losses.squared_hinge):
    """The mean squared hinge loss of labels -1 and 1, or 0 and 1.

    >>> float(SquaredHinge()([[0, 1]], [[0.5, 0.5]]))
    1.25
    """


@final
class CategoricalHinge(MeanOfKnown, fn=losses.categorical_hinge):
    """The mean hinge loss of one-hot labels.

    >>> float(CategoricalHinge()([[0.0, 1.0]], [[0.75, 0.5]]))
    1.25
    """
