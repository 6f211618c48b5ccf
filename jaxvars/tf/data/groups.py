"""The steps of datasets that put elements together, or take them apart: `batch`, `window`, ..."""

from __future__ import annotations

import functools
import itertools
from abc import ABC
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from jaxvars.tf.data.base import DatasetBase, Elements, check_dataset, check_positive, element_like
from jaxvars.tf.data.generators import counts as counts
from jaxvars.tf.data.generators.buckets import Buckets
from jaxvars.tf.data.generators.calls import call_function, check_function
from jaxvars.tf.data.generators.counts import UNKNOWN
from jaxvars.tf.data.generators.cursor import Cursor, Memory, indexed
from jaxvars.tf.random.iteration import call_again, place_of_draws
from jaxvars.tf.tensors.elements import (
    DatasetSpec,
    Element,
    add_dimension,
    batch_elements,
    check_padding,
    drop_dimension,
    leaves,
    map_leaves,
    pack_leaves,
    pad,
    pad_spec,
    shapes_of,
    slice_rows,
    to_host,
)
from jaxvars.tf.tensors.static import ints, one_int, refused
from jaxvars.tf.tensors.tensor import Tensor

_LATE = {"_MapDataset", "_ParallelMapDataset", "_ScanDataset", "_FlatMapDataset"}
"""The datasets whose spec may take an element."""


