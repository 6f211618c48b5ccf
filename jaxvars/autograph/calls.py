"""Calls in converted code: which functions are converted in turn, and which are left alone.

| called | what happens |
|---|---|
| a function or method written in Python by the user, an object with such a `__call__` | converted |
| `functools.partial` | what it calls, by these rules |
| a builtin that would look at a traced value (`range`, `min`, `print`, ...) | ours |
| a function of JAX, `map`, `functools.reduce`, ... | called, with functions converted |
| libraries (the standard one, installed ones), compiled functions, classes, C code | called |
| generators, coroutines, functions with `match` or without source | called |

Rules this file keeps:
- a function is rewritten once, for all its closures;
- code in the package of the caller is the user's, even if it is installed like a library.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType, SimpleNamespace
from typing import Any, TypeAlias

import jax

from jaxvars.autograph.operators import (
    branches,
    copies,
    logic,
    loops,
    origins,
    places,
    state,
    values,
)
from jaxvars.autograph.operators.builtins import OVERLOADS
from jaxvars.autograph.operators.world import is_users
from jaxvars.autograph.rewrite import rewrite
from jaxvars.autograph.rewrite import source as _source
from jaxvars.autograph.rewrite.source import Unsupported
from jaxvars.errors import ControlFlowError, line_of, package_of
from jaxvars.objects.identity import are_same, code_parts

Function: TypeAlias = Callable[..., Any]

_LEFT_ALONE: weakref.WeakSet[Any] = weakref.WeakSet()
_REWRITTEN: weakref.WeakKeyDictionary[CodeType, dict[str, CodeType | str]] = (
    weakref.WeakKeyDictionary()
)
_INNER: weakref.WeakSet[CodeType] = weakref.WeakSet()  # rewritten, as parts of others
_CONVERTED: weakref.WeakKeyDictionary[FunctionType, tuple[Any, FunctionType | None]] = (
    weakref.WeakKeyDictionary()
)  # each with the parts of its code
_LOCK = threading.RLock()
_NEVER = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_CALLERS = frozenset(
    {
        "jax",
        "jaxvars.derivatives.custom_gradient",
        "jaxvars.control.branches",
        "jaxvars.control.loops",
        "jaxvars.control.maps",
        "jaxvars.tf.control.branches",
        "jaxvars.tf.functions.maps",
        "functools",
        "_functools",
    }
)
_BY_ID = {id(f): ours for f, ours in OVERLOADS.items()}


def as_written(fn: Any) -> Any:
    """Return the function that `convert` and its like were given."""
    while fn in _LEFT_ALONE and hasattr(fn, "__wrapped__"):
        fn = fn.__wrapped__
    return fn


def overload(f: Any, ours: Function) -> None:
    """Have converted code call `ours` in place of `f`, which must live as long as the program."""
    _BY_ID[id(f)] = ours


def leave_alone(fn: Any) -> Any:
    """Have calls of a function run it as it is."""
    _LEFT_ALONE.add(fn)
    return fn


# ---------------------------------------------------------------- calls
def converted_call(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call what converted code calls."""
    return call(f, args, kwargs or {}, package_of(sys._getframe(1).f_globals))


def call(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], package: str) -> Any:
    """Call something for code of a top package, converted if it is the user's."""
    if (ours := _BY_ID.get(id(f))) is not None:
        return ours(*args, **kwargs)
    if isinstance(f, functools.partial):
        return call(f.func, (*f.args, *args), {**f.keywords, **kwargs}, package)
    if is_wrapped(f):
        return f.form(_convert_argument(f.__wrapped__, package))(*args, **kwargs)
    fn, given = function_in(f, args)
    if fn is not None and not _is_left_alone(fn, package):
        if (new := convert_function(fn)) is not None:
            return _call_and_settle(new, given, kwargs)
        return _call_as_is(f, args, kwargs, f"{fn.__qualname__}: {rewrite_function(fn)}")
    elif _calls_back(f):
        args = tuple(_convert_argument(x, package) for x in args)
        kwargs = {name: _convert_argument(x, package) for name, x in kwargs.items()}
    return _call_and_settle(f, args, kwargs)


def _call_and_settle(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    known = copies.count()
    result = f(*args, **kwargs)
    copies.settle(known, (f, result))
    return result


def is_wrapped(f: Any) -> bool:
    """Return whether a function is one that `jv.recompute` or `jv.custom_gradient` returned."""
    is_ours = isinstance(f, FunctionType) and package_of(f.__globals__) == "jaxvars"
    return is_ours and "form" in f.__dict__  # `functools.wraps` copies attributes


def _call_as_is(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], why: str) -> Any:
    try:
        return f(*args, **kwargs)
    except jax.errors.TracerBoolConversionError as error:
        raise ControlFlowError(
            f"Python's `if`, `while`, `and`, `or` or `not` at {line_of(error)} needs to know a "
            "value that is only known when the compiled function runs, and autograph could not "
            f"convert {why}. Use jnp.where, jv.cond or jv.while_loop there."
        ).with_traceback(error.__traceback__) from None


