"""Where checkpoints are on disk: a folder written by orbax, or one .npz file.

Either holds the values as plain arrays, and a manifest: what each variable is, with a digest.

Rules this file keeps:
- a checkpoint appears whole, under its name, or not at all, whenever the process is killed;
- sizes are checked against the manifest, and that against the size of the files, before memory
  is taken; no pickle, nothing compressed, nothing of a file is run or names another file;
- every value is compared with its digest. What is wrong is collected for all variables, and
  raised as one CheckpointError by whoever asked for them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import json
import logging
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
import traceback
import weakref
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, final
from urllib.parse import quote

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.checksum import Entry, Value, decode, encode
from jaxvars.errors import CheckpointError
from jaxvars.tensors.array_like import processes_of

PathLike: TypeAlias = str | os.PathLike[str]
T = TypeVar("T")

MANIFEST = "jaxvars.json"
_FORMAT = 2  # 1 had the slots of optimizers by the names of their variables
_SIMPLE = re.compile(r"\w[\w\-]*(/[\w\-]+)*", re.ASCII)
_PATTERN = re.compile(r"[*?\[\]]")
_NUMBERS = itertools.count()
_WRITING: set[str] = set()  # what this process writes now
_HOST = f"{zlib.crc32(platform.node().encode()):08x}"
_WRONG = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EINVAL}
_READERS = {
    *sys.stdlib_module_names, "absl", "etils", "jax", "jaxlib", "jaxvars", "ml_dtypes",
    "nest_asyncio", "numpy", "orbax", "tensorstore",
}  # fmt: skip


# ---------------------------------------------------------------- writing
def write(
    path: PathLike, values: Mapping[str, Value], about: Mapping[str, Any] | None = None
) -> Path:
    """Write values by variable path, and return where: a .npz file, or else a folder.

    What was there is replaced when all is written. May run in any thread, beside steps, as long
    as nobody donates the values.

    Args:
        path: where; absolute or not.
        values: arrays of JAX, or NumPy's of text.
        about: more to keep with them, of what JSON can say: `Stored.about`.

    Raises:
        CheckpointError: when a value cannot be written; there is then what was there before.
        OSError: when the disk is full, or the folder cannot be written.
    """
    target = absolute(path)
    _check_target(target)
    plain, entries = _encoded(values)
    target.parent.mkdir(parents=True, exist_ok=True)
    _clear(target)
    fresh = target.with_name(f"{target.name}.tmp-{_HOST}-{os.getpid()}-{next(_NUMBERS)}")
    try:
        _WRITING.add(fresh.name)
        manifest = _manifest(entries, about or {})
        (_write_file if target.suffix == ".npz" else _write_folder)(fresh, plain, manifest)
        _put_in_place(fresh, target)
    finally:
        _WRITING.discard(fresh.name)
        for left in (fresh, fresh.with_name(f"{fresh.name}.orbax-checkpoint-tmp")):
            remove(left)
    return target


def _check_target(target: Path) -> None:
    """Raise CheckpointError where no checkpoint may be written."""
    if target.suffix != ".npz" and jax.process_index():
        raise CheckpointError(
            f"{target} is a folder, which orbax writes in process 0 alone, and this is process "
            f"{jax.process_index()}. Let the first one write it, `if jv.parallel.is_chief(): "
            "checkpoint.save(...)`, or give each process a file of its own, whose name ends in .npz"
        )
    if target.suffix != ".npz" and "\\" in str(target):
        raise CheckpointError(
            f"{target} has a backslash in it, which orbax takes for the end of a folder's name: "
            "choose another name, or a file whose name ends in .npz."
        )
    if is_folder(target) and any(target.iterdir()) and not status_of(target / "_METADATA"):
        raise CheckpointError(
            f"{target} is a folder that holds something else, and would be replaced. Choose a name "
            f"that is free, for example {target / 'ckpt'}."
        )


def _encoded(values: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, Entry]]:
    far = [path for path, value in values.items() if processes_of(value) > 1]
    if far:
        raise CheckpointError(
            "A file is written by one process, and these variables have parts in others:\n  "
            + "\n  ".join(far)
            + "\nHave all processes call checkpoint.save(), which brings them together."
        )
    if half := [path for path in values if path != path.encode(errors="ignore").decode()]:
        raise CheckpointError(
            f"The paths {half} hold half a character, a surrogate, which no file holds: use other "
            "keys or names."
        )
    both = {path: encode(value) for path, value in values.items()}
    return {p: plain for p, (plain, _) in both.items()}, {
        p: entry for p, (_, entry) in both.items()
    }


def absolute(path: PathLike) -> Path:
    """Return a path that means the same when the working folder changes."""
    return Path(os.path.abspath(os.fspath(path)))  # noqa: PTH100 - resolve() would follow links


def _put_in_place(fresh: Path, target: Path) -> None:
    if not is_folder(target):
        os.replace(fresh, target)  # noqa: PTH105 - atomic, as its name says
    else:  # a folder cannot be replaced at once: reading knows the name in between
        old = _set_aside(target)
        remove(old)
        target.rename(old)
        fresh.rename(target)
        remove(old)
    _sync(target.parent)


def _set_aside(target: Path) -> Path:
    return target.with_name(f"{target.name}.replaced")


def _clear(target: Path) -> None:
    """Remove what is left of writers of this target that were killed, and of our own in its folder.

    Those of this process that were interrupted may have threads that went on writing.
    """
    old = _set_aside(target)
    if status_of(old):
        remove(old) if status_of(target) else old.rename(target)
    for left in target.parent.glob(f"*.tmp-{_HOST}-*"):
        if _is_left(left.name, target.name):
            remove(left)


def _is_left(name: str, target: str) -> bool:
    found = re.fullmatch(rf"(.*)\.tmp-{_HOST}-(\d+)-\d+(\.orbax-checkpoint-tmp)?", name)
    if found is not None and int(found[2]) == os.getpid():
        return name.removesuffix(found[3] or "") not in _WRITING
    if found is None or found[1] != target:
        return False
    try:
        os.kill(int(found[2]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


def remove(path: Path) -> None:
    """Remove a checkpoint, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Have a file or folder on the disk, so that the power may fail."""
    with forgiving():  # not every file system can
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _manifest(entries: Mapping[str, Entry], about: Mapping[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = {
        "jaxvars": _FORMAT,
        "time_ns": time.time_ns(),
        "about": dict(about),
        "variables": {path: entry.to_json() for path, entry in entries.items()},
    }
    return words | {"sha256": _digest_of(words)}


def _digest_of(words: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(words, sort_keys=True).encode()).hexdigest()


def stored_name(path: str) -> str:
    """Return what a variable's array is called on disk, safe as part of a path."""
    return path if _SIMPLE.fullmatch(path) else quote(path, safe="").replace(".", "%2E")


