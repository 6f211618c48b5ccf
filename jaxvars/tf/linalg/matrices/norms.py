"""The part of `tf.linalg` about norms and products: `norm`, `tensordot`, `matvec`, `einsum`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.math.elements import magnitude
from jaxvars.tf.math.slopes import root
from jaxvars.tf.registry.rows import Refused, format_shape, op
from jaxvars.tf.tensors.convert import match_dtypes
from jaxvars.tf.tensors.static import axes_in, refused
from jaxvars.tf.tensors.tensor import Tensor, pair_typed
from jaxvars.typing import Array

_VECTOR, _MATRIX = ("euclidean", 1, 2, np.inf), ("euclidean", "fro", 1, 2, np.inf)

_INEXACT = "float complex"


@op("linalg.norm", "tensor", op="Sqrt", kinds=_INEXACT, aliases=("norm",))
def norm(tensor: Array, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None) -> Array:
    """Return the norm of vectors, or of matrices.

    Example: `tf.norm(r(2, 3), axis=1)`.
    """
    places = _places(axis)
    if isinstance(places, tuple):
        _check_order(ord, ord in _MATRIX, "matrix", list(_MATRIX))
        return _of_matrices(tensor, ord, places, bool(keepdims))
    is_power = isinstance(ord, int | float | np.number) and bool(ord > 0)
    _check_order(ord, ord in _VECTOR or is_power, "vector", None)
    return _of_vectors(tensor, ord, places, bool(keepdims))


def _places(axis: Any) -> int | tuple[int, int] | None:
    if axis is None:
        return None
    if not isinstance(axis, list | tuple | np.ndarray):
        return int(axis)
    found = np.asarray(axis)
    if found.shape != (2,) or found[0] == found[1]:
        raise Refused(
            ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
        )
    return int(found[0]), int(found[1])


def _check_order(order: Any, is_known: bool, kind: str, known: Any) -> None:
    if not is_known:
        among = f" in {known}" if known else ""
        raise Refused(ValueError(f"'ord' must be a supported {kind} norm{among}, got {order}"))


def _of_matrices(x: Array, order: Any, axes: tuple[int, int], keepdims: bool) -> Array:
    axes_in(x, axes)
    rows, columns = (axis % x.ndim for axis in axes)
    if order in ("euclidean", "fro"):
        return _root(x, (rows, columns), keepdims)
    if order == 2:
        moved = jnp.moveaxis(x, (rows, columns), (-2, -1))
        made = jnp.max(jnp.linalg.svd(moved, compute_uv=False), -1).astype(x.dtype)
        return jnp.expand_dims(made, tuple(sorted((rows, columns)))) if keepdims else made
    first, second = (rows, columns) if order == 1 else (columns, rows)
    made = jnp.max(jnp.sum(magnitude(x), first, keepdims=True), second, keepdims=True)
    return made if keepdims else jnp.squeeze(made, (rows, columns))


def _of_vectors(x: Array, order: Any, axis: int | None, keepdims: bool) -> Array:
    axes_in(x, axis)
    if order in ("euclidean", 2):
        return _root(x, axis, keepdims)
    size = magnitude(x)
    if order == np.inf:
        return jnp.max(size, axis, keepdims=keepdims)
    if order == 1:
        return jnp.sum(size, axis, keepdims=keepdims)
    return jnp.power(jnp.sum(jnp.power(size, order), axis, keepdims=keepdims), 1.0 / order)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _root(x: Array, axis: Any, keepdims: bool) -> Array:
    return root(jnp.sum(x * jnp.conj(x), axis, keepdims=keepdims))


@op("linalg.normalize", "tensor", op="RealDiv", kinds=_INEXACT, example="r(2, 3), axis=1")
def normalize(tensor: Array, ord: Any = "euclidean", axis: Any = None) -> tuple[Array, Array]:
    """Divide by a norm; return it, too."""
    found = norm.__wrapped__(tensor, ord, axis, True).astype(tensor.dtype)
    return tensor / found, found


# ---------------------------------------------------------------- products
@op(
    "linalg.tensordot", "a b", op="MatMul", same=True, kinds="float complex int",
    pairing=pair_typed, aliases=("tensordot",),
)  # fmt: skip
def tensordot(a: Array, b: Array, axes: Any) -> Array:
    """Multiply and add up over axes of both tensors.

    Example: `tf.tensordot(r(2, 3), r(3, 2), 1)`.
    """
    first, second = _read_axes(a, axes)
    try:
        sizes = [a.shape[i] for i in first], [b.shape[i] for i in second]
    except IndexError as error:
        raise Refused(IndexError(f"list index out of range: axes {axes}")) from error
    if sizes[0] != sizes[1]:
        raise ValueError(f"Matrix size-incompatible: In[0]: {sizes[0]}, In[1]: {sizes[1]}")
    return jnp.tensordot(a, b, (first, second), preferred_element_type=a.dtype)


def _read_axes(a: Array, axes: Any) -> tuple[list[int], list[int]]:
    given = np.asarray(axes) if not isinstance(axes, list | tuple) else axes
    if isinstance(given, np.ndarray) and given.ndim == 0:
        count = int(given)
        if count > a.ndim or count < 0:
            raise Refused(
                ValueError(f"`axes` must not be larger than the number of dimensions of tensor {a}")
            )
        return list(range(a.ndim - count, a.ndim)), list(range(count))
    if len(given) != 2:
        raise Refused(ValueError("`axes` must be an integer or have length 2."))
    parts = [[int(x) for x in np.asarray(part).reshape(-1)] for part in given]
    if len(parts[0]) != len(parts[1]):
        raise Refused(ValueError(f"Different number of contraction axes `a` and `b`, {given}."))
    return parts[0], parts[1]


@op("linalg.matvec", "a b", op="MatMul", same=True, kinds="float complex int", pairing=pair_typed)
def matvec(
    a: Array, b: Array, transpose_a: bool = False, adjoint_a: bool = False,
    a_is_sparse: bool = False, b_is_sparse: bool = False,
) -> Array:  # fmt: skip
    """Multiply matrices by vectors.

    Example: `tf.linalg.matvec(r(2, 3), r(3))`.
    """
    if a.ndim < 2 or b.ndim < 1:
        raise ValueError("a must be a matrix, or a stack of them, and b a vector")
    if transpose_a or adjoint_a:
        a = jnp.swapaxes(jnp.conj(a) if adjoint_a else a, -1, -2)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"Matrix size-incompatible: In[0]: {format_shape(a)}, "
            f"In[1]: {format_shape(b[..., None])}"
        )
    return jnp.matmul(a, b[..., None])[..., 0]


_SUBSCRIPTS = re.compile(r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*")


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Multiply and add up in Einstein's notation.

    Args:
        equation: like "ij,jk->ik", or "...i,i->..." for any axes before the last one.
        *inputs: the tensors, of one type.
        **kwargs: `optimize` is how the order is found: "greedy" (the default), "optimal" or
            "auto"; `name` is of no effect.

    Raises:
        ValueError: when the equation is wrong.
        InvalidArgumentError: when sizes do not fit.

    >>> einsum("ij,j->i", [[1.0, 2.0]], [3.0, 4.0])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([11.], dtype=float32)>
    """
    arrays = match_dtypes(inputs, "Einsum")
    optimize = kwargs.pop("optimize", "greedy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"Invalid keyword arguments for `einsum`: {', '.join(sorted(kwargs))}")
    _check_equation(equation, arrays)
    try:
        made = jnp.einsum(equation, *arrays, optimize="auto" if optimize is True else optimize)
    except (ValueError, TypeError) as error:
        raise refused(str(error), "Einsum") from error
    return Tensor(made.astype(arrays[0].dtype))


def _check_equation(equation: str, arrays: Sequence[Array]) -> None:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not all(map(_SUBSCRIPTS.fullmatch, [*terms, right])):
        raise ValueError(f"Subscripts have incorrect format: {equation}")
    if len(terms) != len(arrays):
        raise ValueError(
            f"Got {len(arrays)} inputs for equation {equation!r}, expecting {len(terms)}"
        )
    for term, array in zip(terms, arrays, strict=True):
        if arrow and "..." in term and "..." not in right and array.ndim > len(term) - 3:
            raise ValueError(f"Output subscripts lack the ellipsis of the inputs: {equation}")
    unknown = sorted(set(right) - set(left) - set(".")) if arrow else []
    if unknown:
        raise ValueError(
            f"Output subscripts contain the label {unknown[0]} not present in the input subscripts."
        )
