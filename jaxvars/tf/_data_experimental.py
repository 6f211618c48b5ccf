"""`tf.data.experimental`: what programs of old use from there."""

from __future__ import annotations

from collections.abc import Callable

from jaxvars.tf._data_dataset import Dataset
from jaxvars.tf._data_steps import INFINITE as INFINITE_CARDINALITY
from jaxvars.tf._data_steps import UNKNOWN as UNKNOWN_CARDINALITY
from jaxvars.tf._tensor import Tensor

AUTOTUNE = -1

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "cardinality",
]


def cardinality(dataset: Dataset) -> Tensor:
    """Return how many elements there are: -1 if it never ends, -2 if that is not known."""
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """Return what says of a dataset how many elements it has, for `Dataset.apply`."""
    return lambda dataset: dataset._step(
        "_AssertCardinalityDataset", lambda source: source, int(expected_cardinality)
    )
