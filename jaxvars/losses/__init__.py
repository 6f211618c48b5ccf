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
from typing import TYPE_CHECKING, Any

from jaxvars.display.lookup import find, namespace
from jaxvars.losses.classification import (
    BinaryCrossentropy,
    BinaryFocalCrossentropy,
    CategoricalCrossentropy,
    CategoricalFocalCrossentropy,
    SparseCategoricalCrossentropy,
    binary_crossentropy,
    binary_focal_crossentropy,
    categorical_crossentropy,
    categorical_focal_crossentropy,
    sparse_categorical_crossentropy,
)
from jaxvars.losses.loss import Loss
from jaxvars.losses.regression import (
    CategoricalHinge,
    CosineSimilarity,
    Hinge,
    Huber,
    KLDivergence,
    LogCosh,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SquaredHinge,
    categorical_hinge,
    cosine_similarity,
    hinge,
    huber,
    kl_divergence,
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
    poisson,
    squared_hinge,
)
from jaxvars.typing import Array

__all__ = [
    "BinaryCrossentropy", "BinaryFocalCrossentropy", "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy", "CategoricalHinge", "CosineSimilarity", "Hinge", "Huber",
    "KLDivergence", "LogCosh", "Loss", "MeanAbsoluteError", "MeanAbsolutePercentageError",
    "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson", "SparseCategoricalCrossentropy",
    "SquaredHinge", "binary_crossentropy", "binary_focal_crossentropy", "categorical_crossentropy",
    "categorical_focal_crossentropy", "categorical_hinge", "cosine_similarity", "get", "hinge",
    "huber", "kl_divergence", "log_cosh", "mean_absolute_error", "mean_absolute_percentage_error",
    "mean_squared_error", "mean_squared_logarithmic_error", "poisson",
    "sparse_categorical_crossentropy", "squared_hinge",
]  # fmt: skip

_BY_NAME: dict[str, Any] = {
    name: globals()[name] for name in __all__ if name not in ("Loss", "get")
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


def get(identifier: Any) -> Callable[..., Array] | None:
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
    return find(identifier, Loss, "loss", _BY_NAME, _SHORT)


if not TYPE_CHECKING:  # a checker would take any name for an attribute
    __getattr__, __dir__ = namespace(__name__, __all__)
