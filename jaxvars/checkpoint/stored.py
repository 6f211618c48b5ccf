"""Reading a checkpoint on disk: a folder that orbax wrote, or one .npz file.

Rules this file keeps:
- sizes are checked against the manifest, and that against the size of the files, before memory
  is taken; no pickle, nothing compressed, nothing of a file is run or names another file;
- every value is compared with its checksum. What is wrong is collected for all variables, and
  raised as one CheckpointError where they were asked for.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import weakref
import zipfile
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar, final
from urllib.parse import quote

import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.checksum import Entry, decode, from_npy
from jaxvars.checkpoint.disk import (
    DamageError,
    PathLike,
    absolute,
    check_regular,
    is_folder,
    read_checked,
    status_of,
)
from jaxvars.errors import CheckpointError
from jaxvars.typing import Array

S = TypeVar("S")
T = TypeVar("T")

MANIFEST = "jaxvars.json"
FORMAT = 2  # 1 had the slots of optimizers by the names of their variables
_SIMPLE = re.compile(r"\w[\w\-]*(/[\w\-]+)*", re.ASCII)


def set_aside(target: Path) -> Path:
    """Return where a folder is while another takes its place."""
    return target.with_name(f".{target.name}.replaced")  # hidden: no name of a user's


def _name_after(name: str) -> str:
    """Return the name that a file is to have, if it was set aside."""
    found = re.fullmatch(r"\.(.+)\.replaced", name)
    return name if found is None else found[1]


def checksum_of(data: Mapping[str, Any]) -> str:
    """Return the checksum of what JSON can say."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


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
        manifest = _check_manifest(read_checked(self._words, "its manifest is damaged: "))
        self.time_ns: int = manifest["time_ns"]
        self.about: dict[str, Any] = manifest["about"]
        self.entries = {p: Entry.from_json(entry) for p, entry in manifest["variables"].items()}
        total, size = sum(entry.nbytes for entry in self.entries.values()), self._size()
        if total > size:
            raise ValueError(f"it should hold {total:,} bytes, and its files have {size:,}")

    @property
    def stamp(self) -> tuple[str, int]:
        """What tells it from others, and from what was at its path before."""
        return str(self.path), self.time_ns

    @abstractmethod
    def _words(self) -> Any:
        """Return the manifest as it is on disk."""

    @abstractmethod
    def _size(self) -> int:
        """Return how many bytes the files have."""

    @abstractmethod
    def _array(self, path: str, entry: Entry) -> np.ndarray:
        """Return the array of a variable; raise ValueError where it is not as it should be."""

    def _loaders(self) -> Iterator[Callable[[], np.ndarray]]:
        """Yield what returns the array of each variable; they may be read together."""
        return (functools.partial(self._array, *each) for each in self.entries.items())

    def value(self, path: str) -> Array:
        """Return one value, a NumPy array or random keys; raise DamageError if it is another."""
        return self._value(path, functools.partial(self._array, path, self.entries[path]))

    def _value(self, path: str, load: Callable[[], np.ndarray]) -> Array:
        """Return the value of an array that is loaded, verified."""
        entry = self.entries[path]
        stored = read_checked(load if entry.nbytes else entry.empty)
        if stored.shape != entry.stored_shape or stored.dtype != jnp.dtype(entry.stored_dtype):
            raise DamageError("its file is of another form than was written")
        if not entry.holds(stored):
            raise DamageError("its checksum is not that of what was written")
        return read_checked(lambda: decode(stored, entry))

    def values(
        self, keep: Callable[[str, Array], Array] = lambda _, value: value
    ) -> tuple[dict[str, Array], dict[str, str]]:
        """Return the values by path, each after `keep`, and what is wrong with the others."""
        values: dict[str, Array] = {}
        problems: dict[str, str] = {}
        for path, load in zip(self.entries, self._loaders(), strict=True):
            try:
                value = self._value(path, load)
            except DamageError as error:
                problems[path] = f"corrupt: {error}"
            else:
                values[path] = keep(path, value)
        return values, problems


