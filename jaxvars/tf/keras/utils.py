"""`tf.keras.utils`: the few functions that training programs use."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from jaxvars.tf._convert import to_array
from jaxvars.tf._random_streams import set_seed
from jaxvars.tf._tensor import Tensor


def set_random_seed(seed: int) -> None:
    """Set the seeds of `tf.random`, NumPy and Python.

    >>> from jaxvars import tf
    >>> set_random_seed(7)

    Raises:
        ValueError: when the seed is no integer.
    """
    if not isinstance(seed, int):
        raise ValueError(
            f"Expected `seed` argument to be an integer. Received: seed={seed} (of type "
            f"{type(seed)})"
        )
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - programs draw from it
    set_seed(seed)


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Return classes as rows of zeros with a one.

    Args:
        x: integers; an axis of size 1 at the end is dropped.
        num_classes: how many there are; one more than the largest when None.

    >>> to_categorical([0, 2]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    labels = np.asarray(to_array(x)).astype("int64")
    shape = labels.shape[:-1] if labels.ndim > 1 and labels.shape[-1] == 1 else labels.shape
    count = int(labels.max()) + 1 if num_classes is None else num_classes
    made = np.eye(count)[labels.reshape(shape)]
    return Tensor(to_array(made.astype(np.float32))) if isinstance(x, Tensor) else made


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """Return an array by its norm along an axis."""
    array = np.asarray(to_array(x))
    norm = np.atleast_1d(np.linalg.norm(array, order, axis))
    norm[norm == 0] = 1
    made = array / np.expand_dims(norm, axis)
    return Tensor(to_array(made)) if isinstance(x, Tensor) else made
