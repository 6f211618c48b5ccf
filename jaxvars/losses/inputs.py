"""What losses and metrics are given: labels, predictions and weights, checked and aligned.

Rules this file keeps:
- an axis of size 1 at the end may be missing from one of two arrays, as in Keras; beyond that
  shapes must agree, for what merely broadcasts is nearly always a mistake;
- 16-bit floats and integers are computed with in float32, and all in float64 where a loss or metric
  has that dtype;
- what can be known before a program runs is checked before: shapes and dtypes always, labels
  when they are not tracers.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ParamSpec, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.docstrings import complete
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.dtypes import is_inexact, narrowed
from jaxvars.tensors.tensor import as_dtype, is_string, to_tensor
from jaxvars.tracing import context
from jaxvars.typing import Array

Sizes: TypeAlias = tuple[int, ...]

EPSILON = 1e-7  # Keras's
ARE_CUT = context.Scoped(False)
"""Whether predictions outside of 0 to 1 are cut, and not refused."""

_SLACK = 0.01  # how far probabilities may be outside, as 16 bits round


def tensor(value: Any, what: str) -> Array:
    """Return a number, list, array or Variable as an array of numbers."""
    array = to_tensor(unwrap(value), what=what)
    if is_string(array.dtype):
        raise DtypeError(f"{what} has dtype string; losses and metrics take numbers.")
    return array


def float_dtype(dtype: Any, what: str) -> Any:
    """Return a dtype, float32 for None; raise DtypeError when it is not a float.

    >>> float_dtype(None, "Mean").name, float_dtype("bfloat16", "Mean").name
    ('float32', 'bfloat16')
    """
    kind = as_dtype("float32" if dtype is None else dtype)
    if is_string(kind) or not jnp.issubdtype(kind, jnp.floating):
        raise DtypeError(f"The dtype of {what} is that of its result, a float, not {dtype}.")
    return kind


def wide(x: Array, dtype: Any = jnp.float32) -> Array:
    """Return an array in a dtype that one can compute with: float32, `dtype`, or a wider float."""
    least = narrowed(jnp.promote_types(dtype, jnp.float32))
    return x.astype(jnp.promote_types(x.dtype, least))


def wide_if_asked(y_pred: Any, dtype: Any, what: str) -> Any:
    """Return predictions in the dtype of a loss or metric, if that is wider than float32."""
    is_asked = narrowed(dtype).itemsize > 4
    return wide(tensor(y_pred, f"y_pred of {what}"), dtype) if is_asked else y_pred


def as_classes(labels: Array) -> Array:
    """Return labels in a dtype that holds -1 and any number of classes, as uint8 does not."""
    if is_inexact(labels):
        return wide(labels)
    return labels.astype(jnp.int64 if labels.dtype.itemsize == 8 else jnp.int32)


def checked_count(value: Any, name: str, least: int = 1) -> int:
    """Return an argument that says how many; raise ValueError if not an integer, or too small."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is an integer of at least {least}, not {value!r}.")
    return value


