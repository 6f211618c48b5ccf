"""`tf.nn.dropout`, which draws from the streams of `tf.random`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.tf.random import draws as draws
from jaxvars.tf.random.stateless import start_of
from jaxvars.tf.random.streams import source
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor, TensorLike
from jaxvars.typing import Array


def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None
) -> Tensor:
    """Set elements to zero at random, and scale up the others so that the sum stays.

    Args:
        x: floating.
        rate: the part to set to zero, from 0 to below 1.
        noise_shape: what is drawn, 1 where an axis is kept or dropped as a whole; all when None.
        seed: of this operation; see `tf.random`.
        name: of no effect.

    Raises:
        ValueError: when the rate is out of range, or the tensor is of integers.

    >>> dropout([1.0, 2.0], 0.0).numpy().tolist()
    [1.0, 2.0]
    """
    return _dropped(x, rate, noise_shape, source("RandomUniform float32", seed))


def stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = "auto_select", noise_shape: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Set elements to zero at random, by a seed of two integers; see `dropout`."""
    return _dropped(x, rate, noise_shape, start_of(seed, rng_alg))


def _dropped(x: Any, rate: Any, noise_shape: Any, key: Any) -> Tensor:
    array = to_array(x)
    if array.dtype.kind in "iub":
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x.dtype="
            f"{array.dtype.name}"
        )
    is_number = not isinstance(rate, TensorLike | jax.Array)
    if is_number and not 0 <= rate < 1:
        raise ValueError(
            f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}"
        )
    if is_number and rate == 0:
        return Tensor(array)
    part = jnp.asarray(rate if is_number else to_array(rate), array.dtype)
    noise = draws.uniform(key, _noise(array, noise_shape), 0, None, draws.as_dtype("float32"))
    kept = noise._array >= part.astype(jnp.float32)
    return Tensor(jnp.where(kept, array / (1 - part), jnp.zeros_like(array)))


def _noise(array: Array, noise_shape: Any) -> tuple[int, ...]:
    if noise_shape is None:
        return array.shape
    given = list(noise_shape) if isinstance(noise_shape, list | tuple) else draws.sizes(noise_shape)
    return tuple(
        size if want is None else int(want) for size, want in zip(array.shape, given, strict=True)
    )
