"""Operations that are linearized as they are recorded, so that a replay does not run them again.

XLA merges a replayed matmul with the recorded one, but not two loops, nor two functions that JAX
differentiates into something that looks different. What draws random numbers must not run twice
anywhere.

Rule this file keeps: what an operation calls on the host is called once, and in its order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import jax

from jaxvars.autodiff.rules import Ran, explain_error, in_reverse
from jaxvars.derivatives.callbacks import without_order
from jaxvars.errors import TapeError
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context, jaxprs
from jaxvars.tracing.assigned_read import for_tape
from jaxvars.tracing.recorder import Equation
from jaxvars.typing import Array

_NOT_MERGED = frozenset(
    {"scan", "while", "cond", "sort", "custom_vjp_call", "pure_callback", "io_callback"}
    | {"eigh", "eig", "svd", "top_k", "approx_top_k"}  # their derivatives want more of them
    | {"while_save", "while_pull"}
    | {"cumlogsumexp", "cummax", "cummin", "cumprod"}
    | {"div", "sqrt"}  # x / sqrt(y) becomes x * rsqrt(y) before XLA merges anything
)
PULLS = "custom_vjp_call"  # what has only its pullback
_CALL = "io_callback"  # in the order of the program
_LARGE = 4  # a function of more kinds of operations than this is not left to XLA


class Linear(NamedTuple):
    """A linearized operation.

    Attributes:
        positions: which of its inputs are differentiable.
        map: takes tangents of these inputs to those of the float outputs, or, if
        is_pullback: takes cotangents of the float outputs to those of the inputs.
    """

    positions: tuple[int, ...]
    map: Callable[..., Any]
    is_pullback: bool


@final
class Linearizer:
    """Runs what is recorded, if a replay would run it a second time.

    Args:
        reverse: whether there will be derivatives in reverse only.
        through_assigns: whether gradients go through what was assigned to a variable.
    """

    def __init__(self, *, reverse: bool, through_assigns: bool) -> None:
        self._reverse, self._through_assigns = reverse, through_assigns
        self._after_rule = False

    def __call__(self, equation: Equation, active: dict[int, Array], staged: bool) -> Ran | None:
        """Run an operation if this is its way to be run; None if it is not.

        Args:
            equation: the operation.
            active: the values that depend on a watched one, by identity.
            staged: whether it becomes a part of a program.
        """
        # After such a rule all runs again if it is differentiated again, as in JAX.
        self._after_rule |= staged and context.is_differentiated() and _has_users_rule(equation)
        twice = staged and not self._after_rule and _runs_twice(equation, reverse=self._reverse)
        if not (twice or equation.operation.is_single):
            return None
        with for_tape(through_assigns=self._through_assigns):
            return _linearize(equation, active, reverse=self._reverse)


def _runs_twice(equation: Equation, *, reverse: bool) -> bool:
    """Return whether the operation would be run a second time when it is replayed.

    Linearized, a function with a custom rule becomes what its rule computes. What
    differentiates that again would miss the rule, so there it may run twice; and so may one that
    knows its pullback alone where tangents are to be pushed forward.
    """
    inside = [jaxprs.primitives_in(jaxpr) for jaxpr in equation.operation.inner]
    names = {equation.name}.union(*inside)
    if not reverse and PULLS in names:
        return False
    if not jaxprs.CUSTOM.isdisjoint(names) and context.is_differentiated():
        return False
    large = equation.name == "jit" and sum(map(len, inside)) > _LARGE
    return large or not _NOT_MERGED.isdisjoint(names)


def _has_users_rule(equation: Equation) -> bool:
    inside = map(jaxprs.has_users_rule, equation.operation.inner)
    return equation.operation.runs_users_code or any(inside)


def _branches_in_loop(equation: Equation) -> bool:
    """Return whether JAX would split the loop again to transpose its linear map.

    It does so for a cond in a scan, and the loop would run once more. A pullback that is made
    at once has no such loop; but it takes zeros for unused outputs.
    """
    inside = map(jaxprs.primitives_in, equation.operation.inner)
    return any({"cond", "scan"} <= {equation.name, *names} for names in inside)


def _linearize(equation: Equation, active: dict[int, Array], *, reverse: bool) -> Ran | None:
    """Run an operation once, keeping its linear map; None if JAX cannot."""
    equation = without_order(equation)
    pull = reverse and _branches_in_loop(equation)
    positions = tuple(i for i, x in enumerate(equation.inputs) if id(x) in active)
    primals = [equation.inputs[i] for i in positions]

    def run(*primals: Array) -> tuple[list[Array], list[Array | None]]:
        outputs = list(
            equation.function(*jaxprs.replace_values(equation.inputs, positions, primals))
        )
        floats = [x for x in outputs if is_inexact(x)]
        return floats, [None if is_inexact(x) else x for x in outputs]

    if reverse and _calls_back_in_loop(equation) and not _is_reversible(run, primals):
        return _ran(equation.function(*equation.inputs), Linear(positions, _refuse_loop, False))
    if _moves_calls(equation, positions):
        return _ran(equation.function(*equation.inputs), Linear(positions, _refuse_calls, False))
    try:
        with in_reverse(reverse):
            floats, linear, others = (jax.vjp if pull else jax.linearize)(
                run, *primals, has_aux=True
            )
    except (NotImplementedError, TypeError, ValueError):
        return None  # the replay will say why, if a gradient is requested at all
    values = iter(floats)
    inside = map(jaxprs.primitives_in, equation.operation.inner)
    if reverse and not pull and any(PULLS in names for names in inside):
        linear, pull = _pull(linear, primals), True
    outputs = [next(values) if x is None else x for x in others]
    return _ran(outputs, Linear(positions, linear, pull))


def _ran(outputs: Sequence[Array], linear: Linear) -> Ran:
    return list(outputs), functools.partial(_run_linear, linear)


def _calls_back_in_loop(equation: Equation) -> bool:
    programs = equation.operation.inner
    if not any(jaxprs.open_jaxpr(program).effects for program in programs):
        return False
    return "while" in {equation.name}.union(*map(jaxprs.primitives_in, programs))


def _moves_calls(equation: Equation, active: Sequence[int]) -> bool:
    """Return whether JAX would make calls of a loop at other times than its iterations.

    It splits a scan that is differentiated, and drops calls whose results are not needed, or makes
    one for all iterations.
    """
    operation = equation.operation
    if not any(_CALL in jaxprs.primitives_in(program) for program in operation.inner):
        return False
    if equation.name == "scan":
        return True
    is_active = [i in active for i in range(len(equation.inputs))]
    return any(_splits_calls(program, is_active) for program in operation.inner)


def _splits_calls(program: Any, is_active: Sequence[bool]) -> bool:
    """Return whether a scan that calls depends on the inputs that are differentiated."""
    jaxpr = jaxprs.open_jaxpr(program)
    given = zip(reversed(jaxpr.invars), reversed(is_active), strict=False)  # others come first
    active = {id(var) for var, is_one in given if is_one}
    for eqn in jaxpr.eqns:
        found = [id(x) in active for x in eqn.invars]
        if not any(found):
            continue
        active.update(id(var) for var in eqn.outvars if is_inexact(var.aval))
        inner = list(jaxprs.inner_jaxprs(eqn.params))
        calls = any(_CALL in jaxprs.primitives_in(one) for one in inner)
        if calls and (eqn.primitive.name == "scan" or any(_splits_calls(x, found) for x in inner)):
            return True
    return False


def _refuse_calls(*_: Any) -> Any:
    raise TapeError(
        "The target depends on the source through a loop that calls the host in each iteration, as "
        "tables, iterators, strings and tf.py_function do in a compiled function. JAX makes these "
        "calls at other times where it differentiates a loop. Call before the loop, or after it, "
        "or write the loop outside of the compiled function."
    )


def _is_reversible(run: Callable[..., Any], primals: Sequence[Array]) -> bool:
    """Return whether JAX can; else it would find that out when it has called back twice."""

    def back(*primals: Array) -> Any:
        outputs, pull, _ = jax.vjp(run, *primals, has_aux=True)
        return pull(outputs)

    try:
        with in_reverse():
            jax.eval_shape(back, *primals)
    except ValueError as error:
        return not explain_error(error, ())
    return True


def _refuse_loop(*_: Any) -> Any:
    raise ValueError("Reverse-mode differentiation does not work for a loop that calls back.")


def _pull(push: Callable[..., Any], primals: Sequence[Array]) -> Callable[..., Any]:
    """Return the pullback of a linear map, as a whole.

    JAX would not transpose the part of it whose tangents are zeros, but run that: for a rule that
    knows its pullback alone it cannot.
    """
    return lambda given: jax.linear_transpose(push, *primals)(given)


def _run_linear(linear: Linear, outputs: Sequence[Array], *inputs: Array) -> list[Array]:
    """Return the recorded outputs, whose tangents are the linear map of the inputs'."""
    floats = [x for x in outputs if is_inexact(x)]
    again: Any
    if linear.is_pullback:
        again = jax.custom_vjp(lambda *_: floats)
        again.defvjp(lambda *_: (floats, None), lambda _, given: linear.map(list(given)))
    else:
        again = jax.custom_jvp(lambda *_: floats)
        again.defjvp(lambda _, tangents: (floats, linear.map(*tangents)))
    moved = iter(again(*[inputs[i] for i in linear.positions]))
    return [next(moved) if is_inexact(x) else x for x in outputs]
