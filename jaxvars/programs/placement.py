"""Programs on a mesh: what one uses is placed together, and arguments as `in_shardings` says.

    @jv.compile(in_shardings={"x": jax.P("data"), "y": jax.P("data")})
    def step(x, y):
        ...

XLA runs a program on the devices where its inputs are, and would compile it again if one of them
came back elsewhere. So what a program on a mesh uses and was never placed is moved there, once.

Rules this file keeps:
- nothing moves before all is known to fit together, and what does not fit is named;
- a variable that was placed is never moved;
- a program without a mesh is left as it is, and pays nothing for those that have one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, final

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxvars.compiler.function import Function
from jaxvars.compiler.program import Leaves, Placement
from jaxvars.compiler.signature import Traced
from jaxvars.core.cells import STORE, Cell
from jaxvars.core.initial import PLACES, Places
from jaxvars.core.staging import Staged
from jaxvars.core.store import exclusively
from jaxvars.devices.device import dump_sharding, load_sharding
from jaxvars.devices.mesh import (
    as_sharding,
    current_mesh,
    describe_place,
    is_spec,
    on_mesh,
    put,
    replicated_like,
    sharding_for,
)
from jaxvars.devices.topology import check_present
from jaxvars.errors import CompileError, Phrase, ShardingError, called
from jaxvars.programs.flat import flat_function
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

Named: TypeAlias = Iterable[tuple[str, Any]]

_WORDS = ("incompatible devices", "does not match the sharding", "evenly divide the shape")


@final
class MeshPlacement(Placement):
    """Where the values of one program are, on a mesh if any is on one."""

    def __init__(
        self, given: Any, names: Sequence[tuple[str, str]], leaves: Sequence[Traced]
    ) -> None:
        super().__init__(given, names, leaves)
        self.names = [f"Argument {name}" for _, name in names]
        self._shapes = [leaf.shape for leaf in leaves]
        self._specs = [
            _spec_for(given, argument, value.shape)
            for (argument, _), value in zip(names, leaves, strict=True)
        ]
        self._wanted = any(spec is not None for spec in self._specs)
        self._rest: Any = None  # where variables will be that are placed nowhere by now

    @staticmethod
    def check(given: Any, names: Sequence[str], function: str) -> None:
        """Raise CompileError unless `in_shardings` is a spec, or a dict of them by known names."""
        if given is None or is_spec(given):
            return
        if not isinstance(given, Mapping):
            raise CompileError(
                f"in_shardings of {function} is a PartitionSpec for all arrays, or a dict from the "
                f"names of arguments to them, not {given!r}."
            )
        unknown = sorted(set(given) - set(names))
        if unknown and names:
            raise CompileError(f"in_shardings names {unknown}, but {function} has {list(names)}.")
        wrong = [name for name, spec in given.items() if not is_spec(spec)]
        if wrong:
            raise CompileError(f"in_shardings of {function}: no PartitionSpec for {wrong}.")

    def for_jit(
        self, staged: Staged, inputs: Sequence[Sequence[Cell]], outputs: Sequence[Cell]
    ) -> tuple[Callable[..., list[Array]], dict[str, Any]]:
        """Return the program as a function that XLA partitions well, and how jit is to place it."""
        options: dict[str, Any] = {}
        groups = [tuple(map(self.place_of, cells)) for cells in (*inputs, outputs)]
        if any(groups[-1]):
            options["out_shardings"] = (groups[-1], None)
        if self.shardings is not None:
            options["in_shardings"] = (*groups[:-1], *self.shardings)
        on_mesh = mesh_of([*sum(groups, ()), *(self.shardings or ())]) is not None
        return flat_function(staged.program) if on_mesh else staged.function(), options

    def arrange(self, cells: Sequence[Cell], leaves: Leaves) -> Sequence[Cell] | None:
        """Place together what the program uses."""
        moved = gather(cells, [] if self._wanted else self._named(leaves))
        return moved if self._settle(cells, leaves) or moved else None

    def specs(self, leaves: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
        """Return what stands for the arguments of a call, where they are."""
        specs = super().specs(leaves)
        return [x.update(sharding=_place_of(leaf)) for x, leaf in zip(specs, leaves, strict=True)]

    def planned(
        self, cells: Sequence[Cell], specs: Sequence[jax.ShapeDtypeStruct]
    ) -> tuple[MeshPlacement, Sequence[jax.ShapeDtypeStruct]]:
        """Return what a program is lowered with for such arguments, as they will be; none moves."""
        other = copy.copy(self)
        places = [*map(sharding_now, cells), *([] if self._wanted else map(_place_of, specs))]
        other._rest = replicated_like(first_on_mesh(places)) if None in places else None
        is_same = other._rest is None
        if not other._settle(cells, specs):
            return self if is_same else other, specs
        pairs = zip(specs, other.shardings or (), strict=True)
        moved = [x if place is None else x.update(sharding=place) for x, place in pairs]
        is_same &= other.shardings == self.shardings
        return self if is_same else other, moved  # jit knows the program

    def place_of(self, cell: Cell) -> Any:
        """Return where a program is lowered to have the value of a cell; None: anywhere."""
        return cell.sharding or self._rest

    def _settle(self, cells: Sequence[Cell], leaves: Sequence[Any]) -> bool:
        """Find out what the specs mean on the mesh of the rest, or on the one in force.

        Raises:
            ShardingError: naming each argument that does not fit.
        """
        if not self._wanted:
            return False
        mesh = mesh_of([*map(sharding_now, cells), *map(_place_of, leaves)]) or current_mesh()
        self.shardings = self.resolve(mesh)
        return True

    def resolve(self, mesh: Mesh | None) -> tuple[Any, ...]:
        """Return where the arguments are to be on a mesh; None for those that may be anywhere.

        Raises:
            ShardingError: naming each argument that does not fit.
        """
        found: list[Any] = []
        problems: list[str] = []
        for what, spec, shape in zip(self.names, self._specs, self._shapes, strict=True):
            try:
                found.append(None if spec is None else as_sharding(spec, shape, what, mesh))
            except ShardingError as error:
                problems.append(str(error))
        if problems:
            raise ShardingError("\n".join(problems))
        return tuple(found)

    def put(self, leaves: Leaves) -> Leaves:
        """Return the arguments where they are to be, or where jit can take them from there.

        jit moves what was never placed, like NumPy arrays, and knows it from arrays on a
        mesh: if it was moved here, the next call would compile again.
        """
        return self._move(leaves, lambda x, place: placed(x) in (None, place))

    def constrain(self, cells: Sequence[Cell], leaves: Leaves) -> Leaves:
        """Return the arguments where they are to be: inside of other functions."""
        self._settle(cells, leaves)
        return self._move(leaves, lambda x, place: placed(x) == place)

    def _move(self, leaves: Leaves, stays: Callable[[Array, Any], bool]) -> Leaves:
        if self.shardings is None:
            return leaves
        return [
            x if place is None or stays(x, place) else put(x, place)
            for x, place in zip(leaves, self.shardings, strict=True)
        ]

    def _named(self, leaves: Sequence[Any]) -> list[tuple[str, Any]]:
        return list(zip(self.names, leaves, strict=True))

    @staticmethod
    def is_about(error: BaseException) -> bool:
        """Return whether JAX refused arguments for where they are placed."""
        refused = isinstance(error, ValueError) and not isinstance(error, ShardingError)
        return refused and any(word in str(error) for word in _WORDS)

    def explain(self, error: Exception, cells: Sequence[Cell], leaves: Sequence[Any]) -> None:
        """Raise an error that names the variables and arguments that are not placed together."""
        if self.is_about(error):
            places = exclusively(lambda: list(map(sharding_now, cells)))
            used = [(f"Variable {called(c)!r}", x) for c, x in zip(cells, places, strict=True)]
            given = [(name, _place_of(value)) for name, value in self._named(leaves)]
            raise apart(used, given) from error


def _place_of(value: Any) -> Any:
    """Return where an argument was placed, or is said to be."""
    place = getattr(value, "sharding", None) if isinstance(value, jax.ShapeDtypeStruct) else None
    return placed(value) if place is None else place


def _spec_for(given: Any, argument: str, shape: tuple[int, ...]) -> Any:
    """Return the spec for a leaf of an argument.

    A spec for all leaves out those that have too few dimensions: numbers beside a batch.
    """
    if isinstance(given, Mapping):
        return given.get(argument, given.get(argument.partition("[")[0]))  # args[0], or args
    if isinstance(given, PartitionSpec) and len(given) > len(shape):
        return None
    return given


# ---------------------------------------------------------------- variables
def placed(value: Value) -> Any:
    """Return the sharding that was chosen explicitly for a value, or None."""
    if not isinstance(value, jax.Array) or context.is_tracer(value) or not value.committed:
        return None
    return value.sharding


def sharding_now(cell: Cell) -> Any:
    """Return where a cell was placed, or where its value happens to have been; or None."""
    return placed(STORE.get(cell.key)) if cell.sharding is None else cell.sharding


def mesh_of(places: Iterable[Any]) -> Any:
    """Return the mesh of the first place that is on one, or None."""
    first = first_on_mesh(places)
    return None if first is None else first.mesh


def first_on_mesh(places: Iterable[Any]) -> NamedSharding | None:
    """Return the first place that is on a mesh, or None."""
    return next((place for place in places if isinstance(place, NamedSharding)), None)


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
    anchor = first_on_mesh(places)
    if anchor is None:
        return []
    if not lie_together(places):
        raise apart([(f"Variable {called(cell)!r}", shardings[cell.key]) for cell in cells], given)
    loose = [cell for cell in cells if cell.sharding is None]
    place_at([(cell, shardings[cell.key] or replicated_like(anchor)) for cell in loose])
    return loose


def place_at(shardings: Iterable[tuple[Cell, Any]]) -> None:
    """Set cells' placements, and move their values there; same condition as `gather`."""
    shardings = list(shardings)
    for cell, sharding in shardings:
        if cell.key in STORE:
            check_present(sharding.device_set, Phrase("Variable {!r}", cell))
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


def install() -> None:
    """Let compiled functions run on meshes, and variables be on devices of scopes and meshes."""
    Function.placement = MeshPlacement
    PLACES[0] = Places(on_mesh, sharding_for, dump_sharding, load_sharding)
