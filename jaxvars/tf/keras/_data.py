"""Data sets of `tf.data` as Keras takes them."""

from __future__ import annotations

import functools
import sys
from typing import Any

from jaxvars.tf.keras._keras import keras
from jaxvars.tf.keras._manners import plain


def data_of(value: Any) -> Any:
    """Return data as Keras takes them: a Dataset as a sequence, Tensors as arrays."""
    known = sys.modules.get("jaxvars.tf._data_dataset")
    if known is not None and isinstance(value, known.Dataset):
        return _sequence_class()(value)
    return plain(value)


@functools.cache
def _sequence_class() -> Any:
    class Batches(keras().utils.PyDataset):
        """The elements of a data set, one after another, from the beginning in each epoch."""

        def __init__(self, dataset: Any) -> None:
            super().__init__()
            self._dataset = dataset
            self._next, self._elements = 0, iter(())
            count = int(dataset.cardinality())
            self._count = sum(1 for _ in dataset) if count == -2 else count

        @property
        def num_batches(self) -> int | None:
            """How many there are; None when they do not end."""
            return None if self._count == -1 else self._count

        def __getitem__(self, index: int) -> Any:
            if index != self._next or index == 0:
                self._elements, self._next = iter(self._dataset), 0
            while self._next < index:
                next(self._elements)
                self._next += 1
            self._next += 1
            return plain(next(self._elements))

    return Batches
