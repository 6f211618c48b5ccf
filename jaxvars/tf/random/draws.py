"""What random values `tf.random` draws, by TensorFlow's rules for shapes, types and errors.

Each function takes `source`: a start (`random/bits.py`), or a function that returns one when it is
passed how many values, which is called once, when everything else has been found to be right.

Rules this file keeps:
- the shape is that of the noise; the parameters of normal values broadcast with it, and the axes
  of the parameters of counts come after it;
- derivatives go to the parameters;
- uniform and normal values, integers and classes are TensorFlow's for the same start; what is
  drawn by trial, as counts are, and shuffled, is by `jax.random`, with a key made of the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.random import draws as core
from jaxvars.random.seeds import as_shape, unseen
from jaxvars.tf.random import bits as bits
from jaxvars.tf.tensors import static as _static
from jaxvars.tf.tensors.convert import is_text, to_array
from jaxvars.tf.tensors.dtypes import DType, as_dtype
from jaxvars.tf.tensors.shapes import TensorShape
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.tracing import context
from jaxvars.typing import Array, Value

Source: TypeAlias = Any

PLAIN = ("float16", "bfloat16", "float32", "float64", "int32", "int64")
WIDE = (*PLAIN, "uint32", "uint64")


def _resolve_source(source: Source, count: int) -> Array:
    """Return the start for some values."""
    return unseen(lambda: source(count)) if callable(source) else source


def _draw(draw: Any, source: Source, size: Any, kind: DType, *bounds: Array) -> Array:
    """Return what a function of `random/bits.py` draws."""
    start = _resolve_source(source, math.prod(size))
    return unseen(lambda: draw(start, *bounds, size, kind.dtype))


def key(source: Source, size: Sequence[int]) -> Array:
    """Return a key of `jax.random` for what is drawn by trial."""
    start = _resolve_source(source, math.prod(size))
    return unseen(lambda: bits.key_of(jnp.asarray(start)))


def sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape, which may be a tensor, as integers."""
    if isinstance(shape, TensorShape):
        return _static.not_too_many(tuple(shape))
    if isinstance(shape, list | tuple):
        found = _static.ints(shape, "a shape")
        if any(type(size) is int and size < 0 for size in found):
            raise refused(f"Dimensions of a shape must be >= 0: {list(found)}")
        return _static.not_too_many(found)
    array = to_array(shape)
    if _static.is_size(array):
        return _static.ints(array, "a shape")
    known = as_shape(np.asarray(array) if _static.is_known(array) else array)
    return _static.not_too_many(known)


def _number(value: Any, kind: DType) -> Value:
    """Return a parameter as an array; a number as one that need not be sent."""
    is_plain = type(value) in (int, float) and kind.is_floating
    return np.asarray(value, kind.dtype) if is_plain else to_array(value, kind)


def _broadcast(size: tuple[int, ...], parameters: Sequence[Array], op: str) -> None:
    for other in parameters:
        try:
            jnp.broadcast_shapes(size, other.shape)
        except ValueError:
            message = f"Incompatible shapes: {list(size)} vs. {list(other.shape)}"
            raise refused(message, op) from None


