"""What a program uses is placed together: on one device, or on one mesh.

XLA runs a program on the devices where its inputs are, and would compile it again if one of them
came back elsewhere. So what a program on a mesh uses and was never placed is moved there, once.

Rules this file keeps:
- nothing moves before all is known to fit together;
- a variable that was placed is never moved;
- a program without a mesh is left as it is, and pays nothing for those that have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import jax
from jax.sharding import NamedSharding

from jaxvars.core.cells import STORE, Cell
from jaxvars.devices.mesh import describe_place, replicated_like
from jaxvars.errors import JaxvarsError, ShardingError
from jaxvars.tracing import context
from jaxvars.typing import Array

Named: TypeAlias = Iterable[tuple[str, Array]]

_WORDS = ("incompatible devices", "does not match the sharding", "evenly divide the shape")


def placed(value: Array) -> Any:
    """Return the sharding that was chosen explicitly for a value, or None."""
    known = isinstance(value, jax.Array) and not context.is_tracer(value)
    chosen = known and value.committed
    return value.sharding if chosen else None


def sharding_now(cell: Cell) -> Any:
    """Return where a cell was placed, or where its value happens to have been; or None."""
    return placed(STORE.get(cell.key)) if cell.sharding is None else cell.sharding


def mesh_of(places: Iterable[Any]) -> Any:
    """Return the mesh of the first place that is on one, or None."""
    return next((place.mesh for place in places if isinstance(place, NamedSharding)), None)


def lie_together(places: Iterable[Any]) -> bool:
    """Return whether all places that are known have the same devices."""
    return len({frozenset(place.device_set) for place in places if place is not None}) < 2


def gather(cells: Sequence[Cell], arguments: Named) -> list[Cell]:
    """Move what was placed nowhere to the mesh of the rest, if there is one; return what moved.

    To be called while the values are in `STORE` and no other thread touches them.

    Raises:
        ShardingError: when what was placed is on different devices.
    """
    shardings = {cell.key: sharding_now(cell) for cell in cells}
    given = [(name, placed(value)) for name, value in arguments]
    places = [*shardings.values(), *(place for _, place in given)]
    anchor = next((place for place in places if isinstance(place, NamedSharding)), None)
    if anchor is None:
        return []
    if not lie_together(places):
        raise apart([(f"Variable {cell.name!r}", shardings[cell.key]) for cell in cells], given)
    loose = [cell for cell in cells if cell.sharding is None]
    place_at([(cell, shardings[cell.key] or replicated_like(anchor)) for cell in loose])
    return loose


def place_at(shardings: Iterable[tuple[Cell, Any]]) -> None:
    """Set cells' placements, and move their values there; same condition as `gather`."""
    shardings = list(shardings)
    moved = {
        cell.key: jax.device_put(STORE[cell.key], sharding)  # may fail, as when memory runs out
        for cell, sharding in shardings
        if cell.key in STORE and STORE[cell.key].sharding != sharding
    }
    STORE.update(moved)
    for cell, sharding in shardings:
        cell.sharding = sharding


def apart(*groups: Named) -> ShardingError:
    """Return the error for things that are not placed together."""
    lines = [
        f"    {name}: {describe_place(place)}" for group in groups for name, place in group if place
    ]
    return ShardingError(
        "A program runs on one set of devices; what this one uses is on incompatible devices:\n"
        + "\n".join(lines)
        + "\nCreate all variables on one mesh, `with jv.use_mesh(mesh): ...`, or move them with "
        'jv.place; move arguments with jv.shard(x, jax.P("data"), mesh=mesh), or leave them '
        "unplaced, like NumPy arrays."
    )


def is_about_deleted(error: BaseException) -> bool:
    """Return whether JAX refused an array that has been deleted."""
    return "has been deleted" in str(error) and not isinstance(error, JaxvarsError)


def is_about_places(error: BaseException) -> bool:
    """Return whether JAX refused arguments for where they are placed."""
    refused = isinstance(error, ValueError) and not isinstance(error, ShardingError)
    return refused and any(word in str(error) for word in _WORDS)