def open_stored(path: PathLike) -> Stored:
    """Return a checkpoint with a sound manifest; raise CheckpointError if there is none."""
    target = absolute(path)
    old = set_aside(target)
    place = old if status_of(target) is None and is_folder(old) else target
    if status_of(place) is None:
        raise CheckpointError(f"No checkpoint exists at {target}.{_list_near(target)}")
    try:
        return read_checked(lambda: (Folder if is_folder(place) else File)(place))
    except DamageError as error:
        latest = latest_checkpoint(target) if is_folder(target) else None
        cure = f" Checkpoints are in it; the latest is {latest}." if latest else ""
        raise CheckpointError(
            f"{target} is not a checkpoint of jaxvars that can be restored: {error}.{cure}"
        ) from None


def is_damaged(path: PathLike) -> bool:
    """Return whether a checkpoint is not what was written."""
    try:
        return bool(open_stored(path).values()[1])
    except CheckpointError:
        return True


def _list_near(target: Path) -> str:
    if not target.parent.is_dir():
        return f" The folder {target.parent} does not exist either."
    names = sorted(p.name for p in target.parent.iterdir())[:8]
    return f" In {target.parent} there are: {', '.join(names) or 'no files'}."


def _check_manifest(manifest: Any) -> dict[str, Any]:
    if not isinstance(manifest, dict) or "jaxvars" not in manifest:
        raise ValueError("it has no manifest, so that its values could not be verified")
    if manifest["jaxvars"] != FORMAT:
        raise ValueError(f"its format is {manifest['jaxvars']!r}, and this version reads {FORMAT}")
    rest = {key: word for key, word in manifest.items() if key != "sha256"}
    if manifest.get("sha256") != checksum_of(rest):
        raise ValueError("its manifest is damaged")
    return manifest


_OPENED = 256  # arrays that are opened ahead
_READ = 2**26  # bytes that are read ahead


def _ahead(items: Iterable[tuple[S, int]], start: Callable[[S], T], limit: int) -> Iterator[T]:
    """Yield what is started for each item, after others were whose costs add up to a limit."""
    started: deque[tuple[T, int]] = deque()
    total = 0
    for item, cost in items:
        while started and total + cost > limit:
            first, price = started.popleft()
            total -= price
            yield first
        started.append((start(item), cost))
        total += cost
    yield from (first for first, _ in started)


def _start(action: Callable[[], Any]) -> Callable[[], Any]:
    """Return what gives the result of something that was begun, or raises why it was not."""
    try:
        return action().result
    except Exception as error:  # noqa: BLE001 - raised where the value is asked for
        return functools.partial(_raise, error)


def _start_reading(opened: Callable[[], Any]) -> Callable[[], np.ndarray]:
    return _start(lambda: opened().read())


def _raise(error: Exception) -> NoReturn:
    raise error


@final
class Folder(Stored):
    """A checkpoint of orbax: zarr arrays in an OCDBT database, some of them read at once."""

    def _words(self) -> Any:
        file = self.path / "_METADATA"
        if status_of(file) is None:
            return None
        return json.loads(check_regular(file).read_text(encoding="utf-8")).get("custom_metadata")

    def _size(self) -> int:
        return _bytes_in(self.path)

    def require_all(self) -> None:
        """Raise DamageError if an array is not there, as orbax may lose some without a word."""
        paths = [path for path, entry in self.entries.items() if entry.nbytes]
        for path, opened in [(path, self._open(path)) for path in paths]:
            read_checked(opened, f"{path} is lost: ")

    def _array(self, path: str, entry: Entry) -> np.ndarray:
        return _start_reading(self._open(path))()

    def _loaders(self) -> Iterator[Callable[[], np.ndarray]]:
        """Yield what returns each array; those that follow are read meanwhile."""
        opened = _ahead(((path, 1) for path in self.entries), self._open, _OPENED)
        sizes = (entry.nbytes for entry in self.entries.values())
        return _ahead(zip(opened, sizes, strict=True), _start_reading, _READ)

    def _open(self, path: str) -> Callable[[], Any]:
        """Begin to open the array of a variable."""
        import tensorstore as ts

        entry = self.entries[path]
        spec = {
            "driver": "zarr",
            "kvstore": {
                "driver": "ocdbt",
                "base": {"driver": "file", "path": f"{self.path}/"},
                "path": f"{stored_name(path)}/",
                "cache_pool": "cache_pool#index",
            },
            "metadata": {"compressor": None, "filters": None, "shape": list(entry.stored_shape)},
            "dtype": entry.stored_dtype,
        }
        return _start(lambda: ts.open(spec, open=True, read=True, context=self._context))

    @functools.cached_property
    def _context(self) -> Any:
        """Keeps the database's index, or it is read again for each array."""
        import tensorstore as ts

        return ts.Context({"cache_pool#index": {"total_bytes_limit": 2**26}})


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
        file = check_regular(self.path).open("rb")
        weakref.finalize(self, file.close)
        self._bytes = os.fstat(file.fileno()).st_size
        self._archive = zipfile.ZipFile(file)
        return json.loads(self._member(MANIFEST))

    def _size(self) -> int:
        return self._bytes

    def _array(self, path: str, entry: Entry) -> np.ndarray:
        return from_npy(self._member(f"{stored_name(path)}.npy"), entry)

    def _member(self, name: str) -> bytes:
        info = self._archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED or info.file_size > self._size():
            raise ValueError(f"{name} is compressed, which no checkpoint is")
        return self._archive.read(info)


