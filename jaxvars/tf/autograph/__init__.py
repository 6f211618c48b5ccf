"""`tf.autograph`: Python's control flow on tensors, converted; see `jaxvars.autograph`."""

from __future__ import annotations

from typing import Any

from jaxvars import autograph as _core
from jaxvars.tf.autograph import experimental as experimental
from jaxvars.tf.context.scope import inside
from jaxvars.tf.listing import lister


def to_code(entity: Any, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """Return the source that a function is converted to.

    Args:
        entity: a function, or a `tf.function`.
        recursive: accepted, and of no effect on the source.
        experimental_optional_features: accepted, and of no effect.
    """
    return _core.to_code(getattr(entity, "python_function", entity))


def to_graph(
    entity: Any, recursive: bool = True, experimental_optional_features: Any = None
) -> Any:
    """Return a function with its control flow converted.

    Args:
        entity: a function.
        recursive: convert the functions that it calls, too.
        experimental_optional_features: accepted, and of no effect.
    """
    converted = _core.convert(recursive=recursive)(getattr(entity, "python_function", entity))
    return lambda *args, **kwargs: inside(converted, *args, **kwargs)


def trace(*args: Any) -> None:
    """Print arguments while a function is traced.

    >>> trace("tracing", 1)
    tracing 1
    """
    print(*args)  # noqa: T201 - that is what it is for


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Accept a level of logging, to no effect: what cannot be converted raises."""


__dir__ = lister(__name__)
