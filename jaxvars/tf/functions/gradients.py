"""`tf.gradients`: derivatives of what a `tf.function` has computed so far.

A function whose code names it is traced with a tape of its own that follows everything; so is one
that calls it in another way, which is found out at the first call, and it is traced once more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from types import CodeType
from typing import Any, final

from jaxvars.autodiff.tape import GradientTape as CoreTape
from jaxvars.tf import nest
from jaxvars.tf.autodiff.tape import (
    UnconnectedGradients,
    check_unconnected,
    conjugate,
    like_sources,
    source_of,
    target_of,
)
from jaxvars.tf.context.scope import executing_eagerly
from jaxvars.tf.tensors.convert import dtype_of, to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context


@final
class NeedsTape(BaseException):
    """Signals that the function that is being traced must be traced again, with a tape.

    It passes through the `except Exception` of the caller of `tf.gradients`, and is never seen.
    """


_TRACED: context.Scoped[tuple[CoreTape | None, Any] | None] = context.Scoped(None)
"""The tape, if it has one, and the trace of the function that is being traced."""


@final
class AggregationMethod:
    """How gradients are added: of no effect, XLA decides."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def names_gradients(fn: Callable[..., Any]) -> bool:
    """Return whether the code of a function, or of one in it, names `tf.gradients`."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    todo = [code] if isinstance(code, CodeType) else []
    while todo:
        code = todo.pop()
        if "gradients" in code.co_names:
            return True
        todo += [part for part in code.co_consts if isinstance(part, CodeType)]
    return False


@contextmanager
def graph_tape(*, is_needed: bool) -> Generator[None]:
    """Trace a function inside: for `tf.gradients` if it is needed."""
    tape = CoreTape(persistent=True, everything=True) if is_needed else None
    with _TRACED.set((tape, context.strip(context.current()))), tape or nullcontext():
        yield


def gradients(
    ys: Any, xs: Any, grad_ys: Any = None, name: str = "gradients", gate_gradients: bool = False,
    aggregation_method: Any = None, stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:  # fmt: skip
    """Return the gradients of the sum of some tensors, in the `tf.function` that computed them.

    Args:
        ys: a tensor, or a list of them.
        xs: a tensor or variable, or a list of them.
        grad_ys: what the gradient of each of `ys` is multiplied with; None for ones.
        name: of no effect.
        gate_gradients: of no effect.
        aggregation_method: of no effect.
        stop_gradients: tensors that count as constants.
        unconnected_gradients: what there is for one of `xs` that nothing depends on: "none" or
            "zero".

    Returns:
        A list with the gradient by each of `xs`.

    Raises:
        RuntimeError: outside of a function, whose operations are known: use `tf.GradientTape`.
        TypeError: when one of `ys` is complex and has no `grad_ys`.

    >>> from jaxvars import tf
    >>> @tf.function
    ... def slope(x):
    ...     return tf.gradients(x * x, x)[0]
    >>> float(slope(tf.constant(3.0)))
    6.0

    Differs from TensorFlow: in a loop or branch of a function it does not see what was computed
    inside; use a `tf.GradientTape` there.
    """
    tape = _find_tape()
    how = check_unconnected(unconnected_gradients)
    targets = [target_of(y) for y in nest.flatten(ys)]
    weights = [None] * len(targets) if grad_ys is None else _to_list(grad_ys)
    for target, weight in zip(targets, weights, strict=True):
        if weight is None and dtype_of(target).is_complex:
            raise TypeError(
                f"Gradients of complex tensors ({Tensor(target)!s}) must set grad_ys (y.dtype = "
                f"{dtype_of(target).name})"
            )
    sources, stops = _to_list(xs), [] if stop_gradients is None else _to_list(stop_gradients)
    given = [None if weight is None else conjugate(to_array(weight)) for weight in weights]
    found = tape.row_gradients(
        targets, list(map(source_of, sources)), given, how, list(map(source_of, stops))
    )
    return like_sources(sources, found)


def _to_list(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _find_tape() -> CoreTape:
    """Return the tape of the function that is being traced."""
    if executing_eagerly() or _TRACED.value is None:
        raise RuntimeError(
            "tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape "
            "instead."
        )
    tape, place = _TRACED.value
    if context.strip(context.current()) is not place:
        raise RuntimeError(
            "tf.gradients is called in a loop or branch of a tf.function, which is one operation "
            "for it: what is computed inside is not known. Use tf.GradientTape there."
        )
    if tape is None:
        raise NeedsTape
    return tape
