"""Where the values of a program would be on another mesh: of devices that are not here, perhaps.

Rules this file keeps:
- what is sharded here is sharded there along axes of the same names, which have to be there;
- what is placed on one device here, or nowhere, is there as a call would have it: a variable on
  each device, and an argument where `in_shardings` or XLA say; what is in the memory of the host
  stays in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast, final

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxvars.compiler.program import Placement
from jaxvars.core.cells import Cell
from jaxvars.core.staging import Staged
from jaxvars.core.store import exclusively
from jaxvars.devices.mesh import as_sharding
from jaxvars.errors import ShardingError, called
from jaxvars.programs.flat import flat_function
from jaxvars.programs.placement import MeshPlacement, sharding_now
from jaxvars.typing import Array


@final
class Elsewhere(Placement):
    """The placement of a program on another mesh.

    Args:
        here: its placement now.
        mesh: the other one.
    """

    def __init__(self, here: Placement, mesh: Mesh) -> None:
        self._here, self._mesh = cast(MeshPlacement, here), mesh  # it is the one installed
        self.shardings = None

    def for_jit(
        self, staged: Staged, inputs: Sequence[Sequence[Cell]], outputs: Sequence[Cell]
    ) -> tuple[Callable[..., list[Array]], dict[str, Any]]:
        """Return the program, and where its results are; its inputs say where they are."""
        written = {"out_shardings": (tuple(map(self.place_of, outputs)), None)} if outputs else {}
        return flat_function(staged.program), written

    def planned(
        self, cells: Sequence[Cell], specs: Sequence[jax.ShapeDtypeStruct]
    ) -> tuple[Placement, Sequence[jax.ShapeDtypeStruct]]:
        """Return it, and the arguments where they would be."""
        wanted = zip(specs, self._here.names, self._here.resolve(self._mesh), strict=True)
        places = [
            place or _move(x.sharding, x.shape, name, self._mesh) for x, name, place in wanted
        ]
        return self, [x.update(sharding=at) for x, at in zip(specs, places, strict=True)]

    def explain(self, error: Exception, cells: Sequence[Cell], leaves: Sequence[Any]) -> None:
        """Raise an error for a function that says itself on which devices its values are."""
        if MeshPlacement.is_about(error):
            raise ShardingError(
                "The function places values on certain devices, which are not those of the mesh. "
                f'Name axes alone, as in jv.shard(x, jax.P("data")): {error}'
            ) from error

    def place_of(self, cell: Cell) -> NamedSharding:
        """Return where the value of a variable would be."""
        return place_on(self._mesh, cell)


def place_on(mesh: Mesh, cell: Cell) -> NamedSharding:
    """Return where the value of a variable would be on a mesh.

    Raises:
        ShardingError: when it cannot be sharded so there.
    """
    here = exclusively(lambda: sharding_now(cell))
    found = _move(here, cell.aval.shape, f"Variable {called(cell)!r}", mesh)
    return found or NamedSharding(mesh, PartitionSpec())


def _move(here: Any, shape: Sequence[int], what: str, mesh: Mesh) -> NamedSharding | None:
    if not isinstance(here, NamedSharding):
        kind = getattr(here, "memory_kind", None)
        is_on_host = kind == "pinned_host"
        return NamedSharding(mesh, PartitionSpec(), memory_kind=kind) if is_on_host else None
    there = as_sharding(here.spec, tuple(shape), what, mesh)
    return there.with_memory_kind(here.memory_kind)
