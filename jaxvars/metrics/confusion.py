"""Counts of right and wrong answers at thresholds, and the metrics made of them, but for AUC.

Rules this file keeps:
- a score above a threshold means yes; one equal to it means no, as in TensorFlow;
- thresholds are looked up by bisection: the work is that of the scores, however many there are;
- counts are exact, or the parts of sums that lose nothing (see `metrics/sums.py`);
- one threshold gives a scalar, several an array with a value for each, in the order given.
"""

from __future__ import annotations

import functools
from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxvars.display.docstrings import add_example
from jaxvars.errors import ShapeError
from jaxvars.losses.inputs import (
    EPSILON,
    checked_count,
    divide,
    expand_weight,
    match_shapes,
    tensor,
    wide,
)
from jaxvars.metrics.metric import KnownMetric, describe_update, unseen
from jaxvars.metrics.sums import Tally, group_sums, join_parts, take_all, total
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.tracing import context
from jaxvars.typing import Array, DTypeLike

Thresholds: TypeAlias = tuple[float, ...]

KINDS = ("true_positives", "false_positives", "true_negatives", "false_negatives")
LEAST = -1e10
"""What a score counts as that is not among the k best: below any threshold."""


def check_thresholds(given: Any, default: float) -> Thresholds:
    """Return thresholds as a tuple, in the order given; raise ValueError unless all are in [0, 1].

    >>> check_thresholds(None, 0.5), check_thresholds([0.2, 0.1], 0.5)
    ((0.5,), (0.2, 0.1))
    """
    if given is None:
        return (default,)
    several = isinstance(given, Sequence | np.ndarray)
    listed = tuple(float(threshold) for threshold in (given if several else [given]))
    if not listed or not all(0 <= t <= 1 for t in listed):
        raise ValueError(f"Thresholds are numbers from 0 to 1, not {given!r}.")
    return listed


def check_class(y_pred: Array, top_k: int | None, class_id: int | None, what: str) -> None:
    """Raise unless the last axis of scores has as many classes as are asked for."""
    classes = y_pred.shape[-1] if y_pred.ndim > 1 else 0
    for name, least in (("top_k", top_k or 0), ("class_id", -1 if class_id is None else class_id)):
        if (name == "class_id" and least >= classes) or least > classes:
            raise ShapeError(
                f"{what} with {name}={least} takes scores of shape [..., classes], with as many "
                f"classes, but y_pred has shape {y_pred.shape}."
            )


def inputs(y_true: Any, y_pred: Any, weight: Any, what: str) -> tuple[Array, Array, Array | None]:
    """Return labels, predictions, and weights or None, of one shape but for the weights."""
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    preds, trues = match_shapes(pred.shape, true.shape)
    if trues != preds:
        raise ShapeError(
            f"{what} takes labels and predictions of the same shape, but y_true has shape "
            f"{true.shape} and y_pred {pred.shape}."
        )
    if not preds:
        true, pred, preds = true.reshape(1), pred.reshape(1), (1,)
    true, pred = true.reshape(preds), pred.reshape(preds)
    if weight is not None:
        weight = expand_weight(tensor(weight, f"sample_weight of {what}"), preds, what)
    return true, pred, weight


def count_confusions(
    y_true: Array, y_pred: Array, weight: Array | None, label_weights: Array | None = None, *,
    thresholds: Thresholds, top_k: int | None = None, class_id: int | None = None,
    by_label: bool = False, from_logits: bool = False,
) -> Any:  # fmt: skip
    """Return the counts of `KINDS`: parts of sums, of shape [2, thresholds] (, labels).

    Only the best `top_k` scores along the last axis count, or the index `class_id` alone; with
    `by_label` those of each label, the last axis, are counted apart.
    """
    known, back, cut = _sort_thresholds(thresholds)
    return _confusions(
        y_true, y_pred, weight, label_weights, known, back,
        cut=cut, top_k=top_k, class_id=class_id, by_label=by_label, from_logits=from_logits,
    )  # fmt: skip


