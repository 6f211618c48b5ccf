"""What a program does in Python for its effect alone, which no file holds: it is left out.

Rules this file keeps:
- only what shows something, checks something or is a callback of the user's is left out, and named;
- what is called for its result stays, to be refused, if the result is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax

from jaxvars.console.host_calls import CALLS
from jaxvars.core.staging import Staged
from jaxvars.derivatives.callbacks import called_back
from jaxvars.tracing import jaxprs

_UNNAMED = "a check in a JAX transform, or jax.debug.callback"
_DEBUGGING = ("debug_callback", "debug_print")


def calls_in(staged: Staged) -> list[str]:
    """Return what is left out of a program: the names of what calls."""
    names = [name for name, _ in _find_calls(staged.program)]
    after = [] if staged.after is None else [call.what for call in staged.after.calls]
    return sorted({*names, *after})


def without_calls(program: Any) -> Any:
    """Return a program without what it calls for its effect alone."""
    effects = {effect for _, eqn in _find_calls(program) for effect in eqn.effects}
    return _without(program, effects) if effects else program


def run_quietly(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays that does not make its calls, where it is traced."""

    def run(*args: Any) -> Any:
        program, form = jax.make_jaxpr(function, return_shape=True)(*args)
        flat = jaxprs.jaxpr_function(without_calls(program))(*jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(form), flat)

    return run


def _find_calls(program: Any, scope: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the name of each call for its effect, and the equation that makes it."""
    for eqn in jaxprs.open_jaxpr(program).eqns:
        inner = f"{scope}/{eqn.source_info.name_stack}"
        names = [part.removeprefix(CALLS) for part in inner.split("/") if part.startswith(CALLS)]
        is_debugging = eqn.primitive.name in _DEBUGGING
        if (called := called_back(eqn)) is not None:
            yield called.what, eqn
        elif is_debugging or (names and eqn.primitive.name == "io_callback"):
            yield names[-1] if names else _UNNAMED, eqn
        for found in jaxprs.inner_jaxprs(eqn.params):
            yield from _find_calls(found, inner)


def _without(program: Any, effects: set[Any]) -> Any:
    """Return a program without some effects, and without what only these needed."""
    jaxpr = jaxprs.open_jaxpr(program)
    eqns = [
        eqn.replace(
            params=jaxprs.change_inner(eqn.params, lambda inner: _without(inner, effects)),
            effects=eqn.effects - effects,
        )
        for eqn in jaxpr.eqns
    ]
    needed, _ = jaxprs.needed_equations(eqns, jaxpr.outvars)
    return jaxprs.close_jaxpr(program, jaxpr.replace(eqns=needed, effects=jaxpr.effects - effects))
