"""Samples of classes, for networks with very many of them.

Rules this file keeps:
- a sampler gives the classes, and how often each of the true ones and of these is expected;
- classes without repetition are drawn one after the other, and the number of tries that TensorFlow
  would have needed is drawn, too: its expected counts depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.tf.random import streams as streams
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.sparse_tensor import host_array
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


class AccidentalHits(NamedTuple):
    """Where true classes were drawn.

    Attributes:
        indices: the rows of the true classes.
        ids: the places among those that were drawn.
        weights: what their logits are to be lowered by.
    """

    indices: Tensor
    ids: Tensor
    weights: Tensor


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


def fixed_unigram_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int,
    vocab_file: str = "", distortion: float = 1.0, num_reserved_ids: int = 0, num_shards: int = 1,
    shard: int = 0, unigrams: Sequence[float] = (), seed: int | None = None,
    name: str | None = None,
) -> Candidates:  # fmt: skip
    """Draw classes by weights that are given.

    Differs from TensorFlow: a seed gives other values.

    Args:
        true_classes: int64 of shape [batch, num_true].
        num_true: how many true classes each example has.
        num_sampled: how many are drawn.
        unique: draw each at most once.
        range_max: how many classes there are.
        vocab_file: a file with a class in each line, its weight after the last comma.
        distortion: the power that weights are raised to.
        num_reserved_ids: how many classes before the first weight are never drawn.
        num_shards: draw only each one of so many classes.
        shard: which of them: from 0 on.
        unigrams: the weights, in place of a file.
        seed: for the same ones each time.
        name: of no effect.

    Raises:
        ValueError: when there are both weights and a file, or neither.
        InvalidArgumentError: when there are fewer than are to be drawn once, or not `range_max`.
    """
    if bool(vocab_file) == bool(len(unigrams)):
        raise ValueError("Give the weights either as unigrams=[...] or as vocab_file=...")
    given = _read_weights(vocab_file) if vocab_file else unigrams
    weights = np.array([0.0] * num_reserved_ids + [float(w) ** distortion for w in given])
    if len(weights) != range_max:
        raise refused(f"range_max is {range_max}, and there are {len(weights)} weights")
    weights[np.arange(len(weights)) % num_shards != shard] = 0
    share = weights / weights.sum()
    return _sample(share, true_classes, num_sampled, unique, seed, "FixedUnigramCandidateSampler")


def _read_weights(path: str) -> list[float]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [float(line.rpartition(",")[2]) for line in lines if line.strip()]


def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: int | None = None,
    name: str | None = None,
) -> Candidates:  # fmt: skip
    """Return all classes, each expected once.

    Args:
        true_classes: int64 of shape [batch, num_true].
        num_true: how many true classes each example has.
        num_sampled: how many classes there are.
        unique: of no effect.
        seed: of no effect.
        name: of no effect.
    """
    ones = jnp.ones(num_sampled, jnp.float32)
    classes = jnp.arange(num_sampled, dtype=jnp.int64)
    shape = to_array(true_classes).shape
    return Candidates(Tensor(classes), Tensor(jnp.ones(shape, jnp.float32)), Tensor(ones))


def _sample(
    share: np.ndarray, true_classes: Any, count: int, unique: bool, seed: Any, op: str
) -> Candidates:
    """Return classes drawn by their shares."""
    if unique and count > np.count_nonzero(share):
        raise refused("Sampler's range is too small.", op)
    true, logs = to_array(true_classes), jnp.asarray(np.log(np.maximum(share, 1e-300)))
    logs = jnp.where(jnp.asarray(share) > 0, logs, -jnp.inf)
    draw, wait = jax.random.split(streams.key(op, seed))
    if unique:
        noise = jax.random.gumbel(draw, logs.shape, logs.dtype)
        classes = jax.lax.top_k(logs + noise, count)[1]
        tries = _tries(wait, jnp.asarray(share)[classes])
    else:
        classes, tries = jax.random.categorical(draw, logs, shape=(count,)), jnp.asarray(count)
    expected = _expected_counts(jnp.asarray(share), tries, count)
    return Candidates(
        Tensor(classes.astype(jnp.int64)), Tensor(expected[true]), Tensor(expected[classes])
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


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:  # fmt: skip
    """Return where classes that were drawn are true ones.

    Args:
        true_classes: int64 of shape [batch, num_true].
        sampled_candidates: int64 of shape [num_sampled].
        num_true: how many true classes each example has.
        seed: of no effect.
        name: of no effect.

    Raises:
        NotImplementedError: in a compiled function: how many they are depends on values.
    """
    true = host_array(to_array(true_classes), "nn.compute_accidental_hits")
    drawn = host_array(to_array(sampled_candidates), "nn.compute_accidental_hits")
    found = np.argwhere(true[:, :, None] == drawn[None, None, :])
    weights = np.full(len(found), LEAST, np.float32)
    parts = (found[:, 0].astype(np.int32), found[:, 2].astype(np.int64), weights)
    return AccidentalHits(*(Tensor(jnp.asarray(part)) for part in parts))
