"""Reading a checkpoint on disk: a folder that orbax wrote, or one .npz file.

Rules this file keeps:
- sizes are checked against the manifest, and that against the size of the files, before memory
  is taken; no pickle, nothing compressed, nothing of a file is run or names another file;
- every value is compared with its checksum. What is wrong is collected for all variables, and
  raised as one CheckpointError where they were asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import weakref
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, final
from urllib.parse import quote

import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.checksum import Entry, decode
from jaxvars.checkpoint.disk import DamageError, PathLike, absolute, is_folder, status_of, tamed
from jaxvars.errors import CheckpointError
from jaxvars.typing import Array

MANIFEST = "jaxvars.json"
FORMAT = 2  # 1 had the slots of optimizers by the names of their variables
_SIMPLE = re.compile(r"\w[\w\-]*(/[\w\-]+)*", re.ASCII)


def set_aside(target: Path) -> Path:
    """Return where a folder is while another takes its place."""
    return target.with_name(f"{target.name}.replaced")


def digest_of(words: Mapping[str, Any]) -> str:
    """Return the checksum of what JSON can say."""
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def stored_name(path: str) -> str:
    """Return what a variable's array is called on disk, safe as part of a path."""
    return path if _SIMPLE.fullmatch(path) else quote(path, safe="").replace(".", "%2E")


