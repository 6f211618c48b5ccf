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

from jaxvars._metric import Metric as Metric
from jaxvars._metrics_accuracy import Accuracy as Accuracy
from jaxvars._metrics_accuracy import BinaryAccuracy as BinaryAccuracy
from jaxvars._metrics_accuracy import CategoricalAccuracy as CategoricalAccuracy
from jaxvars._metrics_accuracy import SparseCategoricalAccuracy as SparseCategoricalAccuracy
from jaxvars._metrics_accuracy import SparseTopKCategoricalAccuracy as SparseTopKCategoricalAccuracy
from jaxvars._metrics_accuracy import TopKCategoricalAccuracy as TopKCategoricalAccuracy
from jaxvars._metrics_accuracy import accuracy as accuracy
from jaxvars._metrics_accuracy import binary_accuracy as binary_accuracy
from jaxvars._metrics_accuracy import categorical_accuracy as categorical_accuracy
from jaxvars._metrics_accuracy import sparse_categorical_accuracy as sparse_categorical_accuracy
from jaxvars._metrics_accuracy import (
    sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
)
from jaxvars._metrics_accuracy import top_k_categorical_accuracy as top_k_categorical_accuracy
from jaxvars._metrics_auc import AUC as AUC
from jaxvars._metrics_confusion import FalseNegatives as FalseNegatives
from jaxvars._metrics_confusion import FalsePositives as FalsePositives
from jaxvars._metrics_confusion import Precision as Precision
from jaxvars._metrics_confusion import PrecisionAtRecall as PrecisionAtRecall
from jaxvars._metrics_confusion import Recall as Recall
from jaxvars._metrics_confusion import RecallAtPrecision as RecallAtPrecision
from jaxvars._metrics_confusion import SensitivityAtSpecificity as SensitivityAtSpecificity
from jaxvars._metrics_confusion import SpecificityAtSensitivity as SpecificityAtSensitivity
from jaxvars._metrics_confusion import TrueNegatives as TrueNegatives
from jaxvars._metrics_confusion import TruePositives as TruePositives
from jaxvars._metrics_correlation import concordance_correlation as concordance_correlation
from jaxvars._metrics_correlation import pearson_correlation as pearson_correlation
from jaxvars._metrics_iou import BinaryIoU as BinaryIoU
from jaxvars._metrics_iou import ConfusionMatrix as ConfusionMatrix
from jaxvars._metrics_iou import IoU as IoU
from jaxvars._metrics_iou import MeanIoU as MeanIoU
from jaxvars._metrics_iou import OneHotIoU as OneHotIoU
from jaxvars._metrics_iou import OneHotMeanIoU as OneHotMeanIoU
from jaxvars._metrics_iou import confusion_matrix as confusion_matrix
from jaxvars._metrics_mean import Mean as Mean
from jaxvars._metrics_mean import MeanMetricWrapper as MeanMetricWrapper
from jaxvars._metrics_mean import Sum as Sum
from jaxvars._metrics_rows import BinaryCrossentropy as BinaryCrossentropy
from jaxvars._metrics_rows import CategoricalCrossentropy as CategoricalCrossentropy
from jaxvars._metrics_rows import CategoricalHinge as CategoricalHinge
from jaxvars._metrics_rows import ConcordanceCorrelation as ConcordanceCorrelation
from jaxvars._metrics_rows import CosineSimilarity as CosineSimilarity
from jaxvars._metrics_rows import Hinge as Hinge
from jaxvars._metrics_rows import KLDivergence as KLDivergence
from jaxvars._metrics_rows import LogCoshError as LogCoshError
from jaxvars._metrics_rows import MeanAbsoluteError as MeanAbsoluteError
from jaxvars._metrics_rows import MeanAbsolutePercentageError as MeanAbsolutePercentageError
from jaxvars._metrics_rows import MeanSquaredError as MeanSquaredError
from jaxvars._metrics_rows import MeanSquaredLogarithmicError as MeanSquaredLogarithmicError
from jaxvars._metrics_rows import PearsonCorrelation as PearsonCorrelation
from jaxvars._metrics_rows import Poisson as Poisson
from jaxvars._metrics_rows import SparseCategoricalCrossentropy as SparseCategoricalCrossentropy
from jaxvars._metrics_rows import SquaredHinge as SquaredHinge
from jaxvars._metrics_scores import F1Score as F1Score
from jaxvars._metrics_scores import FBetaScore as FBetaScore
from jaxvars._metrics_scores import R2Score as R2Score
from jaxvars._metrics_scores import RootMeanSquaredError as RootMeanSquaredError
from jaxvars.core.module import _BORDER
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

Value: TypeAlias = Any

_BY_NAME: dict[str, Any] = {
    name: thing
    for name, thing in list(globals().items())
    if isinstance(thing, type) and issubclass(thing, Metric)
    if thing not in (Metric, MeanMetricWrapper)
}
_SNAKE: dict[str, Any] = {_BORDER.sub("_", name).lower(): cls for name, cls in _BY_NAME.items()}
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
