"""Which results of an operation depend on which of its inputs.

A branch, a loop or a compiled function is one operation with many results. A tape that took each
of them for computed from all inputs would know of gradients that there are not when the same
Python runs operation by operation.

Rule this file keeps: what depends on what is the same whether it is computed for a whole program or
of its operations one by one; of branches, what depends in any of them does.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Sequence
from typing import Any

import jax
from jax.interpreters import ad, batching, mlir

from jaxvars.autodiff.rules import Masks, Params, PathRule, find_paths
from jaxvars.derivatives.scaling import reads_nothing
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing.capture import new_primitive
from jaxvars.tracing.jaxprs import open_jaxpr
from jaxvars.typing import Array


def _through_jaxpr(params: Params, given: Sequence[int], count: int, through: bool) -> Masks:
    return _through(params["jaxpr"], given, through)


def _through_scan(params: Params, given: Sequence[int], count: int, through: bool) -> Masks:
    return _through_loop(params["jaxpr"], given, _carried_by_scan(params), through)


def _carried_by_scan(params: dict[str, Any]) -> slice:
    """Return which inputs of a scan are its carry."""
    if "ft_in" in params:  # pragma: no cover - from JAX 0.12 on
        sizes = [len(list(part)) for part in params["ft_in"].unpack()[:2]]
    else:  # pragma: no cover - before
        sizes = [params["num_consts"], params["num_carry"]]
    return slice(sizes[0], sum(sizes))


def _through_while(params: Params, given: Sequence[int], count: int, through: bool) -> Masks:
    start = len(given) - count
    first = params.get("cond_nconsts", 0)  # what only the condition needs decides no value
    return _through_loop(params["body_jaxpr"], given[first:], slice(start - first, None), through)


def _through_saving(params: Params, given: Sequence[int], count: int, through: bool) -> Masks:
    made = _through_while(params, given, len(given) - params["count"], through)
    return [*made, 0, *made]


def _through_loop(body: Any, given: Sequence[int], carried: slice, through: bool) -> Masks:
    """Go through a loop until nothing is found any more."""
    masks, before = list(given), None
    made: Masks = []
    while masks != before:
        before = list(masks)
        made = _through(body, masks, through)
        masks[carried] = map(operator.or_, masks[carried], made)
    return [*masks[carried], *made[len(masks[carried]) :]]


def _through_branches(params: Params, given: Sequence[int], count: int, through: bool) -> Masks:
    found = [_through(branch, given[1:], through) for branch in params["branches"]]
    return [functools.reduce(operator.or_, masks) for masks in zip(*found, strict=True)]


def _through_read(params: Params, given: Sequence[int], count: int, through: bool) -> Masks:
    return [given[0] if through else given[1]]  # a variable depends on itself, or what was assigned


PATHS: dict[str, PathRule] = {
    "stop_gradient": lambda params, given, count, through: [0] * count,
    "reread": _through_read,
    "scan": _through_scan,
    "while": _through_while,
    "while_save": _through_saving,
    "cond": _through_branches,
} | dict.fromkeys(("jit", "checkpoint", "remat", "remat2", "shard_map"), _through_jaxpr)

_FOUND: weakref.WeakKeyDictionary[Any, dict[bool, Masks]] = weakref.WeakKeyDictionary()


def _through(closed: Any, given: Sequence[int], through: bool) -> Masks:
    """Return on what the results of a program depend; what it closed over may be among `given`."""
    jaxpr = open_jaxpr(closed)
    known = _FOUND.setdefault(jaxpr, {})
    if through not in known:
        known[through] = _results(jaxpr, through)
    hidden = len(jaxpr.constvars) + len(jaxpr.invars) - len(given)
    masks = [0] * hidden + list(given)
    return [
        functools.reduce(operator.or_, (m for i, m in enumerate(masks) if found >> i & 1), 0)
        for found in known[through]
    ]


def _results(jaxpr: Any, through: bool) -> Masks:
    """Return on which of its variables each result of a program depends."""
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    if any(hasattr(var.aval, "inner_aval") for eqn in jaxpr.eqns for var in eqn.invars):
        return [(1 << len(inputs)) - 1] * len(jaxpr.outvars)  # by way of a `jax.Ref`, maybe
    known = {var: 1 << i for i, var in enumerate(inputs) if is_inexact(var.aval)}
    for eqn in jaxpr.eqns:
        given = [0 if hasattr(var, "val") else known.get(var, 0) for var in eqn.invars]
        if any(given):
            name, count = eqn.primitive.name, len(eqn.outvars)
            made = find_paths(name, eqn.params, given, count, through_assigns=through)
            pairs = zip(eqn.outvars, made, strict=True)
            known.update((var, mask) for var, mask in pairs if is_inexact(var.aval))
    everything = functools.reduce(operator.or_, (known.get(var, 0) for var in inputs), 0)
    return [
        # JAX makes a result without elements of nothing; it depends on what others would.
        everything if _is_empty(var) else 0 if hasattr(var, "val") else known.get(var, 0)
        for var in jaxpr.outvars
    ]


def _is_empty(var: Any) -> bool:
    return any(isinstance(size, int) and size == 0 for size in getattr(var.aval, "shape", ()))


# ---------------------------------------------------------------- what is said of values
def _new_passing_primitive(name: str) -> Any:
    """Return an operation that passes its first input on."""
    primitive = new_primitive(name)
    primitive.def_impl(lambda value, *others: value)
    primitive.def_abstract_eval(lambda value, *others: value)
    ad.primitive_jvps[primitive] = lambda primals, tangents: (primitive.bind(*primals), tangents[0])
    batching.primitive_batchers[primitive] = lambda values, axes: (values[0], axes[0])
    mlir.register_lowering(primitive, lambda ctx, value, *others: [value])
    return primitive


depending_p = _new_passing_primitive("depending")
"""The first value, which depends on the others, too, with derivative zero."""

ad.primitive_transposes[depending_p] = lambda gradient, value, *others: [
    depending_p.bind(ad.instantiate_zeros(gradient), *others),
    *[None] * len(others),
]


@jax.custom_jvp
def in_slope(x: Array) -> Array:
    """Return x; the slope of what is made of it depends on x, too, with derivative zero.

    So a corner, which JAX's slopes only compare x with, has a second derivative: 0, and not none.
    """
    return x


@in_slope.defjvp
@reads_nothing
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return primals[0], depending_p.bind(tangents[0], primals[0])


aside_p = _new_passing_primitive("aside")
"""The first value, of values that a function with a custom pullback has only closed over."""


def _through_rule(params: Params, given: Sequence[int], count: int, through: bool) -> Masks:
    """Take all results for computed from all inputs but those that were closed over."""
    if "call_jaxpr" in params:
        jaxpr = open_jaxpr(params["call_jaxpr"])
        aside = {id(x) for eqn in jaxpr.eqns if eqn.primitive is aside_p for x in eqn.invars}
        given = [0 if id(x) in aside else m for x, m in zip(jaxpr.invars, given, strict=True)]
    else:
        given = given[getattr(getattr(params["subfuns"][0], "f", None), "closed_over", 0) :]
    return [functools.reduce(operator.or_, given, 0)] * count


PATHS["custom_vjp_call"] = _through_rule
