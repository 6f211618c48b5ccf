"""What `tf.keras` has instead of Keras's own, and besides it.

Keras on JAX has other slopes than TensorFlow at corners (`abs`, `relu`, `selu`), which sparse
weights and dead units meet, a `tanh` of float32 only, and a `sparsemax` that does not add up to 1.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxvars.tf.arrays.constant import convert_to_tensor
from jaxvars.tf.keras.adapter.keras import keras
from jaxvars.tf.keras.adapter.logits import sigmoid, softmax
from jaxvars.tf.math.elements import magnitude
from jaxvars.tf.random.streams import seeds_of, set_seed
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.dtypes import as_dtype
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


# ---------------------------------------------------------------- activations
def _activation(fn: Callable[..., Array]) -> Callable[..., Any]:
    """Return a function of arrays as one of Tensors; of symbolic tensors it is Keras's."""

    @functools.wraps(fn)
    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(x, keras().KerasTensor):
            return getattr(keras().activations, fn.__name__)(x, *args, **kwargs)
        return Tensor(fn(to_array(x), *args, **kwargs))

    return call


@_activation
def relu(
    x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Any:
    """Return x above a threshold, and a multiple of the difference to it below.

    Args:
        x: a tensor.
        negative_slope: the multiple.
        max_value: the largest value; any when None.
        threshold: the threshold.

    >>> relu([-1.0, 2.0], negative_slope=0.5).numpy().tolist()
    [-0.5, 2.0]
    """
    below = negative_slope * (x - threshold) if negative_slope else jnp.zeros_like(x)
    is_above = x > threshold if threshold else ~(x <= 0)  # NaN stays
    found = jnp.where(is_above, x, below).astype(x.dtype)
    if max_value is None:
        return found
    largest = jnp.asarray(max_value, x.dtype)
    is_cut = found >= largest if max_value == 6 and not threshold else found > largest  # as relu6
    return jnp.where(is_cut, largest, found)


@_activation
def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """Return x where it is positive, else a multiple of it.

    >>> leaky_relu([-1.0, 2.0], negative_slope=0.5).numpy().tolist()
    [-0.5, 2.0]
    """
    return jnp.where(x > 0, x, negative_slope * x)


@_activation
def selu(x: Any) -> Any:
    """Return the scaled exponential linear unit, which keeps mean 0 and variance 1.

    >>> selu([0.0, 1.0]).numpy().tolist()
    [0.0, 1.0507010221481323]
    """
    falling = _SELU_ALPHA * jnp.expm1(jnp.where(x >= 0, 0, x))
    return _SELU_SCALE * jnp.where(x >= 0, x, falling)


@_activation
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent, in the type of x.

    >>> tanh([0.0]).numpy().tolist()
    [0.0]
    """
    return jnp.tanh(x)


@_activation
def sparsemax(x: Any, axis: int = -1) -> Any:
    """Return the nearest point of the simplex (Martins and Astudillo, 2016).

    Args:
        x: a tensor.
        axis: along which the result adds up to 1.

    >>> sparsemax([2.0, 1.5, 0.0]).numpy().tolist()
    [0.75, 0.25, 0.0]
    """
    scores = jnp.moveaxis(x, axis, -1)
    largest = jnp.flip(jnp.sort(scores, axis=-1), axis=-1)
    ranks = jnp.arange(1, largest.shape[-1] + 1, dtype=scores.dtype)
    sums = jnp.cumsum(largest, axis=-1)
    count = jnp.sum(1 + ranks * largest > sums, axis=-1, keepdims=True)
    threshold = (jnp.take_along_axis(sums, count - 1, -1) - 1) / count.astype(scores.dtype)
    return jnp.moveaxis(jnp.maximum(scores - threshold, 0), -1, axis)


# ---------------------------------------------------------------- backend and utils
def cast_to_floatx(x: Any) -> Any:
    """Return a tensor or array in the type of `tf.keras.backend.floatx`."""
    dtype = as_dtype(floatx()).dtype
    return Tensor(x._array.astype(dtype)) if isinstance(x, Tensor) else np.asarray(x, dtype=dtype)


def floatx() -> str:
    """Return the name of the type of floats where none is given; Keras is not imported for it."""
    known = sys.modules.get("keras")
    return "float32" if known is None else known.backend.floatx()


def get_value(x: Any) -> Any:
    """Return the value of a variable or tensor as a NumPy array."""
    return convert_to_tensor(x).numpy()


def set_value(x: Any, value: Any) -> None:
    """Assign a variable."""
    x.assign(to_array(value).astype(as_dtype(x.dtype).dtype))


def set_random_seed(seed: int) -> None:
    """Set the seeds of `tf.random`, Keras, NumPy and Python.

    Raises:
        ValueError: when the seed is not an integer.

    >>> set_random_seed(7)
    """
    if not isinstance(seed, int):
        raise ValueError(
            f"Expected `seed` argument to be an integer. Received: seed={seed} (of type "
            f"{type(seed)})"
        )
    if "keras" in sys.modules:
        sys.modules["keras"].utils.set_random_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - programs draw from it
    set_seed(seed)


_ACTIVATIONS = relu, leaky_relu, selu, tanh, sparsemax, *map(_activation, (sigmoid, softmax))

ADDED: dict[str, Callable[..., Any]] = {
    **{f"activations.{fn.__name__}": fn for fn in _ACTIVATIONS},
    **{f"backend.{fn.__name__}": fn for fn in (cast_to_floatx, get_value, set_value)},
    "utils.set_random_seed": set_random_seed,
}
"""Functions by their names behind `tf.keras`."""


# ---------------------------------------------------------------- methods
def _sum_sizes(self: Any, x: Any) -> Array:
    """Return the penalty of a weight: the sum of sizes and that of squares, each by its factor."""
    weight = to_array(x)
    return self.l1 * jnp.sum(magnitude(weight)) + getattr(self, "l2", 0) * jnp.sum(weight**2)


def _compare_rows(self: Any, x: Any) -> Array:
    """Return the penalty of a matrix: the mean size of the cosines between rows, or columns."""
    weights = to_array(x)
    if weights.ndim != 2:
        raise ValueError(f"Inputs to OrthogonalRegularizer must have rank 2. Received: {x}")
    rows = weights if self.mode == "rows" else weights.T
    lengths = jnp.sqrt(jnp.maximum(jnp.sum(rows**2, 1, keepdims=True), 1e-12))
    cosines = (rows / lengths) @ (rows / lengths).T
    others = jnp.sum(magnitude(cosines * (1 - jnp.eye(len(rows), dtype=rows.dtype))))
    pairs = len(rows) * (len(rows) - 1.0) / 2.0
    return self.factor * 0.5 * others / pairs


def as_array(value: Any) -> Any:
    """Return a number or list as an array by TensorFlow's types: Python's floats are float32."""
    return to_array(value) if isinstance(value, int | float | list | tuple) else value


CALLS: dict[str, Callable[..., Array]] = {
    "keras.regularizers.L1": _sum_sizes,
    "keras.regularizers.L1L2": _sum_sizes,
    "keras.regularizers.OrthogonalRegularizer": _compare_rows,
}
"""What stands for the `__call__` of Keras's classes, of arrays."""


def follow_seed(initializer: Any) -> None:
    """Have an initializer without a seed follow `tf.random.set_seed`, and not Python's `random`."""
    if getattr(initializer, "_init_seed", 0) is None:
        first, second = seeds_of(None)
        initializer.seed = (first * 1_000_003 + second) % 2**31
