"""Losses: functions of labels and predictions, and classes that make one number of them.

    loss_fn = jv.losses.SparseCategoricalCrossentropy(from_logits=True)

    @jv.compile
    def step(x, y):
        with jv.GradientTape() as tape:
            loss = loss_fn(y, model(x))
        ...

Names, arguments and formulas are Keras's; the labels come first. The functions, like
`sparse_categorical_crossentropy`, return a value for each sample; the classes of the same names
weigh and reduce them: see `Loss`. `get` finds one by name. They are plain JAX, by optax where it
has them, so they work under any transform. optax is imported when the first one is called.

Differs from TensorFlow: shapes that merely broadcast, like (8, 3) and (3,), are refused; a
`sample_weight` of shape [batch] always goes with the samples; the mean of no samples is 0, not NaN;
16-bit floats are computed with in float32, and so is the result, unless `dtype` says otherwise.

>>> loss_fn = MeanSquaredError()
>>> float(loss_fn([[1.0], [2.0]], [[1.0], [4.0]]))
2.0
>>> float(loss_fn([[1.0], [2.0]], [[1.0], [4.0]], sample_weight=[1.0, 0.5]))
1.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from jaxvars._display import did_you_mean
from jaxvars._loss import MEAN, FunctionLoss, Reduction
from jaxvars._loss import Loss as Loss
from jaxvars._loss_classification import binary_crossentropy as binary_crossentropy
from jaxvars._loss_classification import binary_focal_crossentropy as binary_focal_crossentropy
from jaxvars._loss_classification import categorical_crossentropy as categorical_crossentropy
from jaxvars._loss_classification import (
    categorical_focal_crossentropy as categorical_focal_crossentropy,
)
from jaxvars._loss_classification import (
    categorical_generalized_cross_entropy as categorical_generalized_cross_entropy,
)
from jaxvars._loss_classification import categorical_hinge as categorical_hinge
from jaxvars._loss_classification import hinge as hinge
from jaxvars._loss_classification import kl_divergence as kl_divergence
from jaxvars._loss_classification import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from jaxvars._loss_classification import squared_hinge as squared_hinge
from jaxvars._loss_inputs import tensor
from jaxvars._loss_regression import cosine_similarity as cosine_similarity
from jaxvars._loss_regression import huber as huber
from jaxvars._loss_regression import log_cosh as log_cosh
from jaxvars._loss_regression import mean_absolute_error as mean_absolute_error
from jaxvars._loss_regression import (
    mean_absolute_percentage_error as mean_absolute_percentage_error,
)
from jaxvars._loss_regression import mean_squared_error as mean_squared_error
from jaxvars._loss_regression import (
    mean_squared_logarithmic_error as mean_squared_logarithmic_error,
)
from jaxvars._loss_regression import poisson as poisson
from jaxvars._loss_structured import Axis
from jaxvars._loss_structured import circle as circle
from jaxvars._loss_structured import ctc as ctc
from jaxvars._loss_structured import dice as dice
from jaxvars._loss_structured import tversky as tversky

Value: TypeAlias = Any


# ---------------------------------------------------------------- numbers
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


# ---------------------------------------------------------------- classes


@final
@dataclass(frozen=True)
class BinaryCrossentropy(FunctionLoss):
    """The cross-entropy of two classes; see `binary_crossentropy`.

    Args:
        from_logits: whether `y_pred` are logits.
        label_smoothing: how far labels are moved to 0.5, from 0 to 1.
        axis: what the mean of a sample is taken along.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(BinaryCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """

    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "binary_crossentropy"
    dtype: Any = None
    fn = staticmethod(binary_crossentropy)


@final
@dataclass(frozen=True)
class BinaryFocalCrossentropy(FunctionLoss):
    """The cross-entropy of two classes in which what is right counts little.

    Args:
        apply_class_balancing: weigh class 1 by `alpha` and class 0 by `1 - alpha`.
        alpha: the weight of class 1.
        gamma: the exponent; 0 is the plain cross-entropy.
        from_logits: whether `y_pred` are logits.
        label_smoothing: how far labels are moved to 0.5, from 0 to 1.
        axis: what the mean of a sample is taken along.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(BinaryFocalCrossentropy(from_logits=True)([[0.0, 1.0]], [[-200.0, 200.0]]))
    0.0
    """

    apply_class_balancing: bool = False
    alpha: float = 0.25
    gamma: float = 2.0
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "binary_focal_crossentropy"
    dtype: Any = None
    fn = staticmethod(binary_focal_crossentropy)


@final
@dataclass(frozen=True)
class CategoricalCrossentropy(FunctionLoss):
    """The cross-entropy of one-hot labels.

    Args:
        from_logits: whether `y_pred` are logits.
        label_smoothing: how far labels are moved to being all the same, from 0 to 1.
        axis: the axis of the classes.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[0.0, 200.0]]))
    200.0
    """

    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "categorical_crossentropy"
    dtype: Any = None
    fn = staticmethod(categorical_crossentropy)


@final
@dataclass(frozen=True)
class CategoricalFocalCrossentropy(FunctionLoss):
    """The cross-entropy of one-hot labels in which what is right counts little.

    Args:
        alpha: the weight, or a tuple of one for each class.
        gamma: the exponent; 0 is the plain cross-entropy.
        from_logits: whether `y_pred` are logits.
        label_smoothing: how far labels are moved to being all the same, from 0 to 1.
        axis: the axis of the classes.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> CategoricalFocalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).shape
    ()
    """

    alpha: Any = 0.25
    gamma: float = 2.0
    from_logits: bool = False
    label_smoothing: float = 0.0
    axis: int = -1
    reduction: Reduction = MEAN
    name: str | None = "categorical_focal_crossentropy"
    dtype: Any = None
    fn = staticmethod(categorical_focal_crossentropy)


@final
@dataclass(frozen=True)
class SparseCategoricalCrossentropy(FunctionLoss):
    """The cross-entropy of integer labels.

    A mean is that of the samples that are not ignored.

    Args:
        from_logits: whether `y_pred` are logits.
        ignore_class: a label that does not count, like -1 or 255 for "not known".
        reduction: see `Loss`.
        axis: the axis of the classes.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(
    ...     SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)(
    ...         [1, -1], [[0.0, 200.0], [0.0, 0.0]]
    ...     )
    ... )
    0.0
    """

    from_logits: bool = False
    ignore_class: int | None = None
    reduction: Reduction = MEAN
    axis: int = -1
    name: str | None = "sparse_categorical_crossentropy"
    dtype: Any = None
    fn = staticmethod(sparse_categorical_crossentropy)

    def _counted(self, y_true: Any, y_pred: Any) -> Value | None:
        if self.ignore_class is None:
            return None
        labels, logits = tensor(y_true, "y_true"), tensor(y_pred, "y_pred")
        counted = labels != self.ignore_class
        return counted.squeeze(self.axis) if counted.ndim == logits.ndim else counted


@final
@dataclass(frozen=True)
class CategoricalGeneralizedCrossEntropy(FunctionLoss):
    """A loss between cross-entropy and absolute error, which bears wrong labels.

    Args:
        q: between 0 and 1; towards 0 it is the cross-entropy.
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(CategoricalGeneralizedCrossEntropy()([1], [[0.75, 0.25]]))
    1.0
    """

    q: float = 0.5
    reduction: Reduction = MEAN
    name: str | None = "categorical_generalized_cross_entropy"
    dtype: Any = None
    fn = staticmethod(categorical_generalized_cross_entropy)


@final
@dataclass(frozen=True)
class KLDivergence(FunctionLoss):
    """The Kullback-Leibler divergence of two distributions.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(KLDivergence()([[0.5, 0.5]], [[0.5, 0.5]]))
    0.0
    """

    reduction: Reduction = MEAN
    name: str | None = "kl_divergence"
    dtype: Any = None
    fn = staticmethod(kl_divergence)


@final
@dataclass(frozen=True)
class Hinge(FunctionLoss):
    """The hinge loss of labels -1 and 1, or 0 and 1.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(Hinge()([[0, 1]], [[0.5, 0.5]]))
    1.0
    """

    reduction: Reduction = MEAN
    name: str | None = "hinge"
    dtype: Any = None
    fn = staticmethod(hinge)


@final
@dataclass(frozen=True)
class SquaredHinge(FunctionLoss):
    """The squared hinge loss of labels -1 and 1, or 0 and 1.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(SquaredHinge()([[0, 1]], [[0.5, 0.5]]))
    1.25
    """

    reduction: Reduction = MEAN
    name: str | None = "squared_hinge"
    dtype: Any = None
    fn = staticmethod(squared_hinge)


@final
@dataclass(frozen=True)
class CategoricalHinge(FunctionLoss):
    """The hinge loss of one-hot labels.

    Args:
        reduction: see `Loss`.
        name: what errors call it.
        dtype: of the result; see `Loss`.

    >>> float(CategoricalHinge()([[0.0, 1.0]], [[0.75, 0.5]]))
    1.25
    """

    reduction: Reduction = MEAN
    name: str | None = "categorical_hinge"
    dtype: Any = None
    fn = staticmethod(categorical_hinge)


# ---------------------------------------------------------------- pictures, sequences, embeddings


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


# ---------------------------------------------------------------- by name
_BY_NAME: dict[str, Any] = {
    name: thing
    for name, thing in list(globals().items())
    if thing is not FunctionLoss and thing is not Loss
    if (isinstance(thing, type) and issubclass(thing, Loss))
    or getattr(thing, "__module__", "").startswith("jaxvars._loss_")
    if name not in ("tensor", "Axis")
}
_SHORT: dict[str, Any] = {
    **dict.fromkeys(("bce", "BCE"), binary_crossentropy),
    **dict.fromkeys(("kld", "KLD", "kullback_leibler_divergence"), kl_divergence),
    **dict.fromkeys(("mae", "MAE"), mean_absolute_error),
    **dict.fromkeys(("mse", "MSE"), mean_squared_error),
    **dict.fromkeys(("mape", "MAPE"), mean_absolute_percentage_error),
    **dict.fromkeys(("msle", "MSLE"), mean_squared_logarithmic_error),
    "logcosh": log_cosh,
}


def get(identifier: Any) -> Callable[..., Value] | None:
    """Return a loss by name: a function for a function's name, a loss for a class's.

    Args:
        identifier: a name like "mse", "mean_squared_error" or "MeanSquaredError"; a loss, its
            class, or a function of labels and predictions; a dict of "class_name" and "config";
            or None for None.

    Raises:
        ValueError: when there is none of that name, with the nearest.
        TypeError: when the identifier is something else.

    >>> get("mse") is mean_squared_error
    True
    >>> get({"class_name": "Huber", "config": {"delta": 2.0}}).delta
    2.0
    """
    if isinstance(identifier, dict) and "class_name" in identifier:
        return _named(identifier["class_name"])(**identifier.get("config", {}))
    thing = _named(identifier) if isinstance(identifier, str) else identifier
    if isinstance(thing, type) and issubclass(thing, Loss):
        return thing()
    if thing is None or callable(thing):
        return thing
    raise TypeError(
        f'{identifier!r} is no loss: give a name like "mse", or a function of y_true and y_pred.'
    )


def _named(name: str) -> Any:
    found = {**_BY_NAME, **_SHORT}.get(name)
    if found is None:
        hint = did_you_mean(name, _BY_NAME) or f" There are: {', '.join(sorted(_BY_NAME))}."
        raise ValueError(f"There is no loss {name!r}.{hint}")
    return found
