"""The trace of a function that may create variables, and their first values."""

from __future__ import annotations

import itertools
from abc import ABC
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.compiler.signature import Call
from jaxvars.core.cells import STORE, STREAMS, Cell
from jaxvars.core.frame import TRACING
from jaxvars.core.frames import LOCAL
from jaxvars.core.staging import BrokenOff, PyTreeTemplate, Staged, stage
from jaxvars.errors import CompileError, CreationError, UninitializedError, called
from jaxvars.tracing import context, jaxprs
from jaxvars.tracing.guards import GUARDS, TAKE, ask
from jaxvars.typing import Array

WATCH: list[Callable[[Any, Call, str], AbstractContextManager[Callable[[], None]]]] = [
    lambda *_: nullcontext(lambda: None)
]
"""What looks at each trace of a body that has succeeded, when nothing should hold it any more."""

_LATE: list[Callable[[], None]] = []
"""What gives variables that were made in a plan their first values."""

_REFUSAL = (
    "{name} tried to create variables on non-first call. A compiled function may create variables "
    "on its first call only; keep them, for example as `if self.w is None: self.w = "
    "jv.Variable(...)`, or create them outside."
)


class ProgramSource(ABC):  # noqa: B024 - what is not overridden has none but the body's
    """Where a function's programs come from: here, from its body, traced for each call."""

    def find(self, call: Call, stage: Callable[[Call], Staged]) -> Staged | None:
        """Return the program of a call, made of that of another one; None if there is none.

        Args:
            call: the call.
            stage: returns the program of another call of the function.
        """
        return None

    def tracing(self, call: Call) -> AbstractContextManager[Sequence[Any]]:
        """Return the context to trace a call in, which gives what stands for its arrays."""
        return nullcontext(call.values)

    def begin(self) -> None:  # noqa: B027 - nothing is known
        """Forget what was found out about the function: it has other code now."""


def stage_body(
    run: Callable[..., Any], call: Call, name: str, source: ProgramSource, *, may_create: bool
) -> Staged:
    """Return the program of a function; it is traced again if it creates variables.

    Args:
        run: the function, of the arrays of a call.
        call: what it is traced for.
        name: of the function.
        source: in what context it is traced.
        may_create: whether it may create variables.

    Raises:
        CreationError: when it creates variables and may not, or does so in the second trace.
    """
    refusal = _REFUSAL.format(name=name)
    here, broken_off = context.current(), list[BrokenOff]()
    with source.tracing(call) as given, WATCH[0](run, call, name) as look:
        try:
            staged = stage(run, given, None if may_create else refusal, broken_off, is_whole=True)
            _give_now_and_late(staged, call, name)
        except BaseException:  # whatever it is: variables exist, and need their values
            with suppress(Exception), context.at(here):
                for trace in broken_off:
                    _give_now_and_late(trace.created(), call, name)
            raise
        broken_off.clear()  # which hold the trace
        look()
        if staged.created:
            staged = stage(run, given, refusal, is_whole=True)
            look()
        return staged


def give_late(more: Iterable[Callable[[], None]] = ()) -> bool:
    """Give variables made in a plan their first values, unless one that they are made of has none.

    Return whether some have been given.
    """
    with TRACING:
        _LATE.extend(more)
        count = len(_LATE)
        for give in tuple(_LATE):
            with suppress(UninitializedError):
                with suppress(CreationError, CompileError):  # made of arguments, or gone
                    give()
                _LATE.remove(give)
        return len(_LATE) < count


def _give_now_and_late(staged: Staged, call: Call, name: str) -> None:
    """Give new variables their first values, and let the frame do it again if it keeps none."""
    _initialize(staged, call, name)
    if staged.created:
        alone = replace(staged, rebuild=PyTreeTemplate(()))  # which keeps no object
        LOCAL.frame.postpone(partial(_initialize, alone, call, name))


def _initialize(staged: Staged, call: Call, name: str) -> None:
    """Give the variables that a trace created their first values, by the call that was made."""
    if not staged.created:
        return
    staged, values = (staged, call.values) if call.resolve is None else call.resolve(staged)
    for made in staged.created:
        cell = made.ref()
        if cell is None or cell.owner() is None:
            raise CreationError(
                f"{name} creates variable {made.name!r} at {made.line}, but "
                "nothing keeps it: it would be created again by each call. Create it outside, "
                "or keep it, for example as self.w."
            )
    program, used, drawn = _program_of_firsts(staged)
    given = [*map(LOCAL.frame.read, staged.reads), *values]
    inputs = list(itertools.compress(given, used))
    if any(isinstance(x, jax.ShapeDtypeStruct) for x in inputs):
        raise CompileError(
            f"{name} creates variables from its arguments: call it once with "
            "real ones before requesting its trace."
        )
    is_transformed = LOCAL.frame.trace is context.EVAL and any(map(context.is_tracer, inputs))
    program, is_own = jaxprs.own_outputs(program)
    made_of = zip(jaxprs.jaxpr_function(program)(*inputs), is_own, strict=True)
    owned = iter([x if own else _own(x) for x, own in made_of])
    states, new = [next(owned) for _ in drawn], dict[Cell, Array]()
    for made in staged.created:
        cell, value = made.ref(), next(owned) if made.first is None else made.first
        if cell is not None and cell.key not in STORE:  # one that was assigned meanwhile stays
            if is_transformed and context.is_tracer(value):
                raise CreationError(
                    f"{name} is called for the first time in a JAX transform (grad, vmap, ...), "
                    f"and creates variable {called(cell)!r} at {made.line}: its first value would "
                    f"be made of what the transform traces. Call {name} once with real arguments "
                    "before, on an object that has no variables yet; then transform it."
                )
            LOCAL.frame.create(cell, value)
            new[cell] = STORE.get(cell.key, value)  # where it was placed
    if _stay(new) and drawn:  # or the function would draw the same numbers again
        LOCAL.frame.write_all(drawn, states)


def _stay(new: Mapping[Cell, Array]) -> bool:
    """Return whether some of the first values stay: that no value was waiting for their cells."""
    if GUARDS:
        ask(TAKE, [*new])
    return any(STORE.get(cell.key, value) is value for cell, value in new.items())


def _program_of_firsts(staged: Staged) -> tuple[Any, list[bool], list[Cell]]:
    """Return the program of first values, which inputs it has, and the streams they are drawn from.

    Before the first values it returns the states of these streams after all draws.
    """
    end = len(staged.program.out_avals)
    start = end - sum(made.first is None for made in staged.created)
    program, used = jaxprs.some_outputs(staged.program, range(start, end))
    read = itertools.compress(staged.reads, used)
    drawn = [cell for cell in read if cell in STREAMS and cell in staged.writes]
    if drawn:
        states = [start - len(staged.writes) + staged.writes.index(cell) for cell in drawn]
        program, used = jaxprs.some_outputs(staged.program, [*states, *range(start, end)])
    return program, used, drawn


def _own(value: Array) -> Array:
    """Return a first value in memory that nothing else holds: it may be a constant, of NumPy's."""
    if context.is_tracer(value):
        return value  # which is refused
    return context.copied(value if isinstance(value, jax.Array) else jnp.asarray(value))
