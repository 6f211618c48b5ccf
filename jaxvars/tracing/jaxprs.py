"""Jaxprs: run them, look into them, and leave out of them what is not needed."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from types import FunctionType
from typing import Any

import jax
import jax.core
import numpy as np
from jax.extend import core as jex
from jax.extend.core.primitives import copy_p

from jaxvars.objects.identity import Same
from jaxvars.tracebacks import package_of
from jaxvars.typing import Array


def some_outputs(closed: Any, places: Iterable[int]) -> tuple[Any, list[bool]]:
    """Return a closed jaxpr of the outputs at some places, and which inputs it still has."""
    jaxpr = open_jaxpr(closed)
    outputs = [jaxpr.outvars[i] for i in places]
    eqns, needed = needed_equations([e for e in jaxpr.eqns if not e.effects], outputs)
    used = [var in needed for var in jaxpr.invars]
    return close_jaxpr(closed, _slice(jaxpr, used, eqns, outputs, result_paths=None)), used


def own_outputs(closed: Any) -> tuple[Any, list[bool]]:
    """Return a closed jaxpr and, for each output, whether its memory is made for it alone.

    That is a copy, or what is filled with one value: which needs no copy, and gets none.
    """
    jaxpr = open_jaxpr(closed)
    every = itertools.chain(jaxpr.outvars, *(eqn.invars for eqn in jaxpr.eqns))
    uses = Counter(x for x in every if not isinstance(x, jex.Literal))
    alone = {x: eqn for eqn in jaxpr.eqns for x in eqn.outvars if uses[x] == 1}
    copies = {x: eqn.invars[0] for x, eqn in alone.items() if eqn.primitive is copy_p}
    fills = {x for x, eqn in alone.items() if eqn.primitive.name == "broadcast_in_dim"
             and isinstance(eqn.invars[0], jex.Literal)}  # fmt: skip
    is_own = [not isinstance(x, jex.Literal) and x in copies for x in jaxpr.outvars]
    filled = {x: of for x, of in copies.items() if not isinstance(of, jex.Literal) and of in fills}
    outputs = [filled.get(x, x) if own else x for x, own in zip(jaxpr.outvars, is_own, strict=True)]
    eqns = [eqn for eqn in jaxpr.eqns if not (eqn.primitive is copy_p and eqn.outvars[0] in filled)]
    return close_jaxpr(closed, jaxpr.replace(eqns=eqns, outvars=outputs)), is_own


def _slice(jaxpr: Any, used: list[bool], eqns: Any, outputs: Any, **changes: Any) -> Any:
    """Return a jaxpr with some of its inputs, and other equations and outputs."""
    info = jaxpr.debug_info
    names = info.arg_names and tuple(itertools.compress(info.arg_names, used))
    return jaxpr.replace(
        invars=list(itertools.compress(jaxpr.invars, used)),
        eqns=eqns,
        outvars=outputs,
        debug_info=info._replace(arg_names=names, **changes),
    )


def without(closed: Any, primitive: Any, count: int) -> tuple[Any, list[bool]]:
    """Take an operation that passes its first input on out of a program.

    Returns:
        The closed jaxpr, and which of its first `count` inputs it still has: the others are
        not needed any more.
    """
    jaxpr = open_jaxpr(closed)
    if not any(eqn.primitive is primitive for eqn in jaxpr.eqns):
        return closed, [True] * count
    same: dict[Any, Any] = {}
    eqns: list[Any] = []
    for old in jaxpr.eqns:
        eqn = old.replace(invars=[_same(var, same) for var in old.invars])
        if eqn.primitive is primitive:
            same[eqn.outvars[0]] = eqn.invars[0]
        else:
            eqns.append(eqn)
    outputs = [_same(var, same) for var in jaxpr.outvars]
    eqns, needed = needed_equations(eqns, outputs)
    kept = [var in needed for var in jaxpr.invars[:count]] + [True] * len(jaxpr.invars[count:])
    return close_jaxpr(closed, _slice(jaxpr, kept, eqns, outputs)), kept[:count]


def close_jaxpr(like: Any, jaxpr: Any) -> Any:
    return jaxpr if open_jaxpr(like) is like else like.replace(jaxpr=jaxpr)


def needed_equations(eqns: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Any], set[Any]]:
    """Return the equations that outputs or effects depend on, and the variables they use."""
    needed = {var for var in outputs if not isinstance(var, jex.Literal)}
    kept: list[Any] = []
    for eqn in reversed(eqns):
        if eqn.effects or any(var in needed for var in eqn.outvars):
            kept.append(eqn)
            needed.update(var for var in eqn.invars if not isinstance(var, jex.Literal))
    return kept[::-1], needed


def _same(var: Any, same: dict[Any, Any]) -> Any:
    return var if isinstance(var, jex.Literal) else same.get(var, var)


def value_key(value: Any) -> Any:
    """Return what stands for an input of an operation: a number by its type and bits."""
    if isinstance(value, jax.Array) or np.ndim(value):
        return Same(value)
    return jax.typeof(value), np.asarray(value).tobytes()


def take_out_constants(closed: Any) -> tuple[Callable[..., list[Array]], list[Array]]:
    """Return a closed jaxpr as a function of (what it closed over, arguments), and the former."""
    jaxpr = _without_constants(closed)
    return lambda consts, args: jax.core.eval_jaxpr(jaxpr, consts, *args), list(closed.consts)


def _without_constants(closed: Any) -> Any:
    """Return the jaxpr inside a closed one, which keeps nothing of what it closed over."""
    jaxpr = open_jaxpr(closed)
    return jaxpr if jaxpr is not closed else jaxpr.replace(consts=[])


def open_jaxpr(closed: Any) -> Any:
    """Return the jaxpr inside a closed one (JAX 0.12 made them one class)."""
    return getattr(closed, "jaxpr", closed)


def jaxpr_function(closed: Any) -> Callable[..., list[Array]]:
    """Return a closed jaxpr as a function from flat inputs to a list of outputs."""
    return jex.jaxpr_as_fun(closed)


def interpret(
    program: Any, values: Iterable[Any], run: Callable[[Any, list[Any]], Sequence[Any]]
) -> list[Any]:
    """Run a program, each equation of it with its inputs by `run`; return its outputs."""
    jaxpr = open_jaxpr(program)
    found: dict[Any, Any] = dict(zip(jaxpr.constvars, getattr(program, "consts", ()), strict=True))
    found.update(zip(jaxpr.invars, values, strict=True))

    def read(variables: Sequence[Any]) -> list[Any]:
        return [x.val if isinstance(x, jex.Literal) else found[x] for x in variables]

    for eqn in jaxpr.eqns:
        found.update(zip(eqn.outvars, run(eqn, read(eqn.invars)), strict=True))
    return read(jaxpr.outvars)


def replace_values(
    values: Sequence[Array], where: Sequence[int], new: Sequence[Array]
) -> list[Array]:
    """Return values, those at some positions replaced."""
    made = list(values)
    for i, value in zip(where, new, strict=True):
        made[i] = value
    return made


def bind_in_scope(eqn: Any, inputs: Sequence[Array]) -> Sequence[Array]:
    """Run an operation in its named scope; return its outputs."""
    scope = str(eqn.source_info.name_stack)
    with jax.named_scope(scope) if scope else nullcontext():
        return bind(eqn, *inputs)


def asks_nothing(params: dict[str, Any]) -> bool:
    """Return whether a jitted function says nothing of shardings or options."""
    places = [*params.get("in_shardings", ()), *params.get("out_shardings", ())]
    return not params.get("compiler_options_kvs") and all(
        type(place).__name__ == "UnspecifiedValue" for place in places
    )


CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call"})
"""The operations with a custom derivative."""


def is_single(name: str, params: dict[str, Any]) -> bool:
    """Return whether an operation that stands twice has to run twice: it draws, or has effects."""
    inside = [open_jaxpr(jaxpr) for jaxpr in inner_jaxprs(params)]
    draws = "rng_uniform" in {name}.union(*map(primitives_in, inside))
    return draws or any(jaxpr.effects for jaxpr in inside)


def has_users_rule(closed: Any) -> bool:
    """Return whether a function with a rule of a user's is called in a program, or in its jits."""
    eqns = open_jaxpr(closed).eqns
    jits = (eqn.params["jaxpr"] for eqn in eqns if eqn.primitive.name == "jit")
    return any(map(runs_users_code, eqns)) or any(map(has_users_rule, jits))


