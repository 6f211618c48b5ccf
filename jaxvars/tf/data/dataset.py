"""`tf.data.Dataset`: elements one after another, and how a dataset is made.

base          what a dataset is; how it is iterated over
steps         map, filter, interleave, shuffle, repeat, take, ...
groups        batch, window, group_by_window, ...
combinations  zip, concatenate, sample_from_datasets, ...
stored        cache, save, load, snapshot
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self, final

import numpy as np

from jaxvars.tf.data.base import make_seeds, register_loops
from jaxvars.tf.data.combinations import Several
from jaxvars.tf.data.generators.components import is_same
from jaxvars.tf.data.generators.counts import INFINITE, UNKNOWN
from jaxvars.tf.data.generators.cursor import WINDOWS, Memory, indexed
from jaxvars.tf.data.generators.staged import Source
from jaxvars.tf.data.groups import Groups
from jaxvars.tf.data.steps import Steps
from jaxvars.tf.data.stored import Kept
from jaxvars.tf.errors import FailedPreconditionError
from jaxvars.tf.tensors.dtypes import as_dtype, int64
from jaxvars.tf.tensors.elements import (
    DatasetSpec,
    Element,
    drop_dimension,
    is_structure,
    leaves,
    map_leaves,
    merge_specs,
    pack_leaves,
    slice_rows,
    spec_of,
    to_host,
    to_leaf,
    to_ragged,
    to_stored,
)
from jaxvars.tf.tensors.ragged_spec import RaggedTensorSpec
from jaxvars.tf.tensors.ragged_tensor import RaggedTensor
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.sparse_tensor import SparseTensor
from jaxvars.tf.tensors.specs import TensorSpec
from jaxvars.tf.tensors.static import one_int, refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing.context import is_tracer


@final
class Dataset(Steps, Groups, Several, Kept):
    """Elements one after another: made by `from_tensor_slices` and others, changed by steps.

    An element is a tensor, or a tuple or dict of them.

    >>> dataset = Dataset.range(5).map(lambda x: x * x).batch(2)
    >>> [batch.tolist() for batch in dataset.as_numpy_iterator()]
    [[0, 1], [4, 9], [16]]

    Differs from TensorFlow: functions run for each element, not as a graph, unless they are a
    `tf.function`; `num_parallel_calls`, `prefetch` and options have no effect. A loop over it
    inside a `tf.function` needs tensors of known shapes: where the number of elements is not known,
    and the last batch may be smaller, write `batch(n, drop_remainder=True)`. A function is traced
    for each dataset that it is given. There, a gradient through a loop over a dataset of a known
    number of elements is computed, where TensorFlow's is None: if a tape is around the loop, all
    elements are made before it, up to 1 GiB. Other such gradients raise an error.
    """

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None) -> Self:
        """Make a dataset of the slices of tensors along their first dimension.

        Raises:
            ValueError: when a tensor is a scalar, or their first sizes differ.

        >>> from jaxvars.tf.data import Dataset
        >>> for x, y in Dataset.from_tensor_slices(([[1, 2], [3, 4]], [5, 6])):
        ...     print(x.numpy(), y.numpy())
        [1 2] 5
        [3 4] 6
        """
        if isinstance(tensors, list) and tensors and all(isinstance(x, cls) for x in tensors):
            if any(x.element_spec != tensors[0].element_spec for x in tensors):
                raise ValueError("Datasets in a list must have one `element_spec`.")
            return tensors[0]._from_elements(tensors, DatasetSpec(tensors[0].element_spec))
        source = Source(tensors)
        return cls(
            "_TensorSliceDataset",
            lambda memory: indexed(memory, *slice_rows(source.whole())),
            source.count(),
            lambda: map_leaves(drop_dimension, source.spec),
            parts=source.if_traced,
        )

    @classmethod
    def from_tensors(cls, tensors: Any, name: str | None = None) -> Self:
        """Make a dataset of one element."""
        source = Source(tensors)
        return cls(
            "_TensorDataset",
            lambda memory: indexed(memory, 1, lambda _: source.whole()),
            1,
            lambda: source.spec,
            parts=source.if_traced,
        )

    def ragged_batch(
        self, batch_size: Any, drop_remainder: bool = False, row_splits_dtype: Any = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Put several elements, whose sizes may differ, together as ragged tensors.

        >>> from jaxvars import tf
        >>> dataset = tf.data.Dataset.range(3).map(tf.range).ragged_batch(3)
        >>> next(iter(dataset))
        <tf.RaggedTensor [[], [0], [0, 1]]>
        """

        def spec() -> Any:
            return map_leaves(_loosen, self._spec())

        def step(source: Iterator[Element], _: Memory) -> Iterator[Element]:
            kinds: list[bool] = []
            for element in source:
                kinds = kinds or [type(each) is RaggedTensorSpec for each in leaves(spec())]
                pairs = zip(leaves(element), kinds, strict=True)
                yield pack_leaves(element, [to_ragged(x) if is_so else x for x, is_so in pairs])

        return self._step("_MapDataset", step, spec=spec).batch(batch_size, drop_remainder)

    @classmethod
    def from_list(cls, elements: list[Any], name: str | None = None) -> Self:
        """Make a dataset of the elements of a list.

        Raises:
            ValueError: when it is empty, or not a list.
        """
        if not isinstance(elements, list):
            raise ValueError(f"`elements` must be a list, not {type(elements).__name__}.")
        if not elements:
            raise ValueError(
                "Invalid `elements`. `elements` should not be empty. If you want an empty dataset, "
                "use `tf.data.Dataset.range(0)`."
            )
        given = [map_leaves(to_stored, element) for element in elements]

        def spec() -> Any:
            specs = [map_leaves(spec_of, element) for element in given]
            found = leaves(specs[0])
            for other in specs[1:]:
                found = [merge_specs(a, b) for a, b in zip(found, leaves(other), strict=True)]
            return pack_leaves(specs[0], found)

        return cls(
            "_ListDataset",
            lambda memory: indexed(memory, len(given), lambda i: given[i]),
            len(given),
            spec,
        )

    @classmethod
    def from_generator(
        cls, generator: Callable[..., Iterable[Any]], output_types: Any = None,
        output_shapes: Any = None, args: Any = None, output_signature: Any = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Make a dataset of what a Python generator yields; it is called again each time.

        Args:
            generator: returns something to iterate over.
            output_types: the types, in the structure of an element.
            output_shapes: the shapes, in that structure.
            args: what `generator` is called with, as NumPy arrays.
            output_signature: `tf.TensorSpec`s, in place of types and shapes.
            name: of no effect.

        Raises:
            TypeError: when `generator` is not a function, or the elements are not specified.
            InvalidArgumentError: (when iterated) for a value that does not fit.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        spec = signature(output_types, output_shapes, output_signature)
        given = [to_stored(arg)[()] for arg in args or ()]

        def values() -> Iterable[Any]:
            return generator(*given)

        return cls(
            "_FlatMapDataset", lambda memory: generated(memory, values, spec), UNKNOWN, lambda: spec
        )

    @classmethod
    def range(cls, *args: Any, **kwargs: Any) -> Self:
        """Make a dataset of numbers: `range(stop)`, `range(start, stop)`, or with a step.

        Args:
            *args: as for Python's `range`.
            **kwargs: `output_type`, int64 if there is none, and `name`.

        >>> from jaxvars.tf.data import Dataset
        >>> [int(x) for x in Dataset.range(1, 6, 2)]
        [1, 3, 5]
        """
        dtype = as_dtype(kwargs.get("output_type", int64))
        source = (
            Source(args) if any(type(x) is Tensor and is_tracer(x._array) for x in args) else None
        )
        given = [] if source else [one_int(arg, "the range") for arg in args]

        def step(memory: Memory) -> Any:
            numbers = range(*(map(int, source.whole()) if source else given))
            return indexed(memory, len(numbers), lambda i: np.asarray(numbers[i], dtype.dtype))

        size = UNKNOWN if source else len(range(*given))
        parts = source.if_traced if source else ()
        return cls("_RangeDataset", step, size, lambda: TensorSpec((), dtype), parts=parts)

    @classmethod
    def counter(
        cls, start: Any = 0, step: Any = 1, dtype: Any = int64, name: str | None = None
    ) -> Self:
        """Make a dataset of numbers that never ends.

        >>> from jaxvars.tf.data import Dataset
        >>> [int(x) for x in Dataset.counter(1, 2).take(3)]
        [1, 3, 5]
        """
        kind = as_dtype(dtype)
        first, by = to_host(to_stored(start))[()], to_host(to_stored(step))[()]
        return cls(
            "_ScanDataset",
            lambda memory: indexed(memory, None, lambda i: np.asarray(first + i * by, kind.dtype)),
            INFINITE,
            lambda: TensorSpec((), kind),
        )

    @classmethod
    def random(
        cls, seed: Any = None, rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Make a dataset of random values, of 32 bits, that never ends: TensorFlow's.

        Args:
            seed: an integer; follows from the global seed if None.
            rerandomize_each_iteration: draw others each time.
            name: of no effect.

        >>> from jaxvars import tf
        >>> tf.random.set_seed(3)
        >>> [int(x) for x in tf.data.Dataset.random(seed=3).take(2)]
        [354193759, 1683325520]
        """
        seeds = make_seeds(seed, bool(rerandomize_each_iteration))

        def step(memory: Memory) -> Any:
            kept = memory.values
            random = seeds.begin_stream(kept)
            random.drawn = kept.get("i", 0)  # of which each element takes one
            return indexed(memory, None, lambda _: np.asarray(random.next(), np.int64))

        spec = TensorSpec((), int64)
        return cls("_RandomDataset", step, INFINITE, lambda: spec, parts=(seeds,))

    @classmethod
    def list_files(
        cls, file_pattern: Any, shuffle: bool | None = None, seed: Any = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Make a dataset of the names of files that match a pattern, shuffled by default.

        Raises:
            InvalidArgumentError: when there are none.
        """
        patterns = [x.decode() for x in to_host(Tensor(to_strings(file_pattern))).ravel()]
        lists = map(glob.glob, patterns)
        found = sorted(path for each in lists for path in each)
        if not found:
            raise refused(f"No files matched pattern: {', '.join(patterns)}")
        names: Any = cls.from_tensor_slices(to_strings(found))
        return names if shuffle is False else names.shuffle(len(found), seed)


def to_strings(value: Any) -> np.ndarray:
    """Return a string, or a list of them, as an array."""
    if hasattr(value, "__fspath__"):
        value = str(value)
    return to_stored(np.asarray(value, object) if isinstance(value, bytes) else value)


# ---------------------------------------------------------------- generators
def generated(memory: Memory, values: Callable[[], Iterable[Any]], spec: Any) -> Iterator[Element]:
    """Yield what a Python generator does, as elements of a spec."""
    kept, number = memory.values, 0
    count, known = kept.get("i", 0), kept.get("known", 0)  # how many there were
    for number, value in enumerate(values(), 1):
        if number > count:
            kept["i"] = number
            element = _fit_element(value, spec)
            kept.update(known=number, last=element)
            yield element
        elif number == known and not is_same(_fit_element(value, spec), kept["last"]):
            raise FailedPreconditionError(message=_ANOTHER.format(count))
    if number < count:
        raise FailedPreconditionError(message=_ANOTHER.format(count))


_ANOTHER = (
    "The generator of `from_generator` was called again, for an iterator to go on after {} "
    "elements, and has yielded others than before, so that no one knows where to go on. Let it "
    "yield the same each time: begin with a seed, as np.random.default_rng(7), and sort files."
)


def _fit_element(value: Any, spec: Any) -> Element:
    try:
        return map_leaves(_fit_leaf, spec, value)
    except ValueError as error:
        if "structure" not in str(error):
            raise
        raise refused(
            "TypeError: `generator` yielded an element that did not match the expected structure. "
            f"The expected structure was {spec}, but the yielded element was {value}."
        ) from None


def _fit_leaf(spec: Any, value: Any) -> Any:
    try:
        is_own = isinstance(value, RaggedTensor | SparseTensor) and spec.is_compatible_with(value)
        made = to_stored(value) if is_own else to_leaf(value, spec.dtype)
    except (TypeError, ValueError):
        raise refused(
            "TypeError: `generator` yielded an element that could not be converted to the expected "
            f"type. The expected type was {spec.dtype.name}, but the yielded element was {value}."
        ) from None
    if not spec.shape.is_compatible_with(made.shape):
        raise refused(
            f"TypeError: `generator` yielded an element of shape {made.shape} where an element of "
            f"shape {spec.shape} was expected."
        )
    return made


def signature(types: Any, shapes: Any, given: Any) -> Any:
    """Return the spec that the arguments of `from_generator` specify."""
    if given is not None:
        if types is not None or shapes is not None:
            raise TypeError(
                "The `output_types` and `output_shapes` arguments cannot be used together with "
                "the `output_signature` argument."
            )
        return given
    if types is None:
        raise TypeError(
            "To specify the output signature you need to provide either the `output_signature` "
            "argument or the `output_types` argument."
        )
    types = tuple(types) if isinstance(types, list) else types
    if shapes is None:
        return map_leaves(lambda dtype: TensorSpec(None, dtype), types)
    return _pair_specs(types, shapes)


def _pair_specs(types: Any, shapes: Any) -> Any:
    """Return specs; a shape may be a tuple, as the structure is."""
    if not is_structure(types):
        return TensorSpec(TensorShape(shapes), types)
    if isinstance(types, dict):
        return {key: _pair_specs(types[key], shapes[key]) for key in types}
    return type(types)(_pair_specs(a, b) for a, b in zip(types, shapes, strict=True))


register_loops(Dataset)
WINDOWS.append(Dataset.range(0)._from_elements)


def _loosen(spec: Any) -> Any:
    """Return the spec of tensors, whose sizes may differ, as that of rows."""
    is_open = type(spec) is TensorSpec and not spec.shape.is_fully_defined()
    return RaggedTensorSpec(spec.shape, spec.dtype, 0) if is_open else spec
