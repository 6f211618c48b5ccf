"""A directory of checkpoints: each is there whole, or not there.

    directory/ckpt-12                 a checkpoint, with `manager.json` inside: its record
    directory/.ckpt.new-12-8a3f51c0   one that is being written
    directory/.ckpt.old-51c08a3f      one that is being deleted
    directory/.ckpt.lock              held while writing or deleting

Rules this file keeps:
- a checkpoint is written under another name and renamed: a process that is killed at any moment
  leaves no part of one under a name that counts;
- the record is written last: what has one is whole. Should a process be killed between the two
  renames by which one checkpoint takes the place of another, the next to write finishes them;
- only what has a record, or a hidden name of the above form, is ever deleted, and it is renamed
  away first;
- a checkpoint that was put there otherwise, as by `Checkpoint.save`, is found, too, but never
  replaced or deleted;
- one thread of one process writes at a time. So what holds the lock knows that what is
  half-written was left behind, and removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import threading
import weakref
import zipfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, final

from jaxvars.checkpoint.disk import (
    DamageError,
    check_regular,
    ignore_disk_errors,
    is_folder,
    is_of_disk,
    read_checked,
    remove,
    status_of,
    sync,
)
from jaxvars.checkpoint.retention import Record
from jaxvars.checkpoint.stored import checksum_of, open_stored
from jaxvars.errors import CheckpointError

_Key: TypeAlias = tuple[Path, int, int, int]

RECORD = "manager.json"


@final
class _Turn:
    """Whose turn it is, in this process, to write to a directory."""

    def __init__(self) -> None:
        self.mutex = threading.RLock()
        self.depth = 0


_TURNS: weakref.WeakValueDictionary[str, _Turn] = weakref.WeakValueDictionary()
_MAKING = threading.Lock()


def check_name(name: Any) -> str:
    """Return what names of checkpoints begin with, if it is sound."""
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.+-]*", name):
        raise ValueError(
            f"checkpoint_name is the first part of file names, like 'ckpt', not {name!r}: letters, "
            "digits, and _ - + . inside."
        )
    return name


@final
class Directory:
    """The checkpoints in a directory whose names begin with `name` and end with `suffix`."""

    def __init__(self, path: Path, name: str, suffix: str) -> None:
        self.path = path
        self.name = name
        self._suffix = suffix
        with _MAKING:
            self._turn = _TURNS.setdefault(os.path.realpath(path / name), _Turn())
        self._known: dict[_Key, Record | None] = {}

    # ------------------------------------------------------------ what is there
    def path_of(self, number: int) -> Path:
        """Return where the checkpoint of a number is."""
        return self.path / f"{self.name}-{number}{self._suffix}"

    def records(self) -> list[Record]:
        """Return the records of all checkpoints, in the order they were saved."""
        records = [record for record in self._scan().values() if record is not None]
        return sorted(records, key=lambda r: r.order)

    def damaged(self) -> list[Path]:
        """Return the checkpoints whose record cannot be read."""
        return [path for path, record in self._scan().items() if record is None]

    def _scan(self) -> dict[Path, Record | None]:
        before, known = self._known, {}  # another thread may be here, too
        for path in self._list_named():
            # It is not a checkpoint, or has just been deleted: no other error may hide the newest.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                status = status_of(path / RECORD) or path.stat()
                key = (path, status.st_ino, status.st_mtime_ns, status.st_size)
                known[key] = before[key] if key in before else self._record_of(path)
        self._known = known
        return {key[0]: record for key, record in known.items()}

    def _record_of(self, path: Path) -> Record | None:
        """Return what is known of a checkpoint; None if it is damaged."""
        number = self._number_of(path)
        with contextlib.suppress(FileNotFoundError):
            record = record_in(path)
            if record is None or (record.number == number and record.serial):
                return record
        return _foreign(path, number)  # without a record, or a copy that a user made

    def free_number(self, number: int) -> int:
        """Return a number, or one after all others if that of something that is to stay."""
        known = self._scan()
        replaced = {self.path_of(r.number) for r in known.values() if r and not r.forever}
        place = self.path_of(number)
        if place in replaced or not os.path.lexists(place):
            return number
        return max(map(self._number_of, self._list_named())) + 1

    def _number_of(self, path: Path) -> int:
        return int(path.name[len(self.name) + 1 : len(path.name) - len(self._suffix)])

    def _list_named(self) -> list[Path]:
        return self._list_matching(rf"{re.escape(self.name)}-(0|[1-9]\d*){re.escape(self._suffix)}")

    def _list_matching(self, pattern: str) -> list[Path]:
        try:
            paths = sorted(self.path.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [path for path in paths if re.fullmatch(pattern, path.name)]

    # ------------------------------------------------------------ changing it
    def exclusively(self, action: Callable[[], object]) -> None:
        """Run `action` while nothing else writes here, with nothing left behind."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self._turn.mutex, self._nest() as depth:
            if depth > 1:  # a signal handler that saves, while this thread saves
                action()
                return
            with self._lock(wait=True) as alone:
                if alone:
                    self._sweep()
                action()

    def tidy(self) -> None:
        """Finish what a killed process left unfinished, unless another is writing."""
        if self._list_left():
            with (
                ignore_disk_errors(),  # another is, or this may not be written to
                self._turn.mutex,
                self._nest() as depth,
                self._lock(wait=False) as alone,
            ):
                if alone and depth == 1:
                    self._sweep()

    @contextmanager
    def _nest(self) -> Generator[int]:
        self._turn.depth += 1
        try:
            yield self._turn.depth
        finally:
            self._turn.depth -= 1

    @contextmanager
    def _lock(self, *, wait: bool) -> Generator[bool]:
        """Hold the lock; yield False where the file system has none."""
        with (self.path / f".{self.name}.lock").open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError as error:
                if not is_of_disk(error):
                    raise
                yield False
                return
            try:
                yield True
            finally:  # not by closing: a forked process may have the file, too
                fcntl.flock(file, fcntl.LOCK_UN)

    def put(self, record: Record, write: Callable[[Path], object]) -> Path:
        """Have a checkpoint written and give it its name; to be called `exclusively`."""
        place = self.path_of(record.number)
        own = {record.number for record in self.records() if record.serial}
        if os.path.lexists(place) and record.number not in own:
            raise CheckpointError(
                f"{place} is there and is not replaced: no CheckpointManager wrote it, or it is "
                f"damaged. Move it away, save with another checkpoint_number, or give the manager "
                "another directory or checkpoint_name."
            )
        staged = self._hidden_path(f"new-{record.number}", self._suffix)
        try:
            write(staged)
            _add_record(staged, record)
            self._publish(staged, place)
        finally:
            self._finish_staged(staged, place)
        return place

    def delete(self, number: int) -> None:
        """Delete a checkpoint that has a record; to be called `exclusively`."""
        away = self._hidden_path("old", self._suffix)
        with contextlib.suppress(FileNotFoundError):
            self.path_of(number).rename(away)
        remove(away)

    def _publish(self, staged: Path, place: Path) -> None:
        old = self._hidden_path("old", self._suffix)
        with contextlib.suppress(FileNotFoundError):
            place.rename(old)
        staged.rename(place)
        sync(self.path)
        remove(old)

    def _finish_staged(self, staged: Path, place: Path) -> None:
        """Give what was written its name if it is whole and that is free, else remove it."""
        with contextlib.suppress(FileNotFoundError):
            if status_of(place) is None and record_in(staged) is not None:
                self._publish(staged, place)
        remove(staged)

    def _sweep(self) -> None:
        whole = rf"{self._hidden_pattern}new-(\d+)-[0-9a-f]{{8}}{re.escape(self._suffix)}"
        for path in self._list_left():
            if found := re.fullmatch(whole, path.name):
                self._finish_staged(path, self.path_of(int(found[1])))
            else:
                remove(path)

    def _list_left(self) -> list[Path]:
        suffix = re.escape(self._suffix) or r"(?!\.npz)"  # another manager's may be here, too
        return self._list_matching(
            rf"{self._hidden_pattern}(new-\d+|old)-[0-9a-f]{{8}}{suffix}(\..*)?"
        )

    @property
    def _hidden_pattern(self) -> str:
        return rf"\.{re.escape(self.name)}\."

    def _hidden_path(self, kind: str, suffix: str = "") -> Path:
        return self.path / f".{self.name}.{kind}-{secrets.token_hex(4)}{suffix}"


