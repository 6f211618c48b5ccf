"""Metrics: Modules that sum up everything seen so far, in a number or an array.

    accuracy = jv.metrics.SparseCategoricalAccuracy()
    mean_loss = jv.metrics.Mean("loss")

    @jv.compile
    def test_step(x, y):
        logits = model(x)
        accuracy.update_state(y, logits)
        mean_loss.update_state(loss_fn(y, logits))

    for x, y in batches:
        test_step(x, y)
    print(accuracy.result(), mean_loss.result())
    accuracy.reset_state()

Names, arguments and formulas are Keras's; the labels come first. `metric(y_true, y_pred)` updates
and returns the result of everything so far; `merge_state` adds what others have seen. `get` finds
one by name. A metric's state is Variables, so it goes through compiled functions, loops, States and
checkpoints like any; a dict or list of metrics is found by walking, too.

Differs from TensorFlow: sums and counts are kept in two floats each, and stay exact above 2**24,
where float32 stands still: within a batch, too, however long it is, with weights or without. A
`dtype` narrows the result only; shapes that merely broadcast are refused; weights of IoU count as
they are; ignored classes never count.

>>> accuracy = Accuracy()
>>> accuracy.update_state([1, 2, 3, 4], [0, 2, 3, 4])
>>> float(accuracy.result())
0.75
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from jaxvars.core.module import BORDER
from jaxvars.display.repr import did_you_mean
from jaxvars.losses import binary_crossentropy as binary_crossentropy
from jaxvars.losses import binary_focal_crossentropy as binary_focal_crossentropy
from jaxvars.losses import categorical_crossentropy as categorical_crossentropy
from jaxvars.losses import categorical_focal_crossentropy as categorical_focal_crossentropy
from jaxvars.losses import categorical_hinge as categorical_hinge
from jaxvars.losses import hinge as hinge
from jaxvars.losses import huber as huber
from jaxvars.losses import kl_divergence as kl_divergence
from jaxvars.losses import log_cosh as log_cosh
from jaxvars.losses import mean_absolute_error as mean_absolute_error
from jaxvars.losses import mean_absolute_percentage_error as mean_absolute_percentage_error
from jaxvars.losses import mean_squared_error as mean_squared_error
from jaxvars.losses import mean_squared_logarithmic_error as mean_squared_logarithmic_error
from jaxvars.losses import poisson as poisson
from jaxvars.losses import sparse_categorical_crossentropy as sparse_categorical_crossentropy
from jaxvars.losses import squared_hinge as squared_hinge
from jaxvars.metrics.accuracies import Accuracy as Accuracy
from jaxvars.metrics.accuracies import BinaryAccuracy as BinaryAccuracy
from jaxvars.metrics.accuracies import CategoricalAccuracy as CategoricalAccuracy
from jaxvars.metrics.accuracies import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from jaxvars.metrics.accuracies import (
    SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy,
)
from jaxvars.metrics.accuracies import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from jaxvars.metrics.accuracies import accuracy as accuracy
from jaxvars.metrics.accuracies import binary_accuracy as binary_accuracy
from jaxvars.metrics.accuracies import categorical_accuracy as categorical_accuracy
from jaxvars.metrics.accuracies import sparse_categorical_accuracy as sparse_categorical_accuracy
from jaxvars.metrics.accuracies import (
    sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
)
from jaxvars.metrics.accuracies import top_k_categorical_accuracy as top_k_categorical_accuracy
from jaxvars.metrics.auc import AUC as AUC
from jaxvars.metrics.confusion import FalseNegatives as FalseNegatives
from jaxvars.metrics.confusion import FalsePositives as FalsePositives
from jaxvars.metrics.confusion import Precision as Precision
from jaxvars.metrics.confusion import PrecisionAtRecall as PrecisionAtRecall
from jaxvars.metrics.confusion import Recall as Recall
from jaxvars.metrics.confusion import RecallAtPrecision as RecallAtPrecision
from jaxvars.metrics.confusion import SensitivityAtSpecificity as SensitivityAtSpecificity
from jaxvars.metrics.confusion import SpecificityAtSensitivity as SpecificityAtSensitivity
from jaxvars.metrics.confusion import TrueNegatives as TrueNegatives
from jaxvars.metrics.confusion import TruePositives as TruePositives
from jaxvars.metrics.correlation import concordance_correlation as concordance_correlation
from jaxvars.metrics.correlation import pearson_correlation as pearson_correlation
from jaxvars.metrics.iou import BinaryIoU as BinaryIoU
from jaxvars.metrics.iou import ConfusionMatrix as ConfusionMatrix
from jaxvars.metrics.iou import IoU as IoU
from jaxvars.metrics.iou import MeanIoU as MeanIoU
from jaxvars.metrics.iou import OneHotIoU as OneHotIoU
from jaxvars.metrics.iou import OneHotMeanIoU as OneHotMeanIoU
from jaxvars.metrics.iou import confusion_matrix as confusion_matrix
from jaxvars.metrics.mean import Mean as Mean
from jaxvars.metrics.mean import MeanMetricWrapper as MeanMetricWrapper
from jaxvars.metrics.mean import Sum as Sum
from jaxvars.metrics.metric import Metric as Metric
from jaxvars.metrics.rows import BinaryCrossentropy as BinaryCrossentropy
from jaxvars.metrics.rows import CategoricalCrossentropy as CategoricalCrossentropy
from jaxvars.metrics.rows import CategoricalHinge as CategoricalHinge
from jaxvars.metrics.rows import ConcordanceCorrelation as ConcordanceCorrelation
from jaxvars.metrics.rows import CosineSimilarity as CosineSimilarity
from jaxvars.metrics.rows import Hinge as Hinge
from jaxvars.metrics.rows import KLDivergence as KLDivergence
from jaxvars.metrics.rows import LogCoshError as LogCoshError
from jaxvars.metrics.rows import MeanAbsoluteError as MeanAbsoluteError
from jaxvars.metrics.rows import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from jaxvars.metrics.rows import MeanSquaredError as MeanSquaredError
from jaxvars.metrics.rows import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from jaxvars.metrics.rows import PearsonCorrelation as PearsonCorrelation
from jaxvars.metrics.rows import Poisson as Poisson
from jaxvars.metrics.rows import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from jaxvars.metrics.rows import SquaredHinge as SquaredHinge
from jaxvars.metrics.scores import F1Score as F1Score
from jaxvars.metrics.scores import FBetaScore as FBetaScore
from jaxvars.metrics.scores import R2Score as R2Score
from jaxvars.metrics.scores import RootMeanSquaredError as RootMeanSquaredError

Value: TypeAlias = Any

_BY_NAME: dict[str, Any] = {
    name: thing
    for name, thing in list(globals().items())
    if isinstance(thing, type) and issubclass(thing, Metric)
    if thing not in (Metric, MeanMetricWrapper)
}
_SNAKE: dict[str, Any] = {BORDER.sub("_", name).lower(): cls for name, cls in _BY_NAME.items()}
_SHORT: dict[str, Any] = {
    **dict.fromkeys(("bce", "BCE"), BinaryCrossentropy),
    **dict.fromkeys(("mse", "MSE"), MeanSquaredError),
    **dict.fromkeys(("mae", "MAE"), MeanAbsoluteError),
    **dict.fromkeys(("mape", "MAPE"), MeanAbsolutePercentageError),
    **dict.fromkeys(("msle", "MSLE"), MeanSquaredLogarithmicError),
    **dict.fromkeys(("kld", "KLD"), KLDivergence),
    "acc": Accuracy,
}


def get(identifier: Any) -> Any:
    """Return a metric by name.

    Args:
        identifier: a name like "mse", "mean_squared_error" or "MeanSquaredError"; a metric, its
            class, or a function of labels and predictions; a dict of "class_name" and "config";
            or None for None.

    Raises:
        ValueError: when there is none of that name, with the nearest.
        TypeError: when the identifier is something else.

    >>> get("binary_accuracy").name, get("AUC").name
    ('binary_accuracy', 'auc')
    >>> get({"class_name": "TopKCategoricalAccuracy", "config": {"k": 3}}).k
    3
    """
    if isinstance(identifier, dict) and "class_name" in identifier:
        return _named(identifier["class_name"])(**identifier.get("config", {}))
    thing = _named(identifier) if isinstance(identifier, str) else identifier
    if isinstance(thing, type) and issubclass(thing, Metric):
        return thing()
    if thing is None or callable(thing):
        return thing
    raise TypeError(
        f'{identifier!r} is no metric: give a name like "mse", or a function of y_true and y_pred.'
    )


def _named(name: str) -> Callable[..., Metric]:
    found = {**_BY_NAME, **_SNAKE, **_SHORT}.get(name)
    if found is None:
        names = [*_BY_NAME, *_SNAKE]
        hint = did_you_mean(name, names) or f" There are: {', '.join(sorted(_BY_NAME))}."
        raise ValueError(f"There is no metric {name!r}.{hint}")
    return found
