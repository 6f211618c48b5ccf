"""Losses that need a sample of the classes only: for networks with very many of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxvars.tf.nn.losses import sigmoid_cross_entropy_with_logits
from jaxvars.tf.random.candidates import LEAST, log_uniform_candidate_sampler
from jaxvars.tf.tensors.convert import to_array
from jaxvars.tf.tensors.tensor import Tensor
from jaxvars.typing import Array


def nce_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """Return the loss of telling true classes from others that were drawn.

    Args:
        weights: of shape [num_classes, dim], or a list of parts of them.
        biases: of shape [num_classes].
        labels: the true classes: int64 of shape [batch, num_true].
        inputs: of shape [batch, dim].
        num_sampled: how many classes are drawn.
        num_classes: how many there are.
        num_true: how many true ones each example has.
        sampled_values: what a sampler gave; `tf.random.log_uniform_candidate_sampler` when None.
        remove_accidental_hits: do not count true classes that were drawn.
        name: of no effect.

    Returns:
        The loss of each example, of shape [batch].

    Source: http://proceedings.mlr.press/v9/gutmann10a.html
    """
    logits, labels = _logits(
        weights, biases, labels, inputs, (num_sampled, num_classes, num_true), sampled_values,
        remove_accidental_hits, None,
    )  # fmt: skip
    return Tensor(jnp.sum(sigmoid_cross_entropy_with_logits.__wrapped__(labels, logits), 1))


def sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True,
    seed: int | None = None, name: str = "sampled_softmax_loss",
) -> Tensor:  # fmt: skip
    """Return the cross-entropy of the softmax of true classes and others that were drawn.

    Args:
        weights: of shape [num_classes, dim], or a list of parts of them.
        biases: of shape [num_classes].
        labels: the true classes: int64 of shape [batch, num_true].
        inputs: of shape [batch, dim].
        num_sampled: how many classes are drawn.
        num_classes: how many there are.
        num_true: how many true ones each example has.
        sampled_values: what a sampler gave; `tf.random.log_uniform_candidate_sampler` when None.
        remove_accidental_hits: do not count true classes that were drawn.
        seed: for the same classes each time.
        name: of no effect.

    Returns:
        The loss of each example, of shape [batch].

    Source: https://arxiv.org/abs/1412.2007
    """
    logits, labels = _logits(
        weights, biases, labels, inputs, (num_sampled, num_classes, num_true), sampled_values,
        remove_accidental_hits, seed,
    )  # fmt: skip
    return Tensor(-jnp.sum(labels * jax.nn.log_softmax(logits, 1), 1))


def _logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, counts: tuple[int, int, int],
    sampled: Any, removes: bool, seed: Any,
) -> tuple[Array, Array]:  # fmt: skip
    """Return logits of the true classes and those that were drawn, and what they should be."""
    is_list = isinstance(weights, list | tuple) and hasattr(weights[0], "shape")
    table = jnp.concatenate(list(map(to_array, weights))) if is_list else to_array(weights)
    true, x, bias = (to_array(value) for value in (labels, inputs, biases))
    num_sampled, num_classes, num_true = counts
    true = true.reshape(-1, num_true)
    if sampled is None:
        sampled = log_uniform_candidate_sampler(
            Tensor(true), num_true, num_sampled, True, num_classes, seed
        )
    drawn, of_true, of_drawn = (jax.lax.stop_gradient(to_array(part)) for part in sampled)
    own = jnp.einsum("bd,btd->bt", x, table[true]) + bias[true] - jnp.log(of_true)
    others = x @ table[drawn].T + bias[drawn] - jnp.log(of_drawn)
    if removes:
        hits = jnp.sum(true[:, :, None] == drawn, 1)
        others = others + hits.astype(x.dtype) * jnp.asarray(LEAST, x.dtype)
    wanted = jnp.concatenate([jnp.ones_like(own) / num_true, jnp.zeros_like(others)], 1)
    return jnp.concatenate([own, others], 1), wanted
