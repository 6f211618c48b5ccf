"""Counts of right and wrong answers at thresholds: what precision, recall and AUC are made of.

Rules this file keeps:
- a score above a threshold means yes; one equal to it means no, as in TensorFlow;
- thresholds are looked up by bisection: the work is that of the scores, however many there are;
- counts are exact, or the parts of sums that lose nothing (see `metrics/sums.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.errors import ShapeError
from jaxvars.losses.inputs import EPSILON, leading, squeezed, tensor, wide
from jaxvars.metrics.sums import grouped, joined
from jaxvars.typing import Array

Thresholds: TypeAlias = tuple[float, ...]

KINDS = ("true_positives", "false_positives", "true_negatives", "false_negatives")
LEAST = -1e10
"""What a score counts as that is not among the k best: below any threshold."""


def checked_thresholds(given: Any, default: float) -> Thresholds:
    """Return thresholds as a tuple, in the order given; raise ValueError unless all are in [0, 1].

    >>> checked_thresholds(None, 0.5), checked_thresholds([0.2, 0.1], 0.5)
    ((0.5,), (0.2, 0.1))
    """
    if given is None:
        return (default,)
    several = isinstance(given, Sequence | np.ndarray)
    listed = tuple(float(threshold) for threshold in (given if several else [given]))
    if not listed or not all(0 <= t <= 1 for t in listed):
        raise ValueError(f"Thresholds are numbers from 0 to 1, not {given!r}.")
    return listed


def even_thresholds(count: int) -> Thresholds:
    """Return thresholds from 0 to 1, at equal distances; 0.5 if there is one alone.

    >>> even_thresholds(3)
    (0.0, 0.5, 1.0)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"num_thresholds is an integer above 0, not {count!r}.")
    return (0.5,) if count == 1 else tuple(i / (count - 1) for i in range(count))


def check_class(y_pred: Array, top_k: int | None, class_id: int | None, what: str) -> None:
    """Raise unless the last axis of scores has as many classes as are asked for."""
    classes = y_pred.shape[-1] if y_pred.ndim > 1 else 0
    for name, least in (("top_k", top_k or 0), ("class_id", -1 if class_id is None else class_id)):
        if (name == "class_id" and least >= classes) or least > classes:
            raise ShapeError(
                f"{what} with {name}={least} takes scores of shape [..., classes], with as many "
                f"classes, but y_pred has shape {y_pred.shape}."
            )


def inputs(y_true: Any, y_pred: Any, weight: Any, what: str) -> tuple[Array, Array, Array]:
    """Return labels, scores, and weights or None, of one shape but for the weights."""
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    preds, trues = squeezed(pred.shape, true.shape)
    if trues != preds:
        raise ShapeError(
            f"{what} takes labels and scores of the same shape, but y_true has shape {true.shape} "
            f"and y_pred {pred.shape}."
        )
    if not preds:
        true, pred, preds = true.reshape(1), pred.reshape(1), (1,)
    true, pred = true.reshape(preds), pred.reshape(preds)
    if weight is not None:
        weight = leading(tensor(weight, f"sample_weight of {what}"), preds, what)
    return true, pred, weight


def confusions(
    y_true: Array, y_pred: Array, weight: Array, label_weights: Array = None, *,
    thresholds: Thresholds, top_k: int | None = None, class_id: int | None = None,
    by_label: bool = False, from_logits: bool = False,
) -> Any:  # fmt: skip
    """Return the counts of `KINDS`: parts of sums, of shape [2, thresholds] (, labels).

    Only the best `top_k` scores along the last axis count, or the index `class_id` alone; with
    `by_label` those of each label, the last axis, are counted apart.
    """
    known, back, cut = _table(thresholds)
    return _confusions(
        y_true, y_pred, weight, label_weights, known, back,
        cut=cut, top_k=top_k, class_id=class_id, by_label=by_label, from_logits=from_logits,
    )  # fmt: skip


@functools.lru_cache(maxsize=256)
def _table(thresholds: Thresholds) -> tuple[Array, Array, bool]:
    """Return thresholds sorted, where each is now, and whether scores are cut to [0, 1]."""
    order = np.argsort(np.array(thresholds), kind="stable")
    known = np.array(thresholds)[order]
    return known, np.argsort(order).astype(np.int32), is_even(thresholds)


@functools.partial(jax.jit, static_argnames=("cut", "top_k", "class_id", "by_label", "from_logits"))
def _confusions(
    y_true: Array, y_pred: Array, weight: Array, label_weights: Array, known: Array, back: Array,
    *, cut: bool, top_k: int | None, class_id: int | None, by_label: bool, from_logits: bool,
) -> Any:  # fmt: skip
    pred = jax.nn.sigmoid(wide(y_pred)) if from_logits else wide(y_pred)
    weights = None if weight is None else jnp.broadcast_to(weight.astype(pred.dtype), pred.shape)
    if label_weights is not None:
        weights = label_weights.astype(pred.dtype) * (1 if weights is None else weights)
        weights = jnp.broadcast_to(weights, pred.shape)
    if top_k is not None:
        pred = _best(pred, top_k)
    if cut:
        pred = jnp.clip(pred, 0.0, 1.0)
    parts = [y_true.astype(bool), pred, weights]
    if class_id is not None:
        parts = [None if part is None else part[..., class_id] for part in parts]
    labels = y_pred.shape[-1] if by_label else 1
    parts = [None if part is None else part.reshape(-1, labels) for part in parts]
    counts = _counted(parts[0], parts[1], parts[2], known.astype(pred.dtype), back)
    return counts if by_label else tuple(count[..., 0] for count in counts)


def _best(scores: Array, k: int) -> Array:
    _, found = jax.lax.top_k(scores, k)
    best = jax.nn.one_hot(found, scores.shape[-1], dtype=bool).any(-2)
    return jnp.where(best, scores, LEAST)


def _counted(true: Array, pred: Array, weights: Array, known: Array, back: Array) -> Any:
    passed = jnp.searchsorted(known, pred)  # how many thresholds are below the score
    passed = jnp.where(jnp.isnan(pred), 0, passed)
    ones = jnp.ones(true.shape, jnp.int32) if weights is None else weights
    labels = jnp.broadcast_to(jnp.arange(true.shape[1]), true.shape)
    shape = (2, known.size + 1, true.shape[1])
    buckets = grouped(ones, (true.astype(jnp.int32), passed, labels), shape)
    above = jax.lax.associative_scan(joined, buckets, reverse=True, axis=2)
    (no, yes), (fp, tp) = above[:, :, 0].swapaxes(0, 1), above[:, :, 1:][:, :, back].swapaxes(0, 1)
    rest = lambda all_, some: joined(all_[:, None], -some)  # noqa: E731
    return tp, fp, rest(no, fp), rest(yes, tp)


def is_even(thresholds: Thresholds) -> bool:
    """Return whether thresholds go from 0 to 1 at equal distances: scores are then cut to that."""
    if len(thresholds) < 3:
        return False
    even = np.arange(len(thresholds)) / (len(thresholds) - 1)
    return bool(np.allclose(thresholds, even, atol=2 * EPSILON))
