"""A while loop that can be differentiated in reverse, however often it runs.

JAX refuses to: a program must know beforehand how many states to keep. Here a fixed number of
checkpoints is kept, whatever the number of iterations: at first of each, then of each second, each
fourth, ... On the way back the iterations between two checkpoints are run again, a segment at a
time. Up to `CHECKPOINTS` iterations none is run twice; up to `CHECKPOINTS * _SEGMENT`, once more.

The problem is known as online checkpointing: Stumm and Walther, New Algorithms for Optimal Online
Checkpointing, SIAM Journal on Scientific Computing 32(2), 2010.

The loop is a separate operation in the program, with the name of JAX's; it becomes JAX's
when the program is compiled, or differentiated forwards.

The loops that go back are not differentiated as they stand: each order would have about seven
times as many. They are one operation (`while_pull`), `J(x).T @ y`. A cotangent u of its result is
one of x by the slope of `y @ (J(x) @ u)`, and that is computed by a loop like the first, whose body
also moves a tangent along (`_move`). So each order has a body of about twice the size, and as many
loops as the one before.

Rules this file keeps:
- a loop keeps nothing unless it is differentiated in reverse;
- what it keeps has no derivative: it is read by operations alone that depend on the loop's inputs;
- a body with a rule that knows its pullback alone cannot be moved along: there the loops that go
  back are differentiated as they stand;
- a loop with effects, or over a named axis, is JAX's.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from jaxvars.autodiff.rules import in_reverse, is_in_reverse
from jaxvars.derivatives import checkpoints
from jaxvars.derivatives.checkpoints import Values
from jaxvars.derivatives.irreversible import while_loops
from jaxvars.errors import TapeError, user_line
from jaxvars.tracing import capture, jaxprs
from jaxvars.typing import Array

_LOOPS = 16  # inside of one that is differentiated in reverse
_TOO_DEEP = (
    "The gradient requested at {line} goes through loops in loops, or is of high order through a "
    "loop, whose number of iterations is only known when the program runs, and which has a "
    "jax.custom_vjp in it. Each order makes about seven loops of one: XLA would compile this one "
    "for an hour. With a bound a loop has derivatives of any order:\n"
    "    jv.while_loop(cond, body, init, max_iterations=100)"
)


def while_loop(
    cond_fun: Callable[[Any, Any], Array],
    body_fun: Callable[[Any, Any], Any],
    operands: Any,
    init: Any,
) -> Any:
    """Run a loop that can be differentiated in reverse.

    Args:
        cond_fun: takes the operands and the state, returns whether there is an iteration.
        body_fun: takes the same, returns the next state, of the same types.
        operands: arrays that the functions need; they close over none that is traced.
        init: the first state.
    """
    consts, outer = jax.tree.flatten(operands)
    carry, inner = jax.tree.flatten(init)

    def flat(fn: Callable[[Any, Any], Any]) -> Callable[..., list[Array]]:
        n = len(consts)
        return functools.wraps(fn)(
            lambda *xs: jax.tree.leaves(
                fn(jax.tree.unflatten(outer, xs[:n]), jax.tree.unflatten(inner, xs[n:]))
            )
        )

    params: dict[str, Any] = {
        "cond_jaxpr": jax.make_jaxpr(flat(cond_fun))(*consts, *carry),
        "body_jaxpr": jax.make_jaxpr(flat(body_fun))(*consts, *carry),
        "count": len(consts),
    }
    if any(map(_is_jaxs, (params["cond_jaxpr"], params["body_jaxpr"]))):
        test = functools.wraps(cond_fun)(lambda state: cond_fun(operands, state))
        return jax.lax.while_loop(test, lambda state: body_fun(operands, state), init)
    return jax.tree.unflatten(inner, while_p.bind(*consts, *carry, **params))


_COLLECTIVE = frozenset(
    {"psum", "psum_invariant", "pmax", "pmin", "ppermute", "pvary", "all_gather", "all_to_all",
     "axis_index", "reduce_scatter", "shard_map"}
)  # fmt: skip


def _is_jaxs(jaxpr: Any) -> bool:
    """Return whether a loop has to be JAX's: one with effects, or on several devices."""
    if jaxprs.open_jaxpr(jaxpr).effects or jaxprs.primitives_in(jaxpr) & _COLLECTIVE:
        return True
    return any(getattr(aval, "vma", None) for aval in jaxpr.in_avals)


