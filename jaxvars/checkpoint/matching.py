"""Which value of a checkpoint is whose, and whether it fits.

Rules this file keeps:
- a slot is known by its variable, whose path it has, or else its name; two of one name are refused;
- a value fits a variable of its shape and dtype, and is put where that one is placed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias, final

import jax

from jaxvars.checkpoint.checksum import Entry, dtype_name
from jaxvars.checkpoint.trees import Leaf, as_wide_as
from jaxvars.core.cells import Cell
from jaxvars.core.store import exclusively
from jaxvars.core.variable import Variable
from jaxvars.errors import CheckpointError
from jaxvars.objects.traversal import Path, Tie, Tied
from jaxvars.programs.placement import sharding_now
from jaxvars.tensors.dtypes import is_string
from jaxvars.tensors.tensor import to_tensor
from jaxvars.typing import Array

Refuse: TypeAlias = Callable[[Path, Cell, Cell], None]


# ---------------------------------------------------------------- which variable it is
@final
class Owners(NamedTuple):
    """What ties slots that wait to the variables of which one has them, when it is met.

    Attributes:
        ties: to those that were restored from its path.
        are_sure: whether they were restored together with the slots; else there may be more.
    """

    ties: tuple[Tie, ...]
    are_sure: bool

    def __call__(self) -> Variable | None:
        """Return the first that is not gone."""
        return next(iter(self.list_alive()), None)

    def list_alive(self) -> list[Variable]:
        """Return those that are not gone."""
        return [variable for tie in self.ties if (variable := tie()) is not None]

    def join(self, others: Owners) -> Owners:
        """Return these with those that were restored since."""
        if self.are_sure or others.are_sure:
            return self if self.are_sure else others
        known = {id(variable) for variable in self.list_alive()}
        new = [tie for tie in others.ties if id(tie()) not in known]
        return Owners((*self.ties, *new), are_sure=False) if new else self


def refuse_alike(path: Path, *_: Cell) -> None:
    """Raise CheckpointError for two variables of one path."""
    raise CheckpointError(describe_clash(path))


def owner_in(path: Path) -> Tied | None:
    """Return what stands for the variable that a slot belongs to, in a path."""
    return next((part for part in path if isinstance(part, Tied)), None)


def name_owner(part: str, names: Mapping[int, str]) -> str:
    """Return a part of a path, and of what stands for a variable its name, given by key."""
    if not isinstance(part, Tied):
        return part
    known = (names.get(owner._cell.key) for owner in owners_of(part))
    return next(filter(None, known), None) or name_slots(part)


def owners_of(part: Tied) -> list[Variable]:
    """Return the variables of which one has the slots that a part of a path stands for."""
    if isinstance(part.tie, Owners):
        return part.tie.list_alive()
    owner = part.tie()
    return [owner] if isinstance(owner, Variable) else []


def is_there(part: str) -> bool:
    """Return whether the variable that a slot belongs to is not gone."""
    return not isinstance(part, Tied) or part.tie() is not None


def may_have_more(part: Tied) -> bool:
    """Return whether variables may be restored yet that what stands for others will mean, too."""
    return isinstance(part.tie, Owners) and not part.tie.are_sure


def has_lost(part: Tied) -> bool:
    """Return whether one of the variables that a part of a path stands for is gone."""
    ties = part.tie.ties if isinstance(part.tie, Owners) else (part.tie,)
    return any(tie() is None for tie in ties)


def name_slots(part: Tied) -> str:
    """Return how the slots of a variable that is not in the Checkpoint are called."""
    if part.is_path:
        return f"path={part}"
    owner = part.tie()
    return f"name={owner.name if isinstance(owner, Variable) else part}"


def describe_clash(path: Path) -> str:
    """Return why two variables cannot be told apart."""
    tied = owner_in(path)
    if tied is None:
        return (
            f"Two variables have the path {'/'.join(path)!r}, as in a set, whose elements have no "
            "order, or a dict with the keys 1 and '1', or 'a/b' and 'a', or an entry and an "
            "attribute of one name: a checkpoint could give one of them the other's value. Use a "
            "list, or a dict whose keys are strings without /, or another name."
        )
    name = name_slots(tied).partition("=")[2]
    return (
        f"The optimizer at {'/'.join(path[: path.index(tied)][:-1])!r} has slots for several "
        f"variables called {name!r}, none of which is in the Checkpoint: it could give one of them "
        "the slots of another. Put the model into the Checkpoint, too: Checkpoint(model=model, "
        "optimizer=optimizer); or give the variables explicit names."
    )


# ---------------------------------------------------------------- whether a value fits
def misfits_of(entries: Mapping[str, Entry], cells: Mapping[str, Cell | Leaf]) -> dict[str, str]:
    """Return how values in a checkpoint do not fit their variables or arrays, by path."""
    both = {path: (entries[path], cell) for path, cell in cells.items() if path in entries}
    found = {path: _misfit(entry, cell) for path, (entry, cell) in both.items()}
    return {path: misfit for path, misfit in found.items() if misfit}


def _misfit(entry: Entry, cell: Cell | Leaf) -> str:
    if isinstance(cell, Leaf):
        where, shape, dtype, fits = "tree", cell.shape, cell.dtype, cell.takes(entry.dtype)
        is_same = entry.shape == shape
    else:
        where, shape, dtype = "variable", cell.declared, dtype_name(cell.dtype)
        fits, is_same = entry.dtype == dtype, cell.takes(entry.shape)
    problems: list[str] = []
    if not is_same:
        problems.append(f"shape {entry.shape} in the checkpoint, {shape} in the {where}")
    if not fits:
        problems.append(f"dtype {entry.dtype} in the checkpoint, {dtype} in the {where}")
    return "; ".join(problems)


def place_value(cell: Cell | Leaf, value: Array) -> Array:
    """Return a value that was read on the devices of the variable, in separate memory."""
    if isinstance(cell, Leaf):
        return cell.place(value)
    if is_string(cell.aval.dtype):
        return to_tensor(value)
    sharding = exclusively(lambda: sharding_now(cell))
    if isinstance(value, jax.Array) and sharding in (None, value.sharding):
        return value
    with as_wide_as(value):
        return jax.device_put(value, sharding, may_alias=False)
