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
from jaxvars.tf.tensors.dtypes import int64
from jaxvars.tf.tensors.tensor import Tensor

Change: TypeAlias = Callable[[Any], Any]

AUTOTUNE = -1
SHARD_HINT = -1

__all__ = [
    "AUTOTUNE", "INFINITE_CARDINALITY", "SHARD_HINT", "UNKNOWN_CARDINALITY", "AutoShardPolicy",
    "AutotuneAlgorithm", "AutotuneOptions", "Counter", "CsvDataset", "DistributeOptions",
    "ExternalStatePolicy", "OptimizationOptions", "Optional", "RandomDataset",
    "ServiceOptions", "ThreadingOptions", "assert_cardinality", "at",
    "bucket_by_sequence_length", "cardinality", "choose_from_datasets", "copy_to_device",
    "enable_debug_mode", "enumerate_dataset", "from_list", "get_next_as_optional",
    "get_single_element", "get_structure", "group_by_window", "ignore_errors",
    "load", "make_csv_dataset", "map_and_batch", "pad_to_cardinality", "parallel_interleave",
    "parse_example_dataset", "prefetch_to_device", "rejection_resample", "sample_from_datasets",
    "save", "scan", "shuffle_and_repeat", "snapshot", "take_while", "unbatch", "unique",
]  # fmt: skip


def cardinality(dataset: Dataset) -> Tensor:
    """Return how many elements there are: -1 if it never ends, -2 if that is not known."""
    return dataset.cardinality()


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


def pad_to_cardinality(cardinality: int, mask_key: str = "valid") -> Change:
    """Return what puts empty elements after those of a dataset of dicts; see the mask.

    >>> made = Dataset.from_tensor_slices({"a": [5]}).apply(pad_to_cardinality(2))
    >>> [(int(x["a"]), bool(x["valid"])) for x in made]
    [(5, True), (0, False)]
    """
    return lambda dataset: dataset.pad_to_cardinality(cardinality, mask_key)


# ---------------------------------------------------------------- of iterators and datasets
def get_next_as_optional(iterator: Any) -> Optional:
    """Return the next element of an iterator as an Optional."""
    return iterator.get_next_as_optional()


def get_single_element(dataset: Dataset) -> Any:
    """Return the only element of a dataset."""
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """Return the specs of the elements of a dataset or iterator."""
    return dataset_or_iterator.element_spec


def at(dataset: Dataset, index: Any) -> Any:
    """Return the element of an index.

    Raises:
        OutOfRangeError: when there is none.
    """
    return dataset.at(index)


def from_list(elements: list[Any], name: str | None = None) -> Dataset:
    """Return a dataset of the elements of a list."""
    return Dataset.from_list(elements, name)


def load(
    path: Any, element_spec: Any = None, compression: Any = None, reader_func: Any = None
) -> Dataset:
    """Return a dataset of what `Dataset.save` wrote."""
    return Dataset.load(path, element_spec, compression, reader_func)


def save(
    dataset: Dataset,
    path: Any,
    compression: Any = None,
    shard_func: Any = None,
    checkpoint_args: Any = None,
) -> None:
    """Write the elements of a dataset into a folder."""
    dataset.save(path, compression, shard_func, checkpoint_args)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = int64) -> Dataset:  # noqa: N802 - TensorFlow's name
    """Return a dataset of numbers that never ends."""
    return Dataset.counter(start, step, dtype)


def RandomDataset(  # noqa: N802 - TensorFlow's name
    seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
) -> Dataset:
    """Return a dataset of random values that never ends."""
    return Dataset.random(seed, rerandomize_each_iteration)


def choose_from_datasets(
    datasets: Sequence[Any], choice_dataset: Any, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Return a dataset of elements of several, which another one chooses by number."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Any],
    weights: Any = None,
    seed: Any = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """Return a dataset of elements of several, each chosen by chance.

    Differs from TensorFlow: a seed gives other values.
    """
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


# ---------------------------------------------------------------- methods, for `Dataset.apply`
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


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Change:
    """Return what `map` and then `batch` do, for `Dataset.apply`."""
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def parallel_interleave(
    map_func: Callable[..., Any], cycle_length: int, block_length: int = 1, sloppy: bool = False,
    buffer_output_elements: Any = None, prefetch_input_elements: Any = None,
) -> Change:  # fmt: skip
    """Return what `Dataset.interleave` does, for `Dataset.apply`."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Change:
    """Return what gives the same elements: JAX sends them to the device that uses them."""
    return lambda dataset: dataset.prefetch(buffer_size)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Change:
    """Return what gives the same elements: JAX sends them to the device that uses them."""
    return lambda dataset: dataset.prefetch(1)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Change:
    """Return what `shuffle` and then `repeat` do, for `Dataset.apply`."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def enable_debug_mode() -> None:
    """Do nothing: functions of datasets run eagerly, so that a debugger stops in them."""


__getattr__, __dir__ = namespace(__name__)