class Groups(DatasetBase, ABC):
    """The steps that put elements together, or take them apart."""

    def batch(
        self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None,
        deterministic: bool | None = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Put several elements together as one, with a new first dimension.

        Args:
            batch_size: how many.
            drop_remainder: leave out the last ones if they are fewer; with it all batches have one
                shape, so that a program is compiled once.
            num_parallel_calls: of no effect.
            deterministic: the order is always kept.
            name: of no effect.

        Raises:
            InvalidArgumentError: when `batch_size` is not positive; when shapes differ.
        """
        size, drop = check_positive(batch_size, "Batch size"), bool(drop_remainder)
        sizes = [size] if drop else counts.sizes_of_groups(self._count, size)

        def spec(form: Any, number: int | None) -> Any:
            return map_leaves(lambda leaf: add_dimension(leaf, number), form)

        return self._step(
            "_BatchDataset" if num_parallel_calls is None else "_ParallelBatchDataset",
            lambda source, _: map(_stack_batch, _group(source, size, drop)),
            counts.count_groups(self._count, size, drop),
            lambda: spec(self._spec(), size if drop else None),
            lambda: [spec(form, n) for form in self._forms() for n in sizes],
        )

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None,
        drop_remainder: bool = False, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Put several elements together as one, each padded to the size of the largest.

        Args:
            batch_size: how many.
            padded_shapes: to pad to, in the structure of an element; None in a shape means the
                largest size of the batch.
            padding_values: to pad with; zeros and empty strings if None.
            drop_remainder: leave out the last ones if they are fewer.
            name: of no effect.

        Raises:
            TypeError: when elements are ragged or sparse, or `padding_values` of another type.
            ValueError: when shapes do not fit.
            DataLossError: (when iterated) when an element is larger.
        """
        size, drop = check_positive(batch_size, "Batch size"), bool(drop_remainder)
        if self._kind not in _LATE:
            check_padding(self._spec(), padded_shapes, padding_values)

        def spec(number: int | None) -> Any:
            before = leaves(self._spec())
            if padded_shapes is not None:
                shapes = shapes_of(self._spec(), padded_shapes)
                before = [pad_spec(*pair) for pair in zip(before, shapes, strict=True)]
            return pack_leaves(self._spec(), [add_dimension(s, number) for s in before])

        sizes = [size] if drop else counts.sizes_of_groups(self._count, size)
        return self._step(
            "_PaddedBatchDataset",
            lambda source, _: (
                pad(group, padded_shapes, padding_values) for group in _group(source, size, drop)
            ),
            counts.count_groups(self._count, size, drop),
            lambda: spec(size if drop else None),
            lambda: [spec(n) for n in sizes],
        )

    def unbatch(self, name: str | None = None) -> Self:
        """Take the slices of each element along its first dimension as elements."""
        known = [leaf.shape for leaf in _list_known_leaves(self) if leaf.shape.rank is not None]
        if any(shape.rank == 0 for shape in known):
            raise ValueError("Cannot unbatch an input with scalar components.")
        if len(sizes := {shape[0] for shape in known} - {None}) > 1:
            raise ValueError(f"Dimensions {' and '.join(map(str, sizes))} are not compatible")

        def step(source: Elements, memory: Memory) -> Elements:
            kept = memory.values
            first = [kept["element"]] if "element" in kept else []
            for element in itertools.chain(first, source):
                start = kept["i"] if first else 0
                first = []
                size, slice_of = slice_rows(element)
                kept["element"] = element
                for i in range(start, size):
                    kept["i"] = i + 1
                    yield slice_of(i)
                kept["i"] = size

        return self._step(
            "_UnbatchDataset", step, UNKNOWN, lambda: map_leaves(drop_dimension, self._spec())
        )

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> Self:
        """Make batches of another size, or of several sizes in turn.

        Args:
            batch_size: a size, or a list of them.
            drop_remainder: leave out the last elements if they are fewer.
            name: of no effect.

        >>> from jaxvars.tf.data import Dataset
        >>> [x.tolist() for x in Dataset.range(6).batch(3).rebatch([2, 1]).as_numpy_iterator()]
        [[0, 1], [2], [3, 4], [5]]
        """
        sizes, drop = ints(batch_size, "batch_size"), bool(drop_remainder)
        if any(leaf.shape.rank == 0 for leaf in _list_known_leaves(self)):
            raise ValueError(
                "Invalid `batch_sizes`. Expected dataset with rank of >= 1 but found a dataset "
                "with scalar elements. Fix the issue by adding the `batch` transformation to the "
                "dataset."
            )
        if len(sizes) == 1:
            return self.unbatch().batch(sizes[0], drop)

        def step(source: Elements, memory: Memory) -> Elements:
            while True:
                turn = memory.values.get("turn", 0)
                for group in _group(source, sizes[turn], drop):
                    memory.values["turn"] = (turn + 1) % len(sizes)
                    yield _stack_batch(group)
                    break
                else:
                    return

        def spec() -> Any:
            return map_leaves(lambda leaf: add_dimension(drop_dimension(leaf), None), self._spec())

        return self.unbatch()._step("_RebatchDataset", step, UNKNOWN, spec)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Take several elements as a dataset that is one element.

        Args:
            size: how many.
            shift: how far one begins after another; `size` if None.
            stride: which elements are taken: every one, every second one, ...
            drop_remainder: leave out those that are shorter.
            name: of no effect.

        >>> from jaxvars.tf.data import Dataset
        >>> windows = Dataset.range(4).window(3, shift=1, drop_remainder=True)
        >>> [x.tolist() for x in windows.flat_map(lambda w: w.batch(3)).as_numpy_iterator()]
        [[0, 1, 2], [1, 2, 3]]
        """
        length, step = check_positive(size, "Window size"), check_positive(stride, "Window stride")
        move = length if shift is None else check_positive(shift, "Window shift")
        drop, span = bool(drop_remainder), (length - 1) * step + 1
        count = counts.count_groups(self._count - (span - move if drop else 0), move, drop)

        def make(source: Elements, memory: Memory) -> Elements:
            kept = memory.values
            buffer: list[Element] = kept.setdefault("buffer", [])
            while True:
                for _ in itertools.islice(source, kept.pop("gap", 0)):
                    pass
                buffer.extend(itertools.islice(source, max(span - len(buffer), 0)))
                if not buffer or (drop and len(buffer) < span):
                    return
                found = buffer[:span:step]
                kept["gap"] = max(move - len(buffer), 0)
                del buffer[:move]
                yield self._make_window(found)

        return self._step(
            "_WindowDataset",
            make,
            self._count if self._count < 0 else max(count, 0),
            lambda: map_leaves(DatasetSpec, self._spec()),
        )

    def _make_window(self, group: list[Element]) -> Any:
        columns = zip(*map(leaves, group), strict=True)
        pairs = zip(columns, leaves(self._spec()), strict=True)
        return pack_leaves(group[0], [self._from_elements(column, spec) for column, spec in pairs])

    def _from_elements(self, elements: Sequence[Element], spec: Any) -> Self:
        """Return a dataset of some elements."""
        made = type(self)(
            "_VariantDataset",
            lambda memory: indexed(memory, len(elements), lambda i: elements[i]),
            len(elements),
            lambda: spec,
        )
        made._kept = (list(elements), spec)
        return made

    def group_by_window(
        self, key_func: Callable[..., Any], reduce_func: Callable[[Any, Any], Any],
        window_size: Any = None, window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Self:  # fmt: skip
        """Sort elements into groups by a key, and put what is made of each group in its place.

        Args:
            key_func: takes an element, returns its key, an int64.
            reduce_func: takes a key and a dataset of a group's elements, returns a dataset.
            window_size: how many elements make a group.
            window_size_func: takes a key, returns how many, in place of `window_size`.
            name: of no effect.

        Raises:
            ValueError: unless one of the sizes is given.

        >>> from jaxvars.tf.data import Dataset
        >>> made = Dataset.range(5).group_by_window(
        ...     key_func=lambda x: x % 2, reduce_func=lambda key, d: d.batch(2), window_size=2
        ... )
        >>> [x.tolist() for x in made.as_numpy_iterator()]
        [[0, 2], [1, 3], [4]]
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` argument or the `window_size_func` argument must be "
                "specified."
            )
        key, reduce = check_function(key_func), check_function(reduce_func)
        sizes = window_size_func or (lambda _: window_size)

        def made_of(number: int, elements: list[Element]) -> Any:
            given = self._from_elements(elements, self._spec())
            return check_dataset(call_function(reduce, _int64(number), given))

        def opened(number: int, elements: list[Element]) -> Cursor:
            return made_of(number, elements)._begin()

        def step(source: Elements, memory: Memory) -> Elements:
            return _group_windows(
                source, memory, lambda x: _number(call_function(key, x), "key_func"),
                lambda k: check_positive(sizes(Tensor(_int64(k))), "Window size"), opened,
            )  # fmt: skip

        def spec() -> Any:
            element = element_like(self)
            return made_of(_number(call_function(key, element), "key_func"), [element]).element_spec

        size = counts.endless(self._count)
        return self._step("_GroupByWindowDataset", step, size, spec, parts=(key, reduce))

    def bucket_by_sequence_length(
        self, element_length_func: Callable[..., Any], bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int], padded_shapes: Any = None, padding_values: Any = None,
        pad_to_bucket_boundary: bool = False, no_padding: bool = False,
        drop_remainder: bool = False, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Make batches of elements of similar length, padded to the largest of each batch.

        Args:
            element_length_func: takes an element, returns its length.
            bucket_boundaries: the lengths at which another bucket begins.
            bucket_batch_sizes: the sizes of the batches; one more than there are boundaries.
            padded_shapes: as in `padded_batch`.
            padding_values: as in `padded_batch`.
            pad_to_bucket_boundary: pad what is open to the largest length of the bucket.
            no_padding: make batches without padding.
            drop_remainder: leave out batches that are smaller.
            name: of no effect.

        Raises:
            ValueError: when there is another number of sizes.
            InvalidArgumentError: (when iterated) when an element is longer than the last boundary,
                with `pad_to_bucket_boundary`.
        """
        length = check_function(element_length_func)
        buckets = Buckets(
            tuple(bucket_boundaries), tuple(bucket_batch_sizes), padded_shapes, padding_values,
            bool(pad_to_bucket_boundary), bool(no_padding), bool(drop_remainder),
        )  # fmt: skip
        return self.group_by_window(
            lambda *x: Tensor(_int64(buckets.number(_number(length(*x), "element_length_func")))),
            lambda key, group: buckets.batched(int(key), group, self._spec()),
            window_size_func=lambda key: buckets.sizes[int(key)],
        )

    def get_single_element(self, name: str | None = None) -> Any:
        """Return the only element.

        Raises:
            InvalidArgumentError: when there is none, or another one.
        """
        found = list(itertools.islice(self, 2))
        if len(found) != 1:
            count = "more than one element" if found else "no elements"
            raise refused(f"Dataset had {count}. [Op:DatasetToSingleElement] name: ")
        return found[0]


def _list_known_leaves(dataset: DatasetBase) -> list[Any]:
    """Return the specs of the tensors of an element; none where that takes an element."""
    if dataset._kind in _LATE:
        return []
    return [leaf for leaf in leaves(dataset._spec()) if hasattr(leaf, "shape")]


def _group(source: Elements, size: int, drop: bool) -> Iterator[list[Element]]:
    """Yield lists of a number of elements; the last one may be shorter."""
    while group := list(itertools.islice(source, size)):
        if len(group) == size or not drop:
            yield group


def _group_windows(
    source: Elements, memory: Memory, key_of: Callable[[Element], int],
    size_of: Callable[[int], int], make: Callable[[int, list[Element]], Cursor],
) -> Elements:  # fmt: skip
    """Yield what is made of groups of elements of one key."""
    kept = memory.values
    groups, sizes = kept.setdefault("groups", {}), kept.setdefault("sizes", {})
    while True:
        if "window" in kept:
            key, group, *place = kept["window"]
            opened = functools.partial(call_again, place, make, key, group)
            yield from memory.iterate("window", opened)
            memory.close("window")
            del kept["window"]
        for element in source:
            key = key_of(element)
            groups.setdefault(key, []).append(element)
            if key not in sizes:
                sizes[key] = size_of(key)
            if len(groups[key]) == sizes[key]:
                break
        else:
            if not groups:
                return
            key = min(groups)
        sizes.pop(key)
        group, place = groups.pop(key), place_of_draws()
        memory.iterate("window", functools.partial(make, key, group))
        kept["window"] = [key, group, place]


def _stack_batch(group: list[Element]) -> Element:
    if any(hasattr(leaf, "element_spec") for leaf in leaves(group[0])):
        raise TypeError("Datasets cannot be batched: batch what is in them, and flat_map it.")
    return batch_elements(group)


def _int64(number: int) -> Any:
    return np.asarray(number, np.int64)


def _number(found: Any, what: str) -> int:
    return one_int(to_host(found) if hasattr(found, "_array") else found, what)
