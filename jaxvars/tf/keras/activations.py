"""`tf.keras.activations`: functions of one tensor.

>>> from jaxvars import tf
>>> tf.keras.activations.relu([-1.0, 2.0], negative_slope=0.5).numpy().tolist()
[-0.5, 2.0]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.tf.keras.adapter.facade import elsewhere, revived
from jaxvars.tf.listing import lister
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


def _relu(
    x: Array, negative_slope: float = 0.0, max_value: Any = None, threshold: float = 0.0
) -> Array:
    below = negative_slope * (x - threshold) if negative_slope else jnp.zeros_like(x)
    found = jnp.where(x > threshold, x, below).astype(x.dtype)
    if max_value is None:
        return found
    largest = jnp.asarray(max_value, x.dtype)
    return jnp.where(found > largest, largest, found)


def _gelu(x: Array, approximate: bool = False) -> Array:
    return jax.nn.gelu(x, approximate=approximate)


def _softmax(x: Array, axis: Any = -1) -> Array:
    return jax.nn.softmax(x, axis=axis)


def _hard_shrink(x: Array, threshold: float = 0.5) -> Array:
    return jnp.where(jnp.abs(x) > threshold, x, 0.0)


def _soft_shrink(x: Array, threshold: float = 0.5) -> Array:
    moved = jnp.where(x < -threshold, x + threshold, 0.0)
    return jnp.where(x > threshold, x - threshold, moved)


def _threshold(x: Array, threshold: float, default_value: float) -> Array:
    return jnp.where(x > threshold, x, default_value)


def _sparsemax(x: Array, axis: int = -1) -> Array:
    """Return the nearest point of the simplex (Martins and Astudillo, 2016)."""
    scores = jnp.moveaxis(x, axis, -1)
    largest = jnp.flip(jnp.sort(scores, axis=-1), axis=-1)
    ranks = jnp.arange(1, largest.shape[-1] + 1, dtype=x.dtype)
    sums = jnp.cumsum(largest, axis=-1)
    count = jnp.sum(1 + ranks * largest > sums, axis=-1, keepdims=True)
    threshold = (jnp.take_along_axis(sums, count - 1, -1) - 1) / count.astype(x.dtype)
    return jnp.moveaxis(jnp.maximum(scores - threshold, 0), -1, axis)


def _leaky_relu(x: Array, negative_slope: float = 0.2) -> Array:
    return jnp.where(x > 0, x, negative_slope * x)


def _selu(x: Array) -> Array:
    return _SELU_SCALE * jnp.where(x >= 0, x, _SELU_ALPHA * jnp.expm1(jnp.where(x >= 0, 0, x)))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _squareplus(x: Array, b: float = 4) -> Array:
    return jax.nn.squareplus(x, b)


_KNOWN: dict[str, Callable[..., Array]] = {
    "relu": _relu, "gelu": _gelu, "softmax": _softmax, "hard_shrink": _hard_shrink,
    "soft_shrink": _soft_shrink, "threshold": _threshold, "squareplus": _squareplus,
    "sparsemax": _sparsemax,
    "celu": jax.nn.celu, "elu": jax.nn.elu, "exponential": jnp.exp, "glu": jax.nn.glu,
    "hard_sigmoid": jax.nn.hard_sigmoid, "hard_silu": jax.nn.hard_silu,
    "hard_swish": jax.nn.hard_silu, "hard_tanh": jax.nn.hard_tanh,
    "leaky_relu": _leaky_relu, "linear": lambda x: x, "log_sigmoid": jax.nn.log_sigmoid,
    "log_softmax": jax.nn.log_softmax, "mish": jax.nn.mish, "relu6": jax.nn.relu6,
    "selu": _selu, "sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu, "swish": jax.nn.silu,
    "softplus": jax.nn.softplus, "softsign": jax.nn.soft_sign, "tanh": jnp.tanh,
    "sparse_plus": jax.nn.sparse_plus, "sparse_sigmoid": jax.nn.sparse_sigmoid,
    "tanh_shrink": lambda x: x - jnp.tanh(x),
}  # fmt: skip


def get(identifier: Any) -> Any:
    """Return an activation by name, or as it is; the identity for None.

    >>> get("relu")([-1.0]).numpy().tolist()
    [0.0]
    """
    if identifier is None:
        return __getattr__("linear")
    if callable(identifier):
        return identifier
    if identifier not in _KNOWN:
        raise ValueError(f"Could not interpret activation function identifier: {identifier}")
    return __getattr__(identifier)


def serialize(activation: Any) -> str:
    """Return the name of an activation."""
    return activation.__name__


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """Return the activation of a name."""
    return revived(config, custom_objects, get)


def _made(name: str, fn: Callable[..., Array]) -> Callable[..., Tensor]:
    @functools.wraps(fn)
    def call(x: Any, *args: Any, **kwargs: Any) -> Tensor:
        if "negative_slope" in kwargs and name == "leaky_relu":
            args = (kwargs.pop("negative_slope"),)
        elif name == "leaky_relu" and not args:
            args = (0.2,)
        return Tensor(fn(to_array(x), *args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__module__ = __name__
    call.__doc__ = f"Return {name} of each element of a tensor."
    return call


def __getattr__(name: str) -> Any:
    if name in globals():
        return globals()[name]
    if name not in _KNOWN:
        return elsewhere("activations", name, _KNOWN)
    globals()[name] = _made(name, _KNOWN[name])
    return globals()[name]


__dir__ = lister(__name__, _KNOWN)
