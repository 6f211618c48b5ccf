"""A call of `jv.tensorboard`: written now, or each time a compiled program runs.

What the call says, and what a `with` inside of the traced function sets, belongs to the program.
The other defaults (writer, step, condition) are those of the moment when the program runs, so that
a step writes what it would write without being compiled.

Rules this file keeps:
- no value is waited for: the writer's thread does;
- a value that differs between the examples of a `vmap` is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxvars.core.cells import NAMES
from jaxvars.errors import user_line
from jaxvars.tensorboard.writer import (
    CONDITION,
    STEP,
    WRITER,
    Build,
    Record,
    Setting,
    SummaryWriter,
    is_tracing,
)
from jaxvars.tensors.array_like import unwrap
from jaxvars.tracing import context
from jaxvars.tracing.host_calls import call_on_host, drop_gradient, runs_now
from jaxvars.typing import Array


def write(kind: str, name: Any, build: Build, values: Sequence[Array], step: Any) -> None:
    """Write a summary now, or have the program that is being traced write it.

    `build` makes messages of tensorboardX of the tag and the `values`, as arrays of NumPy.
    """
    if not isinstance(name, str):
        raise TypeError(f"The name of a summary is a string, not {name!r} ({user_line()}).")
    tag = "/".join((*NAMES.value, name))
    if WRITER.setting.value is None and not is_tracing():
        return
    call = _Call(f"{kind} {name!r}", user_line, lambda *x: build(tag, *x))
    steps = STEP.setting if step is None else Setting(step, True)
    step, condition = checked_step(steps.value), truth(CONDITION.setting.value)
    operands = list(map(drop_gradient, (*values, step, condition)))
    if runs_now(operands):
        call.put(WRITER.setting.value, operands, may_wait=True)
    else:
        _stage(call, steps, operands)


class _Call(NamedTuple):
    """What a call says that is not an array."""

    what: str
    line: Callable[[], str]
    build: Build

    def put(
        self, writer: SummaryWriter | None, operands: Sequence[Array], *, may_wait: bool
    ) -> None:
        """Pass a summary to a writer, if there is one."""
        *values, step, condition = operands
        if writer is None or condition is False:
            return
        if step is None:
            raise ValueError(
                f"{self.what} has no step ({self.line()}): jv.tensorboard.scalar(name, value, "
                "step=i), or a default by jv.tensorboard.set_step(i)."
            )
        record = Record(self.what, self.build, values, step, condition, time.time())
        writer.put(record, may_wait=may_wait)


def _stage(call: _Call, steps: Setting, operands: list[Array]) -> None:
    """Make a summary a part of the program."""
    line = user_line()
    call = call._replace(line=lambda: line)
    writers, conditions = WRITER.setting, CONDITION.setting
    looks_up_step = not steps.traced and not context.is_tracer(operands[-2])
    looks_up_condition = not conditions.traced and not context.is_tracer(operands[-1])

    def run(*operands: Array) -> None:
        *values, step, condition = operands
        if looks_up_step:
            step = checked_step(STEP.setting.value)
        if looks_up_condition:
            condition = truth(CONDITION.setting.value)
        writer = writers.value if writers.traced else WRITER.setting.value
        call.put(writer, [*values, step, condition], may_wait=False)

    def over_examples(count: int, *_: object) -> None:
        raise ValueError(
            f"{call.what} is written inside a vmap ({call.line()}), where it has {count} values, "
            "one for each example. Return it, and write a mean or a histogram outside."
        )

    call_on_host(run, operands, over_examples)


# ---------------------------------------------------------------- steps and conditions
def checked_step(step: Any) -> Array:
    """Return a step's value: an integer, an array of one, or None; else raise TypeError."""
    value = unwrap(step)
    if value is None or type(value) is int:
        return value
    kind = getattr(value, "dtype", np.dtype(object))
    if np.shape(value) != () or not jnp.issubdtype(kind, jnp.integer):
        raise TypeError(f"A step is an integer, not {step!r} ({user_line()}).")
    return value


def truth(condition: Any) -> Array:
    """Return what a condition says: a bool, or an array of one; else raise TypeError."""
    value = unwrap(condition() if callable(condition) else condition)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if np.shape(value) != () or getattr(value, "dtype", None) != np.bool_:
        raise TypeError(
            f"jv.tensorboard.record_if takes a bool, or a function that returns one, not {value!r} "
            f"({user_line()})."
        )
    return value