# ---------------------------------------------------------------- records
def _foreign(path: Path, number: int) -> Record:
    """Return a record, older than all managers', for a checkpoint that no manager wrote."""
    try:
        seconds = open_stored(path).time_ns / 1e9
    except CheckpointError as error:
        raise FileNotFoundError(path) from error
    return Record(number, 0, number, seconds, forever=True, clock=seconds)


def record_in(path: Path) -> Record | None:
    """Return the record of a checkpoint, None if it is damaged; FileNotFoundError if none."""
    try:
        record = read_checked(lambda: _text_in(path))
        if record is not None:
            return read_checked(lambda: _parse_record(json.loads(record)))
    except DamageError:
        return None
    raise FileNotFoundError(path)


def _text_in(path: Path) -> bytes | None:
    try:
        if is_folder(path):
            return check_regular(path / RECORD).read_bytes()
        with zipfile.ZipFile(check_regular(path)) as archive:
            return archive.read(RECORD) if RECORD in archive.namelist() else None
    except FileNotFoundError:
        return None


def _parse_record(data: Any) -> Record:
    try:
        if data["sha256"] != checksum_of(data["record"]):
            raise ValueError("its checksum is not that of what was written")
        return Record.from_json(data["record"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a record: {error!r}") from None


def _add_record(path: Path, record: Record) -> None:
    data = record.to_json()
    line = json.dumps({"record": data, "sha256": checksum_of(data)}, allow_nan=False)
    if is_folder(path):
        draft = path / f"{RECORD}.part"
        with draft.open("w", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path / RECORD)
        sync(path)
    else:
        with path.open("r+b") as file:
            with zipfile.ZipFile(file, "a") as archive:
                archive.writestr(zipfile.ZipInfo(RECORD), line)
            file.flush()
            os.fsync(file.fileno())
