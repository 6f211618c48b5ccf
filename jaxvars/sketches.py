"""How variables, modules, states, functions and tapes show themselves: their views.

Rules this file keeps:
- showing an object reads no value in the way a program does: nothing is recorded or waited for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import jax
import numpy as np

from jaxvars.autodiff.tape_base import TapeBase
from jaxvars.compiler.concrete_function import ConcreteFunction
from jaxvars.compiler.function import BoundFunction, Function
from jaxvars.core.failures import failure_of
from jaxvars.core.frames import LOCAL
from jaxvars.core.variable import Variable
from jaxvars.devices.mesh import describe_place
from jaxvars.display.html import card, device_grid
from jaxvars.display.repr import Sketch, html_repr, text_repr, treescope_repr, value_text
from jaxvars.display.strings import (
    SMALL,
    brief_text,
    count_text,
    human_bytes,
    join_names,
    known_value,
    type_text,
)
from jaxvars.display.table import Table
from jaxvars.errors import InteropError, UninitializedError
from jaxvars.modules.module import WAITING, Module
from jaxvars.modules.state import State
from jaxvars.tensors.array_like import is_deleted, processes_of
from jaxvars.tensors.dtypes import bytes_per_device, is_key, is_string, nbytes
from jaxvars.tracing import context
from jaxvars.typing import Array
from jaxvars.views import Viewed, register

_SHOWN = 24  # values of a State
_LARGE = 3000  # equations of a program whose arithmetic is not counted for a card


# ---------------------------------------------------------------- variables
def _describe_variable(v: Variable) -> str:
    value, note = _seen(v)
    shown = note if value is None else brief_text(value)
    return f"<{' '.join(filter(None, [_format_type(v), shown]))}>"


def _describe_shortly(v: Variable) -> str:
    """Return the repr in a module's: without the values, unless there are few."""
    return repr(v) if v.size <= SMALL else f"<{_format_type(v)}>"


def _list_fields(v: Variable) -> Iterator[Any]:
    yield v.name
    yield "shape", v.shape
    yield "dtype", str(v.dtype)
    yield "trainable", v.trainable, True
    value, _ = _seen(v)
    if value is not None:
        yield "value", value


def _sketch_variable(v: Variable) -> Sketch:
    value, note = _seen(v)
    flag = "trainable" if v.trainable else "not trainable"
    place, grid = _describe_place(v)
    return Sketch(
        f"Variable {v.name!r}",
        line=f"{type_text(v)} {note}".rstrip(),
        facts=(flag, place, human_bytes(size) if (size := nbytes(v)) else ""),
        value=value,
        fields=(),
        rows=(grid,),
    )


def _format_type(v: Variable) -> str:
    flag = "" if v.trainable else " trainable=False"
    return f"Variable {v.name!r} {type_text(v)}{flag}"


def _seen(v: Variable) -> tuple[np.ndarray | None, str]:
    """Return the value as NumPy has it, to be shown at once; or None, and why."""
    try:
        with suppress(Exception):  # it was donated since it was looked at, or is not computed
            return _as_seen(LOCAL.frame.peek(v._cell))
        return _as_seen(LOCAL.frame.peek(v._cell, keep=True))
    except UninitializedError:
        return None, "without a value"


def _as_seen(value: Array | None) -> tuple[np.ndarray | None, str]:
    """Return a value as NumPy has it; or None, and why it is not shown."""
    if value is None or context.is_tracer(value):
        return None, "(traced)"
    if (count := processes_of(value)) > 1:
        return None, f"(on {count} processes)"
    if is_key(value):
        return np.asarray(jax.random.key_data(value)), ""
    if (known := known_value(value)) is None and (is_deleted(value) or failure_of(value)):
        raise UninitializedError("It was donated since it was looked at, or cannot be computed.")
    return known, ""


def _describe_place(v: Variable) -> tuple[str, str]:
    """Return where the value is, and a picture of that where it is on several devices."""
    sharding, device = v.sharding, v.device
    if device is not None:
        return f"{device.platform}:{device.id}", ""
    if sharding is None:
        return "host" if is_string(v.dtype) else "", ""
    parts = sharding.devices_indices_map(v.shape)
    grid = device_grid(v.shape, {d.id: index for d, index in parts.items()})
    return describe_place(sharding), grid