@functools.lru_cache(maxsize=256)
def _sort_thresholds(thresholds: Thresholds) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return thresholds sorted, where each is now, and whether scores are cut to [0, 1]."""
    order = np.argsort(np.array(thresholds), kind="stable")
    known = np.array(thresholds)[order]
    return known, np.argsort(order).astype(np.int32), is_even(thresholds)


@functools.partial(
    quick_jit, static_argnames=("cut", "top_k", "class_id", "by_label", "from_logits")
)
def _confusions(
    y_true: Array, y_pred: Array, weight: Array | None, label_weights: Array | None,
    known: Array, back: Array, *, cut: bool, top_k: int | None, class_id: int | None,
    by_label: bool, from_logits: bool,
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
    labels = y_pred.shape[-1] if by_label else 1

    def part(x: Array) -> Array:
        return (x if class_id is None else x[..., class_id]).reshape(-1, labels)

    true, known = part(y_true.astype(bool)), known.astype(pred.dtype)
    weights = None if weights is None else part(weights)
    counts = _count_buckets(true, part(pred), weights, known, back)
    return counts if by_label else tuple(count[..., 0] for count in counts)


def _best(scores: Array, k: int) -> Array:
    _, found = jax.lax.top_k(scores, k)
    best = jax.nn.one_hot(found, scores.shape[-1], dtype=bool).any(-2)
    return jnp.where(best, scores, LEAST)


def _count_buckets(
    true: Array, pred: Array, weights: Array | None, known: Array, back: Array
) -> Any:
    passed = jnp.searchsorted(known, pred)  # how many thresholds are below the score
    passed = jnp.where(jnp.isnan(pred), 0, passed)
    ones = jnp.ones(true.shape, jnp.int32) if weights is None else weights
    labels = jnp.broadcast_to(jnp.arange(true.shape[1]), true.shape)
    shape = (2, known.size + 1, true.shape[1])
    buckets = group_sums(ones, (true.astype(jnp.int32), passed, labels), shape)
    above = jax.lax.associative_scan(join_parts, buckets, reverse=True, axis=2)
    (no, yes), (fp, tp) = above[:, :, 0].swapaxes(0, 1), above[:, :, 1:][:, :, back].swapaxes(0, 1)
    rest = lambda all_, some: join_parts(all_[:, None], -some)  # noqa: E731
    return tp, fp, rest(no, fp), rest(yes, tp)


def is_even(thresholds: Thresholds) -> bool:
    """Return whether thresholds go from 0 to 1 at equal distances: scores are then cut to that."""
    if len(thresholds) < 3:
        return False
    even = np.arange(len(thresholds)) / (len(thresholds) - 1)
    return bool(np.allclose(thresholds, even, atol=2 * EPSILON))


# ---------------------------------------------------------------- metrics
class Thresholded(KnownMetric, ABC):
    """A metric of counts at thresholds.

    Attributes:
        true_positives: and the others of `KINDS` that `_kinds` names: Tallies.
    """

    _kinds: ClassVar[tuple[str, ...]] = KINDS
    top_k: int | None = None
    class_id: int | None = None

    _example: ClassVar[tuple[str, float] | None] = None

    def __init_subclass__(cls, kinds: tuple[str, ...] = KINDS) -> None:
        if cls.__doc__ is not None and cls._example is not None:
            add_example(cls, *cls._example)
        super().__init_subclass__(**{"raise": "ValueError: when a threshold is not from 0 to 1."})
        cls._kinds = kinds

    def _begin(self, thresholds: tuple[float, ...]) -> None:
        self._at = thresholds
        for kind in self._kinds:
            setattr(self, kind, self.add_tally(kind, (len(self._at),)))

    @describe_update("labels: 0 for no, others for yes.", "scores from 0 to 1, of the same shape.")
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and scores into account."""
        given = inputs(y_true, y_pred, sample_weight, self.name)
        chosen: Any = {"top_k": self.top_k, "class_id": self.class_id}
        check_class(given[1], **chosen, what=self.name)
        found = unseen(lambda: count_confusions(*given, thresholds=self._at, **chosen))
        counts: dict[str, Any] = dict(zip(KINDS, found, strict=True))
        take_all((self._tally(kind), counts[kind]) for kind in self._kinds)

    def _tally(self, kind: str) -> Tally:
        return getattr(self, kind)

    def _parts(self) -> list[Array]:
        return [self._tally(kind).parts.value for kind in self._kinds]

    @context.restoring()
    def _one(self, values: Array) -> Array:
        """Return a value for each threshold, or that of the only one."""
        return self._to_dtype(values[0] if len(self._at) == 1 else values)


# ---------------------------------------------------------------- counts
class _Count(Thresholded, ABC):
    _example = "[0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9]", 1.0

    def __init__(
        self, thresholds: Any = None, name: str | None = None, dtype: DTypeLike | None = None
    ) -> None:
        super().__init__(dtype, name)
        self.thresholds = thresholds
        self._begin(check_thresholds(thresholds, 0.5))

    def result(self) -> Array:
        """Return the count, or one for each threshold."""
        return self._one(self._tally(self._kinds[0]).value)


@final
class TruePositives(_Count, kinds=("true_positives",)):
    """How many yes answers are right.

    Formula: `sum(y_true & (y_pred > threshold))`, weighted.
    """


@final
class FalsePositives(_Count, kinds=("false_positives",)):
    """How many yes answers are wrong.

    Formula: `sum(~y_true & (y_pred > threshold))`, weighted.
    """


@final
class TrueNegatives(_Count, kinds=("true_negatives",)):
    """How many no answers are right.

    Formula: `sum(~y_true & ~(y_pred > threshold))`, weighted.
    """


@final
class FalseNegatives(_Count, kinds=("false_negatives",)):
    """How many no answers are wrong.

    Formula: `sum(y_true & ~(y_pred > threshold))`, weighted.
    """


# ---------------------------------------------------------------- precision and recall
@quick_jit
def _divide_tallies(some: Array, others: Array) -> Array:
    """Return a part of a whole, given the tallies of both parts."""
    return divide(total(some), total(some) + total(others))


class _Share(Thresholded, ABC):
    _example = "[0, 1, 1, 1, 1], [0.6, 0.7, 0.2, 0.8, 0.9]", 0.75

    def __init__(
        self, thresholds: Any = None, top_k: int | None = None, class_id: int | None = None,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self.thresholds, self.class_id = thresholds, class_id
        self.top_k = None if top_k is None else checked_count(top_k, "top_k")
        self._begin(check_thresholds(thresholds, 0.5 if top_k is None else LEAST))

    def result(self) -> Array:
        """Return the part, or one for each threshold; 0 of nothing."""
        return self._one(_divide_tallies(*self._parts()))


@final
class Precision(_Share, kinds=("true_positives", "false_positives")):
    """Which part of the yes answers is right.

    Formula: `true_positives / (true_positives + false_positives)`.
    """


@final
class Recall(_Share, kinds=("true_positives", "false_negatives")):
    """Which part of what is yes is answered so.

    Formula: `true_positives / (true_positives + false_negatives)`.
    """
