"""`tf.VariableSynchronization`, `tf.VariableAggregation` and `tf.variable_creator_scope`.

On one process they are of no effect but for what can be read back, and that a variable which
replicas keep for themselves, `ON_READ`, is not trainable unless it is requested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

from jaxvars.tracing.context import Scoped


class VariableSynchronization(Enum):
    """When the copies of a variable on several replicas are made equal."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """What becomes of several replicas' updates of one variable."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableOptions(NamedTuple):
    """What a variable was made with, and keeps."""

    constraint: Callable[[Any], Any] | None = None
    synchronization: VariableSynchronization = VariableSynchronization.AUTO
    aggregation: VariableAggregation = VariableAggregation.NONE
    shown: Any = None  # the type to show, if what is kept has another one


Creator = Callable[..., Any]


CREATORS: Scoped[tuple[Creator, ...]] = Scoped(())


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Generator[None]:
    """Call a function in place of `tf.Variable`.

    Args:
        variable_creator: called as `variable_creator(next_creator, **kwargs)`; it returns what
            `next_creator(**kwargs)` does, or another variable.

    >>> from jaxvars import tf
    >>> def creator(next_creator, **kwargs):
    ...     kwargs["name"] = "v"
    ...     return next_creator(**kwargs)
    >>> with tf.variable_creator_scope(creator):
    ...     tf.Variable(1.0).name
    'v:0'
    """
    with CREATORS.change(lambda outer: (*outer, variable_creator)):
        yield


def create_variable(make: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Return what the creators of the open scopes make of the arguments of `tf.Variable`."""
    for creator in CREATORS.value:
        make = functools.partial(creator, make)
    with CREATORS.set(()):
        return make(**given)


def check_options(name: Any, constraint: Any, synchronization: Any, aggregation: Any) -> None:
    """Raise ValueError if an option of `tf.Variable` is none."""
    if not isinstance(name, str | None):
        raise ValueError(f"The name of a variable is a string, not {name!r}.")
    if constraint is not None and not callable(constraint):
        raise ValueError(
            "Argument `constraint` must be None or a function of the value. Got a "
            f"{type(constraint)}: {constraint}"
        )
    if not isinstance(synchronization, VariableSynchronization | None):
        raise ValueError(
            f"Invalid variable synchronization mode: {synchronization} for variable: {name}"
        )
    if not isinstance(aggregation, VariableAggregation | None):
        raise ValueError(f"Invalid variable aggregation mode: {aggregation} for variable: {name}")
