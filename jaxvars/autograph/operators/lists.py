"""Python lists that grow in staged code: each run of a block appends as many items as another.

Rule this file keeps: an iteration is traced once for all, so that it does not see what others
appended; it must not read that, or how many there are.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn, final

from jaxvars.errors import ControlFlowError, user_line


@final
class Later:
    """Stands in a list for what the iterations before have appended: it must not be used."""

    __slots__ = ("_list",)

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_list", name)

    def __getattr__(self, _: str) -> NoReturn:
        refuse_reading(object.__getattribute__(self, "_list"))


def _use(self: Later, *_: Any) -> NoReturn:
    refuse_reading(object.__getattribute__(self, "_list"))


for _name in dir(operator):  # arithmetic, comparisons, indexing
    if _name[:2] == "__" and callable(getattr(operator, _name)) and hasattr(operator, _name[2:-2]):
        setattr(Later, _name, _use)
        setattr(Later, f"__r{_name[2:]}", _use)
for _name in ("__bool__", "__float__", "__int__", "__iter__", "__len__", "__jax_array__"):
    setattr(Later, _name, _use)


def check_size(values: Any) -> Any:
    """Return the argument, unless it is a list that is longer than can be said."""
    if type(values) is list and values and type(values[-1]) is Later:
        _use(values[-1])
    return values


def refuse_reading(name: str) -> NoReturn:
    """Raise the error for a list that an iteration appends to, and another one looks at."""
    raise ControlFlowError(
        f"The list {name!r} grows in a loop that is one operation of the program, and is read in "
        f"it at {user_line()}: all iterations are traced as one, which can't see what others have "
        "appended. Keep what the next one needs in a separate name:\n"
        "    last = ...\n"
        "    for x in xs:\n"
        "        last = last + x\n"
        "        out.append(last)"
    )


def uneven(name: str, if_so: int, if_not: int) -> ControlFlowError:
    """Return the error for branches that append different numbers of items to a list."""
    return ControlFlowError(
        f"The list {name!r} grows in a branch at {user_line()} whose condition is a traced value, "
        f"by {if_so} items if it holds and by {if_not} if not, so its length would be "
        "traced: a Python list cannot be so long as a value says. Use an array of the greatest "
        "length and a counter, or a jv.TensorArray:\n"
        "    out = jv.TensorArray(jnp.float32, size=n)\n"
        "    out = out.write(i, x)"
    )


def unknown_length(name: str) -> ControlFlowError:
    """Return the error for a list that grows in a loop whose number of iterations is traced."""
    return ControlFlowError(
        f"The list {name!r} grows in the loop at {user_line()}, whose number of iterations is a "
        "traced value, so its length would be traced too. Loop over an array or a range of a known "
        "length, or use a jv.TensorArray, which has a size:\n"
        "    out = jv.TensorArray(jnp.float32, size=100)    # the most there can be\n"
        "    for ...:\n"
        "        out = out.write(i, x)\n"
        "    out.stack()"
    )