def _write_folder(path: Path, plain: Mapping[str, Value], manifest: dict[str, Any]) -> None:
    import orbax.checkpoint as ocp

    tree = {stored_name(p): x for p, x in plain.items() if x.size}  # orbax writes no empty ones
    tree = tree or {"-": np.zeros(1, np.uint8)}
    how = ocp.options.MultiprocessingOptions()
    if jax.process_count() > 1:  # orbax would wait for the others, and leave their parts to them
        tree = {name: np.asarray(x) for name, x in tree.items()}
        how = ocp.options.MultiprocessingOptions(0, {0}, "process-0")
    args = ocp.args.PyTreeSave(tree, custom_metadata=manifest)
    handler = ocp.PyTreeCheckpointHandler(use_compression=False, multiprocessing_options=how)
    try:
        with (
            _hushed(),
            ocp.Checkpointer(handler, multiprocessing_options=how) as checkpointer,
            _without_patterns(path) as place,
        ):
            checkpointer.save(place, args)
            if place.name != path.name:
                (path.parent / place.name).rename(path)
        Folder(path).require_all()
    except (ValueError, RuntimeError) as error:  # as TensorStore says that the disk is full
        if _is_from_outside(error):
            raise
        raise OSError(f"orbax could not write it: {_first_line(error)}") from error


@contextlib.contextmanager
def _without_patterns(path: Path) -> Generator[Path]:
    """Yield a path to the same folder in which orbax sees no pattern of glob, as in `lr=[0.1]`.

    It finds the parts that it wrote by such patterns, and would merge none, without an error.
    """
    if not _PATTERN.search(str(path)):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="jaxvars-") as folder:
        link = Path(folder, "to")
        link.symlink_to(path.parent, target_is_directory=True)
        yield link / _PATTERN.sub("-", path.name)


@contextlib.contextmanager
def _hushed() -> Generator[None]:
    """Let orbax not log what its threads raise: it raises that here, too."""

    def is_news(record: logging.LogRecord) -> bool:
        return "_SignalingThread.run() raised" not in str(record.msg)

    logger = logging.getLogger("absl")
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