def _jax_loop(*values: Array, cond_jaxpr: Any, body_jaxpr: Any, count: int) -> list[Array]:
    cond_fun, body_fun = map(jaxprs.jaxpr_function, (cond_jaxpr, body_jaxpr))
    consts, init = values[:count], list(values[count:])
    return jax.lax.while_loop(
        lambda carry: cond_fun(*consts, *carry)[0], lambda carry: body_fun(*consts, *carry), init
    )


# ---------------------------------------------------------------- forwards
def _jvp(primals: Values, tangents: Values, **params: Any) -> Any:
    if not is_in_reverse():
        active = _find_active(primals, tangents)
        run = functools.partial(_run_active, primals, active, params)
        outputs, made = jax.jvp(run, [primals[i] for i in active], [tangents[i] for i in active])
        return outputs, [t if _is_float(x) else _zero(x) for x, t in zip(outputs, made)]  # noqa: B905 - equal
    results, made = _save(primals, tangents, **params)
    n = len(primals) - params["count"]
    return results[:n], made[:n]


def _save(primals: Values, tangents: Values, **params: Any) -> tuple[list[Array], list[Any]]:
    """Run a loop and keep states of it; these have no tangents: what uses them knows the loop."""
    keep = _run_saving if _has_pullback(params) else save_p.bind
    results, count = keep(*primals, **params), params["count"]
    outputs, saved = results[: len(primals) - count], results[len(primals) - count :]
    active = _find_active(primals, tangents)
    given = [tangents[i] for i in active]
    if is_in_reverse():
        options = {"active": active, "saved": len(saved), **params}
        made = iter(tangent_p.bind(*saved, *primals, *given, **options))
    else:
        made = iter(_move(primals, active, params, given))
    return results, [
        *(next(made) if _is_float(x) else _zero(x) for x in outputs),
        *map(_zero, saved),
    ]


def _has_pullback(params: Any) -> bool:
    """Return whether a body has a rule of the user's that cannot be differentiated forwards.

    Then a derivative is made of loops that are differentiated in turn.

    Raises:
        TapeError: when these have become too many: the derivative of a loop whose body has a
            `jax.custom_vjp` is four loops, one of which holds two of the others.
    """
    body = params["body_jaxpr"]
    if "custom_vjp_call" not in jaxprs.primitives_in(body):
        return False
    if len(while_loops("", {"body": body})) > _LOOPS:
        raise TapeError(_TOO_DEEP.format(line=user_line()))
    return True


def _find_active(primals: Values, tangents: Values) -> tuple[int, ...]:
    pairs = zip(primals, tangents, strict=True)
    return tuple(i for i, (x, t) in enumerate(pairs) if _is_active(x, t))


def _run_active(primals: Values, active: Sequence[int], params: Any, *values: Array) -> list[Array]:
    return _jax_loop(*jaxprs.replace_values(primals, active, values), **params)


def _is_active(value: Array, tangent: Array) -> bool:
    return type(tangent) is not ad.Zero and _is_float(value)


def _is_float(value: Any) -> bool:
    return jnp.issubdtype(jax.typeof(value).dtype, jnp.inexact)


def _zero(value: Array) -> Any:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


# ---------------------------------------------------------------- what is kept
def _run_saving(*primals: Array, **params: Any) -> list[Array]:
    """Run a loop; return its results, then the number of iterations and the states that it kept."""
    cond_fun, body_fun = _open(params)
    consts, carry = primals[: params["count"]], list(primals[params["count"] :])
    rows = [jnp.broadcast_to(x, (checkpoints.CHECKPOINTS + 1, *jnp.shape(x))) for x in carry]

    def is_on(consts: Any, state: Any) -> Array:
        return cond_fun(*consts, *state[2])[0]

    def step(consts: Any, state: Any) -> Any:
        n, rows, carry = state
        kept = checkpoints.store_at(checkpoints.slot(n), rows, carry)
        return n + 1, kept, body_fun(*consts, *carry)

    init = jnp.int32(0), rows, carry
    n, rows, outputs = while_loop(is_on, step, list(consts), init)
    return [*outputs, n, *rows]


