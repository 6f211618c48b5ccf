"""`Checkpoint`: the values of the variables in some objects, on disk and back.

Rules this file keeps:
- what is written is what all variables were at one moment, whatever other threads do;
- everything is read and verified before any variable is changed, and all are changed at once;
- a failed save or restore changes nothing, the counter of saves included.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp

from jaxvars import _trace
from jaxvars._checkpoint_files import PathLike, Stored, open_stored, write
from jaxvars._digest import dtype_name
from jaxvars._frames import LOCAL
from jaxvars._module import Module
from jaxvars._state import unique
from jaxvars._store import SHARED, Cell, exclusively, stored
from jaxvars._tensor import is_string, to_tensor
from jaxvars._variable import Variable, _restore
from jaxvars._walk import walk
from jaxvars.errors import CheckpointError, ForeignTransformError, user_line

Value: TypeAlias = Any


@final
class Checkpoint(Module):
    """The values of the variables in some objects, to be saved and restored.

    Args:
        root: an object whose variables' paths begin with nothing.
        **objects: Variables, Modules, optimizers, generators, or anything that holds Variables;
            the paths of its variables begin with its name.
    """

    def __init__(self, root: object = None, **objects: object) -> None:
        super().__init__()
        vars(self).update(objects)
        self._root = root
        self.save_counter = _restore(jnp.zeros((), jnp.int32), "save_counter", False, None)

    # ------------------------------------------------------------ writing
    def write(self, path: PathLike) -> str:
        """Write the values of all variables to a path; return it."""
        return str(write(path, self._snapshot()))

    def save(self, prefix: PathLike) -> str:
        """Write the values of all variables to the next of `prefix-1`, `prefix-2`, ...."""
        number, values = self._next()
        path = write(numbered(prefix, number), values)
        self._saved(number)
        return str(path)

    def _cells(self) -> dict[str, Cell]:
        """Return the cells of all variables, by path."""
        own = {name: x for name, x in vars(self).items() if name[0] != "_"}
        cells: dict[str, Cell] = {}
        seen: set[int] = set()
        for root in (self._root, own):
            for path, variable in walk(root, Variable):
                if variable.cell.key not in seen:
                    seen.add(variable.cell.key)
                    name = "/".join(path) or variable.cell.name
                    cells[unique(name, cells)] = variable.cell
        return cells

    def _snapshot(self) -> dict[str, Value]:
        """Return the values of all variables at one moment, by path; no step takes them away."""
        _refuse_traced("saved")
        cells = self._cells()

        def taken() -> dict[str, Value]:
            SHARED.update(cell.key for cell in cells.values())  # copied before it is donated
            return {path: stored(cell) for path, cell in cells.items()}

        return exclusively(taken)

    def _next(self) -> tuple[int, dict[str, Value]]:
        """Return the number of the next save, and what it is to write."""
        values = self._snapshot()
        number = int(values["save_counter"]) + 1
        return number, values | {"save_counter": jnp.asarray(number, jnp.int32)}

    def _saved(self, number: int) -> None:
        """Take note that a save has been made."""
        self.save_counter.assign(number)

    # ------------------------------------------------------------ reading
    def read(self, path: PathLike) -> Status:
        """Give all variables the values that were written to a path."""
        _refuse_traced("restored")
        file = open_stored(path)
        cells = self._cells()
        values, problems = _loaded(file, cells)
        if problems:
            raise CheckpointError("\n  ".join([f"{file.path} was not restored:", *problems]))
        LOCAL.eager.write_all([cells[p] for p in values], list(values.values()))
        return Status()

    def restore(self, path: PathLike | None) -> Status:
        """Give all variables the values that were saved; do nothing for None."""
        return Status() if path is None else self.read(path)


@final
class Status:
    """What has been restored."""


def numbered(prefix: PathLike, number: int) -> Path:
    """Return the path of a numbered checkpoint: `prefix-3`, or `prefix-3.npz`."""
    path = Path(os.fspath(prefix))
    stem = path.name.removesuffix(".npz")
    return path.with_name(f"{stem}-{number}{path.name[len(stem) :]}")


def _refuse_traced(what: str) -> None:
    if LOCAL.frame is not LOCAL.eager or _trace.strip(_trace.current()) is not _trace.EVAL:
        raise ForeignTransformError(
            f"Variables are {what} at {user_line()} in a function that is being traced (compiled, "
            "pure, or in a JAX transform): files are written and read by Python. Do it outside."
        )


def _loaded(file: Stored, cells: dict[str, Cell]) -> tuple[dict[str, Value], list[str]]:
    problems = [*_missing(file, cells), *_extra(file, cells)]
    values: dict[str, Value] = {}
    bad = False
    for path, entry in file.entries.items():
        cell = cells.get(path)
        try:
            value = file.value(path)
        except ValueError as error:
            problems.append(f"{path}: corrupt: {error}")
            bad = True
            continue
        if cell is None:
            continue
        misfit = misfit_of(entry.shape, entry.dtype, cell)
        if misfit:
            problems.append(f"{path}: {misfit}")
            bad = True
        else:
            values[path] = placed(cell, value)
    return values, problems if bad else []


def _missing(file: Stored, cells: Iterable[str]) -> list[str]:
    return [f"{p}: missing: it is not in the checkpoint" for p in cells if p not in file.entries]


def _extra(file: Stored, cells: Iterable[str]) -> list[str]:
    return [f"{p}: extra: no variable is there" for p in file.entries if p not in cells]


def misfit_of(shape: tuple[int, ...], dtype: str, cell: Cell) -> str | None:
    """Return how a value in a checkpoint does not fit a variable; None if it does."""
    own, own_dtype = tuple(cell.aval.shape), dtype_name(cell.aval.dtype)
    if shape != own:
        return f"shape {shape} in the checkpoint, {own} in the variable"
    if dtype != own_dtype:
        return f"dtype {dtype} in the checkpoint, {own_dtype} in the variable"
    return None


def placed(cell: Cell, value: Value) -> Value:
    """Return a value that was read where the variable lives, in memory of its own."""
    if is_string(cell.aval.dtype):
        return to_tensor(value)
    like = LOCAL.eager.get(cell)
    home = cell.home or (like.sharding if like.committed else None)
    return _trace.fresh(jnp.asarray(value) if home is None else jax.device_put(value, home))
