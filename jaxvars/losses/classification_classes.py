"""The losses of predicted classes: a class for each function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

from jaxvars.losses.classification import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
    categorical_hinge,
    hinge,
    kl_divergence,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from jaxvars.losses.inputs import as_classes, tensor
from jaxvars.losses.loss import MEAN, FunctionLoss, Reduction

Value: TypeAlias = Any


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
        labels, logits = as_classes(tensor(y_true, "y_true")), tensor(y_pred, "y_pred")
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
