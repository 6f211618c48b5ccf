"""Samples of classes, for networks with very many of them.

Rules this file keeps:
- a sampler gives the classes, and how often each of the true ones and of these is expected;
- classes without repetition are drawn one after the other, and the number of tries that TensorFlow
  would have needed is drawn, too: its expected counts depend on it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tensors.dtypes import narrowed
from jaxvars.tf.random import streams as streams
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.static import refused
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array

LEAST = float(np.finfo(np.float32).min)
"""What the logits of accidental hits are lowered by."""


class Candidates(NamedTuple):
    """Classes that were drawn.

    Attributes:
        sampled_candidates: the classes: int64 of shape [num_sampled].
        true_expected_count: how often the true classes are expected, of their shape.
        sampled_expected_count: how often each of those that were drawn is.
    """

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Draw classes, all equally likely.

    Differs from TensorFlow: a seed gives other values.

    Args:
        true_classes: int64 of shape [batch, num_true].
        num_true: how many true classes each example has.
        num_sampled: how many are drawn.
        unique: draw each at most once.
        range_max: how many classes there are.
        seed: for the same ones each time.
        name: of no effect.

    Raises:
        InvalidArgumentError: when there are fewer than are to be drawn once.

    >>> uniform_candidate_sampler([[0, 1]], 2, 3, False, 5).true_expected_count.numpy().round(2)
    array([[0.6, 0.6]], dtype=float32)
    """
    share = np.full(range_max, 1 / range_max)
    return _sample(share, true_classes, num_sampled, unique, seed, "UniformCandidateSampler")


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    seed: int | None = None, name: str | None = None,
) -> Candidates:  # fmt: skip
    """Draw classes, small numbers more likely: log((i + 2) / (i + 1)) / log(range_max + 1).

    Differs from TensorFlow: a seed gives other values.

    The arguments, and what is raised, are as for `uniform_candidate_sampler`.
    """
    i = np.arange(range_max, dtype=np.float64)
    share = np.log((i + 2) / (i + 1)) / math.log(range_max + 1)
    return _sample(share, true_classes, num_sampled, unique, seed, "LogUniformCandidateSampler")


def _sample(
    share: np.ndarray, true_classes: Any, count: int, unique: bool, seed: Any, op: str
) -> Candidates:
    """Return classes drawn by their shares."""
    if unique and count > len(share):
        raise refused("Sampler's range is too small.", op)
    true, logs = to_array(true_classes), jnp.asarray(np.log(share))
    draw, wait = jax.random.split(streams.key(op, seed))
    if unique:
        noise = jax.random.gumbel(draw, logs.shape, logs.dtype)
        classes = jax.lax.top_k(logs + noise, count)[1]
        tries = _tries(wait, jnp.asarray(share)[classes])
    else:
        classes, tries = jax.random.categorical(draw, logs, shape=(count,)), jnp.asarray(count)
    expected = _expected_counts(jnp.asarray(share), tries, count)
    return Candidates(
        Tensor(classes.astype(narrowed(np.int64))),
        Tensor(expected[true]),
        Tensor(expected[classes]),
    )


def _tries(key: Array, drawn: Array) -> Array:
    """Return how often one had to draw to get these classes, each after those before it."""
    known = jnp.concatenate([jnp.zeros(1, drawn.dtype), jnp.cumsum(drawn)[:-1]])
    noise = jax.random.uniform(key, drawn.shape, drawn.dtype, minval=1e-12)
    again = jnp.floor(jnp.log(noise) / jnp.log(jnp.where(known > 0, known, 0.5)))
    return jnp.sum(1 + jnp.where(known > 0, again, 0))


def _expected_counts(share: Array, tries: Array, count: int) -> Array:
    """Return how often each class is expected."""
    seen = -jnp.expm1(tries * jnp.log1p(-share))
    return jnp.where(tries == count, share * tries, seen).astype(jnp.float32)
