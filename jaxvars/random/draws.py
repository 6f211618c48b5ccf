"""What `Generator` (`random/generator.py`) and initializers draw: functions of a key.

The key is one of `jax.random`, a seed that one is made of, or a function that returns one, which is
called when everything else has been found to be right. The values are `jax.random`'s.

Rules this file keeps:
- `shape` is the shape of the result, and parameters broadcast to it (`random/seeds.py` checks
  them);
- the default dtypes are 32-bit, whatever JAX's own are, so that a stream does not depend on them;
- random bits are drawn unseen by tapes, which follow the parameters only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ParamSpec

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.docstrings import complete_by
from jaxvars.errors import DtypeError, ShapeError
from jaxvars.random.seeds import (
    Shape,
    as_shape,
    check_dtype,
    check_fit,
    check_probability,
    check_range,
    floating,
    is_number,
    key_of,
    known,
    numbers,
    unseen,
)
from jaxvars.tensors.array_like import unwrap
from jaxvars.tensors.quick_jit import QuickJit, draws_few
from jaxvars.tensors.tensor import as_array, as_dtype, refuse_masked
from jaxvars.tracing import context
from jaxvars.typing import Array, DTypeLike

P = ParamSpec("P")

_DOCS = {
    "shape": "of the result.",
    "mean": "broadcasts to the shape.",
    "stddev": "the standard deviation; broadcasts to the shape.",
    "dtype": "floating.",
    "minval": "broadcasts to the shape.",
    "maxval": "the same; 1 for floats when None.",
    "p": "the probability; broadcasts to the shape.",
    "counts": "broadcasts to the shape.",
    "probs": "the same.",
    "lam": "the mean; broadcasts to the shape.",
    "rate": "broadcasts to the shape.",
    "alpha": "the shape parameter; broadcasts to the shape.",
    "beta": "the rate; broadcasts to the shape.",
    "logits": "of shape [..., classes].",
    "num_samples": "how many to draw for each row.",
    "x": "an array, of which the slices along the axis are reordered; or an integer.",
    "axis": "which axis.",
    "value": "an array, not a scalar.",
    "a": "an array, of which slices along the first axis are drawn; or an integer.",
    "replace": "whether one may be drawn twice.",
}


def _complete_draw(**docs: str) -> Callable[[Callable[P, Array]], Callable[P, Array]]:
    """Return a decorator that completes a docstring, and restores JAX's context afterwards."""

    def decorate(function: Callable[P, Array]) -> Callable[P, Array]:
        return context.restoring()(complete_by({**_DOCS, **docs})(function))

    return decorate