# ---------------------------------------------------------------- without the objects
def list_variables(path: PathLike) -> list[tuple[str, tuple[int, ...]]]:
    """List the paths and shapes of all values in a checkpoint; reads none of them.

    Args:
        path: of a checkpoint.

    Returns:
        Pairs, sorted by path.

    Raises:
        CheckpointError: when there is none, or it is damaged.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable([1.0, 2.0])).write(f"{folder}/w.npz")
    ...     list_variables(path)
    [('save_counter', ()), ('w', (2,))]
    """
    return [(p, entry.shape) for p, entry in sorted(open_stored(path).entries.items())]


def load_variable(path: PathLike, name: str) -> Any:
    """Return one value in a checkpoint, verified.

    Args:
        path: of a checkpoint.
        name: the path of the variable, as `list_variables` gives it.

    Returns:
        A NumPy array; of random keys a `jax.Array`.

    Raises:
        CheckpointError: when the checkpoint or value does not exist, or it is damaged.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable([1.0, 2.0])).write(f"{folder}/w.npz")
    ...     load_variable(path, "w")
    array([1., 2.], dtype=float32)
    """
    file = open_stored(path)
    if name not in file.entries:
        raise CheckpointError(
            f"{file.path} has no value {name!r}; there are: {', '.join(sorted(file.entries))}."
        )
    try:
        return file.value(name)
    except DamageError as error:
        raise CheckpointError(f"{file.path} is damaged:\n  {name}: corrupt: {error}") from None


def load(path: PathLike) -> dict[str, Any]:
    """Return all values in a checkpoint as a dict by path, verified.

    Args:
        path: of a checkpoint.

    Returns:
        NumPy arrays; of random keys `jax.Array`s.

    Raises:
        CheckpointError: when there is none, or a value is damaged; it names all of those.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable(2.0)).write(f"{folder}/w.npz")
    ...     load(path)["w"]
    array(2., dtype=float32)
    """
    file = open_stored(path)
    values, problems = file.values()
    if problems:
        lines = [f"{p}: {problem}" for p, problem in sorted(problems.items())]
        raise CheckpointError("\n  ".join([f"{file.path} is damaged:", *lines]))
    return values


def latest_checkpoint(directory: PathLike, prefix: str = "") -> str | None:
    """Return the path of the checkpoint that was written last; None if there is none.

    What a killed process has left unfinished does not count.

    Args:
        directory: the folder that the checkpoints are in.
        prefix: what their names begin with.

    Returns:
        The absolute path, for `Checkpoint.restore`, which does nothing for None.

    Raises:
        OSError: when one that may be the last cannot be read.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(latest_checkpoint(folder))
    ...     path = jv.checkpoint.Checkpoint(w=jv.Variable(1.0)).save(f"{folder}/ckpt.npz")
    ...     latest_checkpoint(folder) == path
    None
    True

    Differs from TensorFlow: looks at the checkpoints; no file says which it was.
    """
    place = absolute(directory)
    if not is_folder(place):
        return None
    names = set(map(_name_after, os.listdir(place)))  # noqa: PTH208
    names = {name for name in names if name[0] != "."}  # those that a manager is writing
    found: list[tuple[int, str]] = []
    for name in names:
        if name.startswith(prefix) and ".tmp-" not in name:
            with contextlib.suppress(CheckpointError):
                found.append((open_stored(place / name).time_ns, str(place / name)))
    return max(found)[1] if found else None
