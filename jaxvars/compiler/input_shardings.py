"""How the arguments of a compiled function are sharded over the mesh when they arrive.

    @jv.compile(in_shardings={"x": jax.P("data"), "y": jax.P("data")})
    def step(x, y):
        ...

Rule this file keeps: what does not fit is refused before anything is moved, and by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import jax
from jax.sharding import PartitionSpec

from jaxvars.compiler.colocation import placed
from jaxvars.devices.mesh import as_sharding, current_mesh, is_spec, put
from jaxvars.errors import CompileError, ShardingError
from jaxvars.typing import Array


@final
class InputShardings:
    """Where the traced arguments of one program are to be.

    Args:
        names: what the arguments are called.
        specs: a PartitionSpec or Sharding for each, or None: wherever it is.

    Attributes:
        wanted: some are to be somewhere.
        shardings: where each is to be, once that is known.
    """

    def __init__(self, names: Sequence[str], specs: Sequence[Any]) -> None:
        self.names = names
        self._specs = specs
        self.wanted = any(spec is not None for spec in specs)
        self.shardings: tuple[Any, ...] | None = None

    def resolve(self, shapes: Sequence[tuple[int, ...]], mesh: Any) -> None:
        """Find out what the specs mean on a mesh; on the one in force if it is None.

        Raises:
            ShardingError: naming each argument that does not fit.
        """
        if not self.wanted:
            return
        mesh = mesh or current_mesh()
        found: list[Any] = []
        problems: list[str] = []
        for name, spec, shape in zip(self.names, self._specs, shapes, strict=True):
            try:
                what = f"Argument {name}"
                found.append(None if spec is None else as_sharding(spec, shape, what, mesh))
            except ShardingError as error:
                problems.append(str(error))
        if problems:
            raise ShardingError("\n".join(problems))
        self.shardings = tuple(found)

    def put(self, values: Sequence[Array]) -> Sequence[Array]:
        """Return the arguments where they are to be, or where jit can take them from there.

        jit moves what was never placed, like NumPy arrays, and knows it from arrays on a
        mesh: if it was moved here, the next call would compile again.
        """
        return self._move(values, lambda x, place: placed(x) in (None, place))

    def constrain(self, values: Sequence[Array]) -> Sequence[Array]:
        """Return the arguments where they are to be: inside of other functions."""
        return self._move(values, lambda x, place: placed(x) == place)

    def _move(
        self, values: Sequence[Array], stays: Callable[[Array, Any], bool]
    ) -> Sequence[Array]:
        if self.shardings is None:
            return values
        return [
            x if place is None or stays(x, place) else put(x, place)
            for x, place in zip(values, self.shardings, strict=True)
        ]


def check_form(given: Any, names: Sequence[str], function: str) -> None:
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


def spec_for(given: Any, argument: str, shape: tuple[int, ...]) -> Any:
    """Return the spec for a leaf of an argument.

    A spec for all leaves out those that have too few dimensions: numbers beside a batch.
    """
    if isinstance(given, Mapping):
        return given.get(argument, given.get(argument.partition("[")[0]))  # args[0], or args
    if isinstance(given, PartitionSpec) and len(given) > len(shape):
        return None
    return given


def lowered_like(leaf: Any, value: Array) -> jax.ShapeDtypeStruct:
    """Return what a program is lowered for: a leaf of the key, where the argument was placed."""
    place = getattr(value, "sharding", None) if isinstance(value, jax.ShapeDtypeStruct) else None
    place = placed(value) if place is None else place
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=leaf.weak, sharding=place)
