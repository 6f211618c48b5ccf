"""What a program takes on each device, read from the program that XLA compiled.

What is not known is said to be unknown: nothing is estimated from another machine.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, final

import jax
from jax.sharding import Mesh

from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.executable import CALLBACK_PRIMITIVES
from jaxvars.core.variable import Variable
from jaxvars.display.html import bars
from jaxvars.display.repr import Table, human_bytes
from jaxvars.errors import DeviceError, JaxvarsError
from jaxvars.planning.chips import Chip, chip_of, least_seconds
from jaxvars.planning.elsewhere import Elsewhere, place_on
from jaxvars.planning.hlo import Collective, collectives_in, count_products, has_choices, passes_of
from jaxvars.programs.placement import mesh_of
from jaxvars.tensors.dtypes import bytes_per_device
from jaxvars.tracing.jaxprs import primitives_in

_ON_HOST = "variables on the host"
# What XLA for TPUs says of a program that does not fit: what it takes, and what there is.
_TOO_LARGE = re.compile(r"\(([\d.]+)([KMGT]?)\) exceeds available HBM \(([\d.]+)([KMGT]?)\)")


@final
class Plan:
    """What one call of a compiled function takes: memory, arithmetic, communication.

    Made by `jv.plan`. Printed, or shown in a notebook, it is a table.

    Attributes:
        name: what the function is called.
        mesh: the mesh that it is planned for; None without one.
        devices: how many it runs on.
        kind: the kind of them; empty for CPUs.
        memory: bytes on each device by what they are for: "trainable variables", "other variables",
            "arguments", "results", "temporaries" and their "total"; after it "variables on the
            host", if some are placed in its memory (`memory_kind="pinned_host"`). Of a program
            that does not fit only variables, and the total if XLA says it. On TPUs "arguments" has
            what pads them and the variables, too: the last dimension to 128, the one before to 8.
        peak: the bytes in use at once, as XLA counts them, in the chip's own memory, too; None
            where it does not.
        code: the bytes of the program, which is in the memory of the devices, too.
        fits: whether XLA found room for it on such devices; None where it does not look, as on
            CPUs.
        excess: the bytes that it takes more than there are; None if that is not known, or it fits.
        flops: floating point operations on each device, as XLA counts them: in loops once, but for
            matrix products and convolutions, which count as often as they run (but not those that
            XLA makes sums of, as with one row). Of GPUs these alone.
        bytes_accessed: what they read and write in memory, as XLA counts it: in loops once.
        collectives: which operations exchange data between devices, and how often in a call.
        seconds: how long a call takes at least for its "arithmetic", "memory" and "communication",
            each by itself, by what is published of the chips; empty where nothing is.
        notes: what to know of the figures, a sentence each.
    """

    def __init__(self, concrete: ConcreteFunction, mesh: Mesh | None = None) -> None:
        self.name = concrete.name
        self.mesh = mesh or mesh_of(variable.sharding for variable in concrete.captured)
        self._describe([] if self.mesh is None else list(self.mesh.devices.flat))
        self.peak = self.excess = None
        self.code, self.flops, self.bytes_accessed = 0, math.nan, math.nan
        self.collectives: Counter[Collective] = Counter()
        self.seconds: dict[str, float] = {}
        self.notes = list(_notes(concrete, mesh))
        held = _count_variables(concrete, mesh)
        self.memory: dict[str, int] = dict(held)
        move = {} if mesh is None else {"move": partial(Elsewhere, mesh=mesh)}
        try:
            self._read(concrete.lower(**move).compile(), held)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            self._read_refusal(str(error))
        except (NotImplementedError, RuntimeError) as error:
            if mesh is None or isinstance(error, JaxvarsError):
                raise
            raise DeviceError(_describe_failure(concrete, self.mesh, error)) from error

    def _describe(self, devices: Sequence[Any]) -> None:
        """Say on what it runs; None are devices of this machine that nothing is placed on."""
        self.devices, first = max(len(devices), 1), devices[0] if devices else None
        self.kind = "" if first is None or first.platform == "cpu" else first.device_kind
        self.fits = True if first is not None and first.platform == "tpu" else None

    def _read(self, compiled: Any, held: Counter[str]) -> None:
        places = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
        devices = max((list(place.device_set) for place in places), key=len, default=[])
        self._describe(devices)
        memory = compiled.memory_analysis()
        self.memory = _divide(held, memory)
        self.peak = getattr(memory, "peak_memory_in_bytes", 0) or None
        self.code = memory.generated_code_size_in_bytes
        self._count(compiled.cost_analysis() or {}, compiled.as_text())
        if chip := chip_of(devices):
            passed = memory.argument_size_in_bytes + memory.output_size_in_bytes
            self._compare(chip, min(passed, self.bytes_accessed))

    def _count(self, cost: dict[str, float], hlo: str) -> None:
        """Count what is computed and exchanged."""
        passes = passes_of(hlo)
        products, self.collectives = count_products(passes), collectives_in(passes)
        once = cost.get("flops", products.once if products.is_all else math.nan)
        self.flops = once + products.all - products.once
        self.bytes_accessed = cost.get("bytes accessed", math.nan)
        if not products.is_exact or any(one.is_repeated for one in self.collectives):
            self.notes.append("a loop of unknown length counts once")
        if has_choices(passes):
            self.notes.append("a condition decides what runs: not all that counts does")
        if not cost and products.is_all:  # GPUs
            self.notes.append("of operations only matrix products are counted")
        if not self.kind and "bf16[" in hlo:
            self.notes.append(
                "CPUs compute bfloat16 in float32: temporaries and collectives are no estimate"
            )

    def _compare(self, chip: Chip, moved: float) -> None:
        """Compare it with what is published of the chips."""
        if chip.memory is not None:
            self.excess = max(0, self.memory["total"] - int(chip.memory)) or None
            self.fits = self.excess is None
        least = least_seconds(chip, self.flops, moved, self.collectives)
        self.seconds = {what: s for what, s in least.items() if not math.isnan(s)}

    def _read_refusal(self, message: str) -> None:
        """Take what XLA says of a program that does not fit."""
        self.fits = False
        if found := _TOO_LARGE.search(message):
            needed, there = _parse_bytes(*found.group(1, 2)), _parse_bytes(*found.group(3, 4))
            self.memory["total"], self.excess = needed, needed - there
        else:
            self.notes.append(message)

    # ------------------------------------------------------------ shown
    @property
    def communication(self) -> int:
        """Bytes that go in or come out of collectives, on each device."""
        return sum(one.bytes * count for one, count in self.collectives.items())

    def table(self) -> Table:
        """Return it as a table: a row for each use of memory and each kind of collective."""
        rows: list[Sequence[Any]] = [(name, None, size) for name, size in self.memory.items()]
        counts, sizes = Counter[str](), Counter[str]()
        for one, count in self.collectives.items():
            counts[_name(one)] += count
            sizes[_name(one)] += one.bytes * count
        rows += [(name, counts[name], sizes[name]) for name in sorted(counts)]
        return Table(
            f"{self.name} on {self._describe_devices()}",
            ("what", "count", "bytes"),
            rows,
            footer=[(line, None, None) for line in self._footer()],
            formats={"bytes": human_bytes},
        )

    def _describe_devices(self) -> str:
        kind = f"{self.kind} " if self.kind else ""
        if self.devices == 1:
            return f"1 {kind}device"
        return f"{self.devices} {kind}devices (figures per device)"

    def _footer(self) -> Iterator[str]:
        if self.fits is not None:
            more = "" if self.excess is None else f": {human_bytes(self.excess)} too much"
            yield "it fits" if self.fits else f"it does not fit{more}"
        if not math.isnan(self.flops):
            yield f"{self.flops:.3g} floating point operations"
        if self.seconds:
            ((slowest, seconds),) = _slowest(self).items()
            yield f"at least {seconds:.3g} s, for {slowest}"
        if self.peak is not None and self.kind:
            yield f"in use at once: {human_bytes(self.peak)}, on the chip, too"
            yield f"the program: {human_bytes(self.code)}"
        yield from self.notes

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction] - IPython calls it
        return self.table()._repr_html_()


@final
class Plans(Sequence[Plan]):
    """Plans of one call on several meshes. Printed, a table of them; in a notebook with a picture.

    The picture has what each device holds, and for how long the slowest part runs at least.
    """

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = tuple(plans)

    def __getitem__(self, i: Any) -> Any:
        return self._plans[i]

    def __len__(self) -> int:
        return len(self._plans)

    def table(self) -> Table:
        """Return them as a table: a row for each mesh."""
        seconds = [max(each.seconds.values(), default=None) for each in self]
        rows = [
            (_describe_mesh(x), _YES[x.fits], x.memory.get("total"), x.communication, least)
            for x, least in zip(self, seconds, strict=True)
        ]
        return Table(
            f"{self[0].name} on {self[0]._describe_devices()}" if rows else "",
            ("mesh", "fits", "memory", "communication", "seconds at least"),
            rows,
            formats={
                "memory": human_bytes,
                "communication": human_bytes,
                "seconds at least": _round,
            },
        )

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:  # pyright: ignore[reportUnusedFunction] - IPython calls it
        return f"{self.table()._repr_html_()}{self._picture()}"

    def _picture(self) -> str:
        parts = {_describe_mesh(plan): _parts_of_memory(plan) for plan in self}
        slowest = {_describe_mesh(plan): _slowest(plan) for plan in self if plan.seconds}
        drawn = bars("memory of a device:", parts, human_bytes)
        if slowest:
            drawn += bars("seconds at least, for", slowest, _round)
        return drawn


_YES = {True: "yes", False: "no", None: None}
_round = "{:.3g}".format


def _describe_mesh(plan: Plan) -> str:
    return "" if plan.mesh is None else ", ".join(f"{k} {n}" for k, n in plan.mesh.shape.items())


def _parts_of_memory(plan: Plan) -> dict[str, float]:
    return {name: n for name, n in plan.memory.items() if name not in ("total", _ON_HOST) and n}


def _slowest(plan: Plan) -> dict[str, float]:
    name = max(plan.seconds, key=lambda name: plan.seconds[name])
    return {name: plan.seconds[name]}


def _name(one: Collective) -> str:
    among = "" if one.devices is None else f" of {one.devices} devices"
    return f"{one.kind}{among}{', and more often' if one.is_repeated else ''}"


# ---------------------------------------------------------------- memory
def _count_variables(concrete: ConcreteFunction, mesh: Mesh | None) -> Counter[str]:
    """Return the bytes of variables on each device, by what they count as."""
    held = Counter[str]()
    for variable in concrete.captured:
        place = variable.sharding if mesh is None else place_on(mesh, variable._cell)
        held[_use(variable, place)] += bytes_per_device(variable, place)
    return held


def _use(variable: Variable, place: Any) -> str:
    if _is_on_host(place):
        return _ON_HOST
    return "trainable variables" if variable.trainable else "other variables"


def _is_on_host(place: Any) -> bool:
    return getattr(place, "memory_kind", None) == "pinned_host"


def _divide(held: Counter[str], analysis: Any) -> dict[str, int]:
    """Return the bytes on each device by what they are for."""
    passed = analysis.argument_size_in_bytes + analysis.host_argument_size_in_bytes
    on_host = max(analysis.host_argument_size_in_bytes - held[_ON_HOST], 0)
    found = {
        "trainable variables": held["trainable variables"],
        "other variables": held["other variables"],
        "arguments": max(passed - held.total() - on_host, 0),
        "results": analysis.output_size_in_bytes - analysis.alias_size_in_bytes,
        "temporaries": analysis.temp_size_in_bytes,
    }
    host = {_ON_HOST: held[_ON_HOST]} if held[_ON_HOST] else {}
    return {**found, "total": sum(found.values()), **host}


def _describe_failure(concrete: ConcreteFunction, mesh: Any, error: Exception) -> str:
    calls = CALLBACK_PRIMITIVES & primitives_in(concrete.jaxpr)
    why = "It calls back into Python, as jv.print does: plan it without that. " if calls else ""
    kind = mesh.devices.flat[0].device_kind
    return f"{concrete.name} cannot be compiled for {kind} devices. {why}JAX says: {error}"


def _parse_bytes(number: str, unit: str) -> int:
    return int(float(number) * 1024 ** " KMGT".index(unit or " "))


def _notes(concrete: ConcreteFunction, mesh: Mesh | None) -> Iterator[str]:
    """Yield what to know of a program's figures, whatever they are."""
    if concrete.captured and CALLBACK_PRIMITIVES & primitives_in(concrete.jaxpr):
        yield "it calls back into Python: variables are not donated"
    offloaded = [variable for variable in concrete.captured if _is_on_host(variable.sharding)]
    if mesh and not all(_is_on_host(place_on(mesh, v._cell)) for v in offloaded):  # GPUs elsewhere
        yield "JAX knows no memory of the host of such devices: variables in it count as on them"
