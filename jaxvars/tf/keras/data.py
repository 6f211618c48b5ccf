"""Data sets of `tf.data` as Keras takes them."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from jaxvars.objects.interpreter import load
from jaxvars.tf.keras.adapter.semantics import unwrap
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor


def data_of(value: Any, class_weight: Mapping[int, float] | None = None) -> Any:
    """Return data as Keras takes them: a Dataset by an adapter, Tensors as arrays.

    Args:
        value: a Dataset, or anything else that `fit` takes.
        class_weight: the weights of the examples in a Dataset, by class.
    """
    if isinstance(value, list | tuple) and any(map(is_dataset, value)):
        return type(value)(map(data_of, value))
    return _adapter_class()(value, class_weight) if is_dataset(value) else unwrap(value)


def batch_strings(
    x: Any, y: Any, args: Any, kwargs: dict[str, Any], *, shuffle: bool = False
) -> tuple[Any, Any]:
    """Return strings, and what goes with them, as a Dataset of batches; others as they are.

    Keras does not cut strings. `kwargs` are left without what the Dataset is made by.
    """
    if not any(map(_is_text, jax.tree.leaves(unwrap(x)))):
        return x, y
    parts = [x, y, kwargs.pop("sample_weight", None)]
    parts = [tuple(part) if isinstance(part, list) else part for part in parts if part is not None]
    data = load("jaxvars.tf.data").Dataset.from_tensor_slices(tuple(parts))
    size = (args[0] if args else kwargs.pop("batch_size", None)) or 32
    is_mixed = kwargs.pop("shuffle", shuffle)
    return (data.shuffle(len(data)) if is_mixed else data).batch(size), None


def _is_text(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OSU"


def windows_of(
    data: Any, targets: Any, sequence_length: int, sequence_stride: int = 1, sampling_rate: int = 1,
    batch_size: int | None = 128, shuffle: bool = False, seed: int | None = None,
    start_index: int | None = None, end_index: int | None = None,
) -> Any:  # fmt: skip
    """Return a Dataset of windows of a series; see `keras.utils.timeseries_dataset_from_array`."""
    datasets = load("jaxvars.tf.data").Dataset
    parts = [np.asarray(x)[start_index:end_index] for x in (data, targets) if x is not None]
    known = len(parts[0]) if targets is None else len(targets)
    count = min(len(parts[0]) - (sequence_length - 1) * sampling_rate, known)
    starts = datasets.from_tensor_slices(np.arange(0, count, sequence_stride))
    if shuffle:
        starts = starts.shuffle(batch_size * 8 if batch_size else 1024, seed=seed)
    offsets = np.arange(sequence_length) * sampling_rate

    def window(start: Any) -> Any:
        first = np.asarray(start)
        found = [Tensor(to_array(parts[0][first[..., None] + offsets]))]
        found += [Tensor(to_array(part[first])) for part in parts[1:]]
        return found[0] if targets is None else tuple(found)

    return (starts if batch_size is None else starts.batch(batch_size)).map(window)


def is_dataset(value: Any) -> bool:
    """Return whether something is a Dataset; cheap where there are none."""
    known = sys.modules.get("jaxvars.tf.data")
    return known is not None and isinstance(value, known.Dataset)


def _add_weights(batch: Any, class_weight: Mapping[int, float]) -> Any:
    """Return x, y and the weight of each example."""
    if not isinstance(batch, tuple) or len(batch) != 2:
        raise ValueError("`class_weight` needs a Dataset of pairs (x, y).")
    y = np.asarray(batch[1])
    classes = np.argmax(y, -1) if y.ndim > 1 and y.shape[-1] > 1 else y.reshape(len(y))
    weights = [class_weight.get(int(one), 1.0) for one in np.round(classes)]
    return (*batch, np.array(weights, np.float32))


@functools.cache
def _adapter_class() -> Any:
    base: Any = importlib.import_module("keras.src.trainers.data_adapters.data_adapter")

    class Batches(base.DataAdapter):
        """The elements of a data set, from the beginning in each epoch."""

        def __init__(self, dataset: Any, class_weight: Any) -> None:
            self._dataset, self._class_weight = dataset, class_weight

        def get_jax_iterator(self) -> Iterator[Any]:
            """Yield the elements."""
            for element in self._dataset:
                batch = unwrap(element)
                yield _add_weights(batch, self._class_weight) if self._class_weight else batch

        get_numpy_iterator = get_jax_iterator

        @property
        def num_batches(self) -> int | None:
            """How many there are; None if that is not known, or they do not end."""
            count = int(self._dataset.cardinality())
            return count if count >= 0 else None

        batch_size = has_partial_batch = partial_batch_size = None  # not known before

    return Batches
