"""What stands in for the value of a name that has none, or perhaps none, and how names are read.

Rules this file keeps:
- what has no value says so when it is read, and not before;
- the message names the name, the line that reads it and the line that may not have set it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np

from jaxvars.core.checks import require
from jaxvars.errors import ControlFlowError, user_line
from jaxvars.typing import Array


class NoValue(ABC):
    """Stands in for the value of a name that has none, or perhaps none."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    def read(self) -> Any:
        """Return the value after all, or raise."""


@final
class Undefined(NoValue):
    """Nothing has been assigned to the name."""

    __slots__ = ()

    def read(self) -> Any:
        """Raise what Python does."""
        raise UnboundLocalError(
            f"cannot access local variable {self.name!r} where it is not associated with a value: "
            f"{self.name!r} is used before assignment"
        )


@final
class UndefinedReturnValue(NoValue):
    """Nothing has been returned yet."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("the returned value")

    def read(self) -> Any:
        """Return what a function does that returns nothing."""
        return None


@final
class Nothing(NoValue):
    """The name's value does not matter: the branch ends in an error."""

    __slots__ = ()

    def read(self) -> Any:
        """Return nothing."""
        return None


@final
class OneBranch(NoValue):
    """One branch of a staged `if` assigned the name, and the other did not."""

    __slots__ = ("example", "line", "missing")

    def __init__(self, name: str, line: str, missing: str, example: str) -> None:
        super().__init__(name)
        self.line = line
        self.missing = missing
        self.example = example

    def read(self) -> Any:
        """Raise, and say where it was set."""
        raise ControlFlowError(
            f"{self.name!r} is used at {user_line()}, but of the two branches of the `if` at "
            f"{self.line} only one sets it, and the condition is a traced value: there is no "
            f"telling now which one will run. {self.name!r} must also be initialized in the "
            f"{self.missing} branch, or before:\n"
            f"    {self.name} = {self.example}\n"
            f"    if ...:\n"
            f"        {self.name} = ..."
        )


@final
class MaybeUndefined(NoValue):
    """A name that a staged loop assigns, if it runs at all."""

    __slots__ = ("given", "line", "value")

    def __init__(self, name: str, line: str, value: Array, given: Array) -> None:
        super().__init__(name)
        self.line = line
        self.value = value
        self.given = given

    def read(self) -> Any:
        """Return the value, and have the step fail if there is none when it runs."""
        require(
            self.given,
            f"{self.name!r} has no value: only the loop at {self.line} sets it, and did not do so. "
            f"The loop must iterate at least once to initialize {self.name}; or give it a value "
            "before",
        )
        return self.value


def ld(value: Any) -> Any:
    """Read a name."""
    return value.read() if isinstance(value, NoValue) else value


# ---------------------------------------------------------------- arrays that are changed in place
_STAND_INS: dict[int, tuple[Array, str]] = {}  # for arrays of NumPy, in the body of a loop


def stand_in(value: Array, old: Array, name: str) -> list[int]:
    """Note that a value stands in for an array of NumPy; return what `forget` takes."""
    if not isinstance(old, np.ndarray) and id(old) not in _STAND_INS:
        return []
    _STAND_INS[id(value)] = value, name
    return [id(value)]


def forget(keys: list[int]) -> None:
    """Forget what stood in for arrays."""
    while keys:
        _STAND_INS.pop(keys.pop(), None)


def in_place(value: Array) -> None:
    """Refuse `value += ...` and `value.sort()` for what stands in for an array of NumPy."""
    if id(value) in _STAND_INS:
        _, name = _STAND_INS[id(value)]
        raise ControlFlowError(
            f"{name!r} is a NumPy array before a loop on traced values, and is changed in place in "
            f"it at {user_line()}, for all that hold it: a program carries values, not objects. "
            f"Make a new array, {name} = {name} + ..., or have one of JAX before the loop, {name} "
            "= jnp.asarray(...)."
        )