def bind(eqn: Any, *inputs: Array) -> Sequence[Array]:
    """Run an operation; return its outputs."""
    with eqn.ctx.manager:
        made = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
    return made if eqn.primitive.multiple_results else [made]


def inner_jaxprs(params: dict[str, Any]) -> Iterable[Any]:
    """Yield the jaxprs that an equation's parameters hold."""
    return jex.jaxprs_in_params(params)


def change_inner(params: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return an equation's parameters with what `change` makes of each jaxpr that they hold."""
    return {name: _change_jaxprs(value, change) for name, value in params.items()}


def _change_jaxprs(value: Any, change: Callable[[Any], Any]) -> Any:
    if type(value) in (tuple, list):  # the branches of a cond
        return type(value)(_change_jaxprs(part, change) for part in value)
    return change(value) if hasattr(value, "eqns") else value


_PRIMITIVES: weakref.WeakKeyDictionary[Any, frozenset[str]] = weakref.WeakKeyDictionary()


def primitives_in(program: Any) -> frozenset[str]:
    """Return the names of all primitives in a jaxpr and in those it contains."""
    jaxpr = open_jaxpr(program)
    if jaxpr not in _PRIMITIVES:
        names = {eqn.primitive.name for eqn in jaxpr.eqns}
        inside = (inner for eqn in jaxpr.eqns for inner in inner_jaxprs(eqn.params))
        _PRIMITIVES[jaxpr] = frozenset(names.union(*map(primitives_in, inside)))
    return _PRIMITIVES[jaxpr]


def largest_value(jaxpr: Any) -> int:
    """Return the bytes of the largest value, of known size, that a jaxpr or one in it computes."""
    largest, todo = 0, [open_jaxpr(jaxpr)]
    while todo:
        for eqn in todo.pop().eqns:
            avals = [var.aval for var in eqn.outvars if hasattr(var.aval, "dtype")]
            shaped = [aval for aval in avals if all(isinstance(n, int) for n in aval.shape)]
            largest = max([largest, *(aval.size * aval.dtype.itemsize for aval in shaped)])
            todo.extend(map(open_jaxpr, inner_jaxprs(eqn.params)))
    return largest


def integers_in(jaxpr: Any) -> set[int]:
    """Return the single integers that are constants of a jaxpr or of those it contains."""
    found: set[int] = set()
    todo = [jaxpr]
    while todo:
        closed = todo.pop()
        inputs = (var for eqn in open_jaxpr(closed).eqns for var in eqn.invars)
        known = [var.val for var in inputs if isinstance(var, jex.Literal)]
        known += getattr(closed, "consts", ())
        found.update(int(x) for x in known if _is_integer(x))
        for eqn in open_jaxpr(closed).eqns:
            todo += inner_jaxprs(eqn.params)
    return found


def _is_integer(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return isinstance(value, int) or (kind in ("i", "u") and not value.shape)


_ITERATING = frozenset({"while", "while_save", "scan", "cond", "custom_vjp_call", "pure_callback"})


def is_light(program: Any, limit: int) -> bool:
    """Return whether a program has few operations, and neither effects, loops nor branches."""
    jaxpr = open_jaxpr(program)
    todo, count = [jaxpr], 0
    while todo and not jaxpr.effects:
        for eqn in todo.pop().eqns:
            inner = [open_jaxpr(found) for found in inner_jaxprs(eqn.params)]
            todo += inner
            count += not inner
            if eqn.primitive.name in _ITERATING:
                return False
    return count <= limit and not jaxpr.effects


def evaluate(program: Any, values: Sequence[Array]) -> list[Array]:
    return jax.core.eval_jaxpr(open_jaxpr(program), getattr(program, "consts", ()), *values)


_OPENED: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()
_HIDDEN: weakref.WeakKeyDictionary[Any, list[Array]] = weakref.WeakKeyDictionary()


def open_program(closed: Any) -> tuple[Any, Callable[..., list[Array]]]:
    """Return a jitted function's program without constants, and it as a function of these too."""
    if closed not in _OPENED:
        program, n = _without_constants(closed), len(closed.consts)
        call = jax.jit(lambda *xs: jax.core.eval_jaxpr(program, list(xs[:n]), *xs[n:]))
        _OPENED[closed] = program, call
    return _OPENED[closed]


def hidden_arrays(closed: Any) -> list[Array]:
    """Return the arrays that jitted functions inside of a program closed over."""
    jaxpr = open_jaxpr(closed)
    if jaxpr not in _HIDDEN:
        found: list[Array] = []
        for eqn in jaxpr.eqns:
            if eqn.primitive.name == "jit":
                found += [x for x in eqn.params["jaxpr"].consts if isinstance(x, jax.Array)]
            for inner in inner_jaxprs(eqn.params):
                found += hidden_arrays(inner)
        _HIDDEN[jaxpr] = found  # whole: Ctrl-C may come before, and other threads look here
    return _HIDDEN[jaxpr]


_RULES = ("subfuns", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd")


def runs_users_code(equation: Any) -> bool:
    """Return whether to differentiate an operation may run Python that reads what it likes."""
    return not all(_is_jaxs_own(equation.params.get(name)) for name in _RULES)


def _is_jaxs_own(part: Any) -> bool:
    """Return whether what a custom-derivative call holds calls no function but JAX's own."""
    if isinstance(part, tuple | list):
        return all(map(_is_jaxs_own, part))
    if hasattr(part, "transforms"):
        return _is_jaxs_own(part.f) and _is_jaxs_own(part.transforms)
    if not callable(part) or isinstance(part, type) or hasattr(part, "reads_nothing"):
        return True
    if not isinstance(part, FunctionType):
        inner = getattr(part, "__wrapped__", None)
        return inner is not None and _is_jaxs_own(inner)
    held = [cell.cell_contents for cell in part.__closure__ or ()]
    return package_of(part.__globals__) == "jax" and _is_jaxs_own(held)
