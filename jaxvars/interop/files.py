"""State in files that other programs read: `.npz` of NumPy, and `.safetensors`.

Rules this file keeps:
- what comes back is what was written, bit for bit. A dtype that the format does not have is
  written as numbers, and marked: in .npz as the name of the only field, else in the metadata;
- a file appears whole, or not at all; reading one runs nothing.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.checkpoint.disk import PathLike, replacing
from jaxvars.errors import StateError
from jaxvars.interop.rules import Rules
from jaxvars.interop.state import from_dict, mark, state_of, unmark
from jaxvars.modules.state import State

_MARKS = "jaxvars.dtypes"
_DTYPES = {
    "BOOL": "bool", "C64": "complex64", "BF16": "bfloat16", "F16": "float16", "F32": "float32",
    "F64": "float64", "F8_E4M3": "float8_e4m3fn", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2", "F8_E5M2FNUZ": "float8_e5m2fnuz", "F8_E8M0": "float8_e8m0fnu",
    **{f"I{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"U{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}  # fmt: skip
"""The dtypes of safetensors, and what JAX calls them."""


def to_file(source: Any, path: PathLike) -> None:
    """Write the values of variables to a file, under their paths.

    For training runs use `jv.checkpoint`, which verifies what it reads.

    Args:
        source: a State, or anything with variables in it.
        path: ends in `.npz`, or in `.safetensors` (`pip install "jaxvars[safetensors]"`).

    Raises:
        StateError: when the format cannot hold a value or a path.
        DistributedError: when a value has parts in other processes.

    >>> import tempfile, jaxvars as jv
    >>> w = jv.Variable([1.0, 2.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     to_file({"w": w}, f"{folder}/w.npz")
    ...     from_file({"w": w}, f"{folder}/w.npz")["w"]
    Array([1., 2.], dtype=float32)
    """
    write = _write_npz if _is_npz(path) else _write_safetensors
    marked = {name: mark(value) for name, value in state_of(source).items()}
    if wrong := [x for x in marked if "\0" in x or x != x.encode(errors="ignore").decode()]:
        raise StateError(f"The paths {wrong} cannot be names in a file: use other keys or names.")
    with replacing(path) as fresh:
        write(fresh, marked)


def from_file(target: Any, path: PathLike, rules: Rules = (), **options: Any) -> State:
    """Return a State of a target's variables with the values in a file, to be committed.

    Args:
        target: a State, or anything with variables in it.
        path: ends in `.npz` or `.safetensors`; of a file that any program has written.
        rules: from the names in the file to paths, as for `from_dict`.
        **options: `partial` and `cast`, as for `from_dict`.

    Raises:
        StateError: when the file is damaged; or as `from_dict`.
        OSError: when it cannot be read.

    >>> import tempfile, jaxvars as jv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/w.npz", weight=np.float32(3))
    ...     from_file(jv.Variable(0.0, name="w"), f"{folder}/w.npz", [("weight", "w")])["w"]
    Array(3., dtype=float32)
    """
    read = _read_npz if _is_npz(path) else _read_safetensors
    try:
        arrays = read(Path(path))
    except (OSError, ModuleNotFoundError):
        raise
    except Exception as error:  # whatever zipfile, NumPy and safetensors make of bad data
        raise StateError(
            f"{path} is damaged, or of another format: {type(error).__name__}: {error}"
        ) from error
    return from_dict(target, arrays, rules, **options)


def _is_npz(path: PathLike) -> bool:
    if (suffix := Path(path).suffix) not in (".npz", ".safetensors"):
        raise StateError(f"{path} does not end in .npz or .safetensors, so its format is unknown.")
    return suffix == ".npz"


# ---------------------------------------------------------------- .npz
def _write_npz(path: Path, marked: Mapping[str, tuple[np.ndarray, str]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, (array, dtype) in marked.items():
            named = array.view([(dtype, array.dtype)]) if dtype else array
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, named, allow_pickle=False)


def _read_npz(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:  # NumPy's own reader takes a/w for a/w.npy
        for member in archive.namelist():
            with archive.open(member) as file:
                found[member.removesuffix(".npy")] = np.lib.format.read_array(file)
    return found


# ---------------------------------------------------------------- .safetensors
def _write_safetensors(path: Path, marked: Mapping[str, tuple[np.ndarray, str]]) -> None:
    _, numpy = _import_safetensors()
    arrays, marks = dict[str, np.ndarray](), dict[str, str]()
    for name, (array, dtype) in marked.items():
        if dtype in _DTYPES.values():
            array = array.view(jnp.dtype(dtype))
        elif dtype:
            marks[name] = dtype
        if array.dtype.name not in _DTYPES.values() or name == "__metadata__":
            raise StateError(f"safetensors has no {array.dtype} {name!r}: write a .npz file.")
        arrays[name] = np.require(array, requirements="C")  # or their order would be lost
    numpy.save_file(arrays, path, {_MARKS: json.dumps(marks)} if marks else None)


def _read_safetensors(path: Path) -> dict[str, Any]:
    (deserialize, _), data = _import_safetensors(), path.read_bytes()
    tensors = deserialize(data)  # which checks the header
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    marks = json.loads(header.get("__metadata__", {}).get(_MARKS, "{}"))
    return {name: unmark(_array_of(tensor), marks.get(name, "")) for name, tensor in tensors}


def _array_of(tensor: Mapping[str, Any]) -> np.ndarray:
    dtype = jnp.dtype(_DTYPES.get(tensor["dtype"], tensor["dtype"]))
    return np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])


def _import_safetensors() -> tuple[Any, Any]:
    try:
        from safetensors import deserialize, numpy
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Files of safetensors need an extra: pip install "jaxvars[safetensors]"',
            name=error.name,
        ) from error
    return deserialize, numpy
