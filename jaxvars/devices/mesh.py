"""Meshes: devices in a grid with named axes, and how values are sharded over them.

Rules this file keeps:
- the mesh in force is JAX's own (`jax.set_mesh`), and its axes are Auto: XLA's partitioner decides
  how a program is partitioned, from where its inputs are placed;
- a value that cannot be sharded as requested is refused before anything is moved, and by name.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from jaxvars.devices.device import check_coroutine, in_order, scope_sharding
from jaxvars.devices.topology import COMPILE_ONLY, check_present, devices_of
from jaxvars.errors import DeviceError, NotATensorError, ShardingError
from jaxvars.objects.key_order import ordered_like
from jaxvars.tensors.tensor import check_uncut, own_copy
from jaxvars.tracing import context
from jaxvars.tracing.guards import GUARDS, ask
from jaxvars.typing import Array


def mesh(axes: Mapping[str, int], devices: Sequence[Any] | str | None = None) -> Mesh:
    """Arrange devices in a grid with named axes.

    Args:
        axes: the size of each axis by name, outermost first; one may be -1, for what is left.
        devices: exactly as many as the sizes multiply to, in the order of the grid. When None,
            the first ones of all processes, in an order that suits their network. Or the name of
            a topology to plan for, like "v5e:16x16" or "h100:8": its devices, in such an order.

    Returns:
        A `jax.sharding.Mesh`, whose axes are Auto.

    Raises:
        DeviceError: when there are too few devices, or the sizes do not multiply out, or the
            topology is not known, or its compiler is not installed.

    >>> import jax
    >>> one = mesh({"data": 1, "model": 1}, jax.devices()[:1])
    >>> dict(one.shape)
    {'data': 1, 'model': 1}

    On virtual CPU devices wait for each step, as with `float(loss)`: XLA's CPU client runs them on
    a few threads, and stops the process when many programs that exchange data are on the way.
    """
    if isinstance(devices, str):
        return _mesh_of_topology(axes, devices)
    have = list(jax.devices() if devices is None else devices)
    sizes = _resolve_sizes(axes, len(have), "are given" if devices is not None else "there are")
    types = (AxisType.Auto,) * len(sizes)
    need = math.prod(sizes)
    if devices is None:
        if need > len(have):
            raise DeviceError(_describe_shortage(axes, need, len(have)))
        return jax.make_mesh(sizes, tuple(axes), axis_types=types, devices=have[:need])
    if need != len(have):
        raise DeviceError(
            f"A mesh of {dict(axes)} has {need} devices, and {len(have)} are given: give as many."
        )
    return Mesh(np.array(have).reshape(sizes), tuple(axes), axis_types=types)


def _mesh_of_topology(axes: Mapping[str, int], name: str) -> Mesh:
    have = devices_of(name)
    sizes = _resolve_sizes(axes, len(have), f"{name!r} has")
    if math.prod(sizes) != len(have):
        raise DeviceError(
            f"A mesh of {dict(axes)} has {math.prod(sizes)} devices, and {name!r} has {len(have)}."
        )
    types = (AxisType.Auto,) * len(sizes)
    return jax.make_mesh(sizes, tuple(axes), axis_types=types, devices=have)


def _resolve_sizes(axes: Mapping[str, int], have: int, intro: str) -> tuple[int, ...]:
    sizes = list(axes.values()) if isinstance(axes, Mapping) else []
    wrong = [size for size in sizes if not isinstance(size, int | np.integer) or size == 0]
    if not sizes or wrong or sizes.count(-1) > 1 or min(sizes) < -1:
        raise DeviceError(
            f"{axes!r} is not a mesh: name at least one axis, each of size 1 or more, and "
            'one -1 at most, for what is left: jv.mesh({"data": -1, "model": 2}).'
        )
    if -1 in sizes:
        others = -math.prod(sizes)
        if have % others:
            raise DeviceError(
                f"A mesh of {dict(axes)} needs a multiple of {others} devices, and {intro} {have}."
            )
        sizes[sizes.index(-1)] = have // others
    return tuple(map(int, sizes))


def _describe_shortage(axes: Mapping[str, int], need: int, have: int) -> str:
    return (
        f"A mesh of {dict(axes)} needs {need} devices, and there are {have}. Write -1 to take "
        "what there is. To try it on a CPU, make that many before JAX is first used:\n"
        f"    XLA_FLAGS=--xla_force_host_platform_device_count={need} python ...\n"
        f'or jax.config.update("jax_num_cpu_devices", {need}).'
    )


@contextmanager
def use_mesh(mesh: Mesh | Mapping[str, int]) -> Generator[Mesh]:
    """Create variables and run operations on a mesh.

    Inside, a PartitionSpec by itself says how a value is sharded, and what is created without
    one is replicated. The variables stay where they are afterwards. It is `jax.set_mesh`, which
    wins over `jv.device`.

    A variable that was made outside and placed nowhere moves to a mesh, replicated, when a
    compiled function first uses it together with variables or arguments that are placed there.

    Args:
        mesh: a `jax.sharding.Mesh`, or the axes to make one of.

    Yields:
        The mesh.

    Raises:
        DeviceError: when there are too few devices, or the axes are not a mapping.
        ShardingError: when an axis of the mesh is not Auto.

    >>> import jax, jaxvars as jv
    >>> with use_mesh({"data": 1}) as made:
    ...     v = jv.Variable([[1.0, 2.0]], sharding=jax.P("data"))
    >>> v.sharding.spec, v.sharding.mesh == made
    (P('data',), True)

    A compiled function that is called both inside and outside is compiled for each by XLA:
    JAX keeps the programs of the two apart; just so for NumPy arrays and arrays on the mesh.
    """
    found = mesh if isinstance(mesh, Mesh) else _made(mesh)
    _check_axes(found)
    with in_order("jv.use_mesh(mesh)", jax.set_mesh(found)):
        try:
            yield found
        except (AttributeError, jax.errors.JaxRuntimeError) as error:
            if any(sign in str(error) for sign in COMPILE_ONLY):
                check_present(found.devices.flat, "A value that is computed outside of programs")
            raise


_made = mesh


def _check_axes(mesh: Any) -> None:
    if any(kind is not AxisType.Auto for kind in mesh.axis_types):
        raise ShardingError(
            f"The axes of {mesh} must be Auto, so that a program is partitioned by where its "
            "inputs are placed. jax.make_mesh makes others by default: use "
            f"jv.mesh({dict(mesh.shape)})."
        )


def current_mesh() -> Mesh | None:
    """Return the mesh in force, or None."""
    check_coroutine()
    with context.at(context.EVAL):  # JAX tells only outside of traces
        found = jax.sharding.get_mesh()
    return None if found.empty else found


# ---------------------------------------------------------------- spreading
def shard(x: Any, spec: Any, *, mesh: Mesh | None = None) -> Any:
    """Shard arrays over a mesh.

    Outside of compiled functions they are moved; inside, XLA is told how to keep them.

    Args:
        x: an array, number or Variable, or a pytree of them.
        spec: a `PartitionSpec` or `Sharding` for all of them, or a pytree of such that `x`
            begins like.
        mesh: the mesh; the one in force when None.

    Returns:
        The same structure, of arrays.

    Raises:
        ShardingError: when an array cannot be sharded so, or no mesh is in force.
        NotATensorError: for a string, or another thing that is not an array.

    >>> import jax, numpy as np
    >>> with use_mesh({"data": 1}):
    ...     shard({"x": np.ones((4, 2))}, jax.P("data"))["x"].sharding.spec
    P('data',)
    """
    if GUARDS:
        ask("Arrays are sharded")
    arrays = jax.tree.map(lambda leaf: leaf, x)  # reads variables
    found, form = jax.tree_util.tree_flatten_with_path(arrays)
    specs = form.flatten_up_to(jax.tree.broadcast(spec, arrays, is_leaf=is_spec))
    wanted = [
        as_sharding(one, np.shape(leaf), _name(path), mesh)
        for (path, leaf), one in zip(found, specs, strict=True)
    ]
    moved = [put(leaf, to, _name(path)) for (path, leaf), to in zip(found, wanted, strict=True)]
    return ordered_like(x, jax.tree.unflatten(form, moved))


def _name(path: Any) -> str:
    return f"array{jax.tree_util.keystr(path)}"


def put(value: Array, sharding: Any, what: str = "a value that is put on devices") -> Array:
    """Move a value, which errors call `what`, or tell XLA where a traced one is to be."""
    if context.is_tracer(value):
        return jax.lax.with_sharding_constraint(value, sharding)
    value = copy_to_host(value, what)  # JAX would read it in place
    if isinstance(value, np.ndarray | np.generic):
        check_uncut(value, what)
    try:
        return jax.device_put(value, sharding)
    except TypeError as error:
        raise NotATensorError(f"{what} is not one that JAX takes: {error}") from error
    except jax.errors.JaxRuntimeError:
        check_present(sharding.device_set, what)
        raise


def copy_to_host(value: Any, what: str = "a part of a batch") -> Any:
    """Return a NumPy copy of an array of NumPy or another library; others as they are."""
    return value.copy() if isinstance(value, np.generic) else own_copy(value, what)


def is_spec(x: object) -> bool:
    """Return whether something says where a value is placed."""
    return x is None or isinstance(x, PartitionSpec | jax.sharding.Sharding | jax.Device)


def as_sharding(spec: Any, shape: tuple[int, ...], what: str, mesh: Mesh | None = None) -> Any:
    """Return the sharding that a spec means for a value, which errors call `what`.

    The spec is a PartitionSpec (on the mesh in force when `mesh` is None), a Sharding, a Device,
    or None: replicated.
    """
    found = resolve_sharding(spec, what, mesh)
    if problem := describe_misfit(found, shape):
        raise ShardingError(f"{what} {problem}")
    return found


def resolve_sharding(spec: Any, what: str, mesh: Mesh | None = None) -> Any:
    """Return the sharding that a spec means, for a value of any shape; see `as_sharding`."""
    if isinstance(spec, jax.Device):
        return SingleDeviceSharding(spec)
    if isinstance(spec, jax.sharding.Sharding):
        return spec
    if isinstance(spec, PartitionSpec | None):
        return _bind_spec(spec or PartitionSpec(), what, mesh or current_mesh())
    raise ShardingError(
        f"{what}: {spec!r} is not a placement. Give a PartitionSpec, like "
        'jax.P("data", None), a jax.sharding.Sharding or a jax.Device.'
    )


def _bind_spec(spec: PartitionSpec, what: str, mesh: Mesh | None) -> NamedSharding:
    if mesh is None:
        raise ShardingError(
            f"{what} is to be sharded as {spec}, but no mesh is in force. Say which:\n"
            '    with jv.use_mesh({"data": 4, "model": 2}):\n'
            "        ...\n"
            "or give a NamedSharding, or the mesh where there is an argument for it."
        )
    names = [name for axes in spec for name in _axes_of(axes)]
    wrong = [name for name in names if name not in mesh.shape or names.count(name) > 1]
    if wrong:
        raise ShardingError(
            f"{what} cannot be sharded as {spec} over a mesh of {dict(mesh.shape)}: each of its "
            f"axes may be there once, and {wrong[0]!r} is there twice or is not an axis of it."
        )
    return NamedSharding(mesh, spec)


def _axes_of(part: Any) -> tuple[str, ...]:
    """Return the axes that a dimension is sharded along."""
    return part if isinstance(part, tuple) else (part,) if isinstance(part, str) else ()


def describe_misfit(sharding: Any, shape: tuple[int, ...]) -> str | None:
    """Say why a value of a shape cannot be sharded so, or return None."""
    if not isinstance(sharding, NamedSharding):
        return None
    _check_axes(sharding.mesh)
    spec, sizes = sharding.spec, sharding.mesh.shape
    if len(spec) > len(shape):
        return f"of shape {shape} has {len(shape)} dimensions, and {spec} is for {len(spec)}."
    for i, (size, axes) in enumerate(zip(shape, spec, strict=False)):
        names = _axes_of(axes)
        parts = math.prod(sizes[name] for name in names)
        if size % parts:
            return (
                f"of shape {shape} cannot be sharded as {spec}: dimension {i} has size {size}, "
                f"not a multiple of the {parts} devices along {' and '.join(map(repr, names))}. "
                "Pad it, or shard another dimension."
            )
    return None


def sharding_for(sharding: Any, value: Array, name: str) -> Any:
    """Return a variable's placement: as requested, as its value is sharded, or by the scopes."""
    if sharding is not None:
        chosen = as_sharding(sharding, value.shape, f"Variable {name!r}")
        if not context.is_tracer(value):
            check_present(chosen.device_set, f"Variable {name!r}")
        return chosen
    if not context.is_tracer(value) and len(value.sharding.device_set) > 1:
        return value.sharding
    found = current_mesh()
    return scope_sharding() if found is None else NamedSharding(found, PartitionSpec())


def on_mesh(value: Array) -> Array:
    """Return a value on the mesh in force, where nothing else can be computed with."""
    found = None if context.is_tracer(value) or not value.committed else current_mesh()
    if found is None or value.sharding.device_set == set(found.devices.flat):
        return value
    return jax.device_put(value, NamedSharding(found, PartitionSpec()))


def replicated_like(sharding: Any) -> Any:
    """Return the sharding of a whole copy on each device of a mesh; None if it is not a mesh."""
    if not isinstance(sharding, NamedSharding):
        return None
    return NamedSharding(sharding.mesh, PartitionSpec())


def describe_place(sharding: Any) -> str:
    """Return where something is placed, as a string."""
    if sharding is None:
        return "anywhere"
    if isinstance(sharding, NamedSharding):
        return f"{sharding.spec} on a mesh of {dict(sharding.mesh.shape)}"
    names = sorted(f"{d.platform.upper()}:{d.id}" for d in sharding.device_set)
    return ", ".join(names) if len(names) < 4 else f"{len(names)} devices"
