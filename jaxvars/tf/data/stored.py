"""The steps of datasets that keep elements: in memory, or in files.

A folder has a file of records for each shard, and `dataset.json`, which says how many there are and
what an element is. A record holds the arrays of an element (`generators/components.py`).

Rules this file keeps:
- `dataset.json` is written last, and all at once: without it nothing was saved.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from abc import ABC
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from jaxvars.tf.data.base import DatasetBase, Elements, check_dataset, check_positive
from jaxvars.tf.data.generators.calls import call_function, check_function
from jaxvars.tf.data.generators.components import (
    arrays_of,
    element_of,
    spec_from_json,
    spec_to_json,
)
from jaxvars.tf.data.generators.cursor import Memory, indexed, numbered
from jaxvars.tf.errors import NotFoundError, OutOfRangeError, UnimplementedError
from jaxvars.tf.io.records import TFRecordWriter, compression_kind, records
from jaxvars.tf.io.tensors import from_bytes, to_bytes
from jaxvars.tf.messages import message, parse
from jaxvars.tf.tensors.elements import DatasetSpec, Element, leaves, to_host, to_tensors
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
            return self._like("CacheDataset", lambda memory: _read_or_write(self, memory, path, ""))
        whole: list[list[Element]] = []

        def step(memory: Memory) -> Elements:
            kept = memory.values
            if kept.get("full") and not whole:
                whole.append(kept["seen"])
            if whole:
                kept.update(seen=whole[0], full=True)
                yield from indexed(memory, len(whole[0]), lambda i: whole[0][i])
                return
            seen = kept.setdefault("seen", [])
            for element in memory.iterate("source", self._cursor):
                seen.append(element)
                yield element
            kept["i"] = len(seen)
            if not whole:
                whole.append(seen)

        return self._like("CacheDataset", step)

    def save(
        self,
        path: Any,
        compression: Any = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:
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
        files = list(stored.counts)

        def part(shard: int) -> Self:
            return cls(
                "_LoadDataset",
                lambda memory: _read_folder(memory, stored, shard),
                stored.counts[shard],
                lambda: stored.spec,
            )

        if reader_func is None and len(files) == 1:
            return part(files[0])
        parts: Any = cls(
            "_TensorSliceDataset",
            lambda _: (part(i) for i in files),
            len(files),
            lambda: DatasetSpec(stored.spec),
        )
        if reader_func is None:
            made = parts.interleave(lambda x: x, cycle_length=os.cpu_count() or 1)
            size = sum(stored.counts.values())
        else:
            made = check_dataset(reader_func(parts))
            size = made._count
        spec = None if files else lambda: stored.spec
        return made._like(made._kind, made._run, size, spec)

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
            return self._like(
                "_MapDataset", lambda memory: _read_or_write(self, memory, folder, kind)
            )

        def step(memory: Memory) -> Elements:
            if not is_stored(Path(folder)):
                self.save(folder, kind, shard_func)
            whole = type(self).load(folder, reader_func=reader_func)
            return memory.iterate("stored", whole._cursor)

        return self._like("_MapDataset", step)

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


def _read_or_write(source: DatasetBase, memory: Memory, path: str, kind: str) -> Elements:
    """Yield the elements in a folder; those of a dataset, which are written there, if none are."""
    folder = Path(path)
    if is_stored(folder):
        return _read_folder(memory, Folder(folder))
    return _write_through(source, memory, Writer(folder, source._spec(), kind))


def _write_through(source: DatasetBase, memory: Memory, writer: Writer) -> Elements:
    kept = memory.values
    seen = kept.setdefault("seen", [])  # what was written, for an iterator that is restored
    for element in seen:
        writer.write(element)
    for element in memory.iterate("source", source._cursor):
        seen.append(element)
        writer.write(element)
        yield element
    writer.close()
    kept["i"] = len(seen)


# ---------------------------------------------------------------- in folders
_FACTS = "dataset.json"


@final
class Writer:
    """Writes elements of a spec into a folder, with a kind of compression."""

    def __init__(self, folder: Path, spec: Any, kind: str = "") -> None:
        for leaf in leaves(spec):
            if isinstance(leaf, DatasetSpec):
                raise UnimplementedError(
                    message="Datasets that are elements cannot be written: flat_map them before."
                )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _FACTS).unlink(missing_ok=True)
        self._folder, self._spec, self._kind = folder, spec, kind
        self._writers: dict[int, TFRecordWriter] = {}
        self._counts: dict[int, int] = {}

    def write(self, element: Element, shard: int = 0) -> None:
        """Write an element into a shard."""
        if shard not in self._writers:
            self._writers[shard] = TFRecordWriter(_file(self._folder, shard), self._kind)
            self._counts[shard] = 0
        parts = list(map(to_bytes, arrays_of(element)))
        self._writers[shard].write(message("BytesList")(value=parts).SerializeToString())
        self._counts[shard] += 1

    def close(self) -> None:
        """End the files: now there is something to read."""
        for writer in self._writers.values():
            writer.close()
        counts = {str(shard): self._counts[shard] for shard in sorted(self._counts)}
        facts = {"spec": spec_to_json(self._spec), "counts": counts, "compression": self._kind}
        part = self._folder / f"{_FACTS}.part"
        part.write_text(json.dumps(facts))
        part.replace(self._folder / _FACTS)


@final
class Folder:
    """The elements in a folder."""

    def __init__(self, folder: Path) -> None:
        try:
            facts = json.loads((folder / _FACTS).read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(
                message=f"tf.data snapshot element_spec file not found: {folder / _FACTS}. No "
                "dataset was saved there, or not to its end."
            ) from None
        self._folder, self._kind = folder, facts["compression"]
        self.spec = spec_from_json(facts["spec"])
        self.counts: dict[int, int] = {int(i): n for i, n in facts["counts"].items()}

    def element(self, shard: int, start: int = 0) -> Iterator[Element]:
        """Yield the elements of a shard, but for some first ones."""
        for data in records(_file(self._folder, shard), self._kind, start):
            yield element_of(self.spec, map(from_bytes, parse("BytesList", data).value))


def is_stored(folder: Path) -> bool:
    """Return whether there are elements in a folder."""
    return (folder / _FACTS).exists()


def _file(folder: Path, shard: int) -> Path:
    return folder / f"shard-{shard:05d}.tfrecord"
