"""Elements in files: what `Dataset.save`, `cache(filename)` and `snapshot` write.

A folder has a file of records for each shard, and `dataset.json`, which says how many there are and
what an element is. A record holds the tensors of an element, in the order of its leaves.

Rules this file keeps:
- `dataset.json` is written last, and all at once: without it nothing was saved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

from jaxvars.tf.errors import NotFoundError, UnimplementedError
from jaxvars.tf.io.messages import message, parse
from jaxvars.tf.io.records import TFRecordWriter, records
from jaxvars.tf.io.tensors import from_bytes, to_bytes
from jaxvars.tf.tensors.elements import (
    DatasetSpec,
    Element,
    host,
    leaves,
    packed,
    spec_of_words,
    spec_words,
)

_FACTS = "dataset.json"


@final
class Writer:
    """Writes elements into a folder.

    Args:
        folder: where to.
        spec: of an element.
        kind: of compression: "GZIP", "ZLIB" or "".
    """

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
        parts = [to_bytes(host(leaf)) for leaf in leaves(element)]
        self._writers[shard].write(message("BytesList")(value=parts).SerializeToString())
        self._counts[shard] += 1

    def close(self) -> None:
        """End the files: now there is something to read."""
        for writer in self._writers.values():
            writer.close()
        counts = {str(shard): self._counts[shard] for shard in sorted(self._counts)}
        facts = {"spec": spec_words(self._spec), "counts": counts, "compression": self._kind}
        part = self._folder / f"{_FACTS}.part"
        part.write_text(json.dumps(facts))
        part.replace(self._folder / _FACTS)


@final
class Stored:
    """Elements in a folder.

    Args:
        folder: where they are.

    Raises:
        NotFoundError: when there are none.
    """

    def __init__(self, folder: Path) -> None:
        try:
            facts = json.loads((folder / _FACTS).read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(
                message=f"tf.data snapshot element_spec file not found: {folder / _FACTS}. No "
                "dataset was saved there, or not to its end."
            ) from None
        self._folder, self._kind = folder, facts["compression"]
        self.spec = spec_of_words(facts["spec"])
        self.counts: dict[int, int] = {int(i): n for i, n in facts["counts"].items()}

    def element(self, shard: int, start: int = 0) -> Iterator[Element]:
        """Yield the elements of a shard, but for some first ones."""
        for data in records(_file(self._folder, shard), self._kind, start):
            yield packed(self.spec, list(map(from_bytes, parse("BytesList", data).value)))


def is_stored(folder: Path) -> bool:
    """Return whether there are elements in a folder."""
    return (folder / _FACTS).exists()


def _file(folder: Path, shard: int) -> Path:
    return folder / f"shard-{shard:05d}.tfrecord"
