"""Writing checkpoints: a folder, by orbax, or one .npz file.

Either holds the values as plain arrays, and a manifest: what each variable is, with a checksum.

Rules this file keeps:
- a checkpoint appears whole, under its name, or not at all, whenever the process is killed;
- no pickle, nothing compressed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import platform
import re
import tempfile
import time
import zipfile
import zlib
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxvars.checkpoint.checksum import Entry, encode, storable
from jaxvars.checkpoint.disk import (
    PathLike,
    absolute,
    first_line,
    is_folder,
    is_from_outside,
    remove,
    status_of,
    sync,
)
from jaxvars.checkpoint.stored import FORMAT, MANIFEST, Folder, checksum_of, set_aside, stored_name
from jaxvars.errors import CheckpointError
from jaxvars.tensors.array_like import processes_of
from jaxvars.typing import Array

_PATTERN = re.compile(r"[*?\[\]]")
_NUMBERS = itertools.count()
_WRITING: set[str] = set()  # what this process writes now
_HOST = f"{zlib.crc32(platform.node().encode()):08x}"


def write(
    path: PathLike, values: Mapping[str, Array], about: Mapping[str, Any] | None = None
) -> Path:
    """Write values by path to a .npz file or a folder, in place of what was there.

    May run in any thread, beside steps, as long as the values are not donated.
    """
    target = absolute(path)
    _check_target(target)
    plain, entries = _encode_all(values)
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


def _require_threads(path: Path) -> None:
    """Raise CheckpointError where pools of threads are closed: as in `atexit`."""
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int)
    except RuntimeError as error:
        raise CheckpointError(
            f"A folder in {path.parent} is written by orbax with threads, and none can be "
            "started when the main thread has ended: save before that, or in a file whose name "
            "ends in .npz (format='npz' of a CheckpointManager), which needs none."
        ) from error


def _check_target(target: Path) -> None:
    """Raise CheckpointError where no checkpoint may be written."""
    if target.suffix != ".npz":
        _require_threads(target)
    if target.suffix != ".npz" and jax.process_index():
        raise CheckpointError(
            f"{target} is a folder, which orbax writes in process 0 alone, and this is process "
            f"{jax.process_index()}. Let the first one write it, `if jv.parallel.is_chief(): "
            "checkpoint.save(...)`, or give each process a separate file, whose name ends in .npz"
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


def _encode_all(values: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Entry]]:
    far = [path for path, value in values.items() if processes_of(value) > 1]
    if far:
        raise CheckpointError(
            "A file is written by one process, and these variables have parts in others:\n  "
            + "\n  ".join(far)
            + "\nHave all processes call checkpoint.save(), which gathers them."
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


def _put_in_place(fresh: Path, target: Path) -> None:
    if not is_folder(target):
        os.replace(fresh, target)  # noqa: PTH105 - atomic, as its name says
    else:  # a folder cannot be replaced at once: reading knows the name in between
        old = set_aside(target)
        remove(old)
        target.rename(old)
        fresh.rename(target)
        remove(old)
    sync(target.parent)


def _clear(target: Path) -> None:
    """Remove what writers of this target that were killed left, and interrupted ones of ours."""
    old = set_aside(target)
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


def _manifest(entries: Mapping[str, Entry], about: Mapping[str, Any]) -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "jaxvars": FORMAT,
        "time_ns": time.time_ns(),
        "about": dict(about),
        "variables": {path: entry.to_json() for path, entry in entries.items()},
    }
    return manifest | {"sha256": checksum_of(manifest)}


def _write_folder(path: Path, plain: Mapping[str, Array], manifest: dict[str, Any]) -> None:
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
            _hush(),
            ocp.Checkpointer(handler, multiprocessing_options=how) as checkpointer,
            _avoid_patterns(path) as place,
        ):
            checkpointer.save(place, args)
            if place.name != path.name:
                (path.parent / place.name).rename(path)
        Folder(path).require_all()
    except (ValueError, RuntimeError) as error:  # as TensorStore says that the disk is full
        if is_from_outside(error):
            raise
        _require_threads(path)  # the main thread may have ended meanwhile
        raise OSError(f"orbax could not write it: {first_line(error)}") from error


@contextlib.contextmanager
def _avoid_patterns(path: Path) -> Generator[Path]:
    """Yield a path without patterns of glob, as in `lr=[0.1]`: orbax would merge no parts."""
    if not _PATTERN.search(str(path)):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="jaxvars-") as folder:
        link = Path(folder, "to")
        link.symlink_to(path.parent, target_is_directory=True)
        yield link / _PATTERN.sub("-", path.name)


@contextlib.contextmanager
def _hush() -> Generator[None]:
    """Let orbax not log what its threads raise: it raises that here, too."""

    def is_news(record: logging.LogRecord) -> bool:
        return "_SignalingThread.run() raised" not in str(record.msg)

    logger = logging.getLogger("absl")
    logger.addFilter(is_news)
    try:
        yield
    finally:
        logger.removeFilter(is_news)


def _write_file(path: Path, plain: Mapping[str, Array], manifest: dict[str, Any]) -> None:
    with path.open("xb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, value in plain.items():
                with archive.open(f"{stored_name(name)}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, storable(value), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest))  # with no date
        file.flush()
        os.fsync(file.fileno())