# ---------------------------------------------------------------- values
def normal(source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    """Draw normally distributed values."""
    return _draw_scaled(bits.normal, source, shape, mean, stddev, dtype)


def truncated_normal(source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
    """Draw normally distributed values within two deviations of the mean."""
    return _draw_scaled(bits.truncated_normal, source, shape, mean, stddev, dtype)


def _draw_scaled(
    draw: Any, source: Source, shape: Any, mean: Any, stddev: Any, dtype: Any
) -> Tensor:
    kind = as_dtype(dtype)
    middle, deviation = _number(mean, kind), _number(stddev, kind)
    size = sizes(shape)
    _broadcast(size, (middle, deviation), "AddV2")
    if not kind.is_floating:
        raise TypeError(
            f"Value passed to parameter 'dtype' has DataType {kind.name} not in list of allowed "
            "values: float16, bfloat16, float32, float64"
        )
    noise = _draw(draw, source, size, kind)
    if type(mean) is float and type(stddev) is float and (mean, stddev) == (0.0, 1.0):
        return Tensor(noise)
    return Tensor(_scale(noise, deviation, middle))


@jax.jit
def _scale(noise: Array, deviation: Array, middle: Array) -> Array:
    return noise * deviation + middle


def uniform(source: Source, shape: Any, minval: Any, maxval: Any, dtype: DType) -> Tensor:
    """Draw uniformly distributed values; all that an integer type has if there are no bounds."""
    size = sizes(shape)
    if not dtype.is_integer:
        low = _number(0 if minval is None else minval, dtype)
        high = _number(1 if maxval is None else maxval, dtype)
        _broadcast(size, (low, high), "AddV2")
        noise = _draw(bits.uniform, source, size, dtype)
        is_plain = maxval is None and isinstance(minval, int | float) and minval == 0
        return Tensor(noise if is_plain else _between(noise, low, high))
    if minval is None:
        return Tensor(_draw(bits.full_int, source, size, dtype))
    low, high = to_array(minval, dtype), to_array(maxval, dtype)
    _check_range(low, high, is_empty=0 in size)
    return Tensor(_draw(bits.between, source, size, dtype, low, high))


@jax.jit
def _between(noise: Array, low: Array, high: Array) -> Array:
    found = noise * (high - low) + low
    is_right = (found < high) | (high < low)  # it may have been rounded up to the end
    return jnp.where(is_right, found, low)


def _check_range(low: Array, high: Array, *, is_empty: bool) -> None:
    for name, bound in (("minval", low), ("maxval", high)):
        if bound.ndim:
            shape = list(bound.shape)
            raise refused(
                f"{name} must be 0-D, got shape {shape}: {name} must be a scalar; got a tensor of "
                f"shape {shape}",
                "RandomUniformInt",
            )
    if is_empty or context.is_tracer(low) or context.is_tracer(high):
        return
    if np.any(np.asarray(low) >= np.asarray(high)):
        raise refused(f"Need minval < maxval, got {low} >= {high}", "RandomUniformInt")


# ---------------------------------------------------------------- counts
def poisson(source: Source, size: tuple[int, ...], lam: Array, dtype: Any) -> Tensor:
    """Draw Poisson distributed counts, of a whole shape."""
    check_end(size, lam.shape, "RandomPoissonV2")
    kind = as_dtype(dtype)
    made = core.poisson(key(source, size), size, lam, kind.dtype)
    if kind.is_floating:
        made = jnp.where(jnp.isposinf(lam), jnp.asarray(np.inf, kind.dtype), made)
    return Tensor(jnp.maximum(made, 0))  # JAX has -1 for means below 0


def gamma(source: Source, size: tuple[int, ...], alpha: Array, beta: Array, kind: DType) -> Tensor:
    """Draw gamma distributed values, of a whole shape."""
    check_end(size, np.broadcast_shapes(alpha.shape, beta.shape), "StatelessRandomGammaV3")
    noise = core.gamma(key(source, size), size, alpha, 1.0, kind.dtype)
    return Tensor(jnp.maximum(noise / beta, jnp.finfo(kind.dtype).tiny))


def binomial(source: Source, shape: Any, counts: Any, probs: Any, dtype: Any) -> Tensor:
    """Draw how many of some trials succeed."""
    size = sizes(shape)
    number, p = to_array(counts), to_array(probs)
    check_end(size, np.broadcast_shapes(number.shape, p.shape), "StatelessRandomBinomial")
    found = core.binomial(key(source, size), size, number, p, "float32")
    return Tensor(found.astype(as_dtype(dtype).dtype))


def check_end(size: tuple[int, ...], parameters: tuple[int, ...], op: str) -> None:
    """Raise InvalidArgumentError unless a shape ends with that of the parameters."""
    if parameters and size[-len(parameters) :] != parameters:
        raise refused("Shape passed in must end with broadcasted shape.", op)


# ---------------------------------------------------------------- choices
def categorical(source: Source, logits: Any, num_samples: Any, dtype: Any) -> Tensor:
    """Draw classes for each row of logits."""
    rows = to_array(logits)
    if rows.ndim != 2:
        raise refused(f"logits should be a matrix, got shape {list(rows.shape)}", "Multinomial")
    if not rows.shape[1]:
        raise refused("num_classes should be positive, got 0", "Multinomial")
    kind = as_dtype("int64" if dtype is None else dtype)
    count = int(num_samples)
    drawn = len(rows) * -(-count // 4) * 8  # TensorFlow reserves fours, twice
    start = _resolve_source(source, drawn)
    return Tensor(unseen(lambda: bits.categorical(start, rows, count, kind.dtype)))


def shuffle(source: Source, value: Any) -> Tensor:
    """Return the slices of a tensor along the first axis, in random order."""
    array = to_array(value)
    if array.ndim == 0 or math.prod(array.shape) == 0:
        return Tensor(array)
    if is_text(array):
        return Tensor(array[np.asarray(shuffle(source, np.arange(len(array)))._array)])
    return Tensor(core.shuffle(key(source, array.shape[:1]), array))
