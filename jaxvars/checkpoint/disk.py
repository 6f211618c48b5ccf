"""Paths and errors of the file system: what is there, and whether an error is damage.

Rule this file keeps: errors of the disk and of signal handlers are passed on as they are; only
what is wrong with the content of a file becomes a DamageError.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import stat
import sys
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeAlias, TypeVar, final

PathLike: TypeAlias = str | os.PathLike[str]
T = TypeVar("T")
_NUMBERS = itertools.count()
_WRONG = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EINVAL}
_READERS = {
    *sys.stdlib_module_names, "absl", "etils", "jax", "jaxlib", "jaxvars", "ml_dtypes",
    "nest_asyncio", "numpy", "orbax", "tensorstore",
}  # fmt: skip


def absolute(path: PathLike) -> Path:
    """Return a path that means the same when the working folder changes."""
    try:
        return Path(os.path.abspath(os.fspath(path)))  # noqa: PTH100 - resolve() would follow links
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{os.fspath(path)!r} is in the working folder of this process, which was removed: "
            "give a whole path, or change the folder by os.chdir."
        ) from None


def remove(path: Path) -> None:
    """Remove a checkpoint, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(path: PathLike) -> Generator[Path]:
    """Yield where to write a file; once it is whole, it takes the place of the one at a path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.{os.getpid()}-{next(_NUMBERS)}.tmp")
    try:
        yield fresh
        with fresh.open("rb+") as file:
            os.fsync(file.fileno())
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def check_regular(path: Path) -> Path:
    """Return the path of a file that has an end; raise ValueError for a device or a pipe."""
    found = path.stat().st_mode
    if not (stat.S_ISREG(found) or stat.S_ISDIR(found)):
        raise ValueError(f"{path.name} is a device or a pipe, which may have no end")
    return path


def sync(path: Path) -> None:
    """Have a file or folder on the disk, so that the power may fail."""
    with ignore_disk_errors():  # not every file system can
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@final
class DamageError(ValueError):
    """Something in a file is not as it should be; no error of the disk or of a signal handler."""


def read_checked(action: Callable[[], T], what: str = "") -> T:
    """Run what reads a file; raise DamageError of its content, other errors as they are."""
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
        raise DamageError(f"{what}{type(error).__name__}: {first_line(error)}") from error


def _no_damage(error: BaseException, before: BaseException | None) -> BaseException | None:
    """Return the error that is not damage, of those that led to one: zipfile hides some."""
    chain: BaseException | None = error
    while chain is not None and chain is not before:
        unread = isinstance(chain, OSError) and chain.errno not in _WRONG
        if unread or is_from_outside(chain):
            return chain
        chain = chain.__context__
    return None


def is_from_outside(error: BaseException) -> bool:
    """Return whether other code than what reads raised an error, such as a signal handler."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    names = [type(error).__module__, *(str(each.f_globals.get("__name__")) for each in frames)]
    return any(name.partition(".")[0] not in _READERS for name in names)


@contextlib.contextmanager
def ignore_disk_errors() -> Generator[None]:
    """Go on after an error of the file system, but not after one that a signal handler raised."""
    try:
        yield
    except OSError as error:
        if not is_of_disk(error):
            raise


def is_of_disk(error: OSError) -> bool:
    """Return whether an error is one of the file system, rather than one of a signal handler."""
    return error.errno is not None and not isinstance(error, TimeoutError)


def status_of(path: Path) -> os.stat_result | None:
    """Return what is said of a path, None if nothing is there: `exists` says so at any error."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_folder(path: Path) -> bool:
    """Return whether there is a folder at a path; errors but that nothing is there are raised."""
    status = status_of(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, shortened."""
    line = (str(error).splitlines() or [""])[0]
    line = re.sub(r" \[\w+='.*", "", line)  # what TensorStore adds for its makers
    return line if len(line) < 200 else f"{line[:80]} ... {line[-100:]}"
