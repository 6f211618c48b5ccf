"""`plan`: what a compiled function takes on each device, before it has run.

    with jv.use_mesh({"data": 64, "model": 4}):
        model, optimizer, step = jv.abstract(build)
        print(jv.plan(step, jv.TensorSpec((1024, 2048), "int32")))

    jv.plan(step, x, y, topology="v5e:16x16", mesh={"data": 16, "model": 16})  # elsewhere

Rules this file keeps:
- nothing runs, no variable changes, and no memory is taken for values but the first ones of the
  variables that the function creates, once those that they are made of have values;
- figures are XLA's, of the program compiled for the devices of the mesh; only what variables take
  and how often loops run is computed here. What is not known is said to be unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, singledispatch
from types import FunctionType
from typing import Any, TypeAlias, TypeVar, overload

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.creation import give_late
from jaxvars.compiler.decorator import compile
from jaxvars.compiler.function import BoundFunction, Function
from jaxvars.devices.mesh import current_mesh, use_mesh
from jaxvars.devices.mesh import mesh as make_mesh
from jaxvars.devices.topology import devices_of
from jaxvars.errors import CompileError, DeviceError, ShardingError
from jaxvars.modules.functionalize import PURE_FUNCTIONS
from jaxvars.planning.abstract import run_abstract
from jaxvars.planning.figures import Plan, Plans
from jaxvars.programs.placement import mesh_of
from jaxvars.tracing import context

T = TypeVar("T")
Axes: TypeAlias = Mapping[str, int]


@singledispatch
def tracer_of(function: Any) -> Callable[..., ConcreteFunction]:
    """Return what traces a function for the arguments of a call.

    Raises:
        CompileError: when it is not a compiled function.
    """
    kind = type(function).__name__
    raise CompileError(f"jv.plan takes a compiled function, not {kind}: plan(jv.compile(f), x)")


@tracer_of.register(Function)
@tracer_of.register(BoundFunction)
def _(function: Function[..., Any] | BoundFunction[..., Any]) -> Callable[..., ConcreteFunction]:
    return function.trace


@tracer_of.register
def _(function: FunctionType) -> Callable[..., ConcreteFunction]:
    if function not in PURE_FUNCTIONS:
        return tracer_of.dispatch(object)(function)
    return compile(function).trace


@overload
def plan(
    function: Any, *args: Any, topology: str | None = ..., mesh: Mesh | Axes | None = ...,
    meshes: None = ..., **kwargs: Any,
) -> Plan: ...  # fmt: skip
@overload
def plan(
    function: Any, *args: Any, topology: str | None = ..., meshes: Sequence[Mesh | Axes],
    **kwargs: Any,
) -> Plans: ...  # fmt: skip
def plan(
    function: Any, *args: Any, topology: str | None = None, mesh: Mesh | Axes | None = None,
    meshes: Sequence[Mesh | Axes] | None = None, **kwargs: Any,
) -> Plan | Plans:  # fmt: skip
    """Say what a call of a compiled function would take on each device.

    The function is traced and compiled for its variables' placement: on a mesh, for all of its
    devices. They need not hold values (`jv.abstract`), and the devices need not be of this machine:
    virtual CPUs do (`jv.config.set_logical_devices`), and a topology of TPUs or GPUs, by its name.
    No variable changes or moves. Those that the function creates in its first call are there then,
    as after that call: with their first values, once the variables that these are made of have
    values.

    For another mesh, the function is traced once more, with that mesh in force. What is sharded
    here, and by `in_shardings`, is sharded there along axes of the same names.

    Args:
        function: made by `jv.compile`. Its `in_shardings` say how arguments are sharded. Or made by
            `jv.functionalize`, with a State, also one of a model without values: planned as
            `jax.jit` of it runs, which keeps the old State.
        *args: of the call; a `TensorSpec` or `jax.ShapeDtypeStruct` may stand for an array.
        topology: devices to plan for: TPUs by the kind of the chips and how many there are along
            each dimension, like "v5e:16x16", with the compiler that `pip install "jaxvars[tpu]"`
            brings; GPUs by kind and number, like "h100:8", with `pip install "jaxvars[plan-gpu]"`
            and JAX_PLATFORMS=cpu in the environment. None of them have to be there.
        mesh: another mesh to plan for, or its axes; when None, and there is a topology, that of the
            model or the arguments, or else one device.
        meshes: several of them to compare.
        **kwargs: as `args`; an argument of the function that is called `topology`, `mesh` or
            `meshes` is given by its place.

    Returns:
        A `Plan`: memory, flops and collectives. With `meshes` a sequence of one for each of them,
        shown as a table.

    Raises:
        CompileError: when it is not a compiled function.
        DeviceError: when the topology is not known, or its compiler is not installed.
        ShardingError: when something cannot be sharded so on the mesh.

    What XLA makes of a program depends on the kind of device: fusion and memory of a plan for
    virtual CPUs are an estimate for others; variables, arguments and collectives are not.

    >>> import jaxvars as jv
    >>> w = jv.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> made = plan(jv.compile(lambda x: x @ w), jv.TensorSpec((8, 2)))
    >>> made.memory["trainable variables"], made.memory["arguments"], made.collectives
    (16, 64, Counter())
    """
    trace = tracer_of(function)
    here = partial(_traced, lambda: trace(*args, **kwargs))
    _check_choice(topology, mesh, meshes)
    if meshes is not None:
        found = [_find_mesh(topology, each) for each in meshes]
        here(lambda concrete: None)
        return Plans([_plan_on(each, here) for each in found])
    if topology is None and mesh is None:
        return here(Plan)
    places = [getattr(x, "sharding", None) for x in jax.tree.leaves((args, kwargs))]
    found = here(
        lambda concrete: _find_mesh(
            topology, mesh, [*(v.sharding for v in concrete.captured), *places]
        )
    )
    return _plan_on(found, here)


def _plan_on(mesh: Mesh, traced: Callable[[Callable[[ConcreteFunction], Plan]], Plan]) -> Plan:
    try:
        with context.at(context.EVAL), use_mesh(mesh):  # of a tape, JAX would refuse the mesh
            return traced(partial(Plan, mesh=mesh))
    except ShardingError as error:
        error.add_note(
            f"It is planned for a mesh of {dict(mesh.shape)}: see jv.plan(..., mesh=...)."
        )
        raise


def _traced(trace: Callable[[], ConcreteFunction], use: Callable[[ConcreteFunction], T]) -> T:
    """Return what is made of a trace, in which variables may be created."""
    late: list[Callable[[], None]] = []
    try:
        return use(run_abstract(trace, late, "jv.plan"))
    finally:  # also when it is refused: there are variables
        give_late(late)


# ---------------------------------------------------------------- meshes
def _check_choice(topology: Any, mesh: Any, meshes: Any) -> None:
    """Raise DeviceError unless it is clear for what a plan is."""
    if not isinstance(topology, str | None):
        raise DeviceError(f'{topology!r} does not name a topology: write "v5e:4x4", or "h100:8".')
    if meshes is None:
        return
    if mesh is not None:
        raise DeviceError("jv.plan takes mesh= or meshes=, and both are given: give one of them.")
    if isinstance(meshes, Mesh | Mapping | str) or not isinstance(meshes, Iterable):
        raise DeviceError(
            f"{meshes!r} is not a list of meshes: write mesh=... for one of them, or several as in "
            'meshes=[{"data": 8}, {"data": 4, "model": 2}].'
        )


def _find_mesh(topology: str | None, mesh: Mesh | Axes | None, places: Sequence[Any] = ()) -> Mesh:
    if isinstance(mesh, Mesh):
        return _check_devices(mesh, topology)
    if mesh is not None:
        return make_mesh(mesh, topology)
    devices = devices_of(topology or "")
    own = mesh_of(places) or current_mesh()
    if own is None:
        return Mesh(np.array(devices[:1]), ("device",), axis_types=(AxisType.Auto,))
    if own.size != len(devices):
        raise ShardingError(
            f"The model is on a mesh of {dict(own.shape)}, and {topology!r} has {len(devices)} "
            f'devices. Say how they are arranged: jv.plan(..., mesh={{"data": {len(devices)}}}).'
        )
    return make_mesh(dict(own.shape), topology)


def _check_devices(mesh: Mesh, topology: str | None) -> Mesh:
    """Raise DeviceError for a mesh that is not of the devices of a topology."""
    if topology is not None:
        mine, its = (
            [(device.platform, device.device_kind) for device in devices]
            for devices in (mesh.devices.flat, devices_of(topology))
        )
        if mine != its:
            raise DeviceError(
                f"The mesh of {dict(mesh.shape)} is of {len(mine)} {mine[0][1]} devices, and "
                f"{topology!r} names {len(its)} others. Give its axes alone: "
                f"jv.plan(..., topology={topology!r}, mesh={dict(mesh.shape)})."
            )
    return mesh
