"""The hot path: the few lines between a call of a compiled function and XLA, written to measure.

For each program and way of calling it a Python function is written, as dataclasses write
theirs. It checks that the arguments are those it was written for and takes the values of the
variables through XLA and back:

    def run(args):
        if len(args) != 2: return MISS
        (a0, a1, ) = args
        if not (id(a0) == 140213 and type(a1) is T1): return MISS
        if FLIGHT[0] or (SHARED and not SHARED.isdisjoint(donated)):
            return careful((a1, ))
        FLIGHT[0] = True
        try:
            old = (STORE[7], STORE[8], )
            ((result, STORE[7], STORE[8], ),) = map(jitted, (old,), (a1,))
            if type(STORE[7]) is not array: undo(donated, old)
        finally:
            FLIGHT[0] = False
        return result

Rules this file keeps:
- between the call that donates (`map` is consumed by the unpacking) and the last `STORE[...] =`
  there is no other call: CPython runs signal handlers and switches threads only at calls and
  backward jumps, so nothing comes between;
- `FLIGHT` is tested and set without a call in between, for the same reason;
- staged by a foreign transform instead of run, a program has donated nothing. If all that it
  wrote was given to it, that is noticed afterwards and undone, which costs less than asking
  before; otherwise the place is checked first.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from jaxvars import _trace
from jaxvars._signature import counts_as_itself
from jaxvars._state import FLIGHT, HOT_PATH_FILE, SHARED, STORE

Value: TypeAlias = Any

MISS: Any = object()
"""What a hot path returns when the arguments are not those it was written for."""

_NUMBERS = (int, float, complex)

_TEMPLATE = """
def run(args):
    if len(args) != {count}: return MISS
    ({names}) = args
    if not ({guards}): return MISS
{body}
"""

_PURE = """
    (result,) = jitted((), {leaves})
    return {result}
"""

_STATEFUL = """
    {before}
    if FLIGHT[0] or (SHARED and not SHARED.isdisjoint(donated)):
        return careful(({leaves}))
    FLIGHT[0] = True
    try:
        old = ({old})
        ((result, {new}),) = map(jitted, (old,), {kept}{each})
        {after}
    finally:
        FLIGHT[0] = False
    return {result}
"""


class Parts(NamedTuple):
    """What a hot path needs of a program.

    Attributes:
        jitted: takes (donated values, kept values if there are any, *arguments) to
            (result, *new values).
        donated: keys of the cells whose values are given to XLA.
        kept: keys of the cells whose values are lent to it.
        written: keys of the cells that new values are for.
        finish: makes the function's result, or None.
        careful: runs the program where the hot path may not.
        check_place: raises where the program must not run.
        undo: takes back (keys, values) and raises.
    """

    jitted: Callable[..., Any]
    donated: tuple[int, ...]
    kept: tuple[int, ...]
    written: tuple[int, ...]
    finish: Callable[[Any], Any] | None
    careful: Callable[[Sequence[Value]], Any]
    check_place: Callable[[], None]
    undo: Callable[..., None]


def write(
    parts: Parts,
    args: Sequence[Any],
    values: Sequence[Value],
    static: frozenset[int],
    *,
    by_shape: bool,
) -> Callable[..., Any] | None:
    """Return the hot path for calls like this one; None if there can be none.

    Args:
        parts: the program.
        args: the positional arguments of a call.
        values: what was traced: arguments, then defaults.
        static: positions of arguments whose value counts.
        by_shape: check shapes and dtypes here, rather than leave it to jit.
    """
    names: dict[str, Any] = {}
    guards = [
        _value_guard(i, x, names) if i in static else _guard(i, x, names, by_shape=by_shape)
        for i, x in enumerate(args)
    ]
    traced = [i for i, x in enumerate(args) if i not in static and is_traced(type(x))]
    if None in guards or not all(args[i] is x for i, x in zip(traced, values, strict=False)):
        return None
    defaults = {f"C{i}": x for i, x in enumerate(values[len(traced) :])}
    names.update(defaults)
    leaves = [*(f"a{i}" for i in traced), *defaults]
    stateful = parts.donated or parts.kept or parts.written
    text = _TEMPLATE.format(
        count=len(args),
        names=_tuple(f"a{i}" for i in range(len(args))),
        guards=" and ".join(filter(None, guards)) or "True",
        body=_stateful(parts, leaves, names) if stateful else _pure(parts, leaves),
    )
    names.update(
        MISS=MISS, STORE=STORE, SHARED=SHARED, FLIGHT=FLIGHT, jitted=parts.jitted,
        donated=parts.donated, finish=parts.finish, careful=parts.careful,
        check_place=parts.check_place, undo=parts.undo,
    )  # fmt: skip
    exec(compile(text, HOT_PATH_FILE, "exec"), names)
    return names["run"]


def _pure(parts: Parts, leaves: Sequence[str]) -> str:
    return _PURE.format(leaves=_tuple(leaves), result=_result(parts))


def _stateful(parts: Parts, leaves: Sequence[str], names: dict[str, Any]) -> str:
    undo = bool(parts.written) and set(parts.written) == set(parts.donated)
    if undo:
        names["array"] = type(STORE[parts.written[0]])
    return _STATEFUL.format(
        leaves=_tuple(leaves),
        old=_stored(parts.donated),
        kept=f"(({_stored(parts.kept)}),), " if parts.kept else "",
        each=_tuple(f"({leaf},)" for leaf in leaves),
        new=_stored(parts.written),
        before="" if undo else "check_place()",
        after=f"if type(STORE[{parts.written[0]}]) is not array: undo(donated, old)"
        if undo
        else "",
        result=_result(parts),
    )


def _result(parts: Parts) -> str:
    return "result" if parts.finish is None else "finish(result)"


def _tuple(items: Iterable[str]) -> str:
    return "".join(f"{item}, " for item in items)


def _stored(keys: Sequence[int]) -> str:
    return _tuple(f"STORE[{key}]" for key in keys)


def is_traced(kind: type) -> bool:
    """Tell whether values of exactly this type are traced."""
    if kind in _NUMBERS or issubclass(kind, np.number | np.ndarray):
        return True
    return issubclass(kind, jax.Array) and not issubclass(kind, _trace.Tracer)


def _guard(i: int, value: Any, names: dict[str, Any], *, by_shape: bool) -> str | None:
    """Return the condition under which an argument counts like `value`; None if it has none."""
    kind = type(value)
    names[f"T{i}"] = kind
    if is_traced(kind):
        return f"type(a{i}) is T{i}" + (_shape_guard(i, value, names) if by_shape else "")
    if kind is bool or value is None or isinstance(value, enum.Enum):
        names[f"V{i}"] = value
        return f"a{i} is V{i}"
    if kind is str:
        return _value_guard(i, value, names)
    return f"id(a{i}) == {id(value)}" if counts_as_itself(value) else None


def _value_guard(i: int, value: Any, names: dict[str, Any]) -> str:
    names[f"T{i}"], names[f"V{i}"] = type(value), value
    return f"type(a{i}) is T{i} and a{i} == V{i}"


def _shape_guard(i: int, value: Any, names: dict[str, Any]) -> str:
    if type(value) in _NUMBERS:
        return ""
    names[f"S{i}"], names[f"D{i}"] = value.shape, value.dtype
    weak = f" and a{i}.weak_type is {value.weak_type}" if isinstance(value, jax.Array) else ""
    return f" and a{i}.shape == S{i} and a{i}.dtype == D{i}{weak}"
