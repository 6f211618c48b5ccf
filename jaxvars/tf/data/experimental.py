"""`tf.data.experimental`: older names of what datasets have as methods, and what has none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from jaxvars.tf.data.dataset import Dataset
from jaxvars.tf.data.files import csv_rows as CsvDataset  # noqa: N812 - TensorFlow's name
from jaxvars.tf.data.files import make_csv_dataset as make_csv_dataset
from jaxvars.tf.data.files import parse_example_dataset as parse_example_dataset
from jaxvars.tf.data.generators.counts import INFINITE as INFINITE_CARDINALITY
from jaxvars.tf.data.generators.counts import UNKNOWN as UNKNOWN_CARDINALITY
from jaxvars.tf.data.generators.cursor import Memory
from jaxvars.tf.data.generators.optional import Optional as Optional
from jaxvars.tf.data.generators.options import AutoShardPolicy as AutoShardPolicy
from jaxvars.tf.data.generators.options import AutotuneAlgorithm as AutotuneAlgorithm
from jaxvars.tf.data.generators.options import AutotuneOptions as AutotuneOptions
from jaxvars.tf.data.generators.options import DistributeOptions as DistributeOptions
from jaxvars.tf.data.generators.options import ExternalStatePolicy as ExternalStatePolicy
from jaxvars.tf.data.generators.options import OptimizationOptions as OptimizationOptions
from jaxvars.tf.data.generators.options import ServiceOptions as ServiceOptions
from jaxvars.tf.data.generators.options import ThreadingOptions as ThreadingOptions
from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.listing import namespace

Change: TypeAlias = Callable[[Any], Any]

AUTOTUNE = -1
SHARD_HINT = -1

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "SHARD_HINT", "UNKNOWN_CARDINALITY", "AutoShardPolicy",
    "AutotuneAlgorithm", "AutotuneOptions", "Counter", "CsvDataset", "DistributeOptions",
    "ExternalStatePolicy", "OptimizationOptions", "Optional", "RandomDataset", "ServiceOptions",
    "ThreadingOptions", "assert_cardinality", "at", "bucket_by_sequence_length", "cardinality",
    "choose_from_datasets", "enable_debug_mode", "enumerate_dataset", "from_list",
    "get_single_element", "group_by_window", "ignore_errors", "load", "make_csv_dataset",
    "pad_to_cardinality", "parse_example_dataset", "rejection_resample", "sample_from_datasets",
    "save", "scan", "snapshot", "take_while", "unbatch", "unique",
]  # fmt: skip


def assert_cardinality(expected_cardinality: int) -> Change:
    """Return what asserts how many elements a dataset has, for `Dataset.apply`.

    The dataset raises FailedPreconditionError when it has another number.
    """
    expected = int(expected_cardinality)

    def step(source: Iterator[Any], memory: Memory) -> Iterator[Any]:
        count = memory.values.get("i", 0)
        for element in source:
            count += 1
            if 0 <= expected < count:
                raise _count_error(expected, f"at least {count}")
            memory.values["i"] = count
            yield element
        if expected == INFINITE_CARDINALITY or 0 <= expected != count:
            raise _count_error(expected, f"only {count}")

    return lambda dataset: dataset._step("_AssertCardinalityDataset", step, expected)


def _count_error(expected: int, found: str) -> FailedPreconditionError:
    wanted = "an infinite number of" if expected == INFINITE_CARDINALITY else str(expected)
    return FailedPreconditionError(
        message=f"Input dataset was expected to contain {wanted} elements but contained "
        f"{found} elements. [Op:IteratorGetNext] name: "
    )


# ---------------------------------------------------------------- methods as functions
RandomDataset, Counter = Dataset.random, Dataset.counter
from_list, load, save = Dataset.from_list, Dataset.load, Dataset.save
sample_from_datasets = Dataset.sample_from_datasets
cardinality, at, get_single_element = Dataset.cardinality, Dataset.at, Dataset.get_single_element


def choose_from_datasets(
    datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Return a dataset of elements of several, which another one chooses by number."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Change:
    """Return what puts empty elements after those of a dataset of dicts; see the mask.

    >>> made = Dataset.from_tensor_slices({"a": [5]}).apply(pad_to_cardinality(2))
    >>> [(int(x["a"]), bool(x["valid"])) for x in made]
    [(5, True), (0, False)]
    """
    return lambda dataset: dataset.pad_to_cardinality(cardinality, mask_key)


def _make_change(method: Callable[..., Any], name: str | None = None) -> Callable[..., Change]:
    """Return a function that returns what a method does, for `Dataset.apply`."""
    parameters = inspect.signature(method).parameters.values()
    kept = [p for p in parameters if p.name not in ("self", "name")]
    signature = inspect.Signature(kept, return_annotation="Change")

    def made(*args: Any, **kwargs: Any) -> Change:
        given = signature.bind(*args, **kwargs).arguments
        return lambda dataset: method(dataset, **given)

    made.__name__ = made.__qualname__ = name or method.__name__
    made.__doc__ = f"Return what `Dataset.{method.__name__}` does, for `Dataset.apply`."
    vars(made)["__signature__"] = signature
    return made


bucket_by_sequence_length = _make_change(Dataset.bucket_by_sequence_length)
dense_to_ragged_batch = _make_change(Dataset.ragged_batch, "dense_to_ragged_batch")
enumerate_dataset = _make_change(Dataset.enumerate, "enumerate_dataset")
group_by_window = _make_change(Dataset.group_by_window)
ignore_errors = _make_change(Dataset.ignore_errors)
rejection_resample = _make_change(Dataset.rejection_resample)
scan = _make_change(Dataset.scan)
snapshot = _make_change(Dataset.snapshot)
take_while = _make_change(Dataset.take_while)
unbatch = _make_change(Dataset.unbatch)
unique = _make_change(Dataset.unique)


def enable_debug_mode() -> None:
    """Do nothing: functions of datasets run eagerly, so that a debugger stops in them."""


__getattr__, __dir__ = namespace(__name__)
