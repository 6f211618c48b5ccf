"""Python `if`, `while` and `for` on tensors: `compile(autograph=True)`, and `convert`.

    @jv.compile(autograph=True)
    def collatz(n):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

The source of a function is rewritten, when it is first traced, so that its statements are calls of
operators (`autograph/rewrite`). What Python can decide they leave to Python; a condition
on a traced value becomes a branch of the program, a loop over a traced array a scan, a loop with a
traced condition or count a while (`autograph/operators/branches.py`,
`autograph/operators/loops.py`, on top of `control/branches.py`).

| Python | in a program |
|---|---|
| `if`, `elif`, `else`, `a if c else b`, `and`, `or`, `not`, `a < b < c`, `in` | branches |
| `while`, `for i in range(n)` with a traced `n` | a while loop |
| `for x in xs`, `zip(xs, ys)`, `enumerate(xs)`, `reversed(xs)` with traced arrays | a scan |
| `for` over lists, tuples, dicts, `range(10)` | Python's: one copy for each item |
| `break`, `continue`, `return` anywhere, `else` of a loop | flags |
| `xs.append(x)` in a scan | a list of as many traced items |
| `assert`, `print` | when the program runs |
| `is`, `isinstance`, `type`, f-strings of what a block traces | Python's answer, or refused |

What a branch or loop changes in Python objects, itself or in the functions that it calls, is part
of the program like the names that it assigns: attributes, items, variables of closures, lists.
The branch that does not run changes nothing. What a program cannot carry is refused: a set that
grows in one branch, a NumPy array that is written (`autograph/operators/world.py`); a change of a
list that a traced condition has chosen (`autograph/operators/copies.py`).

Rules this file keeps:
- a converted function that is called with known values does what Python does;
- the source is not looked at before a converted function is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from jaxvars.autograph.calls import (
    as_written,
    call,
    convert_function,
    function_in,
    is_wrapped,
    leave_alone,
    rewrite_function,
    set_loop_options,
    source,
)
from jaxvars.autograph.operators.copies import Watched
from jaxvars.autograph.operators.origins import mark_arguments
from jaxvars.errors import ControlFlowError

__all__ = ["convert", "do_not_convert", "set_loop_options", "to_code"]

P = ParamSpec("P")
T = TypeVar("T")


@overload
def convert(fn: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def convert(*, recursive: bool = True) -> Callable[[Callable[P, T]], Callable[P, T]]: ...


def convert(fn: Callable[..., Any] | None = None, /, *, recursive: bool = True) -> Any:
    """Convert a function's control flow, so that JAX can trace it.

    `jv.compile(autograph=True)` does this by itself. Use it for functions that are passed to
    JAX's own transformations: `jax.jit(convert(f))`, `jax.vmap(convert(f))`.

    Args:
        fn: a function, method, `functools.partial` or object that is called.
        recursive: convert the functions that it calls, too. Those of libraries are not.

    Returns:
        A function of the same arguments; without `fn`, a decorator.

    Raises:
        ControlFlowError: (when called) if the function cannot be converted, or does on traced
            values what has no form in a program: a name that one branch alone sets, a shape or
            dtype that changes in a loop.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> @convert
        ... def relu(x):
        ...     return x if x > 0 else 0.0
        >>> jax.vmap(relu)(jnp.array([-1.0, 2.0])).tolist()
        [0.0, 2.0]

    Differs from TensorFlow: a function that cannot be converted is refused, not run with a
    warning, unless another one calls it.
    """
    if fn is None:
        return functools.partial(convert, recursive=recursive)
    function, given = function_in(fn)
    if not callable(fn) or (function is None and not isinstance(fn, functools.partial)):
        raise ControlFlowError(f"{fn!r} is not a Python function: it has nothing to convert.")

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        mark_arguments(*args, *kwargs.values())
        with Watched():
            if function is None or is_wrapped(fn):
                return call(fn, args, kwargs, "")
            return _new(function, recursive=recursive)(*given, *args, **kwargs)

    return leave_alone(wrapper)


def _new(fn: Any, *, recursive: bool) -> Callable[..., Any]:
    new = convert_function(fn, recursive=recursive)
    if new is None:
        name = getattr(fn, "__qualname__", fn)
        raise ControlFlowError(
            f"{name} cannot be converted by autograph: {rewrite_function(fn)}. Leave it as it is, "
            "jv.compile(autograph=False) or @jv.autograph.do_not_convert, and use jv.cond, "
            "jv.while_loop and jv.scan in it; or define it in a file."
        )
    return new


def do_not_convert(fn: Callable[P, T]) -> Callable[P, T]:
    """Have a function run as it is written, when converted code calls it.

    Args:
        fn: any function; what it calls is not converted either.

    Returns:
        The function.

    Example:
        >>> import jaxvars as jv
        >>> @do_not_convert
        ... def positive(x):
        ...     return jv.cond(x > 0, lambda: x, lambda: 0.0)
        >>> float(jv.compile(lambda x: positive(x), autograph=True)(-1.0))
        0.0
    """

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return fn(*args, **kwargs)

    return leave_alone(wrapper)


def to_code(fn: Callable[..., Any]) -> str:
    """Return the source that a function is converted to.

    Args:
        fn: a function, method or compiled function.

    Raises:
        ControlFlowError: when it cannot be converted.

    Example:
        >>> def double(x):
        ...     return 2 * x if x > 0 else x
        >>> "ag__.if_exp(x > 0, lambda: 2 * x, lambda: x" in to_code(double)
        True
    """
    inner = getattr(fn, "python_function", fn)
    function, _ = function_in(inner.func if isinstance(inner, functools.partial) else inner)
    function, _ = function_in(as_written(function))
    if function is None:
        raise ControlFlowError(f"{fn!r} is not a Python function: it has nothing to convert.")
    _new(function, recursive=True)
    return source(function)


def __dir__() -> list[str]:
    return __all__
