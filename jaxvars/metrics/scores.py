"""`F1Score`: the harmonic mean of precision and recall."""

from __future__ import annotations

import functools
from typing import Any, final

import jax.numpy as jnp

from jaxvars.errors import ShapeError
from jaxvars.initializers.initializer import one_of
from jaxvars.losses.inputs import EPSILON, wide
from jaxvars.metrics.confusion import inputs
from jaxvars.metrics.metric import LateCounts, describe_update, unseen
from jaxvars.metrics.sums import sum_to_parts, total
from jaxvars.tensors.quick_jit import quick_jit
from jaxvars.typing import Array, DTypeLike

AVERAGES = ("micro", "macro", "weighted")
_KINDS = ("true_positives", "false_positives", "false_negatives", "intermediate_weights")


@final
class F1Score(LateCounts, kinds=_KINDS):
    """The harmonic mean of precision and recall.

    Formula: `2 * precision * recall / (precision + recall)`.

    Raises:
        ValueError: when an option is none of these.

    Example:
        >>> metric = F1Score(average="macro")
        >>> round(float(metric([[1, 0], [0, 1]], [[0.9, 0.1], [0.2, 0.8]])), 4)
        1.0
    """

    def __init__(
        self, average: str | None = None, threshold: float | None = None, name: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype, name)
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
        true, pred, weight = inputs(y_true, y_pred, sample_weight, self.name)
        if pred.ndim != 2:
            raise ShapeError(
                f"{self.name} takes scores of shape [samples, outputs], not {pred.shape}."
            )
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
        return self._to_dtype(_f1_score(self._parts(), average=self.average))


@functools.partial(quick_jit, static_argnames="micro")
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


@functools.partial(quick_jit, static_argnames="average")
def _f1_score(parts: list[Array], average: str | None) -> Array:
    hits, false, missed, weights = map(total, parts)
    precision, recall = hits / (hits + false + EPSILON), hits / (hits + missed + EPSILON)
    score = 2 * precision * recall / (precision + recall + EPSILON)
    if average == "weighted":
        return (score * weights / (weights.sum() + EPSILON)).sum()
    return score if average is None else score.mean()
