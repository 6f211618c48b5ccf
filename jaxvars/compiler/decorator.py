"""The decorator `compile`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from jaxvars.advice import unknown_option
from jaxvars.autograph import convert
from jaxvars.compiler.function import Function
from jaxvars.compiler.signature import check_function, name_of
from jaxvars.core.checks import require_finite_writes
from jaxvars.errors import CompileError, shown
from jaxvars.tensors.spec import TensorSpec
from jaxvars.typing import P, R


@overload
def compile(
    fn: Callable[P, R],
    /,
    *,
    static_argnames: str | Sequence[str] = (),
    donate: bool | Literal["auto"] = "auto",
    input_signature: Sequence[TensorSpec] | None = None,
    guard: Literal["finite"] | None = None,
    autograph: bool = False,
    in_shardings: Any = None,
) -> Function[P, R]: ...
@overload
def compile(
    *,
    static_argnames: str | Sequence[str] = (),
    donate: bool | Literal["auto"] = "auto",
    input_signature: Sequence[TensorSpec] | None = None,
    guard: Literal["finite"] | None = None,
    autograph: bool = False,
    in_shardings: Any = None,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def compile(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    static_argnames: str | Sequence[str] = (),
    donate: bool | str = "auto",
    input_signature: Sequence[TensorSpec] | None = None,
    guard: str | None = None,
    autograph: bool = False,
    in_shardings: Any = None,
    **others: Any,
) -> Any:
    """Compile a function that may read and assign variables.

    The body is traced once for each signature: shapes and dtypes of arrays (of JAX, NumPy, or any
    library that NumPy or DLPack reads: their numbers are those at the call), values of static
    arguments (bool, str, None, other hashables), and which objects (Variables, Modules) are
    passed. Python numbers are traced. Which variables it touches is found out in that trace,
    and they are updated in place, in memory that is used again, all of them or none.

    Dicts, passed or returned, in lists and tuples, too, keep the order of their keys, and another
    order is another signature. In other containers, and for `**kwargs`, the keys come sorted, as
    with `jax.jit`; what `trace` returns takes dicts in any order for those that it was traced with.

    Args:
        fn: a function, method or `functools.partial`. What Python does in it besides tensors
            happens once for each trace. A compiled function keeps its options but those that are
            given.
        static_argnames: arguments whose value is part of the signature though it is a number.
        donate: "auto" lets XLA reuse the memory of variables that are read and assigned,
            except in programs that call back into Python; True refuses such programs; False
            never does: if a step runs out of memory, its variables keep their old values, at
            the price of the memory for both; the next step then waits for the one before.
            Values that you took before a step stay readable in any case.
        input_signature: a `TensorSpec` for each argument: what is passed is converted to it, or
            refused. An unknown dimension (None) is traced for each size.
        guard: "finite" has a call that would write NaN or an infinity to a variable raise and
            change nothing. The call then waits for the program to finish. Under `run_eagerly`
            the guard is off.
        autograph: convert `if`, `while`, `for`, `and`, `or`, `not`, `assert` and `print` on traced
            values, here and in the functions that it calls: see `jv.autograph`.
        in_shardings: how arguments are sharded over the mesh of the variables when they arrive: a
            PartitionSpec for all arrays of as many dimensions or more, or a dict from names of
            arguments to specs. Arguments that were never placed, like NumPy arrays, are
            else replicated.
        **others: nothing; options of `jax.jit` and `tf.function` are refused with advice.

    Returns:
        A `Function`; without `fn`, a decorator.

    Raises:
        CompileError: when an option is wrong.
        TypeError: for an option that does not exist.
        CreationError: (from a call) when it creates variables on any call but the first, or
            one that is not kept.
        ControlFlowError: (from a call) for a Python `if` or `while` on a traced value.
        ExecutionError: (from a call, or a later one or a read) when XLA fails to run the program,
            as when memory runs out. A first call changes nothing then.
        CheckError: (from a call) when a check or the guard fails; no variable is changed then.
        ShardingError: (from a call) when variables and arguments are on different devices, or
            an argument cannot be sharded as `in_shardings` says.

    Example:
        >>> import jaxvars as jv
        >>> total = jv.Variable(0.0)
        >>> @jv.compile
        ... def add(x):
        ...     total.assign_add(x)
        ...     return total * 2
        >>> [float(add(i)) for i in (1.0, 2.0, 3.0)]
        [2.0, 6.0, 12.0]
        >>> add.trace_count
        1

    Differs from TensorFlow: Python numbers are traced, so 20 different ints are one trace;
    Python `if` and `while` on tensors are converted with `autograph=True` only.
    """
    for name in others:
        raise shown(unknown_option(name, inspect.signature(compile).parameters))
    if donate not in (True, False, "auto"):
        raise CompileError(f'donate is True, False or "auto", not {donate!r}.')
    if guard not in (None, "finite"):
        raise CompileError(f'guard is None or "finite", not {guard!r}.')
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)

    def decorate(fn: Callable[..., Any]) -> Function[..., Any]:
        if isinstance(fn, classmethod | staticmethod):
            kind = type(fn).__name__
            raise CompileError(
                f"jv.compile takes a function, and {name_of(fn.__func__)} is a {kind} already. Let "
                f"@{kind} be the first line, and @jv.compile the one below."
            )
        if not callable(fn):
            raise CompileError(
                f"jv.compile takes a function, not {type(fn).__name__} {fn!r}. Call what it "
                "returns: jv.compile(f)(x), not jv.compile(f(x))."
            )
        check_function(fn)
        options: dict[str, Any] = {
            "static_argnames": names,
            "donate": donate,
            "input_signature": input_signature,
            "guard": require_finite_writes if guard == "finite" else None,
            "in_shardings": in_shardings,
            "convert": convert if autograph else None,
        }
        return Function(fn, **options) if not isinstance(fn, Function) else _again(fn, options)

    return decorate if fn is None else decorate(fn)


def _again(fn: Function[..., Any], options: dict[str, Any]) -> Function[..., Any]:
    """Return a compiled function compiled again: with its options, where none are given now."""
    usual = {"static_argnames": (), "donate": "auto"}
    given = {k: x for k, x in options.items() if x is not None and x != usual.get(k)}
    return Function(fn.python_function, **{**fn._options, **given})
