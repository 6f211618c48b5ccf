"""Trace a function whose reads of variables become inputs of its jaxpr.

`read_variable` stages "the value of variable i" as an equation of a trace; `capture` traces a
function and turns those equations into inputs of the jaxpr.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

import jax
from jax.extend import core as jex

from jaxvars.objects.identity import leaf_paths
from jaxvars.tracebacks import line_of_function
from jaxvars.tracing.context import Trace, at
from jaxvars.tracing.jaxprs import close_jaxpr, needed_equations, open_jaxpr
from jaxvars.typing import Array, Aval

new_primitive = jex.Primitive


# ---------------------------------------------------------------- capture
read_variable_p = new_primitive("read_variable")
read_variable_p.def_abstract_eval(lambda *, index, aval: aval)


def read_variable(trace: Trace, index: int, aval: Aval) -> Array:
    """Stage the value of variable `index` in `trace`, whatever trace is current."""
    with at(trace):
        return read_variable_p.bind(index=index, aval=aval)


def describe(fn: Any, of: str, arguments: Sequence[str], form: str = "jv.compile") -> None:
    """Have JAX's errors speak of the user's function, and of its arguments, if `fn` is traced.

    Args:
        fn: takes the arrays in the arguments of that function.
        of: its name, and where it is.
        arguments: what each of the arrays is called.
        form: what traces it.
    """
    fn.__fun_debug_info__ = jex.DebugInfo(form, of, tuple(arguments), None)


def describe_call(run: Any, fn: Any, treedef: Any, arrays: Sequence[int], form: str) -> None:
    """Describe a function of the arrays in a call of a user's function.

    Args:
        run: takes the arrays.
        fn: the user's function.
        treedef: of its arguments, (args, kwargs).
        arrays: which leaves of them `run` takes.
        form: what traces it.
    """
    path_of = leaf_paths(treedef)
    names = [f"{_CALL[path_of[i][0].idx]}{jax.tree_util.keystr(path_of[i][1:])}" for i in arrays]
    name = getattr(fn, "__name__", type(fn).__name__)
    describe(run, f"{name} at {line_of_function(fn)}", names, form)


_CALL = ("args", "kwargs")


def describe_like(fn: Any, other: Any) -> None:
    """Describe a function as another one was described, if it was."""
    fn.__fun_debug_info__ = getattr(other, "__fun_debug_info__", None)


@final
class Resumed:
    """What is needed to make a program of a trace that was broken off, even after its body.

    Args:
        trace: that stages, before anything is staged in it.
    """

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        self._held = trace.frame.tracing_eqns, trace.frame.constvar_to_val  # JAX lets go of them

    def capture(self, values: Sequence[Array]) -> tuple[Any, list[int]]:
        """Return what `variables_first` returns for a function with these results."""
        frame = self._trace.frame
        frame.tracing_eqns, frame.constvar_to_val = self._held
        outputs = [self._trace.to_jaxpr_tracer(x, None) for x in values]
        info = frame.debug_info._replace(result_paths=None)
        jaxpr, consts = frame.to_jaxpr(self._trace, outputs, info, None)
        if hasattr(jaxpr, "with_consts"):  # pragma: no cover - JAX 0.12 made them one class
            return variables_first(jaxpr.with_consts(consts))
        return variables_first(jex.ClosedJaxpr(jaxpr, consts))  # pragma: no cover - before


class Place(NamedTuple):
    """Where a value of a trace is: the frame that has its equations, and its variable there."""

    frame: Any
    var: Any


def staged_place(value: Any) -> Place | None:
    """Return where a value is staged; None if it is known, or its trace is over."""
    frame = getattr(getattr(value, "_trace", None), "frame", None)
    return Place(frame, value.val) if hasattr(frame, "get_eqns") else None


def variables_first(closed: Any) -> tuple[Any, list[int]]:
    """Make the variables that a program reads its first inputs.

    Args:
        closed: the jaxpr of a function that called `read_variable`.

    Returns:
        The closed jaxpr with one input per variable before those that it had, and the indices of
        these variables, as given to `read_variable`.
    """
    jaxpr = open_jaxpr(closed)
    reads = [eqn for eqn in jaxpr.eqns if eqn.primitive is read_variable_p]
    names = tuple(f"variable_{eqn.params['index']}" for eqn in reads)
    info = jaxpr.debug_info
    eqns = [eqn for eqn in jaxpr.eqns if eqn.primitive is not read_variable_p]
    opened = jaxpr.replace(
        invars=[*(eqn.outvars[0] for eqn in reads), *jaxpr.invars],
        eqns=needed_equations(eqns, jaxpr.outvars)[0],
        debug_info=info._replace(arg_names=names + tuple(info.arg_names or ())),
    )
    return close_jaxpr(closed, opened), [eqn.params["index"] for eqn in reads]
