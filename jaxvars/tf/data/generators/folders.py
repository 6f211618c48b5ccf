"""Elements in folders: what `Dataset.save`, `snapshot` and `cache` write and read.

A folder has a file of records for each shard, and `dataset.json`, which says how many there are and
what an element is. A record holds the arrays of an element (`components.py`).

Rules this file keeps:
- `dataset.json` is written last, and all at once: without it nothing was saved;
- each writer has its own files: of two that write at the same time, one is read from;
- what was written has a digest, by which an iterator that is restored knows it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, final

from jaxvars.tf.data.generators.components import (
    arrays_of,
    element_of,
    spec_from_json,
    spec_to_json,
)
from jaxvars.tf.errors import NotFoundError, UnimplementedError
from jaxvars.tf.io.records import TFRecordWriter, records
from jaxvars.tf.io.tensors import from_bytes, to_bytes
from jaxvars.tf.messages import message, parse
from jaxvars.tf.tensors.elements import DatasetSpec, Element, leaves

_FACTS = "dataset.json"
_PREFIX = "elements"


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
        self._folder, self._spec, self._kind = folder, spec, kind
        self._name, self._digest = uuid.uuid4().hex[:8], hashlib.sha256()
        self._writers: dict[int, TFRecordWriter] = {}
        self._counts: dict[int, int] = {}

    def write(self, element: Element, shard: int = 0) -> None:
        """Write an element into a shard."""
        if shard not in self._writers:
            path = _file(self._folder, shard, self._name)
            self._writers[shard] = TFRecordWriter(path, self._kind)
            self._counts[shard] = 0
        parts = list(map(to_bytes, arrays_of(element)))
        record = message("BytesList")(value=parts).SerializeToString()
        self._writers[shard].write(record)
        self._counts[shard] += 1
        self._digest.update(b"%d %d " % (shard, len(record)))
        self._digest.update(record)

    def close(self) -> None:
        """End the files: now there is something to read, and no other files are needed."""
        for writer in self._writers.values():
            writer.close()
        counts = {str(shard): self._counts[shard] for shard in sorted(self._counts)}
        own = [_file(self._folder, shard, self._name) for shard in self._counts]
        if all(path.exists() for path in own):  # else another writer has ended meanwhile
            facts = {
                "spec": spec_to_json(self._spec), "counts": counts, "compression": self._kind,
                "name": self._name, "digest": self._digest.hexdigest(),
            }  # fmt: skip
            part = self._folder / f"{_FACTS}.{self._name}"
            part.write_text(json.dumps(facts))
            part.replace(self._folder / _FACTS)
            _remove(set(self._folder.glob(f"{_PREFIX}-*-????????.tfrecord")).difference(own))
        self._writers = {}

    def drop(self) -> None:
        """Remove what was written, unless it was to the end."""
        for writer in self._writers.values():
            writer.close()
        _remove(_file(self._folder, shard, self._name) for shard in self._writers)


@final
class Folder:
    """The elements in a folder.

    Attributes:
        spec: of an element.
        counts: how many there are, by shard.
        digest: of all of them.
    """

    def __init__(self, folder: Path) -> None:
        try:
            facts = json.loads((folder / _FACTS).read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(
                message=f"tf.data snapshot element_spec file not found: {folder / _FACTS}. No "
                "dataset was saved there, or not to its end."
            ) from None
        self._folder, self._kind, self._name = folder, facts["compression"], facts.get("name", "")
        self.digest: str = facts.get("digest", "unknown")
        self.spec = spec_from_json(facts["spec"])
        self.counts: dict[int, int] = {int(i): n for i, n in facts["counts"].items()}

    def element(self, shard: int, start: int = 0) -> Iterator[Element]:
        """Yield the elements of a shard, but for some first ones."""
        for data in records(_file(self._folder, shard, self._name), self._kind, start):
            yield element_of(self.spec, map(from_bytes, parse("BytesList", data).value))


def is_stored(folder: Path) -> bool:
    """Return whether there are elements in a folder."""
    return (folder / _FACTS).exists()


def _file(folder: Path, shard: int, name: str) -> Path:
    stem = f"{_PREFIX}-{shard:05d}-{name}" if name else f"shard-{shard:05d}"  # as it was once
    return folder / f"{stem}.tfrecord"


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # which may be gone, or open
            path.unlink(missing_ok=True)
