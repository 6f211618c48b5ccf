"""`tf.autograph.experimental`: functions that are left as they are, options of loops."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from jaxvars import autograph as _core


def set_loop_options(
    parallel_iterations: Any = None, swap_memory: Any = None, maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:  # fmt: skip
    """Set options of the loop that this is the first statement of.

    Args:
        parallel_iterations: accepted, and of no effect.
        swap_memory: accepted, and of no effect.
        maximum_iterations: end the loop after so many iterations.
        shape_invariants: accepted; a loop over what is known is unrolled if a shape changes.
    """


setattr(set_loop_options, "loop_options", {"maximum_iterations": "max_iterations"})  # noqa: B010 - autograph looks for it


def do_not_convert(func: Callable[..., Any] | None = None) -> Any:
    """Have a function run as it is written, when converted code calls it.

    Args:
        func: a function; without it, a decorator is returned.
    """
    return do_not_convert if func is None else _core.do_not_convert(func)


class Feature(enum.Enum):
    """Options of conversion, which are of no effect."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"
