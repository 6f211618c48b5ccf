"""An operation as it ran: its inputs and outputs, and its derivative where that is linearized."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, final

import jax

from jaxvars.autodiff.rules import explain_error, in_reverse, known_paths
from jaxvars.errors import TapeError
from jaxvars.tensors.dtypes import is_inexact
from jaxvars.tracing import context, jaxprs
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
REF_WRITES = frozenset({"new_ref", "swap", "addupdate"})
REF_WRITTEN = (
    "A value that depends on what the tape watches is written to a jax.Ref, where the tape cannot "
    "follow it. Make the Ref in a function under jax.jit, and return what is read from it; or, if "
    "there is to be no gradient through it, write jv.stop_gradient(x)."
)
_CALL = "io_callback"  # in the order of the program
_LARGE = 4  # a function of more kinds of operations than this is not left to XLA


@final
class Node:
    """A recorded operation.

    Attributes:
        equation: what ran.
        outputs: what came out.
        linear: if there is one, does it without running it again.
        floats: the outputs that have a derivative, and the inputs that each depends on, as bits.
    """

    __slots__ = ("equation", "floats", "linear", "outputs")

    def __init__(
        self,
        equation: Equation,
        outputs: list[Array],
        linear: Linear | None,
        *,
        through_assigns: bool = False,
    ) -> None:
        self.equation = equation
        self.outputs = outputs
        self.linear = linear
        paths = known_paths(
            equation.operation, len(equation.inputs), len(outputs), through_assigns=through_assigns
        )
        self.floats = [(x, path) for x, path in zip(outputs, paths, strict=True) if is_inexact(x)]

    def active_outputs(self, known: Container[int]) -> list[Array]:
        """Return the float outputs that depend on known inputs."""
        active, bit = 0, 1
        for x in self.equation.inputs:
            if id(x) in known:
                active |= bit
            bit <<= 1
        return [x for x, path in self.floats if path & active] if active else []

    def needed_inputs(self, known: Container[int]) -> list[Array]:
        """Return the inputs that known float outputs depend on."""
        path = 0
        for x, each in self.floats:
            if id(x) in known:
                path |= each
        return [x for i, x in enumerate(self.equation.inputs) if path >> i & 1] if path else []


# ---------------------------------------------------------------- loops
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


def runs_twice(equation: Equation, *, reverse: bool) -> bool:
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


def has_users_rule(equation: Equation) -> bool:
    inside = map(jaxprs.has_users_rule, equation.operation.inner)
    return equation.operation.runs_users_code or any(inside)


def _branches_in_loop(equation: Equation) -> bool:
    """Return whether JAX would split the loop again to transpose its linear map.

    It does so for a cond in a scan, and the loop would run once more. A pullback that is made
    at once has no such loop; but it takes zeros for unused outputs.
    """
    inside = map(jaxprs.primitives_in, equation.operation.inner)
    return any({"cond", "scan"} <= {equation.name, *names} for names in inside)


def linearize(
    equation: Equation, active: dict[int, Array], *, reverse: bool
) -> tuple[list[Array] | None, Linear | None]:
    """Run an operation once, keeping its linear map; (None, None) if JAX cannot."""
    pull = reverse and _branches_in_loop(equation)
    positions = tuple(i for i, x in enumerate(equation.inputs) if id(x) in active)
    primals = [equation.inputs[i] for i in positions]

    def run(*primals: Array) -> tuple[list[Array], list[Array]]:
        outputs = list(
            equation.function(*jaxprs.replace_values(equation.inputs, positions, primals))
        )
        floats = [x for x in outputs if is_inexact(x)]
        return floats, [None if is_inexact(x) else x for x in outputs]

    if reverse and _calls_back_in_loop(equation) and not _is_reversible(run, primals):
        return list(equation.function(*equation.inputs)), Linear(positions, _refuse_loop, False)
    if _moves_calls(equation, positions):
        return list(equation.function(*equation.inputs)), Linear(positions, _refuse_calls, False)
    try:
        with in_reverse(reverse):
            floats, linear, others = (jax.vjp if pull else jax.linearize)(
                run, *primals, has_aux=True
            )
    except (NotImplementedError, TypeError, ValueError):
        return None, None  # the replay will say why, if a gradient is requested at all
    values = iter(floats)
    inside = map(jaxprs.primitives_in, equation.operation.inner)
    if reverse and not pull and any(PULLS in names for names in inside):
        linear, pull = _pull(linear, primals), True
    return [next(values) if x is None else x for x in others], Linear(positions, linear, pull)


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


def run_linear(node: Node, linear: Linear, inputs: Sequence[Array]) -> list[Array]:
    """Return the recorded outputs, whose tangents are the linear map of the inputs'."""
    floats = [x for x in node.outputs if is_inexact(x)]
    again: Any
    if linear.is_pullback:
        again = jax.custom_vjp(lambda *_: floats)
        again.defvjp(lambda *_: (floats, None), lambda _, given: linear.map(list(given)))
    else:
        again = jax.custom_jvp(lambda *_: floats)
        again.defjvp(lambda _, tangents: (floats, linear.map(*tangents)))
    moved = iter(again(*[inputs[i] for i in linear.positions]))
    return [next(moved) if is_inexact(x) else x for x in node.outputs]
