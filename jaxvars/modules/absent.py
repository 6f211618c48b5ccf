"""Names that objects of other libraries have: on ours they say what to write instead."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from jaxvars.advice import INSTEAD, instead_of
from jaxvars.errors import ForeignTransformError, InteropError, shown, user_line
from jaxvars.tracebacks import package_of

T = TypeVar("T")


class Absent:
    """A name that objects of other libraries have: asking for it raises what to write instead.

    What another base class has by that name is found.
    """

    def __init__(self, owner: type, name: str, cure: str) -> None:
        self._owner, self._name, self._cure = owner, name, cure
        self.__module__ = owner.__module__  # for tools that ask where it is defined

    def is_hiding(self, kind: type) -> bool:
        """Return whether a base class that comes after the owner has the name."""
        after = kind.__mro__[kind.__mro__.index(self._owner) + 1 :]
        found = [vars(base)[self._name] for base in after if self._name in vars(base)]
        return not all(isinstance(each, Absent) for each in found)

    def __get__(self, instance: object, kind: type) -> Any:
        __tracebackhide__ = True  # IPython and pytest leave the frame out
        if self.is_hiding(kind):
            return getattr(super(self._owner, kind if instance is None else instance), self._name)
        if self._name == "__jax_array__" and instance is not None and _is_jax(sys._getframe(1)):
            raise _in_transform_error(kind.__name__)
        if self._name == "inference" and package_of(sys._getframe(1).f_globals) == "equinox":
            raise InteropError(
                f"At {user_line()} equinox is given a Module, and would do nothing:{self._cure}"
            )
        message = f"{kind.__name__!r} object has no attribute {self._name!r}.{self._cure}"
        raise shown(AttributeError(message, name=self._name, obj=instance))


def _is_jax(frame: FrameType) -> bool:
    """Return whether JAX asks, and not for an operator, which the other operand may have."""
    is_operator = frame.f_code.co_filename.endswith("array_methods.py")
    return package_of(frame.f_globals) == "jax" and not is_operator


def _in_transform_error(kind: str) -> ForeignTransformError:
    return ForeignTransformError(
        f"A {kind} is passed at {user_line()} to a plain JAX transform or function, which takes "
        "arrays: a Module is not one, nor a pytree. Use @jv.compile instead of jax.jit; for the "
        "others transform a pure function of its values:\n"
        "    pure = jv.functionalize(lambda x: model(x))\n"
        "    result, state = jax.jit(pure)(jv.State.of(model), x)"
    )


def advised(owner: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator of classes whose objects say what to write for other libraries' names.

    These are attributes, and not a `__getattr__`, which makes every attribute slower.
    """

    def advise(kind: type[T]) -> type[T]:
        for name in INSTEAD[owner]:
            if name not in vars(kind):
                setattr(kind, name, Absent(kind, name, instead_of(name, owner)))
        return kind

    return advise
