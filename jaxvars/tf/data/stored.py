"""The steps of datasets that keep elements: in memory, or in files (`generators/folders.py`).

Rules this file keeps:
- an iterator that was saved while it wrote goes on to write, whatever is there by now; one that
  read goes on with what it had read from, or is refused.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from abc import ABC
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from jaxvars.tf.data.base import DatasetBase, Elements, check_dataset, check_positive
from jaxvars.tf.data.generators.calls import call_function, check_function
from jaxvars.tf.data.generators.cursor import Memory, Shared, indexed, numbered
from jaxvars.tf.data.generators.folders import Folder, Writer, is_stored
from jaxvars.tf.errors import FailedPreconditionError, OutOfRangeError, UnimplementedError
from jaxvars.tf.io.records import compression_kind
from jaxvars.tf.tensors.elements import DatasetSpec, Element, to_host, to_tensors
from jaxvars.tf.tensors.static import one_int, refused


class Kept(DatasetBase, ABC):
    """The steps that keep elements."""

    def cache(self, filename: Any = "", name: str | None = None) -> Self:
        """Keep the elements once all of them were requested.

        Args:
            filename: a folder to keep them in, for other programs, too; in memory if empty.
            name: of no effect.
        """
        if path := _to_path(filename):
            return self._kept_in("CacheDataset", path, "")
        whole = _Whole()

        def step(memory: Memory) -> Elements:
            kept = memory.values
            if kept.pop("full", False):  # as it was written once
                whole.elements = kept.pop("seen")
            if "seen" not in kept and (whole.elements is not None or "i" in kept):
                elements = whole.require()
                yield from indexed(memory, len(elements), lambda i: elements[i])
                return
            is_begun, seen = "seen" in kept, kept.setdefault("seen", [])
            for element in memory.iterate("source", self._cursor):
                seen.append(element)
                yield element
            if is_begun or whole.elements is None:
                whole.elements = seen
            memory.finish(len(seen))

        return self._like("CacheDataset", step, parts=(*self._parts, whole))

    def _kept_in(self, kind: str, folder: str, compression: str) -> Self:
        """Return a dataset that writes the elements into a folder, or reads them from it."""
        place = _Place(Path(folder))

        def step(memory: Memory) -> Elements:
            if place.is_to_read(memory):
                return _read_folder(memory, place.open(lambda: self.save(folder, compression)))
            return _write_through(self, memory, place, compression)

        return self._like(kind, step, parts=(*self._parts, place))

    def save(
        self, path: Any, compression: Any = None, shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:  # fmt: skip
        """Write the elements into a folder, for `load`.

        Args:
            path: of the folder.
            compression: "GZIP" or None.
            shard_func: takes an element, returns the number of the file to write it into.
            checkpoint_args: must be None.

        Raises:
            UnimplementedError: for `checkpoint_args`.

        Example:
            >>> import tempfile
            >>> from jaxvars.tf.data import Dataset
            >>> folder = tempfile.TemporaryDirectory()
            >>> Dataset.range(3).save(folder.name)
            >>> [int(x) for x in Dataset.load(folder.name)]
            [0, 1, 2]
            >>> folder.cleanup()

        Differs from TensorFlow: the files are others, which TensorFlow cannot read.
        """
        if checkpoint_args is not None:
            raise UnimplementedError(
                message="Dataset.save writes a dataset in one go: leave out checkpoint_args."
            )
        number = None if shard_func is None else check_function(shard_func)
        writer = Writer(Path(_to_path(path)), self._spec(), _check_compression(compression))
        for element in self._elements():
            shard = (
                0
                if number is None
                else one_int(to_host(call_function(number, element)), "shard_func")
            )
            writer.write(element, shard)
        writer.close()

    @classmethod
    def load(
        cls, path: Any, element_spec: Any = None, compression: Any = None,
        reader_func: Callable[[Any], Any] | None = None, wait: bool = False,
    ) -> Self:  # fmt: skip
        """Make a dataset of what `save` wrote.

        Args:
            path: of the folder.
            element_spec: accepted: it is in the folder.
            compression: accepted: it is in the folder.
            reader_func: takes a dataset of datasets, one for each file, and returns one.
            wait: must be false.

        Raises:
            NotFoundError: when nothing was saved there.
        """
        if wait:
            raise UnimplementedError(message="Dataset.load reads what is there: leave out wait.")
        stored = Folder(Path(_to_path(path)))
        files, size = list(stored.counts), sum(stored.counts.values())

        def part(shard: int) -> Self:
            return cls(
                "_LoadDataset",
                lambda memory: _read_folder(memory, stored, shard),
                stored.counts[shard],
                lambda: stored.spec,
            )

        if reader_func is None and len(files) == 1:
            return part(files[0])
        if reader_func is None:
            whole: Any = cls
            numbers = whole.from_tensor_slices(np.asarray(files, np.int64))
            made = numbers.interleave(lambda i: part(int(i)), cycle_length=os.cpu_count() or 1)
            return made._like(made._kind, made._run, size, lambda: stored.spec)
        parts: Any = cls(
            "_TensorSliceDataset",
            lambda memory: indexed(memory, len(files), lambda i: part(files[i])),
            len(files),
            lambda: DatasetSpec(stored.spec),
        )
        made = check_dataset(reader_func(parts))
        return made._like(made._kind, made._run, None, None if files else lambda: stored.spec)

    def snapshot(
        self, path: Any, compression: Any = "AUTO", reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Write the elements into a folder the first time, and read them from there later.

        Args:
            path: of the folder.
            compression: "GZIP", "AUTO" or None.
            reader_func: as in `load`.
            shard_func: as in `save`.
            name: of no effect.

        Differs from TensorFlow: a dataset of other elements writes others only if its last step,
        its size or its spec differ.
        """
        facts = f"{self._kind} {self._count} {self._spec()}"
        name = hashlib.sha256(facts.encode()).hexdigest()[:16]
        folder, kind = f"{_to_path(path)}/{name}", _check_compression(compression)
        if reader_func is None and shard_func is None:
            return self._kept_in("_SnapshotDataset", folder, kind)
        place = _Place(Path(folder))

        def step(memory: Memory) -> Elements:
            place.open(lambda: self.save(folder, kind, shard_func))
            whole = type(self).load(folder, reader_func=reader_func)
            return memory.iterate("stored", whole._begin)

        return self._like("_SnapshotDataset", step, parts=(*self._parts, place))

    def at(self, index: Any) -> Any:
        """Return the element of an index.

        Raises:
            OutOfRangeError: when there is none.
        """
        place = one_int(index, "index")
        if place >= 0:
            for element in itertools.islice(self._elements(), place, None):
                return to_tensors(element)
        raise OutOfRangeError(
            message=f"Index out of range [0, {self._count}):{place} [Op:GetElementAtIndex] name: "
        )

    def pad_to_cardinality(self, count: Any, mask_key: str) -> Self:
        """Put empty elements after these, and mark in each whether it is one that was there.

        Args:
            count: how many elements there are to be.
            mask_key: the key of that mark, a bool; elements are dicts.

        Raises:
            ValueError: when elements are not dicts, or have that key.
        """
        spec, wanted = self._spec(), check_positive(count, "cardinality")
        if not isinstance(spec, dict):
            raise ValueError("`pad_to_cardinality` requires its input dataset to be a dictionary.")
        if mask_key in spec:
            raise ValueError(f"`{mask_key}` is already an element of the dataset.")
        if self._count > wanted:
            raise refused(
                f"The dataset has {self._count} elements, more than the cardinality {wanted}."
            )
        whole: Any = self
        marked = whole.map(lambda x: {**x, mask_key: np.asarray(True)})

        def empty(x: Any) -> Any:
            none = {key: np.zeros(leaf.shape, leaf.dtype.as_numpy_dtype) for key, leaf in x.items()}
            return {**none, mask_key: np.asarray(False)}

        return marked.concatenate(whole.take(1).map(empty).repeat()).take(wanted)


