"""What converted code calls in place of Python's builtins, where these would look at a tracer.

Rules this file keeps:
- without a traced argument each is Python's own;
- with one, the result is the same as for a known array, as an array.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from math import inf
from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.autograph.operators import sequences
from jaxvars.autograph.operators.branches import decide, if_exp
from jaxvars.autograph.operators.logic import not_, or_
from jaxvars.autograph.operators.origins import isinstance_, shown, type_
from jaxvars.autograph.operators.values import check_size
from jaxvars.console.print import print_values
from jaxvars.control.state_threading import in_block
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.wrapping import boxed, is_boxing, type_for
from jaxvars.tracing import context
from jaxvars.typing import Array


def _is_traced(value: Any) -> bool:
    return not context.is_known(unwrap(value))


def _make_cast(kind: type, dtype: Any) -> Callable[..., Any]:
    def cast(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs or not _is_traced(args[0]):
            return kind(*args, **kwargs)
        value = unwrap(args[0])
        if value.size != 1:
            raise TypeError(f"{kind.__name__}() takes a scalar, not an array of {value.shape}")
        new = value.reshape(()).astype(type_for(kind, dtype))
        return boxed(jax.lax.stop_gradient(new))  # a tape loses it, too

    return cast


def _bool(*args: Any) -> Any:
    return boxed(decide(args[0])) if args and _is_traced(args[0]) else bool(*args)


def _sum(values: Iterable[Any], /, start: Any = 0) -> Any:
    if not _is_traced(values):
        return sum(values, start)
    array, first = unwrap(values), unwrap(start)
    return boxed(first + jnp.sum(array, axis=0, dtype=jnp.result_type(first, array)))


def _any(values: Iterable[Any]) -> Any:
    found: Any = False
    for value in values:
        found = or_(found, lambda: decide(value))  # noqa: B023 - used at once
        if found is True:
            return True
    return found


def _all(values: Iterable[Any]) -> Any:
    return not_(_any(not_(value) for value in values))


def _pick_extreme(values: Array, arg: Callable[[Array], Array], end: float) -> Array:
    """Return the element of a vector that Python's `max` (`end` is inf) or `min` (-inf) finds."""
    if not jnp.issubdtype(values.dtype, jnp.floating):
        return values[arg(values)]
    seen = jnp.where(jnp.isnan(values), -end, values)  # NaN is never larger or smaller
    return values[jnp.where(jnp.isnan(values[0]), 0, arg(seen))]


def _make_extreme(
    python: Callable[..., Any], arg: Any, end: float, pick: Any
) -> Callable[..., Any]:
    def extreme(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return python(*args, **kwargs)
        if len(args) == 1 and _is_traced(args[0]):
            rank = jnp.ndim(unwrap(args[0]))
            return boxed(_pick_extreme(unwrap(args[0]), arg, end)) if rank == 1 else python(*args)
        values = list(args[0]) if len(args) == 1 else args
        if not any(map(_is_traced, values)):
            return python(values)
        return boxed(unwrap(functools.reduce(pick, map(unwrap, values))))

    return extreme


def _sorted(values: Iterable[Any], /, **kwargs: Any) -> list[Any]:
    items = list(values)
    if kwargs.get("key") is not None or not any(map(_is_traced, items)):
        return sorted(items, **kwargs)
    ordered = jnp.sort(jnp.stack([jnp.asarray(unwrap(x)) for x in items]))
    return boxed(list(ordered[::-1] if kwargs.get("reverse") else ordered))


def _print(*values: Any, **kwargs: Any) -> None:
    leaves = jax.tree.leaves(values)  # reads Variables
    at_run_time = in_block() or not all(map(context.is_known, leaves))
    at_run_time = at_run_time and not is_boxing()  # TensorFlow's print is Python's
    (print_values if at_run_time else builtins.print)(*values, **kwargs)


def _round(number: Any, ndigits: Any = None) -> Any:
    if not _is_traced(number) or ndigits is not None:
        return round(number) if ndigits is None else round(number, ndigits)
    return boxed(jnp.round(unwrap(number)).astype(type_for(int, int)))


OVERLOADS: dict[Any, Callable[..., Any]] = {
    all: _all,
    any: _any,
    bool: _bool,
    enumerate: sequences.enumerate,
    float: _make_cast(float, float),
    format: lambda value, *spec: format(shown(value), *spec),
    int: _make_cast(int, int),
    isinstance: isinstance_,
    len: lambda values: len(check_size(values)),
    max: _make_extreme(
        max, jnp.argmax, inf, lambda a, b: if_exp(b > a, lambda: b, lambda: a, "max")
    ),
    min: _make_extreme(
        min, jnp.argmin, -inf, lambda a, b: if_exp(b < a, lambda: b, lambda: a, "min")
    ),
    print: _print,
    range: sequences.range,
    repr: lambda value: repr(shown(value)),
    reversed: sequences.reversed,
    round: _round,
    sorted: _sorted,
    str: lambda *args, **kwargs: str(*map(shown, args), **kwargs),
    sum: _sum,
    type: type_,
    zip: sequences.zip,
}
