"""The metrics that are the mean of a loss: one class a row.

The losses are in `jaxvars/losses.py`; here each is averaged over all samples so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, final

import jax.numpy as jnp

from jaxvars import losses
from jaxvars.losses.inputs import as_classes, leading, tensor
from jaxvars.losses.regression import cosine
from jaxvars.metrics.correlation import concordance_correlation, pearson_correlation
from jaxvars.metrics.mean import MeanOfFunction
from jaxvars.metrics.metric import unseen

Value: TypeAlias = Any


class MeanOfLoss(MeanOfFunction):
    """A metric that is the mean of one of the functions, with options by name."""

    _fn: ClassVar[Callable[..., Any]]
    _options: ClassVar[tuple[str, ...]] = ()

    def _values(self, y_true: Any, y_pred: Any) -> Value:
        options = {name: getattr(self, name) for name in self._options}
        return type(self)._fn(y_true, y_pred, **options)


# ---------------------------------------------------------------- numbers


@final
class MeanSquaredError(MeanOfLoss):
    """The mean squared error.

    Args:
        name: what it is called; "mean_squared_error" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(MeanSquaredError()([[0.0], [0.0]], [[1.0], [3.0]]))
    5.0
    """

    _fn = staticmethod(losses.mean_squared_error)


@final
class MeanAbsoluteError(MeanOfLoss):
    """The mean absolute error.

    Args:
        name: what it is called; "mean_absolute_error" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(MeanAbsoluteError()([[0.0], [0.0]], [[1.0], [3.0]]))
    2.0
    """

    _fn = staticmethod(losses.mean_absolute_error)


@final
class MeanAbsolutePercentageError(MeanOfLoss):
    """The mean of the errors in per cent of the labels.

    Args:
        name: what it is called; "mean_absolute_percentage_error" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(MeanAbsolutePercentageError()([[2.0], [4.0]], [[1.0], [4.0]]))
    25.0
    """

    _fn = staticmethod(losses.mean_absolute_percentage_error)


@final
class MeanSquaredLogarithmicError(MeanOfLoss):
    """The mean squared error of the logarithms of one more.

    Args:
        name: what it is called; "mean_squared_logarithmic_error" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(MeanSquaredLogarithmicError()([[1.0]], [[1.0]]))
    0.0
    """

    _fn = staticmethod(losses.mean_squared_logarithmic_error)


@final
class LogCoshError(MeanOfLoss):
    """The mean of the logarithm of the hyperbolic cosine of the errors.

    Args:
        name: what it is called; "logcosh" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(LogCoshError()([[1.0]], [[1.0]]))
    0.0
    """

    _fn = staticmethod(losses.log_cosh)

    def __init__(self, name: str | None = "logcosh", dtype: Any = None) -> None:
        super().__init__(name, dtype)


@final
class Poisson(MeanOfLoss):
    """What the Poisson distribution of rate `y_pred` says of counts `y_true`.

    Args:
        name: what it is called; "poisson" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(Poisson()([[0.0]], [[2.0]]))
    2.0
    """

    _fn = staticmethod(losses.poisson)


@final
class CosineSimilarity(MeanOfLoss):
    """The mean cosine of the angle between labels and predictions: 1 is the same direction.

    Args:
        name: what it is called; "cosine_similarity" when None.
        dtype: of the result, a float; float32 when None.
        axis: the axis of the vectors.

    >>> float(CosineSimilarity()([[0.0, 2.0]], [[0.0, 3.0]]))
    1.0
    """

    _fn = staticmethod(cosine)
    _options = ("axis",)

    def __init__(self, name: str | None = None, dtype: Any = None, axis: int = -1) -> None:
        super().__init__(name, dtype)
        self.axis = axis


@final
class PearsonCorrelation(MeanOfLoss):
    """The mean of the Pearson correlations of labels and predictions, one for each sample.

    Args:
        name: what it is called; "pearson_correlation" when None.
        dtype: of the result, a float; float32 when None.
        axis: what the correlation is along.

    >>> round(PearsonCorrelation()([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).item(), 4)
    1.0
    """

    _fn = staticmethod(pearson_correlation)
    _options = ("axis",)

    def __init__(self, name: str | None = None, dtype: Any = None, axis: int = -1) -> None:
        super().__init__(name, dtype)
        self.axis = axis


@final
class ConcordanceCorrelation(MeanOfLoss):
    """The mean of the concordance correlations of labels and predictions, one for each sample.

    Args:
        name: what it is called; "concordance_correlation" when None.
        dtype: of the result, a float; float32 when None.
        axis: what the correlation is along.

    >>> round(ConcordanceCorrelation()([[0.0, 1.0, 2.0]], [[0.0, 1.0, 2.0]]).item(), 4)
    1.0
    """

    _fn = staticmethod(concordance_correlation)
    _options = ("axis",)

    def __init__(self, name: str | None = None, dtype: Any = None, axis: int = -1) -> None:
        super().__init__(name, dtype)
        self.axis = axis


# ---------------------------------------------------------------- classes


@final
class BinaryCrossentropy(MeanOfLoss):
    """The mean cross-entropy of two classes.

    Args:
        name: what it is called; "binary_crossentropy" when None.
        dtype: of the result, a float; float32 when None.
        from_logits: whether predictions are logits.
        label_smoothing: how far labels are moved to 0.5, from 0 to 1.

    >>> float(BinaryCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """

    _fn = staticmethod(losses.binary_crossentropy)
    _options = ("from_logits", "label_smoothing")

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(name, dtype)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing


@final
class CategoricalCrossentropy(MeanOfLoss):
    """The mean cross-entropy of one-hot labels.

    Args:
        name: what it is called; "categorical_crossentropy" when None.
        dtype: of the result, a float; float32 when None.
        from_logits: whether predictions are logits.
        label_smoothing: how far labels are moved to being all the same, from 0 to 1.
        axis: the axis of the classes.

    >>> float(CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[0.0, 200.0]]))
    200.0
    """

    _fn = staticmethod(losses.categorical_crossentropy)
    _options = ("from_logits", "label_smoothing", "axis")

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: int = -1,
    ) -> None:
        super().__init__(name, dtype)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis


@final
class SparseCategoricalCrossentropy(MeanOfLoss):
    """The mean cross-entropy of integer labels.

    Args:
        name: what it is called; "sparse_categorical_crossentropy" when None.
        dtype: of the result, a float; float32 when None.
        from_logits: whether predictions are logits.
        ignore_class: a label that does not count, like -1 or 255 for "not known".
        axis: the axis of the classes.

    Differs from TensorFlow:
        Ignored samples never count; TensorFlow counts them as 0 unless there are weights.

    >>> float(
    ...     SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)(
    ...         [0, -1], [[0.0, 200.0], [0.0, 0.0]]
    ...     )
    ... )
    200.0
    """

    _fn = staticmethod(losses.sparse_categorical_crossentropy)
    _options = ("from_logits", "ignore_class", "axis")

    def __init__(
        self,
        name: str | None = None,
        dtype: Any = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: int = -1,
    ) -> None:
        super().__init__(name, dtype)
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.axis = axis

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and predictions into account.

        Args:
            y_true: integer labels.
            y_pred: the predictions.
            sample_weight: a number, or weights along the first axes.

        Raises:
            ShapeError: when the shapes do not go together.
        """
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
class KLDivergence(MeanOfLoss):
    """The mean Kullback-Leibler divergence of two distributions.

    Args:
        name: what it is called; "kl_divergence" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]]))
    0.0
    """

    _fn = staticmethod(losses.kl_divergence)


@final
class Hinge(MeanOfLoss):
    """The mean hinge loss of labels -1 and 1, or 0 and 1.

    Args:
        name: what it is called; "hinge" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(Hinge()([[0, 1]], [[0.5, 0.5]]))
    1.0
    """

    _fn = staticmethod(losses.hinge)


@final
class SquaredHinge(MeanOfLoss):
    """The mean squared hinge loss of labels -1 and 1, or 0 and 1.

    Args:
        name: what it is called; "squared_hinge" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(SquaredHinge()([[0, 1]], [[0.5, 0.5]]))
    1.25
    """

    _fn = staticmethod(losses.squared_hinge)


@final
class CategoricalHinge(MeanOfLoss):
    """The mean hinge loss of one-hot labels.

    Args:
        name: what it is called; "categorical_hinge" when None.
        dtype: of the result, a float; float32 when None.

    >>> float(CategoricalHinge()([[0.0, 1.0]], [[0.75, 0.5]]))
    1.25
    """

    _fn = staticmethod(losses.categorical_hinge)