def _kept_avals(*avals: Any, count: int, **_: Any) -> list[Any]:
    carry = avals[count:]
    return [*carry, jax.typeof(np.int32(0)), *map(_rows_aval, carry)]


def _rows_aval(aval: Any) -> Any:
    place = jax.NamedSharding(aval.sharding.mesh, jax.P(None, *aval.sharding.spec))
    return aval.update(shape=(checkpoints.CHECKPOINTS + 1, *aval.shape), sharding=place)


def _open(params: Any) -> tuple[Callable[..., list[Array]], Callable[..., list[Array]]]:
    return (
        jaxprs.jaxpr_function(params["cond_jaxpr"]),
        jaxprs.jaxpr_function(params["body_jaxpr"]),
    )


# ---------------------------------------------------------------- backwards
def _push(*args: Array, active: Sequence[int], saved: int, **params: Any) -> list[Array]:
    """Return the tangents of the results that are floats."""
    primals, tangents = _split(args, saved, len(args) - saved - len(active))[1:]
    return _move(primals, active, params, tangents)


def _split(values: Values, *sizes: int) -> list[list[Array]]:
    """Return parts of some sizes, and the rest."""
    rest = iter(values)
    return [*(list(itertools.islice(rest, size)) for size in sizes), list(rest)]


def _move(primals: Values, active: Sequence[int], params: Any, tangents: Values) -> list[Array]:
    """Return the tangents of the results that are floats, of a loop over values and tangents."""
    cond_fun, body_fun = _open(params)
    consts, carry = _split(primals, params["count"])
    known = dict(zip(active, tangents, strict=True))
    floats = [i for i, x in enumerate(carry) if _is_float(x)]
    given = [i for i in active if i < len(consts)]
    start = [known.get(len(consts) + i, jnp.zeros_like(carry[i])) for i in floats]

    def body(operands: Any, state: Any) -> Any:
        (consts, more), (carry, tangents) = operands, state

        def run(others: list[Array], values: list[Array]) -> tuple[list[Array], list[Array]]:
            made = body_fun(
                *jaxprs.replace_values(consts, given, others),
                *jaxprs.replace_values(carry, floats, values),
            )
            return [made[i] for i in floats], made

        at = [consts[i] for i in given], [carry[i] for i in floats]
        _, tangents, made = jax.jvp(run, at, (more, tangents), has_aux=True)
        return made, tangents

    return while_loop(
        lambda operands, state: cond_fun(*operands[0], *state[0])[0],
        body,
        (consts, [known[i] for i in given]),
        (carry, start),
    )[1]


def _back(*values: Array, active: Sequence[int], saved: int, **params: Any) -> list[Array]:
    """Return the cotangents of the differentiable inputs, of those of the float results."""
    count = params["count"]
    (n, *rows), primals, cotangents = _split(values, saved, count + saved - 1)
    floats = [i for i, x in enumerate(primals[count:]) if _is_float(x)]
    consts = [i for i in active if i < count]
    start = cotangents, [jnp.zeros_like(primals[i]) for i in consts]
    with in_reverse():
        walk = checkpoints.Walk(_open(params)[1], floats, consts, while_loop)
        of_state, of_consts = walk.back(n, rows, primals[:count], start)
    found = dict(zip(consts, of_consts, strict=True))
    found |= {count + i: ct for i, ct in zip(floats, of_state, strict=True)}
    return [found[i] for i in active]


def _pull_back(cotangents: Values, *args: Array, active: Sequence[int], **params: Any) -> list[Any]:
    """Go back by an operation that holds the program, which is not differentiated as it stands."""
    values = [*args[: len(args) - len(active)], *map(ad.instantiate_zeros, cotangents)]
    if _has_pullback(params):
        return [None] * (len(args) - len(active)) + _back(*values, active=active, **params)
    back = jax.make_jaxpr(functools.partial(_back, active=active, **params))(*values)
    made = pull_p.bind(*values, back=back, active=active, **params)
    return [None] * (len(args) - len(active)) + made


def _parts(values: Values, params: Any) -> list[list[Array]]:
    """Return what was kept of a loop, what it was given, and the rest of some values."""
    return _split(values, params["saved"], params["count"] + params["saved"] - 1)


