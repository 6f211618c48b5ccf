"""`tf.summary.experimental`: the default step, and scopes for tags."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import jax

from jaxvars import tensorboard as _core
from jaxvars.core.cells import name_scope
from jaxvars.core.variable import Variable as CoreVariable
from jaxvars.tf.summary.values import as_value
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tf.variables.variable import Variable, face_of


def set_step(step: Any) -> None:
    """Set the default step: a number, or a variable, which is read each time; None for none.

    >>> set_step(7)
    >>> get_step()
    7
    >>> set_step(None)
    """
    _core.set_step(step.aliased if isinstance(step, Variable) else as_value(step))


def get_step() -> Any:
    """Return the default step as it was set; None if there is none.

    >>> get_step() is None
    True
    """
    step = _core.get_step()
    if isinstance(step, CoreVariable):
        return face_of(step)
    return Tensor(step) if isinstance(step, jax.Array) else step


@contextlib.contextmanager
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Generator[Any]:
    """Yield the tag of a summary, with the open name scopes, and a scope of that name.

    Args:
        name: of the summary.
        default_name: where that is empty.
        values: of no effect.

    >>> with summary_scope("loss") as (tag, scope):
    ...     print(tag)
    loss
    """
    with name_scope(name or default_name) as scope:
        tag = str(scope).rstrip("/") or name or default_name
        yield tag, f"{tag}/"