def _write_file(path: Path, plain: Mapping[str, Value], manifest: dict[str, Any]) -> None:
    with path.open("xb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, value in plain.items():
                array = np.asarray(value)
                if array.dtype.kind == "V":  # bfloat16, which NumPy's files do not know
                    array = array.view(f"u{array.dtype.itemsize}")
                with archive.open(f"{stored_name(name)}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(MANIFEST, json.dumps(manifest))
        file.flush()
        os.fsync(file.fileno())


# ---------------------------------------------------------------- reading
@final
class DamageError(ValueError):
    """Something in a file is not as it should be; no error of the disk or of a signal handler."""


class Stored(ABC):
    """A checkpoint on disk.

    Attributes:
        path: where it is.
        entries: what it says of each variable, by path.
        time_ns: when it was written.
        about: what else was kept with it.
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
            raise DamageError("its digest is not that of what was written")
        return stored

    def _array_or_nothing(self, path: str, entry: Entry) -> np.ndarray:
        if entry.nbytes:
            return self._array(stored_name(path), entry)
        return np.empty(entry.stored_shape, jnp.dtype(entry.stored_dtype))

    def value(self, path: str) -> Value:
        """Return the value of one variable: a NumPy array, or a `jax.Array` of random keys.

        Raises:
            DamageError: when it is not what was written, with the reason.
        """
        stored = self.read(path)
        return tamed(lambda: decode(stored, self.entries[path]))

    def values(
        self, keep: Callable[[str, Value], Value] = lambda _, value: value
    ) -> tuple[dict[str, Value], dict[str, str]]:
        """Return the values by path, and what is wrong with those that are not as written.

        Args:
            keep: makes of a path and its value what is to be returned, before the next is read.
        """
        values: dict[str, Value] = {}
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
    old = _set_aside(target)
    place = old if status_of(target) is None and is_folder(old) else target
    if status_of(place) is None:
        raise CheckpointError(f"There is no checkpoint at {target}.{_near(target)}")
    try:
        return tamed(lambda: (Folder if is_folder(place) else File)(place))
    except DamageError as error:
        raise CheckpointError(
            f"{target} is no checkpoint of jaxvars that can be restored: {error}."
        ) from None


def is_complete(path: PathLike) -> bool:
    """Tell whether there is a checkpoint with a sound manifest, and as many bytes as it says."""
    try:
        open_stored(path)
    except CheckpointError:
        return False
    return True


def _near(target: Path) -> str:
    if not target.parent.is_dir():
        return f" There is no folder {target.parent} either."
    names = sorted(p.name for p in target.parent.iterdir())[:8]
    return f" In {target.parent} there are: {', '.join(names) or 'no files'}."


def _checked_manifest(words: Any) -> dict[str, Any]:
    if not isinstance(words, dict) or "jaxvars" not in words:
        raise ValueError("it has no manifest, so that its values could not be verified")
    if words["jaxvars"] != _FORMAT:
        raise ValueError(f"its format is {words['jaxvars']!r}, and this version reads {_FORMAT}")
    rest = {key: word for key, word in words.items() if key != "sha256"}
    if words.get("sha256") != _digest_of(rest):
        raise ValueError("its manifest is damaged")
    return words


def tamed(action: Callable[[], T], what: str = "") -> T:
    """Run what reads a file; whatever is wrong with that becomes a DamageError.

    Errors of the disk, and of signal handlers, do not: the file may be as it should.
    """
    before = sys.exception()  # what the caller is handling
    try:
        return action()
    except Exception as error:
        if (other := _no_damage(error, before)) is not None:
            raise other from other.__cause__
        if isinstance(error, MemoryError):
            raise DamageError("there is not enough memory for it") from None
        if isinstance(error, ValueError):
            raise DamageError(f"{what}{error}") from error
        raise DamageError(f"{what}{type(error).__name__}: {_first_line(error)}") from error


def _no_damage(error: BaseException, before: BaseException | None) -> BaseException | None:
    """Return the error that is no damage, of those that led to one: zipfile hides some."""
    chain: BaseException | None = error
    while chain is not None and chain is not before:
        unread = isinstance(chain, OSError) and chain.errno not in _WRONG
        if unread or _is_from_outside(chain):
            return chain
        chain = chain.__context__
    return None


def _is_from_outside(error: BaseException) -> bool:
    """Tell whether an error was raised by other code than what reads, such as a signal handler."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    names = [type(error).__module__, *(str(each.f_globals.get("__name__")) for each in frames)]
    return any(name.partition(".")[0] not in _READERS for name in names)


@contextlib.contextmanager
def forgiving() -> Generator[None]:
    """Go on after an error of the file system, but not after one that a signal handler raised."""
    try:
        yield
    except OSError as error:
        if not is_of_disk(error):
            raise


def is_of_disk(error: OSError) -> bool:
    """Tell whether an error is one of the file system, rather than one of a signal handler."""
    return error.errno is not None and not isinstance(error, TimeoutError)


def status_of(path: Path) -> os.stat_result | None:
    """Return what is said of a path, None if nothing is there: `exists` says so at any error."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_folder(path: Path) -> bool:
    """Tell whether there is a folder at a path; any other error than that nothing is is raised."""
    status = status_of(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _first_line(error: Exception) -> str:
    line = (str(error).splitlines() or [""])[0]
    line = re.sub(r" \[\w+='.*", "", line)  # what TensorStore adds for its makers
    return line if len(line) < 200 else f"{line[:80]} ... {line[-100:]}"


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