def _to_path(path: Any) -> str:
    if hasattr(path, "dtype"):
        path = to_host(path).item()
    return path.decode() if isinstance(path, bytes) else os.fspath(path)


def _check_compression(kind: Any) -> str:
    return compression_kind("GZIP" if kind == "AUTO" else None if kind in ("NONE", "") else kind)


def _read_folder(memory: Memory, stored: Folder, shard: int = 0) -> Elements:
    return numbered(memory, lambda i: stored.element(shard, i) if stored.counts else ())


def _write_through(source: DatasetBase, memory: Memory, place: _Place, kind: str) -> Elements:
    """Yield the elements of a dataset, and write them into a folder."""
    writer = Writer(place.folder, source._spec(), kind)
    seen = memory.values.setdefault(
        "seen", []
    )  # what was written, for an iterator that is restored
    try:
        for element in seen:
            writer.write(element)
        for element in memory.iterate("source", source._cursor):
            seen.append(element)
            writer.write(element)
            yield element
        writer.close()
    finally:
        writer.drop()
    place.digest = None
    memory.finish(len(seen))


@final
class _Whole(Shared):
    """The elements of a cache in memory, if there are any yet."""

    def __init__(self) -> None:
        self.elements: list[Element] | None = None

    def save(self) -> list[Element] | None:
        """Return the elements."""
        return self.elements

    def load(self, state: list[Element] | None) -> None:
        """Hold what there was, if anything."""
        self.elements = state

    def require(self) -> list[Element]:
        """Return the elements; raise FailedPreconditionError if another iterator took them."""
        if self.elements is None:
            raise FailedPreconditionError(
                message="The `cache` that this iterator reads is empty: another iterator over the "
                "dataset was restored to where nothing was in it. Begin again with iter(dataset)."
            )
        return self.elements


@final
class _Place(Shared):
    """The folder of a cache.

    Attributes:
        digest: of what must be in it, for iterators that are restored: "" where it was empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digest: str | None = None

    def save(self) -> str:
        """Return the digest of what is there."""
        return Folder(self.folder).digest if is_stored(self.folder) else ""

    def load(self, state: str) -> None:
        """Require what was there."""
        self.digest = state

    def is_to_read(self, memory: Memory) -> bool:
        """Return whether a step reads: not if it had begun to write, or is to write again."""
        return "seen" not in memory.values and (
            "i" in memory.values or bool(self.digest)
            or (self.digest is None and is_stored(self.folder))
        )  # fmt: skip

    def open(self, write: Callable[[], None]) -> Folder:
        """Return the folder, written if nothing is there that could be read.

        Raises:
            FailedPreconditionError: when there is something else than what was read from.
        """
        if self.digest == "" or not is_stored(self.folder):
            write()
        stored = Folder(self.folder)
        if self.digest not in (None, "", stored.digest):
            raise FailedPreconditionError(
                message=f"The iterator was saved while a `cache` or `snapshot` in {self.folder} "
                "held other elements than it does now, and where it was in them is not known. Put "
                "the folder back that was there, or make the dataset again and begin with the "
                "first element."
            )
        self.digest = self.digest or None
        return stored
