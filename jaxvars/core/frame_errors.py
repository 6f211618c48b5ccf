"""What is said of reads and writes of variables that a frame refuses, or warns of."""

from __future__ import annotations

from jaxvars.core.cells import Cell
from jaxvars.errors import (
    ForeignTransformError,
    StaleReadWarning,
    StringVariableError,
    TapeError,
    user_line,
    warn_user,
)


# ---------------------------------------------------------------- messages
def foreign_write_error(cell: Cell) -> ForeignTransformError:
    return ForeignTransformError(
        f"Variable {cell.name!r} is written at {user_line()} inside a JAX transform that knows "
        "nothing of variables (jax.jit, grad, vmap, or the body of a scan, cond or loop): the "
        "new value would leak out of it. Use @jv.compile instead of jax.jit; for the others, "
        "return the new value and assign it outside, or transform a pure function:\n"
        "    pure = jv.functionalize(f)\n"
        "    result, state = jax.vmap(pure, in_axes=(None, 0))(jv.State.of(model), xs)"
    )


def interrupting_write_error(cell: Cell) -> ForeignTransformError:
    return ForeignTransformError(
        f"Variable {cell.name!r} is assigned at {user_line()} by a signal handler or finalizer "
        "that came while a function was traced, and the value would be part of it. Use "
        f"{cell.name}.assign_add or a @jv.compile'd function, or set a flag and assign after the "
        "call."
    )


def warn_stale(cell: Cell) -> None:
    warn_user(
        f"Variable {cell.name!r} was read while a plain JAX transform (jax.jit, scan, cond, ...) "
        "traced the function. Its value becomes a constant of that program: later assignments "
        "will not reach it. Use @jv.compile instead of jax.jit, or read it outside and pass the "
        "value as an argument.",
        StaleReadWarning,
    )


def read_by_kept_rule_error(cell: Cell) -> TapeError:
    return TapeError(
        f"Variable {cell.name!r} is read at {user_line()} by the rule of a derivative, for a "
        "function that is called inside jax.jit, or a loop or branch of JAX's own. JAX runs the "
        "rule once and keeps the result: later assignments would not reach it. Use @jv.compile, "
        "jv.scan, jv.cond or jv.while_loop instead, or pass the value to the function as an "
        "argument."
    )


def string_in_program_error(cell: Cell) -> StringVariableError:
    return StringVariableError(
        f"Variable {cell.name!r} holds text and is used at {user_line()} inside a compiled "
        "function, where there are only numbers. Read it outside and pass the text, which "
        f"is then a static argument: step(x, {cell.name}.item())."
    )