# ---------------------------------------------------------------- modules and states
def _list_attributes(module: Module) -> Iterator[Any]:
    for name, value in sorted(vars(module).items()):
        if name not in ("_name", WAITING):
            yield name, value


def _sketch_module(module: Module) -> Sketch:
    kind, title = type(module).__name__, f"{type(module).__name__} {module.name!r}"
    try:
        found = [variable for _, variable in module._find_variables()]
    except InteropError:  # there is a module of another library inside
        return Sketch(title, kind)
    facts = count_text(len(found), "variable"), human_bytes(sum(map(nbytes, found)))
    trained = sum(v.size for v in found if v.trainable)
    line = f"{trained:,} parameter{'' if trained == 1 else 's'}" if trained else ""
    return Sketch(title, kind, line and f"· {line}", facts)


def _table_of_module(module: Module) -> Table:
    return table_of(f"{type(module).__name__} {module.name!r}", module.named_variables)


def table_of(title: str, named: Mapping[str, Variable]) -> Table:
    """Return a table of some variables by path."""
    variables = list(named.values())
    sharded = any(map(_is_sharded, variables))
    columns = ("path", "shape", "dtype", "trainable", "device", "bytes")
    more = ("sharding", "bytes per device") if sharded else ()
    return Table(
        title=title,
        columns=(*columns, *more),
        rows=[(path, *_row(v, sharded=sharded)) for path, v in named.items()],
        footer=_totals(variables, sharded=sharded),
        formats=dict.fromkeys(("bytes", *more[1:]), human_bytes),
    )


def _is_sharded(v: Variable) -> bool:
    return v.sharding is not None and len(v.sharding.device_set) > 1


def _row(v: Variable, *, sharded: bool) -> tuple[Any, ...]:
    where = "host" if is_string(v.dtype) else _device_text(v)
    kind = "string" if is_string(v.dtype) else str(v.dtype)
    row = (v.shape, kind, v.trainable, where, nbytes(v))
    return (*row, _spec_text(v), bytes_per_device(v)) if sharded else row


def _device_text(v: Variable) -> str:
    if v.device is not None:
        return f"{v.device.platform}:{v.device.id}"
    return f"{len(v.sharding.device_set)} devices" if v.sharding is not None else "traced"


def _spec_text(v: Variable) -> str | None:
    return str(getattr(v.sharding, "spec", v.sharding)) if _is_sharded(v) else None


def _totals(variables: list[Variable], *, sharded: bool) -> list[tuple[Any, ...]]:
    def total(name: str, some: list[Variable]) -> tuple[Any, ...]:
        elements = f"{sum(v.size for v in some):,} elements in {count_text(len(some), 'variable')}"
        row = (f"{name}: {elements}", None, None, None, None, sum(map(nbytes, some)))
        return (*row, None, sum(map(bytes_per_device, some))) if sharded else row

    trainable = [v for v in variables if v.trainable]
    others = [v for v in variables if not v.trainable]
    return [total("total", variables), total("trainable", trainable), total("other", others)]


def _describe_state(state: State) -> str:
    shown = list(itertools.islice(state.items(), _SHOWN))
    lines = [f"  {path}: {value_text(value)}" for path, value in shown]
    lines += [f"  ... {len(state) - _SHOWN} more"] if len(state) > _SHOWN else []
    return "\n".join(["State(", *lines, ")"])


def _sketch_state(state: State) -> Sketch:
    facts = (human_bytes(sum(getattr(x, "nbytes", 0) for x in state.values())),)
    line = f"· {count_text(len(state), 'value')}"
    return Sketch("State", "State", line, facts, fields=tuple(state.items()))


# ---------------------------------------------------------------- functions
def _name_function(fn: Function[..., Any] | BoundFunction[..., Any]) -> tuple[str, str]:
    """Return what a compiled function is called, and how often it was traced."""
    known = fn.function if isinstance(fn, BoundFunction) else fn
    return f"compiled {known._signature.name}", count_text(fn.trace_count, "trace")


def _describe_function(fn: Function[..., Any]) -> str:
    return f"<{', '.join(_name_function(fn))}>"


def _describe_bound(fn: BoundFunction[..., Any]) -> str:
    return f"<{fn.function!r} of {type(fn.__self__).__name__}>"


def _sketch_function(fn: Function[..., Any] | BoundFunction[..., Any]) -> Sketch:
    title, count = _name_function(fn)
    table = (fn.traces._repr_html_(),) if fn.trace_count else ()
    return Sketch(title, title, f"· {count}", fields=(), rows=table)


