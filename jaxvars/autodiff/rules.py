"""The sockets for finer rules; without any, JAX alone differentiates what a tape has recorded.

Then each result of an operation depends on all its inputs, a replay runs every operation again,
errors are JAX's, and nothing is explained. All of that gives right gradients, but zeros where there
is none, loops that run twice, and no reasons. `derivatives/install.py` fills the sockets.

Rule this file keeps: what is registered comes from higher packages as they are imported, before
anything is recorded: operations remember their paths.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

import jax

from jaxvars.core.cells import Cell
from jaxvars.tracing.operations import Operation
from jaxvars.tracing.recorder import Equation
from jaxvars.typing import Array, PyTree, Value

# ---------------------------------------------------------------- what depends on what
Params: TypeAlias = dict[str, Any]
Masks: TypeAlias = list[int]
"""For each value the inputs that it depends on, as bits."""

PathRule: TypeAlias = Callable[[Params, Sequence[int], int, bool], Masks]
"""Takes an operation's parameters, on what its inputs depend, the number of its results, and
whether a variable depends on what was assigned to it, rather than on itself."""

PATHS: dict[str, PathRule] = {}
"""By an operation's name, on what each of its results depends; otherwise on all its inputs."""


def find_paths(
    name: str, params: Params, given: Sequence[int], count: int, *, through_assigns: bool = False
) -> Masks:
    """Return on what each result of an operation depends.

    Args:
        name: of the operation.
        params: of the operation.
        given: on what its inputs depend.
        count: of its results.
        through_assigns: a variable depends on what was assigned to it, rather than on itself.
    """
    rule = PATHS.get(name)
    if rule is None:
        return [functools.reduce(operator.or_, given, 0)] * count
    return rule(params, given, count, through_assigns)


def look_up_paths(
    operation: Operation, inputs: int, outputs: int, *, through_assigns: bool
) -> Masks:
    """Return for each output of an operation the inputs that it depends on, as bits."""
    asked, known = (inputs, outputs, through_assigns), operation.paths
    if asked not in known:
        each = [1 << i for i in range(inputs)]
        known[asked] = find_paths(
            operation.name, operation.params, each, outputs, through_assigns=through_assigns
        )
    return known[asked]


# ---------------------------------------------------------------- what runs once
Again: TypeAlias = Callable[..., list[Array]]
"""Takes a list of the outputs that an operation had, and its inputs one by one; returns the
outputs, as made of these, without running it."""

Ran: TypeAlias = tuple[list[Array], Again]


class RunOnce(Protocol):
    """Runs what a tape records, if it is not to run again where that is replayed."""

    def __call__(self, equation: Equation, active: dict[int, Array], staged: bool) -> Ran | None:
        """Run an operation on some active values that is staged or has effects; or return None."""
        ...


RUN_ONCE: list[Callable[..., RunOnce]] = []
"""What makes them for a record, which says `reverse` and `through_assigns`. The first that does not
return None counts; if there is none, the operation runs again in a replay."""


# ---------------------------------------------------------------- what JAX cannot differentiate
_is_reverse: Any = jax.make_user_context(False)  # has part in the keys of JAX's caches


def in_reverse(is_reverse: bool = True) -> AbstractContextManager[object]:
    """Differentiate in reverse inside."""
    return _is_reverse(is_reverse)


def is_in_reverse() -> bool:
    """Return whether a tape differentiates in reverse now."""
    return _is_reverse.value


Refusal: TypeAlias = Callable[[ValueError, Sequence[Operation]], str | None]

REFUSALS: list[Refusal] = []
"""Each returns why operations cannot be differentiated, or None for an error that it is not for."""


def explain_error(error: ValueError, operations: Sequence[Operation]) -> str | None:
    """Return what to say instead of an error that JAX raised as it differentiated operations."""
    return next(filter(None, (refusal(error, operations) for refusal in REFUSALS)), None)


# ---------------------------------------------------------------- notes
class Notes(Protocol):
    """What else a tape keeps of reads and assigns, to say what of a gradient is missing."""

    def saw(self, tape: Any, cell: Cell, value: Array) -> None:
        """Take note of a read that a tape has seen."""
        ...

    def wrote(
        self, tape: Any, assigns: Sequence[tuple[Cell, Any]], is_partial: bool
    ) -> Sequence[Any]:
        """Return a note of each assign: of a value, or of a function that made it of the last.

        Args:
            tape: that has seen them.
            assigns: each a cell, and what was assigned.
            is_partial: whether the functions have replaced a part, and kept the rest.
        """
        ...

    def warn_of_none(self, tape: Any, target: PyTree, sources: Sequence[Any]) -> None:
        """Say why no source has a gradient."""
        ...

    def warn_of_gaps(
        self,
        tape: Any,
        sources: Sequence[Any],
        targets: Sequence[Value | None],
        values: Sequence[Array],
        found: Sequence[Any],
    ) -> None:
        """Say what of some gradients is missing; their sources stand for some values."""
        ...


NOTES: list[Callable[[], Notes]] = []
"""What makes the notes of a tape: the last one. Otherwise it keeps none, and warns of nothing."""


# ---------------------------------------------------------------- methods of a tape
VERBS: dict[str, Callable[..., Any]] = {}
"""By a method's name, what it does that is not the tape's own: it takes the tape, and arguments."""
