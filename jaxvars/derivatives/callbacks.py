"""Python that a loop calls back for a result, where a tape differentiates the loop.

JAX splits such a loop into two, and refuses to differentiate one that calls in the order of the
program. So a `CalledBack` is called there as a function of its arguments alone.

Rule this file keeps: outside of loops, and in those that are not differentiated, nothing changes.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, final

import jax

from jaxvars.derivatives.checkpointed_while import while_loop
from jaxvars.tracing import jaxprs
from jaxvars.tracing.operations import Operation
from jaxvars.tracing.recorder import Equation
from jaxvars.typing import Array

_LOOPS = frozenset({"scan", "while"})
_CHANGED: weakref.WeakKeyDictionary[Any, dict[bool | None, Any]] = weakref.WeakKeyDictionary()
"""What became of programs inside and outside of loops, and, by None, the latter as a function.

JAX compiles a program again for each new object.
"""


@final
class CalledBack:
    """A function that an `io_callback` calls in order, where there is one.

    Args:
        function: what is called.
        what: has it called, for those who look into the program.
    """

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self._function, self.what = function, what

    def __call__(self, *values: Array) -> Any:
        """Call it."""
        return self._function(*values)


def without_order(equation: Equation) -> Equation:
    """Return an operation whose loops call back in no order, if they call a `CalledBack`."""
    operation, inside = equation.operation, equation.name in _LOOPS
    if not any(_are_in_loops(x, inside=inside) for x in operation.inner):
        return equation
    is_jit = equation.name == "jit"
    whole = operation.params["jaxpr"] if is_jit else _trace(operation.function, equation.inputs)
    program = _change(whole, inside=False)
    known = _CHANGED[whole]
    run = known.setdefault(None, jax.jit(lambda *xs: jaxprs.evaluate(program, xs)))
    return Equation(Operation("jit", run, {"jaxpr": program}), equation.inputs)


def _trace(run: Callable[..., Any], values: Any) -> Any:
    return jax.make_jaxpr(run)(*values)


def _are_in_loops(program: Any, *, inside: bool) -> bool:
    if "io_callback" not in jaxprs.primitives_in(program):
        return False
    return any(
        (inside and called_back(eqn))
        or any(
            _are_in_loops(inner, inside=inside or eqn.primitive.name in _LOOPS)
            for inner in jaxprs.inner_jaxprs(eqn.params)
        )
        for eqn in jaxprs.open_jaxpr(program).eqns
    )


def called_back(eqn: Any) -> CalledBack | None:
    """Return what an operation calls back, if it is a `CalledBack`."""
    found = getattr(eqn.params.get("callback"), "callback_func", None)
    return found if isinstance(found, CalledBack) else None


# ---------------------------------------------------------------- other programs
def _change(program: Any, *, inside: bool) -> Any:
    """Return a program with other calls."""
    if "io_callback" not in jaxprs.primitives_in(program):
        return program
    known = _CHANGED.setdefault(program, {})
    if inside not in known:
        known[inside] = _change_program(program, inside=inside)
    return known[inside]


def _change_program(program: Any, *, inside: bool) -> Any:
    jaxpr = jaxprs.open_jaxpr(program)
    eqns = [_change_equation(eqn, inside=inside) for eqn in jaxpr.eqns]
    left = {effect for effect in jaxpr.effects if any(effect in eqn.effects for eqn in eqns)}
    return jaxprs.close_jaxpr(program, jaxpr.replace(eqns=eqns, effects=left))


def _change_equation(eqn: Any, *, inside: bool) -> Any:
    if inside and called_back(eqn):
        return _replace(eqn, functools.partial(_call_alone, eqn))
    inside = inside or eqn.primitive.name in _LOOPS
    params = jaxprs.change_inner(eqn.params, functools.partial(_change, inside=inside))
    inner = [jaxprs.open_jaxpr(one) for one in jaxprs.inner_jaxprs(params)]
    left = {effect for effect in eqn.effects if any(effect in one.effects for one in inner)}
    new = eqn.replace(params=params, effects=left if inner else eqn.effects)
    if eqn.primitive.name == "while" and eqn.effects and not left:
        return _replace(new, functools.partial(_run_in_reverse, new))
    return new


def _replace(eqn: Any, run: Callable[..., Any]) -> Any:
    """Return a function of the inputs of an operation in its place."""
    given = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in eqn.invars]
    (made,) = jaxprs.open_jaxpr(_trace(jax.jit(run), given)).eqns
    return eqn.replace(primitive=made.primitive, params=made.params, effects=made.effects)


def _call_alone(eqn: Any, *values: Array) -> Any:
    structs = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in eqn.outvars]
    return jax.pure_callback(eqn.params["callback"].callback_func, structs, *values)


def _run_in_reverse(eqn: Any, *values: Array) -> Any:
    """Run a while as one that a tape can differentiate."""
    tests, count = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test, body = (jaxprs.jaxpr_function(eqn.params[x]) for x in ("cond_jaxpr", "body_jaxpr"))
    given, start = (values[:tests], values[tests : tests + count]), values[tests + count :]
    return while_loop(
        lambda given, state: test(*given[0], *state)[0],
        lambda given, state: body(*given[1], *state),
        given,
        list(start),
    )