def _table_of_traces(fn: Function[..., Any]) -> Table:
    return Table(
        title=f"traces of {fn._signature.name}",
        columns=("signature", "why", "seconds"),
        rows=[(signature, why, round(seconds, 4)) for signature, why, seconds in fn._log],
    )


def _describe_concrete(fn: ConcreteFunction) -> str:
    names = join_names(fn.capture_paths)
    return f"<ConcreteFunction {fn.name}({fn.signature}) captures [{names}]>"


def _sketch_concrete(fn: ConcreteFunction) -> Sketch:
    table, graph = _captures_of(fn), fn.graph
    made = jax.tree.leaves(fn.structured_outputs)
    outputs = ", ".join(type_text(x) for x in made if isinstance(x, jax.ShapeDtypeStruct))
    facts = [f"{graph.count('operation') + graph.count('control'):,} operations"]
    with suppress(Exception):  # JAX cannot tell, as of devices that are not there
        cost = fn.lower().cost_analysis() if len(fn.jaxpr.eqns) <= _LARGE else {}
        facts.append(f"{cost['flops']:,.0f} flops")
    rows = [
        card("", [count_text(len(table), "captured variable")], [table._repr_html_()]),
        card("", ["graph"], [graph._repr_html_()]),
    ]
    title = f"ConcreteFunction {fn.name}({fn.signature})"
    return Sketch(title, title, f"→ {outputs or 'None'}", tuple(facts), fields=(), rows=tuple(rows))


def _captures_of(fn: ConcreteFunction) -> Table:
    """Return the variables that a concrete function uses, by path, and what it does with them."""
    staged = fn._executable.staged
    used = {"read": {*staged.reads}, "written": {*staged.writes}}
    rows = [
        (
            path,
            type_text(v),
            " and ".join(verb for verb in used if v._cell in used[verb]),
            nbytes(v),
        )
        for path, v in zip(fn.capture_paths, fn.captured, strict=True)
    ]
    formats = {"bytes": human_bytes}
    return Table("", ("path", "type", "use", "bytes"), rows, formats=formats)


# ---------------------------------------------------------------- tapes
def _describe_tape(tape: TapeBase) -> str:
    nodes = tape._record.nodes
    facts = [count_text(len(nodes), "operation"), f"watching {_describe_watched(tape)}"]
    flags = [name for name in ("persistent", "used") if getattr(tape, f"_{name}", False)]
    return f"{type(tape).__name__}({', '.join(facts)}{'; ' * bool(flags)}{', '.join(flags)})"


def _describe_watched(tape: TapeBase) -> str:
    """Return the names of the variables watched, and how many arrays there are besides."""
    known = {id(x) for node in tape._record.nodes for x in node.outputs}
    known.update(id(x) for reads in tape._reads.values() for x in reads)
    count = len(tape._record.active.keys() - known)
    arrays = [count_text(count, "array")] if count else []
    names = [variable.name for variable in tape._variables.values()]
    return join_names(names, arrays) or "nothing"


def _sketch_tape(tape: TapeBase) -> Sketch:
    kind, facts = repr(tape)[:-1].split("(", 1)
    rows = [(v.name, type_text(v)) for v in tape._variables.values()]
    table = Table("", ("watched", "type"), rows)
    shown = (table._repr_html_(),) if rows else ()
    return Sketch(kind, kind, f"· {facts}", fields=(), rows=shown)


def install() -> None:
    """Give the classes of the heart their views."""
    register(Viewed, html=html_repr, treescope=treescope_repr)
    register(
        Variable, string=_describe_variable, short=_describe_shortly, fields=_list_fields,
        sketch=_sketch_variable,
    )  # fmt: skip
    register(
        Module, string=text_repr, fields=_list_attributes, sketch=_sketch_module,
        table=_table_of_module,
    )  # fmt: skip
    register(State, string=_describe_state, sketch=_sketch_state)
    register(Function, string=_describe_function, sketch=_sketch_function, traces=_table_of_traces)
    register(BoundFunction, string=_describe_bound, sketch=_sketch_function)
    register(ConcreteFunction, string=_describe_concrete, sketch=_sketch_concrete)
    register(TapeBase, string=_describe_tape, sketch=_sketch_tape)
