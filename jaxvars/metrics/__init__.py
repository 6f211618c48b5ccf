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
`dtype` narrows the result only; shapes that merely broadcast are refused; ignored classes never
count.

>>> accuracy = Accuracy()
>>> accuracy.update_state([1, 2, 3, 4], [0, 2, 3, 4])
>>> float(accuracy.result())
0.75
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxvars.display.lookup import find, namespace
from jaxvars.losses import (
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    categorical_hinge,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from jaxvars.metrics.accuracies import (
    Accuracy,
    BinaryAccuracy,
    CategoricalAccuracy,
    SparseCategoricalAccuracy,
    SparseTopKCategoricalAccuracy,
    TopKCategoricalAccuracy,
    accuracy,
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)
from jaxvars.metrics.auc import AUC
from jaxvars.metrics.confusion import (
    FalseNegatives,
    FalsePositives,
    Precision,
    Recall,
    TrueNegatives,
    TruePositives,
)
from jaxvars.metrics.matrix import ConfusionMatrix, confusion_matrix
from jaxvars.metrics.mean import (
    BinaryCrossentropy,
    CategoricalCrossentropy,
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    Mean,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanMetricWrapper,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    RootMeanSquaredError,
    SparseCategoricalCrossentropy,
    SquaredHinge,
    Sum,
)
from jaxvars.metrics.metric import Metric
from jaxvars.metrics.scores import F1Score
from jaxvars.modules.module import BORDER

__all__ = [
    "AUC", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "CategoricalAccuracy",
    "CategoricalCrossentropy", "CategoricalHinge", "ConfusionMatrix", "CosineSimilarity", "F1Score",
    "FalseNegatives", "FalsePositives", "Hinge", "KLDivergence", "Mean", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanMetricWrapper", "MeanSquaredError",
    "MeanSquaredLogarithmicError", "Metric", "Poisson", "Precision", "Recall",
    "RootMeanSquaredError", "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy", "SquaredHinge", "Sum", "TopKCategoricalAccuracy",
    "TrueNegatives", "TruePositives", "accuracy", "binary_accuracy", "binary_crossentropy",
    "binary_focal_crossentropy", "categorical_accuracy", "categorical_crossentropy",
    "categorical_focal_crossentropy", "categorical_hinge", "confusion_matrix", "get", "hinge",
    "huber", "kl_divergence", "log_cosh", "mean_absolute_error", "mean_absolute_percentage_error",
    "mean_squared_error", "mean_squared_logarithmic_error", "poisson",
    "sparse_categorical_accuracy", "sparse_categorical_crossentropy",
    "sparse_top_k_categorical_accuracy", "squared_hinge", "top_k_categorical_accuracy",
]  # fmt: skip

_OTHERS = ("Metric", "MeanMetricWrapper")  # what no name finds
_BY_NAME: dict[str, Any] = {
    name: globals()[name] for name in __all__ if name not in _OTHERS and not name.islower()
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
    return find(identifier, Metric, "metric", _BY_NAME, {**_SNAKE, **_SHORT}, near=_SNAKE)


if not TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__, __dir__ = namespace(__name__, __all__)
