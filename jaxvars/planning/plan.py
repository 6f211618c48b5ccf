"""`plan`: what a compiled function takes on each device, before it has run.

    with jv.use_mesh({"data": 64, "model": 4}):
        model, optimizer, step = jv.abstract(build)
        print(jv.plan(step, jv.TensorSpec((1024, 2048), "int32")))

Rules this file keeps:
- nothing runs, no variable changes, and no memory is taken for values but the first ones of the
  variables that the function creates, once those that they are made of have values;
- figures are XLA's, of the program compiled for the devices of the mesh; only what variables take
  is computed here, from their shapes and shardings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

import jax

from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.creation import give_late
from jaxvars.compiler.function import BoundFunction, Function
from jaxvars.core.variable import Variable
from jaxvars.display.repr import Table, human_bytes
from jaxvars.errors import CompileError
from jaxvars.planning.abstract import run_abstract
from jaxvars.planning.hlo import Collective, collectives_in
from jaxvars.tensors.dtypes import bytes_per_device

_ON_HOST = "variables on the host"


@final
class Plan:
    """What one call of a compiled function takes: memory, arithmetic, communication.

    Made by `jv.plan`. Printed, or shown in a notebook, it is a table.

    Attributes:
        name: what the function is called.
        devices: how many it runs on.
        memory: bytes on each device by what they are for: "trainable variables", "other variables",
            "arguments", "results", "temporaries" and their "total"; after it "variables on the
            host", if some are placed in its memory (`memory_kind="pinned_host"`).
        flops: floating point operations on each device, as XLA counts them.
        bytes_accessed: what they read and write in memory, as XLA counts it.
        collectives: which operations exchange data between devices, and how often in a call.
    """

    def __init__(self, concrete: ConcreteFunction) -> None:
        compiled = concrete.lower().compile()
        cost: dict[str, float] = compiled.cost_analysis() or {}
        self.name = concrete.name
        self.devices = _device_count(compiled)
        self.memory = _memory(concrete.captured, compiled.memory_analysis())
        self.flops = cost.get("flops", math.nan)
        self.bytes_accessed = cost.get("bytes accessed", math.nan)
        self.collectives: Counter[Collective] = collectives_in(compiled.as_text())

    @property
    def communication(self) -> int:
        """Bytes that go in or come out of collectives, on each device."""
        return sum(one.bytes * count for one, count in self.collectives.items())

    def table(self) -> Table:
        """Return it as a table: a row for each use of memory and each kind of collective."""
        where = "1 device" if self.devices == 1 else f"{self.devices} devices (figures per device)"
        rows: list[Sequence[Any]] = [(name, None, size) for name, size in self.memory.items()]
        for one, count in sorted(self.collectives.items(), key=lambda item: item[0].kind):
            among = "" if one.devices is None else f" of {one.devices} devices"
            rows.append((one.kind + among, count, one.bytes * count))
        return Table(
            f"{self.name} on {where}",
            ("what", "count", "bytes"),
            rows,
            footer=[(f"{self.flops:.3g} floating point operations", None, None)],
            formats={"bytes": human_bytes},
        )

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction] - IPython calls it
        return self.table()._repr_html_()


def plan(function: Any, *args: Any, **kwargs: Any) -> Plan:
    """Say what a call of a compiled function would take on each device.

    The function is traced and compiled for its variables' placement: on a mesh, for all of its
    devices. They need not hold values (`jv.abstract`), and the devices need not be of this machine:
    virtual CPUs do (`jv.config.set_logical_devices`), and what JAX can compile for from afar
    (`jax.experimental.topologies`). No variable changes. Those that the function creates in its
    first call are there then, as after that call: with their first values, once the variables that
    these are made of have values.

    Args:
        function: made by `jv.compile`. Its `in_shardings` say how arguments are sharded.
        *args: of the call; a `TensorSpec` or `jax.ShapeDtypeStruct` may stand for an array.
        **kwargs: the same.

    Returns:
        A `Plan`: memory, flops and collectives.

    Raises:
        CompileError: when it is not a compiled function.

    What XLA makes of a program depends on the kind of device: fusion and memory of a plan for
    virtual CPUs are an estimate for others; variables, arguments and collectives are not.

    >>> import jaxvars as jv
    >>> w = jv.Variable([[1.0, 2.0], [3.0, 4.0]])
    >>> made = plan(jv.compile(lambda x: x @ w), jv.TensorSpec((8, 2)))
    >>> made.memory["trainable variables"], made.memory["arguments"], made.collectives
    (16, 64, Counter())
    """
    if not isinstance(function, Function | BoundFunction):
        kind = type(function).__name__
        raise CompileError(f"jv.plan takes a compiled function, not {kind}: plan(jv.compile(f), x)")
    late: list[Callable[[], None]] = []
    try:
        return Plan(run_abstract(lambda: function.trace(*args, **kwargs), late))
    finally:  # also when it is refused: there are variables
        give_late(late)


def _memory(variables: Iterable[Variable], analysis: Any) -> dict[str, int]:
    held = Counter[str]()
    for variable in variables:
        held[_use(variable)] += bytes_per_device(variable)
    passed = analysis.argument_size_in_bytes + analysis.host_argument_size_in_bytes
    found = {
        "trainable variables": held["trainable variables"],
        "other variables": held["other variables"],
        "arguments": max(passed - held.total(), 0),
        "results": analysis.output_size_in_bytes - analysis.alias_size_in_bytes,
        "temporaries": analysis.temp_size_in_bytes,
    }
    host = {_ON_HOST: held[_ON_HOST]} if held[_ON_HOST] else {}
    return {**found, "total": sum(found.values()), **host}


def _use(variable: Variable) -> str:
    """Return what the memory of a variable is counted as."""
    if getattr(variable.sharding, "memory_kind", None) == "pinned_host":
        return _ON_HOST
    return "trainable variables" if variable.trainable else "other variables"


def _device_count(compiled: Any) -> int:
    places = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    return max((len(place.device_set) for place in places), default=1)