def quick_draw(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of a key, a shape and a dtype, that is compiled where it runs eagerly."""
    return QuickJit(function, function, draws_few, static_argnums=(1, 2))


quick_normal = quick_draw(lambda key, shape, dtype: jax.random.normal(key, shape, dtype))
_uniform = quick_draw(lambda key, shape, dtype: jax.random.uniform(key, shape, dtype))
quick_truncated_normal = quick_draw(
    lambda key, shape, dtype: jax.random.truncated_normal(key, -2, 2, shape, dtype)
)


@_complete_draw(dtype="floating or complex.")
def normal(
    key: Any, shape: Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = "float32"
) -> Array:
    """Draw normally distributed values.

    Raises:
        ShapeError: when a parameter does not broadcast to the shape.
        DtypeError: when the dtype is another one.
    """
    size, kind = as_shape(shape), check_dtype(dtype, jnp.inexact, "Normal values", "jnp.float32")
    return _scale(lambda: quick_normal(key_of(key), size, kind), mean, stddev, size)


@_complete_draw(stddev="the standard deviation before those further away are drawn again.")
def truncated_normal(
    key: Any, shape: Shape, mean: Any = 0.0, stddev: Any = 1.0, dtype: DTypeLike = "float32"
) -> Array:
    """Draw normally distributed values, none further from the mean than two `stddev`."""
    size, kind = as_shape(shape), floating(dtype, "Normal values")

    def draw() -> Array:
        return quick_truncated_normal(key_of(key), size, kind)

    return _scale(draw, mean, stddev, size)


def _scale(draw: Callable[[], Array], mean: Array, stddev: Array, size: tuple[int, ...]) -> Array:
    parameters = check_fit(size, mean=mean, stddev=stddev)
    noise = unseen(draw)
    if is_number(mean, 0) and is_number(stddev, 1):
        return noise
    mean, stddev = numbers(noise.dtype, parameters)
    return mean + stddev * noise


@_complete_draw(dtype="floating or integer.")
def uniform(
    key: Any, shape: Shape, minval: Any = 0, maxval: Any = None, dtype: DTypeLike = "float32"
) -> Array:
    """Draw uniformly distributed values: `minval <= x < maxval`.

    Raises:
        ValueError: when integers are asked for without a maxval, or the range is empty.
    """
    if jnp.issubdtype(as_dtype(dtype), jnp.integer):
        return randint(key, shape, minval, maxval, dtype)
    size, kind = as_shape(shape), floating(dtype, "Uniform values")
    maxval = 1 if maxval is None else maxval
    bounds = check_fit(size, minval=minval, maxval=maxval)
    noise = unseen(lambda: _uniform(key_of(key), size, kind))
    if is_number(minval, 0) and is_number(maxval, 1):
        return noise
    low, high = numbers(kind, bounds)
    width = high - low
    between = low * (1 - noise) + high * noise  # where the width is more than the dtype holds
    found = jnp.where(jnp.isfinite(width), low + width * noise, between)
    return jnp.where(found < high, found, low)  # it may have been rounded up


@_complete_draw(maxval="the same.", dtype="integer.")
def randint(key: Any, shape: Shape, minval: Any, maxval: Any, dtype: DTypeLike = "int32") -> Array:
    """Draw integers, each as likely as the others: `minval <= x < maxval`.

    Raises:
        ValueError: without a maxval, or when the range is empty.
    """
    size, kind = as_shape(shape), check_dtype(dtype, jnp.integer, "Integers", "jnp.int32")
    if maxval is None:
        raise ValueError(
            f"Integers need a maxval, one more than the largest: uniform({size}, maxval=10, "
            f"dtype='{kind}'). For all integers of a dtype use uniform_full_int."
        )
    low, high = check_fit(size, minval=minval, maxval=maxval)
    check_range(low, high, kind)
    return unseen(lambda: _integers(key_of(key), size, low, high, kind))


def _integers(key: Any, shape: tuple[int, ...], low: Array, high: Array, dtype: Any) -> Array:
    """Draw integers where the end of the range, one more than the largest, may have no array."""
    if dtype.itemsize < 4 or not known(low, high):
        return jax.random.randint(key, shape, low, high, dtype)
    start, end = np.asarray(low), np.asarray(high)
    least, largest = int(jnp.iinfo(dtype).min), int(jnp.iinfo(dtype).max)
    beyond, whole = end > largest, (end > largest) & (start <= least)
    first = np.where(beyond, np.maximum(start, least + 1) - 1, start).astype(dtype)
    drawn = jax.random.randint(key, shape, first, (end - beyond).astype(dtype), dtype)
    if beyond.any():
        drawn = jnp.where(beyond, drawn + 1, drawn)
    return jnp.where(whole, _full(key, shape, dtype), drawn) if whole.any() else drawn


@_complete_draw(dtype="integer.")
def uniform_full_int(key: Any, shape: Shape, dtype: DTypeLike = "uint32") -> Array:
    """Draw integers, each that the dtype can hold as likely as the others."""
    size, kind = as_shape(shape), check_dtype(dtype, jnp.integer, "Integers", "jnp.uint32")
    return unseen(lambda: _full(key_of(key), size, kind))


def _full(key: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    bits = jax.random.bits(key, shape, jnp.dtype(f"uint{8 * dtype.itemsize}"))
    return jax.lax.bitcast_convert_type(bits, dtype)


@_complete_draw(dtype="bool, or that of the ones and zeros.")
def bernoulli(key: Any, shape: Shape, p: Any = 0.5, dtype: DTypeLike = "bool") -> Array:
    """Draw True with probability `p`, else False.

    Raises:
        ValueError: when `p` is known and not between 0 and 1.
    """
    size = as_shape(shape)
    (p,) = check_fit(size, p=p)
    check_probability(p, "p")
    if getattr(p, "dtype", np.dtype(bool)).itemsize == 2:  # JAX draws in its dtype: too coarse
        p = p.astype(jnp.float32)
    return unseen(lambda: jax.random.bernoulli(key_of(key), p, size)).astype(as_dtype(dtype))


@_complete_draw(dtype="of the result.")
def binomial(key: Any, shape: Shape, counts: Any, probs: Any, dtype: DTypeLike = "int32") -> Array:
    """Draw how many of `counts` trials succeed, each with probability `probs`."""
    size = as_shape(shape)
    counts, probs = check_fit(size, counts=counts, probs=probs)
    check_probability(probs, "probs")
    counts, probs = numbers(jnp.float32, [counts, probs])
    found = unseen(lambda: jax.random.binomial(key_of(key), counts, probs, size))
    return found.astype(as_dtype(dtype))


@_complete_draw(dtype="of the result.")
def poisson(key: Any, shape: Shape, lam: Any, dtype: DTypeLike = "int32") -> Array:
    """Draw Poisson distributed counts.

    Differs from TensorFlow: the shape is that of the whole result, as everywhere here.
    """
    size = as_shape(shape)
    (lam,) = numbers(jnp.float32, check_fit(size, lam=lam))
    return unseen(lambda: jax.random.poisson(key_of(key), lam, size)).astype(as_dtype(dtype))


@_complete_draw()
def exponential(key: Any, shape: Shape, rate: Any = 1.0, dtype: DTypeLike = "float32") -> Array:
    """Draw exponentially distributed values, of mean `1 / rate`."""
    size, kind = as_shape(shape), floating(dtype, "Exponential values")
    (rate,) = numbers(kind, check_fit(size, rate=rate))
    return unseen(lambda: jax.random.exponential(key_of(key), size, kind)) / rate


@_complete_draw()
def gamma(
    key: Any, shape: Shape, alpha: Any, beta: Any = 1.0, dtype: DTypeLike = "float32"
) -> Array:
    """Draw gamma distributed values, of mean `alpha / beta`.

    Can be differentiated by both parameters.

    Differs from TensorFlow: the shape is that of the whole result, as everywhere here.
    """
    size, kind = as_shape(shape), floating(dtype, "Gamma distributed values")
    alpha, beta = numbers(kind, check_fit(size, alpha=alpha, beta=beta))
    return jax.random.gamma(key_of(key), alpha, size, kind) / beta


# ---------------------------------------------------------------- choices
@_complete_draw(dtype="of the result.")
def categorical(key: Any, logits: Any, num_samples: int, dtype: DTypeLike = "int32") -> Array:
    """Draw classes with probabilities `softmax(logits)`.

    Returns:
        Numbers of classes, of shape [..., num_samples].

    Raises:
        ShapeError: when the logits are a scalar.
        DtypeError: when the dtype cannot hold all classes.
    """
    rows = as_array(unwrap(logits))
    if not rows.ndim:
        raise ShapeError("logits have a last axis, the classes; these are a scalar.")
    size, kind = (*as_shape(num_samples), *rows.shape[:-1]), as_dtype(dtype)
    if jnp.issubdtype(kind, jnp.integer) and rows.shape[-1] - 1 > jnp.iinfo(kind).max:
        raise DtypeError(f"{kind} does not hold {rows.shape[-1]} classes: ask for a wider dtype.")
    logits = rows.astype(jnp.promote_types(rows.dtype, jnp.float32))  # few bits, few classes
    found = unseen(lambda: jax.random.categorical(key_of(key), logits, shape=size))
    return jnp.moveaxis(found, 0, -1).astype(kind)


@_complete_draw()
def permutation(key: Any, x: Any, axis: int = 0) -> Array:
    """Return `x` in random order, or the integers below it.

    Raises:
        ShapeError: for an axis that does not exist.
    """
    x = unwrap(x)
    values = x if isinstance(x, int) else as_array(x)
    sizes = (x,) if isinstance(x, int) or not np.ndim(values) else np.shape(values)
    if not -len(sizes) <= axis < len(sizes):
        raise ShapeError(f"Axis {axis} does not exist in shape {sizes}.")
    order = unseen(lambda: jax.random.permutation(key_of(key), sizes[axis]))
    return order if not np.ndim(values) else jnp.take(values, order, axis=axis)


@_complete_draw()
def shuffle(key: Any, value: Any, axis: int = 0) -> Array:
    """Return the slices of an array along an axis in random order.

    Raises:
        ShapeError: for an axis that does not exist.
    """
    array = as_array(unwrap(value))
    if not array.ndim:
        raise ShapeError("A scalar cannot be shuffled; permutation(n) gives the integers below n.")
    return permutation(key, array, axis)


@_complete_draw(
    shape="of the result, less the shape of a slice.",
    p="probabilities, as many as there are elements; all the same when None.",
)
def choice(key: Any, a: Any, shape: Shape = (), *, replace: bool = True, p: Any = None) -> Array:
    """Draw elements of an array, or integers below a number.

    Raises:
        ValueError: when there are too few elements to draw from without replacing them.
        ShapeError: when there are not as many probabilities as elements.
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
    index = unseen(lambda: jax.random.choice(key_of(key), count, size, replace, weights))
    return index if isinstance(values, int) else jnp.take(values, index, axis=0)


def _check_weights(weights: np.ndarray, count: int) -> None:
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"p are weights from 0 on, not {weights}.")
    if (weights > 0).sum() < count:
        raise ValueError(f"Only {(weights > 0).sum()} elements have a p above 0, of {count}.")
