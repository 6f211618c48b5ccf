"""The file of saved programs: an uncompressed zip archive with a manifest.

| member | holds |
|---|---|
| `manifest.json` | versions, functions, variables; size and SHA-256 of every other member |
| `digest.txt` | the SHA-256 of the manifest |
| `programs/N.bin` | a program, as `jax.export` writes it |
| `variables/N.npy` | a variable's plain numbers |

Rules this file keeps:
- a file appears whole, under its name, or not at all;
- nothing is unpacked to disk, unpickled or run while a file is read, and no more memory is taken
  than the file is long;
- what is wrong with a file is one SavedError that names it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from jaxvars.checkpoint.checksum import Entry, from_npy, storable
from jaxvars.checkpoint.disk import PathLike, replacing
from jaxvars.errors import JaxvarsError, SavedError
from jaxvars.export.forms import Json
from jaxvars.typing import Array

T = TypeVar("T")

FORMAT = 1
_MANIFEST, _DIGEST = "manifest.json", "digest.txt"
_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the same model makes the same file


# ---------------------------------------------------------------- writing
def write(path: PathLike, manifest: Json, members: Mapping[str, bytes]) -> str:
    """Write a file in place of what was there, or raise; return its manifest's checksum."""
    listed = {name: {"size": len(data), "sha256": _sha256(data)} for name, data in members.items()}
    try:
        own = version("jaxvars")
    except PackageNotFoundError:  # run from a source tree
        own = "unknown"
    made_by = {"jaxvars": own, "jax": jax.__version__}
    manifest = {"format": FORMAT, **made_by, **manifest, "members": listed}
    head = json.dumps(manifest, indent=1).encode()
    checksum = _sha256(head)
    with replacing(path) as fresh, zipfile.ZipFile(fresh, "x", zipfile.ZIP_STORED) as archive:
        for name, data in {_MANIFEST: head, _DIGEST: checksum.encode(), **members}.items():
            archive.writestr(zipfile.ZipInfo(name, _NO_TIME), data)
    return checksum


def to_npy(plain: Array) -> bytes:
    """Return the bytes of a .npy file."""
    array, file = storable(plain), io.BytesIO()
    np.lib.format.write_array(file, np.ascontiguousarray(array).reshape(array.shape),
                              version=(1, 0), allow_pickle=False)  # fmt: skip
    return file.getvalue()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# ---------------------------------------------------------------- reading
def check_sound(path: PathLike, action: Callable[[], T]) -> T:
    """Run what reads a file; whatever is wrong with that becomes a SavedError."""
    try:
        return action()
    except SavedError:
        raise
    except JaxvarsError as error:  # a dtype that this process does not have
        raise SavedError(f"{os.fspath(path)} cannot be loaded: {error}") from None
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise SavedError(
            f"{os.fspath(path)} is damaged, or no file of jv.export.save: "
            f"{type(error).__name__}: {reason}. Save it again, or take it from where it came from."
        ) from error


def read(path: PathLike, digest: str | None) -> tuple[Json, dict[str, bytes]]:
    """Return the manifest and other members of a file, verified; raise SavedError if unsound."""
    place = Path(path)
    if place.is_dir() or not place.exists():
        kind = "a folder" if place.is_dir() else "nothing"
        raise SavedError(f"There is {kind} at {place}, and no file of jv.export.save.")
    return check_sound(path, lambda: _read(place, digest))


def _read(path: Path, digest: str | None) -> tuple[Json, dict[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        _check_archive(archive, path.stat().st_size)
        head = archive.read(_MANIFEST)
        found = _sha256(head)
        if archive.read(_DIGEST) != found.encode():
            raise ValueError("its manifest is not what was written")
        manifest = json.loads(head)
        _check_format(path, manifest)
        if digest not in (None, found):
            raise SavedError(
                f"{path} has the checksum {found}, and not {digest}: it is another file."
            )
        listed = manifest["members"]
        if set(archive.namelist()) != {_MANIFEST, _DIGEST, *listed}:
            raise ValueError("it does not hold what its manifest says")
        members = {name: archive.read(name) for name in listed}
    for name, data in members.items():
        if len(data) != listed[name]["size"] or _sha256(data) != listed[name]["sha256"]:
            raise ValueError(f"{name} is not what was written")
    return manifest, members


def _check_archive(archive: zipfile.ZipFile, size: int) -> None:
    infos = archive.infolist()
    if len({info.filename for info in infos}) != len(infos):
        raise ValueError("it has two members of one name")
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise ValueError("it has compressed members, which jv.export.save does not write")
    if sum(info.file_size for info in infos) > size:
        raise ValueError("its members are longer than the file")


def _check_format(path: Path, manifest: Any) -> None:
    found = manifest["format"]
    if type(found) is not int:
        raise ValueError("it has no format")
    if found > FORMAT:
        raise SavedError(
            f"{path} has format {found}, of jaxvars {manifest.get('jaxvars')}; this version reads "
            f"formats up to {FORMAT}: install a newer jaxvars."
        )


def array_of(data: bytes, entry: Entry) -> np.ndarray:
    """Return the array in a .npy file; raise ValueError if it is not the entry's."""
    stored = from_npy(data, entry)
    if not entry.holds(stored):
        raise ValueError("a variable is not what was written")
    return stored