def call_alone(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """Call what code calls that is converted without what it calls."""
    f = _BY_ID.get(id(f), f)
    return f(*args, **kwargs or {})


def function_in(f: Any, args: tuple[Any, ...] = ()) -> tuple[FunctionType | None, tuple[Any, ...]]:
    """Return the Python function that a call runs, if any, and its arguments."""
    if isinstance(f, FunctionType):
        return f, args
    if isinstance(f, MethodType):
        return function_in(f.__func__, (f.__self__, *args))
    if isinstance(f, type):
        return None, args
    call = getattr(type(f), "__call__", None)  # noqa: B004 - what it is, not whether
    return (call, (f, *args)) if isinstance(call, FunctionType) else (None, args)


def _is_left_alone(fn: FunctionType, caller: str) -> bool:
    if fn in _LEFT_ALONE or fn.__code__.co_flags & _NEVER:
        return True
    return not is_users(fn.__globals__, fn.__code__.co_filename, (caller,))


def _calls_back(f: Any) -> bool:
    module = str(getattr(f, "__module__", ""))
    return f is map or f is filter or bool(_CALLERS & {module, module.partition(".")[0]})


def _convert_argument(value: Any, caller: str) -> Any:
    """Return a function that is passed to a caller of functions, converted."""
    if not isinstance(value, FunctionType | MethodType):
        return value
    fn, given = function_in(value)
    if fn is None or _is_left_alone(fn, caller):
        return value
    new = _convert_once(fn) if fn.__closure__ is None else convert_function(fn)
    if new is None:
        return value
    return MethodType(new, *given) if given else new


def _convert_once(fn: FunctionType) -> FunctionType | None:
    """Return the same converted function each time: JAX's caches know functions by identity.

    Another one if its code has been replaced meanwhile, as IPython's autoreload does.
    """
    parts, known = code_parts(fn), _CONVERTED.get(fn)
    if known is None or not are_same(parts, known[0]):
        _CONVERTED[fn] = known = parts, convert_function(fn)
    return known[1]


# ---------------------------------------------------------------- conversion
def convert_function(fn: FunctionType, *, recursive: bool = True) -> FunctionType | None:
    """Return a function with its control flow as operators; None if it must stay as it is."""
    found = rewrite_function(fn)
    if isinstance(found, str):
        return None
    namespace = _OPERATORS if recursive else _ALONE
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells["ag__"] = CellType(namespace)
    closure = tuple(cells[name] for name in found.co_freevars)
    new = FunctionType(found, fn.__globals__, fn.__name__, fn.__defaults__, closure)
    new.__kwdefaults__ = fn.__kwdefaults__
    new.__qualname__, new.__module__, new.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    return leave_alone(new)


def rewrite_function(fn: FunctionType) -> CodeType | str:
    """Return the new code of a function, or why there is none."""
    if fn.__code__ in _INNER:  # the source in the file is not that of this code
        return fn.__code__
    codes = _REWRITTEN.get(fn.__code__, {})
    if (found := codes.get(fn.__code__.co_filename)) is None:
        with _LOCK:
            found = _rewrite(fn)
            _REWRITTEN.setdefault(fn.__code__, {})[fn.__code__.co_filename] = found
    return found


def _rewrite(fn: FunctionType) -> CodeType | str:
    try:
        code = rewrite(fn, set_loop_options)
    except Unsupported as why:
        return str(why)
    _note_inner(code)
    return code


def _note_inner(code: CodeType) -> None:
    """Note that the functions in a rewritten one are rewritten, too, but for generators."""
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    _INNER.update(part for part in inner if not part.co_flags & _NEVER)
    for part in inner:
        _note_inner(part)


def source(fn: FunctionType) -> str:
    """Return the source of the new code of a function."""
    return _source(fn, set_loop_options)


def set_loop_options(*, max_iterations: int | None = None) -> None:
    """Say more about the loop that this is the first statement of.

    It is not a call: where a function is converted it is taken out of the loop. It speaks of a loop
    that becomes one operation of a program, and there alone: in a function that is not converted,
    and for a loop that Python runs, it does nothing.

    Args:
        max_iterations: end the loop after so many iterations, if it has not ended before. A
            `while` with this bound can be differentiated by JAX's own `grad`, too; without it JAX
            does not know how much to keep for the backward pass (a tape does without). The program
            then takes time for that many iterations.

    Example:
        >>> import jax, jaxvars as jv
        >>> @jv.autograph.convert
        ... def root(x):
        ...     y = x
        ...     while abs(y * y - x) > 1e-5:
        ...         jv.autograph.set_loop_options(max_iterations=20)
        ...         y = (y + x / y) / 2
        ...     return y
        >>> round(float(jax.jit(jax.grad(root))(4.0)), 4)
        0.25
    """


# ---------------------------------------------------------------- what converted code sees
_SEEN = (
    branches.if_exp, branches.if_stmt, loops.for_stmt, loops.while_stmt,
    logic.and_, logic.assert_stmt, logic.compare, logic.get_at, logic.get_item, logic.known,
    logic.not_, logic.or_, origins.in_place, origins.shown, places.attribute, places.item,
    places.look, state.State, values.Nothing, values.Undefined, values.ld, converted_call,
    leave_alone, slice,
)  # fmt: skip
_OPERATORS = SimpleNamespace(**{found.__name__: found for found in _SEEN})
_ALONE = SimpleNamespace(**{**vars(_OPERATORS), "converted_call": call_alone})