def _pull_jvp(values: Values, tangents: Values, **params: Any) -> tuple[list[Array], list[Array]]:
    _, primals, _ = _parts(values, params)
    _, moved, others = _parts(tangents, params)
    by = _find_active(primals, moved)
    given = [*values, *map(ad.instantiate_zeros, others), *(moved[i] for i in by)]
    run = bend_p.bind if is_in_reverse() else _bend_forwards
    return pull_p.bind(*values, **params), run(*given, by=by, **params)


def _bend_forwards(*args: Array, by: Sequence[int], back: Any, **params: Any) -> list[Array]:
    """Return the tangents of going back."""
    _, primals, rest = _parts(args, params)
    cotangents, others, along = _split(rest, *[(len(rest) - len(by)) // 2] * 2)
    loop = {name: params[name] for name in ("cond_jaxpr", "body_jaxpr", "count")}

    def run(values: list[Array], cotangents: list[Array]) -> list[Array]:
        given = jaxprs.replace_values(primals, by, values)
        saved = _run_saving(*given, **loop)[len(given) - loop["count"] :]
        return _run_back(*saved, *given, *cotangents, back=back)

    return jax.jvp(run, ([primals[i] for i in by], cotangents), (along, others))[1]


def _bend_back(cotangents: Values, *args: Array, by: Sequence[int], **params: Any) -> list[Any]:
    """Return the cotangents of the tangents of going back.

    What comes back is `J(x).T @ y`, and a cotangent u of it is one of x by the slope of
    `y @ (J(x) @ u)`: that of a loop that moves along u, which is a loop like the first.
    """
    _, primals, rest = _parts(args, params)
    known = rest[: (len(rest) - len(by)) // 2]
    along = list(map(ad.instantiate_zeros, cotangents))

    def moved(*values: Array) -> list[Array]:
        given = jaxprs.replace_values(primals, by, values)
        return _move(given, params["active"], params, along)

    with in_reverse():
        tangents, pull = jax.vjp(moved, *[primals[i] for i in by])
        made = [*tangents, *pull(known)]
    return [None] * (len(args) - len(made)) + made


def _new_primitive(name: str, run: Callable[..., Any], avals: Callable[..., Any]) -> Any:
    made = capture.new_primitive(name)
    made.multiple_results = True
    made.def_impl(run)
    made.to_lojax = run  # JAX 0.12 needs it where a body has an operation like searchsorted
    made.def_abstract_eval(avals)
    mlir.register_lowering(made, mlir.lower_fun(run, multiple_results=True))

    def vmap(values: Values, axes: Any, **params: Any) -> tuple[list[Array], list[int]]:
        results = jax.vmap(functools.partial(run, **params), in_axes=tuple(axes))(*values)
        return results, [0] * len(results)

    batching.primitive_batchers[made] = vmap
    return made


def _tangent_jvp(values: Values, tangents: Values, **params: Any) -> Any:
    active = _find_active(values, tangents)
    run = lambda *xs: _push(*jaxprs.replace_values(values, active, xs), **params)  # noqa: E731
    return jax.jvp(run, [values[i] for i in active], [tangents[i] for i in active])


def _moved_avals(*avals: Any, active: Any, saved: int, count: int, **_: Any) -> list[Any]:
    states = avals[saved + count : len(avals) - len(active)]
    return [x.to_tangent_aval() for x in states if jnp.issubdtype(x.dtype, jnp.inexact)]


def _pulled_avals(*avals: Any, active: Sequence[int], saved: int, **_: Any) -> list[Any]:
    return [avals[saved + i].to_tangent_aval() for i in active]


def _run_back(*values: Array, back: Any, **_: Any) -> list[Array]:
    return jaxprs.jaxpr_function(back)(*values)


while_p = _new_primitive("while", _jax_loop, lambda *avals, count, **_: list(avals[count:]))
save_p = _new_primitive("while_save", _run_saving, _kept_avals)
tangent_p = _new_primitive("while_tangent", _push, _moved_avals)
pull_p = _new_primitive("while_pull", _run_back, _pulled_avals)
bend_p = _new_primitive("while_bend", _bend_forwards, _pulled_avals)
ad.primitive_jvps.update({while_p: _jvp, save_p: _save, tangent_p: _tangent_jvp, pull_p: _pull_jvp})
ad.primitive_transposes.update({tangent_p: _pull_back, bend_p: _bend_back})
