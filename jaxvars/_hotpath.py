"""The hot path: the few lines between a call of a compiled function and XLA, written to measure.

For each program and way of calling it a Python function is written, as dataclasses write
theirs. It checks that the arguments are those it was written for and hands the values of the
variables to XLA and back. For a program that assigns variables they stay in its tray:

    def run(args):
        if len(args) != 2: return MISS
        (a0, a1, ) = args
        if not (id(a0) == 140213 and type(a1) is T1): return MISS
        if HAND[0] is not tray: return careful((a1, ))
        HAND[0] = BUSY
        try:
            old = tray.values
            ((result, tray.values),) = map(jitted, (old, ), (a1,), )
            if type(tray.values[0]) is not array: undo(tray, old)
        finally:
            HAND[0] = tray
        return result

Rules this file keeps (`_store.py` says why):
- between the call that donates (`map` is consumed by the unpacking) and the assignment of the
  new values there is no other call;
- `HAND` is tested and set without a call in between, and put back whatever happens;
- a program that was staged by a foreign transform instead of run has donated nothing. If it
  assigns variables that is noticed afterwards and undone, which costs less than asking before;
  otherwise the place is checked first.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from jaxvars import _trace
from jaxvars._signature import counts_as_itself
from jaxvars._store import BUSY, HAND, HOT_PATH_FILE, STORE, Tray

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
    result = jitted((), {leaves})
    return {result}
"""

_READING = """
    check_place()
    if HAND[0] is not None: return careful(({leaves}))
    HAND[0] = BUSY
    try:
        old = ()
        (result,) = map(jitted, (old,), {kept}{each})
    finally:
        HAND[0] = None
    return {result}
"""

_WRITING = """
    if HAND[0] is not tray: return careful(({leaves}))
    HAND[0] = BUSY
    try:
        old = tray.values
        ((result, tray.values),) = map(jitted, (old{part},), {kept}{each})
        if type(tray.values[0]) is not array: undo(tray, old)
    finally:
        HAND[0] = tray
    return {result}
"""


class Parts(NamedTuple):
    """What a hot path needs of a program.

    Attributes:
        jitted: takes (donated values, kept values if there are any, *arguments). Returns
            (result, new values) if it writes, else the result.
        tray: holds the cells that it writes, those it is given the values of first.
        array: what their values are when they are no tracers.
        given: how many of them are donated to it.
        kept: keys of the cells whose values are lent to it.
        finish: makes the function's result, or None.
        careful: runs the program where the hot path may not.
        check_place: raises where the program must not run.
        undo: takes back a step, given the tray and the old values, and raises.
    """

    jitted: Callable[..., Any]
    tray: Tray | None
    array: type | None
    given: int
    kept: tuple[int, ...]
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
    text = _TEMPLATE.format(
        count=len(args),
        names=_tuple(f"a{i}" for i in range(len(args))),
        guards=" and ".join(filter(None, guards)) or "True",
        body=_body(parts, leaves),
    )
    names.update(parts._asdict(), MISS=MISS, STORE=STORE, HAND=HAND, BUSY=BUSY)
    exec(compile(text, HOT_PATH_FILE, "exec"), names)
    return names["run"]


def _body(parts: Parts, leaves: Sequence[str]) -> str:
    tray = parts.tray
    template = _WRITING if tray is not None else _READING if parts.kept else _PURE
    return template.format(
        leaves=_tuple(leaves),
        part="" if tray is None or parts.given == len(tray.keys) else f"[:{parts.given}]",
        kept=f"(({_tuple(f'STORE[{key}]' for key in parts.kept)}),), " if parts.kept else "",
        each=_tuple(f"({leaf},)" for leaf in leaves),
        result="result" if parts.finish is None else "finish(result)",
    )


def _tuple(items: Iterable[str]) -> str:
    return "".join(f"{item}, " for item in items)


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
