"""While loops that JAX cannot differentiate in reverse: how they are known, and what to say."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxvars.tracing.jaxprs import inner_jaxprs, open_jaxpr
from jaxvars.tracing.operations import Operation

LOOP_CURE = (
    "jaxvars keeps what is needed of its own loops, but not of `jax.lax.while_loop`, and of loops "
    "that print, call back or are mapped. Give it a bound:\n"
    "    jv.while_loop(cond, body, init, max_iterations=100)\n"
    "    jv.autograph.set_loop_options(max_iterations=100)    # first line of a converted loop\n"
    "or loop over an array or a range of known length: jv.scan, jv.fori_loop(0, 100, ...)."
)


def is_irreversible(error: ValueError) -> bool:
    """Return whether JAX has raised it for a loop that it cannot differentiate in reverse."""
    return str(error).startswith("Reverse-mode differentiation does not work")


def while_loops(name: str, params: dict[str, Any]) -> list[str]:
    """Return "f at file.py:12" of the condition of each while loop in an operation."""
    found = []
    if name == "while":
        info = open_jaxpr(params["cond_jaxpr"]).debug_info
        function, _, line = (info.func_src_info or "").partition(" at ")
        found = [f"{function} at {Path(line).name}" if line else function]
    for jaxpr in inner_jaxprs(params):
        for eqn in open_jaxpr(jaxpr).eqns:
            found += while_loops(eqn.primitive.name, eqn.params)
    return found


def refuse_loop(error: ValueError, operations: Sequence[Operation]) -> str | None:
    """Say which loops forbid to go back, and what to do about it."""
    if not is_irreversible(error):
        return None
    found = [while_loops(each.name, each.shown_params) for each in operations]
    loops = "\n".join(f"    {line}" for line in dict.fromkeys(itertools.chain(*found)))
    return (
        "The target depends on the source through a loop whose number of iterations is only known "
        "when the program runs. Its gradient needs the values of each iteration, and a compiled "
        "program must know beforehand how many to keep. How long it goes on is decided by\n"
        f"{loops}\n{LOOP_CURE}"
    )