def divide(a: Array, b: Array) -> Array:
    """Return a / b, or 0 where b is 0.

    >>> divide(jnp.array([1.0, 1.0]), jnp.array([2.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    return jnp.where(b == 0, 0.0, a / jnp.where(b == 0, 1.0, b))


# ---------------------------------------------------------------- shapes
def match_shapes(one: Sizes, other: Sizes) -> tuple[Sizes, Sizes]:
    """Return two shapes with as many axes, where an axis of size 1 at the end makes up for it.

    Vectors get the axis, longer shapes lose it.

    >>> match_shapes((8,), (8, 1)), match_shapes((8, 5, 1), (8, 5)), match_shapes((8,), (8, 3))
    (((8, 1), (8, 1)), ((8, 5), (8, 5)), ((8,), (8, 3)))
    """
    if len(one) == len(other) + 1 and one[-1] == 1:
        return (one, (*other, 1)) if len(other) == 1 else (one[:-1], other)
    if len(other) == len(one) + 1 and other[-1] == 1:
        return ((*one, 1), other) if len(one) == 1 else (one, other[:-1])
    return one, other


def check_same_shape(y_true: Array, y_pred: Array, what: str) -> None:
    """Raise ShapeError unless labels and predictions have the same shape, or nearly so."""
    true, pred = match_shapes(y_true.shape, y_pred.shape)
    if true != pred:
        raise ShapeError(
            f"{what} compares arrays of the same shape, but y_true has shape {y_true.shape} and "
            f"y_pred {y_pred.shape}.{_hint_at_shapes(true, pred)}"
        )


def _hint_at_shapes(true: Sizes, pred: Sizes) -> str:
    if true == pred[:-1]:
        return " For labels that are integers, use the function whose name begins with 'sparse'."
    if true[:-1] == pred:
        return " Are they swapped? y_true comes first."
    return " Reshape one of them, or jnp.broadcast_to it where that is meant."


def reshape_alike(y_true: Array, y_pred: Array) -> tuple[Array, Array]:
    """Return labels and predictions with one shape."""
    true, pred = match_shapes(y_true.shape, y_pred.shape)
    return y_true.reshape(true), y_pred.reshape(pred)


def expand_weight(weight: Array, shape: Sizes, what: str) -> Array:
    """Return weights of whole samples, or of parts of them, with an axis for each of a shape.

    >>> (
    ...     expand_weight(jnp.ones(4), (4, 3), "mse").shape,
    ...     expand_weight(jnp.ones((4, 1)), (4,), "mse").shape,
    ... )
    ((4, 1), (4,))
    """
    sizes = weight.shape
    if len(sizes) == len(shape) + 1 and sizes[-1] == 1:
        sizes = sizes[:-1]
    sizes = (*sizes, *(1,) * (len(shape) - len(sizes)))
    if len(sizes) != len(shape) or any(s not in (1, n) for s, n in zip(sizes, shape, strict=True)):
        raise ShapeError(
            f"The sample_weight of {what} has shape {weight.shape}, which fits no axes from the "
            f"first on of the values, of shape {shape}: give a number, or one for each sample."
        )
    return weight.reshape(sizes)


# ---------------------------------------------------------------- labels that are integers
def class_axis(axis: Any, y_pred: Array, what: str) -> int:
    """Return the axis of the classes, counted from the front."""
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"The axis of {what} is an integer, not {axis!r}.")
    if not -y_pred.ndim <= axis < y_pred.ndim:
        raise ShapeError(f"y_pred of {what}, of shape {y_pred.shape}, has no axis {axis}.")
    return axis % y_pred.ndim


def sparse_labels(y_true: Array, y_pred: Array, axis: int, what: str) -> Array:
    """Return integer labels with the shape of the predictions less the axis of the classes."""
    shape = y_pred.shape[:axis] + y_pred.shape[axis + 1 :]
    if y_true.shape == shape:
        return y_true
    if y_true.shape == (*shape[:axis], 1, *shape[axis:]):
        return y_true.reshape(shape)
    raise ShapeError(
        f"{what} takes integer labels of shape {shape} for predictions of shape {y_pred.shape}, "
        f"but y_true has shape {y_true.shape}.{_hint_at_labels(y_true, y_pred)}"
    )


def _hint_at_labels(y_true: Array, y_pred: Array) -> str:
    if y_true.shape == y_pred.shape:
        return " If they are one-hot, use the function without 'sparse' in its name."
    if y_true.ndim == y_pred.ndim + 1 and y_true.dtype.kind not in "iub":
        return " Are they swapped? y_true comes first."
    return ""


def check_whole(labels: Array, what: str) -> None:
    """Raise DtypeError where labels are known and are not whole numbers."""
    if labels.dtype.kind in "iub" or context.is_tracer(labels):
        return
    known = np.asarray(labels).astype(np.float64)
    broken = known[known != np.trunc(known)]
    if broken.size:
        raise DtypeError(
            f"The labels of {what} are integers, but y_true has {broken[0]:g}. Are y_true and "
            "y_pred swapped? y_true comes first."
        )


def check_labels(labels: Array, classes: int, what: str, ignored: int | None = None) -> None:
    """Raise where labels are known and are not integers from 0 to below the number of classes."""
    check_whole(labels, what)
    if context.is_tracer(labels) or not labels.size:
        return
    known = np.asarray(labels).astype(np.int64)
    wrong = known[((known < 0) | (known >= classes)) & (known != ignored)]
    if wrong.size:
        raise IndexError(
            f"{what} has {classes} classes, 0 to {classes - 1}, by the shape of y_pred, but y_true "
            f"has a label {wrong[0]}."
        )


def as_probabilities(y_pred: Array, what: str, most: float = 1.0) -> Array:
    """Return predictions that are from 0 to `most`; raise where they are known and are not.

    In compiled code, where they are not known beforehand, the others are NaN: they are logits, and
    cut to probabilities they would give a loss that means nothing.
    """
    if ARE_CUT.value:
        return y_pred
    is_known = not context.is_tracer(y_pred)
    given: Any = np.asarray(y_pred) if is_known else y_pred  # NumPy compiles nothing
    is_wrong = (given < -_SLACK) | (given > most + _SLACK)
    if not is_known:
        return jnp.where(is_wrong, jnp.nan, y_pred)
    if is_wrong.any():
        wrong = float(given[is_wrong][0])
        raise ValueError(
            f"{what} takes probabilities, but y_pred has {wrong:g}. If they are "
            f"logits, say so: {what}(y_true, y_pred, from_logits=True). Else make probabilities of "
            "them: jax.nn.softmax(y_pred), or jax.nn.sigmoid(y_pred) of two classes."
        )
    return y_pred


# ---------------------------------------------------------------- programs
P = ParamSpec("P")


@functools.partial(jax.jit, static_argnames=("formula", "static"))
def _run(
    formula: Callable[..., Array], y_true: Array, y_pred: Array,
    static: tuple[tuple[str, type, Any], ...], numbers: dict[str, Array],
) -> Array:  # fmt: skip
    y_pred = wide(y_pred)
    y_true, y_pred = reshape_alike(y_true.astype(y_pred.dtype), y_pred)
    return formula(y_true, y_pred, **{name: option for name, _, option in static}, **numbers)


def _freeze(options: dict[str, Any]) -> tuple[tuple[str, type, Any], ...]:
    """Return options that a program is found by: with their types, as 1 == True."""
    lists = {name: tuple(x) if isinstance(x, list) else x for name, x in options.items()}
    return tuple((name, type(x), x) for name, x in lists.items())


def elementwise(
    docs: Mapping[str, str] = MappingProxyType({}), most: float | None = None
) -> Callable[[Callable[P, Array]], Callable[P, Array]]:
    """Return a decorator that makes a function of labels and predictions from its formula.

    A formula takes both as floats of one dtype and shape, and options. Those that are floats by
    default are numbers of the program; it is compiled for each value of the others. `docs`
    says what its docstring leaves out. With `most` its predictions are probabilities, from 0 to
    that, unless they are logits.
    """

    def decorate(formula: Callable[P, Array]) -> Callable[P, Array]:
        complete(formula, docs)
        signature = inspect.signature(formula)
        given = signature.parameters.items()
        defaults = {name: p.default for name, p in given if p.default is not p.empty}
        floats = {name: default for name, default in defaults.items() if isinstance(default, float)}
        others = {name: default for name, default in defaults.items() if name not in floats}

        @functools.wraps(formula)
        def call(*args: P.args, **kwargs: P.kwargs) -> Array:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                return formula(*args, **kwargs)  # Python's own message about what is wrong
            static = {name: given.get(name, x) for name, x in others.items()}
            static |= {n: bool(static[n]) for n, x in others.items() if isinstance(x, bool)}
            numbers = {name: given.get(name, x) for name, x in floats.items()}
            return _compare(formula, given["y_true"], given["y_pred"], static, numbers, most)

        return call

    return decorate


@context.restoring()
def _compare(
    formula: Callable[..., Array], y_true: Any, y_pred: Any, static: dict[str, Any],
    numbers: dict[str, Any], most: float | None,
) -> Array:  # fmt: skip
    """Return what a formula makes of labels and predictions of the same shape."""
    what = formula.__name__
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    check_same_shape(true, pred, what)
    if not max(true.ndim, pred.ndim):
        raise ShapeError(f"{what} takes arrays with at least one axis, not numbers.")
    if most is not None and not static["from_logits"]:
        pred = as_probabilities(pred, what, most)
    for name, x in numbers.items():
        numbers[name] = x if isinstance(x, float | int) else tensor(x, f"{name} of {what}")
    return _run(formula, true, pred, _freeze(static), numbers)
