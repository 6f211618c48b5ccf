"""`tf.keras.utils`: the few functions that training programs use."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxvars.tf.keras.adapter.facade import elsewhere
from jaxvars.tf.listing import lister
from jaxvars.tf.random.streams import set_seed
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor


def set_random_seed(seed: int) -> None:
    """Set the seeds of `tf.random`, NumPy and Python.

    >>> from jaxvars import tf
    >>> set_random_seed(7)

    Raises:
        ValueError: when the seed is not an integer.
    """
    if not isinstance(seed, int):
        raise ValueError(
            f"Expected `seed` argument to be an integer. Received: seed={seed} (of type "
            f"{type(seed)})"
        )
    keras = sys.modules.get("keras")
    if keras is not None:
        keras.utils.set_random_seed(seed)
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


def pad_sequences(
    sequences: Sequence[Sequence[Any]],
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray:
    """Return sequences of different lengths as one array.

    Args:
        sequences: lists of numbers, or of arrays of one shape.
        maxlen: the length of all; that of the longest when None.
        dtype: of the array.
        padding: where short ones are filled up, "pre" or "post".
        truncating: where long ones are cut, "pre" or "post".
        value: what is filled in.

    Raises:
        ValueError: when there is no list of lists, or "pre" and "post" are something else.

    >>> pad_sequences([[1], [2, 3], [4, 5, 6]], maxlen=2).tolist()
    [[0, 1], [2, 3], [5, 6]]
    """
    for name, where in (("Truncating", truncating), ("Padding", padding)):
        if where not in ("pre", "post"):
            raise ValueError(f'{name} type "{where}" not understood')
    for one in sequences:
        if not hasattr(one, "__len__"):
            raise ValueError(f"`sequences` must be a list of iterables. Found non-iterable: {one}")
    length = max(map(len, sequences), default=0) if maxlen is None else maxlen
    inner = next((np.asarray(one).shape[1:] for one in sequences if len(one)), ())
    made = np.full((len(sequences), length, *inner), value, dtype=dtype)
    for row, one in zip(made, sequences, strict=True):
        part = np.asarray(one, dtype=dtype)
        part = part[max(len(part) - length, 0) :] if truncating == "pre" else part[:length]
        if len(part):
            row[slice(length - len(part), None) if padding == "pre" else slice(len(part))] = part
    return made


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Return what `unpack_x_y_sample_weight` takes apart.

    >>> pack_x_y_sample_weight(1, 2)
    (1, 2)
    """
    if y is None:
        return (x,) if isinstance(x, list | tuple) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """Return x, y and the weights of a batch; None for what it does not have.

    Raises:
        ValueError: when there are more than three parts.

    >>> unpack_x_y_sample_weight((1, 2))
    (1, 2, None)
    """
    parts = data if isinstance(data, tuple) else tuple(data) if isinstance(data, list) else (data,)
    if not 1 <= len(parts) <= 3:
        raise ValueError(
            "Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`, "
            f"found: {data}"
        )
    x, y, weight, *_ = (*parts, None, None)
    return x, y, weight


def __getattr__(name: str) -> Any:
    return elsewhere("utils", name, globals())


__dir__ = lister(__name__)
