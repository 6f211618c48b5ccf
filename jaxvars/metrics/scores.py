"""F-scores of any beta: means of precision and recall."""

from __future__ import annotations

from abc import ABC
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxvars.core.frames import LOCAL
from jaxvars.core.module import Late
from jaxvars.core.variable import Variable
from jaxvars.errors import ShapeError
from jaxvars.initializers.initializer import one_of
from jaxvars.losses.inputs import EPSILON, divide, expand_weight, tensor, wide
from jaxvars.metrics.metric import KnownMetric, LateCounts, describe_update, unseen
from jaxvars.metrics.sums import Tally, join_parts, parts_of, sum_to_parts, total
from jaxvars.typing import Array, DTypeLike

AVERAGES = ("micro", "macro", "weighted")
_KINDS = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")


def checked_table(y_true: Any, y_pred: Any, weight: Any, what: str) -> tuple[Array, Array, Array]:
    """Return labels and predictions of shape [samples, outputs], and weights or None."""
    true, pred = tensor(y_true, f"y_true of {what}"), tensor(y_pred, f"y_pred of {what}")
    if pred.ndim != 2 or true.shape != pred.shape:
        raise ShapeError(
            f"{what} takes labels and predictions of shape [samples, outputs], but y_true has "
            f"shape {true.shape} and y_pred {pred.shape}."
        )
    if weight is not None:
        weight = expand_weight(tensor(weight, f"sample_weight of {what}"), pred.shape, what)
    return true, pred, weight


class FScore(LateCounts, ABC, kinds=_KINDS):
    """What F-scores of any beta share."""

    average: str | None
    threshold: float | None
    beta: float

    def _begin(self, average: str | None, threshold: float | None) -> None:
        self.average = average and one_of(average, "average", AVERAGES)
        if threshold is not None and not 0 < threshold <= 1:
            raise ValueError(f"threshold is above 0 and at most 1, not {threshold!r}.")
        self.threshold = threshold

    def build(self, num_outputs: int) -> None:
        """Make the state for some outputs now, rather than at the first update."""
        self._make(() if self.average == "micro" else (num_outputs,))

    @describe_update(
        "labels of 0 and 1, of shape [samples, outputs].", "scores, of the same shape."
    )
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and scores into account."""
        true, pred, weight = checked_table(y_true, y_pred, sample_weight, self.name)
        outputs = pred.shape[1]
        if self.counts and self.counts[_KINDS[0]].shape not in ((), (outputs,)):
            raise ShapeError(
                f"{self.name} was made for {self.counts[_KINDS[0]].shape[0]} outputs, but y_pred "
                f"has shape {pred.shape}."
            )
        if not self.counts:
            self.build(outputs)
        threshold, micro = self.threshold, self.average == "micro"
        self._take(unseen(lambda: _count_hits(true, pred, weight, threshold, micro=micro)))

    def result(self) -> Array:
        """Return the score, or one for each output."""
        if not self.counts:
            return jnp.zeros((), self.dtype)
        return self._to_dtype(_f_score(self._parts(), self.beta, average=self.average))


@jax.jit(static_argnames="micro")
def _count_hits(true: Array, pred: Array, weight: Array, threshold: Array, micro: bool) -> Any:
    pred = wide(pred)
    if threshold is None:
        chosen = (pred >= pred.max(-1, keepdims=True)) & (jnp.abs(pred) > 1e-9)
    else:
        chosen = pred > threshold
    true, chosen = true.astype(pred.dtype), chosen.astype(pred.dtype)
    weight = jnp.ones((), pred.dtype) if weight is None else weight.astype(pred.dtype)
    axes = None if micro else (0,)
    kinds = (chosen * true, chosen * (1 - true), (1 - chosen) * true, true)
    return tuple(sum_to_parts(kind * weight, axes) for kind in kinds)


@jax.jit(static_argnames="average")
def _f_score(parts: list[Array], beta: Array, average: str | None) -> Array:
    hits, false, missed, weights = map(total, parts)
    precision, recall = hits / (hits + false + EPSILON), hits / (hits + missed + EPSILON)
    mean = precision * recall / (beta**2 * precision + recall + EPSILON)
    score = mean * (1 + beta**2)
    if average == "weighted":
        return (score * weights / (weights.sum() + EPSILON)).sum()
    return score if average is None else score.mean()


@final
class FBetaScore(FScore):
    """A mean of precision and recall in which recall counts `beta` times as much.

    Formula: `(1 + beta ** 2) * precision * recall / (beta ** 2 * precision + recall)`.

    Args:
        beta: above 0.
        name: what it is called; "fbeta_score" when None.

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric = FBetaScore(beta=2.0, threshold=0.5)
        >>> metric([[1, 1], [1, 0]], [[0.2, 0.6], [0.6, 0.3]]).round(2).tolist() == [
        ...     float(jnp.float32(0.56)),
        ...     1.0,
        ... ]
        True
    """

    def __init__(
        self, average: str | None = None, beta: float = 1.0, threshold: float | None = None,
        name: str | None = "fbeta_score", dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        if not beta > 0:
            raise ValueError(f"beta is above 0, not {beta!r}.")
        self.beta = float(beta)
        self._begin(average, threshold)


@final
class F1Score(FScore):
    """The harmonic mean of precision and recall.

    Formula: `2 * precision * recall / (precision + recall)`.

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric = F1Score(average="macro")
        >>> round(float(metric([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]])), 4)
        1.0
    """

    beta = 1.0

    def __init__(
        self, average: str | None = None, threshold: float | None = None, name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        self._begin(average, threshold)


# ---------------------------------------------------------------- the coefficient of determination
AGGREGATIONS = ("uniform_average", "variance_weighted_average")


@final
class R2Score(KnownMetric, Late):
    """The coefficient of determination: which part of the labels' variance is explained.

    Formula: `1 - sum((y_true - y_pred) ** 2) / sum((y_true - mean(y_true)) ** 2)`.

    Args:
        class_aggregation: "uniform_average" for the mean over outputs, "variance_weighted_average"
            for that by their variances, None for a score for each.
        num_regressors: of how many inputs the predictions are a function, for the adjusted score;
            it is left as it is while there are no more samples than that.

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric = R2Score()
        >>> round(float(metric([[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]])), 4)
        0.5714

    Differs from TensorFlow:
        The variance is kept as such (Chan, Golub and LeVeque 1979), not as the difference of two
        large sums. Where labels do not vary, or there are none, the score is 0. Nothing is warned
        of when the score cannot be adjusted.
    """

    def __init__(
        self, class_aggregation: str | None = "uniform_average", num_regressors: int = 0,
        name: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
        how = class_aggregation
        self.class_aggregation = how and one_of(how, "class aggregation", AGGREGATIONS)
        if num_regressors < 0:
            raise ValueError(f"num_regressors is at least 0, not {num_regressors!r}.")
        self.num_regressors = num_regressors
        self.num_samples = self.add_tally("num_samples")
        self.residual: Tally | None = None
        self.moments: Variable | None = None

    @property
    def is_built(self) -> bool:
        """Whether the state is there."""
        return self.moments is not None

    def build(self, num_outputs: int) -> None:
        """Make the state for some outputs now, rather than at the first update."""
        self.residual = self.add_tally("residual", (num_outputs,))
        kind = self.residual.parts.dtype
        self.moments = self.add_variable((3, 2, num_outputs), dtype=kind, name="moments")

    @describe_update("labels, of shape [samples, outputs].", "predictions, of the same shape.")
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Take labels and predictions into account."""
        true, pred, weight = checked_table(y_true, y_pred, sample_weight, self.name)
        moments, residual = self._find_state(pred.shape[1])
        squares, new = unseen(lambda: _find_moments(true, pred, weight))
        LOCAL.frame.modify_all(
            residual.taking(squares),
            (moments._cell, lambda old: _join_moments(old, new)),
            self.num_samples.adding(true.size),
        )

    def _find_state(self, outputs: int) -> tuple[Variable, Tally]:
        if self.moments is None or self.residual is None:
            self.build(outputs)
            return self._find_state(outputs)
        if self.moments.shape[2] != outputs:
            raise ShapeError(
                f"{self.name} was made for {self.moments.shape[2]} outputs, but y_pred has "
                f"{outputs}."
            )
        return self.moments, self.residual

    def result(self) -> Array:
        """Return the score, or one for each output."""
        if self.moments is None or self.residual is None:
            return jnp.zeros((), self.dtype)
        found = _r2(
            self.moments.value, self.residual.parts.value, self.num_samples.parts.value,
            how=self.class_aggregation, regressors=self.num_regressors,
        )  # fmt: skip
        return self._to_dtype(found)

    def _merge(self, other: R2Score) -> None:
        if other.moments is None or other.residual is None:
            return
        moments, residual = self._find_state(other.moments.shape[2])
        new = other.moments.value
        LOCAL.frame.modify_all(
            residual.taking(other.residual.parts.value),
            (moments._cell, lambda old: _join_moments(old, new)),
            self.num_samples.taking(other.num_samples.parts.value),
        )


