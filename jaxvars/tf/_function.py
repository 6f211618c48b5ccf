"""`tf.function`: a Python function as one program, by TensorFlow's rules for signatures.

Rules this file keeps:
- tensors and NumPy arrays count by shape and type; Python's numbers, text and None by value;
  variables and other objects by identity;
- inside, arguments are Tensors; what comes out is Tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from jaxvars import autograph as _autograph
from jaxvars._compile import Function as CoreFunction
from jaxvars._compile import _Mode
from jaxvars._compile import compile as _compile
from jaxvars._variable import Variable as CoreVariable
from jaxvars.tf import nest
from jaxvars.tf._convert import to_array
from jaxvars.tf._tensor import Tensor, wrap
from jaxvars.tf._variable import Variable, face_of

Value: TypeAlias = Any


@final
@dataclass(frozen=True)
class _Literal:
    """A Python value that counts by its type and itself: 1 is not 1.0, nor True."""

    kind: type
    value: Any


@final
class Function:
    """A compiled function; made by `tf.function`.

    Attributes:
        python_function: the function as it was written.
    """

    def __init__(self, python_function: Callable[..., Any], autograph: bool) -> None:
        self.python_function = python_function
        functools.update_wrapper(self, python_function)
        body = _autograph.convert(python_function) if autograph else python_function

        def program(args: Any, kwargs: Any) -> Any:
            result = body(*map(_inside, args), **{key: _inside(x) for key, x in kwargs.items()})
            return nest.map_structure(_result, result)

        program.__name__ = getattr(python_function, "__name__", "function")
        self._core: CoreFunction = _compile(program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it; the first call of a signature traces and compiles it."""
        if _Mode.eager:
            return self.python_function(*args, **kwargs)
        given = tuple(map(_outside, args)), {key: _outside(x) for key, x in kwargs.items()}
        return wrap(self._core(*given))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method of an object."""
        return self if instance is None else functools.partial(self, instance)

    def experimental_get_tracing_count(self) -> int:
        """Return how many signatures have been traced."""
        return self._core.trace_count


def _outside(argument: Any) -> Any:
    """Return an argument as the core takes it."""
    return nest.map_structure(_outside_leaf, argument)


def _outside_leaf(leaf: Any) -> Any:
    if isinstance(leaf, Tensor | np.ndarray):
        return to_array(leaf)
    if isinstance(leaf, Variable):
        return leaf.aliased
    if isinstance(leaf, bool | int | float | complex | str | bytes):
        return _Literal(type(leaf), leaf)
    return leaf


def _inside(argument: Any) -> Any:
    """Return an argument as the function is to see it."""
    if isinstance(argument, _Literal):
        return argument.value
    if isinstance(argument, CoreVariable):
        return face_of(argument)
    if nest.is_nested(argument):
        return nest._like(argument, [_inside(part) for part in nest._parts(argument)])
    return wrap(argument)


def _result(leaf: Any) -> Any:
    return leaf if leaf is None else to_array(leaf)


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
) -> Any:
    """Compile a Python function into one program."""

    def decorate(func: Callable[..., Any]) -> Function:
        return Function(func, autograph)

    return decorate if func is None else decorate(func)
