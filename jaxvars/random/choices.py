"""Random choices from a seed: classes, permutations, elements."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import DtypeError, ShapeError
from jaxvars.random.seeds import Shape, as_shape, key_of, known, unseen
from jaxvars.random.stateless import _draws
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.tensor import as_array, as_dtype, refuse_masked
from jaxvars.typing import Array, DTypeLike


@_draws(dtype="of the result.")
def stateless_categorical(
    logits: Any, num_samples: int, seed: Any, dtype: DTypeLike = "int32"
) -> Array:
    """Return classes, drawn with probabilities `softmax(logits)`.

    Returns:
        Numbers of classes, of shape [..., num_samples].

    Raises:
        ShapeError: when the logits are a scalar.

    >>> stateless_categorical([[0.0, -jnp.inf]], 3, seed=7).tolist()
    [[0, 0, 0]]
    """
    rows = as_array(unwrap(logits))
    if not rows.ndim:
        raise ShapeError("logits have a last axis, the classes; these are a scalar.")
    size, kind = (*as_shape(num_samples), *rows.shape[:-1]), as_dtype(dtype)
    if jnp.issubdtype(kind, jnp.integer) and rows.shape[-1] - 1 > jnp.iinfo(kind).max:
        raise DtypeError(f"{kind} does not hold {rows.shape[-1]} classes: ask for a wider dtype.")
    logits = rows.astype(jnp.promote_types(rows.dtype, jnp.float32))  # few bits, few classes
    found = unseen(lambda: jax.random.categorical(key_of(seed), logits, shape=size))
    return jnp.moveaxis(found, 0, -1).astype(kind)


@_draws()
def stateless_permutation(x: Any, seed: Any, axis: int = 0) -> Array:
    """Return `x` in random order, or the integers below it.

    Raises:
        ShapeError: when there is no such axis.

    >>> sorted(stateless_permutation(4, seed=7).tolist())
    [0, 1, 2, 3]
    """
    x = unwrap(x)
    values = x if isinstance(x, int) else as_array(x)
    sizes = (x,) if isinstance(x, int) or not np.ndim(values) else np.shape(values)
    if not -len(sizes) <= axis < len(sizes):
        raise ShapeError(f"There is no axis {axis} in shape {sizes}.")
    order = unseen(lambda: jax.random.permutation(key_of(seed), sizes[axis]))
    return order if not np.ndim(values) else jnp.take(values, order, axis=axis)


@_draws()
def stateless_shuffle(value: Any, seed: Any, axis: int = 0) -> Array:
    """Return the slices of an array along an axis in random order.

    Raises:
        ShapeError: when there is no such axis.

    >>> sorted(stateless_shuffle([3, 4, 5], seed=7).tolist())
    [3, 4, 5]
    """
    array = as_array(unwrap(value))
    if not array.ndim:
        raise ShapeError("A scalar cannot be shuffled; permutation(n) gives the integers below n.")
    return stateless_permutation(array, seed, axis)


@_draws(
    shape="of the result, less the shape of a slice.",
    p="probabilities, as many as there are elements; all the same when None.",
)
def stateless_choice(
    a: Any, shape: Shape = (), *, seed: Any, replace: bool = True, p: Any = None
) -> Array:
    """Return elements of an array, or integers below a number, drawn at random.

    Raises:
        ValueError: when there are too few elements to draw from without replacing them.
        ShapeError: when there are not as many probabilities as elements.

    >>> sorted(stateless_choice(3, 3, seed=7, replace=False).tolist())
    [0, 1, 2]
    """
    a, p, size = unwrap(a), unwrap(p), as_shape(shape)
    count = int(a) if np.ndim(a) == 0 else len(a)
    if p is not None and np.shape(p) != (count,):
        raise ShapeError(f"p has shape {np.shape(p)}, and there are {count} elements to draw from.")
    if count < (1 if replace else int(np.prod(size))) and np.prod(size):
        raise ValueError(
            f"Cannot draw {int(np.prod(size))} of {count} elements"
            f"{'' if replace else ' without replacing them; say replace=True, or draw fewer'}."
        )
    refuse_masked([p], "the probabilities of a choice")
    values = count if np.ndim(a) == 0 else as_array(a)
    weights = None if p is None else jnp.asarray(p, jnp.float32)
    if weights is not None and known(weights):
        _check_weights(np.asarray(weights), 1 if replace else math.prod(size))
    index = unseen(lambda: jax.random.choice(key_of(seed), count, size, replace, weights))
    return index if isinstance(values, int) else jnp.take(values, index, axis=0)


def _check_weights(weights: np.ndarray, count: int) -> None:
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"p are weights from 0 on, not {weights}.")
    if (weights > 0).sum() < count:
        raise ValueError(f"Only {(weights > 0).sum()} elements have a p above 0, of {count}.")