@jax.jit
def _find_moments(true: Array, pred: Array, weight: Array) -> tuple[Array, Array]:
    """Return the squares of the errors, and weight, mean and squares of labels: parts of sums."""
    pred = wide(pred)
    true = true.astype(pred.dtype)
    weight = jnp.ones((), pred.dtype) if weight is None else weight.astype(pred.dtype)
    weight = jnp.broadcast_to(weight, true.shape)
    count = sum_to_parts(weight, (0,))
    mean = divide(total(sum_to_parts(weight * true, (0,))), total(count))
    squares = sum_to_parts(weight * jnp.square(true - mean[None]), (0,))
    errors = sum_to_parts(weight * jnp.square(true - pred), (0,))
    return errors, jnp.stack([count, parts_of(mean, mean.dtype), squares])


@jax.jit
def _join_moments(old: Array, new: Array) -> Array:
    """Return the moments of two sets of samples together."""
    new = new.astype(old.dtype)
    count = join_parts(old[0], new[0])
    n_old, share = total(old[0]), divide(total(new[0]), total(count))
    apart = total(join_parts(new[1], -old[1]))
    mean = join_parts(old[1], parts_of(apart * share, old.dtype))
    between = parts_of(jnp.square(apart) * n_old * share, old.dtype)
    return jnp.stack([count, mean, join_parts(join_parts(old[2], new[2]), between)])


@jax.jit(static_argnames=("how", "regressors"))
def _r2(moments: Array, residual: Array, samples: Array, how: str | None, regressors: int) -> Array:
    squares = total(moments[2])
    scores = jnp.where(squares == 0, 0.0, 1.0 - divide(total(residual), squares))
    if how == "uniform_average":
        scores = scores.mean()
    elif how == "variance_weighted_average":
        scores = divide((squares * scores).sum(), squares.sum())
    if not regressors:
        return scores
    n = total(samples)
    left = n - regressors - 1.0
    adjusted = 1.0 - (1.0 - scores) * (n - 1.0) / jnp.where(left > 0, left, 1.0)
    return jnp.where(left > 0, adjusted, scores)
