"""`place`: how the variables of a whole model are sharded, by rules from paths to specs.

    jv.place(model, {"**/embedding": jax.P("model", None), "**/kernel": jax.P(None, "model"),
                     "**": jax.P()}, mesh=mesh)

Rules this file keeps:
- the first rule whose pattern fits a path of a variable holds for it; a variable without a rule,
  with different ones for several paths, or whose rule does not fit, is refused with all others
  like it, and no value is moved;
- the slots of an optimizer go where their variable goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from jax.sharding import Mesh, PartitionSpec

from jaxvars.compiler.executable import renew_users
from jaxvars.core.frames import is_staged
from jaxvars.core.store import exclusively
from jaxvars.core.variable import Variable
from jaxvars.devices.mesh import as_sharding, current_mesh, is_spec
from jaxvars.display.repr import Table
from jaxvars.errors import ForeignTransformError, ShardingError
from jaxvars.modules.module import all_paths, named_variables
from jaxvars.objects.traversal import Pattern, first_of
from jaxvars.optimizers.optimizer import Optimizer
from jaxvars.optimizers.slots import slot_sharding
from jaxvars.programs.placement import place_at
from jaxvars.sketches import table_of
from jaxvars.tensors.dtypes import is_string
from jaxvars.tracing.guards import GUARDS, ask

Spec: TypeAlias = Any  # a PartitionSpec, a Sharding, a Device, or a function
Rules: TypeAlias = Iterable[tuple[Pattern, Spec]] | Mapping[Pattern, Spec] | Spec


def place(
    model: object, rules: Rules, *, mesh: Mesh | None = None, optimizer: Optimizer | None = None
) -> Table:
    """Shard the variables of a model by rules from their paths to specs.

    Moves their values, all or none, and has them stay there: what is assigned later goes to
    the same place. Compiled functions that use them are compiled again by XLA, and not traced.

    Args:
        model: a Module, or anything with Variables in it.
        rules: a dict, or pairs, of a pattern for paths as `jv.select` takes it, like
            "layers/*/kernel", and a `PartitionSpec`, `Sharding` or `Device`, or a function that
            gives one for a shape and a mesh, like `jv.parallel.fully_sharded("data")`. The
            first that fits holds, for a shared variable by any of its paths. One spec alone is for
            all.
        mesh: the mesh; the one in force when None.
        optimizer: one that has slots for the variables: they go along.

    Returns:
        What is where, and the bytes on each device, like `Module.table()`.

    Raises:
        ShardingError: when a variable has no rule, or different ones by several paths, or cannot be
            sharded so; it lists them all.
        ForeignTransformError: in a compiled function or a JAX transform.
        ValueError: when a pattern is a regular expression that is not compiled.

    >>> import jax, jaxvars as jv
    >>> layer = {"kernel": jv.Variable(jax.numpy.zeros((4, 2))), "bias": jv.Variable([0.0, 0.0])}
    >>> rules = {"**/kernel": jax.P(None, "model"), "**": jax.P()}
    >>> _ = place(layer, rules, mesh=jv.mesh({"model": 1}, jax.devices()[:1]))
    >>> layer["kernel"].sharding.spec
    P(None, 'model')
    """
    if is_staged():
        raise ForeignTransformError(
            "jv.place moves variables: call it outside of compiled functions and JAX transforms. "
            "In them, jv.shard says how a value is sharded."
        )
    if GUARDS:
        ask("Variables are placed")
    find = first_of(list(_list_pairs(rules)))
    mesh = mesh or current_mesh()
    named = {p: v for p, v in named_variables(model).items() if not is_string(v.dtype)}
    shardings = _find_shardings(named, all_paths(model, named), find, mesh)
    found = [(named[path], sharding) for path, sharding in shardings.items()]
    found += _find_followers(optimizer, found) if optimizer is not None else []
    new = [(v._cell, sharding) for v, sharding in found if v._cell.sharding != sharding]
    exclusively(lambda: place_at(new))
    renew_users([cell for cell, _ in new])
    return table_of(f"{type(model).__name__}, placed", named)


def _list_pairs(rules: Any) -> Iterable[tuple[Pattern, Spec]]:
    if is_spec(rules) or callable(rules):
        return [("**", rules)]
    items = rules.items() if isinstance(rules, Mapping) else rules
    pairs = list(items) if isinstance(items, Iterable) else [items]
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise ShardingError(
            f"jv.place is given {rules!r} as rules. Give one spec for all variables, like "
            'jax.P("data"), or a dict from patterns for paths to specs, like '
            '{"**/kernel": jax.P(None, "model"), "**": jax.P()}.'
        )
    return pairs


def _find_shardings(
    named: Mapping[str, Variable], paths: Mapping[str, Sequence[str]],
    find: Callable[[Sequence[str], Variable], Spec], mesh: Mesh | None,
) -> dict[str, Any]:  # fmt: skip
    shardings: dict[str, Any] = {}
    problems: list[str] = []
    for path, variable in named.items():
        try:
            spec = find(paths[path], variable)
            if callable(spec) and not isinstance(spec, Mesh):  # which JAX makes a decorator
                spec = spec(variable.shape, mesh)
            shardings[path] = as_sharding(spec, variable.shape, f"Variable {path!r}", mesh)
        except ShardingError as error:
            problems.append(str(error))
        except LookupError as error:
            problems.append(f"Variable {path!r} {error}.")
    if problems:
        raise ShardingError("jv.place moved nothing:\n  " + "\n  ".join(problems))
    return shardings


def _find_followers(
    optimizer: Optimizer, moved: Sequence[tuple[Variable, Any]]
) -> list[tuple[Variable, Any]]:
    """Return the state of an optimizer for some variables, with its placements."""
    shardings = {id(variable): sharding for variable, sharding in moved}
    found = [
        (slot, slot_sharding(shardings[id(variable)], variable.shape, slot.shape))
        for variable, slots in optimizer._list_slots()
        if id(variable) in shardings
        for slot in slots.values()
    ]
    slots = {id(slot) for _, all_slots in optimizer._list_slots() for slot in all_slots.values()}
    shared = [v for v in optimizer.variables if id(v) not in slots]
    found += [(v, slot_sharding(moved[0][1], None, v.shape)) for v in shared if moved]
    return [(v, sharding) for v, sharding in found if sharding is not None]


def fully_sharded(
    axis: str | tuple[str, ...] = "data", *, minimum: int = 1
) -> Callable[[tuple[int, ...], Mesh | None], PartitionSpec]:
    """Return a rule that shards the largest dimension that can be: for `jv.place`.

    With the batch sharded along the same axis this is fully sharded data parallelism (FSDP,
    ZeRO-3): each device keeps a part of each variable and its slots, and XLA gathers a variable
    when it is needed.

    Args:
        axis: the axis or axes of the mesh.
        minimum: variables of fewer elements are replicated.

    Raises:
        ShardingError: (from the rule) without a mesh.

    >>> import jax, jaxvars as jv
    >>> rule = fully_sharded("data", minimum=8)
    >>> mesh = jv.mesh({"data": 1}, jax.devices()[:1])
    >>> rule((3, 64), mesh), rule((3,), mesh)
    (P(None, 'data'), P())

    Source: Rajbhandari et al., ZeRO: Memory optimizations toward training trillion parameter
    models, 2020 (https://arxiv.org/abs/1910.02054).
    """

    def spec(shape: tuple[int, ...], mesh: Mesh | None) -> PartitionSpec:
        if mesh is None:
            raise ShardingError(
                "fully_sharded needs a mesh: jv.place(model, rules, mesh=mesh), or inside of "
                "`with jv.use_mesh(mesh):`."
            )
        names = (axis,) if isinstance(axis, str) else axis
        parts = math.prod(mesh.shape[name] for name in names)
        able = [i for i, size in enumerate(shape) if size and size % parts == 0]
        if not able or math.prod(shape) < minimum:
            return PartitionSpec()
        largest = max(able, key=lambda i: shape[i])
        return PartitionSpec(*[None] * largest, axis)

    return spec
