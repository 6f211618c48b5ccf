"""Programs that run what stands twice in them once.

Rule this file keeps: two operations are one if nothing tells them apart, their parameters and
inputs bit for bit; what draws or has effects runs as often as it stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxvars.objects.identity import Same, exact, held
from jaxvars.tracing import jaxprs
from jaxvars.typing import Array


def flat_function(closed: Any) -> Callable[..., list[Array]]:
    """Return a closed jaxpr as a function that runs what stands twice in it once.

    Inner jitted functions are opened. XLA partitions a program before it merges what is
    equal, and would have the devices exchange the same data twice.
    """

    def run(*values: Array) -> list[Array]:
        return _run_flat(closed, values, {})

    return run


def _run_flat(closed: Any, values: Iterable[Array], known: dict[Any, Any]) -> list[Array]:
    def run(eqn: Any, inputs: list[Array]) -> Sequence[Array]:
        if eqn.primitive.name == "jit" and jaxprs.asks_nothing(eqn.params):
            return _run_flat(eqn.params["jaxpr"], inputs, known)
        return _run_once(eqn, inputs, known)

    return jaxprs.interpret(closed, values, run)


def _run_once(eqn: Any, inputs: list[Array], known: dict[Any, Any]) -> Sequence[Array]:
    single = eqn.effects or jaxprs.is_single(eqn.primitive.name, eqn.params)
    key = None if single else _call_key(eqn, inputs)
    if key is None or key not in known:
        outputs = jaxprs.bind_in_scope(eqn, inputs)
        if key is None:
            return outputs
        known[key] = outputs
    return known[key]


def _call_key(eqn: Any, inputs: list[Array]) -> Any:
    """Return what names the results of an operation; it keeps its inputs, known by identity."""
    # Never differentiated, so functions with rules are the same if they compute the same.
    is_custom = eqn.primitive.name in jaxprs.CUSTOM
    params = _program_key(eqn.params["call_jaxpr"]) if is_custom else exact(eqn.params, held)
    return eqn.primitive, tuple(map(jaxprs.value_key, inputs)), params, eqn.ctx


def _program_key(program: Any) -> Any:
    """Return what two programs that compute the same, in the same order, have in common."""
    jaxpr = jaxprs.open_jaxpr(program)
    numbers: dict[Any, int] = {}

    def number(var: Any) -> Any:
        if hasattr(var, "val"):
            return var.aval, jaxprs.value_key(var.val)
        return numbers.setdefault(var, len(numbers)), var.aval

    rows: list[Any] = [tuple(map(Same, getattr(program, "consts", ())))]
    rows.append(tuple(map(number, [*jaxpr.constvars, *jaxpr.invars])))
    for eqn in jaxpr.eqns:
        params = tuple((name, _param_key(value)) for name, value in eqn.params.items())
        ends = tuple(map(number, eqn.invars)), tuple(map(number, eqn.outvars))
        rows.append((eqn.primitive, params, *ends, eqn.ctx))
    return (*rows, tuple(map(number, jaxpr.outvars)))


def _param_key(value: Any) -> Any:
    is_program = hasattr(jaxprs.open_jaxpr(value), "eqns")
    return _program_key(value) if is_program else exact(value, held)