class Stored(ABC):
    """A checkpoint on disk.

    Attributes:
        path: where it is.
        entries: what it says of each variable, by path.
        time_ns: when it was written.
        about: what else was stored with it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        words = _checked_manifest(tamed(self._words, "its manifest is damaged: "))
        self.time_ns: int = words["time_ns"]
        self.about: dict[str, Any] = words["about"]
        self.entries = {p: Entry.from_json(entry) for p, entry in words["variables"].items()}
        total, size = sum(entry.nbytes for entry in self.entries.values()), self._size()
        if total > size:
            raise ValueError(f"it should hold {total:,} bytes, and its files have {size:,}")

    @abstractmethod
    def _words(self) -> Any:
        """Return the manifest as it is on disk."""

    @abstractmethod
    def _size(self) -> int:
        """Return how many bytes the files have."""

    @abstractmethod
    def _array(self, name: str, entry: Entry) -> np.ndarray:
        """Return the array of a variable; raise ValueError where it is not as it should be."""

    def read(self, path: str) -> np.ndarray:
        """Return the plain numbers of one variable.

        Raises:
            DamageError: when they are not what was written, with the reason.
        """
        entry = self.entries[path]
        stored = tamed(lambda: self._array_or_nothing(path, entry))
        if stored.shape != entry.stored_shape or stored.dtype != jnp.dtype(entry.stored_dtype):
            raise DamageError("its file is of another form than was written")
        if not entry.holds(stored):
            raise DamageError("its checksum is not that of what was written")
        return stored

    def _array_or_nothing(self, path: str, entry: Entry) -> np.ndarray:
        if entry.nbytes:
            return self._array(stored_name(path), entry)
        return np.empty(entry.stored_shape, jnp.dtype(entry.stored_dtype))

    def value(self, path: str) -> Array:
        """Return the value of one variable: a NumPy array, or a `jax.Array` of random keys.

        Raises:
            DamageError: when it is not what was written, with the reason.
        """
        stored = self.read(path)
        return tamed(lambda: decode(stored, self.entries[path]))

    def values(
        self, keep: Callable[[str, Array], Array] = lambda _, value: value
    ) -> tuple[dict[str, Array], dict[str, str]]:
        """Return the values by path, and what is wrong with those that are not as written.

        Args:
            keep: makes of a path and its value what is to be returned, before the next is read.
        """
        values: dict[str, Array] = {}
        problems: dict[str, str] = {}
        for path in self.entries:
            try:
                value = self.value(path)
            except DamageError as error:
                problems[path] = f"corrupt: {error}"
            else:
                values[path] = keep(path, value)
        return values, problems


def open_stored(path: PathLike) -> Stored:
    """Return a checkpoint on disk, with a sound manifest; no value has been read.

    Raises:
        CheckpointError: when there is none, or its manifest is damaged.
        OSError: when it cannot be read.
    """
    target = absolute(path)
    old = set_aside(target)
    place = old if status_of(target) is None and is_folder(old) else target
    if status_of(place) is None:
        raise CheckpointError(f"There is no checkpoint at {target}.{_near(target)}")
    try:
        return tamed(lambda: (Folder if is_folder(place) else File)(place))
    except DamageError as error:
        raise CheckpointError(
            f"{target} is not a checkpoint of jaxvars that can be restored: {error}."
        ) from None


def is_complete(path: PathLike) -> bool:
    """Return whether there is a checkpoint with a sound manifest, and as many bytes as it says."""
    try:
        open_stored(path)
    except CheckpointError:
        return False
    return True


def is_damaged(path: PathLike) -> bool:
    """Return whether a checkpoint is not what was written."""
    try:
        return bool(open_stored(path).values()[1])
    except CheckpointError:
        return True


def _near(target: Path) -> str:
    if not target.parent.is_dir():
        return f" There is no folder {target.parent} either."
    names = sorted(p.name for p in target.parent.iterdir())[:8]
    return f" In {target.parent} there are: {', '.join(names) or 'no files'}."


def _checked_manifest(words: Any) -> dict[str, Any]:
    if not isinstance(words, dict) or "jaxvars" not in words:
        raise ValueError("it has no manifest, so that its values could not be verified")
    if words["jaxvars"] != FORMAT:
        raise ValueError(f"its format is {words['jaxvars']!r}, and this version reads {FORMAT}")
    rest = {key: word for key, word in words.items() if key != "sha256"}
    if words.get("sha256") != digest_of(rest):
        raise ValueError("its manifest is damaged")
    return words


@final
class Folder(Stored):
    """A checkpoint of orbax: zarr arrays in an OCDBT database, each read by itself."""

    def _words(self) -> Any:
        file = self.path / "_METADATA"
        if status_of(file) is None:
            return None
        text = file.read_text(encoding="utf-8")
        return json.loads(text).get("custom_metadata")

    def _size(self) -> int:
        return _bytes_in(self.path)

    def require_all(self) -> None:
        """Raise DamageError if an array is not there, as orbax may lose some without a word."""
        opening = [
            (path, self._open(stored_name(path), entry))
            for path, entry in self.entries.items()
            if entry.nbytes
        ]
        for path, array in opening:
            tamed(array.result, f"{path} is lost: ")

    def _array(self, name: str, entry: Entry) -> np.ndarray:
        return self._open(name, entry).result().read().result()

    def _open(self, name: str, entry: Entry) -> Any:
        import tensorstore as ts

        base = {"driver": "file", "path": f"{self.path}/"}
        spec = {
            "driver": "zarr",
            "kvstore": {"driver": "ocdbt", "base": base, "path": f"{name}/"},
            "metadata": {"compressor": None, "filters": None, "shape": list(entry.stored_shape)},
            "dtype": entry.stored_dtype,
        }
        return ts.open(spec, open=True, read=True)


def _bytes_in(folder: str | Path) -> int:
    """Return the bytes of the files in a folder; `rglob` would leave out what it cannot list."""
    with os.scandir(folder) as found:
        return sum(
            each.stat(follow_symlinks=False).st_size
            + (_bytes_in(each.path) if each.is_dir(follow_symlinks=False) else 0)
            for each in found
        )


@final
class File(Stored):
    """A checkpoint in one .npz file, which stays open: another may take its place meanwhile."""

    def _words(self) -> Any:
        file = self.path.open("rb")
        weakref.finalize(self, file.close)
        self._bytes = os.fstat(file.fileno()).st_size
        self._archive = zipfile.ZipFile(file)
        return json.loads(self._member(MANIFEST))

    def _size(self) -> int:
        return self._bytes

    def _array(self, name: str, entry: Entry) -> np.ndarray:
        data = io.BytesIO(self._member(f"{name}.npy"))
        version = np.lib.format.read_magic(data)
        if version != (1, 0):
            raise ValueError(f"its header has version {version}")
        shape, in_columns, dtype = np.lib.format.read_array_header_1_0(data)
        rest = data.getbuffer()[data.tell() :]
        if dtype.kind not in "biufc" or shape != entry.stored_shape or len(rest) != entry.nbytes:
            raise ValueError("its file is of another form than was written")
        array = np.frombuffer(rest, jnp.dtype(entry.stored_dtype))
        return array.reshape(shape, order="F" if in_columns else "C")

    def _member(self, name: str) -> bytes:
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > self._size():
            raise ValueError(f"{name} is compressed, which no checkpoint is")
        return self._archive.read(info)


def newest(paths: Iterable[Path]) -> Path | None:
    """Return the checkpoint that was written last, of those that are complete."""
    found: list[tuple[int, Path]] = []
    for path in paths:
        with contextlib.suppress(CheckpointError):
            found.append((open_stored(path).time_ns, path))
    return max(found)[1] if found else None
