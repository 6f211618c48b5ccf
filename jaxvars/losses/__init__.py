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
from typing import Any, TypeAlias

from jaxvars.display.repr import did_you_mean
from jaxvars.losses.classification import binary_crossentropy as binary_crossentropy
from jaxvars.losses.classification import binary_focal_crossentropy as binary_focal_crossentropy
from jaxvars.losses.classification import categorical_crossentropy as categorical_crossentropy
from jaxvars.losses.classification import (
    categorical_focal_crossentropy as categorical_focal_crossentropy,
)
from jaxvars.losses.classification import (
    categorical_generalized_cross_entropy as categorical_generalized_cross_entropy,
)
from jaxvars.losses.classification import categorical_hinge as categorical_hinge
from jaxvars.losses.classification import hinge as hinge
from jaxvars.losses.classification import kl_divergence as kl_divergence
from jaxvars.losses.classification import (
    sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from jaxvars.losses.classification import squared_hinge as squared_hinge
from jaxvars.losses.classification_classes import BinaryCrossentropy as BinaryCrossentropy
from jaxvars.losses.classification_classes import BinaryFocalCrossentropy as BinaryFocalCrossentropy
from jaxvars.losses.classification_classes import CategoricalCrossentropy as CategoricalCrossentropy
from jaxvars.losses.classification_classes import (
    CategoricalFocalCrossentropy as CategoricalFocalCrossentropy,
)
from jaxvars.losses.classification_classes import (
    CategoricalGeneralizedCrossEntropy as CategoricalGeneralizedCrossEntropy,
)
from jaxvars.losses.classification_classes import CategoricalHinge as CategoricalHinge
from jaxvars.losses.classification_classes import Hinge as Hinge
from jaxvars.losses.classification_classes import KLDivergence as KLDivergence
from jaxvars.losses.classification_classes import (
    SparseCategoricalCrossentropy as SparseCategoricalCrossentropy,
)
from jaxvars.losses.classification_classes import SquaredHinge as SquaredHinge
from jaxvars.losses.loss import Loss as Loss
from jaxvars.losses.regression import cosine_similarity as cosine_similarity
from jaxvars.losses.regression import huber as huber
from jaxvars.losses.regression import log_cosh as log_cosh
from jaxvars.losses.regression import mean_absolute_error as mean_absolute_error
from jaxvars.losses.regression import (
    mean_absolute_percentage_error as mean_absolute_percentage_error,
)
from jaxvars.losses.regression import mean_squared_error as mean_squared_error
from jaxvars.losses.regression import (
    mean_squared_logarithmic_error as mean_squared_logarithmic_error,
)
from jaxvars.losses.regression import poisson as poisson
from jaxvars.losses.regression_classes import CosineSimilarity as CosineSimilarity
from jaxvars.losses.regression_classes import Huber as Huber
from jaxvars.losses.regression_classes import LogCosh as LogCosh
from jaxvars.losses.regression_classes import MeanAbsoluteError as MeanAbsoluteError
from jaxvars.losses.regression_classes import (
    MeanAbsolutePercentageError as MeanAbsolutePercentageError,
)
from jaxvars.losses.regression_classes import MeanSquaredError as MeanSquaredError
from jaxvars.losses.regression_classes import (
    MeanSquaredLogarithmicError as MeanSquaredLogarithmicError,
)
from jaxvars.losses.regression_classes import Poisson as Poisson
from jaxvars.losses.structured import circle as circle
from jaxvars.losses.structured import ctc as ctc
from jaxvars.losses.structured import dice as dice
from jaxvars.losses.structured import tversky as tversky
from jaxvars.losses.structured_classes import CTC as CTC
from jaxvars.losses.structured_classes import Circle as Circle
from jaxvars.losses.structured_classes import Dice as Dice
from jaxvars.losses.structured_classes import Tversky as Tversky

Value: TypeAlias = Any

_BY_NAME: dict[str, Any] = {
    name: thing
    for name, thing in list(globals().items())
    if getattr(thing, "__module__", "").startswith("jaxvars.losses.") and thing is not Loss
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
