"""`tf.io.gfile`: files and folders, on this machine.

Rules this file keeps:
- Python's own functions do it; what they raise becomes TensorFlow's exceptions.
"""

from __future__ import annotations

import glob as _glob
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias, final

from jaxvars.tf.attributes import getter
from jaxvars.tf.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    PermissionDeniedError,
)
from jaxvars.tf.tensors.static import refused

Name: TypeAlias = Any

_MODES = ("r", "w", "a", "r+", "w+", "a+")


@contextmanager
def _translate_errors(path: Name) -> Generator[None]:
    """Raise what TensorFlow raises where Python refuses."""
    try:
        yield
    except FileNotFoundError:
        raise NotFoundError(message=f"{path}; No such file or directory") from None
    except FileExistsError:
        raise AlreadyExistsError(message=f"{path}; File exists") from None
    except PermissionError:
        raise PermissionDeniedError(message=f"{path}; Permission denied") from None
    except OSError as error:
        raise FailedPreconditionError(message=f"{path}; {error.strerror}") from error


def _text(path: Name) -> str:
    return os.fsdecode(path)


@final
class GFile:
    """A file.

    Args:
        name: of the file.
        mode: as for Python's `open`.

    Raises:
        InvalidArgumentError: for an unknown mode.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with GFile(f"{folder.name}/a.txt", "w") as file:
        ...     file.write("one")
        >>> GFile(f"{folder.name}/a.txt").read()
        'one'
        >>> folder.cleanup()
    """

    def __init__(self, name: Name, mode: str = "r") -> None:
        if mode.replace("b", "") not in _MODES:
            raise refused("mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._name, self._mode = name, mode
        self._file: Any = None

    def _ensure_open(self) -> Any:
        if self._file is None:
            with _translate_errors(self._name):
                self._file = Path(_text(self._name)).open(self._mode)  # noqa: SIM115 - until `close`
        return self._file

    name = getter("_name", "The name of the file.")
    mode = getter("_mode", "How it is opened.")

    def size(self) -> int:
        """Return how many bytes it has."""
        return stat(self._name).length

    def read(self, n: int = -1) -> Any:
        """Return so many bytes or characters; the rest if negative."""
        return self._ensure_open().read(n)

    def readline(self) -> Any:
        """Return the next line, with its end."""
        return self._ensure_open().readline()

    def readlines(self) -> list[Any]:
        """Return all lines, with their ends."""
        return self._ensure_open().readlines()

    def write(self, file_content: Any) -> None:
        """Write a string or bytes."""
        is_string = "b" not in self._mode
        if is_string and isinstance(file_content, bytes):
            file_content = file_content.decode()
        self._ensure_open().write(file_content if is_string or isinstance(file_content, bytes)
                             else file_content.encode())  # fmt: skip

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Go to a place."""
        self._ensure_open().seek(offset if position is None else position, whence)

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place."""
        return self._ensure_open().tell()

    def flush(self) -> None:
        """Write what is in memory."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write what is in memory, and close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if line := self.readline():
            return line
        raise StopIteration

    next = __next__


@final
@dataclass(frozen=True)
class FileStatistics:
    """What is known of a file.

    Attributes:
        length: how many bytes.
        mtime_nsec: when it was changed, in nanoseconds.
        is_directory: whether it is a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


def stat(path: Name) -> FileStatistics:
    """Return what is known of a file."""
    with _translate_errors(path):
        found = Path(_text(path)).stat()
    return FileStatistics(found.st_size, found.st_mtime_ns, isdir(path))


def exists(path: Name) -> bool:
    """Return whether there is such a file or folder."""
    return Path(_text(path)).exists()


def isdir(path: Name) -> bool:
    """Return whether there is such a folder."""
    return Path(_text(path)).is_dir()


def listdir(path: Name) -> list[str]:
    """Return the names in a folder.

    Raises:
        NotFoundError: when there is none.
    """
    if not isdir(path):
        raise NotFoundError(message=f"Could not find directory {_text(path)}")
    return [found.name for found in Path(_text(path)).iterdir()]


def glob(pattern: Name) -> list[str]:
    """Return the names of the files that match a pattern, or a list of them."""
    patterns = [pattern] if isinstance(pattern, str | bytes | os.PathLike) else pattern
    return [path for each in patterns for path in sorted(_glob.glob(_text(each)))]  # noqa: PTH207 - any path


def join(path: Name, *paths: Name) -> Any:
    """Return the parts of a path as one."""
    return os.path.join(path, *paths)  # noqa: PTH118 - bytes are joined, too


def copy(src: Name, dst: Name, overwrite: bool = False) -> None:
    """Copy a file.

    Raises:
        AlreadyExistsError: when there is one already, and `overwrite` is false.
    """
    with _translate_errors(src):
        Path(_text(src)).stat()
    _refuse_existing(dst, overwrite)
    with _translate_errors(src):
        shutil.copyfile(_text(src), _text(dst))


def rename(src: Name, dst: Name, overwrite: bool = False) -> None:
    """Give a file or folder another name.

    Raises:
        AlreadyExistsError: when there is one already, and `overwrite` is false.
    """
    _refuse_existing(dst, overwrite)
    with _translate_errors(src):
        Path(_text(src)).replace(_text(dst))


def _refuse_existing(path: Name, overwrite: bool) -> None:
    if not overwrite and exists(path):
        raise AlreadyExistsError(message="file already exists")


def mkdir(path: Name) -> None:
    """Make a folder, if there is none; that which it is in must be there."""
    with _translate_errors(path):
        Path(_text(path)).mkdir(exist_ok=True)


def makedirs(path: Name) -> None:
    """Make a folder, and those which it is in."""
    with _translate_errors(path):
        Path(_text(path)).mkdir(parents=True, exist_ok=True)


def remove(path: Name) -> None:
    """Remove a file."""
    with _translate_errors(path):
        Path(_text(path)).unlink()


def rmtree(path: Name) -> None:
    """Remove a folder, and all that is in it.

    Raises:
        NotFoundError: when there is none.
    """
    if not exists(path):
        raise NotFoundError(message=f"{_text(path)} not found")
    with _translate_errors(path):
        shutil.rmtree(_text(path))


def walk(
    top: Name, topdown: bool = True, onerror: Callable[[Any], Any] | None = None
) -> Iterable[tuple[str, list[str], list[str]]]:
    """Yield each folder in a folder: its path, the names of folders in it, and those of files."""
    return os.walk(_text(top), topdown, onerror)


def get_registered_schemes() -> list[str]:
    """Return what paths may begin with: nothing but that of this machine."""
    return ["file", ""]
