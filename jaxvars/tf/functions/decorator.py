"""The decorator `tf.function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from jaxvars.tf.functions.function import BoundFunction, Function
from jaxvars.typing import P, R


@overload
def function(
    func: Callable[P, R],
    input_signature: Any = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False,
    experimental_implements: str | None = None, experimental_autograph_options: Any = None,
    experimental_attributes: Any = None, experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None, experimental_follow_type_hints: bool | None = None,
) -> Function[P, R]: ...  # fmt: skip
@overload
def function(
    func: None = None,
    input_signature: Any = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False,
    experimental_implements: str | None = None, experimental_autograph_options: Any = None,
    experimental_attributes: Any = None, experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None, experimental_follow_type_hints: bool | None = None,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...  # fmt: skip
def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False,
    experimental_implements: str | None = None, experimental_autograph_options: Any = None,
    experimental_attributes: Any = None, experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None, experimental_follow_type_hints: bool | None = None,
) -> Any:  # fmt: skip
    """Compile a Python function into one program.

    Python's `if`, `while`, `for` and the like on tensors become parts of the program; whatever
    else Python does in the body happens once for each trace.

    Args:
        func: the function; without it, a decorator is returned.
        input_signature: a `tf.TensorSpec`, or structure of them, for each argument.
        autograph: convert Python's control flow.
        jit_compile: accepted, and of no effect: everything is compiled by XLA.
        reduce_retracing: trace once for all sizes that have differed between calls.
        experimental_implements: accepted, and of no effect.
        experimental_autograph_options: accepted, and of no effect.
        experimental_attributes: accepted, and of no effect.
        experimental_relax_shapes: the old name of `reduce_retracing`.
        experimental_compile: accepted, and of no effect.
        experimental_follow_type_hints: accepted, and of no effect.

    Raises:
        TypeError: when `input_signature` is not a list, or does not fit the function.

    >>> from jaxvars import tf
    >>> @tf.function
    ... def relu(x):
    ...     if x > 0:
    ...         return x
    ...     return tf.zeros_like(x)
    >>> relu(tf.constant(-1.0))
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>

    Differs from TensorFlow: the body is traced once for all sizes where a size is None in
    `input_signature`, but XLA's program is made for each; a body that must know its sizes is traced
    for each, too, and so is one that is given a size of 0, or sizes of one place in a shape that
    are equal in one call and not in another. Sizes that depend on strings, as of what
    tf.strings.split gives, are traced for; a body that must know the strings themselves (what is in
    a file) is traced for each tensor of them. An `if` on a tensor whose value is known while the
    function is traced (a constant, a shape) is decided then; 1, 1.0 and True differ, and so do 0.0
    and -0.0. A Variable as an argument counts as itself: another one, even of its shape and type,
    is traced for (TensorFlow runs the first one's trace with its memory, also where the body or an
    optimizer's slots mean the first one), and so is a dict whose keys are in another order. With
    `reduce_retracing` each rank has a trace; strings are traced for each size.
    A `graph` is a view of JAX's program: what XLA has no operation for has another type, variables
    are read by what uses them, and nothing is exported.
    """

    def decorate(func: Callable[..., Any]) -> Function[..., Any]:
        if not callable(func):
            raise TypeError(f"{func!r} is not a callable object")
        func = func.python_function if isinstance(func, Function | BoundFunction) else func
        return Function(
            func,
            autograph=autograph,
            input_signature=input_signature,
            reduce_retracing=bool(reduce_retracing or experimental_relax_shapes),
        )

    return decorate if func is None else decorate(func)
